"""Releases of every kind to report on. True values are large and all different, so that finding one says something."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import polars as pl

import tablesafe as ts
from tablesafe.audit.findings import Findings
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release, Status
from tablesafe.core.table import Table

LABELS = {"A": "Farms & <forests>", "B": "Mines", "=C": "=SUM(1)", "North": "Die Kälte"}


@dataclass(frozen=True)
class Case:
    """A release, what it protects, and what the audit says."""

    name: str
    problem: Problem
    release: Release
    findings: Findings


def activity() -> ts.Hierarchy:
    """Two levels, with codes that a spreadsheet would run."""
    pairs = [("Total", "A"), ("Total", "B"), ("Total", "=C"), ("A", "A1"), ("A", "A2"), ("A", "+A3"), ("B", "-B1")]
    return ts.Hierarchy.from_pairs([*pairs, ("B", "@B2"), ("=C", "C1"), ("=C", "C2")], labels=LABELS)


def regions() -> ts.Hierarchy:
    return ts.Hierarchy.from_pairs([("All", "North"), ("All", "South"), ("All", "East")], labels=LABELS)


def magnitude(*sizes: int, seed: int = 1) -> Table:
    """A table of large values: activity by region, and further flat dimensions of these sizes."""
    random = np.random.default_rng(seed)
    dimensions = {"activity": activity(), "region": regions()}
    dimensions |= {f"d{i}": ts.Hierarchy.flat([f"{i}{j}" for j in range(n)]) for i, n in enumerate(sizes)}
    leaves = [tree.leaves for tree in dimensions.values()]
    grid = np.array(np.meshgrid(*leaves, indexing="ij"), dtype=object).reshape(len(leaves), -1)
    frame = pl.DataFrame(
        {name: pl.Series(codes.tolist(), dtype=pl.String) for name, codes in zip(dimensions, grid, strict=True)}
        | {"value": random.integers(1_000_000, 9_000_000, grid.shape[1]) * 10 + 7}
    )
    return Table.from_cells(frame, dimensions=dimensions, missing_totals="compute", response="turnover")


def guarded(table: Table, *, share: float = 0.12, seed: int = 3) -> Problem:
    """Some inner cells sensitive, by a level of 7.31 percent that must stay secret."""
    random = np.random.default_rng(seed)
    mask = ~table.is_total & (random.random(len(table)) < share)
    return Problem(table, sensitivity=ts.Sensitivity.of(mask, 0.0731 * table.value, reason="p% with p = 7.31"))


def people(n: int = 900, seed: int = 0) -> pl.DataFrame:
    random = np.random.default_rng(seed)
    area = random.integers(0, 6, n)
    return pl.DataFrame(
        {
            "person": [f"p{i}" for i in range(n)],
            "region": [f"R{a % 3}" for a in area],
            "municipality": [f"M{a}" for a in area],
            "age": random.choice(["young", "middle", "old"], n),
            "sex": random.choice(["f", "m"], n),
            "job": random.choice(list("abcdefgh"), p=np.array([40, 25, 15, 8, 6, 3, 2, 1]) / 100, size=n),
            "income": random.integers(1_000_000, 9_900_000, n),
        }
    )


def areas() -> ts.Hierarchy:
    return ts.Hierarchy.from_pairs([("All", f"R{r}") for r in range(3)] + [(f"R{a % 3}", f"M{a}") for a in range(6)])


def counted() -> Table:
    return ts.tabulate(people(), dimensions={"municipality": areas(), "job": None, "sex": None})


def _by(method: object, problem: Problem) -> tuple[Problem, Release]:
    return problem, ts.protect(problem, method)  # type: ignore[arg-type]


def _cube() -> Problem:
    random = np.random.default_rng(5)
    cube = random.integers(0, 60, (3, 4, 3))
    return ts.views(cube, dimensions=("a", "b", "c"), published=[("a", "b"), ("b", "c")], confidential=[("a", "c")])


def _income() -> Problem:
    table = ts.tabulate(people(), dimensions={"municipality": areas(), "job": None}, value="income", largest=3)
    return Problem(table, rules=[ts.Threshold(n=3), ts.PPercent(p=17.3)])


def _linked() -> Problem:
    records = people().with_columns(home=pl.col("income") // 3, export=pl.col("income") - pl.col("income") // 3)
    tables = [
        ts.tabulate(records, dimensions={"municipality": areas(), "job": None}, value=v, largest=3)
        for v in ("income", "home", "export")
    ]
    return Problem(ts.link(tables, equations="income = home + export"), rules=[ts.PPercent(p=17.3)])


def _open() -> tuple[Problem, Release]:
    problem = guarded(magnitude())
    return problem, Release.from_suppression(problem, problem.sensitivity.mask)


def _all(problem: Problem) -> tuple[Problem, Release]:
    return problem, Release.from_suppression(problem, np.ones(len(problem.table), np.bool_))


def _named() -> Problem:
    values = {"all": 7_531_131.0, "=men": 4_000_037.0, "women": 3_531_094.0, "young": 2_531_090.0, "old": 5_000_041.0}
    table = Table.from_equations(['all = "=men" + women', "all = young + old"], values)
    return Problem(table, sensitivity=ts.Sensitivity.of(np.array([False, True, False, False, False]), 73_131.0))


def _line() -> Problem:
    frame = pl.DataFrame({"region": ["North", "South", "East"], "value": [1_234_567, 2_345_679, 3_456_781]})
    table = Table.from_cells(frame, dimensions={"region": regions()}, missing_totals="compute")
    return Problem(table, sensitivity=ts.Sensitivity.of(table.value == 1_234_567, 98_765.0))


def _empty() -> Problem:
    frame = pl.DataFrame({"region": [], "value": []}, schema={"region": pl.String, "value": pl.Float64})
    return Problem(Table.from_cells(frame, dimensions={"region": regions()}))


MADE: dict[str, Callable[[], tuple[Problem, Release]]] = {
    "suppress": lambda: _by(ts.Suppress(), guarded(magnitude())),
    "suppress from records": lambda: _by(ts.Suppress(time_limit_s=1), _income()),
    "adjust": lambda: _by(ts.Adjust(time_limit_s=1), guarded(magnitude())),
    "round": lambda: _by(ts.Round(base=7), Problem(counted(), rules=[ts.Threshold(n=4)])),
    "small counts": lambda: _by(ts.SmallCounts(limit=3), Problem(counted())),
    "cell key": lambda: _by(ts.CellKey(identifier="person", seed=77_001_133, variance=2.0), Problem(counted())),
    "noise": lambda: _by(ts.Noise(seed=77_001_133), _income()),
    "swap": lambda: _by(
        ts.Swap(geography=("region", "municipality"), match=("sex",), rate=0.2, seed=77_001_133, new_cells="avoid"),
        Problem(counted()),
    ),
    "intervals": lambda: _by(ts.PublishIntervals(kind="asymmetric", seed=77_001_133), guarded(magnitude())),
    "views": lambda: _by(ts.SuppressViews(time_limit_s=1), _cube()),
    "linked": lambda: _by(ts.Suppress(time_limit_s=1), _linked()),
    "open": _open,
    "all withheld": lambda: _all(guarded(magnitude())),
    "no rules": lambda: _by(ts.PublishAll(), Problem(magnitude())),
    "named cells": lambda: _by(ts.Suppress(), _named()),
    "one dimension": lambda: _by(ts.Suppress(), _line()),
    "three dimensions": lambda: _by(ts.Withhold(), guarded(magnitude(3))),
    "five dimensions": lambda: _by(ts.Withhold(), guarded(magnitude(3, 2, 2), share=0.02)),
    "empty": lambda: _by(ts.PublishAll(), _empty()),
}


@cache
def made(name: str) -> Case:
    """Each release is made once."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        problem, release = MADE[name]()
        return Case(name, problem, release, ts.audit(problem, release, insiders=False, unions=False))


def twin(case: Case) -> Case:
    """The same to the public eye, with every secret replaced: true values, statuses, levels, parameters, contributors.

    What is published, withheld, announced and not part of the publication stays; so do the kinds of rules.
    """
    random = np.random.default_rng(11)
    release, problem, n = case.release, case.problem, len(case.problem.table)
    table = replace(
        problem.table,
        integers=random.integers(10**9, 10**10, n),
        equations=problem.table.equations,
        count=random.integers(0, 9, n),
        holdings=None,
        contributors=None,
        origin=None,
    )
    hidden = release.suppressed & (release.status != Status.BY_DESIGN)
    status = np.where(hidden, Status.GIVEN, release.status)
    status = np.where(~release.suppressed, random.choice([Status.PUBLISHED, Status.CHANGED], n), status)
    silent = release.suppressed if release.intervals is None else release.suppressed & ~release.intervals
    moved = ~release.suppressed & (release.lower < release.upper)
    other = replace(
        release,
        table=table,
        status=status.astype(np.uint8),
        lower=np.where(silent, -1.0, np.where(moved, release.values - 1, release.lower)),
        upper=np.where(silent, 99.0, np.where(moved, release.values + 1, release.upper)),
        solution=None,
        mechanism=None,
        judged=None,
    )
    rules = tuple(type(rule)(**OTHER.get(type(rule).__name__, {})) for rule in problem.rules)
    some = np.zeros(n, np.bool_)
    some[problem.sensitive[:1]] = True  # whether any cell is sensitive is no secret
    some |= (random.random(n) < 0.3) & bool(some.any())
    sensitivity = ts.Sensitivity.of(some & ~problem.frozen, 1.0, reason="another")
    changed = problem.replace(table=table, sensitivity=sensitivity, lower=-np.inf, upper=np.inf, cost=None)
    object.__setattr__(changed, "rules", rules)  # as they are, not applied to values that mean nothing
    return Case(case.name, changed, other, case.findings)


OTHER = {"Threshold": {"n": 9}, "PPercent": {"p": 55.0}}
"""Other parameters of the rules."""
