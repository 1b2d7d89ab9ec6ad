"""Tables as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import polars as pl

PLACES = Path(__file__).resolve().parents[2] / "tests" / "papers" / "data" / "places.csv"
UNKNOWN = "not in our transcript"
NOTE = "<!-- Made by running the code: `python docs/reproduce {name}`. Do not edit. -->"


def head(name: str, title: str, paper: str, intro: str) -> list[str]:
    """The beginning of a page: what it is, and which paper it is about."""
    return [NOTE.format(name=name), "", f"# {title}", "", paper, "", intro.strip(), "", how(name)]


def how(name: str) -> str:
    """How to make the page again."""
    return f"Data: `tests/papers/data`. To make this page again: `python docs/reproduce {name}`."


def table(headers: Sequence[str], rows: Iterable[Sequence[Any]], left: int = 1) -> list[str]:
    """A Markdown table; the first `left` columns are text, the others numbers."""
    marks = ["---" if i < left else "---:" for i in range(len(headers))]
    lines = [_row(headers), _row(marks), *(_row([str(cell) for cell in row]) for row in rows)]
    return ["", *lines, ""]


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def places(name: str) -> list[str]:
    """Where in the paper each printed figure of a page stands, as far as the transcript tells."""
    kept = pl.read_csv(PLACES, infer_schema=False).filter(pl.col("page") == name)
    rows = [
        [row["heading"], row["figures"], *(row[part] or UNKNOWN for part in ("table", "row", "column"))]
        for row in kept.iter_rows(named=True)
    ]
    return [
        "", "## Where the printed figures stand", "",
        "The paper itself is not at hand, only a transcript of it. Where that does not say in which table, row and "
        "column of the paper a figure stands, nothing is claimed.",
        *table(["on this page", "figures", "table of the paper", "row", "column"], rows, left=5)[:-1],
    ]  # fmt: skip


def whole(number: float) -> str:
    """A whole number with thousands apart."""
    return f"{number:,.0f}"


def number(value: float, decimals: int = 2) -> str:
    """A number with so many decimals at most."""
    return f"{value:,.{decimals}f}" if value != round(value) else f"{value:,.0f}"


def three(values: Sequence[float]) -> str:
    """True, printed and our value of a cell; one number where nobody changed it."""
    return whole(values[0]) if len(set(values)) == 1 else "<br>".join(whole(value) for value in values)
