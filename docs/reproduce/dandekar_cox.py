"""Dandekar & Cox (2002): adjusted tables."""

from __future__ import annotations

import warnings
from functools import cache
from typing import Any

import numpy as np
import polars as pl

import tablesafe as ts
from reproduce.cases import dandekar, printed
from reproduce.layout import head, number, places, table, three, whole
from reproduce.linked import KEPT
from tablesafe.loss.quality import Quality, quality
from tablesafe.methods.adjust.costs import MEASURES

NAME = "dandekar-cox"
PAPER = (
    "R. A. Dandekar and L. H. Cox, *Synthetic Tabular Data: An Alternative to Complementary Cell Suppression* "
    "(2002), Tables 1 and 3 to 7."
)
PLACES = (
    "The cells under *printed* are those of Table 4 (column, row and level as in Table 1). The quantities changed and "
    "affected and the average percent change are the paper's own figures for alternating directions, and follow from "
    "these cells; 3,058 is from Table 6, and the shares of the linked tables are what the paper says of "
    "Table 5. The other "
    "figures of Tables 5 to 7, and the limits of the ten classes in which the paper counts percent changes, are not in "
    "our transcript: they stand nowhere on this page. `classes=` takes any limits."
)


def page() -> str:
    """The page, in Markdown."""
    problem = dandekar()
    lines = head(
        NAME, "Dandekar & Cox: controlled tabular adjustment", PAPER,
        "A table of ten columns, six rows and four levels with its totals (240 cells, zeros exempt from change) has "
        "24 sensitive cells. The paper moves each of them by its protection level, up or down, and repairs all sums "
        "with the least weighted change of the other cells.",
    )  # fmt: skip
    parts = (_table_4(problem), _table_5(), _table_6(problem), _costs(problem), _whole(problem), places(NAME))
    return "\n".join([*lines, "", PLACES, *(line for part in parts for line in part)]) + "\n"


@cache
def _adjusted(problem: ts.Problem, cost: str, directions: Any = "optimal") -> ts.Release:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The answer may be far from the best")  # of all directions
        return ts.protect(problem, ts.Adjust(cost=cost, directions=directions, tries=100))


def _printed(problem: ts.Problem) -> ts.Release:
    values = np.asarray(problem.table.columns["synthetic_value_2002"], dtype=np.float64)
    changed = values != problem.table.value
    status = np.where(changed, ts.Status.CHANGED, ts.Status.PUBLISHED).astype(np.uint8)
    return ts.Release(problem.table, values, problem.lower, problem.upper, status, "printed")


def _table_4(problem: ts.Problem) -> list[str]:
    print_, ours, best = _printed(problem), _adjusted(problem, "value", "alternating"), _adjusted(problem, "value")
    columns = [quality(problem, release) for release in (print_, ours, best)]
    value = problem.table.value
    shown = {
        "cells changed": ("", "cells changed"),
        "quantity changed": ("quantity_changed", "quantity changed"),
        "quantity affected": ("quantity_affected", "quantity affected"),
        "average percent change of the changed cells": (
            "average_percent_change", "average percent change of changed cells"
        ),
    }  # fmt: skip
    rows = [
        [words, number(printed("dandekar_cox", "alternating", key), 5) if key else "",
         *(number(float(one.totals()[name]), 5) for one in columns)]
        for words, (key, name) in shown.items()
    ]  # fmt: skip
    cost = [(np.abs(one.loss.change) * value).sum() for one in columns]
    rows.append(["sum of changes times values (what is minimised)", "", *map(whole, cost)])
    proof = best.solution
    assert proof is not None
    sensitive = problem.sensitivity.mask
    alike = int((np.sign(print_.values - value) == np.sign(ours.values - value))[sensitive].sum())
    equal = int((print_.values == ours.values)[sensitive].sum())
    other = int((print_.values != ours.values).sum())
    headers = ["", "printed", "the printed cells (Table 4)", "ours, alternating", "ours, directions chosen"]
    return [
        "", "## Tables 3 and 4: the adjusted table", "", "Changes cost the value of the cell they are made in.",
        *table(headers, rows),
        "**The paper's order.** Sorted by value, the sensitive cells of Table 4 go up and down in turn, beginning with "
        "up; a total with a single part that is not zero counts once with it. `directions=\"alternating\"` does the "
        f"same: {alike} of 24 directions and {equal} of 24 values of sensitive cells are those of the print. The other "
        f"cells differ in {other} places, by 8 each: the printed table costs {whole(cost[0])}, and "
        f"{whole(cost[0] - cost[1])} less is possible with the same directions. So the printed one is a solution of "
        "this program within 0.05% of its optimum, not the optimum itself.", "",
        f"With the directions chosen too, the answer is proved to be {proof.status}, gap {proof.gap:.1%}. Sensitive "
        "cells, true, as printed, and ours:",
        *_cells(problem, [print_, ours, best], ["printed (Table 4)", *headers[3:]]),
    ]  # fmt: skip


def _cells(problem: ts.Problem, releases: list[ts.Release], words: list[str]) -> list[str]:
    codes = problem.table.code_columns()
    rows = []
    for cell in problem.sensitive:
        place = ", ".join(str(codes[name][int(cell)]) for name in ("col", "row", "level"))
        level = problem.sensitivity.upper[cell]
        shown = [whole(release.values[cell]) for release in releases]
        rows.append([f"({place})", whole(problem.table.value[cell]), whole(level), *shown])
    return table(["column, row, level", "true", "protection", *words], rows)


def _table_5() -> list[str]:
    kept = pl.read_csv(KEPT)
    rows = []
    for row in kept.iter_rows(named=True):
        share = [100 * row[f"within {limit} percent"] / row["cells"] for limit in (1, 5, 10)]
        rows.append(
            [f"{row['table']}, `{row['cost']}`", *(f"{one:.1f}%" for one in share), whole(row["quantity changed"]),
             whole(row["quantity affected"]), number(row["average percent change"], 2), whole(row["cpu seconds"])]
        )  # fmt: skip
    said = [
        [name, f"{printed('dandekar_cox', 'linked_tables', name):g}%",
         f"{max(100 * r['within 1 percent'] / r['cells'] for r in part.iter_rows(named=True)):.1f}%",
         part.sort("within 1 percent")["cost"][-1]]
        for (name,), part in kept.group_by(["table"], maintain_order=True)
    ]  # fmt: skip
    headers = ["table, cost", "within 1%", "within 5%", "within 10%", "quantity changed", "quantity affected",
               "average percent change of the changed cells", "CPU seconds"]  # fmt: skip
    return [
        "## Table 5: percent changes in the linked tables", "",
        "Two linked sections of a table of six dimensions (`two5in6`: 5,681 cells, 720 sensitive), and four of one of "
        "nine (`nine5d`: 10,733 cells, 1,661 sensitive), reconstructed from the CUTEst collection; they are "
        "not in this "
        "repository. What the paper says of its best cost, and the best of ours:",
        *table(["cells that change by less than 1%", "printed, at least", "ours", "at the cost"], said),
        "All five costs with the defaults of `ts.Adjust` (`python docs/reproduce/linked.py` runs them again, "
        "`ts.experiments.costs` any other table):",
        *table(headers, rows),
    ]  # fmt: skip


def _table_6(problem: ts.Problem) -> list[str]:
    found = ts.experiments.directions(problem, cost="value")
    frame = found.summary()
    rows = [
        [row["start"], *(number(row[name], 2) for name in frame.columns[1:])] for row in frame.iter_rows(named=True)
    ]
    best = found.frame().sort("quantity changed")["start"][0]
    spread = found.percent_changes().select("percent change", "alternating", "up", "down", best)
    classes = [[_class(row[0]), *map(str, row[1:])] for row in spread.iter_rows()]
    print_ = quality(problem, _printed(problem)).distribution()["cells"]
    for line, count in zip(classes, print_, strict=True):
        line.insert(1, str(count))
    least = [
        ["costs are values", whole(printed("dandekar_cox", "least_of_100_random")),
         whole(float(frame.filter(pl.col("start").str.starts_with("least"))["quantity changed"][0]))],
    ]  # fmt: skip
    optimum = {cost: _adjusted(problem, cost) for cost in ("value", "constant")}
    chosen = {cost: whole(quality(problem, release).loss.changed_quantity) for cost, release in optimum.items()}
    return [
        "## Tables 6 and 7: directions fixed beforehand", "",
        "`ts.experiments.directions(problem)`: alternating, all up, all down, and 100 draws, one linear program each, "
        "costs by value. Percentages are averaged over the changed cells.",
        *table([frame.columns[0], *frame.columns[1:]], rows),
        "The least quantity changed by 100 random directions. How good the best of 100 draws is, is chance:",
        *table(["", "printed (Table 6)", "ours"], least),
        f"Directions chosen by an integer program change {chosen['value']} when costs are values, and "
        f"{chosen['constant']} when every change costs the same, which is then proved the least.", "",
        "Cells by percent change, in our classes:",
        *table(["change", "cells of Table 4", "alternating", "up", "down", f"best draw ({best})"], classes),
    ]  # fmt: skip


def _class(word: str) -> str:
    return f"{word} percent" if word[0].isdigit() or word.startswith("over") else word


def _costs(problem: ts.Problem) -> list[str]:
    found: dict[str, Quality] = {cost: quality(problem, _adjusted(problem, cost)) for cost in MEASURES}
    classes = found["constant"].distribution()["percent change"].to_list()
    rows = [
        [_class(word), *(str(one.distribution()["cells"][i]) for one in found.values())]
        for i, word in enumerate(classes)
    ]
    for name in ("quantity changed", "quantity affected", "average percent change of changed cells"):
        rows.append([f"**{name}**", *(number(float(one.totals()[name])) for one in found.values())])
    return [
        "## What each cost does to this table", "",
        "Not in the paper, which has this for its linked tables: the five costs of a change by 1, each proved optimal "
        "over all directions. Changes go to the large cells as the cost turns from `value` to `inverse`: more quantity "
        "is affected, and percentages fall.",
        *table(["change", *found], rows),
    ]  # fmt: skip


def _whole(problem: ts.Problem) -> list[str]:
    """Tables 1 and 4 in full: true, printed and our values, level by level."""
    releases = (_printed(problem), _adjusted(problem, "value"))
    lines = [
        "## Tables 1 and 4 in full",
        "",
        "Below each other: true, printed (Table 4), ours with the directions chosen, costs by value; one "
        "number where neither "
        "changed it. The last column, row and level are totals.",
    ]
    for level in range(1, 5):
        rows = []
        for row in range(1, 7):
            cells = [problem.table.index(col=str(c), row=str(row), level=str(level)) for c in range(1, 11)]
            shown = [three([problem.table.value[c], *(r.values[c] for r in releases)]) for c in cells]
            rows.append([str(row), *shown])
        lines += ["", f"Level {level}:", *table(["row", *map(str, range(1, 11))], rows)]
    return lines
