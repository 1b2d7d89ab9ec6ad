"""Every table that small-count rounding could have turned into what is published: as one integer program.

Where cells are not shown, what a published count says depends on all the others. The reader knows the limit b and the
method, and nothing of how it chooses between 0 and b. With units u and published counts S, a table t fits when

- each unit is what it was, or was 1 to b − 1 and became 0 or b, and the published counts are the sums of that;
- a unit is changed only with a published count that was small, all of whose units were then 0, changed before (and 0
  for the moment), or add up to less than b;
- every published count that is small in t has all its units changed.

Changes come in rounds: a count becomes small after the first only if a unit of it was changed before. The last of the
rounds told apart stands for all later ones: there a count need only consist of 0s and bs.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tablesafe.core.equations import Floats, Integers, Mask
from tablesafe.solve.whole_forms import WholeForms

ROUNDS = 3
"""Rounds of changes that are told apart; the last stands for all later ones, loosely."""


@dataclass(frozen=True, eq=False)
class Histories:
    """What is published, and of which units; all tables that could have become it."""

    parts: sparse.csr_array = field(repr=False)
    """A row per published count, a column per unit."""
    shown: Integers = field(repr=False)
    known: Mask = field(repr=False)
    """Published counts announced to be the true ones."""
    limit: int
    occupied: bool

    def ends(
        self, whole: sparse.csr_array, touched: sparse.csr_array, outer: tuple[Floats, Floats]
    ) -> tuple[Floats, Floats]:
        """The least sum of each row of `whole`, and the largest of each row of `touched`, over all the tables.

        `outer` holds bounds that are known to be wide enough. Every table found shows how far all the sums can go, so
        that a bound which some table reaches is not asked for.
        """
        program, found = self._program(), np.zeros((0, self._units))
        ends = []
        for forms, bound, sign in ((whole.toarray(), outer[0], -1.0), (touched.toarray(), outer[1], 1.0)):
            end = bound.copy()
            for cell, form in enumerate(forms):
                reached = (found @ form * sign).max(initial=-np.inf)
                if reached < sign * end[cell]:
                    most, table = program.most(sign * self._form(form))
                    end[cell] = sign * min(most, sign * end[cell])
                    if table is not None:
                        found = np.vstack([found, self._true(table)])
            ends.append(end)
        return ends[0], ends[1]

    def _true(self, point: Integers) -> Integers:
        """The true counts of the units in a point of the program."""
        n = self._units
        return np.asarray(point[:n] + point[2 * n : (2 + ROUNDS) * n].reshape(ROUNDS, n).sum(axis=0))

    def _form(self, units: Floats) -> Floats:
        """The true count of a set of units, over the program's columns: unchanged parts and changed ones."""
        return np.concatenate([units, np.zeros(len(units)), np.tile(units, ROUNDS), np.zeros(self._others)])

    @property
    def _others(self) -> int:
        return ROUNDS * self._units + (ROUNDS + 1) * len(self.shown)

    @property
    def _units(self) -> int:
        return int(self.parts.shape[1])

    @cached_property
    def _most(self) -> Integers:
        """The most that each unit can be, rounded: the least published count that it is part of."""
        columns = sparse.csc_array(self.parts)
        return np.minimum.reduceat(self.shown[columns.indices], columns.indptr[:-1])

    def _program(self) -> WholeForms:
        """Columns: unchanged part x, up p; per round what changed w, whether c, and for which count s; not small z."""
        n, m, b = self._units, len(self.shown), self.limit
        size, parts = np.asarray(self.parts.sum(axis=1), dtype=np.float64).ravel(), self.parts
        unit, cell = sparse.identity(n, format="csr"), sparse.identity(m, format="csr")
        reason = (self.shown % b == 0) & (self.shown <= b * size)
        rows: list[list[sparse.csr_array | None]] = []
        low: list[Floats] = []
        high: list[Floats] = []
        free, none = np.inf, np.zeros

        def add(blocks: dict[str, sparse.csr_array], least: NDArray[Any], most: NDArray[Any]) -> None:
            rows.append([blocks.get(name) for name in self._columns])
            low.append(least)
            high.append(most)

        every = range(ROUNDS)
        anywhere = sparse.csr_array(np.ones((m, n)))
        changed = {f"c{k}": unit for k in every}
        add({"x": parts, "p": b * parts}, self.shown * 1.0, self.shown * 1.0)
        add(changed, none(n), np.ones(n))
        add({"p": unit} | {f"c{k}": -unit for k in every}, np.full(n, -free), none(n))
        reach = sparse.diags_array(self._most * 1.0, format="csr")
        add({"x": unit} | {f"c{k}": reach for k in every}, np.full(n, -free), self._most * 1.0)
        for k in every:
            add({f"w{k}": unit, f"c{k}": -unit}, none(n), np.full(n, free))
            add({f"w{k}": unit, f"c{k}": (1 - b) * unit}, np.full(n, -free), none(n))
            add({f"s{k}": parts.T.tocsr(), f"c{k}": -unit}, none(n), np.full(n, free))
            if k + 1 < ROUNDS:
                room = sparse.diags_array((b - 1.0) * size, format="csr")
                later = {f"w{j}": parts for j in every if j >= k}
                add({f"s{k}": room} | later, np.full(m, -free), (b - 1.0) * (1 + size))
            if k > 0:
                last = k + 1 == ROUNDS
                before = {f"c{k - 1}": anywhere} if last else {f"c{j}": parts for j in range(k)}
                add({f"s{k}": -cell} | before, none(m), np.full(m, free))
        content = sparse.diags_array(self.shown * 1.0, format="csr")
        add({"x": parts} | {f"s{k}": content for k in every}, np.full(m, -free), self.shown * 1.0)
        add({f"s{k}": cell for k in every}, none(m), reason * 1.0)
        true = {"x": parts} | {f"w{k}": parts for k in every}
        least = np.where(self.known, self.shown, 1 if self.occupied else 0)
        add(true, least * 1.0, np.where(self.known, self.shown, free))
        add(true | {"z": -b * cell}, none(m), np.full(m, free))
        top = sparse.diags_array(self.shown + (b - 1.0) * size, format="csr")
        add({"z": top, "s0": top} | {name: -block for name, block in true.items()}, none(m), np.full(m, free))
        widths = {name: n if name[0] in "xpwc" else m for name in self._columns}
        matrix = sparse.csr_array(sparse.block_array(self._filled(rows, low, widths), format="csr"))
        upper = np.concatenate(
            [self._most, np.ones(n), np.full(ROUNDS * n, b - 1), np.ones(ROUNDS * n + (ROUNDS + 1) * m)]
        )
        return WholeForms(matrix, np.concatenate(low), np.concatenate(high), np.zeros(len(upper)), upper * 1.0)

    @property
    def _columns(self) -> list[str]:
        return ["x", "p", *(f"{kind}{k}" for kind in "wcs" for k in range(ROUNDS)), "z"]

    def _filled(
        self, rows: list[list[sparse.csr_array | None]], low: list[Floats], widths: dict[str, int]
    ) -> list[list[sparse.csr_array]]:
        """Blocks of zeros where a condition says nothing."""
        return [
            [
                sparse.csr_array((len(side), width)) if block is None else block
                for block, width in zip(row, widths.values(), strict=True)
            ]
            for row, side in zip(rows, low, strict=True)
        ]
