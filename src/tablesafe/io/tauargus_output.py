"""Tables that τ-ARGUS wrote with one line per cell, read back; `tauargus_write` writes them and its other formats."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

from tablesafe.core.errors import InvalidFile, InvalidTable
from tablesafe.core.table import Table
from tablesafe.files.read import Source
from tablesafe.io.text import count_entries, read_lines, split_lines


def read_code_value(path: str | Path, *, dimensions: Sequence[str] | None = None) -> pl.DataFrame:
    """Read what τ-ARGUS wrote as `code,code,value[,status]`, with or without a line of names.

    Without names the dimensions are called as given, or `code 1`, `code 2`. Suppressed (`x`) and empty (`-`) values are
    null.
    """
    path = Path(path)
    lines = read_lines(path)
    separator = max(",;\t", key=lambda candidate: int(count_entries(lines.head(1), candidate)[0]))
    width = int(count_entries(lines.head(1), separator)[0])
    source = split_lines(lines, path.name, separator, [str(i) for i in range(width)])
    values, header = _value_column(source, None if dimensions is None else len(dimensions))
    named = [str(source.frame[str(i)][0]).strip() for i in range(values)] if header else None
    names = list(dimensions or named or [f"code {i + 1}" for i in range(values)])
    if len(names) != values:
        raise InvalidFile(f"{path.name} has {values} columns of codes, but {len(names)} dimensions are named.")
    frame = source.frame.slice(1) if header else source.frame
    body = Source(frame, path.name, first_line=2 if header else 1)
    text = body.text(str(values))
    shown = text.set(text.is_in(["x", "-", "", ".", "X"]), None)
    numbers = Source(shown.alias("value").to_frame(), body.name, body.first_line)
    columns: dict[str, Any] = {name: body.frame[str(i)] for i, name in enumerate(names)}
    columns["value"] = pl.Series(numbers.numbers("value", missing=0.0)).set(shown.is_null(), None)
    if values + 1 < width:
        columns["status"] = body.text(str(values + 1))
    return pl.DataFrame(columns)


def _value_column(source: Source, dimensions: int | None) -> tuple[int, bool]:
    """Which column holds the values, and whether the first line holds names.

    Values are the last column but a status; a status is a whole number from 1 to 14 or a letter.
    """
    frame = source.frame
    width = frame.width
    if width < 2:
        raise InvalidFile(f"{source.name} has no column of values.\n\nHint: is it separated by commas?")
    sample = frame.slice(1) if frame.height > 1 else frame
    last = sample[str(width - 1)].str.strip_chars()
    looks_like_status = bool(last.fill_null("").str.contains(r"^(?:[1-9]|1[0-4]|[A-Za-z]{1,2})$").all())
    values = dimensions if dimensions is not None else width - 2 if looks_like_status and width > 2 else width - 1
    if not 0 < values < width:
        raise InvalidFile(f"{source.name} has {width} columns, too few for {values} dimensions and a value.")
    first = str(frame[str(values)][0] or "").strip()
    header = first not in {"x", "X", "-", "", "."} and not re.fullmatch(r"[+-]?[\d.,]+(?:[eE][+-]?\d+)?", first)
    return values, header and frame.height > 1


def quoted_codes(table: Table) -> list[pl.Series]:
    """The codes of all cells in double quotes, one column per dimension."""
    _refuse_in_codes(table, "\n\r")
    return ['"' + codes.str.replace_all('"', '""', literal=True) + '"' for codes in table.code_columns().values()]


def _refuse_in_codes(table: Table, characters: str) -> None:
    for name, codes in table.code_columns().items():
        bad = codes.str.contains(f"[{characters}]")
        if bad.any():
            raise InvalidTable(
                f"Code {codes.filter(bad)[0]!r} of {name!r} cannot be written in this format.\n\n"
                f"Hint: remove the line break from it."
            )


def joined(columns: Sequence[pl.Series], separator: str) -> str:
    """Columns of text as lines."""
    frame = pl.DataFrame([column.alias(str(i)) for i, column in enumerate(columns)])
    lines = frame.select(pl.concat_str(pl.all(), separator=separator)).to_series()
    return "".join(line + "\n" for line in lines.to_list())
