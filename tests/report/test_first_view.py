"""The first view of a report shows withheld cells, and long dimensions can be searched."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl

import tablesafe as ts
from tablesafe.report.excerpt import HIDDEN, Excerpt, Space
from tablesafe.report.layout import Layout


def long_problem(codes: int) -> tuple[ts.Problem, ts.Release]:
    """Many regions, of which only two of the last are withheld, by two sexes."""
    names = [f"r{i:04}" for i in range(codes)]
    frame = pl.DataFrame(
        {
            "region": np.repeat(names, 2).tolist(),
            "sex": ["f", "m"] * codes,
            "value": [10 + i % 7 for i in range(2 * codes)],
        }
    )
    table = ts.Table.from_cells(frame, dimensions=["region", "sex"], missing_totals="compute")
    mask = np.zeros(len(table), dtype=np.bool_)
    for region in names[-2:]:
        for sex in "fm":
            mask[table.index(region=region, sex=sex)] = True
    problem = ts.Problem(table, sensitivity=ts.Sensitivity.of(mask, 1.0))
    return problem, ts.Release.from_suppression(problem, mask)


def test_lines_with_withheld_cells_are_shown_where_not_all_lines_fit() -> None:
    problem, release = long_problem(300)
    for layout in (Layout.public(release), Layout.internal(problem, release)):
        shown = Excerpt.of(layout, Space(cells=200, rows=40, columns=4, slices=3))
        window = shown.slices[0].window
        cells = window.cell[window.cell >= 0]
        assert len(window.rows) <= 40
        assert np.isin(layout.view.kind[cells], HIDDEN).sum() == 4


def test_a_slice_with_withheld_cells_is_opened_first(tmp_path: Path) -> None:
    frame = pl.DataFrame({"a": list("xxxxyyyy"), "b": list("ppqqppqq"), "c": list("mnmnmnmn"), "value": range(10, 18)})
    table = ts.Table.from_cells(frame, dimensions=list("abc"), missing_totals="compute")
    mask = np.zeros(len(table), dtype=np.bool_)
    for a, b in (("x", "p"), ("x", "q"), ("y", "p"), ("y", "q")):
        mask[table.index(a=a, b=b, c="n")] = True
        mask[table.index(a=a, b=b, c="m")] = True
    problem = ts.Problem(table, sensitivity=ts.Sensitivity.of(mask, 1.0))
    release = ts.Release.from_suppression(problem, mask)
    layout = Layout.public(release)
    shown = Excerpt.of(layout)
    assert shown.opening > 0, "nothing is withheld among the totals"
    first = shown.slices[shown.opening]
    ts.report(problem, release, path=tmp_path / "r.html")
    assert f'<option value="{shown.opening}" selected>' in (tmp_path / "r.html").read_text()
    cells = first.window.cell[first.window.cell >= 0]
    assert np.isin(layout.view.kind[cells], HIDDEN).any()


def test_a_long_dimension_can_be_searched(tmp_path: Path) -> None:
    for codes, there in ((60, True), (5, False)):
        problem, release = long_problem(codes)
        ts.report(problem, release, path=tmp_path / "r.html")
        page = (tmp_path / "r.html").read_text()
        assert ('id="find"' in page) is there
