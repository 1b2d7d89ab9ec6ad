"""What is tabulated: the records and how they are read, and what each of their columns is.

`tabulate` takes both as objects, or their fields as keywords of its own, which is shorter where there are few. Either
way they are gathered here, and checked here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, fields
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypedDict, get_args

from tablesafe.core.errors import InvalidOption, Setting
from tablesafe.core.table import Negative, require_negative
from tablesafe.files.read import did_you_mean

Where: TypeAlias = str | Mapping[str, str | Sequence[str]] | Callable[[Any], Any] | None
"""Which records count: an SQL condition, codes by column, or (for an Ibis table) a function of the table."""

Equations: TypeAlias = str | Iterable[str] | Mapping[str, Sequence[str]]

Engine: TypeAlias = Literal["auto", "duckdb", "ibis", "spark"]
"""What groups the records: DuckDB here, or the engine of an Ibis table; auto goes by the source."""


@dataclass(frozen=True, slots=True, eq=False)
class Records:
    """Records to tabulate: where they are, which of them count, and who reads them.

    The source is a CSV or Parquet file (or a list, a pattern or a folder of files), a pandas, polars or Arrow frame, or
    an Ibis table, which its own engine (a database, Spark) aggregates. Files may be larger than memory.
    """

    source: Any = field(repr=False, metadata={"help": "a file or several, a frame, or an Ibis table"})
    _: KW_ONLY
    where: Where = field(
        default=None,
        metadata={
            "help": "which records count: an SQL condition, codes by column, or, for an Ibis table, a function of it",
            "example": "year = 2024",
        },
    )
    empty: Sequence[str] = field(default=(), metadata={"help": "texts that stand for nothing", "example": ("NA", ".")})
    delimiter: str | None = field(
        default=None,
        metadata={"help": "what separates the columns of a CSV file; found out when not given", "example": ";"},
    )
    engine: Engine = field(default="auto", metadata={"help": "who groups the records: auto, duckdb, ibis or spark"})
    spark: str | None = field(
        default=None,
        metadata={"help": "address of Spark; the session that is active when not given", "example": "local[4]"},
    )
    memory_limit: str | None = field(default=None, metadata={"help": "most memory that DuckDB uses", "example": "8GB"})
    threads: int | None = field(default=None, metadata={"help": "how many threads DuckDB uses", "example": 4})
    temporary: str | Path | None = field(
        default=None, metadata={"help": "folder for what does not fit into memory", "example": "scratch"}
    )

    def __post_init__(self) -> None:
        if self.engine not in get_args(Engine):
            raise InvalidOption(f"engine must be 'auto', 'duckdb', 'ibis' or 'spark', got {self.engine!r}.")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Columns:
    """What the columns of records are, beside those of the dimensions.

    `value` names the column to add up; without it, records are counted. Several columns make one table with a
    dimension `response`, tied together by `equations`; a total that they name and `value` does not is computed. With
    a `weight` values are weighted sums.

    Contributors are respondents, or holdings where `holding` is given; a respondent without a holding stands alone. A
    `shadow` variable takes the place of the value when they are ranked, with its total in the table's column `shadow`.

    A `frequency` column says how many respondents each row stands for, as in data that are counted already. Who they
    are, and how much each reported, nobody knows: the largest contributors are not kept, and rules that look at them
    cannot be judged.
    """

    value: str | Sequence[str] | None = field(
        default=None, metadata={"help": "what is added up; records are counted when not given", "example": "turnover"}
    )
    equations: Equations | None = field(
        default=None,
        metadata={"help": "equations between several values", "example": "turnover = domestic + exports"},
    )
    respondent: str | None = field(
        default=None, metadata={"help": "who a record is from; else each stands alone", "example": "firm"}
    )
    holding: str | None = field(
        default=None, metadata={"help": "which respondents belong together", "example": "group"}
    )
    weight: str | None = field(default=None, metadata={"help": "the sampling weight", "example": "weight"})
    frequency: str | None = field(
        default=None, metadata={"help": "how many respondents a row stands for", "example": "n"}
    )
    request: str | None = field(
        default=None,
        metadata={
            "help": "a number per record, 0 for none; the table's column of that name holds that of the largest "
            "contributor of each cell, and several numbers c (also of several who are the largest) as minus the sum "
            "of 2^(c-1)",
            "example": "asked",
        },
    )
    shadow: str | None = field(
        default=None, metadata={"help": "what contributors are ranked by, instead of the value", "example": "staff"}
    )
    cost: str | None = field(
        default=None, metadata={"help": "what withholding a cell costs, added up", "example": "cost"}
    )
    further: Sequence[str] = field(default=(), metadata={"help": "further columns to add up", "example": ("staff",)})
    negative: Negative = field(
        default="auto",
        metadata={
            "help": "whether contributions may be negative: auto when a record is, possible for profits and balances "
            "whatever these records show, never to refuse negative records"
        },
    )

    def __post_init__(self) -> None:
        require_negative(self.negative)
        if self.frequency is None:
            return
        for name in ("respondent", "holding", "request", "shadow"):
            if getattr(self, name) is not None:
                raise InvalidOption(
                    (
                        Setting(name, getattr(self, name)),
                        " is about single respondents, but with ",
                        Setting("frequency", self.frequency),
                        " a row stands for several of whom nobody knows who they are.",
                    ),
                    hint="leave out one of the two.",
                )


class ShortForm(TypedDict, total=False):
    """The fields of `Records` and `Columns` as keywords of `tabulate`; `columns` stands for `Columns.further`."""

    where: Where
    empty: Sequence[str]
    delimiter: str | None
    engine: Engine
    spark: str | None
    memory_limit: str | None
    threads: int | None
    temporary: str | Path | None
    value: str | Sequence[str] | None
    equations: Equations | None
    respondent: str | None
    holding: str | None
    weight: str | None
    frequency: str | None
    request: str | None
    shadow: str | None
    cost: str | None
    negative: Negative


OF_RECORDS = tuple(each.name for each in fields(Records) if each.name != "source")
OF_COLUMNS = tuple(each.name for each in fields(Columns) if each.name != "further")


def gathered(source: Any, columns: Columns | Sequence[str], short: Mapping[str, Any]) -> tuple[Records, Columns]:
    """The records and their columns, as objects or by the short form; nothing may be said in both ways."""
    for name in short:
        if name not in ShortForm.__annotations__:
            near = did_you_mean(name, list(ShortForm.__annotations__))
            raise TypeError(f"tabulate() got an unexpected keyword argument {name!r}. {near or ''}".rstrip())
    of_records = {name: short[name] for name in OF_RECORDS if name in short}
    of_columns = {name: short[name] for name in OF_COLUMNS if name in short}
    if isinstance(source, Records):
        _refuse_twice(of_records, "Records")
    else:
        source = Records(source, **of_records)
    if isinstance(columns, Columns):
        _refuse_twice(of_columns, "Columns")
    else:
        columns = Columns(**of_columns, further=columns)
    return source, columns


def by_name(records: Records, columns: Columns) -> dict[str, Any]:
    """All that was said of them, as keywords of the short form, with what was left out."""
    said = {name: getattr(records, name) for name in OF_RECORDS}
    return said | {name: getattr(columns, name) for name in OF_COLUMNS} | {"columns": columns.further}


def _refuse_twice(given: Mapping[str, Any], kind: str) -> None:
    if given:
        name = next(iter(given))
        raise InvalidOption(
            f"{name} is given beside a {kind}, which has a {name} of its own.", hint=f"{kind}(…, {name}=…)"
        )
