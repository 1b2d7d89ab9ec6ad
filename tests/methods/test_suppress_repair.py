"""What the audit finds open is repaired, and everything that was protected stays so."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np
import polars as pl
import pytest

import tablesafe as ts
from seeds import fresh
from tablesafe.audit.audit import Audit, audit
from tablesafe.audit.respondent_knowledge import Lists
from tablesafe.core.equations import Mask
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release
from tablesafe.methods.suppress import insiders as parts
from tablesafe.methods.suppress.instance import Instance
from tablesafe.methods.suppress.levels import demanded
from tablesafe.methods.suppress.repair import _opened, repaired
from tablesafe.methods.suppress.widen_and_thin import judge_of
from tablesafe.work.budget import Budget
from tablesafe.work.run import OUTSIDERS, Run


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


@pytest.mark.parametrize("seed", fresh(2, "a pattern that thinks of outsiders only becomes safe from insiders"))
def test_a_pattern_that_thinks_of_outsiders_only_becomes_safe_from_insiders(seed: int) -> None:
    problem = firms(seed)
    found = ts.Suppress(time_limit_s=2).protect(problem, Run(attackers=OUTSIDERS)).suppressed
    before = audit(problem, Release.from_suppression(problem, found), certify=False)
    assert before.protected.all()
    assert not before.safe
    assert before.insiders is not None
    assert len(before.insiders.every) >= len(before.insiders.found)
    pattern, _ = repaired(Audit(problem), Instance.of(demanded(problem, 0.0, {}), problem.cost, zeros=False), found)
    assert audit(problem, Release.from_suppression(problem, pattern)).safe
    assert (pattern >= found).all()


def test_the_number_of_an_insider_is_told_to_nobody() -> None:
    problem = firms(0)
    found = ts.Suppress(time_limit_s=2).protect(problem, Run(attackers=OUTSIDERS))
    findings = audit(problem, found)
    assert findings.insiders is not None
    assert any(insider.members for insider in findings.insiders.found)
    assert "members" not in repr(findings.insiders.found[0])
    assert "members" not in findings.to_json()


@pytest.mark.parametrize("seed", fresh(2, "looking again at what was open says what the whole audit says"))
def test_looking_again_at_what_was_open_says_what_the_whole_audit_says(seed: int) -> None:
    problem = firms(seed)
    found = ts.Suppress(time_limit_s=1).protect(problem, Run(attackers=OUTSIDERS)).suppressed
    judge = judge_of(Audit(problem))
    assert not judge(found).safe
    random = np.random.default_rng(seed)
    for share in (0.0, 0.05, 0.3):
        more = found | (random.random(len(found)) < share)
        again = judge(more)
        whole = audit(problem, Release.from_suppression(problem, more), exact=False, certify=False)
        assert {opening.cell for opening in again.open} == {opening.cell for opening in whole.open}


@pytest.mark.parametrize("seed", fresh(2, "what was open to everyone is asked again of insiders too"))
def test_what_was_open_to_everyone_is_asked_again_of_insiders_too(seed: int) -> None:
    """A cell that nobody had to be an insider for was not looked at before: now it is, by whoever knows something."""
    problem = firms(seed)
    found = ts.Suppress(time_limit_s=1).protect(problem, Run(attackers=OUTSIDERS)).suppressed
    judge = judge_of(Audit(problem))
    assert not judge(problem.sensitivity.mask).protected.all()
    for more in (problem.sensitivity.mask, found):
        again = judge(more)
        whole = audit(problem, Release.from_suppression(problem, more), exact=False, certify=False)
        assert (again.protected == whole.protected).all()
        assert again.insiders is not None
        assert whole.insiders is not None
        assert {one.cell for one in again.insiders.found} == {one.cell for one in whole.insiders.found}
        assert {opening.cell for opening in again.open} == {opening.cell for opening in whole.open}


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables of the tests are large enough to be taken apart."""
    monkeypatch.setattr(parts, "SIZES", (20, 40, 70))


def open_to_insiders(seed: int) -> tuple[Problem, Mask, Instance]:
    """A problem, a pattern that thinks of outsiders only, and what is asked of one."""
    problem = firms(seed)
    found = ts.Suppress(time_limit_s=2).protect(problem, Run(attackers=OUTSIDERS)).suppressed
    return problem, found, Instance.of(demanded(problem, 0.0, {}), problem.cost, zeros=False)


KNOWN = 1
"""A seed of firms with many targets, and with parts that can be repaired by themselves."""


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("seed", [KNOWN, *fresh(1, "large tables are repaired in parts and safe")])
def test_large_tables_are_repaired_in_parts_and_safe(seed: int) -> None:
    problem, found, instance = open_to_insiders(seed)
    assert len(instance) > parts.SIZES[-1] or seed != KNOWN
    pattern, _ = repaired(Audit(problem), instance, found)
    assert audit(problem, Release.from_suppression(problem, pattern)).safe
    assert (pattern >= found).all()


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("seed", [KNOWN, *fresh(1, "whoever a part was found for learns too much no longer")])
def test_whoever_a_part_was_found_for_learns_too_much_no_longer(seed: int) -> None:
    problem, found, instance = open_to_insiders(seed)
    before = audit(problem, Release.from_suppression(problem, found), exact=False, certify=False).insiders
    assert before is not None
    asked, whose = parts.asked_by([one for one in before.every if one.certain], instance, problem)
    lists = Lists.of(problem.table)
    assert lists is not None
    opened = _opened(asked, found, 0)
    pattern, left = parts._in_parts(whose, opened, lists, problem.table.integers, None)
    assert len(left) < len(whose) or seed != KNOWN
    still_asked = {(whose[target].cell, whose[target].members) for target in left.tolist()}
    after = audit(problem, Release.from_suppression(problem, pattern), exact=False, certify=False).insiders
    assert after is not None
    served = {(one.cell, one.members) for one in whose} - still_asked
    assert served or seed != KNOWN
    assert not served & {(one.cell, one.members) for one in after.every if one.certain}


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("asked_before", [0, 3])
def test_repair_from_insiders_ends_with_its_time_and_keeps_what_it_has(asked_before: int) -> None:
    """A clock that goes on whenever somebody looks: the work of one round ends too, not only the rounds."""
    problem, found, instance = open_to_insiders(1)
    looks = iter(range(10**6))
    ended = Budget(2.0 * asked_before, clock=lambda: float(next(looks)))
    pattern, late = repaired(Audit(problem), instance, found, budget=ended)
    assert late
    assert (pattern >= found).all()
    insiders = audit(problem, Release.from_suppression(problem, found), exact=False, certify=False).insiders
    assert insiders is not None
    asked, whose = parts.asked_by([one for one in insiders.every if one.certain], instance, problem)
    lists = Lists.of(problem.table)
    assert lists is not None
    opened = _opened(asked, found, 0)
    over = Budget(0.0)
    assert (parts.against(whose, opened, lists, problem.table.integers, None, budget=over) == found).all()
    assert (parts.against(whose, opened, lists, problem.table.integers, None) != found).any()


@pytest.mark.usefixtures("small_parts")
def test_the_repair_is_the_same_whoever_does_the_work() -> None:
    problem, found, instance = open_to_insiders(1)
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        assert (
            repaired(Audit(problem), instance, found)[0] == repaired(Audit(problem, executor=pool), instance, found)[0]
        ).all()
