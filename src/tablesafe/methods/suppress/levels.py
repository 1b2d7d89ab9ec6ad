"""What is asked of each sensitive cell: its levels, a margin beyond them, and a side for the width that slides.

Nothing is asked of unseen cells of linked tables that stay hidden whatever is published.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from tablesafe.audit.outsiders import LEAST_WIDTH
from tablesafe.audit.protection import protection
from tablesafe.audit.system import System, snapped
from tablesafe.core.equations import Floats, Mask
from tablesafe.core.errors import InvalidProblem
from tablesafe.core.problem import Problem
from tablesafe.methods.suppress.branch_and_cut.targets import Targets
from tablesafe.methods.suppress.instance import NOISE, Instance

A_PART = 2.0**-7
"""Share of the smallest room by which a cell must move that must only not be known: any deviation moves it further."""


def refuse_levels_beyond_bounds(problem: Problem) -> None:
    """Fail where the attacker's own bounds contradict the levels: no pattern could ever protect such a cell."""
    cells, table = problem.sensitive, problem.table
    up, down = _room(problem)
    levels = problem.sensitivity
    above, below, width = levels.upper[cells], levels.lower[cells], levels.sliding[cells]
    known = (above == 0) & (below == 0) & (width == 0) & (up + down == 0)
    for bad, told in (
        (_exceeds(above, up), _told("it must be able to rise by {:,g}, but they end {:,g} above it", above, up)),
        (_exceeds(below, down), _told("it must be able to fall by {:,g}, but they end {:,g} below it", below, down)),
        (_exceeds(width, up + down), _told("its interval must be {:,g} wide, they are {:,g}", width, up + down)),
        (known, _told("they give its value away", above, up)),
    ):
        if bad.any():
            at = int(np.flatnonzero(bad)[0])
            more = f" The same holds for {int(bad.sum()) - 1:,} more cells." if bad.sum() > 1 else ""
            raise InvalidProblem(
                f"Sensitive cell {table.describe(int(cells[at]))} cannot be protected: the attacker's prior bounds "
                f"leave it no room ({told(at)}).{more}",
                hint="lower its protection levels, or widen its prior bounds.",
            )


def _told(text: str, asked: Floats, there: Floats) -> Callable[[int], str]:
    return lambda at: text.format(asked[at], there[at])


def _exceeds(level: Floats, room: Floats) -> Mask:
    return level > room * (1 + NOISE) + NOISE


def _room(problem: Problem) -> tuple[Floats, Floats]:
    """How far the prior bounds lie above and below each sensitive cell."""
    cells = problem.sensitive
    value = problem.table.value[cells]
    return problem.upper[cells] - value, value - problem.lower[cells]


def demanded(problem: Problem, margin: float, reached: Mapping[int, tuple[float, float]]) -> Problem:
    """The problem with levels on each side that ask for everything: margin, sliding level, and not to be known.

    A sliding level goes to the side with more room. A cell that must only not be known is asked to move by a unit
    where it can. `reached` says for some cells how far they can rise and fall at most: what is asked beyond
    the levels themselves goes no further than that.
    """
    above, below, width, up, down = _asked(problem, margin, reached)
    cells, levels = problem.sensitive, problem.sensitivity
    missing = np.maximum(width - above - below, 0.0)
    rises = up - above >= down - below
    first = np.minimum(missing, np.maximum(np.where(rises, up - above, down - below), 0.0))
    rest = missing - first
    lower, upper = levels.lower.copy(), levels.upper.copy()
    upper[cells] = above + np.where(rises, first, rest)
    lower[cells] = below + np.where(rises, rest, first)
    sensitivity = replace(levels, lower=lower, upper=upper, sliding=np.zeros_like(levels.sliding))
    return problem.replace(sensitivity=sensitivity)


def _asked(
    problem: Problem, margin: float, reached: Mapping[int, tuple[float, float]]
) -> tuple[Floats, Floats, Floats, Floats, Floats]:
    """How far each sensitive cell must rise, fall, and both together, and how far it can rise and fall."""
    cells, levels = problem.sensitive, problem.sensitivity
    up, down = (room.copy() for room in _room(problem))
    for cell, (rise, fall) in reached.items():
        at = int(np.searchsorted(cells, cell))
        up[at], down[at] = rise, fall
    above, below, width = levels.upper[cells], levels.lower[cells], levels.sliding[cells]
    bare = (above == 0) & (below == 0) & (width == 0)
    width = np.where(bare, _least(problem, np.maximum(up, down)), width * (1 + margin))
    above = np.maximum(above, np.minimum(above * (1 + margin), up))
    below = np.maximum(below, np.minimum(below * (1 + margin), down))
    return above, below, width, up, down


def exactly(
    problem: Problem, margin: float, reached: Mapping[int, tuple[float, float]], instance: Instance
) -> Targets | None:
    """What is asked of each cell, without a side for the width that slides; None where no side was chosen.

    A cell that must only not be known has to move by something.
    """
    above, below, width, up, down = _asked(problem, margin, reached)
    bare = (above == 0) & (below == 0) & (problem.sensitivity.sliding[problem.sensitive] == 0)
    slides = bare | (width > above + below)
    if not slides.any():
        return None
    unit = 10.0**problem.table.decimals
    width = np.where(bare, something(instance), np.minimum(width, up + down) * unit)
    cell = problem.sensitive
    demands = [(above * unit, instance.up[cell], 1), (below * unit, instance.down[cell], -1)]
    parts = [Targets(cell[slides], np.zeros(int(slides.sum()), np.int8), width[slides])]
    for level, room, sign in demands:
        level = np.where(level <= room + NOISE * np.maximum(room, 1.0), np.minimum(level, room), level)
        own = np.flatnonzero(level > 0)
        parts.append(Targets(cell[own], np.full(len(own), sign, np.int8), level[own]))
    return Targets(
        np.concatenate([part.cell for part in parts]),
        np.concatenate([part.sign for part in parts]),
        np.concatenate([part.level for part in parts]),
    )


def something(instance: Instance) -> float:
    """How far a cell must be able to move that must only not be known: a small part of the smallest room there is."""
    rooms = np.concatenate([instance.up, instance.down])
    return A_PART * min(float(rooms[rooms > 0].min(initial=1.0)), 1.0)


def _least(problem: Problem, widest: Floats) -> Floats:
    """How far cells must move that must only not be known: a unit, or less where bounds would stand in the way."""
    unit, value = 10.0**-problem.table.decimals, problem.table.value
    rooms = np.concatenate([problem.upper - value, value - problem.lower])
    smallest = max(float(rooms[rooms > 0].min(initial=unit)), unit / 1000)
    return np.where((widest < unit) | (smallest < unit), np.minimum(widest, smallest) / 2, unit)


def satisfied(problem: Problem, cell: int, rise: float, fall: float) -> bool:
    """Whether a cell that can rise and fall so far is protected as its levels ask."""
    levels = problem.sensitivity
    above, below, width = levels.upper[cell], levels.lower[cell], levels.sliding[cell]
    if above == 0 and below == 0 and width == 0:
        return rise + fall > 0
    slack = 1 - NOISE
    return bool(rise >= above * slack and fall >= below * slack and rise + fall >= width * slack)


def looked_after(problem: Problem) -> Problem:
    """The problem without the sensitive unseen cells that stay hidden when everything shown is published.

    What is withheld only widens an interval, so these are protected by any pattern; in most cubes that is nearly all
    of them. The audit still judges every one.
    """
    table, levels = problem.table, problem.sensitivity
    if table.unseen is None or not bool((levels.mask & table.unseen).any()):
        return problem
    if problem.unjudged:  # of very many, those are judged that do not stay hidden
        return problem
    unknown, unit = np.flatnonzero(table.unseen), 10.0**table.decimals
    lower, upper = snapped(problem.lower[unknown] * unit), snapped(problem.upper[unknown] * unit)
    system = System.over(table, unknown, lower, upper)
    at = np.flatnonzero(levels.mask[unknown])
    cells = unknown[at]
    value = table.integers[cells].astype(np.float64)
    down, up, wide = (level[cells] * unit for level in (levels.lower, levels.upper, levels.sliding))
    wide = np.where((down == 0) & (up == 0) & (wide == 0), LEAST_WIDTH, wide)
    seen = protection(system, at, value - down, value + up, wide)
    hidden = np.zeros(len(table), dtype=np.bool_)
    hidden[cells[seen.protected]] = True
    return problem.replace(sensitivity=levels.where(~hidden))
