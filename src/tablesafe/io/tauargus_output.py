"""The formats in which τ-ARGUS writes a protected table: one line per cell, with its status or its SBS flag.

(Its other formats: the intermediate one is `.tab`, see `tauargus_table`; JJ has its own module; tables for spreadsheets
are written by `frames`.)
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from tablesafe.equations import Floats
from tablesafe.errors import InvalidFile, InvalidTable
from tablesafe.files import Source, write_text
from tablesafe.io.delimited import count_entries, read_lines, split_lines
from tablesafe.io.numbers import as_text, with_decimals
from tablesafe.io.status import Argus, argus_statuses, sbs_flags
from tablesafe.problem import Problem
from tablesafe.release import Release
from tablesafe.table import Table


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


def write_code_value(
    problem: Problem,
    release: Release,
    path: str | Path,
    *,
    header: bool = False,
    quotes: bool = True,
    empty: bool = True,
    confidential: bool = False,
) -> None:
    """Write `code,code,value` as τ-ARGUS does; what is withheld is `x`, what is empty is `-`.

    `empty=False` leaves empty cells out. With `confidential` every value is shown, with its τ-ARGUS status: for use
    inside the office only.
    """
    table, status = problem.table, argus_statuses(problem, release)
    keep = pl.Series((empty | (status != Argus.EMPTY)) & ~problem.withheld)
    value = _as_shown(table.value if confidential else np.nan_to_num(release.values), table.decimals)
    if not confidential:
        value = value.set(pl.Series(release.suppressed), "x")
    value = value.set(pl.Series(status == Argus.EMPTY), "-")
    columns = [*(quoted_codes(table) if quotes else _bare_codes(table)), value]
    names = [*table.code_columns(), table.response]
    if confidential:
        columns.append(pl.Series(status).cast(pl.String))
        names.append("Status")
    first = ",".join(f'"{name}"' if quotes else name for name in names) + "\n" if header else ""
    write_text(path, first + joined([column.filter(keep) for column in columns], ","))


def write_sbs(problem: Problem, release: Release, path: str | Path) -> None:
    """Write `code,code,value,count,flag,dominance` for a transmission to Eurostat (SBS). Confidential.

    Every value is there, with a flag that says how it may be used (see `tablesafe.io.status`); the dominance is the
    largest contributor's share of the cell in percent, where the largest contributors are known.
    """
    table = problem.table
    columns = [*quoted_codes(table), with_decimals(table.value, table.decimals)]
    count = np.zeros(len(table)) if table.count is None else table.count.astype(np.float64)
    columns.append(pl.Series([""] * len(table)) if table.count is None else with_decimals(count, 0))
    columns.append(pl.Series(sbs_flags(problem, release), dtype=pl.String))
    columns.append(_dominance(table))
    zero = np.zeros(len(table), np.bool_) if table.structural_zero is None else table.structural_zero
    keep = pl.Series(~zero & ~problem.withheld)
    write_text(path, joined([column.filter(keep) for column in columns], ","))


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
    _refuse_in_codes(table, "\n\r")
    return ['"' + codes.str.replace_all('"', '""', literal=True) + '"' for codes in table.code_columns().values()]


def _bare_codes(table: Table) -> list[pl.Series]:
    _refuse_in_codes(table, '\n\r,"')
    return list(table.code_columns().values())


def _refuse_in_codes(table: Table, characters: str) -> None:
    for name, codes in table.code_columns().items():
        bad = codes.str.contains(f"[{characters}]")
        if bad.any():
            raise InvalidTable(
                f"Code {codes.filter(bad)[0]!r} of {name!r} cannot be written in this format.\n\n"
                f"Hint: remove the line break, or with quotes=False the comma or quote, from it."
            )


def _as_shown(values: Floats, decimals: int) -> pl.Series:
    """With the table's decimals, unless a protected value has more."""
    fits = bool((np.abs(values - np.round(values, decimals)) <= 1e-15 * np.abs(values)).all())
    return with_decimals(values, decimals) if fits else as_text(values)


def _dominance(table: Table) -> pl.Series:
    if table.contributors is None or table.contributors.depth == 0:
        return pl.Series([""] * len(table), dtype=pl.String)
    weighted = table.contributors.amount if table.contributors.weighted is None else table.contributors.weighted
    with np.errstate(divide="ignore", invalid="ignore"):
        share = 100 * np.abs(weighted[:, 0]) / np.abs(table.value)
    shown = np.isfinite(share)
    return with_decimals(np.where(shown, share, 0.0), 2).set(pl.Series(~shown), "")


def joined(columns: Sequence[pl.Series], separator: str) -> str:
    frame = pl.DataFrame([column.alias(str(i)) for i, column in enumerate(columns)])
    lines = frame.select(pl.concat_str(pl.all(), separator=separator)).to_series()
    return "".join(line + "\n" for line in lines.to_list())
