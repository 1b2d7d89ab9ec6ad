"""What the audit finds open is repaired, and everything that was protected stays so."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import tablesafe as ts
from tablesafe.audit.audit import audit
from tablesafe.methods.suppress.instance import Instance
from tablesafe.methods.suppress.levels import demanded
from tablesafe.methods.suppress.repair import _again, repaired
from tablesafe.problem import Problem
from tablesafe.release import Release


def firms(seed: int) -> Problem:
    """A few firms, some of them in several cells: most sensitive cells have contributors who know something."""
    random = np.random.default_rng(seed)
    n = 220
    frame = pl.DataFrame(
        {
            "a": random.choice([f"{i}{j}" for i in "xyz" for j in range(4)], n),
            "b": random.choice(list("pqrstuv"), n),
            "firm": random.integers(0, 90, n),
            "turnover": np.ceil(random.lognormal(3, 1.3, n)).astype(int),
        }
    )
    groups = ts.Hierarchy.from_pairs([("all", i) for i in "xyz"] + [(i, f"{i}{j}") for i in "xyz" for j in range(4)])
    table = ts.tabulate(frame, dimensions={"a": groups, "b": None}, value="turnover", respondent="firm", largest=4)
    return ts.Problem(table, rules=[ts.Threshold(n=3), ts.PPercent(p=20)])


@pytest.mark.parametrize("seed", range(6))
def test_a_pattern_that_thinks_of_outsiders_only_becomes_safe_from_insiders(seed: int) -> None:
    problem = firms(seed)
    found = ts.Suppress(time_limit_s=2, insiders=False, unions=False).protect(problem).suppressed
    before = audit(problem, Release.from_suppression(problem, found), certify=False)
    assert before.protected.all()
    assert not before.safe
    assert before.insiders is not None
    assert len(before.insiders.every) >= len(before.insiders.found)
    pattern = repaired(problem, Instance.of(demanded(problem, 0.0, {}), problem.cost, zeros=False), found)
    assert audit(problem, Release.from_suppression(problem, pattern)).safe
    assert (pattern >= found).all()


def test_the_number_of_an_insider_is_told_to_nobody() -> None:
    problem = firms(0)
    found = ts.Suppress(time_limit_s=2, insiders=False, unions=False).protect(problem)
    findings = audit(problem, found)
    assert findings.insiders is not None
    assert any(insider.members for insider in findings.insiders.found)
    assert "members" not in repr(findings.insiders.found[0])
    assert "members" not in findings.to_json()


@pytest.mark.parametrize("seed", range(3))
def test_looking_again_at_what_was_open_says_what_the_whole_audit_says(seed: int) -> None:
    problem = firms(seed)
    found = ts.Suppress(time_limit_s=1, insiders=False, unions=False).protect(problem).suppressed
    first = audit(problem, Release.from_suppression(problem, found), exact=False, certify=False)
    assert not first.safe
    random = np.random.default_rng(seed)
    for share in (0.0, 0.05, 0.3):
        more = found | (random.random(len(found)) < share)
        again = _again(problem, more, first, None)
        whole = audit(problem, Release.from_suppression(problem, more), exact=False, certify=False)
        assert {opening.cell for opening in again.open} == {opening.cell for opening in whole.open}
