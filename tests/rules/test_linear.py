"""Rules that weigh contributors: their protection levels, boundaries, sampling weights, negative amounts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tablesafe.core.errors import InvalidOption, InvalidTable
from tablesafe.core.table import Contributors, Table
from tablesafe.rules import PQ, Dominance, LinearSensitivity, PPercent, Rule

MakeTable = Callable[..., Table]


WEIGHTED = [[100.0, 10.0]]


def weighted(amount: list[list[float]], weight: list[list[float]]) -> Table:
    """Cells whose contributors are all listed, with sampling weights; unconnected."""
    amounts, weights = np.array(amount), np.array(weight)
    values = (amounts * weights).sum(axis=1)
    named = Table.from_equations({}, {f"c{i}": float(v) for i, v in enumerate(values)})
    return replace(named, contributors=Contributors(amounts, np.full(amounts.shape, -1), amounts * weights))


@pytest.mark.parametrize(
    ("rule", "level"),
    [
        (PPercent(p=10), 10 - 5),
        (PPercent(p=10, coalition=2), 10 - 2),
        (PPercent(p=5), 0),
        (PPercent(p=4.99), 0),
        (PPercent(p=5.01), 0.01),
        (PQ(p=10, q=50), 20 - 5),
        (PQ(p=10, q=100), 10 - 5),
        (Dominance(n=1, k=60), 100 / 0.6 - 145),
        (Dominance(n=2, k=85), 140 / 0.85 - 145),
        (Dominance(n=2, k=97), 0),
        (LinearSensitivity(weights=(1, 0), rest=-10), 10 - 5),
        (LinearSensitivity(weights=(2, 2), rest=-8), 35 - 5),
    ],
)
def test_levels_are_those_of_the_handbook(make: MakeTable, rule: Rule, level: float) -> None:
    """Contributions of 100, 40, 3 and 2: of 145 the two largest leave 5, the three largest 2."""
    found = rule(make([[100, 40, 3, 2]]))
    assert found.mask.tolist() == [level > 0]
    assert found.upper == pytest.approx([level])
    assert found.lower == pytest.approx([level])
    assert not found.sliding.any()


def test_equal_is_safe(make: MakeTable) -> None:
    table = make([[100, 40]] * 3, rest=[9.99, 10, 10.01])
    assert PPercent(p=10)(table).mask.tolist() == [True, False, False]
    shares = make([[85, 0]] * 3, rest=[14.99, 15, 15.01])
    assert Dominance(n=1, k=85)(shares).mask.tolist() == [True, False, False]


@pytest.mark.parametrize("p", [10, 1, 30, 17.65])
def test_the_noise_of_sums_decides_nothing(p: float) -> None:
    """The largest is 3 and the remainder p percent of it, both summed up in floats that miss them by a little."""
    noisy = sum([0.1] * 30)
    rest = p * 3 / 100
    assert noisy != 3
    table = Table.from_equations({}, {"a": 3 + 2 + rest, "b": 3 + 2 + rest - 0.0001})
    amounts = np.array([[noisy, 2.0]] * 2)
    found = PPercent(p=p)(replace(table, contributors=Contributors(amounts, np.full((2, 2), -1))))
    assert found.mask.tolist() == [False, True]
    assert found.upper == pytest.approx([0, 0.0001], rel=1e-9)


def test_contributions_may_have_more_decimals_than_the_value(make: MakeTable) -> None:
    table = make([[99.25, 0.125]], value=[100])
    assert PPercent(p=1)(table).upper == pytest.approx([0.9925 - 0.625])


def test_few_contributors_are_padded_with_nothing(make: MakeTable) -> None:
    table = make([[7, 0, 0], [0, 0, 0], [5, 5, 0]])
    assert PPercent(p=10, coalition=2)(table).upper.tolist() == [0.7, 0, 0.5]
    assert Dominance(n=3, k=80)(table).upper.tolist() == [1.75, 0, 2.5]


def test_a_table_that_keeps_too_few_is_refused(make: MakeTable) -> None:
    with pytest.raises(InvalidTable, match="needs the 3 largest contributors"):
        Dominance(n=3, k=85)(make([[5, 3]]))
    with pytest.raises(InvalidTable, match="keeps 0"):
        PPercent()(Table.from_equations({}, {"a": 1.0}))


def test_a_contribution_that_is_no_number_is_refused(make: MakeTable) -> None:
    table = make([[5, 3]])
    broken = Contributors(np.array([[np.nan, 3]]), np.full((1, 2), -1))
    with pytest.raises(InvalidTable, match="cell=c0"):
        PPercent()(replace(table, contributors=broken))


def test_a_lower_level_does_not_reach_below_zero_where_nothing_is_negative(make: MakeTable) -> None:
    rule = Dominance(n=1, k=25)
    assert rule(make([[8, 0]])).lower.tolist() == [8]
    assert rule(make([[8, 0]])).upper.tolist() == [24]
    assert rule(make([[8, 0], [-8, 0]])).lower.tolist() == [24, 24]


# -- negative contributions --------------------------------------------------------------------------------------------


def test_a_value_of_nothing_may_hide_large_contributors(make: MakeTable) -> None:
    """50 − 50 is 0: either of the two knows the other exactly."""
    table = make([[50, -50, 0]])
    assert PPercent(p=10)(table).upper.tolist() == [5]
    assert Dominance(n=1, k=60)(table).mask.tolist() == [False]
    assert Dominance(n=1, k=45)(table).upper == pytest.approx([50 / 0.45 - 100])


def test_what_is_not_listed_counts_at_least_by_its_sum(make: MakeTable) -> None:
    """100, −60, and others that add up to −30 (or more in absolute value): 30 hide the largest."""
    table = make([[100, -60]], rest=[-30])
    assert PPercent(p=10)(table).mask.tolist() == [False]
    assert PPercent(p=40)(table).upper.tolist() == [10]
    assert PPercent(p=40, negative="value")(table).upper.tolist() == [40]


def test_contributors_that_exceed_the_value_leave_nothing(make: MakeTable) -> None:
    """Listed contributors of one sign add up to more than the value: bad data, or small losses; caution either way."""
    table = make([[100, 5], [-100, -5]], value=[90, -90])
    assert PPercent(p=10)(table).upper.tolist() == [10, 10]
    known = make([[100, -15, 5]], value=[90])
    assert PPercent(p=10)(known).upper.tolist() == [5]


# -- sampling weights --------------------------------------------------------------------------------------------------


def test_the_handbooks_example_of_weights() -> None:
    """100 with weight 4 and 10 with weight 7: the two largest of the expanded list are 100 and 100."""
    table = weighted(WEIGHTED, [[4, 7]])
    assert table.value.tolist() == [470]
    expanded = Dominance(n=2, k=40, sampling_weights="expanded")(table)
    assert expanded.upper == pytest.approx([200 / 0.4 - 470])
    assert Dominance(n=2, k=43, sampling_weights="expanded")(table).mask.tolist() == [False]
    assert Dominance(n=2, k=40, sampling_weights="unpublished")(table).mask.tolist() == [False]
    assert Dominance(n=2, k=40, sampling_weights="published")(table).upper == pytest.approx([470 / 0.4 - 470])


def test_weights_that_are_not_published_protect() -> None:
    table = weighted([[100, 20, 1]], [[1.5, 1, 1]])
    assert PPercent(p=10, sampling_weights="unpublished")(table).mask.tolist() == [False]
    assert PPercent(p=10, sampling_weights="published")(table).upper.tolist() == [14]


def test_published_weights_make_a_small_contributor_the_largest() -> None:
    table = weighted([[100, 20, 1]], [[1, 50, 1]])
    assert PPercent(p=10)(table).upper.tolist() == [99]


def test_a_fraction_of_a_weight_fills_a_place_in_part() -> None:
    """1.5 times 100 and 20 in the two first places: 100, then half of 100 and half of 20."""
    table = weighted([[100, 20, 1]], [[1.5, 1, 1]])
    assert Dominance(n=2, k=80, sampling_weights="expanded")(table).upper == pytest.approx([160 / 0.8 - 171])


def test_weights_without_a_common_decimal_unit_are_used_as_they_are() -> None:
    third = 100 / 3
    table = weighted([[30.0, 30.0, 10.0]], [[third, third, 0.1 * third]])
    assert not table.exact
    assert PPercent(p=10)(table).upper == pytest.approx([third * 30 * 0.1 - third])
    boundary = weighted([[30.0, 30.0, 3.0]], [[third, third, third]])
    assert PPercent(p=10)(boundary).mask.tolist() == [False]


# -- shadow variables --------------------------------------------------------------------------------------------------


def test_a_shadow_variable_decides_and_its_level_is_a_share(make: MakeTable) -> None:
    """Contributors by turnover: 100, 40 and 5 others of 145; employment of 290 is hidden by the same share."""
    table = make([[100, 40]], value=[290], shadow=[145])
    assert PPercent(p=10)(table).upper == pytest.approx([290 * 5 / 145])
    assert PPercent(p=5)(table).mask.tolist() == [False]


def test_a_shadowed_cell_of_value_zero_is_still_sensitive(make: MakeTable) -> None:
    found = PPercent(p=10)(make([[100, 40]], value=[0], shadow=[145]))
    assert found.mask.tolist() == [True]
    assert found.upper.tolist() == [0]


# -- options -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rule", "options", "name"),
    [
        (PPercent, {"p": 0}, "PPercent.p"),
        (PPercent, {"p": 101}, "PPercent.p"),
        (PPercent, {"p": float("nan")}, "PPercent.p"),
        (PPercent, {"p": "10"}, "PPercent.p"),
        (PPercent, {"p": True}, "PPercent.p"),
        (PPercent, {"coalition": 0}, "PPercent.coalition"),
        (PPercent, {"coalition": 1.5}, "PPercent.coalition"),
        (PPercent, {"sampling_weights": "secret"}, "PPercent.sampling_weights"),
        (PPercent, {"negative": "ignore"}, "PPercent.negative"),
        (PQ, {"p": 60, "q": 50}, "PQ.p"),
        (PQ, {"p": 10, "q": 101}, "PQ.q"),
        (Dominance, {"n": 0}, "Dominance.n"),
        (Dominance, {"k": 100}, "Dominance.k"),
        (Dominance, {"k": 0}, "Dominance.k"),
        (LinearSensitivity, {"weights": ()}, "LinearSensitivity.weights"),
        (LinearSensitivity, {"weights": 1.0}, "LinearSensitivity.weights"),
        (LinearSensitivity, {"weights": (1, "2")}, "LinearSensitivity.weights"),
        (LinearSensitivity, {"weights": (1,), "rest": 0}, "LinearSensitivity.rest"),
    ],
)
def test_options_out_of_range_are_refused_by_name(rule: Any, options: dict[str, Any], name: str) -> None:
    with pytest.raises(InvalidOption, match=name.replace(".", r"\.")):
        rule(**options)


def test_parameters_mean_what_is_written(make: MakeTable) -> None:
    """33.3 percent of 1000 is 333 exactly, though 33.3 is no binary fraction."""
    table = make([[1000, 1000]] * 2, rest=[333, 332.99])
    assert PPercent(p=33.3)(table).mask.tolist() == [False, True]
    assert PPercent(p=np.float64(33.3))(table).mask.tolist() == [False, True]


@pytest.mark.parametrize("off", [0, -1])
def test_a_thousand_huge_cells_at_the_boundary_are_decided_exactly(off: int) -> None:
    """Three contributors hold exactly 73.9137 percent of totals up to 10^15; with one unit less beside them, more."""
    random = np.random.default_rng(7)
    base = random.integers(10**8, 10**9, 1000)
    top, rest = base * 739_137, base * 260_863 + off
    cut = np.sort(random.integers(0, top[:, None], (1000, 2)), axis=1)
    parts = -np.sort(-np.column_stack([cut[:, 0], cut[:, 1] - cut[:, 0], top - cut[:, 1]]), axis=1)
    table = Table.from_equations({}, (top + rest).astype(float))
    table = replace(table, contributors=Contributors(parts.astype(float), np.full(parts.shape, -1)))
    assert Dominance(n=3, k=73.9137)(table).mask.all() == (off < 0)
    assert Dominance(n=3, k=73.9137)(table).mask.any() == (off < 0)
