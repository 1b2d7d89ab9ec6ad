"""Ctrl-C during any stage of an adjustment: what was found so far is kept, and a second one ends the run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pytest

from tablesafe.core.problem import Problem
from tablesafe.core.release import Release
from tablesafe.core.sensitivity import Sensitivity
from tablesafe.core.table import Table
from tablesafe.methods.adjust import Adjust, capacities, distances
from tablesafe.methods.adjust import distances as squares
from tablesafe.methods.adjust.aims import Keep, Tabu
from tablesafe.methods.adjust.controlled_adjustment import Adjustment
from tablesafe.methods.adjust.direction_search import Search
from tablesafe.methods.adjust.keeping import Keeping
from tablesafe.methods.adjust.tabu.search import TabuSearch


def block() -> Problem:
    """Six by five cells, a quarter of them sensitive."""
    random = np.random.default_rng(4)
    rows, columns = np.divmod(np.arange(30), 5)
    frame = pl.DataFrame({"a": rows.astype(str), "b": columns.astype(str), "value": random.integers(5, 400, 30)})
    table = Table.from_cells(frame, dimensions=["a", "b"], missing_totals="compute")
    mask = ~table.is_total & (random.random(len(table)) < 0.25)
    level = np.ceil(0.2 * table.value)
    return Problem(table, sensitivity=Sensitivity.of(mask, level, level))


def at_call(monkeypatch: pytest.MonkeyPatch, where: Any, name: str, number: int, *, again: bool = False) -> None:
    """Interrupt at a call of a function, and at all further ones if asked for; the others go on as they would."""
    usual: Callable[..., Any] = getattr(where, name)
    calls = 0

    def interrupted(*arguments: Any, **options: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == number or (again and calls > number):
            raise KeyboardInterrupt
        return usual(*arguments, **options)

    monkeypatch.setattr(where, name, interrupted)


def good(problem: Problem, release: Release) -> None:
    values, mask, s = np.rint(release.values).astype(np.int64), problem.sensitivity.mask, problem.sensitivity
    moved = values - problem.table.integers
    assert not (problem.table.equations.astype(np.int64) @ values).any()
    assert ((moved >= s.upper) | (-moved >= s.lower))[mask].all()


STAGES: dict[str, tuple[Adjust, Any, str, int]] = {
    "flip": (Adjust(directions="search"), Search, "flip", 1),
    "blocks": (Adjust(directions="blocks"), Search, "_improve", 1),
    "relaxation": (Adjust(directions="optimal"), Search, "relax", 1),
    "random": (Adjust(directions="random", tries=5), Search, "offer", 3),
    "made whole": (Adjust(directions="up"), Adjustment, "_whole", 1),
    "squares": (Adjust(distance="squares"), squares, "least_squares", 1),
    "squares, turned": (Adjust(distance="squares", cost="constant"), squares, "_gain", 2),
    "squares, whole": (Adjust(distance="squares"), squares, "rounded", 1),
    "largest, whole": (Adjust(distance="largest"), distances, "replace_search", 1),
    "statistics": (Adjust(keep=Keep(variance="best")), Keeping, "_solve", 2),
    "statistics, cheaper": (Adjust(keep=Keep(slope=0.2)), Keeping, "cheapen", 1),
    "tabu, improved": (Adjust(tabu=Tabu(correlation=1.0)), TabuSearch, "_sweep", 2),
    "tabu, turned": (Adjust(tabu=Tabu(correlation=1.0)), TabuSearch, "_best_turn", 3),
    "capacities": (
        Adjust(capacity_percent=3.0, relax_capacity=True, directions="alternating"), capacities.Search, "flip", 1,
    ),
}  # fmt: skip


@pytest.mark.parametrize("stage", STAGES)
def test_an_interrupt_in_any_stage_keeps_a_good_answer(stage: str, monkeypatch: pytest.MonkeyPatch) -> None:
    method, where, name, number = STAGES[stage]
    problem = block()
    at_call(monkeypatch, where, name, number)
    with pytest.warns(UserWarning, match="best change so far is kept"):
        good(problem, method.protect(problem))


@pytest.mark.parametrize("stage", ["made whole", "squares, whole"])
def test_a_second_interrupt_ends_the_run(stage: str, monkeypatch: pytest.MonkeyPatch) -> None:
    method, where, name, number = STAGES[stage]
    at_call(monkeypatch, Search, "relax", 1)
    at_call(monkeypatch, where, name, number, again=True)
    with pytest.warns(UserWarning, match="best change so far is kept"), pytest.raises(KeyboardInterrupt):
        method.protect(block())
