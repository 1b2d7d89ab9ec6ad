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
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl

from tablesafe.core.equations import Floats, Mask
from tablesafe.core.errors import InvalidFile, InvalidHierarchy, InvalidOption, InvalidTable, Setting
from tablesafe.core.hierarchy import Hierarchy
from tablesafe.core.problem import Problem
from tablesafe.core.sensitivity import Rule, Sensitivity
from tablesafe.core.statuses import LETTERS, Meaning
from tablesafe.core.table import Table
from tablesafe.files.read import Source
from tablesafe.files.write import write_text
from tablesafe.io.apriori import MANUAL_RANGE
from tablesafe.io.matching import match_cells
from tablesafe.io.text import as_text, count_entries, read_lines, split_lines, with_decimals
from tablesafe.rules.contributions import SHADOW
from tablesafe.tauargus.codes import add_the_line, hierarchy_of
from tablesafe.tauargus.metadata import Metadata, Role, Variable, write_metadata
from tablesafe.tauargus.microdata import metadata_for
from tablesafe.tauargus.statuses import Argus, argus_statuses

# -- lines -------------------------------------------------------------------------------------------------------------


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
        raise InvalidFile(f"{source.name} has no column of values.", hint="is it separated by commas?")
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
                f"Code {codes.filter(bad)[0]!r} of {name!r} cannot be written in this format.",
                hint="remove the line break from it.",
            )


def joined(columns: Sequence[pl.Series], separator: str) -> str:
    """Columns of text as lines."""
    frame = pl.DataFrame([column.alias(str(i)) for i, column in enumerate(columns)])
    lines = frame.select(pl.concat_str(pl.all(), separator=separator)).to_series()
    return "".join(line + "\n" for line in lines.to_list())


# -- cells -------------------------------------------------------------------------------------------------------------


EMPTY = "\x00empty"
"""The column that marks empty cells while a table is read; no variable can have this name."""


def build_table(
    source: Source, metadata: Metadata, value: str, shadow: str | None, totals: str, tolerance: float
) -> Table:
    """The table of a file's lines, in which every sum holds; `shadow` is what the largest contributions are of."""
    hierarchies = {variable.name: _hierarchy(source, variable, metadata) for variable in metadata.dimensions}
    count = metadata.having(Role.COUNT)
    counted = bool(count) and count[0].name == value
    largest = [] if counted else [variable.name for variable in metadata.having(Role.LARGEST)]
    others = metadata.having(Role.RESPONSE, Role.SHADOW)
    if largest:
        _refuse_large_contributions(source, shadow or value, largest)
    columns = dict.fromkeys([*(variable.name for variable in others), *([] if shadow is None else [shadow])])

    def build(missing: Literal["error", "compute"], tolerance: float, largest: Sequence[str] = largest) -> Table:
        return Table.from_cells(
            source,
            dimensions=hierarchies,
            value=value,
            count=count[0].name if count else None,
            largest=largest,
            structural_zero=EMPTY,
            columns=[name for name in columns if name != value],
            missing_totals=missing,
            tolerance=tolerance,
        )

    try:
        table = build("error", tolerance) if totals == "check" else _computed(source.name, build, largest)
    except InvalidHierarchy as error:
        raise add_the_line(error, hierarchies) from None
    except InvalidTable as error:
        raise _located(error, source, value, lambda: build("compute", np.inf, ())) from None
    if shadow is not None:
        table = replace(table, columns={**table.columns, SHADOW: table.columns[shadow]})
    zero = table.structural_zero
    return table if zero is None else replace(table, structural_zero=zero & (table.integers == 0))


def _computed(name: str, build: Callable[..., Table], largest: Sequence[str]) -> Table:
    """The table with its totals computed; nobody can say who the largest are of a total that was not there."""
    try:
        return build("compute", np.inf)
    except InvalidTable as error:
        if not largest or error.about != ("contributors",):
            raise
    warnings.warn(
        f"{name}: totals are missing and were computed. Their largest contributions are not known, so that none are "
        f"used ({', '.join(largest)}).",
        stacklevel=5,
    )
    return build("compute", np.inf, ())


def _located(error: InvalidTable, source: Source, value: str, added_up: Callable[[], Table]) -> InvalidTable:
    """What is wrong with the sums, with the line of the first total that is off, and the remedy in τ-ARGUS's words."""
    remedy = 'or have totals computed from the innermost cells: <READTABLE> 1, or totals="compute".'
    what = error.message
    if error.about == ("source", "missing_totals"):
        return InvalidTable(what, hint=f"add the row, {remedy}", about=error.about)
    if error.about != ("source", "tolerance") and error.about[:1] != ("dimension",):
        return error
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        table = added_up()
    given = source.numbers(value, missing=0.0)
    rows = rows_of(table, source)
    values = np.where(rows >= 0, given[rows], table.value)
    off = np.asarray(table.equations @ values)
    wrong = np.flatnonzero((np.abs(off) > 0.5 * 10.0**-table.decimals) & (rows[table.totals] >= 0))
    if not wrong.size:
        return InvalidTable(f"{source.name} does not add up. {what}", hint=f"correct it, {remedy}")
    first = int(wrong[np.argmin(rows[table.totals[wrong]])])
    total = int(table.totals[first])
    more = f" (and {wrong.size - 1:,} more sums)" if wrong.size > 1 else ""
    shown = f",.{table.decimals}f"
    return InvalidTable(
        f"{source.where(int(rows[total]))}: cell {table.describe(total)} is {values[total]:{shown}}, but its parts add "
        f"up to {values[total] + off[first]:{shown}}: the table is not additive{more}.",
        hint=f"correct {source.name} or the hierarchy, {remedy}",
    )


def _hierarchy(source: Source, variable: Variable, metadata: Metadata) -> Hierarchy:
    found = source.text(variable.name, strip=not variable.levels).drop_nulls().unique(maintain_order=True)
    return hierarchy_of(variable, metadata, [code.rstrip() for code in found.to_list()])


def _refuse_large_contributions(source: Source, value: str, largest: Sequence[str]) -> None:
    """What the largest contribute cannot be more than the cell, unless something negative is in it."""
    amounts = np.column_stack([source.numbers(name, missing=0.0) for name in largest])
    values = source.numbers(value)
    bad = (amounts >= 0).all(axis=1) & (values >= 0) & (amounts.sum(axis=1) > values * (1 + 1e-9) + 1e-9)
    if bad.any():
        row = int(np.argmax(bad))
        raise InvalidFile(
            f"The largest contributions at {source.where(row)} add up to {amounts[row].sum():,.12g}, more than the "
            f"cell's {values[row]:,.12g}.",
            hint=f"check the columns {', '.join(map(repr, largest))}.",
        )


def rows_of(table: Table, source: Source) -> Any:
    """The row that each cell was read from, −1 for a total that was computed."""
    cells = match_cells(table, source)
    rows = np.full(len(table), -1, dtype=np.int64)
    order = np.arange(len(cells))[::-1]
    known = cells[order] >= 0
    rows[cells[order][known]] = order[known]
    return rows


# -- tables ------------------------------------------------------------------------------------------------------------


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
        raise InvalidOption(f"The separator {separator!r} cannot be told from the numbers.", hint="';' always can.")
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
                f"{variable.name!r} is no response: {metadata.path.name} calls it {variable.role.value}.",
                hint="add <NUMERIC> to it.",
            )
        return variable.name
    responses = metadata.responses or metadata.having(Role.COUNT)
    if len(responses) != 1:
        names = ", ".join(repr(variable.name) for variable in responses) or "none"
        raise InvalidFile(
            f"{metadata.path.name} has {len(responses)} response variables ({names}).",
            hint=(
                "say which: ",
                Setting("response"),
            ),
        )
    return responses[0].name


def _read(path: Path, metadata: Metadata) -> Source:
    if not metadata.dimensions:
        raise InvalidFile(f"{metadata.path.name} has no dimension.", hint="add <RECODEABLE> to the variables that are.")
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
                f"{variable.name!r} is no dimension: {metadata.path.name} calls it {variable.role.value}.",
                hint="add <RECODEABLE> to it.",
            )
    rows = pl.Series(np.arange(source.frame.height))
    for variable in metadata.dimensions:
        if variable not in chosen:
            here = (source.text(variable.name).fill_null("") == variable.total.strip())[rows]
            if not here.any():
                raise InvalidFile(
                    f"{source.name} has no cell at the total {variable.total!r} of {variable.name!r}, over which the "
                    f"table is added up.",
                    hint=f"name {variable.name!r} too, or correct its <TOTCODE>.",
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
            f"{metadata.protect} protected; M is secondary, E empty.",
            hint="<SAFE>, <UNSAFE> and <PROTECT> set letters that differ.",
        )
    text = source.text(column[0].name).fill_null("").str.to_lowercase()
    found = text.replace_strict(
        list(letters), [int(meaning) for meaning in letters.values()], default=255, return_dtype=pl.UInt8
    ).to_numpy()
    bad = found == 255
    if bad.any():
        row = int(np.argmax(bad))
        raise InvalidFile(
            f"{source.where(row)} has the status {source.frame[column[0].name][row]!r}.",
            hint=f"statuses here are {metadata.safe} safe, {metadata.unsafe} unsafe, {metadata.protect} protected, "
            f"M secondary, E empty; <SAFE>, <UNSAFE> and <PROTECT> in {metadata.path.name} set other letters.",
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
        raise InvalidFile(f"{source.where(row)} is marked as empty, but has a value.", hint="correct its status.")
    unsafe = blank & (meaning == Meaning.SENSITIVE)
    if unsafe.any():
        row = int(np.argmax(unsafe))
        raise InvalidFile(f"{source.where(row)} is unsafe, but has no value.", hint="fill in the value.")
    frame = frame.with_columns(pl.col(value).fill_null("0"), pl.Series(EMPTY, (told | blank).astype(np.int64)))
    return Source(frame, source.name, source.first_line)


def _given(source: Source, name: str, row_of_cell: Any, what: str) -> tuple[Floats, Mask]:
    """A column of numbers by cell, and for which cells it is filled in; none may be negative."""
    numbers, filled = source.numbers(name, missing=0.0), source.frame[name].is_not_null().to_numpy()
    bad = numbers < 0
    if bad.any():
        raise InvalidFile(f"{source.where(int(np.argmax(bad)))} has a negative {what}.", hint="it must be 0 or more.")
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
        raise InvalidTable("A table without dimensions has no .tab file.", hint="write it as JJ.")
    for name, tree in table.dimensions.items():
        if not tree.is_tree and len(tree) > 1:
            raise InvalidTable(
                f"Dimension {name!r} is not a tree with one total, so τ-ARGUS cannot hold it.",
                hint="write the table as JJ.",
            )
        bad = next((code for code in tree.codes if '"' in code or "\n" in code or code != code.rstrip()), None)
        if bad is not None:
            raise InvalidTable(
                f"Code {bad!r} of {name!r} cannot be written to {path.name}.",
                hint="codes there hold no double quotes, and no spaces at the end.",
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
    depth = 0 if table.contributors is None else table.contributors.certain
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
        numbers += list(table.contributors.amount[:, : table.contributors.certain].T)
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
