"""Dandekar, "Myth & Reality": the attack on a suppressed table."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
import polars as pl

import tablesafe as ts
from reproduce.cases import DATA, dandekar, dandekar_pattern, printed
from reproduce.layout import head, number, table, whole
from reproduce.simplex import mean_of_programs
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
    lines += _table_4(attack_table(vertex, interior, programs))
    return "\n".join([*lines, *_table_5(density_table(programs)), *_simplex(problem, release)]) + "\n"


def _summary(problem: ts.Problem, release: ts.Release) -> list[str]:
    data = pl.read_csv(DATA / "dandekar_10x6x4" / "expected_attack_44.csv")
    near = [
        str(int(((data[column] - data["value"]).abs() < data["protection"]).sum()))
        for column in ("simplex_null_objective", "pcx_null_objective", "mean_138_lp")
    ]
    said = [f"{printed('myth_and_reality', name):g}" for name in
            ("interior_point_within_protection", "mean_within_protection")]  # fmt: skip
    methods: dict[str, tuple[str, str, Any]] = {
        "simplex, nothing to minimise": ("", near[0], ts.SimplexVertex()),
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
    rows = []
    for words, (text, count, method) in methods.items():
        estimate = ts.attack(problem, release, method)
        rows.append([words, text, count, str(int(estimate.disclosed.sum()))])
    return [
        "", "## How many of 24 sensitive cells are guessed to within their protection", "",
        "What the text of the paper says, what its own columns in Table 4 give when they are counted, and "
        "ours. For the "
        "interior point the paper says one more than its column has.",
        *table(["attack", "printed", "counted in the printed column", "ours"], rows),
        f"The shuttle algorithm (`ts.Shuttle`, not in the paper) solves no program: {int((gap == 0).sum())} of "
        f"{len(gap)} of its intervals are exact, and on average they are {100 * gap.mean():.0f}% wider than the exact "
        "ones.", "",
    ]  # fmt: skip


def _simplex(problem: ts.Problem, release: ts.Release) -> list[str]:
    """Means over vertices of a textbook simplex, for every order in which the cells can be given to it."""
    table_, codes = problem.table, problem.table.code_columns()
    value, equations = table_.value, table_.equations.toarray().astype(float)
    hidden = np.flatnonzero(release.suppressed)
    rows = []
    for order in permutations(CODES):
        keys = [codes[name].gather(hidden.astype(np.uint32)).cast(pl.Int64).to_numpy() for name in reversed(order)]
        cells = hidden[np.lexsort(keys)]
        used = np.flatnonzero(np.abs(equations[:, cells]).sum(axis=1))
        rhs = -np.delete(equations[used], cells, axis=1) @ np.delete(value, cells)
        sensitive, level = problem.sensitivity.mask[cells], problem.sensitivity.upper[cells]
        counts = []
        for most in (None, float(value.max())):
            mean = mean_of_programs(equations[np.ix_(used, cells)], rhs, most)
            counts.append(str(int((np.abs(mean - value[cells]) < level)[sensitive].sum())))
        rows.append([", ".join(order), *counts])
    return [
        "## Means of 138 programs by a textbook simplex", "",
        f"The paper has {printed('myth_and_reality', 'mean_within_protection'):g} of 24 within protection. It does not "
        "say which of many optimal tables its programs returned. A primal simplex with Dantzig's rule, a full tableau "
        "and bounds as rows (`docs/reproduce/simplex.py`) returns vertices that depend on the order of the cells; in "
        "none of the six orders of the codes do means of vertices come to that. Nor do their deviations fit the "
        "printed ones, which those of interior solutions do (Table 4): the printed means are not means of vertices.",
        *table(["cells sorted by", "within protection, cells not bounded", "bounded by the grand total"], rows),
    ]  # fmt: skip


def _table_4(ours: pl.DataFrame) -> list[str]:
    printed = pl.read_csv(DATA / "dandekar_10x6x4" / "expected_attack_44.csv")
    both = ours.with_columns(pl.col(CODES).cast(pl.Int64)).join(printed, on=CODES, maintain_order="right")
    rows = []
    for row in both.iter_rows(named=True):
        rows.append(
            [f"({row['col']}, {row['row']}, {row['level']})", whole(row["value"]), whole(row["protection"])]
            + [f"{number(row['lp_lower' + s], 1)} – {number(row['lp_upper' + s], 1)}" for s in ("_right", "")]
            + [f"{row['pcx_null_objective' + s]:,.0f}" for s in ("_right", "")]
            + [f"{row['mean_138_lp' + s]:,.0f} ± {row['stddev_138_lp' + s]:,.0f}" for s in ("_right", "")]
        )
    equal = int(
        (
            (both["lp_lower"] - both["lp_lower_right"]).abs() + (both["lp_upper"] - both["lp_upper_right"]).abs() < 1e-6
        ).sum()
    )
    ratio = np.median((both["stddev_138_lp"] / both["stddev_138_lp_right"]).to_numpy())
    headers = ["column, row, level", "true", "protection", "range, printed", "range, ours", "interior point, printed",
               "ours", "mean ± deviation of 138, printed", "ours"]  # fmt: skip
    return [
        "## Table 4", "",
        f"{equal} of {both.height} ranges are equal to the print. The standard deviations are {ratio:.2f} times the "
        f"printed "
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
