"""A search for a pattern: the instance, the budget, the seed, and the best pattern so far."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np

from tablesafe.audit.exact import ExactMove
from tablesafe.core.equations import Floats, Integers, Mask
from tablesafe.methods.suppress.branch_and_cut.exact import BranchAndCut
from tablesafe.methods.suppress.branch_and_cut.targets import Targets
from tablesafe.methods.suppress.deviations import DeviationFinder
from tablesafe.methods.suppress.hypercube_method import HypercubeMethod
from tablesafe.methods.suppress.incumbent import Incumbent, Report, Stop
from tablesafe.methods.suppress.instance import Instance
from tablesafe.methods.suppress.large_neighbourhood_search import clean_up, improve
from tablesafe.methods.suppress.parts import reconsider
from tablesafe.methods.suppress.pattern import CannotProtect, Pattern
from tablesafe.methods.suppress.sequential import RARELY, Sequential, boxed
from tablesafe.solve.highs import Model
from tablesafe.solve.hypercubes import Hypercubes
from tablesafe.work.budget import Budget

HOTTEST = 5e-4
"""Share of the cost by which a pattern may become worse at first, on average, while it is improved."""

GRACE, PER_TARGET = 3.0, 2e-3
"""Seconds of work that a first pattern has in any case: as such, per target."""

MANAGEABLE = 30_000
"""Cells up to which an audit finds deviations that programs have found."""
SECOND_THOUGHTS = 0.02
"""Share of the time for second thoughts about a pattern of hypercubes that is only there to fall back on."""
NEARLY, PROMPTLY = 0.985, 0.05
"""Share of the cost that the bound must have reached, and share of the time after which that ends the search, where
respondents or sums come after it: what they cost is ten times as much (the demo: 0.6% and 25%)."""
SETTLED = 1e-3
"""Share of the cost that another look at all of a pattern must gain, to be worth a further one."""


class Unfinished(Exception):
    """The time was over before every sensitive cell was protected; carries what was withheld until then."""

    def __init__(self, pattern: Mask) -> None:
        super().__init__()
        self.pattern = pattern


class Search(Incumbent):
    """Everything a search for a pattern needs: programs, the seed, and the best pattern so far."""

    def __init__(
        self,
        instance: Instance,
        *,
        budget: Budget,
        seed: int,
        report: Report,
        flows: Callable[[], DeviationFinder | None] = lambda: None,
        hypercubes: Callable[[], Hypercubes | None] = lambda: None,
        exactly: Targets | None = None,
        group: Integers | None = None,
        others: bool = False,
    ) -> None:
        super().__init__(instance, budget=budget, report=report, exactly=exactly, group=group)
        self.seed, self._others, self._whole = seed, others, budget.work_left
        self.random = np.random.default_rng(seed)
        self.ever_used = np.zeros(len(instance), dtype=np.bool_)
        """Cells that some deviation of a pattern used: few, and the best pattern is likely among them."""
        self.moves: list[ExactMove] = []
        self.moved: Mask | None = None
        """Deviations of programs that moved many targets at once, by which the last pattern of theirs is safe; and that
        pattern."""
        self.slow = False
        """Whether there is no time for programs for single targets."""
        self._make_flows, self._make_hypercubes = flows, hypercubes
        self.exact: BranchAndCut | None = None
        """The branch and cut that was begun, with its bound and cuts."""

    @cached_property
    def solver(self) -> Model:
        """For small programs, one after another."""
        return Model.small(self.budget)

    @cached_property
    def _flows(self) -> DeviationFinder | None:
        """Made when it is needed: what is proved at once needs none."""
        return self._make_flows()

    @property
    def by_flows(self) -> bool:
        """Whether flows take the place of linear programs."""
        return self._flows is not None

    def nobody(self) -> Sequential:
        """An engine that has protected nobody yet: by flows where the table is a network, else by programs."""
        if self._flows is None:
            return Sequential.by_programs(self.instance, None, self.solver)
        return Sequential(Pattern(self.instance), self._flows)

    def offer(self, engine: Sequential, *, tried: bool = True) -> None:
        """Keep a pattern if it is the best so far; others are looked for among what was `tried` for it, or is in it."""
        pattern = engine.pattern
        self.ever_used |= pattern.ever_used if tried else pattern.used
        if pattern.cost < self.best_cost - 1e-9 or self.best is None:
            self.keep(pattern.withheld, max(pattern.cost, 0.0))

    def settled(self) -> bool:
        """Whether it is over: proved, or so near to it that the `others` who are asked about need the time more."""
        if not self._others or self.best is None or self.bound < NEARLY * self.best_cost:
            return self.closed()
        return self.closed() or self.left < (1 - PROMPTLY) * self._whole

    def build(self, guide: Floats | Mask | None = None, *, grace: bool = False) -> Sequential:
        """A safe pattern, one sensitive cell after another; `guide` are shares that a cell should cost less for.

        With `grace` it has some time though there is none: without a first pattern there is nothing to improve.
        """
        engine, cost, first = self.nobody(), None, None
        if guide is not None:
            cost = self.instance.cost * np.where(guide > 0.999, 1e-6, 1.001 - guide)
            first = np.asarray(guide > 0.5)
        spent = self._spent(GRACE + PER_TARGET * len(self.instance.level) if grace else 0.0)
        with engine.pattern.charging(cost):
            try:
                left = engine.protect_all(first=first, insist=True, stop=lambda: self.late() and spent())
            except CannotProtect:
                if not self.late():
                    raise
                raise Unfinished(engine.pattern.withheld) from None  # a program that had no time says nothing
            if left:
                raise Unfinished(engine.pattern.withheld)
        return engine

    def build_of_boxes(self, cells: Integers | None = None, *, rarely: float = RARELY) -> Sequential | None:
        """A safe pattern of boxes, in no time, with programs for the few targets without one; None if they are many.

        It protects all sensitive cells, or some. Many are more than that share.
        """
        some = np.arange(len(self.instance.level))
        some = some if cells is None else some[np.isin(self.instance.cell, cells)]
        engine = Sequential.by_programs(self.instance.asking(some), None, self.solver, boxes=True)
        without = boxed(engine, range(len(some)), rarely)
        if without is None or engine.protect_all(without, stop=self._spent(self.left / 2)):
            return None
        return engine

    def of_hypercubes(self, cells: Integers) -> Mask | None:
        """A safe pattern of hypercubes for some sensitive cells, in no time; None where some have none."""
        cubes = self._make_hypercubes()
        if cubes is None:
            return None
        method = HypercubeMethod(self.instance.asking(np.flatnonzero(np.isin(self.instance.cell, cells))), cubes)
        method.protect_all(self.late)
        if len(method.failed):
            return None
        method.clean_up(self.until(self.left * SECOND_THOUGHTS), lambda cost: None)
        return method.pattern

    def at_least(self) -> Budget:
        """The budget, or as much as a first pattern has in any case, which ends when the user stops."""
        enough = self.budget.at_least(GRACE + PER_TARGET * len(self.instance.level))
        if enough is not self.budget:
            enough.hurry(self.budget, 0.0)
        return enough

    def _spent(self, seconds: float) -> Stop:
        """A clock that rings after so much work, whatever else is over: what is begun so is all there is."""
        work, end = self.solver.work, self.solver.work.spent + seconds
        return lambda: work.spent > end

    def reconsidered(self, engine: Sequential, *, boxes: bool = False, within: bool = True) -> float:
        """Publish again what is plainly not needed, the most costly first; says what share of the cost that gains."""
        pattern = engine.pattern
        before = pattern.cost
        for cell in pattern.dearest_first().tolist():
            if self.late():
                break
            reconsider(engine, cell, boxes=boxes, within=within)
        return 1.0 - pattern.cost / max(before, 1e-300)

    def settle(self, engine: Sequential) -> None:
        """Look again and again at all of a pattern of boxes: first by boxes alone, then by programs within it.

        Programs find deviations that lead far; in large tables an audit would look for them in vain.
        """
        for within in (False, True) if len(self.instance) <= MANAGEABLE else (False,):
            while not self.late() and self.reconsidered(engine, boxes=True, within=within) > SETTLED:
                self.keep(engine.pattern.withheld, engine.pattern.cost)

    def polish(self, engine: Sequential, *, patience: int, seconds: float = np.inf) -> None:
        """Clean up and improve a pattern, and keep it if it is good."""
        stop = self.until(seconds)
        self.offer(engine)
        clean_up(engine, stop)
        self.offer(engine)
        begin, length = self.budget.spent, min(seconds, self.left)

        def heat() -> float:
            gone = (self.budget.spent - begin) / max(length, 1e-9)
            return HOTTEST * max(0.0, 1.0 - gone) if np.isfinite(length) else 0.0

        improve(engine, self.random, stop, patience=patience, heat=heat, offer=self.offer)
