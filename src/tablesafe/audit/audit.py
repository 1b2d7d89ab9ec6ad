"""The audit: what can an attacker derive from a release, and what proves that it is not too much?

`Audit` is one examination of a problem that can be asked again: it keeps the attacker's system with its pieces and null
spaces, the intervals that were worked out, and every witness. Another release of the same problem, or a change of the
one in hand, is asked only about what these leave open. `audit` asks once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import Executor
from dataclasses import replace
from functools import cached_property
from hashlib import sha256
from math import inf
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tablesafe.audit.certificate import Certificate
from tablesafe.audit.exact import ExactMove
from tablesafe.audit.findings import Findings
from tablesafe.audit.hypercubes import narrowed, without_unseen
from tablesafe.audit.insiders import Insiders, search_insiders
from tablesafe.audit.integers import integer_intervals
from tablesafe.audit.intervals import exact_intervals
from tablesafe.audit.outsiders import Outsiders, Progress
from tablesafe.audit.proofs import Group
from tablesafe.audit.proved import Proved, Settled
from tablesafe.audit.question import Question
from tablesafe.audit.respondent_knowledge import Lists
from tablesafe.audit.system import System
from tablesafe.audit.unions import Unions
from tablesafe.audit.unions import unions as find_unions
from tablesafe.audit.unjudged import worked_out
from tablesafe.core.equations import Floats, Mask
from tablesafe.core.errors import Interrupted, InvalidInput, InvalidOption, InvalidRelease, Setting
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release, Status, require_problem_and_release
from tablesafe.core.table import Table
from tablesafe.work.budget import Budget
from tablesafe.work.run import Attackers, Possibly, Run

MANY, MANY_WHOLE = 2_000, 200
"""Unknown cells from which on a release with changed values gets the quick answer only, and unseen cells from which on
every release does; and of whole numbers."""
BATCH = 1_000
"""Sensitive unseen cells of a large cube that are asked about at a time, where there are very many."""
PATIENT_S = 60.0
"""Seconds for very many sensitive unseen cells, where nobody said how long."""
Heard = Callable[[Findings], None]
"""Hears what an examination has found of some of the attackers, while it goes on with the others."""
REMEMBERED = 4
"""Releases of which it is remembered what sums they give away."""


class Audit:
    """One examination of a problem: `judge` releases, ask what if more were withheld or published, and for bounds.

    Who the attackers are is said once: respondents (`insiders`), alone or in coalitions of up to `coalition`, told by
    their role unless `names` are wanted; those who derive sums of withheld cells (`unions`); whether they know that
    values are whole numbers (`integers`). Outsiders are looked at in any case. A `run` says it all at once,
    and who works and for how long.
    """

    def __init__(
        self,
        problem: Problem,
        *,
        insiders: bool = True,
        coalition: int = 1,
        names: bool = False,
        unions: bool = True,
        possibly: Possibly = "open",
        integers: bool | None = None,
        executor: Executor | None = None,
        run: Run | None = None,
    ) -> None:
        if possibly not in get_args(Possibly):
            raise InvalidOption(f"audit's possibly must be 'open' or 'accept', got {possibly!r}.")
        said = Run(
            executor=executor,
            attackers=Attackers(
                insiders=insiders, coalition=coalition, unions=unions, possibly=possibly, integers=integers
            ),
        )
        if run is not None and said != Run():
            raise InvalidOption(
                "audit was told twice whom to play, or who works.", hint="say all of it in run: ts.Run(attackers=…)."
            )
        if not isinstance(problem, Problem):
            raise InvalidOption("Audit takes a problem.", hint="ts.Audit(ts.Problem(table, rules=[…])).judge(release)")
        self.problem = self._given = problem
        self.run, self.names = said if run is None else run, names
        asked = self.run.attackers
        self.insiders, self.coalition, self.unions, self.possibly = (
            asked.insiders, asked.coalition, asked.unions, asked.possibly,
        )  # fmt: skip
        self.executor = self.run.workers
        self.whole = knows_whole_numbers(problem.table, asked.integers)
        self._release: Release | None = None
        self._system: System | None = None
        self._proved, self._settled = Proved(), Settled()
        self._unions_before: Unions | None = None
        """Sums of a release judged before, where none of them fails."""
        self._suggested: tuple[ExactMove, ...] = ()
        self._unread = False
        """Whether what was suggested was not looked at yet."""
        self._sums: dict[bytes, Unions] = {}
        """The sums that could be derived from the last releases that were searched for them to the end."""

    @classmethod
    def going_on(cls, problem: Problem, run: Run) -> Audit:
        """The examination of a problem that was begun in a run, by whoever made a pattern; a new one if none was."""
        if run.audits is None:
            return cls(problem, run=run)
        key = id(problem), run.attackers
        if key not in run.audits:
            run.audits[key] = cls(problem, run=replace(run, budget=None, examined=None, audits=None))
        begun: Audit = run.audits[key]
        return begun

    @classmethod
    def after(cls, findings: Findings, attackers: Attackers) -> Audit:
        """The examination that came to these findings, to be asked what if: what they prove is not proved again."""
        audit = cls(findings.problem, run=Run(attackers=attackers))
        audit._release, audit._system = findings.release, findings.system
        if findings.certificate is not None:
            audit._proved.keep(findings.system, findings.certificate.groups, checked=True)
        if findings.settled is not None:
            audit._settled = findings.settled.copy()
        audit._remember(findings.unions)
        return audit

    @property
    def release(self) -> Release:
        """The release that was judged last."""
        if self._release is None:
            raise InvalidInput("No release was judged yet.", hint="audit.judge(release) first.")
        return self._release

    def judge(
        self,
        release: Release,
        *,
        cells: Literal["sensitive", "all"] = "sensitive",
        exact: bool = True,
        certify: bool = True,
        progress: Progress | None = None,
        time_limit_s: float | None = None,
        budget: Budget | None = None,
        refining: Budget | None = None,
        checkpoint: str | Path | None = None,
        presume: bool = False,
        trial: bool = False,
        heard: Heard | None = None,
    ) -> Findings:
        """Say for every sensitive cell what an attacker can derive from a release, and prove what it cannot.

        What was proved of a release before stays proved where its witnesses still fit; the options are those of
        `tablesafe.audit`; `refining` is the time for exact intervals, half of the `budget` where it is not said. With
        `presume`, for a repair, respondents who have no witness soon are said to learn a cell.
        A `trial`, for a search, presumes that too, looks for no tables in which many cells move, and says nothing of
        sums that can be derived. Who waits for the answer is `heard` of what is found before all of it is: first of
        outsiders alone, then of respondents too.
        """
        if cells not in get_args(Literal["sensitive", "all"]):
            raise InvalidOption(f"audit's cells must be 'sensitive' or 'all', got {cells!r}.")
        require_problem_and_release("audit", self.problem, release)
        _refuse_foreign(self.problem, release)
        self._take_for_known(release)
        system = self._seen(release)
        self._release, self._system = release, system
        budget = self.run.within(time_limit_s) if budget is None else budget
        progress = self.run.examined if progress is None else progress
        return self._judged(
            release, system, cells, exact, certify, progress, budget, refining, checkpoint, presume or trial, trial,
            heard,
        )  # fmt: skip

    def suggest(self, moves: Iterable[ExactMove]) -> None:
        """Take note of changes of the table's cells that may prove something, from whoever made a release.

        None is believed before it is checked in whole numbers, when the next release is judged.
        """
        self._suggested, self._unread = tuple(moves), True

    def memory(self) -> tuple[Problem, Proved, Settled]:
        """What is proved by now: of a release judged later, other proofs may take the place of these."""
        return self.problem, self._proved.copy(), self._settled.copy()

    def recall(self, memory: tuple[Problem, Proved, Settled]) -> None:
        """Go back to what was proved then."""
        self.problem, proved, settled = memory
        self._proved, self._settled = proved.copy(), settled.copy()

    def relied_on(self, cells: NDArray[np.intp]) -> Mask:
        """The table's cells that are moved by the tables which prove some cells to be protected, from whomever."""
        out = np.zeros(len(self.problem.table), dtype=np.bool_)
        out[self._proved.relied_on(cells)] = True
        out[self._settled.relied_on(cells)] = True
        return out

    def withhold(self, cells: ArrayLike, **options: Any) -> Findings:
        """What if these cells were withheld as well? The release judged last stays as it is.

        Cells are numbers of cells or a mask. By default the answer is the quick one: no exact intervals, no proof on
        paper. `options` are those of `judge`.
        """
        release, mask = self.release, self._mask(cells)
        clash = np.flatnonzero(mask & self.problem.frozen)
        if clash.size:
            raise InvalidRelease(
                f"Cell {self.problem.table.describe(int(clash[0]))} is frozen to be published.",
                hint="unfreeze it, or ask about other cells.",
            )
        return self._if(release.withholding(self.problem, mask), options)

    def publish(self, cells: ArrayLike, **options: Any) -> Findings:
        """What if the true values of these cells were published? The release judged last stays as it is."""
        release, mask = self.release, self._mask(cells)
        clash = np.flatnonzero(mask & self.problem.withheld)
        if clash.size:
            raise InvalidRelease(
                f"Cell {self.problem.table.describe(int(clash[0]))} is never published: it is withheld by design."
            )
        return self._if(release.publishing(mask), options)

    def bounds(self, cells: ArrayLike | None = None, *, progress: Progress | None = None) -> tuple[Floats, Floats]:
        """The least and the greatest value that an outsider can derive for cells of the release judged last.

        In the table's own unit, exact, and infinite where there is no bound; by default of all cells. What was worked
        out before is not worked out again.
        """
        table = self.problem.table
        wanted = np.arange(len(table)) if cells is None else np.flatnonzero(self._mask(cells))
        lower, upper = table.value[wanted].copy(), table.value[wanted].copy()
        system = self._seen(self.release)
        at = system.positions(wanted)
        hidden = at >= 0
        found = exact_intervals(system, at[hidden], executor=self.executor, progress=progress)
        ends, unit = (found.lower, found.upper), 10.0**table.decimals
        if self.whole:
            sharper = integer_intervals(system, at[hidden], start=ends)
            ends = sharper.lower, sharper.upper
        lower[hidden], upper[hidden] = ends[0] / unit, ends[1] / unit
        return lower, upper

    # -- how it is done ------------------------------------------------------------------------------------------------

    def _if(self, release: Release, options: dict[str, Any]) -> Findings:
        kept = self._release, self._system, self._unions_before
        try:
            return self.judge(release, **{"exact": False, "certify": False, **options})
        finally:
            self._release, self._system, self._unions_before = kept

    def _remember(self, unions: Unions | None) -> None:
        if unions is not None and unions.known is not None:
            self._unions_before = unions

    def _mask(self, cells: ArrayLike) -> Mask:
        given = np.asarray(cells)
        if given.dtype == np.bool_:
            return self.problem.table.whole_mask(given)
        mask = np.zeros(len(self.problem.table), dtype=np.bool_)
        mask[given.astype(np.intp)] = True
        return mask

    def _take_for_known(self, release: Release) -> None:
        """Ask of attackers who know that what a release withholds is not zero, where it tells that; else of others.

        What was proved to hold against these says nothing of those, for levels ask for nothing that all know to be so.
        """
        problem = known_problem(self._given, release, whole=self.whole)
        if problem is not self.problem:
            self.problem, self._system, self._unions_before = problem, None, None
            self._proved, self._settled, self._sums = Proved(), Settled(), {}

    def _seen(self, release: Release) -> System:
        """What the outsider sees of a release; the system in hand where it is that one."""
        if self._system is not None and release is self._release:
            return self._system
        return System.of(self.problem, release.as_judged)

    def _suggestions(self, system: System) -> tuple[ExactMove, ...]:
        """Those that move nothing but unknown cells, as moves of these."""
        here = ((system.positions(move.cells), move) for move in self._suggested)
        return tuple(ExactMove(at, move.numerators, move.denominator) for at, move in here if (at >= 0).all())

    @cached_property
    def _lists(self) -> Lists | None:
        return Lists.of(self.problem.table)

    def _judged(
        self, release: Release, system: System, cells: str, exact: bool, certify: bool, progress: Progress | None,
        budget: Budget, refining: Budget | None, checkpoint: str | Path | None, presume: bool, trial: bool,
        heard: Heard | None,
    ) -> Findings:  # fmt: skip
        problem, judged = self.problem, release.as_judged
        work = Outsiders(
            problem, judged, system, self.whole, certify, self.executor, progress, budget, refining, checkpoint
        )
        question = Question.of(problem, system, everything=cells == "all")
        quick = len(system) > (MANY_WHOLE if self.whole else MANY) and bool((release.status == Status.CHANGED).any())
        quick |= int(system.unseen.sum()) > MANY
        exact = exact and not quick
        if exact or (self.whole and not quick) or cells == "all":
            exact, question = work.intervals(question)
        if self._unread:
            group = work.by_suggestions(question, self._suggestions(system))
            self._proved.keep(system, (group,), checked=True)
            self._unread = False
        held = self._proved.holding(system, certify=certify)
        question, groups = work.decide(question, held, exact=exact, together=not trial)
        late = budget.over
        self._proved.keep(system, groups, checked=True)
        self._proved.keep(system, work.seen, checked=False)
        groups = (*held.groups, *groups)
        protected = ~question.sensitive | np.isin(question.cells, held.cells) | question.proved_by(groups)
        if not work.prove_all:
            protected |= question.sure
        unit = 10.0**problem.table.decimals
        findings = Findings(
            problem,
            release,
            system,
            question.cells,
            question.lower / unit,
            question.upper / unit,
            protected,
            exact,
            possibly=self.possibly,
            late=late,
            unproved=problem.unjudged,
        )
        if heard is not None:
            heard(findings)
        secret = question.at[protected & question.sensitive]
        asked = self._insiders(system, secret, groups, budget, presume=presume, together=not trial)
        findings = replace(findings, insiders=asked, settled=self._settled.copy() if self.insiders else None)
        if heard is not None:
            heard(findings)
        findings = replace(
            findings,
            unions=None if trial else self._unions(judged, system, budget),
            worked_out=0 if presume else worked_out(problem, system, groups, whole=self.whole, budget=budget),
        )
        if not certify:
            return findings
        if problem.unjudged and not presume and not findings.failing:
            findings = replace(findings, unproved=self._unproved(judged, system, budget))
        counted = () if self.possibly == "accept" else findings.verdict.possibly
        others = (*(str(opening) for opening in findings.beyond_outsiders), *map(str, counted), *findings.not_proved)
        certificate = Certificate(
            problem, judged, system, groups, question.cells[~protected], others, whole=self.whole, published=release
        )
        proved = replace(findings, certificate=certificate)
        return replace(proved, certificate=replace(certificate, attackers=proved.verdict.lines))

    def _insiders(
        self, system: System, secret: NDArray[np.intp], groups: tuple[Group, ...], budget: Budget, *, presume: bool,
        together: bool,
    ) -> Insiders | None:  # fmt: skip
        """What respondents learn of cells that are hidden from outsiders; of a large cube, with most of it at rest."""
        if not self.insiders:
            return None
        left = secret[~np.isin(system.cells[secret], self._settled.holding(system))]
        inside, wanted, keep = system, left, np.arange(len(system))
        if system.is_large:
            moved = [move.cells for group in groups for move in group.moves]
            inside, keep = narrowed(system, np.unique(np.concatenate([left, *moved])))
            wanted = np.searchsorted(keep, left)
        found, settled = search_insiders(
            self.problem, inside, wanted, coalition=self.coalition, names=self.names, lists=self._lists,
            checked=len(secret), presume=presume, suggested=() if system.is_large else self._suggestions(system),
            together=together, whole=self.whole, budget=budget,
        )  # fmt: skip
        self._settled.keep(system, keep[settled.cells], [keep[each] for each in settled.moved], settled.by)
        return found

    def _unproved(self, judged: Release, system: System, budget: Budget) -> int:
        """How many sensitive unseen cells nothing shows to be hidden, where they are too many to count as the others.

        They are asked about as the others are, in exact arithmetic, but without a certificate; of a large cube some at
        a time.
        """
        if not self.problem.unjudged or self.possibly == "accept":
            return self.problem.unjudged
        budget = budget.child(PATIENT_S) if budget.left == inf else budget
        whole = self.problem.flagging_unjudged()
        attackers = replace(self.run.attackers, unions=False)
        run = replace(self.run, attackers=attackers, budget=None, examined=None, audits=None)
        session, left, unproved = Audit(whole, run=run), whole.sensitive, 0
        while left.size:
            if budget.over:
                return unproved + len(left)
            batch = left[:BATCH] if system.is_large else left
            some = np.zeros(len(whole.table), dtype=np.bool_)
            some[batch] = True
            session.problem = session._given = whole.replace(sensitivity=whole.sensitivity.where(some))
            unproved += len(session._open(judged, system, budget))
            left = left[len(batch) :]
        return unproved

    def _open(self, judged: Release, system: System, budget: Budget) -> NDArray[np.intp]:
        """The sensitive cells of which nothing shows that they are hidden, in exact arithmetic, from everybody."""
        work = Outsiders(self.problem, judged, system, self.whole, True, self.executor, None, budget, None, None)
        question, groups = work.decide(
            Question.of(self.problem, system, everything=False), self._proved.holding(system, certify=True), exact=False
        )
        proved = question.proved_by(groups)
        inside = self._insiders(system, question.at[proved], groups, budget, presume=False, together=True)
        told = [] if inside is None else [*(each.cell for each in inside.found), *inside.unsearched, *inside.late]
        return np.union1d(question.cells[~proved], np.array(told, dtype=np.intp))

    def _unions(self, release: Release, system: System, budget: Budget) -> Unions | None:
        """The sums that can be derived; of a large cube those of shown cells."""
        if not self.unions:
            return None
        told = _digest(release)
        if told in self._sums:
            return self._sums[told]
        if budget.overdue:
            raise Interrupted("The audit was interrupted; nothing was written.")
        shown = without_unseen(system) if system.is_large else system
        found = find_unions(self.problem, shown, budget=budget, before=self._unions_before)
        if not found.late and not budget.over:
            self._sums = dict([*self._sums.items(), (told, found)][-REMEMBERED:])
            self._remember(found)
        return found


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
    run: Run | None = None,
) -> Findings:
    """Say for every sensitive cell what an attacker can derive from the release, and prove what it cannot.

    A cell is protected when its interval reaches down to value − lower level and up to value + upper level and is as
    wide as the sliding level; without levels, when it is not known exactly. With `exact` the intervals are exact;
    without, they are only as wide as the answer needs, which is much faster. Large releases with changed values, and
    linked tables with many unseen cells, are always answered so: one system ties all their cells together. `certify`
    proves every protected cell by two exact tables; without it only those are whose interval ends where it must, so
    that no tolerance decides, and more than 1,000 sensitive unseen cells of linked tables are not asked about.
    `insiders` asks what respondents, or coalitions of up to `coalition`, learn about each other, and tells them by
    their role unless `names` are wanted; `unions` judges the sums of withheld cells that can be derived. A cell is
    `possibly` open where that turns on contributors that the table does not list: it counts as open unless this says
    "accept", and `findings.verdict` lists it with what would settle it. With
    `integers` the attacker knows that values are whole numbers, as those of counts are (by default it does when the
    values are the table's own counts).

    When half of `time_limit_s` is over, intervals are no longer made exact; without it, after a minute where more than
    10,000 cells are unknown (a `checkpoint` lets them go on). When all of it is, what was not looked at is open: not
    proved. `budget` takes its place where the audit is a part of something larger. `checkpoint` names a
    confidential file from which an interrupted audit goes on. `run` says at once who the attackers are, who works, how
    long, and who hears of it: the same that was given to `protect`.

    To ask about several releases of one problem, or about a change, keep an `Audit`.
    """
    require_problem_and_release("audit", problem, release)
    session = Audit(
        problem, insiders=insiders, coalition=coalition, names=names, unions=unions, possibly=possibly,
        integers=integers, executor=executor, run=run,
    )  # fmt: skip
    budget = session.run.within(time_limit_s) if budget is None else budget
    progress = session.run.examined if progress is None else progress
    if not names:
        session = Audit.going_on(known_problem(problem, release, whole=session.whole), session.run)
    return session.judge(
        release, cells=cells, exact=exact, certify=certify, progress=progress, budget=budget,
        refining=None if run is None else run.refining, checkpoint=checkpoint,
    )  # fmt: skip


def known_problem(problem: Problem, release: Release, *, whole: bool) -> Problem:
    """The problem with what a release tells of whole numbers that it withholds: that none is zero, or nothing."""
    return problem.with_zeros_shown if whole and release.tells_what_is_zero else problem


def knows_whole_numbers(table: Table, integers: bool | None) -> bool:
    """Whether the attacker knows that values are whole numbers: as said, or because they are the table's own counts."""
    if integers is None:
        return table.count is not None and table.decimals == 0 and bool((table.count == table.integers).all())
    if integers and table.decimals:
        raise InvalidOption(
            (
                "audit's ",
                Setting("integers", True),
                f" says that values are whole numbers, but they have {table.decimals} decimals.",
            )
        )
    return integers


def _digest(release: Release) -> bytes:
    """The same for releases that tell the same."""
    told = (release.values, release.lower, release.upper, release.status)
    return sha256(b"".join(np.ascontiguousarray(each).tobytes() for each in told)).digest()


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
