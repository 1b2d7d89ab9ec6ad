"""τ-ARGUS tables: `.tab` with `.rda`, in and out.

Reading:
- the letters of the status column: safe `S`, unsafe `U`, protected `P` (or as the metadata say), secondary `M`, empty
  `E`. Unsafe cells become sensitive, protected ones frozen, secondary ones suppressed, empty ones structural zeros;
- an entry that is empty or `-` is no number: an empty cell. Decimal commas are understood;
- unsafe cells without protection levels get `manual_range` percent of their value;
- totals are checked; `totals="compute"` (τ-ARGUS: `<READTABLE> 1`) recomputes them from the innermost cells instead.

Writing: a `.tab` holds everything, for use inside the office. What a second name of a code stands for (a total with one
part) is written once.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl

from tablesafe.core.equations import Floats, Mask
from tablesafe.core.errors import InvalidFile, InvalidOption, InvalidTable
from tablesafe.core.hierarchy import Hierarchy
from tablesafe.core.problem import Problem
from tablesafe.core.sensitivity import Rule, Sensitivity
from tablesafe.core.statuses import LETTERS, Meaning
from tablesafe.core.table import Table
from tablesafe.files.read import Source
from tablesafe.files.write import write_text
from tablesafe.io.status import Argus, argus_statuses
from tablesafe.io.tauargus_cells import EMPTY, build_table, rows_of
from tablesafe.io.tauargus_meta import Metadata, Role, Variable, write_metadata
from tablesafe.io.tauargus_micro import metadata_for
from tablesafe.io.tauargus_output import joined, quoted_codes
from tablesafe.io.text import as_text, read_lines, split_lines, with_decimals
from tablesafe.rules.contributions import SHADOW

MANUAL_RANGE = 20.0
"""Percent of the value that hides a cell which is unsafe by hand: the default of τ-ARGUS."""
_NUMERIC = {
    Role.RESPONSE, Role.COUNT, Role.SHADOW, Role.COST, Role.LOWER_LEVEL, Role.UPPER_LEVEL, Role.LARGEST,
    Role.DIMENSION_AND_RESPONSE,
}  # fmt: skip


def read_tab(
    path: str | Path,
    metadata: Metadata | str | Path | None = None,
    *,
    response: str | None = None,
    cost: str | None = None,
    shadow: str | None = None,
    dimensions: Sequence[str] | None = None,
    totals: Literal["check", "compute"] = "check",
    rules: Sequence[Rule] = (),
    manual_range: float = MANUAL_RANGE,
    tolerance: float = 0.0,
) -> Problem:
    """Read a table as its metadata describe it; by default those of the same name, ending in `.rda`.

    `response` is needed when there are several; `cost` names the column of costs (by default the one the metadata mark,
    otherwise costs are the values). Largest contributions are of the variable `shadow`, if one is named. Of a table
    with more `dimensions` than are named, the cells at the totals of the others are taken. `rules` flag further cells,
    from counts and largest contributions.
    """
    if not 0 <= manual_range <= 100:
        raise InvalidOption(f"manual_range is a percentage from 0 to 100, got {manual_range:g}.")
    path = Path(path)
    metadata = metadata_for(path, metadata, "table")
    value = _response(metadata, response)
    by = None if shadow is None or metadata.variable(shadow).name == value else _response(metadata, shadow)
    if shadow is not None and by is None:
        metadata = _without_shadow(metadata)
    source, metadata = _spanned(_read(path, metadata), metadata, dimensions)
    meaning = _meanings(source, metadata)
    source = _without_blanks(source, metadata, value, meaning)
    table = build_table(source, metadata, value, by, totals, tolerance)
    row_of_cell = rows_of(table, source)
    there = row_of_cell >= 0
    status = np.where(there, meaning[row_of_cell], Meaning.PUBLISHED)
    return Problem(
        table,
        rules,
        sensitivity=_sensitivity(table, source, metadata, row_of_cell, status == Meaning.SENSITIVE, manual_range),
        cost=_costs(table, source, metadata, cost, row_of_cell),
        frozen=(status == Meaning.FROZEN) & ~(status == Meaning.SENSITIVE),
        suppressed=status == Meaning.SUPPRESSED,
    )


def write_tab(problem: Problem, path: str | Path, *, separator: str = ";", decimal_comma: bool = False) -> list[Path]:
    """Write a problem as `.tab`, with its `.rda` and a `.hrc` per hierarchy beside it; return the paths. Confidential.

    The format has no place for the attacker's bounds and for sliding levels; cells withheld by design are secondary.
    """
    path, table = Path(path), problem.table
    if len(separator) != 1 or separator in '"\r\n.' or (decimal_comma and separator == ","):
        raise InvalidOption(f"The separator {separator!r} cannot be told from the numbers.\n\nHint: ';' always can.")
    refuse_unwritable(table, path)
    trees = {name: replace(tree, aliases={}) for name, tree in table.dimensions.items()}
    files = hierarchy_files(trees, path)
    written = [path, path.with_suffix(".rda")]
    for name, (file, indent) in files.items():
        trees[name].to_hrc(path.parent / file, indent=indent)
        written.append(path.parent / file)
    write_metadata(_metadata_of(problem, files, separator), written[1])
    columns = [*quoted_codes(table), *_number_columns(problem, decimal_comma)]
    write_text(path, joined(columns, separator))
    return written


# -- reading -----------------------------------------------------------------------------------------------------------


def _response(metadata: Metadata, wanted: str | None) -> str:
    if wanted is not None:
        variable = metadata.variable(wanted)
        if variable.role not in _NUMERIC:
            raise InvalidFile(
                f"{variable.name!r} is no response: {metadata.path.name} calls it {variable.role.value}.\n\n"
                f"Hint: add <NUMERIC> to it."
            )
        return variable.name
    responses = metadata.responses or metadata.having(Role.COUNT)
    if len(responses) != 1:
        names = ", ".join(repr(variable.name) for variable in responses) or "none"
        raise InvalidFile(
            f"{metadata.path.name} has {len(responses)} response variables ({names}).\n\nHint: say which: response='…'"
        )
    return responses[0].name


def _read(path: Path, metadata: Metadata) -> Source:
    if not metadata.dimensions:
        raise InvalidFile(
            f"{metadata.path.name} has no dimension.\n\nHint: add <RECODEABLE> to the variables that are."
        )
    names = [variable.name for variable in metadata.variables]
    return split_lines(read_lines(path), path.name, metadata.separator or ";", names)


def _without_shadow(metadata: Metadata) -> Metadata:
    """The metadata without a variable that rules would take for the shadow, where the response is its own."""
    variables = [replace(v, role=Role.OTHER) if v.name == SHADOW else v for v in metadata.variables]
    return replace(metadata, variables=tuple(variables))


def _spanned(source: Source, metadata: Metadata, wanted: Sequence[str] | None) -> tuple[Source, Metadata]:
    """The rows of the table that some dimensions span, in their order: all others stand at their totals there."""
    if wanted is None:
        return source, metadata
    chosen = [metadata.variable(name) for name in wanted]
    for variable in chosen:
        if not variable.is_dimension:
            raise InvalidFile(
                f"{variable.name!r} is no dimension: {metadata.path.name} calls it {variable.role.value}.\n\n"
                f"Hint: add <RECODEABLE> to it."
            )
    rows = pl.Series(np.arange(source.frame.height))
    for variable in metadata.dimensions:
        if variable not in chosen:
            here = (source.text(variable.name).fill_null("") == variable.total.strip())[rows]
            if not here.any():
                raise InvalidFile(
                    f"{source.name} has no cell at the total {variable.total!r} of {variable.name!r}, over which the "
                    f"table is added up.\n\nHint: name {variable.name!r} too, or correct its <TOTCODE>."
                )
            rows = rows.filter(here)
    others = [replace(v, role=Role.OTHER) if v.is_dimension else v for v in metadata.variables if v not in chosen]
    frame = source.frame[rows.to_numpy()] if len(rows) < source.frame.height else source.frame
    first = source.first_line if len(rows) == source.frame.height else None
    return Source(frame, source.name, first), replace(metadata, variables=(*chosen, *others))


def _meanings(source: Source, metadata: Metadata) -> Any:
    """What the status column says of each row."""
    column = metadata.having(Role.STATUS)
    if not column:
        return np.full(source.frame.height, Meaning.PUBLISHED, dtype=np.uint8)
    letters = {key: LETTERS[key] for key in ("m", "e")} | {"": Meaning.EMPTY}
    letters |= {metadata.protect.lower(): Meaning.FROZEN, metadata.unsafe.lower(): Meaning.SENSITIVE}
    letters |= {metadata.safe.lower(): Meaning.PUBLISHED}
    if len(letters) < 6:
        raise InvalidFile(
            f"{metadata.path.name} gives one letter to two statuses: {metadata.safe} safe, {metadata.unsafe} unsafe, "
            f"{metadata.protect} protected; M is secondary, E empty.\n\n"
            f"Hint: <SAFE>, <UNSAFE> and <PROTECT> set letters that differ."
        )
    text = source.text(column[0].name).fill_null("").str.to_lowercase()
    found = text.replace_strict(
        list(letters), [int(meaning) for meaning in letters.values()], default=255, return_dtype=pl.UInt8
    ).to_numpy()
    bad = found == 255
    if bad.any():
        row = int(np.argmax(bad))
        raise InvalidFile(
            f"{source.where(row)} has the status {source.frame[column[0].name][row]!r}.\n\n"
            f"Hint: statuses here are {metadata.safe} safe, {metadata.unsafe} unsafe, {metadata.protect} protected, "
            f"M secondary, E empty; <SAFE>, <UNSAFE> and <PROTECT> in {metadata.path.name} set other letters."
        )
    return found


def _without_blanks(source: Source, metadata: Metadata, value: str, meaning: Any) -> Source:
    """The source with null for `-`, and a column that marks empty cells."""
    columns = []
    for variable in metadata.variables:
        text = source.text(variable.name, strip=False)
        if variable.role in _NUMERIC and not variable.is_dimension:
            bare = text.str.strip_chars()
            text = bare.set(bare.is_in(["-", ""]), None)
        columns.append(text.alias(variable.name))
    frame = pl.DataFrame(columns)
    blank = frame[value].is_null().to_numpy()
    zero = Source(frame, source.name, source.first_line).numbers(value, missing=0.0) == 0
    told = meaning == Meaning.EMPTY
    wrong = told & ~zero
    if wrong.any():
        row = int(np.argmax(wrong))
        raise InvalidFile(f"{source.where(row)} is marked as empty, but has a value.\n\nHint: correct its status.")
    unsafe = blank & (meaning == Meaning.SENSITIVE)
    if unsafe.any():
        row = int(np.argmax(unsafe))
        raise InvalidFile(f"{source.where(row)} is unsafe, but has no value.\n\nHint: fill in the value.")
    frame = frame.with_columns(pl.col(value).fill_null("0"), pl.Series(EMPTY, (told | blank).astype(np.int64)))
    return Source(frame, source.name, source.first_line)


def _given(source: Source, name: str, row_of_cell: Any, what: str) -> tuple[Floats, Mask]:
    """A column of numbers by cell, and for which cells it is filled in; none may be negative."""
    numbers, filled = source.numbers(name, missing=0.0), source.frame[name].is_not_null().to_numpy()
    bad = numbers < 0
    if bad.any():
        raise InvalidFile(f"{source.where(int(np.argmax(bad)))} has a negative {what}.\n\nHint: it must be 0 or more.")
    there = row_of_cell >= 0
    return np.where(there, numbers[row_of_cell], 0.0), there & filled[row_of_cell]


def _sensitivity(
    table: Table, source: Source, metadata: Metadata, row_of_cell: Any, unsafe: Mask, manual_range: float
) -> Sensitivity:
    levels = []
    for role in (Role.LOWER_LEVEL, Role.UPPER_LEVEL):
        level = np.abs(table.value) * manual_range / 100
        for variable in metadata.having(role):
            numbers, filled = _given(source, variable.name, row_of_cell, "protection level")
            level = np.where(filled, numbers, level)
        levels.append(level)
    return Sensitivity.of(unsafe, levels[0], levels[1], reason="manual")


def _costs(table: Table, source: Source, metadata: Metadata, wanted: str | None, row_of_cell: Any) -> Floats | None:
    marked = [variable.name for variable in metadata.having(Role.COST)]
    name = metadata.variable(wanted).name if wanted is not None else marked[0] if len(marked) == 1 else None
    if name is None:
        return None
    numbers, filled = _given(source, name, row_of_cell, "cost")
    return np.where(filled, numbers, np.abs(table.value))


# -- writing -----------------------------------------------------------------------------------------------------------


def refuse_unwritable(table: Table, path: Path) -> None:
    """Check that τ-ARGUS can hold the table: trees, and codes that can be told apart."""
    if not table.dimensions:
        raise InvalidTable("A table without dimensions has no .tab file.\n\nHint: write it as JJ.")
    for name, tree in table.dimensions.items():
        if not tree.is_tree and len(tree) > 1:
            raise InvalidTable(
                f"Dimension {name!r} is not a tree with one total, so τ-ARGUS cannot hold it.\n\n"
                f"Hint: write the table as JJ."
            )
        bad = next((code for code in tree.codes if '"' in code or "\n" in code or code != code.rstrip()), None)
        if bad is not None:
            raise InvalidTable(
                f"Code {bad!r} of {name!r} cannot be written to {path.name}.\n\n"
                f"Hint: codes there hold no double quotes, and no spaces at the end."
            )


def hierarchy_files(trees: Mapping[str, Hierarchy], path: Path) -> dict[str, tuple[str, str]]:
    """A file and an indent string for each dimension of several levels, or with spaces before codes."""
    files: dict[str, tuple[str, str]] = {}
    for i, (name, tree) in enumerate(trees.items(), start=1):
        if len(tree.totals) > 1 or tree.aliases or any(code != code.strip() for code in tree.codes):
            indent = "@" * (1 + max(len(code) - len(code.lstrip("@")) for code in (*tree.codes, *tree.aliases)))
            files[name] = (f"{path.stem}_{i}_{re.sub(r'[^0-9A-Za-z_-]+', '_', name)}.hrc", indent)
    return files


def _metadata_of(problem: Problem, files: Mapping[str, tuple[str, str]], separator: str) -> Metadata:
    variables = []
    for name, tree in problem.table.dimensions.items():
        file, indent = files.get(name, (None, "."))
        variables.append(
            Variable(
                name=name, role=Role.DIMENSION, total=tree.roots[0], hierarchical=file is not None,
                hierarchy_file=file, indent=indent,
            )
        )  # fmt: skip
    taken = {variable.name.lower() for variable in variables}
    for name, role in _number_roles(problem):
        while name.lower() in taken:
            name += "_"
        taken.add(name.lower())
        decimals = problem.table.decimals if role is Role.RESPONSE else 0
        variables.append(Variable(name=name, role=role, decimals=decimals))
    return Metadata(variables=tuple(variables), kind="table", separator=separator)


def _number_roles(problem: Problem) -> list[tuple[str, Role]]:
    table = problem.table
    depth = 0 if table.contributors is None else table.contributors.depth
    return [
        (table.response, Role.RESPONSE),
        *([] if table.count is None else [("Frequency", Role.COUNT)]),
        ("Cost", Role.COST),
        *((name, Role.SHADOW) for name in table.columns),
        *((f"Top{i + 1}", Role.LARGEST) for i in range(depth)),
        ("Status", Role.STATUS),
        ("LowerLevel", Role.LOWER_LEVEL),
        ("UpperLevel", Role.UPPER_LEVEL),
    ]


def _number_columns(problem: Problem, comma: bool) -> list[pl.Series]:
    """Value, count, cost, largest contributions, status and levels as text, in the order of `_number_roles`."""
    table = problem.table
    numbers: list[Floats] = [] if table.count is None else [table.count.astype(np.float64)]
    numbers += [problem.cost, *(column.astype(np.float64) for column in table.columns.values())]
    if table.contributors is not None:
        numbers += list(table.contributors.amount.T)
    letters = {Argus.PROTECTED: "P", Argus.SECONDARY: "M", Argus.EMPTY: "E", Argus.SAFE: "S"}
    status = argus_statuses(problem)
    letter = np.select([status == code for code in letters], list(letters.values()), "U")
    levels = [_plain(level, comma) for level in (problem.sensitivity.lower, problem.sensitivity.upper)]
    return [
        with_decimals(table.value, table.decimals, comma=comma),
        *(_plain(column, comma) for column in numbers),
        pl.Series(letter, dtype=pl.String),
        *levels,
    ]


def _plain(values: Floats, comma: bool) -> pl.Series:
    text = as_text(values)
    return text.str.replace(".", ",", literal=True) if comma else text
