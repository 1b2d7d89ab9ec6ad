"""Proofs: nothing that a solver suggests is believed, and what it does not suggest is looked for."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy import sparse

from tablesafe.audit.audit import audit
from tablesafe.audit.exact import ExactLimits, ExactMove
from tablesafe.audit.proofs import Needs, Place, furthest_moves, prove, whole_moves
from tablesafe.audit.protection import Protection, protection
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release
from tablesafe.core.sensitivity import Sensitivity
from tablesafe.core.table import Table

AUDIT = sys.modules["tablesafe.audit.outsiders"]
CYCLE = sparse.csc_array(np.array([[1, 1, 0, 0], [0, 0, 1, 1], [1, 0, 1, 0], [0, 1, 0, 1]], dtype=np.int8))
TRUTH = np.array([10, 5, 7, 8])
PLACE = Place(CYCLE, ExactLimits.of(np.zeros(4), np.full(4, np.inf), TRUTH))


def needs(lower: float, upper: float, sliding: float = 0.0) -> Needs:
    """Demands on the first cell, which can fall by 8 and rise by 5."""
    return Needs.of(np.array([0]), np.array([lower]), np.array([upper]), np.array([sliding]), 0)


def move(*amounts: int, over: int = 1) -> ExactMove:
    values = np.array(amounts)
    cells = np.flatnonzero(values)
    return ExactMove(cells, values[cells], over)


DOWN, UP = move(-8, 8, 8, -8), move(5, -5, -5, 5)


def test_two_tables_prove_a_cell() -> None:
    group = prove(PLACE, needs(8, 5, 13), [DOWN, UP])
    assert group.at.tolist() == [0]
    assert [found.numerators.tolist() for found in group.moves] == [[-8, 8, 8, -8], [5, -5, -5, 5]]
    assert (group.low.tolist(), group.high.tolist()) == ([1], [2])


@pytest.mark.parametrize(
    "wrong",
    [
        [DOWN],
        [UP],
        [DOWN, move(5, -5, -5, 6)],
        [DOWN, move(5, 0, 0, 0)],
        [move(-9, 9, 9, -9), UP],  # below zero: only a part of it is possible
    ],
)
def test_tables_that_are_missing_or_wrong_prove_nothing(wrong: list[ExactMove]) -> None:
    asked = needs(8.5, 5)
    assert len(prove(PLACE, asked, wrong)) == 0
    assert len(prove(PLACE, needs(8, 5), wrong)) == (1 if wrong[-1] is UP and len(wrong) == 2 else 0)


@pytest.mark.parametrize(
    ("lower", "upper", "proved"), [(8, 5, 1), (8 + 1e-9, 5, 0), (8, 5 + 1e-9, 0), (7.999999, 5, 1)]
)
def test_levels_are_compared_exactly(lower: float, upper: float, proved: int) -> None:
    assert len(prove(PLACE, needs(lower, upper), [DOWN, UP])) == proved


def test_a_cell_without_levels_needs_one_table_that_differs() -> None:
    group = prove(PLACE, needs(0, 0), [UP])
    assert (group.low.tolist(), group.high.tolist()) == ([0], [1])
    assert len(prove(PLACE, needs(0, 0), [])) == 0
    assert len(prove(PLACE, needs(0, 0), [move(0, 0, 0, 0)])) == 0


def test_only_whole_tables_count_where_values_are_whole() -> None:
    half = move(-1, 1, 1, -1, over=2)
    assert len(prove(PLACE, needs(0.5, 0), [half])) == 1
    assert len(prove(PLACE, needs(0.5, 0), [half], whole=True)) == 0


@pytest.mark.parametrize("find", [furthest_moves, lambda *of: whole_moves(*of, None)])
def test_a_solver_is_asked_when_no_table_is_at_hand(find: Any) -> None:
    cells = np.arange(4)
    tables = find(PLACE, cells, needs(8, 5))
    assert len(prove(PLACE, needs(8, 5), (), cells=cells, tables=tables, whole=True)) == 1


def random_problem(seed: int) -> tuple[Problem, Release]:
    random = np.random.default_rng(seed)
    frame = pl.DataFrame(
        {"r": [str(i) for i in range(6) for _ in range(5)], "c": [str(i) for _ in range(6) for i in range(5)],
         "value": random.integers(0, 60, 30).astype(float)}
    )  # fmt: skip
    table = Table.from_cells(frame, dimensions=["r", "c"], missing_totals="compute")
    sensitive = ~table.is_total & (random.random(len(table)) < 0.3)
    levels = Sensitivity.of(sensitive, 0.13 * table.value, sliding=0.3 * table.value)
    problem = Problem(table, sensitivity=levels)
    return problem, Release.from_suppression(problem, sensitive | (random.random(len(table)) < 0.4))


def forgetful(*arguments: Any, **options: Any) -> Protection:
    """A protection that found no table at all."""
    return replace(protection(*arguments, **options), components=())


def lying(*arguments: Any, **options: Any) -> Protection:
    """A protection whose tables are all wrong by one."""
    found = protection(*arguments, **options)
    broken = [
        replace(part, moves=tuple(ExactMove(m.cells, m.numerators + 1, m.denominator) for m in part.moves))
        for part in found.components
    ]
    return replace(found, components=tuple(broken))


@pytest.mark.parametrize("instead", [forgetful, lying])
@pytest.mark.parametrize("integers", [False, True])
def test_the_verdict_does_not_depend_on_what_was_suggested(
    monkeypatch: pytest.MonkeyPatch, instead: Any, integers: bool
) -> None:
    for seed in range(6):
        problem, release = random_problem(seed)
        expected = audit(problem, release, integers=integers).protected.tolist()
        with monkeypatch.context() as patched:
            patched.setattr(AUDIT, "protection", instead)
            assert audit(problem, release, integers=integers).protected.tolist() == expected
