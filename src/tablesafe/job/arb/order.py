"""Whether the commands of a batch file stand in an order that makes sense, and name tables that exist."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from tablesafe.io.tauargus_write_options import Kind
from tablesafe.job.arb.model import (
    Apriori,
    Clear,
    Command,
    OpenData,
    OpenMetadata,
    ReadMicrodata,
    ReadTable,
    Recode,
    SafetyRule,
    SpecifyTable,
    Suppress,
    WriteTable,
)
from tablesafe.job.arb.scan import Fault


@dataclass(slots=True)
class _Session:
    """What is there so far, since the beginning or the last CLEAR."""

    data: OpenData | None = None
    described: bool = False
    tables: int = 0
    ruled: bool = True
    read: bool = False
    suppressed: dict[int, str] = field(default_factory=dict)
    """By which method each table is protected."""
    informed: set[int] = field(default_factory=set)
    """Tables with a-priori information."""


def check_order(commands: list[Command]) -> Iterator[tuple[int, Fault]]:
    """Every command that stands where it cannot, with its line."""
    session = _Session()
    for command in commands:
        if isinstance(command, Clear):
            session = _Session()
            continue
        try:
            _step(session, command)
        except Fault as fault:
            yield command.line, fault


def _step(session: _Session, command: Command) -> None:
    match command:
        case OpenData():
            _open(session, command)
        case OpenMetadata():
            if session.data is None:
                raise Fault("no data file is open yet", "put <OPENMICRODATA> or <OPENTABLEDATA> before it.")
            session.described = True
        case SpecifyTable():
            if session.data is None:
                raise Fault("no data file is open yet", "put <OPENMICRODATA> or <OPENTABLEDATA> before it.")
            if session.read:
                raise Fault("the data have been read already", "specify all tables before they are read, or <CLEAR>.")
            session.tables, session.ruled = session.tables + 1, False
        case SafetyRule():
            if session.ruled:
                what = (
                    "there is no table yet" if not session.tables else f"table {session.tables} has its rules already"
                )
                raise Fault(what, "put <SAFETYRULE> once after each <SPECIFYTABLE>.")
            session.ruled = True
        case ReadMicrodata() | ReadTable():
            _read(session, command)
        case Apriori() | Recode() | Suppress() | WriteTable():
            _use(session, command)
        case _:
            pass


def _open(session: _Session, command: OpenData) -> None:
    if session.read:
        raise Fault("the tables have been read already", "put <CLEAR> before another data file.")
    if session.data is not None and not (command.tabular and session.data.tabular and session.tables):
        what = "another file is open already"
        if command.tabular and session.data.tabular:
            raise Fault(what, "specify a table of the first file before the next one is opened.")
        raise Fault(what, "records come from one file: put <CLEAR> between two sessions.")
    session.data, session.described = command, False


def _read(session: _Session, command: ReadMicrodata | ReadTable) -> None:
    tabular = isinstance(command, ReadTable)
    if session.data is None:
        raise Fault("no data file is open", "put <OPENMICRODATA> or <OPENTABLEDATA> before it.")
    if session.data.tabular != tabular:
        own, other = ("<READTABLE>", "a table") if session.data.tabular else ("<READMICRODATA>", "records")
        raise Fault(f"{session.data.file!r} holds {other}", f"read it with {own}.")
    if not session.tables:
        raise Fault("no table is specified", "put <SPECIFYTABLE> before it.")
    if session.read:
        raise Fault("the data have been read already", "read them once, or put <CLEAR> before the next session.")
    session.read = True


def _use(session: _Session, command: Apriori | Recode | Suppress | WriteTable) -> None:
    if not session.read:
        raise Fault("no table has been read yet", "put <READMICRODATA> or <READTABLE> before it.")
    if command.table > session.tables:
        have = "1 table is" if session.tables == 1 else f"{session.tables} tables are"
        raise Fault(f"there is no table {command.table}", f"{have} specified; they count from 1.")
    if isinstance(command, Suppress):
        if command.keyword == "CKM" and session.data is not None and session.data.tabular:
            raise Fault(
                f"CKM needs the keys of records, but {session.data.file!r} holds a finished table",
                "read the records (<OPENMICRODATA>), or protect the table by another method.",
            )
        which = range(1, session.tables + 1) if command.table == 0 else [command.table]
        session.suppressed |= dict.fromkeys(which, command.keyword)
    if isinstance(command, WriteTable):
        _suits(command, session.suppressed.get(command.table))
    if isinstance(command, Apriori | Recode) and command.table in session.suppressed:
        raise Fault(f"table {command.table} is protected already", "put it before <SUPPRESS>.")
    if isinstance(command, Apriori):
        session.informed.add(command.table)
    if isinstance(command, Recode) and session.data is not None and session.data.tabular:
        raise Fault("the table is read from a file, which cannot be recoded", "recode it before it is written.")
    if isinstance(command, Recode) and command.table in session.informed:
        raise Fault("a recoded table forgets its a-priori information", "put <RECODE> before <APRIORI>.")


def _suits(command: WriteTable, method: str | None) -> None:
    """Refuse, before the long work, a type of file that cannot hold what the method makes; so does τ-ARGUS."""
    kind = command.kind
    if kind is Kind.CELL_KEY and method != "CKM":
        raise Fault(
            f"type 7 is of the cell key method, but table {command.table} is not protected by it",
            f"put <SUPPRESS> CKM({command.table}) before it, or write the table as type 1 to 6.",
        )
    unsuited = {"CKM": {Kind.SBS, Kind.INTERMEDIATE}, "CTA": {Kind.SBS, Kind.INTERMEDIATE}, "RND": {Kind.JJ}}
    if kind in unsuited.get(method or "", set()):
        raise Fault(
            f"type {int(kind)} ({kind.name.lower().replace('_', ' ')}) cannot hold a table protected by {method}",
            "types 1, 2 and 3 hold any release.",
        )
