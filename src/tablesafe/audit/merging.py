"""Cells added up, with their contributors merged: one respondent in two cells is one respondent.

A table keeps only the largest contributors of a cell, so the contributors of a sum are known only in part. Two
readings enclose the truth. The *known* reading merges those that are listed and counts all others as different: what
fails a rule so fails it for certain. The *cautious* reading lets every contributor add, in each cell where it is not
listed, as much as one that is not listed can (no more than the smallest that is, and no more than remains of the cell),
and counts no respondent twice that could be the same. They agree where all contributors are listed, and where the
counts of the table add up, so that nobody contributes to two cells. Where contributions may be negative, neither what
remains of a cell is a limit nor a total: there only the smallest that is listed is, in absolute values, and of all
others a sum is taken to hold no more than its value shows. Where weights or a shadow variable come in as well, nothing
limits what is not listed, and nothing is added.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tablesafe.core.equations import Floats, Integers, Mask
from tablesafe.core.table import Contributors, Table
from tablesafe.rules.contributions import SHADOW, shadowed


@dataclass(frozen=True, eq=False)
class Groups:
    """Sets of cells to add up, one per row."""

    cells: sparse.csr_array = field(repr=False)
    """Ones at the table's cells in each set."""
    whole: NDArray[np.intp] = field(repr=False)
    """A cell of which the set is the part that remains without `others`; −1 where there is none."""
    others: sparse.csr_array = field(repr=False)
    """Ones at the other parts of that cell."""
    separate: Mask = field(repr=False)
    """Sets in which nobody contributes to two cells."""

    def __len__(self) -> int:
        return int(self.cells.shape[0])


def merged(table: Table, groups: Groups, *, cautious: bool) -> Table:
    """One cell per set, with its value, its count and its largest contributors; there are no equations.

    Contributors that were ranked by a shadow variable are merged by it.
    """
    n = len(groups)
    ranked = shadowed(table)
    lists = _Lists.of(ranked)
    count, holdings = _counts(table, groups, lists, cautious)
    value = np.asarray(groups.cells.astype(np.int64) @ table.integers)
    guessed = np.zeros(n, dtype=np.bool_)
    if lists is not None and cautious and ranked is table:
        guessed = _guessed_by_size(groups, lists)
    contributors = None if lists is None else _merged_contributors(ranked, groups, lists, cautious, guessed)
    if contributors is not None and guessed.any():
        first = np.ceil(contributors.amount[:, 0] * 10.0**table.decimals).astype(np.int64)
        value = np.where(guessed, np.maximum(np.abs(value), first), value)
    shadow = {SHADOW: np.asarray(groups.cells.astype(np.int64) @ ranked.integers) / 10.0**ranked.decimals}
    return Table(
        value,
        table.decimals,
        sparse.csr_array((0, n), dtype=np.int8),
        np.zeros(0, np.int64),
        codes=np.zeros((n, 0), np.int32),
        names=np.array([f"sum {i + 1}" for i in range(n)], dtype=object),
        response=table.response,
        count=count,
        holdings=holdings,
        contributors=contributors,
        columns={} if ranked is table else shadow,
        exact=table.exact,
        signed=np.asarray(groups.cells.astype(np.int64) @ table.may_be_negative.astype(np.int64)) > 0,
    )


def counts_add_up(table: Table) -> bool:
    """Whether in every equation the contributors of the total are as many as those of its parts together.

    Then no contributor stands in two parts of a total, so nobody contributes to two cells without a common part: if
    all cells are parts of one total. Nothing is known of cells that no total has in common.
    """
    count = table.count if table.holdings is None else table.holdings
    subtracted = int((table.equations.data < 0).sum()) != table.equations.shape[0]
    if count is None or subtracted:
        return False
    below = np.zeros(len(table), dtype=np.bool_)
    below[table.equations.indices[table.equations.data > 0]] = True
    if int((~below[: table.seen]).sum()) > 1:
        return False
    off = np.asarray(table.equations.astype(np.int64) @ count) != 0
    if table.unseen is not None and not table.judged:  # nobody told how many contribute to unseen cells
        off &= np.asarray(abs(table.equations).astype(np.int64) @ table.unseen.astype(np.int64)) == 0
    return not bool(off.any())


@dataclass(frozen=True, eq=False)
class _Lists:
    """The contributors kept per cell, and the most that one who is not among them can add."""

    kept: Contributors
    named: Mask
    """Which places hold a contributor whose identity is known."""
    complete: Mask
    """Cells whose contributors are all listed by identity."""
    unlisted: Floats
    """Per cell and place: the most that the first, second, … unlisted contributor can have reported."""
    unlisted_weighted: Floats | None
    negative: Mask
    """Cells whose contributions may be negative."""

    @classmethod
    def of(cls, table: Table) -> _Lists | None:
        kept = table.contributors
        if kept is None:
            return None
        used = (kept.identity >= 0) | (kept.amount != 0)
        named = kept.identity >= 0
        added = kept.amount if kept.weighted is None else kept.weighted
        remains = np.maximum(table.value - added.sum(axis=1), 0.0)
        remains = np.where(remains <= 1e-12 * np.abs(table.value), 0.0, remains)
        everyone = table.count if table.holdings is None else table.holdings
        listed = used.sum(axis=1)
        none_left = listed < kept.certain if everyone is None else everyone <= listed
        complete = none_left & (used == named).all(axis=1)
        nameless = (used & ~named).any(axis=1)
        least = np.abs(kept.amount[:, kept.certain - 1])
        gap = np.where(none_left, 0.0, np.where(table.may_be_negative, least, np.minimum(least, remains)))
        unlisted = np.where(nameless[:, None], np.abs(kept.amount), gap[:, None])
        weighted = None
        if kept.weighted is not None:
            weighted = np.where(nameless[:, None], np.abs(kept.weighted), np.where(none_left, 0.0, remains)[:, None])
        return cls(kept, named, complete, unlisted, weighted, table.may_be_negative)


def _counts(
    table: Table, groups: Groups, lists: _Lists | None, cautious: bool
) -> tuple[Integers | None, Integers | None]:
    """Respondents and holdings of each set: no more than there can be, or, cautiously, no fewer than there must be."""
    identified = _identified(groups, lists)
    counts: list[Integers | None] = []
    for column, by_identity in ((table.count, table.holdings is None), (table.holdings, True)):
        if column is None:
            counts.append(None)
            continue
        total = np.asarray(groups.cells.astype(np.int64) @ column)
        fewest = np.asarray(groups.cells.multiply(column[None, :]).max(axis=1).toarray()).ravel().astype(np.int64)
        outside = np.asarray(groups.others.astype(np.int64) @ column)
        inside = np.where(groups.whole >= 0, column[groups.whole] - outside, 0)
        fewest = np.maximum(fewest, inside)
        if identified is not None:
            seen, all_listed = identified
            fewest = np.maximum(fewest, seen)
            total = np.where(all_listed & by_identity, seen, total)
            fewest = np.where(all_listed & by_identity, seen, fewest)
        counts.append(np.where(groups.separate, np.maximum(total, fewest), fewest) if cautious else total)
    return counts[0], counts[1]


def _identified(groups: Groups, lists: _Lists | None) -> tuple[Integers, Mask] | None:
    """How many different contributors are listed in each set, and whether these are all."""
    if lists is None:
        return None
    group, cell = _entries(groups.cells)
    at, _, identity = _spread(group, cell, lists, named_only=True)
    pairs = np.unique(np.column_stack([at, identity]), axis=0)
    seen = np.bincount(pairs[:, 0], minlength=len(groups))
    partly = np.bincount(group, weights=~lists.complete[cell], minlength=len(groups)) > 0
    return seen, ~partly


def _may_be_negative(groups: Groups, lists: _Lists) -> Mask:
    return np.asarray(groups.cells.astype(np.int64) @ lists.negative.astype(np.int64)) > 0


def _guessed_by_size(groups: Groups, lists: _Lists) -> Mask:
    """Sets with contributors that may be negative and are not listed: guessed at by absolute values."""
    identified = _identified(groups, lists)
    if identified is None or lists.kept.weighted is not None:
        return np.zeros(len(groups), dtype=np.bool_)
    return np.asarray(_may_be_negative(groups, lists) & ~identified[1] & ~groups.separate)


def _merged_contributors(table: Table, groups: Groups, lists: _Lists, cautious: bool, guessed: Mask) -> Contributors:
    """The largest contributors of each set, from the largest down; of those `guessed` at by size, absolute values."""
    negative = _may_be_negative(groups, lists) & ~guessed
    settled = replace(groups, separate=groups.separate | negative, whole=np.where(guessed, -1, groups.whole))
    members = _members(settled, lists, guessed, guess=cautious and not bool(negative.all()))
    weighted, kept = lists.kept.weighted is not None, lists.kept
    amount, added = members.most, members.most_weighted
    chosen = _largest_of(members.group, amount, kept.certain if weighted else kept.depth)
    if weighted:  # somebody with a small amount and a large weight may add the most
        chosen |= _largest_of(members.group, added, kept.certain)
    some = np.flatnonzero(chosen)
    first = some[np.lexsort((-np.abs(amount[some]), members.group[some]))]
    at = members.group[first], _rank(members.group[first])
    shape = len(groups), max(kept.depth, 2 * kept.certain) if weighted else kept.depth
    amounts, weights, identity = np.zeros(shape), np.zeros(shape), np.full(shape, -1, dtype=np.int64)
    amounts[at], weights[at], identity[at] = amount[first], added[first], np.maximum(members.identity[first], -1)
    value = np.asarray(groups.cells.astype(np.int64) @ table.integers) / 10.0**table.decimals
    value = np.where(guessed, np.maximum(np.abs(value), amounts[:, 0]), value)
    within = _no_more_than(value, weights)
    cut = within if not weighted else np.minimum(amounts, value[:, None])
    weights, amounts = np.where(negative[:, None], weights, within), np.where(negative[:, None], amounts, cut)
    return Contributors(
        amounts, identity, weights if weighted else None, kept.names, kept.certain if weighted else None
    )


def _largest_of(group: NDArray[np.intp], amount: Floats, most: int) -> Mask:
    """Those who are among the largest so many of their set."""
    order = np.lexsort((-np.abs(amount), group))
    chosen = np.zeros(len(group), dtype=np.bool_)
    chosen[order] = _rank(group[order]) < most
    return chosen


def _no_more_than(value: Floats, amounts: Floats) -> Floats:
    """Amounts cut down, the smallest first, so that together they do not exceed the value."""
    order = np.argsort(-amounts, axis=1, kind="stable")
    sorted_amounts = np.take_along_axis(amounts, order, axis=1)
    before = np.cumsum(sorted_amounts, axis=1) - sorted_amounts
    cut = np.empty_like(amounts)
    np.put_along_axis(cut, order, np.minimum(sorted_amounts, np.maximum(value[:, None] - before, 0.0)), axis=1)
    return cut


@dataclass(frozen=True, eq=False)
class _Members:
    """Contributors of sets, one entry for each contributor of each set."""

    group: NDArray[np.intp]
    identity: Integers
    most: Floats
    most_weighted: Floats


def _members(groups: Groups, lists: _Lists, by_size: Mask, *, guess: bool) -> _Members:
    """Merge the listed contributors of each set; with `guess`, the most that each of them, and others, can add."""
    group, cell = _entries(groups.cells)
    at, slot, identity = _spread(group, cell, lists)
    cells = cell[slot // lists.kept.depth]
    place = slot % lists.kept.depth
    added = lists.kept.amount if lists.kept.weighted is None else lists.kept.weighted
    columns = [lists.kept.amount[cells, place], added[cells, place]]
    if not guess:
        return _Members(*_summed(at, identity, columns))
    return _with_guesses(groups, lists, by_size, group, cell, (at, cells, identity), columns)


def _with_guesses(
    groups: Groups,
    lists: _Lists,
    by_size: Mask,
    group: NDArray[np.intp],
    cell: NDArray[np.intp],
    listed: tuple[NDArray[np.intp], NDArray[np.intp], Integers],
    columns: list[Floats],
) -> _Members:
    """Add to each contributor the most that it can have in cells where it is not listed.

    Where the set is what remains of a known cell, nobody has more in the set than in that cell, less what is listed in
    the other parts of it.
    """
    n = len(groups)
    at, cells, identity = listed
    unlisted = (lists.unlisted, lists.unlisted if lists.unlisted_weighted is None else lists.unlisted_weighted)
    possible = ~groups.separate
    gaps = [np.where(possible[group][:, None], u[cell], 0.0) for u in unlisted]
    gap = [_column_sums(group, g, n) for g in gaps]
    own = [np.where(possible[at], u[cells, 0], 0.0) for u in unlisted]
    in_whole, in_others = _elsewhere(groups, lists)
    count = len(at), len(in_whole[0]), len(in_others[0])
    everyone = np.concatenate([at, in_whole[0], in_others[0]]), np.concatenate([identity, in_whole[1], in_others[1]])
    padded = [
        *[np.concatenate([c, np.zeros(count[1] + count[2])]) for c in (*columns, *own)],
        *[np.concatenate([np.zeros(count[0]), w, np.zeros(count[2])]) for w in (*in_whole[2], np.ones(count[1]))],
        *[np.concatenate([np.zeros(count[0] + count[1]), o]) for o in in_others[2]],
        np.concatenate([np.ones(count[0] + count[1]), np.zeros(count[2])]),
    ]
    who, name, *sums = _summed(*everyone, padded)
    here, here_weighted, mine, mine_weighted, top, top_weighted, is_top, out, out_weighted, matters = sums
    keep = (matters > 0) & ((name >= 0) | groups.separate[who])  # the nameless are among the strangers
    most = []
    for j, (have, own_gap, whole, others) in enumerate(
        ((here, mine, top, out), (here_weighted, mine_weighted, top_weighted, out_weighted))
    ):
        have = np.where(by_size[who], np.abs(have), have)
        guess = have + gap[j][who, 0] - own_gap
        limit = np.where(is_top > 0, whole, unlisted[j][groups.whole[who], 0]) - others
        limited = np.where(groups.whole[who] >= 0, np.minimum(guess, limit), guess)
        most.append(np.maximum(have, limited)[keep])
    strangers = _strangers(groups, unlisted, gap)
    return _Members(
        np.concatenate([who[keep], strangers.group]),
        np.concatenate([name[keep], strangers.identity]),
        np.concatenate([most[0], strangers.most]),
        np.concatenate([most[1], strangers.most_weighted]),
    )


def _elsewhere(groups: Groups, lists: _Lists) -> tuple[tuple[Any, Any, list[Floats]], tuple[Any, Any, list[Floats]]]:
    """The listed contributors of the cell that each set remains of, and of that cell's other parts."""
    added = lists.kept.amount if lists.kept.weighted is None else lists.kept.weighted
    out = []
    remain = np.flatnonzero(groups.whole >= 0)
    for group, cell in ((remain, groups.whole[remain]), _entries(groups.others)):
        at, slot, identity = _spread(group, cell, lists, named_only=True)
        where = cell[slot // lists.kept.depth], slot % lists.kept.depth
        out.append((at, identity, [lists.kept.amount[where], added[where]]))
    return out[0], out[1]


def _strangers(groups: Groups, unlisted: tuple[Floats, Floats], gap: list[Floats]) -> _Members:
    """Contributors that are listed in no cell of a set, as large as they can be, as many as there are places."""
    most = []
    for known, total in zip(unlisted, gap, strict=True):
        limit = np.where((groups.whole >= 0)[:, None], known[groups.whole], np.inf)
        most.append(np.minimum(total, limit))
    group, place = np.nonzero((most[0] > 0) | (most[1] > 0))
    nobody = np.full(len(group), -1, dtype=np.int64)
    return _Members(group, nobody, most[0][group, place], most[1][group, place])


def _entries(matrix: sparse.csr_array) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    return rows, matrix.indices.astype(np.intp)


def _spread(
    group: NDArray[np.intp], cell: NDArray[np.intp], lists: _Lists, *, named_only: bool = False
) -> tuple[NDArray[np.intp], NDArray[np.intp], Integers]:
    """One entry per listed contributor of each entry: its set, where it is listed, and its identity.

    Contributors without an identity get one of their own for each place: nobody can say that they are the same.
    """
    depth = lists.kept.depth
    identity = lists.kept.identity[cell].ravel()
    used = (identity >= 0) if named_only else (identity >= 0) | (lists.kept.amount[cell].ravel() != 0)
    slot = np.flatnonzero(used)
    own = -2 - (cell[slot // depth] * depth + slot % depth)
    return group[slot // depth], slot, np.where(identity[slot] >= 0, identity[slot], own)


def _summed(group: NDArray[np.intp], identity: Integers, columns: list[Floats]) -> tuple[Any, ...]:
    """The columns added up over equal sets and identities."""
    order = np.lexsort((identity, group))
    group, identity = group[order], identity[order]
    new = np.ones(len(order), dtype=np.bool_)
    new[1:] = (group[1:] != group[:-1]) | (identity[1:] != identity[:-1])
    starts = np.flatnonzero(new)
    sums = [np.add.reduceat(column[order], starts) if starts.size else column[:0] for column in columns]
    return group[starts], identity[starts], *sums


def _column_sums(group: NDArray[np.intp], values: Floats, n: int) -> Floats:
    return np.column_stack([np.bincount(group, values[:, j], n).astype(np.float64) for j in range(values.shape[1])])


def _rank(group: NDArray[np.intp]) -> NDArray[np.intp]:
    """The position of each entry within its run of equal groups."""
    if not group.size:
        return np.zeros(0, np.intp)
    starts = np.flatnonzero(np.diff(group, prepend=group[0] - 1))
    return np.arange(len(group)) - np.repeat(starts, np.diff(np.append(starts, len(group))))
