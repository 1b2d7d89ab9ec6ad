"""Dandekar & Cox (2002): adjusted tables."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

import tablesafe as ts
from reproduce.cases import dandekar
from reproduce.layout import head, number, table, three, whole
from tablesafe.loss.quality import Quality, quality
from tablesafe.methods.adjust.costs import MEASURES

NAME = "dandekar-cox"
PAPER = (
    "R. A. Dandekar and L. H. Cox, *Synthetic Tabular Data: An Alternative to Complementary Cell Suppression* "
    "(2002), Tables 1 to 4, 6 and 7."
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
    return "\n".join([*lines, *_table_4(problem), *_table_6(problem), *_table_7(problem), *_whole(problem)]) + "\n"


@cache
def _adjusted(problem: ts.Problem, cost: str, directions: Any = "optimal") -> ts.Release:
    return ts.protect(problem, ts.Adjust(cost=cost, directions=directions, tries=100))


def _printed(problem: ts.Problem) -> ts.Release:
    values = np.asarray(problem.table.columns["synthetic_value_2002"], dtype=np.float64)
    changed = values != problem.table.value
    status = np.where(changed, ts.Status.CHANGED, ts.Status.PUBLISHED).astype(np.uint8)
    return ts.Release(problem.table, values, problem.lower, problem.upper, status, "printed")


def _table_4(problem: ts.Problem) -> list[str]:
    printed = _printed(problem)
    ours = _adjusted(problem, "value", "alternating")
    best = _adjusted(problem, "value")
    columns = [quality(problem, release) for release in (printed, ours, best)]
    rows = [
        [name, *(number(float(one.totals()[name])) for one in columns)]
        for name in ("cells changed", "quantity changed", "quantity affected", "average percent change")
    ]
    cost = [(np.abs(one.loss.change) * problem.table.value).sum() for one in columns]
    rows.append(["sum of changes times values (what is minimised)", *map(whole, cost)])
    proof = best.solution
    assert proof is not None
    headers = ["", "printed (Table 4)", "ours, alternating directions", "ours, directions chosen"]
    lines = ["", "## Tables 3 and 4: the adjusted table", "", "Changes cost the value of the cell they are made in."]
    lines += table(headers, rows)
    lines += [
        f"With the directions chosen too, the answer is proved to be {proof.status}, gap {proof.gap:.1%}. Sensitive "
        f"cells, "
        "true, as printed, and ours:",
    ]
    return [*lines, *_cells(problem, [printed, ours, best], headers[1:])]


def _cells(problem: ts.Problem, releases: list[ts.Release], words: list[str]) -> list[str]:
    codes = problem.table.code_columns()
    rows = []
    for cell in problem.sensitive:
        place = ", ".join(str(codes[name][int(cell)]) for name in ("col", "row", "level"))
        level = problem.sensitivity.upper[cell]
        shown = [whole(release.values[cell]) for release in releases]
        rows.append([f"({place})", whole(problem.table.value[cell]), whole(level), *shown])
    return table(["column, row, level", "true", "protection", *words], rows)


def _table_6(problem: ts.Problem) -> list[str]:
    found: dict[str, Quality] = {"printed (value)": quality(problem, _printed(problem))}
    found |= {cost: quality(problem, _adjusted(problem, cost)) for cost in MEASURES}
    classes = found["constant"].distribution()["percent change"].to_list()
    rows = [
        [f"{word} percent" if word[0].isdigit() or word.startswith("over") else word,
         *(str(one.distribution()["cells"][i]) for one in found.values())]
        for i, word in enumerate(classes)
    ]  # fmt: skip
    for name in ("quantity changed", "quantity affected", "average percent change"):
        rows.append([f"**{name}**", *(number(float(one.totals()[name])) for one in found.values())])
    return [
        "## Table 6: what each cost function does", "",
        "Cells by how much they change, for every cost of a change by 1 that the paper names. The printed table is "
        "that of Table 4; the other columns are ours, each proved optimal over all directions. Changes go to the "
        "large cells as the cost turns from `value` to `inverse`: more quantity is affected, and percentages fall.",
        *table(["change", *found], rows),
    ]  # fmt: skip


def _table_7(problem: ts.Problem) -> list[str]:
    best = _adjusted(problem, "constant", "random").solution
    optimum = _adjusted(problem, "constant").solution
    assert best is not None
    assert optimum is not None
    rows = [
        ["best of 100 random directions, printed", "3,058", ""],
        ["best of 100 random directions, ours", whole(best.objective), ""],
        [
            "directions chosen by an integer program",
            whole(optimum.objective),
            f"{optimum.status}, gap {optimum.gap:.1%}",
        ],
    ]
    return ["## Table 7: directions at random", *table(["constant cost", "quantity changed", "proof"], rows)]


def _whole(problem: ts.Problem) -> list[str]:
    """Tables 1, 3 and 4 in full: true, printed and our values, level by level."""
    releases = (_printed(problem), _adjusted(problem, "value"))
    lines = [
        "## Tables 1 and 4 in full",
        "",
        "Below each other: true, printed, ours with the directions chosen, costs by value; one number where neither "
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
