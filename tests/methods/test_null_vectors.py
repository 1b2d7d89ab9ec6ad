"""Publishing again by null vectors, where contributions may be negative: against a rank for every sensitive cell."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import tablesafe as ts
from tablesafe.audit.respondent_knowledge import Lists
from tablesafe.core.equations import Floats, Mask
from tablesafe.core.problem import Problem
from tablesafe.methods.suppress.instance import Instance
from tablesafe.methods.suppress.levels import demanded, looked_after
from tablesafe.methods.suppress.null_vectors import published_by_null_vectors, unbounded
from tablesafe.work.budget import Budget


def _problem(seed: int, *, negative: bool = True) -> Problem:
    random = np.random.default_rng(seed)
    k = int(random.integers(60, 120))
    frame = pl.DataFrame(
        {
            "a": random.choice(list("pqrstu"), k),
            "b": random.choice(list("vwxyz"), k),
            "firm": random.integers(0, k, k),
            "value": np.ceil(random.lognormal(3, 1.2, k)),
        }
    )
    if negative:
        frame = frame.with_columns(value=frame["value"] * random.choice([-1.0, 1.0, 1.0], k))
    table = ts.tabulate(frame, dimensions=["a", "b"], value="value", respondent="firm", largest=3)
    return ts.Problem(table, rules=[ts.Threshold(n=3)])


def _instance(problem: Problem) -> Instance:
    return Instance.of(demanded(looked_after(problem), 0.0, {}), np.abs(problem.table.value) + 1.0, zeros=True)


def _rank(matrix: Floats) -> int:
    return int(np.linalg.matrix_rank(matrix)) if matrix.size else 0


def _open(problem: Problem, pattern: Mask) -> set[tuple[int, int]]:
    """Sensitive cells that are determined by what is published and what one respondent knows alone; −1: outsiders."""
    lists, equations = Lists.of(problem.table), problem.table.equations.toarray().astype(float)
    assert lists is not None
    alone = {int(c): int(lists.who[c, 0]) for c in np.flatnonzero(pattern & (lists.everyone == 1))}
    out = set()
    for who in {-1, *alone.values()}:
        unknown = np.flatnonzero(pattern & np.array([alone.get(c, -2) != who for c in range(len(pattern))]))
        own = equations[:, unknown]
        for at, cell in enumerate(unknown.tolist()):
            if problem.sensitivity.mask[cell]:
                mark = np.zeros((1, len(unknown)))
                mark[0, at] = 1
                if _rank(np.vstack([own, mark])) == _rank(own):
                    out.add((cell, who))
    return out


@pytest.mark.parametrize("seed", range(6))
def test_nothing_becomes_known_by_what_is_published_again(seed: int) -> None:
    problem = _problem(seed)
    instance = _instance(problem)
    assert unbounded(problem, instance)
    everything = instance.live | instance.forced
    left = published_by_null_vectors(problem, instance, everything, Budget(), respondents=True)
    assert left.sum() < everything.sum()
    assert not (instance.forced & ~left).any()
    several = _several(problem)
    new = _open(problem, left) - _open(problem, everything)
    assert not {(cell, who) for cell, who in new if who not in several}


def _several(problem: Problem) -> set[int]:
    """Who is alone in several cells: they are left to the audit."""
    lists = Lists.of(problem.table)
    assert lists is not None
    who, times = np.unique(lists.who[lists.everyone == 1, 0], return_counts=True)
    return set(who[times > 1].tolist())


def test_without_respondents_more_is_published() -> None:
    problem = _problem(1)
    instance = _instance(problem)
    everything = instance.live | instance.forced
    outsiders, all_ = (
        published_by_null_vectors(problem, instance, everything, Budget(), respondents=each) for each in (False, True)
    )
    assert outsiders.sum() <= all_.sum()
    assert not {cell for cell, who in _open(problem, outsiders) if who == -1}


def test_bounds_make_a_difference() -> None:
    problem = _problem(2, negative=False)
    assert not unbounded(problem, _instance(problem))
