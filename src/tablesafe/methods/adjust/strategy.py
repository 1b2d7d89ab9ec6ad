"""Which directions to try in which order: by what the user asked for, and by what a table of that size allows."""

from __future__ import annotations

from time import monotonic
from typing import Literal

import numpy as np

from tablesafe.core.problem import Problem
from tablesafe.methods.adjust.directions import alternating, drawn, leaning, uniform
from tablesafe.methods.adjust.instance import LARGE, Instance, Way
from tablesafe.methods.adjust.search import Search

DirectionsName = Literal["optimal", "search", "blocks", "alternating", "random", "up", "down"]

FEW = 160
"""Targets up to which one program over all directions deserves most of the time."""


def first(problem: Problem, instance: Instance, directions: DirectionsName, random: np.random.Generator) -> Way:
    """The directions to begin with."""
    if directions == "random":
        return drawn(instance, random)
    if directions in {"up", "down"}:
        return uniform(instance, 1 if directions == "up" else -1)
    return alternating(problem, instance)


def find(problem: Problem, search: Search, directions: DirectionsName, *, tries: int, start: Way | None = None) -> None:
    """Fill the search with the best directions that were asked for; `start` is feasible, where that is known."""
    search.offer(first(problem, search.instance, directions, search.random) if start is None else start)
    if search.long and not search.deep:
        search.settle()
    if directions == "random":
        for _ in range(tries - 1):
            if search.left <= 0 or search.deep:
                break
            search.offer(drawn(search.instance, search.random), repair=start is None)
    search.relax()
    if directions in {"search", "blocks", "optimal"}:
        if search.deep or len(search.instance.cells) > 2 * LARGE:
            search.regions()
        else:
            _improve(search, directions)


def _improve(search: Search, directions: DirectionsName) -> None:
    """Flip, free blocks, and, for `optimal`, let one program over all directions take it from there."""
    instance, targets, optimal = search.instance, len(search.instance.targets), directions == "optimal"
    assert search.lean is not None
    for way in (leaning(instance, search.lean), uniform(instance, 1), uniform(instance, -1)):
        if search.left > 0:
            search.offer(way, repair=False)
    if search.long:  # a program over all cells takes seconds even for one direction: region after region saves more
        search.regions()
    share = 1.0 if not optimal else 0.2 if targets <= FEW else 0.6
    deadline, search.deadline = search.deadline, monotonic() + search.left * share
    if directions != "blocks":
        search.flip(time_limit_s=search.left / 3)
    search.free_blocks(patience=2 + targets // 16 if optimal else 4 + targets // 8)
    search.deadline = deadline
    if optimal and search.left > 0 and not search.closed():
        search.optimise()
