"""Frames and text in, whatever their origin.

Offices keep data in UTF-8 with and without a byte-order mark, in Windows-1252, with semicolons and decimal commas.
This module turns all of it into a polars frame that still knows where each row came from, so that an error can name
the file and the line.
"""

from __future__ import annotations

import csv
import io
import os
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tablesafe.core.errors import InvalidFile, InvalidInput, InvalidTable, MissingExtra
from tablesafe.core.language import Text
from tablesafe.core.language import text as sentence
from tablesafe.files.limits import (
    is_there,
    kind_of,
    note_input,
    read_plain,
    refused_as,
    require_plausible_rows,
    unpacked,
)

DELIMITERS = ",;\t|"
LARGEST_EXACT = 2.0**53
"""Beyond this a float no longer holds every whole number, and nothing can be proved about sums."""
MARKS = (".", "..", "...", "\N{HORIZONTAL ELLIPSIS}", ":", "x", "X", "c", "/", "n/a", "NA", "*")
"""What stands for a number that is not there: withheld, unknown, or without meaning."""
NO_PARQUET = "{name} is not a Parquet file, or is damaged: {why}"
TRUE_VALUES = "what was withheld before can be neither protected nor checked: take the table with its true values."


@dataclass(frozen=True, slots=True)
class Source:
    """A frame and where it came from."""

    frame: pl.DataFrame
    name: str
    first_line: int | None = None
    """Line of the first row in the file, when there is a file with lines."""
    places: tuple[str, ...] | None = None
    """Where each row stands, when it is no line of the file, such as a cell of a sheet."""
    without: tuple[str, ...] = ()
    """Cells of a printed table that hold a mark instead of a number; they are no rows."""

    def where(self, row: int) -> Text:
        """Say where row `row` (from 0) stands, in the user's terms."""
        if self.places is not None:
            return sentence("{place} of {name}", place=self.places[row], name=self.name)
        if self.first_line is None:
            return sentence("row {row} of {name}", row=row + 1, name=self.name)
        return sentence("{name}, line {line}", name=self.name, line=row + self.first_line)

    def require(self, *columns: str) -> None:
        """Check that the columns exist, and suggest what was meant."""
        for column in columns:
            if column not in self.frame.columns:
                raise InvalidTable(
                    sentence(
                        "{name} has no column {column!r}. It has: {several}.",
                        name=self.name,
                        column=column,
                        several=", ".join(map(repr, self.frame.columns)),
                    ),
                    hint=did_you_mean(column, self.frame.columns) or "check the delimiter and the header line.",
                    about=("column", column),
                )

    def text(self, column: str, *, strip: bool = True) -> pl.Series:
        """The column as text; missing stays missing."""
        self.require(column)
        series = self.frame[column]
        if series.dtype.is_float():
            whole = series.drop_nulls()
            if bool((whole.is_finite() & (whole == whole.floor()) & (whole.abs() < LARGEST_EXACT)).all()):
                series = series.cast(pl.Int64)
        text = series.cast(pl.String)
        return text.str.strip_chars() if strip else text

    def numbers(self, column: str, *, missing: float | None = None) -> NDArray[np.float64]:
        """The column as finite numbers; text, NaN, infinities and numbers too large to add exactly are errors.

        `missing` replaces empty entries; without it they are errors too.
        """
        self.require(column)
        series = self.frame[column]
        if series.dtype == pl.String:
            series = self._parse(series, column)
        elif not series.dtype.is_numeric() and series.dtype != pl.Boolean:
            raise InvalidTable(
                sentence(
                    "Column {column!r} of {name} holds {dtype}, not numbers.",
                    column=column,
                    name=self.name,
                    dtype=str(series.dtype),
                ),
                about=("column", column),
            )
        numbers = series.cast(pl.Float64)
        empty = numbers.is_null()
        if empty.any():
            if missing is None:
                row = int(empty.arg_max() or 0)
                raise InvalidTable(
                    sentence("Column {column!r} is empty at {where}.", column=column, where=self.where(row)),
                    hint="fill it in, or leave the row out if the cell does not exist.",
                    about=("column", column),
                )
            numbers = numbers.fill_null(missing)
        out = numbers.to_numpy().astype(np.float64, copy=True)
        self._check_finite(out, column)
        return out

    def _parse(self, series: pl.Series, column: str) -> pl.Series:
        text = series.str.strip_chars()
        text = text.set(text == "", None)
        number = text.cast(pl.Float64, strict=False)
        bad = number.is_null() & text.is_not_null()
        if bad.any() and not text.str.contains(".", literal=True).any():  # perhaps decimal commas
            commas = text.str.replace(",", ".", literal=True).cast(pl.Float64, strict=False)
            if commas.null_count() < number.null_count():
                number, bad = commas, commas.is_null() & text.is_not_null()
        if bad.any():
            row = int(bad.arg_max() or 0)
            if text[row] in MARKS:
                raise InvalidTable(
                    sentence(
                        "Column {column!r} should hold numbers, but {where} has {found!r}, which stands for "
                        "a number that is not there.",
                        column=column,
                        where=self.where(row),
                        found=series[row],
                    ),
                    hint=TRUE_VALUES,
                    about=("column", column),
                )
            raise InvalidTable(
                sentence(
                    "Column {column!r} should hold numbers, but {where} has {found!r}.",
                    column=column,
                    where=self.where(row),
                    found=series[row],
                ),
                hint="is it the right column, with a decimal point or comma and no thousands separator?",
                about=("column", column),
            )
        return number

    def _check_finite(self, values: NDArray[np.float64], column: str) -> None:
        bad = ~(np.abs(values) < LARGEST_EXACT)
        if bad.any():
            row = int(bad.argmax())
            value = values[row]
            what = "not a number" if np.isnan(value) else "infinite" if np.isinf(value) else "too large to add exactly"
            raise InvalidTable(
                sentence(
                    "Column {column!r} is {what} at {where}.", column=column, what=sentence(what), where=self.where(row)
                ),
                hint="values must be finite and below 2^53; use a larger unit, or leave the row out.",
                about=("column", column),
            )


def did_you_mean(word: str, options: list[str]) -> Text | str:
    """A hint naming the nearest option, or nothing."""
    import difflib

    lowered = {option.lower(): option for option in options}
    near = difflib.get_close_matches(word.lower(), list(lowered), n=1, cutoff=0.6)
    return sentence("did you mean {name!r}?", name=lowered[near[0]]) if near else ""


def read_text(path: str | Path, *, encoding: str | None = None) -> str:
    """Read a text file: UTF-8 with or without byte-order mark, UTF-16 with one, otherwise Windows-1252."""
    path = Path(path)
    data = unpacked(read_bytes(path), path.name)
    if encoding is not None:
        try:
            return data.decode(encoding)
        except (UnicodeDecodeError, LookupError) as error:
            raise InvalidFile(
                sentence("{name} is not text in {encoding}: {why}.", name=path.name, encoding=encoding, why=str(error)),
                hint="save it as UTF-8.",
            ) from error
    return decode(data, path.name)


def read_bytes(path: str | Path) -> bytes:
    """Read a file, with an error in the user's words."""
    return read_plain(Path(path))


def decode(data: bytes, name: str) -> str:
    """Decode bytes as UTF-8 or UTF-16 (byte-order mark), otherwise Windows-1252."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        try:
            return data.decode("utf-16")
        except UnicodeDecodeError as error:
            raise InvalidFile(
                sentence("{name} begins like UTF-16 text, but is not: {reason}.", name=name, reason=error.reason),
                hint="save it as UTF-8.",
            ) from error
    if b"\x00" in data[:4096]:
        raise InvalidFile(
            sentence("{name} is not a text file.", name=name), hint="is it the right file? Save it as text."
        )
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("cp1252", errors="replace")


def read_source(source: Any, *, name: str = "the frame", delimiter: str | None = None) -> Source:
    """Turn a CSV or Parquet file, or a pandas, polars or Arrow frame, into a `Source`.

    All columns of a CSV file stay text until they are asked for as numbers.
    """
    if isinstance(source, Source):
        return source
    if isinstance(source, (str, Path)):
        return _read_file(Path(source), delimiter)
    if isinstance(source, pl.LazyFrame):
        source = source.collect()
    if isinstance(source, pl.DataFrame):
        return Source(source, name)
    try:
        frame = pl.DataFrame(with_index(source), strict=False)
    except Exception as error:
        raise InvalidInput(
            f"Cannot read a {type(source).__name__} as a table of rows and columns.",
            hint="give a path, a pandas, polars or Arrow frame, or a dict of columns.",
        ) from error
    return Source(frame, name)


def with_index(frame: Any) -> Any:
    """A pandas frame with the named levels of its index as columns, for grouping puts codes there; others unchanged."""
    if not hasattr(frame, "iloc"):
        return frame
    whole = frame if hasattr(frame, "columns") else frame.to_frame()
    named = [name for name in whole.index.names if isinstance(name, str) and name not in whole.columns]
    return whole.reset_index(level=named) if named else whole


def _read_file(path: Path, delimiter: str | None) -> Source:
    if path.suffix.lower() in {".parquet", ".pq"}:
        require_parquet(path, in_memory=True)
        with refused_as(NO_PARQUET, "a CSV file must not end in .parquet.", name=path.name):
            return Source(_from_parquet(path), path.name)
    return parse_csv(read_text(path), path.name, delimiter=delimiter)


def _parquet() -> Any:
    try:
        from pyarrow import parquet
    except ImportError:
        raise MissingExtra("Reading Parquet files", "arrow") from None
    return parquet


def _from_parquet(path: Path) -> pl.DataFrame:
    """The rows of a Parquet file; Arrow's reader refuses a damaged file where others end the process."""
    parquet = _parquet()

    frame = pl.from_arrow(parquet.ParquetFile(path).read())
    assert isinstance(frame, pl.DataFrame)
    return frame


def require_parquet(path: Path, *, in_memory: bool = False) -> None:
    """Check that a file is Parquet, and that what it announces can be held; its data are not read."""
    parquet = _parquet()

    read_bytes_probe(path)
    with refused_as(NO_PARQUET, "a CSV file must not end in .parquet.", name=path.name):
        about = parquet.read_metadata(path)
    require_plausible_rows(path.name, about.num_rows, about.num_columns, path.stat().st_size, in_memory=in_memory)


def read_bytes_probe(path: Path) -> None:
    """Raise the usual errors for a file that cannot be opened, without reading it."""
    if not is_there(path) or kind_of(path) or not os.access(path, os.R_OK):
        read_bytes(path)
    note_input(path)


def parse_csv(text: str, name: str, *, delimiter: str | None = None) -> Source:
    """Parse delimited text with a header line; every column stays text."""
    if not text.strip():
        raise InvalidFile(sentence("{name} is empty.", name=name), hint="is it the right file, and complete?")
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    delimiter = delimiter or guess_delimiter(text)
    if len(delimiter) != 1 or not delimiter.isascii() or delimiter in '"\n':
        raise InvalidFile(f"{delimiter!r} cannot delimit the columns of {name}.", hint="it is one character, as ; is.")
    try:
        header = [column.strip() for column in next(csv.reader(io.StringIO(text), delimiter=delimiter))]
    except csv.Error as error:
        raise InvalidFile(
            sentence("The first line of {name} cannot be read: {why}.", name=name, why=str(error)),
            hint="are quotes closed?",
        ) from error
    repeated = [column for column, times in Counter(header).items() if times > 1]
    if repeated:
        raise InvalidFile(
            sentence("{name} has two columns named {column!r}.", name=name, column=repeated[0]),
            hint="rename one of them.",
        )
    try:
        frame = pl.read_csv(
            text.encode(), separator=delimiter, infer_schema=False, has_header=True, new_columns=header,
            raise_if_empty=False,
        )  # fmt: skip
    except pl.exceptions.PolarsError as error:
        first = str(error).splitlines()[0]
        raise InvalidFile(
            sentence(
                "{name} cannot be read as text delimited by {delimiter!r}: {first}",
                name=name,
                delimiter=delimiter,
                first=first,
            ),
            hint=sentence("does every line have {many} entries, and are quotes closed?", many=len(header)),
        ) from error
    if frame.height == 0:
        raise InvalidFile(sentence("{name} has a header line but no rows.", name=name), hint="is it complete?")
    return Source(frame, name, first_line=2)


def guess_delimiter(text: str) -> str:
    """The delimiter that splits the first lines into the most, equally many, entries."""
    lines = text.splitlines()[:20]
    best, best_score = ",", 0
    for candidate in DELIMITERS:
        try:
            widths = [len(row) for row in csv.reader(lines, delimiter=candidate)]
        except csv.Error:  # an entry of absurd length
            continue
        common = max(set(widths), key=widths.count, default=0)
        score = (common - 1) * widths.count(common) if common > 1 else 0
        if score > best_score:
            best, best_score = candidate, score
    return best
