"""The audit: what can an attacker derive from a release, and what proves that it is not too much?"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from typing import Literal, Self

import numpy as np
from numpy.typing import NDArray

from tablesafe.audit.certificate import Certificate, exact_limits
from tablesafe.audit.findings import Findings
from tablesafe.audit.insiders import insiders as find_insiders
from tablesafe.audit.intervals import exact_intervals
from tablesafe.audit.proofs import TIE, Group, Needs, prove
from tablesafe.audit.protection import Protection, protection
from tablesafe.audit.system import System
from tablesafe.audit.unions import unions as find_unions
from tablesafe.equations import Floats, Mask
from tablesafe.errors import InvalidOption, InvalidRelease
from tablesafe.problem import Problem
from tablesafe.release import Release

Progress = Callable[[float], None]


def audit(
    problem: Problem,
    release: Release,
    *,
    cells: Literal["sensitive", "all"] = "sensitive",
    exact: bool = True,
    insiders: bool = True,
    coalition: int = 1,
    unions: bool = True,
    certify: bool = True,
    executor: Executor | None = None,
    progress: Progress | None = None,
) -> Findings:
    """Say for every sensitive cell what an attacker can derive from the release, and prove what it cannot.

    A cell is protected when its interval reaches down to value − lower level and up to value + upper level and is as
    wide as the sliding level; without levels, when it is not known exactly. With `exact` the intervals are exact;
    without, they are only as wide as the answer needs, which is much faster. `certify` proves every protected cell by
    two exact tables; without it only those are whose interval ends where it must, so that a tolerance never decides.
    `insiders` asks what respondents, or coalitions of up to `coalition`, learn about each other; `unions` judges the
    sums of withheld cells that can be derived.
    """
    if cells not in {"sensitive", "all"}:
        raise InvalidOption(f"audit's cells must be 'sensitive' or 'all', got {cells!r}.")
    _refuse_foreign(problem, release)
    system = System.of(problem, release)
    question = _Question.of(problem, system, everything=cells == "all")
    exact = exact or cells == "all"
    if exact:
        found = exact_intervals(system, question.at[question.hidden], executor=executor, progress=progress)
        question = question.answered(question.hidden, found.lower, found.upper)
    asked = question.undecided(exact=exact, certify=certify)
    lower, upper, sliding = question.needs.take(asked).floats()
    value = question.value[asked]
    seen = protection(
        system, question.at[asked], value - lower, value + upper, sliding, executor=executor, progress=progress
    )
    if not exact:
        question = question.answered(asked, seen.lower, seen.upper)
        asked = question.undecided(exact=True, certify=certify)
    groups = tuple(_proofs(problem, release, system, question.needs.take(asked), seen))
    protected = ~question.sensitive | question.at_any(groups) | (question.sure if not certify else False)
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
        insiders=find_insiders(problem, system, question.at[protected & question.sensitive], coalition=coalition)
        if insiders
        else None,
        unions=find_unions(problem, system) if unions else None,
    )
    if not certify:
        return findings
    open_cells, others = question.cells[~protected], tuple(str(opening) for opening in findings.beyond_outsiders)
    return replace(findings, certificate=Certificate(problem, release, system, groups, open_cells, others))


@dataclass(frozen=True, eq=False)
class _Question:
    """The cells asked about and what is known of them so far, in the system's units."""

    cells: NDArray[np.intp] = field(repr=False)
    at: NDArray[np.intp] = field(repr=False)
    """Position of each among the unknown cells; −1 for a cell that the attacker knows."""
    sensitive: Mask = field(repr=False)
    value: Floats = field(repr=False)
    lower: Floats = field(repr=False)
    """The least an attacker can make it, as far as known."""
    upper: Floats = field(repr=False)
    needs: Needs = field(repr=False)
    """Of all the cells; zero where not sensitive."""

    @classmethod
    def of(cls, problem: Problem, system: System, *, everything: bool) -> Self:
        """Ask about the sensitive cells, or about all that are unknown as well."""
        table, levels = problem.table, problem.sensitivity
        cells = np.union1d(problem.sensitive, system.cells) if everything else problem.sensitive
        position = np.full(len(table), -1, dtype=np.intp)
        position[system.cells] = np.arange(len(system))
        at = position[cells]
        value = table.integers[cells].astype(np.float64)
        needs = Needs.of(at, levels.lower[cells], levels.upper[cells], levels.sliding[cells], table.decimals)
        return cls(cells, at, levels.mask[cells], value, value.copy(), value.copy(), needs)

    @property
    def hidden(self) -> NDArray[np.intp]:
        """Which of the cells the attacker does not know from the start."""
        return np.flatnonzero(self.at >= 0)

    def answered(self, which: NDArray[np.intp], lower: Floats, upper: Floats) -> Self:
        """With intervals for some of the cells."""
        low, high = self.lower.copy(), self.upper.copy()
        low[which], high[which] = np.minimum(low[which], lower), np.maximum(high[which], upper)
        return type(self)(self.cells, self.at, self.sensitive, self.value, low, high, self.needs)

    @property
    def sure(self) -> Mask:
        """Sensitive cells that are protected beyond any doubt of floating point."""
        return self.sensitive & (self.at >= 0) & self._reaches(-1.0)

    def undecided(self, *, exact: bool, certify: bool) -> NDArray[np.intp]:
        """Sensitive cells that need witnesses: those that may be protected, if that must be proved or is too close."""
        wanted = self.sensitive & (self.at >= 0)
        if exact:
            wanted &= self._reaches(1.0)
            if not certify:
                wanted &= ~self.sure
        return np.flatnonzero(wanted)

    def at_any(self, groups: Sequence[Group]) -> Mask:
        """The cells that some group proves."""
        return np.isin(self.at, np.concatenate([np.zeros(0, np.intp), *(group.at for group in groups)]))

    def _reaches(self, sign: float) -> Mask:
        """Whether each interval reaches as far as needed, give or take what only exact arithmetic can tell."""
        slack = sign * TIE * np.maximum(1.0, np.abs(self.value))
        lower, upper, sliding = self.needs.floats()
        bare = (lower == 0) & (upper == 0) & (sliding == 0)
        covers = (self.lower - slack <= self.value - lower) & (self.upper + slack >= self.value + upper)
        wide = self.upper - self.lower + 2 * slack >= sliding
        return np.asarray(np.where(bare, self.upper - self.lower > np.abs(slack), covers & wide), np.bool_)


def _proofs(problem: Problem, release: Release, system: System, needs: Needs, seen: Protection) -> Iterator[Group]:
    """Per component the exact tables that prove what the solver's tables suggest."""
    limits, columns = exact_limits(problem, release, system), system.matrix.tocsc()
    order = np.argsort(needs.at, kind="stable")
    for component in seen.components:
        wanted = order[np.isin(needs.at[order], component.cells)]
        if wanted.size:
            moves = component.tables - system.truth[component.cells]
            yield prove(columns, limits, component.cells, moves, needs.take(wanted))


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
