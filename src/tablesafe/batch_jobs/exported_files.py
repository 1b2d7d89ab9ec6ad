"""A problem as files that τ-ARGUS can open: `.tab` with `.rda` and `.hrc`, a JJ file, and the `.arb` that runs them.

Everything here is confidential. τ-ARGUS holds tables that are products of trees, single or linked by common dimensions.
What it cannot hold is said in the notes: structures that are no tree (only the JJ file holds them), sliding levels and
an attacker's bounds (which are in the JJ file, but not in the `.tab`), who the contributors are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import polars as pl
from scipy import sparse

from tablesafe.core.equations import Mask
from tablesafe.core.errors import InvalidTable
from tablesafe.core.hierarchy import Hierarchy
from tablesafe.core.linking import RESPONSE
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release
from tablesafe.core.sensitivity import Sensitivity
from tablesafe.core.table import Table
from tablesafe.files.read import guess_delimiter
from tablesafe.io.jj import jj_text
from tablesafe.rules.contributions import SHADOW
from tablesafe.tabulate.plan import RECORDS
from tablesafe.tauargus.metadata import Metadata, Role, Variable, metadata_text
from tablesafe.tauargus.sheet import Sheet, WriteOptions, is_whole
from tablesafe.tauargus.write_table import Texts, column_roles, intermediate, labels_text

MANUAL = "MAN(20)"
"""The rule of a table whose cells have their status and levels already."""
LINKED = 0
"""The number that stands for all tables together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Commands:
    """What a batch file does with its tables: a `<SUPPRESS>` for table `{}`, and the files to write."""

    suppress: str | None = "MOD({},1,1,1,1)"
    writes: tuple[str, ...] = ("safe.csv",)
    comments: tuple[str, ...] = field(default=())


def problem_files(problem: Problem, name: str, commands: Commands) -> Texts:
    """The files of a problem, the batch file first; only a JJ file where τ-ARGUS has no table of this kind."""
    try:
        tables = subtables(problem)
        written = _written(tables, name)
    except InvalidTable as error:
        only = f"There is only a JJ file. {error.message.partition(chr(10))[0]}"
        return Texts({f"{name}.jj": jj_text(problem)}, [*commands.comments, only, *_not_there(problem)])
    notes = [*commands.comments, *(note for each in written for note in each.notes), *_not_there(problem)]
    if RESPONSE in problem.table.dimensions:
        notes.append(f"The response variables are a further dimension there, called {RESPONSE!r}.")
    notes = list(dict.fromkeys(notes))
    texts = {
        f"{name}.arb": _batch(tables, written, name, commands, notes),
        **{file: text for each in written for file, text in each.texts.items()},
        f"{name}.jj": jj_text(problem),
    }
    return Texts(texts, notes)


def _not_there(problem: Problem) -> list[str]:
    """What neither a `.tab` nor a JJ file holds."""
    notes = []
    if problem.withheld.any():
        notes.append("Cells withheld by design are written as suppressed, in the JJ file at no cost.")
    if problem.table.contributors is not None and bool((problem.table.contributors.identity >= 0).any()):
        notes.append("Who the largest contributors are is not in the files: nobody can tell that two are the same.")
    return notes


def subtables(problem: Problem) -> list[Problem]:
    """The tables that a problem links: each a whole product of some of its dimensions, with the others at their totals.

    A problem that is one whole table is itself.
    """
    table = problem.table
    if not table.dimensions:
        raise InvalidTable("A table without dimensions is nothing that τ-ARGUS can tabulate.")
    if RESPONSE in table.dimensions and not table.dimensions[RESPONSE].is_tree:
        raise InvalidTable("τ-ARGUS cannot link response variables that do not add up to one of them.")
    for name, tree in table.dimensions.items():
        if not tree.is_tree and len(tree) > 1:
            raise InvalidTable(f"Dimension {name!r} is not a tree with one total, so τ-ARGUS cannot hold it.")
    if is_whole(table):
        return [problem]
    parts = [_part(problem, names) for names in _spanned(table)]
    torn = next((part for part in parts if not is_whole(part.table)), None)
    if torn is not None:
        named = " × ".join(torn.table.dimensions)
        raise InvalidTable(f"The table {named} is not whole: some of its cells are not the sum of those below them.")
    return parts


def _spanned(table: Table) -> list[tuple[str, ...]]:
    """The sets of dimensions that the tables span: of each cell those not at their total, and of these the largest."""
    names = list(table.dimensions)
    top = np.array([tree.position(tree.roots[0]) for tree in table.dimensions.values()])
    inside = np.unique(table.codes != top, axis=0)
    sets = sorted({frozenset(np.flatnonzero(row).tolist()) for row in inside}, key=len, reverse=True)
    largest = [one for i, one in enumerate(sets) if not any(one < other for other in sets[:i])]
    return [tuple(names[d] for d in sorted(one)) for one in sorted(largest, key=sorted) if one]


def _part(problem: Problem, names: Sequence[str]) -> Problem:
    """The cells of a problem in some of its dimensions, without their equations."""
    table = problem.table
    every = list(table.dimensions)
    at = [every.index(name) for name in names]
    rest = [d for d in range(len(every)) if d not in at]
    top = [table.dimensions[every[d]].position(table.dimensions[every[d]].roots[0]) for d in rest]
    keep: Mask = (table.codes[:, rest] == np.array(top, dtype=np.int32)).all(axis=1)
    part = Table(
        table.integers[keep], table.decimals, sparse.csr_array((0, int(keep.sum())), dtype=np.int8),
        np.zeros(0, np.int64), {name: table.dimensions[name] for name in names}, table.codes[keep][:, at],
        response=table.response,
        count=None if table.count is None else table.count[keep],
        holdings=None if table.holdings is None else table.holdings[keep],
        contributors=None if table.contributors is None else table.contributors.take(np.flatnonzero(keep)),
        structural_zero=None if table.structural_zero is None else table.structural_zero[keep],
        columns={name: column[keep] for name, column in table.columns.items()},
        signed=None if table.signed is None else table.signed[keep],
        empty=table.empty,
    )  # fmt: skip
    own = problem.sensitivity
    return Problem(
        part,
        sensitivity=Sensitivity(
            own.mask[keep], own.lower[keep], own.upper[keep], own.sliding[keep], own.reason[keep], own.reasons
        ),
        lower=problem.lower[keep], upper=problem.upper[keep], cost=problem.cost[keep], frozen=problem.frozen[keep],
        suppressed=problem.suppressed[keep], withheld=problem.withheld[keep],
    )  # fmt: skip


def _written(tables: Sequence[Problem], name: str) -> list[Texts]:
    options = WriteOptions()
    files = [f"{name}.tab"] if len(tables) == 1 else [f"{name}_{i + 1}.tab" for i in range(len(tables))]
    return [
        intermediate(Sheet(table, before(table), options, counts_tell=False), file, own_cells=True)
        for table, file in zip(tables, files, strict=True)
    ]


def before(problem: Problem) -> Release:
    """The problem as it stands before anything further is withheld."""
    return Release.from_suppression(problem, problem.sensitivity.mask | problem.suppressed)


def _batch(
    tables: Sequence[Problem], written: Sequence[Texts], name: str, commands: Commands, notes: Iterable[str]
) -> str:
    lines = opening(name, notes)
    for problem, texts in zip(tables, written, strict=True):
        tab, rda = list(texts.texts)[:2]
        name_of = {role: name for name, role in reversed(column_roles(problem, WriteOptions()))}
        spanned = "".join(f'"{dimension}"' for dimension in problem.table.dimensions)
        counts = problem.table.response == RECORDS
        response = "<freq>" if counts else f'"{name_of[Role.RESPONSE]}"'
        shadow = f'"{name_of[Role.SHADOW]}"' if SHADOW in problem.table.columns else ""
        lines += [
            f'<OPENTABLEDATA> "{tab}"',
            f'<OPENMETADATA> "{rda}"',
            f'<SPECIFYTABLE> {spanned}|{response}|{shadow}|"{name_of[Role.COST]}"',
            f"<SAFETYRULE> {MANUAL}",
        ]
    return "\n".join([*lines, "<READTABLE>", *closing(len(tables), commands)]) + "\n"


def opening(name: str, notes: Iterable[str]) -> list[str]:
    """The first lines of a batch file: what it is, and what it leaves out."""
    said = [line.replace("τ-ARGUS", "tau-ARGUS") for note in notes for line in note.splitlines()]
    return [f"// {name}: exported by tablesafe", *(f"// {line}" for line in said)]


def closing(tables: int, commands: Commands) -> list[str]:
    """The last lines of a batch file: protect, and write each table."""
    number = 1 if tables == 1 else LINKED
    lines = [] if commands.suppress is None else [f"<SUPPRESS> {commands.suppress.format(number)}"]
    for file in commands.writes:
        for table in range(1, tables + 1):
            stem, dot, ending = file.rpartition(".")
            target = file if tables == 1 else f"{stem}_{table}{dot}{ending}"
            lines.append(f'<WRITETABLE> ({table},2,,"{target}")')
    return lines


# -- records -----------------------------------------------------------------------------------------------------------
#
# τ-ARGUS compares codes with the whole width of their field, so that shorter ones have spaces before them, in the
# records and at the leaves of the `.hrc` file. A record carries the code of a leaf; where a group has a single part,
# the part's.


WIDEST = 255
"""Characters that a field may have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One variable of the records, as text."""

    name: str
    role: Role
    text: pl.Series = field(repr=False)
    tree: Hierarchy | None = None
    decimals: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class MicroTable:
    """A table to make of the records, in τ-ARGUS's words."""

    dimensions: tuple[str, ...]
    response: str | None
    rules: str
    shadow: str = ""
    cost: str = ""

    @property
    def line(self) -> str:
        """How a batch file specifies it."""
        spanned = "".join(f'"{name}"' for name in self.dimensions)
        response = "<freq>" if self.response is None else f'"{self.response}"'
        shadow = f'"{self.shadow}"' if self.shadow else ""
        cost = self.cost if self.cost.startswith("-") or not self.cost else f'"{self.cost}"'
        return f"<SPECIFYTABLE> {spanned}|{response}|{shadow}|{cost}"


def record_files(
    columns: Sequence[Column],
    tables: Sequence[MicroTable],
    name: str,
    commands: Commands,
    apriori: Mapping[str, str] | None = None,
) -> Texts:
    """The files of records and of the tables to make of them, the batch file first.

    `apriori` are a-priori files by name, for all tables; they stand in the folder too.
    """
    columns = [_spelled(column) for column in columns]
    variables, fields, start = [], [], 1
    files, labels = _tree_files(columns, name), _label_files(columns, name)
    for column in columns:
        width = max(1, int(column.text.str.len_chars().max() or 1), *_leaf_widths(column))  # type: ignore[arg-type]
        if width > WIDEST:
            raise InvalidTable(f"{column.name!r} has entries of {width} characters, more than τ-ARGUS reads.")
        variables.append(_variable(column, files.get(column.name), labels.get(column.name), start, width))
        fields.append(column.text.fill_null("").str.pad_start(width))
        start += width
    metadata = Metadata(variables=tuple(variables), kind="micro", path=Path(f"{name}.rda"))
    lines = opening(name, commands.comments)
    lines += [f'<OPENMICRODATA> "{name}.asc"', f'<OPENMETADATA> "{name}.rda"']
    for table in tables:
        lines += [table.line, f"<SAFETYRULE> {table.rules}"]
    lines.append("<READMICRODATA>")
    for file, text in (apriori or {}).items():
        lines += [f'<APRIORI> "{file}", {i + 1}, "{guess_delimiter(text)}", 0, 0' for i in range(len(tables))]
    frame = pl.DataFrame([text.alias(str(i)) for i, text in enumerate(fields)])
    rows = frame.select(pl.concat_str(pl.all())).to_series()
    texts = {
        f"{name}.arb": "\n".join([*lines, *closing(len(tables), commands)]) + "\n",
        f"{name}.asc": "".join(row + "\n" for row in rows.to_list()),
        f"{name}.rda": metadata_text(metadata),
        **{file: _padded(tree, width).hrc_text(indent=indent) for file, indent, tree, width in files.values()},
        **dict(labels.values()),
        **(apriori or {}),
    }
    return Texts(texts, [])


def is_plain(tree: Hierarchy) -> bool:
    """Whether τ-ARGUS can read records with the codes of a hierarchy: a tree whose codes differ by more than spaces."""
    names = [*tree.codes, *tree.aliases]
    clean = all(code.strip() and '"' not in code and "\n" not in code for code in names)
    return tree.is_tree and clean and len({code.strip() for code in names}) == len(names)


def _leaves(tree: Hierarchy) -> dict[str, str]:
    """The name of each leaf that a record carries: of several, that of the deepest level."""
    names = {code: code for code in tree.leaves}
    for alias, code in tree.aliases.items():
        if code in names:
            names[code] = alias
    return names


def _spelled(column: Column) -> Column:
    """The column with every code under the name that the `.hrc` file has for its leaf."""
    if column.tree is None:
        return column
    leaves, tree = _leaves(column.tree), column.tree
    known = {code: code for code in tree.codes} | dict(tree.aliases)
    found = column.text.unique().drop_nulls().to_list()
    spelled = {code: leaves[known[code] if code in known else tree.codes[tree.position(code)]] for code in found}
    text = column.text.replace_strict(
        list(spelled), [each.strip() for each in spelled.values()], return_dtype=pl.String
    )
    return replace(column, text=text)


def _leaf_widths(column: Column) -> list[int]:
    return [] if column.tree is None else [len(name.strip()) for name in _leaves(column.tree).values()]


def _tree_files(columns: Sequence[Column], name: str) -> dict[str, tuple[str, str, Hierarchy, int]]:
    """A file, an indent string, the tree and the width of codes for each dimension of several levels."""
    files = {}
    for i, column in enumerate(columns, start=1):
        tree = column.tree
        if tree is not None and (len(tree.totals) > 1 or tree.aliases):
            indent = "@" * (1 + max(len(code) - len(code.lstrip("@")) for code in (*tree.codes, *tree.aliases)))
            file = f"{name}_{i}_{re.sub(r'[^0-9A-Za-z_-]+', '_', column.name)}.hrc"
            files[column.name] = (file, indent, tree, max(_leaf_widths(column)))
    return files


def _padded(tree: Hierarchy, width: int) -> Hierarchy:
    """The tree with spaces before the names of leaves, up to a width; other codes stay."""
    leaves = set(_leaves(tree).values())
    names = {
        code: code.strip().rjust(width) if code in leaves else code.strip() for code in (*tree.codes, *tree.aliases)
    }
    return replace(
        tree,
        codes=tuple(names[code] for code in tree.codes),
        aliases={names[alias]: names[code] for alias, code in tree.aliases.items()},
        labels={},
    )


def _label_files(columns: Sequence[Column], name: str) -> dict[str, tuple[str, str]]:
    """A file and its text for each dimension whose codes have labels."""
    texts = {column.name: labels_text(column.tree) for column in columns if column.tree is not None}
    return {each: (f"{name}_{i}.cdl", text) for i, (each, text) in enumerate(texts.items(), start=1) if text}


def _variable(
    column: Column, file: tuple[str, str, Hierarchy, int] | None, labels: tuple[str, str] | None, start: int, width: int
) -> Variable:
    described = Variable(name=column.name, role=column.role, start=start, width=width, decimals=column.decimals)
    if column.tree is None:
        return described
    described = replace(described, total=column.tree.roots[0], code_list=None if labels is None else labels[0])
    return described if file is None else replace(described, hierarchical=True, hierarchy_file=file[0], indent=file[1])
