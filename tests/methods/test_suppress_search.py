"""The search for a pattern: clocks, and what is kept when they ring."""

from __future__ import annotations

import numpy as np
import pytest

from tablesafe.core.equations import Mask
from tablesafe.core.hierarchy import Hierarchy
from tablesafe.core.problem import Problem
from tablesafe.core.sensitivity import Sensitivity
from tablesafe.core.table import Table
from tablesafe.methods.suppress import construct_merge_solve, strategy
from tablesafe.methods.suppress import search as searching
from tablesafe.methods.suppress.branch_and_cut.exact import BranchAndCut
from tablesafe.methods.suppress.incumbent import Stop
from tablesafe.methods.suppress.instance import Instance
from tablesafe.methods.suppress.search import Search, Unfinished
from tablesafe.methods.suppress.sequential import Sequential
from tablesafe.methods.suppress.strategy import first_pattern
from tablesafe.work.budget import Budget


def a_search(seconds: float = 60.0) -> Search:
    """A 6 × 6 table with totals, five cells of it sensitive."""
    random = np.random.default_rng(3)
    inner = random.integers(5, 90, (6, 6))
    values = np.block([[inner, inner.sum(1, keepdims=True)], [inner.sum(0, keepdims=True), inner.sum()]])
    codes = [*"abcdef", "Total"]
    flat = Hierarchy.flat(codes[:-1], total="Total")
    frame = {"r": np.repeat(codes, 7), "c": np.tile(codes, 7), "value": values.ravel()}
    table = Table.from_cells(frame, dimensions={"r": flat, "c": flat})
    mask = ~table.is_total & (random.random(len(table)) < 0.15)
    problem = Problem(table, sensitivity=Sensitivity.of(mask, np.ceil(table.value / 5)))
    return Search(
        Instance.of(problem, problem.cost),
        budget=Budget(60, work=seconds),
        seed=0,
        report=lambda cost, bound: None,
    )


def test_what_a_part_found_counts_though_its_time_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    search = a_search()
    first_pattern(search)
    before = search.best_cost

    class EndsEarly:
        def __init__(self, part: Search) -> None:
            self._part = part

        def advance(self, stop: Stop) -> None:
            better: Mask = self._part.instance.forced.copy()
            self._part.keep(better, before / 2)
            self._part.prove(before / 4)

    monkeypatch.setattr(construct_merge_solve, "BranchAndCut", EndsEarly)
    assert construct_merge_solve.combine(search, seconds=1.0)
    assert search.bound == 0.0  # a bound among some cells says nothing about the others
    assert search.best_cost == before / 2


def test_a_first_pattern_without_time_says_so_and_hands_over_what_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    search = a_search(seconds=0.0)
    monkeypatch.setattr(searching, "boxed", lambda engine, targets, rarely: None)
    monkeypatch.setattr(searching, "GRACE", -1.0)
    with pytest.raises(Unfinished) as unfinished:
        first_pattern(search)
    assert search.best is None
    assert unfinished.value.pattern[search.instance.cell].all()


def test_a_search_goes_on_where_a_pattern_cannot_be_made_anew_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is better by what needs no program for each target."""
    search = a_search()
    first_pattern(search)
    asked: list[bool] = []

    def never_ends(*_: object, **__: object) -> None:
        asked.append(True)
        raise Unfinished(search.instance.forced)

    def settles(*_: object, seconds: float) -> bool:
        search.prove(search.best_cost if search.slow else 0.0)
        return False

    monkeypatch.setattr(Search, "build", never_ends)
    monkeypatch.setattr(strategy, "improved_in_regions", settles)
    search.bound = 0.0
    strategy.go_on(search, insist=False)
    assert asked == [True]


def test_where_a_quick_pattern_is_there_no_time_goes_to_moving_many_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """That is for tables without any: where it finds nothing, all the time of the search is gone (h_50k: 39 s)."""
    search, made = a_search(), list[bool]()
    of_boxes = search.build_of_boxes

    def only_to_fall_back_on(rarely: float = searching.RARELY) -> Sequential | None:
        return of_boxes(rarely=rarely) if rarely == strategy.AT_LEAST else None

    monkeypatch.setattr(search, "build_of_boxes", only_to_fall_back_on)
    monkeypatch.setattr(strategy, "_affordable", lambda _: False)
    monkeypatch.setattr(strategy, "_by_many_at_once", lambda _: pytest.fail("it was tried"))
    monkeypatch.setattr(strategy, "_by_programs", lambda _: made.append(True))
    first_pattern(search)
    assert search.best is not None
    assert made == [True]


@pytest.mark.parametrize("limit", [13.0, 39.0, 390.0])
def test_how_long_a_proof_is_tried_at_once_does_not_depend_on_the_limit(
    limit: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All that follows would go another way: h_10k was proved with a limit of 60 s, and not with 40 or 30."""
    search, over = a_search(limit), list[bool]()

    class Looked(Exception):
        pass

    def cut(self: BranchAndCut, stop: Stop) -> None:
        for work in (1.1, 0.2):
            search.budget.count(work)
            over.append(stop())
        raise Looked

    monkeypatch.setattr(BranchAndCut, "cut", cut)
    with pytest.raises(Looked):
        strategy.find(search, prove=True, insist=False, secure=lambda pattern: pattern)
    assert over == [False, True]


@pytest.mark.parametrize("choosing", [True, False])
def test_choosing_part_by_part_is_not_broken_off(choosing: bool) -> None:
    """It comes to an end; with shares of the limit the same proof was found with one limit and not with another."""
    search = a_search()
    first_pattern(search)
    search.exact = BranchAndCut(search)
    search.exact._choosing = choosing
    search.bound = 0.95 * search.best_cost
    enough = strategy._enough(search, insist=False)
    search.budget.count(search.left * 0.9)
    assert enough() is not choosing
    search.budget.count(search.left)
    assert enough()


@pytest.mark.parametrize("boxes", [True, False])
def test_quick_ways_leave_a_pattern_even_when_there_is_no_time(boxes: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    search = a_search(seconds=0.0)
    if not boxes:
        monkeypatch.setattr(searching, "boxed", lambda engine, targets, rarely: None)
    first_pattern(search)
    assert search.best is not None
    assert search.best[search.instance.cell].all()
    assert search.best_cost == pytest.approx(search.instance.pattern_cost(search.best))


@pytest.mark.parametrize("boxes", [True, False])
def test_quick_ways_protect_every_target_by_themselves(boxes: bool) -> None:
    """By the deviations alone, before any audit or repair: every target moves as far as it must, within bounds."""
    search = a_search(seconds=10.0)
    engine = search.build_of_boxes() if boxes else search.build()
    assert engine is not None
    pattern, before = engine.pattern, engine.pattern.cost
    search.settle(engine)
    assert pattern.cost <= before
    assert pattern.cost == pytest.approx(search.instance.pattern_cost(pattern.withheld))
    instance, served = search.instance, set()
    for held in pattern.deviations:
        move = np.zeros(len(instance))
        move[held.cells] = held.amount
        assert np.abs(instance.rows @ move).max() < 1e-6 * np.abs(move).max()
        served |= set(held.served.tolist())
        for target in held.served.tolist():
            reach = np.where(move > 0, instance.up, instance.down)[move != 0] / np.abs(move[move != 0])
            back = np.where(move > 0, instance.down, instance.up)[move != 0] / np.abs(move[move != 0])
            far = move[instance.cell[target]] * instance.sign[target]
            assert max(far * reach.min(), -far * back.min()) >= instance.level[target] * (1 - 1e-6)
    assert served == set(range(len(instance.level)))
