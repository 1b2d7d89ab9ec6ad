"""What a run gives back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tablesafe.audit.findings import Findings
from tablesafe.job.checks import internal_folder
from tablesafe.job.model import Job
from tablesafe.problem import Problem
from tablesafe.release import Release, Status


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

    @property
    def safe(self) -> bool:
        """Whether the release passed its audit."""
        return self.findings.safe

    @property
    def internal(self) -> Path:
        """The folder of what stays in the office."""
        return internal_folder(self.job)

    def facts(self) -> dict[str, Any]:
        """The run in numbers, for programs. It names no cell and no value, but counts that stay in the office."""
        status = self.release.status
        return {
            "status": "safe" if self.safe else "open",
            "title": self.job.title,
            "cells": len(self.problem.table),
            "equations": int(self.problem.table.equations.shape[0]),
            "sensitive": len(self.problem.sensitive),
            "withheld": int(self.release.suppressed.sum()),
            "by_status": {kind.word: int((status == kind).sum()) for kind in Status if bool((status == kind).any())},
            "open": len({opening.cell for opening in self.findings.open}),
            "method": self.release.method,
            "release_written": self.published,
            "files": [str(path) for path in self.files],
            "seconds": {stage: round(seconds, 3) for stage, seconds in self.seconds.items()},
        }
