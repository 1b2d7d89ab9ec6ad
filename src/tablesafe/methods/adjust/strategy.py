"""Which directions to try in which order: by what the user asked for, and by what a table of that size allows."""

from __future__ import annotations

from time import monotonic
from typing import Literal

from tablesafe.methods.adjust.directions import alternating, drawn, leaning, uniform
from tablesafe.methods.adjust.instance import LARGE
from tablesafe.methods.adjust.search import Search
from tablesafe.problem import Problem

DirectionsName = Literal["optimal", "search", "blocks", "alternating", "random", "up", "down"]

FEW = 160
"""Targets up to which one program over all directions deserves most of the time."""


def find(problem: Problem, search: Search, directions: DirectionsName, *, tries: int) -> None:
    """Fill the search with the best directions that were asked for."""
    whole = not search.instance.deep
    start = search.offer if whole else search.begin
    if directions in {"up", "down"}:
        start(uniform(search.instance, 1 if directions == "up" else -1))
    elif directions != "random":
        start(alternating(problem, search.instance))
    else:
        for _ in range(tries if whole else 1):
            start(drawn(search.instance, search.random))
            if search.left <= 0:
                break
    search.relax()
    if directions in {"search", "blocks", "optimal"}:
        if whole and len(search.instance.cells) <= 2 * LARGE:
            _improve(search, directions)
        else:
            _improve_large(search, directions)


def _improve(search: Search, directions: DirectionsName) -> None:
    """Flip, free blocks, and, for `optimal`, let one program over all directions take it from there."""
    instance, targets, optimal = search.instance, len(search.instance.targets), directions == "optimal"
    assert search.lean is not None
    for way in (leaning(instance, search.lean), uniform(instance, 1), uniform(instance, -1)):
        if search.left > 0:
            search.offer(way)
    share = 1.0 if not optimal else 0.2 if targets <= FEW else 0.6
    deadline, search.deadline = search.deadline, monotonic() + search.left * share
    if directions != "blocks":
        search.flip(time_limit_s=search.left / 3)
    search.free_blocks(patience=2 + targets // 16 if optimal else 4 + targets // 8)
    search.deadline = deadline
    if optimal and search.left > 0 and not search.closed():
        search.optimise()


def _improve_large(search: Search, directions: DirectionsName) -> None:
    """Flip what promises most, then adjust region after region."""
    if directions != "blocks" and not search.instance.deep:
        search.flip(time_limit_s=search.left / 8)
    search.regions(rounds=100)
