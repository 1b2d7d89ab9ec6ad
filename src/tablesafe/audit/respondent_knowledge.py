"""What respondents know of the suppressed cells: their own contributions.

A contributor (a respondent, or a holding where the table knows holdings) knows what it reported in every cell, so it
knows that the cell is no less than that, where no contribution is negative; a cell of which it is the only
contributor it knows exactly. Where contributions may be negative the rest of a cell can be anything, and of a cell
with other contributors its own tells it nothing. A coalition adds up what its members know. With sampling weights a
contributor is taken to know what it adds to the published total: the stronger attacker. Contributors that were ranked
by a shadow variable have told nothing about the value itself; of them only those who are alone in a cell know
something: that cell, and that totals of it are no less.

Of a contributor that a cell does not list among its largest only a limit is known: it has no more there than the
smallest that is listed for certain (with weights: of those who add the most), than remains of the cell, than it has in
a total of which the cell is a part (less what it has in the other parts), and nothing where all contributors are
listed. Taken as its knowledge, that limit makes the attacker as strong as it can be: whoever is safe from it is safe,
and what is open only to it is possibly open.

Where a table lists nobody but counts its contributors, each of them knows that it is one of those in a cell.

Contributors without a name are taken to be different ones, unless they must be the same: the only contributor of a
total is the only one of its parts, and where counts add up, each contributor of a total is one of a single part.

What respondents know of the cells they contribute to, so that deviations can be chosen which none can rule out.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from tablesafe.core.equations import Floats, Integers, Mask
from tablesafe.core.problem import Problem
from tablesafe.core.table import Table
from tablesafe.rules.contributions import SHADOW

if TYPE_CHECKING:
    from tablesafe.audit.system import System

MANY = np.iinfo(np.int64).max
"""Stands for a number of contributors that nobody told."""

KEPT = 4_000_000
"""Numbers that are kept of what single contributors may have."""

Members = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Lists:
    """The contributors that a table lists per cell, in units of the table."""

    who: Integers = field(repr=False)
    """Identity per cell and place; −1 for a place not used. The nameless get a number of their own per place."""
    own: Floats = field(repr=False)
    """What each adds to the cell, in whole units, rounded up."""
    everyone: Integers = field(repr=False)
    """How many contributors each cell has."""
    unlisted: Floats = field(repr=False)
    """The most that a contributor that is not listed can add."""
    nobody: int
    """Identities from here on are nameless."""
    negative: Mask
    """Cells whose contributions may be negative: those with one contributor are all that anybody knows of them."""
    shadow: bool = False
    """Whether contributors are ranked by a shadow variable, so that what they add is told only where they are alone."""

    @classmethod
    def of(cls, table: Table) -> Self | None:
        """The lists of a table; None when it does not even tell counts."""
        everyone = table.count if table.holdings is None else table.holdings
        kept = table.contributors
        if kept is not None:
            identity, added = kept.identity, kept.amount if kept.weighted is None else kept.weighted
            if SHADOW in table.columns:
                added = np.zeros_like(added)
        elif everyone is not None:
            identity, added = np.full((len(table), 1), -1), _one_of_each(table)[:, None].astype(np.float64)
        else:
            return None
        used = (identity >= 0) | (added != 0)
        if everyone is not None:
            alone, first = (everyone == 1)[:, None], np.arange(identity.shape[1]) == 0
            used = used | (alone & first)
            added = np.where(alone, np.where(first, table.value[:, None], 0.0), added)
        negative = table.may_be_negative
        own = np.where(used, np.ceil(added * 10.0**table.decimals - 1e-6), 0.0)
        own = np.where(negative[:, None], own, np.minimum(own, table.integers[:, None]))
        nobody = int(identity.max(initial=-1)) + 1
        names = np.where(identity >= 0, identity, nobody + np.arange(identity.size).reshape(identity.shape))
        listed = used.sum(axis=1)
        full = listed >= (identity.shape[1] if kept is None else kept.certain)
        told = np.where(full, MANY, listed) if everyone is None else np.maximum(everyone, listed)
        left = np.where(negative, np.inf, np.maximum(table.integers - own.sum(axis=1), 0.0))
        smallest: Floats | float = np.abs(own[:, -1])
        if kept is not None and kept.weighted is not None:
            unsaid = kept.sure is None or SHADOW in table.columns
            smallest = np.inf if unsaid else -np.sort(-np.abs(own), axis=1)[:, kept.certain - 1]
        unlisted = np.where(told > listed, np.minimum(smallest, left), 0.0)
        if everyone is not None and bool((used & (identity < 0)).any()):
            names = _same_people(table, np.where(used & (identity < 0), names, -1), own, everyone, names)
        shadow = kept is not None and SHADOW in table.columns
        return cls(np.where(used, names, -1), own, told, unlisted, nobody, negative, shadow)

    def listings(self, members: Members) -> tuple[NDArray[np.intp], Floats, Integers]:
        """The table's cells that list a member: what the members add to each, and how many of them it lists."""
        names, cells, places = self._by_identity
        first, last = (np.searchsorted(names, np.asarray(members, np.int64), side) for side in ("left", "right"))
        length = last - first
        at = np.arange(int(length.sum())) + np.repeat(first - np.cumsum(length) + length, length)
        cell, place = cells[at], places[at]
        found, where = np.unique(cell, return_inverse=True)
        own = np.bincount(where, self.own[cell, place], len(found)).astype(np.float64)
        return found, own, np.bincount(where, minlength=len(found)).astype(np.int64)

    @cached_property
    def _by_identity(self) -> tuple[Integers, NDArray[np.intp], NDArray[np.intp]]:
        """Every listing sorted by identity: the identity, the table's cell, the place."""
        cell, place = np.nonzero(self.who >= 0)
        order = np.argsort(self.who[cell, place], kind="stable")
        return self.who[cell, place][order], cell[order], place[order]


def _one_of_each(table: Table) -> Mask:
    """Cells of which each contributor knows that it is one of those counted there: in tables of the contributors."""
    everyone, known = table.count if table.holdings is None else table.holdings, np.ones(len(table), np.bool_)
    if table.unseen is not None and not table.judged:
        known = ~table.unseen
    if everyone is None or table.decimals or not bool((everyone == table.integers)[known].all()):
        return np.zeros(len(table), dtype=np.bool_)
    return np.asarray(known & (everyone > 0))


def _same_people(table: Table, nameless: Integers, own: Floats, everyone: Integers, names: Integers) -> Integers:
    """One number for nameless contributors who must be the same.

    The only contributor of a total is the only one of its parts. And where the parts of a total have as many
    contributors as it has, each is in one part, with the same amount; equal amounts cannot be told apart and stay.
    """
    signs = table.equations.tocoo()
    counted = np.bincount(signs.row, np.where(signs.data > 0, everyone[signs.col], 0), table.equations.shape[0])
    plain = np.bincount(signs.row, signs.data < 0, table.equations.shape[0]) == 1
    row, part = signs.row[signs.data > 0], signs.col[signs.data > 0]
    row, part = row[plain[row]], part[plain[row]]
    total = table.totals[row]
    alone = (everyone[total] == 1) & (everyone[part] == 1) & (nameless[total, 0] >= 0) & (nameless[part, 0] >= 0)
    one, other = [names[total[alone], 0]], [names[part[alone], 0]]
    split = (counted[row] == everyone[total]) & ~alone
    rows, listed = np.repeat(row[split], own.shape[1]), (part[split, None], np.arange(own.shape[1]))
    amount, who = own[listed].ravel(), nameless[listed].ravel()
    order = np.lexsort((-np.abs(amount), rows))
    rows, amount, who = rows[order], amount[order], who[order]
    rank = np.arange(len(rows)) - np.searchsorted(rows, rows)
    tied = (rows[1:] == rows[:-1]) & (np.abs(amount[1:]) == np.abs(amount[:-1]))
    single = ~(np.append(tied, False) | np.append(False, tied)) & (amount != 0) & (rank < own.shape[1]) & (who >= 0)
    above, place = table.totals[rows[single]], rank[single]
    fits = (own[above, place] == amount[single]) & (nameless[above, place] >= 0)
    one.append(nameless[above, place][fits])
    other.append(who[single][fits])
    n = int(names.max(initial=0)) + 1
    pairs = np.concatenate(one), np.concatenate(other)
    _, group = connected_components(sparse.coo_array((np.ones(len(pairs[0])), pairs), shape=(n, n)), directed=False)
    first = np.full(int(group.max(initial=0)) + 1, n)
    np.minimum.at(first, group, np.arange(n))
    return np.where(nameless >= 0, first[group[names]], names)


@dataclass(frozen=True, eq=False)
class Knowledge:
    """What coalitions of up to `size` contributors know of the unknown cells of a system, in units."""

    system: System = field(repr=False)
    lists: Lists = field(repr=False)
    size: int

    @classmethod
    def of(cls, system: System, size: int, lists: Lists | None = None) -> Self | None:
        """The knowledge that a table's lists imply; None when the table lists nobody and tells no counts."""
        lists = lists or Lists.of(system.table)
        return None if lists is None else cls(system, lists, size)

    @cached_property
    def who(self) -> Integers:
        """Identities listed in each unknown cell."""
        return self.lists.who[self.system.cells]

    @cached_property
    def own(self) -> Floats:
        """What those add to each unknown cell."""
        return self.lists.own[self.system.cells]

    @cached_property
    def everyone(self) -> Integers:
        """Contributors of each unknown cell."""
        return self.lists.everyone[self.system.cells]

    @cached_property
    def negative(self) -> Mask:
        """Unknown cells whose contributions may be negative."""
        return self.lists.negative[self.system.cells]

    @cached_property
    def transparent(self) -> Mask:
        """Unknown cells that some coalition knows exactly."""
        return np.asarray((self.everyone <= self.size) & (self.everyone > 0))

    @cached_property
    def most(self) -> Floats:
        """The most that any coalition knows to be in each unknown cell: the largest listed, then some who are not."""
        own = -np.sort(-self.own, axis=1)[:, : self.size].sum(axis=1)
        more = np.maximum(self.size - (self.who >= 0).sum(axis=1), 0) * self.lists.unlisted[self.system.cells]
        own = own + np.where(self.negative, 0.0, np.minimum(more, self._left))
        return np.where(self.negative, self.system.lower, np.maximum(own, self.system.lower))

    @cached_property
    def guess(self) -> Floats:
        """The most that a coalition can have in each unknown cell without being listed there."""
        most = np.minimum(self.size * self.lists.unlisted[self.system.cells], self._left)
        return np.where(self.negative, self.system.lower, np.maximum(most, self.system.lower))

    @cached_property
    def _left(self) -> Floats:
        """What the contributors that are not listed have together."""
        return np.asarray(np.maximum(self.system.truth - self.own.sum(axis=1), 0.0))

    def seen_by(self, members: Members, *, joined: bool = False) -> tuple[NDArray[np.intp], Floats, Mask]:
        """The unknown cells that list a member: the least that the members know to be there, and which they know.

        With `joined` as much as they may know together with others, as many as a coalition has at most, where the cells
        do not list these; nor all of the members.
        """
        cell, own, listed = self.lists.listings(members)
        at = np.minimum(np.searchsorted(self.system.cells, cell), len(self.system) - 1)
        here = self.system.cells[at] == cell
        at, own, listed = at[here], own[here], listed[here]
        known = listed >= self.everyone[at]
        if joined:
            unlisted = (self.size - listed) * self.lists.unlisted[self.system.cells[at]]
            own = own + np.where(self.negative[at], 0.0, np.minimum(unlisted, self._left[at]))
            known |= (listed == (self.who[at] >= 0).sum(axis=1)) & (self.everyone[at] <= self.size)
        floor = np.where(self.negative[at], self.system.lower[at], np.maximum(own, self.system.lower[at]))
        return at, np.minimum(floor, self.system.truth[at]), known

    def least(self, members: Members) -> Floats:
        """What members are known to have in each cell of the table: in a total no less than in its parts.

        Only where no contribution can be negative: of other sums nothing is known but what is listed.
        """
        has = np.zeros(len(self.system.table))
        cell, own, _ = self.lists.listings(members)
        has[cell] = own
        totals, parts = self._parts
        while True:
            summed = has.copy()
            np.maximum.at(summed, totals, np.asarray(parts @ has))
            if (summed == has).all():
                return has
            has = summed

    @cached_property
    def _parts(self) -> tuple[Integers, sparse.csr_array]:
        """The totals of the table's equations, and what they are the sums of; none that subtract or may be negative."""
        table = self.system.table
        matrix = sparse.csr_array(table.equations.astype(np.float64))
        plain = np.flatnonzero((np.asarray((matrix < 0).sum(axis=1)) == 1) & ~self._signed(matrix))
        return table.totals[plain], matrix[plain].maximum(0.0)

    def guesses(self, members: Members) -> Floats:
        """The most that these members can have in each unknown cell beside what it lists of them.

        As far as the lists of other cells tell; and so many others may be with them as a coalition has at most.
        """
        total = (self.size - len(members)) * self._unlisted
        for member in members:
            total = total + self._guess_of(member)
        return np.where(self.negative, 0.0, np.minimum(total, self._left))

    def _guess_of(self, member: int) -> Floats:
        """The same for one, who is in many coalitions one after the other: kept, as far as memory allows."""
        kept = self._guessed
        if member not in kept:
            if len(kept) * len(self.system) > KEPT:
                kept.clear()
            kept[member] = self._new_guess_of(member)
        return kept[member]

    @cached_property
    def _guessed(self) -> dict[int, Floats]:
        return {}

    def _new_guess_of(self, member: int) -> Floats:
        """Only cells below a total that lists it can be other than of somebody whom no total lists."""
        lists, table = self.lists, self.system.table
        guess = self._unlisted.copy()
        cell, own, _ = self.lists.listings((member,))
        here = self.system.positions(cell)
        order, totals = self._rows_by_total
        first, last = (np.searchsorted(totals, cell, side) for side in ("left", "right"))
        times = last - first
        rows = order[np.repeat(first - np.cumsum(times) + times, times) + np.arange(int(times.sum()))]
        if len(rows):
            has = np.zeros(len(table))
            has[cell] = own
            rest = np.full(len(self.system.rows), np.nan)
            rest[rows] = np.maximum(-np.asarray(self._equations[rows] @ has), 0.0)
            below = np.unique(self._parents_of_rows[rows].indices)
            part = self._rows_of_parents[below]
            at, row = np.repeat(below, np.diff(part.indptr)), part.indices
            limit = np.where(np.isnan(rest[row]), lists.unlisted[table.totals[self.system.rows[row]]], rest[row])
            guess[below] = lists.unlisted[self.system.cells[below]]
            np.minimum.at(guess, at, limit)
        guess[here[here >= 0]] = 0.0
        return guess

    @cached_property
    def _unlisted(self) -> Floats:
        """The most that somebody can have in each unknown cell whom neither it nor a total of it lists."""
        lists, table = self.lists, self.system.table
        guess: Floats = lists.unlisted[self.system.cells].copy()
        at, row = self._parents
        np.minimum.at(guess, at, lists.unlisted[table.totals[self.system.rows[row]]])
        return guess

    @cached_property
    def _rows_by_total(self) -> tuple[Integers, Integers]:
        """The rows of the system in the order of their totals, and these."""
        totals = self.system.table.totals[self.system.rows]
        order = np.argsort(totals, kind="stable")
        return order, totals[order]

    @cached_property
    def _rows_of_parents(self) -> sparse.csr_array:
        """Which rows each unknown cell with unlisted contributors is a part in."""
        at, row = self._parents
        shape = (len(self.system), len(self.system.rows))
        return sparse.csr_array((np.ones(len(at), np.int8), (at, row)), shape=shape)

    @cached_property
    def _parents_of_rows(self) -> sparse.csr_array:
        return sparse.csr_array(self._rows_of_parents.T)

    def _signed(self, equations: sparse.csr_array) -> Mask:
        """Equations in which some contribution may be negative: of these a part is no bound of the total."""
        return np.asarray(abs(equations) @ self.lists.negative.astype(np.float64)) > 0

    @cached_property
    def columns(self) -> sparse.csc_array:
        """The equations of the system by unknown cell."""
        return self.system.matrix.tocsc()

    @cached_property
    def _equations(self) -> sparse.csr_array:
        return sparse.csr_array(self.system.table.equations[self.system.rows].astype(np.float64))

    @cached_property
    def _parents(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Pairs of an unknown cell with unlisted contributors and a row of the system in which it is a part."""
        subtracts = np.asarray((self._equations < 0).sum(axis=1)) > 1
        subtracts |= self._signed(self._equations)
        entries = self.system.matrix.tocoo()
        some = (self.lists.unlisted[self.system.cells[entries.col]] > 0) & (entries.data > 0)
        some &= ~subtracts[entries.row]
        return entries.col[some], entries.row[some]


# -- deviations that nobody can rule out -------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Guard:
    """Cells that one respondent knows alone, and how far any respondent can believe each cell to fall.

    A deviation that moves none of the former (but the cell it protects) and takes no other cell further down than the
    latter convinces every single respondent.
    """

    alone: Mask = field(repr=False)
    down: Floats = field(repr=False)

    @classmethod
    def of(cls, problem: Problem) -> Self | None:
        """Read counts and contributors; None when the table has neither, or no cell has only a few."""
        alone, floor = known_to_one(problem), largest(problem)
        if not alone.any() and not floor.any():
            return None
        unit = 10.0**problem.table.decimals
        value = problem.table.integers.astype(np.float64)
        return cls(alone, np.maximum(np.minimum(value - problem.lower * unit, np.abs(value) - floor), 0.0))

    def take(self, cells: Integers) -> Guard:
        """The guard of some cells."""
        return Guard(self.alone[cells], self.down[cells])


def known_to_one(problem: Problem) -> Mask:
    """Cells that a single respondent or holding knows because it is all there is."""
    table = problem.table
    alone = np.zeros(len(table), dtype=np.bool_)
    for count in (table.count, table.holdings):
        if count is not None:
            alone |= count == 1
    return alone


def largest(problem: Problem) -> Floats:
    """What the largest contributor adds to each cell, in units of the table."""
    contributors = problem.table.contributors
    if contributors is None:
        return _one_of_each(problem.table).astype(np.float64)
    added = contributors.amount if contributors.weighted is None else contributors.weighted
    return np.asarray(np.abs(added).max(axis=1, initial=0.0) * 10.0**problem.table.decimals)
