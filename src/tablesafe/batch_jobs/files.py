"""The files of a batch run: what WRITETABLE asks for, and what stays in the office; all together, or none."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from tablesafe.audit.findings import Findings
from tablesafe.core.errors import InvalidFile, InvalidJob, InvalidOption
from tablesafe.core.machine import is_elsewhere, last_part
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release
from tablesafe.files.read import read_text
from tablesafe.job.checks import INTERNAL
from tablesafe.job.model import Job, Output
from tablesafe.pipeline.outputs import Outputs, together
from tablesafe.pipeline.result import Result
from tablesafe.pipeline.running import Worked, write_internal
from tablesafe.report.summary import Origin
from tablesafe.tauargus.batch.commands import Batch, Logbook, VersionInfo, WriteTable
from tablesafe.tauargus.batch.journal import Journal
from tablesafe.tauargus.batch.session import named_by
from tablesafe.tauargus.batch.tables import Specified
from tablesafe.tauargus.metadata import Role
from tablesafe.tauargus.sheet import Kind
from tablesafe.tauargus.write_table import TableFiles, table_files

SHOWN = 40
"""Characters of a name that is shown because it is none."""

# -- paths -------------------------------------------------------------------------------------------------------------


def target(batch: Batch, name: str) -> tuple[Path, str]:
    """Where a file is written, and a remark where that is not the place named.

    A path of another machine cannot be written to: the file goes beside the batch file.
    """
    folder = batch.path.parent
    if is_elsewhere(name):
        here = folder / last_part(name)
        return here, f"{name!r} is a path of another machine: the file is written beside {batch.path.name}."
    return folder / name.replace("\\", "/"), ""


# -- what WRITETABLE asks for ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class TableRun:
    """One table of a run: what it is, the job that protected it, and what came out."""

    table: Specified
    place: int
    """Its number in the whole file."""
    job: Job
    problem: Problem = field(repr=False)
    """As the method saw it: with the attacker's bounds that it was given."""
    release: Release = field(repr=False)
    """Of this table, where the job is of several together."""
    worked: Worked = field(repr=False)


@dataclass(frozen=True, slots=True, eq=False)
class Writing:
    """A table as it was when the batch file asked to write it."""

    command: WriteTable
    run: TableRun
    path: Path

    @property
    def safe(self) -> bool:
        """Whether the table passed its audit."""
        return self.run.worked.safe

    def texts(self) -> TableFiles:
        """The files as text."""
        return table_files(
            self.run.release,
            self.run.problem,
            self.path.name,
            self.command.kind,
            self.command.options,
            decimals=_decimals(self.run.table),
            widths=_widths(self.run.table),
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


def refuse_overwriting(writings: Sequence[tuple[int, Path]], inputs: Sequence[Path], batch: Batch) -> None:
    """Fail before the long work where a file would be written over one that is read, or written twice."""
    read = {path.resolve(): path.name for path in [*inputs, batch.path]}
    seen: dict[Path, int] = {}
    for line, path in writings:
        try:
            real, folder = path.resolve(), path.is_dir()
        except OSError as error:
            raise InvalidJob(
                f"{path.name[:SHOWN]!r} is no name for a file here: {error.strerror}.",
                hint="give it another name.",
                where=batch.where(line),
            ) from error
        if real in read:
            raise InvalidJob(
                f"{path.name!r} is read by this job; writing it would destroy the original.",
                hint="give the new file another name.",
                where=batch.where(line),
            )
        if real in seen:
            raise InvalidJob(
                f"{path.name!r} is written on line {seen[real]} already.",
                hint="give one of the two another name.",
                where=batch.where(line),
            )
        if folder:
            raise InvalidJob(f"{path.name!r} is a folder.", hint="name a file in it.", where=batch.where(line))
        seen[real] = line


def refuse_unwritable(folders: Sequence[Path]) -> None:
    """Fail before the long work where nothing can be written."""
    for folder in folders:
        there = next(parent for parent in (folder.absolute(), *folder.absolute().parents) if parent.exists())
        if not there.is_dir() or not os.access(there, os.W_OK):
            raise InvalidFile(
                f"Nothing can be written to {str(folder)!r}.",
                hint="copy the batch file and its data to a folder of your own, or name another folder.",
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


# -- results -----------------------------------------------------------------------------------------------------------


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
                f"{self.path.name} has {len(self.results)} tables that were protected.",
                hint="look at one of them: result.results[0].",
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


# -- all files ---------------------------------------------------------------------------------------------------------


REPORT = "report.html"
"""The internal report: where it is, the other internal files of a table are."""


def write_all(
    batch: Batch, runs: Sequence[TableRun], writings: Sequence[Writing], journal: Journal, *, force: bool
) -> tuple[tuple[Result, ...], tuple[Path, ...]]:
    """Write every file together, and say of each table what came out."""
    text = read_text(batch.path) if batch.path.exists() else ""
    results = []
    with together() as outputs:
        for run, folder in zip(runs, _folders(batch, runs), strict=True):
            own = [writing for writing in writings if writing.run.table is run.table]
            release = tuple(str(writing.path.absolute()) for writing in own)
            job = replace(run.job, output=Output(release=release, internal=str(folder), force=force))
            before = len(outputs.written)
            for writing in own:
                with journal.at(writing.command.line):
                    _write(writing, outputs, journal, force=force)
            if folder / REPORT not in outputs.written:
                origin = replace(origin_of(batch, run.table, text), seconds=run.worked.seconds)
                write_internal(job, outputs, run.worked.subject(job, origin), run.worked.tables)
            _keep_proofs(own, run.worked.findings, outputs, folder)
            published = force or (run.worked.safe and all(writing.safe for writing in own))
            files = tuple(outputs.written)[before:]
            results.append(run.worked.result(job, published, files, problem=run.problem, release=run.release))
        return tuple(results), tuple(outputs.written)


def _folders(batch: Batch, runs: Sequence[TableRun]) -> list[Path]:
    """A folder for what stays in the office of each table; those that were protected together share one."""
    base = (batch.path.parent / INTERNAL / batch.path.stem).absolute()
    several: dict[int, list[int]] = {}
    for run in runs:
        several.setdefault(id(run.worked), []).append(run.place)
    if len(several) == 1:
        return [base for _ in runs]
    named = {key: ("table " if len(group) == 1 else "tables ") + " ".join(map(str, group))
             for key, group in several.items()}  # fmt: skip
    return [base / named[id(run.worked)] for run in runs]


def _keep_proofs(writings: Sequence[Writing], last: Findings, outputs: Outputs, folder: Path) -> None:
    """The certificates of files that were written before the table was protected in another way."""
    for writing in writings:
        findings = writing.run.worked.findings
        if findings is not last and findings.certificate is not None:
            place = outputs.place(folder / f"certificate of {writing.path.name}.json.gz", private=True)
            findings.certificate.save(place)


def _write(writing: Writing, outputs: Outputs, journal: Journal, *, force: bool) -> None:
    """Write a table, unless it did not pass its audit and nobody insists."""
    line, name, table = writing.command.line, writing.path.name, writing.run.table
    if not writing.safe and not force:
        journal.warn(line, f"{name} is not written: the table did not pass its audit.")
        return
    texts = writing.texts()
    for note in texts.notes:
        journal.warn(line, f"{name}: {note}")
    beside = [(line, writing.path.parent / file.name) for file in texts.files]
    refuse_overwriting(beside, [table.data, *named_by(table.metadata)], journal.batch)
    for file in texts.files:
        place = outputs.place(writing.path.parent / file.name, private=file.confidential)
        place.write_text(file.text, encoding="utf-8", newline="\n")
    if texts.confidential and not any("not for publication" in note for note in texts.notes):
        journal.warn(line, f"{name} holds true values that the release does not: it must stay in the office.")
    if not writing.safe:
        journal.warn(line, f"{name} is written because you insisted: the table did not pass its audit.")
    journal.say(f"Table {table.number} has been written: {name}")
