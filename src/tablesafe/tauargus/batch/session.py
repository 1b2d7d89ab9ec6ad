"""What a batch file reads: its data, its tables, their rules, recodes and a-priori files, command by command.

What it protects and writes is done by jobs of ours (`batch_jobs`); a job of ours may also take its table from here.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from tablesafe.core.errors import InvalidFile, InvalidJob
from tablesafe.core.problem import Problem
from tablesafe.tauargus.apriori import apply_hst
from tablesafe.tauargus.batch.commands import (
    Apriori,
    Batch,
    Clear,
    Command,
    Cover,
    OpenData,
    OpenMetadata,
    ReadMicrodata,
    ReadTable,
    Recode,
    SafetyRule,
    SpecifyTable,
    Suppress,
)
from tablesafe.tauargus.batch.journal import Journal
from tablesafe.tauargus.batch.linked import linked
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

Telling = Callable[[str, str], None]
"""Hears what is done: the stage, and a message."""


def _silent(_stage: str, _message: str) -> None:
    """Tell nobody."""


@dataclass(slots=True)
class Opened:
    """A table that has been read."""

    table: Specified
    made: Made
    place: int
    """Its number in the whole file, where CLEAR does not begin anew."""


@dataclass(slots=True)
class Session:
    """What is open since the beginning or the last CLEAR."""

    batch: Batch
    journal: Journal
    tell: Telling = _silent
    before: int = 0
    """How many tables the sessions before have."""
    together: bool | None = None
    """Whether its tables are protected together; None leaves it to the SUPPRESS that follows."""
    data: Path | None = None
    tabular: bool = False
    metadata: Metadata | None = None
    tables: list[Specified] = field(default_factory=list)
    opened: list[Opened] = field(default_factory=list)
    records: Microdata | None = None
    cover: bool = False

    def cleared(self) -> Session:
        """The session after this one."""
        return Session(self.batch, self.journal, self.tell, self.before + len(self.tables), self.together)

    def step(self, command: Command) -> None:
        """Do what a command asks, as far as it reads."""
        match command:
            case OpenData():
                self.data = find_beside(command.file, self.batch.path)
                self.tabular, self.metadata = command.tabular, None
            case OpenMetadata():
                path = find_beside(command.file, self.batch.path)
                self.metadata = read_metadata(path, kind="table" if self.tabular else "micro")
            case SpecifyTable():
                self._specify(command)
            case SafetyRule():
                self.tables[-1] = replace(self.tables[-1], rules=Rules.of(command))
            case ReadMicrodata():
                self._tabulate(command)
            case ReadTable():
                self._read(command)
            case Apriori():
                self._inform(command)
            case Cover():
                self.cover = True
            case _:  # recodes are applied when the records are read; the others read nothing
                pass

    def _specify(self, command: SpecifyTable) -> None:
        assert self.data is not None
        if self.metadata is None:
            self.metadata = metadata_for(self.data, None, "table" if self.tabular else "micro")
            self.journal.warn(command.line, f"no metadata are named: {self.metadata.path.name} is used.")
        table = Specified(len(self.tables) + 1, command, Rules(), self.data, self.metadata)
        table.variables()
        for name in (command.response, command.shadow, command.cost_variable):
            if name is not None:
                _require_number(self.metadata, name)
        if command.cost == "distance" and any(variable.distance for variable in table.variables()):
            self.journal.warn(
                command.line, "the numbers after <DISTANCE> are not used: here a step along the codes counts 1."
            )
        self.tables.append(table)

    def _tabulate(self, command: ReadMicrodata) -> None:
        self.tell("tabulate", "Reading the records")
        self.records = read_records(self.tables)
        self.journal.say(f"{self.records.frame.height:,} records of {self.records.name} have been read.")
        later = self._later(command.line)
        together = self.together
        if together is None:
            together = any(isinstance(each, Suppress) and each.table == 0 for each in later)
        holdings = together and any(table.rules.holdings for table in self.tables)
        for table in self.tables:
            self.tell("tabulate", f"Adding up table {table.number}")
            recodings = Recodes(self.batch, self.journal, table, self.records).of(later)
            with self.journal.at(table.rules.line or table.spec.line):
                made = tabulated(table, self.records, recodings, holdings=holdings)
            self._add(table, made, command.line)

    def _read(self, command: ReadTable) -> None:
        any_sums = self.cover or any(isinstance(later, Cover) for later in self._later(command.line))
        for table in self.tables:
            self.tell("read", f"Reading {table.data.name}")
            with self.journal.at(table.rules.line or table.spec.line):
                refuse_impossible(table)
            made = read_cells(table, command, any_sums=any_sums)
            self._add(table, made, command.line)

    def _add(self, table: Specified, made: Made, line: int) -> None:
        for remark in made.remarks:
            self.journal.warn(line, f"table {table.number}: {remark}")
        self.opened.append(Opened(table, made, self.before + table.number))
        problem = made.problem
        self.journal.say(
            f"Table {table.number}: {table.title}: {problem.table.seen:,} cells, {len(problem.sensitive):,} sensitive."
        )

    def _later(self, line: int) -> list[Command]:
        """The commands after a line, up to the next CLEAR."""
        later: list[Command] = []
        for command in self.batch.commands:
            if command.line > line:
                if isinstance(command, Clear):
                    break
                later.append(command)
        return later

    def _inform(self, command: Apriori) -> None:
        opened = self.opened[command.table - 1]
        problem = apply_hst(
            opened.made.problem,
            find_beside(command.file, self.batch.path),
            separator=command.separator,
            manual_range=opened.table.rules.manual_range,
            ignore_errors=command.ignore_errors,
        )
        opened.made = replace(opened.made, problem=problem)
        self.journal.say(f"Table {command.table}: {len(problem.sensitive):,} sensitive cells.")


def _require_number(metadata: Metadata, name: str) -> None:
    """Refuse a variable that cannot be added up, before any data are read."""
    variable = metadata.variable(name)
    if metadata.kind == "micro" and not variable.is_response:
        raise InvalidJob(
            f"{variable.name!r} cannot be added up: {metadata.path.name}, line {variable.line} marks it as "
            f"{'nothing' if variable.role is Role.OTHER else variable.role.value}.",
            hint="add <NUMERIC> to it.",
        )


# -- as the source of a job --------------------------------------------------------------------------------------------


def read_arb_problem(path: str | Path, tables: Sequence[int] = (), *, tell: Telling = _silent) -> Problem:
    """The problem of a table that a batch file reads, or of several together, with rules, recodes and a-priori files.

    Tables count from 1 through the whole file; without any, all are meant. What the file protects and writes is left
    to whoever asks; what is done otherwise than τ-ARGUS would is said as warnings.
    """
    batch = read_arb(path)
    journal = Journal(batch)
    session = Session(batch, journal, tell, together=len(tables) != 1)
    opened: list[Opened] = []
    for command in batch.commands:
        if isinstance(command, Clear):
            opened, session = [*opened, *session.opened], session.cleared()
            continue
        with journal.at(command.line):
            session.step(command)
    opened += session.opened
    for remark in journal.warnings:
        warnings.warn(remark, stacklevel=2)
    chosen = [each for each in opened if not tables or each.place in tables]
    absent = sorted({*tables} - {each.place for each in opened})
    if absent or not chosen:
        have = "no table" if not opened else "1 table" if len(opened) == 1 else f"{len(opened)} tables"
        raise InvalidJob(
            f"{batch.path.name} reads {have}" + (f": there is no table {absent[0]}." if absent else "."),
            hint="they count from 1, in the order of <SPECIFYTABLE>." if opened else "it needs <SPECIFYTABLE>.",
            about=("source", "table"),
        )
    if len(chosen) == 1:
        return chosen[0].made.problem
    return linked([each.table for each in chosen], [each.made for each in chosen]).problem


def files_read(path: str | Path) -> list[Path]:
    """The files that a batch file names to be read, as far as they are there, with those that its metadata name."""
    batch = read_arb(path)
    found: list[Path] = []
    for command in batch.commands:
        name = command.file if isinstance(command, OpenData | OpenMetadata | Apriori | Recode) else None
        if name is None:
            continue
        with suppress(InvalidFile):
            found.append(find_beside(name, batch.path))
            if isinstance(command, OpenMetadata):
                found += named_by(read_metadata(found[-1], kind=None))
    return list(dict.fromkeys(found))


def named_by(metadata: Metadata) -> list[Path]:
    """The files that metadata name, as far as they are there, and the metadata themselves."""
    found = [metadata.path]
    for name, line in metadata.named:
        with suppress(InvalidFile):
            found.append(metadata.file(name, line))
    return found
