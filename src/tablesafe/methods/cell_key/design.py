"""The distribution of largest entropy with given moments, by Newton's method on its dual.

Maximise −Σ p log p subject to Σ p = 1, given expectations, and p(a) ≥ p(b) for some pairs of points. The dual is the
logarithm of a sum of exponentials, smooth and convex in as many unknowns as there are conditions, whatever the number
of points: p(v) ∝ exp(Σ θ f(v)), with θ ≥ 0 for the pairs. Newton's method ends at the accuracy of the machine; which
pairs bind is found as in Lawson and Hanson's least squares with bounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from tablesafe.core.equations import Floats, Mask
from tablesafe.core.errors import InvalidOption, SolverFailure
from tablesafe.core.options import is_number
from tablesafe.methods.cell_key.table import PerturbationTable

MOST_STEPS = 300
"""Steps of each iteration at most."""
ACCURATE = 1e-13
"""How far an expectation may be off, in units of the largest absolute value of its function."""


def largest_entropy(features: Floats, expected: Floats, *, decreasing: Sequence[tuple[int, int]] = ()) -> Floats:
    """The probabilities of points, as even as the conditions allow.

    `features` has a row per condition and a column per point, `expected` the expectation of each row; each pair of
    `decreasing` names a point and another that must not be likelier. There must be such a distribution in which every
    point has a probability above zero: at the edge of what is possible there is no maximum to go to.
    """
    moments = features - expected[:, None]
    scale = np.abs(moments).max(axis=1)
    pairs = np.zeros((len(decreasing), features.shape[1]))
    for row, (likelier, other) in enumerate(decreasing):
        pairs[row, likelier], pairs[row, other] = 1.0, -1.0
    conditions = np.vstack([moments / np.where(scale > 0, scale, 1.0)[:, None], pairs])
    binding = np.arange(len(conditions)) < len(moments)
    bounded = ~binding
    theta = _minimum(conditions, np.zeros(len(conditions)), binding)
    for _ in range(MOST_STEPS):
        off = np.where(binding, 0.0, conditions @ _exponential(theta @ conditions))
        if off.min() >= -ACCURATE:
            break
        binding |= off < -ACCURATE
        theta = _within_bounds(conditions, theta, binding, bounded)
    p = _exponential(theta @ conditions)
    _require_reachable(conditions @ p, binding)
    return p


def _within_bounds(conditions: Floats, theta: Floats, binding: Mask, bounded: Mask) -> Floats:
    """The minimum over the binding conditions; a pair whose multiplier would fall below zero binds no longer."""
    while True:
        goal = _minimum(conditions, theta, binding)
        falls = np.flatnonzero(bounded & binding & (goal < 0))
        if not falls.size:
            return goal
        share = theta[falls] / (theta[falls] - goal[falls])
        theta = np.maximum(theta + share.min() * (goal - theta), np.where(bounded, 0.0, -np.inf))
        binding[falls[share <= share.min()]] = False
        theta[bounded & ~binding] = 0.0


def _minimum(conditions: Floats, start: Floats, free: Mask) -> Floats:
    """Newton's method over the free unknowns, the step halved until the dual falls."""
    theta = np.where(free, start, 0.0)
    rows: Floats = conditions[free]
    height = _height(theta @ conditions)
    for _ in range(MOST_STEPS):
        p = _exponential(theta @ conditions)
        gradient = rows @ p
        if np.abs(gradient).max() <= np.finfo(np.float64).eps:
            break
        step = _step(rows, p, gradient)
        found = _descended(conditions, theta, free, step, height, float(gradient @ step))
        if found is None:
            break
        theta, height = found
    return theta


def _step(rows: Floats, p: Floats, gradient: Floats) -> Floats:
    """The Newton step: the Hessian is the covariance of the conditions' functions."""
    centred = rows - gradient[:, None]
    return np.asarray(-np.linalg.lstsq((centred * p) @ centred.T, gradient, rcond=1e-15)[0])


def _descended(
    conditions: Floats, theta: Floats, free: Mask, step: Floats, height: float, slope: float
) -> tuple[Floats, float] | None:
    """Theta after as much of the step as makes the dual fall; None when rounding leaves nothing to gain."""
    noise = 8 * np.finfo(np.float64).eps * max(1.0, float((np.abs(theta) @ np.abs(conditions)).max()))
    before = np.abs(conditions[free] @ _exponential(theta @ conditions)).max()
    length = 1.0
    for _ in range(50):
        new = theta.copy()
        new[free] += length * step
        after = _height(new @ conditions)
        if after <= height + 1e-4 * length * slope:
            return new, after
        if after <= height + noise:  # too near the minimum for its height to tell: the conditions themselves do
            nearer = np.abs(conditions[free] @ _exponential(new @ conditions)).max() < before / 2
            return (new, after) if nearer else None
        length /= 2
    return None


def _exponential(exponent: NDArray[np.float64]) -> Floats:
    p = np.exp(exponent - exponent.max())
    return np.asarray(p / p.sum())


def _height(exponent: NDArray[np.float64]) -> float:
    """The dual objective: the logarithm of the sum of exponentials."""
    top = float(exponent.max())
    return top + float(np.log(np.exp(exponent - top).sum()))


def _require_reachable(off: Floats, binding: Mask) -> None:
    """Never trust the method alone: every condition must hold."""
    wrong = np.abs(np.where(binding, off, np.minimum(off, 0.0))).max(initial=0.0)
    if wrong > ACCURATE:
        raise SolverFailure(f"No distribution of largest entropy was found: a condition is off by {wrong:.1e}.")


# Perturbation tables designed here: unbiased, of one variance, as even as possible (maximum entropy).
#
# Giessing (2016), Computational Issues in the Design of Transition Probabilities and Disclosure Risk Estimation for
# Additive Noise; Fraser & Wooton (2005); the conditions are those of the R package ptable (Enderle, Giessing, Tent).


ROUNDING = 1e-12
"""Relative noise of a variance, in floating point."""
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
                f"and no result below {smallest} it cannot go both up and down.",
                hint=f"raise the maximum change to {smallest} or more, or lower the smallest count.",
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
            f"{self.changes.max():g}{fixed}{order} it is {least:.6g} to {most:.6g}.",
            hint=f"choose a variance in this range, another maximum change or probability to stay{instead}.",
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
