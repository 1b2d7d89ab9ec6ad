"""Tables adjusted region by region: whole, within all bounds, and near what one program over the table finds."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

from tablesafe.core.errors import OutOfTime
from tablesafe.core.hierarchy import Hierarchy
from tablesafe.core.problem import Problem
from tablesafe.core.sensitivity import Sensitivity
from tablesafe.core.table import Table
from tablesafe.methods.adjust import Adjust
from tablesafe.methods.adjust.blocks import Regions
from tablesafe.methods.adjust.costs import cost_of
from tablesafe.methods.adjust.direction_search import Search, settled
from tablesafe.methods.adjust.directions import alternating
from tablesafe.methods.adjust.instance import Allowance, Instance
from tablesafe.solve.least_change import LeastChange
from tablesafe.work.budget import ENDLESS, Budget


def tree(name: str, groups: int, leaves: int) -> Hierarchy:
    """Some groups, so many codes in each."""
    inner = [(f"{name}.{g}", f"{name}{g}_{k}") for g in range(groups) for k in range(leaves)]
    return Hierarchy.from_pairs([*((name, f"{name}.{g}") for g in range(groups)), *inner])


def three_ways(seed: int, *, totals: bool = False) -> Problem:
    """Three dimensions of two groups each, some cells empty, a fifth of the inner cells sensitive, or of all."""
    random = np.random.default_rng(seed)
    dimensions = {name: tree(name, 2, 4) for name in "abc"}
    leaves = {name: [code for code in d.codes if "_" in code] for name, d in dimensions.items()}
    at = [k.ravel() for k in np.meshgrid(*(np.arange(8),) * 3, indexing="ij")]
    value = np.where(random.random(512) < 0.2, 0, np.rint(np.exp(random.normal(4, 1.5, 512)))).astype(np.int64)
    codes = {name: [leaves[name][k] for k in places] for name, places in zip("abc", at, strict=True)}
    table = Table.from_cells(pl.DataFrame({**codes, "value": value}), dimensions=dimensions, missing_totals="compute")
    chosen = (table.value > 0) & (random.random(len(table)) < 0.2) & (totals | ~table.is_total)
    level = np.ceil(0.1 * table.value)
    return Problem(table, sensitivity=Sensitivity.of(chosen, level, level))


def instance_of(problem: Problem, limits: Allowance | None = None) -> Instance:
    return Instance.of(problem, cost_of(problem, "value"), limits or Allowance())


def deep_search(instance: Instance, seconds: float = 30.0) -> Search:
    """A search that must not solve the table as a whole."""
    search = Search(instance, Budget(seconds), np.random.default_rng(0))
    search.deep = True
    return search


@pytest.mark.parametrize("totals", [False, True])
def test_boxes_give_a_whole_change_in_the_directions_asked_for(totals: bool) -> None:
    problem = three_ways(1, totals=totals)
    instance = instance_of(problem)
    way = alternating(problem, instance)
    moves = settled(Regions.of(instance), way, np.random.default_rng(0), budget=ENDLESS)
    if totals:  # sensitive totals may ask for other directions: then nothing is better than something wrong
        assert moves is None or instance.holds(moves.astype(np.int64))
        return
    assert moves is not None
    assert instance.holds(np.rint(moves).astype(np.int64))
    assert (np.sign(moves[instance.targets]) == way).all()


def test_regions_come_near_the_least_change_and_never_below_it() -> None:
    problem = three_ways(2)
    instance = instance_of(problem)
    way = alternating(problem, instance)
    least = LeastChange(instance.rows, instance.cost, instance.cost, instance.scale()).solve(instance.box(way))
    assert least is not None
    search = deep_search(instance)
    search.offer(way)
    assert search.best is not None
    assert least.cost * (1 - 1e-9) <= search.cost <= 1.6 * least.cost
    assert search.cost == pytest.approx(instance.price(search.best.change.moves))


def test_turning_directions_region_by_region_pays() -> None:
    problem = three_ways(3)
    instance = instance_of(problem)
    search = deep_search(instance)
    search.offer(alternating(problem, instance))
    before = search.cost
    search.regions(rounds=2)
    assert search.cost < 0.95 * before
    assert search.best is not None
    assert instance.holds(np.rint(search.best.change.moves).astype(np.int64))


def test_a_region_holds_every_total_above_its_cells() -> None:
    problem = three_ways(4)
    regions = Regions.of(instance_of(problem))
    for seed in range(20):
        random = np.random.default_rng(seed)
        cells = regions.around(int(random.integers(len(regions.target))), 40, random)
        above = regions.totals.at(np.unique(regions.sums.at(cells)))
        assert np.isin(above, cells).all()


def test_deep_tables_with_tight_capacities_still_find_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where boxes do not suffice, directions are repaired by one program, and made whole."""
    monkeypatch.setattr(Instance, "deep", property(lambda self: True))
    problem = three_ways(5, totals=True)
    release = Adjust(capacity_percent=40, directions="search", time_limit_s=1).protect(problem)
    table, sensitive = problem.table, problem.sensitivity.mask
    moved = np.abs(release.values - table.value)
    assert not (table.equations @ release.values.astype(np.int64)).any()
    assert (moved >= problem.sensitivity.upper)[sensitive].all()
    assert (moved <= 0.4 * table.value)[~sensitive].all()


def test_a_program_that_takes_too_long_is_given_up_for_regions(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*arguments: Any, **options: Any) -> None:
        raise OutOfTime("too long")

    problem = three_ways(6)
    monkeypatch.setattr(LeastChange, "solve", never)
    release = Adjust(directions="alternating", time_limit_s=5).protect(problem)
    assert not (problem.table.equations @ release.values.astype(np.int64)).any()


def test_an_interrupt_keeps_the_best_change_so_far(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = three_ways(7)
    monkeypatch.setattr(Search, "flip", _interrupted)
    with pytest.warns(UserWarning, match="best change so far is kept"):
        release = Adjust(directions="search", time_limit_s=20).protect(problem)
    assert not (problem.table.equations @ release.values.astype(np.int64)).any()
    monkeypatch.setattr(Search, "offer", _interrupted)
    with pytest.raises(KeyboardInterrupt):
        Adjust(directions="search").protect(problem)


def _interrupted(*arguments: Any, **options: Any) -> None:
    raise KeyboardInterrupt
