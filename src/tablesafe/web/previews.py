"""The problem of a job that is being edited: its table is read once, the rules are judged each time."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tablesafe.core.problem import Problem
from tablesafe.job import Job
from tablesafe.job.checks import input_files
from tablesafe.pipeline import build_problem
from tablesafe.pipeline.columns import extra_columns
from tablesafe.pipeline.tables import build_table
from tablesafe.rules.needs import contributors_needed
from tablesafe.web.child import Desk


def preview(desk: Desk, job: Job) -> Problem:
    """The problem of a job; the last one, and the last table, are kept."""
    job = replace(job, run=replace(job.run, executor="here"))
    if desk.loaded.get("problem key") != (key := _key(job, job.rules, job.problem)):
        table = None if job.source.holds == "problem" else _table(desk, job)
        desk.loaded["problem"] = build_problem(job, table=table)
        desk.loaded["problem key"] = key
    found: Problem = desk.loaded["problem"]
    return found


def _table(desk: Desk, job: Job) -> Any:
    key = _key(job, contributors_needed(job.rules), extra_columns(job))
    if desk.loaded.get("table key") != key:
        desk.loaded.pop("problem key", None)
        desk.loaded["table"] = build_table(job)
        desk.loaded["table key"] = key
    return desk.loaded["table"]


def _key(job: Job, *more: Any) -> str:
    """What a table depends on: the parts of the job that say where it comes from, and the files themselves."""
    stamps = []
    for _, name in input_files(job):
        about = job.resolve(name).stat()
        stamps.append((name, about.st_mtime_ns, about.st_size, about.st_ino))
    return repr((job.source, job.dimensions, job.response, job.tables, job.run, stamps, more))
