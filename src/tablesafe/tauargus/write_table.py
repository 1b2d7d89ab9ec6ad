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

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import polars as pl

from tablesafe.audit.findings import Findings
from tablesafe.core.equations import Floats
from tablesafe.core.errors import InvalidOption, InvalidRelease
from tablesafe.core.hierarchy import Hierarchy
from tablesafe.core.problem import Problem, least
from tablesafe.core.release import Release, Status
from tablesafe.core.table import Table
from tablesafe.files.write import write_text
from tablesafe.io.jj import jj_text
from tablesafe.io.text import as_text, with_decimals
from tablesafe.rules.contributions import SHADOW
from tablesafe.rules.linear import PQ, PPercent
from tablesafe.tabulate.plan import RECORDS, UNWEIGHTED
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
from tablesafe.tauargus.table import hierarchy_files, joined, refuse_unwritable

LETTERS = {Argus.PROTECTED: "P", Argus.SECONDARY: "M", Argus.SECONDARY_BY_HAND: "M", Argus.EMPTY: "E",
           Argus.SAFE: "S", Argus.SAFE_BY_HAND: "S", Argus.EMPTY_NOT_STRUCTURAL: "S"}  # fmt: skip
AUDITED = 6
"""Columns that AR+ adds: lower, upper, width, and the same in percent of the value."""

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


# -- types 4 to 7: what is passed on inside the office, or to Eurostat -------------------------------------------------
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


# -- type 5, the intermediate format -----------------------------------------------------------------------------------
#
# The columns are those of τ-ARGUS in its order, so that what reads them by position goes on working.


@dataclass(frozen=True, slots=True)
class Texts:
    """Files by name, the main one first, and what could not be put into them."""

    texts: Mapping[str, str] = field(repr=False)
    notes: list[str]


def intermediate(sheet: Sheet, name: str, findings: Findings | None = None, *, own_cells: bool = False) -> Texts:
    """A `.tab` file in τ-ARGUS's order of columns, with its `.rda` and a `.hrc` per hierarchy.

    It reads back as the problem that the next step starts from: sensitive cells `U`, those withheld for others `M`,
    frozen ones `P`, empty ones `E`. With `own_cells` there is no line for combinations of codes without a cell.
    """
    table, path = sheet.problem.table, Path(name)
    refuse_unwritable(table, path)
    lines = Layout.of(table, lines="cells" if sheet.options.SE or own_cells else "combinations")
    if sheet.options.SE:
        lines = lines.keep(~sheet.empty[lines.cell])
    variables, described = described_dimensions(table.dimensions, path)
    columns = lines.codes(quotes=sheet.options.QU)
    roles = column_roles(sheet.problem, sheet.options)
    for (each, role), text in zip(roles, _column_texts(sheet, [role for _, role in roles]), strict=True):
        decimals = table.decimals if role is Role.RESPONSE else 0
        variables.append(Variable(name=each, role=role, decimals=decimals))
        columns.append(lines.spread(text, absent="E" if role is Role.STATUS else "0"))
    if sheet.options.AR:
        columns += [lines.spread(text, absent="0") for text in _audited(sheet, findings)]
    texts = {
        name: joined(columns, ";"),
        path.with_suffix(".rda").name: metadata_text(
            Metadata(variables=tuple(variables), kind="table", separator=";", path=path)
        ),
        **described,
    }
    return Texts(texts, _left_out(sheet))


def described_dimensions(trees: Mapping[str, Hierarchy], path: Path) -> tuple[list[Variable], dict[str, str]]:
    """The variables of the dimensions, and the files that describe their hierarchies and labels."""
    files = hierarchy_files(trees, path)
    variables, texts = [], {}
    for i, (name, tree) in enumerate(trees.items(), start=1):
        variable = Variable(name=name, role=Role.DIMENSION, total=tree.roots[0])
        if name in files:
            file, indent = files[name]
            variable = replace(variable, hierarchical=True, hierarchy_file=file, indent=indent)
            texts[file] = tree.hrc_text(indent=indent)
        labels = labels_text(tree)
        if labels:
            file = f"{path.stem}_{i}.cdl"
            variable, texts[file] = replace(variable, code_list=file), labels
        variables.append(variable)
    return variables, texts


def labels_text(tree: Hierarchy) -> str:
    """The labels of codes as a `.cdl` file holds them: those that it can hold."""
    held = {code: " ".join(label.split()) for code, label in tree.labels.items() if "," not in code and code.strip()}
    return "".join(f"{code},{label}\n" for code, label in held.items() if label)


def column_roles(problem: Problem, options: WriteOptions) -> list[tuple[str, Role]]:
    """The columns after the codes, in τ-ARGUS's order, by names that no dimension has."""
    table = problem.table
    counts = table.response == RECORDS
    name = "FreqVar" if counts else table.response
    depth = 0 if table.contributors is None or not _plain_contributions(table) else table.contributors.certain
    heads = table.holdings if options.HI else table.count
    found = [
        (name, Role.COUNT if counts else Role.RESPONSE),
        *([] if counts or heads is None else [("FreqVar", Role.COUNT)]),
        *([] if counts or options.SO else [(f"{name}_Shadow", Role.SHADOW)]),
        (f"{name}_Cost", Role.COST),
        *([] if options.SO else [(f"Top{j + 1}", Role.LARGEST) for j in range(depth)]),
        ("StatusVar", Role.STATUS),
        ("LowerProtLevel", Role.LOWER_LEVEL),
        ("UpperProtLevel", Role.UPPER_LEVEL),
    ]
    told = distinct([each for each, _ in found], table)
    return [(each, role) for each, (_, role) in zip(told, found, strict=True)]


def _column_texts(sheet: Sheet, roles: Sequence[Role]) -> list[pl.Series]:
    """The columns of these roles, as text."""
    problem, table, status = sheet.problem, sheet.problem.table, sheet.status
    values = sheet.exact_number(np.nan_to_num(sheet.release.values) if sheet.how == "rounded" else table.value)
    heads = table.holdings if sheet.options.HI else table.count
    letter = np.select([status == code for code in LETTERS], list(LETTERS.values()), "U")
    largest = iter([] if table.contributors is None else table.contributors.amount.T)
    levels = {Role.LOWER_LEVEL: problem.sensitivity.lower, Role.UPPER_LEVEL: problem.sensitivity.upper}
    texts = []
    for j, role in enumerate(roles):
        match role:
            case Role.COUNT if j > 0:
                texts.append(pl.Series(heads).cast(pl.String))
            case Role.COUNT | Role.RESPONSE:
                texts.append(values)
            case Role.SHADOW:
                shadow = np.asarray(table.columns.get(SHADOW, table.value), dtype=np.float64)
                texts.append(sheet.exact_number(shadow))
            case Role.LARGEST:
                texts.append(sheet.exact_number(next(largest)))
            case Role.STATUS:
                texts.append(pl.Series(letter, dtype=pl.String))
            case _:
                texts.append(sheet.exact_number(levels.get(role, problem.cost)))
    return texts


def _plain_contributions(table: Table) -> bool:
    """Whether what the largest contribute is part of each cell; τ-ARGUS refuses a table where it is more."""
    assert table.contributors is not None
    amount = table.contributors.amount
    total = np.asarray(table.columns.get(SHADOW, table.value), dtype=np.float64)
    return bool((amount >= 0).all()) and bool((amount.sum(axis=1) <= total * (1 + 1e-9) + 1e-9).all())


def distinct(names: list[str], table: Table) -> list[str]:
    """Names that no dimension has already."""
    taken = {name.lower() for name in table.dimensions}
    told = []
    for name in names:
        while name.lower() in taken:
            name += "_"
        taken.add(name.lower())
        told.append(name)
    return told


def _audited(sheet: Sheet, findings: Findings | None) -> list[pl.Series]:
    """What an attacker can derive for each withheld cell; zeros for the others, nothing where there is no bound."""
    if findings is None:
        from tablesafe.audit.audit import audit

        findings = audit(sheet.problem, sheet.release, cells="all", insiders=False, unions=False, certify=False)
    value, n = sheet.problem.table.value, len(sheet.problem.table)
    lower, upper = np.zeros(n), np.zeros(n)
    hidden = sheet.release.suppressed[findings.cells]
    lower[findings.cells[hidden]], upper[findings.cells[hidden]] = findings.lower[hidden], findings.upper[hidden]
    percent = []
    for part in (value - lower, upper - value, upper - lower):
        share: Floats = np.divide(100 * part, value, out=np.zeros(n), where=(value != 0) & sheet.release.suppressed)
        percent.append(_finite(np.round(share, 2)))
    return [*(_finite(part) for part in (lower, upper, upper - lower)), *percent]


def _finite(values: Floats) -> pl.Series:
    endless = ~np.isfinite(values)
    return as_text(np.where(endless, 0.0, values)).set(pl.Series(endless), "")


def _left_out(sheet: Sheet) -> list[str]:
    """What a problem holds that the format has no place for."""
    problem, table, notes = sheet.problem, sheet.problem.table, []
    if problem.sensitivity.sliding.any():
        notes.append("Sliding protection levels have no place in a .tab file; a JJ file (type 6) holds them.")
    if bool((problem.lower != least(table)).any()) or bool(np.isfinite(problem.upper).any()):
        notes.append("The attacker's bounds have no place in a .tab file; a JJ file (type 6) holds them.")
    if bool((sheet.release.status == Status.BY_DESIGN).any()):
        notes.append("Cells withheld by design are written as secondary (M).")
    if table.contributors is not None and not sheet.options.SO and not _plain_contributions(table):
        notes.append("The largest contributions are left out: some are negative, or more than their cell.")
    others = [name for name in table.columns if name not in {SHADOW, RECORDS, UNWEIGHTED}]
    if others:
        notes.append(f"Further columns have no place in a .tab file: {', '.join(others)}.")
    if sheet.options.AR:
        notes.append(f"The last {AUDITED} columns are the audit's (AR+); the .rda file cannot describe them.")
    return notes


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
