"""Attack a release as an intruder would, and score the guesses against the truth."""

from __future__ import annotations

from typing import overload

import numpy as np

from tablesafe.attack.estimate import Estimate
from tablesafe.attack.points import ATTACKS, Attack
from tablesafe.attack.view import View
from tablesafe.errors import InvalidOption
from tablesafe.problem import Problem
from tablesafe.release import Release


@overload
def attack(problem: Problem, release: Release, one: Attack, /) -> Estimate: ...


@overload
def attack(problem: Problem, release: Release, /, *attacks: Attack) -> tuple[Estimate, ...]: ...


def attack(problem: Problem, release: Release, /, *attacks: Attack) -> Estimate | tuple[Estimate, ...]:
    """Guess every cell that the release does not show, by one attack or by several; all of them when none is named.

    One attack gives its estimate, several a tuple in the same order. A release without any freedom is no error: its
    cells are known exactly.
    """
    for given in attacks:
        if not callable(getattr(given, "guess", None)) or isinstance(given, type):
            raise InvalidOption(
                f"attack takes attacks such as AnalyticCentre(), got {given!r}.\n\nHint: there are "
                f"{', '.join(kind.__name__ for kind in ATTACKS.values())}; write the brackets."
            )
    view = View.of(problem, release)
    chosen = attacks or tuple(kind() for kind in ATTACKS.values())
    estimates = tuple(_estimate(problem, view, each) for each in chosen)
    return estimates[0] if len(attacks) == 1 else estimates


def _estimate(problem: Problem, view: View, attack: Attack) -> Estimate:
    """The attack's guess in the table's own unit, with what the release says exactly."""
    system, unit = view.system, 10.0**problem.table.decimals
    values = problem.table.value.copy()  # a cell that is not unknown is known, and the release tells the truth
    values[system.cells] = attack.guess(view) / unit
    known = np.ones(len(values), dtype=np.bool_)
    known[system.cells] = ~view.free
    return Estimate(problem, attack.name, values, known)
