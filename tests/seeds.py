"""The seed of a run of the tests: drawn afresh each time, in CI too, printed, and settable to repeat a failure."""

from __future__ import annotations

import os
import secrets

import numpy as np

VARIABLE = "TABLESAFE_TEST_SEED"
TIMES = "TABLESAFE_TEST_TIMES"
"""How many times as many seeds are drawn: `--times`, of `make soak`, sets it."""
drawn: set[int] = set()
"""Every seed that was drawn: what soaks are the tests that take one of them."""


def session_seed() -> int:
    """The seed that everything random in the tests follows; worker processes inherit it."""
    return int(os.environ.setdefault(VARIABLE, str(secrets.randbelow(2**32))))


def fresh(number: int, what: str) -> list[int]:
    """So many seeds for one test, which nobody has seen before; equal in every worker of a session."""
    told = [session_seed(), *what.encode()]
    found = [
        int(seed) for seed in np.random.SeedSequence(told).generate_state(number * int(os.environ.get(TIMES, "1")))
    ]
    drawn.update(found)
    return found
