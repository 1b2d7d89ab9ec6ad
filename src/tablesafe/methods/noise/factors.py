"""Factors around 1 that keep away from 1: a size between two limits, and a direction.

Evans, Zayatz & Slanta, "Using noise for disclosure limitation of establishment tabular data" (1998): every
establishment of a company goes the same way, so that noise does not cancel where one company dominates; as often up as
down, so that it cancels where there are many.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numba import njit
from scipy.special import ndtr, ndtri

from tablesafe.core.equations import Floats, Integers

Shape = Literal["uniform", "triangular", "normal"]
SHAPES: tuple[Shape, ...] = ("uniform", "triangular", "normal")


def draw_sizes(chance: Floats, least: float, most: float, shape: Shape) -> Floats:
    """How far from 1 each factor lies, from numbers drawn between 0 and 1.

    Triangular sizes are most likely near `least`, normal ones near the middle of the range (with a quarter of its
    width as standard deviation, cut at its ends).
    """
    width = most - least
    if shape == "triangular":
        sizes = most - width * np.sqrt(1 - chance)
    elif shape == "normal":
        low, high = ndtr(-2.0), ndtr(2.0)
        sizes = (least + most) / 2 + width / 4 * ndtri(low + chance * (high - low))
    else:
        sizes = least + width * chance
    return np.asarray(np.clip(sizes, least, most))


def draw_directions(chance: Floats) -> Floats:
    """Up or down, each as likely."""
    return np.where(chance < 0.5, 1.0, -1.0)


def balanced(company: Integers, cell: Integers, amount: Floats, first: Floats) -> Floats:
    """Directions that offset each other within cells; `first` says where a company goes that has nothing to offset.

    Entries say by how much a company would move a cell. The companies that move most come first, and each goes the way
    that makes up for what those before it did to its cells: the alternating directions of Massell & Funk ("Recent
    developments in the use of noise for protecting magnitude data tables", 2007), for companies in several cells too.
    As `first` is as likely up as down, so is every direction: a company's expected factor remains 1.
    """
    n = len(first)
    order = np.argsort(company, kind="stable")
    start = np.searchsorted(company[order], np.arange(n + 1))
    moved = np.bincount(company, np.abs(amount), n)
    largest = np.argsort(-moved, kind="stable")
    cells = int(cell.max(initial=-1)) + 1
    return np.asarray(_offset(largest, start, cell[order], amount[order], first, np.zeros(cells)))


@njit(cache=True)
def _offset(turn: Any, start: Any, cell: Any, amount: Any, first: Any, so_far: Any) -> Any:
    """One company after the other takes the way that makes the sum of squares smaller."""
    direction = first.copy()
    for company in turn:
        pull = 0.0
        for entry in range(start[company], start[company + 1]):
            pull += so_far[cell[entry]] * amount[entry]
        if pull > 0:
            direction[company] = -1.0
        elif pull < 0:
            direction[company] = 1.0
        for entry in range(start[company], start[company + 1]):
            so_far[cell[entry]] += direction[company] * amount[entry]
    return direction
