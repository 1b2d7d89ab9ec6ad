"""What a method may need or give besides its release. Who runs methods asks for it here, and knows none by name.

A method declares what it needs: `needs_records` (it goes back to the records behind the table), `own_columns` (columns
that its options name are of the records), `whole_run` (its time limit is for the audit of its release too). It has
`reading` if options of it name files, `outcome` if it makes more than its release. How to run it is no option: `Run`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import wraps
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import polars as pl

from tablesafe.core.equations import Mask
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release
from tablesafe.core.statuses import Scheme
from tablesafe.work.run import Attackers, Run

if TYPE_CHECKING:
    from tablesafe.methods import Method
    from tablesafe.methods.cell_key.table import PerturbationTable

Kind = TypeVar("Kind")


class Files(Protocol):
    """Reads what options name by a file: methods touch none themselves."""

    def pattern(
        self, file: str, *, scheme: Scheme | None, complete: bool = True, ignore_unknown: bool = False
    ) -> Mask: ...

    def perturbation(self, file: str, kind: str) -> PerturbationTable: ...


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


def _by(method: Method, ability: str, given: Any) -> Method:
    able: Callable[[Any], Method] | None = getattr(method, ability, None)
    return method if able is None else able(given)


def outcome(problem: Problem, method: Method, run: Run | None = None) -> tuple[Release, dict[str, pl.DataFrame]]:
    """The release of a method, and its tables."""
    able = getattr(method, "outcome", None)
    if able is None:
        return method.protect(problem, run), {}
    found = able(problem, run)
    return found.release, dict(found.tables)


# -- how to run it, said by options: deprecated --------------------------------------------------------------------


TOLD = {"help": "how to run it, as deprecated options said", "hidden": True}
"""Of the field `told` of the methods that were once told by options how to run."""


def told_by(*names: str) -> Callable[[type[Kind]], type[Kind]]:
    """Let a method take, with a warning, what belongs to a `Run`: once these were options of it."""

    def decorate(kind: type[Kind]) -> type[Kind]:
        given = kind.__init__

        @wraps(given)
        def init(self: Any, *args: Any, **options: Any) -> None:
            said = {name: options.pop(name) for name in names if name in options}
            if said:
                warnings.warn(
                    f"{kind.__name__}'s {', '.join(said)} say how to run it, not what to do: give them to a Run, and "
                    f"that to protect. They will not be taken here any more.",
                    DeprecationWarning,
                    stacklevel=2,
                )
                running = {name: said.pop(name) for name in ("executor", "progress") if name in said}
                options["told"] = Run(attackers=Attackers(**said), **running)
            given(self, *args, **options)

        kind.__init__ = init  # type: ignore[method-assign]
        return kind

    return decorate


def as_told(method: Any, run: Run | None) -> Run:
    """How to run a method: as the caller says, who may ask for less than deprecated options do; else as these say."""
    told: Run | None = method.told
    if run is None or told is None:
        return run or told or Run()
    asked, other = run.attackers, told.attackers
    together = max(asked.coalition, other.coalition)
    integers = asked.integers if other.integers is None else other.integers
    return replace(run, attackers=replace(asked, coalition=together, integers=integers))
