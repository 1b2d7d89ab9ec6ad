"""Draws that keep the marginal distributions: a new draw is taken where it brings them nearer to what they were."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tablesafe.core.equations import Floats, Integers, Mask
from tablesafe.methods.records.impute.models import Variable
from tablesafe.work.compiled import compiled

SWEEPS = 40
"""How often everyone may draw again before blanked values are passed on."""

Draw = Callable[[np.random.Generator], Floats]
"""New values of all blanked records: a row each, a column per variable."""
Allowed = Callable[[Floats], Mask]
"""Which of such rows may be taken."""


@dataclass(frozen=True, eq=False)
class Margins:
    """The shares of every class of every variable in every group, of which each may move by so many records.

    Amounts have a mean besides, which may move by the same share of itself.
    """

    variables: tuple[Variable, ...] = field(repr=False)
    rows: NDArray[np.intp] = field(repr=False)
    """The blanked records."""
    group: Integers = field(repr=False)
    """The group of each record of the file."""
    tolerance: float
    start: Integers = field(repr=False)
    """Where the classes of each variable begin."""
    limit: Floats = field(repr=False)
    """How many records each class of each group may gain or lose."""
    before: Integers = field(repr=False)
    """How many records each has in truth."""

    @classmethod
    def of(cls, variables: Sequence[Variable], rows: NDArray[np.intp], group: Integers, tolerance: float) -> Margins:
        """The margins of a file; `group` is the number of each record's group."""
        groups = int(group.max(initial=-1)) + 1
        width = np.array([len(variable.names) * groups for variable in variables], dtype=np.int64)
        start = np.concatenate([[0], np.cumsum(width)])
        sizes = np.bincount(group, minlength=groups)
        room = np.floor(tolerance * sizes * (1 + 1e-12))
        limit = np.concatenate([np.tile(room, len(variable.names)) for variable in variables])
        before = np.zeros(int(start[-1]), dtype=np.int64)
        for j, variable in enumerate(variables):
            np.add.at(before, start[j] + variable.classes(variable.values) * groups + group, 1)
        return cls(tuple(variables), rows, group, tolerance, start, limit, before)

    @property
    def groups(self) -> int:
        """How many groups there are."""
        return int(self.group.max(initial=-1)) + 1

    @property
    def truth(self) -> Floats:
        """The true values of the blanked records."""
        return np.stack([variable.values[self.rows] for variable in self.variables], axis=1)

    def cells(self, values: Floats) -> Integers:
        """The number of the class and group that each value counts in."""
        own = self.group[self.rows]
        found = [self.start[j] + v.classes(values[:, j]) * self.groups + own for j, v in enumerate(self.variables)]
        return np.stack(found, axis=1)

    def gaps(self, values: Floats) -> Integers:
        """By how many records each class of each group is larger than it was."""
        n = int(self.start[-1])
        after, before = self.cells(values).ravel(), self.cells(self.truth).ravel()
        return np.bincount(after, minlength=n) - np.bincount(before, minlength=n)

    def amounts(self, values: Floats) -> Floats:
        """The amounts among the values, so that a move of the sum by 1 uses up the tolerance; zeros for codes."""
        out = np.zeros_like(values)
        for j, variable in enumerate(self.variables):
            if variable.codes is None:
                room = self.tolerance * np.bincount(self.group, np.abs(variable.values), self.groups)
                out[:, j] = values[:, j] / np.maximum(room, 1e-12)[self.group[self.rows]]
        return out

    def drifts(self, values: Floats) -> Floats:
        """By how many tolerances each sum of amounts has moved: a row per group, a column per variable."""
        moved = self.amounts(values) - self.amounts(self.truth)
        out = np.zeros((self.groups, len(self.variables)))
        np.add.at(out, self.group[self.rows], moved)
        return out

    def excess(self, values: Floats) -> float:
        """How much the distributions are beyond the tolerance; 0 when none is."""
        over = np.maximum(np.abs(self.gaps(values)) - self.limit, 0.0).sum()
        return float(over + np.maximum(np.abs(self.drifts(values)) - 1 - 1e-9, 0.0).sum())

    def frame(self, values: Floats, words: pl.DataFrame) -> pl.DataFrame:
        """A row per variable, group and class: records before and after, the change of the share, the limit."""
        gaps, sizes = self.gaps(values), np.bincount(self.group, minlength=self.groups)
        parts = []
        for j, variable in enumerate(self.variables):
            here = slice(int(self.start[j]), int(self.start[j + 1]))
            n = len(variable.names)
            parts.append(
                words.select(pl.all().gather(np.tile(np.arange(self.groups), n))).with_columns(
                    pl.Series("column", [variable.name] * (n * self.groups)),
                    pl.Series("class", np.repeat(np.array(variable.names, dtype=object), self.groups), dtype=pl.String),
                    pl.Series("records before", self.before[here]),
                    pl.Series("records after", self.before[here] + gaps[here]),
                    pl.Series("change of the share", gaps[here] / np.maximum(np.tile(sizes, n), 1)),
                    pl.Series("tolerance", np.full(n * self.groups, self.tolerance)),
                )
            )
        return pl.concat(parts)


@dataclass(frozen=True, eq=False)
class Controlled:
    """Values within the tolerance, and where they came from when draws did not get there."""

    values: Floats = field(repr=False)
    passed_on: Mask = field(repr=False)
    """Records that got what was blanked in another record."""
    restored: Mask = field(repr=False)
    """Records that got their own values back."""


def controlled(
    margins: Margins, draw: Draw, allowed: Allowed, kind: Integers, random: np.random.Generator
) -> Controlled:
    """Draw until the margins are within the tolerance, and for the rest pass on what was blanked.

    Blanked values that go round within a group, among records of one `kind` as far as possible, leave the margins as
    they were: so there is always an answer. Only where a value is not allowed the true one is put back.
    """
    values = _allowed_draw(margins, draw, allowed, random)
    restored = ~allowed(values)
    values[restored] = margins.truth[restored]
    for _ in range(SWEEPS):
        if margins.excess(values) == 0:
            break
        other = draw(random)
        taken = _step(margins, values, other, allowed(other) & ~restored, random)
        values[taken] = other[taken]
    other = margins.truth[_going_round(margins.group[margins.rows], kind, random)]
    passed_on = _replace(margins, values, other, allowed(other) & ~restored, random)
    restored |= _replace(margins, values, margins.truth, ~restored, random)
    return Controlled(values, passed_on & ~restored, restored)


def _allowed_draw(margins: Margins, draw: Draw, allowed: Allowed, random: np.random.Generator) -> Floats:
    """A first draw; values that are not allowed are drawn again, and again."""
    values = draw(random)
    for _ in range(SWEEPS):
        wrong = ~allowed(values)
        if not wrong.any():
            break
        values[wrong] = draw(random)[wrong]
    return values


def _going_round(group: Integers, kind: Integers, random: np.random.Generator) -> NDArray[np.intp]:
    """Whose values each record gets: those of the next of its group, sorted by kind and then by chance."""
    order = np.lexsort((random.random(len(group)), kind, group))
    last = np.searchsorted(group[order], group[order], side="right") - 1
    first = np.searchsorted(group[order], group[order])
    at = np.arange(len(order))
    out = np.empty(len(order), dtype=np.intp)
    out[order] = order[np.where(at == last, first, at + 1)]
    return out


def _replace(margins: Margins, values: Floats, other: Floats, may: Mask, random: np.random.Generator) -> Mask:
    """Take other values until the margins are within the tolerance, or all are taken; who took them?

    First where they help; where none does alone, some at random.
    """
    out = np.zeros(len(values), dtype=np.bool_)
    while margins.excess(values) > 0 and (may & ~out).any():
        taken = _step(margins, values, other, may & ~out, random)
        if not taken.any():
            left = random.permutation(np.flatnonzero(may & ~out))
            taken[left[: max(1, len(left) // 50)]] = True
        values[taken] = other[taken]
        out |= taken
    return out


def _step(margins: Margins, values: Floats, other: Floats, may: Mask, random: np.random.Generator) -> Mask:
    """Who should take the other values, one after the other, so that the margins come nearer."""
    taken = np.zeros(len(values), dtype=np.bool_)
    _improve(
        random.permutation(np.flatnonzero(may)), margins.cells(values), margins.cells(other),
        margins.gaps(values).astype(np.float64), margins.limit, margins.amounts(values), margins.amounts(other),
        margins.drifts(values), margins.group[margins.rows], taken,
    )  # fmt: skip
    return taken


@compiled
def _over(gap: float, limit: float) -> float:
    beyond = abs(gap) - limit
    return beyond if beyond > 0.0 else 0.0


@compiled
def _improve(
    turn: Any, now: Any, then: Any, gap: Any, limit: Any, amount: Any, other: Any, drift: Any, group: Any, taken: Any
) -> None:
    """Each record in turn takes its other values if the sum of what is beyond the limits becomes smaller."""
    for i in turn:
        gain, g = 0.0, group[i]
        for j in range(now.shape[1]):
            a, b = now[i, j], then[i, j]
            if a != b:
                gain += _over(gap[a], limit[a]) - _over(gap[a] - 1, limit[a])
                gain += _over(gap[b], limit[b]) - _over(gap[b] + 1, limit[b])
            moved = other[i, j] - amount[i, j]
            gain += _over(drift[g, j], 1.0) - _over(drift[g, j] + moved, 1.0)
        if gain > 1e-12:
            taken[i] = True
            for j in range(now.shape[1]):
                gap[now[i, j]] -= 1
                gap[then[i, j]] += 1
                drift[g, j] += other[i, j] - amount[i, j]
