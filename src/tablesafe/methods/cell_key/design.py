"""Perturbation tables designed here: unbiased, of one variance, as even as possible (maximum entropy).

Giessing (2016), Computational Issues in the Design of Transition Probabilities and Disclosure Risk Estimation for
Additive Noise; Fraser & Wooton (2005); the conditions are those of the R package ptable (Enderle, Giessing, Tent).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from tablesafe.core.equations import Floats, Mask
from tablesafe.core.errors import InvalidOption
from tablesafe.core.options import is_number
from tablesafe.methods.cell_key.maximum_entropy import largest_entropy
from tablesafe.methods.cell_key.table import PerturbationTable

ROUNDING = 1e-12
EDGE = 1e-5
"""Relative distance from the least or the largest possible variance within which probabilities are all but fixed."""


def design_perturbation(
    *,
    maximum_change: int = 5,
    variance: float = 3.0,
    smallest: int = 1,
    stay: float | None = None,
    monotone: bool = True,
    steps: int = 1,
    counts: Sequence[int] | None = None,
) -> PerturbationTable:
    """Design a perturbation table: for each count the distribution of largest entropy that keeps the conditions.

    Every change has mean zero and the given `variance`, is at most `maximum_change`, makes no count negative, and
    leads to no count above 0 and below `smallest`. `stay` is the probability of no change. With `monotone` a larger
    change is not likelier than a smaller one in the same direction. Zeros stay zero.

    Small counts have little room: where a count cannot have the variance otherwise, first `stay` and then `monotone`
    is given up for it, and where it cannot have it at all it gets the nearest variance possible; `constraints()` of
    the result shows what became of each row. The row for all large counts keeps every condition, or it is an error.

    `steps` (of magnitude tables) divides the unit: 2 allows changes of half a unit. `counts` are then the rows
    wanted; between them is interpolated.
    """
    _require(maximum_change, variance, smallest, stay, steps)
    last = maximum_change + (smallest if smallest > 1 else 0)
    rows = range(1, last + 1) if counts is None else sorted({*counts, last})
    if rows[0] < 1 or rows[-1] != last:
        raise InvalidOption(f"design_perturbation's counts must be from 1 to {last}, got {list(counts or ())}.")
    blocked = smallest - 1
    designed = []
    for count in rows:
        row = _Row(count, _support(count, maximum_change, blocked, steps), variance)
        row.require_both_sides(maximum_change, smallest)
        chance = row.exact(stay, monotone) if count == last else row.nearest(stay, monotone)
        designed.append((float(count), row.changes, chance))
    return PerturbationTable.of(designed)


def _require(maximum_change: int, variance: float, smallest: int, stay: float | None, steps: int) -> None:
    for name, value in {"maximum_change": maximum_change, "smallest": smallest, "steps": steps}.items():
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
            raise InvalidOption(
                f"The {name} of a perturbation table must be a whole number of 1 or more, got {value!r}."
            )
    if not is_number(variance) or variance <= 0:
        raise InvalidOption(f"The variance of a perturbation table must be a number above 0, got {variance!r}.")
    if stay is not None and not (is_number(stay) and 0 <= stay < 1):
        raise InvalidOption(f"The probability to stay must be at least 0 and below 1, got {stay!r}.")


def _support(count: int, maximum_change: int, blocked: int, steps: int) -> Floats:
    """The changes that a count may get, from the smallest up."""
    change = np.arange(-maximum_change * steps, maximum_change * steps + 1) / steps
    return np.asarray(change[(count + change == 0) | (count + change > blocked)])


@dataclass(frozen=True, eq=False)
class _Row:
    """One count: the changes that it may get, and the variance that they shall have."""

    count: int
    changes: Floats = field(repr=False)
    variance: float

    def require_both_sides(self, maximum_change: int, smallest: int) -> None:
        if not ((self.changes < 0).any() and (self.changes > 0).any()):
            raise InvalidOption(
                f"A count of {self.count} cannot be changed with mean zero: with a maximum change of {maximum_change} "
                f"and no result below {smallest} it cannot go both up and down.\n\n"
                f"Hint: raise the maximum change to {smallest} or more, or lower the smallest count."
            )

    def exact(self, stay: float | None, monotone: bool) -> Floats:
        """The row under all its conditions."""
        least, most = self._range(stay, monotone)
        if least <= self.variance <= most * (1 + ROUNDING):
            return self._solved(stay, monotone)
        fixed = "" if stay is None else f" and a probability of {stay:g} to stay"
        order = " and no change likelier than a smaller one" if monotone else ""
        instead = ", or monotone=False" if monotone else ""
        raise InvalidOption(
            f"Counts of {self.count} and more cannot have a variance of {self.variance:g}: with changes of at most "
            f"{self.changes.max():g}{fixed}{order} it is {least:.6g} to {most:.6g}.\n\n"
            f"Hint: choose a variance in this range, another maximum change or probability to stay{instead}."
        )

    def nearest(self, stay: float | None, monotone: bool) -> Floats:
        """The row under as many of its conditions as a small count allows."""
        trials = [(stay, monotone), (None, monotone), (None, False)]
        for fixed, order in dict.fromkeys(trials):
            least, most = self._range(fixed, order)
            if least <= self.variance <= most:
                return self._solved(fixed, order)
        return self._solved(None, False)

    def _range(self, stay: float | None, monotone: bool) -> tuple[float, float]:
        """The least and the largest variance that is possible."""
        free, mass = self._free(stay)
        spreads = self._mixtures(monotone)
        least = 0.0 if free.all() and 0 in self.changes else mass * float(spreads.min())
        return least, mass * float(spreads.max())

    def _mixtures(self, monotone: bool) -> Floats:
        """The variance of every unbiased mixture of one extreme distribution below zero (rows) and one above (columns).

        Without order the extreme distributions are single changes, with it they are even over the changes next to
        zero; every unbiased distribution is a mixture of such mixtures, so the extreme variances are among them.
        """
        (low, low_square), (high, high_square) = (_moments(side, monotone) for side in self._sides())
        return np.asarray((high * low_square[:, None] + low[:, None] * high_square) / (low[:, None] + high))

    def _sides(self) -> tuple[Floats, Floats]:
        """The changes below and above zero, from zero outwards."""
        return self.changes[self.changes < 0][::-1], self.changes[self.changes > 0]

    def _solved(self, stay: float | None, monotone: bool) -> Floats:
        """The distribution of largest entropy; next to an extreme variance, where little room is left, a mixture.

        The mixture is of the extreme distribution and of the one of largest entropy a little way off: entropy is then
        not quite the largest, but mean and variance are exact.
        """
        least, most = self._range(stay, monotone)
        low, high = least * (1 + EDGE), most * (1 - EDGE)
        if low < self.variance < high:
            return self._entropic(stay, monotone, self.variance)
        near, inner = (most, high) if self.variance >= high else (least, low)
        extreme = self._extreme(stay, monotone, largest=near == most)
        share = min(max((self.variance - near) / (inner - near), 0.0), 1.0) if inner != near and low < high else 0.0
        return extreme if share == 0 else (1 - share) * extreme + share * self._entropic(stay, monotone, inner)

    def _entropic(self, stay: float | None, monotone: bool, variance: float) -> Floats:
        free, mass = self._free(stay)
        chance = np.where(free, 0.0, 1.0 - mass)
        points = self.changes[free]
        found = largest_entropy(
            np.vstack([points, points**2]),
            np.array([0.0, variance / mass]),
            decreasing=_order(points) if monotone else (),
        )
        chance[free] = mass * found
        return chance

    def _free(self, stay: float | None) -> tuple[Mask, float]:
        """The changes whose probabilities are to be found, and what they add up to."""
        if stay is None or 0 not in self.changes:
            return np.ones(len(self.changes), dtype=np.bool_), 1.0
        return np.asarray(self.changes != 0), 1.0 - stay

    def _extreme(self, stay: float | None, monotone: bool, *, largest: bool) -> Floats:
        """The distribution of the largest, or of the least, variance."""
        free, mass = self._free(stay)
        if not largest and free.all() and 0 in self.changes:
            return np.where(self.changes == 0, 1.0, 0.0)
        spreads = self._mixtures(monotone)
        chosen = np.unravel_index(spreads.argmax() if largest else spreads.argmin(), spreads.shape)
        low, high = (
            side[0 if monotone else int(k) : int(k) + 1] for side, k in zip(self._sides(), chosen, strict=True)
        )
        share = high.mean() / (high.mean() - low.mean())
        chance = np.where(np.isin(self.changes, low), mass * share / len(low), 0.0)
        chance += np.where(np.isin(self.changes, high), mass * (1 - share) / len(high), 0.0)
        return np.asarray(chance + np.where(free, 0.0, 1.0 - mass))


def _moments(side: Floats, monotone: bool) -> tuple[Floats, Floats]:
    """The size and the mean square of each extreme distribution of one side."""
    size = np.abs(side)
    if not monotone:
        return size, size**2
    members = np.arange(1, len(size) + 1)
    return np.cumsum(size) / members, np.cumsum(size**2) / members


def _order(points: Floats) -> list[tuple[int, int]]:
    """Pairs of neighbouring changes on either side of zero, the smaller one first."""
    up = np.flatnonzero(points > 0).tolist()
    down = np.flatnonzero(points < 0).tolist()[::-1]
    return [*pairwise(up), *pairwise(down)]
