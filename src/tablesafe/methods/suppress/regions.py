"""Large neighbourhood search by branch and cut: what is withheld around a cell is chosen anew, exactly; all else stays.

A pattern is the union of deviations, and only some of them use a cell of a region. The targets that these protect are
all that is asked about; what the other deviations use is withheld already, and costs nothing. So a region is a small
instance of its own, whose least costly pattern replaces what was there: it takes milliseconds, and knows what is
withheld together, which trying one cell after another does not.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from tablesafe.core.equations import Floats, Integers, Mask
from tablesafe.methods.suppress.branch_and_cut.exact import BranchAndCut
from tablesafe.methods.suppress.deviations import Deviation
from tablesafe.methods.suppress.incumbent import Incumbent, Stop
from tablesafe.methods.suppress.instance import Instance
from tablesafe.methods.suppress.pattern import CannotProtect, Pattern, Trial
from tablesafe.methods.suppress.search import Search
from tablesafe.solve.neighbourhood import rings
from tablesafe.work.budget import Budget

WANTED = 1e-6
"""Share of a cell from which on a relaxation wants it withheld."""
FIRST, LEAST, GROWING = 150.0, 30.0, 1.25
"""Cells of the first region that is chosen anew, of the smallest, and how regions grow and shrink."""
REGION_S, SOON = 1.5, 0.3
"""Seconds of work that a region may take, and share of them in which one is done that may be larger next time."""
IN_VAIN, UNDONE = 40, 8
"""Regions in vain after which there are no more; and as how many one counts that was not done in its time (hier13: none
of 60 to 150 cells is)."""
AREA = 1_500
"""Cells around a region that may help, beside those that its deviations use."""
MARGIN = 1e-9
"""Relative saving that counts."""


@dataclass(eq=False)
class Regions:
    """A safe pattern with its deviations, of which regions are chosen anew."""

    search: Search
    pattern: Pattern
    size: float = field(default_factory=lambda: FIRST)
    done: bool = field(default=True, init=False)
    """Whether the last region was chosen in its time."""

    @classmethod
    def of(cls, search: Search, stop: Stop) -> Regions | None:
        """The best pattern of a search with deviations that protect all targets; None where these are not found."""
        if search.best is None or search.exactly is not None or search.group is not None:
            return None
        pattern = Pattern(search.instance)
        cells = np.flatnonzero((search.best | search.instance.forced) & search.instance.live)
        part = search.instance.only(cells, forced=np.ones_like(search.best))
        for deviation in _protecting(part, search.budget, stop):
            pattern.add(replace(deviation, cells=cells[deviation.cells]))
        return None if len(pattern.open) else cls(search, pattern)

    def improve(self, likely: Mask, stop: Stop) -> None:
        """Choose one region after another anew, of `likely` cells and those withheld, until nothing is gained."""
        instance, idle, whole = self.search.instance, 0, False
        while idle < IN_VAIN and not (whole or stop() or self.search.settled()):
            free = (likely | self.pattern.used) & instance.live & ~instance.forced
            if not len(self.pattern.complementary):
                return
            whole = int(free.sum()) <= self.size
            if self._anew(free if whole else self._region(free), stop):
                idle = 0
            else:
                idle += 1 if self.done else UNDONE

    def _region(self, free: Mask) -> Mask:
        """So many cells of some, around one of the pattern: ring by ring, of the last one by lot."""
        instance, random, left = self.search.instance, self.search.random, int(self.size)
        chosen = self.pattern.complementary
        weight = np.sqrt(instance.cost[chosen]) + 1e-12
        centre = random.choice(chosen, p=weight / weight.sum())
        region = np.zeros(len(instance), dtype=np.bool_)
        region[centre] = True
        for some in self._around(region):
            some = some[free[some]]
            some = some if len(some) <= left else random.choice(some, left, replace=False)
            region[some] = True
            left -= len(some)
            if left <= 0:
                break
        return region

    def _around(self, region: Mask) -> Iterator[Integers]:
        instance = self.search.instance
        return (ring for ring, _ in rings(instance.rows, instance.columns, np.flatnonzero(region), instance.live))

    def _anew(self, region: Mask, stop: Stop) -> bool:
        """Choose a region anew, and keep what is cheaper; whether it is."""
        search, pattern, instance = self.search, self.pattern, self.search.instance
        self.done = True
        names = pattern.relying_on(np.flatnonzero(region & pattern.used).tolist())
        if not names:
            return False
        before, old = instance.pattern_cost(pattern.withheld), pattern.withheld
        trial = Trial(pattern, names)
        kept, dropped = old & ~region | instance.forced, np.zeros(len(instance), dtype=np.bool_)
        for each in trial.dropped:
            dropped[each.cells] = True
        area = region | dropped
        some = AREA
        for ring in self._around(region):
            if some <= 0:
                break
            area[ring[kept[ring]][:some]] = True
            some -= len(ring)
        cells = np.flatnonzero(area & instance.live)
        targets = trial.targets
        part = instance.withholding(kept).only(cells, targets=targets)
        found = self._chosen(part, old[cells], stop)
        if found is not None:
            for each in found:
                pattern.add(replace(each, cells=cells[each.cells], served=targets[each.served]))
            cost = instance.pattern_cost(pattern.withheld)
            if not (pattern.by[targets] < 0).any() and cost < before * (1 - MARGIN):
                search.ever_used |= pattern.used
                if cost < search.best_cost * (1 - MARGIN):
                    search.keep(pattern.withheld, cost)
                return True
        trial.undo()
        return False

    def _chosen(self, part: Instance, old: Mask, stop: Stop) -> list[Deviation] | None:
        """Deviations of the least costly pattern of a region; None where the old one is as good as that."""
        budget = self.search.budget.child(work=REGION_S)
        incumbent = Incumbent(part, budget=budget, report=_silent)
        cost = part.pattern_cost(old | part.forced)
        incumbent.keep(old | part.forced, cost)
        try:
            BranchAndCut(incumbent).advance(lambda: budget.over or stop())
        except CannotProtect:  # by a hair: rounding, where rooms are just enough
            return None
        self.done = incumbent.closed()
        if not self.done:
            self.size = max(self.size / GROWING, LEAST)
        elif budget.spent < SOON * REGION_S:
            self.size = min(self.size * GROWING, len(self.search.instance))
        if incumbent.best is None or incumbent.best_cost >= cost * (1 - MARGIN):
            return None
        chosen = np.flatnonzero(incumbent.best & part.live)
        own = part.only(chosen, forced=np.ones(len(part), dtype=np.bool_))
        return [replace(each, cells=chosen[each.cells]) for each in _protecting(own, budget, stop)]


def improved_in_regions(search: Search, shares: Floats | None, *, seconds: float) -> bool:
    """Choose the best pattern anew, region by region; whether it became better.

    Regions are of cells that it withholds, that a relaxation wants, or that searches have used.
    """
    before, stop = search.best_cost, search.until(seconds)
    regions = Regions.of(search, stop)
    if regions is not None:
        likely = search.ever_used if shares is None else search.ever_used | (shares > WANTED)
        regions.improve(likely, stop)
    return search.best_cost < before


def _protecting(instance: Instance, budget: Budget, stop: Stop) -> tuple[Deviation, ...]:
    """Deviations of an instance of which all is withheld."""
    whole = np.ones(len(instance), dtype=np.bool_)
    incumbent = Incumbent(instance, budget=budget, report=_silent)
    return BranchAndCut(incumbent).deviations(whole, stop)


def _silent(cost: float, bound: float) -> None:
    """Tell nobody."""
