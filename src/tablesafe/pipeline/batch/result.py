"""What running a batch file gives back."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tablesafe.audit.findings import Findings
from tablesafe.core.errors import InvalidOption
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release
from tablesafe.pipeline.result import Result


@dataclass(frozen=True, eq=False)
class BatchResult:
    """One `Result` per table that was protected or written, and what the user should know."""

    path: Path
    results: tuple[Result, ...]
    """In the order of the tables; linked tables share their findings."""
    problems: tuple[Problem, ...] = field(repr=False)
    """Every table that was read, protected or not."""
    warnings: tuple[str, ...]
    """What was done otherwise than the file says, or is worth knowing; each names its line."""
    log: tuple[str, ...] = field(repr=False)
    """What was done, with the time; no confidential value."""
    files: tuple[Path, ...]
    """Every file that was written."""

    @property
    def safe(self) -> bool:
        """Whether every table that was protected or written passed its audit."""
        return all(result.safe for result in self.results)

    @property
    def published(self) -> bool:
        """Whether everything that was to be written was."""
        return all(result.published for result in self.results)

    def _only(self) -> Result:
        if len(self.results) != 1:
            raise InvalidOption(
                f"{self.path.name} has {len(self.results)} tables that were protected.\n\n"
                f"Hint: look at one of them: result.results[0]."
            )
        return self.results[0]

    @property
    def problem(self) -> Problem:
        """The problem of the only table."""
        return self.problems[0] if len(self.problems) == 1 else self._only().problem

    @property
    def release(self) -> Release:
        """The release of the only table."""
        return self._only().release

    @property
    def findings(self) -> Findings:
        """The findings of the only table."""
        return self._only().findings

    def facts(self) -> dict[str, Any]:
        """The run in numbers, for programs. It names no cell and no value, but counts that stay in the office."""
        return {
            "status": "safe" if self.safe else "open",
            "title": self.path.name,
            "tables": [result.facts() for result in self.results],
            "tables_read": len(self.problems),
            "release_written": self.published,
            "warnings": list(self.warnings),
            "files": [str(path) for path in self.files],
        }
