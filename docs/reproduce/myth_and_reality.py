"""Dandekar, "Myth & Reality": the attack on a suppressed table."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

import tablesafe as ts
from reproduce.cases import DATA, dandekar, dandekar_pattern, printed
from reproduce.layout import head, number, places, table, whole
from reproduce.simplex import KEPT, Variant, solved
from tablesafe.attack.suite import attack_table, density_table

NAME = "myth-and-reality"
PAPER = (
    "R. A. Dandekar, *Protecting Sensitive Tabular Data by Complementary Cell Suppression: Myth & Reality*, Tables 3 "
    "to 5."
)
CODES = ["col", "row", "level"]


def page() -> str:
    """The page, in Markdown."""
    problem = dandekar()
    problem = problem.replace(frozen=problem.table.value == 0)
    release = ts.Release.from_suppression(problem, dandekar_pattern(problem, "suppression_44"))
    vertex, interior = ts.attack(problem, release, ts.SimplexVertex()), ts.attack(problem, release, ts.InteriorPoint())
    programs = ts.attack(problem, release, ts.InteriorMean(moved="sensitive"))
    lines = head(
        NAME, "Dandekar: how near an intruder's guesses come", PAPER,
        "The table of [Dandekar & Cox](dandekar-cox.md) with 24 sensitive cells and 44 complementary ones withheld "
        "(the [patterns](dandekar-patterns.md) have a page of their own). An intruder minimises and maximises each "
        "of the 68 withheld cells and their sum: 138 linear programs, by an interior-point solver of the 1990s that "
        "stops amid the optimal tables. What must be equal are the ranges and the layout; where a solver stops "
        "depends on its starting point, of which the paper says nothing, so estimates can only be alike. Printed "
        "figures are those of the row of the same cell: Table 4 has the ranges, the two null objectives and the means, "
        "Table 5 the densities.",
    )  # fmt: skip
    lines += _summary(problem, release)
    lines += _table_4(problem, release, attack_table(vertex, interior, programs))
    return "\n".join([*lines, *_table_5(density_table(programs)), *_simplex(), *places(NAME)]) + "\n"


def _summary(problem: ts.Problem, release: ts.Release) -> list[str]:
    data = pl.read_csv(DATA / "dandekar_10x6x4" / "expected_attack_44.csv")
    near = [
        str(int(((data[column] - data["value"]).abs() < data["protection"]).sum()))
        for column in ("simplex_null_objective", "pcx_null_objective", "mean_138_lp")
    ]
    said = [f"{printed('myth_and_reality', name):g}" for name in
            ("interior_point_within_protection", "mean_within_protection")]  # fmt: skip
    methods: dict[str, tuple[str, str, Any]] = {
        "simplex of today (HiGHS), nothing to minimise": ("", near[0], ts.SimplexVertex()),
        "interior point, nothing to minimise": (said[0], near[1], ts.InteriorPoint()),
        "analytic centre": ("", "", ts.AnalyticCentre()),
        "mean of 138 programs, only sensitive cells moved": (said[1], near[2], ts.InteriorMean(moved="sensitive")),
        "mean of 138 programs, infeasible start": ("", "", ts.InteriorMean()),
        "mean of 138 programs, centres of the optimal faces": ("", "", ts.InteriorMean(solutions="centres")),
        "mean of 138 programs, corners": ("", "", ts.VertexMean()),
        "middle of the range": ("", "", ts.Midpoint()),
        "middle of what the shuttle algorithm leaves": ("", "", ts.Shuttle()),
    }
    gap = ts.Shuttle().bounds(problem, release)["gap"].to_numpy()
    rows = [["simplex of the textbooks, nothing to minimise", "", near[0], str(_vertex_near(problem, release))]]
    for words, (text, count, method) in methods.items():
        estimate = ts.attack(problem, release, method)
        rows.append([words, text, count, str(int(estimate.disclosed.sum()))])
    return [
        "", "## How many of 24 sensitive cells are guessed to within their protection", "",
        "What the text of the paper says, what its own columns in Table 4 give when they are counted, and "
        "ours. For the "
        "interior point the paper says one more than its column has. The textbooks' simplex returns the printed table "
        "(Table 4, below); one of its values, 647.5, is within protection, and printed as 648 it no longer is.",
        *table(["attack", "printed", "counted in the printed column", "ours"], rows),
        f"The shuttle algorithm (`ts.Shuttle`, not in the paper) solves no program: {int((gap == 0).sum())} of "
        f"{len(gap)} of its intervals are exact, and on average they are {100 * gap.mean():.0f}% wider than the exact "
        "ones.", "",
    ]  # fmt: skip


def _simplex() -> list[str]:
    """Means over vertices by every variant of a textbook simplex method, as kept by `simplex.py`."""
    kept = pl.read_csv(KEPT)
    said = int(printed("myth_and_reality", "mean_within_protection"))
    rows = []
    for (rule,), part in kept.group_by(["rule"], maintain_order=True):
        means, deviations = part["mean within protection"], part["deviations"]
        rows.append(
            [rule, part.height, (part["vertex as printed"] == 24).sum(), f"{means.min()} to {means.max()}",
             (means == said).sum(), f"{deviations.min():.1f} to {deviations.max():.1f}"]
        )  # fmt: skip
    vertex = kept.filter(pl.col("vertex as printed") == 24)
    both = vertex.filter(pl.col("mean within protection") == said)
    headers = ["column to enter", "variants", "vertex as printed", "means within protection",
               f"variants in which these are {said}", "deviations, times the printed ones"]  # fmt: skip
    return [
        "## Means of 138 programs by a textbook simplex", "",
        f"The paper has means of {said} of 24 cells within protection, and does not say which of many optimal tables "
        f"its programs returned. So a primal simplex method with a full tableau was run in {kept.height:,} variants "
        "of the time (`docs/reproduce/simplex.py`): five rules for the column that enters (the most negative price, "
        "which is Dantzig's rule, by the first or the last of equals; the first negative one, which is Bland's; the "
        "greatest improvement; the steepest edge), three for equal ratios, two phases or a big M, every program from "
        "the first feasible basis or from where the last one ended, cells in twelve orders, bounds of cells as rows "
        "or none.",
        *table(headers, rows),
        f"With nothing to minimise, {vertex.height} of them return the very table that the paper prints for its "
        "simplex solver, all 24 values of it (Table 4 above has them): the "
        "paper's solver may well have been one of them. "
        f"Means of {said} come out of {(kept['mean within protection'] == said).sum()} variants, of {both.height} of "
        f"those with that table too ({_variant(both)}). That is chance, for other variants give anything from "
        f"{kept['mean within protection'].min()} to {kept['mean within protection'].max()}, and in none are the "
        f"deviations of the 138 solutions less than {kept['deviations'].min():.1f} times the printed ones: vertices "
        "lie at the ends of the ranges, while Table 5 has most solutions in one tenth amid them. The printed means are "
        "not means of vertices.",
    ]  # fmt: skip


def _variant(rows: pl.DataFrame) -> str:
    row = rows.row(0, named=True)
    return f"{row['rule']}, {row['start']}, from the {row['again']}, sorted by {row['order']}, bounds as rows"


TEXTBOOK = Variant(tie="last row", order=("level", "row", "col"))
"""Dantzig's rule, two phases, no bounds; cells in the order of Table 1: by level, row and column."""


def _vertex(problem: ts.Problem, release: ts.Release) -> dict[tuple[int, ...], float]:
    """The table that a textbook simplex method returns when there is nothing to minimise."""
    found, codes = solved(problem, release.suppressed, TEXTBOOK), problem.table.code_columns()
    places = (tuple(int(codes[name][int(cell)]) for name in CODES) for cell in found.cells)
    return dict(zip(places, found.first.tolist(), strict=True))


def _vertex_near(problem: ts.Problem, release: ts.Release) -> int:
    found = solved(problem, release.suppressed, TEXTBOOK)
    near = np.abs(found.first - problem.table.value[found.cells]) < problem.sensitivity.upper[found.cells]
    return int(near[problem.sensitivity.mask[found.cells]].sum())


def _table_4(problem: ts.Problem, release: ts.Release, ours: pl.DataFrame) -> list[str]:
    printed = pl.read_csv(DATA / "dandekar_10x6x4" / "expected_attack_44.csv")
    both = ours.with_columns(pl.col(CODES).cast(pl.Int64)).join(printed, on=CODES, maintain_order="right")
    rows, vertex = [], _vertex(problem, release)
    for row in both.iter_rows(named=True):
        rows.append(
            [f"({row['col']}, {row['row']}, {row['level']})", whole(row["value"]), whole(row["protection"])]
            + [f"{number(row['lp_lower' + s], 1)} – {number(row['lp_upper' + s], 1)}" for s in ("_right", "")]
            + [number(row["simplex_null_objective_right"], 1), number(vertex[row["col"], row["row"], row["level"]], 1)]
            + [f"{row['pcx_null_objective' + s]:,.0f}" for s in ("_right", "")]
            + [f"{row['mean_138_lp' + s]:,.0f} ± {row['stddev_138_lp' + s]:,.0f}" for s in ("_right", "")]
        )
    equal = int(
        (
            (both["lp_lower"] - both["lp_lower_right"]).abs() + (both["lp_upper"] - both["lp_upper_right"]).abs() < 1e-6
        ).sum()
    )
    ratio = np.median((both["stddev_138_lp"] / both["stddev_138_lp_right"]).to_numpy())
    headers = ["column, row, level", "true", "protection", "range, printed", "range, ours", "simplex, printed",
               "ours", "interior point, printed", "ours", "mean ± deviation of 138, printed", "ours"]  # fmt: skip
    return [
        "## Table 4", "",
        f"{equal} of {both.height} ranges are equal to the print. The simplex table is that of Dantzig's rule, with "
        f"two phases and the cells in the order of Table 1. The standard deviations are {ratio:.2f} times the printed "
        "ones in the median: they fit when only the programs of the sensitive cells have something to minimise.",
        *table(headers, rows),
    ]  # fmt: skip


def _table_5(ours: pl.DataFrame) -> list[str]:
    printed = pl.read_csv(DATA / "dandekar_10x6x4" / "expected_density_138.csv")
    both = ours.with_columns(pl.col(CODES).cast(pl.Int64)).join(printed, on=CODES, maintain_order="right")
    rows = [
        [f"({row['col']}, {row['row']}, {row['level']})", row["counts_in_10_equal_intervals_right"],
         row["counts_in_10_equal_intervals"]]
        for row in both.iter_rows(named=True)
    ]  # fmt: skip
    return [
        "## Table 5: where the 138 solutions lie", "",
        "How many of them fall into each tenth of the range of a cell. Five rows of the print lack a count.",
        *table(["column, row, level", "printed", "ours"], rows, left=3),
    ]  # fmt: skip
