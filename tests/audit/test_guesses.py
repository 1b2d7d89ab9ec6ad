"""Guesses are proved or of no account: with them the audit says what it says without."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from oracle.counts import tree
from seeds import fresh
from tablesafe.audit import protection
from tablesafe.audit.audit import audit
from tablesafe.audit.neighbourhood import Guesses
from tablesafe.core.equations import roll_up
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release
from tablesafe.core.sensitivity import Sensitivity
from tablesafe.core.table import Table
from tablesafe.solve.exact import witnesses
from tablesafe.verify import verify


def a_release(seed: int, fans: tuple[tuple[int, ...], ...], decimals: int) -> tuple[Problem, Release]:
    """A table of which a part is withheld, whether that protects the sensitive cells or not."""
    random = np.random.default_rng(seed)
    dimensions = {name: tree(name, fan) for name, fan in zip("abcd", fans, strict=False)}
    leaves = [np.flatnonzero(~h.is_total) for h in dimensions.values()]
    grid = np.stack(np.meshgrid(*leaves, indexing="ij"), -1).reshape(-1, len(fans)).astype(np.int32)
    codes, sums = roll_up(grid, list(dimensions.values()), {"value": random.integers(0, 400, len(grid))})
    table = Table.from_codes(codes, sums["value"] / 10.0**decimals, dimensions, decimals=decimals)
    mask = ~table.is_total & (table.value > 0) & (random.random(len(table)) < 0.1)
    problem = Problem(table, sensitivity=Sensitivity.of(mask, np.minimum(table.value / 3, table.value)))
    return problem, Release.from_suppression(problem, mask | (random.random(len(table)) < 0.7))


KNOWN = (1, 4)
"""Seeds of releases in which some cell is protected, and a guess helps."""


@pytest.mark.parametrize("decimals", [0, 2])
@pytest.mark.parametrize("fans", [((5,), (5,), (5,)), ((3,), (3,), (3,), (4,)), ((2, 3), (4,), (4,))])
@pytest.mark.parametrize("seed", [*KNOWN, *fresh(1, "the audit says the same with guesses")])
def test_the_audit_says_the_same_with_guesses(
    seed: int, fans: tuple[tuple[int, ...], ...], decimals: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    problem, release = a_release(seed, fans, decimals)
    plain = audit(problem, release, exact=False)
    helped: list[int] = []
    guess = Guesses.__call__

    def counted(self: Guesses, side: int, need: float) -> Any:
        for point in guess(self, side, need):
            helped.append(side)
            yield point

    monkeypatch.setattr(protection, "LARGE", 0)
    monkeypatch.setattr(Guesses, "__call__", counted)
    monkeypatch.setattr(witnesses, "_from_the_truth", lambda polytope, part, ranges, store, *rest: store)
    guessed = audit(problem, release, exact=False)
    assert (guessed.protected == plain.protected).all()
    if seed in KNOWN:
        assert plain.protected.any()
        assert helped
    if plain.protected.any():
        assert guessed.certificate is not None
        guessed.certificate.save(tmp_path / "certificate.json")
        assert verify(tmp_path / "certificate.json").protected == int(guessed.protected.sum())


@pytest.mark.parametrize("decimals", [0, 2])
def test_where_there_are_boxes_guesses_are_enough(decimals: int, monkeypatch: pytest.MonkeyPatch) -> None:
    problem, _ = a_release(5, ((4,), (4,), (4,), (3,)), decimals)
    everything = Release.from_suppression(problem, np.ones(len(problem.table), dtype=np.bool_))

    class Never:
        def __init__(self, *_: object) -> None:
            raise AssertionError("guesses should have been enough")

    monkeypatch.setattr(protection, "LARGE", 0)
    monkeypatch.setattr(witnesses, "_from_the_truth", lambda polytope, part, ranges, store, *rest: store)
    monkeypatch.setattr(witnesses, "_WholePart", Never)
    assert audit(problem, everything, exact=False).safe
