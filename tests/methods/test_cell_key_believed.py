"""Noise in proportion to the largest contribution: whoever made that, or knows the others, knows its size better."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import tablesafe as ts

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
