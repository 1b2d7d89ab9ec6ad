"""How a random method turns a true count into a published one, and what a published count says about the true one.

A method that changes each count on its own, by chance, is fully described by P(published | true): the counts near a
true count, and their probabilities. What the public learns from a published count then follows by Bayes' rule.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Self

import numpy as np

from tablesafe.core.equations import Floats, Integers, Mask
from tablesafe.core.errors import InvalidOption

EXACT = 1e-9
"""How far the probabilities of a row may add up to something else than one."""


@dataclass(frozen=True, eq=False)
class Transition:
    """P(published | true) for counts: one row per true count 0, 1, 2, …, one column per change.

    Column `k` is the probability of the change `low + k`. The last `period` rows apply in turn to all larger counts:
    with a period of 1 the last row stands for all of them, with as many rows as the period the rows go by the residue.
    """

    rows: Floats = field(repr=False)
    low: int
    """The smallest change."""
    period: int = 1

    def __post_init__(self) -> None:
        if self.rows.ndim != 2 or not self.rows.size or not 1 <= self.period <= len(self.rows):
            raise InvalidOption("A transition needs a row per true count and a column per change.")
        wrong = np.flatnonzero((np.abs(self.rows.sum(axis=1) - 1) > EXACT) | (self.rows < 0).any(axis=1))
        if wrong.size:
            raise InvalidOption(
                f"The probabilities for a count of {wrong[0]} must be 0 or more and add up to 1; "
                f"they add up to {self.rows[wrong[0]].sum():.12g}."
            )
        true, change = np.nonzero(self.rows)
        below = np.flatnonzero(true + self.low + change < 0)
        if below.size:
            raise InvalidOption(f"A count of {true[below[0]]} could become negative: no count can.")

    @classmethod
    def random_rounding(cls, base: int) -> Self:
        """Rounding up with probability residue ÷ base, down otherwise: on average nothing changes."""
        residue = np.arange(base)
        rows = np.zeros((base, 2 * base - 1))
        rows[residue, base - 1 - residue] = 1 - residue / base
        rows[residue[1:], 2 * base - 1 - residue[1:]] = residue[1:] / base
        return cls(rows, -(base - 1), base)

    @classmethod
    def conventional_rounding(cls, base: int) -> Self:
        """Rounding to the nearest multiple, half upwards: nothing is left to chance."""
        residue = np.arange(base)
        rows = np.zeros((base, 2 * base - 1))
        rows[residue, base - 1 - residue + base * (2 * residue >= base)] = 1.0
        return cls(rows, -(base - 1), base)

    @property
    def high(self) -> int:
        """The largest change."""
        return self.low + self.width - 1

    @property
    def width(self) -> int:
        """How many changes there are."""
        return int(self.rows.shape[1])

    def row_of(self, true: Integers) -> Integers:
        """The row that applies to each true count."""
        first = len(self.rows) - self.period
        return np.where(true < len(self.rows), true, first + (true - first) % self.period)

    def probability(self, true: Integers, published: Integers) -> Floats:
        """P(published | true), element by element."""
        k = published - true - self.low
        inside = (k >= 0) & (k < self.width) & (true >= 0)
        at = self.row_of(np.where(inside, true, 0)), np.where(inside, k, 0)
        return np.where(inside, self.rows[at], 0.0)

    def around(self, true: Integers, published: Integers) -> tuple[Integers, Integers]:
        """How far one can go down and up from each true count by ones, and every count can have become the published.

        Beyond may be others, where the changes of a row have gaps: then not every count between two possible ones is.
        """
        ends = []
        for way in (-1, 1):
            end, going = true.copy(), np.ones(len(true), dtype=np.bool_)
            for _ in range(self.width):
                going &= self.probability(end + way, published) > 0
                end += way * going
            ends.append(end)
        return ends[0], ends[1]

    def draw(self, true: Integers, chance: Floats) -> Integers:
        """The published count of each true one, from numbers that are uniform on [0, 1)."""
        row, limits = self.row_of(true), np.cumsum(self.rows, axis=1)
        last = self.width - 1 - np.argmax(self.rows[:, ::-1] > 0, axis=1)
        k = np.zeros(len(true), dtype=np.int64)
        for column in range(self.width - 1):
            k += chance >= limits[row, column]
        return np.asarray(true + self.low + np.minimum(k, last[row]))

    def reach(self) -> tuple[int, int]:
        """How far below and above a published count the true one may lie, whatever the published count is."""
        used = np.flatnonzero((self.rows > 0).any(axis=0)) + self.low
        return max(int(used.max()), 0), max(-int(used.min()), 0)

    def mean_change(self) -> Floats:
        """The expected change of each row: zero where the method is unbiased."""
        return np.asarray(self.rows @ self._changes)

    def variance(self) -> Floats:
        """The variance of the change of each row."""
        return np.asarray(self.rows @ self._changes**2 - self.mean_change() ** 2)

    @property
    def _changes(self) -> Floats:
        return np.arange(self.low, self.high + 1, dtype=np.float64)


@dataclass(frozen=True, eq=False)
class Mechanism:
    """Which transition each cell of a release went through, independently of the others."""

    transitions: tuple[Transition, ...]
    which: Integers = field(repr=False)
    """The number of its transition per cell; −1 for cells that went through none."""

    @classmethod
    def single(cls, transition: Transition, cells: Mask) -> Self:
        """The same transition for all of some cells."""
        return cls((transition,), np.where(cells, 0, -1))

    @property
    def cells(self) -> Mask:
        """The cells that went through a transition."""
        return np.greater_equal(self.which, 0)
