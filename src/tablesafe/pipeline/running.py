"""Run a job from end to end."""

from __future__ import annotations

import hashlib
import os
import shlex
import time
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from multiprocessing import get_context
from pathlib import Path

from tablesafe.audit.audit import audit
from tablesafe.audit.findings import Findings
from tablesafe.errors import InvalidFile, InvalidJob
from tablesafe.io.frames import write_frame, write_release
from tablesafe.io.patterns import read_pattern
from tablesafe.job import Job, dump_job, load_job
from tablesafe.job.checks import input_files, internal_folder
from tablesafe.methods import Method, Pattern, Suppress, protect
from tablesafe.pipeline.outputs import Outputs, together
from tablesafe.pipeline.problems import build_problem
from tablesafe.pipeline.result import Result
from tablesafe.problem import Problem
from tablesafe.release import Release
from tablesafe.report.progress import Event, Listener, ignore, progress_bar
from tablesafe.report.summary import Origin, render, summarise


def run(
    job: Job | str | Path,
    *,
    force: bool | None = None,
    progress: bool = False,
    on_event: Listener | None = None,
) -> Result:
    """Run a job: read or tabulate, flag, protect, audit, write.

    A release that fails its audit is not written, unless the job or `force` insists; what the office needs to see why
    is written in any case. All files appear together at the end, or none. `progress` shows a bar on a terminal;
    `on_event` is told of every step.
    """
    if not isinstance(job, Job):
        job = _load(Path(job))
    if force is not None:
        job = replace(job, output=replace(job.output, force=force))
    _require_writable(job)
    with ExitStack() as stack:
        bar = stack.enter_context(progress_bar(enabled=progress))
        return _run(job, _both(bar, on_event or ignore))


def _load(path: Path) -> Job:
    if path.suffix.lower() == ".arb":
        raise InvalidJob(
            f"{path.name} is a batch file of τ-ARGUS, which cannot be run yet.\n\n"
            f"Hint: write its table as a job file; 'tablesafe init' helps."
        )
    return load_job(path)


def _run(job: Job, listen: Listener) -> Result:
    clock = _Clock()
    with clock.stage("table"):
        problem = build_problem(job, listen)
    with clock.stage("protect"):
        listen(Event("protect", f"Protecting {len(problem.sensitive):,} sensitive cells"))
        release = protect(problem, _ready(job, problem, listen))
    with clock.stage("audit"):
        listen(Event("audit", "Attacking the release"))
        findings = _audited(job, problem, release, listen)
    published = findings.safe or job.output.force
    with clock.stage("write"):
        listen(Event("write", "Writing files"))
        files = _write(job, problem, release, findings, published=published)
    return Result(job, problem, release, findings, published, files, clock.seconds)


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
        gap = f": within {(cost - bound) / cost:.0%} of the best" if 0 < bound <= cost else ""
        listen(Event("protect", message, detail=gap))

    message = f"Protecting {len(problem.sensitive):,} sensitive cells"
    match job.method:
        case Pattern():
            return replace(job.method, mask=read_pattern(job.resolve(job.method.file), problem))
        case Suppress():
            return replace(job.method, progress=progress)
        case _:
            return job.method


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


def _write(job: Job, problem: Problem, release: Release, findings: Findings, *, published: bool) -> tuple[Path, ...]:
    origin = _origin(job)
    with together() as outputs:
        if published:
            for name in job.output.release:
                target = outputs.place(job.resolve(name))
                write_release(release, target, labels=job.output.labels, intervals=job.output.intervals)
            if job.output.report is not None:
                page = render(summarise(problem, release, findings, origin=origin, internal=False))
                outputs.place(job.resolve(job.output.report)).write_text(page, encoding="utf-8")
        _write_internal(job, outputs, problem, release, findings, origin)
        return tuple(outputs.written)


def _write_internal(
    job: Job, outputs: Outputs, problem: Problem, release: Release, findings: Findings, origin: Origin
) -> None:
    """What stays in the office, in a folder of its own, for its owner's eyes."""
    folder = internal_folder(job)

    def place(name: str) -> Path:
        return outputs.place(folder / name, private=True)

    page = render(summarise(problem, release, findings, origin=origin, internal=True))
    place("report.html").write_text(page, encoding="utf-8")
    write_release(release, place("cells.csv"), problem=problem, confidential=True)
    write_frame(findings.frame(), place("findings.csv"))
    place("findings.json").write_text(findings.to_json(), encoding="utf-8")
    if findings.certificate is not None:
        findings.certificate.save(place("certificate.json.gz"))


def _origin(job: Job) -> Origin:
    files = {name: _sha256(job.resolve(name)) for _, name in input_files(job)}
    command = "" if job.path is None else f"tablesafe run {shlex.quote(job.path.name)}"
    return Origin(job.title, Path(job.source.file).name, command, dump_job(job), files, datetime.now().astimezone())


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
