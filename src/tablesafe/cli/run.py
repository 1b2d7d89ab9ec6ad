"""`tablesafe run`: a job from end to end."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from tablesafe.cli.exits import Exit
from tablesafe.cli.show import print_json, say, warn
from tablesafe.core.language import Code

if TYPE_CHECKING:
    from tablesafe.batch_jobs import BatchResult
    from tablesafe.job.model import Job
    from tablesafe.pipeline import Result


def run(
    job: Path,
    /,
    *,
    json: Annotated[bool, Parameter(help="print one JSON document and nothing else")] = False,
    force: Annotated[bool, Parameter(help="write the release even if its audit finds it open")] = False,
    quiet: Annotated[bool, Parameter(help="print nothing when all is well")] = False,
    resume: Annotated[bool, Parameter(help="go on from the checkpoint of a run that was stopped")] = False,
    language: Annotated[
        Code | None, Parameter(help="language of the pages, instead of the one that the job names")
    ] = None,
) -> int:
    """Run a job file: tabulate, flag, protect, audit, write.

    A release that fails its audit is not written, and the exit code is 1; the findings are, in the internal folder.
    A run that was stopped after a minute or more leaves a checkpoint, which is confidential: with --resume the next one
    goes on from there, and without it begins anew.
    A batch file of τ-ARGUS (.arb) runs as it is; what is done otherwise than τ-ARGUS would is said as a warning.

    Parameters
    ----------
    job
        the job file, or a batch file of τ-ARGUS (.arb)
    """
    from tablesafe.batch_jobs import BatchResult
    from tablesafe.pipeline import run as run_job

    try:
        asked = in_language(job, language)
        result = run_job(asked, force=True if force else None, progress=not (json or quiet), resume=resume)
    except BaseException:
        say_resumable(job, quiet=json)
        raise
    code = Exit.OK if result.safe and (force or result.published) else Exit.UNSAFE
    if json:
        print_json({**result.facts(), "exit_code": int(code)})
    elif isinstance(result, BatchResult):
        show_batch(result, quiet=quiet)
    else:
        show_result(result, quiet=quiet)
    return code


def in_language(job: Path, language: Code | None) -> Path | Job:
    """The job itself, or with another language for its page."""
    if language is None:
        return job
    from dataclasses import replace

    from tablesafe.core.errors import InvalidOption
    from tablesafe.job.load import load_job

    if job.suffix.lower() == ".arb":
        raise InvalidOption("A batch file of τ-ARGUS writes no report for the public.", hint="leave --language out.")
    given = load_job(job)
    return replace(given, output=replace(given.output, language=language))


def say_resumable(path: Path, *, quiet: bool) -> None:
    """Say where a run that was stopped has left what it had, if it has."""
    from tablesafe.job import load_job
    from tablesafe.pipeline.checkpoint import left_by

    with suppress(Exception):
        folder = None if path.suffix.lower() == ".arb" else left_by(load_job(path))
        if folder is not None and not quiet:
            warn(f"What was worked out so far is kept in {folder}; it is confidential. --resume goes on from there.")


def show_batch(batch: BatchResult, *, quiet: bool = False) -> None:
    """Say what came out of each table of a batch file, and what was done otherwise than it says."""
    for warning in batch.warnings:
        warn(warning)
    for result in batch.results:
        show_result(result, quiet=quiet)
    if not quiet and not batch.results:
        read = "1 table was" if len(batch.problems) == 1 else f"{len(batch.problems)} tables were"
        say(f"{read} read; the file asks neither to protect nor to write one.")
    if not quiet:
        own = {path for result in batch.results for path in result.files}
        for path in batch.files:
            if path not in own:
                say(f"  {path}")


def show_result(result: Result, *, quiet: bool = False) -> None:
    """Say what came out, and where it lies."""
    facts = result.facts()
    if quiet and result.safe:
        return
    if facts["title"]:
        say(facts["title"], style="bold")
    say(result.findings.text(shown=5, values=False, verdict=result.verdict), style="green" if result.safe else "red")
    for note in () if result.release.solution is None else result.release.solution.notes:
        say(note, style="yellow")
    if result.leaks is not None:
        say(str(result.leaks), style="green" if result.leaks.safe else "red")
    if not result.published:
        say("The release was not written. --force writes it all the same.", style="bold red")
        for path in (result.job.resolve(name) for name in result.job.output.release):
            if path.exists():
                say(f"{path} is from an earlier run.", style="bold red")
    elif not result.safe:
        say("The release was written because you insisted: do not publish it.", style="bold red")
    say("Files:")
    for path in result.files:
        secret = "  (internal)" if path.parent == result.internal else ""
        say(f"  {path}{secret}")
