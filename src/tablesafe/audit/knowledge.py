"""What respondents know of the suppressed cells: their own contributions.

A contributor (a respondent, or a holding where the table knows holdings) knows what it reported in every cell, so it
knows that the cell is no less than that, where no contribution is negative; a cell of which it is the only contributor
it knows exactly. A coalition adds up what its members know. With sampling weights a contributor is taken to know what
it adds to the published total: the stronger attacker.

Of a contributor that a cell does not list among its largest only a limit is known: it has no more there than the
smallest that is listed, than remains of the cell, than it has in a total of which the cell is a part (less what it has
in the other parts), and nothing where all contributors are listed. Taken as its knowledge, that limit makes the
attacker as strong as it can be: whoever is safe from it is safe, and what is open only to it is possibly open.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray

from tablesafe.audit.system import System
from tablesafe.equations import Floats, Integers, Mask
from tablesafe.table import Table

MANY = np.iinfo(np.int64).max
"""Stands for a number of contributors that nobody told."""


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
    negative: bool
    """Whether contributions can be negative: then only cells with one contributor are known to anybody."""

    @classmethod
    def of(cls, table: Table) -> Self | None:
        """The lists of a table; None when it does not even tell counts."""
        everyone = table.count if table.holdings is None else table.holdings
        kept = table.contributors
        if kept is None and everyone is None:
            return None
        unit = 10.0**table.decimals
        if kept is None:
            assert everyone is not None
            identity, added = np.full((len(table), 1), -1), np.where(everyone == 1, table.integers, 0)[:, None] / unit
        else:
            identity, added = kept.identity, kept.amount if kept.weighted is None else kept.weighted
        used = (identity >= 0) | (added != 0)
        if everyone is not None:
            used[:, 0] |= everyone == 1
            added = np.where((everyone == 1)[:, None] & (np.arange(added.shape[1]) == 0), table.value[:, None], added)
        negative = bool((added < 0).any() or (table.integers < 0).any())
        own = np.where(used, np.ceil(added * unit - 1e-6), 0.0)
        own = np.minimum(own, table.integers[:, None]) if not negative else own
        nobody = int(identity.max(initial=-1)) + 1
        own_number = nobody + np.arange(identity.size).reshape(identity.shape)
        who = np.where(used, np.where(identity >= 0, identity, own_number), -1)
        listed = used.sum(axis=1)
        full = listed == identity.shape[1]
        told = np.where(full, MANY, listed) if everyone is None else np.maximum(everyone, listed)
        left = np.maximum(table.integers - own.sum(axis=1), 0.0)
        unlisted = np.where(told > listed, np.minimum(own[:, -1], left), 0.0)
        if kept is None:
            unlisted = np.zeros(len(table))  # without any amounts there is nothing to go by
        return cls(who, own, told, unlisted, nobody, negative)


@dataclass(frozen=True, eq=False)
class Knowledge:
    """What every contributor knows of the unknown cells of a system."""

    system: System = field(repr=False)
    lists: Lists = field(repr=False)
    by_identity: tuple[Integers, NDArray[np.intp], NDArray[np.intp]] = field(repr=False)
    """Every listing sorted by identity: the identity, the table's cell, the place."""

    @classmethod
    def of(cls, system: System) -> Self | None:
        """The knowledge that a table's lists imply; None when the table lists nobody and tells no counts."""
        lists = Lists.of(system.table)
        if lists is None:
            return None
        cell, place = np.nonzero(lists.who >= 0)
        order = np.argsort(lists.who[cell, place], kind="stable")
        return cls(system, lists, (lists.who[cell, place][order], cell[order], place[order]))

    def listings(self, members: tuple[int, ...]) -> tuple[NDArray[np.intp], Floats, Integers]:
        """The table's cells that list a member: what the members add to each, and how many of them it lists."""
        names, cells, places = self.by_identity
        spans = [slice(*np.searchsorted(names, [member, member + 1])) for member in members]
        cell = np.concatenate([cells[:0], *(cells[span] for span in spans)])
        place = np.concatenate([places[:0], *(places[span] for span in spans)])
        found, where = np.unique(cell, return_inverse=True)
        own = np.bincount(where, self.lists.own[cell, place], len(found)).astype(np.float64)
        return found, own, np.bincount(where, minlength=len(found)).astype(np.int64)


@dataclass(frozen=True, eq=False)
class Part:
    """One component of the system, and what contributors know of its cells."""

    knowledge: Knowledge = field(repr=False)
    cells: NDArray[np.intp] = field(repr=False)
    """Positions among the unknown cells, ascending."""
    system: System = field(repr=False)
    """The equations of the component alone."""
    parents: tuple[NDArray[np.intp], NDArray[np.intp]] = field(repr=False)
    """Pairs of a cell with unlisted contributors (its place here) and an equation of the table that it is a part in."""
    size: int
    """How many may share what they know."""

    @classmethod
    def of(cls, knowledge: Knowledge, cells: NDArray[np.intp], size: int) -> Self:
        """The component that consists of these unknown cells."""
        whole, table = knowledge.system, knowledge.system.table
        columns = whole.matrix.tocsc()[:, cells].tocsr()
        rows = np.flatnonzero(np.diff(columns.indptr))
        system = System(
            table, whole.cells[cells], whole.rows[rows], columns[rows], whole.rhs[rows],
            whole.lower[cells], whole.upper[cells], whole.truth[cells],
        )  # fmt: skip
        entries = system.matrix.tocoo()
        subtracts = np.asarray((table.equations[system.rows] < 0).sum(axis=1)) > 1
        some = (knowledge.lists.unlisted[system.cells[entries.col]] > 0) & (entries.data > 0)
        some &= ~subtracts[entries.row]
        return cls(knowledge, cells, system, (entries.col[some], system.rows[entries.row[some]]), size)

    @cached_property
    def who(self) -> Integers:
        """Identities listed in each cell."""
        return self.knowledge.lists.who[self.system.cells]

    @cached_property
    def own(self) -> Floats:
        """What those add to each cell."""
        return self.knowledge.lists.own[self.system.cells]

    @cached_property
    def everyone(self) -> Integers:
        """Contributors of each cell."""
        return self.knowledge.lists.everyone[self.system.cells]

    @cached_property
    def most(self) -> Floats:
        """The most that any coalition knows to be in each cell; nothing where contributions may be negative."""
        if self.knowledge.lists.negative:
            return np.full(len(self.system), -np.inf)
        return np.asarray(-np.sort(-self.own, axis=1)[:, : self.size].sum(axis=1))

    @cached_property
    def transparent(self) -> Mask:
        """Cells that some coalition knows exactly."""
        return np.asarray((self.everyone <= self.size) & (self.everyone > 0))

    def view(self, members: tuple[int, ...], *, cautious: bool) -> tuple[Floats, Mask]:
        """What a coalition knows: a lower bound of each cell of the component, and which cells it knows exactly.

        With `cautious` its members may have as much as they can where they are not listed; a coalition without members
        then stands for one that is listed nowhere.
        """
        floor = self.system.lower.copy()
        known = np.zeros(len(floor), dtype=np.bool_)
        lists = self.knowledge.lists
        guess = self._guesses(members) if cautious and not lists.negative else np.zeros(len(floor))
        cell, own, listed = self.knowledge.listings(members)
        place = np.searchsorted(self.system.cells, cell)
        here = place < len(floor)
        here[here] = self.system.cells[place[here]] == cell[here]
        place, own, listed = place[here], own[here], listed[here]
        if not lists.negative:
            np.maximum(floor, guess, out=floor)
            floor[place] = np.maximum(floor[place], own)
        known[place] = listed >= self.everyone[place]
        return np.minimum(floor, self.system.truth), known

    def _guesses(self, members: tuple[int, ...]) -> Floats:
        """The most that the members together can have in each cell without being listed there."""
        total = np.zeros(len(self.system))
        for member in members or (-1,) * self.size:
            total += self._guess_of(member)
        left = np.maximum(self.system.truth - self.own.sum(axis=1), 0.0)
        return np.asarray(np.minimum(total, left))

    def _guess_of(self, member: int) -> Floats:
        lists, table = self.knowledge.lists, self.system.table
        guess: Floats = lists.unlisted[self.system.cells]
        if member < 0:
            return guess
        cell, own, _ = self.knowledge.listings((member,))
        has = np.zeros(len(table))
        has[cell] = own
        listed = np.zeros(len(table), dtype=np.bool_)
        listed[cell] = True
        at, row = self.parents
        total = table.totals[row]
        rest = -np.asarray(table.equations[row].astype(np.float64) @ has)
        limit = np.where(listed[total], rest, lists.unlisted[total])
        np.minimum.at(guess, at, np.maximum(limit, 0.0))
        guess[listed[self.system.cells]] = 0.0
        return guess
