"""Group disclosure: who belongs to a group is known to be in its only category, though no count is small."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tablesafe.audit.audit import audit
from tablesafe.core.errors import InvalidOption, InvalidTable, TablesafeError
from tablesafe.core.hierarchy import Hierarchy
from tablesafe.core.problem import Problem
from tablesafe.core.table import Table
from tablesafe.methods.round import Round
from tablesafe.methods.suppress import Suppress
from tablesafe.rules import GroupDisclosure, Sensitivity
from tablesafe.work.run import OUTSIDERS, Run

REGIONS, STATUSES = ("A", "B", "C"), ("ill", "well", "gone")


def counts(values: NDArray[np.int64], **columns: Any) -> Table:
    """Regions by statuses, with all totals."""
    frame = pl.DataFrame(
        {
            "region": [r for r in REGIONS[: len(values)] for _ in STATUSES[: values.shape[1]]],
            "status": [s for _ in REGIONS[: len(values)] for s in STATUSES[: values.shape[1]]],
            "value": values.ravel(),
            **columns,
        }
    )
    extra = {"structural_zero": "void"} if "void" in columns else {}
    return Table.from_cells(frame, dimensions=["region", "status"], missing_totals="compute", **extra)


def levels(table: Table, found: Sensitivity) -> dict[str, tuple[float, float]]:
    """The levels of the flagged cells by their codes."""
    names = ["".join(codes) for codes in zip(*(c.to_list() for c in table.code_columns().values()), strict=True)]
    return {names[i]: (found.lower[i], found.upper[i]) for i in np.flatnonzero(found.mask)}


EXAMPLE = np.array([[12, 0, 0], [5, 30, 2], [95, 4, 1]])


def test_a_village_in_which_all_are_ill_is_hidden_with_one_of_its_zeros() -> None:
    table = counts(EXAMPLE)
    rule = GroupDisclosure(over=("status",))
    assert levels(table, rule(table)) == {"Aill": (1, 0), "Awell": (0, 1)}
    told = rule.groups(table)
    assert told["group"].to_list() == ["(region=A, status=Total)"]
    assert told["category"].to_list() == ["(region=A, status=ill)"]
    assert told["units"].to_list() == told["in the category"].to_list() == [12]
    assert told["disclosure"].to_list() == ["everybody"]


def test_all_zeros_are_hidden_on_request() -> None:
    table = counts(EXAMPLE)
    found = GroupDisclosure(over=("status",), hide="all")(table)
    assert levels(table, found) == {"Aill": (1, 0), "Awell": (0, 1), "Agone": (0, 1)}


def test_nearly_everybody_must_be_able_to_fall_below_the_share() -> None:
    table = counts(EXAMPLE)
    found = GroupDisclosure(over=("status",), percent=90)(table)
    # of 12 at most 10 are below 90 %; of 100 at most 89
    assert levels(table, found) == {"Aill": (2, 0), "Awell": (0, 2), "Cill": (6, 0), "Cwell": (0, 6)}


def test_sensitive_categories_count_together() -> None:
    table = counts(np.array([[7, 0, 5], [5, 30, 2], [95, 4, 1]]))
    rule = GroupDisclosure(over=("status",), codes=("ill", "gone"))
    assert levels(table, rule(table)) == {"Aill": (1, 0), "Awell": (0, 1)}
    assert not GroupDisclosure(over=("status",))(table).mask.any()
    assert levels(table, GroupDisclosure(over=("status",), codes=("well",), percent=80)(table)) == {
        "Bwell": (1, 0),
        "Bill": (0, 1),
    }


def test_a_zero_tells_that_nobody_is_there() -> None:
    table = counts(EXAMPLE)
    rule = GroupDisclosure(over=("status",), codes=("gone",), nobody=True)
    assert levels(table, rule(table)) == {"Agone": (0, 1)}
    assert rule.groups(table)["disclosure"].to_list() == ["nobody"]


def test_small_and_large_groups_may_be_left_out() -> None:
    table = counts(np.array([[2, 0, 0], [0, 50, 0], [9, 0, 0]]))
    found = GroupDisclosure(over=("status",), least=3, most=20)(table)
    assert set(levels(table, found)) == {"Cill", "Cwell"}


def test_every_direction_counts_unless_attributes_are_named() -> None:
    table = counts(np.array([[3, 1, 0], [0, 4, 0], [0, 5, 2]]))
    both = set(levels(table, GroupDisclosure()(table)))
    along = [set(levels(table, GroupDisclosure(over=(name,))(table))) for name in ("region", "status")]
    assert both == along[0] | along[1]
    assert set(levels(table, GroupDisclosure(over=("region",))(table))) >= {"Aill", "Cgone"}
    assert set(levels(table, GroupDisclosure(over="status")(table))) == {"Bwell", "Bill"}  # type: ignore[arg-type]


def test_structural_zeros_hide_nothing_and_disclose_nothing() -> None:
    table = counts(EXAMPLE, void=[0, 1, 0, 0, 0, 0, 0, 0, 0])
    assert levels(table, GroupDisclosure(over=("status",))(table)) == {"Aill": (1, 0), "Agone": (0, 1)}
    table = counts(EXAMPLE, void=[0, 1, 1, 0, 0, 0, 0, 0, 0])
    assert not GroupDisclosure(over=("status",))(table).mask.any()


def test_in_a_hierarchy_every_level_is_a_group() -> None:
    tree = Hierarchy.from_pairs([("all", "ill"), ("all", "well"), ("ill", "flu"), ("ill", "cold")])
    frame = pl.DataFrame(
        {"region": ["A"] * 3 + ["B"] * 3, "status": ["flu", "cold", "well"] * 2, "value": [4, 0, 3, 1, 1, 1]}
    )
    table = Table.from_cells(frame, dimensions={"region": None, "status": tree}, missing_totals="compute")
    assert set(levels(table, GroupDisclosure(over=("status",))(table))) == {"Aflu", "Acold"}
    assert set(levels(table, GroupDisclosure(over=("status",), codes=("ill",))(table))) == set()
    assert set(levels(table, GroupDisclosure(over=("status",), codes=("flu",))(table))) == {"Aflu", "Acold"}


def test_a_table_without_its_empty_cells_is_refused() -> None:
    frame = pl.DataFrame({"region": ["A", "B", "B"], "status": ["ill", "ill", "well"], "value": [4, 2, 2]})
    table = Table.from_cells(frame, dimensions=["region", "status"], missing_totals="compute")
    with pytest.raises(InvalidTable, match=r"region=A, status=Total.*\n\nHint: tabulate with zeros=True"):
        GroupDisclosure(over=("status",))(table)


@pytest.mark.parametrize(
    ("options", "message"),
    [({"over": ("statos",)}, "did you mean 'status'"), ({"codes": ("sick",)}, "GroupDisclosure.codes names 'sick'")],
)
def test_unknown_words_are_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidTable, match=message):
        GroupDisclosure(**options)(counts(EXAMPLE))


def test_only_counts_can_be_judged() -> None:
    with pytest.raises(InvalidTable, match="is for counts"):
        GroupDisclosure()(counts(EXAMPLE / 4))
    with pytest.raises(InvalidTable, match="negative in cell"):
        GroupDisclosure()(counts(EXAMPLE - 1))


@pytest.mark.parametrize(
    "options", [{"percent": 50}, {"percent": 101}, {"least": 0}, {"most": 0}, {"hide": "some"}, {"percent": "all"}]
)
def test_options_out_of_range_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidOption, match=rf"GroupDisclosure\.{next(iter(options))}"):
        GroupDisclosure(**options)


SMALL = st.lists(st.integers(0, 3), min_size=6, max_size=6).map(lambda x: np.array(x).reshape(2, 3))


def agreeing(table: Table, shown: NDArray[np.float64], most: int) -> list[NDArray[np.int64]]:
    """Every table of counts that agrees with what is published; inner counts up to `most`."""
    inner = [(r, s) for r in range(2) for s in range(3)]
    codes = {name: column.to_list() for name, column in table.code_columns().items()}
    wanted = [
        ([i for i, (r, s) in enumerate(inner) if codes["region"][c] in ("Total", REGIONS[r])
          and codes["status"][c] in ("Total", STATUSES[s])], shown[c])
        for c in range(len(table)) if not np.isnan(shown[c])
    ]  # fmt: skip
    known = {cells[0]: int(value) for cells, value in wanted if len(cells) == 1}
    ranges = [[known[i]] if i in known else range(most + 1) for i in range(6)]
    return [
        np.array(x).reshape(2, 3)
        for x in product(*ranges)
        if all(sum(x[i] for i in cells) == value for cells, value in wanted)
    ]


@settings(max_examples=12)
@given(SMALL)
def test_after_suppression_no_group_is_known_to_be_full(values: NDArray[np.int64]) -> None:
    table = counts(values)
    problem = Problem(table, [GroupDisclosure(over=("status",))])
    if not len(problem.sensitive):
        return
    try:
        release = Suppress(time_limit_s=2, zeros=True).protect(problem, Run(attackers=OUTSIDERS))
    except TablesafeError:  # a table can be too small to hide anything
        return
    assert audit(problem, release, insiders=False, unions=False).safe
    tables = agreeing(table, release.values, int(values.max()) + 2)
    assert any((found == values).all() for found in tables)
    for region in range(2):
        if values[region].max() == values[region].sum() > 0:
            full = values[region].argmax()
            assert any(found[region][full] < found[region].sum() for found in tables)


def test_the_windows_of_rounding_hide_a_full_group() -> None:
    problem = Problem(counts(EXAMPLE), [GroupDisclosure(over=("status",))])
    findings = audit(problem, Round(base=5).protect(problem), insiders=False, unions=False)
    assert findings.safe
    assert findings.lower[0] <= 11  # of the twelve who are ill
    assert findings.upper[1] >= 1  # of the nobody who is well
