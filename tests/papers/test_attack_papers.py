"""The attacks of the literature on the tables of the literature, as printed.

Dandekar, "Protecting Sensitive Tabular Data by Complementary Cell Suppression: Myth & Reality", Tables 3 to 5, solved
its programs with PCx, an interior-point solver of the 1990s. What must be equal: the cells, the audit ranges, the edges
of the ten intervals, the number of programs. What can only be alike: where the solver stops among many optimal tables.
That depends on its starting point and its steps, of which the paper says nothing.

The printed densities tell more. Cells that move in step have the same programs, so each end of the range of (8, 1, 3),
which moves in step with ten other cells, must be reached by at least 11 of the 138 solutions; the print has 4 at the
lower end, the number of *sensitive* cells that move together there, and about 88 of 138 solutions of every cell at one
place. So the 88 programs of the 44 complementary cells seem to have had nothing to minimise. With that, the printed
standard deviations are met within a few percent and the means within a few percent of the audit range.
"""

from __future__ import annotations

import json
import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from tablesafe.attack import (
    AnalyticCentre,
    Attack,
    Estimate,
    HitAndRun,
    InteriorMean,
    InteriorPoint,
    Midpoint,
    RandomCentroid,
    Scores,
    SimplexVertex,
    VertexMean,
    attack,
)
from tablesafe.attack.suite import attack_table, density_table
from tablesafe.core.hierarchy import Hierarchy
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release
from tablesafe.core.sensitivity import Sensitivity
from tablesafe.core.table import Table

DOCS = Path(__file__).resolve().parents[2] / "docs"
sys.path.insert(0, str(DOCS))
try:
    from reproduce import simplex
finally:
    sys.path.remove(str(DOCS))

CODES = ["col", "row", "level"]


@cache
def dandekar(folder: Path) -> tuple[Problem, Release]:
    cells = pl.read_csv(folder / "dandekar_10x6x4" / "cells.csv")
    dimensions = {
        name: Hierarchy.from_pairs([(str(size), str(code)) for code in range(1, size)])
        for name, size in (("col", 10), ("row", 6), ("level", 4))
    }
    table = Table.from_cells(cells, dimensions=dimensions)
    levels = cells["protection"].fill_null(0).to_numpy().astype(float)
    sensitivity = Sensitivity.of(cells["sensitive"].to_numpy() == 1, levels)
    problem = Problem(table, sensitivity=sensitivity, frozen=table.value == 0)
    return problem, Release.from_suppression(problem, cells["suppression_44"].is_not_null().to_numpy())


@cache
def estimated(folder: Path, method: Attack) -> Estimate:
    return attack(*dandekar(folder), method)


def table_4(folder: Path, programs: Attack) -> pl.DataFrame:
    """Ours beside the printed Table 4; the columns of the print end in `_right`."""
    null = [estimated(folder, method) for method in (SimplexVertex(), InteriorPoint())]
    ours = attack_table(*null, estimated(folder, programs)).with_columns(pl.col(CODES).cast(pl.Int64))
    printed = pl.read_csv(folder / "dandekar_10x6x4" / "expected_attack_44.csv")
    assert ours.columns == printed.columns
    return ours.join(printed, on=CODES, how="inner", validate="1:1", maintain_order="right")


def off(both: pl.DataFrame, column: str) -> np.ndarray[Any, Any]:
    """How far from the print, relative to the audit range."""
    width = (both["lp_upper"] - both["lp_lower"]).to_numpy()
    return np.asarray((both[column] - both[f"{column}_right"]).abs().to_numpy() / width)


def disclosed(both: pl.DataFrame, column: str) -> int:
    return int(((both[column] - both["value"]).abs() < both["protection"]).sum())


# -- equal


def test_table_4_cells_levels_and_audit_ranges_are_equal(paper_data: Path) -> None:
    both = table_4(paper_data, VertexMean())
    assert both.height == 24
    for column in ("value", "protection", "lp_lower", "lp_upper"):
        assert both[column].to_list() == pytest.approx(both[f"{column}_right"].to_list())
    for method in (VertexMean(), InteriorMean(), InteriorMean(solutions="centres")):
        assert estimated(paper_data, method).note == "138 of 138 programs"


def test_table_5_the_layout_and_the_edges_are_equal(paper_data: Path) -> None:
    printed = pl.read_csv(paper_data / "dandekar_10x6x4" / "expected_density_138.csv")
    for method in (VertexMean(), InteriorMean()):
        ours = density_table(estimated(paper_data, method)).with_columns(pl.col(CODES).cast(pl.Int64))
        assert ours.columns == printed.columns
        both = ours.join(printed, on=CODES, validate="1:1")
        assert both.height == 24
        for row in both.iter_rows(named=True):
            assert sum(map(int, row["counts_in_10_equal_intervals"].split())) == 138
            edges = zip(row["interval_edges"].split(), row["interval_edges_right"].split(), strict=True)
            assert all(abs(int(a) - int(b)) <= 1 for a, b in edges)  # the print cuts off decimals, its last edge too


# -- alike


def test_table_3_the_null_objective(paper_data: Path) -> None:
    """The analytic centre discloses the printed 14; Mehrotra's start comes within 5% of the range of every cell."""
    assert int(estimated(paper_data, AnalyticCentre()).disclosed.sum()) == 14
    both = table_4(paper_data, VertexMean())
    assert off(both, "pcx_null_objective").max() < 0.05
    assert disclosed(both, "pcx_null_objective") == 16
    # a corner of so many is another solver's choice: only that it is one, with most cells at an end of a range
    simplex = both["simplex_null_objective"].to_numpy()
    assert ((simplex >= both["lp_lower"].to_numpy()) & (simplex <= both["lp_upper"].to_numpy())).all()


@pytest.mark.parametrize(
    ("method", "count", "farthest"),
    [
        (InteriorMean(solutions="centres"), 12, 0.15),
        (InteriorMean(), 14, 0.10),
        (InteriorMean(moved="sensitive"), 13, 0.055),
    ],
    ids=["centres of the optimal faces", "infeasible start", "infeasible start, sensitive cells only"],
)
def test_table_4_means_are_alike(paper_data: Path, method: InteriorMean, count: int, farthest: float) -> None:
    """The print discloses 16; the nearer to what PCx did, the nearer the means."""
    both = table_4(paper_data, method)
    assert disclosed(both, "mean_138_lp_right") == 16
    assert disclosed(both, "mean_138_lp") == count
    assert off(both, "mean_138_lp").max() < farthest


def test_table_4_the_spread_tells_which_cells_were_moved(paper_data: Path) -> None:
    """With every cell moved the deviations are half as large again as printed; with the sensitive ones, as printed."""
    every, some = table_4(paper_data, InteriorMean()), table_4(paper_data, InteriorMean(moved="sensitive"))
    ratio = [float((both["stddev_138_lp"] / both["stddev_138_lp_right"]).median()) for both in (every, some)]  # type: ignore[arg-type]
    assert ratio[0] > 1.5
    assert ratio[1] == pytest.approx(1.0, abs=0.05)


def test_table_5_most_solutions_are_at_one_place_as_printed(paper_data: Path) -> None:
    """The fullest interval holds about 100 of 138, and is the printed one or its neighbour."""
    printed = pl.read_csv(paper_data / "dandekar_10x6x4" / "expected_density_138.csv")
    ours = density_table(estimated(paper_data, InteriorMean(moved="sensitive")))
    both = ours.with_columns(pl.col(CODES).cast(pl.Int64)).join(printed, on=CODES)
    near = 0
    for row in both.iter_rows(named=True):
        one, two = (
            np.array([*map(int, row[c].split())])
            for c in ("counts_in_10_equal_intervals", "counts_in_10_equal_intervals_right")
        )
        assert 80 <= one.max() <= 130
        assert 80 <= two.max() <= 130
        if len(two) == 10:  # five rows of the print lack a count
            near += abs(int(one.argmax()) - int(two.argmax())) <= 1
    assert near == 19


def test_vertices_are_no_match(paper_data: Path) -> None:
    """Corners spread far more than the interior solutions of the print, and disclose fewer cells."""
    both = table_4(paper_data, VertexMean())
    assert disclosed(both, "mean_138_lp") < 12
    ratio = both["stddev_138_lp"] / both["stddev_138_lp_right"]
    assert float(ratio.median()) > 1.5  # type: ignore[arg-type]


def test_every_attack_is_scored_and_the_headline_names_the_nearest(paper_data: Path) -> None:
    methods = (Midpoint(), AnalyticCentre(), InteriorPoint(), RandomCentroid(draws=50), HitAndRun(effective=200))
    scores = Scores.of(estimated(paper_data, method) for method in methods)
    assert scores.headline == (
        "An intruder using the interior point lands within the protection interval of 16 of 24 sensitive cells."
    )
    assert scores.ranking().height == 24


# -- Cox


def test_cox_the_cycle_and_its_bias(paper_data: Path) -> None:
    """Cox, "Vulnerability of Complementary Cell Suppression": one degree of freedom, all solutions on one line."""
    case = json.loads((paper_data / "cox_vulnerability.json").read_text(encoding="utf-8"))["cycle_2x2"]
    cells, ends = case["cells"], case["exact_intervals"]
    table = Table.from_equations(
        ["r1 = X + B", "r2 = C + A", "c1 = X + C", "c2 = B + A"],
        dict(zip(("r1", "r2", "c1", "c2"), case["row_totals"] + case["column_totals"], strict=True)) | cells,
    )
    names = [] if table.names is None else [str(name) for name in table.names]
    hidden = np.isin(names, list(cells))
    problem = Problem(table, sensitivity=Sensitivity.of(np.array([n == "X" for n in names]), case["protection_of_X"]))
    release = Release.from_suppression(problem, hidden)
    assert attack(problem, release, Midpoint()).error.tolist() == [-1.5]  # the bias of the middle
    slack = {Midpoint(): 0.0, AnalyticCentre(): 1e-6, HitAndRun(): 0.5, RandomCentroid(): 0.5, VertexMean(): 1.3}
    for method, most in slack.items():  # the two programs of a constant sum may stop at either end
        estimate = attack(problem, release, method)
        for name, (low, high) in ends.items():
            assert abs(float(estimate.values[names.index(name)]) - (low + high) / 2) <= most + 1e-9
        assert bool(estimate.disclosed[0]) == (abs(estimate.error[0]) < case["protection_of_X"])


@pytest.mark.parametrize("name", ["table_4_4x4"])
def test_cox_a_cell_that_the_pattern_gives_away_is_exactly_disclosed(paper_data: Path, name: str) -> None:
    case = json.loads((paper_data / "cox_vulnerability.json").read_text(encoding="utf-8"))[name]
    values = case["published"] | case["disclosed"]
    rows, columns = case["row_totals"], case["column_totals"]
    grid = _one_table(values, rows, columns)
    equations, cells = [], {}
    for i in range(4):
        equations.append(f"r{i} = " + " + ".join(f"x{i}{j}" for j in range(4)))
        cells |= {f"r{i}": rows[i]} | {f"x{i}{j}": int(grid[i, j]) for j in range(4)}
    for j in range(4):
        equations.append(f"c{j} = " + " + ".join(f"x{i}{j}" for i in range(4)))
        cells[f"c{j}"] = columns[j]
    table = Table.from_equations(equations, cells)
    names = [] if table.names is None else [str(name) for name in table.names]
    hidden = np.isin(names, [f"x{int(key[0]) - 1}{int(key[2]) - 1}" for key in case["suppressed"]])
    problem = Problem(table, sensitivity=Sensitivity.of(np.array([n == "x00" for n in names]), 1.0))
    for estimate in attack(problem, Release.from_suppression(problem, hidden)):
        assert estimate.exactly.all()
        assert estimate.values[names.index("x00")] == 1


def _one_table(known: dict[str, int], rows: list[int], columns: list[int]) -> Any:
    """Any non-negative whole table with these cells and totals."""
    from scipy.optimize import linprog

    equal = [np.kron(np.eye(4)[i], np.ones(4)) for i in range(4)] + [
        np.kron(np.ones(4), np.eye(4)[j]) for j in range(4)
    ]
    bounds: list[tuple[float, float | None]] = [(0, None)] * 16
    for key, value in known.items():
        bounds[4 * (int(key[0]) - 1) + int(key[2]) - 1] = (value, value)
    found = linprog(np.zeros(16), A_eq=np.array(equal), b_eq=rows + columns, bounds=bounds, integrality=np.ones(16))
    return np.rint(found.x).reshape(4, 4)


# -- which simplex method the paper may have used


TEXTBOOK = simplex.Variant(tie="last row", order=("level", "row", "col"))


def test_a_textbook_simplex_returns_the_printed_table_when_there_is_nothing_to_minimise(paper_data: Path) -> None:
    problem, release = dandekar(paper_data)
    printed = pl.read_csv(paper_data / "dandekar_10x6x4" / "expected_attack_44.csv")
    found = simplex.solved(problem, release.suppressed, TEXTBOOK)
    codes = problem.table.code_columns()
    ours = {tuple(int(codes[name][int(c)]) for name in CODES): x for c, x in zip(found.cells, found.first, strict=True)}
    for row in printed.iter_rows(named=True):
        assert abs(ours[row["col"], row["row"], row["level"]] - row["simplex_null_objective"]) <= 0.5
    low, high = found.found.min(axis=0), found.found.max(axis=0)  # every program is solved: all ranges come out
    at = [int(np.flatnonzero([tuple(k) == tuple(row[c] for c in CODES) for k in ours])[0]) for row in
          printed.iter_rows(named=True)]  # fmt: skip
    np.testing.assert_allclose(low[at], printed["lp_lower"].to_numpy(), atol=0.5)
    np.testing.assert_allclose(high[at], printed["lp_upper"].to_numpy(), atol=0.5)


def test_what_is_kept_of_the_variants_is_what_they_give(paper_data: Path) -> None:
    """Those of the page's sentences: 16 by chance, with the printed vertex, and the extremes."""
    problem, release = dandekar(paper_data)
    printed, kept = pl.read_csv(paper_data / "dandekar_10x6x4" / "expected_attack_44.csv"), pl.read_csv(simplex.KEPT)
    assert kept.height == len(list(simplex.Variant.all()))
    assert kept["deviations"].min() > 1.7  # type: ignore[operator]
    chosen = [
        TEXTBOOK,
        simplex.Variant(start="big M", again="last basis", bounds="grand total", order=("row", "col", "level")),
        simplex.Variant(rule="first negative", start="big M", order=("level", "col", "row"), turned=True),
    ]
    for variant in chosen:
        ours = simplex.measured(problem, release.suppressed, printed, variant)
        same = [pl.col(name) == ours[name] for name in ("rule", "tie", "start", "again", "bounds", "order")]
        assert kept.filter(*same).row(0, named=True) == pytest.approx(ours, abs=0.01)
    assert simplex.measured(problem, release.suppressed, printed, chosen[1])["mean within protection"] == 16
