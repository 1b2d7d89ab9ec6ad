"""Records on Spark: the same files, read and grouped by a cluster; only what the table needs comes back.

The files are read where the workers are, so that on several machines they must lie where all of them see them. Text is
taken for numbers as everywhere else, and a filter is the same SQL, put into Spark's words.
"""

from __future__ import annotations

import functools
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tablesafe.core.errors import InvalidFile, InvalidOption, InvalidTable, MissingExtra
from tablesafe.tabulate.csvfile import CsvFile
from tablesafe.tabulate.plan import Plan
from tablesafe.tabulate.scan import words
from tablesafe.tabulate.sources import first_line, look_at_files

NUMBER = r"^[+-]?([0-9]+([.,][0-9]*)?|[.,][0-9]+)([eE][+-]?[0-9]+)?$"
WHOLE = r"^[+-]?[0-9]{1,18}$"
CODE = r"^[+-]?0[0-9]"
"""A number that begins with a zero is a code."""
THOUSANDS = r"^[+-]?[0-9]{1,3}(,[0-9]{3})+$"
VIEW = "tablesafe_records"
LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
"""Where PySpark writes down, with the value, what could not be computed."""


@contextmanager
def spark_session(master: str | None, private: Path) -> Iterator[Any]:
    """The caller's Spark, or one for the time being: encrypted on disk, and without a page that shows what it does."""
    try:
        import ibis  # noqa: F401
        from pyspark.errors import PySparkException
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise MissingExtra("Tabulating on Spark", "spark") from error
    active = SparkSession.getActiveSession()
    if active is not None:
        yield active
        return
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        raise InvalidOption("Spark needs Java, and there is none here.", hint="install a Java runtime (17 or later).")
    try:
        made = _configured(SparkSession.builder.appName("tablesafe"), master, private).getOrCreate()
    except (PySparkException, OSError) as error:
        raise InvalidOption(
            f"Spark cannot be started{'' if master is None else f' at {master!r}'}: {first_line(error)}",
            hint="the address of a cluster is like spark://host:7077; local[2] is two cores of this machine.",
        ) from error
    made.sparkContext.setLogLevel("OFF")
    try:
        yield made
    finally:
        with suppress(Exception):
            made.stop()


def _configured(builder: Any, master: str | None, private: Path) -> Any:
    silence = private / "log4j2.properties"
    silence.write_text("rootLogger.level = off\n", encoding="utf-8")
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.io.encryption.enabled": "true",
        "spark.local.dir": str(private / "spark"),
        "spark.sql.warehouse.dir": str(private / "warehouse"),
        "spark.driver.extraJavaOptions": f"-Djava.io.tmpdir={private} -Dlog4j2.configurationFile={silence}",
        "spark.sql.caseSensitive": "true",
        "spark.sql.session.timeZone": "UTC",
        "spark.log.level": "OFF",
    }
    if master is not None:
        builder = builder.master(master)
        if master.startswith("local"):
            settings |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder


def read_on_spark(session: Any, source: Any, plan: Plan, private: Path, delimiter: str | None) -> tuple[Any, str]:
    """The records that pass the filter as an Ibis table on Spark, with numbers where numbers are needed; its name."""
    import ibis

    files, name = look_at_files(source, private, delimiter)
    with reading(name):
        frame = _frame(session, files)
        texts = set(frame.columns) if isinstance(files[0], CsvFile) else set()
        if isinstance(plan.where, str):
            frame = _filtered(frame, plan.where, texts, plan.empty)
        frame = _numbers(frame, [column for column in _amounts(plan) if column in texts], plan.empty, name)
        frame.createOrReplaceTempView(VIEW)
        return ibis.pyspark.connect(session).table(VIEW), name


@contextmanager
def reading(name: str) -> Iterator[None]:
    """Turn what Spark says about a file into the user's terms."""
    from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException

    try:
        with _silent():
            yield
    except (PySparkException, Py4JJavaError) as error:
        raise InvalidFile(
            f"{name} cannot be read by Spark: {type(error).__name__}.",
            hint="does every line have as many entries as the header, and does every worker see the file? "
            'engine = "duckdb" says which line it is.',
        ) from error


@contextmanager
def _silent() -> Iterator[None]:
    """Let Spark not write down why a record cannot be used: it would quote it."""
    from pyspark.logger import PySparkLogger

    loggers = [PySparkLogger.getLogger(name) for name in LOGGERS]
    before = [logger.disabled for logger in loggers]
    try:
        for logger in loggers:
            logger.disabled = True
        yield
    finally:
        for logger, disabled in zip(loggers, before, strict=True):
            logger.disabled = disabled


def _frame(session: Any, files: Sequence[CsvFile | Path]) -> Any:
    from pyspark.sql.types import StringType, StructField, StructType

    first = files[0]
    if not isinstance(first, CsvFile):
        return session.read.option("mergeSchema", "true").parquet(*map(str, files))
    frames = []
    for file in files:
        assert isinstance(file, CsvFile)
        schema = StructType([StructField(column, StringType()) for column in file.header])
        options = {
            "header": True, "sep": file.delimiter, "quote": '"', "escape": '"', "multiLine": True, "mode": "FAILFAST",
            "encoding": "UTF-8",
        }  # fmt: skip
        frames.append(
            session.read.schema(schema).options(**options).csv(str(file.path)).select(*map(_column, first.header))
        )
    return functools.reduce(lambda one, other: one.unionByName(other), frames)


def _column(name: str) -> Any:
    from pyspark.sql import functions

    return functions.col("`" + name.replace("`", "``") + "`")


def _amounts(plan: Plan) -> list[str]:
    return list(plan.numbers)


def _entry(name: str, empty: Sequence[str]) -> Any:
    """What stands in a column of text, trimmed; blank is missing."""
    from pyspark.sql import functions

    text = functions.trim(_column(name))
    return functions.when(text.isin("", *empty), None).otherwise(text)


def _number(text: Any) -> Any:
    from pyspark.sql import functions

    fit = functions.when(text.rlike(NUMBER), text)
    return functions.regexp_replace(fit, ",", ".").cast("double")


def _numbers(frame: Any, columns: Sequence[str], empty: Sequence[str], name: str) -> Any:
    """The frame with some columns of text as numbers; text that is none is an error."""
    from pyspark.sql import functions

    asked = []
    for i, column in enumerate(columns):
        text = _entry(column, empty)
        tests = {
            "bad": text.isNotNull() & ~text.rlike(NUMBER),
            "comma": text.contains(","),
            "point": text.contains("."),
        }
        tests["thousands"] = text.rlike(THOUSANDS)
        asked += [functions.sum(test.cast("long")).alias(f"{what}{i}") for what, test in tests.items()]
    found: Mapping[str, int] = {} if not asked else frame.agg(*asked).first().asDict()
    for i, column in enumerate(columns):
        bad, comma, point, thousands = (found[f"{what}{i}"] or 0 for what in ("bad", "comma", "point", "thousands"))
        if bad or (comma and point):
            raise InvalidTable(
                f"Column {column!r} of {name} should hold numbers, but {max(bad, min(comma, point)):,} entries are "
                f"none.",
                hint="is it the right column, with a decimal point or comma and no thousands separator? "
                'engine = "duckdb" says which line it is.',
            )
        if comma and comma == thousands:
            raise InvalidTable(
                f"Column {column!r} of {name} has commas: are they for decimals or thousands?",
                hint="write numbers with a decimal point and without thousands separators.",
            )
    return frame.withColumns({column: _number(_entry(column, empty)) for column in columns})


def _filtered(frame: Any, where: str, texts: set[str], empty: Sequence[str]) -> Any:
    """The rows that pass an SQL condition; text of which every entry is a number counts as numbers there."""
    from pyspark.sql import functions

    named = [column for column in frame.columns if column.casefold() in words(where)]
    kinds = _kinds(frame, [column for column in named if column in texts], empty)
    exposed = {}
    for column in named:
        text = _entry(column, empty)
        as_it_is = functions.when(text.isNotNull(), _column(column))  # blanks around a code stay, as everywhere else
        exposed[column] = {"whole": text.cast("long"), "number": _number(text), "text": as_it_is}.get(
            kinds.get(column, ""), _column(column)
        )
    condition = functions.expr(in_spark_words(where))
    kept = [f"§{i}" for i in range(len(frame.columns))]
    columns = [_column(column).alias(kept[i]) for i, column in enumerate(frame.columns)]
    inner = frame.select(*columns, *(value.alias(column) for column, value in exposed.items())).filter(condition)
    return inner.select(*(functions.col(f"`{kept[i]}`").alias(column) for i, column in enumerate(frame.columns)))


def _kinds(frame: Any, columns: Sequence[str], empty: Sequence[str]) -> dict[str, str]:
    from pyspark.sql import functions

    if not columns:
        return {}
    asked = []
    for i, column in enumerate(columns):
        text = _entry(column, empty)
        asked += [
            functions.bool_and(text.rlike(NUMBER) & ~text.rlike(CODE)).alias(f"number{i}"),
            functions.bool_and(text.rlike(WHOLE)).alias(f"whole{i}"),
        ]
    found = frame.agg(*asked).first().asDict()
    kinds = {}
    for i, column in enumerate(columns):
        kinds[column] = "text" if not found[f"number{i}"] else "whole" if found[f"whole{i}"] else "number"
    return kinds


def in_spark_words(where: str) -> str:
    """An SQL condition as Spark writes it. It may compare and compute, but neither look elsewhere nor call what only
    one of the two knows: the same filter must mean the same everywhere.
    """
    import sqlglot
    from sqlglot import exp

    try:
        parsed = sqlglot.parse_one(where, read="duckdb")
    except sqlglot.errors.SqlglotError as error:
        raise InvalidOption(
            f"The filter {where!r} cannot be used: it is no condition.",
            hint="write it as in SQL: region = 'NO' AND turnover > 0",
        ) from error
    strange = next(parsed.find_all(exp.Query, exp.Table, exp.Anonymous, exp.Window, exp.DDL, exp.Command), None)
    if strange is not None:
        raise InvalidOption(
            f"The filter {where!r} cannot be used on Spark: {strange.sql(dialect='duckdb')!r} is not the same there.",
            hint="write it with comparisons, AND, OR, NOT, IN, LIKE, BETWEEN and arithmetic.",
        )
    return parsed.sql(dialect="spark")
