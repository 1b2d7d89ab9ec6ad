"""Attack a release as an intruder would, and score the guesses against the truth."""

from __future__ import annotations

from time import perf_counter
from typing import overload

import numpy as np

from tablesafe.attack.estimate import Estimate
from tablesafe.attack.guess import Attack, Guess
from tablesafe.attack.registry import ATTACKS
from tablesafe.attack.view import View
from tablesafe.core.errors import InvalidOption, OutOfTime, SolverFailure
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release, require_problem_and_release
from tablesafe.work.budget import Budget


@overload
def attack(problem: Problem, release: Release, one: Attack, /, *, time_limit_s: float | None = None) -> Estimate: ...


@overload
def attack(
    problem: Problem, release: Release, /, *attacks: Attack, time_limit_s: float | None = None
) -> tuple[Estimate, ...]: ...


def attack(
    problem: Problem, release: Release, /, *attacks: Attack, time_limit_s: float | None = None
) -> Estimate | tuple[Estimate, ...]:
    """Guess every cell that the release does not show, by one attack or by several; all of them when none is named.

    One attack gives its estimate, several a tuple in the same order. Each may take `time_limit_s` seconds: what guesses
    from many solutions then guesses from fewer, the others have no answer, and the estimate's note says so. A release
    without any freedom is no error: its cells are known exactly.
    """
    for given in attacks:
        if not callable(getattr(given, "guess", None)) or isinstance(given, type):
            raise InvalidOption(
                f"attack takes attacks such as AnalyticCentre(), got {given!r}.\n\nHint: there are "
                f"{', '.join(kind.__name__ for kind in ATTACKS.values())}; write the brackets."
            )
    if time_limit_s is not None and not time_limit_s > 0:
        raise InvalidOption(f"'time_limit_s' must be above 0, got {time_limit_s}.")
    require_problem_and_release("attack", problem, release)
    view = View.of(problem, release)
    chosen = attacks or tuple(kind() for kind in ATTACKS.values())
    estimates = tuple(estimate_by(each, problem, view, time_limit_s) for each in chosen)
    return estimates[0] if len(attacks) == 1 else estimates


def estimate_by(attack: Attack, problem: Problem, view: View, time_limit_s: float | None = None) -> Estimate:
    """The attack's guess in the table's own unit, with what the release says exactly."""
    system, unit = view.system, 10.0**problem.table.decimals
    begin = perf_counter()
    try:
        guess = attack.guess(view, Budget(time_limit_s))
    except OutOfTime:
        guess = _none(view, f"no answer within {time_limit_s:g} seconds")
    except (SolverFailure, np.linalg.LinAlgError) as failure:  # the other attacks go on
        guess = _none(view, f"no answer: {failure}")
    values = problem.table.value.copy()  # a cell that is not unknown is known, and the release tells the truth
    values[system.cells] = guess.values / unit
    known = np.ones(len(values), dtype=np.bool_)
    known[system.cells] = ~view.free
    density = None if guess.density is None else guess.density.over(unit)
    seconds = perf_counter() - begin
    return Estimate(problem, attack.name, values, known, system.cells, density, guess.note, seconds)


def _none(view: View, note: str) -> Guess:
    return Guess(np.where(view.free, np.nan, view.lower), note=note)
