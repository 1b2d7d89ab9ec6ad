"""A first change of a table too deep for one linear program: sensitive cells take their steps box by box.

Nothing has moved at first. Box after box of cells is settled at least cost, its sensitive cells at their distance, the
totals above free to give way where they must: so most never move. Whole numbers from the beginning.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from time import monotonic

import numpy as np

from tablesafe.core.equations import Floats
from tablesafe.core.errors import OutOfTime
from tablesafe.methods.adjust.blocks import Regions
from tablesafe.methods.adjust.instance import Instance, Way
from tablesafe.methods.adjust.means import Means
from tablesafe.methods.adjust.repair import NoChange, elastic, repaired
from tablesafe.solve.adjustment import Box, LeastChange, Scale

BOX = 600
"""Inner cells of a box, at first."""
LARGER = (1, 2, 4)
"""A box in which nothing is feasible is tried again in larger ones."""
SECONDS = 5.0
"""How long a box may take; as many times longer as it is larger, squared: without a first answer there is none."""
LEAST_S = 10.0
"""How long one program over everything may take at least, for without it there may be no good answer."""


def any_change(instance: Instance, way: Way, random: np.random.Generator, *, deadline: float) -> tuple[Way, Floats]:
    """Whole moves that follow these directions; where boxes find none, directions near these.

    Raises NoChange when nothing was found, OutOfTime when there was no time to look.
    """
    i = instance

    def left() -> float:
        return deadline - monotonic()

    moves = settled(Regions.of(i), way, random, left=lambda: np.inf)  # a first answer is worth more than its time
    if moves is not None:
        return way, moves
    way = repaired(i, way, random, deadline=deadline)
    whole = None
    for program, box in _programs(i, way):
        with suppress(OutOfTime):
            change = program.solve(box, seconds=max(left(), LEAST_S))
            whole = None if change is None else Means.none(i).rounded(way, change.moves, left=left)
        if whole is not None:
            return way, whole.astype(np.float64)
    raise NoChange(np.arange(len(way)), proved=False)


def _programs(instance: Instance, way: Way) -> Iterator[tuple[LeastChange, Box]]:
    """The least change; where that takes too long, any: it may be thousands of times as dear."""
    i = instance
    yield LeastChange(i.rows, i.cost, i.cost, i.scale()), i.box(way)
    box, rise, fall = elastic(i, way)
    yield LeastChange(i.rows, rise, fall, Scale.of(np.ones(1), np.concatenate([i.above, i.below]))), box


def settled(regions: Regions, way: Way, random: np.random.Generator, *, left: Callable[[], float]) -> Floats | None:
    """Whole moves in these directions that keep every equation and every bound; None when they were not found."""
    i = regions.instance
    moves, done = np.zeros(len(i.cells)), np.zeros(len(i.targets), np.bool_)
    for target in random.permutation(len(i.targets)).tolist():
        if done[target]:
            continue
        if left() <= 0:
            return None
        for times in LARGER:
            cells = regions.around(int(i.targets[target]), BOX * times, random)
            step = regions.settled(cells, moves, way, seconds=min(SECONDS * times**2, left()))
            if step is not None:
                break
        else:
            return None
        step.take(moves, way)
        done[step.targets] = True
    return moves if i.holds(np.rint(moves).astype(np.int64)) else None
