"""The least costly pattern: against the whole model written out, and what it leaves out on the way."""

from __future__ import annotations

from time import monotonic

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import optimize, sparse

from tablesafe.equations import Mask, roll_up
from tablesafe.hierarchy import Hierarchy
from tablesafe.methods.suppress import optimal
from tablesafe.methods.suppress.instance import Instance
from tablesafe.methods.suppress.narrowed import narrowed
from tablesafe.methods.suppress.optimal import optimise
from tablesafe.methods.suppress.search import Search
from tablesafe.methods.suppress.separation import Separation
from tablesafe.methods.suppress.strategy import first_pattern
from tablesafe.problem import Problem
from tablesafe.rules.sensitivity import Sensitivity
from tablesafe.table import Table


def a_search(seed: int, *, unit: bool = False) -> Search:
    """A 3 × 3 × 2 table with totals, some cells of it sensitive."""
    random = np.random.default_rng(seed)
    dimensions = {d: Hierarchy.flat([f"{d}{i}" for i in range(n)]) for d, n in (("r", 3), ("c", 3), ("l", 2))}
    leaves = [np.flatnonzero(~h.is_total) for h in dimensions.values()]
    grid = np.stack(np.meshgrid(*leaves, indexing="ij"), -1).reshape(-1, 3).astype(np.int32)
    codes, sums = roll_up(grid, list(dimensions.values()), {"value": random.integers(2, 90, len(grid))})
    table = Table.from_codes(codes, sums["value"].astype(float), dimensions)
    mask = np.zeros(len(table), dtype=np.bool_)
    mask[random.choice(np.flatnonzero(~table.is_total), 3, replace=False)] = True
    problem = Problem(table, sensitivity=Sensitivity.of(mask, np.ceil(table.value / 5)))
    cost = np.ones(len(table)) if unit else problem.cost
    return Search(
        Instance.of(problem, cost), deadline=monotonic() + 600, seconds=600, seed=0, report=lambda cost, bound: None
    )


def best_pattern(instance: Instance) -> Mask:
    """A pattern of the model written out: for every target a deviation, and no cell moves that is not withheld.

    It is no word of a solver that counts: presolve cuts good patterns off (HiGHS 1.12 calls 10 the optimum where a
    pattern of 9 is safe), and a binary of 1e-7 lets a cell move. So there is no presolve, and a pattern that one linear
    program a target finds open is excluded, and the next one asked for.
    """
    n, targets = len(instance), len(instance.level)
    moves = sparse.kron(sparse.eye_array(targets), instance.rows)
    link = sparse.vstack([sparse.eye_array(n)] * targets)
    scale = np.repeat(instance.level, n)
    up, down = (np.minimum(np.tile(room, targets) / scale, 100.0) for room in (instance.up, instance.down))
    wanted = np.zeros((targets, targets * n))
    wanted[np.arange(targets), np.arange(targets) * n + instance.cell] = instance.sign
    still, one = sparse.csr_array((moves.shape[0], n)), sparse.eye_array(targets * n)
    constraints = [
        optimize.LinearConstraint(sparse.csr_array(sparse.hstack([still, moves])), 0, 0),
        optimize.LinearConstraint(sparse.csr_array(sparse.hstack([-sparse.diags_array(up) @ link, one])), -np.inf, 0),
        optimize.LinearConstraint(sparse.csr_array(sparse.hstack([sparse.diags_array(down) @ link, one])), 0, np.inf),
        optimize.LinearConstraint(np.hstack([np.zeros((targets, n)), wanted]), 1, np.inf),
    ]
    bounds = optimize.Bounds(
        np.concatenate([instance.forced, -down]), np.concatenate([instance.live | instance.forced, up])
    )
    cost = np.concatenate([instance.cost, np.zeros(targets * n)])
    whole = np.concatenate([np.ones(n), np.zeros(targets * n)])
    while True:
        answer = optimize.milp(
            cost, constraints=constraints, bounds=bounds, integrality=whole, options={"presolve": False}
        )
        assert answer.status == 0
        pattern = answer.x[:n] > 0.5
        if protects(instance, pattern):
            return np.asarray(pattern)
        others = np.concatenate([~pattern, np.zeros(targets * n)])
        constraints.append(optimize.LinearConstraint(others[None, :], 1, np.inf))


def protects(instance: Instance, pattern: Mask) -> bool:
    """Whether every target can move as far as it must, one linear program each."""
    up, down = np.where(pattern, instance.up, 0.0), np.where(pattern, instance.down, 0.0)
    for cell, sign, level in zip(instance.cell, instance.sign, instance.level, strict=True):
        goal = np.zeros(len(instance))
        goal[cell] = -sign
        bounds = np.stack([-np.minimum(down, 1e6), np.minimum(up, 1e6)], axis=1)
        answer = optimize.linprog(goal, A_eq=instance.rows, b_eq=np.zeros(instance.rows.shape[0]), bounds=bounds)
        if -answer.fun < level * (1 - 1e-6):
            return False
    return True


@settings(max_examples=5, deadline=None)
@example(3628799, True, False, (0.6, 0.75))
@given(st.integers(0, 2**32 - 1), st.booleans(), st.booleans(), st.sampled_from([(0.6, 0.75), (0.99, 0.99)]))
def test_the_optimum_is_that_of_the_model_written_out(
    seed: int, unit: bool, soon: bool, fewer: tuple[float, float]
) -> None:
    """However soon the cells are left out that no better pattern uses."""
    search = a_search(seed, unit=unit)
    first_pattern(search)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(optimal, "FEWER", fewer[0])
        patch.setattr(optimal, "FEW", fewer[1])
        optimise(search, patience=5, insist=True, soon=soon)
    assert search.closed()
    assert search.best is not None
    assert search.best_cost == pytest.approx(search.instance.pattern_cost(search.best))
    assert protects(search.instance, search.best)
    least = search.instance.pattern_cost(best_pattern(search.instance))
    assert search.best_cost <= least * (1 + 1e-9)  # less would be the model's fault: both patterns are safe


def test_a_better_pattern_of_a_part_is_one_of_the_table() -> None:
    search = a_search(1)
    first_pattern(search)
    assert search.best is not None
    cells = np.flatnonzero(search.best)
    part = narrowed(search, cells)
    part.keep(part.instance.forced, 1.0)
    part.prove(0.5)
    assert search.best_cost == 1.0
    assert (search.best == search.instance.forced).all()
    assert search.bound == 0.0  # a bound among some cells says nothing about the others


def test_a_part_that_holds_all_better_patterns_proves_no_more_than_the_best_cost() -> None:
    search = a_search(1)
    first_pattern(search)
    assert search.best is not None
    part = narrowed(search, np.flatnonzero(search.best), proving=True)
    part.prove(search.best_cost * 2)
    assert search.bound == search.best_cost
    assert search.closed()


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_what_is_remembered_about_other_targets_is_true(seed: int) -> None:
    """Nothing is said to be protected by a fractional pattern that a whole linear program finds open."""
    search = a_search(seed)
    instance, random = search.instance, np.random.default_rng(seed)
    share = np.where(instance.forced, 1.0, random.random(len(instance)) * (random.random(len(instance)) < 0.7))
    candidates = np.flatnonzero(~instance.forced)
    variable = np.full(len(instance), -1)
    variable[candidates] = np.arange(len(candidates))
    separation = Separation(instance, search.neighbourhoods, search.solver, variable)
    separation.violated(share, whole=False)
    for target in range(len(instance.level)):
        if not separation.still_holds(target, share):
            continue
        goal = np.zeros(len(instance))
        goal[instance.cell[target]] = -instance.sign[target]
        low, high = (np.minimum(room * share / instance.level[target], 1e3) for room in (instance.down, instance.up))
        answer = optimize.linprog(
            goal, A_eq=instance.rows, b_eq=np.zeros(instance.rows.shape[0]), bounds=np.stack([-low, high], axis=1)
        )
        assert -answer.fun >= 1 - 1e-6
