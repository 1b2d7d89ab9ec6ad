"""Which cells share a program that is to convince respondents, counted by the programs that this takes."""

from __future__ import annotations

import threading
from collections.abc import Iterable

import numpy as np
import pytest
from scipy import sparse

from tablesafe.audit import together as module
from tablesafe.audit.doubts import Doubts, Listed
from tablesafe.audit.together import Asked, convince, convincing_moves
from tablesafe.core.equations import Floats, Integers
from tablesafe.work.budget import Budget

FAR = 1e9
"""Further than any cell of these tests moves."""
NEAR_LEVEL, FAR_LEVEL, UNREACHABLE = 5.0, 5_000.0, 50.0
"""How far cells must move: some little, some a thousand times as far, some further than others can believe."""
PROGRAMS = 40
"""So many, and no more: none of these searches needs half of them."""


def _doubts(fall: Iterable[float], rise: Iterable[float], others: Iterable[float]) -> Doubts:
    """Cells of two firms each, of which nothing but what is not listed limits how far they fall."""
    fall, rise, others = np.array([*fall]), np.array([*rise]), np.array([*others])
    who = np.arange(2 * len(fall)).reshape(-1, 2)
    return Doubts(Listed(who, np.full(who.shape, FAR), np.zeros(len(fall), np.bool_), others), fall, rise)


class Programs:
    """In place of a solver: all cells go as far as the one that must move least, as in a program that leaves others
    behind; it convinces nobody of the cells that are `stubborn`."""

    def __init__(self, doubts: Doubts, stubborn: Iterable[int] = ()) -> None:
        self.doubts, self.stubborn = doubts, np.array([*stubborn], dtype=np.int64)
        self.asked = list[list[int]]()
        self._lock = threading.Lock()

    def __call__(self, asked: Asked, budget: Budget) -> tuple[np.ndarray, int]:
        with self._lock:
            self.asked.append(sorted(asked.cells.tolist()))
            assert len(self.asked) <= PROGRAMS, "the search does not end"
        need = np.where(asked.way > 0, self.doubts.need[1][asked.cells], self.doubts.need[-1][asked.cells])
        by = np.zeros(len(self.doubts.listed.alone), dtype=np.int64)
        by[asked.cells] = asked.way * need.min()
        by[self.stubborn] = 0
        return by, 1

    def ways(self, cells: Integers) -> Floats:
        """Up where somebody doubts that, down otherwise."""
        return np.where(self.doubts.open(1)[cells], 1.0, -1.0)

    def run(self) -> None:
        """Convince as long as that goes."""
        assert all(move.any() for move in convince(self.doubts, self, self.ways, Budget()))


def test_cells_that_must_move_far_share_no_program_with_those_that_must_move_little() -> None:
    """Mixed, the latter would set the pace, and of the former nobody would be convinced: two programs do it."""
    near, far = range(0, 12, 2), range(1, 12, 2)
    rise = np.where(np.arange(12) % 2 == 0, NEAR_LEVEL, FAR_LEVEL)
    doubts = _doubts([0.0] * 12, rise, [FAR] * 12)
    programs = Programs(doubts)
    programs.run()
    assert sorted(programs.asked) == [[*near], [*far]]
    assert not doubts.open(1).any()


def test_cells_are_alike_within_a_factor_of_the_first() -> None:
    """Levels in steps a little smaller than the factor: whichever comes first shares with its neighbours alone."""
    level = np.round(NEAR_LEVEL * (0.9 * module.ALIKE) ** np.arange(8.0))
    programs = Programs(_doubts([0.0] * 8, level, [FAR] * 8))
    programs.run()
    assert {cell for cells in programs.asked for cell in cells} == {*range(8)}
    for cells in programs.asked:
        assert len(cells) == len(range(cells[0], cells[-1] + 1)) <= 3


def test_cells_that_need_not_move_are_in_no_program() -> None:
    """Nobody need be convinced of some; others cannot fall as far as they must, whatever moves: they stay in doubt."""
    fall, rise, others = [0.0, 0.0, UNREACHABLE, UNREACHABLE], [NEAR_LEVEL, 0.0, 0.0, NEAR_LEVEL], [FAR, FAR, 1.0, 1.0]
    doubts = _doubts(fall, rise, others)
    programs = Programs(doubts)
    assert doubts.open(-1).tolist() == [False, False, True, True]
    assert doubts.open(1).tolist() == [True, False, False, True]
    for _ in convince(doubts, programs, lambda cells: np.ones(len(cells)), Budget()):
        pass
    assert programs.asked
    assert {cell for cells in programs.asked for cell in cells} == {0, 3}
    assert doubts.open(-1).tolist() == [False, False, True, True]
    assert not doubts.open(1).any()


def test_a_program_moves_only_what_must_go_its_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first cell must fall further than others can believe: once it has risen, no program has anything for it."""
    moved = list[tuple[list[int], list[float]]]()
    solve = module._furthest

    def noted(matrix: sparse.csr_array, below: Floats, above: Floats, batch: np.ndarray, *rest: object) -> object:
        moved.append((batch.tolist(), rest[1].tolist()))  # type: ignore[attr-defined]
        return solve(matrix, below, above, batch, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(module, "_furthest", noted)
    doubts = _doubts([UNREACHABLE, 0.0, 0.0], [NEAR_LEVEL, 0.0, 0.0], [1.0, FAR, FAR])
    room, rows = np.full(3, 100.0), sparse.csr_array(np.array([[1, 1, 1]]))
    assert list(convincing_moves(rows, room, room, doubts, [], Budget()))
    assert doubts.open(-1).tolist() == [True, False, False]
    assert not doubts.open(1).any()
    assert ([0], [NEAR_LEVEL]) in moved
    assert all(level > 0 for _, levels in moved for level in levels)


def test_each_cell_has_its_turn_before_one_that_gained_nothing_has_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two cells to a program, and nobody is ever convinced of the first two: the others do not wait for them."""
    monkeypatch.setattr(module, "SEVERAL", 2)
    doubts = _doubts([0.0] * 10, [NEAR_LEVEL] * 10, [FAR] * 10)
    programs = Programs(doubts, stubborn=[0, 1])
    for _ in convince(doubts, programs, programs.ways, Budget()):
        pass
    assert np.flatnonzero(doubts.open(1)).tolist() == [0, 1]
    turns = programs.asked[:: module.AT_ONCE]  # all are alike, so that both programs of a turn have the same cells
    first = {cell: next(i for i, cells in enumerate(turns) if cell in cells) for cell in range(10)}
    again = [i for cell in (0, 1) for i, cells in enumerate(turns) if cell in cells and i > first[cell]]
    assert max(first.values()) < 5
    assert all(i >= 5 for i in again)
