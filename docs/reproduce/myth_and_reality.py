"""Dandekar, "Myth & Reality": the attack on a suppressed table."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

import tablesafe as ts
from reproduce.cases import DATA, dandekar, dandekar_pattern
from reproduce.layout import head, number, table, whole
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
        "depends on its starting point, of which the paper says nothing, so estimates can only be alike.",
    )  # fmt: skip
    lines += _summary(problem, release)
    lines += _table_4(attack_table(vertex, interior, programs))
    return "\n".join([*lines, *_table_5(density_table(programs))]) + "\n"


def _summary(problem: ts.Problem, release: ts.Release) -> list[str]:
    printed = pl.read_csv(DATA / "dandekar_10x6x4" / "expected_attack_44.csv")
    near = [
        int(((printed[column] - printed["value"]).abs() < printed["protection"]).sum())
        for column in ("simplex_null_objective", "pcx_null_objective", "mean_138_lp")
    ]
    methods: dict[str, tuple[str, Any]] = {
        "simplex, nothing to minimise": (str(near[0]), ts.SimplexVertex()),
        "interior point, nothing to minimise": (str(near[1]), ts.InteriorPoint()),
        "analytic centre": ("", ts.AnalyticCentre()),
        "mean of 138 programs, only sensitive cells moved": (str(near[2]), ts.InteriorMean(moved="sensitive")),
        "mean of 138 programs, infeasible start": ("", ts.InteriorMean()),
        "mean of 138 programs, centres of the optimal faces": ("", ts.InteriorMean(solutions="centres")),
        "mean of 138 programs, corners": ("", ts.VertexMean()),
        "middle of the range": ("", ts.Midpoint()),
    }
    rows = []
    for words, (count, method) in methods.items():
        estimate = ts.attack(problem, release, method)
        rows.append([words, count, str(int(estimate.disclosed.sum()))])
    return [
        "", "## How many of 24 sensitive cells are guessed to within their protection",
        *table(["attack", "printed", "ours"], rows),
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
