"""What a job needs of its source: which columns, and how many of the largest contributors."""

from __future__ import annotations

import csv
import dataclasses
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

import numpy as np
import polars as pl

from tablesafe.core.errors import InvalidFile
from tablesafe.core.hierarchy import parse_equations
from tablesafe.core.linking import RESPONSE
from tablesafe.core.sensitivity import Rule
from tablesafe.files.read import decode, did_you_mean, guess_delimiter
from tablesafe.job.decode import Fault
from tablesafe.job.load import list_faults
from tablesafe.job.model import Job
from tablesafe.job.toml import KeyPath
from tablesafe.loss.statistics import WORDS
from tablesafe.rules.needs import inner_rules

HEAD = 1 << 16
"""Bytes of a file that show how it is written."""
PARQUET = (".parquet", ".pq")
COLUMN_KEYS = (
    "respondent", "holding", "weight", "frequency", "request", "count", "holdings", "contributions", "contributors",
    "status", "structural_zero",
)  # fmt: skip
"""Keys of [source] that name columns."""
COSTS = ("value", "count", "unit", "log")
"""What a cost may be besides a column."""
COST_WORDS = ("problem", "constant", "inverse", "log_over_value", "distance")
"""What the cost option of a method may be as well."""


def extra_columns(job: Job) -> list[str]:
    """Columns that a rule or an option of the problem names; the request and record keys are read in another way."""
    options = job.problem
    named = [options.lower, options.upper, options.frozen, options.suppressed, options.withheld, options.waived]
    own = job.source.holds == "records" and getattr(job.method, "own_columns", False)
    asked = () if own else _column_options(job.method)
    costs = [cost for cost in (options.cost, *asked) if cost not in (*COSTS, *COST_WORDS)]
    columns = [*(name for name in named if isinstance(name, str)), *costs, *_of_rules(job.rules), *_groupings(job)]
    return [name for name in dict.fromkeys(columns) if name != job.source.request]


def _of_rules(rules: tuple[Rule, ...]) -> Iterator[str]:
    for rule in rules:
        yield from _column_options(rule)
        yield from _of_rules(inner_rules(rule))


def _groupings(job: Job) -> Iterator[str]:
    """Columns by which a method groups cells, to keep or to compare their statistics."""
    known = {*WORDS, RESPONSE, *job.dimensions}
    for part in ("keep", "tabu", "relaxed"):
        over = getattr(getattr(job.method, part, None), "over", None)
        if isinstance(over, str) and over not in known:
            yield over


def _column_options(value: Any) -> Iterator[str]:
    """Options of a rule or method that may be an array or, as text, the name of a column."""
    hints = get_type_hints(type(value))
    for spec in dataclasses.fields(value) if dataclasses.is_dataclass(value) else ():
        text = getattr(value, spec.name)
        if (
            isinstance(text, str)
            and not spec.metadata.get("file")
            and any(get_origin(kind) is np.ndarray for kind in get_args(hints[spec.name]))
        ):
            yield text


def require_columns(job: Job) -> None:
    """Check that the source has every column that the job names; all that are missing are named at once."""
    faults = missing_columns(job)
    if faults:
        raise list_faults(job.name, faults, job.lines)


def missing_columns(job: Job, header: Sequence[str] | None = None) -> list[Fault]:
    """Every column that the job names and its source does not have, by the key that names it.

    Without a `header` only the first line of a text file is read here. A file that does not even have two columns is
    left to its reader, which knows more about what is wrong with it.
    """
    if header is None:
        header = _header(job.resolve(job.source.file), job.source.delimiter)
    if job.source.metadata is not None or job.source.crosstab is not None:  # then no line names the columns
        header = []
    if job.source.holds == "problem" or any(table.file for table in job.tables) or len(header) < 2:
        return []
    return [
        Fault(path, f"{Path(job.source.file).name} has no column {column!r}: {_nearest(column, header)}")
        for path, column in _named_columns(job)
        if column not in header
    ]


def _named_columns(job: Job) -> Iterator[tuple[KeyPath, str]]:
    """Every column that the job names, with the key that does."""
    for name, dimension in job.dimensions.items():
        yield ("dimensions", name, "column"), dimension.column or name
    for key in COLUMN_KEYS:
        named = getattr(job.source, key)
        for column in (named,) if isinstance(named, str) else named or ():
            yield ("source", key), column
    equations = parse_equations(job.response.equations, "[response]") if job.response.equations else []
    computed = {equation.total for equation in equations}
    for i, column in enumerate(job.response.value):
        if column not in computed:
            yield ("response", "value", i), column
    if job.response.shadow is not None:
        yield ("response", "shadow"), job.response.shadow
    of_rules = set(_of_rules(job.rules))
    for column in extra_columns(job):
        yield ("rules",) if column in of_rules else ("problem",), column


def _header(path: Path, delimiter: str | None) -> list[str]:
    """The names of the columns of a Parquet or text file; nothing where only its reader can tell."""
    suffix = path.suffix.lower()
    try:
        if suffix in PARQUET:
            return list(pl.read_parquet_schema(path))
        if suffix not in {".csv", ".txt", ".tsv"}:
            return []
        with path.open("rb") as file:
            data = file.read(HEAD)
        text = decode(data.rpartition(b"\n")[0] or data, path.name)
        return [
            name.strip()
            for name in next(csv.reader([text.splitlines()[0]], delimiter=delimiter or guess_delimiter(text)))
        ]
    except (OSError, InvalidFile, pl.exceptions.PolarsError, UnicodeDecodeError, IndexError, csv.Error, ValueError):
        return []


def _nearest(column: str, header: Sequence[str]) -> str:
    shown = ", ".join(map(repr, header[:12])) + (" …" if len(header) > 12 else "")
    return str(did_you_mean(column, list(header))) or f"it has {shown}."
