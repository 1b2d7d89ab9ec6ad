"""The audit: what can an attacker derive from a release, and what proves that it is not too much?"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from tablesafe.audit.certificate import Certificate, exact_limits
from tablesafe.audit.findings import Findings
from tablesafe.audit.hypercubes import boxed, by_hypercubes, narrowed, over_all, without_unseen
from tablesafe.audit.insiders import Insiders
from tablesafe.audit.insiders import insiders as find_insiders
from tablesafe.audit.integers import integer_intervals
from tablesafe.audit.intervals import exact_intervals
from tablesafe.audit.proofs import Group, Needs, Place, furthest_moves, prove, whole_moves
from tablesafe.audit.protection import Protection, protection
from tablesafe.audit.question import Question
from tablesafe.audit.sums import components
from tablesafe.audit.system import System, is_large
from tablesafe.audit.unions import unions as find_unions
from tablesafe.audit.verdict import Possibly
from tablesafe.core.equations import Floats
from tablesafe.core.errors import InvalidOption, InvalidRelease, OutOfTime
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release, Status, require_problem_and_release
from tablesafe.core.table import Table
from tablesafe.work.budget import Budget

Progress = Callable[[float], None]

MANY = 2_000
MANY_WHOLE = 200
"""Unknown cells from which on a release with changed values gets the quick answer only, and unseen cells from which on
every release does; and of whole numbers."""
EXACTLY = 0.5
"""Share of the time for exact intervals: after that they are only as wide as the answer needs."""
LEAST_WIDTH = 1e-6
"""Units that count as different where a cell must only not be known."""


def audit(
    problem: Problem,
    release: Release,
    *,
    cells: Literal["sensitive", "all"] = "sensitive",
    exact: bool = True,
    insiders: bool = True,
    coalition: int = 1,
    names: bool = False,
    unions: bool = True,
    possibly: Possibly = "open",
    integers: bool | None = None,
    certify: bool = True,
    executor: Executor | None = None,
    progress: Progress | None = None,
    time_limit_s: float | None = None,
    budget: Budget | None = None,
    checkpoint: str | Path | None = None,
) -> Findings:
    """Say for every sensitive cell what an attacker can derive from the release, and prove what it cannot.

    A cell is protected when its interval reaches down to value − lower level and up to value + upper level and is as
    wide as the sliding level; without levels, when it is not known exactly. With `exact` the intervals are exact;
    without, they are only as wide as the answer needs, which is much faster. Large releases with changed values, and
    linked tables with many unseen cells, are always answered so: one system ties all their cells together. `certify`
    proves every protected cell by two exact tables; without it only those are whose interval ends where it must, so
    that no tolerance decides.
    `insiders` asks what respondents, or coalitions of up to `coalition`, learn about each other, and tells them by
    their role unless `names` are wanted; `unions` judges the sums of withheld cells that can be derived. A cell is
    `possibly` open where that turns on contributors that the table does not list: it counts as open unless this says
    "accept", and `findings.verdict` lists it with what would settle it. With
    `integers` the attacker knows that values are whole numbers, as those of counts are (by default it does when the
    values are the table's own counts).

    When half of `time_limit_s` is over, intervals are no longer made exact; when all of it is, what was not looked at
    is open: not proved. `budget` takes its place where the audit is a part of something larger. `checkpoint` names a
    confidential file from which an interrupted audit goes on.
    """
    if cells not in {"sensitive", "all"}:
        raise InvalidOption(f"audit's cells must be 'sensitive' or 'all', got {cells!r}.")
    if possibly not in get_args(Possibly):
        raise InvalidOption(f"audit's possibly must be 'open' or 'accept', got {possibly!r}.")
    require_problem_and_release("audit", problem, release)
    _refuse_foreign(problem, release)
    judged = release.as_judged
    system = System.of(problem, judged)
    whole = knows_whole_numbers(problem.table, integers)
    budget = Budget(time_limit_s) if budget is None else budget
    work = _Work(problem, judged, system, whole, certify, executor, progress, budget, checkpoint)
    question = Question.of(problem, system, everything=cells == "all")
    quick = len(system) > (MANY_WHOLE if whole else MANY) and bool((release.status == Status.CHANGED).any())
    quick |= problem.table.unseen is not None and int(problem.table.unseen[system.cells].sum()) > MANY
    exact = exact and not quick
    if exact or (whole and not quick) or cells == "all":
        exact, question = work.intervals(question)
    question, groups = work.decide(question, exact=exact)
    protected = ~question.sensitive | question.proved_by(groups)
    if not work.prove_all:
        protected |= question.sure
    unit = 10.0**problem.table.decimals
    secret = question.at[protected & question.sensitive]
    inside, shown = system, system
    if is_large(system):
        moved = [move.cells for group in groups for move in group.moves]
        inside, keep = narrowed(system, np.unique(np.concatenate([secret, *moved])))
        secret, shown = np.searchsorted(keep, secret), without_unseen(system)
    findings = Findings(
        problem,
        release,
        system,
        question.cells,
        question.lower / unit,
        question.upper / unit,
        protected,
        exact,
        insiders=_insiders(problem, inside, secret, coalition, names, budget) if insiders else None,
        unions=find_unions(problem, shown) if unions else None,
        possibly=possibly,
    )
    if not certify:
        return findings
    counted = () if possibly == "accept" else findings.verdict.possibly
    others = (*(str(opening) for opening in findings.beyond_outsiders), *map(str, counted), *findings.not_proved)
    certificate = Certificate(
        problem, judged, system, groups, question.cells[~protected], others, whole=whole, published=release
    )
    proved = replace(findings, certificate=certificate)
    return replace(proved, certificate=replace(certificate, attackers=proved.verdict.lines))


@dataclass(frozen=True, eq=False)
class _Work:
    """The linear programs of one audit, and how to run them."""

    problem: Problem = field(repr=False)
    release: Release = field(repr=False)
    system: System = field(repr=False)
    whole: bool
    certify: bool
    executor: Executor | None
    progress: Progress | None
    budget: Budget = field(repr=False)
    checkpoint: str | Path | None

    @property
    def prove_all(self) -> bool:
        """Whether clear cases need a proof too. Bounds on whole numbers may be wider than what they can reach."""
        return self.certify or self.whole

    def intervals(self, question: Question) -> tuple[bool, Question]:
        """Answer with the exact interval of every unknown cell asked about, if there is time."""
        at, allowed = question.at[question.hidden], self.budget.child(EXACTLY * self.budget.left)

        def watched(share: float) -> None:
            if self.progress is not None:
                self.progress(share)
            allowed.check()

        try:
            allowed.check()
            found = exact_intervals(
                self.system, at, executor=self.executor, progress=watched, checkpoint=self.checkpoint
            )
        except OutOfTime:
            self.budget.give_up("Intervals were not made exact: they are as wide as the answer needs.")
            return False, Question.of(self.problem, self.system, everything=False)
        lower, upper = found.lower, found.upper
        if self.whole:
            sharper = integer_intervals(self.system, at, start=(lower, upper), time_limit_s=_limit(allowed))
            lower, upper = sharper.lower, sharper.upper
        return True, question.answered(question.hidden, lower, upper)

    def decide(self, question: Question, *, exact: bool) -> tuple[Question, tuple[Group, ...]]:
        """Prove the cells that may be protected; without exact intervals, tell also how far they were seen to reach."""
        asked = question.undecided(exact=exact, certify=self.prove_all)
        place = Place(self.system.matrix.tocsc(), exact_limits(self.problem, self.release, self.system))
        cubes = tuple(by_hypercubes(self.system, question.needs.take(asked), place))
        question = self._moved_by(question, cubes)
        asked = asked[~question.proved_by(cubes)[asked]]
        lower, upper, sliding = question.needs.take(asked).floats()
        sliding = np.where((lower == 0) & (upper == 0) & (sliding == 0), LEAST_WIDTH, sliding)
        value = question.value[asked]
        if is_large(self.system):
            question, more = self._in_large_cube(place, question, asked, value - lower, value + upper, sliding)
            return question, (*cubes, *more)
        seen = protection(
            self.system, question.at[asked], value - lower, value + upper, sliding,
            executor=self.executor, progress=self.progress, budget=self.budget,
        )  # fmt: skip
        if not exact:
            question = self._widened(question.answered(asked, seen.lower, seen.upper))
            asked = question.undecided(exact=True, certify=self.prove_all)
            asked = asked[~question.proved_by(cubes)[asked]]
        return question, (*cubes, *self._proofs(place, question.needs.take(asked), seen))

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
        """With exact intervals for cells that were seen on both sides, but not far enough apart."""
        narrow = question.too_narrow
        found = exact_intervals(self.system, question.at[narrow], executor=self.executor)
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
        if not len(needs) or is_large(self.system):
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


def _insiders(
    problem: Problem, system: System, secret: NDArray[np.intp], coalition: int, names: bool, budget: Budget
) -> Insiders:
    return find_insiders(problem, system, secret, coalition=coalition, names=names, budget=budget)


def _limit(budget: Budget) -> float | None:
    """Seconds for a solver; None without a limit."""
    return None if budget.left == np.inf else budget.left


def knows_whole_numbers(table: Table, integers: bool | None) -> bool:
    """Whether the attacker knows that values are whole numbers: as said, or because they are the table's own counts."""
    if integers is None:
        return table.count is not None and table.decimals == 0 and bool((table.count == table.integers).all())
    if integers and table.decimals:
        raise InvalidOption(
            f"audit's integers=True says that values are whole numbers, but they have {table.decimals} decimals."
        )
    return integers


def _refuse_foreign(problem: Problem, release: Release) -> None:
    """A release belongs to the problem when it has the same cells in the same order."""
    mine, other = problem.table, release.table
    if mine is other:
        return
    if len(mine) != len(other):
        raise InvalidRelease(f"The release has {len(other):,} cells, the problem {len(mine):,}.")
    for name, codes in mine.code_columns().items():
        theirs = other.code_columns().get(name)
        if theirs is None:
            raise InvalidRelease(f"The release belongs to another problem: it has no dimension {name!r}.")
        differ = (codes != theirs).to_numpy()
        if differ.any():
            cell = int(differ.argmax())
            raise InvalidRelease(
                f"The release belongs to another problem: where the problem has cell {mine.describe(cell)}, "
                f"it has {other.describe(cell)}."
            )
