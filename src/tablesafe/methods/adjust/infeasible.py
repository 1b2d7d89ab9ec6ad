"""Why the sensitive cells cannot be moved far enough, and what to allow."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tablesafe.core.equations import Mask
from tablesafe.core.errors import InvalidProblem
from tablesafe.core.problem import Problem
from tablesafe.methods.adjust.instance import Limits, levels, room
from tablesafe.solve.adjustment import Box, LeastChange, Scale

NAMED = 6
"""Cells named in a message."""


def explanation(problem: Problem, limits: Limits, cells: NDArray[np.intp], *, proved: bool) -> InvalidProblem:
    """The error that names what stays behind, what is in the way, and the option or cell that would help."""
    alone = [cell for cell in cells[:20].tolist() if _excess(problem, limits, np.array([cell])) != []]
    stuck = np.array(alone[:1]) if alone else _with_neighbours(problem, cells)
    excess = _excess(problem, limits, stuck)
    table = problem.table
    if len(stuck) == 1:
        head = f"Sensitive cell {table.describe(int(stuck[0]))} cannot be moved far enough."
    else:
        head = f"The sensitive cells {_names(problem, stuck)} cannot all be moved far enough at the same time."
        head = head if proved or excess else head.replace("cannot all", "could not all, in the time given,")
    if excess is None:
        return InvalidProblem(
            f"{head} Even if every cell could move, the attacker's prior bounds leave no room.\n\n"
            f"Hint: lower the protection levels, or widen the prior bounds."
        )
    if not excess:
        zeros = "" if limits.zeros else ", or allow cells of value zero (zeros=True)"
        return InvalidProblem(
            f"{head} Each direction alone is possible, but none was found that serves them all.\n\n"
            f"Hint: raise time_limit_s, or fix fewer cells{zeros}."
        )
    what, remedy = _reason(problem, limits, np.array(excess))
    return InvalidProblem(
        f"{head} In the way: {_names(problem, np.array(excess))} ({what}).\n\n"
        f"Hint: {remedy}, or waive {table.describe(int(stuck[0]))}."
    )


def _with_neighbours(problem: Problem, cells: NDArray[np.intp]) -> NDArray[np.intp]:
    """The cells, and the sensitive ones that share an equation with them: what can be in each other's way."""
    rows = sparse.csr_array(abs(problem.table.equations)).astype(np.float64)
    marked = np.isin(np.arange(len(problem.table)), cells)
    near = rows.T @ (rows @ marked) > 0
    return np.concatenate([cells, np.flatnonzero(near & problem.sensitivity.mask & ~marked)])


def _names(problem: Problem, cells: NDArray[np.intp]) -> str:
    more = f" and {len(cells) - NAMED:,} more" if len(cells) > NAMED else ""
    return ", ".join(problem.table.describe(int(cell)) for cell in cells[:NAMED]) + more


def _reason(problem: Problem, limits: Limits, cells: NDArray[np.intp]) -> tuple[str, str]:
    """What keeps these cells, and what would free them."""
    if problem.frozen[cells].any():
        return "frozen", "unfreeze these cells"
    if limits.chosen is not None and limits.chosen[cells].any():
        return "fixed", "fix fewer cells (fixed_cells)"
    if limits.fixed != "none" and problem.table.is_total[cells].any():
        return "totals that are fixed", "fix no totals (fixed='none')"
    if not limits.zeros and (problem.table.integers[cells] == 0).any():
        return "of value zero", "allow cells of value zero to move (zeros=True)"
    if limits.window is not None:
        return "at the announced deviation", "announce a larger deviation (announce_percent)"
    if limits.times is not None and not limits.capped:
        return "held by sensitive cells at their limits", "let sensitive cells move further (most_times_level)"
    return "at their capacity", "raise capacity_percent, or let capacities give way (relax_capacity=True)"


def _excess(problem: Problem, limits: Limits, cells: NDArray[np.intp]) -> list[int] | None:
    """The cells that would have to move beyond what is allowed so that these move far enough.

    The fewest that one linear program finds, over both directions where there is one cell; None when even that is not
    enough.
    """
    found = [_beyond(problem, limits, cells, sign) for sign in (1, -1)]
    possible = [excess for excess in found if excess is not None]
    return min(possible, key=len) if possible else None


def _beyond(problem: Problem, limits: Limits, cells: NDArray[np.intp], sign: int) -> list[int] | None:
    """The same for one direction; of several cells, those that have room only on the other side go there."""
    up, down = room(problem, limits)
    most_up, most_down = room(problem.replace(frozen=_none(problem)), Limits(zeros=True))
    above, below = levels(problem)
    rises = (most_up >= above)[cells] & ((most_down < below)[cells] | (sign > 0))
    rises = rises if len(cells) > 1 else np.array([sign > 0])
    far, own, widest = (
        np.where(rises, a[cells], b[cells]) for a, b in ((above, below), (up, down), (most_up, most_down))
    )
    if (far > widest).any():
        return None
    n = len(problem.table)
    box = Box.free(np.concatenate([up, most_up]), np.concatenate([down, most_down]))
    for side, least, most, back in (
        (rises, box.rise_least, box.rise_most, box.fall_most),
        (~rises, box.fall_least, box.fall_most, box.rise_most),
    ):
        least[cells[side]], most[cells[side]] = far[side], np.maximum(far, own)[side]
        back[cells[side]] = back[n + cells[side]] = 0.0
    cost = np.concatenate([np.full(n, 1e-6), np.ones(n)])
    columns = sparse.csc_array(sparse.hstack([problem.table.equations, problem.table.equations], dtype=np.float64))
    change = LeastChange(columns, cost, cost, Scale.of(cost, far)).solve(box)
    if change is None:
        return None
    return sorted({*np.flatnonzero(np.abs(change.moves[n:]) > 0.5).tolist(), *cells[far > own].tolist()})


def _none(problem: Problem) -> Mask:
    return np.zeros(len(problem.table), np.bool_)
