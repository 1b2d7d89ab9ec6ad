"""Run the commands of a batch file one after the other."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

import tablesafe
from tablesafe.audit.audit import audit
from tablesafe.audit.findings import Findings
from tablesafe.core.errors import InvalidFile, InvalidJob
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release
from tablesafe.files.write import write_text
from tablesafe.methods import Withhold
from tablesafe.report.progress import Event, Listener, ignore, progress_bar
from tablesafe.tauargus.apriori import apply_hst
from tablesafe.tauargus.batch.commands import (
    Apriori,
    Batch,
    CellKeys,
    Clear,
    Command,
    Cover,
    Logbook,
    OpenData,
    OpenMetadata,
    ReadMicrodata,
    ReadTable,
    Recode,
    SafetyRule,
    Silent,
    SpecifyTable,
    Suppress,
    VersionInfo,
    WriteTable,
)
from tablesafe.tauargus.batch.files import (
    BatchResult,
    TableRun,
    Writing,
    named_by,
    outputs_of,
    refuse_overwriting,
    refuse_unwritable,
    target,
    write_all,
)
from tablesafe.tauargus.batch.journal import Journal
from tablesafe.tauargus.batch.linked import linked
from tablesafe.tauargus.batch.methods import Chosen, choose_method, protect_by
from tablesafe.tauargus.batch.parse import read_arb
from tablesafe.tauargus.batch.rules import Rules
from tablesafe.tauargus.batch.tables import (
    Made,
    Recodes,
    Specified,
    read_cells,
    read_records,
    refuse_impossible,
    tabulated,
)
from tablesafe.tauargus.metadata import Metadata, Role, find_beside, read_metadata
from tablesafe.tauargus.microdata import Microdata, metadata_for


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
class _Session:
    """What is open since the beginning or the last CLEAR."""

    data: Path | None = None
    tabular: bool = False
    metadata: Metadata | None = None
    tables: list[Specified] = field(default_factory=list)
    runs: list[TableRun] = field(default_factory=list)
    records: Microdata | None = None
    cover: bool = False


@dataclass(slots=True)
class _Run:
    """The state of a run."""

    batch: Batch
    force: bool
    listen: Listener
    session: _Session = field(default_factory=_Session)
    finished: list[TableRun] = field(default_factory=list)
    """Tables of earlier sessions."""
    writings: list[Writing] = field(default_factory=list)
    versions: list[Path] = field(default_factory=list)
    journal: Journal = field(init=False)

    def __post_init__(self) -> None:
        self.journal = Journal(self.batch)

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
            self.finished += self.session.runs
            return self._written()
        finally:
            self.journal.save()

    def _written(self) -> BatchResult:
        self.listen(Event("write", "Writing files"))
        results, files = write_all(self.batch, self.finished, self.writings, self.journal, force=self.force)
        for path in self.versions:
            write_text(path, f"tablesafe version: {tablesafe.__version__}\n")
        self.journal.say("The batch file has been run.")
        problems = tuple(run.made.problem for run in self.finished)
        log = [*dict.fromkeys(self.journal.files)]
        return BatchResult(
            self.batch.path,
            results,
            problems,
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
            case OpenData():
                self.session.data = find_beside(command.file, self.batch.path)
                self.session.tabular, self.session.metadata = command.tabular, None
            case OpenMetadata():
                path = find_beside(command.file, self.batch.path)
                self.session.metadata = read_metadata(path, kind="table" if self.session.tabular else "micro")
                refuse_overwriting(outputs_of(self.batch), named_by(self.session.metadata), self.batch)
            case SpecifyTable():
                self._specify(command)
            case SafetyRule():
                self.session.tables[-1] = replace(self.session.tables[-1], rules=Rules.of(command))
            case ReadMicrodata():
                self._tabulate(command)
            case ReadTable():
                self._read(command)
            case Apriori():
                self._inform(command)
            case Suppress():
                self._suppress(command)
            case WriteTable():
                self._write(command)
            case Cover():
                self.session.cover = True
            case Logbook():
                self.journal.files.append(self._target(command.line, command.file))
            case VersionInfo():
                self.versions.append(self._target(command.line, command.file))
            case Clear():
                self.finished += self.session.runs
                self.session = _Session()
            case _:  # recodes are applied when the records are read; the others change nothing here
                pass

    def _target(self, line: int, name: str) -> Path:
        path, remark = target(self.batch, name)
        if remark:
            self.journal.warn(line, remark)
        return path

    # -- tables --------------------------------------------------------------------------------------------------------

    def _specify(self, command: SpecifyTable) -> None:
        session = self.session
        assert session.data is not None
        if session.metadata is None:
            session.metadata = metadata_for(session.data, None, "table" if session.tabular else "micro")
            self.journal.warn(command.line, f"no metadata are named: {session.metadata.path.name} is used.")
            refuse_overwriting(outputs_of(self.batch), named_by(session.metadata), self.batch)
        table = Specified(len(session.tables) + 1, command, Rules(), session.data, session.metadata)
        table.variables()
        for name in (command.response, command.shadow, command.cost_variable):
            if name is not None:
                self._number(session.metadata, name)
        if command.cost == "distance" and any(variable.distance for variable in table.variables()):
            self.journal.warn(
                command.line, "the numbers after <DISTANCE> are not used: here a step along the codes counts 1."
            )
        session.tables.append(table)

    def _number(self, metadata: Metadata, name: str) -> None:
        """Refuse a variable that cannot be added up, before any data are read."""
        variable = metadata.variable(name)
        if metadata.kind == "micro" and not variable.is_response:
            raise InvalidJob(
                f"{variable.name!r} cannot be added up: {metadata.path.name}, line {variable.line} marks it as "
                f"{'nothing' if variable.role is Role.OTHER else variable.role.value}.",
                hint="add <NUMERIC> to it.",
            )

    def _tabulate(self, command: ReadMicrodata) -> None:
        session = self.session
        self.listen(Event("tabulate", "Reading the records"))
        session.records = read_records(session.tables)
        self.journal.say(f"{session.records.frame.height:,} records of {session.records.name} have been read.")
        together = self._linked_later(command.line) and any(table.rules.holdings for table in session.tables)
        for table in session.tables:
            self.listen(Event("tabulate", f"Adding up table {table.number}"))
            recodings = Recodes(self.batch, self.journal, table, session.records).of(
                self._session_commands(command.line)
            )
            with self.journal.at(table.rules.line or table.spec.line):
                made = tabulated(table, session.records, recodings, holdings=together)
            self._add(table, made, command.line)

    def _read(self, command: ReadTable) -> None:
        any_sums = self.session.cover or any(isinstance(later, Cover) for later in self._session_commands(command.line))
        for table in self.session.tables:
            self.listen(Event("read", f"Reading {table.data.name}"))
            with self.journal.at(table.rules.line or table.spec.line):
                refuse_impossible(table)
            made = read_cells(table, command, any_sums=any_sums)
            self._add(table, made, command.line)

    def _add(self, table: Specified, made: Made, line: int) -> None:
        for remark in made.remarks:
            self.journal.warn(line, f"table {table.number}: {remark}")
        self.session.runs.append(TableRun(table, made))
        problem = made.problem
        self.journal.say(
            f"Table {table.number}: {table.title}: {problem.table.seen:,} cells, {len(problem.sensitive):,} sensitive."
        )

    def _session_commands(self, line: int) -> list[Command]:
        """The commands after a line, up to the next CLEAR."""
        later: list[Command] = []
        for command in self.batch.commands:
            if command.line > line:
                if isinstance(command, Clear):
                    break
                later.append(command)
        return later

    def _linked_later(self, line: int) -> bool:
        return any(isinstance(later, Suppress) and later.table == 0 for later in self._session_commands(line))

    def _inform(self, command: Apriori) -> None:
        run = self.session.runs[command.table - 1]
        path = find_beside(command.file, self.batch.path)
        problem = apply_hst(
            run.made.problem,
            path,
            separator=command.separator,
            manual_range=run.table.rules.manual_range,
            ignore_errors=command.ignore_errors,
        )
        run.made = replace(run.made, problem=problem)
        self.journal.say(f"Table {command.table}: {len(problem.sensitive):,} sensitive cells.")

    # -- protection ----------------------------------------------------------------------------------------------------

    def _suppress(self, command: Suppress) -> None:
        runs = self.session.runs if command.table == 0 else [self.session.runs[command.table - 1]]
        if isinstance(command.how, CellKeys):  # each table by itself: equal cells get equal noise
            for run in runs:
                self._alone(command, run, choose_method(command, run.table, len(run.made.problem.table)))
            return
        cells = sum(len(run.made.problem.table) for run in runs)
        chosen = choose_method(command, runs[0].table, cells)
        for remark in chosen.remarks:
            self.journal.warn(command.line, remark)
        if chosen.note:
            self.journal.say(chosen.note)
        if command.table == 0 and len(runs) > 1:
            self._together(command, runs, chosen)
            return
        self._alone(command, runs[0], chosen)

    def _alone(self, command: Suppress, run: TableRun, chosen: Chosen) -> None:
        problem, release, findings, seconds = self._protect(command, run.made.problem, chosen)
        run.protected(problem, release, findings, chosen, seconds)
        self._count(run)

    def _together(self, command: Suppress, runs: list[TableRun], chosen: Chosen) -> None:
        specs = {(run.table.spec.cost, run.table.spec.power) for run in runs}
        if len(specs) > 1:
            self.journal.warn(command.line, "the tables have different costs; λ and the distance are those of table 1.")
        whole = linked([run.table for run in runs], [run.made for run in runs])
        _, release, findings, seconds = self._protect(command, whole.problem, chosen)
        for number, run in enumerate(runs):
            part = whole.part(release, number, run.made.problem.table)
            run.protected(run.made.problem, part, findings, chosen, seconds)
            self._count(run)

    def _protect(
        self, command: Suppress, problem: Problem, chosen: Chosen
    ) -> tuple[Problem, Release, Findings, dict[str, float]]:
        """Protect and audit, in the eyes of the attacker that the method names."""
        start = time.perf_counter()
        self.listen(Event("protect", f"Protecting {len(problem.sensitive):,} sensitive cells"))
        problem, release, told = protect_by(chosen, problem)
        for remark in told:
            self.journal.warn(command.line, remark)
        middle = time.perf_counter()
        findings = self._audit(problem, release, chosen)
        return problem, release, findings, {"protect": middle - start, "audit": time.perf_counter() - middle}

    def _audit(self, problem: Problem, release: Release, chosen: Chosen | None) -> Findings:
        self.listen(Event("audit", "Attacking the release"))
        insiders, unions = (True, True) if chosen is None else (chosen.insiders, chosen.unions)
        return audit(problem, release, insiders=insiders, unions=unions)

    def _count(self, run: TableRun) -> None:
        assert run.release is not None
        assert run.findings is not None
        hidden = int(run.release.suppressed.sum())
        verdict = run.findings.verdict
        self.journal.say(f"Table {run.table.number}: {hidden:,} cells are withheld; the audit says {verdict.word}.")
        for line in verdict.lines:
            self.journal.say(line)

    def _write(self, command: WriteTable) -> None:
        run = self.session.runs[command.table - 1]
        path = self._target(command.line, command.file)
        if run.release is None:
            start = time.perf_counter()
            release = Withhold().protect(run.made.problem)
            findings = self._audit(run.made.problem, release, None)
            chosen = Chosen(Withhold())
            run.protected(run.made.problem, release, findings, chosen, {"audit": time.perf_counter() - start})
            self.journal.warn(
                command.line, f"table {command.table} was not protected: only sensitive cells are withheld."
            )
        assert run.release is not None
        assert run.findings is not None
        new = Writing(command, run.table, run.problem, run.release, run.findings, path)
        self._tell_of_tables_apart(new)
        self.writings.append(new)

    def _tell_of_tables_apart(self, new: Writing) -> None:
        """Warn of tables of the same data that withhold cells each for itself: nobody looked at them together."""
        if any(new.table is each.table for each in self.writings):
            return
        apart = [
            each.table.number
            for each in self.writings
            if each.table.data == new.table.data
            and each.table.spec.response == new.table.spec.response
            and each.findings is not new.findings
            and bool(each.release.suppressed.any() or new.release.suppressed.any())
        ]
        if apart:
            others = ", ".join(map(str, dict.fromkeys(apart)))
            self.journal.warn(
                new.command.line,
                f"table {new.table.number} is of the same data as table {others}, but was protected by itself: what "
                f"they tell together was not examined. <SUPPRESS> with table 0 protects all at once.",
            )
