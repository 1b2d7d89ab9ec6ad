"""Choosing cells under inequalities: the least cost, and a stop in the middle when the user asks for it."""

from __future__ import annotations

import os
import signal
import threading
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tablesafe.solve.covering import Covering, Cut


@settings(max_examples=30)
@given(st.integers(0, 2**32 - 1))
def test_the_least_cost_is_found(seed: int) -> None:
    random = np.random.default_rng(seed)
    cost = random.integers(1, 9, 7).astype(float)
    cuts = [Cut(np.sort(random.choice(7, 3, replace=False)), np.ones(3)) for _ in range(5)]
    covering = Covering(cost)
    covering.add(cuts)
    choice = covering.choose(time_limit_s=5.0, start=None)
    best = min(cost @ x for x in map(np.array, product((0, 1), repeat=7)) if all(x[c.variables].sum() for c in cuts))
    assert choice is not None
    assert choice.objective == pytest.approx(best)
    assert choice.bound <= best + 1e-6


@settings(max_examples=30)
@given(st.integers(0, 2**32 - 1), st.booleans())
def test_what_is_fixed_is_the_same_in_every_better_answer(seed: int, whole: bool) -> None:
    """Reduced costs leave out nothing that an answer below the best known cost may need."""
    random = np.random.default_rng(seed)
    cost = random.integers(1, 9, 8).astype(float) + (0.0 if whole else 0.25)
    covering = Covering(cost)
    cuts = [Cut(np.sort(random.choice(8, 3, replace=False)), random.choice([0.5, 1.0], 3)) for _ in range(7)]
    covering.add(cuts)
    covering.relax()
    answers = [
        x
        for x in map(np.array, product((0, 1), repeat=8))
        if all(c.coefficients @ x[c.variables] >= 1 - 1e-9 for c in cuts)
    ]
    start = answers[random.integers(len(answers))]
    best = float(cost @ start)
    better = [x for x in answers if cost @ x < best - 1e-9]
    assert all((x <= covering.useful(best)).all() and (x >= covering.needed(best)).all() for x in better)
    choice = covering.choose(time_limit_s=5.0, start=start.astype(float), best=best)
    assert choice is not None
    assert choice.objective == pytest.approx(min([cost @ x for x in better], default=best))
    fewer = np.flatnonzero(covering.useful(best) | (start == 1))
    again = covering.among(fewer).choose(time_limit_s=5.0, start=start[fewer].astype(float))
    assert again is not None
    assert again.objective == pytest.approx(choice.objective)


def test_an_interrupt_stops_the_solver_and_the_signals_are_as_before() -> None:
    random = np.random.default_rng(1)
    covering = Covering(random.integers(10, 100, 400).astype(float))
    covering.add([Cut(np.sort(random.choice(400, 12, replace=False)), np.ones(12)) for _ in range(600)])
    before = signal.getsignal(signal.SIGINT)
    timer = threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        covering.choose(time_limit_s=120.0, start=None)
    assert signal.getsignal(signal.SIGINT) is before
