"""Numbers as text, for every format that holds them as text."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl

from tablesafe.core.equations import Floats, Mask
from tablesafe.core.errors import InvalidFile
from tablesafe.files.read import Source, read_text

LARGEST_WHOLE = 2.0**62
"""Below it a number is written as a whole one by way of 64 bits."""


def as_text(values: Floats) -> pl.Series:
    """Whole numbers without a decimal point, all others as short as reads back to the same float."""
    number = np.asarray(values, dtype=np.float64)
    whole = (number == np.floor(number)) & (np.abs(number) < LARGEST_WHOLE)
    integers = pl.Series(np.where(whole, number, 0.0).astype(np.int64)).cast(pl.String)
    return integers.zip_with(pl.Series(whole), pl.Series(number).cast(pl.String))


def with_decimals(values: Floats, decimals: int, *, comma: bool = False) -> pl.Series:
    """A fixed number of decimals, as other programs like them."""
    scaled = np.rint(np.asarray(values, dtype=np.float64) * 10.0**decimals)
    if decimals <= 0 or not bool((np.abs(scaled) < LARGEST_WHOLE).all()):
        return as_text(np.asarray(values, dtype=np.float64))
    digits = pl.Series("digits", np.abs(scaled).astype(np.int64)).cast(pl.String).str.zfill(decimals + 1)
    sign = pl.Series("sign", np.where(scaled < 0, "-", ""), dtype=pl.String)
    point = "," if comma else "."
    pieces = [pl.col("sign"), pl.col("digits").str.head(-decimals), pl.lit(point), pl.col("digits").str.tail(decimals)]
    return pl.DataFrame([sign, digits]).select(pl.concat_str(pieces)).to_series()


# Delimited text without a header line, as τ-ARGUS reads and writes it.


def read_lines(path: str | Path) -> pl.Series:
    """The lines of a text file without those at the end that are empty; an empty line in between is an error."""
    path = Path(path)
    text = read_text(path).replace("\r\r\n", "\n").replace("\r\n", "\n").replace("\r", "\n").rstrip(" \t\r\n\x1a")
    if not text.strip():
        raise InvalidFile(f"{path.name} is empty.", hint="is it the right file, and complete?")
    lines = pl.Series(text.split("\n"), dtype=pl.String)
    _refuse(
        (lines.str.strip_chars() == "").to_numpy(), path.name, "the line is empty", "remove the line, or fill it in."
    )
    return lines


def split_lines(lines: pl.Series, name: str, separator: str, columns: Sequence[str]) -> Source:
    """Split lines into columns of text; every line must have as many entries as there are columns."""
    quotes = lines.str.count_matches('"', literal=True)
    _refuse((quotes % 2 == 1).to_numpy(), name, "a quote is not closed", "close it, or remove it.")
    found = count_entries(lines, separator)
    extra = (found == len(columns) + 1) & lines.str.ends_with(separator)
    wrong = ((found != len(columns)) & ~extra).to_numpy()
    if wrong.any():
        at = int(np.argmax(wrong))
        entries = "there is 1 entry" if found[at] == 1 else f"there are {found[at]} entries"
        what = f"{entries}, but {len(columns)} variables ({', '.join(columns)})"
        _refuse(wrong, name, what, f"entries are separated by {separator!r}; put text that holds it in double quotes.")
    try:
        frame = pl.read_csv(
            "\n".join(lines.to_list()).encode() + b"\n", separator=separator, has_header=False, infer_schema=False,
            truncate_ragged_lines=True, quote_char='"', n_rows=len(lines),
        )  # fmt: skip
    except pl.exceptions.PolarsError as error:
        first = str(error).splitlines()[0]
        raise InvalidFile(
            f"{name} cannot be read as text separated by {separator!r}: {first}",
            hint="put text that holds it, or a quote, in double quotes.",
        ) from error
    frame = frame.select(frame.columns[: len(columns)])
    if frame.shape != (len(lines), len(columns)):
        raise InvalidFile(
            f"{name} cannot be split into {len(columns)} columns.", hint="are quotes only around whole entries?"
        )
    return Source(frame.rename(dict(zip(frame.columns, columns, strict=True))), name, first_line=1)


def count_entries(lines: pl.Series, separator: str) -> pl.Series:
    """How many entries each line has; separators inside double quotes do not count."""
    bare = lines.str.replace_all(r'"[^"]*"', "")
    return bare.str.count_matches(separator, literal=True).cast(pl.Int64) + 1


def _refuse(bad: Mask, name: str, what: str, hint: str) -> None:
    if bad.any():
        raise InvalidFile(f"{name}, line {int(np.argmax(bad)) + 1}: {what}.", hint=hint)
