"""Why the sensitive cells cannot be moved far enough, and what to allow."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import sparse

from tablesafe.core.equations import Floats, Mask
from tablesafe.core.errors import InvalidProblem, Setting, Words, joined
from tablesafe.core.problem import Problem
from tablesafe.methods.adjust.aims import DirectionsName
from tablesafe.methods.adjust.direction_search import Search
from tablesafe.methods.adjust.directions import first
from tablesafe.methods.adjust.instance import Allowance, Instance, Way, capacity, levels, room, whole_up
from tablesafe.methods.adjust.interrupt import until_interrupted
from tablesafe.methods.adjust.repair import NoChange
from tablesafe.solve.least_change import Box, LeastChange
from tablesafe.solve.program import Scale
from tablesafe.work.budget import Budget

NAMED = 6
"""Cells named in a message."""


def explanation(problem: Problem, limits: Allowance, cells: NDArray[np.intp], *, proved: bool) -> InvalidProblem:
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
            f"{head} Even if every cell could move, the attacker's prior bounds leave no room.",
            hint="lower the protection levels, or widen the prior bounds.",
        )
    if not excess:
        zeros: Words = "" if limits.zeros else (", or allow cells of value zero (", Setting("zeros", True), ")")
        return InvalidProblem(
            f"{head} Each direction alone is possible, but none was found that serves them all.",
            hint=joined("", ["raise time_limit_s, or fix fewer cells", zeros, "."]),
        )
    what, remedy = _reason(problem, limits, np.array(excess))
    return InvalidProblem(
        f"{head} In the way: {_names(problem, np.array(excess))} ({what}).",
        hint=joined(", or ", [remedy, f"waive {table.describe(int(stuck[0]))}."]),
    )


def _with_neighbours(problem: Problem, cells: NDArray[np.intp]) -> NDArray[np.intp]:
    """The cells, and the sensitive ones that share an equation with them: what can be in each other's way."""
    rows = sparse.csr_array(abs(problem.table.equations)).astype(np.float64)
    marked = np.isin(np.arange(len(problem.table)), cells)
    near = rows.T @ (rows @ marked) > 0
    return np.concatenate([cells, np.flatnonzero(near & problem.sensitivity.mask & ~marked)])


def _names(problem: Problem, cells: NDArray[np.intp]) -> str:
    return problem.table.describe_some(cells, NAMED)


def _reason(problem: Problem, limits: Allowance, cells: NDArray[np.intp]) -> tuple[str, Words]:
    """What keeps these cells, and what would free them."""
    if problem.frozen[cells].any():
        return "frozen", "unfreeze these cells"
    if limits.chosen is not None and limits.chosen[cells].any():
        return "fixed", "fix fewer cells (fixed_cells)"
    if limits.fixed != "none" and problem.table.is_total[cells].any():
        return "totals that are fixed", ("fix no totals (", Setting("fixed", "none"), ")")
    if not limits.zeros and (problem.table.integers[cells] == 0).any():
        return "of value zero", ("allow cells of value zero to move (", Setting("zeros", True), ")")
    if limits.window is not None:
        return "at the announced deviation", "announce a larger deviation (announce_percent)"
    if limits.times is not None and not limits.capped:
        return "held by sensitive cells at their limits", "let sensitive cells move further (most_times_level)"
    give_way = ("raise capacity_percent, or let capacities give way (", Setting("relax_capacity", True), ")")
    return "at their capacity", give_way


def _excess(problem: Problem, limits: Allowance, cells: NDArray[np.intp]) -> list[int] | None:
    """The cells that would have to move beyond what is allowed so that these move far enough.

    The fewest that one linear program finds, over both directions where there is one cell; None when even that is not
    enough.
    """
    found = [_beyond(problem, limits, cells, sign) for sign in (1, -1)]
    possible = [excess for excess in found if excess is not None]
    return min(possible, key=len) if possible else None


def _beyond(problem: Problem, limits: Allowance, cells: NDArray[np.intp], sign: int) -> list[int] | None:
    """The same for one direction; of several cells, those that have room only on the other side go there."""
    up, down = room(problem, limits)
    most_up, most_down = room(problem.replace(frozen=_none(problem)), Allowance(zeros=True))
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
    change = LeastChange(columns, cost, cost, Scale.middle(cost, far)).solve(box)
    if change is None:
        return None
    return sorted({*np.flatnonzero(np.abs(change.moves[n:]) > 0.5).tolist(), *cells[far > own].tolist()})


def _none(problem: Problem) -> Mask:
    return np.zeros(len(problem.table), np.bool_)


# Capacities that leave no room are raised, step by step: which ones, and how far, is reported.


FLIPS = 100
"""Directions that are turned round, at most, so that less has to be raised."""
LITTLE = 1e-6
"""Raises that do not count: noise of the solver."""


@dataclass(frozen=True, eq=False)
class Relaxation:
    """The capacities that had to be raised, in whole units of the table; empty when all hold."""

    problem: Problem = field(repr=False)
    cells: NDArray[np.intp] = field(repr=False)
    before: Floats = field(repr=False)
    after: Floats = field(repr=False)
    way: Way = field(repr=False)
    """Directions that are feasible with these capacities."""

    def frame(self) -> pl.DataFrame:
        """A row per raised capacity: the cell, its value, what it was allowed to move, and what it is now. Secret."""
        table, unit = self.problem.table, 10.0**self.problem.table.decimals
        where = {name: codes.gather(self.cells.astype(np.uint32)) for name, codes in table.code_columns().items()}
        return pl.DataFrame(
            {**where, "value": table.value[self.cells], "capacity": self.before / unit, "raised to": self.after / unit}
        )

    def raised(self) -> Floats:
        """The capacities that now hold, for all cells; 0 where none was raised."""
        amounts = np.zeros(len(self.problem.table))
        amounts[self.cells] = self.after
        return amounts

    def __str__(self) -> str:
        if not self.cells.size:
            return "All capacities hold."
        most = float(np.max(self.after - self.before)) / 10.0**self.problem.table.decimals
        worst = self.problem.table.describe(int(self.cells[np.argmax(self.after - self.before)]))
        return f"{len(self.cells):,} capacities were raised, by at most {most:,.10g} ({worst})."


def relaxed_capacities(
    problem: Problem, cost: Floats, limits: Allowance, directions: DirectionsName, random: np.random.Generator, *,
    budget: Budget,
) -> Relaxation:  # fmt: skip
    """Raise as few capacities, and as little, as the directions found allow; none where all can hold.

    What a cell moves beyond its capacity is a column of its own that costs; directions are turned round while that
    makes it less. Raises NoChange when no capacities at all would not be enough.
    """
    wide = Instance.of(problem, cost, replace(limits, raised=np.full(len(problem.table), np.inf)))
    if not (wide.can_rise | wide.can_fall).all():
        raise NoChange(np.flatnonzero(~(wide.can_rise | wide.can_fall)), proved=True)
    share = capacity(problem, limits)[wide.cells]
    rise, fall = share.copy(), share.copy()
    rise[wide.targets] = np.maximum(share[wide.targets], wide.above)
    fall[wide.targets] = np.maximum(share[wide.targets], wide.below)
    search = Search(_with_excess(wide, rise, fall), budget, random)
    search.offer(first(problem, wide, directions, random))
    with until_interrupted(search):
        search.flip(time_limit_s=search.left, most=FLIPS, enough=LITTLE)
    assert search.best is not None
    way = search.best.way
    moves = _least_excess(wide, way, rise, fall)
    own = np.where(moves > 0, rise, fall)
    over = np.flatnonzero(np.abs(moves) > own + LITTLE)
    return Relaxation(problem, wide.cells[over], own[over], whole_up(np.abs(moves[over])) + 1.0, way)


def _with_excess(instance: Instance, rise: Floats, fall: Floats) -> Instance:
    """The same problem with two columns a cell: up to its capacity next to nothing, beyond it dear for its size.

    Targets have one column only, without a capacity: a second one could move against the first.
    """
    i = instance
    up, down, dear = np.minimum(i.up, rise), np.minimum(i.down, fall), _dear(rise)
    up[i.targets], down[i.targets] = i.up[i.targets], i.down[i.targets]
    return Instance(
        np.concatenate([i.cells, i.cells]),
        sparse.csc_array(sparse.hstack([i.matrix, i.matrix])),
        np.concatenate([np.full(len(dear), LITTLE * float(dear.min(initial=1.0))), dear]),
        np.concatenate([up, _rest(i.up, up)]),
        np.concatenate([down, _rest(i.down, down)]),
        i.targets, i.above, i.below,
    )  # fmt: skip


def _least_excess(instance: Instance, way: Way, rise: Floats, fall: Floats) -> Floats:
    """Moves in these directions that exceed the capacities by as little as can be, each beside its own size."""
    i, n, box, dear = instance, len(instance.cells), instance.box(way), _dear(rise)
    up, down = np.minimum(box.rise_most, rise), np.minimum(box.fall_most, fall)
    pair = Box(
        np.concatenate([box.rise_least, np.zeros(n)]), np.concatenate([up, _rest(box.rise_most, up)]),
        np.concatenate([box.fall_least, np.zeros(n)]), np.concatenate([down, _rest(box.fall_most, down)]),
    )  # fmt: skip
    cost = np.concatenate([np.full(n, LITTLE * float(dear.min(initial=1.0))), dear])
    columns = sparse.csc_array(sparse.hstack([i.rows, i.rows]))
    change = LeastChange(columns, cost, cost, Scale.middle(dear, np.concatenate([i.above, i.below]))).solve(pair)
    if change is None:
        raise NoChange(np.arange(len(i.targets)), proved=False)
    return np.asarray(change.moves[:n] + change.moves[n:])


def _dear(capacity: Floats) -> Floats:
    """What a unit beyond its capacity costs in each cell."""
    return np.asarray(1.0 / np.maximum(np.where(np.isfinite(capacity), capacity, 1.0), 1.0))


def _rest(all: Floats, part: Floats) -> Floats:
    return np.where(np.isinf(all), np.where(np.isinf(part), 0.0, np.inf), all - np.where(np.isinf(all), 0.0, part))
