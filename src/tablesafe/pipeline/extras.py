"""Which optional packages a job will need, checked before the work and not hours into it."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec

from tablesafe.core.errors import MissingExtra
from tablesafe.io.formats import format_of
from tablesafe.io.frames import EXCEL_ENDINGS
from tablesafe.job.checks import input_files
from tablesafe.job.model import Job


def require_extras(job: Job) -> None:
    """Refuse a job that would need a package that is not installed."""
    for what, extra, package in _needed(job):
        if find_spec(package) is None:
            raise MissingExtra(what, extra)


def _needed(job: Job) -> Iterator[tuple[str, str, str]]:
    """What the job does, the extra that it needs for it, and the package that must be there."""
    if any(name.lower().endswith(EXCEL_ENDINGS) for _, name in input_files(job)):
        yield "Reading Excel files", "excel", "fastexcel"
    if any(name.lower().endswith(".xlsx") for name in (*job.output.release, *job.output.reports)):
        yield "Writing Excel files", "excel", "xlsxwriter"
    for own in (*(name for _, name in input_files(job)), *job.output.release):
        if (found := format_of(own)) is not None and found.extra is not None and found.package is not None:
            yield f"The format {found.name}", found.extra, found.package
    if job.output.plots:
        yield "Plots", "plots", "matplotlib"
    if job.run.engine == "spark":
        yield "Tabulating on Spark", "spark", "pyspark"
    if job.run.engine in {"ibis", "spark"}:
        yield "Tabulating an Ibis table", "ibis", "ibis"
    if job.run.executor == "dask":
        yield "Spreading the work with Dask", "dask", "distributed"
