"""A-priori files of τ-ARGUS (`.hst`): one instruction per line, after the codes of the cell.

| instruction | meaning |
|---|---|
| `s` | safe: whatever a rule says, the cell may be published |
| `u` | sensitive; hidden by `manual_range` percent of its value unless levels follow |
| `p` | frozen: must be published |
| `m`, `ml` | suppressed already |
| `c;100` or `w;100` | the cost of suppressing it |
| `pl;10;20` | its lower and upper protection level, if it is sensitive; `pl;10` is both |
| `ab;0;500` | the attacker's bounds; nothing instead of a number is no bound |

Later lines win over earlier ones. An empty code means the total. τ-ARGUS can expand a code to the levels above and
below it that hold the same cell; here they are one cell anyway.
"""

from __future__ import annotations

import csv
import warnings
from pathlib import Path

import numpy as np
import polars as pl

from tablesafe.core.equations import Floats, Integers, Mask
from tablesafe.core.errors import InvalidFile, InvalidOption, InvalidProblem
from tablesafe.core.problem import Problem
from tablesafe.core.statuses import LETTERS
from tablesafe.core.table import Table
from tablesafe.files.read import Source
from tablesafe.files.write import write_text
from tablesafe.io.apriori import MANUAL_RANGE, UNCHANGED, Information, informed
from tablesafe.io.matching import key_columns, match_cells, refuse_absent
from tablesafe.io.text import as_text, count_entries, read_lines, split_lines

WHAT, FIRST, SECOND = "\x00what", "\x00first", "\x00second"
INSTRUCTIONS = {"s": 0, "u": 0, "p": 0, "m": 0, "ml": 0, "c": 1, "w": 1, "pl": 2, "ab": 2}
"""How many numbers follow each instruction."""


def apply_hst(
    problem: Problem,
    path: str | Path,
    *,
    separator: str | None = None,
    manual_range: float = MANUAL_RANGE,
    ignore_unknown: bool = False,
    ignore_errors: bool = False,
) -> Problem:
    """The problem with what a τ-ARGUS a-priori file says about its cells.

    Without `separator` the first lines tell it. With `ignore_unknown` lines about cells that are not there are left
    out, with a warning; with `ignore_errors` so is every line that cannot be followed, as τ-ARGUS does; lines about
    structural zeros always are.
    """
    source, line = read_hst(Path(path), problem.table, separator, ignore=ignore_errors)
    ignore_unknown |= ignore_errors
    needed = np.full(source.frame.height, not ignore_unknown)
    cells = match_cells(problem.table, source, needed=needed)
    if not ignore_unknown:
        refuse_absent(problem.table, source, cells)
    cells = _without_zeros(problem.table, source, cells)
    if ignore_errors:
        cells = without_contradictions(problem, source, cells, line)
    information = Information.none(len(problem.table), source)
    what = source.frame[WHAT]
    first, second = instruction_numbers(source)
    rows = np.flatnonzero(cells >= 0)
    information.row[cells[rows]] = rows
    letters = what.replace_strict(
        list(LETTERS), [int(meaning) for meaning in LETTERS.values()], default=UNCHANGED, return_dtype=pl.UInt8
    ).to_numpy()
    status_rows = rows[letters[rows] != UNCHANGED]
    information.status[cells[status_rows]] = letters[status_rows]
    targets = {
        "c": ("cost",),
        "w": ("cost",),
        "pl": ("lower_level", "upper_level"),
        "ab": ("lower_bound", "upper_bound"),
    }
    for instruction, names in targets.items():
        chosen = rows[(what == instruction).to_numpy()[rows]]
        for name, numbers in zip(names, (first, second), strict=False):
            information.numbers[name][cells[chosen]] = numbers[chosen]
    return informed(problem, information, manual_range)


def write_hst(problem: Problem, path: str | Path, *, separator: str = ";") -> None:
    """Write what distinguishes the cells of a problem from those of a bare table, as an a-priori file. Confidential.

    Cells withheld by design are written as suppressed; sliding levels have no place in this format.
    """
    table, sensitivity = problem.table, problem.sensitivity
    if len(separator) != 1 or separator in '"\r\n.-+' or separator.isalnum():
        raise InvalidOption(f"The separator {separator!r} cannot be told from codes and numbers.", hint="';' can.")
    if (sensitivity.sliding > 0).any():
        raise InvalidProblem("Sliding protection levels have no place in a .hst file.", hint="write the problem as JJ.")
    bare = Problem(table)
    cells = _codes_as_text(table, separator)
    zero = np.zeros(len(table), np.bool_) if table.structural_zero is None else table.structural_zero
    lines: list[str] = []

    def add(where: Mask, instruction: str, *numbers: Floats) -> None:
        chosen = np.flatnonzero(where & ~zero).astype(np.uint32)
        parts = [cells.gather(chosen), pl.Series([instruction] * len(chosen), dtype=pl.String)]
        parts += [_bounded_text(number[chosen]) for number in numbers]
        frame = pl.DataFrame([part.alias(str(i)) for i, part in enumerate(parts)])
        lines.extend(frame.select(pl.concat_str(pl.all(), separator=separator)).to_series().to_list())

    add(sensitivity.mask, "u")
    add(problem.frozen, "p")
    add((problem.suppressed | problem.withheld) & ~sensitivity.mask, "m")
    add(sensitivity.mask, "pl", sensitivity.lower, sensitivity.upper)
    add(problem.cost != bare.cost, "c", problem.cost)
    add((problem.lower != bare.lower) | (problem.upper != bare.upper), "ab", problem.lower, problem.upper)
    write_text(path, "".join(line + "\n" for line in lines))


# -- lines -------------------------------------------------------------------------------------------------------------


def _without_zeros(table: Table, source: Source, cells: Integers) -> Integers:
    """The cells of the rows, −1 for those that are structural zeros: nothing can be asked of them."""
    zero = np.zeros(len(table) + 1, np.bool_)
    if table.structural_zero is not None:
        zero[:-1] = table.structural_zero
    lost = int((cells < 0).sum())
    empty = int(zero[cells].sum())
    if lost or empty:
        first = source.where(int(np.argmax((cells < 0) | zero[cells])))
        many = "1 line was" if lost + empty == 1 else f"{lost + empty:,} lines were"
        kinds = ((lost, "not in the table"), (empty, "structural zeros"))
        why = ", ".join(f"{n:,} of cells that are {what}" for n, what in kinds if n)
        warnings.warn(f"{source.name}: {many} left out: {why}; the first is {first}.", stacklevel=3)
    return np.where(zero[cells], -1, cells)


def read_hst(path: Path, table: Table, separator: str | None, *, ignore: bool) -> tuple[Source, Integers]:
    """The lines with the codes, the instruction and its numbers in columns; and the number of each line.

    With `ignore`, lines that are not written so are left out, with a warning.
    """
    keys = key_columns(table)
    lines = read_lines(path)
    separator = separator or _separator(lines, len(keys), path.name)
    if len(separator) != 1:
        raise InvalidOption(f"The separator {separator!r} is not one character.")
    number = np.arange(1, len(lines) + 1, dtype=np.int64)
    if ignore:
        good = _well_written(lines, separator, len(keys))
        _tell_left_out(path.name, number[~good], "cannot be read")
        lines, number = lines.filter(pl.Series(good)), number[good]
    found = count_entries(lines, separator)
    bad = ((found <= len(keys)) | (found > len(keys) + 4)).to_numpy()
    if bad.any():
        at = int(np.argmax(bad))
        example = separator.join([*("code" for _ in keys), "u"])
        raise InvalidFile(
            f"{path.name}, line {at + 1} has {found[at]} entries; the table has {len(keys)} dimensions "
            f"({', '.join(keys)}).",
            hint=f"a line is like {example!r}.",
        )
    columns = [*keys, WHAT, FIRST, SECOND, "\x00rest"]
    if not len(lines):
        return Source(pl.DataFrame({name: pl.Series([], dtype=pl.String) for name in columns}), path.name, 1), number
    padded = lines + pl.Series([separator * k for k in range(5)]).gather((len(keys) + 4 - found).cast(pl.UInt32))
    source = split_lines(padded, path.name, separator, columns)
    what = source.text(WHAT).fill_null("").str.to_lowercase()
    unknown = (~what.is_in(list(INSTRUCTIONS))).to_numpy()
    if unknown.any():
        row = int(np.argmax(unknown))
        raise InvalidFile(
            f"{source.where(row)} has the instruction {source.frame[WHAT][row]!r}.",
            hint="s safe, u unsafe, p protected, m or ml suppressed, c cost, pl protection levels, ab bounds.",
        )
    if source.frame["\x00rest"].is_not_null().any():
        row = int(source.frame["\x00rest"].is_not_null().arg_max() or 0)
        raise InvalidFile(f"{source.where(row)} goes on after the second number.", hint="remove the rest.")
    return Source(source.frame.with_columns(what.alias(WHAT)), path.name, first_line=1), number


def _well_written(lines: pl.Series, separator: str, dimensions: int) -> Mask:
    """Lines that are codes, an instruction, and as many numbers as it takes; none is negative but a lower bound."""
    good = np.zeros(len(lines), np.bool_)
    for at, line in enumerate(lines.to_list()):
        try:
            entries = next(csv.reader([line], delimiter=separator), [])
        except csv.Error:  # an entry of absurd length
            continue
        what = entries[dimensions].strip().lower() if len(entries) > dimensions else ""
        numbers = [entry.strip() for entry in entries[dimensions + 1 :]]
        while numbers and not numbers[-1] and what != "ab":
            numbers.pop()
        wanted = INSTRUCTIONS.get(what, -1)
        plain = all(_is_number(text, what) for text in numbers)
        good[at] = plain and (len(numbers) == wanted or (what in {"ab", "pl"} and 0 < len(numbers) <= 2))
    return good


def _is_number(text: str, what: str) -> bool:
    if what == "ab" and not text:
        return True
    try:
        number = float(text.replace(",", "."))
    except ValueError:
        return False
    return bool(np.isfinite(number)) and (what == "ab" or number >= 0)


def _separator(lines: pl.Series, dimensions: int, name: str) -> str:
    for candidate in ";,\t|":
        if bool((count_entries(lines, candidate) > dimensions).all()):
            return candidate
    raise InvalidFile(
        f"{name} cannot be split into {dimensions} codes and an instruction.",
        hint=f"lines are like {';'.join(['code'] * dimensions + ['u'])!r}; pass separator= if it is another.",
    )


def instruction_numbers(source: Source) -> tuple[Floats, Floats]:
    """The numbers after the instructions; a missing bound is infinite, any other missing number an error."""
    what = source.frame[WHAT]
    expected = what.replace_strict(INSTRUCTIONS, return_dtype=pl.Int64).to_numpy()
    bounds, levels = (what == "ab").to_numpy(), (what == "pl").to_numpy()
    numbers: list[Floats] = []
    for place, column in enumerate((FIRST, SECOND), start=1):
        text = source.text(column)
        blank = (text.is_null() | (text == "")).to_numpy()
        alone = levels if place == 2 else np.zeros_like(levels)
        bad = np.where(expected >= place, blank & ~bounds & ~alone, ~blank)
        if bad.any():
            row = int(np.argmax(bad))
            many = ("no number", "1 number", "2 numbers")[int(expected[row])]
            raise InvalidFile(
                f"{source.where(row)}: {what[row]!r} must be followed by {many}.",
                hint="'c' needs a cost, 'pl' and 'ab' two numbers, the others none.",
            )
        named = Source(text.alias("number").to_frame(), source.name, source.first_line)
        infinite = -np.inf if place == 1 else np.inf
        found = np.where(blank & bounds, infinite, named.numbers("number", missing=0.0))
        numbers.append(np.where(blank & alone, numbers[0], found) if place == 2 else found)
    return numbers[0], numbers[1]


def without_contradictions(problem: Problem, source: Source, cells: Integers, line: Integers) -> Integers:
    """The cells of the rows, −1 for rows that cannot be followed after those before them.

    A sensitive cell cannot be frozen, levels need a sensitive cell, and bounds must contain the true value.
    """
    what = source.frame[WHAT].to_list()
    first, second = instruction_numbers(source)
    sensitive, value = problem.sensitivity.mask.copy(), problem.table.value
    bad = np.zeros(len(cells), np.bool_)
    for row in np.flatnonzero(cells >= 0).tolist():
        cell = int(cells[row])
        if what[row] in {"s", "m", "ml"}:
            sensitive[cell] &= what[row] != "s"
        elif what[row] == "u":
            sensitive[cell] = True
        elif what[row] == "p":
            bad[row] = sensitive[cell]
        elif what[row] == "pl":
            bad[row] = not sensitive[cell] and max(first[row], second[row]) > 0
        elif what[row] == "ab":
            bad[row] = not first[row] <= value[cell] <= second[row]
    _tell_left_out(source.name, line[bad], "contradict the table or lines before them")
    return np.where(bad, -1, cells)


def _tell_left_out(name: str, lines: Integers, why: str) -> None:
    if lines.size:
        shown = ", ".join(map(str, lines[:10].tolist())) + (" …" if lines.size > 10 else "")
        warnings.warn(f"{name}: {lines.size:,} lines {why} and were left out: {shown}.", stacklevel=4)


def _codes_as_text(table: Table, separator: str) -> pl.Series:
    columns = []
    for name, codes in table.code_columns().items():
        bad = codes.str.contains(r'[\n\r"]') | (codes.str.strip_chars() == "")
        if bad.any():
            raise InvalidProblem(
                f"Code {codes.filter(bad)[0]!r} of {name!r} cannot be written to a .hst file.",
                hint="codes there hold no quotes and no line breaks.",
            )
        special = codes.str.contains(separator, literal=True)
        columns.append(codes.zip_with(~special, '"' + codes + '"').alias(name))
    return pl.DataFrame(columns).select(pl.concat_str(pl.all(), separator=separator)).to_series()


def _bounded_text(numbers: Floats) -> pl.Series:
    return as_text(numbers).set(pl.Series(np.isinf(numbers)), "")
