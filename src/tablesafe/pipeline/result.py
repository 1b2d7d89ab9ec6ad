"""What a run gives back."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tablesafe.audit.findings import Findings
from tablesafe.audit.verdict import Verdict
from tablesafe.core.display import shown
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release, Status
from tablesafe.job.checks import internal_folder
from tablesafe.job.model import Job
from tablesafe.report.progress import Trace

if TYPE_CHECKING:
    from tablesafe.attack.suite import Scores
    from tablesafe.methods.intervals.leaks import Leaks
    from tablesafe.methods.suppress.stability import Stability


@shown
@dataclass(frozen=True, eq=False)
class Result:
    """What went in, what came out, what the audit says, and the files that were written."""

    job: Job
    problem: Problem = field(repr=False)
    release: Release = field(repr=False)
    findings: Findings = field(repr=False)
    published: bool
    """Whether the release was written: it is safe, or the user insisted."""
    files: tuple[Path, ...]
    """Every file that was written, the release first."""
    seconds: Mapping[str, float]
    """How long each stage took."""
    stability: Stability | None = None
    """How much of last period's pattern is kept, where the job names one."""
    scores: Scores | None = field(default=None, repr=False)
    """How near an intruder's guesses come; None when the job wants no attack."""
    leaks: Leaks | None = field(default=None, repr=False)
    """What published intervals give away; None when none are published."""
    trace: Trace | None = field(default=None, repr=False)
    """The best answer and the proven bound over time, as far as the method told them."""

    @property
    def safe(self) -> bool:
        """Whether the release passed its audit, and the intervals that it publishes leak nothing."""
        return self.verdict.safe

    @property
    def verdict(self) -> Verdict:
        """What the audit says of the release, and of the intervals that it publishes."""
        found = self.findings.verdict
        return found if self.leaks is None else found.with_intervals(leaking=self.leaks.leaking)

    @property
    def internal(self) -> Path:
        """The folder of what stays in the office."""
        return internal_folder(self.job)

    def _quality(self) -> dict[str, Any]:
        """How good the answer is, as far as the method tells; and how stable."""
        solution, kept = self.release.solution, self.stability
        told: dict[str, Any] = {}
        if solution is not None:
            told["solution"] = {
                "status": str(solution.status),
                **{name: _finite(getattr(solution, name)) for name in ("objective", "bound", "gap")},
                "warning": solution.warning or None,
                "attackers": [
                    {"attacker": price.attacker, "cells": price.cells, "cost": price.cost, "proved": price.proved}
                    for price in solution.prices
                ],
                "notes": list(solution.notes),
            }
        if kept is not None:
            told["stability"] = {
                "before": kept.before,
                "kept": kept.kept,
                "dropped": kept.dropped,
                "new": kept.new,
                "share_kept": kept.share_kept,
                "similarity": kept.similarity,
            }
        return told

    def facts(self) -> dict[str, Any]:
        """The run in numbers, for programs. It names no cell and no value, but counts that stay in the office."""
        status = self.release.status
        return {
            "status": "safe" if self.safe else "open",
            "verdict": str(self.verdict.word),
            "lines": list(self.verdict.lines),
            "title": self.job.title,
            "cells": len(self.problem.table),
            "equations": int(self.problem.table.equations.shape[0]),
            "sensitive": len(self.problem.sensitive),
            "withheld": int(self.release.suppressed.sum()),
            "by_status": {kind.word: int((status == kind).sum()) for kind in Status if bool((status == kind).any())},
            "open": len({opening.cell for opening in self.findings.open}),
            "possibly_open": len({opening.cell for opening in self.findings.possible}),
            "method": self.release.method,
            **self._quality(),
            "leaks": None if self.leaks is None else str(self.leaks),
            "attack": None if self.scores is None else self.scores.headline,
            "release_written": self.published,
            "files": [str(path) for path in self.files],
            "seconds": {stage: round(seconds, 3) for stage, seconds in self.seconds.items()},
        }


def _finite(number: float) -> float | None:
    """A number for JSON, which has no infinity."""
    return number if math.isfinite(number) else None
