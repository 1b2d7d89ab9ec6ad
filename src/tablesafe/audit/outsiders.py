"""Outsiders: what anybody derives who sees the release, and the exact tables that prove what nobody can.

First the exact intervals, where they are wanted; then, for the cells that may be protected, hypercubes, which need no
program; then a search for witnesses component by component; last a solver for each cell that is left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from functools import cached_property
from math import inf
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tablesafe.audit.certificate import exact_limits
from tablesafe.audit.exact import ExactMove
from tablesafe.audit.hypercubes import boxed, by_hypercubes, hypercubes_of, narrowed, over_all
from tablesafe.audit.integers import integer_intervals
from tablesafe.audit.intervals import exact_intervals
from tablesafe.audit.proofs import Group, Needs, Place, furthest_moves, prove, whole_moves
from tablesafe.audit.protection import Protection, protection
from tablesafe.audit.proved import Holding
from tablesafe.audit.question import Question
from tablesafe.audit.sums import components
from tablesafe.audit.system import System
from tablesafe.audit.together import MANY, affordable, moves_together
from tablesafe.core.equations import Floats
from tablesafe.core.errors import OutOfTime
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release
from tablesafe.solve.exact.witnesses import NOBODY
from tablesafe.work.budget import Budget

Progress = Callable[[float], None]

EXACTLY = 0.5
"""Share of the time for exact intervals: after that they are only as wide as the answer needs."""
LARGE, PATIENT_S = 10_000, 60.0
"""Unknown cells beyond which exact intervals get so many seconds where nobody said how long: of 17,000 in one piece,
half of them sensitive, they would take hours, while the answer itself takes half a minute."""
FEW = 2_000
"""Unknown whole numbers up to which programs are asked at once: they tell how far a cell reaches, not that it does."""
LEAST_WIDTH = 1e-6
"""Units that count as different where a cell must only not be known."""


@dataclass(frozen=True, eq=False)
class Outsiders:
    """The linear programs of one audit, and how to run them."""

    problem: Problem = field(repr=False)
    release: Release = field(repr=False)
    system: System = field(repr=False)
    whole: bool
    certify: bool
    executor: Executor | None
    progress: Progress | None
    budget: Budget = field(repr=False)
    refining: Budget | None = field(repr=False)
    """For exact intervals, where it is not a share of the budget."""
    checkpoint: str | Path | None
    seen: list[Group] = field(default_factory=list, repr=False)
    """Witnesses that settle clear cases without having been proved in whole numbers."""

    @property
    def prove_all(self) -> bool:
        """Whether clear cases need a proof too. Bounds on whole numbers may be wider than what they can reach."""
        return self.certify or self.whole

    @cached_property
    def place(self) -> Place:
        """Where tables are looked for."""
        return Place(self.system.matrix.tocsc(), exact_limits(self.problem, self.release, self.system))

    def by_suggestions(self, question: Question, suggested: Sequence[ExactMove]) -> Group:
        """What moves prove that somebody suggests, and their reverses."""
        moves = [
            ExactMove(move.cells, sign * move.numerators, move.denominator) for move in suggested for sign in (1, -1)
        ]
        return prove(
            self.place, question.needs.take(question.undecided(exact=False, certify=True)), moves, whole=self.whole
        )

    def intervals(self, question: Question) -> tuple[bool, Question]:
        """Answer with the exact interval of every unknown cell asked about, if there is time."""
        at, seconds = question.at[question.hidden], EXACTLY * self.budget.left
        if self.refining is not None:
            seconds = min(seconds, self.refining.left)
        if len(self.system) > LARGE and self.checkpoint is None:
            seconds = PATIENT_S if seconds == inf else seconds
        allowed = self.budget.child(seconds)
        try:
            found = exact_intervals(
                self.system, at, executor=self.executor, progress=self.progress, checkpoint=self.checkpoint,
                budget=allowed,
            )  # fmt: skip
        except OutOfTime:
            self.budget.give_up("Intervals were not made exact: they are as wide as the answer needs.")
            return False, Question.of(self.problem, self.system, everything=False)
        lower, upper = found.lower, found.upper
        if self.whole:
            sharper = integer_intervals(self.system, at, start=(lower, upper), time_limit_s=_limit(allowed))
            lower, upper = sharper.lower, sharper.upper
        return True, question.answered(question.hidden, lower, upper)

    def decide(
        self, question: Question, held: Holding, *, exact: bool, together: bool = True
    ) -> tuple[Question, tuple[Group, ...]]:
        """Prove the cells that may be protected; without exact intervals, tell also how far they were seen to reach.

        What is held to be proved already is not asked about. Unless cells are looked at `together`, each is by itself.
        """
        known = np.searchsorted(question.cells, held.cells)
        question = question.answered(known, question.value[known] + held.low, question.value[known] + held.high)
        asked = np.setdiff1d(question.undecided(exact=exact, certify=self.prove_all), known)
        if not asked.size:
            return question, ()
        place = self.place
        by_programs = self.whole and len(self.system) <= FEW
        cubes = () if by_programs else tuple(by_hypercubes(self.system, question.needs.take(asked), place))
        question = self._moved_by(question, cubes)
        asked = asked[~question.proved_by(cubes)[asked]]
        question, several = self._together(place, question, asked) if together else (question, ())
        cubes += several
        asked = asked[~question.proved_by(several)[asked]]
        lower, upper, sliding = question.needs.take(asked).floats()
        sliding = np.where((lower == 0) & (upper == 0) & (sliding == 0), LEAST_WIDTH, sliding)
        value = question.value[asked]
        if self.system.is_large:
            question, more = self._in_large_cube(place, question, asked, value - lower, value + upper, sliding)
            return question, (*cubes, *more)
        seen = protection(
            self.system, question.at[asked], value - lower, value + upper, sliding,
            executor=self.executor, progress=self.progress, budget=self.budget,
        )  # fmt: skip
        if not exact:
            question = self._widened(question.answered(asked, seen.lower, seen.upper))
            self._note(question, asked, seen)
            asked = np.setdiff1d(question.undecided(exact=True, certify=self.prove_all), known)
            asked = asked[~question.proved_by(cubes)[asked]]
        return question, (*cubes, *self._proofs(place, question.needs.take(asked), seen))

    def _together(
        self, place: Place, question: Question, asked: NDArray[np.intp]
    ) -> tuple[Question, tuple[Group, ...]]:
        """Prove cells by tables in which hundreds of them move, where many are left and dimensions are trees.

        Elsewhere a search from the truth is sooner done.
        """
        if len(asked) < MANY or self.whole or self.system.is_large or hypercubes_of(self.system) is None:
            return question, ()
        if not affordable(self.system.matrix, self.budget):
            return question, ()
        needs, system = question.needs.take(asked), self.system
        lower, upper, sliding = needs.floats()
        fall, rise = np.zeros(len(system)), np.zeros(len(system))
        np.maximum.at(fall, needs.at, np.ceil(np.maximum(lower, sliding / 2)))
        np.maximum.at(rise, needs.at, np.ceil(np.maximum(np.maximum(upper, sliding / 2), 1.0)))
        moves: list[ExactMove] = []
        room = system.truth - system.lower, system.upper - system.truth
        for move in moves_together(sparse.csr_array(system.matrix), *room, fall, rise, self.budget):
            moves += [move, ExactMove(move.cells, -move.numerators, move.denominator)]
        group = prove(place, needs, moves)
        done = np.isin(needs.at, group.at)
        which = asked[done]
        return question.answered(which, question.value[which] - lower[done], question.value[which] + upper[done]), (
            group,
        )

    def _note(self, question: Question, asked: NDArray[np.intp], seen: Protection) -> None:
        """Take note of the witnesses of clear cases: nobody else looks at them."""
        clear = question.sure[asked] & seen.protected & (seen.component >= 0)
        clear &= (seen.low != NOBODY) & (seen.high != NOBODY)
        which = np.flatnonzero(clear)
        which = which[np.argsort(seen.component[which], kind="stable")]
        for own in np.split(which, np.flatnonzero(np.diff(seen.component[which])) + 1) if len(which) else []:
            low, high = (np.maximum(side[own] + 1, 0) for side in (seen.low, seen.high))
            moves = seen.components[int(seen.component[own[0]])].moves
            self.seen.append(Group(moves, question.at[asked[own]], low, high))

    def _moved_by(self, question: Question, groups: Sequence[Group]) -> Question:
        """With the ends that hypercubes were seen to reach."""
        position = np.full(len(self.system), -1, dtype=np.intp)
        position[question.at[question.hidden]] = question.hidden
        for group in groups:
            which = position[group.at]
            far = np.abs(group.moves[0].at(group.at)).astype(np.float64)
            question = question.answered(which, question.value[which] - far, question.value[which] + far)
        return question

    def _in_large_cube(
        self, place: Place, question: Question, asked: NDArray[np.intp], below: Floats, above: Floats, sliding: Floats
    ) -> tuple[Question, tuple[Group, ...]]:
        """Prove by boxes what they prove, and the rest while most unseen cells stay where they are."""
        at, value = question.at[asked], question.value[asked]
        bare = sliding == LEAST_WIDTH
        up = np.maximum(np.where(bare, 1.0, above - value), sliding - (value - below))
        needs = question.needs.take(asked)
        first = prove(place, needs, tuple(boxed(self.system, at, value - below, up)), whole=self.whole)
        left = np.flatnonzero(~np.isin(at, first.at))
        question = question.answered(asked, np.where(bare, value, below), np.where(bare, value + 1, value + up))
        question = question.forgotten(asked[left])
        if not left.size:
            return question, (first,)
        narrow, keep = narrowed(self.system, at[left])
        seen = protection(
            narrow, np.searchsorted(keep, at[left]), below[left], above[left], sliding[left],
            executor=self.executor, progress=self.progress, budget=self.budget,
        )  # fmt: skip
        question = question.answered(asked[left], seen.lower, seen.upper)
        wanted = np.intersect1d(asked[left], question.undecided(exact=True, certify=self.prove_all))
        return question, (first, *self._proofs(place, question.needs.take(wanted), over_all(seen, keep)))

    def _widened(self, question: Question) -> Question:
        """With exact intervals for cells that were seen on both sides, but not far enough apart, if there is time."""
        narrow = question.too_narrow
        try:
            found = exact_intervals(self.system, question.at[narrow], executor=self.executor, budget=self.budget)
        except OutOfTime:
            return question
        return question.answered(narrow, found.lower, found.upper)

    def _proofs(self, place: Place, needs: Needs, seen: Protection) -> Iterator[Group]:
        """The exact tables that prove what was seen, component by component; then what only a second try proves."""
        component = np.full(len(self.system), -1)
        for number, found in enumerate(seen.components):
            component[found.cells] = number
        order = np.argsort(component[needs.at], kind="stable")
        starts = np.searchsorted(component[needs.at[order]], np.arange(len(seen.components) + 1))
        proved = np.zeros(len(needs), dtype=np.bool_)
        for number, found in enumerate(seen.components):
            own = np.sort(order[starts[number] : starts[number + 1]])
            if own.size:
                group = prove(place, needs.take(own), found.moves, whole=self.whole)
                proved[own] = np.isin(needs.at[own], group.at)
                yield group
        yield from self._second_try(place, needs.take(np.flatnonzero(~proved)))

    def _second_try(self, place: Place, needs: Needs) -> Iterator[Group]:
        """Ask a solver for each cell whose interval reaches far enough, but for which no table was at hand."""
        if not len(needs) or self.system.is_large:
            return
        limit = _limit(self.budget)
        label = components(self.system.matrix)
        for number in np.unique(label[needs.at]).tolist():
            cells, own = np.flatnonzero(label == number), needs.take(np.flatnonzero(label[needs.at] == number))
            if self.budget.over:
                return
            if self.whole:
                tables = whole_moves(place, cells, own, limit)
            else:
                tables = furthest_moves(place, cells, own, self.budget)
            yield prove(place, own, (), cells=cells, tables=tables, whole=self.whole)


def _limit(budget: Budget) -> float | None:
    """Seconds for a solver; None without a limit."""
    return None if budget.left == np.inf else budget.left
