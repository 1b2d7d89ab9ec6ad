"""What the public may believe about a true count when it sees the published one, in probabilities. Confidential.

The interval that a release implies says what is possible; the posterior says how likely each possibility is. Each cell
is judged by its own published value alone: what the equations between cells add to that is the audit's question.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray

from tablesafe.core.display import shown
from tablesafe.core.equations import Floats, Integers
from tablesafe.core.errors import InvalidOption, InvalidRelease
from tablesafe.core.mechanism import Transition
from tablesafe.core.options import is_number
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release

SINGLE, GROWTH = 20, 1.1
"""Counts up to which the empirical prior tells every count apart; above it, each class begins so many times as high."""
UNSEEN = 0.5
"""What a class of the empirical prior counts beyond the cells seen in it: no class is impossible."""
TIE = 1e-9
"""Chances that differ by less are equal; then the count nearest to what is published is taken."""

Prior = Literal["empirical", "uniform"] | ArrayLike


@shown
@dataclass(frozen=True, eq=False)
class Posterior:
    """Per changed cell what is believed about its true count; one entry per cell that went through the mechanism."""

    problem: Problem = field(repr=False)
    release: Release = field(repr=False)
    level: float
    cells: NDArray[np.intp] = field(repr=False)
    mean: Floats = field(repr=False)
    mode: Integers = field(repr=False)
    """The best guess: the likeliest true count; of equally likely ones the nearest to the published."""
    lower: Integers = field(repr=False)
    """The shortest interval that holds the true count with probability `level`."""
    upper: Integers = field(repr=False)
    certainty: Floats = field(repr=False)
    """The probability that the best guess is right."""
    unchanged: Floats = field(repr=False)
    """The probability that the published count is the true one."""
    near: Floats = field(repr=False)
    """The probability of being nearer to the true count than the protection levels allow; NaN where not sensitive."""

    @property
    def published(self) -> Integers:
        """The published counts."""
        return np.rint(self.release.values[self.cells]).astype(np.int64)

    @property
    def sensitive(self) -> NDArray[np.bool_]:
        """Which of the cells are sensitive."""
        return self.problem.sensitivity.mask[self.cells]

    def frame(self, *, cells: Literal["sensitive", "all"] = "all") -> pl.DataFrame:
        """One row per cell: its codes, the published and the true count, and what is believed. Confidential."""
        if cells not in {"sensitive", "all"}:
            raise InvalidOption(f"frame's cells must be 'sensitive' or 'all', got {cells!r}.")
        table = self.problem.table
        codes = {name: column.gather(self.cells.astype(np.uint32)) for name, column in table.code_columns().items()}
        wide = pl.DataFrame(
            codes
            | {
                "published": self.published,
                "true": table.integers[self.cells],
                "sensitive": self.sensitive,
                **self._beliefs(),
                "P(too near)": pl.Series(self.near, nan_to_null=True),
            }
        )
        return wide.filter(pl.col("sensitive")) if cells == "sensitive" else wide

    def by_value(self) -> pl.DataFrame:
        """One row per published count: how many cells show it, and what it tells on average."""
        wide = pl.DataFrame({"published": self.published, **self._beliefs()})
        return wide.group_by("published").agg(pl.len().alias("cells"), pl.exclude("published").mean()).sort("published")

    def summary(self) -> pl.DataFrame:
        """Two rows, all cells and the sensitive ones: how sure a reader may be, and how often rightly so."""
        truth = self.problem.table.integers[self.cells]
        every = pl.DataFrame(
            {
                "sensitive": self.sensitive,
                "certainty": self.certainty,
                "unchanged": self.unchanged,
                "guessed": self.mode == truth,
                "covered": (self.lower <= truth) & (truth <= self.upper),
                "near": pl.Series(self.near, nan_to_null=True),
            }
        )
        return pl.concat([_summed(every, "all"), _summed(every.filter("sensitive"), "sensitive")])

    def __str__(self) -> str:
        if not self.cells.size:
            return "No cell was changed by chance."
        words = [
            f"{_cells(self.cells.size)} went through the method, each on its own. "
            f"The published count is the true one with probability "
            f"{self.unchanged.mean():.1%} on average; the best guess is right with {self.certainty.mean():.1%} on "
            f"average, {self.certainty.max():.1%} at most."
        ]
        if self.sensitive.any():
            near = self.near[self.sensitive]
            words.append(
                f"{_cells(near.size)} of these {'is' if near.size == 1 else 'are'} sensitive: "
                f"the probability of coming too near is {near.mean():.1%} on "
                f"average, {near.max():.1%} at most."
            )
        return "\n".join(words)

    def _beliefs(self) -> dict[str, Any]:
        return {
            "mean": self.mean,
            "best guess": self.mode,
            "from": self.lower,
            "to": self.upper,
            "P(best guess)": self.certainty,
            "P(published)": self.unchanged,
        }


def posterior(problem: Problem, release: Release, *, prior: Prior = "empirical", level: float = 0.95) -> Posterior:
    """Say what the public may believe about each true count that a random method changed.

    `prior` is what is believed before the release: `"empirical"`, the distribution of the true counts themselves,
    smoothed (an attacker who knows tables of this kind well); `"uniform"`, every count alike; or probabilities for the
    counts 0, 1, 2, … The attacker's prior bounds on each cell hold in any case. `level` is the probability that the
    interval from `lower` to `upper` must have.
    """
    if not is_number(level) or not 0 < level < 1:
        raise InvalidOption(f"posterior's level must be between 0 and 1, got {level!r}.")
    if len(release.values) != len(problem.table):
        raise InvalidRelease(f"The release has {len(release.values):,} cells, the table {len(problem.table):,}.")
    if release.mechanism is None:
        raise InvalidRelease(
            "The release does not say how chance changed its values, so there is no posterior.",
            hint="random rounding and the cell key method do; for other methods, ts.audit tells what is possible.",
        )
    mechanism = release.mechanism
    cells = np.flatnonzero(mechanism.cells & ~release.suppressed)
    before = _prior(prior, problem.table.integers[cells])
    parts = []
    for number, transition in enumerate(mechanism.transitions):
        own = np.flatnonzero(mechanism.which[cells] == number)
        parts.append((own, _Beliefs(problem, release, cells[own], transition, before, level).columns()))
    columns = {
        name: _scattered([(own, found[name]) for own, found in parts], len(cells))
        for name in ("mean", "mode", "lower", "upper", "certainty", "unchanged", "near")
    }
    return Posterior(problem, release, level, cells, **columns)


@dataclass(frozen=True, eq=False)
class _Density:
    """A prior: the probability of each count, up to a common factor, by classes of neighbouring counts."""

    first: Integers
    """The smallest count of each class; the last has no end."""
    density: Floats

    def __call__(self, true: Integers) -> Floats:
        """The density at each count."""
        return self.density[np.searchsorted(self.first, np.maximum(true, 0), side="right") - 1]


class _Beliefs:
    """The posterior of the cells of one transition: worked out once per published count and bounds that differ."""

    def __init__(
        self,
        problem: Problem,
        release: Release,
        cells: NDArray[np.intp],
        transition: Transition,
        prior: _Density,
        level: float,
    ) -> None:
        self.problem, self.cells, self.level, width = problem, cells, level, transition.width
        published = np.rint(release.values[cells]).astype(np.int64)
        self.start = published - transition.high
        """The smallest true count that any change leads from to the published one."""
        least = np.maximum(problem.lower[cells], release.lower[cells]) - self.start
        most = np.minimum(problem.upper[cells], release.upper[cells]) - self.start
        least = np.ceil(np.clip(least, 0, width)).astype(np.int64)
        most = np.floor(np.clip(most, -1, width - 1)).astype(np.int64)
        key = (published * (width + 1) + least) * (width + 1) + most + 1
        _, first, self.case = np.unique(key, return_index=True, return_inverse=True)
        step = np.arange(width)
        self.true = self.start[first, None] + step
        weight = prior(self.true) * transition.probability(self.true, published[first, None])
        weight = np.where((step >= least[first, None]) & (step <= most[first, None]), weight, 0.0)
        total = weight.sum(axis=1)
        if (total <= 0).any():
            cell = int(cells[first[np.flatnonzero(total <= 0)[0]]])
            raise InvalidOption(
                f"Under this prior, cell {problem.table.describe(cell)} could not have been published as "
                f"{release.values[cell]:,.0f}.",
                hint="give every count that occurs a probability above 0.",
            )
        self.chance = weight / total[:, None]
        self.published = published[first]
        self.below = np.concatenate([np.zeros((len(first), 1)), np.cumsum(self.chance, axis=1)], axis=1)

    def columns(self) -> dict[str, NDArray[Any]]:
        """What is believed, one entry per cell."""
        off = np.abs(self.true - self.published[:, None])
        best = np.argmax(self.chance - TIE * off / (1 + off), axis=1)
        row = np.arange(len(best))
        lower, upper = self._shortest()
        per_case = {
            "mean": (self.chance * self.true).sum(axis=1),
            "mode": self.true[row, best],
            "lower": lower,
            "upper": upper,
            "certainty": self.chance[row, best],
            "unchanged": np.where(off == 0, self.chance, 0.0).sum(axis=1),
        }
        return {name: column[self.case] for name, column in per_case.items()} | {"near": self._near()}

    def _shortest(self) -> tuple[Integers, Integers]:
        """The shortest interval of each case that holds the level; of equally short ones the likeliest."""
        cases, width = self.chance.shape
        lower, length = np.zeros(cases, np.int64), np.full(cases, width)
        for size in range(width, 0, -1):
            held = self.below[:, size:] - self.below[:, : width - size + 1]
            at = held.argmax(axis=1)
            enough = held[np.arange(cases), at] >= self.level - TIE
            lower, length = np.where(enough, at, lower), np.where(enough, size, length)
        first = self.true[np.arange(cases), lower]
        return first, first + length - 1

    def _near(self) -> Floats:
        """The probability of the counts inside the protection interval of each sensitive cell."""
        sensitivity, value = self.problem.sensitivity, self.problem.table.value[self.cells]
        down, up = sensitivity.lower[self.cells], sensitivity.upper[self.cells]
        least = np.where(down > 0, np.floor(value - down) + 1, value) - self.start
        most = np.where(up > 0, np.ceil(value + up) - 1, value) - self.start
        width = self.chance.shape[1]
        begin = np.clip(least, 0, width).astype(np.int64)
        end = np.clip(most + 1, 0, width).astype(np.int64)
        chance = self.below[self.case, end] - self.below[self.case, begin]
        return np.where(sensitivity.mask[self.cells], chance, np.nan)


def _prior(prior: Prior, truth: Integers) -> _Density:
    if isinstance(prior, str):
        if prior == "uniform":
            return _Density(np.zeros(1, np.int64), np.ones(1))
        if prior == "empirical":
            return _empirical(truth)
        raise InvalidOption(f"posterior's prior must be 'empirical', 'uniform' or probabilities, got {prior!r}.")
    try:
        given = np.asarray(prior, dtype=np.float64)
    except (TypeError, ValueError):
        given = np.zeros(0)
    if given.ndim != 1 or not given.size or not np.isfinite(given).all() or (given < 0).any() or not given.sum() > 0:
        raise InvalidOption("posterior's prior must be probabilities of 0 or more for the counts 0, 1, 2, …")
    return _Density(np.arange(len(given) + 1), np.append(given / given.sum(), 0.0))


def _empirical(truth: Integers) -> _Density:
    """The counts' own distribution: single counts where they are small, classes of equal ratio above."""
    first = list(range(SINGLE + 1))
    largest = int(truth.max(initial=0))
    while first[-1] <= largest:
        first.append(int(np.ceil(first[-1] * GROWTH)))
    edges = np.array(first, dtype=np.int64)
    seen = np.bincount(np.searchsorted(edges, truth, side="right") - 1, minlength=len(edges))
    width = np.append(np.diff(edges), edges[-1])
    return _Density(edges, (seen + UNSEEN) / width)


def _scattered(parts: list[tuple[NDArray[np.intp], NDArray[Any]]], n: int) -> NDArray[Any]:
    """Columns of several groups of cells put into the cells' order."""
    kinds = [found.dtype for _, found in parts] or [np.dtype(np.float64)]
    column = np.zeros(n, dtype=np.result_type(*kinds))
    for own, found in parts:
        column[own] = found
    return column


def _cells(number: int) -> str:
    return "1 cell" if number == 1 else f"{number:,} cells"


def _summed(every: pl.DataFrame, cells: str) -> pl.DataFrame:
    return every.select(
        pl.lit(cells).alias("cells"),
        pl.len().alias("number"),
        pl.col("unchanged").mean().alias("mean P(published)"),
        pl.col("certainty").mean().alias("mean P(best guess)"),
        pl.col("certainty").max().alias("most P(best guess)"),
        pl.col("guessed").mean().alias("best guess right"),
        pl.col("covered").mean().alias("truth in interval"),
        pl.col("near").mean().alias("mean P(too near)"),
        pl.col("near").max().alias("most P(too near)"),
    )
