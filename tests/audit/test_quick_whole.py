"""Large releases of changed whole numbers get the quick answer: it counts whole tables only."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from tablesafe.audit.audit import audit
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release, Status
from tablesafe.core.sensitivity import Sensitivity
from tablesafe.core.table import Table


def half_a_step() -> tuple[Problem, Release]:
    """p = t + u and q = t − u, q known and p to within 1: t can move by a half, so as a whole number not at all."""
    table = Table.from_equations(["p = t + u", "q = t - u"], {"p": 12, "t": 8, "u": 4, "q": 4})
    names = ["p", "t", "u", "q"]
    assert table.names is not None
    assert table.names.tolist() == names
    problem = Problem(table, sensitivity=Sensitivity.of(np.array([n == "t" for n in names]), np.zeros(4)))
    lower, upper = np.array([11.0, 0.0, 0.0, 4.0]), np.array([13.0, 99.0, 99.0, 4.0])
    status = np.array([Status.CHANGED, Status.CHANGED, Status.CHANGED, Status.PUBLISHED], dtype=np.uint8)
    return problem, Release(table, np.array([12.0, 9.0, 3.0, 4.0]), lower, upper, status, "made up")


@pytest.mark.parametrize("many", [0, 10**9])
def test_a_half_step_hides_nothing_from_who_knows_that_numbers_are_whole(
    monkeypatch: pytest.MonkeyPatch, many: int
) -> None:
    problem, release = half_a_step()
    module = sys.modules["tablesafe.audit.audit"]
    monkeypatch.setattr(module, "MANY_WHOLE", many)
    monkeypatch.setattr(module, "MANY", many)
    assert audit(problem, release, integers=False).safe
    assert not audit(problem, release, integers=True).safe
    assert not audit(problem, release, integers=True, certify=False).safe
