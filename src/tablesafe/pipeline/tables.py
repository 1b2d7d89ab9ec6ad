"""From a job's source to its table: records are tabulated, cells are read, and tables are linked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from tablesafe.core.cube import tied
from tablesafe.core.errors import InvalidTable
from tablesafe.core.hierarchy import TOTAL, Equation, Hierarchy, parse_equations
from tablesafe.core.linking import link
from tablesafe.core.table import Table
from tablesafe.core.totals import Shown, flat_dimension
from tablesafe.files.limits import refused_as
from tablesafe.files.read import TRUE_VALUES, Source, require_parquet
from tablesafe.io.formats import read_dataset
from tablesafe.io.frames import read_frame
from tablesafe.io.layout import EXCEL_ENDINGS
from tablesafe.job.model import Job
from tablesafe.pipeline.columns import extra_columns, require_columns
from tablesafe.pipeline.hierarchies import build_hierarchy, is_structured, recoded, with_labels
from tablesafe.report.progress import Event, Listener, ignore
from tablesafe.rules.needs import contributors_needed

if TYPE_CHECKING:
    from tablesafe.tauargus.microdata import Microdata

ROOM = 1
"""Contributors kept beyond those that the rules look at: an insider is one of them."""
MARKS_SHOWN = 4
"""Cells with marks instead of numbers that an error names."""


def build_table(job: Job, listen: Listener = ignore) -> Table:
    """The table of a job whose source holds records or cells."""
    require_columns(job)
    table = _from_records(job, listen) if job.source.holds == "records" else _from_cells(job)
    return replace(table, dimensions=with_labels(job, table.dimensions))


# -- records -------------------------------------------------------------------------------------------------------


def _from_records(job: Job, listen: Listener) -> Table:
    from tablesafe.tabulate import Columns, Records, tabulate

    path, source = job.resolve(job.source.file), job.source
    described: Microdata | None = None
    records: Any = path
    if path.suffix.lower() == ".asc" or source.metadata is not None:
        from tablesafe.tauargus.microdata import read_microdata

        described = read_microdata(path, None if source.metadata is None else job.resolve(source.metadata))
        records = described.frame
    elif path.suffix.lower() in EXCEL_ENDINGS:
        records = read_frame(path, sheet=source.sheet).frame

    def progress(message: str, done: int, total: int | None) -> None:
        listen(Event("tabulate", message, done, total))

    return tabulate(
        Records(
            records,
            where=source.where,
            empty=source.empty,
            delimiter=source.delimiter,
            engine="auto" if job.run.engine == "spark" and records is not path else job.run.engine,
            spark=job.run.spark,
            memory_limit=job.run.memory_limit,
            temporary=None if job.run.temporary is None else job.resolve(job.run.temporary),
        ),
        columns=Columns(
            value=[described.response(name) if described else name for name in job.response.value] or None,
            equations=list(job.response.equations) or None,
            respondent=source.respondent,
            holding=source.holding,
            weight=source.weight,
            frequency=source.frequency,
            request=source.request,
            shadow=job.response.shadow,
            further=extra_columns(job),
            negative=job.response.negative,
        ),
        dimensions={name: _tree(job, name, described) for name in job.dimensions},
        column_of={name: dimension.column or name for name, dimension in job.dimensions.items()},
        largest=max(source.largest, contributors_needed(job.rules) + ROOM),
        margins=[table.dimensions for table in job.tables] or None,
        missing={name: dimension.missing for name, dimension in job.dimensions.items()},
        zeros=source.zeros,
        total={name: dimension.total for name, dimension in job.dimensions.items()},
        cube=job.problem.cube,
        progress=progress,
    )


def _tree(job: Job, name: str, described: Microdata | None) -> Hierarchy | None:
    """The hierarchy of a dimension; None where the records themselves say what its codes are."""
    dimension = job.dimensions[name]
    column, tree = dimension.column or name, None
    if is_structured(dimension):
        tree = build_hierarchy(job, name, lambda: _codes_of_records(job, column))
    elif described is not None:
        tree = described.dimensions.get(column)
    if dimension.recode is None and dimension.level is None:
        return tree
    return recoded(job, name, tree or _flat(job, name, column))


def _flat(job: Job, name: str, column: str) -> Hierarchy:
    """All codes of the records below one total."""
    given = job.dimensions[name]
    unknown = [] if given.missing in {"error", "drop"} else [given.missing]
    gone = {given.total, "", *job.source.empty}
    codes = dict.fromkeys([*(code for code in _codes_of_records(job, column) if code not in gone), *unknown])
    return Hierarchy.flat(list(codes), total=given.total, name=f"dimension {name!r}")


def _codes_of_records(job: Job, column: str) -> list[str]:
    """The distinct codes of a column of the source."""
    path = job.resolve(job.source.file)
    if path.suffix.lower() in {".parquet", ".pq"}:
        require_parquet(path)
        with refused_as("{name} is damaged: {why}", "copy it again.", name=path.name):
            source = Source(pl.scan_parquet(path).select(column).unique(maintain_order=True).collect(), path.name)
    else:
        source = _read(job, path)
    return _codes_of(source, column)


# -- cells ---------------------------------------------------------------------------------------------------------


def _from_cells(job: Job) -> Table:
    equations = parse_equations(list(job.response.equations), "[response]") if job.response.equations else []
    wanted = [(table.file, table.dimensions) for table in job.tables] or [(None, tuple(job.dimensions))]
    sources = [(cell_source(job, file, names, equations), names) for file, names in wanted]
    values = list(dict.fromkeys([*(equation.total for equation in equations), *job.response.value]))
    trees = {
        name: _tree_of_cells(
            job,
            name,
            [
                Shown(source, tuple(other for other in names if other != name), tuple(values))
                for source, names in sources
                if name in names
            ],
        )
        for name in job.dimensions
    }
    parts = [_one_table(job, source, names, trees, value) for source, names in sources for value in values]
    if len(parts) == 1:
        return tied(parts[0], cube=job.problem.cube)
    return link(parts, equations=list(job.response.equations) or None, cube=job.problem.cube)


def cell_source(job: Job, file: str | None, names: Sequence[str], equations: Sequence[Equation] = ()) -> Source:
    """The rows of a table of cells, with columns named as the dimensions and totals of responses computed."""
    source = _read(job, job.resolve(file or job.source.file))
    for equation in equations:
        if equation.total not in source.frame.columns:
            signed = zip(equation.parts, equation.signs, strict=True)
            total = np.sum([sign * source.numbers(part, missing=0.0) for part, sign in signed], axis=0)
            source = replace(source, frame=source.frame.with_columns(pl.Series(equation.total, total)))
    renames = {job.dimensions[name].column or name: name for name in names}
    source.require(*renames)
    clash = [name for column, name in renames.items() if name != column and name in source.frame.columns]
    if clash:
        raise InvalidTable(
            f"{source.name} has a column {clash[0]!r} already, so no other column can be dimension {clash[0]!r}.",
            hint="give the dimension another name.",
        )
    return replace(source, frame=source.frame.rename(renames))


def _tree_of_cells(job: Job, name: str, shown: Sequence[Shown]) -> Hierarchy:
    """The hierarchy of a dimension; without one, all codes of all tables add up to the total."""
    if is_structured(job.dimensions[name]):
        found = dict.fromkeys(code for table in shown for code in _codes_of(table.source, name))
        return build_hierarchy(job, name, lambda: list(found))
    told, total = _told_by_file(job, name)
    return told or flat_dimension(name, shown, total=total, missing=job.source.missing_totals)


def _told_by_file(job: Job, name: str) -> tuple[Hierarchy | None, str]:
    """The hierarchy of a dimension, and its total, where the format of the source tells them (SDMX, PX, JSON-stat)."""
    given, path = job.dimensions[name], job.resolve(job.source.file)
    dataset = None if job.tables else read_dataset(path)
    column = given.column or name
    if dataset is None or column not in dataset.dimensions:
        return None, given.total
    total = dataset.totals.get(column, given.total) if given.total == TOTAL else given.total
    return dataset.dimensions[column], total


def _read(job: Job, path: Path) -> Source:
    given = job.source
    return read_frame(path, sheet=given.sheet, delimiter=given.delimiter, layout=given.crosstab)


def _codes_of(source: Source, column: str) -> list[str]:
    return [str(code) for code in source.text(column).drop_nulls().unique(maintain_order=True).to_list()]


def _one_table(job: Job, source: Source, names: Sequence[str], trees: Mapping[str, Hierarchy], value: str) -> Table:
    with _knowing_of_marks(source):
        return _of_cells(job, source, names, trees, value)


@contextmanager
def _knowing_of_marks(source: Source) -> Iterator[None]:
    """Where sums are wrong or lack a cell because numbers are marks, say that, and not how to do without."""
    try:
        yield
    except InvalidTable as error:
        if not source.without or error.about[:1] == ("column",):
            raise
        shown, more = ", ".join(source.without[:MARKS_SHOWN]), len(source.without) - MARKS_SHOWN
        others = f" and {more:,} more" if more > 0 else ""
        raise InvalidTable(
            f"{source.name} holds marks instead of numbers, in {shown}{others}, so its sums cannot be checked.",
            hint=TRUE_VALUES,
            about=("source", "file"),
        ) from error


def _of_cells(job: Job, source: Source, names: Sequence[str], trees: Mapping[str, Hierarchy], value: str) -> Table:
    given = job.source
    return Table.from_cells(
        source,
        dimensions={name: trees[name] for name in names},
        value=value,
        count=given.count,
        holdings=given.holdings,
        largest=list(given.contributions),
        identity=list(given.contributors),
        structural_zero=given.structural_zero,
        columns=extra_columns(job),
        missing_totals=given.missing_totals,
        tolerance=given.tolerance,
        negative=job.response.negative,
    )
