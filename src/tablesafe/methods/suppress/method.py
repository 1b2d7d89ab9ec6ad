"""Complementary cell suppression: the method and its options."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from functools import partial
from time import monotonic
from typing import ClassVar, Literal, get_args

import numpy as np

from tablesafe.audit.audit import audit
from tablesafe.audit.respondent_knowledge import Guard
from tablesafe.audit.verdict import Possibly
from tablesafe.core.equations import Floats, Integers, Mask
from tablesafe.core.errors import InvalidOption, InvalidProblem, Setting, SolverFailure
from tablesafe.core.options import require_choice, require_number, require_whole
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release
from tablesafe.core.statuses import Scheme
from tablesafe.methods.abilities import Files, Run
from tablesafe.methods.suppress.attackers import Stage, against_all, as_repaired, prices_of
from tablesafe.methods.suppress.branch_and_cut.branching import rounded_up
from tablesafe.methods.suppress.costs import cost_of, never_free
from tablesafe.methods.suppress.explain import ask_less, freed
from tablesafe.methods.suppress.hypercubes import hypercubes_of
from tablesafe.methods.suppress.infeasible import Demand, Obstacles
from tablesafe.methods.suppress.instance import Instance
from tablesafe.methods.suppress.levels import demanded, exactly, refuse_levels_beyond_bounds
from tablesafe.methods.suppress.many_targets import first_pattern, improved
from tablesafe.methods.suppress.modular import modular
from tablesafe.methods.suppress.network import Flows
from tablesafe.methods.suppress.preferences import disturbed, keeping, mask_of, preferred
from tablesafe.methods.suppress.responses import groups_of, thinned_groups, together
from tablesafe.methods.suppress.search import Search, Unfinished
from tablesafe.methods.suppress.securing import Attackers, Securing, necessary
from tablesafe.methods.suppress.slices import by_slices
from tablesafe.methods.suppress.strategy import find
from tablesafe.methods.suppress.unseen import looked_after
from tablesafe.methods.suppress.witnesses import CannotProtect
from tablesafe.solve.hypercubes import Hypercubes
from tablesafe.solve.program import Price, Solution, SolveStatus
from tablesafe.work.budget import Budget
from tablesafe.work.stopping import heed

Algorithm = Literal["auto", "optimal", "sequential", "modular", "network", "slices"]
Unprotectable = Literal["error", "withhold totals"]
SEARCHING = 0.65
"""Share of the time for the search; the rest is for the audit, and for what it asks to repair."""
QUICKEST = "The search was given up: the pattern is the first that was found in the quickest way."
STOPPED = "The search was stopped by the user."
IMPROVING = "The search for a better pattern ended with the time limit."
AUDITED_S, RESPONDENTS_S = 2.5e-3, 4e-3
"""Seconds that are kept for the audit of each of many sensitive cells, and for what respondents learn of it."""
CLEANING = 0.1
"""Share of the search for second thoughts about a first pattern of hypercubes."""
LARGE = 12_000
"""Cells beyond which `auto` does not try to prove an optimum."""
VERY_LARGE = 100_000
"""Cells beyond which `auto` works in parts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Suppress:
    """Withhold further cells, as few or as cheap as can be, so that no sensitive cell can be derived.

    A pattern is safe when each sensitive cell can rise and fall by its protection levels in tables that agree with all
    that is published. `sequential` protects one cell after another and then improves the pattern; `optimal` also
    proves how far it is from the best; `network` is `sequential` for tables of two dimensions with at most one
    hierarchy, where flows take the place of linear programs; `modular` works subtable by subtable from the top, in
    parallel, for tables of a hundred thousand cells and more; `slices` is how three dimensions were protected before
    linear programs (Working Paper 22), and warns of what that left open; `auto` picks by size. Either way the pattern
    is audited over the whole system of linked tables and repaired until nothing is open.
    """

    name: ClassVar[str] = "suppress"
    whole_run: ClassVar[bool] = True

    algorithm: Algorithm = field(
        default="auto", metadata={"help": "auto, optimal, sequential, modular, network or slices"}
    )
    cost: str | Floats = field(
        default="problem",
        metadata={
            "help": "what a cell costs: problem (its own cost, by default its value), unit, value, count, log, "
            "distance (from the nearest sensitive cell), inverse (1/(1+value)), log_over_value, or a column"
        },
    )
    power: float = field(
        default=1.0, metadata={"help": "Box–Cox λ: costs are raised to this power, 0 means log(1+cost)"}
    )
    prefer: str | Floats | None = field(
        default=None,
        metadata={
            "help": "column with degrees of preference: each degree halves the cost of withholding a cell, each "
            "negative one doubles it",
            "example": "preference",
        },
    )
    keep: str | Mask | None = field(
        default=None,
        metadata={
            "help": "file with a pattern somebody made: it is audited and repaired, what it withholds stays withheld",
            "example": "pattern.csv",
            "file": True,
        },
    )
    clean_up: bool = field(
        default=False,
        metadata={
            "help": "publish again what the pattern `keep` withholds needlessly, the dearest first; the office's own "
            "choices (cells suppressed in the problem) stay"
        },
    )
    previous: str | Mask | None = field(
        default=None,
        metadata={
            "help": "file with last period's pattern: its cells are preferred, and how many are kept is reported",
            "example": "last.csv",
            "file": True,
        },
    )
    scheme: Scheme | None = field(
        default=None,
        metadata={
            "help": "the vocabulary of the statuses in these files; when not given, they must leave no doubt",
            "example": "sdmx-conf",
        },
    )
    previous_discount: float = field(
        default=0.5, metadata={"help": "by which share of its cost a cell is cheaper that was withheld last period"}
    )
    same_pattern: bool = field(
        default=False,
        metadata={"help": "withhold the same cells in every response variable; else what is best in each"},
    )
    margin: float = field(
        default=0.0, metadata={"help": "further protection where there is room, as a share of the levels"}
    )
    zeros: bool = field(default=False, metadata={"help": "cells of value zero may be withheld too"})
    randomise: float = field(
        default=0.0,
        metadata={
            "help": "disturb costs at random by up to this share (1e-6 only breaks ties), so that nobody who knows the "
            "algorithm can retrace its choices; needs a seed of your own, kept secret"
        },
    )
    unprotectable: Unprotectable = field(
        default="error",
        metadata={
            "help": "a cell that nothing protects while frozen cells and zeros are published: error, or withhold "
            "totals, the fewest of these that give it away, which is told"
        },
    )
    time_limit_s: float = field(
        default=60.0,
        metadata={
            "help": "end after this many seconds, with repair and audit; where that is too short for a first safe "
            "pattern, as soon as there is one"
        },
    )
    seed: int = field(default=0, metadata={"help": "seed of the random choices; equal seed, equal pattern"})
    insiders: bool = field(
        default=True,
        metadata={"help": "protect also from respondents, who know their own contributions", "hidden": True},
    )
    unions: bool = field(
        default=True,
        metadata={"help": "protect also sums of withheld cells that the release gives away", "hidden": True},
    )
    possibly: Possibly = field(
        default="open",
        metadata={"help": "close also what is possibly open, as far as withholding more can do it", "hidden": True},
    )
    coalition: int = field(
        default=1, metadata={"help": "how many respondents may put together what they know", "hidden": True}
    )
    integers: bool | None = field(
        default=None, metadata={"help": "the attacker knows that values are whole numbers", "hidden": True}
    )
    executor: Executor | None = field(
        default=None,
        repr=False,
        compare=False,
        metadata={"help": "where modular's parts are worked on: by default a pool of processes", "hidden": True},
    )
    progress: Callable[[float, float], None] | None = field(
        default=None, repr=False, compare=False, metadata={"help": "called with cost and proven bound", "hidden": True}
    )

    def __post_init__(self) -> None:
        require_choice(self, "algorithm", get_args(Algorithm))
        require_choice(self, "possibly", get_args(Possibly))
        require_choice(self, "unprotectable", get_args(Unprotectable))
        require_number(self, "time_limit_s", above=0)
        require_number(self, "power", at_least=0, at_most=10)
        require_number(self, "margin", at_least=0, at_most=10)
        require_number(self, "previous_discount", at_least=0, at_most=0.999)
        require_number(self, "randomise", at_least=0, at_most=1)
        require_whole(self, "seed", at_least=0)
        require_whole(self, "coalition", at_least=1)
        if self.clean_up and self.keep is None:
            raise InvalidOption("Suppress.clean_up needs a pattern to clean up.", hint="give one with keep.")
        if self.randomise > 0 and self.seed == 0:
            raise InvalidOption(
                "Suppress.randomise needs a seed that nobody can guess, and the default 0 is known to all.",
                hint="set seed to a number of your own, and keep it secret.",
                about=("option", "Suppress", "randomise"),
            )

    def reading(self, files: Files) -> Suppress:
        """The method with the patterns that its options name."""
        keep, previous, scheme = self.keep, self.previous, self.scheme
        if isinstance(keep, str):
            keep = files.pattern(keep, scheme=scheme, complete=False)
        if isinstance(previous, str):
            previous = files.pattern(previous, scheme=scheme, complete=False, ignore_unknown=True)
        return replace(self, keep=keep, previous=previous)

    def working(self, run: Run) -> Suppress:
        """The method with somebody to report to and to do its work, and with those to protect from."""
        return replace(
            self, progress=run.progress, executor=run.executor, insiders=run.insiders, unions=run.unions,
            possibly=run.possibly, coalition=max(self.coalition, run.coalition if run.insiders else 1),
            integers=run.integers if self.integers is None else self.integers,
        )  # fmt: skip

    def protect(self, problem: Problem) -> Release:
        """Find a pattern, and prove that it is safe before it is returned."""
        begin, budget = monotonic(), Budget(self.time_limit_s)
        kept = mask_of(problem, self.keep, "keep")
        keeping_it = keeping(problem, kept)  # says which of its cells must be published, if any
        refuse_levels_beyond_bounds(problem)
        prices: tuple[Price, ...] = ()
        if self.clean_up:
            pattern, objective, bound = self._cleaned(problem, kept, budget)
        else:
            problem = keeping_it
            pattern, objective, bound, prices = self._protected(problem, budget)
        closed = objective <= bound * (1 + 1e-9)
        solution = Solution(
            status=SolveStatus.OPTIMAL if closed else SolveStatus.FEASIBLE,
            objective=objective,
            bound=min(bound, objective),
            seconds=monotonic() - begin,
            prices=prices,
            notes=budget.given_up,
        )
        against = pattern & problem.frozen  # as the policy says
        problem = problem.replace(frozen=problem.frozen & ~against) if against.any() else problem
        return Release.from_suppression(problem, pattern, method=self.name, solution=solution)

    def _cleaned(self, problem: Problem, kept: Mask, budget: Budget) -> tuple[Mask, float, float]:
        """The given pattern, made safe where it is not, without what is not needed; no bound is looked for."""
        cost = self._costs(problem)
        instance = Instance.of(looked_after(problem), never_free(cost, ~problem.frozen)[0], zeros=True)
        securing = self._securing(problem, instance, budget, None, None)
        with heed(budget):
            safe = securing.secure(kept | instance.forced)
            pattern = securing.cleaned(safe)
        return pattern, float(cost[pattern & ~instance.forced].sum()), 0.0

    def _protected(self, problem: Problem, budget: Budget) -> tuple[Mask, float, float, tuple[Price, ...]]:
        """A safe pattern, its cost, the proven bound, and what each attacker adds to the cost.

        A cell that cannot be moved as far as was asked is asked for less, or it is explained why it cannot: only what
        goes beyond the levels can be given up, a margin, or the side that a sliding level was given.
        """
        group = groups_of(problem.table) if self.same_pattern else None
        eligible, cost = looked_after(problem), self._costs(problem)
        if group is not None:
            eligible, cost = together(eligible, cost, group)
        priced, added = never_free(cost, ~problem.frozen)
        secret = disturbed(priced, self.randomise, np.random.default_rng((self.seed, 1)))
        scale = min(1.0, float(secret.mean()))  # whole costs stay whole, tiny ones become comparable to a tolerance
        obstacles: Obstacles | None = None
        reached: dict[int, tuple[float, float]] = {}
        while True:
            asked = demanded(eligible, self.margin, reached)
            instance = Instance.of(asked, secret / scale, zeros=self.zeros)
            searching = budget.child(SEARCHING * self.time_limit_s)
            search = Search(
                instance,
                budget=searching,
                seed=self.seed,
                report=self._report(scale),
                finder=partial(self._flows, instance, searching),
                exactly=exactly(eligible, self.margin, reached, instance),
                group=group,
            )
            try:
                with heed(budget):
                    securing, found = self._found_and_kept(problem, search, group, budget)
                    stages = self._secured(search, securing, found, budget)
            except CannotProtect as failure:
                cell = int(instance.cell[failure.target])
                demand = Demand(cell, int(instance.sign[failure.target]), float(instance.level[failure.target]))
                obstacles = obstacles or Obstacles(eligible, zeros=self.zeros)
                try:
                    ask_less(eligible, obstacles, demand, reached)
                except InvalidProblem:
                    if self.unprotectable == "error":
                        raise
                    problem = freed(problem, eligible, obstacles, demand, budget)
                    eligible, obstacles = looked_after(problem), None
                continue
            bound = scale * float(search.bound) / (1 + self.randomise)  # disturbed costs are at most so much too high
            bound = rounded_up(max(bound - added, 0.0), cost[instance.live & ~instance.forced])
            pattern, prices = stages[-1].pattern, prices_of(stages, cost, instance.forced)
            return pattern, float(cost[pattern & ~instance.forced].sum()), bound, prices

    def _report(self, scale: float) -> Callable[[float, float], None]:
        """Tell the user about cost and bound, in the user's costs."""
        progress = self.progress
        return _silent if progress is None else lambda cost, bound: progress(scale * cost, scale * bound)

    def _in_parts(self, cells: int) -> bool:
        return self.algorithm == "modular" or (self.algorithm == "auto" and cells > VERY_LARGE)

    def _flows(self, instance: Instance, work: Budget) -> Flows | None:
        """Flows instead of linear programs, where the table is a network; `network` insists on it."""
        flows = None if self._in_parts(len(instance)) else Flows.of(instance, work)
        if flows is None and self.algorithm == "network":
            raise InvalidOption(
                "Suppress.algorithm is 'network', but this table is no network: that takes two dimensions, at most "
                "one of them with a hierarchy.",
                hint=(
                    Setting("algorithm", "auto"),
                    " picks one that can do it.",
                ),
                about=("option", "Suppress", "algorithm"),
            )
        return flows

    def _found_and_kept(
        self, problem: Problem, search: Search, group: Integers | None, budget: Budget
    ) -> tuple[Securing, Mask]:
        """The pattern found, and what makes it safe; that may have done so with an earlier one, to fall back on."""
        cubes = self._cubes(problem, search.instance)
        securing = self._securing(problem, search.instance, budget, cubes, group)
        if cubes is not None:
            found = self._by_cubes(problem, search, cubes)
        elif self.algorithm == "slices":
            found = self._by_slices(problem, search)
        elif self._in_parts(len(problem.table)):
            guard = Guard.of(problem) if self.insiders else None
            found = modular(
                search.instance, guard=guard, seconds=search.left, executor=self.executor, report=search.report
            )
        else:
            found = self._found(search, securing)
        if group is not None:
            found = thinned_groups(search.instance, found, group, search.late)
        return securing, found

    def _secured(self, search: Search, securing: Securing, found: Mask, budget: Budget) -> list[Stage]:
        """A safe pattern; the least costly against all attackers, where a bound was asked for.

        It is the last of several stages, one attacker more in each.
        """
        instance, others = search.instance, securing.examined
        if search.exact is None or search.best is None or search.group is not None or not others:
            safe = securing.secure(found, last=True)
            return as_repaired(found, safe, {who: securing.because.get(who) for who in others}, instance)
        safe = securing.secure(found)
        if (safe == found).all():
            cost = instance.pattern_cost(safe & ~instance.forced)
            return [Stage(who, safe, cost, search.bound) for who in ("outsiders", *others)]
        judges = {who: securing.judge(budget, unions=who == "sums") for who in others}
        stages = against_all(
            securing.problem, search, search.exact, safe, judges, coalition=self.coalition, budget=budget.child()
        )
        search.prove(stages[-1].bound)
        if stages[-1].proved:
            return stages
        pattern = securing.secure(stages[-1].pattern, last=True)
        cost = instance.pattern_cost(pattern & ~instance.forced)
        return [*stages[:-1], replace(stages[-1], pattern=pattern, cost=cost)]

    def _securing(
        self, problem: Problem, instance: Instance, budget: Budget, cubes: Hypercubes | None, group: Integers | None
    ) -> Securing:
        """What makes patterns safe from all whom the options name."""
        attackers = Attackers(
            insiders=self.insiders,
            coalition=self.coalition,
            unions=self.unions,
            integers=self.integers,
            possibly=self.possibly,
        )
        limit = necessary(budget, self.time_limit_s, len(problem.table))
        return Securing(problem, instance, attackers, budget, limit, self.executor, cubes, group)

    def _by_slices(self, problem: Problem, search: Search) -> Mask:
        """A pattern by slices, and a warning of what the audit has against it: the repair comes next."""
        found = by_slices(problem.table, search.instance, search.budget)
        release = Release.from_suppression(problem, found)
        opened = audit(problem, release, exact=False, certify=False, insiders=False, unions=False).open
        if opened:
            cells = len({opening.cell for opening in opened})
            warnings.warn(
                f"The slices protect each part of the table, but the audit of the whole finds {cells:,} sensitive "
                f"{'cell' if cells == 1 else 'cells'} open. More is withheld until nothing is.",
                stacklevel=2,
            )
        return found

    def _cubes(self, problem: Problem, instance: Instance) -> Hypercubes | None:
        """The hypercubes of a table with too many targets for a program each; None where there are few, or none."""
        return hypercubes_of(problem, len(instance.level)) if self.algorithm in {"auto", "modular"} else None

    def _by_cubes(self, problem: Problem, search: Search, cubes: Hypercubes) -> Mask:
        """A safe pattern at once by hypercubes, and cheaper ones while there is time; an interrupt keeps the best."""
        instance = search.instance
        pattern, left = first_pattern(instance, cubes, search.budget.child(CLEANING * search.budget.seconds_left))
        if left.size:
            pattern = self._with_programs(search, pattern, left)
        search.keep(pattern, instance.pattern_cost(pattern))
        audited = (AUDITED_S + RESPONDENTS_S * self.insiders) * len(problem.sensitive)
        budget = search.budget.child(max(search.budget.seconds_left - audited, 0.0))
        try:
            improved(search, list(problem.table.dimensions.values()), cubes, search.random, budget)
        except KeyboardInterrupt:
            warnings.warn(
                "Interrupted: the best pattern so far is checked and kept. Interrupt again to stop.", stacklevel=2
            )
        assert search.best is not None
        return search.best

    def _with_programs(self, search: Search, pattern: Mask, left: Integers) -> Mask:
        """The pattern with what protects the targets that no hypercube does."""
        instance = search.instance
        rest = replace(
            instance,
            forced=pattern,
            cost=np.where(pattern, 0.0, instance.cost),
            cell=instance.cell[left],
            sign=instance.sign[left],
            level=instance.level[left],
        )
        try:
            return pattern | modular(rest, seconds=0.0, executor=self.executor, report=search.report)
        except CannotProtect as failure:
            raise CannotProtect(int(left[failure.target])) from failure

    def _costs(self, problem: Problem) -> Floats:
        """What each cell costs, with all preferences."""
        cost = preferred(problem, cost_of(problem, self.cost, self.power), self.prefer)
        return np.where(mask_of(problem, self.previous, "previous"), cost * (1 - self.previous_discount), cost)

    def _found(self, search: Search, securing: Securing) -> Mask:
        """The best pattern, when the time is over; the quickest, where it was too short for a first one."""
        try:
            self._search(search, securing)
        except Unfinished:
            pass
        except SolverFailure as failure:
            if search.best is None:
                raise
            warnings.warn(f"{failure} The best pattern so far is checked and kept.", stacklevel=2)
        except KeyboardInterrupt:
            search.budget.stop()
        if search.budget.stopped:
            warnings.warn(
                "Interrupted: the best pattern so far is checked and kept. Interrupt again to stop.", stacklevel=2
            )
        if search.best is None:
            search.budget.give_up(QUICKEST)
            return modular(search.instance, seconds=0.0, executor=self.executor, report=search.report)
        if not search.closed() and search.budget.over:
            search.budget.give_up(STOPPED if search.budget.stopped else IMPROVING)
        return search.best

    def _search(self, search: Search, securing: Securing) -> None:
        """Look for a pattern; only small tables, and those who ask for it, get a proven bound."""
        small = len(search.instance) <= LARGE
        find(
            search,
            prove=self.algorithm == "optimal" or (self.algorithm == "auto" and small),
            insist=self.algorithm == "optimal",
            secure=securing.secure,
        )


def _silent(cost: float, bound: float) -> None:
    """Tell nobody."""
