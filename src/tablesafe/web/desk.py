"""Tasks on data that is being looked at. They run in the worker process of a session, never in the server."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tablesafe.web.child import Desk
from tablesafe.web.drafts import JOB_FILE

if TYPE_CHECKING:
    from tablesafe.core.problem import Problem
    from tablesafe.core.table import Table
    from tablesafe.job import Job
    from tablesafe.pipeline import Result

KEPT_RESULTS = 4
"""Finished runs that a worker keeps in memory to show and compare."""
EXAMPLES = 8


def columns(desk: Desk, name: str, options: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Every column of a file: name, kind, how many rows, distinct and empty entries, a few examples."""
    from tablesafe.web.survey import survey

    return survey(desk.folder / name, delimiter=options.get("delimiter"), sheet=options.get("sheet"))


def suggest(desk: Desk, name: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """A first draft of a job for a file, from a look at its columns, as `tablesafe init` makes one."""
    from tablesafe.io.frames import read_frame
    from tablesafe.job.draft import draft_text
    from tablesafe.job.model import Source

    path = desk.folder / name
    if Source(file=name).holds == "problem":
        return {"source": {"file": name}}
    source = read_frame(path, sheet=options.get("sheet"), delimiter=options.get("delimiter"))
    text, _ = draft_text(path.absolute(), source, desk.folder.absolute())
    draft = {key: value for key, value in tomllib.loads(text).items() if value != {}}  # parts of which nothing is set
    for key in ("sheet", "delimiter"):
        if options.get(key):
            draft["source"][key] = options[key]
    return draft


def table(desk: Desk, job: str) -> dict[str, Any]:
    """The table of a job in numbers; it is kept for what is asked next."""
    return facts_of(problem_of(desk, job))


def sensitivity(desk: Desk, job: str) -> dict[str, Any]:
    """How many cells the rules of a job call sensitive, in all and by level; the table is not read again."""
    return facts_of(problem_of(desk, job))


def facts_of(problem: Problem) -> dict[str, Any]:
    """A problem in numbers."""
    found = problem.table
    return {
        "cells": len(found),
        "equations": int(found.equations.shape[0]),
        "dimensions": {name: len(tree.codes) for name, tree in found.dimensions.items()},
        "sensitive": len(problem.sensitive),
        "frozen": int(problem.frozen.sum()),
        "suppressed": int(problem.suppressed.sum()),
        "rules": [str(rule) for rule in problem.rules],
    }


def job_of(desk: Desk, text: str) -> Job:
    """The job that a text describes, in the folder of the workspace."""
    from tablesafe.job import parse_job

    return parse_job(text, desk.folder / JOB_FILE)


def problem_of(desk: Desk, text: str) -> Problem:
    """The problem of a job. Its table is kept as long as the files and keys it comes from stay the same."""
    from tablesafe.web.previews import preview

    return preview(desk, job_of(desk, text))


def kept_at(run: Path) -> Path:
    """Where the result of a run is kept: beside its folder, in which files lie under names that others chose."""
    return run.with_name(f"{run.name}.frozen")


def result_of(desk: Desk, run: str) -> Result:
    """The result of a finished run, by the name of its folder; a few are kept."""
    kept: dict[str, Result] = desk.loaded.setdefault("results", {})
    if run not in kept:
        from tablesafe.files.serialization import thaw

        found: Result = thaw(kept_at(desk.folder / "runs" / Path(run).name).read_bytes())
        kept[run] = found
        while len(kept) > KEPT_RESULTS:
            kept.pop(next(iter(kept)))
    return kept[run]


def table_of(desk: Desk, text: str) -> Table:
    """The table of a job."""
    return problem_of(desk, text).table
