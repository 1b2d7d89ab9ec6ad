"""Solvers that fail and clocks that jump: a safe release with a proof, or none and an error."""

from __future__ import annotations

import ast
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import highspy
import numpy as np
import pytest
from test_disk import EVERY

import tablesafe
from seeds import fresh
from tablesafe.core.errors import TablesafeError
from tablesafe.pipeline import run
from tablesafe.verify import verify
from tablesafe.work import budget

STATUSES = ("kSolveError", "kTimeLimit", "kInfeasible", "kUnknown", "kOptimal")
"""What a solver may say that is not true; the last of an answer that it did not look for."""


@pytest.fixture
def optimal(job: Path) -> Path:
    """The job with more for a solver to do."""
    text = job.read_text(encoding="utf-8").replace('name = "suppress"', 'name = "suppress"\nalgorithm = "optimal"')
    text = text.replace("time_limit_s = 5", "time_limit_s = 0.5")  # who is lied to may search to the end of it
    job.write_text(text, encoding="utf-8")
    return job


def outcome(job: Path) -> bool:
    """Whether a release was written; if so it must be proved, and if not an error must have said so."""
    for name in ("public/table.csv", "public/copy.csv", "internal/certificate.json.gz"):
        (job.parent / name).unlink(missing_ok=True)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = run(job)
    except TablesafeError:
        assert not (job.parent / "public/table.csv").exists()
        return False
    there = (job.parent / "public/table.csv").exists()
    assert there == (job.parent / "public/copy.csv").exists() == result.safe
    if there:
        verify(job.parent / "internal/certificate.json.gz", release=job.parent / "public/table.csv")
    return there


def solves(monkeypatch: pytest.MonkeyPatch, replacement: Callable[[Any, int, Callable[[Any], Any]], Any]) -> list[int]:
    """Have something else done at each solve: told the solver, its number, and what would have been done."""
    seen: list[int] = []
    real = highspy.Highs.run

    def replaced(self: Any) -> Any:
        seen.append(len(seen))
        return replacement(self, seen[-1], real)

    monkeypatch.setattr(highspy.Highs, "run", replaced)
    return seen


COUNTED: list[int] = []


def solved_by(job: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    """How often the job asks the solver when nothing happens: counted once for all tests."""
    if not COUNTED:
        with monkeypatch.context() as patch:
            seen = solves(patch, lambda solver, n, solve: solve(solver))
            run(job)
        COUNTED.append(len(seen))
    return COUNTED[0]


@pytest.mark.parametrize("status", STATUSES)
@pytest.mark.parametrize("always", [False, True], ids=["once", "from then on"])
def test_a_solver_that_says_something_else(
    optimal: Path, monkeypatch: pytest.MonkeyPatch, status: str, always: bool
) -> None:
    total = solved_by(optimal, monkeypatch)
    told = getattr(highspy.HighsModelStatus, status)
    real = highspy.Highs.getModelStatus
    draw = fresh(1, f"a solver that says {status}, {always}")[0] % max(1, total - 1)
    for first in {0, 1 + draw} if EVERY else {(0, 1 + draw)[STATUSES.index(status) % 2]}:
        with monkeypatch.context() as patch:
            lying: set[int] = set()

            def instead(
                solver: Any, n: int, solve: Callable[[Any], Any], first: int = first, lying: set[int] = lying
            ) -> Any:
                here = n == first or (always and n > first)
                (lying.add if here else lying.discard)(id(solver))
                return highspy.HighsStatus.kError if here else solve(solver)

            solves(patch, instead)
            patch.setattr(
                highspy.Highs, "getModelStatus", lambda self, lying=lying: told if id(self) in lying else real(self)
            )
            outcome(optimal)


METHODS = {
    "suppress": 'name = "suppress"\nalgorithm = "optimal"\ntime_limit_s = 0.1',
    "in parts": 'name = "suppress"\nalgorithm = "modular"\ntime_limit_s = 0.1',
    "adjust": 'name = "adjust"\ntime_limit_s = 0.1',
    "fixed directions": 'name = "adjust"\ndirections = "up"\ntime_limit_s = 0.1',
}
LIES: dict[str, Callable[[Any], Any]] = {
    "no number": lambda x: np.full_like(x, np.nan),
    "nothing": np.zeros_like,
    "too far": lambda x: x * 3 + 7,
    "a little off": lambda x: x + np.where(np.arange(len(x)) % 3, 0.4, -0.6),
    "the other way": lambda x: -x,
    "without end": lambda x: np.full_like(x, np.inf),
}


class Lying:
    """A solution with another point, or with other prices."""

    def __init__(self, real: Any, lie: Callable[[Any], Any]) -> None:
        self._real, self._lie = real, lie

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._real, name)
        return self._lie(np.array(found, dtype=float)) if name in {"col_value", "row_dual", "row_value"} else found


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("lie", LIES)
def test_an_optimum_that_is_none(job: Path, monkeypatch: pytest.MonkeyPatch, method: str, lie: str) -> None:
    """The solver says that it has found the best answer, and gives one that breaks the equations, or is no number."""
    job.write_text(job.read_text().replace('name = "suppress"\ntime_limit_s = 5', METHODS[method]))
    real = highspy.Highs.getSolution
    first_or_later = (0, 3) if EVERY else ((0, 3)[(list(METHODS).index(method) + list(LIES).index(lie)) % 2],)
    for first in first_or_later:
        told = 0

        def lying(self: Any, first: int = first) -> Any:
            nonlocal told
            told += 1
            found = real(self)
            return Lying(found, LIES[lie]) if told > first else found

        with monkeypatch.context() as patch:
            patch.setattr(highspy.Highs, "getSolution", lying)
            outcome(job)
        assert told or method == "in parts"


def clocks(monkeypatch: pytest.MonkeyPatch, name: str, read: Callable[[], float]) -> None:
    """Put another clock in the place of one of Python's, wherever it was taken from."""
    real = getattr(time, name)
    monkeypatch.setattr(time, name, read)
    for module in [module for key, module in sys.modules.items() if key.startswith("tablesafe")]:
        if getattr(module, name, None) is real:
            monkeypatch.setattr(module, name, read)


def jumping(real: Callable[[], float], at: int, by: float) -> Iterator[float]:
    """A clock that jumps once."""
    calls = 0
    while True:
        calls += 1
        yield real() + (by if calls > at else 0.0)


@pytest.mark.parametrize(
    ("clock", "by"), [("monotonic", 1e7), ("perf_counter", 1e7), ("time", 1e7), ("time", -1e9)], ids=str
)
def test_a_clock_that_jumps(job: Path, monkeypatch: pytest.MonkeyPatch, clock: str, by: float) -> None:
    for at in (0, 3, 20, 200) if EVERY else (0 if by > 0 else 20,):
        with monkeypatch.context() as patch:
            patch.setattr(budget, "wall", lambda: budget.monotonic())  # as users have it
            clocks(patch, clock, jumping(getattr(time, clock), at, by).__next__)
            outcome(job)
    assert outcome(job)


CLOCKS = {"time", "datetime", "date"}
WALL = {"time", "time_ns", "now", "today", "utcnow", "localtime", "gmtime"}
MAY_LOOK = {"pipeline/inputs.py", "pipeline/running.py", "batch_jobs/files.py", "tauargus/batch/journal.py",
            "report/writing.py", "cli/audit.py", "web/pages/panel.py"}  # fmt: skip
"""Where the time of day is told, or compared with that of a file; nothing there is a deadline."""


def test_no_deadline_is_kept_by_the_time_of_day() -> None:
    """It jumps: when it is set, and twice a year where somebody forgot about zones."""
    package = Path(tablesafe.__file__).parent
    found = set()
    for path in package.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            named = isinstance(node, ast.ImportFrom) and node.module == "time" and {each.name for each in node.names}
            read = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in CLOCKS
            if (named and named & WALL) or (read and isinstance(node, ast.Attribute) and node.attr in WALL):
                found.add(path.relative_to(package).as_posix())
    assert found == MAY_LOOK
    assert "RECENT_NS" in (package / "pipeline/inputs.py").read_text(encoding="utf-8")
