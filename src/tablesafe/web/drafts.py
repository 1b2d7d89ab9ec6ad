"""A job that is still being made: plain data, as a TOML file holds it; what is wrong with it, key by key."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from tablesafe.core.errors import InvalidJob
from tablesafe.core.language import text
from tablesafe.job import Job, parse_job
from tablesafe.job.checks import INTERNAL, input_files
from tablesafe.job.decode import Fault, default_of, options
from tablesafe.job.load import examine, list_faults
from tablesafe.job.model import RunOptions
from tablesafe.job.toml import KeyPath, key_lines, read_toml, toml_key, toml_value

Draft = dict[str, Any]
JOB_FILE = "job.toml"
RUN_KEYS = {"engine", "memory_limit", "executor", "workers"}
"""What a job in the app may say about where it runs; other keys name folders and machines."""
LISTENING = {"spark", "dask"}
"""Engines and executors that open ports of their own."""
ELSEWHERE = "{name!r} is for the command line: the app runs jobs on this machine, in its folder."

PARTS = ("source", "response", "problem", "method", "audit", "attack", "output", "run")
FOREIGN = "{name!r} is no file of this workspace: upload it, or choose it in the folder."
BELOW = "{name!r} must be a path below the folder of the job."
DEEPEST = 30
"""Tables in tables of a job; no key is so deep."""
MOST_WORKERS = 2 * (os.cpu_count() or 1)
"""Processes that a job in the app may ask for."""


def draft_of(text: str) -> Draft:
    """The draft that a job file describes; a text that is none gets the message of the command line."""
    try:
        draft = read_toml(text)
    except (RecursionError, ValueError):
        parse_job(text)
        raise
    level: list[Any] = [draft]
    for _ in range(DEEPEST):
        tables = [item.values() if isinstance(item, dict) else item for item in level if isinstance(item, (dict, list))]
        level = [inner for table in tables for inner in table]
    if level:
        raise InvalidJob("The job has tables in tables without end.", hint="is it a job file?")
    if isinstance(draft.get("method"), str):
        draft["method"] = {"name": draft["method"]}
    if isinstance(draft.get("rules"), list):
        draft["rules"] = [{"rule": rule} if isinstance(rule, str) else rule for rule in draft["rules"]]
    if not _has_shape(draft):
        lines = key_lines(text)
        faults = [fault for fault in examine(draft, None, lines)[1] if _is_part(fault.path)]
        raise list_faults("The job", faults, lines)
    return draft


def _is_part(path: KeyPath) -> bool:
    """Whether a path leads to a part of a job, and not to a key in there."""
    return len(path) <= (2 if path[:1] in [("dimensions",), ("rules",), ("tables",)] else 1)


def _at(draft: Draft, path: KeyPath) -> Any:
    """What stands at a path of a draft, if anything."""
    value: Any = draft
    for key in path:
        try:
            value = value[key]
        except (KeyError, IndexError, TypeError):
            return None
    return value


def _has_shape(draft: Draft) -> bool:
    """Whether the parts of a job are tables, and lists of tables, as far as pages must rely on it."""
    tables = [value for key, value in draft.items() if key in {*PARTS, "dimensions"}]
    dimensions = draft.get("dimensions", {})
    inside = dimensions.values() if isinstance(dimensions, dict) else [None]
    lists = [draft[key] for key in ("rules", "tables") if key in draft]
    listed = (item for each in lists for item in (each if isinstance(each, list) else [None]))
    return all(isinstance(each, dict) for each in (*tables, *inside, *listed))


def toml_of(draft: Mapping[str, Any]) -> str:
    """Plain data as TOML text. What is None is left out: TOML has nothing."""
    return "\n".join(_lines(draft, ())).strip("\n") + "\n"


def _lines(table: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[str]:
    nested = {key: value for key, value in table.items() if _is_nested(value, path)}
    for key, value in table.items():
        if key not in nested and value is not None:
            yield f"{toml_key(key)} = {toml_value(_filled(value))}"
    for key, value in nested.items():
        here = (*path, key)
        name = ".".join(map(toml_key, here))
        if isinstance(value, Mapping):
            holds_tables = bool(value) and all(_is_nested(inner, here) for inner in value.values())
            yield from () if holds_tables else ("", f"[{name}]")
            yield from _lines(value, here)
        else:
            for inner in value:
                yield from ("", f"[[{name}]]")
                yield from _lines(inner, here)


def _is_nested(value: Any, path: tuple[str, ...]) -> bool:
    """Whether a value is written as tables of its own; deep inside, on one line."""
    if isinstance(value, Mapping):
        return len(path) < 2
    return not path and isinstance(value, list) and bool(value) and all(isinstance(item, Mapping) for item in value)


def _filled(value: Any) -> Any:
    """The value without what is None."""
    if isinstance(value, Mapping):
        return {key: _filled(inner) for key, inner in value.items() if inner is not None}
    if isinstance(value, (list, tuple)):
        return [_filled(inner) for inner in value if inner is not None]
    return value


def look_over(draft: Mapping[str, Any], folder: Path, files: Mapping[str, Path]) -> tuple[Job | None, list[Fault]]:
    """The job of a draft that is to stand in `folder`, and what is wrong with it: the messages of the command line.

    Besides, it may read only the files given, and write only below its own folder.
    """
    job, faults = examine(_filled(draft), folder / JOB_FILE, {})
    faults = [_told(fault, _at(dict(draft), fault.path)) for fault in faults]
    if job is None:
        return None, faults
    known = {fault.path for fault in faults}
    faults += [fault for fault in (*_foreign(job, files), *_outside(job)) if fault.path not in known]
    return job, faults


def _told(fault: Fault, value: Any) -> Fault:
    """The fault, without a word on whether a file elsewhere is there, or what lies beside it."""
    if not isinstance(value, str) or not _leads_out(value):
        return fault
    return Fault(fault.path, text(BELOW, name=value) if fault.path[0] == "output" else text(FOREIGN, name=value))


def _leads_out(name: str) -> bool:
    parts = Path(name).parts
    return Path(name).is_absolute() or ".." in parts or any(part.startswith(".") for part in parts)


def _foreign(job: Job, files: Mapping[str, Path]) -> Iterator[Fault]:
    for path, name in input_files(job):
        if name not in files:
            yield Fault(path, text(FOREIGN, name=name))


def _outside(job: Job) -> Iterator[Fault]:
    output = job.output
    named = [(("output", "release", i), name) for i, name in enumerate(output.release)]
    reports = [(("output", "report"), name) for name in output.reports]
    internal = [] if output.internal is None else [(("output", "internal"), output.internal)]
    places: list[tuple[KeyPath, str]] = [*named, *reports, *internal]
    for path, name in places:
        if _leads_out(name):
            yield Fault(path, text(BELOW, name=name))
    if job.run.workers is not None and job.run.workers > MOST_WORKERS:
        yield Fault(
            ("run", "workers"),
            text(
                "'workers' may be {most} at most in the app, got {workers}.", most=MOST_WORKERS, workers=job.run.workers
            ),
        )
    for key, spec in options(RunOptions).items():
        if key not in RUN_KEYS and getattr(job.run, key) != default_of(spec):
            yield Fault(("run", key), text(ELSEWHERE, name=key))
        elif getattr(job.run, key) in LISTENING:
            yield Fault(("run", key), text(ELSEWHERE, name=getattr(job.run, key)))


def with_outputs(job: Job) -> Job:
    """The job with a release, a report and an internal folder, where it names none."""
    output = job.output
    return replace(
        job,
        output=replace(
            output,
            release=output.release or ("public/release.csv", "public/release.xlsx"),
            report=output.report or "public/report.html",
            internal=output.internal or INTERNAL,
        ),
    )
