"""A job or a problem as a folder of files for τ-ARGUS: `.arb`, `.rda`, `.hrc`, JJ, and the data.

A job on records goes out as records (`.asc`) with its rules, so that τ-ARGUS finds the same sensitive cells by itself;
where it cannot, and for every other source, the finished table goes out (`.tab`), with the status and the levels of
each cell. Whatever τ-ARGUS cannot express is in the notes, and in comments at the top of the `.arb` file.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from tablesafe.core.errors import InvalidOption
from tablesafe.core.problem import Problem
from tablesafe.io.tauargus_export import Commands, problem_files
from tablesafe.io.tauargus_write_tab import Texts
from tablesafe.job import Job, load_job
from tablesafe.methods import Suppress
from tablesafe.pipeline.export_commands import commands_of
from tablesafe.pipeline.export_records import records_texts, why_not_records
from tablesafe.pipeline.outputs import together
from tablesafe.pipeline.problems import build_problem
from tablesafe.report.progress import Listener, ignore

Form = Literal["auto", "records", "cells"]


@dataclass(frozen=True, slots=True)
class Exported:
    """The files that were written, the batch file first if there is one, and what they leave out."""

    files: tuple[Path, ...]
    notes: tuple[str, ...]


def export_tauargus(
    source: Problem | Job | str | Path,
    folder: str | Path,
    *,
    name: str | None = None,
    form: Form = "auto",
    on_event: Listener = ignore,
) -> Exported:
    """Write a problem, a job or a job file as files that τ-ARGUS opens, with the batch file that runs them.

    `form` says what goes out: records with rules, or the cells of the finished table; auto takes records where τ-ARGUS
    can do with them what the job does. All files are confidential, and readable by their owner only.
    """
    if form not in {"auto", "records", "cells"}:
        raise InvalidOption(f"form is auto, records or cells, got {form!r}.")
    if isinstance(source, (str, Path)):
        source = load_job(source)
    stem = _plain_name(name or _own_name(source))
    texts = _of_problem(source, stem, form) if isinstance(source, Problem) else _of_job(source, stem, form, on_event)
    encoding = _encoding(texts)
    with together() as outputs:
        for file, text in texts.texts.items():
            outputs.place(Path(folder) / file, private=True).write_bytes(text.encode(encoding))
        files = tuple(outputs.written)
    return Exported(files, (*texts.notes, *([BEYOND] if encoding == "utf-8" else [])))


def _own_name(source: Problem | Job) -> str:
    if isinstance(source, Problem):
        return "table"
    return source.path.stem if source.path is not None else Path(source.source.file).stem


def _plain_name(name: str) -> str:
    return re.sub(r"[^0-9A-Za-z_-]+", "_", name).strip("_") or "table"


def _encoding(texts: Texts) -> str:
    """One byte per character where that is possible for all files: τ-ARGUS counts bytes, and knows Windows-1252."""
    try:
        for text in texts.texts.values():
            text.encode("cp1252")
    except UnicodeEncodeError:
        return "utf-8"
    return "cp1252"


BEYOND = "Some codes have characters that τ-ARGUS does not know (beyond Windows-1252); the files are in UTF-8."


def _of_problem(problem: Problem, name: str, form: Form) -> Texts:
    if form == "records":
        raise InvalidOption("A problem has no rules that τ-ARGUS could apply to records.\n\nHint: export its job.")
    return problem_files(problem, name, Commands())


def _of_job(job: Job, name: str, form: Form, listen: Listener) -> Texts:
    problem = build_problem(job, listen)
    commands = commands_of(job, linked=len(job.tables) > 1)
    if job.source.holds != "records":
        if form == "records":
            raise InvalidOption(f"{job.source.file} holds no records.\n\nHint: form='cells' exports the table.")
        return _cells(job, problem, name, commands)
    why = why_not_records(job, problem)
    if form == "records" and why:
        raise InvalidOption(
            f"τ-ARGUS cannot make this table of the records: {'; '.join(why)}.\n\nHint: form='cells' exports the table."
        )
    if form == "cells":
        return _cells(job, problem, name, commands)
    if why:
        finished = f"The finished table is exported, not the records: {'; '.join(why)}."
        return _cells(job, problem, name, replace(commands, comments=(finished, *commands.comments)))
    return records_texts(job, problem, name, commands)


def _cells(job: Job, problem: Problem, name: str, commands: Commands) -> Texts:
    if isinstance(job.method, Suppress) and (job.method.cost != "problem" or job.method.power != 1):
        own = "The costs in the file are those of the problem; the method's own cost and power are not there."
        commands = replace(commands, comments=(*commands.comments, own))
    return problem_files(problem, name, commands)
