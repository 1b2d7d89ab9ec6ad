"""What can be measured: instances, the programs of each task, and suites of both, by their names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from tablesafe.core.equations import Mask
    from tablesafe.core.problem import Problem
    from tablesafe.core.release import Release

Role = Literal["tablesafe", "naive", "peer", "printed"]
Row = dict[str, Any]


class NotHere(Exception):
    """Something that this machine does not have: the row says so, and the run goes on."""


@dataclass(frozen=True, slots=True)
class Made:
    """An instance as programs get it: a problem, a pattern for it, plain facts, and files in the instance's folder."""

    problem: Problem | None = None
    hidden: Mask | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def table_problem(self) -> Problem:
        """The problem; instances of records alone have none."""
        if self.problem is None:
            raise NotHere("this instance has no table")
        return self.problem

    @property
    def pattern(self) -> Mask:
        """The cells that are withheld in it; instances to be protected have none."""
        if self.hidden is None:
            raise NotHere("this instance has no pattern")
        return self.hidden


@dataclass(frozen=True, slots=True)
class Instance:
    """A table or records, from a seed or from a file: `make` writes its files into a folder and returns the rest."""

    name: str
    about: str
    make: Callable[[Path], Made]
    size: int
    """About how many cells, or records where it is made of them; growth curves take the exact number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One program's work: an instance, where its files are, how long its method may look, and where peers live."""

    made: Made
    folder: Path
    """The files of the instance; several programs read them."""
    scratch: Path
    """An empty folder of its own."""
    seconds: float
    peers: Path | None
    """The interpreter that has the peers."""
    patience_s: float
    """How long a peer may take by the wall."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a program gave: a release to be judged, figures of its own, and its clock where it kept one itself."""

    release: Release | None = None
    measures: Mapping[str, Any] = field(default_factory=dict)
    cpu_s: float | None = None
    wall_s: float | None = None
    peak_mb: float | None = None
    added_mb: float | None = None
    rows: tuple[Row, ...] = ()
    """Rows of runs of other days, as they were printed; they take the place of this program's own."""


@dataclass(frozen=True, slots=True)
class Program:
    """One way to do a task."""

    task: str
    name: str
    role: Role
    run: Callable[[Case], Outcome]
    warm: str | None
    """The small instance that it runs on before the clock runs, so that compiled code is there."""


@dataclass(frozen=True, slots=True)
class Entry:
    """Some programs of a task on one instance: what is compared within one run."""

    task: str
    instance: str
    programs: tuple[str, ...]
    seconds: float = 10.0
    """How long a method may look for better answers."""
    patience_s: float = 120.0
    """When a program is stopped."""


@dataclass(frozen=True, slots=True)
class Suite:
    """A named list of comparisons."""

    name: str
    about: str
    entries: tuple[Entry, ...]
    figures: bool = True
    """Whether its seconds are meant to be read; without, nothing is compiled or made in a process apart beforehand."""
    headline: tuple[tuple[str, str, str], ...] = ()
    """Task, instance and the program beside ours: the rows of the short table."""


INSTANCES: dict[str, Instance] = {}
PROGRAMS: dict[str, dict[str, Program]] = {}
SUITES: dict[str, Suite] = {}


def instance(name: str, about: str, size: int, make: Callable[[Path], Made]) -> None:
    """Register an instance."""
    assert name not in INSTANCES, f"two instances are called {name}"
    INSTANCES[name] = Instance(name, about, make, size)


def program(
    task: str, name: str, role: Role, *, warm: str | None = None
) -> Callable[[Callable[[Case], Outcome]], Callable[[Case], Outcome]]:
    """Register a program of a task."""

    def register(run: Callable[[Case], Outcome]) -> Callable[[Case], Outcome]:
        programs = PROGRAMS.setdefault(task, {})
        assert name not in programs, f"two programs of {task} are called {name}"
        programs[name] = Program(task, name, role, run, warm)
        return run

    return register


def suite(made: Suite) -> None:
    """Register a suite; it may only name what there is."""
    for entry in made.entries:
        assert entry.instance in INSTANCES, f"suite {made.name}: no instance {entry.instance}"
        unknown = set(entry.programs) - set(PROGRAMS[entry.task])
        assert not unknown, f"suite {made.name}, {entry.task}: no program {unknown}"
    SUITES[made.name] = made


def load() -> None:
    """Let everything register itself."""
    import benchmarks.suites  # noqa: F401
