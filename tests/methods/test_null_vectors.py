"""Publishing again by null vectors, where contributions may be negative: against a rank for every sensitive cell."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import tablesafe as ts
from tablesafe.audit.respondent_knowledge import Lists
from tablesafe.core.equations import Floats, Mask
from tablesafe.core.problem import Problem
from tablesafe.core.sensitivity import Sensitivity
from tablesafe.core.table import Table
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


# -- what each condition alone decides ---------------------------------------------------------------------------------


def _by_hand(inner: dict[str, list[int]], pattern: set[str], first: str) -> tuple[Problem, Instance, Mask]:
    """A table whose inner cells have these firms, a pattern, and the cell to publish first; px alone is sensitive."""
    rows = [(*cell, firm, -3.0 if firm % 2 else 7.0 + firm) for cell, firms in inner.items() for firm in firms]
    frame = pl.DataFrame(rows, schema=["a", "b", "firm", "value"], orient="row")
    table = ts.tabulate(frame, dimensions=["a", "b"], value="value", respondent="firm", largest=3)
    name = _names(table)
    problem = ts.Problem(table, sensitivity=Sensitivity.of(np.array([each == "px" for each in name]), 1.0))
    mask = np.array([each in pattern for each in name])
    cost = np.where([each == first for each in name], 1000.0, np.arange(1.0, len(name) + 1))
    return problem, replace(_instance(problem), cost=cost), mask


def _names(table: Table) -> list[str]:
    """The cells as they are written here: one letter for each code, T for the total."""
    return ["".join(code[0] for code in row) for row in table.cells()[["a", "b"]].rows()]


MANY = [20, 21, 22, 24]


def test_a_cell_in_step_with_its_row_total_is_determined_by_that() -> None:
    """Nothing falls as it rises, and the total has many contributors: only that it is determined tells against it."""
    inner = {"px": [1, 2], "py": MANY, "qx": MANY, "qy": MANY, "rx": MANY, "ry": MANY}
    everything = {row + column for row in "pqrT" for column in "xyT"}
    problem, instance, pattern = _by_hand(inner, everything - {"py"}, "pT")
    left = published_by_null_vectors(problem, instance, pattern, Budget(), respondents=True)
    assert left.sum() < pattern.sum()
    assert not _open(problem, left)


@pytest.mark.parametrize("firms", [[4, 6], [4], [8]], ids=["two firms", "the first of both", "the last of both"])
def test_a_cell_in_step_with_that_of_another_firm_is_known_to_it(firms: list[int]) -> None:
    """The cell beside it falls as it rises in any case: only that a firm comes to know it tells against it."""
    inner = {"px": firms, "py": MANY, "qx": [7], "qy": MANY, "rx": MANY, "ry": MANY}
    problem, instance, pattern = _by_hand(inner, set(inner), "rx")
    assert not _open(problem, pattern)
    left = published_by_null_vectors(problem, instance, pattern, Budget(), respondents=True)
    assert not _open(problem, left)
    outsiders = published_by_null_vectors(problem, instance, pattern, Budget(), respondents=False)
    rx = _names(problem.table).index("rx")
    assert left[rx]
    assert not outsiders[rx]
    assert {cell for cell, who in _open(problem, outsiders) if who >= 0} == set(
        np.flatnonzero(problem.sensitivity.mask)
    )


def test_a_sum_of_two_is_left_unknown() -> None:
    """Any other cell of its row may be published for the sensitive one: but then it and the third add up."""
    inner = {row + column: MANY for row in "pqr" for column in "xyz"} | {"px": [1, 2]}
    problem, instance, pattern = _by_hand(inner, set(inner), "pz")
    left = published_by_null_vectors(problem, instance, pattern, Budget(), respondents=True)
    assert {"px", "py", "pz", "qx", "rx"} <= {
        each for each, out in zip(_names(problem.table), left, strict=True) if out
    }
    assert left.sum() < pattern.sum()
