"""The records of a job, with its rules, as files from which τ-ARGUS makes the same table by itself."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from tablesafe.core.linking import RESPONSE
from tablesafe.core.problem import Problem
from tablesafe.files.read import Source, read_text
from tablesafe.io.jj import jj_text
from tablesafe.io.tauargus_export import Commands
from tablesafe.io.tauargus_export_micro import Column, MicroTable, is_plain, record_files
from tablesafe.io.tauargus_meta import Role
from tablesafe.io.tauargus_micro import NUMBER
from tablesafe.io.tauargus_write_tab import Texts
from tablesafe.io.text import as_text
from tablesafe.job import Job
from tablesafe.job.model import ProblemOptions
from tablesafe.pipeline.export_commands import Cost, cost_of, inexpressible, rules_text
from tablesafe.rules.counts import Threshold


def why_not_records(job: Job, problem: Problem) -> list[str]:
    """What keeps τ-ARGUS from finding the same sensitive cells in the records."""
    source, options, table = job.source, job.problem, problem.table
    why = inexpressible(job.rules, weighted=source.weight is not None)
    if RESPONSE in table.dimensions:
        why.append("several response variables")
    if source.frequency is not None:
        why.append("rows that stand for several respondents (frequency)")
    if table.origin is None:
        why.append("the table does not know its records")
    why += [f"dimension {name!r} is not a plain tree" for name, tree in table.dimensions.items() if not is_plain(tree)]
    named = [*job.dimensions, *filter(None, [source.holding or source.respondent, source.weight])]
    named += [each for each in dict.fromkeys([*job.response.value, job.response.shadow]) if each]
    if len({each.lower() for each in named}) < len(named):
        why.append("two variables of the same name")
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


def records_texts(job: Job, problem: Problem, name: str, commands: Commands) -> Texts:
    """The files of a job on records, the batch file first; a JJ file of its table is there too."""
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
    wanted = [*job.response.value, *filter(None, [job.response.shadow, cost.column])]
    return [*columns, *(_number(source, name, Role.RESPONSE) for name in dict.fromkeys(wanted))]


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


def _hst(job: Job) -> str:
    assert job.problem.apriori is not None
    return read_text(job.resolve(job.problem.apriori))
