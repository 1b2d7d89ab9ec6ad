"""Drive bound and pattern together until they meet: relaxation, cuts, patterns, and the choice among what is left.

Targets that the sensitive cells protect among themselves are dropped before anything else. The relaxation is cut until
nothing more is found; a safe pattern is made of it; reduced costs take out what no better pattern uses; what is left
falls apart and is chosen from exactly. A choice that leaves targets open is cut off, repaired, and made again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tablesafe.core.equations import Floats, Integers, Mask
from tablesafe.core.errors import SolverFailure
from tablesafe.methods.suppress.branch_and_cut.attacker import Attacker, Move
from tablesafe.methods.suppress.branch_and_cut.branching import WHOLE
from tablesafe.methods.suppress.branch_and_cut.cuts import Variables, bridgeless, covers
from tablesafe.methods.suppress.branch_and_cut.master_problem import NODES, Choice, Covering, Cut
from tablesafe.methods.suppress.branch_and_cut.pattern import Repair, cleaned
from tablesafe.methods.suppress.branch_and_cut.separation import Seen, Separation
from tablesafe.methods.suppress.branch_and_cut.targets import Targets
from tablesafe.methods.suppress.branch_and_cut.tree import Tree
from tablesafe.methods.suppress.deviations import Deviation
from tablesafe.methods.suppress.incumbent import Incumbent
from tablesafe.methods.suppress.instance import Instance
from tablesafe.methods.suppress.pattern import CannotProtect
from tablesafe.work.budget import Budget

STALLED, RISES = 6, 2e-4
"""Rounds without a rise of the bound, by this share, after which cutting ends."""
WORTH_IT = 2e-3
"""Share by which cuts of the other kinds must raise the bound, to be looked for again."""
ROUNDS_AT_NODES = 6
"""Rounds of cutting at a node before it is branched on."""
PATTERN_S, FAR = 2.0, 0.8
"""Seconds of work after which a pattern is made of the relaxation before that is done, and again after twice as many;
and share of the best pattern's cost that the bound must be below (hier13: 8.2 million after 3 s where it was 8.8)."""
PATTERN_EVERY = 10
"""Nodes after which a pattern is made of the relaxation again."""
FIRST_NODES, MORE_NODES, TRIES = 40, 8, 4
"""Nodes of a part that holds most of what is undecided, once there is an answer that the integer solver, or all other
parts, cannot better; how many times as many nodes all parts get with every further try, and how many tries there are.
In parts that share nothing branchings add up (h_10k: 87 parts, the hardest takes 800 nodes), in the tree they would
multiply."""
WIDE = 2_000
"""Undecided variables from which on the integer solver is asked for a choice: in the tree its branchings would multiply
(h_10k), with fewer they are soon done (3d_10: 3 s instead of 11)."""
HARDLY = 4
"""Targets left open by a choice of the integer solver, below which the next one would hardly differ."""
AFTERWARDS = 5
"""Rounds of cutting after a choice was cut off."""
FEW = 300
"""Withheld cells up to which an audit is told the reasons of a search: sooner said than found again."""


@dataclass(frozen=True, eq=False)
class Objection:
    """Why a pattern will not do: what is asked besides, or, where that says nothing new, cells of which one is needed.

    The instance is the one that is searched with (perhaps) cells for sums at its end.
    """

    instance: Instance
    targets: Targets
    one_of: Integers


Judge = Callable[[Mask], Objection | None]
"""Looks at a pattern that protects all targets; None when there is nothing against it."""


class BranchAndCut:
    """One search for the least costly pattern; everything found is handed to the incumbent at once.

    A `judge` has the last word on patterns: what it objects to is asked as well from then on. What a search for the
    same cells and fewer targets has `known` is taken over.
    """

    def __init__(self, incumbent: Incumbent, *, judge: Judge | None = None, known: BranchAndCut | None = None) -> None:
        instance = incumbent.instance
        self._incumbent, self._instance, self._judge = incumbent, instance, judge
        targets = incumbent.exactly or Targets(instance.cell, instance.sign, instance.level)
        self._variables = Variables.of(instance, incumbent.group)
        self._attacker = Attacker(instance, incumbent.budget)
        self._stop: Callable[[], bool] = incumbent.late
        self._separation = Separation(instance, targets, self._variables, self._attacker, self._late)
        self._covering = Covering(self._variables.cost, incumbent.budget)
        self._capacities: list[Cut] = []
        self._begun = self._rooted = self._choosing = False
        self._tree: Tree | None = None
        self._nodes = self._tried = 0
        self._next = 0.0
        """Work after which a further pattern is due while the relaxation is cut."""
        self._own: list[Move] | None = None
        """What protects the targets that need nothing further, where those are all that the instance asks besides."""
        self._quiet: tuple[Separation, Floats] | None = None
        """A point at which nothing was found, and for which targets."""
        if known is not None and known._begun:
            self._instance, self._begun = known._instance, True
            self._attacker = Attacker(self._instance, incumbent.budget)
            self._separate(known._separation.targets)
            self._add(known._always)

    @property
    def _always(self) -> list[Cut]:
        """The cuts that hold for every safe pattern, and not only for better ones than the best."""
        return [cut.whole or cut for cut in self._covering.cuts if cut.always]

    def _separate(self, targets: Targets) -> None:
        self._separation = Separation(self._instance, targets, self._variables, self._attacker, self._late)

    def _late(self) -> bool:
        return self._stop()

    @property
    def _best(self) -> float:
        return self._incumbent.best_cost

    def begin(self, stop: Callable[[], bool]) -> Integers:
        """Drop the targets that need nothing further; says which cells have others. Nothing more is done twice."""
        self._stop = stop
        if not self._begun and self._without_self_protected() == 0:
            self._offered(np.zeros(len(self._variables.cost)))
        return np.unique(self._separation.targets.cell)

    def cut(self, stop: Callable[[], bool]) -> None:
        """Cut the relaxation until nothing more is found, and make a first pattern of it."""
        self.begin(stop)
        if not self._done() and not self._rooted:
            self._rooted = self._root()

    def advance(self, stop: Callable[[], bool]) -> None:
        """Go on from where it stands until the bound meets the best pattern, or a clock rings."""
        self.cut(stop)
        if self._rooted and not self._done():
            self._finish()

    @property
    def shares(self) -> Floats:
        """How much of each cell the relaxation wants withheld."""
        return self._shares(self._covering.point)

    @property
    def in_one_piece(self) -> bool:
        """Whether, once the relaxation is cut, most of what is undecided is one part, and too much to choose from."""
        return self._rooted and self._covering.in_one_piece()

    @property
    def choosing(self) -> bool:
        """Whether it chooses part by part among what is left: that comes to an end, and patterns come of it."""
        return self._choosing

    def deviations(self, pattern: Mask, stop: Callable[[], bool] = lambda: False) -> tuple[Deviation, ...]:
        """For each target of the instance a deviation within a safe pattern that protects it, until a clock rings."""
        return self._asking_all(stop).deviations(pattern.astype(np.float64))

    def witnesses(self, pattern: Mask) -> list[Move]:
        """Deviations within a safe pattern that protect all targets of the instance: for an audit to check."""
        stop, shares = self._incumbent.late, pattern.astype(np.float64)
        if self._own is None:
            return self._asking_all(stop).witnesses(shares)
        return self._own + self._asking(self._separation.targets, stop).witnesses(shares)

    def _asking_all(self, stop: Callable[[], bool]) -> Separation:
        instance = self._instance
        return self._asking(Targets(instance.cell, instance.sign, instance.level), stop)

    def _asking(self, targets: Targets, stop: Callable[[], bool]) -> Separation:
        return Separation(self._instance, targets, self._variables, self._attacker, stop)

    def _without_self_protected(self) -> int:
        """Drop the targets that need nothing further; the cuts of the others are the first. Says how many are left."""
        x = np.zeros(len(self._variables.cost))
        tell = self._incumbent.exactly is None and self._judge is None and int(self._instance.forced.sum()) <= FEW
        seen = self._look(x, sweep=True, tell=tell)
        if self._late():
            return len(self._separation.targets)
        self._own = seen.moves if tell else None
        self._separation.only(np.array(seen.open, dtype=np.int64))
        self._add(seen.cuts)
        self._begun = True
        return len(seen.open)

    def _cannot(self, at: int) -> None:
        """Say that a target cannot be protected, in the instance's own numbers."""
        instance, targets = self._instance, self._separation.targets
        own = instance.cell == targets.cell[at]
        side = own & (instance.sign == targets.sign[at])
        raise CannotProtect(int(np.flatnonzero(side if side.any() else own)[0]))

    def _add(self, cuts: list[Cut]) -> int:
        before = len(self._covering.cuts)
        added = self._covering.add(cuts)
        self._capacities += [
            cut for cut in self._covering.cuts[before:] if cut.least == 1.0 and (cut.coefficients < 1 - 1e-9).any()
        ]
        return added

    def _look(self, x: Floats, *, sweep: bool = False, tell: bool = False) -> Seen:
        """Ask about all targets; raise for one that not even withholding everything would protect."""
        if self._quiet is not None and self._quiet[0] is self._separation and np.array_equal(self._quiet[1], x):
            return Seen([], [], [], [])
        seen = self._separation.look(self._shares(x), x, self._covering.high, sweep=sweep, tell=tell)
        if not seen.open and not seen.cuts:
            self._quiet = self._separation, x.copy()
        if self._incumbent.best is None:
            for at, cut in zip(seen.whose, seen.cuts, strict=True):
                if cut.least == 1 and float(cut.coefficients.sum()) < 1 - 1e-6:
                    self._cannot(at)
        return seen

    def _shares(self, x: Floats) -> Floats:
        return self._variables.shares(self._instance.forced, x)

    def _relaxed(self) -> Floats:
        """Solve the relaxation; note its bound and fix what it decides."""
        x = self._covering.relax(max(self._incumbent.budget.seconds_left, 0.05))
        if self._incumbent.best is None and not np.isfinite(self._covering.proved):
            raise SolverFailure("The cuts of the suppression problem contradict each other.")
        self._prove(self._covering.proved)
        self._covering.fix(self._best)
        return x

    def _prove(self, bound: float) -> None:
        """A bound on every pattern better than the best one."""
        bound = self._covering.up(bound)
        if np.isfinite(self._best) and bound > self._best - self._covering.slack(self._best):
            bound = self._best
        self._incumbent.prove(min(bound, self._best))

    def _done(self) -> bool:
        return self._late() or self._incumbent.closed()

    def _root(self) -> bool:
        """Cut until nothing more is found or the bound no longer rises; whether there is more to do."""
        last, stalled, begun = -1.0, 0, -1.0
        while True:
            x = self._relaxed()
            if self._done():
                return False
            whole = float(np.abs(x - np.rint(x)).max(initial=0.0)) < WHOLE
            x, bound = np.rint(x) if whole else x, self._covering.proved
            stalled = stalled + 1 if bound <= last * (1 + RISES) else 0
            last = max(last, bound)
            seen = self._look(x)
            added = self._add(seen.cuts)
            if added and stalled < STALLED:
                self._add(covers(seen.cuts, x, self._covering.high))
                if self._due():
                    self._pattern(self._shares(x))
                    self._covering.fix(self._best)
                continue
            if self._late():
                return False
            if whole and not seen.open:  # the least costly point of all is a pattern
                if not self._offered(x):
                    continue
                self._prove(bound)
                if self._done():
                    return False
            over = bound <= begun * (1 + WORTH_IT)
            if over or begun < 0:
                fits = self._pattern(self._shares(x))
                if self._done():
                    return False
                if not fits:
                    continue
                self._covering.fix(self._best)
            added += self._strengthened(x)
            if not added or over:
                return True
            begun, stalled = bound, 0

    def _due(self) -> bool:
        """Whether cutting takes so long that it is time for another pattern: the best one is far from the bound."""
        spent = self._incumbent.budget.spent
        if self._incumbent.best is None or spent < self._next or self._incumbent.bound >= FAR * self._best:
            return False
        self._next = max(2 * spent, PATTERN_S)
        return spent >= PATTERN_S

    def _strengthened(self, x: Floats) -> int:
        """Add violated cuts of the other kinds; says how many."""
        high = self._covering.high
        cuts = bridgeless(self._attacker, self._variables, self._shares(x), x, high)
        return self._add(cuts + covers(self._capacities, x, high))

    def _pattern(self, shares: Floats, which: Integers | None = None) -> bool:
        """Make a safe pattern of a fractional one, and hand it over; False where it is objected to."""
        instance, targets, late = self._instance, self._separation.targets, self._late
        among = shares > 1e-7
        if self._incumbent.best is not None:
            among[: len(self._incumbent.best)] |= self._incumbent.best
        repair = Repair(instance, self._variables, targets, self._incumbent.budget, shares, among)
        everyone = np.arange(len(targets))
        if not repair.all(everyone if which is None else which, late):
            return True
        pattern = repair.pattern
        if which is None:
            pattern = cleaned(instance, self._variables, targets, self._attacker, self._covering, repair, late)
        return self.offer(pattern)

    def offer(self, pattern: Mask) -> bool:
        """Hand over a safe pattern, with all cells that are withheld together; False where it is objected to."""
        chosen = self._variables.of_cell[: len(pattern)][pattern]
        x = np.zeros(len(self._variables.cost))
        x[chosen[chosen >= 0]] = 1.0
        return self._offered(x)

    def _offered(self, x: Floats) -> bool:
        """Hand over a pattern if it is the best; what the judge has against it is asked from now on."""
        incumbent, cost = self._incumbent, float(self._variables.cost @ x)
        pattern = self._shares(x)[: len(incumbent.instance)] > 0.5
        if incumbent.best is not None and self._no_better(x):
            return True
        objection = None if self._judge is None else self._judge(pattern)
        if objection is None:
            incumbent.offer_pattern(pattern, cost)
            return True
        self.ask_also(objection)
        return False

    def ask_also(self, objection: Objection) -> None:
        """Take what a judge has objected to among the targets.

        Each objection has the sums of those that were made before it, and is of as many cells or more: one that was
        made earlier and comes later asks nothing of fewer cells.
        """
        wider = len(objection.instance) > len(self._instance)
        if wider:
            self._instance = objection.instance
            self._variables = Variables.of(self._instance, None)
            self._attacker = Attacker(self._instance, self._incumbent.budget)
        if wider or len(objection.targets):
            self._separate(self._separation.targets.and_also(objection.targets))
        needed = self._variables.of_cell[objection.one_of]
        if len(needed):
            self._add([Cut(np.unique(needed), np.ones(len(np.unique(needed))))])

    def _finish(self) -> None:
        """Choose among what is left, part by part, as long as choices are easy or teach much; then branch on the whole.

        What a choice leaves open is cut off and repaired, and the choice is made again. Where nearly all is one part
        that is too much to choose from, it is branched on at once: the integer solver's answers become ever worse.
        """
        while not self._done() and self._tree is None and self._tried <= TRIES:
            if not self._tried and self.in_one_piece:
                break
            self._choosing = True
            x = self._relaxed()
            if self._done():
                return
            choice = self._choice(self._tried)
            self._prove(choice.bound)
            self._add(list(choice.floors))
            if self._done() or (choice.x is None and not self._tried):
                break
            if choice.x is None or (self._tried and not choice.least and self._no_better(choice.x)):
                self._tried += 1
                continue
            seen = self._look(choice.x)
            if self._late():
                return
            if not seen.open:
                if self._offered(choice.x):
                    self._prove(choice.bound)
                    self._tried += 1
                    continue
                seen = self._look(choice.x)
                if self._late():
                    return
            added = self._add(seen.cuts)
            if self._tried and not choice.least:  # what an answer on the way teaches counts, no pattern near it does
                self._tried += 1
            else:
                shares = np.where(self._shares(choice.x) > 0.5, 1.0, np.minimum(self._shares(x), 0.99))
                self._pattern(shares, np.array(seen.open, dtype=np.int64))
            if not added or (not self._tried and not choice.least and len(seen.open) < HARDLY):
                break
            for _ in range(AFTERWARDS):
                if self._done():
                    return
                x = self._relaxed()
                if not self._add(self._look(x).cuts) and not self._strengthened(x):
                    break
        self._choosing = False
        if not self._done():
            self._branched()

    def _no_better(self, x: Floats) -> bool:
        """Whether an answer to the cuts costs too much to be a better pattern."""
        return float(self._variables.cost @ x) > self._best - self._covering.slack(self._best) / 2

    def _choice(self, tried: int) -> Choice:
        """The best choice for all cuts, by parts; by the integer solver where much is undecided and no choice held yet.

        That finds answers and proves nothing, so once one has held its next would hardly be better.
        """
        covering = self._covering
        wide = not tried and int((covering.low < covering.high).sum()) > WIDE
        more = MORE_NODES ** max(tried - 1, 0)
        return covering.choose(
            best=self._best,
            nodes=NODES * more,
            nodes_of_largest=FIRST_NODES * more if 0 < tried < TRIES else 0,
            seconds=self._incumbent.budget.seconds_left / 4 if wide else 0.0,
            stop=self._late,
        )

    def _branched(self) -> None:
        """Branch on the relaxation, with cuts at every node, until no node may hold anything better."""
        if self._tree is None:
            self._relaxed()
            if self._done():
                return
            self._tree = Tree(self._covering)
        tree = self._tree
        while tree and not self._done():
            if self._pruned(tree.bound):
                break
            self._prove(tree.bound)
            self._node(tree, *tree.pop())
        if not self._late() and self._incumbent.best is not None:
            self._prove(min(tree.bound, self._best))

    def _pruned(self, bound: float) -> bool:
        """Whether no answer with such a bound is better than the best."""
        return self._covering.nothing_better(bound, self._best)

    def _node(self, tree: Tree, bound: float, low: Floats, high: Floats) -> None:
        """Cut the relaxation of a node until nothing more is found, and branch."""
        covering, rounds = self._covering, 0
        self._nodes += 1
        due = self._nodes % PATTERN_EVERY == 0
        while not (low > high).any():
            relaxed = covering.within(low, high, max(self._incumbent.budget.seconds_left, 0.05))
            if relaxed is None or self._late():
                tree.push(bound, low, high)
                return
            if relaxed.proved == -np.inf:
                tree.give_up(bound)
                return
            if self._pruned(relaxed.proved):
                return
            bound = max(bound, relaxed.proved)
            covering.decide(relaxed, self._best, low, high)
            x, rounds = relaxed.x, rounds + 1
            fractional = bool(((x > WHOLE) & (x < 1 - WHOLE)).any())
            if not fractional or rounds <= ROUNDS_AT_NODES:
                seen = self._look(x if fractional else np.rint(x))
                if self._late():
                    tree.push(bound, low, high)
                    return
                if not fractional and not seen.open:
                    if not self._offered(np.rint(x)):
                        continue
                    if self._pruned(relaxed.proved):
                        return
                elif self._add(seen.cuts) or (rounds == 1 and self._strengthened(x)):
                    continue
            if due:
                due = False
                self._pattern(self._shares(x))
                if self._pruned(relaxed.proved):
                    return
            if not tree.branch(relaxed, low, high, self._pruned, self._late):
                return


@dataclass(frozen=True, eq=False)
class Proved:
    """The best pattern found, what it costs, a bound on what every pattern costs, and why the pattern is safe."""

    pattern: Mask
    cost: float
    bound: float
    deviations: tuple[Deviation, ...]
    """For every target a deviation within the pattern that moves it far enough."""

    @property
    def optimal(self) -> bool:
        """Whether no pattern costs less."""
        return self.cost <= self.bound * (1 + 1e-9) + 1e-9


def least_costly(instance: Instance, budget: Budget, *, first: Mask | None = None) -> Proved | None:
    """The least costly pattern of an instance, for whoever has many small ones: no table, no audit, no other search.

    `first` is a safe pattern to begin with. The answer is the best pattern until the budget is over; None where there
    is none yet. A target that no pattern protects raises `CannotProtect`. It takes about a millisecond beside the
    linear programs.
    """
    incumbent = Incumbent(instance, budget=budget, report=_silent)
    if first is not None:
        incumbent.keep(first | instance.forced, instance.pattern_cost(first & ~instance.forced))
    search = BranchAndCut(incumbent)
    search.advance(incumbent.late)
    if incumbent.best is None:
        return None
    return Proved(incumbent.best, incumbent.best_cost, incumbent.bound, search.deviations(incumbent.best))


def _silent(cost: float, bound: float) -> None:
    """Tell nobody."""
