"""Run a job from end to end."""

from __future__ import annotations

import hashlib
import os
import shlex
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from multiprocessing import get_context
from pathlib import Path
from typing import Any, overload

import polars as pl

from tablesafe.attack.points import PublishedValue
from tablesafe.attack.registry import choose
from tablesafe.attack.scores import Scores
from tablesafe.attack.suite import estimate_by
from tablesafe.attack.view import View
from tablesafe.audit.audit import audit
from tablesafe.audit.findings import Findings
from tablesafe.errors import InvalidFile
from tablesafe.io.frames import write_frame, write_release
from tablesafe.io.patterns import read_pattern
from tablesafe.io.ptable import read_perturbation
from tablesafe.job import Job, dump_job, load_job
from tablesafe.job.checks import input_files, internal_folder
from tablesafe.loss import loss
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
    Swap,
    protect,
)
from tablesafe.methods.adjust.measures import statistics
from tablesafe.methods.cell_key.measures import noise_measures
from tablesafe.methods.intervals.leaks import check_intervals
from tablesafe.methods.suppress.stability import Stability, stability
from tablesafe.pipeline.outputs import Outputs, together
from tablesafe.pipeline.problems import build_problem
from tablesafe.pipeline.result import Result
from tablesafe.posterior import posterior
from tablesafe.problem import Problem
from tablesafe.quality import quality
from tablesafe.release import Release, Status
from tablesafe.report.progress import Event, Listener, ignore, progress_bar
from tablesafe.report.summary import Origin, render, summarise


@overload
def run(job: Job, *, force: bool | None = None, progress: bool = False, on_event: Listener | None = None) -> Result: ...


@overload
def run(
    job: str | Path, *, force: bool | None = None, progress: bool = False, on_event: Listener | None = None
) -> Any: ...


def run(
    job: Job | str | Path,
    *,
    force: bool | None = None,
    progress: bool = False,
    on_event: Listener | None = None,
) -> Any:
    """Run a job: read or tabulate, flag, protect, audit, write. The answer is a `Result`.

    A file that ends in `.arb` is a batch job of τ-ARGUS: the answer is a `BatchResult`, with a `Result` per table.

    A release that fails its audit is not written, unless the job or `force` insists; what the office needs to see why
    is written in any case. All files appear together at the end, or none. `progress` shows a bar on a terminal;
    `on_event` is told of every step.
    """
    if not isinstance(job, Job):
        if Path(job).suffix.lower() == ".arb":
            from tablesafe.pipeline.batch import run_batch  # it uses what is below

            return run_batch(job, force=force, progress=progress, on_event=on_event)
        job = load_job(Path(job))
    if force is not None:
        job = replace(job, output=replace(job.output, force=force))
    _require_writable(job)
    with ExitStack() as stack:
        bar = stack.enter_context(progress_bar(enabled=progress))
        return _run(job, _both(bar, on_event or ignore))


def _run(job: Job, listen: Listener) -> Result:
    clock = _Clock()
    with clock.stage("table"):
        problem = build_problem(job, listen)
    with clock.stage("protect"):
        listen(Event("protect", f"Protecting {len(problem.sensitive):,} sensitive cells"))
        method = _ready(job, problem, listen)
        release, tables = _protected(problem, method)
    with clock.stage("audit"):
        listen(Event("audit", "Attacking the release"))
        findings = _audited(job, problem, release, listen)
    with clock.stage("attack"):
        scores = _attacked(job, problem, release, listen)
        leaks = None if release.intervals is None else check_intervals(problem, release, findings=findings)
    published = (findings.safe and (leaks is None or leaks.safe)) or job.output.force
    with clock.stage("write"):
        listen(Event("write", "Writing files"))
        files = _write(job, problem, release, findings, scores, tables, published=published)
    return Result(
        job, problem, release, findings, published, files, clock.seconds, _stability(problem, release, method),
        scores, leaks,
    )  # fmt: skip


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
        self.seconds[name] = time.perf_counter() - start


def _both(one: Listener, other: Listener) -> Listener:
    def listen(event: Event) -> None:
        one(event)
        other(event)

    return listen


def _ready(job: Job, problem: Problem, listen: Listener) -> Method:
    """The method with what it reads from files, which it does not touch itself, and with somebody to report to."""

    def progress(cost: float, bound: float) -> None:
        gap = f" (gap {(cost - bound) / cost:.1%})" if 0 < bound <= cost else ""
        listen(Event("protect", message, detail=f": cost {cost:,.6g}, at least {bound:,.6g}{gap}"))

    message = f"Protecting {len(problem.sensitive):,} sensitive cells"
    match job.method:
        case Pattern():
            return replace(job.method, mask=read_pattern(job.resolve(job.method.file), problem))
        case Suppress():
            keep, previous = job.method.keep, job.method.previous
            if isinstance(keep, str):
                keep = read_pattern(job.resolve(keep), problem, complete=False)
            if isinstance(previous, str):
                previous = read_pattern(job.resolve(previous), problem, complete=False, ignore_unknown=True)
            asked = job.audit
            return replace(
                job.method, keep=keep, previous=previous, progress=progress,
                insiders=asked.insiders, unions=asked.unions,
                coalition=max(job.method.coalition, asked.coalition if asked.insiders else 1),
                integers=asked.integers if job.method.integers is None else job.method.integers,
            )  # fmt: skip
        case PublishIntervals():
            pattern, suppress = job.method.pattern, _ready(replace(job, method=job.method.suppress), problem, listen)
            if isinstance(pattern, str):
                pattern = read_pattern(job.resolve(pattern), problem)
            assert isinstance(suppress, Suppress)
            return replace(job.method, suppress=suppress, pattern=pattern)
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


def _audited(job: Job, problem: Problem, release: Release, listen: Listener) -> Findings:
    def progress(done: float) -> None:
        listen(Event("audit", "Attacking the release", round(100 * done), 100))

    options = job.audit
    with _executor(job) as executor:
        return audit(
            problem,
            release,
            cells=options.cells,
            exact=options.exact,
            insiders=options.insiders,
            coalition=options.coalition,
            unions=options.unions,
            integers=options.integers,
            certify=options.certificate,
            executor=executor,
            progress=progress,
            time_limit_s=options.time_limit_s,
        )


def _attacked(job: Job, problem: Problem, release: Release, listen: Listener) -> Scores | None:
    """What an intruder would guess; None when the job wants no attack or there is nothing to guess.

    What is published is a guess only where it is not the truth.
    """
    if not job.attack.attacks or not len(problem.sensitive):
        return None
    listen(Event("attack", "Guessing what the release hides"))
    changed = bool((release.status == Status.CHANGED).any())
    every = choose(job.attack.attacks, seed=job.attack.seed)
    chosen = [each for each in every if changed or not isinstance(each, PublishedValue)]
    view = View.of(problem, release)
    return Scores.of(estimate_by(each, problem, view, job.attack.time_limit_s) for each in chosen)


@contextmanager
def _executor(job: Job) -> Iterator[Executor | None]:
    """The processes that the job asks for; none means this one. Fresh ones, because forking copies locks."""
    if job.run.executor == "here":
        yield None
        return
    with ProcessPoolExecutor(job.run.workers, mp_context=get_context("spawn")) as pool:
        yield pool


# -- files ---------------------------------------------------------------------------------------------------------


def _require_writable(job: Job) -> None:
    """Fail before the long work, not after it."""
    named = [job.resolve(name) for name in (*job.output.release, *filter(None, [job.output.report]))]
    for target in [*named, internal_folder(job) / "report.html"]:
        folder = next(parent for parent in target.absolute().parents if parent.exists())
        if not folder.is_dir() or not os.access(folder, os.W_OK):
            raise InvalidFile(f"Cannot write {str(target)!r}: {str(folder)!r} is not a folder that may be written to.")


def _write(
    job: Job, problem: Problem, release: Release, findings: Findings, scores: Scores | None,
    tables: Mapping[str, pl.DataFrame], *, published: bool,
) -> tuple[Path, ...]:  # fmt: skip
    origin = _origin(job)
    with together() as outputs:
        if published:
            for name in job.output.release:
                target = outputs.place(job.resolve(name))
                write_release(release, target, labels=job.output.labels, intervals=job.output.intervals)
            if job.output.report is not None:
                page = render(summarise(problem, release, findings, origin=origin, internal=False))
                outputs.place(job.resolve(job.output.report)).write_text(page, encoding="utf-8")
        write_internal(job, outputs, problem, release, findings, scores, tables, origin)
        return tuple(outputs.written)


def write_internal(
    job: Job, outputs: Outputs, problem: Problem, release: Release, findings: Findings, scores: Scores | None,
    tables: Mapping[str, pl.DataFrame], origin: Origin,
) -> None:  # fmt: skip
    """What stays in the office, in a folder of its own, for its owner's eyes."""
    folder = internal_folder(job)

    def place(name: str) -> Path:
        return outputs.place(folder / name, private=True)

    page = render(summarise(problem, release, findings, origin=origin, internal=True, scores=scores))
    place("report.html").write_text(page, encoding="utf-8")
    write_release(release, place("cells.csv"), problem=problem, confidential=True)
    write_frame(findings.frame(), place("findings.csv"))
    place("findings.json").write_text(findings.to_json(), encoding="utf-8")
    if scores is not None:
        write_frame(scores.ranking(), place("attack.csv"))
    for name, frame in tables.items():
        write_frame(frame, place(name))
    if findings.certificate is not None:
        findings.certificate.save(place("certificate.json.gz"))


def _origin(job: Job) -> Origin:
    files = {name: _sha256(job.resolve(name)) for _, name in input_files(job)}
    command = "" if job.path is None else f"tablesafe run {shlex.quote(job.path.name)}"
    return Origin(job.title, Path(job.source.file).name, command, dump_job(job), files, datetime.now().astimezone())


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
