"""Respondents who know that counts are whole numbers: against every table of counts that agrees with a release."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import polars as pl
import pytest

import tablesafe as ts
from seeds import fresh
from tablesafe.audit.doubts import Doubts, Listed
from tablesafe.audit.insiders import insiders
from tablesafe.audit.system import System
from tablesafe.core.problem import Problem
from tablesafe.core.table import Contributors, Table
from tablesafe.tabulate import tabulate

WHO = {"v": [0, 1], "w": [], "u": [2, 3], "a": [4, 5, 6, 7, 8], "K1": [0, 1, 2, 3], "K2": [0, 1, 4, 5, 6, 7, 8]}
"""Persons in cells, of which K3 has those of a. Only together can v and w rise by one, and u falls by two then."""


def _three_sums() -> Table:
    who = {**WHO, "K3": WHO["a"]}
    identity = np.full((7, 7), -1)
    for row, listed in enumerate(who.values()):
        identity[row, : len(listed)] = listed
    counts = {name: float(len(listed)) for name, listed in who.items()}
    table = Table.from_equations(
        ["K1 = v + w + u", "K2 = v + a", "K3 = w + a"], counts, count=np.array(list(counts.values()), dtype=np.int64)
    )
    return replace(table, contributors=Contributors((identity >= 0) * 1.0, identity))


@pytest.mark.parametrize("counts", [True, False])
def test_who_is_one_of_two_works_out_a_count_that_could_change_by_halves_only(counts: bool) -> None:
    """Of u one of its two knows that it is 1 or 2; were it 1, v would be 2.5. Of amounts nobody knows that."""
    table = _three_sums()
    assert table.names is not None
    sensitive, hidden = table.names == "v", np.isin(table.names.astype(str), ["v", "w", "u", "a"])
    problem = ts.Problem(table, rules=[ts.Manual(cells=sensitive)])
    found = ts.audit(problem, ts.Release.from_suppression(problem, hidden), integers=None if counts else False)
    assert found.insiders is not None
    assert found.safe == (not counts)
    assert [(each.cell, each.exact, each.certain) for each in found.insiders.found] == [(0, True, True)] * counts


def _open_by_counting(
    problem: Problem, hidden: np.ndarray[Any, Any], shape: tuple[int, ...]
) -> tuple[set[int], set[int]]:
    """Sensitive cells that are known to all, and to somebody: by all tables of counts with the published sums."""
    table, places = problem.table, list(np.ndindex(*shape))
    inner = [
        [tuple(range(n)) if code == "Total" else (int(code[1:]),) for code in tree.codes]
        for n, tree in zip(shape, table.dimensions.values(), strict=True)
    ]
    sums = np.zeros((len(table), len(places)), dtype=np.int64)
    for cell, codes in enumerate(table.codes.tolist()):
        for place in product(*(of[code] for of, code in zip(inner, codes, strict=True))):
            sums[cell, places.index(place)] = 1
    own, shown = sums[~hidden], table.integers[~hidden]
    found = np.zeros((1, 0), dtype=np.int64)
    for column in range(len(places)):
        most = int(shown[own[:, column] > 0].min())
        found = np.concatenate([np.column_stack([found, np.full(len(found), value)]) for value in range(most + 1)])
        part, whole = found @ own[:, : column + 1].T, own[:, column + 1 :].sum(axis=1) == 0
        found = found[(part <= shown).all(axis=1) & (part[:, whole] == shown[whole]).all(axis=1)]
    tables, to_all, to_some = found @ sums.T, set[int](), set[int]()
    secret = [cell for cell in problem.sensitive.tolist() if hidden[cell]]
    to_all = {cell for cell in secret if len(np.unique(tables[:, cell])) == 1}
    for column in range(len(places)):
        inside = sums[:, column] > 0
        alone = hidden & inside & (table.integers == 1)
        seen = tables[(found[:, column] >= 1) & (tables[:, alone] == 1).all(axis=1)]
        if (table.integers[inside] > 0).all():
            to_some |= {cell for cell in secret if not alone[cell] and len(np.unique(seen[:, cell])) == 1}
    return to_all, to_some - to_all


@pytest.mark.parametrize("seed", [*range(4), *fresh(4, "counts in three dimensions")])
def test_respondents_learn_what_all_tables_of_counts_tell_them(seed: int) -> None:
    random, shape = np.random.default_rng(seed), ((2, 2, 2), (2, 2, 3))[seed % 2]
    counts = random.choice([0, 1, 1, 2, 2, 3], shape)
    rows = [[f"{d}{i}" for d, i in zip("abc", at, strict=True)] for at in np.ndindex(*shape) for _ in range(counts[at])]
    trees = {d: ts.Hierarchy.flat([f"{d}{i}" for i in range(n)]) for d, n in zip("abc", shape, strict=True)}
    frame = pl.DataFrame(rows, schema=list("abc"), orient="row")
    table = tabulate(frame, dimensions=trees, zeros=True, largest=12)
    problem = ts.Problem(table, rules=[ts.Threshold(n=3)])
    hidden = (random.random(len(table)) < random.choice([0.5, 0.7])) | problem.sensitivity.mask
    hidden[table.index()] = False
    to_all, to_some = _open_by_counting(problem, hidden, shape)
    system = System.of(problem, ts.Release.from_suppression(problem, hidden))
    asked = np.setdiff1d(problem.sensitive[hidden[problem.sensitive]], list(to_all))
    found = insiders(problem, system, system.positions(asked), whole=True).found
    assert {each.cell for each in found if each.certain} <= to_some <= {each.cell for each in found}


# -- whom moves of many cells convince ---------------------------------------------------------------------------------

FAR, NOTHING, FIVE = 1e9, np.zeros(3), np.array([5.0, 0.0, 0.0])
LISTED = Listed(
    np.array([[0, 1], [2, -1], [3, 4]]), np.array([[FAR, FAR], [0.0, 0.0], [8.0, 9.0]]),
    np.array([False, True, False]), np.array([FAR] * 3),
)  # fmt: skip


def test_no_mixture_of_whole_moves_convinces_and_no_part_of_one() -> None:
    for whole in (False, True):
        doubts = Doubts(LISTED, NOTHING, FIVE, whole=whole)
        doubts.add(np.array([5, -5, 0]))
        assert doubts.open(1)[0]
        doubts.add(np.array([5, 5, -5]))  # the owner of the second cell saw it fall once, and rise once
        assert doubts.open(1)[0] == whole
        doubts = Doubts(LISTED, NOTHING, FIVE, whole=whole)
        doubts.add(np.array([10, 0, -10]), unit=2)
        assert doubts.open(1)[0] == whole


def test_a_contributor_is_not_convinced_by_a_part_of_a_whole_move() -> None:
    """Half of the move would be enough for it, and leave its own cell with what it has there."""
    who, room = np.array([[0, 1], [0, 2]]), np.array([[5.0, 90.0], [5.0, 90.0]])
    listed = Listed(who, room, np.array([False, False]), np.array([FAR] * 2))
    for whole in (False, True):
        doubts = Doubts(listed, np.array([10.0, 0.0]), np.zeros(2), whole=whole)
        doubts.add(np.array([-10, -10]))
        assert bool(doubts.left(-1, np.array([0]))[0, 0] & 128) == whole
