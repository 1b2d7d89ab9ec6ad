"""A job or a problem as a folder of files for τ-ARGUS: `.arb`, `.rda`, `.hrc`, JJ, and the data.

A job on records goes out as records (`.asc`) with its rules, so that τ-ARGUS finds the same sensitive cells by itself;
where it cannot, and for every other source, the finished table goes out (`.tab`), with the status and the levels of
each cell. Whatever τ-ARGUS cannot express is in the notes, and in comments at the top of the `.arb` file.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Literal

import polars as pl

from tablesafe.batch_jobs.exported_files import Column, Commands, MicroTable, is_plain, problem_files, record_files
from tablesafe.core.errors import InvalidOption
from tablesafe.core.linking import RESPONSE
from tablesafe.core.problem import Problem
from tablesafe.core.sensitivity import Rule
from tablesafe.files.read import Source, read_text
from tablesafe.io.jj import jj_text
from tablesafe.io.text import as_text
from tablesafe.job import Job, load_job
from tablesafe.job.model import ProblemOptions
from tablesafe.methods import Adjust, Round, Suppress, Withhold
from tablesafe.pipeline.outputs import together
from tablesafe.pipeline.problems import build_problem
from tablesafe.report.progress import Listener, ignore
from tablesafe.rules.counts import Threshold, ZeroCells
from tablesafe.rules.linear import PQ, Dominance, PPercent
from tablesafe.tauargus.metadata import Role
from tablesafe.tauargus.microdata import NUMBER
from tablesafe.tauargus.write_table import Texts

# -- method and costs --------------------------------------------------------------------------------------------------


MODULAR = "MOD({},%d,1,1,1)"
"""Modular suppression with all its protection against single contributors."""
OF_THE_RUN = {"time_limit_s", "algorithm", "cost", "power", "executor", "progress", "seed", "insiders", "unions"}
"""Options of suppression that are expressed otherwise, or that change no pattern τ-ARGUS would make."""
COSTS = {"value": "", "unit": "-2", "count": "-1", "distance": "-3"}


@dataclass(frozen=True, slots=True)
class Cost:
    """What withholding costs: as `<SPECIFYTABLE>` writes it, and a column of the records that it needs."""

    text: str = ""
    column: str | None = None


def commands_of(job: Job, *, linked: bool) -> Commands:
    """How a batch file protects and writes the tables of a job."""
    suppress, notes = _suppress(job, linked)
    writes, more = _writes(job.output.release)
    return Commands(suppress=suppress, writes=writes, comments=(*notes, *more))


def _suppress(job: Job, linked: bool) -> tuple[str | None, list[str]]:
    method: Any = job.method
    minutes = max(1, math.ceil(getattr(method, "time_limit_s", 60.0) / 60))
    modular = MODULAR % minutes
    match method:
        case Suppress():
            return _of_suppress(method, modular, minutes, linked)
        case Round(method="controlled") if not linked:
            return f"RND({{}},{method.base},0,{minutes},0,2)", []
        case Adjust() if not linked:
            return "CTA({})", ["CTA of τ-ARGUS has no options: distance, directions and bounds are its own."]
        case Withhold():
            return None, []
        case _:
            return modular, [f"Method {method.name!r} has no counterpart in τ-ARGUS for this: MOD suppresses instead."]


def _of_suppress(method: Suppress, modular: str, minutes: int, linked: bool) -> tuple[str, list[str]]:
    notes = []
    told = sorted(
        option.name
        for option in fields(method)
        if option.name not in OF_THE_RUN and not _same(getattr(method, option.name), option.default)
    )
    if told:
        notes.append(f"Options of the suppression without a counterpart in τ-ARGUS: {', '.join(told)}.")
    if method.algorithm in {"optimal", "network"} and linked:
        notes.append(f"τ-ARGUS links tables only by MOD: {method.algorithm} becomes MOD.")
        return modular, notes
    if method.algorithm == "optimal":
        return f"OPT({{}},{minutes})", notes
    if method.algorithm == "network":
        return "NET({})", notes
    if method.algorithm != "modular":
        notes.append(f"Algorithm {method.algorithm!r} has no counterpart in τ-ARGUS: MOD is the nearest.")
    return modular, notes


def _same(value: object, default: object) -> bool:
    return type(value) is type(default) and value == default


def _writes(names: Sequence[str]) -> tuple[tuple[str, ...], list[str]]:
    text = tuple(Path(name).name for name in names if name.lower().endswith(".csv"))
    other = [name for name in names if not name.lower().endswith(".csv")]
    notes = [f"τ-ARGUS writes text: {', '.join(other)} left out."] if other else []
    return text or ("safe.csv",), notes


def cost_of(job: Job) -> tuple[Cost, str | None]:
    """The cost of a job's cells, and why it cannot be said if it cannot."""
    given, power = job.problem.cost, 1.0
    if isinstance(job.method, Suppress):
        power = job.method.power
        if job.method.cost != "problem":
            given = job.method.cost if isinstance(job.method.cost, str) else "an array"
    if given in {"inverse", "log_over_value", "constant", "an array"}:
        return Cost(), f"costs by {given!r} have no counterpart in τ-ARGUS"
    response = job.response.value[0] if job.response.value else ""
    if given == "log":
        return (Cost(f'"{response}",0'), None) if response else (Cost(), "costs by the logarithm of counts")
    text = COSTS.get(given, given)
    if power == 1:
        return Cost(text, None if given in COSTS else given), None
    if text in {"-2", "-3"} or not (text or response):
        return Cost(), f"power = {power:g} on costs {given!r} has no counterpart in τ-ARGUS"
    named = text if text.startswith("-") else f'"{text or response}"'
    return Cost(f"{named},{power:g}", None if given in COSTS else given), None


# -- rules -------------------------------------------------------------------------------------------------------------


def rules_text(rules: Iterable[Rule], *, holdings: bool, counted: str, manual_range: float | None) -> str:
    """The rules as `<SAFETYRULE>` writes them; those on holdings stand in the third and fourth place.

    `counted` says whom a threshold on respondents counts in τ-ARGUS: records or holdings.
    """
    shares = {"P": [], "NK": []}  # type: dict[str, list[str]]
    counts: dict[str, list[str]] = {"records": [], "holdings": []}
    other = []
    for rule in rules:
        match rule:
            case PPercent():
                shares["P"].append(f"P({rule.p:g},{rule.coalition})")
            case PQ():
                shares["P"].append(f"P({rule.p:g},{rule.q:g},{rule.coalition})")
            case Dominance():
                shares["NK"].append(f"NK({rule.n},{rule.k:g})")
            case Threshold():
                whom = "holdings" if rule.on == "holdings" else counted
                counts[whom].append(f"FREQ({rule.n},{rule.range_percent:g})")
            case ZeroCells():
                other.append(f"ZERO({rule.range_absolute:g})")
    written = []
    for name, found in shares.items():
        written += [f"{name}(0,0)"] * (2 if holdings and found else 0) + found
    written += counts["records"] or (["FREQ(0,0)"] if counts["holdings"] else [])
    written += counts["holdings"] + other
    if manual_range is not None:
        written.append(f"MAN({manual_range:g})")
    return "|".join(written)


def inexpressible(rules: Sequence[Rule], *, weighted: bool) -> list[str]:
    """Why rules cannot be written for τ-ARGUS, which takes whole numbers and few rules of a kind."""
    why = [reason for rule in rules for reason in _why(rule, weighted)]
    for name, kinds, most in (("p% and pq rules", (PPercent, PQ), 2), ("dominance rules", (Dominance,), 2),
                              ("zero rules", (ZeroCells,), 1)):  # fmt: skip
        if sum(isinstance(rule, kinds) for rule in rules) > most:
            why.append(f"τ-ARGUS takes at most {most} {name}")
    for on in ("respondents", "holdings"):
        if sum(isinstance(rule, Threshold) and rule.on == on for rule in rules) > 1:
            why.append(f"τ-ARGUS takes one threshold on {on}")
    return list(dict.fromkeys(why))


def _why(rule: Rule, weighted: bool) -> list[str]:
    name = type(rule).__name__
    match rule:
        case PPercent() | PQ() | Dominance():
            numbers = [rule.k] if isinstance(rule, Dominance) else [rule.p]
            numbers += [rule.q] if isinstance(rule, PQ) else []
            why = [] if all(float(number).is_integer() for number in numbers) else [f"{name}: whole percentages only"]
            if rule.negative != "absolute":
                why.append(f"{name}.negative = {rule.negative!r}")
            if weighted and rule.sampling_weights != "expanded":
                why.append(f"{name}.sampling_weights = {rule.sampling_weights!r}; τ-ARGUS's are 'expanded'")
            return why
        case Threshold():
            why = ["Threshold.zero"] if rule.zero else []
            why += ["Threshold.range_absolute"] if rule.range_absolute else []
            why += [] if float(rule.range_percent).is_integer() else ["Threshold.range_percent: whole numbers only"]
            return [*why, *(["τ-ARGUS counts weights, not respondents, where there are any"] if weighted else [])]
        case ZeroCells():
            return []
        case _:
            return [f"{name} has no counterpart in τ-ARGUS that means the same"]


# -- records -----------------------------------------------------------------------------------------------------------


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
    if not all(file.lower().endswith(".hst") for file in options.apriori_files):
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
    known = [read_text(job.resolve(file)) for file in job.problem.apriori_files]
    apriori = {f"{name}{f'-{i}' if len(known) > 1 else ''}.hst": text for i, text in enumerate(known, 1)}
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


# -- folders -----------------------------------------------------------------------------------------------------------


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
        raise InvalidOption("A problem has no rules that τ-ARGUS could apply to records.", hint="export its job.")
    return problem_files(problem, name, Commands())


def _of_job(job: Job, name: str, form: Form, listen: Listener) -> Texts:
    problem = build_problem(job, listen)
    commands = commands_of(job, linked=len(job.tables) > 1)
    if job.source.holds != "records":
        if form == "records":
            raise InvalidOption(f"{job.source.file} holds no records.", hint="form='cells' exports the table.")
        return _cells(job, problem, name, commands)
    why = why_not_records(job, problem)
    if form == "records" and why:
        raise InvalidOption(
            f"τ-ARGUS cannot make this table of the records: {'; '.join(why)}.", hint="form='cells' exports the table."
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
