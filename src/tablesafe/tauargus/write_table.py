"""A release, or all that the office knows of a table, as `<WRITETABLE>` of τ-ARGUS would write it.

| type | file | holds |
|---|---|---|
| 1 | CSV | the release as a grid of rows and columns |
| 2 | CSV for a pivot table | the release, one line per cell, names on the first line |
| 3 | code-value | the release, one line per cell |
| 4 | SBS | every true value with its count and flag: **confidential**, for Eurostat only |
| 5 | intermediate (`.tab`, `.rda`, `.hrc`, `.cdl`) | values, costs, statuses, levels, contributors: **confidential** |
| 6 | JJ | values, costs, statuses, bounds, levels, equations: **confidential** |
| 7 | cell key | the perturbed values; **confidential** with AO+ (original), AD+ (difference), AC+ (key) |

In a release what is withheld is `x` and what is empty is `-`; nothing tells a sensitive cell from another. With `AS+`
types 2 and 3 are no release: as in τ-ARGUS they then hold the status and the true value of every cell. Whatever is
confidential is marked so, and written for its owner's eyes only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import polars as pl

from tablesafe.audit.findings import Findings
from tablesafe.core.equations import Floats
from tablesafe.core.errors import InvalidOption, InvalidRelease
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release, Status
from tablesafe.core.table import Table
from tablesafe.files.write import write_text
from tablesafe.io.jj import jj_text
from tablesafe.io.text import with_decimals
from tablesafe.rules.contributions import SHADOW
from tablesafe.rules.linear import PQ, PPercent
from tablesafe.tauargus.intermediate import described_dimensions, distinct, intermediate
from tablesafe.tauargus.metadata import Metadata, Role, Variable, metadata_text
from tablesafe.tauargus.sheet import (
    WITHHELD,
    Kind,
    Layout,
    Protected,
    Sheet,
    WriteOptions,
    parse_kind,
    parse_options,
    protected_how,
    quoted,
    response_name,
    unused,
)
from tablesafe.tauargus.statuses import Argus, sbs_flags
from tablesafe.tauargus.table import joined, refuse_unwritable

# -- types 1, 2 and 3: a release as a grid, or one line per cell -------------------------------------------------------


def listed(sheet: Sheet, *, names: bool) -> str:
    layout, truth = sheet.layout(), sheet.tells_the_truth
    columns = layout.codes(quotes=sheet.options.QU)
    columns.append(layout.spread(sheet.true() if truth and sheet.how == "suppressed" else sheet.published()))
    if truth and sheet.how != "suppressed":
        columns.append(layout.spread(sheet.true()))
    if truth and sheet.how != "rounded":
        status = pl.Series(sheet.status).cast(pl.String)
        columns.append(layout.spread(status, absent=str(int(Argus.EMPTY))))
    first = ",".join(_first_line(sheet)) + "\n" if names else ""
    return first + joined(columns, ",")


def _first_line(sheet: Sheet) -> list[str]:
    response = response_name(sheet.problem)
    ending = {"rounded": "_Round", "adjusted": "_CTA"}.get(sheet.how, "")
    names = [*sheet.problem.table.dimensions, response + ending]
    if sheet.tells_the_truth:
        names += [] if sheet.how == "suppressed" else [f"{response}_Orig"]
        names += [] if sheet.how == "rounded" else ["Status"]
    return quoted(pl.Series(names, dtype=pl.String), "the first line", quotes=sheet.options.QU).to_list()


def status_notes(sheet: Sheet) -> list[str]:
    if sheet.tells_the_truth:
        return ["AS+: the file holds the status and the true value of every cell. It is not for publication."]
    return ["AS+: τ-ARGUS adds no status to perturbed values."] if sheet.options.AS else []


def grid(sheet: Sheet) -> str:
    """Rows and columns; of more than two dimensions, one block per combination of the codes of the first ones."""
    layout = Layout.of(sheet.problem.table, lines="grid", widths=sheet.widths)
    labels = [
        quoted(entries.names, name, quotes=sheet.options.QU).to_list()
        for name, entries in zip(sheet.problem.table.dimensions, layout.lists, strict=True)
    ]
    sizes = [len(codes) for codes in labels]
    shown = layout.spread(sheet.published())
    head = "," + ",".join(labels[-1]) + "\n"
    if len(sizes) == 1:
        return head + "," + ",".join(shown.to_list()) + "\n"
    columns = [shown.gather_every(sizes[-1], j).alias(str(j)) for j in range(sizes[-1])]
    rows = pl.Series(labels[-2] * (len(shown) // (sizes[-1] * sizes[-2])), dtype=pl.String)
    lines = joined([rows, *columns], ",").splitlines(keepends=True)
    blocks = []
    for i, start in enumerate(range(0, len(lines), sizes[-2])):
        above = np.unravel_index(i, sizes[:-2]) if len(sizes) > 2 else ()
        where = ", ".join(f"Var {d + 1},{labels[d][int(at)]}" for d, at in enumerate(above))
        blocks.append((where + "\n" if where else "") + head + "".join(lines[start : start + sizes[-2]]) + "\n")
    return "".join(blocks)


# -- types 4, 6 and 7: what is passed on inside the office, or to Eurostat ---------------------------------------------
#
# Only the perturbed values of type 7 are for the public, unless the original ones are asked for beside them.


# -- SBS ---------------------------------------------------------------------------------------------------------------


def sbs(sheet: Sheet) -> str:
    """`code[,level],…,value,count,flag[,share[,share]]`: empty cells are left out.

    The count is that of holdings where there are any. Of a cell that is sensitive by a rule on shares or by hand the
    largest contributor's percentage follows; with a p% rule that of the second too, otherwise that of both together.
    """
    table = sheet.problem.table
    lines = Layout.of(table, lines="cells", widths=sheet.widths)
    lines = lines.keep(~(sheet.empty | sheet.by_design)[lines.cell])
    columns: list[pl.Series] = []
    for code, level in zip(lines.codes(quotes=sheet.options.QU), lines.levels(), strict=True):
        columns += [code, level] if sheet.options.HL else [code]
    columns += [lines.spread(sheet.true()), lines.spread(_heads(table))]
    columns.append(lines.spread(_flags_with_shares(sheet)))
    return joined(columns, ",")


def _heads(table: Table) -> pl.Series:
    count = table.count if table.holdings is None else table.holdings
    return pl.Series([""] * len(table), dtype=pl.String) if count is None else pl.Series(count).cast(pl.String)


def _flags_with_shares(sheet: Sheet) -> pl.Series:
    flag = sbs_flags(sheet.problem, sheet.release)
    text = pl.Series(flag, dtype=pl.String)
    told = pl.Series(np.isin(flag, ["B", "C", "F"]))
    for share in _shares(sheet):
        text = text.zip_with(~told, text + "," + share)
    return text


def _shares(sheet: Sheet) -> list[pl.Series]:
    """What the largest hold of each cell, in percent; 0.0 where that is not known."""
    table = sheet.problem.table
    amount = np.zeros((len(table), 0)) if table.contributors is None else np.abs(table.contributors.amount)
    total = np.abs(np.asarray(table.columns.get(SHADOW, table.value), dtype=np.float64))
    first = amount[:, :1].sum(axis=1)
    if any(isinstance(rule, PPercent | PQ) for rule in sheet.problem.rules):
        parts = [first, amount[:, 1:2].sum(axis=1)]
    else:
        parts = [amount[:, :2].sum(axis=1)]
    share = [np.divide(100 * part, total, out=np.zeros_like(total), where=total > 0) for part in parts]
    return [with_decimals(np.round(each, 1), 1) for each in share]


# -- JJ and cell key ---------------------------------------------------------------------------------------------------


def jj(sheet: Sheet) -> str:
    """A JJ file of the problem, with the cells that the release withholds for others as suppressed."""
    others = np.isin(sheet.release.status, [Status.COMPLEMENTARY, Status.GIVEN])
    return jj_text(sheet.problem.replace(suppressed=sheet.problem.suppressed | others))


def cell_key(sheet: Sheet, name: str) -> dict[str, str]:
    """`code;…;value[;original][;difference]`, and the `.rda` that describes it."""
    table, path, lines = sheet.problem.table, Path(name), sheet.layout()
    refuse_unwritable(table, path)
    values = np.nan_to_num(sheet.release.values)
    response = response_name(sheet.problem)
    told: list[tuple[str, Floats]] = [(response, values)]
    told += [(f"{response}_Orig", table.value)] if sheet.options.AO else []
    told += [(f"{response}_Diff", values - table.value)] if sheet.options.AD else []
    columns = lines.codes(quotes=sheet.options.QU)
    hidden = pl.Series(sheet.release.suppressed)
    columns += [lines.spread(sheet.number(each).set(hidden, WITHHELD), absent="0") for _, each in told]
    names = distinct([each for each, _ in told], table)
    variables, described = described_dimensions(table.dimensions, path)
    variables += [Variable(name=each, role=Role.RESPONSE, decimals=table.decimals) for each in names]
    metadata = Metadata(variables=tuple(variables), kind="table", separator=";", path=path)
    return {name: joined(columns, ";"), path.with_suffix(".rda").name: metadata_text(metadata), **described}


# -- all types ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TableFile:
    """One file: its name, its text, and whether it must stay in the office."""

    name: str
    text: str = field(repr=False)
    confidential: bool


@dataclass(frozen=True, slots=True)
class TableFiles:
    """The files of one `<WRITETABLE>`, the one it names first, and what could not be put into them."""

    files: tuple[TableFile, ...]
    notes: tuple[str, ...] = ()

    @property
    def confidential(self) -> bool:
        """Whether any of them must stay in the office."""
        return any(file.confidential for file in self.files)


def write_table(
    release: Release,
    problem: Problem,
    path: str | Path,
    kind: int | str,
    options: str | WriteOptions = "",
    *,
    findings: Findings | None = None,
    decimals: int | None = None,
    widths: Mapping[str, int] | None = None,
) -> TableFiles:
    """Write a table to a file, and to others beside it where its type has them; see `table_files`.

    Confidential files are readable by their owner only. Nothing is written unless everything can be.
    """
    path = Path(path)
    written = table_files(
        release, problem, path.name, kind, options, findings=findings, decimals=decimals, widths=widths
    )
    for file in written.files:
        write_text(path.parent / file.name, file.text, private=file.confidential)
    return written


def table_files(
    release: Release,
    problem: Problem,
    name: str,
    kind: int | str,
    options: str | WriteOptions = "",
    *,
    findings: Findings | None = None,
    decimals: int | None = None,
    widths: Mapping[str, int] | None = None,
) -> TableFiles:
    """The files of a table as text: `kind` is the type of τ-ARGUS (1 to 7), `options` are such as `AS+SE+`.

    `findings` are those of `audit(problem, release, cells="all")`, for `AR+`; without them the table is audited.
    `decimals` are shown of every value; by default as many as the table has. `widths` gives the width of codes by
    dimension: τ-ARGUS puts spaces before shorter codes of a variable that has no hierarchy file.
    """
    if release.table is not problem.table and len(release.table) != len(problem.table):
        raise InvalidRelease("The release is not one of this problem: they have different cells.")
    form = parse_kind(kind)
    wanted = options if isinstance(options, WriteOptions) else parse_options(options)
    _refuse_unsuited(form, protected_how(release))
    sheet = Sheet(problem, release, wanted, decimals, widths)
    asked = "" if isinstance(options, WriteOptions) else options
    notes = [f"{letters}+ says nothing to a file of type {form.value}." for letters in unused(form, asked)]
    match form:
        case Kind.CSV:
            files = [TableFile(name, grid(sheet), False)]
        case Kind.PIVOT | Kind.CODE_VALUE:
            files = [TableFile(name, listed(sheet, names=form is Kind.PIVOT or wanted.FL), sheet.tells_the_truth)]
            notes += status_notes(sheet)
        case Kind.SBS:
            files = [TableFile(name, sbs(sheet), True)]
        case Kind.INTERMEDIATE:
            written = intermediate(sheet, name, findings)
            files, more = [TableFile(file, text, True) for file, text in written.texts.items()], written.notes
            notes += more
        case Kind.JJ:
            files = [TableFile(name, jj(sheet), True)]
        case Kind.CELL_KEY:
            told = wanted.AO or wanted.AD or wanted.AC
            files = [TableFile(file, text, told) for file, text in cell_key(sheet, name).items()]
            if wanted.AC:
                notes.append("AC+: a release does not hold the keys of its cells; they are not written.")
    if release.intervals is not None and form in {Kind.CSV, Kind.PIVOT, Kind.CODE_VALUE}:
        notes.append("The intervals that the release publishes have no place in this format.")
    return TableFiles(tuple(files), tuple(notes))


def _refuse_unsuited(kind: Kind, how: Protected) -> None:
    """The combinations that τ-ARGUS refuses too."""
    wrong = (
        (kind in {Kind.SBS, Kind.INTERMEDIATE} and how in {"adjusted", "perturbed"})
        or (kind is Kind.JJ and how == "rounded")
        or (kind is Kind.CELL_KEY and how != "perturbed")
    )
    if wrong:
        raise InvalidOption(
            f"A table that is {how} cannot be written as type {kind.value} ({kind.name.lower().replace('_', ' ')}).",
            hint="types 1, 2 and 3 hold any release.",
        )
