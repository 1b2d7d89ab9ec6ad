"""Why the sensitive cells cannot be moved far enough, and what to allow."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tablesafe.equations import Mask
from tablesafe.errors import InvalidProblem
from tablesafe.methods.adjust.instance import Instance, Limits, levels, room
from tablesafe.problem import Problem
from tablesafe.solve.adjustment import Box, LeastChange, Scale

NAMED = 6
"""Cells named in a message."""


def explanation(problem: Problem, limits: Limits, cells: NDArray[np.intp], *, proved: bool) -> InvalidProblem:
    """The error that names what stays behind, what is in the way, and the option or cell that would help."""
    alone = [cell for cell in cells[:20].tolist() if _excess(problem, limits, np.array([cell])) != []]
    stuck = np.array(alone[:1]) if alone else cells
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
        return InvalidProblem(
            f"{head} Each direction alone is possible, but none was found that serves them all.\n\n"
            f"Hint: raise time_limit_s, fix fewer cells, or allow cells of value zero (zeros=True)."
        )
    what, remedy = _reason(problem, limits, np.array(excess))
    return InvalidProblem(
        f"{head} In the way: {_names(problem, np.array(excess))} ({what}).\n\n"
        f"Hint: {remedy}, or waive {table.describe(int(stuck[0]))}."
    )


def _names(problem: Problem, cells: NDArray[np.intp]) -> str:
    more = f" and {len(cells) - NAMED:,} more" if len(cells) > NAMED else ""
    return ", ".join(problem.table.describe(int(cell)) for cell in cells[:NAMED]) + more


def _reason(problem: Problem, limits: Limits, cells: NDArray[np.intp]) -> tuple[str, str]:
    """What keeps these cells, and what would free them."""
    if problem.frozen[cells].any():
        return "frozen", "unfreeze these cells"
    if limits.fixed != "none" and problem.table.is_total[cells].any():
        return "totals that are fixed", "fix no totals (fixed='none')"
    if not limits.zeros and (problem.table.integers[cells] == 0).any():
        return "of value zero", "allow cells of value zero to move (zeros=True)"
    if limits.window is not None:
        return "at the announced deviation", "announce a larger deviation (announce_percent)"
    return "at their capacity", "raise capacity_percent"


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
    n = len(problem.table)
    box = Box.free(np.concatenate([up, most_up]), np.concatenate([down, most_down]))
    rises = np.where(most_up[cells] < above[cells], False, (most_down[cells] < below[cells]) | (sign > 0))
    if len(cells) == 1:
        rises = np.array([sign > 0])
    for cell, rise in zip(cells.tolist(), rises.tolist(), strict=True):
        far, limit, least, most = (
            (above, up, box.rise_least, box.rise_most) if rise else (below, down, box.fall_least, box.fall_most)
        )
        least[cell], most[cell] = far[cell], max(far[cell], limit[cell])
        if far[cell] > (most_up if rise else most_down)[cell]:
            return None
    cost = np.concatenate([np.full(n, 1e-6), np.ones(n)])
    columns = sparse.csc_array(sparse.hstack([problem.table.equations, problem.table.equations], dtype=np.float64))
    scale = Scale.of(cost, np.concatenate([above[cells], below[cells]]))
    change = LeastChange(columns, cost, cost, scale).solve(box)
    if change is None:
        return None
    over = np.flatnonzero(np.abs(change.moves[n:]) > 0.5).tolist()
    tight = [cell for cell in cells.tolist() if _over(Instance, cell, up, down, above, below)]
    return sorted({*over, *tight})


def _none(problem: Problem) -> Mask:
    return np.zeros(len(problem.table), np.bool_)
