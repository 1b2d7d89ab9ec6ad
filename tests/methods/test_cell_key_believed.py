"""Noise in proportion to the largest contribution: whoever made that, or knows the others, knows its size better."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl
import pytest

import tablesafe as ts
from seeds import fresh
from tablesafe.methods.cell_key.magnitude import MagnitudeNoise

SMALL, MOST, P = 0.1, 2, 10.0


def released(seed: int, magnitude: ts.Magnitude) -> tuple[ts.Problem, ts.Release]:
    """Pairs of firms, of which each must not come closer to the other than 10%."""
    rng = np.random.default_rng(seed)
    pairs = [(float(rng.integers(60, 140)), float(rng.integers(20, 100))) for _ in range(2)]
    rows = [(f"{r}{i}", f"r{r}", x, float(rng.random())) for r, pair in enumerate(pairs) for i, x in enumerate(pair)]
    frame = pl.DataFrame(rows, schema=["firm", "region", "value", "key"], orient="row")
    table = ts.tabulate(frame, dimensions=["region"], value="value", respondent="firm")
    problem = ts.Problem(table, rules=[ts.PPercent(p=P)])
    return problem, ts.protect(problem, ts.CellKey(key="key", maximum_change=MOST, variance=1.0, magnitude=magnitude))


def given_away(problem: ts.Problem, release: ts.Release, unit: float) -> list[int]:
    """Cells of which the second contributor can exclude that the first has 10% less, or 10% more.

    It knows its own part, and that the noise is at most twice a share of the larger of both.
    """
    kept = problem.table.contributors
    assert kept is not None
    found = []
    for cell in problem.sensitive.tolist():
        first, second = kept.amount[cell, :2]
        fits = [
            abs(release.values[cell] - other - second) <= MOST * unit * max(other, second) + 0.5
            for other in (first * (1 - P / 100), first * (1 + P / 100))
        ]
        if not all(fits):
            found.append(cell)
    return found


@pytest.mark.parametrize("flex", [None, 50.0])
def test_what_is_called_safe_is_not_known_better_by_who_knows_the_other_part(flex: float | None) -> None:
    magnitude = ts.Magnitude(small=SMALL, large=SMALL, flex_point=flex)
    false = safe = 0
    for seed in range(2, 7):  # among them two of whom nothing is given away, and one that wider bounds call safe
        problem, release = released(seed, magnitude)
        told = given_away(problem, release, SMALL)
        outsiders = replace(release, judged=None)  # as wide as whoever knows nothing of the cell would say
        false += bool(told) and ts.audit(problem, outsiders).safe
        if ts.audit(problem, release).safe:
            safe += 1
            assert not told
    assert false, "the wider bounds are not too wide in any of them: this shows nothing"
    assert safe


# Every value between the bounds that the audit takes, held against all that the noise can make of it.


def results(contributions: list[float], noise: MagnitudeNoise, extra: float) -> list[float]:
    """All that can be published of a cell, by going through the changes of the perturbation tables one by one."""
    options, total = noise.options, sum(contributions)
    by = {"value": [total], "mean": [total / len(contributions)], "largest": sorted(contributions, reverse=True)}
    sizes = by[options.by] + [0.0] * options.top
    found = {total}
    for j, weight in enumerate(options.shares.tolist()):
        size, after = sizes[j], set()
        for room in found:
            tiny = size < noise.separation_point
            unit = 1.0 if tiny else min(float(options.scale(np.array([size]))[0]) * weight, room)
            if size == 0 or room <= 0 or unit <= 0:
                after.add(room)
                continue
            table = noise.usual if not tiny else noise.small_cells
            assert table is not None
            for units in changes(table, room / unit) if not tiny or j == 0 else [0.0]:
                more = (extra if units >= 0 else -extra) if j == 0 else 0.0
                after.add(round(max(room + (units + more) * unit, 0.0), 9))
        found = after
    return sorted(found)


def changes(table: Any, amount: float) -> list[float]:
    """The changes that some key selects for an amount between two rows."""
    rows = table.frame()
    keys = sorted({*rows["p_int_lb"], *rows["p_int_ub"]})
    middle = np.array([(a + b) / 2 for a, b in pairwise(keys) if b - a > 1e-12])
    return sorted(set(np.round(table.interpolated(np.full(len(middle), amount), middle), 12).tolist()))


SEVERAL: list[dict[str, Any]] = [
    {"magnitude": ts.Magnitude(small=0.1)},
    {"magnitude": ts.Magnitude(small=0.2, large=0.02, flex_point=20.0)},
    {"magnitude": ts.Magnitude(small=0.2, top=2, separation=True)},
    {"magnitude": ts.Magnitude(small=0.1, top=3, weights=(1.0, 0.5, 0.2))},
    {"magnitude": ts.Magnitude(small=0.15), "maximum_change": 5, "variance": 3.0, "smallest": 3},
    {"magnitude": ts.Magnitude(small=0.05, extra=1.5)},
    {"magnitude": ts.Magnitude(small=0.1, by="value")},
    {"magnitude": ts.Magnitude(small=0.3, by="mean")},
]


@pytest.mark.parametrize("number", range(len(SEVERAL)))
@pytest.mark.parametrize("seed", fresh(2, "cell keys believed"))
def test_nobody_can_rule_out_what_the_audit_takes_for_possible(number: int, seed: int) -> None:
    """Neither one who knows all contributions but one."""
    rng = np.random.default_rng(seed)
    options: dict[str, Any] = {"maximum_change": 2, "variance": 1.0} | SEVERAL[number]
    people = [[float(x) for x in rng.choice([1, 2, 5, 20, 60, 100], int(rng.integers(2, 5)))] for _ in range(4)]
    rows = [(f"{r}-{i}", f"r{r}", x, float(rng.random())) for r, each in enumerate(people) for i, x in enumerate(each)]
    frame = pl.DataFrame(rows, schema=["firm", "region", "value", "key"], orient="row")
    table = ts.tabulate(frame, dimensions=["region"], value="value", respondent="firm", largest=5)
    problem = ts.Problem(table, rules=[ts.PPercent(p=10)])
    method = ts.CellKey(key="key", **options)
    release, noise = ts.protect(problem, method), method.noise()
    assert release.judged is not None
    codes = [table.describe(i) for i in range(len(table))]
    for r, each in enumerate(people):
        cell = codes.index(f"(region=r{r})")
        low, high, seen = release.judged[0][cell], release.judged[1][cell], release.values[cell]
        extra = noise.options.extra if problem.sensitivity.mask[cell] else 0.0
        for value in np.linspace(low, high, 5) if high > low else []:
            for other in range(len(each)):
                rest = each[other] + value - sum(each)
                if rest < 0 or value <= 0:
                    continue
                possible = results([*each[:other], *each[other + 1 :], float(rest)], noise, extra)
                if extra:  # what is nearer than that cannot be: of what remains, the side of the truth
                    side = np.sign(seen - sum(each))
                    possible = [x for x in possible if np.sign(x - value) in (0, side)]
                assert possible
                assert possible[0] - 0.5 <= seen <= possible[-1] + 0.5, (each, other, value, seen)
