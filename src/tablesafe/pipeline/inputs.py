"""The files that a job reads, known by what is in them: whether they changed while they were read, or since."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from tablesafe.core.errors import InvalidFile
from tablesafe.job.checks import input_files
from tablesafe.job.model import Job

RECENT_NS = 2_000_000_000
"""A file changed so short a time ago may change again without its time of change telling."""


@dataclass(frozen=True, slots=True)
class Look:
    """A file at one moment."""

    path: Path
    sha256: str
    state: tuple[int, ...]
    """Which file it is, its size, and when it was changed; empty when that was only just now."""


@dataclass(frozen=True, slots=True)
class Inputs:
    """The files of a job at its start."""

    looks: Mapping[str, Look]

    @classmethod
    def of(cls, job: Job) -> Self:
        """Look at every file before it is read."""
        return cls({name: _look(job.resolve(name)) for path, name in input_files(job) if path != ("audit", "key")})

    @property
    def hashes(self) -> dict[str, str]:
        """The hash of each file, by the name that the job gives it."""
        return {name: look.sha256 for name, look in self.looks.items()}

    def require_unchanged(self) -> None:
        """Check that what was read was one and the same file from beginning to end."""
        for name, look in self.looks.items():
            same = look.state and look.state == _state(look.path)
            if not same and _look(look.path).sha256 != look.sha256:
                raise InvalidFile(
                    f"{name!r} changed while it was being read, so nobody knows what the table would show.",
                    hint="wait until whoever writes it has finished, or work on a copy.",
                )


def _look(path: Path) -> Look:
    try:
        state = _state(path)
        with path.open("rb") as file:
            return Look(path, hashlib.file_digest(file, "sha256").hexdigest(), state)
    except OSError as error:
        raise InvalidFile(f"{str(path)!r} cannot be read: {error.strerror}.") from error


def _state(path: Path) -> tuple[int, ...]:
    """What tells one state of a file from another without reading it; nothing if it is in doubt."""
    try:
        found = os.stat(path)  # noqa: PTH116
    except OSError as error:
        raise InvalidFile(f"{str(path)!r} cannot be read any more: {error.strerror}.") from error
    changed = max(found.st_mtime_ns, found.st_ctime_ns)
    if abs(time.time_ns() - changed) < RECENT_NS:
        return ()
    return (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
