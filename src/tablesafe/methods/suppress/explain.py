"""What is said when a sensitive cell cannot be protected, in the user's own codes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tablesafe.core.errors import InvalidProblem, Setting, SolverFailure, TablesafeError, Words, joined
from tablesafe.core.problem import Problem
from tablesafe.methods.suppress.infeasible import Conflict, Demand, Obstacles, Remedy, remedy
from tablesafe.methods.suppress.instance import NOISE
from tablesafe.methods.suppress.levels import satisfied
from tablesafe.work.budget import Budget

LOOKED_AT = 500
"""Other sensitive cells that are looked at before the message is written."""
ZEROS: Words = ("allow cells of value zero (", Setting("zeros", True), ")")
NAMED = 8
"""Cells and sums named in a message."""


def ask_less(problem: Problem, obstacles: Obstacles, failed: Demand, reached: dict[int, tuple[float, float]]) -> None:
    """Note how far a cell can move where its own levels ask for no more; otherwise explain why it cannot."""
    cell, unit, levels = failed.cell, 10.0**problem.table.decimals, problem.sensitivity
    above, below, width = (float(level[cell]) * unit for level in (levels.upper, levels.lower, levels.sliding))
    far = max(failed.level, above, below, width, 1.0)
    rise, fall = (obstacles.reach(Demand(cell, sign, far)) for sign in (1, -1))
    if cell not in reached and satisfied(problem, cell, rise / unit, fall / unit):
        reached[cell] = (rise / unit, fall / unit)
        return
    width = width if above or below or width else 1.0
    lacking = [Demand(cell, 1, above)] if rise < above * (1 - NOISE) else []
    lacking += [Demand(cell, -1, below)] if fall < below * (1 - NOISE) else []
    lacking += [Demand(cell, failed.sign, max(width - (fall if failed.sign > 0 else rise), failed.level * NOISE))]
    raise explanation(problem, obstacles, lacking[0]) from None


def explanation(problem: Problem, obstacles: Obstacles, demand: Demand) -> TablesafeError:
    """The error that says which cells and sums leave a sensitive cell no room, and what to unfreeze."""
    found = remedy(obstacles, demand)
    name = problem.table.describe(demand.cell)
    if found is None:
        return SolverFailure(
            f"No pattern was found that protects sensitive cell {name}, but it is not proved that there is none.",
            hint="try another algorithm, or waive the cell; please report this.",
        )
    unit = 10.0**problem.table.decimals
    reach = obstacles.reach(demand) / unit
    way = "rise" if demand.sign > 0 else "fall"
    far = f"cannot {way} at all" if reach < 1e-6 / unit else f"can {way} by {reach:,.6g} at most"
    head = (
        f"Sensitive cell {name} cannot be protected: it must be able to {way} by {demand.level / unit:,.6g}, but even "
        f"if everything is withheld that may be, it {far}."
    )
    if not found.solved:
        return InvalidProblem(
            f"{head} Even if every cell were withheld, the attacker's prior bounds leave it no room,\n"
            f"{_sums(problem, found.conflicts[-1])}",
            hint="lower its protection levels, or widen the prior bounds of the cells in these sums.",
            about=("cells", demand.cell),
        )
    smallest = min(found.conflicts, key=lambda conflict: len(conflict.cells) + len(conflict.sums))
    others = len(found.conflicts) - 1
    more = "" if not others else f"\nThere {'is one' if others == 1 else f'are {others:,}'} more of its kind."
    also = _also(problem, obstacles, demand.cell)
    return InvalidProblem(
        f"{head}\n{_held(problem, smallest)}\n{_sums(problem, smallest)}{more}{also}",
        hint=joined("; or ", [_unfreeze(problem, found), f"waive {name}."]),
        about=("cells", demand.cell, *_frozen(problem, found.instead or found.unfreeze)[:NAMED]),
    )


def freed(problem: Problem, eligible: Problem, obstacles: Obstacles, failed: Demand, budget: Budget) -> Problem:
    """The problem in which the fewest cells are withheld, frozen or of value zero, that give a sensitive cell away.

    What is withheld so against somebody's wish is noted in the budget, to be told with the release.
    """
    found = remedy(obstacles, failed)
    if found is None or not found.solved or not found.unfreeze:
        raise explanation(eligible, obstacles, failed)
    cells = np.zeros(len(problem.table), dtype=np.bool_)
    cells[list(found.unfreeze)] = True
    ways = [f"{_names(problem, np.flatnonzero(cells & problem.frozen).tolist())} (frozen)"] * bool(
        (cells & problem.frozen).any()
    ) + ["cells of value zero"] * bool((cells & ~problem.frozen).any())
    budget.give_up(
        f"Sensitive cell {problem.table.describe(failed.cell)} can be protected by nothing else: withheld besides, "
        f"though to be published, {' and '.join(ways)} (unprotectable = withhold totals). To avoid that, merge it with "
        f"a neighbour (see ts.redesign)."
    )
    return problem.replace(frozen=problem.frozen & ~cells, suppressed=problem.suppressed | cells)


def _also(problem: Problem, obstacles: Obstacles, cell: int) -> str:
    """Other sensitive cells that their own sums leave no room, so that all can be seen to at once."""
    levels, unit = problem.sensitivity, 10.0**problem.table.decimals
    found = [
        other
        for other in problem.sensitive[:LOOKED_AT].tolist()
        if other != cell
        and any(
            level > 0 and obstacles.stuck(Demand(other, sign, level * unit))
            for sign, level in ((1, float(levels.upper[other])), (-1, float(levels.lower[other])))
        )
    ]
    return f"\nThe same holds, for reasons of their own, for {_names(problem, found)}." if found else ""


def _held(problem: Problem, conflict: Conflict) -> str:
    """The cells that stay as they are, and why each does."""
    cells = np.array(conflict.cells, dtype=np.int64)
    frozen = problem.frozen[cells]
    parts = []
    if frozen.any():
        parts.append(f"{_names(problem, cells[frozen].tolist())} (frozen)")
    if not frozen.all():
        parts.append(f"{_names(problem, cells[~frozen].tolist())} (of value zero, which may not be withheld)")
    return "In the way: " + " and ".join(parts) + ","


def _sums(problem: Problem, conflict: Conflict) -> str:
    shown = [f"  {problem.table.describe_equation(row)}" for row in conflict.sums[:NAMED]]
    more = [f"  and {len(conflict.sums) - NAMED:,} more"] if len(conflict.sums) > NAMED else []
    head = "because of this sum:" if len(conflict.sums) == 1 else "because of these sums:"
    return "\n".join([head, *shown, *more])


def _unfreeze(problem: Problem, found: Remedy) -> Words:
    """What helps: cells to unfreeze, or zeros to allow."""
    frozen = _frozen(problem, found.unfreeze)
    zeros = len(frozen) < len(found.unfreeze)
    if len(found.unfreeze) == 1 and len(found.instead) > 1:
        either = _frozen(problem, found.instead)
        ways: list[Words] = (
            [f"unfreeze {'one of ' if len(either) > 1 else ''}{_names(problem, either)}"] if either else []
        )
        ways += [ZEROS] if len(either) < len(found.instead) else []
        return joined(", or ", ways)
    steps: list[Words] = [f"unfreeze {_names(problem, frozen)}"] if frozen else []
    steps += [ZEROS] if zeros else []
    return joined(" and ", steps)


def _frozen(problem: Problem, cells: Sequence[int]) -> list[int]:
    return [cell for cell in cells if problem.frozen[cell]]


def _names(problem: Problem, cells: Sequence[int]) -> str:
    return problem.table.describe_some(cells, NAMED)
