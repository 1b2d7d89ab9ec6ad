"""A job or a problem as a folder of files for τ-ARGUS: `.arb`, `.rda`, `.hrc`, JJ, and the data.

A job on records goes out as records (`.asc`) with its rules, so that τ-ARGUS finds the same sensitive cells by itself;
where it cannot, and for every other source, the finished table goes out (`.tab`), with the status and the levels of
each cell. Whatever τ-ARGUS cannot express is in the notes, and in comments at the top of the `.arb` file.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import polars as pl

from tablesafe.errors import InvalidOption
from tablesafe.files import Source, read_text
from tablesafe.io.jj import jj_text
from tablesafe.io.numbers import as_text
from tablesafe.io.tauargus_export import Commands, problem_files
from tablesafe.io.tauargus_export_micro import Column, MicroTable, is_plain, record_files
from tablesafe.io.tauargus_meta import Role
from tablesafe.io.tauargus_micro import NUMBER
from tablesafe.io.tauargus_write_tab import Texts
from tablesafe.job import Job, load_job
from tablesafe.job.model import ProblemOptions
from tablesafe.linking import RESPONSE
from tablesafe.methods import Suppress
from tablesafe.pipeline.export_commands import Cost, commands_of, cost_of, inexpressible, rules_text
from tablesafe.pipeline.outputs import together
from tablesafe.pipeline.problems import build_problem
from tablesafe.problem import Problem
from tablesafe.report.progress import Listener, ignore
from tablesafe.rules.counts import Threshold

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
    why = _why_not_records(job, problem)
    if form == "records" and why:
        raise InvalidOption(
            f"τ-ARGUS cannot make this table of the records: {'; '.join(why)}.\n\nHint: form='cells' exports the table."
        )
    if form == "cells":
        return _cells(job, problem, name, commands)
    if why:
        finished = f"The finished table is exported, not the records: {'; '.join(why)}."
        return _cells(job, problem, name, replace(commands, comments=(finished, *commands.comments)))
    return _records(job, problem, name, commands)


def _cells(job: Job, problem: Problem, name: str, commands: Commands) -> Texts:
    if isinstance(job.method, Suppress) and (job.method.cost != "problem" or job.method.power != 1):
        own = "The costs in the file are those of the problem; the method's own cost and power are not there."
        commands = replace(commands, comments=(*commands.comments, own))
    return problem_files(problem, name, commands)


# -- records -----------------------------------------------------------------------------------------------------------


def _why_not_records(job: Job, problem: Problem) -> list[str]:
    """What keeps τ-ARGUS from finding the same sensitive cells in the records."""
    source, options, table = job.source, job.problem, problem.table
    why = inexpressible(job.rules, weighted=source.weight is not None)
    if RESPONSE in table.dimensions:
        why.append("several response variables")
    if table.origin is None:
        why.append("the table does not know its records")
    why += [f"dimension {name!r} is not a plain tree" for name, tree in table.dimensions.items() if not is_plain(tree)]
    if source.zeros:
        why.append("zeros = true: cells that no record falls into")
    if source.request is not None:
        why.append("requests for protection")
    plain = ProblemOptions(cost=options.cost, manual_range=options.manual_range, apriori=options.apriori)
    if options != plain:
        why.append("bounds, or cells chosen in [problem]")
    if options.apriori is not None and not options.apriori.lower().endswith(".hst"):
        why.append("an a-priori file that is not .hst")
    if not float(options.manual_range).is_integer():
        why.append("manual_range is not a whole number")
    reason = cost_of(job)[1]
    return [*why, *([] if reason is None else [reason]), *_why_not_respondents(job, problem)]


def _why_not_respondents(job: Job, problem: Problem) -> list[str]:
    if job.source.holding is None or job.source.respondent is None or problem.table.origin is None:
        return []
    counts = any(isinstance(rule, Threshold) and rule.on == "respondents" for rule in job.rules)
    if counts and not _one_record_each(problem, job.source.respondent):
        return ["respondents with several records, inside holdings"]
    return []


def _one_record_each(problem: Problem, respondent: str) -> bool:
    assert problem.table.origin is not None
    records = problem.table.origin.records()
    return records[respondent].n_unique() == records.height


def _records(job: Job, problem: Problem, name: str, commands: Commands) -> Texts:
    holding, source = job.source.holding, job.source
    merged = holding is None and source.respondent is not None and not _one_record_each(problem, source.respondent)
    holding = source.respondent if merged else holding
    cost, _ = cost_of(job)
    columns = _columns(job, problem, holding, cost)
    apriori = {} if job.problem.apriori is None else {f"{name}.hst": _hst(job)}
    rules = rules_text(
        job.rules, holdings=holding is not None, counted="holdings" if merged else "records",
        manual_range=job.problem.manual_range if apriori else None,
    )  # fmt: skip
    rules += "|WGT(1)" if source.weight is not None else ""
    spans = [table.dimensions for table in job.tables] or [tuple(job.dimensions)]
    tables = [
        MicroTable(
            dimensions=tuple(span), response=job.response.value[0] if job.response.value else None, rules=rules,
            shadow=job.response.shadow or "", cost=cost.text,
        )
        for span in spans
    ]  # fmt: skip
    if any(len({len(code) for code in tree.leaves}) > 1 for tree in problem.table.dimensions.values()):
        padded = "Shorter codes have spaces before them, as τ-ARGUS wants it."
        commands = replace(commands, comments=(*commands.comments, padded))
    texts = record_files(columns, tables, name, commands, apriori)
    return Texts({**texts.texts, f"{name}.jj": jj_text(problem)}, list(commands.comments))


def _columns(job: Job, problem: Problem, holding: str | None, cost: Cost) -> list[Column]:
    """The variables of the records that the tables need, as text."""
    origin = problem.table.origin
    assert origin is not None
    records = _with_codes(job, origin.records())
    source = Source(records, Path(job.source.file).name)
    columns = [
        Column(name=name, role=Role.DIMENSION, text=source.text(dimension.column or name, strip=False),
               tree=problem.table.dimensions[name])
        for name, dimension in job.dimensions.items()
    ]  # fmt: skip
    if holding is not None:
        columns.append(Column(name=holding, role=Role.HOLDING, text=source.text(holding)))
    if job.source.weight is not None:
        columns.append(_number(source, job.source.weight, Role.WEIGHT))
    wanted = [
        *job.response.value,
        *([job.response.shadow] if job.response.shadow else []),
        *filter(None, [cost.column]),
    ]
    for name in dict.fromkeys(wanted):
        columns.append(_number(source, name, Role.RESPONSE))
    _refuse_clashes(columns)
    return columns


def _with_codes(job: Job, records: pl.DataFrame) -> pl.DataFrame:
    """The records as they count: texts that stand for nothing are nothing, and missing codes are as the job says."""
    gone = list(job.source.empty)
    if gone:
        records = records.with_columns(
            pl.when(pl.col(pl.String).is_in(gone)).then(None).otherwise(pl.col(pl.String)).name.keep()
        )
    for name, dimension in job.dimensions.items():
        column = dimension.column or name
        text = records[column].cast(pl.String)
        missing = text.is_null() | (text.str.strip_chars() == "")
        if dimension.missing == "drop":
            records = records.filter(~missing)
        elif dimension.missing != "error":
            records = records.with_columns(text.set(missing, dimension.missing))
    return records


def _number(source: Source, name: str, role: Role) -> Column:
    column = name if name in source.frame.columns else name + NUMBER
    empty = source.text(column).fill_null("") == ""
    values = source.numbers(column, missing=0.0)
    text = as_text(values).set(empty, "")
    longest: Any = text.str.extract(r"\.(\d+)$").str.len_chars().max()
    return Column(name=name, role=role, text=text, decimals=min(int(longest or 0), 15))


def _refuse_clashes(columns: list[Column]) -> None:
    names = [column.name.lower() for column in columns]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InvalidOption(
            f"Two variables of the records would be called {twice!r}.\n\nHint: give the dimension another name."
        )


def _hst(job: Job) -> str:
    assert job.problem.apriori is not None
    return read_text(job.resolve(job.problem.apriori))
