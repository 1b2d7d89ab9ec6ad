"""A problem as files that τ-ARGUS can open: `.tab` with `.rda` and `.hrc`, a JJ file, and the `.arb` that runs them.

Everything here is confidential. τ-ARGUS holds tables that are products of trees, single or linked by common dimensions.
What it cannot hold is said in the notes: structures that are no tree (only the JJ file holds them), sliding levels and
an attacker's bounds (which are in the JJ file, but not in the `.tab`), who the contributors are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy import sparse

from tablesafe.core.equations import Mask
from tablesafe.core.errors import InvalidTable
from tablesafe.core.linking import RESPONSE
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release
from tablesafe.core.sensitivity import Sensitivity
from tablesafe.core.table import Table
from tablesafe.io.jj import jj_text
from tablesafe.io.tauargus_meta import Role
from tablesafe.io.tauargus_write_layout import is_whole
from tablesafe.io.tauargus_write_options import WriteOptions
from tablesafe.io.tauargus_write_sheet import Sheet
from tablesafe.io.tauargus_write_tab import Texts, column_roles, intermediate
from tablesafe.rules.contributions import SHADOW
from tablesafe.tabulate.plan import RECORDS

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
        only = f"There is only a JJ file. {str(error).partition(chr(10))[0]}"
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
