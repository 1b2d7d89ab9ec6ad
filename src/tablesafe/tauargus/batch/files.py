"""The files of a batch run: what WRITETABLE asks for, and what stays in the office; all together, or none."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
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
from tablesafe.job.model import AttackOptions, AuditOptions, Dimension, Job, Output, Response, Source
from tablesafe.pipeline.outputs import Outputs, together
from tablesafe.pipeline.result import Result
from tablesafe.pipeline.running import write_internal
from tablesafe.report.summary import Origin
from tablesafe.report.writing import Subject
from tablesafe.tauargus.batch.commands import Batch, Logbook, VersionInfo, WriteTable
from tablesafe.tauargus.batch.journal import Journal
from tablesafe.tauargus.batch.methods import Chosen
from tablesafe.tauargus.batch.tables import Made, Specified
from tablesafe.tauargus.metadata import Metadata, Role
from tablesafe.tauargus.sheet import Kind
from tablesafe.tauargus.write_table import TableFiles, table_files

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
                f"{batch.where(line)}: {path.name!r} is read by this job; writing it would destroy the original.",
                hint="give the new file another name.",
            )
        if real in seen:
            raise InvalidJob(
                f"{batch.where(line)}: {path.name!r} is written on line {seen[real]} already.",
                hint="give one of the two another name.",
            )
        if real.is_dir():
            raise InvalidJob(f"{batch.where(line)}: {path.name!r} is a folder.", hint="name a file in it.")
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


@dataclass(slots=True)
class TableRun:
    """One table of a run: what it is, and how it was protected last."""

    table: Specified
    made: Made
    problem: Problem = field(init=False)
    """As the method saw it: with the attacker's bounds that it was given."""
    release: Release | None = None
    findings: Findings | None = None
    chosen: Chosen | None = None
    seconds: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.problem = self.made.problem

    def protected(
        self,
        problem: Problem,
        release: Release,
        findings: Findings,
        chosen: Chosen,
        seconds: dict[str, float],
    ) -> None:
        """Note how the table was protected; what was done before is forgotten."""
        self.problem, self.release, self.findings = problem, release, findings
        self.chosen, self.seconds = chosen, seconds


def write_all(
    batch: Batch, runs: Sequence[TableRun], writings: Sequence[Writing], journal: Journal, *, force: bool
) -> tuple[tuple[Result, ...], tuple[Path, ...]]:
    """Write every file together, and say of each table what came out."""
    text = read_text(batch.path) if batch.path.exists() else ""
    protected = [(number, run) for number, run in enumerate(runs, start=1) if run.release is not None]
    folders = _folders(batch, protected)
    results = []
    with together() as outputs:
        for number, run in protected:
            assert run.release is not None
            assert run.findings is not None
            own = [writing for writing in writings if writing.table is run.table]
            job = _job(batch, run, own, folders[number])
            before = len(outputs.written)
            for writing in own:
                with journal.at(writing.command.line):
                    _write(writing, outputs, journal, force=force)
            if folders[number] / REPORT not in outputs.written:
                seen = run.findings  # of all linked tables, where there are any
                origin = replace(origin_of(batch, run.table, text), seconds=run.seconds)
                subject = Subject(problem=seen.problem, release=seen.release, findings=seen, origin=origin)
                write_internal(job, outputs, subject, {})
            _keep_proofs(own, run.findings, outputs, folders[number])
            published = force or (run.findings.safe and all(writing.findings.safe for writing in own))
            files = tuple(outputs.written)[before:]
            results.append(Result(job, run.problem, run.release, run.findings, published, files, run.seconds))
        return tuple(results), tuple(outputs.written)


def _folders(batch: Batch, runs: Sequence[tuple[int, TableRun]]) -> dict[int, Path]:
    """A folder for what stays in the office of each table; linked tables share one."""
    base = (batch.path.parent / INTERNAL / batch.path.stem).absolute()
    if len({id(run.findings) for _, run in runs}) == 1:
        return {number: base for number, _ in runs}
    together: dict[int, list[int]] = {}
    for number, run in runs:
        together.setdefault(id(run.findings), []).append(number)
    named = {
        key: ("table " if len(group) == 1 else "tables ") + " ".join(map(str, group)) for key, group in together.items()
    }
    return {number: base / named[id(run.findings)] for number, run in runs}


def _keep_proofs(writings: Sequence[Writing], last: Findings, outputs: Outputs, folder: Path) -> None:
    """The certificates of files that were written before the table was protected in another way."""
    for writing in writings:
        proof = writing.findings.certificate
        if writing.findings is not last and proof is not None:
            proof.save(outputs.place(folder / f"certificate of {writing.path.name}.json.gz", private=True))


def _write(writing: Writing, outputs: Outputs, journal: Journal, *, force: bool) -> None:
    """Write a table, unless it did not pass its audit and nobody insists."""
    line, name = writing.command.line, writing.path.name
    if not writing.findings.safe and not force:
        journal.warn(line, f"{name} is not written: the table did not pass its audit.")
        return
    texts = writing.texts()
    for note in texts.notes:
        journal.warn(line, f"{name}: {note}")
    beside = [(line, writing.path.parent / file.name) for file in texts.files]
    refuse_overwriting(beside, [writing.table.data, *named_by(writing.table.metadata)], journal.batch)
    for file in texts.files:
        place = outputs.place(writing.path.parent / file.name, private=file.confidential)
        place.write_text(file.text, encoding="utf-8", newline="\n")
    if texts.confidential and not any("not for publication" in note for note in texts.notes):
        journal.warn(line, f"{name} holds true values that the release does not: it must stay in the office.")
    if not writing.findings.safe:
        journal.warn(line, f"{name} is written because you insisted: the table did not pass its audit.")
    journal.say(f"Table {writing.table.number} has been written: {name}")


def _job(batch: Batch, run: TableRun, writings: Sequence[Writing], internal: Path) -> Job:
    """The table as a job, for its result: what it is made from, against whom it is protected, where its files are."""
    assert run.chosen is not None
    table = run.table
    return Job(
        title=table.title,
        source=Source(file=str(table.data), metadata=str(table.metadata.path)),
        dimensions={variable.name: Dimension() for variable in table.variables()},
        response=Response(value=() if table.spec.response is None else (table.spec.response,)),
        method=run.chosen.method,
        audit=AuditOptions(insiders=run.chosen.insiders, unions=run.chosen.unions),
        attack=AttackOptions(attacks=()),
        output=Output(release=tuple(str(writing.path.absolute()) for writing in writings), internal=str(internal)),
        path=batch.path,
    )
