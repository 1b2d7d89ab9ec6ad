"""The log of a run, and what the user should know. Neither holds a value of a cell."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from tablesafe.core.errors import InvalidInput, SolverFailure
from tablesafe.files.read import decode
from tablesafe.files.write import write_text
from tablesafe.tauargus.batch.commands import Batch


@dataclass(slots=True)
class Journal:
    """Lines with their time, and warnings with their line in the batch file."""

    batch: Batch
    lines: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    files: list[Path] = field(default_factory=list)
    """The files that the log is added to."""

    def say(self, text: str) -> None:
        """Note what is done."""
        self.lines.append(f"{datetime.now():%d-%b-%Y %H:%M:%S} : {text}")

    def warn(self, line: int, text: str) -> None:
        """Note what the user should know."""
        told = f"{self.batch.where(line)}: {text}"
        if told not in self.warnings:
            self.warnings.append(told)
            self.say(f"Warning: {text}")

    @contextmanager
    def at(self, line: int) -> Iterator[None]:
        """Do what a command asks: errors name its line, and warnings are noted."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                yield
            except (InvalidInput, SolverFailure) as error:
                self.say(f"Stopped by an error on line {line} ({type(error).__name__}).")
                if error.where.startswith(self.batch.path.name):
                    raise
                command = self.batch.texts.get(line, "").partition(">")[0] + ">"
                raise error.at(f"{self.batch.where(line)}, {command}") from error
            finally:
                for warning in caught:
                    self.warn(line, str(warning.message))

    def save(self) -> None:
        """Add the log to its files: what was there stays."""
        for path in dict.fromkeys(self.files):
            before = decode(path.read_bytes(), path.name) if path.is_file() else ""
            gap = "\n" if before and not before.endswith("\n") else ""
            write_text(path, before + gap + "".join(line + "\n" for line in self.lines))
