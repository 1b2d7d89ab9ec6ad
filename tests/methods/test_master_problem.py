"""Choosing cells under inequalities: the least cost, part by part and on the whole."""

from __future__ import annotations

import signal
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tablesafe.methods.suppress.branch_and_cut.branching import Branching, Least, Node
from tablesafe.methods.suppress.branch_and_cut.master_problem import Covering, Cut
from tablesafe.methods.suppress.branch_and_cut.tree import least_answer
from tablesafe.solve import highs


def some_cuts(random: np.random.Generator, n: int, many: int) -> list[Cut]:
    """Cuts of all kinds: with fractions, with larger right-hand sides, and one variable that needs others."""
    cuts = []
    for _ in range(many):
        variables = np.sort(random.choice(n, 4, replace=False))
        kind = random.integers(3)
        if kind == 0:
            cuts.append(Cut(variables, random.choice([0.3, 0.5, 1.0], 4)))
        elif kind == 1:
            cuts.append(Cut(variables, np.ones(4), 2.0))
        else:
            cuts.append(Cut(variables, np.array([1.0, 1.0, 1.0, -1.0]), 0.0))
    return cuts


def answers(cuts: list[Cut], n: int) -> list[np.ndarray]:
    """All 0/1 points that fulfil the cuts."""
    points = map(np.array, product((0, 1), repeat=n))
    return [x for x in points if all(c.coefficients @ x[c.variables] >= c.least - 1e-9 for c in cuts)]


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.booleans(), st.sampled_from([0, 1, 100]))
def test_the_least_cost_is_found_and_no_bound_lies_above_it(seed: int, whole: bool, nodes: int) -> None:
    random = np.random.default_rng(seed)
    cost = random.integers(1, 9, 9).astype(float) + (0.0 if whole else random.random(9))
    cuts = some_cuts(random, 9, 7)
    best = min(float(cost @ x) for x in answers(cuts, 9))
    covering = Covering(cost)
    covering.add(cuts)
    covering.relax()
    assert covering.proved <= best + 1e-12
    choice = covering.choose(nodes=nodes, nodes_of_largest=nodes)
    assert choice.bound <= best * (1 + 1e-12)
    assert all(c.coefficients @ x[c.variables] >= c.least for c in choice.floors for x in answers(cuts, 9))
    if nodes == 100:
        assert choice.x is not None
        assert choice.bound == pytest.approx(best)
    if choice.x is not None:
        assert all(c.coefficients @ choice.x[c.variables] >= c.least - 1e-9 for c in cuts)
        assert not choice.least or cost @ choice.x == pytest.approx(best)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.booleans())
def test_branching_on_the_whole_finds_the_least_cost(seed: int, whole: bool) -> None:
    random = np.random.default_rng(seed)
    cost = random.integers(1, 9, 10).astype(float) + (0.0 if whole else random.random(10))
    cuts = some_cuts(random, 10, 12)
    known = answers(cuts, 10)
    covering = Covering(cost)
    covering.add(cuts)
    best = least_answer(covering, known[-1].astype(float))
    assert all(c.coefficients @ best[c.variables] >= c.least - 1e-9 for c in cuts)
    assert cost @ best == pytest.approx(min(float(cost @ x) for x in known))


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.booleans())
def test_what_is_fixed_is_the_same_in_every_better_answer(seed: int, whole: bool) -> None:
    """Reduced costs leave out nothing that an answer below the best known cost may need."""
    random = np.random.default_rng(seed)
    cost = random.integers(1, 9, 8).astype(float) + (0.0 if whole else 0.25)
    cuts = some_cuts(random, 8, 6)
    covering = Covering(cost)
    covering.add(cuts)
    known = answers(cuts, 8)
    best = float(cost @ known[random.integers(len(known))])
    better = [x for x in known if cost @ x < best - 1e-6]
    for _ in range(2):
        covering.relax()
        covering.fix(best)
    assert all((x <= covering.high).all() and (x >= covering.low).all() for x in better)
    choice = covering.choose(best=best, nodes_of_largest=100)
    assert (choice.x is None) == (not better)
    assert choice.bound == pytest.approx(min([float(cost @ x) for x in better], default=best))


def test_what_is_seen_of_variables_that_are_tried_is_used_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Known seeds: 124 and 185 nodes where a few variables are tried and what that decides waits for a branch."""
    nodes, open_one = [0], Branching.least

    def counted(self: Branching, node: Node, limit: float) -> Least:
        nodes[0] += 1
        return open_one(self, node, limit)

    monkeypatch.setattr(Branching, "least", counted)
    for seed, most in ((0, 80), (3, 120)):
        random = np.random.default_rng(seed)
        covering, nodes[0] = Covering(random.integers(50, 99, 60).astype(float)), 0
        covering.add(some_cuts(random, 60, 100))
        covering.relax()
        assert covering.choose(nodes=2000, nodes_of_largest=2000).least
        assert nodes[0] <= most


def test_an_answer_that_is_not_proved_to_be_the_least_is_told_as_such() -> None:
    random = np.random.default_rng(1)
    cost = random.integers(50, 99, 40).astype(float)
    cuts = some_cuts(random, 40, 60)
    covering = Covering(cost)
    covering.add(cuts)
    covering.relax()
    choice = covering.choose(nodes=12, nodes_of_largest=12)
    assert choice.x is not None
    assert not choice.least
    assert all(c.coefficients @ choice.x[c.variables] >= c.least - 1e-9 for c in cuts)
    assert choice.bound < cost @ choice.x


def test_a_contradiction_is_proved_not_believed() -> None:
    covering = Covering(np.ones(2))
    covering.add([Cut(np.array([0, 1]), np.ones(2), 1.0)])
    covering.high[:] = 0.0
    covering.relax()
    assert covering.proved == np.inf


def test_an_interrupt_stops_the_integer_solver_and_the_signals_are_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """It comes when the solver looks for the first time: however fast it is, it is not done by then."""
    judge, pressed = highs._Watch.judge, list[bool]()

    def interrupted(self: highs._Watch, event: Any) -> None:
        if not pressed:
            pressed.append(True)
            signal.raise_signal(signal.SIGINT)
        judge(self, event)

    monkeypatch.setattr(highs._Watch, "judge", interrupted)
    random = np.random.default_rng(1)
    covering = Covering(random.integers(10, 100, 400).astype(float))
    covering.add([Cut(np.sort(random.choice(400, 12, replace=False)), np.ones(12)) for _ in range(600)])
    covering.relax()
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        covering.choose(nodes=0, seconds=120.0)
    assert pressed
    assert signal.getsignal(signal.SIGINT) is before


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.booleans())
def test_answers_that_new_cuts_leave_alone_are_kept_and_still_the_least(seed: int, whole: bool) -> None:
    random = np.random.default_rng(seed)
    cost = random.integers(1, 9, 9).astype(float) + (0.0 if whole else random.random(9))
    cuts = some_cuts(random, 9, 8)
    covering = Covering(cost)
    for begin in range(0, 8, 2):
        covering.add(cuts[begin : begin + 2])
        covering.relax()
        best = min(float(cost @ x) for x in answers(covering.cuts, 9))
        choice = covering.choose(nodes=100, nodes_of_largest=100)
        assert choice.x is not None
        assert cost @ choice.x == pytest.approx(best)
        assert choice.bound == pytest.approx(best)
