"""Protect a table as a job asks, or with what it lets give way where that cannot be done."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING, Any

import polars as pl

from tablesafe.core.errors import InvalidOption, InvalidProblem
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release
from tablesafe.job.model import ProblemOptions
from tablesafe.methods import Method
from tablesafe.methods.abilities import outcome
from tablesafe.work.run import Run

if TYPE_CHECKING:
    from tablesafe.methods.redesign.steps import Step

ALGORITHM = "the algorithm 'network' needs a table of two dimensions with at most one hierarchy: another one is used."
ZEROS = "cells of value zero may be withheld too: there was no other way."
RESPONDENTS = "no pattern guards against every respondent and every sum: the table is protected from outsiders alone."
MERGES = 20
"""Changes of the table at most, before a job that asks for merging gives up."""


Way = tuple[int, "tuple[Step, ...]"]
"""The number of an attempt, and what was merged before it."""


@dataclass(frozen=True, slots=True)
class _Attempt:
    """A way to protect, and what has to be said about it."""

    problem: Problem
    method: Method
    run: Run
    told: tuple[str, ...] = ()


@dataclass(slots=True)
class Attempts:
    """What to try, one after the other, until something protects the table.

    As it is asked for; with zeros; without what the attacker is said to know beforehand; at last without a guard
    against respondents and sums. The audit is as strict in any case: it then says what is open. Where the method asks
    for it, a cell that nothing protects is merged with one beside it before all that, and again.
    """

    options: ProblemOptions
    problem: Problem
    unbounded: Callable[[], Problem]
    """Makes the problem of an attacker who knows no bounds beforehand."""
    method: Method
    run: Run
    _left: Iterator[_Attempt] | None = None
    _made: list[_Attempt] = field(default_factory=list)
    _merged: list[str] = field(default_factory=list)

    def outcome(self) -> tuple[Release, dict[str, pl.DataFrame], Way]:
        """The release of the first attempt that protects, the tables of the method, and what was tried until then."""
        failure: InvalidProblem | None = None
        number = 0
        steps: list[Step] = []
        while (attempt := self._attempt(number)) is not None:
            try:
                release, tables = outcome(attempt.problem, attempt.method, attempt.run)
            except InvalidProblem as error:
                step = self._mergeable(error) if number == 0 and len(steps) < MERGES else None
                if step is not None:
                    steps.append(step)
                    self._merge(step)
                    continue
                failure, number = error, number + 1
            except InvalidOption as error:
                named = getattr(self.method, "algorithm", "auto")
                if "algorithm" not in self.options.give_way or error.about[-1:] != ("algorithm",) or named == "auto":
                    raise
                self.method = replace(self.method, algorithm="auto")  # type: ignore[type-var]
                self._left, self._made = None, []
                warnings.warn(ALGORITHM, stacklevel=2)
            else:
                return noted(release, *attempt.told), tables, (number, tuple(steps))
        assert failure is not None
        raise failure

    def told(self, way: Way) -> Problem:
        """The problem of an attempt; what gave way in it is said."""
        number, steps = way
        for step in steps[len(self._merged) :]:  # a run that goes on has not merged them itself
            self._merge(step)
        attempt = self._attempt(number)
        assert attempt is not None
        for text in attempt.told:
            warnings.warn(text, stacklevel=3)
        return attempt.problem

    def _mergeable(self, failure: InvalidProblem) -> Step | None:
        """What merges the cell that a failure is about with one beside it; None where that is not asked for, or none.

        The records of a method that goes back to them are not those of the merged table.
        """
        if getattr(self.method, "unprotectable", "error") != "merge" or failure.about[:1] != ("cells",):
            return None
        from tablesafe.methods.redesign.proposals import merging

        found = merging(self.problem, int(failure.about[1]))
        return None if found is None else found[0]

    def _merge(self, step: Step) -> None:
        from tablesafe.methods.redesign.collapse import take

        self.problem = take(self.problem, step).problem
        unbounded = self.unbounded
        self.unbounded = lambda: take(unbounded(), step).problem
        self._merged.append(f"nothing protects a cell of the table as it was: {step} (unprotectable = merge).")
        self._left, self._made = None, []

    def _attempt(self, number: int) -> _Attempt | None:
        """One of the attempts; None after the last. Each is made when it is asked for."""
        if self._left is None:
            self._left = self._every()
        self._made += islice(self._left, number + 1 - len(self._made))
        return self._made[number] if number < len(self._made) else None

    def _every(self) -> Iterator[_Attempt]:
        allowed, attackers = self.options.give_way, self.run.attackers
        zeros = "zeros" in allowed and getattr(self.method, "zeros", None) is False
        widest: Any = replace(self.method, zeros=True) if zeros else self.method  # type: ignore[type-var]
        problem, lost = self.problem, tuple(self._merged)
        yield _Attempt(problem, self.method, self.run, lost)
        if zeros:
            yield _Attempt(problem, widest, self.run, (*lost, ZEROS))
        if "bounds" in allowed and self.options.bounded:
            problem, lost = self.unbounded(), (*lost, _lost(self.options))
            yield _Attempt(problem, self.method, self.run, lost)
            if zeros:
                yield _Attempt(problem, widest, self.run, (*lost, ZEROS))
        if "respondents" in allowed and (attackers.insiders or attackers.unions):
            outsiders = replace(self.run, attackers=replace(attackers, insiders=False, unions=False))
            told = (*lost, *((ZEROS,) if zeros else ()), RESPONDENTS)
            yield _Attempt(problem, widest, outsiders, told)


def _lost(options: ProblemOptions) -> str:
    known = "the bounds that [problem] gives"
    if options.within_percent is not None:
        known = f"every value to within {options.within_percent:g} percent"
    return f"nothing can be hidden from an attacker who knows {known}: it is taken to know no bounds."


def noted(release: Release, *notes: str) -> Release:
    """The release with further notes on how it was found, where that is told."""
    found = release.solution
    if found is None or not notes:
        return release
    return replace(release, solution=replace(found, notes=(*found.notes, *notes)))
