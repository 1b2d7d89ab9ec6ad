"""A search for a pattern: the instance, the budget, the seed, and the best pattern so far."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np

from tablesafe.core.equations import Floats, Integers, Mask
from tablesafe.methods.suppress.branch_and_cut.exact import BranchAndCut
from tablesafe.methods.suppress.branch_and_cut.targets import Targets
from tablesafe.methods.suppress.incumbent import Incumbent, Report
from tablesafe.methods.suppress.instance import Instance
from tablesafe.methods.suppress.ledger import EFFORTS, EVERYTHING, Ledger, boxed, ledger_of
from tablesafe.methods.suppress.neighbourhood import Neighbourhoods
from tablesafe.methods.suppress.sequential import clean_up, improve, protect_all
from tablesafe.methods.suppress.witnesses import Finder, Witnesses
from tablesafe.solve.highs import Model
from tablesafe.work.budget import Budget

HOTTEST = 5e-4
"""Share of the cost by which a pattern may become worse at first, on average, while it is improved."""

QUICKLY = 0.25
GRACE = 3.0
PER_TARGET = 2e-3
"""Share of the time for the quick way to a first pattern, and seconds that it has in any case: as such, per target."""
SAMPLED = 200
PROMISING = 0.9
"""Targets that show whether the quick way is better, and the share of the usual cost below which it is."""

MANAGEABLE = 30_000
"""Cells up to which an audit finds deviations that programs have found."""
SETTLED = 1e-3
"""Share of the cost that another look at all of a pattern must gain, to be worth a further one."""


class Unfinished(Exception):
    """The time was over before every sensitive cell was protected; carries what was withheld until then."""

    def __init__(self, pattern: Mask) -> None:
        super().__init__()
        self.pattern = pattern


class Search(Incumbent):
    """Everything a search for a pattern needs: programs, neighbourhoods, the seed, and the best pattern so far."""

    def __init__(
        self,
        instance: Instance,
        *,
        budget: Budget,
        seed: int,
        report: Report,
        finder: Callable[[], Finder | None] = lambda: None,
        exactly: Targets | None = None,
        group: Integers | None = None,
    ) -> None:
        super().__init__(instance, budget=budget, report=report, exactly=exactly, group=group)
        self.neighbourhoods = Neighbourhoods(instance)
        self.seed = seed
        self.random = np.random.default_rng(seed)
        self.ever_used = np.zeros(len(instance), dtype=np.bool_)
        """Cells that some deviation of a pattern used: few, and the best pattern is likely among them."""
        self._make_finder = finder
        self.exact: BranchAndCut | None = None
        """The branch and cut that was begun, with its bound and cuts."""

    @cached_property
    def solver(self) -> Model:
        """For small programs, one after another."""
        return Model.small(self.budget)

    @cached_property
    def _finder(self) -> Finder | None:
        """Made when it is needed: what is proved at once needs none."""
        return self._make_finder()

    @property
    def by_flows(self) -> bool:
        """Whether flows take the place of linear programs."""
        return self._finder is not None

    def offer(self, witnesses: Witnesses) -> None:
        """Keep a pattern if it is the best so far."""
        self.ever_used |= witnesses.ever_used
        if witnesses.cost < self.best_cost - 1e-9 or self.best is None:
            self.keep(witnesses.pattern, max(witnesses.cost, 0.0))

    def build(self, guide: Floats | Mask | None = None) -> Witnesses:
        """A safe pattern, one sensitive cell after another; `guide` are shares that a cell should cost less for."""
        cost = self.instance.cost
        if guide is not None:
            cost = cost * np.where(guide > 0.999, 1e-6, 1.001 - guide)
        witnesses = self._nobody()
        inside = None if guide is None else np.asarray(guide > 0.5)
        if not protect_all(witnesses, cost, inside=inside, stop=self.late):
            raise Unfinished(witnesses.pattern)
        return witnesses

    def build_sparing(self) -> Ledger | None:
        """Another safe pattern, in which cells withheld already cost a little, so that deviations stay short.

        It looks at a few hundred cells around each sensitive one: on sparse tables much better. None if the first
        targets show that it is not, here, or if that does not protect them all, or not soon.
        """
        targets = range(len(self.instance.level))
        ledger = ledger_of(self.instance, np.arange(len(targets)), None, self.solver)
        seconds = max(self.left * QUICKLY, GRACE + PER_TARGET * len(targets))
        failed = ledger.protect_all(targets[:SAMPLED], efforts=EVERYTHING, seconds=seconds)
        if failed or (len(targets) > SAMPLED and not ledger.cost < PROMISING * self._cost_of_first()):
            return None
        served = {target for held in ledger.deviations for target in held.served}
        rest = [target for target in targets if target not in served]
        return None if ledger.protect_all(rest, efforts=EVERYTHING, seconds=seconds) else ledger

    def build_of_boxes(self, cells: Integers | None = None) -> Ledger | None:
        """A safe pattern of boxes, in no time, with programs for the few targets without one; None if they are many.

        It protects all sensitive cells, or some.
        """
        some = np.arange(len(self.instance.level))
        some = some if cells is None else some[np.isin(self.instance.cell, cells)]
        targets = range(len(some))
        ledger = ledger_of(self.instance, some, None, self.solver, boxes=True)
        without = boxed(ledger, targets)
        if without is None or ledger.protect_all(without, efforts=EFFORTS, seconds=self.left / 2):
            return None
        return ledger

    def _cost_of_first(self) -> float:
        """What the first targets cost in the usual way."""
        witnesses = self._nobody()
        protect_all(witnesses, self.instance.cost, targets=list(range(SAMPLED)), stop=self.late)
        return witnesses.cost

    def reconsidered(self, ledger: Ledger, *, programs: bool = True) -> float:
        """Publish again what is plainly not needed, the most costly first; says what share of the cost that gains."""
        before = ledger.cost
        added = np.flatnonzero(ledger.used & ~self.instance.forced)
        for cell in added[np.argsort(-self.instance.cost[added], kind="stable")].tolist():
            if self.late():
                break
            ledger.reconsider(cell, programs=programs)
        return 1.0 - ledger.cost / max(before, 1e-300)

    def settle(self, ledger: Ledger) -> None:
        """Look again and again at all of a pattern of boxes: first by boxes alone, then by programs within it.

        Programs find deviations that lead far; in large tables an audit would look for them in vain.
        """
        for programs in (False, True) if len(self.instance) <= MANAGEABLE else (False,):
            while not self.late() and self.reconsidered(ledger, programs=programs) > SETTLED:
                self.keep(self.instance.forced | ledger.used, ledger.cost)

    def witnesses_of(self, ledger: Ledger) -> Witnesses:
        """The witnesses of a ledger."""
        witnesses = self._nobody()
        for held in ledger.deviations:
            witnesses.add(held)
        return witnesses

    def _nobody(self) -> Witnesses:
        return Witnesses(self.instance, self.neighbourhoods, self.solver, self._finder)

    def polish(self, witnesses: Witnesses, *, patience: int, seconds: float = np.inf) -> None:
        """Clean up and improve a pattern, and keep it if it is good."""
        stop = self.until(seconds)
        self.offer(witnesses)
        clean_up(witnesses, stop)
        self.offer(witnesses)
        begin, length = self.budget.spent, min(seconds, self.left)

        def heat() -> float:
            gone = (self.budget.spent - begin) / max(length, 1e-9)
            return HOTTEST * max(0.0, 1.0 - gone) if np.isfinite(length) else 0.0

        improve(witnesses, self.random, stop, patience=patience, heat=heat, offer=self.offer)
