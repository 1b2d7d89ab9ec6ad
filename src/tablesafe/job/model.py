"""What a job file may say, as frozen dataclasses. Each key carries its own help; the reference is made from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

from tablesafe.attack.registry import chosen
from tablesafe.core.errors import InvalidOption
from tablesafe.core.hierarchy import TOTAL
from tablesafe.core.language import Code
from tablesafe.core.options import about
from tablesafe.core.sensitivity import Rule
from tablesafe.core.statuses import Scheme
from tablesafe.io.layout import Crosstab
from tablesafe.job.decode import Choice
from tablesafe.job.toml import KeyPath
from tablesafe.methods import METHODS, Method
from tablesafe.report.plot_names import NAMES, require_plot_name
from tablesafe.rules import RULES
from tablesafe.work.run import Attackers

Selector: TypeAlias = dict[str, str | tuple[str, ...]]
"""Cells by their codes: every cell that has one of the given codes in each dimension named."""

GiveWay: TypeAlias = Literal["algorithm", "zeros", "bounds", "respondents"]
"""What may give way where nothing protects a table as it is asked for."""

CHOICES: dict[Any, Choice] = {Rule: Choice("rule", RULES, "rule"), Method: Choice("name", METHODS, "method")}
"""What is chosen by name: rules and methods, with the options of their own dataclasses."""


def _key(help: str, default: Any = None, *, example: Any = None, file: bool = False) -> Any:
    """A key that may be left out: its help, its default, an example, and whether it names a file that must exist."""
    return field(default=default, metadata=_about(help, example, file))


def _needed(help: str, *, example: Any, file: bool = False) -> Any:
    """A key that must be there."""
    return field(metadata=_about(help, example, file))


def _about(help: str, example: Any, file: bool) -> dict[str, Any]:
    return {"help": help, "file": file} | ({} if example is None else {"example": example})


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where the data comes from, and what its rows are."""

    file: str = _needed(
        "the data: CSV, Parquet, Excel, JJ, or τ-ARGUS .asc, .tab and .arb", example="firms.csv", file=True
    )
    kind: Literal["auto", "records", "cells", "problem"] = _key(
        "what a row is: a record to tabulate, a cell of a finished table, or a cell with its status and levels; "
        "auto takes a JJ, .tab or .arb file for a problem and every other file for records",
        "auto",
    )
    table: int | tuple[int, ...] | None = _key(
        "τ-ARGUS .arb: which of the tables that the batch file reads, with their rules, recodes and a-priori files; "
        "several, or all when not given, are protected together",
        example=1,
    )
    metadata: str | None = _key(
        "the .rda file that describes an .asc or .tab file, or records of another ending without a header line",
        example="firms.rda",
        file=True,
    )
    delimiter: str | None = _key("what separates the columns of a CSV file; found out when not given", example=";")
    sheet: str | None = _key("sheet of an Excel file, when it has several", example="Sheet1")
    layout: Literal["rows", "crosstab"] = _key(
        "Excel, CSV: rows has the names of columns in its first row; crosstab has codes down the side and across the "
        "top, as tables are printed ('tablesafe look' shows what is understood; its column of numbers is 'value')",
        "rows",
    )
    area: str | None = _key("crosstab: the cells of the table with its headings and labels", example="A4:H30")
    header_rows: int | None = _key("crosstab: how many rows are headings; found out when not given", example=2)
    label_columns: int | None = _key("crosstab: how many columns are labels; found out when not given", example=1)
    where: str | None = _key("which records to use, as an SQL condition", example="year = 2024")
    respondent: str | None = _key("column that says who a record is from; else each stands alone", example="firm")
    holding: str | None = _key("column that says which respondents belong together", example="group")
    weight: str | None = _key("column with the sampling weight", example="weight")
    frequency: str | None = _key(
        "records: column with the number of respondents that a row stands for, in data that are counted already",
        example="n",
    )
    request: str | None = _key("column that marks respondents who ask for protection", example="asked")
    largest: int = _key("how many of the largest contributors of each cell to keep; rules may need more", 3)
    zeros: bool = _key("records: keep also the cells that no record falls into", False)
    empty: tuple[str, ...] = _key("records: texts that stand for nothing", (), example=("NA", "."))
    count: str | None = _key("cells: column with the number of contributors", example="count")
    holdings: str | None = _key("cells: column with the number of contributing holdings", example="holdings")
    contributions: tuple[str, ...] = _key(
        "cells: columns with the largest contributions, the largest first", (), example=("max1", "max2")
    )
    contributors: tuple[str, ...] = _key("cells: columns that say who they are from", (), example=("who1", "who2"))
    status: str | None = _key("cells: column with the status that each cell has already", example="status")
    scheme: Scheme | None = field(
        default=None,
        metadata=_about(
            "cells: the vocabulary of the status column; when not given, it must leave no doubt", "sdmx-conf", False
        ),
    )
    structural_zero: str | None = _key("cells: column that is 1 where a cell is zero by definition", example="void")
    missing_totals: Literal["error", "compute", "none"] = _key(
        "cells: what to do when a total has no row: compute adds it up; none says that no such sum is published "
        "anywhere, and the verdict repeats it",
        "error",
    )
    tolerance: float = _key("cells and .tab: by how much a total may be off; it is then recomputed", 0.0)

    def __post_init__(self) -> None:
        if self.largest < 0:
            raise InvalidOption(f"'largest' must be 0 or more, got {self.largest}.", about=about(self, "largest"))
        if not self.tolerance >= 0:
            raise InvalidOption(f"'tolerance' must be 0 or more, got {self.tolerance}.", about=about(self, "tolerance"))
        for name in ("area", "header_rows", "label_columns"):
            if getattr(self, name) is not None and self.layout != "crosstab":
                raise InvalidOption(f'{name!r} needs layout = "crosstab".', about=about(self, name))
        if self.layout == "crosstab" and self.kind not in {"auto", "cells"}:
            raise InvalidOption(
                "A crosstab holds cells, no records.", hint='kind = "cells".', about=about(self, "kind")
            )
        if self.table is not None and not self.file.lower().endswith(".arb"):
            raise InvalidOption("'table' is of a batch file of τ-ARGUS (.arb).", about=about(self, "table"))
        self.crosstab  # noqa: B018 - says what is wrong with it

    @property
    def crosstab(self) -> Crosstab | None:
        """How a sheet is laid out that is no list of rows."""
        if self.layout == "rows":
            return None
        return Crosstab(area=self.area, header_rows=self.header_rows, label_columns=self.label_columns)

    @property
    def holds(self) -> Literal["records", "cells", "problem"]:
        """What a row of the file is."""
        if self.kind != "auto":
            return self.kind
        if self.layout == "crosstab":
            return "cells"
        name = self.file.lower().removesuffix(".gz")
        return "problem" if name.endswith((".jj", ".tab", ".arb")) else "records"

    @property
    def tables(self) -> tuple[int, ...]:
        """Which tables of a batch file are meant; none means all."""
        return self.table if isinstance(self.table, tuple) else () if self.table is None else (self.table,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Dimension:
    """One dimension of the table; without a hierarchy, all its codes add up to a total."""

    column: str | None = _key("column of the source; the same as the dimension's name when not given", example="STATE")
    hierarchy: str | None = _key(
        "file with the hierarchy: .hrc, or a CSV or Parquet file with pairs or levels", example="nace.hrc", file=True
    )
    kind: Literal["auto", "hrc", "pairs", "levels", "prefixes", "equations", "flat"] = _key(
        "how the hierarchy is written; auto goes by the file name and by the other keys, and takes a CSV file with "
        "the columns 'parent' and 'child' for pairs and any other for levels, the coarsest first",
        "auto",
    )
    columns: tuple[str, ...] = _key(
        "pairs: the columns with parent and child; levels: the columns to use, the coarsest first",
        (),
        example=("division", "group"),
    )
    lengths: tuple[int, ...] = _key("prefixes: lengths of the codes at each level", (), example=(1, 3, 4))
    filler: str = _key("prefixes: padding character of short codes, such as the - in 11----", "", example="-")
    equations: tuple[str, ...] = _key("sums between codes, for what is no tree", (), example=("13 = 4 + 5 + 6",))
    indent: str = _key("hrc: what a line begins with, once per level", "@")
    recode: str | None = _key(
        "records: file with a coarser coding (.grc of τ-ARGUS): lines such as '1: 01, 02-04', or <TREERECODE> and the "
        "codes to collapse",
        example="size.grc",
        file=True,
    )
    level: int | None = _key("records: show no codes below this level of the hierarchy; the total is 0", example=2)
    total: str = _key("code of the grand total; cells: empty where nothing adds up, as across years", TOTAL)
    labels: str | None = _key("CSV file with two columns: code and label", example="labels.csv", file=True)
    missing: str = _key("what to do with records without a code: error, drop, or a code for them", "error")


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """What is added up in the cells: one column, or several with the sums between them."""

    value: tuple[str, ...] = _key(
        "column or columns to add up; without one, a table of records counts them", (), example=("turnover",)
    )
    equations: tuple[str, ...] = _key(
        "sums between response columns; a total that is no column is computed", (), example=("total = home + export",)
    )
    shadow: str | None = _key("records: column by which contributors are ranked instead", example="turnover")
    negative: Literal["auto", "possible", "never"] = _key(
        "whether contributions may be negative: auto (when one is), possible (profits and balances, whatever the data "
        "show), or never (a negative one is an error); where they may be, nobody knows that a cell is 0 or more",
        "auto",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TableOptions:
    """One of several linked tables: some of the dimensions, perhaps from a file of its own."""

    dimensions: tuple[str, ...] = _needed("the dimensions that span this table", example=("nace", "region"))
    file: str | None = _key("cells: file of this table, when it is not the source's", example="b.csv", file=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProblemOptions:
    """What an attacker knows already, what must stay as it is, and what withholding costs."""

    within_percent: float | None = _key(
        "the attacker knows every value to within this many percent, as well as its sign", example=50.0
    )
    spare_levels: bool = _key(
        "within_percent: but no closer than the protection levels allow, and nothing of cells that are 0", False
    )
    lower: float | str | None = _key("the attacker's lower bound of each cell: a number or a column", example=0.0)
    upper: float | str | None = _key("the attacker's upper bound of each cell: a number or a column", example="bound")
    frozen: str | tuple[Selector, ...] = _key("cells that must be published: a column, or their codes", ())
    suppressed: str | tuple[Selector, ...] = _key("cells that are withheld already: a column, or their codes", ())
    withheld: str | tuple[Selector, ...] = _key("cells never published by design: a column, or their codes", ())
    waived: str | tuple[Selector, ...] = _key("sensitive cells that may be published: a column, or their codes", ())
    freeze_zeros: bool = _key("publish cells that are zero, unless they are sensitive", False)
    shows_zeros: bool | None = _key(
        "whether everybody knows that zeros are never withheld, so that what is withheld of whole numbers is 1 or "
        "more; when not given, a release tells it that shows some zeros and withholds none",
        example=True,
    )
    cost: str = _key("what withholding a cell costs: value, count, unit, log, or a column", "value")
    cube: Literal["tie", "ignore"] = _key(
        "linked tables of the same records: tie looks also at the unseen cells of the cross-classification that joins "
        "them, ignore does not, and the verdict says so",
        "tie",
    )
    apriori: str | tuple[str, ...] | None = _key(
        "a-priori file with statuses, costs, levels and bounds: .hst, CSV, Parquet or Excel; of several, in a list, "
        "the later ones say what counts",
        example="known.hst",
        file=True,
    )
    scheme: Scheme | None = field(
        default=None,
        metadata=_about(
            "the vocabulary of the statuses in a-priori files; when not given, they must leave no doubt",
            "sbs",
            False,
        ),
    )
    manual_range: float = _key("safety range of cells that are sensitive by their given status, in percent", 20.0)
    give_way: tuple[GiveWay, ...] = _key(
        "what may give way where nothing protects the table as asked, one after the other, each told: algorithm "
        "(another one), zeros (cells of value zero may be withheld), bounds (the attacker knows none beforehand), "
        "respondents (only outsiders are guarded against: the audit, as strict as before, then says what is open)",
        (),
        example=("zeros", "bounds"),
    )

    def __post_init__(self) -> None:
        if self.within_percent is not None and not self.within_percent > 0:
            raise InvalidOption(
                f"'within_percent' must be above 0, got {self.within_percent}.", about=about(self, "within_percent")
            )
        if not 0 <= self.manual_range <= 100:
            raise InvalidOption(
                f"'manual_range' must be from 0 to 100, got {self.manual_range}.", about=about(self, "manual_range")
            )
        if self.spare_levels and self.within_percent is None:
            raise InvalidOption("'spare_levels' is about 'within_percent'.", about=about(self, "spare_levels"))
        if self.within_percent is not None and (self.lower is not None or self.upper is not None):
            raise InvalidOption(
                "'within_percent' and 'lower' or 'upper' say the same thing twice: give one of them.",
                about=about(self, "within_percent"),
            )

    @property
    def bounded(self) -> bool:
        """Whether the attacker is said to know bounds beforehand."""
        return any(each is not None for each in (self.within_percent, self.lower, self.upper))

    @property
    def apriori_files(self) -> tuple[str, ...]:
        """The a-priori files, in the order in which they count."""
        return (self.apriori,) if isinstance(self.apriori, str) else self.apriori or ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditOptions:
    """How hard the release is attacked before it may be written."""

    cells: Literal["sensitive", "all"] = _key("which cells to bound exactly", "sensitive")
    exact: bool = _key("exact intervals; without, only as wide as the answer needs, which is much faster", True)
    insiders: bool = _key("attack also as respondents, who know their own contributions", True)
    coalition: int = _key("how many respondents may put together what they know", 1)
    unions: bool = _key("judge also sums of withheld cells that the release gives away", True)
    possibly: Literal["open", "accept"] = _key(
        "cells that are open only if contributors that the table does not list are large: they count as open, or you "
        "accept them, and the verdict says so",
        "open",
    )
    integers: bool | None = _key(
        "the attacker knows that values are whole numbers; when not given, it does if they are counts", example=True
    )
    certificate: bool = _key("write the proof that the release is safe", True)
    key: str | None = _key(
        "private key that signs the certificate, as 'tablesafe key' makes it", example="keys/office.key", file=True
    )
    time_limit_s: float | None = _key("for integers: cells left unproved after so many seconds are open", example=600.0)

    def __post_init__(self) -> None:
        if self.time_limit_s is not None and not self.time_limit_s > 0:
            raise InvalidOption(
                f"'time_limit_s' must be above 0, got {self.time_limit_s}.", about=about(self, "time_limit_s")
            )
        if self.coalition < 1:
            raise InvalidOption(f"'coalition' must be 1 or more, got {self.coalition}.", about=about(self, "coalition"))

    @property
    def attackers(self) -> Attackers:
        """Whom the release must withstand."""
        return Attackers(
            insiders=self.insiders, coalition=self.coalition, unions=self.unions, integers=self.integers,
            possibly=self.possibly,
        )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class AttackOptions:
    """How an intruder would guess at what the release hides; the internal report says how near the guesses come."""

    attacks: tuple[str, ...] = _key(
        "attacks to try, by name: any of those of 'tablesafe attack', all of them for \"all\", or none",
        ("published value", "interior point", "analytic centre", "midpoint"),
        example=("all",),
    )
    time_limit_s: float = _key("most seconds for each attack", 30.0)
    seed: int = _key("seed of the attacks that draw at random", 1)

    def __post_init__(self) -> None:
        chosen(self.attacks)
        if not self.time_limit_s > 0:
            raise InvalidOption(
                f"'time_limit_s' must be above 0, got {self.time_limit_s}.", about=about(self, "time_limit_s")
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """What is written, and where. Paths are relative to the job file; the suffix says the format."""

    release: tuple[str, ...] = _key(
        "files of the release: .csv, .parquet, .xlsx, .px (PC-Axis), .json (JSON-stat), .sdmx.csv or .xml (SDMX)",
        (),
        example=("public/table.csv", "public/table.xlsx"),
    )
    report: str | tuple[str, ...] | None = _key(
        "report for the public, without rule parameters; one name or several: .html a page, .json the same for "
        "programs, .xlsx the table with colours",
        example="public/report.html",
    )
    internal: str | None = _key(
        "folder for what stays in the office: certificate, findings, flagged cells, internal report; "
        "'internal' beside the job file when not given",
        example="internal",
    )
    name_source: bool = _key("name the source file in the report for the public", False)
    language: Code = field(
        default="en",
        metadata=_about("language of the pages, public and internal: English, German, French or Spanish", "de", False),
    )
    labels: bool = _key("write the labels of codes beside them", True)
    intervals: bool = _key("write the interval that the release announces for each changed value", False)
    pictures: bool = _key("draw pictures into the reports, where there is something to draw (extra plots)", True)
    plots: tuple[str, ...] = _key(
        f"plots for the office, into its folder where there is something to draw: {', '.join(NAMES)}, each .svg, .png "
        "or .pdf",
        (),
        example=("intervals.svg", "heat_map.png"),
    )
    guard_formulas: bool = _key(
        "CSV: put an apostrophe before codes and labels that a spreadsheet would run as a formula (= + - @); workbooks "
        "are safe without it, and other programs see the apostrophe",
        True,
    )
    force: bool = _key("write the release even when its audit finds it open", False)

    def __post_init__(self) -> None:
        for name in self.plots:
            require_plot_name(name)

    @property
    def reports(self) -> tuple[str, ...]:
        """The names of the public reports."""
        return (self.report,) if isinstance(self.report, str) else self.report or ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """Where the work is done."""

    engine: Literal["auto", "duckdb", "ibis", "spark"] = _key(
        "what tabulates the records: this machine, or a Spark cluster; the table is the same", "auto"
    )
    spark: str | None = _key(
        "address of the Spark cluster; as Spark is set up when not given, else this machine",
        example="spark://host:7077",
    )
    memory_limit: str | None = _key("most memory that the tabulation may use; the rest goes to disk", example="4GB")
    temporary: str | None = _key("folder for what does not fit into memory, encrypted", example="/scratch")
    executor: Literal["here", "processes", "dask"] = _key(
        "who works on the parts of large tables: this process (which starts others where that pays), a pool of "
        "processes, or the workers of a Dask cluster; the answer is the same",
        "here",
    )
    workers: int | None = _key("how many processes; as many as there are cores when not given", example=2)
    scheduler: str | None = _key(
        "address of the Dask scheduler; worker processes of this machine when not given", example="tls://host:8786"
    )
    certificates: str | None = _key(
        "folder with ca.pem, cert.pem and key.pem for a Dask scheduler at a tls:// address", example="keys"
    )
    checkpoint: str | None = _key(
        "folder for what a run has worked out so far, from which 'tablesafe run --resume' goes on; confidential, and "
        "removed at the end; 'checkpoint' in the internal folder when not given",
        example="checkpoint",
    )
    checkpoint_after_s: float = _key("keep a checkpoint only once a run has taken this many seconds; inf: never", 60.0)

    def __post_init__(self) -> None:
        if not self.checkpoint_after_s >= 0:
            raise InvalidOption(
                f"'checkpoint_after_s' must be 0 or more, got {self.checkpoint_after_s}.",
                about=about(self, "checkpoint_after_s"),
            )
        if self.scheduler is not None and self.executor != "dask":
            raise InvalidOption(
                "'scheduler' is the address of a Dask cluster: it needs executor = \"dask\".",
                about=about(self, "scheduler"),
            )
        if self.certificates is not None and self.scheduler is None:
            raise InvalidOption(
                "'certificates' are for a Dask cluster: they need its 'scheduler'.", about=about(self, "certificates")
            )
        if self.spark is not None and self.engine != "spark":
            raise InvalidOption(
                "'spark' is the address of a Spark cluster: it needs engine = \"spark\".", about=about(self, "spark")
            )
        if self.workers is not None and self.workers < 1:
            raise InvalidOption(f"'workers' must be 1 or more, got {self.workers}.", about=about(self, "workers"))


@dataclass(frozen=True, kw_only=True)
class Job:
    """A whole job: data in, rules, method, audit, files out."""

    title: str = _key("title of the table, for the report", "", example="Turnover by activity and region")
    source: Source = field(metadata={"help": "where the data comes from"})
    dimensions: dict[str, Dimension] = field(
        default_factory=dict, metadata={"help": "the dimensions of the table, one [dimensions.NAME] each"}
    )
    response: Response = field(default_factory=Response, metadata={"help": "what is added up"})
    tables: tuple[TableOptions, ...] = field(
        default=(), metadata={"help": "linked tables, one [[tables]] each; without them one table over all dimensions"}
    )
    rules: tuple[Rule, ...] = field(default=(), metadata={"help": "what is sensitive, one [[rules]] each"})
    problem: ProblemOptions = field(default_factory=ProblemOptions, metadata={"help": "what an attacker knows"})
    method: Method = field(default_factory=lambda: METHODS["suppress"](), metadata={"help": "how to protect"})
    audit: AuditOptions = field(default_factory=AuditOptions, metadata={"help": "how hard to attack the result"})
    attack: AttackOptions = field(default_factory=AttackOptions, metadata={"help": "how to guess at what is hidden"})
    output: Output = field(default_factory=Output, metadata={"help": "what to write"})
    run: RunOptions = field(default_factory=RunOptions, metadata={"help": "where to compute"})
    path: Path | None = field(default=None, compare=False, repr=False, metadata={"hidden": True})
    lines: Mapping[KeyPath, int] = field(default_factory=dict, compare=False, repr=False, metadata={"hidden": True})

    @property
    def folder(self) -> Path:
        """The folder that paths in the job are relative to."""
        return Path() if self.path is None else self.path.parent

    @property
    def name(self) -> str:
        """What errors call the job."""
        return "The job" if self.path is None else self.path.name

    def resolve(self, path: str) -> Path:
        """A path of the job file, relative to its folder."""
        return self.folder / path
