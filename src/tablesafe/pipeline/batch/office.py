"""The tables of a batch run, and what stays in the office of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from tablesafe.audit.findings import Findings
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release
from tablesafe.files.read import read_text
from tablesafe.job.arb.model import Batch
from tablesafe.job.checks import INTERNAL
from tablesafe.job.model import AttackOptions, AuditOptions, Dimension, Job, Output, Response, Source
from tablesafe.pipeline.batch.journal import Journal
from tablesafe.pipeline.batch.methods import Chosen
from tablesafe.pipeline.batch.tables import Made, Specified
from tablesafe.pipeline.batch.writing import Writing, named_by, origin_of, refuse_overwriting
from tablesafe.pipeline.outputs import Outputs, together
from tablesafe.pipeline.result import Result
from tablesafe.pipeline.running import write_internal
from tablesafe.report.writing import Subject

REPORT = "report.html"
"""The internal report: where it is, the other internal files of a table are."""


@dataclass(slots=True)
class TableRun:
    """One table of a run: what it is, and how it was protected last."""

    table: Specified
    made: Made
    problem: Problem = field(init=False)
    """As the method saw it: with the attacker's bounds that it was given."""
    release: Release | None = None
    findings: Findings | None = None
    chosen: Chosen | None = None
    seconds: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.problem = self.made.problem

    def protected(
        self,
        problem: Problem,
        release: Release,
        findings: Findings,
        chosen: Chosen,
        seconds: dict[str, float],
    ) -> None:
        """Note how the table was protected; what was done before is forgotten."""
        self.problem, self.release, self.findings = problem, release, findings
        self.chosen, self.seconds = chosen, seconds


def write_all(
    batch: Batch, runs: Sequence[TableRun], writings: Sequence[Writing], journal: Journal, *, force: bool
) -> tuple[tuple[Result, ...], tuple[Path, ...]]:
    """Write every file together, and say of each table what came out."""
    text = read_text(batch.path) if batch.path.exists() else ""
    protected = [(number, run) for number, run in enumerate(runs, start=1) if run.release is not None]
    folders = _folders(batch, protected)
    results = []
    with together() as outputs:
        for number, run in protected:
            assert run.release is not None
            assert run.findings is not None
            own = [writing for writing in writings if writing.table is run.table]
            job = _job(batch, run, own, folders[number])
            before = len(outputs.written)
            for writing in own:
                with journal.at(writing.command.line):
                    _write(writing, outputs, journal, force=force)
            if folders[number] / REPORT not in outputs.written:
                seen = run.findings  # of all linked tables, where there are any
                origin = replace(origin_of(batch, run.table, text), seconds=run.seconds)
                subject = Subject(problem=seen.problem, release=seen.release, findings=seen, origin=origin)
                write_internal(job, outputs, subject, {})
            _keep_proofs(own, run.findings, outputs, folders[number])
            published = force or (run.findings.safe and all(writing.findings.safe for writing in own))
            files = tuple(outputs.written)[before:]
            results.append(Result(job, run.problem, run.release, run.findings, published, files, run.seconds))
        return tuple(results), tuple(outputs.written)


def _folders(batch: Batch, runs: Sequence[tuple[int, TableRun]]) -> dict[int, Path]:
    """A folder for what stays in the office of each table; linked tables share one."""
    base = (batch.path.parent / INTERNAL / batch.path.stem).absolute()
    if len({id(run.findings) for _, run in runs}) == 1:
        return {number: base for number, _ in runs}
    together: dict[int, list[int]] = {}
    for number, run in runs:
        together.setdefault(id(run.findings), []).append(number)
    named = {
        key: ("table " if len(group) == 1 else "tables ") + " ".join(map(str, group)) for key, group in together.items()
    }
    return {number: base / named[id(run.findings)] for number, run in runs}


def _keep_proofs(writings: Sequence[Writing], last: Findings, outputs: Outputs, folder: Path) -> None:
    """The certificates of files that were written before the table was protected in another way."""
    for writing in writings:
        proof = writing.findings.certificate
        if writing.findings is not last and proof is not None:
            proof.save(outputs.place(folder / f"certificate of {writing.path.name}.json.gz", private=True))


def _write(writing: Writing, outputs: Outputs, journal: Journal, *, force: bool) -> None:
    """Write a table, unless it did not pass its audit and nobody insists."""
    line, name = writing.command.line, writing.path.name
    if not writing.findings.safe and not force:
        journal.warn(line, f"{name} is not written: the table did not pass its audit.")
        return
    texts = writing.texts()
    for note in texts.notes:
        journal.warn(line, f"{name}: {note}")
    beside = [(line, writing.path.parent / file.name) for file in texts.files]
    refuse_overwriting(beside, [writing.table.data, *named_by(writing.table.metadata)], journal.batch)
    for file in texts.files:
        place = outputs.place(writing.path.parent / file.name, private=file.confidential)
        place.write_text(file.text, encoding="utf-8", newline="\n")
    if texts.confidential and not any("not for publication" in note for note in texts.notes):
        journal.warn(line, f"{name} holds true values that the release does not: it must stay in the office.")
    if not writing.findings.safe:
        journal.warn(line, f"{name} is written because you insisted: the table did not pass its audit.")
    journal.say(f"Table {writing.table.number} has been written: {name}")


def _job(batch: Batch, run: TableRun, writings: Sequence[Writing], internal: Path) -> Job:
    """The table as a job, for its result: what it is made from, against whom it is protected, where its files are."""
    assert run.chosen is not None
    table = run.table
    return Job(
        title=table.title,
        source=Source(file=str(table.data), metadata=str(table.metadata.path)),
        dimensions={variable.name: Dimension() for variable in table.variables()},
        response=Response(value=() if table.spec.response is None else (table.spec.response,)),
        method=run.chosen.method,
        audit=AuditOptions(insiders=run.chosen.insiders, unions=run.chosen.unions),
        attack=AttackOptions(attacks=()),
        output=Output(release=tuple(str(writing.path.absolute()) for writing in writings), internal=str(internal)),
        path=batch.path,
    )
