"""Regions of a pattern chosen anew: what is kept is safe, never dearer, and better than what single cells lead to."""

from __future__ import annotations

import numpy as np
import pytest

from oracle.suppression import open_cells, product
from seeds import fresh
from tablesafe.core.hierarchy import Hierarchy
from tablesafe.core.problem import Problem
from tablesafe.core.sensitivity import Sensitivity
from tablesafe.methods.suppress import regions
from tablesafe.methods.suppress.branch_and_cut.exact import least_costly
from tablesafe.methods.suppress.instance import Instance
from tablesafe.methods.suppress.regions import Regions, improved_in_regions
from tablesafe.methods.suppress.search import Search
from tablesafe.work.budget import Budget


def flat(size: int) -> Hierarchy:
    return Hierarchy.flat([f"c{i}" for i in range(size)])


def a_problem(seed: int) -> Problem:
    random = np.random.default_rng(seed)
    table = product([flat(5), flat(4), flat(3)], random)
    mask = np.zeros(len(table), dtype=np.bool_)
    mask[random.choice(np.flatnonzero((table.value > 0) & ~table.is_total), 5, replace=False)] = True
    return Problem(table, sensitivity=Sensitivity.of(mask, np.ceil(table.value * 0.3)))


def a_search(problem: Problem) -> Search:
    """A search whose best pattern withholds all that it may."""
    instance = Instance.of(problem, problem.cost)
    search = Search(instance, budget=Budget(), seed=0, report=lambda cost, bound: None)
    search.keep(instance.live | instance.forced, instance.pattern_cost(instance.live | instance.forced))
    return search


@pytest.mark.parametrize("seed", fresh(3, "regions that are chosen anew leave every cell protected"))
def test_regions_that_are_chosen_anew_leave_every_cell_protected(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(regions, "IN_VAIN", 6)
    problem = a_problem(seed)
    search = a_search(problem)
    if least_costly(search.instance, Budget()) is None:
        return
    before = search.best_cost
    regions_ = Regions.of(search, lambda: False)
    assert regions_ is not None
    regions_.improve(search.instance.live, lambda: False)
    assert search.best is not None
    assert search.best_cost <= before
    assert search.best_cost == pytest.approx(search.instance.pattern_cost(search.best))
    assert not open_cells(problem, search.best)
    pattern, served = regions_.pattern, set()
    assert (pattern.withheld <= search.best).all()
    for held in pattern.deviations:
        move = held.whole(len(search.instance))
        assert np.abs(search.instance.rows @ move).max(initial=0.0) < 1e-6 * np.abs(move).max()
        for target in held.served.tolist():
            moved = search.instance.sign[target] * move[search.instance.cell[target]]
            assert moved >= search.instance.level[target] * (1 - 1e-6)
            served.add(target)
    assert served == set(range(len(search.instance.level)))


def test_regions_lead_to_the_least_cost_from_the_dearest_pattern(monkeypatch: pytest.MonkeyPatch) -> None:
    """A known seed, in which regions of a third of the table are enough."""
    monkeypatch.setattr(regions, "FIRST", 60.0)
    monkeypatch.setattr(regions, "GROWING", 1.0)
    search = a_search(a_problem(2))
    least = least_costly(search.instance, Budget())
    assert least is not None
    assert improved_in_regions(search, np.ones(len(search.instance)), seconds=60.0)
    assert search.best_cost == pytest.approx(least.cost)


def test_without_time_nothing_is_changed() -> None:
    search = a_search(a_problem(1))
    before = search.best_cost
    assert not improved_in_regions(search, None, seconds=-1.0)
    assert search.best_cost == before
