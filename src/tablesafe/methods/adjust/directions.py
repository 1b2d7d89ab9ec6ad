"""Directions to begin with: which sensitive cells rise and which fall, before anything is solved."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tablesafe.core.equations import Floats
from tablesafe.core.problem import Problem
from tablesafe.methods.adjust.instance import Instance, Way

SWEEPS = 32
"""Margins of margins of margins: each sweep settles one more level."""


def alternating(problem: Problem, instance: Instance) -> Way:
    """Up and down in turn by ascending value; sensitive margins go where their parts, together, take them.

    Dandekar & Cox, "Synthetic Tabular Data" (2002). A margin whose sensitive parts cancel out keeps its turn.
    """
    table = problem.table
    cells = instance.cells[instance.targets]
    margin = table.is_total[cells]
    way = np.ones(len(cells), dtype=np.int8)
    way[np.argsort(np.abs(table.value[cells]), kind="stable")[1::2]] = -1
    level = np.maximum(instance.above, instance.below)
    for _ in range(SWEEPS if margin.any() else 0):
        net = _net(problem, cells, np.where(way > 0, level, -level))
        turned = np.where(margin & (net != 0), np.sign(net), way).astype(np.int8)
        if (turned == way).all():
            break
        way = turned
    return instance.allowed(way)


def _net(problem: Problem, cells: NDArray[np.intp], moves: Floats) -> Floats:
    """By how much the parts of each of these cells move, over all equations of which it is the total."""
    table = problem.table
    moved = np.zeros(len(table))
    moved[cells] = moves
    own = np.zeros(len(table))
    parts = table.equations.astype(np.float64) @ moved + moved[table.totals]
    np.add.at(own, table.totals, parts)
    return own[cells]


def uniform(instance: Instance, sign: int) -> Way:
    """All the same way, where there is room."""
    return instance.allowed(np.full(len(instance.targets), sign, dtype=np.int8))


def drawn(instance: Instance, random: np.random.Generator) -> Way:
    """A coin per target, where there is room on both sides."""
    return instance.allowed(np.where(random.random(len(instance.targets)) < 0.5, 1, -1).astype(np.int8))


def leaning(instance: Instance, lean: Floats, random: np.random.Generator | None = None) -> Way:
    """Where the relaxation leans to (1 = rise); with `random` a coin weighted by it."""
    limit = 0.5 if random is None else random.random(len(lean))
    return instance.allowed(np.where(lean >= limit, 1, -1).astype(np.int8))
