"""Run a batch file: what it reads is read, each SUPPRESS is a job of ours, and all files are written at the end."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import tablesafe
from tablesafe.batch_jobs.files import (
    BatchResult,
    TableRun,
    Writing,
    outputs_of,
    refuse_overwriting,
    refuse_unwritable,
    target,
    write_all,
)
from tablesafe.batch_jobs.methods import Chosen, choose_method
from tablesafe.core.errors import InvalidFile
from tablesafe.core.problem import Problem
from tablesafe.files.write import write_text
from tablesafe.job.model import AttackOptions, Job, Output, RunOptions, Source
from tablesafe.methods import Withhold
from tablesafe.pipeline.running import work_out
from tablesafe.report.progress import Event, Listener, ignore, progress_bar
from tablesafe.tauargus.batch.commands import (
    Apriori,
    Batch,
    CellKeys,
    Clear,
    Command,
    Logbook,
    OpenData,
    OpenMetadata,
    Recode,
    Silent,
    SpecifyTable,
    Suppress,
    VersionInfo,
    WriteTable,
)
from tablesafe.tauargus.batch.journal import Journal
from tablesafe.tauargus.batch.linked import linked
from tablesafe.tauargus.batch.parse import read_arb
from tablesafe.tauargus.batch.session import Session, named_by
from tablesafe.tauargus.metadata import find_beside


def run_batch(
    batch: Batch | str | Path,
    *,
    force: bool | None = None,
    progress: bool = False,
    on_event: Listener | None = None,
) -> BatchResult:
    """Run a batch file of τ-ARGUS.

    Paths are relative to the file; inputs named by a path of another machine are looked for beside it. A table that
    fails its audit is not written, unless `force` insists. All files appear together at the end, or none; the log is
    written in any case.
    """
    if not isinstance(batch, Batch):
        batch = read_arb(batch)
    silent = any(isinstance(command, Silent) for command in batch.commands)
    with progress_bar(enabled=progress and not silent) as bar:

        def listen(event: Event) -> None:
            bar(event)
            (on_event or ignore)(event)

        return _Run(batch, bool(force), listen).run()


@dataclass(slots=True)
class _Run:
    """The state of a run."""

    batch: Batch
    force: bool
    listen: Listener
    session: Session = field(init=False)
    tables: dict[int, TableRun] = field(default_factory=dict)
    """Every table that was protected or written, by its place in the file."""
    finished: list[Problem] = field(default_factory=list)
    """The problems of earlier sessions."""
    writings: list[Writing] = field(default_factory=list)
    versions: list[Path] = field(default_factory=list)
    journal: Journal = field(init=False)

    def __post_init__(self) -> None:
        self.journal = Journal(self.batch)
        self.session = Session(self.batch, self.journal, lambda stage, message: self.listen(Event(stage, message)))

    def run(self) -> BatchResult:
        """All commands, then all files."""
        self.journal.say(f"tablesafe {tablesafe.__version__}: batch file {self.batch.path.name}")
        try:
            self._refuse_overwriting()
            for command in self.batch.commands:
                self.journal.say(self.batch.texts[command.line])
                for note in self.batch.notes:
                    if note.line == command.line:
                        self.journal.warn(note.line, note.text)
                with self.journal.at(command.line):
                    self._step(command)
            self._finish_session()
            return self._written()
        finally:
            self.journal.save()

    def _written(self) -> BatchResult:
        self.listen(Event("write", "Writing files"))
        runs = [self.tables[place] for place in sorted(self.tables)]
        results, files = write_all(self.batch, runs, self.writings, self.journal, force=self.force)
        for path in self.versions:
            write_text(path, f"tablesafe version: {tablesafe.__version__}\n")
        self.journal.say("The batch file has been run.")
        log = [*dict.fromkeys(self.journal.files)]
        return BatchResult(
            self.batch.path,
            results,
            tuple(self.finished),
            tuple(self.journal.warnings),
            tuple(self.journal.lines),
            (*files, *self.versions, *log),
        )

    def _refuse_overwriting(self) -> None:
        inputs, outputs = [], outputs_of(self.batch)
        for command in self.batch.commands:
            if isinstance(command, Recode) and command.file is not None:
                with suppress(InvalidFile):
                    inputs.append(find_beside(command.file, self.batch.path))
            elif isinstance(command, OpenData | OpenMetadata | Apriori):
                with self.journal.at(command.line):
                    inputs.append(find_beside(command.file, self.batch.path))
        refuse_overwriting(outputs, inputs, self.batch)
        folders = {path.parent for _, path in outputs}
        if any(isinstance(command, Suppress | WriteTable) for command in self.batch.commands):
            folders.add(self.batch.path.parent)
        refuse_unwritable(sorted(folders))

    def _step(self, command: Command) -> None:
        match command:
            case Suppress():
                self._suppress(command)
            case WriteTable():
                self._write(command)
            case Logbook():
                self.journal.files.append(self._target(command.line, command.file))
            case VersionInfo():
                self.versions.append(self._target(command.line, command.file))
            case Clear():
                self._finish_session()
                self.session = self.session.cleared()
            case _:
                self.session.step(command)
                if isinstance(command, OpenMetadata | SpecifyTable) and self.session.metadata is not None:
                    refuse_overwriting(outputs_of(self.batch), named_by(self.session.metadata), self.batch)

    def _finish_session(self) -> None:
        self.finished += [opened.made.problem for opened in self.session.opened]

    def _target(self, line: int, name: str) -> Path:
        path, remark = target(self.batch, name)
        if remark:
            self.journal.warn(line, remark)
        return path

    # -- jobs ----------------------------------------------------------------------------------------------------------

    def _job(self, title: str, places: tuple[int, ...], chosen: Chosen) -> Job:
        """A SUPPRESS command as a job; where its files go is known at the end."""
        return Job(
            title=title,
            source=Source(file=self.batch.path.name, table=places),
            problem=chosen.problem,
            method=chosen.method,
            audit=chosen.audit,
            attack=AttackOptions(attacks=()),
            output=Output(force=self.force),
            run=RunOptions(checkpoint_after_s=math.inf),
            path=self.batch.path,
        )

    def _suppress(self, command: Suppress) -> None:
        every = self.session.opened if command.table == 0 else [self.session.opened[command.table - 1]]
        if isinstance(command.how, CellKeys):  # each table by itself: equal cells get equal noise
            for opened in every:
                chosen = choose_method(command, opened.table, len(opened.made.problem.table))
                self._alone(opened.place, chosen)
            return
        cells = sum(len(opened.made.problem.table) for opened in every)
        chosen = choose_method(command, every[0].table, cells)
        for remark in chosen.remarks:
            self.journal.warn(command.line, remark)
        if chosen.note:
            self.journal.say(chosen.note)
        if command.table == 0 and len(every) > 1:
            self._together(command, chosen)
            return
        self._alone(every[0].place, chosen)

    def _alone(self, place: int, chosen: Chosen, *, counted: bool = True) -> None:
        opened = self.session.opened[place - self.session.before - 1]
        job = self._job(opened.table.title, (place,), chosen)
        worked = work_out(job, opened.made.problem, self.listen)
        self._note(TableRun(opened.table, place, job, worked.problem, worked.release, worked), counted=counted)

    def _together(self, command: Suppress, chosen: Chosen) -> None:
        every = self.session.opened
        specs = {(opened.table.spec.cost, opened.table.spec.power) for opened in every}
        if len(specs) > 1:
            self.journal.warn(command.line, "the tables have different costs; λ and the distance are those of table 1.")
        whole = linked([opened.table for opened in every], [opened.made for opened in every])
        places = tuple(opened.place for opened in every)
        worked = work_out(self._job("", places, chosen), whole.problem, self.listen)
        for number, opened in enumerate(every):
            problem = opened.made.problem
            part = whole.part(worked.release, number, problem.table)
            job = self._job(opened.table.title, places, chosen)
            self._note(TableRun(opened.table, opened.place, job, problem, part, worked))

    def _note(self, run: TableRun, *, counted: bool = True) -> None:
        """Note how a table was protected; what was done before is forgotten."""
        self.tables[run.place] = run
        if counted:
            hidden, verdict = int(run.release.suppressed.sum()), run.worked.findings.verdict
            self.journal.say(f"Table {run.table.number}: {hidden:,} cells are withheld; the audit says {verdict.word}.")
            for line in verdict.lines:
                self.journal.say(line)

    def _write(self, command: WriteTable) -> None:
        place = self.session.before + command.table
        path = self._target(command.line, command.file)
        if place not in self.tables:
            self._alone(place, Chosen(Withhold()), counted=False)
            self.journal.warn(
                command.line, f"table {command.table} was not protected: only sensitive cells are withheld."
            )
        self._tell_of_tables_apart(command, self.tables[place])
        self.writings.append(Writing(command, self.tables[place], path))

    def _tell_of_tables_apart(self, command: WriteTable, new: TableRun) -> None:
        """Warn of tables of the same data that withhold cells each for itself: nobody looked at them together."""
        written = [each.run for each in self.writings]
        if any(new.table is each.table for each in written):
            return
        apart = [
            each.place
            for each in written
            if each.table.data == new.table.data
            and each.table.spec.response == new.table.spec.response
            and each.worked is not new.worked
            and bool(each.release.suppressed.any() or new.release.suppressed.any())
        ]
        if apart:
            others = ", ".join(map(str, dict.fromkeys(apart)))
            self.journal.warn(
                command.line,
                f"table {new.place} is of the same data as table {others}, but was protected by itself: what they tell "
                f"together was not examined. <SUPPRESS> with table 0 protects all at once.",
            )
