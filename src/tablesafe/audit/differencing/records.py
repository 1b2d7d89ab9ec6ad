"""Differencing with the records at hand: every part and every difference has its own contributors.

What a table of records shows of its cells: everything, all but a list of cells, or what a release says of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import sparse

from tablesafe.audit.audit import audit, knows_whole_numbers
from tablesafe.audit.differencing.disclosures import Differences, Disclosure, Kind, Published
from tablesafe.audit.differencing.overlap import Overlap, joined, upwards
from tablesafe.audit.differencing.subtractions import subtractions
from tablesafe.audit.differencing.sums import (
    PART,
    Sums,
    bounded,
    count_of,
    judged_sets,
    sets_tabulated,
    to_respondents,
)  # fmt: skip
from tablesafe.audit.insiders import insiders
from tablesafe.core.equations import Floats, Integers, Mask, cell_keys
from tablesafe.core.errors import InvalidOption
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release, Status
from tablesafe.core.sensitivity import Rule
from tablesafe.core.table import Table
from tablesafe.files.read import read_source
from tablesafe.rules.groups import GroupDisclosure
from tablesafe.tabulate.run import tabulate
from tablesafe.work.run import Run


@dataclass(frozen=True, eq=False)
class Visible:
    """Per cell of a table what everybody knows about it, in the table's own unit."""

    lower: Floats = field(repr=False)
    upper: Floats = field(repr=False)
    changed: Mask = field(repr=False)
    """Which cells show another value than the true one."""

    @property
    def exact(self) -> Mask:
        """Which cells are published as they are."""
        return np.asarray(self.lower == self.upper)

    @classmethod
    def of(cls, table: Table, each: Published) -> Visible:
        """What a published table shows of its cells."""
        if isinstance(each.withheld, Release):
            return cls._of_release(table, each.withheld, each.name)
        if isinstance(each.withheld, Table):
            raise InvalidOption(
                f"withheld= of {each.name!r} is a table, which does not say what it withholds.",
                hint="give the release, or a frame with one row for each withheld cell.",
            )
        hidden = np.zeros(len(table), dtype=np.bool_) if each.withheld is None else _listed(table, each)
        nothing = np.zeros(len(table), dtype=np.bool_)
        return cls(np.where(hidden, -np.inf, table.value), np.where(hidden, np.inf, table.value), nothing)

    @classmethod
    def _of_release(cls, table: Table, release: Release, name: str) -> Visible:
        """The pattern and the intervals of a release of the same cells of the same records."""
        at = _cells_of(table, release.table, name)
        lower, upper = table.value.copy(), table.value.copy()  # a cell that the release does not have is shown
        judged, there = release.as_judged, np.flatnonzero(at >= 0)
        wrong = there[~np.isclose(release.table.value[at[there]], table.value[there], rtol=1e-9, atol=0.0)]
        if wrong.size:
            raise InvalidOption(
                f"The release in withheld= of {name!r} was not made from these records: cell "
                f"{table.describe(int(wrong[0]))} has another value there.",
                hint="give the records that it was made from, and the same where= and value=.",
            )
        lower[there], upper[there] = judged.lower[at[there]], judged.upper[at[there]]
        changed = np.zeros(len(table), dtype=np.bool_)
        changed[there] = release.status[at[there]] == Status.CHANGED
        return cls(lower, upper, changed)


def _cells_of(table: Table, other: Table, name: str) -> NDArray[np.intp]:
    """For each cell of a table the same cell of another one, −1 where there is none."""
    if set(table.dimensions) != set(other.dimensions):
        mine, theirs = (", ".join(map(repr, each.dimensions)) or "named cells" for each in (table, other))
        raise InvalidOption(
            f"The release in withheld= of {name!r} is spanned by {theirs}, but {name!r} by {mine}.",
            hint="give the release of this table.",
        )
    sizes = [len(hierarchy) for hierarchy in table.dimensions.values()]
    columns = []
    for dimension, hierarchy in table.dimensions.items():
        to = hierarchy.positions(pl.Series(other.dimensions[dimension].codes, dtype=pl.String))
        columns.append(to[other.codes[:, list(other.dimensions).index(dimension)]])
    theirs_at = np.column_stack(columns)
    known = np.flatnonzero((theirs_at >= 0).all(axis=1))
    keys = cell_keys(np.concatenate([table.codes, theirs_at[known]]), sizes)
    mine_keys, their_keys = keys[: len(table)], keys[len(table) :]
    order = np.argsort(their_keys)
    if not order.size:
        return np.full(len(table), -1, dtype=np.intp)
    place = np.minimum(np.searchsorted(their_keys[order], mine_keys), len(order) - 1)
    same = their_keys[order][place] == mine_keys
    return np.where(same, known[order[place]], -1)


def _listed(table: Table, each: Published) -> Mask:
    """The cells that a frame lists."""
    source = read_source(each.withheld, name=f"the withheld cells of {each.name!r}")
    strange = [column for column in source.frame.columns if column not in table.dimensions]
    if strange:
        raise InvalidOption(
            f"The withheld cells of {each.name!r} have the column {strange[0]!r}, which is no dimension: is this a "
            f"table with all its cells?",
            hint=f"a list has one row for each withheld cell, and the columns "
            f"{', '.join(map(repr, table.dimensions))}; or give the release itself.",
        )
    wanted = np.column_stack([h.locate(source, name, dimension=name) for name, h in table.dimensions.items()])
    keys = cell_keys(np.concatenate([table.codes, wanted]), [len(h) for h in table.dimensions.values()])
    mask = np.asarray(np.isin(keys[: len(table)], keys[len(table) :]))
    if mask.all():
        raise InvalidOption(
            f"Every cell of {each.name!r} is listed as withheld, so it shows nothing.",
            hint=f"list only the cells that are not published, or leave {each.name!r} out.",
        )
    return mask


# -- with records ------------------------------------------------------------------------------------------------------


ROW = "row of tablesafe"
"""The column of the records that holds their number."""
MOST_WHOLE = 500
"""Parts up to which the attacker is taken to know, without being told, that counts are whole numbers."""

RESPONDENTS_S = 60.0
"""Seconds to ask what respondents learn."""


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
            "GroupDisclosure alone cannot judge differences.", hint="add a rule about contributors, ts.Threshold(n=3)."
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
    hidden = findings.system.positions(findings.cells[findings.protected])
    respondents = insiders(
        problem, findings.system, hidden[hidden >= 0], whole=knows_whole_numbers(problem.table, integers),
        budget=Run().within(RESPONDENTS_S),
    )  # fmt: skip
    given = subtractions(overlap, visible)
    found = judged_sets(inside, given, problem, at, options).told(overlap)
    known = sparse.csr_array(sparse.vstack([given.sets, overlap.members[visible]]))
    found += bounded(overlap, findings, at, visible, known)
    sums = Sums.of(findings.system, overlap, at, known)
    found += sums.told(overlap, judged_sets(inside, sums.given, problem, at, options))
    found += _published(overlap, visible, problem, at)
    found += to_respondents(overlap, problem, respondents, at)
    late = len(respondents.late)
    unasked = f" For {late:,} of the parts and cells there was no time to ask all of them." if late else ""
    whole = "" if integers is not False else " Nobody was assumed to know that values are whole numbers."
    searched = (
        f"{overlap.members.shape[0]:,} cells of {len(tables)} tables are sums of {overlap.members.shape[1]:,} parts; "
        f"{len(given):,} differences were judged, and {sums.words}. Every respondent was looked at, by itself, "
        f"knowing what it contributes to each part.{unasked}{whole}"
    )
    return Differences(tuple(found), overlap, searched, findings, late)


def _refuse_repeated(tables: Sequence[Published]) -> None:
    names = [each.name for each in tables]
    if len(names) < 2:
        raise InvalidOption(
            "Differencing takes at least two tables.", hint="tables=[ts.Published(...), ts.Published(...)]"
        )
    repeated = [name for name in names if names.count(name) > 1]
    if repeated:
        raise InvalidOption(f"Two tables are called {repeated[0]!r}.", hint="give each a name of its own.")


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
    return _parts_unknown(Problem(table, rules, withheld=withheld)), at


def _parts_unknown(problem: Problem) -> Problem:
    """That a published cell is there tells that somebody is in it; of the parts of cells, which nobody sees, nothing
    does."""
    parts, free = problem.withheld, Problem(replace(problem.table, empty=None), problem.rules)
    levels = np.where(parts, free.sensitivity.lower, problem.sensitivity.lower)
    lower = np.where(parts, free.lower, problem.lower)
    return problem.replace(sensitivity=replace(problem.sensitivity, lower=levels), lower=lower)


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
