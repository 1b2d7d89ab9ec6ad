"""Who swaps with whom: those at risk first, across the borders of the level at which they are; then as the rate asks.

The method is that of Shlomo, Tudor & Groom, "Data swapping for protecting census tables" (2010), as in the R package
recordSwapping: a unit that is too rare in an area of some level swaps with a like unit of another area of that level.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tablesafe.core.equations import Integers, Mask
from tablesafe.core.errors import InvalidOption
from tablesafe.methods.records.areas import Areas, Targets
from tablesafe.methods.records.behind import Microdata, dense, in_order, paired, rank_within, shuffled
from tablesafe.methods.records.swap.pairing import NOBODY, Pairs


@dataclass(frozen=True, eq=False)
class Search:
    """What a swap is made from: places at every level, classes of like units by profile, and who is at risk."""

    levels: tuple[Integers, ...] = field(repr=False)
    profiles: tuple[Integers, ...] = field(repr=False)
    """Classes of units that may swap, the strictest first."""
    risky: Integers = field(repr=False)
    """The coarsest level at which each unit is at risk; the number of levels for none."""
    alike: Integers = field(repr=False)
    """How many are like it there: the fewer, the sooner it is swapped."""
    usable: Mask = field(repr=False)
    targets: Targets = field(repr=False)
    all_at_risk: bool

    @property
    def area(self) -> Integers:
        """The finest area of each unit."""
        return self.levels[-1]

    def start(self) -> Pairs:
        """Nobody has a partner; each area has as many swaps as were drawn for it."""
        return Pairs.start(self.area, self.usable, self.targets.drawn)

    def run(self, pairs: Pairs, random: np.random.Generator) -> None:
        """Pair units until every area has its number or nobody is left who fits."""
        at_risk = self.risky < len(self.levels)
        if self.all_at_risk:
            pairs.left[:] = self.targets.units - pairs.done()
        for level in range(len(self.levels)):
            turn = np.flatnonzero(self.risky == level)
            turn = turn[shuffled(random, self.alike[turn])]
            for profile in range(len(self.profiles)):
                self.pair(pairs, random, turn, level, profile, at_risk)
                self.pair(pairs, random, turn, level, profile, self.usable)
        if self.all_at_risk:
            pairs.left[:] = np.maximum(self.targets.drawn - pairs.done(), 0)
        most = int(pairs.left.max(initial=0))
        turn = shuffled(random, most - pairs.left[self.area])  # who has most to swap asks while there is most to choose
        for profile in range(len(self.profiles)):
            self.pair_all(pairs, random, turn, profile, self.usable)

    def pair(
        self, pairs: Pairs, random: np.random.Generator, turn: NDArray[np.intp], level: int, profile: int, donor: Mask
    ) -> None:
        """Pair across the areas of a level, within the area above where that can be done.

        A donor that is at risk at a coarser level crosses the border of that level, and no pair is made without.
        """
        for border in range(level, -1, -1):
            fits = donor & (self.risky >= level if border == level else self.risky == border)
            if not turn.size or not fits.any():
                continue
            if border:
                pairs.match(random, turn, self._within[border, profile], self.levels[border], fits)
            pairs.match(random, turn, self.profiles[profile], self.levels[border], fits)

    def pair_all(
        self, pairs: Pairs, random: np.random.Generator, turn: NDArray[np.intp], profile: int, donor: Mask
    ) -> None:
        """Pair units across the borders that their own risk asks to cross; those at no risk, across the finest."""
        finest = len(self.levels) - 1
        own = np.minimum(self.risky[turn], finest)
        for level in range(finest + 1):
            self.pair(pairs, random, turn[own == level], level, profile, donor)

    def apart(self, one: NDArray[np.intp], other: NDArray[np.intp]) -> Mask:
        """Whether units live on different sides of the borders that their risk asks to cross."""
        level = np.minimum(np.minimum(self.risky[one], self.risky[other]), len(self.levels) - 1)
        places = np.stack([place[np.concatenate([one, other])] for place in self.levels])
        at = np.arange(len(one))
        return np.asarray(places[level, at] != places[level, at + len(one)])

    @cached_property
    def _within(self) -> dict[tuple[int, int], Integers]:
        """Like units of one area of the level above, by level and profile."""
        out: dict[tuple[int, int], Integers] = {}
        for level in range(1, len(self.levels)):
            above = self.levels[level - 1]
            for number, profile in enumerate(self.profiles):
                out[level, number] = paired(profile, above)
        return out


def changes_of(pairs: Pairs, first: NDArray[np.intp], unit: Integers) -> NDArray[np.intp]:
    """The record from which each record takes its area: one of its unit's partner, or itself."""
    out = np.arange(len(unit), dtype=np.intp)
    moved = pairs.partner[unit] >= 0
    out[moved] = first[pairs.partner[unit[moved]]]
    return out


def by_profile(pairs: Pairs, profiles: Sequence[Integers]) -> list[int]:
    """How many units swap with one that is alike by each profile, and by none before it."""
    at = np.flatnonzero(pairs.swapped)
    other = pairs.partner[at]
    out, rest = [], np.ones(len(at), dtype=np.bool_)
    for profile in profiles:
        same = rest & (profile[at] == profile[other])
        out.append(int(same.sum()))
        rest &= ~same
    return out


# What is swapped: records, or households as a whole.


@dataclass(frozen=True, eq=False)
class Units:
    """Records, or households of records, numbered in an order that does not depend on that of the records."""

    of_record: Integers = field(repr=False)
    """The unit of each record."""
    first: NDArray[np.intp] = field(repr=False)
    """A record of each unit."""
    size: Integers = field(repr=False)
    """Records of each unit."""
    single: bool
    """Whether every record is a unit."""

    @classmethod
    def of(cls, microdata: Microdata, household: str | None) -> Units:
        """The households of a column, or the records themselves; a record without a household stands alone."""
        n = len(microdata)
        if household is None:
            return cls(microdata.rank, microdata.order, np.ones(n, dtype=np.int64), single=True)
        column = microdata.column(household, "Swap.household")
        held = microdata.classes([column])
        lone = microdata.missing([column])
        held = np.where(lone, held.max(initial=0) + 1 + microdata.rank, held) if lone.any() else held
        own = dense(held)
        size = np.bincount(own)
        first = np.empty(len(size), dtype=np.intp)
        first[own[microdata.order[::-1]]] = microdata.order[::-1]
        return cls(own, first, size.astype(np.int64), single=False)

    def __len__(self) -> int:
        return len(self.first)

    def areas(self, microdata: Microdata, areas: Areas) -> tuple[Integers, ...]:
        """The area of each unit at each level; a household in two areas is an error."""
        split = self._split(areas.finest)
        if split.size:
            row = microdata.frame.row(int(split[0]), named=True)
            places = ", ".join(f"{column} = {row[column]!r}" for column in areas.columns)
            raise InvalidOption(
                f"The household of record {int(split[0]) + 1:,} ({places}) has records in other areas too.",
                hint="is Swap.household the right column? All records of a household live in one area.",
            )
        return tuple(level[self.first] for level in areas.levels)

    def most_records(self, area: Integers, most: Integers) -> Integers:
        """The records of so many units of each area, at most: of its largest ones. Partners are as large."""
        order = np.argsort(-self.size, kind="stable")
        order = order[in_order(area[order])]
        taken = order[rank_within(area[order]) < most[area[order]]]
        out = np.zeros(len(most), dtype=np.int64)
        np.add.at(out, area[taken], self.size[taken])
        return out

    def refuse_mixed(self, microdata: Microdata, columns: Sequence[str]) -> None:
        """Refuse columns that go with the area but differ within a household: all its members get those of another."""
        for column in columns:
            split = self._split(microdata.classes([column]))
            if split.size:
                raise InvalidOption(
                    f"Swap.carry names {column!r}, but the household of record {int(split[0]) + 1:,} has several "
                    f"entries in it.",
                    hint="carry only what belongs to the place where all of a household live.",
                    about=("option", "Swap", "carry"),
                )

    def _split(self, number: Integers) -> NDArray[np.intp]:
        """The records whose number is not that of the others of their unit."""
        return np.flatnonzero(number != number[self.first][self.of_record])

    def classes(self, of_record: Integers) -> Integers:
        """A number per unit, equal where the units hold the same records by their classes: as many of each.

        Swapping such units leaves the number of records of each class in each area as it was.
        """
        if self.single:
            return of_record[self.first]
        frame = pl.DataFrame({"unit": self.of_record, "class": of_record}).sort("unit", "class")
        joined = frame.group_by("unit", maintain_order=True).agg(pl.col("class").cast(pl.String).str.join(" "))
        text = joined["class"]
        return text.cast(pl.Enum(text.unique().sort())).to_physical().to_numpy().astype(np.int64)

    def least(self, of_record: Integers) -> Integers:
        """The smallest of a number over the records of each unit."""
        out = np.full(len(self), np.iinfo(np.int64).max)
        np.minimum.at(out, self.of_record, of_record)
        return out

    def some(self, of_record: Mask) -> Mask:
        """The units with a record that is marked."""
        out = np.zeros(len(self), dtype=np.bool_)
        out[self.of_record[of_record]] = True
        return out


# Whole numbers of swaps: areas that are left with too few get them from pairs that are taken apart.


ROUNDS = 12
"""Rounds in vain before areas are left without the swaps that they lack."""
MOST_ROUNDS = 200
"""Rounds at most; they end when all areas have their swaps, or when rounds are in vain."""
SPARE = 8
"""How many times as many units as an area lacks swaps may ask."""

Places = NDArray[np.intp]


def even_out(search: Search, pairs: Pairs, random: np.random.Generator) -> None:
    """Bring every area between its floor and its ceiling, as far as there are partners.

    Other areas may go up to their ceilings. Where one area lacks two, two like units of it take the partners of a like
    pair from elsewhere. Where it lacks one, its unit takes one partner, and the area of the other lacks one instead:
    there may be more to choose from.
    """
    fewest, vain, best = np.iinfo(np.int64).max, 0, pairs.partner.copy()
    for _ in range(MOST_ROUNDS):
        asking = _asking(search, pairs, random, _open_up(search, pairs), SPARE)
        for profile in range(len(search.profiles)):
            search.pair_all(pairs, random, asking, profile, search.usable)
        for classes in search.profiles:
            _two_by_two(search, pairs, random, classes)
        lacking = int(_open_up(search, pairs).sum())
        vain += 1
        if lacking < fewest:
            fewest, vain, best = lacking, 0, pairs.partner.copy()
        if not lacking or vain > ROUNDS:
            break
        for classes in search.profiles:
            _one_by_one(search, pairs, random, classes)
    pairs.partner[:] = best
    _open_up(search, pairs)


def _open_up(search: Search, pairs: Pairs) -> Integers:
    """Let every area go up to its ceiling; how many swaps does each lack to its floor?"""
    done = pairs.done()
    pairs.left[:] = np.maximum(search.targets.ceiling - done, 0)
    return np.asarray(np.maximum(search.targets.floor - done, 0))


def _asking(search: Search, pairs: Pairs, random: np.random.Generator, lacking: Integers, times: int) -> Places:
    """Places without a partner in areas that lack swaps, at random, no more than so many times what is lacking."""
    free = np.flatnonzero((lacking > 0)[search.area] & (pairs.partner == NOBODY))
    free = random.permutation(free)
    return free[rank_within(search.area[free]) < times * lacking[search.area[free]]]


def _movable(search: Search, pairs: Pairs, random: np.random.Generator, classes: Integers) -> tuple[Places, Places]:
    """Pairs of one class that may be taken apart, in random order."""
    x = np.flatnonzero(pairs.partner > np.arange(len(pairs.partner)))
    x = random.permutation(x)
    y = pairs.partner[x]
    fits = classes[x] == classes[y]
    turn = random.random(len(x)) < 0.5
    return np.where(turn, x, y)[fits], np.where(turn, y, x)[fits]


def _dealt(askers: Integers, offers: Integers) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Give each asker (by its class) an offer of its class, none twice: places among the askers and the offers."""
    order = in_order(offers)
    at = np.searchsorted(offers[order], askers) + rank_within(askers)
    here = at < len(offers)
    here[here] = offers[order[at[here]]] == askers[here]
    return np.flatnonzero(here), order[at[here]]


def _two_by_two(search: Search, pairs: Pairs, random: np.random.Generator, classes: Integers) -> None:
    """Two like units of an area that lacks two take the partners of a pair that lives elsewhere."""
    lacking = _open_up(search, pairs)
    asking = _asking(search, pairs, random, np.where(lacking > 1, lacking, 0), 1)
    if not asking.size:
        return
    kind = paired(classes[asking], search.area[asking])
    asking = asking[in_order(kind)]
    kind = np.sort(kind)
    first = np.flatnonzero((rank_within(kind)[:-1] % 2 == 0) & (kind[:-1] == kind[1:]))
    a, b = asking[first], asking[first + 1]
    x, y = _movable(search, pairs, random, classes)
    elsewhere = (lacking[search.area[x]] == 0) & (lacking[search.area[y]] == 0)
    x, y = x[elsewhere], y[elsewhere]
    mixed = random.permutation(len(a))
    a, b = a[mixed], b[mixed]
    who, what = _dealt(classes[a], classes[x])
    a, b, x, y = a[who], b[who], x[what], y[what]
    fits = search.apart(a, x) & search.apart(b, y)
    _join(pairs, a[fits], x[fits])
    _join(pairs, b[fits], y[fits])


def _one_by_one(search: Search, pairs: Pairs, random: np.random.Generator, classes: Integers) -> None:
    """A unit of an area that lacks swaps takes the partner of a like unit elsewhere, whose area then lacks one."""
    asking = _asking(search, pairs, random, _open_up(search, pairs), 1)
    x, y = _movable(search, pairs, random, classes)
    spare = search.risky[y] == len(search.levels)  # whoever is at risk keeps its swap
    x, y = x[spare], y[spare]
    who, what = _dealt(classes[asking], classes[x])
    u, x, y = asking[who], x[what], y[what]
    fits = search.apart(u, x)
    pairs.partner[y[fits]] = NOBODY
    _join(pairs, u[fits], x[fits])


def _join(pairs: Pairs, one: Places, other: Places) -> None:
    pairs.partner[one], pairs.partner[other] = other, one
