"""Suppression by flows: safe, never worse than the best peer, and clear about what is no network."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracle.suppression import TREE, open_cells, product
from tablesafe.audit.audit import audit
from tablesafe.core.errors import InvalidOption, InvalidProblem
from tablesafe.core.hierarchy import Hierarchy
from tablesafe.core.problem import Problem
from tablesafe.core.sensitivity import Sensitivity
from tablesafe.io.jj import read_jj
from tablesafe.methods.suppress import Suppress


def problem_of(seed: int, *dimensions: Hierarchy) -> Problem:
    random = np.random.default_rng(seed)
    table = product(dimensions, random)
    mask = ~table.is_total & (table.value > 0) & (random.random(len(table)) < 0.2)
    return Problem(table, sensitivity=Sensitivity.of(mask, np.ceil(table.value / 5)), frozen=table.value == 0)


@settings(max_examples=10)
@given(st.integers(0, 2**32 - 1), st.booleans())
def test_an_independent_attacker_finds_nothing_open(seed: int, deep: bool) -> None:
    rows = Hierarchy.from_pairs(TREE) if deep else Hierarchy.flat(["a", "b", "c", "d"])
    problem = problem_of(seed, rows, Hierarchy.flat(["x", "y", "z"]))
    try:
        release = Suppress(algorithm="network", time_limit_s=1).protect(problem)
    except InvalidProblem:
        assert open_cells(problem, ~problem.frozen)  # not even withholding everything would have done
        return
    assert open_cells(problem, release) == []
    assert audit(problem, release).safe


@pytest.mark.parametrize(("name", "best"), [("2d_20", 2_584), ("2d_50", 5_072)])
def test_no_more_is_withheld_than_by_the_best_safe_peer(instances: Path, name: str, best: float) -> None:
    """The figures of `peers.csv` for patterns that leave nothing open."""
    problem = read_jj(instances / "bench" / f"{name}.jj.gz")
    release = Suppress(algorithm="network", time_limit_s=8).protect(problem)
    assert release.solution is not None
    assert release.solution.objective <= best
    assert audit(problem, release).safe


def test_two_hierarchies_are_no_network() -> None:
    tree = Hierarchy.from_pairs(TREE)
    with pytest.raises(InvalidOption, match=r"no network(.|\n)*at most one(.|\n)*Hint: algorithm='auto'"):
        Suppress(algorithm="network").protect(problem_of(1, tree, tree))


def test_the_same_seed_gives_the_same_pattern() -> None:
    problem = problem_of(3, Hierarchy.from_pairs(TREE), Hierarchy.flat(["x", "y", "z"]))
    one, other = (Suppress(algorithm="network", seed=4).protect(problem) for _ in range(2))
    assert (one.suppressed == other.suppressed).all()
