"""Complementary cell suppression: the one way from a problem to a pattern that is safe, whatever was asked for."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from time import monotonic

import numpy as np

from tablesafe.audit.audit import audit, knows_whole_numbers
from tablesafe.audit.doubts import Listed
from tablesafe.audit.exact import ExactMove
from tablesafe.audit.respondent_knowledge import Guard, Knowledge
from tablesafe.audit.system import System
from tablesafe.core.equations import Floats, Integers, Mask
from tablesafe.core.errors import InvalidOption, InvalidProblem, OutOfTime, Setting, SolverFailure
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release
from tablesafe.methods.suppress.attackers import Stage, against_all, as_repaired, prices_of
from tablesafe.methods.suppress.branch_and_cut.attacker import Move
from tablesafe.methods.suppress.branch_and_cut.branching import rounded_up
from tablesafe.methods.suppress.branch_and_cut.exact import FEW
from tablesafe.methods.suppress.costs import cost_of, never_free
from tablesafe.methods.suppress.explain import ask_less, freed
from tablesafe.methods.suppress.flow import Flows
from tablesafe.methods.suppress.hypercube_method import hypercubes_of, too_many
from tablesafe.methods.suppress.infeasible import Demand, Obstacles
from tablesafe.methods.suppress.instance import Instance, reported_zeros
from tablesafe.methods.suppress.levels import demanded, exactly, looked_after, refuse_levels_beyond_bounds
from tablesafe.methods.suppress.many_targets import (
    by_many_at_once,
    convincing_patterns,
    first_pattern,
    improved,
    improved_for_all,
    moves_within,
    prove_early,
)
from tablesafe.methods.suppress.modular import modular
from tablesafe.methods.suppress.null_vectors import unbounded
from tablesafe.methods.suppress.pattern import CannotProtect
from tablesafe.methods.suppress.preferences import disturbed, keeping, mask_of, preferred
from tablesafe.methods.suppress.responses import groups_of, thinned_groups, together
from tablesafe.methods.suppress.search import Search, Unfinished
from tablesafe.methods.suppress.securing import Securing, necessary
from tablesafe.methods.suppress.slices import by_slices
from tablesafe.methods.suppress.strategy import find, go_on
from tablesafe.methods.suppress.suppress import Suppress
from tablesafe.solve.hypercubes import Hypercubes
from tablesafe.solve.program import Price, Solution, SolveStatus
from tablesafe.work.budget import Budget, worked
from tablesafe.work.run import Run
from tablesafe.work.stopping import heed

SEARCHING, AT_MOST = 0.65, 0.9
"""Share of the time for the search before anything is known of the audit, and of what that asks to repair; and the most
that it has, once a pattern was made safe and that took little."""
QUICKEST = "The search was given up: the pattern is the first that was found in the quickest way."
BY_CUBES = (
    "Hypercubes, the quickest way, are all that there was time for: the pattern may withhold far more than is needed."
)
ZEROS = "Cells of value zero that have contributors may be withheld too: there was no other way."
STOPPED = "The search was stopped by the user."
IMPROVING = "The search for a better pattern ended with the time limit."
AUDITED_S, ALL_AUDITED_S, SECURING = 2e-3, 4e-3, 1.5
"""Seconds that are kept for making a better pattern safe: for each of many sensitive cells, where the search tells by
which deviations it is safe, and from respondents where it does not; and how many times what it took for the first."""
FOR_ALL_S = 0.004
"""Seconds for each target without which programs that convince every respondent do not get to the end: what they leave
open, hypercubes close at several times the cost (20,000 firms: 20,000 targets in 100 s of two cores)."""
SUGGESTING = 0.5
"""Share of the time left for deviations by which a pattern is safe, where an audit takes long to find them."""
SOON_S, SOON = 0.5, 0.5
"""Seconds, and share of the limit, in which a cheaper pattern must be seen to be safe where there is one to fall back
on: the audit that decides will take as long again."""
CLEANING, CLEANING_ALL, A_SECOND = 0.1, 0.3, 1.0
"""Share of the search for second thoughts about a first pattern of hypercubes, and share of all that is left, but at
least a second, for one that convinces every respondent: it gains most by them."""
SEARCHED_S = 1e-3
"""Seconds for each target below which no search comes to an end."""
HASTY_S, SMALL = 2.0, 2_000
"""Seconds below which a first pattern may be a poor one, and cells up to which another is made at once beside it."""
TOGETHER = 60_000
"""Cells up to which one program moves all targets that no hypercube protects. Beyond, it grows with the whole table,
though they are few: 2 of 111,822 targets in 116,627 cells took 53 s of CPU, and were protected as it was."""
LARGE = 12_000
"""Cells beyond which `auto` does not try to prove an optimum."""
VERY_LARGE = 100_000
"""Cells beyond which `auto` works in parts."""


@dataclass(eq=False)
class Suppression:
    """One search for a pattern: what was asked for, and how to go about it."""

    options: Suppress
    run: Run
    seconds: float = field(init=False)

    def __post_init__(self) -> None:
        self.seconds = self.run.seconds(self.options.time_limit_s)

    def release(self, problem: Problem) -> Release:
        """Find a pattern, and prove that it is safe before it is returned."""
        begin, budget = monotonic(), self.run.within(self.seconds)
        kept = mask_of(problem, self.options.keep, "keep")
        problem = self._knowing_zeros(problem, kept)
        keeping_it = keeping(problem, kept)  # says which of its cells must be published, if any
        refuse_levels_beyond_bounds(problem)
        prices: tuple[Price, ...] = ()
        if self.options.clean_up:
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
        return Release.from_suppression(problem, pattern, method=self.options.name, solution=solution)

    def _knowing_zeros(self, problem: Problem, kept: Mask) -> Problem:
        """The problem with what everybody knows of the office's practice: that it never withholds a zero, or may."""
        if not knows_whole_numbers(problem.table, self.run.attackers.integers):
            return problem
        withheld = (problem.sensitivity.mask | problem.suppressed | kept) & ~problem.withheld
        may = self.options.zeros and problem.shows_zeros is None
        if may or problem.shows_zeros is False or bool((withheld & (problem.table.integers == 0)).any()):
            return problem.replace(shows_zeros=False)
        return problem if self.options.zeros else problem.with_zeros_shown

    def _cleaned(self, problem: Problem, kept: Mask, budget: Budget) -> tuple[Mask, float, float]:
        """The given pattern, made safe where it is not, without what is not needed; no bound is looked for."""
        cost, reached = self._costs(problem), dict[int, tuple[float, float]]()
        while True:
            eligible = looked_after(problem)
            asked = demanded(eligible, 0.0, reached)
            zeros = not problem.shows_zeros
            instance = Instance.of(asked, never_free(cost, ~problem.frozen)[0], zeros=zeros)
            securing = self._securing(problem, instance, budget, None, None)
            try:
                with heed(budget):
                    pattern = securing.cleaned(securing.secure(kept | instance.forced))
            except CannotProtect as failure:
                demand, obstacles = Demand.of(instance, failure.target), Obstacles(eligible, zeros=zeros)
                try:
                    ask_less(eligible, obstacles, demand, reached)
                except InvalidProblem:
                    if self.options.unprotectable != "withhold totals":
                        raise
                    problem = freed(problem, eligible, obstacles, demand, budget)
                continue
            return pattern, float(cost[pattern & ~instance.forced].sum()), 0.0

    def _protected(self, problem: Problem, budget: Budget) -> tuple[Mask, float, float, tuple[Price, ...]]:
        """A safe pattern, its cost, the proven bound, and what each attacker adds to the cost.

        A cell that cannot be moved as far as was asked is asked for less, or it is explained why it cannot: only what
        goes beyond the levels can be given up, a margin, or the side that a sliding level was given.
        """
        group = groups_of(problem.table) if self.options.same_pattern else None
        eligible, cost = looked_after(problem), self._costs(problem)
        if group is not None:
            eligible, cost = together(eligible, cost, group)
        priced, added = never_free(cost, ~problem.frozen)
        secret = disturbed(priced, self.options.randomise, np.random.default_rng((self.options.seed, 1)))
        scale = min(1.0, float(secret.mean()))  # whole costs stay whole, tiny ones become comparable to a tolerance
        obstacles: Obstacles | None = None
        reached: dict[int, tuple[float, float]] = {}
        zeros: bool | Mask = self.options.zeros
        while True:
            asked = demanded(eligible, self.options.margin, reached)
            instance = Instance.of(asked, secret / scale, zeros=zeros)
            searching = budget.child(SEARCHING * self.seconds)
            securing = self._securing(problem, instance, budget, self._cubes(problem, instance), group)
            search = Search(
                instance,
                budget=searching,
                seed=self.options.seed,
                report=self._report(scale, added),
                flows=partial(self._flows, instance, searching),
                hypercubes=partial(hypercubes_of, problem),
                others=bool(securing.examined),
                exactly=exactly(eligible, self.options.margin, reached, instance),
                group=group,
            )
            securing.told = partial(_tell, search)
            try:
                with heed(budget):
                    found = self._found_and_kept(problem, search, securing)
                    stages = self._secured(search, securing, found, budget)
            except CannotProtect as failure:
                if budget.stopped:  # perhaps for want of time
                    found = securing.kept()
                    stages = as_repaired(found, found, dict.fromkeys(securing.examined), instance)
                    return self._told(search, stages, scale, added, cost)
                demand = Demand.of(instance, failure.target)
                obstacles = obstacles or Obstacles(eligible, zeros=zeros)
                try:
                    ask_less(eligible, obstacles, demand, reached)
                except InvalidProblem:
                    reported = reported_zeros(problem)
                    if zeros is False and reported.any():
                        zeros, obstacles = reported, None
                        budget.give_up(ZEROS)
                        continue
                    if self.options.unprotectable != "withhold totals":
                        raise
                    problem = freed(problem, eligible, obstacles, demand, budget)
                    eligible, obstacles = looked_after(problem), None
                continue
            return self._told(search, stages, scale, added, cost)

    def _told(
        self, search: Search, stages: list[Stage], scale: float, added: float, cost: Floats
    ) -> tuple[Mask, float, float, tuple[Price, ...]]:
        """The last pattern, with cost, bound and prices in the user's costs."""
        instance = search.instance
        bound = self._undisturbed(scale * float(search.bound), added)
        bound = rounded_up(bound, cost[instance.live & ~instance.forced])
        pattern, prices = stages[-1].pattern, prices_of(stages, cost, instance.forced)
        return pattern, float(cost[pattern & ~instance.forced].sum()), bound, prices

    def _report(self, scale: float, added: float) -> Callable[[float, float], None]:
        """Tell the user about cost and bound, in the user's costs; those that were disturbed are at most as told."""
        progress = self.run.progress
        if progress is None:
            return _silent
        return lambda cost, bound: progress(scale * cost, self._undisturbed(scale * bound, added))

    def _undisturbed(self, bound: float, added: float) -> float:
        """What a bound on disturbed costs says of the user's own: those are too high by up to a share, and by `added`
        where nothing may be free."""
        return max(bound / (1 + self.options.randomise) - added, 0.0)

    def _in_parts(self, cells: int) -> bool:
        return self.options.algorithm == "modular" or (self.options.algorithm == "auto" and cells > VERY_LARGE)

    def _flows(self, instance: Instance, work: Budget) -> Flows | None:
        """Flows instead of linear programs, where the table is a network; `network` insists on it."""
        flows = None if self._in_parts(len(instance)) else Flows.of(instance, work)
        if flows is None and self.options.algorithm == "network":
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

    def _found_and_kept(self, problem: Problem, search: Search, securing: Securing) -> Mask:
        """The pattern found; an earlier one may have been made safe, to fall back on."""
        group = search.group
        if securing.cubes is not None:
            found = self._by_cubes(problem, search, securing.cubes, securing)
        elif self.options.algorithm == "slices":
            found = self._by_slices(problem, search)
        elif self._in_parts(len(problem.table)):
            guard = Guard.of(problem) if self.run.attackers.insiders else None
            found = modular(
                search.instance, guard=guard, seconds=search.left, executor=self.run.workers, report=search.report
            )
        else:
            found = self._found(search, securing)
        if group is not None:
            found = thinned_groups(search.instance, found, group, search.late)
        return found

    def _secured(self, search: Search, securing: Securing, found: Mask, budget: Budget) -> list[Stage]:
        """A safe pattern; the least costly against all attackers, where a bound was asked for.

        It is the last of several stages, one attacker more in each.
        """
        instance, others = search.instance, securing.examined
        _suggest(search, securing, found)
        if search.exact is not None and search.best is found and int(found.sum()) <= FEW:
            with suppress(SolverFailure):  # they are suggestions: without them the audit looks for its own
                securing.suggest(_whole_moves(search.exact.witnesses(found)))
        if search.exact is None or search.best is None or search.group is not None or not others:
            safe = securing.secure(found, last=True)
            if securing.cubes is not None and others:
                safe = securing.published_again()
            found = found if securing.origin is None else securing.origin
            return as_repaired(found, safe, {who: securing.because.get(who) for who in others}, instance)
        safe = securing.secure(found)
        if (safe == found).all():
            cost = instance.pattern_cost(safe & ~instance.forced)
            return [Stage(who, safe, cost, search.bound) for who in ("outsiders", *others)]
        judges = {who: securing.judge(budget, unions=who == "sums") for who in others}
        stages = against_all(
            securing.problem,
            search,
            search.exact,
            safe,
            judges,
            coalition=self.run.attackers.coalition,
            budget=budget.child(max(budget.left - SECURING * securing.took, 0.0)),
        )
        last = stages[-1]
        search.prove_elsewhere(last.bound)
        if last.proved:
            return stages
        budget.give_up(STOPPED if budget.stopped else IMPROVING)
        pattern = securing.secure(last.pattern)
        if last.nearly is not None:
            pattern = securing.secure(last.nearly)
        cost = instance.pattern_cost(pattern & ~instance.forced)
        return [*stages[:-1], replace(last, pattern=pattern, cost=cost)]

    def _securing(
        self, problem: Problem, instance: Instance, budget: Budget, cubes: Hypercubes | None, group: Integers | None
    ) -> Securing:
        """What makes patterns safe from all whom the options name."""
        limit = necessary(budget, self.seconds, problem.table)
        return Securing(problem, instance, self.run, budget, limit, cubes, group)

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
        """The hypercubes of a table with too many targets for a program each; None where there are few, or none.

        Who asks for a search by name gets them only where the time is too short for it by far.
        """
        targets = len(instance.level)
        named = self.options.algorithm in {"optimal", "sequential"} and self.seconds < SEARCHED_S * targets
        if self.options.algorithm not in {"auto", "modular"} and not named:
            return None
        return hypercubes_of(problem) if too_many(targets, self.seconds) else None

    def _by_cubes(self, problem: Problem, search: Search, cubes: Hypercubes, securing: Securing) -> Mask:
        """A safe pattern at once by hypercubes, and cheaper ones while there is time; an interrupt keeps the best.

        The first is made safe from everybody before it is improved: what that takes, it will take again.
        """
        instance, begin = search.instance, worked()
        listed = self._listed(problem, instance)
        again = AUDITED_S * len(problem.sensitive)
        long = listed is not None and securing.budget.left - again >= FOR_ALL_S * len(instance.level)
        long &= not unbounded(problem, instance)  # there null vectors tell more, and sooner
        if self.run.attackers.insiders and not long:
            again = ALL_AUDITED_S * len(problem.sensitive)
        for pattern, left in self._first_by_cubes(problem, search, cubes, securing, brief=long):
            first = securing.best is None
            budget = securing.limit if first else securing.budget
            try:
                pattern = self._with_programs(search, pattern, left, budget) if left.size else pattern
            except OutOfTime:
                return securing.kept()
            except CannotProtect:
                if first or not budget.over:
                    raise
                break  # for want of time
            begin = worked()
            securing.secure(pattern, within=securing.budget.child(SOON_S + SOON * self.seconds))
            if securing.budget.over:  # a cheaper one would be found after the limit, and made safe after that
                break
        dimensions, workers = list(problem.table.dimensions.values()), self.run.workers
        again = max(SECURING * (worked() - begin), again)
        if listed is not None:  # what convinces everybody is better than what is safe now, not than what was before
            prove_early(search, dimensions, cubes, securing.budget)
            pattern = securing.kept() if long else securing.published_again()
        search.keep(pattern, instance.pattern_cost(pattern))
        budget = securing.budget.child(max(securing.budget.left - again, 0.0))
        try:
            if listed is None:
                securing.suggest(improved(search, dimensions, cubes, search.random, budget, workers))
            elif long:
                guard = Guard.of(problem)
                found = improved_for_all(search, listed, guard, dimensions, cubes, search.random, budget, workers)
                securing.suggest(found)
        except KeyboardInterrupt:
            warnings.warn(
                "Interrupted: the best pattern so far is checked and kept. Interrupt again to stop.", stacklevel=2
            )
        assert search.best is not None
        if search.best_cost >= instance.pattern_cost(pattern):
            securing.budget.give_up(BY_CUBES)
        elif budget.over:
            securing.budget.give_up(IMPROVING)
        return search.best

    def _listed(self, problem: Problem, instance: Instance) -> Listed | None:
        """What single respondents know of each cell that may be withheld; None where nobody asks for them."""
        if not self.run.attackers.insiders or self.run.attackers.coalition > 1:
            return None
        everything = Release.from_suppression(problem, (instance.live & ~problem.frozen) | instance.forced)
        system = System.of(problem, everything)
        known = Knowledge.of(system, 1)
        return None if known is None else Listed.of(problem, known).among(system.cells, len(problem.table))

    def _first_by_cubes(
        self, problem: Problem, search: Search, cubes: Hypercubes, securing: Securing, *, brief: bool
    ) -> Iterator[tuple[Mask, Integers]]:
        """First patterns, the last to be improved, and the targets that no hypercube protects.

        Where respondents are asked, the first convinces all of them as it is: to make another safe may take longer than
        there is time. With `brief` it is the only one, for there is time for what is much better.
        """
        cleaning = CLEANING * SEARCHING * self.seconds
        guard = Guard.of(problem) if self.run.attackers.insiders else None
        if guard is None:
            yield first_pattern(search.instance, cubes, search.budget.child(cleaning))
            return
        budget = securing.budget
        patterns = convincing_patterns(
            search.instance, cubes, guard, lambda: budget.child(max(CLEANING_ALL * budget.left, A_SECOND))
        )
        yield from islice(patterns, 1 if brief else None)

    def _with_programs(self, search: Search, pattern: Mask, left: Integers, budget: Budget) -> Mask:
        """The pattern with what protects the targets that no hypercube does, if there is time for that.

        All of them at once, if that can be; a program for each takes a second in a table of 13,000 cells. Of very large
        tables nearly all is withheld by then, and protects most of them: the audit has to find out in any case, and
        what it finds open is repaired.
        """
        instance = search.instance
        if len(instance) > TOGETHER:
            return pattern
        rest = instance.withholding(pattern).asking(left)
        for found, _ in by_many_at_once(rest, budget, search.random):
            return found
        try:
            return pattern | modular(rest, seconds=0.0, executor=self.run.workers, report=_silent, budget=budget)
        except CannotProtect as failure:
            raise CannotProtect(int(left[failure.target])) from failure

    def _costs(self, problem: Problem) -> Floats:
        """What each cell costs, with all preferences."""
        cost = preferred(problem, cost_of(problem, self.options.cost, self.options.power), self.options.prefer)
        return np.where(
            mask_of(problem, self.options.previous, "previous"), cost * (1 - self.options.previous_discount), cost
        )

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
            return modular(search.instance, seconds=0.0, executor=self.run.workers, report=search.report)
        if not search.closed() and search.budget.over:
            search.budget.give_up(STOPPED if search.budget.stopped else IMPROVING)
            if self.seconds < HASTY_S and len(search.instance) <= SMALL and not search.budget.stopped:
                other = modular(search.instance, seconds=0.0, executor=self.run.workers, report=search.report)
                search.offer_pattern(other, search.instance.pattern_cost(other))
        return search.best

    def _search(self, search: Search, securing: Securing) -> None:
        """Look for a pattern; only small tables, and those who ask for it, get a proven bound."""
        small = len(search.instance) <= LARGE

        def secure(pattern: Mask) -> Mask:
            _suggest(search, securing, pattern)
            safe = securing.secure(pattern)
            self._prolong(search, securing)
            return safe

        insist = self.options.algorithm == "optimal"
        prove = insist or (self.options.algorithm == "auto" and small)
        find(search, prove=prove, insist=insist, secure=secure)
        again = not (search.closed() or search.budget.stopped or securing.examined)
        if again and search.late() and search.best is not None:
            if securing.best is None:
                secure(search.best)
            go_on(search, insist=insist)

    def _prolong(self, search: Search, securing: Securing) -> None:
        """Give the search the time that the audit does not need, where only outsiders are asked about.

        Not where it has to be told why a pattern is safe: to find that takes longer for the next than for the first.
        """
        if not (securing.examined or search.slow):
            search.budget.prolong(max(SECURING * securing.took, (1 - AT_MOST) * self.seconds))


def _suggest(search: Search, securing: Securing, pattern: Mask) -> None:
    """Tell the audits by which deviations a pattern is safe, where they would look for them in vain for long."""
    if search.moves:
        securing.suggest(search.moves)
    known = [each for each in (search.moved, securing.given) if each is not None]
    if search.slow and not any((each == pattern).all() for each in known):
        with suppress(SolverFailure):
            limit = securing.limit if securing.best is None else securing.budget
            securing.suggest(moves_within(search.instance, pattern, limit.child(SUGGESTING * limit.left)))


def _tell(search: Search, cost: float) -> None:
    """Tell what a safe pattern costs, with the bound so far."""
    search.report(cost, search.bound)


def _silent(cost: float, bound: float) -> None:
    """Tell nobody."""


def _whole_moves(moves: Iterable[Move]) -> Iterator[ExactMove]:
    """Deviations of whole units, as they mostly are."""
    for move in moves:
        whole = np.rint(move.amount).astype(np.int64)
        yield ExactMove(move.cells[whole != 0], whole[whole != 0])
