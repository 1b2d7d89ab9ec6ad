"""What a respondent may learn where several rules hold: each of them, whatever the others say."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import tablesafe as ts


def _table(target: list[tuple[str, int]], alone: str) -> tuple[ts.Table, np.ndarray]:
    """A table of 3 × 3 with a rectangle withheld: one corner as given, the opposite one of a single firm."""
    rows = [("a0", "b0", *part) for part in target] + [("a1", "b1", alone, 50)]
    others = [
        (a, b) for a in ("a0", "a1", "a2") for b in ("b0", "b1", "b2") if (a, b) not in {("a0", "b0"), ("a1", "b1")}
    ]
    rows += [(*cell, f"other {10 * at + i}", 20) for at, cell in enumerate(others) for i in range(10)]
    frame = pl.DataFrame(rows, schema=["a", "b", "firm", "value"], orient="row")
    table = ts.tabulate(frame, dimensions=["a", "b"], value="value", respondent="firm", largest=12)
    cells = table.cells()
    return table, (cells["a"].is_in(["a0", "a1"]) & cells["b"].is_in(["b0", "b1"])).to_numpy()


def _learns(rules: list[object], target: list[tuple[str, int]], alone: str) -> bool:
    """Whether the firm that is alone in the opposite corner, and so knows every corner, learns too much."""
    table, withheld = _table(target, alone)
    problem = ts.Problem(table, rules=rules)
    findings = ts.audit(problem, ts.Release.from_suppression(problem, withheld), names=True)
    cell = table.cells().with_row_index().filter((pl.col("a") == "a0") & (pl.col("b") == "b0"))["index"][0]
    found = findings.insiders.found
    assert findings.safe == (not found)
    return any(one.cell == cell and one.names == (alone,) for one in found)


FEW = ts.Threshold(n=4)
THREE = [("big", 100), ("small", 1), ("tiny", 1)]


@pytest.mark.parametrize(
    "rules",
    [
        [FEW],
        [FEW, ts.PPercent(p=10)],
        [ts.AnyOf(rules=(FEW, ts.Dominance(n=1, k=80)))],
        [ts.AllOf(rules=(FEW, ts.PPercent(p=10)))],
        [ts.Threshold(n=4, range_percent=10)],
        [ts.Levels(of=FEW, range_absolute=5)],
        [ts.RequestRule(of=FEW, respondents=("big",)), ts.PPercent(p=10)],
        [ts.RequestRule(of=ts.AnyOf(rules=(FEW, ts.PPercent(p=10))), respondents=("big",))],
    ],
    ids=["few", "and p%", "any", "all", "range", "levels", "request and p%", "request"],
)
def test_the_largest_of_too_few_does_not_know_what_the_others_have_together(rules: list[object]) -> None:
    assert _learns(rules, THREE, "big")


@pytest.mark.parametrize(
    "rules",
    [[ts.PPercent(p=10)], [ts.RequestRule(of=ts.PPercent(p=10), respondents=("big",))]],
    ids=["p%", "request"],
)
def test_where_only_weights_count_the_others_hide_each_other(rules: list[object]) -> None:
    assert not _learns(rules, THREE, "big")


def test_who_agreed_for_one_rule_is_hidden_by_another() -> None:
    target = [("big", 100), ("small", 50)]
    for_all = ts.PPercent(p=5)
    waived = ts.Waiver(of=ts.PPercent(p=20), respondents=("big",))
    assert _learns([for_all], target, "small")
    assert not _learns([waived], target, "small")
    assert _learns([waived, for_all], target, "small")
    assert _learns([waived, ts.Threshold(n=3, range_percent=5)], target, "small")
    assert _learns([waived, for_all], target, "big")
