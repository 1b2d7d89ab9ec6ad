"""Rules made from rules, waivers, requests, and cells flagged by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray

import tablesafe as ts
from tablesafe.core.errors import InvalidOption, InvalidProblem, InvalidTable
from tablesafe.core.problem import Problem
from tablesafe.core.table import Table
from tablesafe.rules import (
    AllOf,
    AnyOf,
    Dominance,
    Levels,
    Manual,
    PPercent,
    RequestRule,
    Sensitivity,
    Threshold,
    Waiver,
)

MakeTable = Callable[..., Table]


def flagged(mask: NDArray[np.bool_]) -> list[int]:
    return [int(i) for i in np.flatnonzero(mask)]


def test_any_and_all(make: MakeTable) -> None:
    table = make([[100, 0], [100, 100], [50, 40]], rest=[0, 0, 90], count=[9, 2, 2])
    rules = (PPercent(p=10), Threshold(n=3))
    either, both = AnyOf(rules=rules)(table), AllOf(rules=rules)(table)
    assert flagged(either.mask) == [0, 1, 2]
    assert flagged(both.mask) == [1]
    assert both.upper.tolist() == [0, 10, 0]
    assert [either.why(i) for i in range(3)] == [("p%",), ("p%", "threshold"), ("threshold",)]
    assert both.why(0) == ()


def test_rules_of_a_problem_combine_by_union(make: MakeTable) -> None:
    table = make([[100, 0], [50, 40]], rest=[0, 90], count=[9, 2])
    problem = Problem(table, rules=[PPercent(p=10), Threshold(n=3, range_absolute=3)])
    assert problem.sensitivity.upper.tolist() == [10, 3]


def test_levels_may_differ_below_above_and_in_width(make: MakeTable) -> None:
    table = make([[100, 0], [100, 10]], rest=[0, 50])
    found = Levels(of=PPercent(p=10), lower=0.5, upper=2, sliding=3)(table)
    assert found.lower.tolist() == [5, 0]
    assert found.upper.tolist() == [20, 0]
    assert found.sliding.tolist() == [30, 0]


def test_a_range_takes_the_place_of_a_level(make: MakeTable) -> None:
    table = make([[100, 0], [100, 10]], rest=[0, 50])
    found = Levels(of=PPercent(p=10), range_percent=15, lower=0)(table)
    assert found.upper.tolist() == [15, 0]
    assert not found.lower.any()


def test_waived_cells_are_safe_by_column_or_mask(make: MakeTable) -> None:
    table = make([[100, 0], [100, 0]], agreed=[1, 0])
    assert flagged(Waiver(of=PPercent(), cells="agreed")(table).mask) == [1]
    assert flagged(Waiver(of=PPercent(), cells=np.array([False, True]))(table).mask) == [0]


def test_waivers_of_contributors_leave_the_others_to_protect(make: MakeTable) -> None:
    """A waived; B of 40 is hidden from A by 3 + 2, more than 10 percent of 40, but not from A and C together."""
    table = make([[100, 40, 3, 2]], names=[["A", "B", "C", "D"]])
    assert PPercent(p=10)(table).mask.tolist() == [True]
    assert Waiver(of=PPercent(p=10), respondents=("A",))(table).mask.tolist() == [False]
    found = Waiver(of=PPercent(p=10, coalition=2), respondents="A")(table)  # type: ignore[arg-type]
    assert found.upper.tolist() == [2]


def test_a_cell_is_safe_when_everybody_waived(make: MakeTable) -> None:
    table = make([[5, 3], [5, 3], [5, 0]], rest=[0, 1, 0], count=[2, 3, 1], names=[["A", "B"], ["A", "B"], ["A"]])
    found = Waiver(of=AnyOf(rules=(Threshold(n=4), PPercent())), respondents=("A", "B"))(table)
    assert flagged(found.mask) == [1]


def test_a_holding_more_or_less_does_not_count_as_everybody(make: MakeTable) -> None:
    """Two holdings, but five respondents of which two are listed: the other three did not waive."""
    table = make([[5, 3]], rest=[3], count=[5], holdings=[2], names=[["A", "B"]])
    assert Waiver(of=Threshold(n=6), respondents=("A", "B"))(table).mask.tolist() == [True]


def test_waivers_reach_into_combined_rules(make: MakeTable) -> None:
    table = make([[100, 40, 5]], names=[["A", "B", "C"]], count=[3])
    rule = Levels(of=AllOf(rules=(PPercent(p=10), Threshold(n=5))), upper=3)
    assert rule(table).upper.tolist() == [15]
    assert Waiver(of=rule, respondents=("A",))(table).mask.tolist() == [False]
    asked = RequestRule(of=PPercent(p=10), respondents=("A",))
    assert asked(table).mask.tolist() == [True]
    assert Waiver(of=asked, respondents=("A",))(table).mask.tolist() == [False]


def test_a_waiver_needs_to_know_who_contributes(make: MakeTable) -> None:
    with pytest.raises(InvalidTable, match="who its contributors are"):
        Waiver(of=PPercent(), respondents=("A",))(make([[100, 0]]))


def test_protection_only_on_request(make: MakeTable) -> None:
    table = make([[100, 0]] * 3, request=[0, 1, 2], names=[["A"], ["B"], ["C"]])
    assert flagged(RequestRule(of=PPercent(), request="request")(table).mask) == [1]
    assert flagged(RequestRule(of=PPercent(), request="request", code=2)(table).mask) == [2]
    assert flagged(RequestRule(of=PPercent(), request=np.array([True, False, False]))(table).mask) == [0]
    found = RequestRule(of=PPercent(), respondents=["B"])(table)  # type: ignore[arg-type]
    assert flagged(found.mask) == [1]
    assert found.why(1) == ("request",)
    assert found.upper.tolist() == [0, 10, 0]


def test_two_kinds_of_requests_as_in_foreign_trade(make: MakeTable) -> None:
    """Who asked with code 1 is protected from a share of 70 percent on, with code 2 from 90; and below 3 both."""

    def on_request(code: int, k: float) -> RequestRule:
        return RequestRule(of=AnyOf(rules=(Dominance(n=1, k=k), Threshold(n=3))), request="asked", code=code)

    table = make([[80, 5]] * 5, rest=[15] * 5, asked=[0, 1, 2, 2, 0], count=[9, 9, 9, 2, 2])
    rule = Levels(of=AnyOf(rules=(on_request(1, 70), on_request(2, 90))), range_percent=10)
    found = rule(table)
    assert flagged(found.mask) == [1, 3]
    assert found.upper.tolist() == [0, 10, 0, 10, 0]


def test_cells_flagged_by_hand(make: MakeTable) -> None:
    table = make([[50], [70], [90]], by_hand=[1, 0, 1], low=[5, 5, 5], high=[8, 8, 8], wide=[1, 1, 1])
    ranged = Manual(cells="by_hand", range_percent=10)(table)
    assert ranged.upper.tolist() == [5, 0, 9]
    given = Manual(cells="by_hand", lower="low", upper="high", sliding="wide")(table)
    assert given.lower.tolist() == [5, 0, 5]
    assert given.upper.tolist() == [8, 0, 8]
    assert given.sliding.tolist() == [1, 0, 1]
    masked = Manual(cells=np.array([False, True, False]), upper=np.array([0.0, 4.0, 0.0]))(table)
    assert masked.upper.tolist() == [0, 4, 0]
    assert masked.why(1) == ("manual",)


def test_bad_levels_are_refused(make: MakeTable) -> None:
    table = make([[50], [70]], by_hand=[1, 0], low=[-5, 0])
    with pytest.raises(InvalidProblem, match="not negative"):
        Manual(cells="by_hand", lower="low")(table)


def test_unknown_columns_are_named_with_a_hint(make: MakeTable) -> None:
    table = make([[50]], waived=[1])
    with pytest.raises(InvalidTable, match="did you mean 'waived'"):
        Waiver(of=PPercent(), cells="waved")(make([[50, 1]], waived=[1]))
    with pytest.raises(InvalidTable, match="no further column 'by_hand'"):
        Manual(cells="by_hand")(table)


def test_arrays_must_fit_the_table(make: MakeTable) -> None:
    with pytest.raises(InvalidTable, match="given 3 entries, but the table has 1 cells"):
        Manual(cells=np.array([True, False, True]))(make([[50]]))
    with pytest.raises(InvalidTable, match="should hold numbers"):
        Manual(cells=np.array(["yes"]))(make([[50]]))


@pytest.mark.parametrize(
    ("rule", "options"),
    [
        (AnyOf, {"rules": ()}),
        (AllOf, {"rules": (PPercent,)}),
        (AnyOf, {"rules": ("p_percent",)}),
        (Levels, {"of": PPercent(), "lower": -1}),
        (Levels, {"of": 10}),
        (Waiver, {"of": PPercent()}),
        (RequestRule, {"of": PPercent()}),
        (RequestRule, {"of": PPercent(), "request": "asked", "respondents": ("A",)}),
        (Manual, {"cells": "x", "range_percent": -1}),
    ],
)
def test_options_that_make_no_sense_are_refused(rule: Any, options: dict[str, Any]) -> None:
    with pytest.raises(InvalidOption, match=rule.__name__):
        rule(**options)


def test_a_single_rule_need_not_be_a_tuple(make: MakeTable) -> None:
    assert AnyOf(rules=[PPercent()]) == AnyOf(rules=(PPercent(),))  # type: ignore[arg-type]


def test_both_of_two_sensitivities() -> None:
    one = Sensitivity.of(np.array([True, True]), 1.0, 2.0, reason="one")
    other = Sensitivity.of(np.array([False, True]), 3.0, 1.0, 4.0, reason="other")
    both = one & other
    assert both.mask.tolist() == [False, True]
    assert (both.lower.tolist(), both.upper.tolist(), both.sliding.tolist()) == ([0, 3], [0, 2], [0, 4])
    assert (both.why(0), both.why(1)) == ((), ("one", "other"))


def test_a_mark_of_one_record_does_not_waive_what_others_are_in() -> None:
    """Columns of records are added up: F agreed, G beside it did not, and nobody asked the total."""
    frame = pl.DataFrame(
        {"a": ["x", "x", "y", "y"], "b": ["p", "p", "p", "q"], "firm": list("FGHK"), "value": [5, 6, 7, 8],
         "agreed": [1, 0, 1, 1], "weight": [2.0, 3.0, 1.0, 1.0]}
    )  # fmt: skip
    table = ts.tabulate(frame, dimensions=["a", "b"], value="value", respondent="firm", columns=["agreed"])
    found = Waiver(of=Threshold(n=9), cells="agreed")(table).mask
    codes = list(zip(*(column.to_list() for column in table.code_columns().values()), strict=True))
    assert {code for code, mask in zip(codes, found, strict=True) if not mask} == {
        ("y", "p"), ("y", "q"), ("y", "Total"), ("Total", "q")
    }  # fmt: skip
    weighted = ts.tabulate(
        frame, dimensions=["a", "b"], value="value", respondent="firm", weight="weight", columns=["agreed"]
    )
    twice = ts.tabulate(
        frame.with_columns(agreed=2 * pl.col("agreed")), dimensions=["a", "b"], value="value", columns=["agreed"]
    )
    for other in (weighted, twice):
        with pytest.raises(InvalidTable, match="was added up"):
            Waiver(of=Threshold(n=9), cells="agreed")(other)
    with pytest.raises(InvalidTable, match="who asked"):
        RequestRule(of=Threshold(n=9), request="agreed")(table)
