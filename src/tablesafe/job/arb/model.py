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

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

from tablesafe.io.tauargus_write_options import Kind, WriteOptions

MINUTES_OF_MODULAR = 1.0
MINUTES_OF_OPTIMAL = 10.0
MINUTES_OF_ROUNDING = 10.0
PERCENT_OF_HYPERCUBE = 100.0
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
