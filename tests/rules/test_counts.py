"""Rules that count contributors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tablesafe.core.errors import InvalidOption, InvalidTable
from tablesafe.core.table import Table
from tablesafe.rules import Threshold, ZeroCells

MakeTable = Callable[..., Table]


def flagged(mask: NDArray[np.bool_]) -> list[int]:
    return [int(i) for i in np.flatnonzero(mask)]


def test_fewer_than_n_is_sensitive_and_none_is_not(make: MakeTable) -> None:
    table = make([[0], [5], [9], [9], [10]], count=[0, 1, 2, 3, 4])
    found = Threshold(n=3)(table)
    assert flagged(found.mask) == [1, 2]
    assert not found.upper.any()
    assert found.why(1) == ("threshold",)


def test_holdings_are_counted_where_asked(make: MakeTable) -> None:
    table = make([[9], [9]], count=[5, 5], holdings=[2, 3])
    assert flagged(Threshold(n=3, on="holdings")(table).mask) == [0]
    assert flagged(Threshold(n=3)(table).mask) == []


def test_zero_cells_on_request_but_never_structural_ones(make: MakeTable) -> None:
    table = make([[0], [0], [5]], count=[0, 0, 9], structural_zero=[0, 1, 0])
    assert flagged(Threshold(n=3, zero=True)(table).mask) == [0]
    assert flagged(Threshold(n=3)(table).mask) == []


def test_ranges_in_percent_and_as_an_amount(make: MakeTable) -> None:
    table = make([[200], [10], [10]], count=[1, 1, 9])
    found = Threshold(n=3, range_percent=20, range_absolute=5)(table)
    assert found.upper.tolist() == [40, 5, 0]
    assert found.lower.tolist() == [40, 5, 0]


def test_a_range_around_a_negative_value_is_not_negative(make: MakeTable) -> None:
    found = Threshold(n=3, range_percent=10)(make([[-200], [7]], count=[1, 9]))
    assert found.lower.tolist() == found.upper.tolist() == [20, 0]


def test_a_zero_with_contributors_gives_each_of_them_away(make: MakeTable) -> None:
    table = make([[0], [0], [0], [5]], count=[4, 0, 3, 9], structural_zero=[0, 0, 1, 0])
    found = ZeroCells(range_absolute=10)(table)
    assert flagged(found.mask) == [0]
    assert found.upper.tolist() == [10, 0, 0, 0]
    assert not found.lower.any()
    assert found.why(0) == ("zero",)


@pytest.mark.parametrize(("rule", "hint"), [(Threshold(), "count="), (Threshold(on="holdings"), "holdings=")])
def test_a_table_without_counts_is_refused(make: MakeTable, rule: Threshold, hint: str) -> None:
    with pytest.raises(InvalidTable, match=hint):
        rule(make([[5]]))


@pytest.mark.parametrize(
    "options", [{"n": 0}, {"n": 2.5}, {"on": "firms"}, {"range_percent": -1}, {"range_absolute": float("inf")}]
)
def test_options_out_of_range_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidOption, match=rf"Threshold\.{next(iter(options))}"):
        Threshold(**options)
