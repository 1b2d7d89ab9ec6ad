"""Hot deck: a blanked record takes the values of another that is like it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from tablesafe.core.equations import Floats, Integers
from tablesafe.core.errors import InvalidOption
from tablesafe.methods.microdata.records import Microdata

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
            "near each other.\n\nHint: near=('income',), or donor='random'."
        )
    out = np.stack([microdata.numbers(column) for column in columns], axis=1)
    spread = out.std(axis=0) if len(out) else np.ones(len(columns))
    return np.asarray((out - out.mean(axis=0)) / np.where(spread > 0, spread, 1.0)) if len(out) else out
