"""A contributor with a small amount and a large weight: whoever knows the weights sees it in the total."""

from __future__ import annotations

import polars as pl
import pytest

import tablesafe as ts

SAMPLE = pl.DataFrame(
    {
        "firm": ["a", "b", "c", "heavy", *(f"x{i}" for i in range(8))],
        "region": ["north"] * 4 + ["south"] * 8,
        "turnover": [10.0, 10.0, 10.0, 9.0, *[5.0] * 8],
        "weight": [1, 1, 1, 70, *[2] * 8],
    }
)


def table(largest: int, frame: pl.DataFrame = SAMPLE) -> ts.Table:
    return ts.tabulate(
        frame, dimensions=["region"], value="turnover", respondent="firm", weight="weight", largest=largest
    )


@pytest.mark.parametrize("largest", [2, 3, 12])
@pytest.mark.parametrize("rule", [ts.PPercent(p=30), ts.Dominance(n=1, k=80)])
def test_who_adds_most_is_protected_though_it_reported_little(largest: int, rule: ts.Rule) -> None:
    problem = ts.Problem(table(largest), rules=[rule])
    north = ts.Problem(table(12), rules=[rule]).sensitive
    assert problem.sensitive.tolist() == north.tolist()
    assert len(problem.sensitive)
    assert not ts.audit(problem, ts.Release.from_suppression(problem, problem.sensitivity.mask & False)).safe


def test_both_lists_are_one_and_only_the_asked_for_places_are_certain() -> None:
    kept = table(2).contributors
    assert kept is not None
    assert kept.weighted is not None
    assert kept.certain == 2
    assert kept.depth == 4
    north = 1
    assert kept.amount[north].tolist() == [10.0, 10.0, 9.0, 0.0]
    assert kept.weighted[north].tolist() == [10.0, 10.0, 630.0, 0.0]
    with pytest.raises(ts.TablesafeError, match="needs the 3 largest"):
        table(2).largest(3)


def test_linked_tables_with_lists_of_other_lengths_keep_who_adds_most() -> None:
    kept = ts.link([table(2), table(3)]).contributors
    assert kept is not None
    assert kept.weighted is not None
    assert kept.certain == 2
    assert 630.0 in kept.weighted
