"""Patterns that nobody searches for: everything in the open, the sensitive cells alone, a pattern made elsewhere."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from tablesafe.core.equations import Mask
from tablesafe.core.errors import InvalidOption
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release
from tablesafe.core.statuses import Scheme
from tablesafe.methods.abilities import Files
from tablesafe.work.run import Run


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishAll:
    """Publish every value as it is.

    The audit then says which cells would give somebody away: a first look at a table, not a protection.
    """

    name: ClassVar[str] = "none"

    def protect(self, problem: Problem, run: Run | None = None) -> Release:
        """Publish all cells but those withheld already or by design."""
        return Release.from_suppression(problem, problem.suppressed, method=self.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Withhold:
    """Withhold the sensitive cells and nothing else.

    Sums of neighbouring cells usually give them away again: the audit says which, and complementary suppression is
    what repairs it.
    """

    name: ClassVar[str] = "withhold"

    def protect(self, problem: Problem, run: Run | None = None) -> Release:
        """Withhold the sensitive cells and those withheld already."""
        return Release.from_suppression(problem, problem.sensitivity.mask | problem.suppressed, method=self.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pattern:
    """Take a pattern made elsewhere: by hand, or by other software.

    The file says per cell whether it is withheld; the audit judges the pattern as it judges our own.
    """

    name: ClassVar[str] = "pattern"

    file: str = field(
        metadata={"help": "file with the pattern: CSV, .tab or JJ", "example": "pattern.csv", "file": True}
    )
    scheme: Scheme | None = field(
        default=None,
        metadata={
            "help": "the vocabulary of its statuses; when not given, they must leave no doubt",
            "example": "sdmx-conf",
        },
    )
    mask: Mask | None = field(
        default=None, repr=False, compare=False, metadata={"help": "the pattern, once it was read", "hidden": True}
    )

    def reading(self, files: Files) -> Pattern:
        """The method with its pattern."""
        return replace(self, mask=files.pattern(self.file, scheme=self.scheme))

    def protect(self, problem: Problem, run: Run | None = None) -> Release:
        """Withhold what the pattern withholds."""
        if self.mask is None:
            raise InvalidOption(
                f"The pattern in {self.file!r} was not read yet.",
                hint="from Python, use Release.from_suppression(problem, mask).",
            )
        return Release.from_suppression(problem, np.asarray(self.mask, dtype=np.bool_), method=self.name)
