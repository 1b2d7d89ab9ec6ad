"""A sheet or CSV file as it arrives: codes down the side and across the top, rows of headings, merged cells, notes.

What is understood of it is shown before anything is done with it: where the numbers stand, which labels go with them,
what was taken for a note, and what marks in place of numbers mean. Whatever is in doubt is an error that names the
cell, and can be settled by saying where the numbers stand, how many rows are headings and how many columns are labels.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tablesafe.core.errors import InvalidFile
from tablesafe.core.hierarchy import TOTAL
from tablesafe.core.totals import looks_like_total
from tablesafe.files.read import MARKS, Source, guess_delimiter, read_text
from tablesafe.io.layout import TEXT_ENDINGS, Crosstab, corners
from tablesafe.io.workbook import load_grid

ALL = "*"
"""Instead of the name of a sheet: all of them, each a code of the dimension `sheet`."""
ZEROS = ("-", "\N{EN DASH}", "\N{EM DASH}")
"""What stands for nothing: zero, as tables of statistical offices are printed."""
GROUPED = r"^[+-]?\d{1,3}(?:[ \u00a0\u2009\u202f'\u2019]\d{3})+(?:[.,]\d+)?$"
"""A number in text, with its thousands set apart."""
YEARS = 1800, 2200
"""A first row of nothing but whole numbers between these is a heading of years."""
SHOWN = 6
"""Codes and notes that a preview tells."""
EXCERPT = 14, 10
"""Rows and columns of a sheet that a preview shows."""
MOST_TEXT = 4 << 20
"""Bytes of a text file that may be a printed table: what is longer is a list."""
DECIMAL_COMMA = r"^[+-]?(?:\d{1,3}(?:\.\d{3})+|\d+),\d+$"
"""A number with a decimal comma, in a file whose columns no comma separates."""

Grid = NDArray[np.object_]
Index = NDArray[np.intp]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Understood:
    """A sheet as rows of one cell each, and what was made of it."""

    rows: Source = field(repr=False)
    dimensions: tuple[str, ...]
    """First those of the labels down the side, then those of the headings across the top."""
    lines: tuple[str, ...] = field(repr=False)
    excerpt: tuple[tuple[tuple[str, str], ...], ...] = field(repr=False, default=())
    """The first rows of the sheet: each cell's text, and what it was taken for: heading, label, number or note."""

    @property
    def frame(self) -> pl.DataFrame:
        """One row per cell: its codes and `value`."""
        return self.rows.frame

    def __str__(self) -> str:
        return "\n".join(self.lines)


def read_crosstab(
    path: str | Path,
    *,
    sheet: str | None = None,
    area: str | None = None,
    header_rows: int | None = None,
    label_columns: int | None = None,
    delimiter: str | None = None,
) -> Understood:
    """Read a sheet, or a CSV file, with codes down its side and across its top, and say what was understood.

    `print` shows the preview, `frame` has one row per cell, for `Table.from_cells`. Without `area` ("A4:H30"),
    `header_rows` and `label_columns` these are found out. Blank labels mean the same as before, or the total of a
    group; a dash is zero, and marks such as ".." are cells that are not there. `sheet="*"` reads all sheets that hold
    numbers, each a code of the dimension `sheet`.
    """
    layout = Crosstab(area=area, header_rows=header_rows, label_columns=label_columns)
    return understand(Path(path), sheet, layout, delimiter)


def understand(path: Path, sheet: str | None, layout: Crosstab, delimiter: str | None = None) -> Understood:
    """What is in a sheet that is laid out so."""
    if path.suffix.lower() in TEXT_ENDINGS:
        return _Sheet(path.name, "", _text_grid(path, delimiter), layout).understood()
    grids = load_grid(path, sheet)
    if sheet != ALL:
        ((name, grid),) = grids
        return _Sheet(path.name, name, grid, layout).understood()
    some = [_Sheet(path.name, name, grid, layout) for name, grid in grids]
    return _stacked(path.name, [(each.name, each.understood()) for each in some if each.numbers.any()])


def is_crosstab(path: Path, sheet: str | None = None) -> bool:
    """Whether a sheet is no plain list, whose first row names every column."""
    if sheet == ALL:
        return True
    if path.suffix.lower() in TEXT_ENDINGS:
        return _is_printed(path)
    ((_, grid),) = load_grid(path, sheet)
    filled = grid != None  # noqa: E711 - elementwise
    if not filled.any():
        return False
    names = _first_row(grid, filled)
    return None in names or len(set(names)) < len(names) or any(_is_number(name) for name in names)


def _first_row(grid: Grid, filled: Mask) -> Grid:
    """What stands in the first row that is not empty, over every column that is not."""
    first = int(np.flatnonzero(filled.any(axis=1))[0])
    names: Grid = grid[first][filled.any(axis=0)]
    return names


def _is_printed(path: Path) -> bool:
    """Whether a text file is a printed table: its first row leaves columns without a name, and the rest is understood.

    Numbers in the first row alone say nothing: a list may lack its names. A cell that is there twice is for the reader
    of printed tables to tell, in the codes of that cell.
    """
    if not path.is_file() or path.stat().st_size > MOST_TEXT:
        return False
    try:
        grid = _text_grid(path, None)
        filled = grid != None  # noqa: E711 - elementwise
        return None in _first_row(grid, filled) and bool(understand(path, None, Crosstab()).dimensions)
    except _Twice:
        return True
    except (InvalidFile, IndexError):
        return False


def _text_grid(path: Path, delimiter: str | None) -> Grid:
    """The cells of a text file, as those of a sheet."""
    text = read_text(path)
    delimiter = delimiter or guess_delimiter(text)
    try:
        rows = list(csv.reader(io.StringIO(text), delimiter=delimiter))
    except csv.Error as error:
        raise InvalidFile(f"{path.name} cannot be read: {error}.", hint="are quotes closed?") from error
    width = max((len(row) for row in rows), default=0)
    cells = pl.Series([cell for row in rows for cell in (*row, *[""] * (width - len(row)))], dtype=pl.String)
    cells = cells.str.strip_chars()
    if delimiter != ",":
        plain = cells.str.replace_all(".", "", literal=True).str.replace(",", ".", literal=True)
        cells = pl.select(pl.when(cells.str.contains(DECIMAL_COMMA)).then(plain).otherwise(cells)).to_series()
    grid = np.array(cells.set(cells == "", None).to_list(), dtype=np.object_)
    return grid.reshape(len(rows), width)


def _is_number(text: str) -> bool:
    return bool(pl.Series([text]).str.strip_chars().cast(pl.Float64, strict=False).is_not_null()[0])


def _stacked(file: str, sheets: Sequence[tuple[str, Understood]]) -> Understood:
    """Several sheets of the same dimensions, one below the other."""
    if not sheets:
        raise InvalidFile(f"No sheet of {file} holds numbers.", hint="is it the right file?")
    first, found = sheets[0]
    for name, other in sheets[1:]:
        if other.dimensions != found.dimensions:
            raise InvalidFile(
                f"Sheet {name!r} of {file} has the dimensions {', '.join(other.dimensions)}, but sheet {first!r} has "
                f"{', '.join(found.dimensions)}.",
                hint="name one sheet, or give them the same headings.",
            )
    frames = [each.frame.select(pl.lit(name).alias("sheet"), pl.all()) for name, each in sheets]
    places = tuple(place for _, each in sheets for place in each.rows.places or ())
    lines = tuple(line for _, each in sheets for line in each.lines)
    return Understood(Source(pl.concat(frames), file, places=places), ("sheet", *found.dimensions), lines)


class _Twice(InvalidFile):
    """A printed table is understood, but two of its numbers are of the same cell."""


class _Sheet:
    """One sheet while it is being understood. Rows and columns are those of the grid, which begins at A1."""

    def __init__(self, file: str, name: str, grid: Grid, layout: Crosstab) -> None:
        self.file, self.name, self.layout = file, name, layout
        self.grid = grid
        flat = pl.Series(grid.ravel().tolist(), dtype=pl.String)
        number = flat.cast(pl.Float64, strict=False)
        grouped = flat.str.contains(GROUPED)
        bare = flat.str.replace_all(r"[ \u00a0\u2009\u202f'\u2019]", "").str.replace(",", ".", literal=True)
        number = pl.select(pl.when(grouped).then(bare.cast(pl.Float64, strict=False)).otherwise(number)).to_series()
        self.number = number.to_numpy().astype(np.float64).reshape(grid.shape)
        self.numbers: Mask = np.isfinite(self.number)
        self.zeros: Mask = flat.is_in(ZEROS).fill_null(False).to_numpy().reshape(grid.shape)
        self.absent: Mask = flat.is_in(MARKS).fill_null(False).to_numpy().reshape(grid.shape)
        self.filled: Mask = flat.is_not_null().to_numpy().reshape(grid.shape)

    def understood(self) -> Understood:
        """Find the parts of the table and put them together."""
        top, left, bottom, right = self._area()
        labels, columns = self._sides(top, left, bottom, right)
        header, body = self._heights(top, bottom, labels, columns)
        self._require_numbers(body, columns)
        down, down_names, down_lines = self._down(labels, header, body)
        across, across_names, constant = self._across(labels, header, columns, down_lines)
        names = _distinct([*down_names, *across_names])
        rows, cols = np.nonzero((self.numbers | self.zeros)[np.ix_(body, columns)])
        at_row, at_column = body[rows], columns[cols]
        value = np.where(self.numbers[at_row, at_column], self.number[at_row, at_column], 0.0)
        codes = [down[rows, i] for i in range(down.shape[1])] + [across[cols, i] for i in range(across.shape[1])]
        frame = pl.DataFrame(
            {name: pl.Series(code.tolist(), dtype=pl.String) for name, code in zip(names, codes, strict=True)}
            | {"value": value}
        )
        places = tuple(self._place(r, c) for r, c in zip(at_row.tolist(), at_column.tolist(), strict=True))
        self._require_different(frame, names, places)
        marked = self.absent[np.ix_(body, columns)]
        without = tuple(
            f"{_address(body[row], columns[at])} ({self.grid[body[row], columns[at]]})"
            for row, at in np.argwhere(marked)
        )
        source = Source(frame, self.file, places=places, without=without)
        lines = self._lines(frame, names, (header, body, labels, columns), down_lines, constant)
        return Understood(source, tuple(names), tuple(lines), self._excerpt(header, body, labels, columns))

    def _excerpt(
        self, header: Index, body: Index, labels: Index, columns: Index
    ) -> tuple[tuple[tuple[str, str], ...], ...]:
        """The beginning of the sheet, with what each cell was taken for."""
        roles = np.full(self.grid.shape, "note", dtype=object)
        for rows, cols, role in ((header, columns, "heading"), (header, labels, "heading"), (body, labels, "label")):
            roles[np.ix_(rows, cols)] = role
        roles[np.ix_(body, columns)] = "number"
        down, across = EXCERPT
        return tuple(
            tuple((str(text or ""), str(role)) for text, role in zip(cells[:across], row[:across], strict=True))
            for cells, row in zip(self.grid[:down], roles[:down], strict=True)
        )

    # -- where things are ------------------------------------------------------------------------------------------

    def _area(self) -> tuple[int, int, int, int]:
        if self.layout.area is None:
            return 0, 0, self.grid.shape[0] - 1, self.grid.shape[1] - 1
        top, left, bottom, right = corners(self.layout.area)
        if top >= self.grid.shape[0] or left >= self.grid.shape[1]:
            raise self._error(f"nothing stands in {self.layout.area}.", "say where the table is.", "area")
        return top, left, min(bottom, self.grid.shape[0] - 1), min(right, self.grid.shape[1] - 1)

    def _sides(self, top: int, left: int, bottom: int, right: int) -> tuple[Index, Index]:
        """Columns with labels, and columns with numbers."""
        part = slice(top, bottom + 1), slice(left, right + 1)
        numbers = self.numbers[part].sum(axis=0)
        numbered = self.numbers[part].any(axis=1, keepdims=True)
        texts = ((self.filled & ~self.numbers & ~self.zeros & ~self.absent)[part] & numbered).sum(axis=0)
        used = np.flatnonzero(self.filled[part].any(axis=0))
        if not self.numbers[part].any():
            raise self._error("no number stands in it.", "is it the right sheet?", "sheet")
        count = self.layout.label_columns
        if count is None:
            mostly = np.flatnonzero(numbers[used] > texts[used])
            first = int(mostly[0]) if len(mostly) else len(used)
            count = max(1, first)
        if count >= len(used):
            raise self._error("no column is left for the numbers.", "say how many columns are labels.", "label_columns")
        labels, rest = used[:count], used[count:]
        return labels + left, rest[numbers[rest] > 0] + left

    def _heights(self, top: int, bottom: int, labels: Index, columns: Index) -> tuple[Index, Index]:
        """Rows of headings, and rows of numbers."""
        across = np.arange(top, bottom + 1)
        holds = (self.numbers | self.zeros | self.absent)[np.ix_(across, columns)].any(axis=1)
        labelled = self.filled[np.ix_(across, labels)].any(axis=1)
        numbered = self.numbers[np.ix_(across, columns)].any(axis=1)
        start = int(np.flatnonzero(numbered & labelled)[0]) if (numbered & labelled).any() else -1
        if self.layout.header_rows is not None:
            heading = self.filled[np.ix_(across, columns)].any(axis=1)
            first = int(np.flatnonzero(heading)[0])
            header = across[first : first + self.layout.header_rows]
            start = first + self.layout.header_rows
        else:
            if start < 0:
                raise self._error("no row has both a label and a number.", "say where the table is.", "area")
            if self._are_years(start + top, columns) and not self._are_years(start + top + 1, columns):
                start += 1
            header = self._headings(across, start, labels, columns)
        whole: Mask = np.asarray((holds & labelled) | numbered)
        body = across[start:][whole[start:]]
        if not len(header) or not len(body):
            raise self._error("no row of headings stands above the numbers.", "say how many rows are.", "header_rows")
        return header, body

    def _are_years(self, row: int, columns: Index) -> bool:
        """Whether everything in a row is a year: if so only in the first row of numbers, that is a heading."""
        if row >= len(self.grid):
            return False
        given = self.number[row, columns][self.filled[row, columns]]
        return len(given) > 0 and bool(((given >= YEARS[0]) & (given <= YEARS[1]) & (given == np.floor(given))).all())

    def _headings(self, across: Index, start: int, labels: Index, columns: Index) -> Index:
        """Rows right above the numbers, as far as something stands in the columns of numbers."""
        over: Mask = np.asarray(self.filled[np.ix_(across, columns)].any(axis=1))
        first = start
        while first > 0 and (over[first - 1] or (first == start and self.filled[across[first - 1], labels].any())):
            first -= 1
        found = across[first:start]
        return found if over[first:start].any() else found[:0]

    def _require_numbers(self, body: Index, columns: Index) -> None:
        known = self.numbers | self.zeros | self.absent | ~self.filled
        wrong = np.argwhere(~known[np.ix_(body, columns)])
        if len(wrong):
            row, column = body[wrong[0][0]], columns[wrong[0][1]]
            raise self._error(
                f"{self.grid[row, column]!r} is no number.",
                "put a number there, or one of the marks " + " ".join((*ZEROS[:1], *MARKS[:5])) + ".",
                "area",
                (row, column),
            )

    # -- what they are called --------------------------------------------------------------------------------------

    def _down(self, labels: Index, header: Index, body: Index) -> tuple[Grid, list[str], list[tuple[int, int]]]:
        """The labels of every row, the names of their dimensions, and the cells that these stand in."""
        known = labels[self.filled[np.ix_(body, labels)].any(axis=0)]
        filled = self._fill(self.grid[np.ix_(body, known)], lambda i, k: (int(body[i]), int(known[k])))
        names, named = [], []
        for number, column in enumerate(known.tolist(), 1):
            rows = header[self.filled[header, column]]
            names.append(str(self.grid[rows[-1], column]) if len(rows) else "rows" if number == 1 else f"rows {number}")
            named.extend([(int(rows[-1]), column)] if len(rows) else [])
        return filled, names, named

    def _across(
        self, labels: Index, header: Index, columns: Index, named: list[tuple[int, int]]
    ) -> tuple[Grid, list[str], list[str]]:
        """The headings of every column, the names of their dimensions, and what is said of all columns."""
        some = header[self.filled[np.ix_(header, columns)].any(axis=1)]
        constant = [row for row in some.tolist() if len(set(self.grid[row, columns]) - {None}) == 1 and len(some) > 1]
        if len(columns) > 1 and len(some) - len(constant) == 0:
            constant = constant[:-1]
        kept = np.array([row for row in some.tolist() if row not in constant], dtype=np.intp)
        filled = self._fill(self.grid[np.ix_(kept, columns)].T, lambda i, k: (int(kept[k]), int(columns[i])))
        names = []
        for number, row in enumerate(kept.tolist(), 1):
            beside = [int(c) for c in labels[self.filled[row, labels]] if (row, int(c)) not in named]
            names.append(
                str(self.grid[row, beside[-1]]) if beside else "columns" if number == 1 else f"columns {number}"
            )
        if len(columns) == 1:
            return filled[:, :0], [], [str(self.grid[row, columns[0]]) for row in some.tolist()]
        said = [str(next(text for text in self.grid[row, columns] if text is not None)) for row in constant]
        return filled, names, said

    def _fill(self, labels: Grid, cell: Callable[[int, int], tuple[int, int]]) -> Grid:
        """Labels line by line, the outer ones first, where blank means the same as before, or the total of a group.

        A line with an outer label and without the inner ones is the total of these; one with inner labels only belongs
        to the outer label before it.
        """
        out = labels.copy()
        filled = labels != None  # noqa: E711 - elementwise
        for k in range(labels.shape[1]):
            outer, inner = filled[:, :k].any(axis=1), filled[:, k + 1 :].any(axis=1)
            last: str | None = None
            total = next((code for code in labels[filled[:, k], k] if looks_like_total(code)), TOTAL)
            for i in range(len(labels)):
                if filled[i, k]:
                    last = labels[i, k]
                elif outer[i] and not inner[i]:
                    out[i, k] = total
                elif inner[i] and not outer[i] and last is not None:
                    out[i, k] = last
                else:
                    raise self._error(
                        "a label is missing.", "fill it in, or say where the table is.", "area", cell(i, k)
                    )
        return out

    def _require_different(self, frame: pl.DataFrame, names: Sequence[str], places: Sequence[str]) -> None:
        again = frame.select(names).is_duplicated() if names else pl.Series([frame.height > 1])
        if again.any():
            first = int(again.arg_max() or 0)
            same = pl.all_horizontal(pl.col(name) == frame[name][first] for name in names) if names else pl.lit(True)
            second = frame.with_row_index().filter(same)["index"][1]
            codes = ", ".join(f"{name} {frame[name][first]!r}" for name in names)
            raise _Twice(
                f"{self.file}: two numbers have the same codes ({codes}): {places[first]} and {places[second]}.",
                hint="give each row and each column its own code, or say how many rows are headings and how many "
                "columns are labels; in a list of records, the first line must name every column.",
                about=("source", "header_rows"),
            )

    # -- what is told ----------------------------------------------------------------------------------------------

    def _lines(
        self, frame: pl.DataFrame, names: Sequence[str], parts: tuple[Index, Index, Index, Index],
        named: list[tuple[int, int]], constant: Sequence[str],
    ) -> list[str]:  # fmt: skip
        header, body, labels, columns = parts
        where = f"{_address(body[0], columns[0])}:{_address(body[-1], columns[-1])}"
        lines = [f"{self._named()}: {frame.height:,} cells in {where}."]
        width = max((len(name) for name in names), default=0)
        for name in names:
            codes = frame[name].unique(maintain_order=True).to_list()
            more = f" … ({len(codes):,})" if len(codes) > SHOWN else ""
            lines.append(f"  {name:<{width}}  {', '.join(codes[:SHOWN])}{more}")
        lines.extend(f"  said of all numbers: {text}" for text in constant)
        inside = self.zeros[np.ix_(body, columns)]
        if inside.any():
            lines.append(f"  {int(inside.sum()):,} cells with a dash are 0.")
        gone = self.absent[np.ix_(body, columns)] | ~self.filled[np.ix_(body, columns)]
        if gone.any():
            lines.append(
                f"  {int(gone.sum()):,} cells are empty or hold a mark such as '..', and are not in the table."
            )
        used = np.zeros(self.grid.shape, np.bool_)
        used[np.ix_(np.concatenate([header, body]), np.concatenate([labels, columns]))] = True
        left = np.argwhere(self.filled & ~used)
        notes = [f"{_address(r, c)} {str(self.grid[r, c])[:40]!r}" for r, c in left[:SHOWN].tolist()]
        if notes:
            more = f" … ({len(left):,})" if len(left) > SHOWN else ""
            lines.append(f"  left out as notes: {'; '.join(notes)}{more}")
        return lines

    def _named(self) -> str:
        return f"Sheet {self.name!r} of {self.file}" if self.name else self.file

    def _place(self, row: int, column: int) -> str:
        if self.name:
            return f"cell {_address(row, column)} of sheet {self.name!r}"
        return f"line {row + 1}, column {column + 1} of {self.file}"

    def _error(self, what: str, hint: str, key: str, cell: tuple[int, int] | None = None) -> InvalidFile:
        sheet = [f"sheet {self.name!r}"] if self.name else []
        at = [] if cell is None else [f"cell {_address(*cell)}" if self.name else f"line {cell[0] + 1}"]
        return InvalidFile(f"{', '.join([self.file, *sheet, *at])}: {what}", hint=hint, about=("source", key))


def _distinct(names: Sequence[str]) -> list[str]:
    """Names of columns, each once, and none called `value`."""
    found: list[str] = []
    for name in (" ".join(each.split()) for each in names):
        new, number = name, 2
        while new in found or new == "value":
            new, number = f"{name} {number}", number + 1
        found.append(new)
    return found


def _address(row: int, column: int) -> str:
    """A cell as spreadsheets call it."""
    letters, rest = "", int(column) + 1
    while rest:
        rest, letter = divmod(rest - 1, 26)
        letters = chr(65 + letter) + letters
    return f"{letters}{row + 1}"
