"""Boxes that were found are kept, but only for the room, cell, distance and limits that were asked about."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import tablesafe as ts
from tablesafe.audit.alternative_tables import Limits, Move, Moves
from tablesafe.audit.system import System

SIDE = 16
FAR = 9.0
NONE = Limits(np.zeros(0, np.intp), np.zeros(0), np.zeros(0))


@pytest.fixture
def moves() -> Moves:
    """Every inner cell of a table is withheld, enough of them to look for hypercubes."""
    frame = pl.DataFrame(
        {"a": [f"a{i // SIDE:02}" for i in range(SIDE**2)], "b": [f"b{i % SIDE:02}" for i in range(SIDE**2)]}
    )
    table = ts.tabulate(frame.with_columns(value=pl.lit(20)), dimensions=["a", "b"], value="value")
    problem = ts.Problem(table, rules=[ts.Threshold(n=2)])
    found = Moves(System.of(problem, ts.Release.from_suppression(problem, ~table.is_total)))
    assert len(found.system) == SIDE**2
    found.only_hypercubes = True
    return found


def _but(move: Move, cell: int) -> np.ndarray:
    """The other cells of a move."""
    return move.cells[move.cells != cell]


def _at_rest(cells: np.ndarray) -> Limits:
    return Limits(cells, np.zeros(len(cells)), np.zeros(len(cells)))


def test_another_room_is_another_question(moves: Moves) -> None:
    wide = moves.room(np.full(SIDE**2, FAR), np.full(SIDE**2, FAR))
    first = moves.find(wide, 0, 5.0, NONE, everywhere=False)
    assert first is not None
    down = np.full(SIDE**2, FAR)
    down[_but(first, 0)] = 0.0
    narrow = moves.room(down, down)
    second = moves.find(narrow, 0, 5.0, NONE, everywhere=False)
    assert second is not None
    assert narrow.allows(second, but=0)
    assert moves.find(moves.room(np.zeros(SIDE**2), np.zeros(SIDE**2)), 0, 5.0, NONE, everywhere=False) is None


def test_other_limits_are_another_question(moves: Moves) -> None:
    room = moves.room(np.full(SIDE**2, FAR), np.full(SIDE**2, FAR))
    for _ in range(3):
        last = moves.find(room, 0, 5.0, _at_rest(np.array([SIDE**2 - 1])), everywhere=False)
        assert last is not None
        other = moves.find(room, 0, 5.0, _at_rest(_but(last, 0)), everywhere=False)
        assert other is not None
        assert not np.isin(_but(last, 0), other.cells).any()
    assert moves.find(room, 0, 5.0, _at_rest(np.arange(1, SIDE**2)), everywhere=False) is None


@pytest.mark.parametrize("limits", [NONE, _at_rest(np.array([SIDE**2 - 1]))], ids=["without limits", "with limits"])
def test_so_are_another_cell_and_another_distance(moves: Moves, limits: Limits) -> None:
    room = moves.room(np.full(SIDE**2, FAR), np.full(SIDE**2, FAR))
    for cell, by in ((0, 5.0), (0, 9.0), (0, 10.0), (0, -10.0), (1, -9.0), (1, 9.0), (0, 5.0)):
        move = moves.find(room, cell, by, limits, everywhere=False)
        assert (move is None) == (abs(by) > FAR)
        if move is not None:
            assert move.at(cell) == by
            assert room.allows(move, but=cell)


def test_with_the_same_limits_another_room_is_another_question(moves: Moves) -> None:
    limits = _at_rest(np.array([SIDE**2 - 1]))
    assert (
        moves.find(moves.room(np.full(SIDE**2, FAR), np.full(SIDE**2, FAR)), 0, 5.0, limits, everywhere=False)
        is not None
    )
    assert (
        moves.find(moves.room(np.full(SIDE**2, 4.0), np.full(SIDE**2, FAR)), 0, 5.0, limits, everywhere=False) is None
    )


def test_what_was_asked_of_one_cell_changes_nothing_for_the_next(moves: Moves) -> None:
    """The cell asked about may move as far as it is asked to, limits or not: but not when another is asked about."""
    far = np.full(SIDE**2, FAR)
    far[:SIDE] = 0.0
    far[1] = FAR
    room = moves.room(far, far)
    move = moves.find(room, 0, 5.0, NONE, everywhere=False)
    assert move is not None
    assert {0, 1} <= set(move.cells.tolist())
    assert moves.find(room, 1, 5.0, NONE, everywhere=False) is None
    assert moves.find(room, 0, 4.0, _at_rest(np.arange(1, SIDE**2)), everywhere=False) is None
    assert moves.find(room, 0, 4.0, NONE, everywhere=False) is not None
