"""What a batch file of τ-ARGUS can say.

| command | here |
|---|---|
| `<OPENMICRODATA> "x.asc"`, `<OPENTABLEDATA> "x.tab"` | `OpenData` |
| `<OPENMETADATA> "x.rda"` | `OpenMetadata` |
| `<SPECIFYTABLE> "A""B"\\|"value"\\|"shadow"\\|"cost",λ` | `SpecifyTable` |
| `<SAFETYRULE> P(10,1)\\|FREQ(3,30)\\|…` | `SafetyRule` |
| `<READMICRODATA>`, `<READTABLE> 1` | `ReadMicrodata`, `ReadTable` |
| `<APRIORI> "x.hst", 1, ";", 0, 0` | `Apriori` |
| `<RECODE> 1, A, "x.grc"` or `<RECODE> 1, A, 2` | `Recode` |
| `<SUPPRESS> MOD(1,5,1,1,1)` | `Suppress` with the options of its keyword |
| `<WRITETABLE> (1, 3, AS+, "x.txt")` | `WriteTable` |
| `<SOLVER>`, `<CLEAR>`, `<LOGBOOK>`, `<SILENT>`, `<COVER>`, `<VERSIONINFO>`, `<GOINTERACTIVE>` | by their names |
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

from tablesafe.tauargus.sheet import Kind, WriteOptions

# -- commands ----------------------------------------------------------------------------------------------------------


MINUTES_OF_MODULAR, MINUTES_OF_OPTIMAL, MINUTES_OF_ROUNDING, PERCENT_OF_HYPERCUBE = 1.0, 10.0, 10.0, 100.0
"""What τ-ARGUS takes where the file says nothing."""

CostKind: TypeAlias = Literal["response", "frequency", "unity", "distance", "variable"]
RuleName: TypeAlias = Literal["P", "NK", "FREQ", "ZERO", "REQ", "MIS", "WGT", "MAN"]


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenData:
    """The file of records, or of cells of a finished table."""

    line: int
    file: str
    tabular: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenMetadata:
    """The file that describes the data."""

    line: int
    file: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SpecifyTable:
    """A table: what spans it, what is added up, by what contributors are ranked, and what withholding costs."""

    line: int
    explanatory: tuple[str, ...]
    response: str | None
    """None for `<freq>`: the table counts."""
    shadow: str | None = None
    cost: CostKind = "response"
    cost_variable: str | None = None
    power: float = 1.0
    """λ: costs are raised to this power; 0 means their logarithm."""


@dataclass(frozen=True, slots=True)
class RuleCall:
    """One rule as it is written, such as `P(10,1)`."""

    name: RuleName
    numbers: tuple[float, ...]

    def __str__(self) -> str:
        return f"{self.name}({','.join(f'{number:g}' for number in self.numbers)})"


@dataclass(frozen=True, slots=True, kw_only=True)
class SafetyRule:
    """The rules of the table specified last; without any, the status given for each cell counts."""

    line: int
    rules: tuple[RuleCall, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadMicrodata:
    """Tabulate the records."""

    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadTable:
    """Read the cells; check their sums, compute totals anew, or do not insist that they add up."""

    line: int
    totals: Literal["check", "compute", "any"] = "check"
    keep_status: bool | None = None
    """`T` or `F` after the number: whether computed totals keep the status given for them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Apriori:
    """A file with what is known about single cells."""

    line: int
    file: str
    table: int
    separator: str
    ignore_errors: bool = True
    expand_trivial: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Recode:
    """A coarser coding of one variable of a table: by a file, or by a level of its hierarchy (the total is 0)."""

    line: int
    table: int
    variable: str
    file: str | None = None
    level: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Modular:
    """MOD: subtable by subtable, with three options against those who know their own contribution."""

    minutes: float = MINUTES_OF_MODULAR
    single_single: bool = True
    single_multiple: bool = True
    minimum_frequency: bool = True
    scale: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Optimal:
    """OPT: the cheapest pattern."""

    minutes: float = MINUTES_OF_OPTIMAL


@dataclass(frozen=True, slots=True, kw_only=True)
class Hypercube:
    """GH: the hypercube method."""

    percent: float = PERCENT_OF_HYPERCUBE
    """The attacker knows every value to within so many percent."""
    large: bool = False
    singleton: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """NET: network flows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rounding:
    """RND: controlled rounding."""

    base: int
    steps: int = 0
    minutes: float = MINUTES_OF_ROUNDING
    partitions: bool = False
    stop: int = 3
    unit_cost: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Adjustment:
    """CTA: controlled tabular adjustment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CellKeys:
    """CKM: noise by the cell key method, as the metadata describe it."""


Protection: TypeAlias = Modular | Optimal | Hypercube | Network | Rounding | Adjustment | CellKeys


@dataclass(frozen=True, slots=True, kw_only=True)
class Suppress:
    """Protect a table, or all tables of the session together (table 0)."""

    line: int
    keyword: str
    table: int
    how: Protection


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteTable:
    """Write a table in one of the formats of τ-ARGUS."""

    line: int
    table: int
    kind: Kind
    options: WriteOptions
    file: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Solver:
    """The solver that τ-ARGUS would use."""

    line: int
    name: str
    licence: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Clear:
    """Forget all data and tables, and start again."""

    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Logbook:
    """The file that the log is added to."""

    line: int
    file: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Silent:
    """Show no progress."""

    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Cover:
    """The table covers linked ones: it need not add up."""

    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionInfo:
    """Write the version of the program to a file."""

    line: int
    file: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GoInteractive:
    """Go on in windows."""

    line: int


Command: TypeAlias = (
    OpenData | OpenMetadata | SpecifyTable | SafetyRule | ReadMicrodata | ReadTable | Apriori | Recode | Suppress
    | WriteTable | Solver | Clear | Logbook | Silent | Cover | VersionInfo | GoInteractive
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Note:
    """Something that the user should know: the file is not followed to the letter there."""

    line: int
    text: str


@dataclass(frozen=True, kw_only=True)
class Batch:
    """A whole batch file."""

    commands: tuple[Command, ...]
    texts: dict[int, str] = field(repr=False)
    """The text of the command that begins on each line, for the log."""
    notes: tuple[Note, ...] = ()
    """What was read otherwise than it is written."""
    path: Path = Path("job.arb")

    def where(self, line: int) -> str:
        """The place of a command, in the user's terms."""
        return f"{self.path.name}, line {line}"


# -- order -------------------------------------------------------------------------------------------------------------


class Fault(Exception):
    """One error of a batch file, on a line that the caller knows."""

    def __init__(self, what: str, hint: str) -> None:
        super().__init__(what)
        self.what, self.hint = what, hint


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
