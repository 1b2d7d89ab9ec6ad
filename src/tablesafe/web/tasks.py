"""Tasks that take long: a whole run, and attacks on a finished one. Each has a process of its own."""

from __future__ import annotations

import os
import warnings
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from tablesafe.web import stops
from tablesafe.web.child import Desk
from tablesafe.web.desk import kept_at, result_of
from tablesafe.web.drafts import JOB_FILE

if TYPE_CHECKING:
    from tablesafe.pipeline import Result
    from tablesafe.report.progress import Event

FINISHING = ("audit", "attack", "write")
"""Stages in which a run is as good as done: a stop asks for no less."""


def run_job(desk: Desk) -> dict[str, Any]:
    """Run the job file of this folder; tell every step, keep the result for those who look at it, give its facts.

    A stop makes the method keep the best answer that it has; then the run goes on to its end.
    """
    from tablesafe.pipeline import run

    def listen(event: Event) -> None:
        if event.stage in FINISHING:
            stops.finish()
        desk.tell(_told(event))

    stops.listen()
    desk.tell({"stage": "start", "message": "Starting"})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = run(desk.folder / JOB_FILE, on_event=listen)
    stops.finish()
    _keep(kept_at(desk.folder), result)
    return {**facts_of(desk, result), "warnings": [str(each.message) for each in caught if _is_ours(each)]}


def _is_ours(warning: warnings.WarningMessage) -> bool:
    """Whether a warning is for the user: those of other libraries may quote values."""
    return issubclass(warning.category, (UserWarning, RuntimeWarning)) and "tablesafe" in warning.filename


def _told(event: Event) -> dict[str, Any]:
    return {
        "stage": event.stage,
        "message": event.message,
        "done": event.done,
        "total": event.total,
        "detail": event.detail,
        "incumbent": event.incumbent,
        "bound": event.bound,
    }


def _keep(path: Path, result: Result) -> None:
    from tablesafe.frozen import freeze

    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(freeze(result))


def facts_of(desk: Desk, result: Result) -> dict[str, Any]:
    """The run in numbers, with the names of its files relative to its folder; `safe`, `open`, `withheld`, …"""
    facts = result.facts()
    facts["files"] = [path.relative_to(desk.folder).as_posix() for path in result.files]
    output = result.job.output
    facts["public"] = [PurePosixPath(name).as_posix() for name in (*output.release, *output.reports)]
    facts["internal"] = result.internal.relative_to(desk.folder).as_posix()
    facts["findings"] = result.findings.text(shown=5)
    return facts


def attack_run(desk: Desk, run: str, attacks: list[str], seed: int, time_limit_s: float) -> dict[str, Any]:
    """Guess what a finished run hides; one row per attack and a headline. It compares with the truth: internal."""
    from tablesafe.attack.registry import choose
    from tablesafe.attack.scores import Scores
    from tablesafe.attack.suite import estimate_by
    from tablesafe.attack.view import View

    result = result_of(desk, run)
    chosen = choose(tuple(attacks), seed=seed)
    view, estimates = View.of(result.problem, result.release), []
    for number, each in enumerate(chosen):
        desk.tell({"stage": "attack", "message": f"Trying the {each.name}", "done": number, "total": len(chosen)})
        estimates.append(estimate_by(each, result.problem, view, time_limit_s))
    found = Scores.of(estimates)
    return {
        "headline": found.headline,
        "attacks": found.frame().to_dicts(),
        "ranking": found.ranking().head(200).to_dicts(),
    }
