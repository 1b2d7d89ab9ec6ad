"""The seed of a run of the tests: drawn afresh each time, in CI too, printed, and settable to repeat a failure."""

from __future__ import annotations

import os
import secrets

import numpy as np

VARIABLE = "TABLESAFE_TEST_SEED"


def session_seed() -> int:
    """The seed that everything random in the tests follows; worker processes inherit it."""
    return int(os.environ.setdefault(VARIABLE, str(secrets.randbelow(2**32))))


def fresh(number: int, what: str) -> list[int]:
    """So many seeds for one test, which nobody has seen before; equal in every worker of a session."""
    told = [session_seed(), *what.encode()]
    return [int(seed) for seed in np.random.SeedSequence(told).generate_state(number)]
