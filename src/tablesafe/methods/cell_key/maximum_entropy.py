"""The distribution of largest entropy with given moments, by Newton's method on its dual.

Maximise −Σ p log p subject to Σ p = 1, given expectations, and p(a) ≥ p(b) for some pairs of points. The dual is the
logarithm of a sum of exponentials, smooth and convex in as many unknowns as there are conditions, whatever the number
of points: p(v) ∝ exp(Σ θ f(v)), with θ ≥ 0 for the pairs. Newton's method ends at the accuracy of the machine; which
pairs bind is found as in Lawson and Hanson's least squares with bounds.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tablesafe.core.equations import Floats, Mask
from tablesafe.core.errors import SolverFailure

MOST_STEPS = 300
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
    _require(conditions @ p, binding)
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


def _require(off: Floats, binding: Mask) -> None:
    """Never trust the method alone: every condition must hold."""
    wrong = np.abs(np.where(binding, off, np.minimum(off, 0.0))).max(initial=0.0)
    if wrong > ACCURATE:
        raise SolverFailure(f"No distribution of largest entropy was found: a condition is off by {wrong:.1e}.")
