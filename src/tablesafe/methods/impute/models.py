"""Models: values drawn from a regression on other columns, one blanked column after the other.

Codes come from a multinomial logistic regression, amounts from a linear one with a residual drawn from those observed.
Each column is also predicted by those before it, so that they stay together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from tablesafe.core.equations import Floats
from tablesafe.methods.impute.variables import Variable

MOST_FITTED = 100_000
"""Records that a model is fitted to, at most; more say little more."""
MOST_CODES = 60
"""Codes of a predictor that count one by one: the most frequent ones."""
RIDGE = 1e-3
"""Keeps coefficients of rare combinations small."""


@dataclass(frozen=True, eq=False)
class Predictor:
    """A column as predictors: a column per frequent code, or the amount in standard deviations."""

    variable: Variable = field(repr=False)
    codes: NDArray[np.int64] | None = field(repr=False)
    centre: float
    spread: float

    @classmethod
    def of(cls, variable: Variable) -> Predictor:
        """What a column can predict with."""
        values = variable.values
        if variable.codes is None:
            spread = float(values.std()) if len(values) else 0.0
            return cls(variable, None, float(values.mean()) if len(values) else 0.0, spread or 1.0)
        often = np.argsort(-np.bincount(values.astype(np.int64)), kind="stable")
        return cls(variable, often[1 : MOST_CODES + 1], 0.0, 1.0)

    def columns(self, values: Floats) -> Floats:
        """The predictors of some values; the most frequent code is the one that others are compared with."""
        if self.codes is None:
            return np.asarray((values - self.centre) / self.spread)[:, None]
        return np.asarray(values.astype(np.int64)[:, None] == self.codes, dtype=np.float64)


@dataclass(frozen=True, eq=False)
class Fitted:
    """A model of one column."""

    variable: Variable = field(repr=False)
    coefficients: Floats = field(repr=False)
    residuals: Floats = field(repr=False)
    """Of amounts."""
    limits: tuple[float, float] = (0.0, 0.0)
    """The least and the largest amount seen: none beyond is drawn."""

    def draw(self, design: Floats, random: np.random.Generator) -> Floats:
        """A value per row of predictors."""
        score = design @ self.coefficients
        if self.variable.codes is None:
            drawn = score[:, 0] + random.choice(self.residuals, len(design))
            return np.asarray(np.round(np.clip(drawn, *self.limits), self.variable.decimals))
        share = np.exp(score - score.max(axis=1, keepdims=True))
        limits = np.cumsum(share, axis=1)
        return np.asarray(
            (random.random(len(design))[:, None] * limits[:, -1:] >= limits).sum(axis=1), dtype=np.float64
        )


@dataclass(frozen=True, eq=False)
class Model:
    """Models of all blanked columns, in turn."""

    given: tuple[Predictor, ...] = field(repr=False)
    blanked: tuple[Predictor, ...] = field(repr=False)
    fitted: tuple[Fitted, ...] = field(repr=False)
    rows: NDArray[np.intp] = field(repr=False)

    def draw(self, random: np.random.Generator) -> Floats:
        """Values of the blanked records: a row each, a column per variable."""
        parts = [np.ones((len(self.rows), 1)), *(p.columns(p.variable.values[self.rows]) for p in self.given)]
        out = np.empty((len(self.rows), len(self.fitted)))
        for j, (model, predictor) in enumerate(zip(self.fitted, self.blanked, strict=True)):
            out[:, j] = model.draw(np.hstack(parts), random)
            parts.append(predictor.columns(out[:, j]))
        return out


def fit(
    predictors: Sequence[Variable],
    variables: Sequence[Variable],
    blank: NDArray[np.intp],
    observed: NDArray[np.intp],
    random: np.random.Generator,
) -> Model:
    """Fit a model of every variable to the records that are not blanked."""
    rows = observed
    if len(rows) > MOST_FITTED:
        rows = rows[np.sort(random.choice(len(rows), MOST_FITTED, replace=False))]
    given = tuple(Predictor.of(variable) for variable in predictors)
    parts = [np.ones((len(rows), 1)), *(p.columns(p.variable.values[rows]) for p in given)]
    fitted, blanked = [], []
    for variable in variables:
        design, target = np.hstack(parts), variable.values[rows]
        fitted.append(
            _linear(variable, design, target) if variable.codes is None else _logistic(variable, design, target)
        )
        blanked.append(Predictor.of(variable))
        parts.append(blanked[-1].columns(target))
    return Model(given, tuple(blanked), tuple(fitted), blank)


def _linear(variable: Variable, design: Floats, target: Floats) -> Fitted:
    normal = design.T @ design + RIDGE * np.eye(design.shape[1])
    coefficients = np.asarray(np.linalg.solve(normal, design.T @ target), dtype=np.float64)
    limits = float(target.min()), float(target.max())
    return Fitted(variable, coefficients[:, None], target - design @ coefficients, limits)


def _logistic(variable: Variable, design: Floats, target: Floats) -> Fitted:
    """Multinomial logistic regression; equal rows of predictors are fitted once, with their counts."""
    assert variable.codes is not None
    patterns, where = np.unique(design, axis=0, return_inverse=True)
    n, k = len(target), len(variable.codes)
    counts = np.zeros((len(patterns), k))
    np.add.at(counts, (where.ravel(), target.astype(np.int64)), 1.0)
    totals = counts.sum(axis=1, keepdims=True)

    def value_and_slope(flat: Floats) -> tuple[float, Floats]:
        beta = flat.reshape(patterns.shape[1], k)
        score = patterns @ beta
        score -= score.max(axis=1, keepdims=True)
        share = np.exp(score)
        norm = share.sum(axis=1, keepdims=True)
        loss = (totals * np.log(norm)).sum() - (counts * score).sum() + RIDGE / 2 * (beta**2).sum()
        slope = patterns.T @ (totals * share / norm - counts) + RIDGE * beta
        return float(loss) / n, slope.ravel() / n

    start = np.zeros((patterns.shape[1], k))
    start[0] = np.log(np.maximum(counts.sum(axis=0), 0.5) / n)
    found = minimize(value_and_slope, start.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": 200})
    return Fitted(variable, np.asarray(found.x).reshape(start.shape), np.zeros(0))
