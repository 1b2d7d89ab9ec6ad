"""What the commands read: a job file, a problem in a file of its own, or plain data described by options."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from tablesafe.core.errors import InvalidOption

if TYPE_CHECKING:
    from tablesafe.core.problem import Problem
    from tablesafe.job import Job
    from tablesafe.report.progress import Listener


Tolerance = Annotated[float, Parameter(help="by how much the totals of a .tab file may be off; they are recomputed")]

SchemeName = Literal["tauargus", "sbs", "sdmx-conf", "obs-status", "words", "0/1"]
"""The vocabularies of `tablesafe.core.statuses`, which loads too much for a `--help`; a test compares the two."""
SchemeOption = Annotated[
    SchemeName | None, Parameter(help="vocabulary of the statuses in the file; without it they must leave no doubt")
]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Data:
    """What the rows of a data file are, when no job file says it."""

    by: Annotated[tuple[str, ...], Parameter(help="column that spans the table; repeat it for each dimension")] = ()
    value: Annotated[tuple[str, ...], Parameter(help="column to add up; without it, records are counted")] = ()
    hierarchy: Annotated[
        tuple[str, ...], Parameter(help="hierarchy of a dimension, as DIMENSION=FILE; repeat it for each")
    ] = ()
    respondent: Annotated[str | None, Parameter(help="column that says who a record is from")] = None
    holding: Annotated[str | None, Parameter(help="column that says which respondents belong together")] = None
    weight: Annotated[str | None, Parameter(help="column with the sampling weight")] = None
    frequency: Annotated[str | None, Parameter(help="column with the number of respondents a row stands for")] = None
    where: Annotated[str | None, Parameter(help="which records to use, as an SQL condition")] = None
    largest: Annotated[int, Parameter(help="how many of the largest contributors of each cell to keep")] = 3
    delimiter: Annotated[str | None, Parameter(help="what separates the columns of a CSV file")] = None


def job_of(path: Path, data: Data, rules: tuple[str, ...] = ()) -> Job:
    """The job file itself, or a job made from a data file and options."""
    from tablesafe.job import Job, load_job, parse_rule
    from tablesafe.job.model import Dimension, Response, Source

    if path.suffix.lower() == ".toml":
        if data != Data() or rules:
            raise InvalidOption("A job file says all that is needed.", hint="leave out the other options, or edit it.")
        return load_job(path)
    trees = dict(_assignment(text) for text in data.hierarchy)
    dimensions = data.by or tuple(trees)
    if not dimensions:
        raise InvalidOption(f"Which columns of {path.name} span the table?", hint="--by region --by size")
    for name in trees:
        if name not in dimensions:
            raise InvalidOption(f"--hierarchy names {name!r}, which --by does not.", hint=f"--by {name}")
    return Job(
        source=Source(
            file=str(path.absolute()), kind="records", delimiter=data.delimiter, where=data.where,
            respondent=data.respondent, holding=data.holding, weight=data.weight, frequency=data.frequency,
            largest=data.largest,
        ),
        dimensions={
            name: Dimension(hierarchy=str(Path(trees[name]).absolute()) if name in trees else None)
            for name in dimensions
        },
        response=Response(value=data.value),
        rules=tuple(parse_rule(text) for text in rules),
    )  # fmt: skip


def _assignment(text: str) -> tuple[str, str]:
    name, equals, file = text.partition("=")
    if not (name and equals and file):
        raise InvalidOption(f"Cannot read --hierarchy {text!r}.", hint="--hierarchy region=regions.hrc")
    return name, file


def problem_job(path: Path, tolerance: float = 0.0) -> Job:
    """A job file, or a job that reads a problem from a JJ or .tab file."""
    from tablesafe.job import Job, load_job
    from tablesafe.job.model import Source

    if path.suffix.lower() == ".toml":
        if tolerance:
            raise InvalidOption("A job file has its own tolerance.", hint="tolerance = … in [source].")
        return load_job(path)
    source = Source(file=str(path.absolute()), tolerance=tolerance)
    if source.holds != "problem":
        raise InvalidOption(
            f"{path.name} is neither a job file (.toml) nor a table with statuses (.jj, .tab).",
            hint=f"'tablesafe init {path.name}' writes a job file for it.",
        )
    return Job(source=source)


def read_problem(path: Path, listen: Listener, tolerance: float = 0.0) -> Problem:
    """The problem of a job file, or one in a JJ or .tab file."""
    from tablesafe.pipeline import build_problem

    return build_problem(problem_job(path, tolerance), listen)
