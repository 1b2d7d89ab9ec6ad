"""What a job needs from outside: files, known by what is in them, and packages; both are looked at before the work."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Self

from tablesafe.core.errors import InvalidFile, MissingExtra
from tablesafe.io.formats import format_of
from tablesafe.io.layout import EXCEL_ENDINGS
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
        looks = {name: _look(job.resolve(name)) for path, name in input_files(job) if path != ("audit", "key")}
        if job.source.file.lower().endswith(".arb"):
            from tablesafe.tauargus.batch.session import files_read

            looks |= {path.name: _look(path) for path in files_read(job.resolve(job.source.file))}
        return cls(looks)

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


# -- packages ----------------------------------------------------------------------------------------------------------


def require_extras(job: Job) -> None:
    """Refuse a job that would need a package that is not installed."""
    for what, extra, package in _needed(job):
        if find_spec(package) is None:
            raise MissingExtra(what, extra)


def _needed(job: Job) -> Iterator[tuple[str, str, str]]:
    """What the job does, the extra that it needs for it, and the package that must be there."""
    if any(name.lower().endswith(EXCEL_ENDINGS) for _, name in input_files(job)):
        yield "Reading Excel files", "excel", "fastexcel"
    if any(name.lower().endswith(".xlsx") for name in (*job.output.release, *job.output.reports)):
        yield "Writing Excel files", "excel", "xlsxwriter"
    for own in (*(name for _, name in input_files(job)), *job.output.release):
        if (found := format_of(own)) is not None and found.extra is not None and found.package is not None:
            yield f"The format {found.name}", found.extra, found.package
    if job.output.plots:
        yield "Plots", "plots", "matplotlib"
    if job.run.engine == "spark":
        yield "Tabulating on Spark", "spark", "pyspark"
    if job.run.engine in {"ibis", "spark"}:
        yield "Tabulating an Ibis table", "ibis", "ibis"
    if job.run.executor == "dask":
        yield "Spreading the work with Dask", "dask", "distributed"
