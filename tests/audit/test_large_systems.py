"""What large systems get instead of a factorisation and of programs over all cells comes to the same."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import seeds
import tablesafe as ts
from tablesafe.audit import alternative_tables, insiders, sums
from tablesafe.audit.sums import constant_sums, null_vectors, projected
from tablesafe.audit.system import System
from tablesafe.core.errors import Interrupted
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release
from tablesafe.work.budget import Budget
from tablesafe.work.stopping import ask, heed

LETTERS = {"a": [f"{x}{y}" for x in "pqr" for y in "stu"], "b": list("vwxyz"), "c": list("kl")}


def _drawn(seed: int) -> tuple[Problem, Release]:
    """Firms by a hierarchy and two flat dimensions, with the sensitive cells and many others withheld."""
    random = np.random.default_rng(seed)
    k = int(random.integers(80, 200))
    frame = pl.DataFrame(
        {name: random.choice(codes, k) for name, codes in LETTERS.items()}
        | {"firm": random.integers(0, k, k), "value": np.ceil(random.lognormal(3, 1.2, k))}
    )
    tree = ts.Hierarchy.from_prefixes(LETTERS["a"], lengths=(1,))
    table = ts.tabulate(
        frame, dimensions={"a": tree, "b": None, "c": None}, value="value", respondent="firm", largest=3
    )
    problem = ts.Problem(table, rules=[ts.Threshold(n=3), ts.PPercent(p=10)])
    hidden = problem.sensitivity.mask | ((random.random(len(table)) < random.uniform(0, 0.6)) & (table.value > 0))
    return problem, Release.from_suppression(problem, hidden)


def _sums(system: System) -> set[tuple[int, ...]]:
    cells = constant_sums(system).cells
    return {tuple(cells.indices[a:b].tolist()) for a, b in zip(cells.indptr[:-1], cells.indptr[1:], strict=True)}


@pytest.mark.parametrize("seed", seeds.fresh(6, "conjugate gradients"))
def test_conjugate_gradients_find_the_same_sums_as_a_factorisation(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    system = System.of(*_drawn(seed))
    factored, fixed = _sums(system), constant_sums(system).fixed
    monkeypatch.setattr(sums, "FACTORED", 0)
    assert _sums(system) == factored
    assert (constant_sums(system).fixed == fixed).all()


@pytest.mark.parametrize("seed", seeds.fresh(6, "null space of large systems"))
def test_they_give_random_vectors_of_the_whole_null_space(seed: int) -> None:
    """Also where equations depend on each other, as those of totals do."""
    system = System.of(*_drawn(seed))
    dense = system.matrix.toarray().astype(np.float64)
    free = dense.shape[1] - int(np.linalg.matrix_rank(dense))
    vectors = projected(
        system.matrix.astype(np.float64), np.random.default_rng(seed).standard_normal((dense.shape[1], 9))
    )
    assert vectors is not None
    assert np.abs(dense @ vectors).max(initial=0.0) <= 1e-10
    assert int(np.linalg.matrix_rank(vectors, tol=1e-6)) == min(free, 9)


def test_what_does_not_settle_is_factored(monkeypatch: pytest.MonkeyPatch) -> None:
    system = System.of(*_drawn(3))
    expected = null_vectors(system.matrix, len(system), 3)
    monkeypatch.setattr(sums, "FACTORED", 0)
    monkeypatch.setattr(sums, "STEPS", 1)
    monkeypatch.setattr(sums, "AGAIN", 1)
    assert projected(system.matrix.astype(np.float64), np.ones((len(system), 1))) is None
    assert (null_vectors(system.matrix, len(system), 3) == expected).all()


def test_they_end_when_the_user_waits_for_the_end() -> None:
    whole, must = Budget(), Budget()
    must.hurry(whole, 0.0)
    with heed(whole, must):
        ask()
        with pytest.raises(Interrupted):
            projected(System.of(*_drawn(3)).matrix.astype(np.float64), np.ones((len(System.of(*_drawn(3))), 1)))


@pytest.mark.parametrize("seed", seeds.fresh(6, "wider neighbourhoods"))
def test_wider_neighbourhoods_and_no_programs_for_many_tell_the_same(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem, release = _drawn(seed)
    before = ts.audit(problem, release)
    monkeypatch.setattr(insiders, "TOGETHER", 0)
    monkeypatch.setattr(alternative_tables, "LARGE", 0)
    monkeypatch.setattr(alternative_tables, "FAR", (400, 1_000))
    after = ts.audit(problem, release)
    assert after.safe == before.safe
    assert (after.protected == before.protected).all()
    assert {each.cell for each in after.open} == {each.cell for each in before.open}
