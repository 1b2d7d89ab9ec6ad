"""Run a job from end to end."""

from __future__ import annotations

import math
import os
import shlex
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from datetime import datetime
from importlib import import_module
from pathlib import Path
from typing import Any, overload

import polars as pl

from tablesafe.attack.points import PublishedValue
from tablesafe.attack.registry import choose
from tablesafe.attack.suite import Scores, estimate_by
from tablesafe.attack.view import View
from tablesafe.audit.audit import audit
from tablesafe.audit.findings import Findings
from tablesafe.audit.signing import read_private_key
from tablesafe.core.errors import InvalidFile, InvalidOption, concerning, speaking
from tablesafe.core.posterior import posterior
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release, Status
from tablesafe.io.frames import write_frame, write_release
from tablesafe.io.patterns import read_pattern
from tablesafe.io.ptable import read_perturbation
from tablesafe.job import Job, dump_job, load_job
from tablesafe.job.checks import internal_folder
from tablesafe.job.words import as_key
from tablesafe.loss import loss
from tablesafe.loss.noise import noise_measures
from tablesafe.loss.quality import quality
from tablesafe.loss.statistics import statistics
from tablesafe.methods import (
    Adjust,
    BlankAndImpute,
    CellKey,
    Method,
    Noise,
    Pattern,
    PublishIntervals,
    Round,
    SmallCounts,
    Suppress,
    SuppressViews,
    Swap,
    protect,
)
from tablesafe.methods.intervals.leaks import check_intervals
from tablesafe.methods.suppress.securing import PATIENCE, PER_CELL_S, SMALL
from tablesafe.methods.suppress.stability import Stability, stability
from tablesafe.pipeline.checkpoint import Checkpoint, checkpoint
from tablesafe.pipeline.executing import executing, with_executor
from tablesafe.pipeline.extras import require_extras
from tablesafe.pipeline.inputs import Inputs
from tablesafe.pipeline.outputs import Outputs, together
from tablesafe.pipeline.problems import build_problem
from tablesafe.pipeline.result import Result
from tablesafe.report.plots.named import named_plot
from tablesafe.report.progress import Event, Listener, Trace, ignore, progress_bar
from tablesafe.report.summary import Origin
from tablesafe.report.writing import Subject
from tablesafe.work.budget import Budget
from tablesafe.work.stopping import heed

LEAST_AUDIT_S = 30.0
"""Seconds that the audit may take in any case: it rarely needs one, and a release that it cannot judge is lost."""
PROTECTING = 0.7
"""Share of a job's time limit for the method; the rest is for the audit that decides, and its certificate."""
NO_ATTACKS = "Attacks on the release were left out."
WITHOUT_RECORDS = (Adjust, Pattern, PublishIntervals, Round, Suppress)
"""Methods that need nothing but the problem."""

FOREIGN = {".arb": "tablesafe.tauargus.batch:run_batch"}
"""Jobs of other programs, by the ending of their files: who translates them into ours and runs these."""


@overload
def run(
    job: Job,
    *,
    force: bool | None = None,
    progress: bool = False,
    on_event: Listener | None = None,
    resume: bool = False,
) -> Result: ...


@overload
def run(
    job: str | Path,
    *,
    force: bool | None = None,
    progress: bool = False,
    on_event: Listener | None = None,
    resume: bool = False,
) -> Any: ...


def run(
    job: Job | str | Path,
    *,
    force: bool | None = None,
    progress: bool = False,
    on_event: Listener | None = None,
    resume: bool = False,
) -> Any:
    """Run a job: read or tabulate, flag, protect, audit, write. The answer is a `Result`.

    A file that ends in `.arb` is a batch job of τ-ARGUS: the answer is a `BatchResult`, with a `Result` per table.

    A release that fails its audit is not written, unless the job or `force` insists; what the office needs to see why
    is written in any case. All files appear together at the end, or none. `progress` shows a bar on a terminal;
    `on_event` is told of every step. With `resume` the run goes on from the checkpoint that one before it left when
    it was stopped; the answer is the same as without the stop.
    """
    if not isinstance(job, Job):
        foreign = FOREIGN.get(Path(job).suffix.lower())
        if foreign is not None:
            if resume:
                raise InvalidOption("A batch file of τ-ARGUS keeps no checkpoint to resume.")
            module, function = foreign.split(":")
            return getattr(import_module(module), function)(job, force=force, progress=progress, on_event=on_event)
        job = load_job(Path(job))
    if force is not None:
        job = replace(job, output=replace(job.output, force=force))
    _require_writable(job)
    with ExitStack() as stack:
        bar = stack.enter_context(progress_bar(enabled=progress))
        stack.enter_context(speaking(as_key))
        inputs = Inputs.of(job)
        kept = stack.enter_context(checkpoint(job, inputs, resume=resume))
        return _run(job, _both(bar, on_event or ignore), inputs, kept)


def _run(job: Job, listen: Listener, inputs: Inputs, kept: Checkpoint) -> Result:
    clock = _Clock()
    with clock.stage("table"):
        problem = _built(job, listen, kept)
        inputs.require_unchanged()
    with clock.stage("protect"):
        listen(Event("protect", f"Protecting {len(problem.sensitive):,} sensitive cells"))
        trace = Trace()
        with concerning("method"):
            method = _ready(job, problem, _both(listen, trace.listen))
        inputs.require_unchanged()
    limit = method.time_limit_s if isinstance(method, Suppress) else None
    whole = Budget(limit)
    with executing(job, kept) as executor, heed(whole) if limit is not None else nullcontext():
        with clock.stage("protect"):
            working = with_executor(method, executor)
            if isinstance(working, Suppress):
                working = replace(working, time_limit_s=PROTECTING * working.time_limit_s)
            with concerning("method"):
                release, tables = kept.stage("release", lambda: _protected(problem, working), {"table": problem.table})
            _tell_end(release, trace, _both(listen, trace.listen))
        with clock.stage("audit"):
            listen(Event("audit", "Attacking the release"))
            findings = _audited(job, problem, release, listen, executor, _for_audit(job, problem, whole, limit))
    with clock.stage("attack"):
        scores = None if whole.stopped else _attacked(job, findings, listen)
        leaks = None if release.intervals is None else check_intervals(problem, release, findings=findings)
    published = (findings.safe and (leaks is None or not leaks.leaking)) or job.output.force
    with clock.stage("write"):
        listen(Event("write", "Writing files"))
        subject = Subject(
            problem=problem, release=release, findings=findings, scores=scores, leaks=leaks, trace=trace,
            origin=_origin(job, clock.seconds, inputs), intervals=job.output.intervals,
        )  # fmt: skip
        files = _write(job, subject, tables, published=published)
    kept.finish()
    return Result(
        job, problem, release, findings, published, files, clock.seconds, _stability(problem, release, method),
        scores, leaks, trace,
    )  # fmt: skip


def _tell_end(release: Release, trace: Trace, listen: Listener) -> None:
    """Tell what the answer costs in the end, where that is not what the search reported last.

    What is added after a search, against insiders and sums that can be derived, costs more than what it found.
    """
    found = release.solution
    if found is not None and trace.steps and trace.steps[-1][1] != found.objective and math.isfinite(found.objective):
        bound = found.bound if math.isfinite(found.bound) else None
        listen(Event("protect", "The search is over", incumbent=found.objective, bound=bound))


def _built(job: Job, listen: Listener, kept: Checkpoint) -> Problem:
    """The problem of the job. Methods that go back to the records need it as it was made, not as it was kept."""
    if not isinstance(job.method, WITHOUT_RECORDS):
        return build_problem(job, listen)
    return kept.stage("problem", lambda: build_problem(job, listen))


def _protected(problem: Problem, method: Method) -> tuple[Release, dict[str, pl.DataFrame]]:
    """The release, and tables that help the office to judge it or to choose another."""
    if isinstance(method, CellKey):
        release = protect(problem, method)
        return release, _noise_tables(problem, release)
    if isinstance(method, Noise | Swap | BlankAndImpute):
        outcome = method.outcome(problem)
        return outcome.release, {**outcome.tables, **_quality_tables(problem, outcome.release)}
    if isinstance(method, Round | SmallCounts):
        release = protect(problem, method)
        return release, _rounding_tables(problem, release)
    if not isinstance(method, Adjust):
        return protect(problem, method), {}
    tables = {}
    if method.relaxed is None:
        release = protect(problem, method)
    else:
        simulations = method.simulate(problem)
        release, tables["releases.csv"] = simulations.picked(), simulations.frame()
    over = next((part.over for part in (method.keep, method.tabu, method.relaxed) if part is not None), "sensitive")
    responses = () if method.keep is None else method.keep.responses
    tables["statistics.csv"] = statistics(problem, release, over=over, responses=responses)
    tables.update(_quality_tables(problem, release))
    if method.relax_capacity:
        tables["raised_capacities.csv"] = method.relaxation(problem).frame()
    return release, tables


def _quality_tables(problem: Problem, release: Release) -> dict[str, pl.DataFrame]:
    """How far the published values are from the true ones, and which of them users should rely on."""
    found = quality(problem, release)
    totals = found.totals()
    return {
        "quality.csv": pl.DataFrame({"measure": list(totals), "value": [float(v) for v in totals.values()]}),
        "percent_changes.csv": found.distribution(),
        "accuracy_by_size.csv": found.by_size(),
        "quality_flags.csv": found.cells(),
    }


def _rounding_tables(problem: Problem, release: Release) -> dict[str, pl.DataFrame]:
    """How far rounded counts are from the true ones by level, and what chance leaves to believe about them."""
    tables = {"changes_by_level.csv": loss(problem, release).frame()}
    if release.mechanism is not None:
        tables["posterior.csv"] = posterior(problem, release).frame()
    return tables


def _noise_tables(problem: Problem, release: Release) -> dict[str, pl.DataFrame]:
    """What noise did to the values, for the office."""
    found = noise_measures(problem, release)
    totals = found.totals()
    tables = {"noise.csv": pl.DataFrame({"measure": list(totals), "value": list(totals.values())})}
    tables["noise_distances.csv"] = found.distances()
    if release.mechanism is not None:
        tables["noise_changes.csv"] = found.distribution()
        tables["posterior.csv"] = posterior(problem, release).frame()
    return tables


def _stability(problem: Problem, release: Release, method: Method) -> Stability | None:
    """How much of last period's pattern is kept, where the job names one."""
    previous = method.previous if isinstance(method, Suppress) else None
    return None if previous is None or isinstance(previous, str) else stability(problem, release, previous)


@dataclass(slots=True)
class _Clock:
    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        start = time.perf_counter()
        yield
        self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - start


def _both(one: Listener, other: Listener) -> Listener:
    def listen(event: Event) -> None:
        one(event)
        other(event)

    return listen


def _told(number: float) -> str:
    return f"{number:,.0f}" if abs(number) >= 1000 else f"{number:,.6g}"


def _ready(job: Job, problem: Problem, listen: Listener) -> Method:
    """The method with what it reads from files, which it does not touch itself, and with somebody to report to."""

    def progress(cost: float, bound: float) -> None:
        gap = f", at least {_told(bound)} (gap {(cost - bound) / cost:.1%})" if 0 < bound <= cost else ""
        detail = f": cost {_told(cost)}{gap}"
        listen(Event("protect", message, detail=detail, incumbent=cost, bound=bound))

    message = f"Protecting {len(problem.sensitive):,} sensitive cells"
    match job.method:
        case Pattern():
            mask = read_pattern(job.resolve(job.method.file), problem, scheme=job.method.scheme)
            return replace(job.method, mask=mask)
        case Suppress():
            keep, previous, scheme = job.method.keep, job.method.previous, job.method.scheme
            if isinstance(keep, str):
                keep = read_pattern(job.resolve(keep), problem, scheme=scheme, complete=False)
            if isinstance(previous, str):
                previous = read_pattern(
                    job.resolve(previous), problem, scheme=scheme, complete=False, ignore_unknown=True
                )
            asked = job.audit
            return replace(
                job.method, keep=keep, previous=previous, progress=progress,
                insiders=asked.insiders, unions=asked.unions, possibly=asked.possibly,
                coalition=max(job.method.coalition, asked.coalition if asked.insiders else 1),
                integers=asked.integers if job.method.integers is None else job.method.integers,
            )  # fmt: skip
        case PublishIntervals():
            pattern, suppress = job.method.pattern, _ready(replace(job, method=job.method.suppress), problem, listen)
            if isinstance(pattern, str):
                pattern = read_pattern(job.resolve(pattern), problem, scheme=job.method.scheme)
            assert isinstance(suppress, Suppress)
            return replace(job.method, suppress=suppress, pattern=pattern)
        case Adjust() | Round() | SuppressViews():
            return replace(job.method, progress=progress)
        case CellKey():
            return _with_perturbations(job, job.method)
        case _:
            return job.method


def _with_perturbations(job: Job, method: CellKey) -> CellKey:
    """The cell key method with the perturbation tables that its job names."""
    options = method.magnitude
    parity = options is not None and options.odd is not None
    if isinstance(method.perturbation, str):
        kind = "even" if parity else "all"
        method = replace(method, perturbation=read_perturbation(job.resolve(method.perturbation), kind=kind))
    if options is not None and isinstance(options.odd, str):
        options = replace(options, odd=read_perturbation(job.resolve(options.odd), kind="odd"))
    if options is not None and isinstance(options.small_cells, str):
        found = read_perturbation(job.resolve(options.small_cells), kind="small_cells")
        options = replace(options, small_cells=found)
    return replace(method, magnitude=options)


def _audited(
    job: Job, problem: Problem, release: Release, listen: Listener, executor: Executor | None, budget: Budget
) -> Findings:  # fmt: skip
    def progress(done: float) -> None:
        listen(Event("audit", "Attacking the release", round(100 * done), 100))

    options = job.audit
    return audit(
        problem,
        release,
        cells=options.cells,
        exact=options.exact,
        insiders=options.insiders,
        coalition=options.coalition,
        unions=options.unions,
        possibly=options.possibly,
        integers=options.integers,
        certify=options.certificate,
        executor=executor,
        progress=progress,
        budget=budget,
    )


def _for_audit(job: Job, problem: Problem, whole: Budget, limit: float | None) -> Budget:
    """The time for the audit: what the job says, or what is left of the whole, but enough to look at everybody.

    When the user stops, or time is short, intervals are not made exact; what decides is looked at all the same.
    """
    if job.audit.time_limit_s is not None or limit is None:
        return Budget(job.audit.time_limit_s)
    if whole.stopped:
        whole.give_up(NO_ATTACKS)
    enough = limit / 2 + LEAST_AUDIT_S + PER_CELL_S * max(0, len(problem.table) - SMALL)
    return Budget(max(0.0 if whole.stopped else whole.left, enough), patience=PATIENCE)


def _attacked(job: Job, findings: Findings, listen: Listener) -> Scores | None:
    """What an intruder would guess; None when the job wants no attack or there is nothing to guess.

    What is published is a guess only where it is not the truth.
    """
    problem, release = findings.problem, findings.release
    if not job.attack.attacks or not len(problem.sensitive):
        return None
    listen(Event("attack", "Guessing what the release hides"))
    changed = bool((release.status == Status.CHANGED).any())
    every = choose(job.attack.attacks, seed=job.attack.seed)
    chosen = [each for each in every if changed or not isinstance(each, PublishedValue)]
    view = View.of(problem, release, findings.system)
    return Scores.of(estimate_by(each, problem, view, job.attack.time_limit_s) for each in chosen)


# -- files ---------------------------------------------------------------------------------------------------------


def _require_writable(job: Job) -> None:
    """Fail before the long work, not after it."""
    require_extras(job)
    if job.audit.key is not None:
        read_private_key(job.resolve(job.audit.key))
    named = [job.resolve(name) for name in (*job.output.release, *job.output.reports)]
    for target in [*named, internal_folder(job) / "report.html"]:
        folder = next(parent for parent in target.absolute().parents if parent.exists())
        if not folder.is_dir() or not os.access(folder, os.W_OK):
            raise InvalidFile(f"Cannot write {str(target)!r}: {str(folder)!r} is not a folder that may be written to.")


def _write(job: Job, subject: Subject, tables: Mapping[str, pl.DataFrame], *, published: bool) -> tuple[Path, ...]:
    with together(last=True) as outputs:
        if published:
            for name in job.output.release:
                target = outputs.place(job.resolve(name))
                write_release(
                    subject.release, target, labels=job.output.labels, intervals=job.output.intervals,
                    guard_formulas=job.output.guard_formulas,
                )  # fmt: skip
            public = subject.with_table_in(Path(name).name for name in job.output.release)
            for name in job.output.reports:
                public.write(outputs.place(job.resolve(name)), internal=False)
        write_internal(job, outputs, subject, tables)
        return tuple(outputs.written)


def write_internal(job: Job, outputs: Outputs, subject: Subject, tables: Mapping[str, pl.DataFrame]) -> None:
    """What stays in the office, in a folder of its own, for its owner's eyes."""
    key = None if job.audit.key is None else job.resolve(job.audit.key)
    write_record(internal_folder(job), outputs, subject, tables, plots=job.output.plots, key=key)


def write_record(
    folder: Path,
    outputs: Outputs,
    subject: Subject,
    tables: Mapping[str, pl.DataFrame],
    *,
    plots: Sequence[str] = (),
    key: Path | None = None,
) -> None:
    """Write what was found, and the proof, into a folder that stays in the office."""
    findings, release = subject.findings, subject.release
    assert findings is not None

    def place(name: str) -> Path:
        return outputs.place(folder / name, private=True)

    subject.write_internal(place)
    write_release(release, place("cells.csv"), problem=subject.problem, confidential=True)
    write_frame(findings.frame(), place("findings.csv"))
    place("findings.json").write_text(findings.to_json(), encoding="utf-8")
    if subject.scores is not None:
        write_frame(subject.scores.ranking(), place("attack.csv"))
    for name, frame in tables.items():
        write_frame(frame, place(name))
    for name in plots:
        plot = named_plot(name, subject.problem, release, findings, subject.scores, subject.trace)
        if plot is not None:
            plot.save(place(name))
    if findings.certificate is not None:
        findings.certificate.save(place("certificate.json.gz"), key=key)


def _origin(job: Job, seconds: Mapping[str, float], inputs: Inputs) -> Origin:
    command = "" if job.path is None else f"tablesafe run {shlex.quote(job.path.name)}"
    source, now = Path(job.source.file).name, datetime.now().astimezone()
    origin = Origin(job.title, source, command, dump_job(job), inputs.hashes, now, dict(seconds))
    return replace(origin, name_source=job.output.name_source)
