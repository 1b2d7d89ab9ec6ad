"""What protection cost: counted by hand on small tables, and on a published one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from tablesafe.core.errors import InvalidRelease
from tablesafe.core.hierarchy import Hierarchy
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release, Status
from tablesafe.core.sensitivity import Sensitivity
from tablesafe.core.table import Table
from tablesafe.loss import loss
from tablesafe.methods.round import Round


def regions() -> Table:
    """A total, two regions, and two districts in each: 10 = 3 + 7, 3 = 1 + 2, 7 = 7 + 0."""
    hierarchy = Hierarchy.from_pairs([("T", "A"), ("T", "B"), ("A", "a1"), ("A", "a2"), ("B", "b1"), ("B", "b2")])
    frame = pl.DataFrame({"region": ["T", "A", "B", "a1", "a2", "b1", "b2"], "value": [10.0, 3, 7, 1, 2, 7, 0]})
    return Table.from_cells(frame, dimensions={"region": hierarchy})


def released(table: Table, values: list[float]) -> tuple[Problem, Release]:
    """A release that shows other values."""
    problem = Problem(table)
    shown = np.array(values)
    status = np.where(shown == table.value, Status.PUBLISHED, Status.CHANGED).astype(np.uint8)
    return problem, Release(table, shown, problem.lower, problem.upper, status, "by hand")


def test_withheld_cells_and_value_by_level() -> None:
    table = regions()
    sensitive = np.arange(7) == 3
    problem = Problem(table, sensitivity=Sensitivity.of(sensitive, 1.0))
    found = loss(problem, Release.from_suppression(problem, np.isin(np.arange(7), [1, 2, 3])))
    assert (found.cells, found.withheld, found.withheld_complementary) == (7, 3, 2)
    assert found.withheld_value == 3 + 7 + 1
    assert (found.changed, found.changed_quantity, found.average_percent) == (0, 0, 0)
    frame = found.frame()
    assert frame["region level"].to_list() == [0, 1, 2]
    assert frame["cells"].to_list() == [1, 2, 4]
    assert frame["withheld"].to_list() == [0, 2, 1]
    assert frame["complementary"].to_list() == [0, 2, 0]
    assert frame["value"].to_list() == [10, 10, 10]
    assert frame["withheld value"].to_list() == [0, 10, 1]
    assert str(found).startswith("3 of 7 cells are withheld (2 complementary), 36.7% of the value.")


def test_changed_values_quantity_and_percent() -> None:
    problem, release = released(regions(), [10, 4, 6, 1, 3, 6, 1])
    found = loss(problem, release)
    assert (found.changed, found.changed_quantity) == (5, 5)
    percent = [0, 100 / 3, 100 / 7, 0, 50, 100 / 7, np.inf]
    assert found.percent == pytest.approx(percent)
    assert found.average_percent == pytest.approx(sum(percent[:6]) / 6)
    assert found.average_percent_of_changed == pytest.approx((100 / 3 + 200 / 7 + 50) / 4)
    distribution = dict(found.distribution().iter_rows())
    assert {word: count for word, count in distribution.items() if count} == {
        "unchanged": 2, "10 to 20": 2, "20 to 50": 2, "from zero": 1,
    }  # fmt: skip
    frame = found.frame()
    assert frame["changed"].to_list() == [0, 2, 3]
    assert frame["changed quantity"].to_list() == [0, 2, 3]
    assert frame["average percent"].to_list() == pytest.approx([0, (100 / 3 + 100 / 7) / 2, (50 + 100 / 7) / 3])
    assert "5 cells are changed, by 5 in all" in str(found)


def test_cells_withheld_by_design_cost_nothing() -> None:
    table = regions()
    problem = Problem(table, withheld=np.isin(np.arange(7), [3, 4, 5, 6]))
    found = loss(problem, Release.from_suppression(problem, np.isin(np.arange(7), [1, 3])))
    assert (found.cells, found.withheld, found.withheld_value) == (3, 1, 3)
    assert found.frame()["region level"].to_list() == [0, 1]


def test_negative_values_count_by_their_size() -> None:
    table = Table.from_equations(["t = a + b"], {"t": -2, "a": -5, "b": 3})
    problem, release = released(table, [-2, -6, 4])
    found = loss(problem, release)
    assert (found.changed, found.changed_quantity) == (2, 2)
    assert found.percent == pytest.approx([0, 20, 100 / 3])
    assert found.frame()["level"].to_list() == ["inner", "total"]
    hidden = loss(problem, Release.from_suppression(problem, np.array([False, True, True])))
    assert hidden.withheld_value == 8


def test_nothing_lost_and_nothing_there() -> None:
    table = Table.from_equations(["t = a + b"], {"t": 0, "a": 0, "b": 0})
    problem, release = released(table, [0, 0, 0])
    found = loss(problem, release)
    assert (found.withheld, found.changed, found.average_percent, found.average_percent_of_changed) == (0, 0, 0, 0)
    assert str(found) == "0 of 3 cells are withheld (0 complementary), 0.0% of the value."


def test_dandekar_and_cox_the_synthetic_table(paper_data: Path) -> None:
    """Dandekar & Cox, "Synthetic Tabular Data: An Alternative to Complementary Cell Suppression" (2002), Table 3.

    Printed cell by cell; what is counted here is counted again by other means.
    """
    cells = pl.read_csv(paper_data / "dandekar_10x6x4" / "cells.csv")
    dimensions = {
        name: Hierarchy.from_pairs([(str(size), str(code)) for code in range(1, size)])
        for name, size in (("col", 10), ("row", 6), ("level", 4))
    }
    table = Table.from_cells(cells, dimensions=dimensions)
    problem, release = released(table, cells["synthetic_value_2002"].cast(pl.Float64).to_list())
    found = loss(problem, release)
    changed = cells.filter(pl.col("value") != pl.col("synthetic_value_2002"))
    off = (changed["value"] - changed["synthetic_value_2002"]).abs()
    assert found.changed == changed.height > 0
    assert found.changed_quantity == off.sum()
    assert found.average_percent_of_changed == pytest.approx((100 * off / changed["value"]).mean())
    frame = found.frame()
    assert frame.height == 8
    assert frame["changed"].sum() == changed.height
    assert found.distribution()["cells"].sum() == len(table)


def test_rounding_is_measured_like_any_change() -> None:
    table = regions()
    release = Round(base=5).protect(Problem(table))
    found = loss(Problem(table), release)
    assert release.solution is not None
    assert found.changed_quantity == release.solution.objective


def test_a_release_of_another_table_is_refused() -> None:
    problem, release = released(regions(), [10, 3, 7, 1, 2, 7, 0])
    other = Problem(Table.from_equations(["t = a + b"], {"t": 3, "a": 1, "b": 2}))
    with pytest.raises(InvalidRelease, match="7 cells, the table 3"):
        loss(other, release)
    assert loss(problem, release).changed == 0


def test_the_finest_level_counts_every_value_once() -> None:
    """A table of 2 × 2 with margins: one inner cell and both its totals are withheld, of 10 + 20 + 30 + 40."""
    frame = {
        "a": ["T", "T", "T", "x", "x", "x", "y", "y", "y"],
        "b": ["T", "p", "q", "T", "p", "q", "T", "p", "q"],
        "value": [100, 40, 60, 30, 10, 20, 70, 30, 40],
    }
    flat = {name: Hierarchy.flat(codes, total="T", name=name) for name, codes in (("a", "xy"), ("b", "pq"))}
    table = Table.from_cells(frame, dimensions=flat, value="value")
    problem = Problem(table)
    rows = table.cells()
    key = [f"{a}{b}" for a, b in zip(rows["a"].to_list(), rows["b"].to_list(), strict=True)]
    release = Release.from_suppression(problem, np.isin(key, ["xp", "xT", "Tp"]))
    found = loss(problem, release)
    assert (found.finest.withheld, found.finest.cells, found.finest.percent_of_value) == (1, 4, 10.0)
    assert (found.whole.withheld, found.whole.cells, found.whole.percent_of_value) == (3, 9, 100 * 80 / 400)
    levels = found.levels()
    assert levels.row(0)[:2] == (1, 1)
    assert levels["percent of value"].to_list() == [10.0, 40.0, 30.0, 0.0]
    assert str(found.finest) == "1 withheld of 4 cells (25.0%), 10.0% of the value"
