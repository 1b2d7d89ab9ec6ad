"""Instances made by seed, in the shapes of those of the literature: they stand in where the benchmark files are not.

Each is a problem as an office has it: skewed values, about a tenth of the inner cells sensitive, empty cells frozen.
"""

from __future__ import annotations

import numpy as np

from tablesafe.core.equations import Floats, roll_up
from tablesafe.core.hierarchy import Hierarchy
from tablesafe.core.linking import link
from tablesafe.core.problem import Problem
from tablesafe.core.sensitivity import Sensitivity
from tablesafe.core.table import Table

SHAPES = ("flat", "tree", "three dimensions", "no tree", "linked")
COX_KELLY = ["13=4+5+6", "12=1+6", "11=3+4", "10=2+5", "14=1+2+3+4+5+6", "14=13+1+2+3", "14=12+11+10"]
"""The structure of Cox & Kelly's table: sums that overlap."""


def made(shape: str, seed: int) -> Problem:
    """A problem of a shape."""
    random = np.random.default_rng(seed)
    regions = Hierarchy.from_pairs(
        [("T", "N"), ("T", "S"), *(("N", f"n{i}") for i in range(4)), ("S", "s0"), ("S", "s1")]
    )
    flat = {name: Hierarchy.flat([f"{name}{i}" for i in range(n)]) for name, n in (("a", 7), ("b", 6), ("c", 3))}
    if shape == "linked":
        return _problem(_linked(regions, flat, random), random)
    dimensions = {
        "flat": {"a": flat["a"], "b": flat["b"]},
        "tree": {"region": regions, "a": flat["a"]},
        "three dimensions": {"region": regions, "b": flat["b"], "c": flat["c"]},
        "no tree": {"odd": Hierarchy.from_equations(COX_KELLY), "c": flat["c"]},
    }[shape]
    return _problem(_table(dimensions, random), random)


def _table(dimensions: dict[str, Hierarchy], random: np.random.Generator) -> Table:
    leaves = [np.flatnonzero(~hierarchy.is_total) for hierarchy in dimensions.values()]
    grid = np.stack(np.meshgrid(*leaves, indexing="ij"), -1).reshape(-1, len(dimensions)).astype(np.int32)
    codes, sums = roll_up(grid, list(dimensions.values()), {"value": _values(random, len(grid))})
    return Table.from_codes(codes, sums["value"].astype(float), dimensions)


def _linked(regions: Hierarchy, flat: dict[str, Hierarchy], random: np.random.Generator) -> Table:
    """Two margins of one cube, which share their regions."""
    values = _values(random, 6 * 7 * 3).reshape(6, 7, 3)
    tables = []
    for name, axis in (("a", 2), ("c", 1)):
        inner = values.sum(axis=axis)
        dimensions = {"region": regions, name: flat[name]}
        leaves = [np.flatnonzero(~hierarchy.is_total) for hierarchy in dimensions.values()]
        grid = np.stack(np.meshgrid(*leaves, indexing="ij"), -1).reshape(-1, 2).astype(np.int32)
        codes, sums = roll_up(grid, list(dimensions.values()), {"value": inner.ravel()})
        tables.append(Table.from_codes(codes, sums["value"].astype(float), dimensions))
    return link(tables)


def _values(random: np.random.Generator, n: int) -> np.ndarray:
    return np.where(random.random(n) < 0.1, 0, np.ceil(random.lognormal(3.5, 1.2, n))).astype(np.int64)


def _problem(table: Table, random: np.random.Generator) -> Problem:
    mask = ~table.is_total & (table.value > 0) & (random.random(len(table)) < 0.12)
    if not mask.any():
        mask[np.flatnonzero(~table.is_total & (table.value > 0))[0]] = True
    level: Floats = np.ceil(0.1 * table.value)
    bounds = 1.5 * float(table.value.max())
    return Problem(table, sensitivity=Sensitivity.of(mask, level), frozen=table.value == 0, lower=0.0, upper=bounds)
