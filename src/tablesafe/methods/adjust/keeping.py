"""The search for a change that keeps the statistics: linear programs whose forms are sharpened from point to point."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tablesafe.core.equations import Floats, Integers, Mask
from tablesafe.core.errors import InvalidOption, InvalidProblem, SolverFailure
from tablesafe.core.problem import Problem
from tablesafe.methods.adjust.aims import Keep, Tabu
from tablesafe.methods.adjust.forms import FREE, Between, Capacity, Curved, Linear, Rows, Statistic
from tablesafe.methods.adjust.instance import Instance, Way
from tablesafe.methods.adjust.interrupt import until_interrupted
from tablesafe.methods.adjust.keeping_program import Excess, Forms, Kept, KeptChange
from tablesafe.methods.adjust.means import LARGE, Means
from tablesafe.methods.adjust.statistics import missed
from tablesafe.methods.adjust.tabu.search import TabuSearch
from tablesafe.solve.least_change import Box
from tablesafe.work.budget import Budget

ROUNDS, PATIENCE = 80, 8
"""Rounds of a stage at most, and rounds without a better point before it ends."""
SMALL = 1e-7
"""Differences of statistics that do not count."""
ENOUGH = 1e-4
"""A merit that is not worth another beginning."""
CLOSER = 0.8
"""Share of its limit at which a statistic is aimed: forms are approached from outside, and this ends inside."""
OUTSIDE = 1e3
"""What a statistic outside its limit costs, beside one that is to be as good as possible."""
FEW = 8
"""So many directions are chosen together with the amounts; of more a random part, once the amounts are settled."""
OPEN, SETTLED = 16, 3
"""Directions of that random part, and the rounds without a better point after which they are opened."""
REACH = 8.0
"""How far a cell without bounds may move, beside its level."""
WIDER = (1.0, 1.001, 1.01, 1.05, 1.25)
"""By how much a capacity is widened, in turn, until whole numbers fit in."""
LONGEST_S = 10.0
"""Seconds for one program with whole numbers or open directions."""
RESERVED, LAST_S, LEAST_S = 0.15, 5.0, 1.0
"""The share of the time, and the most, that is set aside to make the changes whole; what that may take in any case."""
LITTLE = 1e-5
"""The share of the change that decides between statistics equally well kept."""
BESIDE = 0.01
"""What the change counts beside the statistics in the last small steps: with nothing, a ratio of variances came from
0.99 to 1 by changes that were 1.8 times as large, and the correlation fell from 0.993 to 0.956."""


@dataclass(frozen=True, eq=False)
class Point:
    """A change, and which targets rise."""

    moves: Floats
    way: Way


@dataclass(eq=False)
class Keeping:
    """One problem, the statistics to keep, and the best change so far."""

    means: Means
    statistics: list[Statistic]
    budget: Budget
    random: np.random.Generator
    best: Point
    stopped: bool = False
    """Whether the user has interrupted it."""
    limits: list[Statistic] = field(default_factory=list)
    """The statistics as the user limited them."""
    reserved: float = 0.0
    """Seconds of the budget that are set aside to make the changes whole."""
    _tight: Instance = field(init=False, repr=False)
    _first: float = field(init=False)
    _opened: Mask = field(init=False, repr=False)

    @property
    def instance(self) -> Instance:
        """The problem, means among its equations."""
        return self.means.instance

    def __post_init__(self) -> None:
        self._tight = _within_reach(self.instance, self.best.moves)
        self.limits = list(self.statistics)
        self._first = self.instance.price(self.best.moves)

    @property
    def left(self) -> float:
        """Seconds that are left."""
        return max(self.budget.left - self.reserved, 0.0)

    def merit(self, moves: Floats) -> float:
        """How badly the statistics are kept: limits first, then what is to be as good as possible."""
        found = 0.0
        for s in self.statistics:
            deviation = s.deviation(moves)
            if np.isnan(deviation):
                return np.inf
            found += s.price * (deviation if s.within is None else OUTSIDE * max(deviation - s.within, 0.0))
        return found

    def improve(self, *, most: float | None = None) -> None:
        """Keep the statistics as well as possible, at any cost or within a budget.

        Forms from below hold near one point only, so the search begins again elsewhere while something is amiss: where
        only the forms that hold everywhere lead, and where those at the true values do.
        """
        self._note(self.best.moves)
        self.statistics = [_aimed(s) for s in self.limits]
        self._converge(most)
        self.statistics = self.limits
        if any(s.within is not None for s in self.limits):
            self._converge(most)
        best, reached = self.best, self.merit(self.best.moves)
        try:
            for anchor in (None, np.zeros(len(self.best.moves))):
                if reached <= ENOUGH or self.left <= 0 or not self._bent:
                    break
                kept = self._solve(self._next_open(SETTLED), anchor=anchor, weigh_change=False, most=most)
                if kept.moves is None:
                    continue
                self.best = self._point(kept)
                self._note(self.best.moves)
                self._converge(most)
                merit = self.merit(self.best.moves)
                if merit < reached:
                    best, reached = self.best, merit
        finally:
            self.best = best

    @property
    def _bent(self) -> bool:
        """Whether some statistic has forms that hold near one point only."""
        return any(isinstance(s, Between) or (isinstance(s, Curved) and s.two_sided) for s in self.statistics)

    def _converge(self, most: float | None) -> None:
        """From the best point to better ones, while there are any."""
        reached, idle = self.merit(self.best.moves), 0
        for _ in range(ROUNDS):
            if self.left <= 0 or idle >= PATIENCE or (reached <= SMALL and self._settled()) or self._done():
                return
            kept = self._solve(self._next_open(idle), anchor=self.best.moves, weigh_change=False, most=most)
            if kept.moves is None:
                return
            point = self._point(kept)
            self._note(point.moves)
            better = min((self.merit(p.moves), n, p) for n, p in enumerate(self._between(point)))
            idle = 0 if better[0] < reached - SMALL - reached * SMALL else idle + 1
            if better[0] < reached:
                reached, self.best = better[0], better[2]

    def _done(self) -> bool:
        """Whether limits are all that is asked for, and they are kept."""
        limits = all(s.within is not None for s in self.limits)
        return limits and not missed(self.limits, self.best.moves, 0.0)

    def _settled(self) -> bool:
        """Whether nothing can be better than this: a statistic whose deviation may fall below 0 is never done."""
        return not any(isinstance(s, Linear) and s.largest for s in self.statistics)

    def cheapen(self) -> None:
        """The least change that keeps all statistics within their limits; the best point does so already."""
        cost, idle = self.instance.price(self.best.moves), 0
        patience = PATIENCE if len(self._both) <= FEW else SETTLED + 3
        for _ in range(ROUNDS):
            if self.left <= 0 or idle >= patience:
                return
            kept = self._solve(self._next_open(idle), anchor=self.best.moves, weigh_change=True, hard=True)
            if kept.moves is None:
                return
            point = self._point(kept)
            self._note(point.moves)
            fits = not missed(self.statistics, point.moves, SMALL)
            found = point if fits else self._inside(point)
            gained = cost - self.instance.price(found.moves)
            idle = 0 if gained > SMALL * cost else idle + 1
            if gained > 0:
                self.best, cost = found, cost - gained
            if fits and (len(self._both) <= FEW) and (gained <= SMALL * cost or not self._bent):
                return

    def _inside(self, point: Point) -> Point:
        """The furthest point from the best one towards this one that keeps all limits, when the directions agree."""
        if not (point.way == self.best.way).all():
            return self.best
        low, high = 0.0, 1.0
        for _ in range(20):
            middle = (low + high) / 2
            inside = not missed(self.statistics, self._mixed(point, middle), SMALL)
            low, high = (middle, high) if inside else (low, middle)
        return Point(self._mixed(point, low), point.way)

    def _between(self, point: Point) -> list[Point]:
        """The point, and some on the way to it when the directions agree: forms may promise too much."""
        if not (point.way == self.best.way).all():
            return [point]
        return [point, *(Point(self._mixed(point, share), point.way) for share in (0.5, 0.25, 0.1))]

    def _mixed(self, point: Point, share: float) -> Floats:
        return np.asarray((1 - share) * self.best.moves + share * point.moves)

    def _note(self, moves: Floats) -> None:
        for s in self.statistics:
            s.note(moves)

    # -- programs --------------------------------------------------------------------------------------------------

    def _solve(
        self, open: Mask, *, anchor: Floats | None, weigh_change: bool, most: float | None = None, hard: bool = False
    ) -> Kept:
        program = self._program(open, anchor=anchor, weigh_change=weigh_change, most=most, hard=hard)
        self._opened = open
        start = (self.best.moves, self.best.way[open] > 0)
        return program.solve(time_limit_s=min(max(self.left / 3, 0.5), LONGEST_S), start=start)

    def _program(
        self, open: Mask, *, anchor: Floats | None, weigh_change: bool, most: float | None, hard: bool
    ) -> KeptChange:
        """The program whose forms are those at a point."""
        i = self._tight
        rows = [(n, row) for n, s in enumerate(self.statistics) for row in s.rows(anchor)]
        return KeptChange(
            i.rows, i.cost, self._box(open), i.switches(open), i.scale(), _forms(rows, len(i.cells)),
            _excess(self.statistics, hard=hard), 1.0 if weigh_change else self._little(), most,
        )  # fmt: skip

    def _little(self) -> float:
        """A share of the change that only decides between statistics equally well kept."""
        scale = self._tight.scale()
        return LITTLE * scale.step / max(self._first * scale.price, 1e-12)

    @property
    def _both(self) -> NDArray[np.intp]:
        """Targets that have room on both sides."""
        return np.flatnonzero(self._tight.can_rise & self._tight.can_fall)

    def _next_open(self, idle: int) -> Mask:
        """Targets whose direction may change: all of a few; of many none while that helps, then a random part."""
        open, both = np.zeros(len(self.best.way), np.bool_), self._both
        if len(both) <= FEW:
            open[both] = True
        elif idle >= SETTLED:
            open[self.random.choice(both, min(OPEN, len(both)), replace=False)] = True
        return open

    def _box(self, open: Mask) -> Box:
        return self._tight.box(self.best.way, open=open)

    def _point(self, kept: Kept) -> Point:
        assert kept.moves is not None
        assert kept.rise is not None
        way = self.best.way.copy()
        way[self._opened] = np.where(kept.rise, 1, -1)
        return Point(kept.moves, way)

    # -- whole numbers ---------------------------------------------------------------------------------------------

    def whole(self, start: Integers) -> Integers | None:
        """The best point in whole numbers, as good up to what rounding does; else what a program over them finds.

        Of a large table it is left to small steps to bring back what rounding did: an integer program over thousands of
        whole numbers does not always end when it is told to.
        None when nothing was found, not even the start, within capacities that were made smaller since.
        """
        near = self.means.rounded(self.best.way, self.best.moves, budget=self.budget.at_least(LEAST_S), close=True)
        if near is not None and self._good(near):
            return near
        found = [moves for moves in (near, start) if moves is not None and self.instance.holds(moves)]
        for hard in () if near is not None and len(self.instance.cells) > LARGE else (True, False):
            exact = self._whole_program(start if near is None else near, hard=hard)
            if exact is not None and self.instance.holds(exact):
                found.append(exact)
            good = [moves for moves in found if self._good(moves)]
            if good:
                return min(good, key=self.instance.price)
        if not found:
            return None
        return min(found, key=lambda moves: (self.merit(moves.astype(np.float64)), self.instance.price(moves)))

    def _good(self, moves: Integers) -> bool:
        """Whether whole moves keep every limit that the user gave, and the other statistics nearly as well."""
        y = moves.astype(np.float64)
        others = all(
            s.deviation(y) <= s.deviation(self.best.moves) + s.unit + 1e-5 for s in self.limits if s.within is None
        )
        return self.instance.holds(moves) and others and not missed(self.limits, y)

    def _whole_program(self, start: Integers, *, hard: bool) -> Integers | None:
        self._note(self.best.moves)
        open = self._next_open(SETTLED)
        program = self._program(open, anchor=self.best.moves, weigh_change=hard, most=None, hard=hard)
        way = self.best.way.copy()
        at = np.flatnonzero(start[self.instance.targets])
        way[at] = np.sign(start[self.instance.targets[at]])
        begin = (start.astype(np.float64), way[open] > 0)
        kept = program.solve(
            time_limit_s=min(max(self.left + self.reserved, LEAST_S), LONGEST_S), start=begin, whole=True
        )
        return None if kept.moves is None else np.rint(kept.moves).astype(np.int64)


def keep_statistics(
    problem: Problem, keep: Keep, means: Means, statistics: Sequence[Statistic], start: Integers, *, budget: Budget,
    seed: int,
) -> tuple[Means, Integers]:  # fmt: skip
    """Whole moves that keep the statistics, from a feasible start that costs little; with the bounds they keep to."""
    instance = means.instance
    way = np.where(start[instance.targets] >= 0, 1, -1).astype(np.int8)
    reserved = min(RESERVED * budget.left, LAST_S)
    search = Keeping(
        means, list(statistics), budget, np.random.default_rng(seed),
        Point(start.astype(np.float64), way), reserved=reserved,
    )  # fmt: skip
    more = 1 + keep.slack_percent / 100
    most = instance.price(start) * more * (1 + 1e-9) if keep.order == "last" else None
    with until_interrupted(search):
        search.improve(most=most)
    _refuse_missed(search, keep)
    capacity = next((s for s in statistics if isinstance(s, Capacity)), None)
    for wider in () if capacity is None else WIDER:
        assert capacity is not None
        share = wider * capacity.deviation(search.best.moves)
        others = [s for s in statistics if s is not capacity]
        narrow = replace(search, means=_within(means, capacity, share), statistics=others)
        moves = _cheap_and_whole(narrow, keep, start, more)
        if moves is not None and not missed(narrow.limits, moves.astype(np.float64), 1e-6):
            moves = _polished(problem, narrow.means, moves, keep, narrow.limits, budget=budget, seed=seed)
            return narrow.means, moves
    moves = _cheap_and_whole(search, keep, start, more)
    assert moves is not None  # the start is within these bounds
    moves = _polished(problem, means, moves, keep, statistics, budget=budget, seed=seed)
    search.best = Point(moves.astype(np.float64), search.best.way)
    _refuse_missed(search, keep)
    return means, moves


def _cheap_and_whole(search: Keeping, keep: Keep, start: Integers, more: float) -> Integers | None:
    """The least change, in whole numbers, that keeps the statistics as they are at the best point."""
    search.statistics = [_capped(s, search.best.moves, more) for s in search.limits]
    if keep.order == "first" and not search.stopped:
        with until_interrupted(search):
            search.cheapen()
    return search.whole(start)


def _within(means: Means, capacity: Capacity, share: float) -> Means:
    """The same problem in which no cell changes by more than this share of its value."""
    i, most = means.instance, np.full(len(means.instance.cells), np.inf)
    most[capacity.cells] = np.floor(share * capacity.size + 1e-6)
    return Means(replace(i, up=np.minimum(i.up, most), down=np.minimum(i.down, most)), means.sums)


def _aimed(statistic: Statistic) -> Statistic:
    """The same statistic with a closer limit: forms are approached from outside, and this ends inside."""
    return statistic if statistic.within is None else _limited(statistic, statistic.within * CLOSER)


def _capped(statistic: Statistic, moves: Floats, more: float) -> Statistic:
    """The same statistic with a limit: what was reached, and more if asked for; or its own, less what rounding does."""
    reached = statistic.deviation(moves)
    if statistic.within is None:
        limit = reached + (more - 1) * abs(reached) + 1e-5
    else:
        limit = max(statistic.within - min(statistic.unit, statistic.within / 2), reached)
    return _limited(statistic, limit)


def _limited(statistic: Statistic, limit: float) -> Statistic:
    changed: Any = replace(statistic, within=limit)  # type: ignore[type-var]
    kept: Statistic = changed
    return kept


def _refuse_missed(search: Keeping, keep: Keep) -> None:
    outside = missed(search.limits, search.best.moves, 1e-6)
    if not outside:
        return
    s, deviation = outside[0]
    more = f", and {len(outside) - 1:,} more" if len(outside) > 1 else ""
    hint = "raise slack_percent, or " if keep.order == "last" else ""
    raise InvalidProblem(
        f"The {s.name} over {s.group} cannot be kept within {s.within:g}: the nearest found is {deviation:.4g}{more}.",
        hint=f"{hint}allow {s.name}={_rounded_up(deviation)}, or more room to move (capacity_percent, zeros), "
        f"or keep fewer statistics.",
    )


def _rounded_up(deviation: float) -> float:
    return float(np.ceil(deviation * 1e3) / 1e3)


def _within_reach(instance: Instance, moves: Floats) -> Instance:
    """The same with bounds no wider than anything sensible: programs over directions need them finite."""
    reach = np.zeros(len(instance.cells))
    reach[instance.targets] = REACH * np.maximum(instance.above, instance.below)
    widest = float(reach.sum()) + float(np.abs(moves).max(initial=0.0))
    wide = np.maximum(np.where(reach > 0, np.maximum(reach, widest / 2), widest), np.abs(moves))
    return replace(instance, up=np.minimum(instance.up, wide), down=np.minimum(instance.down, wide))


def _forms(rows: Sequence[tuple[int, Rows]], cells: int) -> Forms:
    if not rows:
        return Forms.none(cells)
    start = np.concatenate([[0], np.cumsum(np.concatenate([part.length for _, part in rows]))])
    column = np.concatenate([part.cells for _, part in rows])
    weight = np.concatenate([part.coefficient for _, part in rows])
    return Forms(
        sparse.csr_array((weight, column, start), shape=(len(start) - 1, cells)),
        np.concatenate([part.lower - part.constant for _, part in rows]),
        np.concatenate([part.upper - part.constant for _, part in rows]),
        np.repeat([excess for excess, _ in rows], [len(part.length) for _, part in rows]).astype(np.intp),
    )


def _excess(statistics: Sequence[Statistic], *, hard: bool) -> Excess:
    """An excess per statistic; in a hard program none has any."""
    count = len(statistics)
    if hard:
        return Excess(np.zeros(count), np.zeros(count), np.zeros(count))
    price = np.array([s.price * (1.0 if s.within is None else OUTSIDE) for s in statistics])
    below = [
        s.within is None and ((isinstance(s, Curved) and not s.two_sided) or (isinstance(s, Linear) and s.largest))
        for s in statistics
    ]
    return Excess(np.where(below, FREE, 0.0), np.full(count, np.inf), price)


# From the least change to one that is good in other ways: statistics kept, another measure minimised.


def refined(
    problem: Problem, means: Means, moves: Integers, *, keep: Keep | None, tabu: Tabu | None, seed: int,
    budget: Budget,
) -> Integers:  # fmt: skip
    """Keep the statistics by linear programs, then search by the measure of a tabu search within their limits."""
    instance, budget = means.instance, budget.at_least(1.0)
    statistics = keep.wanted(problem, instance) if keep is not None and keep.beyond_mean else []
    if keep is not None and statistics:
        part = budget if tabu is None else budget.child(budget.left / 2)
        means, moves = keep_statistics(problem, keep, means, statistics, moves, budget=part, seed=seed)
        statistics = [s for s in statistics if not isinstance(s, Capacity)]
    if tabu is None:
        return moves
    _refuse_other_groups(keep, tabu)
    found = TabuSearch(problem, means, tabu, moves, budget, np.random.default_rng(seed), keep=keep).run()
    return moves if missed(statistics, found.astype(np.float64), 1e-6) else found


def _polished(
    problem: Problem, means: Means, moves: Integers, keep: Keep, statistics: Sequence[Statistic], *, budget: Budget,
    seed: int,
) -> Integers:  # fmt: skip
    """The same with small whole steps that bring back what rounding did to what is to be best, or within a limit."""
    correlation, slope, variance = (float(limit == "best") for limit in (keep.correlation, keep.slope, keep.variance))
    if keep.responses or keep.formulation == "linear" or keep.order == "last":
        return moves
    outside = bool(missed(statistics, moves.astype(np.float64)))
    if not (correlation or slope or variance or outside):
        return moves
    tabu = Tabu(
        distance=BESIDE,
        correlation=correlation,
        slope=slope,
        variance=variance,
        over=keep.over,
        iterations=0,
    )
    try:
        time = budget.at_least(LEAST_S)
        search = TabuSearch(problem, means, tabu, moves, time, np.random.default_rng(seed), keep=keep)
    except SolverFailure:  # no simple steps
        return moves
    found = search.run()
    return moves if missed(statistics, found.astype(np.float64), 1e-6) else found


def _refuse_other_groups(keep: Keep | None, tabu: Tabu) -> None:
    """Limits and measure are about the same cells: a search keeps one set of sums."""
    if keep is None or not keep.beyond_mean:
        return
    if keep.responses:
        raise InvalidOption(
            "Keep.responses cannot be combined with a tabu search.",
            hint="give Tabu.function a measure of your own.",
            about=("option", "Keep", "responses"),
        )
    if keep.over is not tabu.over and keep.over != tabu.over:
        raise InvalidOption(
            f"Keep.over is {keep.over!r}, but Tabu.over is {tabu.over!r}.",
            hint="give both the same cells.",
            about=("option", "Keep", "over"),
        )
