"""What users of a changed table are told, counted by hand."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from tablesafe.core.errors import InvalidOption
from tablesafe.core.hierarchy import Hierarchy
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release, Status
from tablesafe.core.table import Table
from tablesafe.loss.quality import CLASSES, Quality, compared, quality
from tablesafe.report.plots import accuracy_by_size, percent_changes


@pytest.fixture
def changed() -> tuple[Problem, Release]:
    """1000 = 100 + 900, 100 = 40 + 60, 900 = 900 + 0; shown with five values changed."""
    hierarchy = Hierarchy.from_pairs([("T", "A"), ("T", "B"), ("A", "a1"), ("A", "a2"), ("B", "b1"), ("B", "b2")])
    frame = pl.DataFrame(
        {"region": ["T", "A", "B", "a1", "a2", "b1", "b2"], "value": [1000.0, 100, 900, 40, 60, 900, 0]}
    )
    table = Table.from_cells(frame, dimensions={"region": hierarchy})
    problem = Problem(table)
    shown = np.array([1000.0, 107, 893, 47, 60, 892, 1])
    status = np.where(shown == table.value, Status.PUBLISHED, Status.CHANGED).astype(np.uint8)
    return problem, Release(table, shown, problem.lower, problem.upper, status, "by hand")


def test_classes_totals_and_flags(changed: tuple[Problem, Release]) -> None:
    found = quality(*changed)
    spread = dict(found.distribution().iter_rows())
    assert len(spread) == len(CLASSES) + 3
    assert {word: cells for word, cells in spread.items() if cells} == {
        "unchanged": 2, "0 to 1": 2, "5 to 10": 1, "10 to 20": 1, "from zero": 1,
    }  # fmt: skip
    totals = found.totals()
    assert (totals["cells"], totals["cells changed"]) == (7, 5)
    assert totals["quantity changed"] == 7 + 7 + 7 + 8 + 1
    assert totals["quantity affected"] == 100 + 900 + 40 + 900
    assert totals["largest percent change"] == pytest.approx(17.5)
    assert found.flags().tolist() == ["good", "fair", "good", "poor", "good", "good", "poor"]
    assert quality(*changed, good_percent=7, fair_percent=20).flags().tolist().count("poor") == 1
    assert sum(spread.values()) == totals["cells"]
    assert "5 of 7 cells are changed, by 30 in all" in str(found)


def test_by_size_and_cells(changed: tuple[Problem, Release]) -> None:
    found = quality(*changed)
    sizes = found.by_size()
    assert sizes["size"].to_list() == ["10 to 100", "100 to 1,000", "1,000 to 10,000"]
    assert sizes["cells"].to_list() == [2, 3, 1]
    assert sizes["quantity changed"].to_list() == [7, 22, 0]
    assert sizes["average percent change"].to_list() == pytest.approx([17.5 / 2, (7 + 700 / 900 + 800 / 900) / 3, 0])
    assert found.cells()["quality"].to_list()[1] == "fair"


def test_json_comparison_and_plots(changed: tuple[Problem, Release], tmp_path: Path) -> None:
    found = quality(*changed)
    everything = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert everything["totals"]["cells changed"] == 5
    assert everything["statistics"][0]["cells"] == 7
    both = compared({"one": found, "other": found})
    assert both["one"].to_list() == both["other"].to_list()
    for name, draw in (("a.svg", percent_changes), ("b.png", accuracy_by_size)):
        draw({"one": found, "other": found}).save(tmp_path / name)
        draw(found).save(tmp_path / f"single {name}")
        assert (tmp_path / name).stat().st_size > 1000
    figure = percent_changes(found)
    heights = [bar.get_height() for bar in figure.axes[0].patches]
    assert heights == found.distribution()["cells"].to_list()


def test_bad_limits_are_refused(changed: tuple[Problem, Release]) -> None:
    with pytest.raises(InvalidOption, match="good_percent"):
        quality(*changed, good_percent=10, fair_percent=5)
    with pytest.raises(InvalidOption, match="classes"):
        quality(*changed, classes=[5, 5])
    with pytest.raises(InvalidOption, match="no release"):
        percent_changes({})
    with pytest.raises(InvalidOption, match="classes"):
        compared({"one": quality(*changed), "other": quality(*changed, classes=[3.0])})
    assert isinstance(quality(*changed), Quality)
