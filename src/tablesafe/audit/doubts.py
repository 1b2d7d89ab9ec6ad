"""Whom the moves of many cells convince: kept for all targets and all respondents at once.

A respondent rules a move out that changes a cell of which it is the only contributor, or that takes a cell below what
it has there itself. But what it must not learn is about one cell: if two moves take that cell as far as it must get,
and its own cell up in the one and down in the other, then a mixture of both leaves its own cell alone, takes the target
as far, and keeps to whatever both keep to. So a respondent is convinced as to a target by a move that it cannot rule
out, or by two that it rules out for opposite reasons. Moves at random directions convince half of those who are left,
one after another; nobody has to be asked alone.

From the largest contributor of a target less must be hidden than from others, often nothing: it knows the largest part,
and what the rule hides from it is the next. It is convinced by a shorter move.

For each side of each target there are three sets of respondents, as bits: who has ruled out every move so far, who saw
its own cells rise, who saw them fall. Looked at are those who may object to something before others do; all the rest
are one more respondent without cells of its own, so that no target counts as hidden before some move has shown it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Self

import numpy as np

from tablesafe.audit.respondent_knowledge import Knowledge
from tablesafe.core.equations import Floats, Integers, Mask
from tablesafe.core.problem import Problem
from tablesafe.rules.combined import agreed, measured_by_value, not_to_be_known

NOISE = 1e-6
"""What a solver's point may be beyond its bounds."""
MOST = 2.0**24
"""No cell moves further than that many whole units, so that numerators stay within 64 bits."""
NEVER = 2**62
"""Further than any move, in whole units."""
MARGIN = 1e-9
"""How much more than enough a product of floats must be to be enough."""
MOST_BYTES = 1_000_000_000
"""Memory for the sets; with more targets and respondents than that, nobody is convinced together."""
SOME = 8
"""Respondents in doubt of a cell who are named, where a repair has to convince them."""
EVERYBODY = 0.5
"""Share of all respondents in doubt of a target from which on a move is looked for as if there were none."""
FEW, RULED = 150, 300
"""Respondents who are left in doubt of a target, up to which a move is looked for that none of them can rule out; and
how many of them there may be for all targets of a batch."""
ANYBODY = -1
"""Stands for whoever is not looked at: the last of those who must be convinced, by any move that is far enough."""


@dataclass(frozen=True, eq=False)
class Listed:
    """Who is listed in each cell, and how far it can believe the cell to fall; all in units of the table."""

    who: Integers = field(repr=False)
    """Respondents per cell and place; −1 for a place not used."""
    room: Floats = field(repr=False)
    """How far each of them can believe the cell to fall."""
    alone: Mask = field(repr=False)
    """Cells of which the first is all there is."""
    others: Floats = field(repr=False)
    """How far whoever is not listed can believe the cell to fall."""
    largest: tuple[Largest, ...] = field(default=(), repr=False)
    """From whom less must be hidden than from others, as each of the rules has it; none where that is nobody."""

    @classmethod
    def of(cls, problem: Problem, known: Knowledge) -> Self:
        """What single respondents know of the unknown cells of a system, and what must be hidden from them."""
        truth, lower = known.system.truth, known.system.lower
        least = np.where(known.negative, lower, np.maximum(known.own, lower[:, None]).T).T
        room, others = (np.floor(np.maximum(each, 0.0)) for each in (truth[:, None] - least, truth - known.guess))
        return cls(known.who, room, known.everyone == 1, others, Largest.every(problem, known))

    @cached_property
    def fall(self) -> Floats:
        """How far everybody can believe each cell to fall."""
        least = np.where(self.who >= 0, self.room, np.inf).min(axis=1, initial=np.inf)
        return np.where(self.alone, 0.0, np.minimum(least, self.others))

    @cached_property
    def first(self) -> Integers:
        """The place of the one that can believe least."""
        return np.asarray(np.where(self.who >= 0, self.room, np.inf).argmin(axis=1))

    @cached_property
    def but_for_one(self) -> Floats:
        """How far all but that one can believe each cell to fall."""
        room = np.where(self.who >= 0, self.room, np.inf)
        room[np.arange(len(room)), self.first] = np.inf
        return np.where(self.alone, np.inf, np.minimum(room.min(axis=1), self.others))

    def among(self, cells: Integers, n: int) -> Listed:
        """The same as the lists of some of so many cells: the others list nobody, and everybody believes anything."""
        who, room = np.full((n, self.who.shape[1]), -1), np.full((n, self.who.shape[1]), np.inf)
        alone, others = np.zeros(n, dtype=np.bool_), np.full(n, np.inf)
        who[cells], room[cells], alone[cells], others[cells] = self.who, self.room, self.alone, self.others
        return Listed(who, room, alone, others, tuple(each.among(cells, n) for each in self.largest))

    def take(self, cells: Integers) -> Listed:
        """The lists of some cells."""
        largest = tuple(each.take(cells) for each in self.largest)
        return Listed(self.who[cells], self.room[cells], self.alone[cells], self.others[cells], largest)

    def asked(self, level: Floats, cells: Integers, place: Integers) -> Floats:
        """How much of a level of each cell must be hidden from those listed there, in whole units."""
        if not self.largest:
            return level[cells]
        return np.asarray(np.max([each.asked(level, cells, place) for each in self.largest], axis=0))


@dataclass(frozen=True, eq=False)
class Largest:
    """The largest contributor of each cell, and which part of a level must be hidden from it.

    Of a level L it is slope * L + offset, between nothing and all of it: what the rule asks for the largest other
    contributor, less what hides that one already (see `insiders`).
    """

    place: Integers = field(repr=False)
    """Where it is listed; −1 where as much must be hidden from it as from others."""
    slope: Floats = field(repr=False)
    offset: Floats = field(repr=False)
    least: Floats = field(repr=False)
    """A unit where it must not know the cell exactly in any case."""

    @classmethod
    def every(cls, problem: Problem, known: Knowledge) -> tuple[Self, ...]:
        """Read off the lists of the unknown cells; none where contributors were ranked by something else."""
        if known.lists.shadow:
            return ()
        return tuple(cls._of(problem, known, mask) for mask in agreed(problem.rules, known.system.table))

    @classmethod
    def _of(cls, problem: Problem, known: Knowledge, waived: Mask) -> Self:
        lists, cells, own = known.lists, known.system.cells, known.own
        waived, listed = waived[cells], known.who >= 0
        value = known.system.truth.astype(np.float64)
        value = np.where(known.negative, np.abs(own).sum(axis=1) + np.abs(value - own.sum(axis=1)), value)
        own = np.where(known.negative[:, None], np.abs(own), own)
        order = np.lexsort((-own, waived), axis=1)
        own = np.take_along_axis(own, order, axis=1)
        waived, listed = np.take_along_axis(waived, order, axis=1), np.take_along_axis(listed, order, axis=1)
        unlisted, first = lists.unlisted[cells], own[:, 0]
        second = own[:, 1:].max(axis=1) if own.shape[1] > 1 else unlisted
        other = np.where(listed & ~waived, own, -np.inf)[:, 1:].max(axis=1, initial=-np.inf)
        other = np.maximum(other, unlisted)
        with np.errstate(invalid="ignore", divide="ignore"):
            slope = other / first
            offset = np.maximum(value - first - second, 0.0) * slope - np.maximum(value - first - other, 0.0)
        levels = problem.sensitivity
        told = listed[:, 0] & (first > 0) & np.isfinite(slope) & np.isfinite(offset) & (levels.sliding[cells] == 0)
        told &= (levels.lower[cells] > 0) | (levels.upper[cells] > 0)
        if known.system.table.signed is None or measured_by_value(problem.rules):
            told &= ~known.negative
        least = not_to_be_known(problem.rules, levels)[cells].astype(np.float64)
        return cls(np.where(told, order[:, 0], -1), np.where(told, slope, 1.0), np.where(told, offset, 0.0), least)

    def among(self, cells: Integers, n: int) -> Largest:
        """The same of some of so many cells; of the others there is none."""
        place, slope, offset, least = np.full(n, -1), np.ones(n), np.zeros(n), np.zeros(n)
        place[cells], slope[cells], offset[cells], least[cells] = self.place, self.slope, self.offset, self.least
        return Largest(place, slope, offset, least)

    def take(self, cells: Integers) -> Largest:
        """The largest contributors of some cells."""
        return Largest(self.place[cells], self.slope[cells], self.offset[cells], self.least[cells])

    def asked(self, level: Floats, cells: Integers, place: Integers) -> Floats:
        """How much of a level of each cell must be hidden from those listed there, in whole units."""
        far = level[cells]
        less = np.ceil(self.slope[cells] * far + self.offset[cells])
        less = np.minimum(np.maximum(less, self.least[cells]), far)
        return np.where(self.place[cells] == place, less, far)


class Doubts:
    """For each cell that must fall or rise, the respondents that no move has convinced yet."""

    def __init__(self, listed: Listed, fall: Floats, rise: Floats, *, whole: bool = False) -> None:
        """Nobody is convinced; cells that need not fall or rise have nobody to convince.

        Who knows that values are `whole` is convinced by moves of whole units alone: not by a mixture of two, nor by a
        part of one.
        """
        self.listed, self.whole = listed, whole
        reach = np.where(listed.others >= fall, fall, 0.0)  # further down than others believe: not by such moves
        self.need = {-1: reach, 1: rise}
        self.targets = np.flatnonzero((fall > 0) | (rise > 0))
        at = np.full(len(fall), -1)
        at[self.targets] = np.arange(len(self.targets))
        self._at = at
        first = listed.who[np.arange(len(fall)), listed.first]
        beyond = (listed.room < fall[:, None]) & (listed.who >= 0)
        involved = np.unique(np.concatenate([first[first >= 0], listed.who[beyond]]))
        self._number = np.full(int(listed.who.max(initial=-1)) + 2, -1)  # the last is for places not used
        self._number[involved] = np.arange(len(involved))
        self.respondents, self._identity = len(involved) + 1, np.append(involved, ANYBODY)
        self._several = np.zeros(self.respondents, dtype=np.bool_)
        """Respondents with cells of their own that were seen not to move alike."""
        self._first_of = self._number[first]
        self._owner = np.where(listed.alone, self._number[listed.who[:, 0]], -1)
        alone = np.flatnonzero(listed.alone)
        self._alone = alone[np.argsort(self._owner[alone], kind="stable")]
        self._first = np.searchsorted(self._owner[self._alone], np.arange(self.respondents))
        row, place = np.nonzero(self._number[listed.who[self.targets]] >= 0)
        of = self._number[listed.who[self.targets[row], place]]
        order = np.argsort(of, kind="stable")
        self._share_of = of[order]
        self._share = np.column_stack([self.targets[row], place])[order]
        """Targets that list each respondent, and where."""
        target, place = self._share.T
        self._asked = {
            -1: np.minimum(listed.asked(fall, target, place), listed.room[target, place]),
            1: listed.asked(rise, target, place),
        }
        """How far each of these must move for the one that it lists."""
        width = -(-self.respondents // 8)
        everybody = np.packbits(np.ones(self.respondents, dtype=np.bool_))
        nobody = np.zeros((len(self.targets), width), dtype=np.uint8)
        self._ruled, self._rose, self._fell = ({side: nobody.copy() for side in (-1, 1)} for _ in range(3))
        for side, far in ((-1, fall), (1, rise)):
            self._ruled[side][far[self.targets] > 0] = everybody
            own = self._owner[self.targets]
            self._clear(side, np.flatnonzero(own >= 0), own[own >= 0])
            nothing = self._asked[side] <= 0
            self._clear(side, at[target[nothing]], self._share_of[nothing])

    @staticmethod
    def bytes(listed: Listed, targets: int) -> int:
        """Memory that the sets take."""
        return 6 * targets * (len(np.unique(listed.who[np.arange(len(listed.alone)), listed.first])) // 8 + 1)

    def left(self, side: int, cells: Integers | None = None) -> np.ndarray:
        """Who is not convinced that cells can fall (−1) or rise (1), as bits; of all targets where none are named."""
        which = slice(None) if cells is None else self._at[cells]
        if self.whole:
            return np.asarray(self._ruled[side][which])
        return np.asarray(self._ruled[side][which] & ~(self._rose[side][which] & self._fell[side][which]))

    def some(self, side: int, cell: int) -> list[tuple[int, ...]]:
        """Some of those who are left in doubt of a cell; nobody in particular, where most are."""
        bits = np.unpackbits(self.left(side, np.array([cell]))[0], count=self.respondents)
        left = np.flatnonzero(bits)
        if len(left) > FEW:
            return [()]
        return [() if one == ANYBODY else (int(one),) for one in self._identity[left[:SOME]].tolist()]

    @property
    def total(self) -> int:
        """How many doubts there are in all."""
        return sum(int(np.bitwise_count(self.left(side)).sum(dtype=np.int64)) for side in (-1, 1))

    def open(self, side: int) -> Mask:
        """Cells of which somebody is not convinced; one flag for each cell."""
        out = np.zeros(len(self._at), dtype=np.bool_)
        out[self.targets] = self.left(side).any(axis=1)
        return out

    def add(self, by: np.ndarray, unit: int = 1) -> None:
        """Take note of a move, in whole numbers of one over `unit` (or a solver's own numbers)."""
        if self.whole and (by.dtype.kind != "i" or unit != 1):
            return
        noise = 0 if by.dtype.kind == "i" else NOISE
        fallen = np.flatnonzero(by < 0)
        who, down = self.listed.who[fallen], -by[fallen]
        beyond = down[:, None] > _units(self.listed.room[fallen], unit, by) + noise
        beyond &= (who >= 0) & ~self.listed.alone[fallen, None]
        row, place = np.nonzero(beyond)
        member = self._number[who[row, place]]
        if (member < 0).any() or (down > _units(self.listed.others[fallen], unit, by) + noise).any():
            return  # somebody has an objection who is not looked at here
        broken = np.bincount(member, minlength=self.respondents) > 0
        low, high = self._own(by)
        self._several |= high - low > noise
        moved, steady = (low != 0) | (high != 0), (high - low <= noise) & ~broken
        ruled, rose, fell = (np.packbits(each) for each in (moved | broken, steady & (low > 0), steady & (high < 0)))
        for side, need in self.need.items():
            far = side * by[self.targets]
            served = np.flatnonzero((far > 0) & (far >= _units(need[self.targets], unit, by) - noise))
            served = served[need[self.targets[served]] > 0]
            self._ruled[side][served] &= ruled
            self._rose[side][served] |= rose
            self._fell[side][served] |= fell
            own = self._owner[self.targets[served]]
            self._clear(side, served[own >= 0], own[own >= 0])
        for side in self.need:
            self._of_contributors(side, by, unit, noise, moved, member, fallen[row], place)

    def _of_contributors(
        self, side: int, by: np.ndarray, unit: int, noise: float, moved: Mask, member: Integers, cell: Integers,
        place: Integers,
    ) -> None:  # fmt: skip
        """Contributors of a target: it need not fall below what one has there, nor be hidden from the largest as far.

        So a move convinces it that falls short of the level, and one that takes cells too far, if no other cell falls
        too far when the move goes only as far as the contributor asks. `member` objects to `cell`, for its `place`. Of
        a move by whole units there is no part.
        """
        target, need = self._share[:, 0], self._asked[side]
        far = side * by[target]
        good = (far >= _units(need, unit, by) - noise) & ~moved[self._share_of] & (need > 0)
        first, last = (np.searchsorted(self._share_of, member, side) for side in ("left", "right"))
        length = last - first
        entry = np.repeat(np.arange(len(member)), length)
        pair = np.arange(int(length.sum())) + np.repeat(first - np.cumsum(length) + length, length)
        other = cell[entry]
        room, asked = self.listed.room[other, place[entry]], need[pair]
        fits = room * far[pair].astype(np.float64) >= asked * -by[other].astype(np.float64) * (1 + MARGIN)
        fits |= ((by[other] == by[target[pair]]) & (room >= asked)) | (other == target[pair])
        good[pair if self.whole else pair[~fits]] = False
        self._clear(side, self._at[target[good]], self._share_of[good])

    def _own(self, by: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The least and the greatest move of the cells of which each respondent is the only contributor."""
        low, high = np.zeros(self.respondents, by.dtype), np.zeros(self.respondents, by.dtype)
        has = np.flatnonzero(np.diff(np.append(self._first, len(self._alone))) > 0)
        if has.size:
            moves = by[self._alone]
            low[has] = np.minimum.reduceat(moves, self._first[has])
            high[has] = np.maximum.reduceat(moves, self._first[has])
        return low, high

    def _clear(self, side: int, at: Integers, member: Integers) -> None:
        np.bitwise_and.at(self._ruled[side], (at, member // 8), ~(128 >> (member % 8)).astype(np.uint8))

    def batch(self, cells: Integers, way: Floats, random: np.random.Generator) -> tuple[Mask, Mask]:
        """Which of some cells to move together, and in which cells nobody must have an objection: somebody is in doubt.

        Respondents with several cells of their own that do not move alike are convinced by moves that leave these
        alone, so half of them at random are left alone; and so are those few whom nothing has convinced yet.
        """
        doubts = np.where((way > 0)[:, None], self.left(1, cells), self.left(-1, cells))
        count = np.bitwise_count(doubts).sum(axis=1)
        out, keep = self._several & (random.random(self.respondents) < 0.5), np.zeros(self.respondents, np.bool_)
        own, used = self._owner[cells], 0
        few = np.flatnonzero(count <= FEW)
        for i in few[np.argsort(count[few] * random.exponential(size=len(few)))].tolist():
            if own[i] >= 0 and out[own[i]]:
                continue
            who = np.flatnonzero(np.unpackbits(doubts[i], count=self.respondents))
            fresh = who[~out[who]]
            if used + len(fresh) > RULED or keep[fresh].any():
                continue
            out[fresh], used = True, used + len(fresh)
            if own[i] >= 0:
                keep[own[i]] = True
        still = (self._first_of >= 0) & out[np.maximum(self._first_of, 0)]
        return ~(still & self.listed.alone)[cells], still

    def sample(self, cell: int, side: int, share: float, random: np.random.Generator) -> Mask:
        """A share of those who are in doubt that a cell can fall (−1) or rise (1), at random; one flag for each."""
        bits = self.left(side, np.array([cell]))[0]
        left = np.unpackbits(bits, count=self.respondents).astype(np.bool_)
        return left if share == 1 else np.asarray(left & (random.random(self.respondents) < share))

    def asking(
        self, cell: int, side: int, left: Mask, down: Floats, up: Floats, everybody: float = EVERYBODY
    ) -> tuple[float, Floats, Floats]:
        """How far one more move must take a cell to convince some who are in doubt of it, and the room that leaves.

        Who has one cell of its own and saw it rise is convinced by a move in which that does not rise, and the other
        way round; all others by one in which theirs stay at rest. Where nearly `everybody` is in doubt nobody is
        thought of: with the first move most will be convinced.
        """
        alone, level = self.listed.alone, float(self.need[side][cell])
        if not left.any() or left.mean() >= everybody:
            return level, *self.rooms(down, up, np.zeros(len(alone), dtype=np.bool_))
        listed = np.flatnonzero(self._share[:, 0] == cell)
        most = np.full(self.respondents, level)
        np.minimum.at(most, self._share_of[listed], self._asked[side][listed])
        still = (self._first_of >= 0) & left[self._first_of]
        still[cell] = False
        fall, rise = self.rooms(down, up, still)
        rose, fell = (
            np.unpackbits(each[side][self._at[cell]], count=self.respondents).astype(np.bool_)[self._first_of]
            for each in (self._rose, self._fell)
        )
        owner = self._owner[alone]
        one = still & alone & (np.bincount(owner[owner >= 0], minlength=self.respondents) == 1)[self._first_of]
        rise = np.where(one & fell & ~rose, up, rise)
        fall = np.where(one & rose & ~fell, down, fall)
        return max(float(most[left].max()), 1.0), fall, rise

    def rooms(self, down: Floats, up: Floats, still: Mask) -> tuple[Floats, Floats]:
        """How far cells may fall and rise for what everybody believes but for one each; and for all, where `still`."""
        alone = self.listed.alone
        fall = np.where(alone, 0.0, np.where(still, self.listed.fall, self.listed.but_for_one))
        return np.where(alone & ~still, down, np.minimum(fall, down)), np.where(alone & still, 0.0, up)


def _units(far: Floats, unit: int, like: np.ndarray) -> np.ndarray:
    """So many whole units, as a move counts them; what is further than anything moves is further than any move."""
    if like.dtype.kind != "i":
        return far * unit
    return np.where(far > MOST, NEVER, np.minimum(far, MOST).astype(np.int64) * unit)
