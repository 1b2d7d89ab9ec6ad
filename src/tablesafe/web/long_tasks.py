"""Tasks that take long, each in a process of its own: a whole run, attacks on a finished one, measuring several.

And their stop button: an interrupt, as Ctrl-C in a shell, but only at a moment when a method keeps what it has.

At any other moment Ctrl-C ends a run with nothing, which is not what the button says. So a stop waits, if it must,
until a search has its first answer; and once the search is over, there is nothing left to stop.
"""

from __future__ import annotations

import hashlib
import os
import signal
import warnings
from dataclasses import asdict
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import numpy as np

from tablesafe.core.language import frozen, text
from tablesafe.core.machine import ask_again, hear_asks, hold_interrupts, open_private
from tablesafe.web.child import Desk
from tablesafe.web.desk import kept_at, result_of
from tablesafe.web.drafts import JOB_FILE
from tablesafe.work.stopping import ask, heeding

if TYPE_CHECKING:
    from tablesafe.attack.estimate import Estimate
    from tablesafe.core.problem import Problem
    from tablesafe.pipeline import Result
    from tablesafe.report.progress import Event


RETRY_S = 0.2
"""Seconds after which a stop that had to wait is tried again."""
KEEPERS = {
    "tablesafe.methods.suppress.method": "_found",
    "tablesafe.methods.suppress.modular": "clean_up",
    "tablesafe.methods.adjust.controlled_adjustment": "_moves",
    "tablesafe.methods.round.controlled": "round_controlled",
    "tablesafe.methods.views.method": "_improved",
}
"""Where a search goes on that keeps its best answer when it is interrupted: a function of each module."""


def hear_stops() -> None:
    """Hear stops from now on."""
    hear_asks(_asked)


def ignore_stops() -> None:
    """Hear neither stops nor interrupts any more: what is left ends by itself."""
    hear_asks(None)
    try:
        hold_interrupts()
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    except KeyboardInterrupt:  # it came just before
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def _asked(number: int, frame: FrameType | None) -> None:
    if heeding():
        ask()
    elif keeps(frame):
        signal.raise_signal(signal.SIGINT)
    else:
        ask_again(RETRY_S)


def keeps(frame: FrameType | None) -> bool:
    """Whether a search is under way, somewhere below, that has an answer to keep."""
    while frame is not None:
        if KEEPERS.get(frame.f_globals.get("__name__", "")) == frame.f_code.co_name:
            search = frame.f_locals.get("search")
            return search is None or getattr(search, "best", None) is not None
        frame = frame.f_back
    return False


# The tasks.


WORKING = "Working out what anybody can"
MOST_POSSIBLY = 20
"""Cells that are possibly open that the verdict names; the table marks all."""
MOST_DENSITIES = 200
"""Cells whose densities are kept, those in most danger: as many as the ranking has."""
FINISHING = ("write",)
"""Stages in which a run is as good as done: a stop asks for no less. Audit and attacks leave out what is not needed."""


def run_job(desk: Desk) -> dict[str, Any]:
    """Run the job file of this folder; tell every step, keep the result for those who look at it, give its facts.

    A stop makes the method keep the best answer that it has; then the run goes on to its end.
    """
    from tablesafe.pipeline import run

    def listen(event: Event) -> None:
        if event.stage in FINISHING:
            ignore_stops()
        desk.tell(_told(event))

    hear_stops()
    desk.tell({"stage": "start", "message": "Starting"})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = run(desk.folder / JOB_FILE, on_event=listen)
    ignore_stops()
    _keep(kept_at(desk.folder), result)
    return {**facts_of(desk, result), "warnings": [str(each.message) for each in caught if _is_ours(each)]}


def _is_ours(warning: warnings.WarningMessage) -> bool:
    """Whether a warning is for the user: those of other libraries may quote values."""
    return issubclass(warning.category, (UserWarning, RuntimeWarning)) and "tablesafe" in warning.filename


def _told(event: Event) -> dict[str, Any]:
    return {
        "stage": event.stage,
        "message": frozen(event.message),
        "done": event.done,
        "total": event.total,
        "incumbent": event.incumbent,
        "bound": event.bound,
    }


def _keep(path: Path, result: Result) -> None:
    from tablesafe.files.serialization import freeze

    with os.fdopen(open_private(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL), "wb") as file:
        file.write(freeze(result))


def facts_of(desk: Desk, result: Result) -> dict[str, Any]:
    """The run in numbers, with the names of its files relative to its folder; `safe`, `open`, `withheld`, …

    `nothing` says that no cell is published but zeros.
    """
    from tablesafe.report.frontier import method_words

    facts = result.facts()
    facts["files"] = [path.relative_to(desk.folder).as_posix() for path in result.files]
    output = result.job.output
    facts["public"] = [Path(name).as_posix() for name in (*output.release, *output.reports)]
    facts["internal"] = result.internal.relative_to(desk.folder).as_posix()
    facts["lines"] = [frozen(line) for line in result.findings.sentences(shown=5, verdict=result.verdict)]
    possibly = result.verdict.possibly
    facts["possibly"] = [f"{each.cell}: possibly open to {each.attacker}" for each in possibly[:MOST_POSSIBLY]]
    facts["settled_by"] = possibly[0].settled_by if possibly else ""
    facts["nothing"] = not bool((~result.release.suppressed & (result.problem.table.value != 0)).any())
    facts["words"] = method_words(result.job.method)
    facts["table"], facts["problem"] = _identity(result.problem)
    return facts


def _identity(problem: Problem) -> tuple[str, str]:
    """What tells tables, and problems, apart: cells and values; then also what must be hidden, and what is known."""
    table, levels = problem.table, problem.sensitivity
    names = repr([(name, tree.codes) for name, tree in table.dimensions.items()])
    cells = [] if table.names is None else [repr(list(table.names))]
    same = _digest(names, table.codes, table.integers, str(table.decimals), *cells)
    hidden = (levels.mask, levels.lower, levels.upper, levels.sliding)
    return same, _digest(same, *hidden, problem.lower, problem.upper, problem.withheld, problem.frozen)


def attack_run(desk: Desk, run: str, attacks: list[str], seed: int, time_limit_s: float) -> dict[str, Any]:
    """Guess what a finished run hides; one row per attack and a headline. It compares with the truth: internal.

    What each attack finds is told before the next begins, so that a stop keeps it.
    """
    from tablesafe.attack.registry import choose
    from tablesafe.attack.suite import estimate_by
    from tablesafe.attack.view import View

    result = result_of(desk, run)
    chosen = choose(tuple(attacks), seed=seed)
    desk.tell({"message": WORKING, "done": 0, "total": len(chosen)})
    view = View.of(result.problem, result.release, result.findings.system)
    estimates: list[Estimate] = []
    for number, each in enumerate(chosen):
        found = _scored(estimates) if estimates else None
        event = {
            "message": frozen(text("Trying the {attack}", attack=each.name)),
            "done": number,
            "total": len(chosen),
            "found": found,
        }
        desk.tell({"stage": "attack", **event})
        estimates.append(estimate_by(each, result.problem, view, time_limit_s))
    return _scored(estimates)


def _scored(estimates: list[Estimate]) -> dict[str, Any]:
    """What attacks found: scores, cells by risk, and how solutions spread where an attack has many."""
    from tablesafe.attack.suite import Scores
    from tablesafe.report.plots.densities import cell_densities

    found = Scores.of(estimates)
    densities = []
    for estimate in estimates:
        if estimate.density is not None:
            cells, every = cell_densities(estimate, MOST_DENSITIES)
            densities.append({"attack": estimate.attack, "all": every, "cells": [asdict(cell) for cell in cells]})
    return {
        "headline": frozen(found.sentence),
        "attacks": found.frame().to_dicts(),
        "ranking": found.ranking().head(200).to_dicts(),
        "densities": densities,
    }


def measure_runs(desk: Desk, runs: list[str], names: list[str], yardstick: str, time_limit_s: float) -> dict[str, Any]:
    """What the releases of several runs cost and leave open, all judged by the rules of one of them: internal.

    What is known of each release is told before the next is looked at, so that a stop keeps it.
    """
    from tablesafe.report.frontier import ATTACKS, Measured

    problem = result_of(desk, yardstick).problem
    rows: dict[str, Any] = {}
    for number, (run, name) in enumerate(zip(runs, names, strict=True)):
        event = {
            "message": frozen(text("Attacking {release}", release=name)),
            "done": number,
            "total": len(runs),
            "found": {"rows": rows},
        }
        desk.tell({"stage": "measure", **event})
        release = result_of(desk, run).release
        rows[run] = Measured.of(name, problem, release, ATTACKS, 1, time_limit_s).row()
    return {"headline": frozen(text("{many:,} releases are measured.", many=len(rows))), "rows": rows}


def _digest(*parts: Any) -> str:
    """Equal for equal arrays and texts, and hardly ever otherwise."""
    found = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else np.ascontiguousarray(part).tobytes()
        found.update(len(data).to_bytes(8, "big") + data)
    return found.hexdigest()
