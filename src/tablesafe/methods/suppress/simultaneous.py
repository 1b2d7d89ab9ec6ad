"""Protect many targets with few linear programs: each moves hundreds of targets at once.

A program for each target does not end where there are twenty thousand. But most of them move together: give every
target of a batch a direction, pay for each as it nears its level, charge what moves that is not withheld yet, and
maximise what is left. The deviation serves the whole batch and whoever else it moves far enough; what it uses is
withheld, and costs nothing from then on. What a target is worth rises each time that it was left behind, so that the
cheap deviations come first and the dear ones find much withheld.

On 23,754 cells of business microdata such a program takes 0.7 s by an interior point with crossover, 2 to 3 s by the
simplex method; forty of them protect 20,064 targets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from tablesafe.audit.doubts import Doubts, Listed
from tablesafe.audit.exact import row_sums
from tablesafe.audit.together import Asked, convince, in_fractions
from tablesafe.core.equations import Floats, Integers, Mask
from tablesafe.methods.suppress.condensed import finest_parts
from tablesafe.methods.suppress.deviations import NOBODY, Deviation, Room
from tablesafe.methods.suppress.instance import Instance
from tablesafe.methods.suppress.pattern import Pattern
from tablesafe.solve.highs import INTERIOR, Model
from tablesafe.solve.program import Program
from tablesafe.work.budget import Budget
from tablesafe.work.side_by_side import AT_ONCE, side_by_side

PER_STEP = 3.5e-9
"""Seconds of a step of such a program, for each of its entries to the power of 1.5: factors fill up."""
USED = 1e-6
"""A move, in levels, that is more than noise of the solver."""
REACHED = 1 - 1e-9
"""Share of its level that protects a target."""
MANY = 3_000
"""Cells on offer beyond which an interior point says first which of them are of use."""
FAR = 100.0
"""How many times the largest level a cell may move."""
TINY = 0.05
"""Share of the least level of a batch below which the room of a cell is not worth a column."""
SUGGESTED = 0.1
"""Share of its cost at which a cell that was suggested is offered."""
FEWEST, SEVERAL = 100, 1_000
"""Targets of a batch, where there are so many."""
ALIKE = 6.0
"""Targets of one batch differ by this factor at most: prices are for moves of one size."""
WORTH = (3.0, 30.0, 100.0, 300.0, 30.0, 100.0, 1e3, 1e4)
"""What it is worth to move a target, in units of its level, at each try. All but the first get many times their price:
the dearest tenth of the targets cost half of the pattern, and are to find what the others have withheld."""
NARROWLY = 4
"""Tries at which no more than the `MANY` cheapest cells are offered. 20,000 firms, outsiders, programs alone: 36.4 to
37.7 million after 60 to 70 s; 37.9 million after 79 s with all on offer that are not too dear. 2,000 cells are too few:
57 million."""
INSISTING = (1e2, 1e3, 1e4, 1e4)
"""The same where nothing but the pattern so far is on offer."""
DEAREST = 10.0
"""The cost, in units of a level, beyond which a cell that was not suggested is not offered at first; twice that at each
further try."""
PAYS = 0.15
"""Share of the open targets that a program within the pattern must serve, or more has to be withheld."""
SLOPES = 6
"""How often a deviation is looked for again among the cells it uses, at prices by how far each moves."""
SETTLED = 0.99
"""Share of its cells with which a deviation is as good as it gets."""
FLAT = 1e-3
"""Share of the level below which a move is charged as if it were so long."""
EACH = 0.1
"""Share of the average cost that a cell costs besides, so that many cheap ones are not taken for a few: on the same
table 8,060 complementary cells with 0.02, 8,025 with 0.05, 7,846 with 0.1."""
FOR_ALL = (300.0, 100.0, 300.0, 1e3, 1e4, 1e5, 1e5, 1e5)
"""The same where respondents must be convinced, which takes several deviations. 20,000 firms, after 130 s: 41 million
and 494 classes of cells open; from 3 on, as without respondents, 56 million and 1,000."""
ALONE = 1e5
"""What it is worth to move the last targets, one at a time."""


class Reach:
    """How far the cells of a pattern must rise and fall, and which of them do, by the deviations that it keeps."""

    def __init__(self, pattern: Pattern) -> None:
        self.pattern, self.instance = pattern, pattern.instance
        self.rise, self.fall = levels(pattern.instance)

    @property
    def withheld(self) -> Mask:
        """All that is withheld."""
        return self.pattern.withheld

    @property
    def rises(self) -> Mask:
        """Cells that need not rise further than is proved."""
        return self.pattern.rises

    @property
    def falls(self) -> Mask:
        """Cells that need not fall further than is proved."""
        return self.pattern.falls

    @property
    def open(self) -> Integers:
        """Cells that are not known to be protected."""
        return np.flatnonzero(~(self.rises & self.falls))

    def rooms(self, still: Mask | None = None) -> Room:
        """How far cells can be believed to rise and to fall; `still` is what Convincing knows of."""
        return Room(self.instance.up, self.instance.down)

    def served_by(self, move: Floats) -> Integers:
        """The targets that a move protects, or its reverse, and that were open until then."""
        return self._served(self._deviation(move))

    def _served(self, deviation: Deviation) -> Integers:
        if not len(deviation.cells):
            return NOBODY
        served = self.pattern.protected_by(deviation, Room(self.instance.up, self.instance.down), REACHED)
        return served[self.pattern.by[served] < 0]

    def add(self, move: Floats) -> None:
        """Keep a move of the whole table as a deviation, if it protects anybody who is open."""
        deviation = self._deviation(move)
        served = self._served(deviation)
        if len(served):
            self.pattern.add(replace(deviation, served=served))

    def _deviation(self, move: Floats) -> Deviation:
        """The cells that a move uses; a solver's noise takes nothing beyond its room."""
        cells = np.flatnonzero(np.abs(move) > USED)
        return Deviation(cells, np.clip(move[cells], -self.instance.down[cells], self.instance.up[cells]))


class Convincing(Reach):
    """The same, where a target is protected only when no respondent is left in doubt.

    A single deviation seldom convinces everybody: a target is said to rely on the one that convinced the last, and none
    is dropped.
    """

    def __init__(self, instance: Instance, listed: Listed, withheld: Mask) -> None:
        super().__init__(Pattern(instance.withholding(withheld)))
        self.doubts = Doubts(listed, self.fall, self.rise)
        self._rises, self._falls = ~self.doubts.open(1), ~self.doubts.open(-1)

    @property
    def rises(self) -> Mask:
        """Cells of which everybody is convinced that they can rise so far."""
        return self._rises

    @property
    def falls(self) -> Mask:
        """Cells of which everybody is convinced that they can fall so far."""
        return self._falls

    def rooms(self, still: Mask | None = None) -> Room:
        """How far everybody can believe cells to rise and to fall; but for what somebody knows and is asked to move.

        Cells that are to stay at rest are `still`, so that those who know them are convinced.
        """
        still = np.zeros(len(self.instance), dtype=np.bool_) if still is None else still
        down, up = self.doubts.rooms(self.instance.down, self.instance.up, still)
        return Room(up, down)

    def add(self, move: Floats) -> None:
        """Keep a move of the whole table as a deviation, and ask everybody about it and its reverse."""
        self.doubts.add(move)
        if (move <= self.instance.down).all() and (-move <= self.instance.up).all():
            self.doubts.add(-move)
        self.keep(move)

    def keep(self, move: Floats) -> None:
        """Keep a move as a deviation about which everybody was asked, and read off who is left in doubt."""
        self._rises, self._falls = ~self.doubts.open(1), ~self.doubts.open(-1)
        cell, sign, by = self.instance.cell, self.instance.sign, self.pattern.by
        convinced = np.where(sign > 0, self._rises[cell], self._falls[cell])
        self.pattern.add(replace(self._deviation(move), served=np.flatnonzero(convinced & (by < 0))))


def levels(instance: Instance) -> tuple[Floats, Floats]:
    """How far each cell must rise and fall; whole numbers where there is room for them, so that deviations are."""
    rise, fall = np.zeros(len(instance)), np.zeros(len(instance))
    for need, room, sign in ((rise, instance.up, 1), (fall, instance.down, -1)):
        own = instance.sign == sign
        np.maximum.at(need, instance.cell[own], instance.level[own])
        whole = np.ceil(need)
        need[:] = np.where(whole <= room, whole, need)
    return rise, fall


class Together:
    """Moves the targets of a pattern by the hundred until all are protected that can be, or a budget is over.

    A batch of what is open may buy cells: those suggested, and others that are not too dear. Then come programs within
    what is withheld, for as long as they serve many: they cost nothing. The last few are moved one at a time, when they
    no longer move together.
    """

    def __init__(self, pattern: Pattern, suggested: Mask, budget: Budget, random: np.random.Generator) -> None:
        self.reach, self.instance, self.budget, self._random = Reach(pattern), pattern.instance, budget, random
        self.suggested = suggested
        may = self.instance.live & ~self.instance.forced
        self._cost = self.instance.cost + EACH * float(self.instance.cost[may].mean() if may.any() else 0.0)
        self._need = np.maximum(self.reach.rise, self.reach.fall)
        self._main = _main_parts(self.instance, self._need)

    def protect(self, *, only: bool = False) -> None:
        """Protect what is open; with `only`, by nothing but what is suggested.

        Each batch is tried in two directions at once, of which the better is taken.
        """
        reach, tried = self.reach, np.zeros(len(self.instance), dtype=np.int64)
        worth = INSISTING if only else WORTH
        while not self.budget.over and len(cells := reach.open):
            turn = int(tried[cells].min())
            if turn == len(worth):
                break
            batch = self._batch(cells[tried[cells] == turn], alike=not only)
            tried[batch] += 1
            cost, offered = (self._cost, self.suggested) if only else self._offer(batch, turn)
            ways = [self._ways(batch) for _ in range(AT_ONCE)]
            asked = [partial(self._sloped, batch, way, worth[turn], cost, offered) for way in ways]
            self._add(min(side_by_side(asked, self.budget), key=self._rate))
            self._within()
        if not only:
            self._one_by_one()

    def _batch(self, cells: Integers, *, alike: bool) -> Integers:
        """Some of the cells, of those that must move furthest where they are to be `alike`."""
        cells = cells[np.argsort(-self._need[cells], kind="stable")]
        if alike:
            cells = cells[: max(FEWEST, int((self._need[cells] >= self._need[cells[0]] / ALIKE).sum()))]
        return self._random.choice(cells, min(SEVERAL, len(cells)), replace=False)

    def _rate(self, deviation: Floats | None) -> float:
        """What a deviation would withhold for each target that it protects."""
        served = 0 if deviation is None else len(self.reach.served_by(deviation))
        if deviation is None or not served:
            return np.inf
        return float(self._cost[(deviation != 0) & ~self.reach.withheld].sum()) / served

    def _offer(self, batch: Integers, turn: int) -> tuple[Floats, Mask]:
        """What cells cost a batch, and which it may buy: at first the cheapest for the room that they have."""
        level = float(np.median(self._need[batch]))
        cost = np.where(self.suggested, SUGGESTED, 1.0) * self._cost
        offered = self.suggested | (self.instance.cost <= DEAREST * 2.0**turn * level)
        return cost, self._cheapest(offered, self._price(cost, level)) if turn < NARROWLY else offered

    def _price(self, cost: Floats, level: float) -> Floats:
        """What a unit of a move costs that goes as far as a level, or as the room of a cell."""
        return cost / np.clip(self.instance.down, 1.0, level)

    def _cheapest(self, offered: Mask, price: Floats) -> Mask:
        """Those of the cells on offer that have the lowest prices, if there are very many."""
        cells = np.flatnonzero(offered & self.instance.live & ~self.reach.withheld)
        if len(cells) <= MANY:
            return offered
        few = np.zeros(len(self.instance), dtype=np.bool_)
        few[cells[np.argpartition(price[cells], MANY)[:MANY]]] = True
        return few

    def _add(self, deviation: Floats | None) -> None:
        if deviation is not None:
            self.reach.add(deviation)

    def _within(self) -> None:
        """Move open targets by what is withheld, as long as that serves many of them."""
        reach, nothing = self.reach, np.zeros(len(self.instance), dtype=np.bool_)
        while not self.budget.over and len(cells := reach.open):
            asked = list[Callable[[Budget], Floats | None]]()
            for some in np.array_split(self._random.permutation(cells), AT_ONCE):
                if len(some):
                    way = self._ways(some)
                    level = np.where(way > 0, reach.rise[some], reach.fall[some])
                    way = way * float(np.median(level)) / level
                    asked.append(partial(self._moved, some, way, 1.0, self._cost, nothing))
            for deviation in side_by_side(asked, self.budget):
                self._add(deviation)
            if len(reach.open) > (1 - PAYS) * len(cells):
                return

    def _one_by_one(self) -> None:
        """The last ones, each as cheap as can be; what these withhold the next ones use."""
        reach, last = self.reach, self.reach.open
        last = last[np.argsort(-self._need[last], kind="stable")].tolist()
        for i in range(0, len(last), AT_ONCE):
            for way, wide in ((1.0, False), (1.0, True), (-1.0, False), (-1.0, True)):
                done = reach.rises if way > 0 else reach.falls
                asked = list[Callable[[Budget], Floats | None]]()
                for cell in last[i : i + AT_ONCE]:
                    if not done[cell] and not self.budget.over:
                        price = self._price(self._cost, self._need[cell])
                        offered = self.instance.live if wide else self._cheapest(self.instance.live, price)
                        one = partial(self._moved, np.array([cell]), np.array([way]), ALONE, price, offered)
                        asked.append(partial(one, least=0.0))
                for deviation in side_by_side(asked, self.budget):
                    self._add(deviation)

    def _ways(self, cells: Integers) -> Floats:
        """A direction for each cell in which it must still move, by chance; totals go where their largest part goes."""
        rises, falls = self.reach.rises, self.reach.falls
        way = self._random.choice([-1.0, 1.0], len(self.instance))
        way = np.where(rises & ~falls, -1.0, np.where(falls & ~rises, 1.0, way))
        return np.where(rises[cells], -1.0, np.where(falls[cells], 1.0, way[self._main[cells]]))

    def _sloped(
        self, batch: Integers, way: Floats, worth: float, cost: Floats, offered: Mask, budget: Budget,
        still: Mask | None = None,
    ) -> Floats | None:  # fmt: skip
        """A deviation that is worth its cost, by slope scaling (Kim & Pardalos, Operations Research Letters 24, 1999).

        A cell costs the same however far it moves, a program charges by the unit. So it is asked again among the cells
        of its answer, at prices with which each would have cost what it does: short moves become dear, and merge.
        """
        level, withheld = float(np.median(self._need[batch])), self.reach.withheld
        price, best = self._price(cost, level), None
        if int((offered & ~withheld).sum()) > MANY:
            amid = self._moved(batch, way, worth, price, offered, budget, still=still, **INTERIOR)
            if amid is None:
                return None
            offered = (np.abs(amid) > FLAT * level) & ~withheld
            price = cost / np.maximum(np.abs(amid), FLAT * level)
        for turn in range(1 + SLOPES):
            deviation = self._moved(batch, way, worth, price, offered, budget, still=still)
            if deviation is None:
                break
            best = deviation
            fresh = (deviation != 0) & ~withheld
            if not fresh.any() or (turn and fresh.sum() > SETTLED * offered.sum()):
                break
            offered, price = fresh, cost / np.maximum(np.abs(deviation), FLAT * level)
        return best

    def _moved(
        self,
        batch: Integers,
        way: Floats,
        worth: float,
        price: Floats,
        offered: Mask,
        budget: Budget,
        *,
        least: float = TINY,
        still: Mask | None = None,
        **options: Any,
    ) -> Floats | None:
        """The deviation that moves the cells of a batch as far as that is worth its price; None where time is over."""
        reach, instance, withheld = self.reach, self.instance, self.reach.withheld
        far = FAR * max(float(reach.rise.max()), float(reach.fall.max()))
        up, down = reach.rooms(still)
        above, below = np.minimum(up, far), np.minimum(down, far)
        for room, own, need in ((above, instance.up, reach.rise), (below, instance.down, reach.fall)):
            room[batch] = np.where(need[batch] > 0, np.minimum(need[batch], own[batch]), room[batch])
        level = np.where(way > 0, reach.rise[batch], reach.fall[batch])
        useful = instance.live & (np.minimum(instance.up, instance.down) >= least * float(level.min()))
        useful &= (above > 0) | (below > 0)
        free, paid = np.flatnonzero(withheld & useful), np.flatnonzero(offered & ~withheld & useful)
        gain = np.zeros(len(instance))
        gain[batch] = worth * way
        dear = instance.columns[:, paid]
        cost = np.concatenate([-gain[free], price[paid], price[paid]])
        answer = _least(
            cost / np.median(np.abs(cost[cost != 0])),
            [instance.columns[:, free], dear, -dear],
            np.concatenate([-below[free], np.zeros(2 * len(paid))]),
            np.concatenate([above[free], above[paid], below[paid]]),
            budget,
            options or {"solver": "ipm"},
        )
        if answer is None:
            return None
        deviation = np.zeros(len(instance))
        deviation[free] = answer[: len(free)]
        deviation[paid] = answer[len(free) : len(free) + len(paid)] - answer[len(free) + len(paid) :]
        deviation[np.abs(deviation) <= USED] = 0.0
        return deviation


class TogetherForAll(Together):
    """The same until every respondent is convinced: by what is withheld as far as that goes, then by more."""

    reach: Convincing

    def __init__(self, convincing: Convincing, suggested: Mask, budget: Budget, random: np.random.Generator) -> None:
        super().__init__(convincing.pattern, suggested, budget, random)
        self.reach = convincing

    @property
    def found(self) -> Iterator[Floats]:
        """The moves by which respondents were convinced."""
        for deviation in self.reach.pattern.deviations:
            move = np.zeros(len(self.instance))
            move[deviation.cells] = deviation.amount
            yield move

    def protect(self, *, only: bool = False) -> None:
        """Convince everybody of what is open; a batch that may buy cells comes when what is withheld does no more."""
        reach, tried = self.reach, np.zeros(len(self.instance), dtype=np.int64)
        self._within()
        while not self.budget.over and len(cells := reach.open):
            turn = int(tried[cells].min())
            if turn == len(FOR_ALL):
                break
            batch = self._batch(cells[tried[cells] == turn], alike=True)
            tried[batch] += 1
            way = self._ways(batch)
            chosen, still = reach.doubts.batch(batch, way, self._random)
            batch, way = batch[chosen], way[chosen]
            if not len(batch):
                continue
            cost, offered = self._offer(batch, turn)
            move = self._sloped(batch, way, FOR_ALL[turn], cost, offered, self.budget, still)
            self._add(move if move is not None and self._provable(move) else None)
            self._within()

    def _within(self) -> None:
        for move in convince(self.reach.doubts, self._mover, self._ways, self.budget):
            self.reach.keep(move)

    def _mover(self, asked: Asked, budget: Budget) -> tuple[Floats, int] | None:
        cells, way, still = asked
        reach, nothing = self.reach, np.zeros(len(self.instance), dtype=np.bool_)
        level = np.where(way > 0, reach.rise[cells], reach.fall[cells])
        deviation = self._moved(
            cells, way * float(np.median(level)) / level, 1.0, self._cost, nothing, budget, still=still
        )
        return None if deviation is None or not self._provable(deviation) else (deviation, 1)

    def _provable(self, move: Floats) -> bool:
        """Whether a move has simple fractions, by which an audit can check it: others convince nobody in the end."""
        exact = in_fractions(move)
        return exact is not None and not row_sums(self.instance.rows, exact.whole(len(move))).any()


def _main_parts(instance: Instance, need: Floats) -> Integers:
    """For each cell that of its finest parts which must move furthest; the cell itself where it has no parts.

    It is mostly the one of the firm that makes its totals sensitive too: all of them move with it.
    """
    parts, own = finest_parts(instance.rows), np.arange(len(instance))
    if parts is None:
        return own
    length = np.diff(parts.indptr)
    key = need[parts.indices] + 1e-9 * instance.down[parts.indices]
    row = np.repeat(own, length)
    order = np.lexsort((-key, row))
    first = (np.cumsum(length) - length)[length > 0]
    own[length > 0] = parts.indices[order[first]]
    return own


def _least(
    cost: Floats,
    columns: list[sparse.csc_array],
    lower: Floats,
    upper: Floats,
    budget: Budget,
    options: dict[str, Any],
) -> Floats | None:
    """The cheapest point that changes no sum; None where there is none, or no time."""
    matrix = sparse.csr_array(sparse.hstack(columns, format="csr"))
    matrix = matrix[np.flatnonzero(np.diff(matrix.indptr))]
    program = Program.equations(matrix, np.zeros(matrix.shape[0]), lower, upper, cost=cost)
    return Model(program, **options).best_point(budget, PER_STEP * matrix.nnz**1.5)
