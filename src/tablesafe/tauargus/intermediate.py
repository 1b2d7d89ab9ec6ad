"""Type 5 of `<WRITETABLE>`, the intermediate format: `.tab` and `.rda`, with `.hrc` and `.cdl` files. Confidential.

The columns are those of τ-ARGUS in its order, so that what reads them by position goes on working.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import polars as pl

from tablesafe.audit.findings import Findings
from tablesafe.core.equations import Floats
from tablesafe.core.hierarchy import Hierarchy
from tablesafe.core.problem import Problem, least
from tablesafe.core.release import Status
from tablesafe.core.table import Table
from tablesafe.io.text import as_text
from tablesafe.rules.contributions import SHADOW
from tablesafe.tabulate.plan import RECORDS, UNWEIGHTED
from tablesafe.tauargus.metadata import Metadata, Role, Variable, metadata_text
from tablesafe.tauargus.sheet import Layout, Sheet, WriteOptions
from tablesafe.tauargus.statuses import Argus
from tablesafe.tauargus.table import hierarchy_files, joined, refuse_unwritable

LETTERS = {Argus.PROTECTED: "P", Argus.SECONDARY: "M", Argus.SECONDARY_BY_HAND: "M", Argus.EMPTY: "E",
           Argus.SAFE: "S", Argus.SAFE_BY_HAND: "S", Argus.EMPTY_NOT_STRUCTURAL: "S"}  # fmt: skip
AUDITED = 6
"""Columns that AR+ adds: lower, upper, width, and the same in percent of the value."""


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
    depth = 0 if table.contributors is None or not _plain_contributions(table) else table.contributors.depth
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
