"""Perturbation tables of the cell key method, as τ-ARGUS and the R package ptable write them.

Text with a header line, one line per change, separated by semicolons, commas, tabs or blanks:

| column | meaning |
|---|---|
| `i` | the true count; the last is for all larger ones |
| `j` | the result |
| `v` (older: `diff`) | the change, j − i |
| `p` | its probability |
| `p_int_lb` (`kum_p_u`), `p_int_ub` (`kum_p_o`) | the interval of cell keys that select it |
| `type` | of magnitudes: `all`, `even` and `odd` numbers of contributors, `small_cells` |

τ-ARGUS needs `i;j;p;v;p_int_ub`, and `type` after them for magnitudes. Either `j` or `v`, and either `p` or `p_int_ub`,
may be missing: the other tells. Other columns are passed over. Where both are there they must agree, and the cell key
is looked up by `p_int_ub`, as those programs do.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tablesafe.core.equations import Floats
from tablesafe.core.errors import InvalidFile, InvalidInput
from tablesafe.files.read import Source, guess_delimiter, parse_csv, read_text
from tablesafe.files.write import write_text
from tablesafe.io.text import as_text
from tablesafe.methods.cell_key.table import TOLERANCE, PerturbationTable

Places: TypeAlias = NDArray[np.intp]

ALL = "all"
KINDS = (ALL, "even", "odd", "small_cells")
_NAMES = {
    "i": "i", "j": "j", "p": "p", "v": "v", "diff": "v", "p_int_lb": "lower", "kum_p_u": "lower", "lb": "lower",
    "p_int_ub": "upper", "kum_p_o": "upper", "ub": "upper", "type": "type",
}  # fmt: skip


def read_perturbation(path: str | Path, *, kind: str | None = None) -> PerturbationTable:
    """Read a perturbation table; of a file that holds several kinds (`even`, `odd`, …), the one that is asked for."""
    tables = read_perturbations(path)
    if len(tables) == 1:
        return next(iter(tables.values()))
    if kind in tables:
        return tables[kind]
    held = ", ".join(map(repr, tables))
    if kind is None:
        raise InvalidFile(f"{Path(path).name} holds several perturbation tables: {held}.", hint="say which kind.")
    raise InvalidFile(f"{Path(path).name} holds no perturbation table of kind {kind!r}: it has {held}.")


def read_perturbations(path: str | Path) -> dict[str, PerturbationTable]:
    """Read every perturbation table of a file, by its kind."""
    source = _columns(Path(path))
    kinds = source.text("type").fill_null(ALL) if "type" in source.frame.columns else None
    if kinds is None:
        return {ALL: _table(source, np.arange(source.frame.height))}
    unknown = np.flatnonzero(~kinds.is_in(list(KINDS)).to_numpy())
    if unknown.size:
        raise InvalidFile(
            f"{source.where(int(unknown[0]))}: there is no kind {kinds[int(unknown[0])]!r} of perturbation table.",
            hint=f"it is one of {', '.join(KINDS)}.",
        )
    return {
        str(kind): _table(source, np.flatnonzero((kinds == kind).to_numpy()))
        for kind in kinds.unique(maintain_order=True)
    }


def _columns(path: Path) -> Source:
    """The lines of the file under our own names of the columns; all as numbers but the kind."""
    text = read_text(path).replace("\r\n", "\n").rstrip("\n \t") + "\n"
    if not re.search(r"[;,\t|]", text.partition("\n")[0]):  # written by R's write.table: separated by blanks
        text = re.sub(r"[ \t]+(?=\S)", ";", re.sub(r"(?m)^[ \t]+", "", text))
    source = parse_csv(text, path.name, delimiter=guess_delimiter(text))
    named: dict[str, str] = {}
    for column in source.frame.columns:
        ours = _NAMES.get(column.strip().strip('"').lower())
        if ours is not None and ours not in named.values():
            named[column] = ours
    found = set(named.values())
    if "i" not in found or not found & {"j", "v"} or not found & {"p", "upper"}:
        raise InvalidFile(
            f"{path.name} is no perturbation table: its columns are {', '.join(map(repr, source.frame.columns))}.",
            hint="it needs the columns i, j (or v), and p (or p_int_ub), as in 'i;j;p;v;p_int_ub'.",
        )
    return Source(source.frame.select(list(named)).rename(named), path.name, source.first_line)


def _table(source: Source, lines: Places) -> PerturbationTable:
    """One kind's lines as a table, once nothing is wrong with them."""
    count, change = _numbers(source, "i")[lines], _changes(source)[lines]
    again = np.flatnonzero(np.diff(count) < 0)
    if again.size:
        raise _wrong(source, lines[again[0] + 1], "the counts must rise from line to line", "sort the lines by i.")
    negative = np.flatnonzero((count < 0) | (count + change < -TOLERANCE))
    if negative.size:
        raise _wrong(source, lines[negative[0]], "the result is negative", "no count may become negative.")
    moved = np.flatnonzero((count == 0) & (change != 0))
    if moved.size:
        raise _wrong(source, lines[moved[0]], "a count of 0 is changed", "zeros must stay zero.")
    starts = np.flatnonzero(np.diff(count, prepend=-np.inf) > 0)
    upper = _upper(source, lines, starts, count)
    if count[0] > 0:  # zeros stay zero
        count, change, upper = (np.insert(column, 0, first) for column, first in ((count, 0), (change, 0), (upper, 1)))
        starts = np.insert(starts + 1, 0, 0)
    try:
        return PerturbationTable(count[starts], np.append(starts, len(count)), change, upper)
    except InvalidInput as error:
        raise InvalidFile(error.told, hint=error.advice, where=source.name) from error


def _numbers(source: Source, column: str) -> Floats:
    written = {"upper": "p_int_ub", "lower": "p_int_lb"}.get(column, column)
    try:
        return Source(source.frame.rename({column: written}), source.name, source.first_line).numbers(written)
    except InvalidInput as error:
        raise InvalidFile(error.told, hint=error.advice, about=error.about) from error


def _changes(source: Source) -> Floats:
    columns = source.frame.columns
    if "v" not in columns:
        return np.asarray(_numbers(source, "j") - _numbers(source, "i"))
    change = _numbers(source, "v")
    if "j" in columns:
        off = np.flatnonzero(np.abs(_numbers(source, "j") - _numbers(source, "i") - change) > TOLERANCE)
        if off.size:
            raise _wrong(source, off[0], "the change v is not j − i", "correct the line.")
    return change


def _upper(source: Source, lines: Places, starts: Places, count: Floats) -> Floats:
    """The upper ends of the intervals, checked against the probabilities and the lower ends where they are given."""
    held = [name for name in ("p", "lower", "upper") if name in source.frame.columns]
    given: dict[str, Floats] = {name: _numbers(source, name)[lines] for name in held}
    ends, chance = np.append(starts[1:], len(lines)) - 1, given.get("p")
    if chance is not None:
        if (chance < 0).any():
            raise _wrong(source, lines[int(np.argmax(chance < 0))], "a probability is negative", "correct it.")
        _require_one(source, lines, starts, count, np.add.reduceat(chance, starts))
        running = np.cumsum(chance)
        upper = given.get("upper", running - np.repeat(running[starts] - chance[starts], ends - starts + 1))
    else:
        upper = given["upper"]
    below = np.insert(upper[:-1], 0, 0.0)
    below[starts] = 0.0
    _refuse_gaps(source, lines, given, below, upper)
    _require_one(source, lines, starts, count, upper[ends])
    return _closed(upper, starts, ends)


def _require_one(source: Source, lines: Places, starts: Places, count: Floats, sums: Floats) -> None:
    """The probabilities of each count add up to one."""
    off = np.flatnonzero(np.abs(sums - 1) > TOLERANCE)
    if off.size:
        row = int(off[0])
        first, last = lines[starts[row]], lines[np.append(starts[1:], len(lines))[row] - 1]
        raise InvalidFile(
            f"{source.where(int(first))} to {int(last) + (source.first_line or 1)}: the probabilities for a count of "
            f"{count[starts[row]]:g} add up to {sums[row]:.8g}, not to 1.",
            hint=f"every row must add up to 1 within {TOLERANCE:g}.",
        )


def _refuse_gaps(source: Source, lines: Places, given: Mapping[str, Floats], below: Floats, upper: Floats) -> None:
    """Each interval begins where the one before ends, does not end before it begins, and is as wide as it is likely."""
    gap = np.flatnonzero(np.abs(given.get("lower", below) - below) > TOLERANCE)
    if gap.size:
        raise _wrong(source, lines[gap[0]], "the interval does not begin where the one before it ends", "correct it.")
    fall = np.flatnonzero(upper < below - TOLERANCE)
    if fall.size:
        raise _wrong(source, lines[fall[0]], "the upper end of the interval lies below the one before", "correct it.")
    wide = upper - below
    off = np.flatnonzero(np.abs(given.get("p", wide) - wide) > TOLERANCE)
    if off.size:
        what = f"the interval is {wide[off[0]]:.8g} wide, but its probability is {given['p'][off[0]]:.8g}"
        raise _wrong(source, lines[off[0]], what, "correct p or p_int_ub.")


def _closed(upper: Floats, starts: Places, ends: Places) -> Floats:
    """Intervals that end at 1 exactly, and never before they begin."""
    closed = np.clip(upper, 0.0, 1.0)
    for first, last in zip(starts.tolist(), ends.tolist(), strict=True):
        closed[first : last + 1] = np.maximum.accumulate(closed[first : last + 1])
    closed[ends] = 1.0
    return closed


def _wrong(source: Source, line: int | np.integer[Any], what: str, hint: str) -> InvalidFile:
    return InvalidFile(f"{source.where(int(line))}: {what}.", hint=hint)


def write_perturbation(table: PerturbationTable | Mapping[str, PerturbationTable], path: str | Path) -> None:
    """Write a perturbation table, or several by kind, as τ-ARGUS reads it. A secret of the office.

    Numbers are written in full, so that reading the file gives the same table.
    """
    several = isinstance(table, Mapping)
    tables = dict(table) if isinstance(table, Mapping) else {ALL: table}
    columns = ["i", "j", "p", "v", "p_int_ub", *(["type"] if several else [])]
    lines = [";".join(columns)]
    for kind, one in tables.items():
        frame = one.frame()
        text = pl.DataFrame({name: as_text(frame[name].to_numpy()) for name in ("i", "j", "p", "v", "p_int_ub")})
        ending = f";{kind}" if several else ""
        lines += [";".join(row) + ending for row in text.iter_rows()]
    write_text(path, "\n".join(lines) + "\n")
