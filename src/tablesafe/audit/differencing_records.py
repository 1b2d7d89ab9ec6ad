"""Differencing with the records at hand: every part and every difference has its own contributors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import sparse

from tablesafe.audit.audit import audit
from tablesafe.audit.differencing_judged import PART, count_of, judged_sets, sets_tabulated
from tablesafe.audit.differencing_patterns import Visible
from tablesafe.audit.differencing_system import Sums, bounded
from tablesafe.audit.disclosures import Differences, Disclosure, Kind, Published
from tablesafe.audit.overlap import Overlap, joined, upwards
from tablesafe.audit.subtracting import subtractions
from tablesafe.core.equations import Integers, Mask, cell_keys
from tablesafe.core.errors import InvalidOption
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release, Status
from tablesafe.core.sensitivity import Rule
from tablesafe.core.table import Table
from tablesafe.files.read import read_source
from tablesafe.rules.groups import GroupDisclosure
from tablesafe.tabulate.run import tabulate

ROW = "row of tablesafe"
"""The column of the records that holds their number."""
MOST_WHOLE = 500
"""Parts up to which the attacker is taken to know, without being told, that counts are whole numbers."""


def from_records(
    source: Any,
    tables: Sequence[Published],
    rules: Sequence[Rule],
    options: Mapping[str, Any],
    integers: bool | None,
) -> Differences:
    """Build the linked system of all tables, audit it, and judge every difference."""
    _refuse_repeated(tables)
    rules = [rule for rule in rules if not isinstance(rule, GroupDisclosure)]  # parts are no categories
    if not rules:
        raise InvalidOption(
            "GroupDisclosure alone cannot judge differences.\n\nHint: add a rule about contributors, ts.Threshold(n=3)."
        )
    read = read_source(source, name="the source")
    for each in tables:
        for name in each.dimensions:
            read.require((each.column_of or {}).get(name, name))
    records = _typed(read.frame).with_row_index(ROW)
    made = {each.name: _table(records, each, options) for each in tables}
    leaves = [_leaves(records.height, made[each.name], each) for each in tables]
    overlap, part = _overlapping(made, leaves)
    inside = records.with_columns(pl.Series(PART, part)).filter(pl.col(PART) >= 0)
    shown = [Visible.of(made[each.name], each) for each in tables]
    visible = np.concatenate([each.exact for each in shown])
    problem, at = _problem(inside, overlap, rules, options)
    release = _release(problem, at[overlap.members.shape[1] :], shown)
    if integers is None and overlap.members.shape[1] > MOST_WHOLE:
        integers = False
    findings = audit(problem, release, insiders=False, unions=False, certify=False, integers=integers)
    given = subtractions(overlap, visible)
    found = judged_sets(inside, given, problem, at, options).told(overlap)
    known = sparse.csr_array(sparse.vstack([given.sets, overlap.members[visible]]))
    found += bounded(overlap, findings, at, visible, known)
    sums = Sums.of(findings.system, overlap, at, known)
    found += sums.told(overlap, judged_sets(inside, sums.given, problem, at, options))
    found += _published(overlap, visible, problem, at)
    whole = "" if integers is not False else " Nobody was assumed to know that values are whole numbers."
    searched = (
        f"{overlap.members.shape[0]:,} cells of {len(tables)} tables are sums of {overlap.members.shape[1]:,} parts; "
        f"{len(given):,} differences were judged, and {sums.words}.{whole}"
    )
    return Differences(tuple(found), overlap, searched, findings)


def _refuse_repeated(tables: Sequence[Published]) -> None:
    names = [each.name for each in tables]
    if len(names) < 2:
        raise InvalidOption(
            "Differencing takes at least two tables.\n\nHint: tables=[ts.Published(...), ts.Published(...)]"
        )
    repeated = [name for name in names if names.count(name) > 1]
    if repeated:
        raise InvalidOption(f"Two tables are called {repeated[0]!r}.\n\nHint: give each a name of its own.")


def _typed(frame: pl.DataFrame) -> pl.DataFrame:
    """Columns of text in which every entry is a number, as numbers; a number with a leading zero is a code."""
    for name in [name for name, kind in frame.schema.items() if kind == pl.String]:
        text = frame[name].str.strip_chars()
        text = text.set(text == "", None).drop_nulls()
        if not text.len() or text.str.contains(r"^[+-]?0[0-9]").any():
            continue
        whole = bool(text.str.contains(r"^[+-]?[0-9]{1,18}$").all())
        if whole or bool(text.cast(pl.Float64, strict=False).is_finite().fill_null(False).all()):
            kind = pl.Int64 if whole else pl.Float64
            frame = frame.with_columns(pl.col(name).str.strip_chars().replace("", None).cast(kind))
    return frame


def _table(records: pl.DataFrame, each: Published, options: Mapping[str, Any]) -> Table:
    return tabulate(
        records, dimensions=each.dimensions, where=each.where, margins=each.margins, column_of=each.column_of,
        missing=each.missing, total=each.total, **options,
    )  # fmt: skip


def _leaves(n: int, table: Table, each: Published) -> NDArray[np.int32]:
    """Per record its leaf codes in a table; −1 where the table does not count it."""
    assert table.origin is not None
    counted = table.origin.records()
    out = np.full((n, len(table.dimensions)), -1, dtype=np.int32)
    codes = np.empty((counted.height, len(table.dimensions)), dtype=np.int32)
    for d, (name, hierarchy) in enumerate(table.dimensions.items()):
        column = (each.column_of or {}).get(name, name)
        text = read_source(counted).text(column)
        word = each.missing if isinstance(each.missing, str) else each.missing.get(name, "error")
        if word not in {"error", "drop"}:
            text = text.set(text == "", None).fill_null(word)
        codes[:, d] = hierarchy.positions(text)
    missing = np.asarray((codes < 0).any(axis=1))
    out[counted[ROW].to_numpy()] = np.where(missing[:, None], -1, codes)
    return out


def _overlapping(made: Mapping[str, Table], leaves: Sequence[NDArray[np.int32]]) -> tuple[Overlap, Integers]:
    """The overlap of the tables, and the part of each record."""
    pieces = []
    for table, codes in zip(made.values(), leaves, strict=True):
        sizes = [len(h) + 1 for h in table.dimensions.values()]
        pieces.append(np.unique(cell_keys(codes + 1, sizes), return_inverse=True)[1])
    numbers = np.column_stack(pieces)
    _, first, piece = np.unique(numbers, axis=0, return_index=True, return_inverse=True)
    members = []
    for table, codes in zip(made.values(), leaves, strict=True):
        chosen = codes[first]
        there = np.flatnonzero(chosen[:, 0] >= 0)
        matrix = sparse.coo_array(upwards(chosen[there], table))
        members.append(
            sparse.csr_array(
                (matrix.data, (matrix.row, there[matrix.col])), shape=(len(table), len(first)), dtype=np.int8
            )
        )
    overlap, part = joined(made, members)
    return overlap, part[piece.ravel()]


def _problem(
    records: pl.DataFrame, overlap: Overlap, rules: Sequence[Rule], options: Mapping[str, Any]
) -> tuple[Problem, Integers]:
    """The linked system: parts are withheld by design, published cells are their sums."""
    table, at = sets_tabulated(records, overlap.members, options)
    parts = overlap.members.shape[1]
    withheld = np.zeros(len(table), dtype=np.bool_)
    withheld[at[:parts]] = True
    names = np.array(table.dimensions[PART].codes, dtype=object)[table.codes[:, 0]]
    table = replace(table, dimensions={}, codes=np.zeros((len(table), 0), np.int32), names=names, origin=None)
    return Problem(table, rules, withheld=withheld), at


def _release(problem: Problem, cells: Integers, shown: Sequence[Visible]) -> Release:
    """What all tables together show of the linked system."""
    lower, upper = (np.concatenate([getattr(each, side) for each in shown]) for side in ("lower", "upper"))
    changed = np.concatenate([each.changed for each in shown])
    mask = np.zeros(len(problem.table), dtype=np.bool_)
    mask[cells[lower < upper]] = True
    plain = Release.from_suppression(problem, mask, method="several tables")
    low, high, status = plain.lower.copy(), plain.upper.copy(), plain.status.copy()
    open_cells = lower < upper
    at = cells[open_cells]
    low[at], high[at] = np.maximum(low[at], lower[open_cells]), np.minimum(high[at], upper[open_cells])
    status[cells[changed]] = Status.CHANGED
    return replace(plain, lower=low, upper=high, status=status)


def _published(overlap: Overlap, visible: Mask, problem: Problem, at: Integers) -> list[Disclosure]:
    """Published cells that fail a rule themselves."""
    table, parts = problem.table, overlap.members.shape[1]
    cells = at[parts:]
    found = []
    for i in np.flatnonzero(visible & problem.sensitivity.mask[cells]).tolist():
        cell = int(cells[i])
        value, own = float(table.value[cell]), (overlap.names[int(overlap.owner[i])],)
        found.append(
            Disclosure(
                Kind.PUBLISHED, overlap.describe(i), "it is published", value, value, count_of(table, cell),
                problem.sensitivity.why(cell), own, _row(overlap.members, i),
            )
        )  # fmt: skip
    return found


def _row(matrix: sparse.csr_array, row: int) -> tuple[int, ...]:
    return tuple(matrix.indices[matrix.indptr[row] : matrix.indptr[row + 1]].tolist())
