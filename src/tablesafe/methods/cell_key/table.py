"""A perturbation table: for each true count the possible changes, and which part of [0, 1) each of them takes up."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Self

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tablesafe.core.equations import Floats, Integers
from tablesafe.core.errors import InvalidOption
from tablesafe.core.mechanism import Transition

TOLERANCE = 1e-6
"""How far the probabilities of a row may add up to something else than one: files hold eight decimals or so."""


@dataclass(frozen=True, eq=False)
class PerturbationTable:
    """Rows of changes with their probabilities, one row per true count; the last row is for all larger counts.

    The changes of a row divide [0, 1) in their order: a cell whose key lies in [`upper` of the change before, `upper`)
    gets the change. For magnitudes the rows stand for multiples of the cell's own scale, and changes may be fractions.
    A secret of the office.
    """

    count: Floats = field(repr=False)
    """The true count of each row, from 0 up."""
    start: Integers = field(repr=False)
    """Where each row begins in the arrays below; one more entry than rows."""
    change: Floats = field(repr=False)
    upper: Floats = field(repr=False)
    """The upper end of each change's interval of keys."""

    @classmethod
    def of(cls, rows: Iterable[tuple[float, Sequence[float] | Floats, Sequence[float] | Floats]]) -> Self:
        """A table from rows of a true count, its changes, and their probabilities.

        A row for 0 is added where there is none: zeros stay zero.
        """
        given = sorted(((float(c), np.asarray(v, float), np.asarray(p, float)) for c, v, p in rows), key=lambda r: r[0])
        if not given or given[0][0] > 0:
            given = [(0.0, np.zeros(1), np.ones(1)), *given]
        for count, changes, chance in given:
            _require_row(count, changes, chance)
        return cls(
            np.array([count for count, _, _ in given]),
            np.cumsum([0, *(len(changes) for _, changes, _ in given)]),
            np.concatenate([changes for _, changes, _ in given]),
            np.concatenate([_cumulated(chance) for _, _, chance in given]),
        )

    def __post_init__(self) -> None:
        wrong = np.flatnonzero(np.diff(self.count) <= 0)
        if len(self.count) < 2 or self.count[0] != 0 or wrong.size:
            twice = f"the count {self.count[wrong[0]]:g} has two rows" if wrong.size else "there is no row above 0"
            raise InvalidOption(
                f"A perturbation table has one row per count, from 0 up; {twice}.", hint="add or remove rows."
            )
        if np.any(self.change[self.start[0] : self.start[1]] != 0):
            raise InvalidOption("In a perturbation table a count of 0 must stay 0.")
        below = np.flatnonzero(np.repeat(self.count, np.diff(self.start)) + self.change < 0)
        if below.size:
            row = int(np.searchsorted(self.start, below[0], side="right")) - 1
            raise InvalidOption(
                f"In the perturbation table a count of {self.count[row]:g} would become negative "
                f"(change {self.change[below[0]]:g}).",
                hint="no change may be below minus the count.",
            )

    def __len__(self) -> int:
        return len(self.count)

    @cached_property
    def probability(self) -> Floats:
        """The probability of each change: the width of its interval."""
        begins = np.concatenate([[0.0], self.upper[:-1]])
        begins[self.start[:-1]] = 0.0
        return np.asarray(self.upper - begins)

    @property
    def maximum_change(self) -> float:
        """The largest change in either direction."""
        return float(np.abs(self.change).max())

    @cached_property
    def always_possible(self) -> tuple[float, float]:
        """How far every count from 1 on can be published above itself, and how far below, if not all the way to 0."""
        count, possible = np.repeat(self.count, np.diff(self.start)), self.probability > 0
        row = np.repeat(np.arange(len(self)), np.diff(self.start))
        up, down = np.zeros(len(self)), np.zeros(len(self))
        np.maximum.at(up, row[possible], self.change[possible])
        np.maximum.at(down, row[possible], -self.change[possible])
        whole = np.zeros(len(self), dtype=np.bool_)
        whole[row[possible & (count + self.change <= 0)]] = True
        some = self.count >= 1
        least = down[some & ~whole].min(initial=self.maximum_change)
        return float(up[some].min(initial=self.maximum_change)), float(least)

    @cached_property
    def first_possible(self) -> tuple[float, float]:
        """How near every count from 1 on can be published above itself or unchanged, and how near below."""
        rows = np.repeat(np.arange(len(self)), np.diff(self.start))
        near = [np.full(len(self), np.inf), np.full(len(self), np.inf)]
        for side, which in enumerate((self.change >= 0, self.change < 0)):
            some = which & (self.probability > 0)
            np.minimum.at(near[side], rows[some], np.abs(self.change[some]))
        up, down = (each[(self.count >= 1) & np.isfinite(each)].max(initial=0.0) for each in near)
        return float(up), float(down)

    @property
    def smallest(self) -> float:
        """The smallest result above zero."""
        results = (np.repeat(self.count, np.diff(self.start)) + self.change)[self.probability > 0]
        return float(results[results > 0].min())

    @property
    def is_for_counts(self) -> bool:
        """Whether there is a row for each of the counts 0, 1, 2, … and every change is whole."""
        return bool((self.count == np.arange(len(self))).all() and (self.change == np.rint(self.change)).all())

    def changes(self, row: NDArray[np.intp], key: Floats) -> Floats:
        """The change of each key (a number in [0, 1)) in its row."""
        short = row.astype(np.uint16) if len(self) <= 2**16 else row  # short numbers are sorted by their digits
        order = np.argsort(short, kind="stable")
        ends = np.searchsorted(short[order], np.arange(len(self) + 1))
        out = np.empty(len(row))
        for r in np.flatnonzero(np.diff(ends)):
            cells = order[ends[r] : ends[r + 1]]
            first, last = int(self.start[r]), int(self.start[r + 1])
            place = np.searchsorted(self.upper[first:last], key[cells], side="right")
            out[cells] = self.change[first + np.minimum(place, last - first - 1)]
        return out

    def interpolated(self, amount: Floats, key: Floats) -> Floats:
        """The change of each key between the two rows next to an amount, in proportion to its distance from them."""
        amount = np.minimum(amount, self.count[-1])
        low = np.searchsorted(self.count, amount, side="right") - 1
        high = np.minimum(low + 1, len(self) - 1)
        width = self.count[high] - self.count[low]
        share = np.where(width > 0, (amount - self.count[low]) / np.where(width > 0, width, 1.0), 0.0)
        return np.asarray((1 - share) * self.changes(low, key) + share * self.changes(high, key))

    @cached_property
    def transition(self) -> Transition:
        """P(published | true) of a table for counts."""
        low, high = int(self.change.min()), int(self.change.max())
        rows = np.zeros((len(self), high - low + 1))
        row = np.repeat(np.arange(len(self)), np.diff(self.start))
        np.add.at(rows, (row, np.rint(self.change).astype(np.int64) - low), self.probability)
        return Transition(rows, low)

    def true_range(self, published: Integers) -> tuple[Integers, Integers]:
        """The smallest and the largest true count that each published count can come from."""
        rows, low = self.transition.rows, self.transition.low
        reach, last = max(self.transition.high, 0) - min(low, 0), len(self) - 1
        true = np.arange(last + 2 * reach + 1)
        result = true[:, None] + low + np.arange(rows.shape[1])
        possible = rows[np.minimum(true, last)] > 0
        size = last + reach + 1
        least, most = np.full(size, len(true)), np.full(size, -1)
        inside = possible & (result < size)
        at = np.broadcast_to(true[:, None], result.shape)[inside]
        np.minimum.at(least, result[inside], at)
        np.maximum.at(most, result[inside], at)
        near = np.minimum(published, size - 1)
        return least[near] + published - near, most[near] + published - near

    def constraints(self) -> pl.DataFrame:
        """What each row does: the mean and variance of its change, and how likely a count stays as it is."""
        rows = np.repeat(np.arange(len(self)), np.diff(self.start))
        p, v = self.probability, self.change

        def summed(values: Floats) -> Floats:
            return np.asarray(np.bincount(rows, values, len(self)))

        mean = summed(p * v)
        return pl.DataFrame(
            {
                "count": self.count,
                "sum": summed(p),
                "mean": mean,
                "variance": summed(p * (v - mean[rows]) ** 2),
                "stays": summed(np.where(v == 0, p, 0.0)),
                "smallest change": np.minimum.reduceat(v, self.start[:-1]),
                "largest change": np.maximum.reduceat(v, self.start[:-1]),
            }
        )

    def frame(self) -> pl.DataFrame:
        """One line per change: true count, result, probability, change, and its interval of keys."""
        count = np.repeat(self.count, np.diff(self.start))
        begins = self.upper - self.probability
        return pl.DataFrame(
            {
                "i": count, "j": count + self.change, "p": self.probability, "v": self.change,
                "p_int_lb": begins, "p_int_ub": self.upper,
            }
        )  # fmt: skip


def _require_row(count: float, changes: Floats, chance: Floats) -> None:
    if not len(changes) or len(changes) != len(chance):
        raise InvalidOption(f"The row for a count of {count:g} needs as many probabilities as changes.")
    if not np.isfinite(changes).all() or not np.isfinite(count):
        raise InvalidOption(f"In the row for a count of {count:g} a change is no number.")
    if not np.isfinite(chance).all() or (chance < 0).any():
        raise InvalidOption(f"In the row for a count of {count:g} a probability is negative or no number.")
    if abs(chance.sum() - 1) > TOLERANCE:
        raise InvalidOption(
            f"The probabilities in the row for a count of {count:g} add up to {chance.sum():.10g}, not to 1.",
            hint=f"they must add up to 1 within {TOLERANCE:g}.",
        )


def _cumulated(chance: Floats) -> Floats:
    """The upper ends of the intervals; the last is 1 whatever rounding did to the sum."""
    upper = np.minimum(np.cumsum(chance), 1.0)
    upper[np.flatnonzero(chance > 0)[-1] :] = 1.0
    return np.asarray(upper)
