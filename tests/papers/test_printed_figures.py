"""What a page of a paper calls printed is what the transcripts say, figure by figure; nothing else is called so.

The pages are read as they stand, without the code that makes them. Every column of a table that calls itself printed
must be named here with the figures it should hold, from the case files or from `printed.json`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
import pytest

DATA = Path(__file__).resolve().parent / "data"
PAGES = Path(__file__).resolve().parents[2] / "docs" / "papers"
Figures = list[list[float]]
"""Per row of a table the numbers of one cell; empty where nothing is printed."""
NUMBER = re.compile(r"(?<![\w.])-?\d[\d,]*(?:\.\d+)?|inf")


@dataclass(frozen=True)
class Sheet:
    """A table of a page: the page, the heading above it, its headers and rows."""

    page: str
    heading: str
    headers: list[str]
    rows: list[list[str]]

    def column(self, at: int) -> Figures:
        return [numbers(row[at]) for row in self.rows]


def numbers(text: str) -> list[float]:
    return [float(found.replace(",", "")) for found in NUMBER.findall(text.replace("–", " "))]


def sheets(page: str) -> Iterator[Sheet]:
    heading, block = "", []
    for line in [*(PAGES / f"{page}.md").read_text(encoding="utf-8").splitlines(), ""]:
        if line.startswith("|"):
            block.append([cell.strip() for cell in line.strip("|").split("|")])
            continue
        if block:
            yield Sheet(page, heading, block[0], block[2:])
            block = []
        heading = line.removeprefix("## ") if line.startswith("## ") else heading


def loaded(name: str) -> Any:
    return json.loads((DATA / name).read_text(encoding="utf-8"))


def single(paper: str, *names: str) -> list[float]:
    found = loaded("printed.json")[paper]
    for name in names:
        found = found[name]
    return [float(found["figure"])]


def cells_of_table_4() -> Figures:
    frame = pl.read_csv(DATA / "dandekar_10x6x4" / "cells.csv").filter(pl.col("sensitive") > 0)
    return [[float(value)] for value in frame.sort("level", "row", "col")["synthetic_value_2002"]]


def attack(*columns: str) -> Figures:
    frame = pl.read_csv(DATA / "dandekar_10x6x4" / "expected_attack_44.csv")
    return [[float(row[name]) for name in columns] for row in frame.iter_rows(named=True)]


def counted(column: str) -> list[float]:
    frame = pl.read_csv(DATA / "dandekar_10x6x4" / "expected_attack_44.csv")
    return [float(((frame[column] - frame["value"]).abs() < frame["protection"]).sum())]


def densities() -> Figures:
    frame = pl.read_csv(DATA / "dandekar_10x6x4" / "expected_density_138.csv")
    return [[float(n) for n in row.split()] for row in frame["counts_in_10_equal_intervals"]]


def bounds(suffix: str) -> Figures:
    frame = pl.read_csv(DATA / "roehrig_banking" / "expected_bounds.csv")
    return [[float(row[f"lower{suffix}"]), float(row[f"upper{suffix}"])] for row in frame.iter_rows(named=True)]


def views(name: str) -> Figures:
    return [[float(loaded("roehrig_banking/expected.json")[f"{a}_suppressions"])] for a in name.split()]


def big_m() -> Figures:
    return [
        [float(loaded("roehrig_banking/expected.json")["big_m_lower_by_loan"][k])] for k in ("RE", "IN", "CC", "CM")
    ]


def table_6(algorithm: str) -> Figures:
    averages = loaded("roehrig_banking/expected.json")["table6_average_suppressions_1000_problems"]
    return [[float(averages[size][algorithm])] for size in ("4", "5", "6")]


def rules(key: str) -> Figures:
    return [[float(row[key])] for row in loaded("sensitivity_rules.json")["table_1"]]


def sensitivities() -> Figures:
    told = loaded("sensitivity_rules.json")["example"]["sensitivities"]
    return [[float(value)] for cell in ("union_1_2", "total") for value in told[cell].values()]


def cycle() -> Figures:
    told = loaded("cox_vulnerability.json")["cycle_2x2"]["exact_intervals"]
    return [[float(end) for end in told[name]] for name in ("X", "B", "C", "A")]


def thirteen() -> Figures:
    told = loaded("cox_kelly_4x9/expected.json")["summary_13x13x13"]
    return [told[by][aim] for by in ("lp", "tabu") for aim in ("min_sum_abs", "variance", "correlation", "regression")]


ALTERNATING = ("quantity_changed", "quantity_affected", "average_percent_change")
PRINTED: dict[tuple[str, str, str], Callable[[], Figures]] = {
    ("dandekar-cox", "Tables 3 and 4: the adjusted table", "printed"): lambda: [
        [], *(single("dandekar_cox", "alternating", name) for name in ALTERNATING), []
    ],
    ("dandekar-cox", "Tables 3 and 4: the adjusted table", "printed (Table 4)"): cells_of_table_4,
    ("dandekar-cox", "Table 5: percent changes in the linked tables", "printed, at least"): lambda: [
        single("dandekar_cox", "linked_tables", name) for name in ("two5in6", "nine5d")
    ],
    ("dandekar-cox", "Tables 6 and 7: directions fixed beforehand", "printed (Table 6)"): lambda: [
        single("dandekar_cox", "least_of_100_random")
    ],
    ("myth-and-reality", "How many of 24 sensitive cells are guessed to within their protection", "printed"): lambda: [
        [], [], single("myth_and_reality", "interior_point_within_protection"), [],
        single("myth_and_reality", "mean_within_protection"), [], [], [], [], [],
    ],
    ("myth-and-reality", "How many of 24 sensitive cells are guessed to within their protection",
     "counted in the printed column"): lambda: [
        counted("simplex_null_objective"), counted("simplex_null_objective"), counted("pcx_null_objective"), [],
        counted("mean_138_lp"), [], [], [], [], [],
    ],
    ("myth-and-reality", "Table 4", "range, printed"): lambda: attack("lp_lower", "lp_upper"),
    ("myth-and-reality", "Table 4", "simplex, printed"): lambda: attack("simplex_null_objective"),
    ("myth-and-reality", "Table 4", "interior point, printed"): lambda: attack("pcx_null_objective"),
    ("myth-and-reality", "Table 4", "mean ± deviation of 138, printed"): lambda: attack("mean_138_lp", "stddev_138_lp"),
    ("myth-and-reality", "Table 5: where the 138 solutions lie", "printed"): densities,
    ("roehrig", "What the views say about the confidential one", "all published: printed"): lambda: bounds(""),
    ("roehrig", "What the views say about the confidential one", "after the printed pattern: printed"): lambda: bounds(
        "_after_ip"
    ),
    ("roehrig", "Suppressions by method", "printed"): lambda: views("optimal tabu greedy random"),
    ("roehrig", "The refined big-M of the integer program", "printed"): big_m,
    ("roehrig", "Tables 5 and 6: generated problems", "greedy, printed"): lambda: table_6("greedy"),
    ("roehrig", "Tables 5 and 6: generated problems", "random, printed"): lambda: table_6("random"),
    ("roehrig", "Tables 5 and 6: generated problems", "tabu, printed"): lambda: table_6("tabu"),
    ("roehrig", "Tables 5 and 6: generated problems", "printed, average (Table 5)"): lambda: [
        single("roehrig", "optimal_average_size_4")
    ],
    ("working-paper-22", "Table 1", "p, printed"): lambda: rules("p"),
    ("working-paper-22", "Table 1", "k of (1,k), printed"): lambda: rules("k1"),
    ("working-paper-22", "Table 1", "k of (2,k), printed"): lambda: rules("k2"),
    ("working-paper-22", "The rules of the example", "printed"): lambda: [[17.65], [35.29], [73.91]],
    ("working-paper-22", "Technical notes: why a union may be safe", "printed"): sensitivities,
    ("cox-vulnerability", "A cycle of four cells", "interval, printed"): cycle,
    ("cox-kelly", "13 × 13 × 13", "printed"): thirteen,
}  # fmt: skip
OURS = {
    "the printed cells (Table 4)", "ours, weights as printed", "vertex as printed",
    "deviations, times the printed ones",
}  # fmt: skip
"""Columns that only speak of the print."""


def called_printed() -> list[tuple[Sheet, int]]:
    """Every column of every page that calls itself printed."""
    return [
        (sheet, at)
        for path in sorted(PAGES.glob("*.md"))
        for sheet in sheets(path.stem)
        for at, header in enumerate(sheet.headers)
        if "printed" in header and header not in OURS
    ]


def test_every_printed_column_has_a_transcript_and_every_transcript_a_column() -> None:
    there = {(sheet.page, sheet.heading, sheet.headers[at]) for sheet, at in called_printed()}
    assert there == set(PRINTED)


@pytest.mark.parametrize(
    ("sheet", "at"),
    [pytest.param(*each, id=f"{each[0].page}: {each[0].headers[each[1]]}") for each in called_printed()],
)
def test_a_printed_column_is_what_the_transcript_says(sheet: Sheet, at: int) -> None:
    assert sheet.column(at) == PRINTED[sheet.page, sheet.heading, sheet.headers[at]]()


WHERE = "Where the printed figures stand"
NOT_COLUMNS = {
    ("dandekar-cox", "Tables 1 and 4 in full", "true and printed"),
    ("dandekar-patterns", "The patterns", "44 complements, printed"),
    ("dandekar-patterns", "The patterns", "39 complements, printed"),
    ("cox-kelly", "The statistics (sensitive cells, published against true values)", "rows called printed"),
    ("cox-kelly", "The tables in full", "true"),
    ("cox-kelly", "The tables in full", "printed"),
    ("cox-vulnerability", "Table 3: a cube of 27 withheld cells", "margins and the cells disclosed"),
    ("cox-vulnerability", "Table 4: nine withheld cells of sixteen", "cells and totals and the cell disclosed"),
    ("roehrig", "The patterns", "printed"),
}
"""Printed figures that are no column of a table on the page; the tests below compare them."""


def places() -> list[dict[str, str]]:
    frame = pl.read_csv(DATA / "places.csv", infer_schema=False)
    return [{name: told or "" for name, told in row.items()} for row in frame.iter_rows(named=True)]


def test_every_printed_figure_has_its_place_in_the_paper_or_says_that_it_is_not_known() -> None:
    told = {(row["page"], row["heading"], row["figures"]) for row in places()}
    assert told == set(PRINTED) | NOT_COLUMNS
    for path in PAGES.glob("*.md"):
        shown = [sheet.rows for sheet in sheets(path.stem) if sheet.heading == WHERE]
        wanted = [
            [row["heading"], row["figures"], *(row[at] or "not in our transcript" for at in ("table", "row", "column"))]
            for row in places()
            if row["page"] == path.stem
        ]
        assert [row for rows in shown for row in rows] == wanted


def test_headings_and_tables_of_places_are_those_of_the_page_and_of_single_figures() -> None:
    """A heading that is named is on the page, and a figure that names its table in the transcript names the same."""
    for row in places():
        assert f"## {row['heading']}" in (PAGES / f"{row['page']}.md").read_text(encoding="utf-8").splitlines()
    singles = {
        ("dandekar-cox", "printed (Table 6)"): loaded("printed.json")["dandekar_cox"]["least_of_100_random"],
        ("dandekar-cox", "printed, at least"): loaded("printed.json")["dandekar_cox"]["linked_tables"]["two5in6"],
        ("dandekar-cox", "printed"): loaded("printed.json")["dandekar_cox"]["alternating"]["quantity_changed"],
        ("roehrig", "printed, average (Table 5)"): loaded("printed.json")["roehrig"]["optimal_average_size_4"],
    }
    for (page, figures), single_ in singles.items():
        row = next(row for row in places() if (row["page"], row["figures"]) == (page, figures))
        assert [row[at] or None for at in ("table", "row", "column")] == [
            single_[at] for at in ("table", "row", "column")
        ]


def test_the_printed_statistics_of_cox_and_kelly() -> None:
    """There each printed table is a row."""
    told = loaded("cox_kelly_4x9/expected.json")
    order = [told["linear_programming"][k] for k in ("min_sum_abs", "lp_variance", "lp_correlation", "lp_regression")]
    order += [told["tabu_search"][k] for k in ("variance", "correlation", "regression")]
    first = next(sheets("cox-kelly"))
    rows = [[numbers(cell) for cell in row[1:4]] for row in first.rows if row[0].endswith("**, printed")]
    assert rows == [[[one[k]] for k in ("correlation", "slope", "variance_ratio")] for one in order]


@pytest.mark.parametrize(
    ("page", "file", "columns"),
    [
        ("dandekar-cox", "dandekar_10x6x4", ["synthetic_value_2002"]),
        ("cox-kelly", "cox_kelly_4x9", ["min_sum_abs", "lp_variance", "lp_correlation", "lp_regression",
                                        "tabu_variance", "tabu_correlation", "tabu_slope"]),
    ],
)  # fmt: skip
def test_tables_in_full_show_true_and_printed_values(page: str, file: str, columns: list[str]) -> None:
    frame = pl.read_csv(DATA / file / "cells.csv")
    parts = frame.partition_by("level", maintain_order=True) if "level" in frame.columns else [frame]
    wanted = [(part, column) for column in columns for part in parts]
    full = [sheet for sheet in sheets(page) if sheet.headers == ["row", *map(str, range(1, 11))]]
    assert len(full) == len(wanted)
    for sheet, (part, column) in zip(full, wanted, strict=True):
        told = {
            (row["row"], row["col"]): [float(row["value"]), float(row[column])] for row in part.iter_rows(named=True)
        }
        for row in sheet.rows:
            for at in range(1, 11):
                shown = numbers(row[at].replace("<br>", " "))
                assert (shown * 3 if len(shown) == 1 else shown)[:2] == told[int(row[0]), at]


def marked(page: str, above: str) -> set[tuple[str, str]]:
    """Rows and columns that a table marks with an x; the table is the one below a line."""
    lines = (PAGES / f"{page}.md").read_text(encoding="utf-8").splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[lines.index(above) + 2 :]]
    until = next(n for n, row in enumerate(rows) if row == [""])
    return {(row[0], rows[0][at]) for row in rows[2:until] for at in range(1, len(row)) if row[at].endswith("x")}


@pytest.mark.parametrize(("above", "key"), [("bank × loan", "bank_by_loan"), ("loan × status", "loan_by_status")])
def test_the_printed_pattern_of_roehrig(above: str, key: str) -> None:
    told = loaded("roehrig_banking/expected.json")["ip_pattern"][key]
    assert marked("roehrig", f"{above}, printed:") == {tuple(cell) for cell in told}


@pytest.mark.parametrize(("at", "column"), [(0, "suppression_44"), (27, "suppression_39")])
def test_the_printed_patterns_of_dandekar(at: int, column: str) -> None:
    """S where a cell is sensitive, x where it is withheld besides, by level and row."""
    text = (PAGES / "dandekar-patterns.md").read_text(encoding="utf-8")
    grids = [block.split("```")[0].splitlines() for block in text.split("```text\n")[1:]]
    shown = [line[at : at + 19].split() for grid in grids for line in grid[1:]]
    frame = pl.read_csv(DATA / "dandekar_10x6x4" / "cells.csv").sort("level", "row", "col")
    told = [{"w": "S", "c": "x", None: "."}[mark] for mark in frame[column]]
    assert [mark for row in shown for mark in row] == told


def test_what_cox_says_of_small_tables_is_what_the_transcript_says() -> None:
    """Sentences, not columns: what is disclosed in Tables 3 and 4, and how far X may fall when A is 1."""
    text = (PAGES / "cox-vulnerability.md").read_text(encoding="utf-8")
    told = loaded("cox_vulnerability.json")
    assert "X may fall by only 1 " in told["cycle_2x2_unprotected"]["note"]
    assert "Printed: X may fall by only 1." in text
    assert "(1,1,1),(2,2,2),(3,3,3) are disclosed to be 1" in told["table_3_3x3x3"]["note"]
    assert "Printed: the cells (1,1,1), (2,2,2) and (3,3,3) are disclosed, each is 1." in text
