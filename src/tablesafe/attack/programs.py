"""Estimates from many linear programs: each of m unknown cells minimised and maximised, and their sum: 2·(m + 1).

(Dandekar, "Protecting Sensitive Tabular Data by Complementary Cell Suppression: Myth & Reality", Tables 4 and 5.) Cells
of different components move independently, so each component has programs of its own. Cells that move in step have the
same programs, which are solved once and counted as often as they are asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from math import inf
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from tablesafe.attack.centres import face_centre
from tablesafe.attack.estimate import Guess, Summary, Tally
from tablesafe.attack.feasible_region import FeasibleRegion
from tablesafe.attack.optima import Vertices
from tablesafe.attack.view import View
from tablesafe.core.equations import Floats, Mask
from tablesafe.core.errors import OutOfTime, SolverFailure
from tablesafe.solve.interior import Predictor
from tablesafe.work.budget import ENDLESS, Budget

Least = Callable[[NDArray[np.intp], float], Floats | None]
"""A solution in which a sum of columns, times a sign, is least; no columns, nothing to minimise. None: no least."""
Solver = Callable[[FeasibleRegion, Floats, Budget], Least]
"""Solves the programs over one component, of which a central point is given."""
Moved = Literal["unknown", "sensitive"]

_SUMMARY: Summary = field(default="mean", metadata={"help": "what to guess: mean, or peak of the density"})
_SEED: int = field(default=1, metadata={"help": "order of the programs, for when time does not suffice for all"})
_MOVED: Moved = field(
    default="unknown",
    metadata={"help": "cells to minimise and maximise; the programs of the others then have nothing to minimise"},
)


@dataclass(frozen=True, slots=True, kw_only=True)
class VertexMean:
    """Guess the mean of the corners that the simplex method finds for each unknown cell's minimum and maximum.

    When time is up the programs solved so far count: they are taken in random order.
    """

    name: ClassVar[str] = "mean of vertices"

    estimate: Summary = _SUMMARY
    moved: Moved = _MOVED
    seed: int = _SEED

    def guess(self, view: View, budget: Budget = ENDLESS) -> Guess:
        """Two programs per unknown cell, two per component."""
        return _over_programs(view, _vertices, self.estimate, self.moved, self.seed, budget)


@dataclass(frozen=True, slots=True, kw_only=True)
class InteriorMean:
    """Guess the mean of the interior solutions for each unknown cell's minimum and maximum.

    Where many tables are optimal, an interior-point solver stops amid them: nearer to the truth than a corner. An
    infeasible start stops where the predictor–corrector method does (as PCx); centres are those of the optimal faces.
    """

    name: ClassVar[str] = "mean of interior solutions"

    estimate: Summary = _SUMMARY
    moved: Moved = _MOVED
    solutions: Literal["infeasible start", "centres"] = field(
        default="infeasible start", metadata={"help": "where the solver stops among the optimal tables"}
    )
    seed: int = _SEED

    def guess(self, view: View, budget: Budget = ENDLESS) -> Guess:
        """Two programs per unknown cell, two per component."""
        solver = _centres if self.solutions == "centres" else _interior
        return _over_programs(view, solver, self.estimate, self.moved, self.seed, budget)


def _vertices(room: FeasibleRegion, centre: Floats, budget: Budget) -> Least:
    vertices = Vertices(room.matrix, room.rhs, room.prior_lower, room.prior_upper, budget=budget)
    return lambda cells, sign: vertices.least(cells, sign) if len(cells) else vertices.first


def _interior(room: FeasibleRegion, centre: Floats, budget: Budget) -> Least:
    program = Predictor(room.matrix, room.rhs, room.prior_lower, room.prior_upper)
    return lambda cells, sign: program.least(_cost(room, cells, sign), budget=budget)


def _centres(room: FeasibleRegion, centre: Floats, budget: Budget) -> Least:
    return lambda cells, sign: face_centre(room, _cost(room, cells, sign), centre, budget=budget)


def _cost(room: FeasibleRegion, cells: NDArray[np.intp], sign: float) -> Floats:
    cost = np.zeros(len(room))
    cost[cells] = sign
    return cost


def _over_programs(view: View, solver: Solver, summary: Summary, moved: Moved, seed: int, budget: Budget) -> Guess:
    """Solve the programs of each component, the small ones first, for as long as the budget allows."""
    random, free = np.random.default_rng(seed), np.flatnonzero(view.free)
    tally, solved, wanted = Tally(view.lower, view.upper), 0, 0
    centre = view.centre(budget) if solver is _centres else view.room.anchor
    left = len(view.room)
    for cells in view.room.members():
        room, own, share = view.room.part(cells), free[cells], budget.share(len(cells) / left)
        wanted, left = wanted + 2 * (len(cells) + 1), left - len(cells)
        asked = view.sensitive[own] if moved == "sensitive" else np.ones(len(cells), np.bool_)
        for point, times in _solutions(room, solver(room, centre[cells], share), asked, random, share):
            tally.add(point, own, times)
            solved += times
    density = tally.density()
    late = solved < wanted and budget.left < inf
    note = f"{solved:,} of {wanted:,} programs" + (", for want of time" if late else "")
    return Guess(view.filled(density.at(summary)[view.free]), density, note)


def _solutions(
    room: FeasibleRegion, least: Least, asked: Mask, random: np.random.Generator, budget: Budget
) -> Iterator[tuple[Floats, int]]:
    """The solutions over one component, with the number of programs that each one answers."""
    for cells, sign, times in _questions(room, asked, random):
        if budget.over:
            return
        try:
            point = least(cells, sign)
        except OutOfTime:
            return
        except SolverFailure:  # one program of many
            continue
        if point is not None:
            yield point, times


def _questions(
    room: FeasibleRegion, asked: Mask, random: np.random.Generator
) -> Iterator[tuple[NDArray[np.intp], float, int]]:
    """What to minimise, and how many of the programs that answers: sums first, then the cells in random order."""
    every = np.arange(len(room))
    if np.isfinite(room.lower).all() and np.isfinite(room.upper).all():
        yield from ((every, 1.0, 1), (every, -1.0, 1))
    if not asked.all():
        yield every[:0], 1.0, 2 * int((~asked).sum())
    leader, twins = np.unique(room.twins[asked], return_counts=True)
    for at in random.permutation(len(leader)).tolist():
        cell = leader[at]
        if np.isfinite(room.lower[cell]):
            yield leader[at : at + 1], 1.0, int(twins[at])
        if np.isfinite(room.upper[cell]):
            yield leader[at : at + 1], -1.0, int(twins[at])
