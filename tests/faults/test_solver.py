"""Solvers that fail and clocks that jump: a safe release with a proof, or none and an error."""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import highspy
import pytest
from test_disk import EVERY

from tablesafe.errors import TablesafeError
from tablesafe.pipeline import run
from tablesafe.report import writing
from tablesafe.verify import verify

STATUSES = ("kSolveError", "kTimeLimit", "kInfeasible", "kUnknown", "kOptimal")
"""What a solver may say that is not true; the last of an answer that it did not look for."""


@pytest.fixture(autouse=True)
def _without_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "pictures", lambda *args, **options: {})


@pytest.fixture
def optimal(job: Path) -> Path:
    """The job with more for a solver to do."""
    text = job.read_text(encoding="utf-8").replace('name = "suppress"', 'name = "suppress"\nalgorithm = "optimal"')
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


@pytest.mark.parametrize("status", STATUSES)
@pytest.mark.parametrize("always", [False, True], ids=["once", "from then on"])
def test_a_solver_that_says_something_else(
    optimal: Path, monkeypatch: pytest.MonkeyPatch, status: str, always: bool
) -> None:
    with monkeypatch.context() as patch:
        total = len((seen := solves(patch, lambda solver, n, solve: solve(solver)), run(optimal), seen)[0])
    told = getattr(highspy.HighsModelStatus, status)
    real = highspy.Highs.getModelStatus
    for first in {0, total // 2, total - 1}:
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
    for at in (0, 3, 20, 200) if EVERY else (0, 20):
        with monkeypatch.context() as patch:
            clocks(patch, clock, jumping(getattr(time, clock), at, by).__next__)
            outcome(job)
    assert outcome(job)
