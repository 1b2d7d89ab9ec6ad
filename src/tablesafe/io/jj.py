"""JJ files: cells, bounds, levels and equations, as the cell-suppression literature and τ-ARGUS exchange them.

A file holds the line `0`, the number of cells, one line per cell

    id value cost status lower_bound upper_bound lower_level upper_level sliding_level

then the number of equations and one line `rhs k : id (coefficient) …` for each. Ids are any distinct whole numbers;
cells keep the order of the file. The statuses: `u` sensitive, `s` may be suppressed, `z` must be published, `m` is
suppressed already. Coefficients are 1 and −1.

- A right-hand side other than zero becomes a cell of that value, named `rhs 5`, that everyone knows: frozen, with both
  bounds at its value. `write_jj` turns it back into a right-hand side.
- A bound of 1e20 or more is no bound, as in most solvers; infinite bounds are written so.
- Cells withheld by design have no status of their own here: they are written as `m` with cost 0.

Parsing works on whole columns: sixty thousand cells and a million entries take seconds.
"""

from __future__ import annotations

import gzip
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import sparse

from tablesafe.core.equations import Floats, Integers, Mask, to_integers
from tablesafe.core.errors import InvalidFile, InvalidInput, InvalidOption
from tablesafe.core.problem import Problem
from tablesafe.core.sensitivity import Sensitivity
from tablesafe.core.table import Table
from tablesafe.files.limits import unpacked
from tablesafe.files.read import LARGEST_EXACT, decode, read_bytes
from tablesafe.files.write import whole_file
from tablesafe.io.text import as_text

RIGHT_HAND_SIDE = "rhs "
"""How the name of a cell begins that stands for a right-hand side."""
UNBOUNDED = 1e20
"""A bound this large, in absolute value, is no bound."""
FIELDS = ("id", "value", "cost", "status", "lower bound", "upper bound", "lower level", "upper level", "sliding level")
EQUATION = r"^\S+\s+\d+\s*:(?:\s*[+-]?\d+\s*\(\s*[^()\s]+\s*\))*$"


@dataclass(frozen=True, slots=True)
class _Lines:
    """The lines of a file that hold something, and where they stand in it."""

    name: str
    text: pl.Series
    number: Integers

    def part(self, start: int, stop: int) -> _Lines:
        return _Lines(self.name, self.text[start:stop], self.number[start:stop])

    def fail(self, at: int, what: str, hint: str) -> NoReturn:
        raise InvalidFile(f"{self.name}, line {self.number[at]}: {what}.", hint=hint)

    def refuse(self, bad: Mask, what: str, hint: str) -> None:
        """Fail at the first bad line, if there is one; `{}` in `what` becomes its text."""
        if bad.any():
            at = int(np.argmax(bad))
            self.fail(at, what.replace("{}", repr(_short(self.text[at]))), hint)


@dataclass(frozen=True, slots=True)
class _Equations:
    """Entries of all equations, one after the other."""

    lines: _Lines
    rhs: Floats
    row: Integers
    cell: Integers
    coefficient: Integers


def read_jj(path: str | Path) -> Problem:
    """Read a JJ file, plain or compressed (`.gz`); a damaged one is an error that names the line."""
    path = Path(path)
    lines = _read_lines(path)
    cell_lines, equation_lines = _sections(lines)
    ids, status, numbers = _parse_cells(cell_lines)
    equations = _parse_equations(equation_lines, ids)
    constants = np.unique(np.abs(equations.rhs[equations.rhs != 0]))
    matrix, totals = _matrix(equations, constants, len(ids))
    value = np.concatenate([numbers["value"], constants])
    _refuse_unbalanced(equations, matrix, value)
    names = pl.concat([pl.Series(ids).cast(pl.String), RIGHT_HAND_SIDE + as_text(constants)])
    fixed = np.ones(len(constants), np.bool_)
    none = np.zeros(len(constants))
    try:
        table = Table.from_equations(matrix, value, totals=totals, names=names.to_list())
        return Problem(
            table,
            sensitivity=Sensitivity.of(
                np.concatenate([status == "u", ~fixed]),
                np.concatenate([numbers["lower level"], none]),
                np.concatenate([numbers["upper level"], none]),
                np.concatenate([numbers["sliding level"], none]),
            ),
            lower=np.concatenate([numbers["lower bound"], constants]),
            upper=np.concatenate([numbers["upper bound"], constants]),
            cost=np.concatenate([numbers["cost"], none]),
            frozen=np.concatenate([status == "z", fixed]),
            suppressed=np.concatenate([status == "m", ~fixed]),
        )
    except InvalidInput as error:
        raise InvalidFile(f"{path.name}: {error}") from error


def write_jj(problem: Problem, path: str | Path, *, infinity: float = UNBOUNDED) -> None:
    """Write a problem as a JJ file, compressed when the path ends in `.gz`. Confidential.

    Cells named by whole numbers keep them as ids; all others are numbered from 0. `infinity` is written for a bound
    that is infinite: programs that compute with the bounds may want a smaller number.
    """
    path = Path(path)
    text = jj_text(problem, infinity=infinity)
    with whole_file(path) as temporary:
        data = text.encode()
        temporary.write_bytes(gzip.compress(data, mtime=0) if path.suffix.lower() == ".gz" else data)


def jj_text(problem: Problem, *, infinity: float = UNBOUNDED) -> str:
    """The text of a JJ file. Confidential."""
    table = problem.table
    if not infinity > float(np.abs(table.value).max(initial=0.0)):
        raise InvalidOption(f"infinity={infinity:g} must be larger than every value of the table.")
    constant = _constants(problem)
    ids = _ids(table, constant)
    cells = pl.DataFrame(
        {
            "id": ids,
            "value": as_text(table.value),
            "cost": as_text(np.where(problem.withheld, 0.0, problem.cost)),
            "status": pl.Series(_statuses(problem), dtype=pl.String),
            "lower bound": as_text(np.clip(problem.lower, -infinity, infinity)),
            "upper bound": as_text(np.clip(problem.upper, -infinity, infinity)),
            "lower level": as_text(problem.sensitivity.lower),
            "upper level": as_text(problem.sensitivity.upper),
            "sliding level": as_text(problem.sensitivity.sliding),
        }
    ).filter(pl.Series(~constant))
    cell_lines = cells.select(pl.concat_str(pl.all(), separator=" ")).to_series()
    equation_lines = _equation_lines(table, ids, constant)
    return "\n".join(
        ["0", str(len(cell_lines)), *cell_lines.to_list(), str(len(equation_lines)), *equation_lines.to_list(), ""]
    )


# -- reading -----------------------------------------------------------------------------------------------------------


def _read_lines(path: Path) -> _Lines:
    data = unpacked(read_bytes(path), path.name)
    text = pl.Series(decode(data, path.name).split("\n"), dtype=pl.String).str.strip_chars(" \t\r\x1a\ufeff")
    number = np.flatnonzero((text != "").to_numpy())
    lines = _Lines(path.name, text.gather(number), number + 1)
    if len(lines.text) == 0:
        raise InvalidFile(f"{path.name} is empty.", hint="is it the right file, and complete?")
    return lines


def _sections(lines: _Lines) -> tuple[_Lines, _Lines]:
    """The lines of the cells and those of the equations, as many as the file announces."""
    if lines.text[0] != "0":
        lines.fail(
            0, f"a JJ file begins with the line '0', this one with {_short(lines.text[0])!r}", "is it a JJ file?"
        )
    cells = _announced(lines, 1, "cells")
    after = 2 + cells
    if cells == 0:
        lines.fail(1, "the file announces no cells", "a table has at least one cell.")
    if after > len(lines.text):
        lines.fail(1, f"{cells:,} cells are announced, but the file ends sooner", "is the file complete?")
    equations = _announced(lines, after, "equations", f"line {lines.number[1]} announces {cells:,} cells")
    left = len(lines.text) - after - 1
    if left < equations:
        lines.fail(after, f"{equations:,} equations are announced, but {left:,} follow", "is the file complete?")
    if left > equations:
        what = f"the file goes on after the {equations:,} equations that line {lines.number[after]} announces"
        lines.fail(after + 1 + equations, what, "correct the number, or remove the rest.")
    return lines.part(2, after), lines.part(after + 1, len(lines.text))


def _announced(lines: _Lines, at: int, what: str, because: str = "") -> int:
    text = lines.text[at] if at < len(lines.text) else ""
    if not (text.isascii() and text.isdigit() and len(text) <= 12):
        hint = f"is the number of cells right? {because}." if because else "is it a JJ file, and complete?"
        where = min(at, len(lines.text) - 1)
        lines.fail(where, f"the number of {what} should stand here, not {_short(text)!r}", hint)
    return int(text)


def _parse_cells(lines: _Lines) -> tuple[Integers, NDArray[np.str_], dict[str, Floats]]:
    """Ids, statuses and numbers of the cells."""
    fields = lines.text.str.extract_all(r"\S+")
    lines.refuse(
        (fields.list.len() != len(FIELDS)).to_numpy(),
        f"a cell has {len(FIELDS)} entries, this line is {{}}",
        f"{', '.join(FIELDS)}. Does the number of cells agree with the lines?",
    )
    columns = {name: fields.list.get(i) for i, name in enumerate(FIELDS)}
    identity = columns.pop("id").cast(pl.Int64, strict=False)
    lines.refuse(identity.is_null().to_numpy(), "the id of a cell is a whole number, this line is {}", "check its id.")
    ids = identity.to_numpy()
    _refuse_repeated_ids(lines, ids)
    status = columns.pop("status").str.to_lowercase()
    lines.refuse(
        (~status.is_in(["u", "s", "z", "m"])).to_numpy(),
        "the status of a cell is one of u, s, z, m; this line is {}",
        "u = sensitive, s = may be suppressed, z = must be published, m = is suppressed.",
    )
    numbers = {name: _numbers(lines, column, name) for name, column in columns.items()}
    for name in ("lower bound", "upper bound"):
        bound = numbers[name]
        numbers[name] = np.where(np.abs(bound) >= UNBOUNDED, np.copysign(np.inf, bound), bound)
    _refuse_contradictions(lines, numbers)
    return ids, status.to_numpy().astype(np.str_), numbers


def _numbers(lines: _Lines, column: pl.Series, name: str) -> Floats:
    number = column.cast(pl.Float64, strict=False)
    lines.refuse(
        (number.is_null() | number.is_nan()).to_numpy(),
        f"the {name} should be a number; this line is {{}}",
        "numbers have a decimal point and no thousands separator.",
    )
    values = number.to_numpy()
    if "bound" not in name:
        lines.refuse(
            ~(np.abs(values) < LARGEST_EXACT),
            f"the {name} is too large to compute with exactly; this line is {{}}",
            "numbers must be below 2^53; use a larger unit.",
        )
    return values


def _refuse_repeated_ids(lines: _Lines, ids: Integers) -> None:
    order = np.argsort(ids, kind="stable")
    same = np.flatnonzero(ids[order][1:] == ids[order][:-1])
    if same.size:
        first, second = int(order[same[0]]), int(order[same[0] + 1])
        what = f"cell {ids[second]} was on line {lines.number[first]} already"
        lines.fail(second, what, "give every cell its own id.")


def _refuse_contradictions(lines: _Lines, numbers: dict[str, Floats]) -> None:
    for name in ("cost", "lower level", "upper level", "sliding level"):
        lines.refuse(numbers[name] < 0, f"the {name} is negative; this line is {{}}", "it must be 0 or more.")
    outside = (numbers["value"] < numbers["lower bound"]) | (numbers["value"] > numbers["upper bound"])
    lines.refuse(
        outside,
        "the value lies outside the bounds; this line is {}",
        "the bounds are what an attacker knows, so they contain the true value.",
    )


def _parse_equations(lines: _Lines, ids: Integers) -> _Equations:
    """The entries of all equations, with the position of each cell instead of its id."""
    lines.refuse(
        (~lines.text.str.contains(EQUATION)).to_numpy(),
        "{} is no equation",
        "an equation is 'rhs k : id (coefficient) id (coefficient) …'. Does the number of equations agree?",
    )
    rhs = _numbers(lines, lines.text.str.extract(r"^(\S+)"), "right-hand side")
    announced = lines.text.str.extract(r"^\S+\s+(\d+)").cast(pl.Int64, strict=False).fill_null(-1).to_numpy()
    tokens = lines.text.str.extract(r":(.*)$").str.replace_all(r"[()]", " ").str.extract_all(r"\S+")
    entries = (tokens.list.len() // 2).to_numpy().astype(np.int64)
    wrong = announced != entries
    if wrong.any():
        at = int(np.argmax(wrong))
        lines.fail(at, f"{announced[at]} terms are announced, {entries[at]} follow", "correct the number of terms.")
    row = np.repeat(np.arange(len(entries)), entries)
    flat = tokens.explode(empty_as_null=False, keep_nulls=False)
    identity = flat.gather_every(2).cast(pl.Int64, strict=False)
    coefficient = flat.gather_every(2, 1).cast(pl.Float64, strict=False).fill_null(0.0).fill_nan(0.0).to_numpy()
    bad = np.abs(coefficient) != 1
    if bad.any():
        at = int(np.argmax(bad))
        lines.fail(
            int(row[at]),
            f"cell {flat[2 * at]} has the coefficient {flat[2 * at + 1]}",
            "coefficients are 1 and -1; split a multiple into several cells that are equal to each other.",
        )
    cell = _positions(lines, row, identity, flat, ids)
    _refuse_repeated_terms(lines, row, cell, ids)
    empty = (entries == 0) & (rhs != 0)
    lines.refuse(empty, "{} has no terms, so it cannot hold", "remove it.")
    return _Equations(lines, rhs, row, cell, coefficient.astype(np.int64))


def _positions(lines: _Lines, row: Integers, identity: pl.Series, flat: pl.Series, ids: Integers) -> Integers:
    wanted = identity.fill_null(0).to_numpy()
    order = np.argsort(ids, kind="stable")
    at = np.minimum(np.searchsorted(ids[order], wanted), len(ids) - 1)
    cell = order[at]
    bad = (ids[cell] != wanted) | identity.is_null().to_numpy()
    if bad.any():
        entry = int(np.argmax(bad))
        lines.fail(int(row[entry]), f"there is no cell {flat[2 * entry]}", "equations name cells by their ids.")
    return cell


def _refuse_repeated_terms(lines: _Lines, row: Integers, cell: Integers, ids: Integers) -> None:
    key = row * len(ids) + cell
    order = np.argsort(key, kind="stable")
    same = np.flatnonzero(key[order][1:] == key[order][:-1])
    if same.size:
        at = int(order[same[0]])
        lines.fail(int(row[at]), f"cell {ids[cell[at]]} stands in it twice", "name every cell once.")


def _matrix(equations: _Equations, constants: Floats, n: int) -> tuple[sparse.csr_array, Integers]:
    """One row per equation, −1 at its total; the sign of a row is turned where that makes one cell the total."""
    used = np.unique(equations.row)
    rows = np.searchsorted(used, equations.row)
    rhs = equations.rhs[used]
    moved = np.flatnonzero(rhs)
    rows = np.concatenate([rows, moved])
    columns = np.concatenate([equations.cell, n + np.searchsorted(constants, np.abs(rhs[moved]))])
    data = np.concatenate([equations.coefficient, -np.sign(rhs[moved]).astype(np.int64)])
    positive = np.bincount(rows[data > 0], minlength=len(used))
    negative = np.bincount(rows[data < 0], minlength=len(used))
    turn = (negative != 1) & ((positive == 1) | (negative == 0))
    data = np.where(turn[rows], -data, data).astype(np.int8)
    total = np.full(len(used), -1, dtype=np.int64)
    below = np.flatnonzero(data < 0)[::-1]
    total[rows[below]] = columns[below]
    shape = (len(used), n + len(constants))
    return sparse.csr_array((data, (rows, columns)), shape=shape, dtype=np.int8), total


def _refuse_unbalanced(equations: _Equations, matrix: sparse.csr_array, value: Floats) -> None:
    integers, decimals, exact = to_integers(value)
    residual = np.abs(np.asarray(matrix.astype(np.int64) @ integers))
    rounding = 0.0 if exact else np.diff(matrix.indptr) / 2
    bad = residual > rounding
    if bad.any():
        row = int(np.argmax(bad))
        off = f"{residual[row] / 10**decimals:,.{decimals}f}"
        at = int(np.unique(equations.row)[row])
        hint = "correct the values, or the equation."
        equations.lines.fail(at, f"{_short(equations.lines.text[at])!r} is off by {off}", hint)


def _short(text: str) -> str:
    return text if len(text) <= 80 else text[:77] + "…"


# -- writing -----------------------------------------------------------------------------------------------------------


def _constants(problem: Problem) -> Mask:
    """Cells that stand for a right-hand side."""
    table = problem.table
    if table.names is None:
        return np.zeros(len(table), dtype=np.bool_)
    named = pl.Series(table.names, dtype=pl.String).str.starts_with(RIGHT_HAND_SIDE).to_numpy()
    constant: Mask = named & problem.frozen & (problem.lower == table.value) & (problem.upper == table.value)
    return constant


def _ids(table: Table, constant: Mask) -> pl.Series:
    numbered = np.cumsum(~constant) - 1
    if table.names is None:
        return pl.Series(numbered).cast(pl.String)
    own = pl.Series(table.names, dtype=pl.String).cast(pl.Int64, strict=False)
    cells = own.filter(pl.Series(~constant))
    if cells.null_count() or cells.n_unique() < len(cells):
        return pl.Series(numbered).cast(pl.String)
    return own.fill_null(0).cast(pl.String)


def _statuses(problem: Problem) -> NDArray[np.str_]:
    return np.select(
        [problem.sensitivity.mask, problem.suppressed | problem.withheld, problem.frozen], ["u", "m", "z"], "s"
    )


def _equation_lines(table: Table, ids: pl.Series, constant: Mask) -> pl.Series:
    matrix = table.equations
    row = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    cell, coefficient = matrix.indices, matrix.data.astype(np.int64)
    fixed = constant[cell]
    rhs = np.zeros(matrix.shape[0], dtype=np.int64)
    np.add.at(rhs, row[fixed], -coefficient[fixed] * table.integers[cell[fixed]])
    entries = pl.DataFrame(
        {
            "row": row[~fixed],
            "id": ids.gather(cell[~fixed].astype(np.uint32)),
            "coefficient": pl.Series(coefficient[~fixed]).cast(pl.String),
        }
    ).with_columns(entry=pl.format("{} ({})", "id", "coefficient"))
    joined = entries.group_by("row", maintain_order=True).agg(pl.len().alias("k"), pl.col("entry").str.join(" "))
    right = as_text(rhs / 10.0**table.decimals).gather(joined["row"])
    return joined.select(pl.format("{} {} : {}", right, "k", "entry")).to_series()
