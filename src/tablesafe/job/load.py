"""A job file, read and checked as a whole: every error at once, each with its line."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tablesafe.core.errors import InvalidJob, InvalidOption
from tablesafe.core.sensitivity import Rule
from tablesafe.files.read import did_you_mean, read_text
from tablesafe.job.checks import check
from tablesafe.job.decode import MISSING, Decoding, Fault
from tablesafe.job.model import CHOICES, Job
from tablesafe.job.toml import KeyPath, key_lines, read_toml


def load_job(path: str | Path) -> Job:
    """Read and check a job file; paths in it are relative to its folder."""
    path = Path(path)
    if not path.exists():
        beside = [entry.name for entry in path.parent.glob("*.toml")] if path.parent.is_dir() else []
        hint = did_you_mean(path.name, beside) or "'tablesafe init data.csv' writes one."
        raise InvalidJob(f"There is no job file {str(path)!r}.", hint=hint)
    return parse_job(read_text(path), path)


def parse_job(text: str, path: Path | None = None) -> Job:
    """Check the text of a job file; the error lists everything that is wrong with it."""
    name = "The job" if path is None else path.name
    try:
        data = read_toml(text)
    except tomllib.TOMLDecodeError as error:
        raise _syntax(name, text, error) from None
    except (RecursionError, ValueError):
        raise InvalidJob(
            f"{name} is no valid TOML: brackets are nested without end, or a number is too long.",
            hint="is a bracket left open?",
        ) from None
    lines = key_lines(text)
    job, faults = examine(data, path, lines)
    if faults or job is None:
        raise list_faults(name, faults, lines, last_line=len(text.splitlines()))
    return job


def examine(data: Mapping[str, Any], path: Path | None, lines: Mapping[KeyPath, int]) -> tuple[Job | None, list[Fault]]:
    """The job that plain data describes, as far as it can be read, and everything that is wrong with it, by key."""
    decoding = Decoding(CHOICES, Path() if path is None else path.parent)
    found = decoding.fields(Job, data, ())
    job = _as_far_as_known(found, path, lines)
    if job is not None:
        decoding.faults += [fault for fault in check(job) if found.get(str(fault.path[0])) is not MISSING]
    return job, [*decoding.faults, *decoding.absent]


def _as_far_as_known(found: Mapping[str, Any], path: Path | None, lines: Mapping[KeyPath, int]) -> Job | None:
    """The job with defaults for what could not be read, so that the rest can be checked as well."""
    known = {name: value for name, value in found.items() if value is not MISSING}
    return Job(**known, path=path, lines=lines) if "source" in known else None


def list_faults(
    name: str, faults: list[Fault], lines: Mapping[KeyPath, int], last_line: int | None = None
) -> InvalidJob:
    """All errors of a job, in the order of their lines."""
    placed = sorted(
        {(line_of(fault.path, lines) or last_line or 0, " ".join(str(fault.message).split())) for fault in faults}
    )
    head = f"{name} has an error" if len(placed) == 1 else f"{name} has {len(placed)} errors"
    listed = "\n".join(f"  line {line}: {text}" if line else f"  {text}" for line, text in placed)
    return InvalidJob(f"{head}:\n{listed}", about=faults[0].path if faults else ())


def line_of(path: KeyPath, lines: Mapping[KeyPath, int]) -> int | None:
    """The line of a key, or of the nearest table around it that stands in the file."""
    while path:
        if path in lines:
            return lines[path]
        path = path[:-1]
    return None


def _syntax(name: str, text: str, error: tomllib.TOMLDecodeError) -> InvalidJob:
    """A syntax error in the reader's words: the line itself, and what usually causes it."""
    found = re.search(r"^(.*) \(at line (\d+), column (\d+)\)$", str(error))
    if found is None:
        return InvalidJob(f"{name} is no valid TOML: {error}.", hint="is a quote or a bracket left open?")
    what, line = found[1], int(found[2])
    shown = text.splitlines()[line - 1].strip()[:200] if line <= len(text.splitlines()) else ""
    hint = "text needs quotes, a list needs brackets, and Windows paths need / or '…'."
    if not name.endswith(".toml"):
        hint = f"a job file ends in .toml; 'tablesafe init {name}' writes one for a data file."
    return InvalidJob(f"{name} is no valid TOML:\n  line {line}: {what}: {shown}", hint=hint)


def parse_rule(text: str) -> Rule:
    """A rule written on one line, as on the command line: `p_percent p=10 coalition=2`."""
    name, *settings = text.split()
    try:
        table = read_toml("\n".join(settings))
    except (RecursionError, ValueError):
        raise InvalidOption(
            f"Cannot read the options of the rule {text!r}.",
            hint='write them as "p_percent p=10", words in quotes: "threshold on=\'holdings\'".',
        ) from None
    decoding = Decoding(CHOICES)
    rule = decoding.decode(Rule, {"rule": name, **table}, ("rule",))
    if decoding.faults:
        raise InvalidOption(f"Rule {text!r}: " + " ".join(str(fault.message) for fault in decoding.faults))
    found: Rule = rule
    return found
