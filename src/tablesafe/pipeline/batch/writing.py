"""The files of a batch run: what WRITETABLE asks for, and what stays in the office; all together, or none."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from tablesafe.audit.findings import Findings
from tablesafe.core.errors import InvalidFile, InvalidJob
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release
from tablesafe.io.tauargus_meta import Metadata, Role
from tablesafe.io.tauargus_write import TableFiles, table_files
from tablesafe.io.tauargus_write_options import Kind
from tablesafe.job.arb.model import Batch, Logbook, VersionInfo, WriteTable
from tablesafe.pipeline.batch.paths import target
from tablesafe.pipeline.batch.tables import Specified
from tablesafe.report.summary import Origin


@dataclass(frozen=True, eq=False)
class Writing:
    """A table as it was when the batch file asked to write it."""

    command: WriteTable
    table: Specified
    problem: Problem = field(repr=False)
    release: Release = field(repr=False)
    findings: Findings = field(repr=False)
    path: Path

    def texts(self) -> TableFiles:
        """The files as text."""
        return table_files(
            self.release,
            self.problem,
            self.path.name,
            self.command.kind,
            self.command.options,
            decimals=_decimals(self.table),
            widths=_widths(self.table),
        )


def _decimals(table: Specified) -> int | None:
    """As many decimals as the metadata give the response; None leaves it to the values."""
    response = table.spec.response
    found = 0 if response is None else table.metadata.variable(response).decimals
    return found or None


def _widths(table: Specified) -> Mapping[str, int]:
    """The width of codes of variables without a hierarchy file, where the data have fixed places."""
    return {
        variable.name: variable.width
        for variable in table.variables()
        if variable.width is not None and variable.start is not None and variable.hierarchy_file is None
    }


COMPANIONS = {Kind.INTERMEDIATE, Kind.CELL_KEY}
"""Types of file with a description (`.rda`) beside them."""


def outputs_of(batch: Batch) -> list[tuple[int, Path]]:
    """Every file that a batch file names to be written, with its line; a log may be added to more than once."""
    found: list[tuple[int, Path]] = []
    logs: set[Path] = set()
    for command in batch.commands:
        if isinstance(command, WriteTable | VersionInfo | Logbook):
            path = target(batch, command.file)[0]
            if not (isinstance(command, Logbook) and path in logs):
                found.append((command.line, path))
            if isinstance(command, Logbook):
                logs.add(path)
            if isinstance(command, WriteTable) and command.kind in COMPANIONS:
                found.append((command.line, path.with_suffix(".rda")))
    return found


def named_by(metadata: Metadata) -> list[Path]:
    """The files that metadata name, as far as they are there, and the metadata themselves."""
    found = [metadata.path]
    for name, line in metadata.named:
        with suppress(InvalidFile):
            found.append(metadata.file(name, line))
    return found


def refuse_overwriting(writings: Sequence[tuple[int, Path]], inputs: Sequence[Path], batch: Batch) -> None:
    """Fail before the long work where a file would be written over one that is read, or written twice."""
    read = {path.resolve(): path.name for path in [*inputs, batch.path]}
    seen: dict[Path, int] = {}
    for line, path in writings:
        real = path.resolve()
        if real in read:
            raise InvalidJob(
                f"{batch.where(line)}: {path.name!r} is read by this job; writing it would destroy the original.\n\n"
                f"Hint: give the new file another name."
            )
        if real in seen:
            raise InvalidJob(
                f"{batch.where(line)}: {path.name!r} is written on line {seen[real]} already.\n\n"
                f"Hint: give one of the two another name."
            )
        if real.is_dir():
            raise InvalidJob(f"{batch.where(line)}: {path.name!r} is a folder.\n\nHint: name a file in it.")
        seen[real] = line


def refuse_unwritable(folders: Sequence[Path]) -> None:
    """Fail before the long work where nothing can be written."""
    for folder in folders:
        there = next(parent for parent in (folder.absolute(), *folder.absolute().parents) if parent.exists())
        if not there.is_dir() or not os.access(there, os.W_OK):
            raise InvalidFile(
                f"Nothing can be written to {str(folder)!r}.\n\n"
                f"Hint: copy the batch file and its data to a folder of your own, or name another folder."
            )


def origin_of(batch: Batch, table: Specified, text: str) -> Origin:
    """Where a table came from, for its internal report."""
    inputs = [table.data, table.metadata.path, *hierarchy_files(table)]
    hashes = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in inputs if path.exists()}
    command = f"tablesafe run {batch.path.name}"
    return Origin(table.title, table.data.name, command, text, hashes, datetime.now().astimezone())


def hierarchy_files(table: Specified) -> list[Path]:
    """The hierarchy files of a table's dimensions."""
    named = [v for v in table.metadata.having(Role.DIMENSION, Role.DIMENSION_AND_RESPONSE) if v in table.variables()]
    return [table.metadata.file(v.hierarchy_file, v.line) for v in named if v.hierarchy_file and v.hierarchical]
