"""The columns that are blanked: as codes, or as amounts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from tablesafe.core.equations import Floats, Integers, Mask, to_integers
from tablesafe.core.errors import InvalidOption, Setting
from tablesafe.methods.records.behind import Microdata

BINS = 10
"""Classes of amounts whose shares are kept."""


@dataclass(frozen=True, eq=False)
class Variable:
    """One column to be blanked. Its values are numbers: those of its codes, or the amounts themselves."""

    name: str
    values: Floats = field(repr=False)
    codes: pl.Series | None = field(default=None, repr=False)
    """The codes by number; None for amounts."""
    edges: Floats | None = field(default=None, repr=False)
    """Where amounts are cut into classes: between their deciles."""
    decimals: int = 0

    @classmethod
    def of(cls, microdata: Microdata, column: str, *, amount: bool) -> Variable:
        """A column of the records; missing entries are a code of their own."""
        if amount:
            values = microdata.numbers(column)
            _, decimals, _ = to_integers(values)
            there = values[~microdata.missing([column])]
            edges = np.unique(np.quantile(there, np.arange(1, BINS) / BINS)) if len(there) else np.zeros(0)
            return cls(column, values, None, edges, decimals)
        text = microdata.text(column).fill_null("")
        codes = text.unique().sort()
        return cls(column, text.cast(pl.Enum(codes)).to_physical().to_numpy().astype(np.float64), codes)

    def classes(self, values: Floats) -> Integers:
        """The class that each value counts in: its code, or its tenth of the amounts."""
        if self.edges is None:
            return values.astype(np.int64)
        return np.searchsorted(self.edges, values, side="left").astype(np.int64)

    @property
    def names(self) -> list[str]:
        """What the classes are called."""
        if self.codes is not None:
            return [str(code) for code in self.codes.to_list()]
        assert self.edges is not None
        if not self.edges.size:
            return ["all"]
        inner = [f"over {low:g} to {high:g}" for low, high in zip(self.edges[:-1], self.edges[1:], strict=True)]
        return [f"up to {self.edges[0]:g}", *inner, f"over {self.edges[-1]:g}"]

    def written(self, frame: pl.DataFrame, rows: NDArray[np.intp], values: Floats) -> pl.Series:
        """The column with other values in some rows, of the type that it had."""
        column = frame[self.name]
        if self.codes is None:
            new = pl.Series(np.round(values, self.decimals), dtype=pl.Float64)
            whole = self.decimals == 0 and (column.dtype.is_integer() or column.dtype == pl.String)
            new = new.cast(pl.Int64) if whole else new
        else:  # a record that has the code says how it is written
            example = np.zeros(len(self.codes), dtype=np.int64)
            example[self.values.astype(np.int64)[::-1]] = np.arange(len(column))[::-1]
            return _replaced(column, rows, column.gather(example[values.astype(np.int64)]))
        return _replaced(column, rows, new.cast(column.dtype))


def _replaced(column: pl.Series, rows: NDArray[np.intp], new: pl.Series) -> pl.Series:
    at = np.full(len(column), -1, dtype=np.int64)
    at[rows] = np.arange(len(rows))
    both = pl.concat([column, new])
    return both.gather(np.where(at >= 0, len(column) + at, np.arange(len(column))))


def variables(microdata: Microdata, columns: Sequence[str], amounts: Sequence[str]) -> tuple[Variable, ...]:
    """The columns to blank. Amounts are those named so, the table's own values, and numbers with a decimal point.

    The columns of a CSV file are text: there "10.5" may be a code, as those of industries are.
    """
    plan = None if microdata.origin is None else microdata.origin.plan
    known = {*amounts, *(() if plan is None else plan.numbers)}
    schema = microdata.frame.schema
    return tuple(
        Variable.of(microdata, column, amount=column in known or schema[column].is_float()) for column in columns
    )


def without_amount(microdata: Microdata, found: Sequence[Variable]) -> Mask:
    """The records that have no entry in one of the amounts: there is nothing to blank, nor to give."""
    return microdata.missing([variable.name for variable in found if variable.codes is None])


# Hot deck: a blanked record takes the values of another that is like it.


Choice = Literal["random", "nearest", "sequential"]
CHOICES: tuple[Choice, ...] = ("random", "nearest", "sequential")
NEAR = 5
"""How many of the nearest donors are drawn from."""
APART = 1e6
"""How far apart classes lie where nearest donors are looked for, in standard deviations."""


@dataclass(frozen=True, eq=False)
class Deck:
    """For each blanked record the donors that it may draw from."""

    near: NDArray[np.intp] = field(repr=False)
    """Donors by place; the deck of a record is a stretch of them, or a row of its own."""
    start: Integers = field(repr=False)
    count: Integers = field(repr=False)
    widened: int
    """How many records found no donor in their own class, and were given a wider one."""

    def draw(self, random: np.random.Generator) -> NDArray[np.intp]:
        """A donor for each."""
        return np.asarray(self.near[self.start + (random.random(len(self.start)) * self.count).astype(np.int64)])


def deal(
    microdata: Microdata, classes: Sequence[str], near: Sequence[str], choice: Choice, blank: NDArray[np.intp],
    donors: NDArray[np.intp], chance: Floats,
) -> Deck:  # fmt: skip
    """The decks: donors of the same class; where there are none the last of the class columns no longer counts."""
    place = _scaled(microdata, near) if choice != "random" else np.zeros((len(microdata), 0))
    found: list[NDArray[np.intp]] = []
    start, count = np.zeros(len(blank), dtype=np.int64), np.zeros(len(blank), dtype=np.int64)
    widened, offset = 0, 0
    for level in range(len(classes), -1, -1):
        mine = np.flatnonzero(count == 0)
        if not mine.size:
            break
        group = microdata.classes(classes[:level])
        there = np.isin(group[blank[mine]], group[donors])
        mine = mine[there]
        if level < len(classes):
            widened += len(mine)
        deck, begin, n = _decks(group, place, choice, blank[mine], donors, chance)
        start[mine], count[mine] = begin + offset, n
        offset += len(deck)
        found.append(deck)
    return Deck(np.concatenate(found), start, count, widened)


def _decks(
    group: Integers, place: Floats, choice: Choice, blank: NDArray[np.intp], donors: NDArray[np.intp], chance: Floats
) -> tuple[NDArray[np.intp], Integers, Integers]:
    """Donors, and the stretch of them that each blanked record draws from."""
    if choice == "nearest":
        return _nearest(group, place, blank, donors)
    order = donors[np.lexsort((chance[donors], *place[donors].T[::-1], group[donors]))]
    low = np.searchsorted(group[order], group[blank])
    high = np.searchsorted(group[order], group[blank], side="right")
    if choice == "random":
        return order, low, high - low
    before = _before(group, place, chance, order, blank)
    first = np.clip(before - NEAR // 2, low, np.maximum(high - NEAR, low))
    return order, first, np.minimum(high - first, NEAR)


def _before(
    group: Integers, place: Floats, chance: Floats, order: NDArray[np.intp], blank: NDArray[np.intp]
) -> Integers:
    """How many donors stand before each blanked record when all are sorted by class and nearness."""
    both = np.concatenate([order, blank])
    is_donor = np.concatenate([np.ones(len(order), np.int64), np.zeros(len(blank), np.int64)])
    by = np.lexsort((chance[both], *place[both].T[::-1], group[both]))
    passed = np.empty(len(both), dtype=np.int64)
    passed[by] = np.cumsum(is_donor[by])
    return np.maximum(passed[len(order) :] - 1, 0)


def _nearest(
    group: Integers, place: Floats, blank: NDArray[np.intp], donors: NDArray[np.intp]
) -> tuple[NDArray[np.intp], Integers, Integers]:
    where = np.column_stack([group * APART, place])
    k = min(NEAR, len(donors))
    distance, at = cKDTree(where[donors]).query(where[blank], k=k)
    distance, at = distance.reshape(len(blank), k), at.reshape(len(blank), k)
    count = (distance < APART / 2).sum(axis=1)
    return donors[at.ravel()], np.arange(len(blank), dtype=np.int64) * k, np.maximum(count, 1)


def _scaled(microdata: Microdata, columns: Sequence[str]) -> Floats:
    """Amounts in standard deviations."""
    if not columns:
        raise InvalidOption(
            "BlankAndImpute.donor = 'nearest' or 'sequential' needs columns of numbers in near, by which records are "
            "near each other.",
            hint=(
                "near=('income',), or ",
                Setting("donor", "random"),
                ".",
            ),
            about=("option", "BlankAndImpute", "donor"),
        )
    out = np.stack([microdata.numbers(column) for column in columns], axis=1)
    spread = out.std(axis=0) if len(out) else np.ones(len(columns))
    return np.asarray((out - out.mean(axis=0)) / np.where(spread > 0, spread, 1.0)) if len(out) else out


# Models: values drawn from a regression on other columns, one blanked column after the other.
#
# Codes come from a multinomial logistic regression, amounts from a linear one with a residual drawn from those
# observed. Each column is also predicted by those before it, so that they stay together.


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
    from scipy.optimize import minimize

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
