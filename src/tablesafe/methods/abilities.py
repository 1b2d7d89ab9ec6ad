"""What a method may need or give besides its release. Who runs methods asks for it here, and knows none by name.

A method declares what it needs: `needs_records` (it goes back to the records behind the table), `own_columns` (columns
that its options name are of the records), `whole_run` (its time limit is for the audit of its release too). It has
`reading` if options of it name files, `working` if it can be told how to run, `outcome` if it makes more than its
release.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import polars as pl

from tablesafe.core.equations import Mask
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release
from tablesafe.core.statuses import Scheme

if TYPE_CHECKING:
    from tablesafe.audit.verdict import Possibly
    from tablesafe.methods import Method
    from tablesafe.methods.cell_key.table import PerturbationTable


class Files(Protocol):
    """Reads what options name by a file: methods touch none themselves."""

    def pattern(
        self, file: str, *, scheme: Scheme | None, complete: bool = True, ignore_unknown: bool = False
    ) -> Mask: ...

    def perturbation(self, file: str, kind: str) -> PerturbationTable: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """How a method is run, which is no option of it: who hears of progress, who works, whom the audit will play."""

    progress: Callable[[float, float], None] | None = None
    """Hears of every better answer: its cost, and what none can be below."""
    executor: Executor | None = None
    insiders: bool = True
    unions: bool = True
    possibly: Possibly = "open"
    coalition: int = 1
    integers: bool | None = None


@dataclass(frozen=True, eq=False)
class Outcome:
    """A release, and the tables that help the office to judge it. Confidential."""

    release: Release = field(repr=False)
    tables: Mapping[str, pl.DataFrame] = field(default_factory=dict, repr=False)
    """By the name of the file that a job writes."""


def needs_records(method: Method) -> bool:
    """Whether a method goes back to the records behind a table."""
    return bool(getattr(method, "needs_records", False))


def time_limit_of(method: Method) -> float | None:
    """The seconds that a method gives to all of a run; None where they are its own."""
    limit: float | None = getattr(method, "time_limit_s", None) if getattr(method, "whole_run", False) else None
    return limit


def ready(method: Method, files: Files) -> Method:
    """The method with what its options name by a file."""
    return _by(method, "reading", files)


def working(method: Method, run: Run) -> Method:
    """The method with somebody to report to and to do its work, and with those to protect from."""
    return _by(method, "working", run)


def _by(method: Method, ability: str, given: Any) -> Method:
    able: Callable[[Any], Method] | None = getattr(method, ability, None)
    return method if able is None else able(given)


def outcome(problem: Problem, method: Method) -> tuple[Release, dict[str, pl.DataFrame]]:
    """The release of a method, and its tables."""
    able = getattr(method, "outcome", None)
    if able is None:
        return method.protect(problem), {}
    found = able(problem)
    return found.release, dict(found.tables)
