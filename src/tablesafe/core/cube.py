"""Unseen cells: what ties tables together that are margins of the same records, though no table shows it.

Tables by (a, b), (a, c) and (b, c) of the same records are margins of one cube. Nobody sees the cube, but everybody
knows that it exists and that nothing in it is negative, and that can narrow what is withheld in the margins. So the
cells of the cube become cells of the table that are never published.

**Which.** A variable is one level of one dimension; a table is a set of them. Tables that agree on what they share can
always be extended to one table without negative values where they hang together like a tree (Vorob'ev 1962; Beeri,
Fagin, Maier and Yannakakis 1983), and then nothing unseen matters. Elsewhere it is enough to cross the variables of
each clique of a triangulation of the graph in which two variables are joined that some table shows together, and to
make neighbouring cliques agree on what they share (Lauritzen 1996). Where values may be negative the same cells matter,
though less often: to a respondent who is alone in one of them, and to everybody where combinations are known to be
empty; only their values have no lower bound.

**Which not.** A combination is known to be empty where a table that should show a sum over it has no such cell, or has
a structural zero there: cells that are not there are empty, here as everywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tablesafe.core.equations import Integers, Mask, cell_keys, rescaled
from tablesafe.core.errors import InvalidOption, InvalidTable
from tablesafe.core.hierarchy import Hierarchy
from tablesafe.core.table import RESPONSE, Apart, Contributors, Table
from tablesafe.solve.program import SolveStatus
from tablesafe.work.budget import Budget

MOST_UNSEEN = 2_000_000
"""Unseen cells of all groups of tables together; with more, the tables are not examined together, and nothing is
proved."""
MOST_FITTED, FIT_S = 200_000, 120.0
"""Unseen cells and seconds to find some cube that has the given margins, where no records are at hand."""
TIE, IGNORE = "tie", "ignore"

Levels = tuple[int, ...]
"""How deep each dimension is broken down: 0 is its total."""


Codes = NDArray[np.int32]


# -- which cells matter ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Axis:
    """One dimension as a table shows it: the levels of its codes."""

    name: str
    level: Integers = field(repr=False)
    """Of each code; the deepest of all for one that is not broken down further, −1 for one that is not shown."""
    up: Codes = field(repr=False)
    """Per level the code there that each code belongs to; −1 where it is coarser itself."""
    tree: bool = True
    """Whether its codes lie within each other or apart; otherwise there are only leaves and the total."""

    @classmethod
    def of(cls, name: str, hierarchy: Hierarchy, codes: Codes) -> Axis:
        """The levels of the codes that cells have."""
        n = len(hierarchy)
        shown = np.unique(codes)
        leaves = sparse.csr_array(hierarchy.leaf_matrix[shown])
        size = np.diff(leaves.indptr)
        common = sparse.coo_array((leaves != 0).astype(np.int64) @ (leaves != 0).astype(np.int64).T)
        inside = (common.data == size[common.row]) & (size[common.row] < size[common.col])
        apart = (common.data == np.minimum(size[common.row], size[common.col])) & (
            (size[common.row] != size[common.col]) | (common.row == common.col)
        )
        if not bool((leaves.data == 1).all() and apart.all()):
            return cls._without_levels(name, hierarchy, shown)
        below, above = common.row[inside], common.col[inside]
        depth = np.bincount(below, minlength=len(shown))
        last = np.bincount(above, minlength=len(shown)) == 0
        deepest = int(depth.max(initial=0))
        level, up = np.full(n, -1, dtype=np.int64), np.full((deepest + 1, n), -1, dtype=np.int32)
        level[shown] = np.where(last, deepest, depth)
        for each in range(deepest + 1):
            own = (depth == each) | (last & (depth < each))
            up[each, shown[own]] = shown[own]
            there = depth[above] == each
            up[each, shown[below[there]]] = shown[above[there]]
        return cls(name, level, up)

    @classmethod
    def _without_levels(cls, name: str, hierarchy: Hierarchy, shown: Codes) -> Axis:
        n, total = len(hierarchy), hierarchy.total
        last = shown[~hierarchy.is_total[shown]]
        itself = np.full(n, -1, dtype=np.int32)
        itself[last] = last
        level = np.full(n, -1, dtype=np.int64)
        level[shown] = 0
        if total is None:
            return cls(name, level, itself[None, :], False)
        level[last] = 1
        top = np.full(n, -1, dtype=np.int32)
        top[shown] = hierarchy.position(total)
        return cls(name, level, np.stack([top, itself]), False)

    def at(self, codes: Codes, level: int) -> Codes:
        """The codes at a level that some codes belong to."""
        return np.asarray(self.up[min(level, len(self.up) - 1), codes])


@dataclass(frozen=True, eq=False)
class Layout:
    """Some cells of a table, by the levels of their dimensions."""

    table: Table = field(repr=False)
    cells: NDArray[np.intp] = field(repr=False)
    axes: tuple[Axis, ...] = field(repr=False)

    @classmethod
    def of(cls, table: Table, cells: NDArray[np.intp]) -> Layout:
        """The layout of some cells of a table."""
        named = enumerate(table.dimensions.items())
        codes = table.codes[cells]
        return cls(table, cells, tuple(Axis.of(name, tree, codes[:, d]) for d, (name, tree) in named))

    def tables(self) -> list[Levels]:
        """The levels of the cells that are broken down most: one entry per table, the others are its totals."""
        codes = self.table.codes[self.cells]
        levels = np.column_stack([axis.level[codes[:, d]] for d, axis in enumerate(self.axes)])
        _, first = np.unique(
            cell_keys((levels + 1).astype(np.int32), [len(axis.up) + 1 for axis in self.axes]), return_index=True
        )
        return _largest([tuple(row) for row in levels[first].tolist()])

    def words(self, levels: Levels) -> str:
        """A table, or a cross-classification, by the names of its dimensions."""
        named = [
            axis.name if level + 1 >= len(axis.up) else f"{axis.name} (level {level})"
            for axis, level in zip(self.axes, levels, strict=True)
            if level > 0
        ]
        return " by ".join(named) or "the total"

    def moved(self, codes: Codes, levels: Levels) -> Codes:
        """The codes of the totals, at some levels, that cells belong to."""
        return np.column_stack([axis.at(codes[:, d], levels[d]) for d, axis in enumerate(self.axes)])

    def shown_at(self, levels: Levels) -> NDArray[np.intp]:
        """The cells shown at some levels."""
        codes = self.table.codes[self.cells]
        return np.asarray(self.cells[(self.moved(codes, levels) == codes).all(axis=1)])

    def keys(self, codes: Codes) -> Integers:
        """A number per combination of codes."""
        return cell_keys(codes, [len(tree) for tree in self.table.dimensions.values()])

    def unfinished(self, levels: Levels) -> bool:
        """Whether cells that a table at these levels should break down are not broken down there."""
        codes = self.table.codes[self.cells]
        own = np.column_stack([axis.level[codes[:, d]] for d, axis in enumerate(self.axes)])
        own = np.where(self.moved(codes, levels) == codes, np.array(levels), own)
        coarser = (own <= np.array(levels)).all(axis=1) & (own < np.array(levels)).any(axis=1)
        coarser &= (self.moved(codes, (0,) * len(levels)) >= 0).all(axis=1)
        finest = self.table.codes[self.shown_at(levels)]
        for wide in np.unique(own[coarser], axis=0).tolist():
            some = codes[coarser & (own == np.array(wide)).all(axis=1)]
            some = some[(self.moved(some, tuple(wide)) == some).all(axis=1)]
            if not np.isin(self.keys(some), self.keys(self.moved(finest, tuple(wide)))).all():
                return True
        return False

    def overlapping(self) -> bool:
        """Whether codes that overlap are shown where their parts are not: nothing tells how they lie together."""
        odd = [d for d, axis in enumerate(self.axes) if not axis.tree]
        codes, broken = self.table.codes[self.cells], self.table.is_total[self.cells]
        for d in odd:
            axis = self.axes[d]
            between = (axis.up[-1, codes[:, d]] < 0) & (axis.up[0, codes[:, d]] != codes[:, d])
            if bool((between & ~broken).any()):
                return True
        return False


def unseen_levels(tables: Sequence[Levels]) -> list[Levels]:
    """The cross-classifications that tie tables together and that none of them shows: cliques of a triangulation."""
    near: dict[tuple[int, int], set[tuple[int, int]]] = {}
    for levels in tables:
        own = {(d, each) for d, level in enumerate(levels) for each in range(1, level + 1)}
        for variable in own:
            near.setdefault(variable, set()).update(own - {variable})
    cliques = []
    while near:
        variable = min(near, key=lambda v: (_missing_pairs(near, v), len(near[v]), v))
        around = near.pop(variable)
        for one, other in combinations(sorted(around), 2):
            near[one].add(other)
            near[other].add(one)
        for one in around:
            near[one].discard(variable)
        cliques.append({variable, *around})
    width = len(tables[0]) if tables else 0
    wide = [tuple(max((each for at, each in one if at == d), default=0) for d in range(width)) for one in cliques]
    return [levels for levels in _largest(wide) if not any(_within(levels, other) for other in tables)]


def _missing_pairs(near: dict[tuple[int, int], set[tuple[int, int]]], variable: tuple[int, int]) -> int:
    return sum(other not in near[one] for one, other in combinations(near[variable], 2))


def _within(levels: Levels, other: Levels) -> bool:
    return all(one <= two for one, two in zip(levels, other, strict=True))


def _common(one: Levels, other: Levels) -> Levels:
    return tuple(min(pair) for pair in zip(one, other, strict=True))


def _largest(levels: Sequence[Levels]) -> list[Levels]:
    every = list(dict.fromkeys(levels))
    return [one for one in every if not any(one != other and _within(one, other) for other in every)]


# -- the cells and their equations -----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Sums:
    """Cells that are sums of unseen or of shown ones: rows of equations, by the codes of their members."""

    total: Codes = field(repr=False)
    row: Integers = field(repr=False)
    part: Codes = field(repr=False)


@dataclass(frozen=True, eq=False)
class Found:
    """The unseen cells of one group of tables, and what they add up to."""

    tables: tuple[str, ...]
    codes: Codes = field(repr=False)
    sums: tuple[Sums, ...] = field(repr=False)
    negative: bool
    """Whether they may be negative, as the cells of their tables may."""


class _TooLarge(Exception):
    """A cross-classification has more cells than can be looked at, or than some cube can be found for."""


def tied(table: Table, *, known: Table | None = None, cube: str = TIE, limit: int = MOST_UNSEEN) -> Table:
    """Add the unseen cells that tie the parts of a table together.

    `known` holds what the records say of cells that are not shown; a cell that is not in it is empty. Without it, some
    cube that has the shown margins is found: any will do, as no attacker knows which is the true one.
    """
    if cube not in {TIE, IGNORE}:
        raise InvalidOption(f"cube must be 'tie' or 'ignore', got {cube!r}.")
    if table.names is not None or not table.dimensions or table.unseen is not None:
        return table
    found: list[Found] = []
    apart: list[Apart] = []
    for cells in _slices(table):
        layout = Layout.of(table, cells)
        tables = layout.tables()
        words = tuple(layout.words(levels) for levels in tables)
        wide = unseen_levels(tables) if len(tables) > 1 else []
        joins = _unshown_joins(layout, tables)
        if not wide and not joins:
            if len(tables) > 1 and layout.overlapping():
                apart.append(Apart(words, "irregular"))
            continue
        if cube == IGNORE:
            apart.append(Apart(words, "ignored"))
        elif layout.overlapping() or any(layout.unfinished(_common(t, c)) for c in wide for t in tables):
            apart.append(Apart(words, "irregular"))
        else:
            try:
                found.append(_found(layout, tables, wide, joins, words, limit))
            except _TooLarge:
                apart.append(Apart(words, "size"))
    if sum(len(each.codes) for each in found) > limit:
        apart += [Apart(each.tables, "size") for each in found]
        found = []
    if found and not _same_for_responses(table, found):
        apart.append(Apart(("the tables of the response variables",), "irregular"))
    found = [each for each in found if len(each.codes)]
    if found:
        try:
            return _extended(replace(table, apart=tuple(dict.fromkeys(apart))), found, known)
        except _TooLarge:
            apart += [Apart(each.tables, "size") for each in found]
    return replace(table, apart=tuple(dict.fromkeys(apart)))


def untied(table: Table) -> tuple[Apart, ...]:
    """The tables within a table that are not examined together: as it says itself, or because nobody linked them."""
    if table.apart or table.names is not None or not table.dimensions or table.unseen is not None:
        return table.apart
    found: list[Apart] = []
    for cells in _slices(table):
        layout = Layout.of(table, cells)
        tables = layout.tables()
        if len(tables) > 1 and (unseen_levels(tables) or _unshown_joins(layout, tables)):
            found.append(Apart(tuple(layout.words(levels) for levels in tables), "unlinked"))
    return tuple(dict.fromkeys(found))


def _slices(table: Table) -> list[NDArray[np.intp]]:
    """The cells of each response variable: only tables of the same one are margins of one cube."""
    if RESPONSE not in table.dimensions:
        return [np.arange(len(table))]
    of = table.codes[:, list(table.dimensions).index(RESPONSE)]
    return [np.flatnonzero(of == code) for code in np.unique(of)]


def _same_for_responses(table: Table, found: Sequence[Found]) -> bool:
    """Whether response variables that equations tie together have the same unseen cells."""
    if RESPONSE not in table.dimensions or not table.dimensions[RESPONSE].equations.shape[0]:
        return True
    at = list(table.dimensions).index(RESPONSE)
    every = [np.unique(np.delete(each.codes, at, axis=1), axis=0) for each in found]
    responses = len(np.unique(table.codes[:, at]))
    return len(found) == responses and all(np.array_equal(every[0], other) for other in every[1:])


def _unshown_joins(layout: Layout, tables: Sequence[Levels]) -> list[Levels]:
    """What two tables share, where it is not shown: the totals of a table may be missing."""
    out = []
    for one, other in combinations(tables, 2):
        levels = _common(one, other)
        shown = layout.keys(layout.table.codes[layout.shown_at(levels)])
        for each in (one, other):
            moved = layout.moved(layout.table.codes[layout.shown_at(each)], levels)
            if not np.isin(layout.keys(moved), shown).all():
                out.append(levels)
    return list(dict.fromkeys(out))


def _found(
    layout: Layout, tables: Sequence[Levels], wide: Sequence[Levels], joins: Sequence[Levels], words: tuple[str, ...],
    limit: int,
) -> Found:  # fmt: skip
    """The unseen cells: each cross-classification, and what two of them, or two tables, share and nobody shows."""
    blocks: list[Codes] = []
    sums: list[Sums] = []
    crossed: dict[Levels, Codes] = {}
    for levels in wide:
        margins = _largest([_common(levels, shown) for shown in tables])
        crossed[levels] = _crossed(layout, levels, margins, limit)
        blocks.append(crossed[levels])
        for margin in margins:
            total = layout.table.codes[layout.shown_at(margin)]
            sums.append(_sums(layout, total, crossed[levels], margin))
    shared = [_common(one, other) for one, other in combinations(wide, 2)]
    shared = [levels for levels in shared if any(levels) and not any(_within(levels, t) for t in tables)]
    for levels in dict.fromkeys([*shared, *joins]):
        sources = [crossed[each] for each in wide if _within(levels, each)]
        if levels in joins:
            sources += [layout.table.codes[layout.shown_at(t)] for t in tables if _within(levels, t)]
        total = _distinct_codes(layout, [layout.moved(codes, levels) for codes in sources])
        new = ~np.isin(layout.keys(total), layout.keys(layout.table.codes[layout.cells]))
        blocks.append(total[new])
        sums += [_sums(layout, total, codes, levels) for codes in sources]
    negative = bool(layout.table.may_be_negative[layout.cells].any())
    return Found(words, _distinct_codes(layout, blocks), tuple(sums), negative)


def _crossed(layout: Layout, levels: Levels, margins: Sequence[Levels], limit: int) -> Codes:
    """The combinations of codes that no shown margin says are empty: margins joined one after another."""
    zero = layout.table.structural_zero
    rest = []
    for margin in sorted(margins, key=lambda each: (-sum(each), each)):
        cells = layout.shown_at(margin)
        rest.append((margin, layout.table.codes[cells if zero is None else cells[~zero[cells]]]))
    have, codes = rest.pop(0)
    while rest:
        rest.sort(key=lambda each: -sum(_common(each[0], have)))
        margin, more = rest.pop(0)
        codes = _joined(layout, codes, more, have, margin, 4 * limit)
        have = tuple(max(pair) for pair in zip(have, margin, strict=True))
    if len(codes) > limit:
        raise _TooLarge
    return codes


def _joined(layout: Layout, one: Codes, other: Codes, first: Levels, second: Levels, most: int) -> Codes:
    """Every pair of cells of two tables that agree on what both show."""
    both = _common(first, second)
    moved = np.concatenate([layout.moved(one, both), layout.moved(other, both)])
    keys = layout.keys(moved)
    left, right = keys[: len(one)], keys[len(one) :]
    order = np.argsort(right, kind="stable")
    start = np.searchsorted(right[order], left, side="left")
    times = np.searchsorted(right[order], left, side="right") - start
    if int(times.sum()) > most:
        raise _TooLarge
    at = np.repeat(np.arange(len(one)), times)
    with_ = order[np.repeat(start - (np.cumsum(times) - times), times) + np.arange(len(at))]
    finer = np.array([two > own for own, two in zip(first, second, strict=True)])
    return np.where(finer, other[with_], one[at])


def _sums(layout: Layout, total: Codes, parts: Codes, levels: Levels) -> Sums:
    """Each of some cells at some levels as the sum of what belongs to it."""
    keys = layout.keys(np.concatenate([total, layout.moved(parts, levels)]))
    own, wanted = keys[: len(total)], keys[len(total) :]
    order = np.argsort(own, kind="stable")
    place = np.minimum(np.searchsorted(own[order], wanted), max(len(own) - 1, 0))
    row = order[place] if len(own) else place
    there = own[row] == wanted if len(own) else np.zeros(0, np.bool_)
    return Sums(total, row[there], parts[there])


def _distinct_codes(layout: Layout, blocks: Sequence[Codes]) -> Codes:
    codes = np.concatenate([np.zeros((0, len(layout.axes)), np.int32), *blocks]).astype(np.int32)
    _, first = np.unique(layout.keys(codes), return_index=True)
    return codes[np.sort(first)]


# -- the table with them ---------------------------------------------------------------------------------------------


def _extended(table: Table, found: Sequence[Found], known: Table | None) -> Table:
    """The table with its unseen cells at the end."""
    n = len(table)
    codes = np.concatenate([table.codes, *(each.codes for each in found)])
    sizes = [len(tree) for tree in table.dimensions.values()]
    rows, totals = _rows(codes, sizes, found)
    extra = len(codes) - n
    negative = np.concatenate([np.full(len(each.codes), each.negative) for each in found])
    if known is None:
        integers, at = _fitted(table, rows, totals, negative), np.full(extra, -1, dtype=np.int64)
    else:
        at = _places(known, codes[n:], sizes)
        integers = _taken(rescaled(known.integers, table.decimals - known.decimals), at)
    old = sparse.csr_array(
        (table.equations.data, table.equations.indices, table.equations.indptr),
        shape=(table.equations.shape[0], len(codes)),
    )
    unseen = np.zeros(len(codes), dtype=np.bool_)
    unseen[n:] = True
    zero = table.structural_zero
    wider = replace(
        table,
        integers=np.concatenate([table.integers, integers]),
        codes=codes,
        equations=sparse.csr_array(sparse.vstack([old, rows], format="csr")).astype(np.int8),
        totals=np.concatenate([table.totals, totals]),
        count=_more(table.count, None if known is None else known.count, at),
        holdings=_more(table.holdings, None if known is None else known.holdings, at),
        contributors=_more_contributors(table.contributors, None if known is None else known.contributors, at),
        columns={
            name: _more(column, None if known is None else known.columns.get(name), at)
            for name, column in table.columns.items()
        },
        structural_zero=None if zero is None else np.concatenate([zero, np.zeros(extra, np.bool_)]),
        signed=np.concatenate([table.may_be_negative, negative]),
        computed=None if table.computed is None else np.concatenate([table.computed, np.zeros(extra, np.bool_)]),
        unseen=unseen,
        judged=known is not None,
    )
    if known is None and table.count is not None and bool((table.count == table.integers).all()):
        assert wider.count is not None
        wider = replace(wider, count=np.where(unseen, wider.integers, wider.count))
    bad = np.flatnonzero(np.asarray(rows.astype(np.int64) @ wider.integers))
    if bad.size:
        raise InvalidTable(
            f"Cell {table.describe(int(totals[bad[0]]))} is {table._show(int(table.integers[totals[bad[0]]]))}, but "
            f"other tables of the same records leave no place for that: {_words(found)}.",
            hint="were all tables made from the same records?",
        )
    return wider


def _words(found: Sequence[Found]) -> str:
    return "; ".join(", ".join(each.tables) for each in found)


def _rows(codes: Codes, sizes: Sequence[int], found: Sequence[Found]) -> tuple[sparse.csr_array, Integers]:
    """The equations between all cells and the unseen ones, and the total of each."""
    every = [codes, *(part for each in found for one in each.sums for part in (one.total, one.part))]
    keys = cell_keys(np.concatenate(every), sizes)
    own, order = keys[: len(codes)], np.argsort(keys[: len(codes)], kind="stable")
    place = order[np.searchsorted(own[order], keys[len(codes) :])]
    offset, start = 0, 0
    row, column, data, totals = [], [], [], []
    for one in (one for each in found for one in each.sums):
        total = place[start : start + len(one.total)]
        part = place[start + len(one.total) : start + len(one.total) + len(one.part)]
        start += len(one.total) + len(one.part)
        row += [offset + np.arange(len(total)), offset + one.row]
        column += [total, part]
        data += [-np.ones(len(total), np.int8), np.ones(len(part), np.int8)]
        totals.append(total)
        offset += len(total)
    matrix = sparse.csr_array(
        (np.concatenate(data), (np.concatenate(row), np.concatenate(column))), shape=(offset, len(codes)), dtype=np.int8
    )
    return matrix, np.concatenate(totals)


def _places(known: Table, codes: Codes, sizes: Sequence[int]) -> Integers:
    """Where the records' cells stand; −1 for a cell without records."""
    keys = cell_keys(np.concatenate([known.codes, codes]), sizes)
    own, wanted = keys[: len(known)], keys[len(known) :]
    order = np.argsort(own, kind="stable")
    if not len(order):
        return np.full(len(codes), -1, dtype=np.int64)
    place = order[np.minimum(np.searchsorted(own[order], wanted), len(own) - 1)]
    return np.where(own[place] == wanted, place, -1)


def _taken(column: NDArray[Any], at: Integers) -> NDArray[Any]:
    if not len(column):
        return np.zeros(len(at), dtype=column.dtype)
    return np.where(at >= 0, column[at], np.zeros(1, dtype=column.dtype))


def _more(column: NDArray[Any] | None, known: NDArray[Any] | None, at: Integers) -> Any:
    """A column with entries for the unseen cells: what the records say, or nothing."""
    if column is None:
        return None
    return np.concatenate([column, _taken(column[:1] if known is None else known, at).astype(column.dtype)])


def _more_contributors(own: Contributors | None, known: Contributors | None, at: Integers) -> Contributors | None:
    if own is None:
        return None
    more = (own if known is None else known).take(at)
    return Contributors(
        np.concatenate([own.amount, more.amount]),
        np.concatenate([own.identity, more.identity]),
        None if own.weighted is None else np.concatenate([own.weighted, _weighted(more)]),
        own.names,
        own.sure,
    )


def _weighted(more: Contributors) -> Any:
    return more.amount if more.weighted is None else more.weighted


def _fitted(table: Table, rows: sparse.csr_array, totals: Integers, negative: Mask) -> Integers:
    """Some whole cube that has the shown margins, without negative values where there can be none."""
    n = len(table)
    right = -np.asarray(rows[:, :n].astype(np.int64) @ table.integers)
    inner = sparse.csr_array(rows[:, n:])
    bare = np.diff(inner.indptr) == 0
    if bool((bare & (right != 0)).any()):
        row = int(np.flatnonzero(bare & (right != 0))[0])
        raise InvalidTable(
            f"Cell {table.describe(int(totals[row]))} is {table._show(abs(int(right[row])))}, but other tables of the "
            f"same records say that there is nothing.",
            hint="were all tables made from the same records?",
        )
    if len(negative) > MOST_FITTED:
        raise _TooLarge
    from tablesafe.solve.highs import whole_point  # only where no records are at hand: a solver is slow to load

    least, most = np.where(negative, -np.inf, 0.0), np.full(len(negative), np.inf)
    status, found = whole_point(inner[~bare], right[~bare], most, lower=least, budget=Budget(FIT_S))
    if found is not None:
        return found
    if status is SolveStatus.INFEASIBLE:
        whose = "no records" if negative.any() else "no records without negative values"
        raise InvalidTable(
            f"The linked tables contradict each other: {whose} have all of them as margins, though any two of them "
            "agree.",
            hint="were they made from the same records? link(..., cube='ignore') does not ask.",
        )
    raise _TooLarge
