"""Witnesses in which hundreds of cells move: every one is a table that agrees with the release."""

from __future__ import annotations

import importlib
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy import sparse
from scipy.optimize import linprog

import tablesafe as ts
from seeds import fresh
from tablesafe.audit.system import System
from tablesafe.audit.together import moves_together
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release
from tablesafe.work.budget import Budget


def sparse_firms(seed: int, records: int) -> Problem:
    rng = np.random.default_rng(seed)
    frame = pl.DataFrame(
        {name: rng.integers(0, size, records).astype(str) for name, size in (("a", 6), ("b", 5), ("c", 4))}
    ).with_columns(pl.Series("v", np.round(rng.lognormal(3, 1.3, records), 1)), pl.Series("firm", np.arange(records)))
    table = ts.tabulate(frame, dimensions=["a", "b", "c"], value="v", respondent="firm")
    return ts.Problem(table, rules=[ts.Threshold(n=3), ts.PPercent(p=10)])


def open_to_outsiders(problem: Problem, pattern: np.ndarray) -> set[int]:
    """By a linear program for each side of each cell, over the whole table."""
    table, at = problem.table, np.flatnonzero(pattern)
    rows, levels = table.equations[:, at], problem.sensitivity
    open_ = set()
    for cell in problem.sensitive.tolist():
        for sign, level in ((1.0, levels.upper[cell]), (-1.0, levels.lower[cell])):
            cost = np.where(at == cell, -sign, 0.0)
            bounds = [(-float(value), 1e7) for value in table.value[at]]
            answer = linprog(cost, A_eq=rows, b_eq=np.zeros(rows.shape[0]), bounds=bounds, method="highs")
            if -answer.fun < level * (1 - 1e-9) - 1e-9:
                open_.add(cell)
    return open_


KNOWN = 1
"""A seed of firms some of whose cells can move."""


@pytest.mark.parametrize("seed", [KNOWN, *fresh(2, "moves together")])
def test_every_move_keeps_all_sums_and_bounds(seed: int) -> None:
    problem = sparse_firms(seed, 220)
    system = System.of(problem, Release.from_suppression(problem, problem.sensitivity.mask))
    rng = np.random.default_rng(seed)
    need = rng.integers(0, 40, len(system)).astype(np.float64)
    down, up = system.truth - system.lower, system.upper - system.truth
    found = list(moves_together(system.matrix.tocsr(), down, up, need, need[::-1].copy(), Budget()))
    assert found or seed != KNOWN
    for move in found:
        by = np.zeros(len(system), dtype=object)
        by[move.cells] = move.numerators.astype(object)
        rows = system.matrix.tocsr()
        for row in range(rows.shape[0]):
            span = slice(rows.indptr[row], rows.indptr[row + 1])
            assert sum(int(a) * b for a, b in zip(rows.data[span], by[rows.indices[span]], strict=True)) == 0
        moved = move.numerators / move.denominator
        assert (moved <= up[move.cells]).all()
        assert (-moved <= down[move.cells]).all()


class Patience(Budget):
    """A budget that is asked only so often whether it is over: whoever goes on asking has nothing to do."""

    asked = 0

    @property
    def over(self) -> bool:
        self.asked += 1
        assert self.asked < 1_000, "it goes round in a circle"
        return False


@pytest.mark.parametrize("needs", [0.0, 1.0])
def test_when_all_are_served_the_search_ends_though_there_is_time(needs: float) -> None:
    """Four cells in two rows and columns: one move serves those that ask, and its opposite too."""
    matrix = sparse.csr_array(np.array([[1.0, 1, 0, 0], [0, 0, 1, 1], [1, 0, 1, 0], [0, 1, 0, 1]]))
    room, asks = np.full(4, 9.0), np.array([needs, 0.0, 0.0, needs])
    budget = Patience()
    found = list(moves_together(matrix, room, room, asks, asks, budget))
    assert bool(found) == bool(needs)


@pytest.mark.parametrize("seed", fresh(2, "audit of many together"))
def test_the_audit_of_many_cells_says_what_a_program_for_each_says(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outsiders = importlib.import_module("tablesafe.audit.outsiders")
    monkeypatch.setattr(outsiders, "MANY", 10)
    monkeypatch.setattr(outsiders, "by_hypercubes", lambda *given: iter(()))
    monkeypatch.setattr(importlib.import_module("tablesafe.audit.hypercubes"), "FEW", 0)
    problem = sparse_firms(seed, 200)
    rng = np.random.default_rng(seed)
    pattern = problem.sensitivity.mask | (rng.random(len(problem.table)) < 0.2)
    findings = ts.audit(problem, Release.from_suppression(problem, pattern), insiders=False, unions=False, exact=False)
    assert {opening.cell for opening in findings.open} == open_to_outsiders(problem, pattern)
    assert findings.certificate is not None
    findings.certificate.save(tmp_path / "certificate.json")
    ts.verify(tmp_path / "certificate.json")


@pytest.mark.parametrize("seed", fresh(2, "presumed insiders"))
def test_who_is_presumed_to_learn_nothing_learns_nothing(seed: int) -> None:
    """Presuming finds at least all that a full search finds."""
    problem = sparse_firms(seed, 160)
    rng = np.random.default_rng(seed)
    pattern = problem.sensitivity.mask | (rng.random(len(problem.table)) < 0.6)
    release = Release.from_suppression(problem, pattern)
    full = ts.Audit(problem, unions=False).judge(release, exact=False, certify=False)
    quick = ts.Audit(problem, unions=False).judge(release, exact=False, certify=False, presume=True)
    assert full.insiders is not None
    assert quick.insiders is not None
    assert {each.cell for each in full.insiders.every} <= {each.cell for each in quick.insiders.every}
