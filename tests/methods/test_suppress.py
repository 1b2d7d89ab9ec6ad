"""Suppression: optimal on known instances, safe on all, clear when it cannot be done."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from tablesafe.audit.audit import audit
from tablesafe.core.equations import roll_up
from tablesafe.core.errors import InvalidOption, InvalidProblem
from tablesafe.core.hierarchy import Hierarchy
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release
from tablesafe.core.sensitivity import Sensitivity
from tablesafe.core.table import Table
from tablesafe.io.jj import read_jj
from tablesafe.methods.suppress import Suppress
from tablesafe.solve.program import SolveStatus


def open_cells(problem: Problem, release: Release) -> list[int]:
    """Sensitive cells that two fresh linear programs of another library find open; shares nothing with the audit."""
    table, hidden = problem.table, np.flatnonzero(release.suppressed)
    matrix = table.equations[:, hidden].toarray().astype(float)
    truth = table.value[hidden]
    rhs = matrix @ truth
    bounds = list(zip(problem.lower[hidden], problem.upper[hidden], strict=True))
    bounds = [(low, None if np.isinf(high) else high) for low, high in bounds]
    found = []
    for cell in problem.sensitive:
        at = int(np.flatnonzero(hidden == cell)[0])
        cost = np.zeros(len(hidden))
        cost[at] = 1.0
        ends = []
        for sign in (1, -1):
            answer = linprog(sign * cost, A_eq=matrix, b_eq=rhs, bounds=bounds, method="highs")
            ends.append(-sign * np.inf if answer.status == 3 else answer.x[at])
        value, slack = table.value[cell], 1e-6 * max(1.0, abs(table.value[cell]))
        low, high = problem.sensitivity.lower[cell], problem.sensitivity.upper[cell]
        if ends[0] > value - low + slack or ends[1] < value + high - slack:
            found.append(int(cell))
    return found


def random_problem(seed: int, *, dimensions: int = 2, share: float = 0.15) -> Problem:
    """A small hierarchical table with random sensitive cells and levels of a fifth of their value."""
    random = np.random.default_rng(seed)
    tree = Hierarchy.from_pairs([("T", "A"), ("T", "B"), ("A", "a1"), ("A", "a2"), ("B", "b1"), ("B", "b2")])
    dims = {"r": tree, "s": Hierarchy.flat(["x", "y", "z"]), "q": Hierarchy.flat(["u", "v"])}
    dims = dict(list(dims.items())[:dimensions])
    leaves = [np.flatnonzero(~h.is_total) for h in dims.values()]
    grid = np.stack(np.meshgrid(*leaves, indexing="ij"), -1).reshape(-1, dimensions).astype(np.int32)
    codes, sums = roll_up(grid, list(dims.values()), {"value": random.integers(0, 60, len(grid))})
    table = Table.from_codes(codes, sums["value"].astype(float), dims)
    inner = ~table.is_total & (table.value > 0)
    mask = inner & (random.random(len(table)) < share)
    level = np.ceil(table.value / 5)
    return Problem(table, sensitivity=Sensitivity.of(mask, level), frozen=table.value == 0)


@pytest.mark.parametrize("name", ["targus", "table8"])
@pytest.mark.parametrize("cost", ["problem", "unit"])
def test_known_optima_are_reached_and_proved(instances: Path, name: str, cost: str) -> None:
    lines = (instances / "jj" / "suppression_optima.jsonl").read_text().splitlines()
    wanted = {(row["inst"], row["cost"]): row["opt"] for row in map(json.loads, lines)}
    problem = read_jj(instances / "jj" / f"{name}.jj")
    release = Suppress(algorithm="optimal", cost=cost, time_limit_s=3600).protect(problem)
    assert release.solution is not None
    assert release.solution.status is SolveStatus.OPTIMAL
    assert release.solution.objective == pytest.approx(wanted[(f"{name}.jj", "value" if cost == "problem" else "unit")])


@pytest.mark.parametrize("name", ["targus", "table7", "hier13x7x7d", "table8"])
def test_every_small_instance_is_safe(instances: Path, name: str) -> None:
    problem = read_jj(instances / "jj" / f"{name}.jj")
    release = Suppress(algorithm="sequential", time_limit_s=1).protect(problem)
    findings = audit(problem, release)
    assert findings.safe
    assert open_cells(problem, release) == []


@settings(max_examples=12)
@given(st.integers(0, 2**32 - 1), st.sampled_from([2, 3]))
def test_an_independent_attacker_finds_nothing_open(seed: int, dimensions: int) -> None:
    problem = random_problem(seed, dimensions=dimensions)
    try:
        release = Suppress(time_limit_s=1).protect(problem)
    except InvalidProblem:
        everything = Release.from_suppression(problem, ~problem.frozen)
        assert open_cells(problem, everything)  # not even withholding everything would have done
        return
    assert open_cells(problem, release) == []


@settings(max_examples=4)
@given(st.integers(0, 2**32 - 1))
def test_the_optimum_is_one(seed: int) -> None:
    """On tiny tables, no cheaper pattern that the independent attacker finds safe exists."""
    random = np.random.default_rng(seed)
    values = random.integers(1, 20, (2, 3))
    rows = {"r": [], "c": [], "value": []}
    for r in ("T", "a", "b"):
        for c in ("T", "x", "y", "z"):
            picked = values if r == "T" else values[["ab".index(r)]]
            picked = picked if c == "T" else picked[:, ["xyz".index(c)]]
            rows["r"].append(r)
            rows["c"].append(c)
            rows["value"].append(float(picked.sum()))
    table = Table.from_cells(pl.DataFrame(rows), dimensions={"r": None, "c": None}, total="T")
    mask = np.zeros(len(table), dtype=np.bool_)
    mask[table.index(r="a", c="x")] = True
    problem = Problem(table, sensitivity=Sensitivity.of(mask, np.minimum(table.value, 2.0)))
    release = Suppress(algorithm="optimal", time_limit_s=3600).protect(problem)
    assert release.solution is not None
    assert release.solution.status is SolveStatus.OPTIMAL
    others = np.flatnonzero(~mask)
    best = np.inf
    for choice in range(2 ** len(others)):
        pattern = mask.copy()
        pattern[others[[bool(choice >> k & 1) for k in range(len(others))]]] = True
        cost = float(table.value[pattern & ~mask].sum())
        if cost < best and not open_cells(problem, Release.from_suppression(problem, pattern)):
            best = cost
    assert release.solution.objective == pytest.approx(best)


def test_the_same_seed_gives_the_same_pattern() -> None:
    problem = random_problem(7, dimensions=3)
    one, other = (Suppress(algorithm="sequential", seed=3).protect(problem) for _ in range(2))
    assert (one.suppressed == other.suppressed).all()


def test_nothing_sensitive_is_an_empty_answer() -> None:
    problem = random_problem(1, share=0.0)
    release = Suppress().protect(problem)
    assert not release.suppressed.any()
    assert release.solution is not None
    assert release.solution.status is SolveStatus.OPTIMAL


def test_everything_sensitive() -> None:
    problem = random_problem(2, dimensions=2)
    everything = Problem(problem.table, sensitivity=Sensitivity.of(problem.table.value > 0, 1.0))
    release = Suppress(zeros=True).protect(everything)
    assert audit(everything, release).safe


def test_what_was_withheld_before_stays_withheld_and_helps() -> None:
    problem = random_problem(5)
    first = Suppress().protect(problem)
    again = Suppress().protect(problem.replace(suppressed=first.suppressed & ~problem.sensitivity.mask))
    assert (again.suppressed >= first.suppressed).all()
    assert again.solution is not None
    assert again.solution.objective == 0


def test_a_margin_protects_further() -> None:
    problem = random_problem(11)
    release = Suppress(margin=0.5).protect(problem)
    levels = problem.sensitivity
    lower = np.minimum(levels.lower * 1.5, problem.table.value)
    wider = problem.replace(sensitivity=Sensitivity.of(levels.mask, lower, levels.upper * 1.5))
    assert open_cells(wider, release) == []


def test_frozen_cells_in_the_way_are_named() -> None:
    table = Table.from_cells({"r": ["Total", "A", "B", "C"], "value": [10, 2, 3, 5]}, dimensions=["r"])
    mask = np.array([False, True, False, False])
    frozen = np.array([True, False, True, True])
    problem = Problem(table, sensitivity=Sensitivity.of(mask, 1.0), frozen=frozen)
    with pytest.raises(InvalidProblem, match=r"\(r=A\) cannot be protected(.|\n)*frozen(.|\n)*unfreeze"):
        Suppress().protect(problem)


def test_levels_beyond_the_attackers_bounds_are_explained() -> None:
    table = Table.from_cells({"r": ["Total", "A", "B"], "value": [5, 2, 3]}, dimensions=["r"])
    mask = np.array([False, True, False])
    problem = Problem(table, sensitivity=Sensitivity.of(mask, 1.0, 50.0), upper=10.0)
    with pytest.raises(InvalidProblem, match="bounds leave it no room"):
        Suppress().protect(problem)


@pytest.mark.parametrize(
    ("options", "word"),
    [({"algorithm": "magic"}, "magic"), ({"time_limit_s": 0}, "time_limit_s"), ({"margin": -1}, "margin")],
)
def test_bad_options_are_named(options: dict[str, object], word: str) -> None:
    with pytest.raises(InvalidOption, match=word):
        Suppress(**options)  # type: ignore[arg-type]


def test_negative_costs_and_unknown_measures_are_refused() -> None:
    problem = random_problem(3)
    with pytest.raises(InvalidProblem, match="negative"):
        Suppress(cost=-np.ones(len(problem.table))).protect(problem)
    with pytest.raises(InvalidOption, match="did you mean 'value'"):
        Suppress(cost="valu").protect(problem)
