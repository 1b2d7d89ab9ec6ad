"""Run a job from end to end."""

from __future__ import annotations

import math
import os
import shlex
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from datetime import datetime
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import polars as pl

from tablesafe.audit.audit import audit
from tablesafe.audit.findings import Findings
from tablesafe.audit.intervals import hopeless
from tablesafe.audit.signing import read_private_key
from tablesafe.core.equations import Mask
from tablesafe.core.errors import InvalidFile, InvalidOption, OutOfTime, concerning, speaking
from tablesafe.core.language import Text, text
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release, Status
from tablesafe.core.statuses import Scheme
from tablesafe.io.frames import write_frame, write_release
from tablesafe.io.patterns import read_pattern
from tablesafe.job import Job, dump_job, load_job
from tablesafe.job.checks import INTERNAL_FILES, internal_folder
from tablesafe.job.words import as_key
from tablesafe.methods import Method
from tablesafe.methods.abilities import needs_records, ready, time_limit_of
from tablesafe.pipeline.attempts import Attempts, noted
from tablesafe.pipeline.checkpoint import Checkpoint, checkpoint
from tablesafe.pipeline.inputs import Inputs, require_extras
from tablesafe.pipeline.outputs import Outputs, together
from tablesafe.pipeline.problems import build_problem
from tablesafe.pipeline.result import Result
from tablesafe.report.plot_names import every_plot_name
from tablesafe.report.progress import Event, Listener, Trace, ignore, progress_bar
from tablesafe.report.summary import Origin
from tablesafe.report.writing import Subject
from tablesafe.work.budget import Budget, necessary
from tablesafe.work.executor import executor_called
from tablesafe.work.run import Run
from tablesafe.work.stopping import heed

if TYPE_CHECKING:
    from tablesafe.attack.suite import Scores
    from tablesafe.methods.cell_key.table import PerturbationTable
    from tablesafe.methods.intervals.leaks import Leaks
    from tablesafe.methods.suppress.stability import Stability

SHOWN = 40
"""Characters of a name that is shown because it is none."""
LEAST_S = 8.0
"""Seconds that the audit may take in any case, and all of a job beside twice its limit: a release that the audit cannot
judge is lost."""
PROTECTING, PROTECTING_MANY = 0.8, 0.9
"""Share of a job's time limit for the method; the rest is for the audit that decides, and its certificate. And the same
where so many cells are sensitive that no intervals can be made exact: the audit goes on from what the search proved."""
WRITING_S, PAGES_S, WRITING = 1.5e-4, 1.5, 0.3
"""Seconds that are kept for writing files, for each cell and for pages with their pictures, and the share of a limit
that this may be: all else ends before that (13,306 cells: 2.1 s of CPU, half of it for pictures)."""
READING, STEPS = 0.5, 20
"""Share of a limit that is left after reading in any case, for reading is not faster in a hurry; and in how many steps
of the limit reading is counted against the method: not to the millisecond, so that the same job gets the same limit."""
A_LITTLE, A_MOMENT_S = 0.05, 2.0
"""Share of a limit, and seconds at most, that attacks may take when it is over."""
HURRIED = "After the stop no attacks were tried, no pictures were drawn, and no workbook was written."

FOREIGN = {".arb": "tablesafe.batch_jobs:run_batch"}
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
    clock, whole = _Clock(), Budget(time_limit_of(job.method))
    with clock.stage("table"):
        problem = _built(job, listen, kept)
        inputs.require_unchanged()
    with clock.stage("protect"), concerning("method"):
        method = ready(job.method, _Files(job, problem))
        inputs.require_unchanged()
    worked = _worked_out(
        job, problem, lambda: build_problem(_unbounded(job), table=problem.table), method, listen, kept, clock, whole
    )
    with clock.stage("write"):
        listen(Event("write", "Writing files"))
        published = worked.safe or job.output.force
        writing = Budget()
        if worked.stopped:  # whoever asks once more wants an end
            writing.stop()
        with heed(writing, Budget() if worked.stopped else None):  # a stop now asks for no less; once more ends it
            files = _write(job, worked, _origin(job, clock.seconds, inputs), published=published)
    kept.finish()
    return worked.result(job, published, files)


def work_out(job: Job, given: Problem, listen: Listener = ignore) -> Worked:
    """All that a job comes to on a problem that was read for it before, and no file: for those who run several jobs."""
    clock, whole = _Clock(), Budget(time_limit_of(job.method))
    with clock.stage("table"):
        problem = build_problem(job, listen, problem=given)
    with clock.stage("protect"), concerning("method"):
        method = ready(job.method, _Files(job, problem))
    never = Checkpoint(internal_folder(job), math.inf, {})
    return _worked_out(
        job, problem, lambda: build_problem(_unbounded(job), problem=given), method, listen, never, clock, whole
    )


@dataclass(frozen=True, eq=False)
class Worked:
    """All that a job has come to, before any file is written."""

    problem: Problem = field(repr=False)
    """As the method saw it: without what gave way."""
    release: Release = field(repr=False)
    findings: Findings = field(repr=False)
    tables: Mapping[str, pl.DataFrame] = field(repr=False)
    trace: Trace = field(repr=False)
    seconds: Mapping[str, float]
    stability: Stability | None
    scores: Scores | None = field(repr=False)
    leaks: Leaks | None = field(repr=False)
    stopped: bool = False
    """Whether somebody is waiting for the end, so that nothing is drawn."""
    spare_s: float = math.inf
    """Seconds that are left for what files say besides."""

    @property
    def safe(self) -> bool:
        """Whether the release may be written."""
        return self.findings.safe and (self.leaks is None or not self.leaks.leaking)

    def subject(self, job: Job, origin: Origin) -> Subject:
        """What reports are about."""
        return Subject(
            problem=self.problem, release=self.release, findings=self.findings, scores=self.scores, leaks=self.leaks,
            trace=self.trace, origin=origin, intervals=job.output.intervals,
            pictures=job.output.pictures and not self.stopped, workbook=not self.stopped, language=job.output.language,
            spare_s=self.spare_s,
        )  # fmt: skip

    def result(
        self,
        job: Job,
        published: bool,
        files: tuple[Path, ...],
        *,
        problem: Problem | None = None,
        release: Release | None = None,
    ) -> Result:
        """What the user gets; a `problem` and its `release` may be one of several that were protected together."""
        return Result(
            job, problem or self.problem, release or self.release, self.findings, published, files, self.seconds,
            self.stability, self.scores, self.leaks, self.trace,
        )  # fmt: skip


def _worked_out(
    job: Job,
    problem: Problem,
    unbounded: Callable[[], Problem],
    method: Method,
    listen: Listener,
    kept: Checkpoint,
    clock: _Clock,
    begun: Budget,
) -> Worked:
    """Protect, audit, attack: what is left of the time when the table is read, without what its files will take."""
    trace = Trace()
    listen(Event("protect", _searching(problem)))
    limit, least = time_limit_of(method), _least(problem)
    at_most, refining = Budget(), None
    whole = begun if limit is None else begun.at_least(READING * limit)
    if limit is not None:
        at_most = necessary(2 * limit + least)
        refining = whole.child(max(whole.left - _writing(job, problem, limit), 0.0))
    with _executing(job) as executor, heed(whole) if limit is not None else nullcontext():
        with clock.stage("protect"):
            how, protecting = _how(job, problem, _both(listen, trace.listen), executor, kept), method
            if limit is not None:
                protecting = replace(method, time_limit_s=_protecting(job, problem, limit, whole.left))  # type: ignore[type-var]
                how = replace(how, budget=whole)
            attempts = Attempts(job.problem, problem, unbounded, protecting, how)
            with concerning("method"):
                release, tables, way = kept.stage("release", attempts.outcome, {"table": problem.table})
            problem = attempts.told(way)
            _tell_end(release, trace, _both(listen, trace.listen))
            if whole.stopped:
                release = noted(release, HURRIED)
        with clock.stage("audit"):
            listen(Event("audit", "Attacking the release"))
            how = replace(how, budget=_for_audit(job, refining or whole, limit, least, at_most.left))
            if job.audit.time_limit_s is None:
                how = replace(how, refining=refining)
            findings = audit(
                problem, release, cells=job.audit.cells, exact=job.audit.exact and not whole.stopped,
                certify=job.audit.certificate, run=how,
            )  # fmt: skip
        with clock.stage("attack"):
            scores = None if whole.stopped else _attacked(job, findings, listen, _for_attacks(whole, limit, refining))
            spare = _for_attacks(whole, limit, refining).left
            leaks = _leaks(findings)
    stable = _stability(problem, release, method)
    return Worked(problem, release, findings, tables, trace, clock.seconds, stable, scores, leaks, whole.stopped, spare)


def _unbounded(job: Job) -> Job:
    """The job with an attacker who knows none of the bounds that it says."""
    return replace(job, problem=replace(job.problem, within_percent=None, spare_levels=False, lower=None, upper=None))


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
    if needs_records(job.method):
        return build_problem(job, listen)
    return kept.stage("problem", lambda: build_problem(job, listen))


def _stability(problem: Problem, release: Release, method: Method) -> Stability | None:
    """How much of last period's pattern is kept, where the job names one."""
    previous = getattr(method, "previous", None)
    if previous is None or isinstance(previous, str):
        return None
    from tablesafe.methods.suppress.stability import stability

    return stability(problem, release, previous)


def _leaks(findings: Findings) -> Leaks | None:
    """What the intervals that a release publishes give away."""
    if findings.release.intervals is None:
        return None
    from tablesafe.methods.intervals.leaks import check_intervals

    return check_intervals(findings.problem, findings.release, findings=findings)


def _executing(job: Job) -> AbstractContextManager[Executor | None]:
    """The executor that the job asks for."""
    asked = job.run
    return executor_called(
        asked.executor,
        asked.workers,
        scheduler=asked.scheduler,
        keys=None if asked.certificates is None else job.resolve(asked.certificates),
        temporary=None if asked.temporary is None else job.resolve(asked.temporary),
    )


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


@dataclass(frozen=True, slots=True)
class _Files:
    """The files of a job, read for its method."""

    job: Job
    problem: Problem

    def pattern(
        self, file: str, *, scheme: Scheme | None, complete: bool = True, ignore_unknown: bool = False
    ) -> Mask:  # fmt: skip
        path = self.job.resolve(file)
        return read_pattern(path, self.problem, scheme=scheme, complete=complete, ignore_unknown=ignore_unknown)

    def perturbation(self, file: str, kind: str) -> PerturbationTable:
        from tablesafe.io.ptable import read_perturbation

        return read_perturbation(self.job.resolve(file), kind=kind)


def _how(job: Job, problem: Problem, listen: Listener, executor: Executor | None, kept: Checkpoint) -> Run:
    """How the method of a job and its audit are run: who works, who hears of it, whom the release must withstand."""

    def progress(cost: float, bound: float) -> None:
        if math.isinf(cost):  # the bound rises, and no pattern is found yet
            listen(Event("protect", message, detail=f": at least {_told(bound)}", bound=bound))
            return
        gap = f", at least {_told(bound)} (gap {(cost - bound) / cost:.1%})" if 0 < bound <= cost else ""
        detail = f": cost {_told(cost)}{gap}"
        listen(Event("protect", message, detail=detail, incumbent=cost, bound=bound))

    def examined(done: float) -> None:
        listen(Event("audit", "Attacking the release", round(100 * done), 100))

    message = _searching(problem)
    memo = kept if kept.wanted else None
    return Run(
        executor=executor, progress=progress, examined=examined, attackers=job.audit.attackers, memo=memo, audits={}
    )  # fmt: skip


def _searching(problem: Problem) -> Text:
    return text("Protecting {many:,} sensitive cells", many=len(problem.sensitive))


def _least(problem: Problem) -> float:
    """What the audit may take in any case, and all of a job beside twice its limit."""
    from tablesafe.methods.suppress.securing import beyond_s

    return LEAST_S + beyond_s(problem.table)


def _protecting(job: Job, problem: Problem, limit: float, left: float) -> float:
    """The seconds of a limit that the method has: of what is `left` after reading, and without what files take."""
    steps = math.floor(STEPS * (limit - left) / limit) if left < limit < math.inf else 0
    seconds = limit * max(1 - steps / STEPS, READING) - _writing(job, problem, limit)
    withheld = 2 * len(problem.sensitive)  # at least, as a rule
    many = hopeless(withheld, withheld, (1 - PROTECTING) * limit)
    return (PROTECTING_MANY if many else PROTECTING) * seconds


def _writing(job: Job, problem: Problem, limit: float) -> float:
    """The seconds of a limit that are kept for writing files."""
    return min(PAGES_S * job.output.pictures + WRITING_S * len(problem.table), WRITING * limit)


def _for_audit(job: Job, whole: Budget, limit: float | None, least: float, left: float) -> Budget:
    """The time for the audit: what the job says, or what is left of the whole, but enough to look at everybody.

    When the user stops, or time is short, intervals are not made exact; what decides is looked at all the same, within
    what is `left` at most.
    """
    if job.audit.time_limit_s is not None or limit is None:
        return Budget(job.audit.time_limit_s)
    if whole.stopped:
        return necessary(least)
    return necessary(max(whole.left, min(limit / 2 + least, left)))


def _for_attacks(whole: Budget, limit: float | None, refining: Budget | None) -> Budget:
    """The time for attacks: what is left until files are written, and a little beyond; none once the user stops."""
    if limit is None or refining is None:
        return Budget()
    some = Budget(max(refining.left, min(limit * A_LITTLE, A_MOMENT_S)))
    some.hurry(whole, 0.0)
    return some


def _attacked(job: Job, findings: Findings, listen: Listener, budget: Budget) -> Scores | None:
    """What an intruder would guess; None when the job wants no attack, or there is nothing to guess, or no time.

    What is published is a guess only where it is not the truth.
    """
    problem, release = findings.problem, findings.release
    if not job.attack.attacks or not len(problem.sensitive):
        return None
    from tablesafe.attack.registry import choose
    from tablesafe.attack.suite import Scores, estimate_by
    from tablesafe.attack.view import View

    listen(Event("attack", "Guessing what the release hides"))
    changed = bool((release.status == Status.CHANGED).any())
    every = choose(job.attack.attacks, seed=job.attack.seed)
    chosen = [each for each in every if changed or not getattr(each, "needs_changes", False)]
    try:
        view = View.of(problem, release, findings.system, budget)
    except OutOfTime:
        return None
    limit = job.attack.time_limit_s
    return Scores.of(estimate_by(each, problem, view, min(limit, budget.left)) for each in chosen)


# -- files ---------------------------------------------------------------------------------------------------------


def _require_writable(job: Job) -> None:
    """Fail before the long work, not after it."""
    require_extras(job)
    if job.audit.key is not None:
        read_private_key(job.resolve(job.audit.key))
    named = [job.resolve(name) for name in (*job.output.release, *job.output.reports)]
    for target in [*named, internal_folder(job) / "report.html"]:
        try:
            folder = next(parent for parent in target.absolute().parents if parent.exists())
        except OSError as error:  # no file can be called that
            raise InvalidFile(
                f"{target.name[:SHOWN]!r} is no name for a file here: {error.strerror}.", hint="give it another name."
            ) from error
        if not folder.is_dir() or not os.access(folder, os.W_OK):
            raise InvalidFile(f"Cannot write {str(target)!r}: {str(folder)!r} is not a folder that may be written to.")


def _write(job: Job, worked: Worked, origin: Origin, *, published: bool) -> tuple[Path, ...]:
    subject = worked.subject(job, origin)
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
        write_internal(job, outputs, subject, worked.tables)
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
    for name in (*INTERNAL_FILES, *every_plot_name()):
        outputs.clear(folder / name)  # the workbook or the scores of another run must not pass for those of this one

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
        from tablesafe.report.plots.named import named_plot

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
