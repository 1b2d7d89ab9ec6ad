"""An audit that is kept and asked again says what a fresh one says, whatever was asked before."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray

import tablesafe as ts
from seeds import fresh
from tablesafe.audit import outsiders
from tablesafe.audit.audit import Audit, audit
from tablesafe.audit.exact import ExactMove
from tablesafe.audit.findings import Findings
from tablesafe.audit.intervals import exact_intervals
from tablesafe.audit.proved import Proved
from tablesafe.audit.sums import ConstantSums, constant_sums
from tablesafe.audit.system import System
from tablesafe.core.errors import InvalidInput, InvalidRelease
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release
from tablesafe.core.sensitivity import Sensitivity
from tablesafe.files.serialization import freeze, thaw
from tablesafe.work.run import Attackers


def firms(seed: int, *, n: int = 110, rows: int = 6, columns: int = 5) -> Problem:
    """A few firms, some of them in several cells."""
    random = np.random.default_rng(seed)
    frame = pl.DataFrame(
        {
            "a": random.choice([f"a{i}" for i in range(rows)], n),
            "b": random.choice([f"b{i}" for i in range(columns)], n),
            "firm": random.integers(0, n // 2, n),
            "turnover": np.ceil(random.lognormal(3, 1.3, n)).astype(int),
        }
    )
    table = ts.tabulate(frame, dimensions={"a": None, "b": None}, value="turnover", respondent="firm", largest=4)
    return ts.Problem(table, rules=[ts.Threshold(n=3), ts.PPercent(p=20)])


def told(findings: Findings) -> Any:
    """What findings say of whom."""
    assert findings.unions is not None
    respondents = None if findings.insiders is None else {(o.cell, o.certain) for o in findings.insiders.found}
    return (
        findings.protected.tolist(),
        respondents,
        {(union.cells, union.certain) for union in findings.unions.failed},
        findings.verdict.word,
        {opening.cell for opening in findings.open},
    )


def walk(problem: Problem, seed: int, steps: int) -> list[np.ndarray[Any, Any]]:
    """Patterns that withhold more, and less, and other cells."""
    random = np.random.default_rng(seed + 1)
    pattern = problem.sensitivity.mask | (random.random(len(problem.table)) < 0.4)
    out = [pattern]
    for step in range(steps):
        pattern = pattern.copy()
        cells = random.choice(len(pattern), 1 + len(pattern) // 12, replace=False)
        pattern[cells] = step % 3 != 0 if step % 2 else ~pattern[cells]
        out.append(pattern)
    return out


@pytest.mark.parametrize("coalition", [1, 2])
@pytest.mark.parametrize("seed", fresh(2, "a kept audit says what a fresh one says"))
def test_a_kept_audit_says_what_a_fresh_one_says(seed: int, coalition: int) -> None:
    problem = firms(seed)
    session = Audit(problem, coalition=coalition)
    for pattern in walk(problem, seed, 5):
        release = Release.from_suppression(problem, pattern)
        again = session.judge(release, exact=False, certify=False)
        assert told(again) == told(audit(problem, release, exact=False, certify=False, coalition=coalition))


def four_cells() -> tuple[Problem, NDArray[np.intp]]:
    """A table of two by two with one sensitive cell, and its inner cells, that one first."""
    table = ts.Table.from_cells(
        {"a": ["x", "x", "y", "y"], "b": ["p", "q", "p", "q"], "value": [10, 20, 30, 40]},
        dimensions={"a": None, "b": None},
        missing_totals="compute",
    )
    inner = np.array([int(np.flatnonzero(table.value == value)[0]) for value in (10, 20, 30, 40)])
    return ts.Problem(table, sensitivity=Sensitivity.of(table.value == 10, 2.0, 2.0, 0.0)), inner


def withheld(problem: Problem, cells: NDArray[np.intp]) -> Release:
    pattern = np.zeros(len(problem.table), dtype=np.bool_)
    pattern[cells] = True
    return Release.from_suppression(problem, pattern)


@pytest.mark.parametrize("moves", [[5], [2, -2], [-2, 2, 0, 0], [2, -2, -2, 2]])
def test_what_is_suggested_is_checked_before_it_is_believed(moves: list[int]) -> None:
    """The other cell of the row is withheld, too, but the columns give both away."""
    problem, inner = four_cells()
    session = Audit(problem)
    session.suggest([ExactMove(np.sort(inner[: len(moves)]), np.array(moves)[np.argsort(inner[: len(moves)])])])
    release = withheld(problem, inner[:2])
    assert not session.judge(release, exact=False, certify=False).protected.any()


def test_what_is_suggested_and_true_needs_no_search(monkeypatch: pytest.MonkeyPatch) -> None:
    problem, inner = four_cells()
    release, order = withheld(problem, inner), np.argsort(inner)

    def never(*given: Any, **named: Any) -> Any:
        raise AssertionError("searched")

    monkeypatch.setattr(outsiders, "protection", never)
    monkeypatch.setattr(outsiders, "by_hypercubes", lambda *given: ())
    session = Audit(problem)
    session.suggest([ExactMove(inner[order], np.array([2, -2, -2, 2])[order])])
    assert session.judge(release, exact=False, certify=False).protected.all()
    with pytest.raises(AssertionError, match="searched"):
        Audit(problem).judge(release, exact=False, certify=False)


@pytest.mark.parametrize("seed", fresh(2, "a certificate of witnesses that were found before is proved"))
def test_a_certificate_of_witnesses_that_were_found_before_is_proved(seed: int, tmp_path: Path) -> None:
    problem = firms(seed)
    session = Audit(problem)
    for number, pattern in enumerate(walk(problem, seed, 4)):
        release = Release.from_suppression(problem, pattern)
        session.judge(release, exact=False, certify=bool(number % 2))
        again = session.judge(release)
        fresh_one = audit(problem, release)
        assert told(again) == told(fresh_one)
        assert np.allclose(again.lower, fresh_one.lower)
        assert np.allclose(again.upper, fresh_one.upper)
        path = tmp_path / f"{number}.json"
        assert again.certificate is not None
        again.certificate.save(path)
        checked = ts.verify(path)
        assert checked.protected == int(again.protected.sum())


@pytest.mark.parametrize("seed", fresh(2, "what if is the audit of the changed release"))
def test_what_if_is_the_audit_of_the_changed_release(seed: int) -> None:
    problem = firms(seed)
    pattern = ts.protect(problem, ts.Suppress(time_limit_s=2)).suppressed
    session = Audit(problem)
    session.judge(Release.from_suppression(problem, pattern), exact=False, certify=False)
    for cell in np.flatnonzero(pattern)[:4].tolist():
        without = pattern.copy()
        without[cell] = False
        whole = audit(problem, Release.from_suppression(problem, without), exact=False, certify=False)
        assert told(session.publish(np.array([cell]))) == told(whole)
    for cell in np.flatnonzero(~pattern & ~problem.frozen)[:2].tolist():
        more = pattern.copy()
        more[cell] = True
        whole = audit(problem, Release.from_suppression(problem, more), exact=False, certify=False)
        assert told(session.withhold(np.array([cell]))) == told(whole)
    assert (session.release.suppressed == pattern).all()


def test_what_withholds_more_asks_nobody_again_who_is_safe(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = firms(3)
    pattern = ts.protect(problem, ts.Suppress(time_limit_s=2)).suppressed
    session = Audit(problem)
    assert session.judge(Release.from_suppression(problem, pattern), exact=False, certify=False).safe
    asked: list[int] = []
    module = __import__("sys").modules["tablesafe.audit.outsiders"]
    search = module.protection

    def counted(system: System, wanted: Any, *others: Any, **options: Any) -> Any:
        asked.append(len(wanted))
        return search(system, wanted, *others, **options)

    monkeypatch.setattr(module, "protection", counted)
    more = session.withhold(~pattern & ~problem.frozen)
    assert more.protected.all()
    assert sum(asked) == 0
    assert more.insiders is not None
    assert more.insiders.programs == 0
    assert more.insiders.checked == len(problem.sensitive)


def test_a_witness_counts_only_where_it_has_the_room_it_had() -> None:
    """The same pattern with narrower bounds, as of changed values: what was proved with more room is not."""
    problem = firms(5)
    pattern = ts.protect(problem, ts.Suppress(time_limit_s=2)).suppressed
    wide = Release.from_suppression(problem, pattern)
    session = Audit(problem, insiders=False, unions=False)
    assert session.judge(wide).safe
    value = problem.table.value
    near = np.where(pattern, np.maximum(value - 1, 0), value), np.where(pattern, value + 1, value)
    narrow = Release(problem.table, wide.values, *near, wide.status)
    assert not session.judge(narrow).safe
    assert told_outsiders(session.judge(narrow)) == told_outsiders(audit(problem, narrow, insiders=False, unions=False))
    assert session.judge(wide).safe


def told_outsiders(findings: Findings) -> list[bool]:
    return [bool(each) for each in findings.protected.tolist()]


def test_only_the_newest_proofs_are_kept() -> None:
    problem = firms(6)
    pattern = ts.protect(problem, ts.Suppress(time_limit_s=2)).suppressed
    release = Release.from_suppression(problem, pattern)
    findings = audit(problem, release)
    assert findings.certificate is not None
    kept, groups = Proved(), findings.certificate.groups
    for _ in range(10):
        kept.keep(findings.system, groups, checked=True)
    assert len(kept._cell) <= 3 * len(problem.sensitive)
    holding = kept.holding(findings.system, certify=True)
    assert holding.cells.tolist() == problem.sensitive.tolist()
    assert sum(len(group) for group in holding.groups) == len(problem.sensitive)


def test_bounds_are_exact_and_worked_out_once(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = firms(7)
    pattern = ts.protect(problem, ts.Suppress(time_limit_s=2)).suppressed
    release = Release.from_suppression(problem, pattern)
    session = Audit(problem)
    findings = session.judge(release)
    lower, upper = session.bounds()
    every = exact_intervals(System.of(problem, release))
    assert np.allclose(lower[findings.system.cells], every.lower)
    assert np.allclose(upper[findings.system.cells], every.upper)
    known = np.setdiff1d(np.arange(len(problem.table)), findings.system.cells)
    assert (lower[known] == problem.table.value[known]).all()
    module = __import__("sys").modules["tablesafe.audit.intervals"]
    monkeypatch.setattr(module, "look", None)
    again = session.bounds(problem.sensitive)
    assert np.allclose(again[0], lower[problem.sensitive])


def test_what_cannot_be_asked_is_said() -> None:
    problem = firms(8)
    session = Audit(problem)
    with pytest.raises(InvalidInput, match="judge"):
        session.bounds()
    frozen = problem.replace(frozen=~problem.sensitivity.mask)
    session = Audit(frozen)
    session.judge(Release.from_suppression(frozen, frozen.sensitivity.mask), exact=False, certify=False)
    with pytest.raises(InvalidRelease, match="frozen"):
        session.withhold(np.flatnonzero(frozen.frozen)[:1])


def cube(seed: int) -> Problem:
    """Firms in three dimensions, one of them a tree: equations that share cells in long chains."""
    random = np.random.default_rng(seed)
    n = 260
    frame = pl.DataFrame(
        {
            "nace": random.choice(["A1", "A2", "A3", "B1", "B2", "C1", "C2", "C3"], n),
            "region": random.choice(["N", "S", "W"], n),
            "size": random.choice(["1", "2", "3"], n),
            "firm": random.integers(0, n, n),
            "turnover": np.ceil(random.lognormal(3, 1.3, n)).astype(int),
        }
    )
    tree = ts.Hierarchy.from_prefixes(sorted(set(frame["nace"])), lengths=[1])
    table = ts.tabulate(
        frame, dimensions={"nace": tree, "region": None, "size": None}, value="turnover", respondent="firm", largest=4
    )
    return ts.Problem(table, rules=[ts.Threshold(n=4), ts.PPercent(p=20)])


@pytest.mark.parametrize("seed", fresh(1, "what if goes on from findings"))
def test_what_if_goes_on_from_findings_that_were_kept(seed: int) -> None:
    """As the app asks: the findings were written, and read by another process."""
    problem = cube(seed)
    release = ts.protect(problem, ts.Suppress(time_limit_s=0.5))
    findings: Findings = thaw(freeze(audit(problem, release)))
    session = Audit.after(findings, Attackers())
    cells = np.random.default_rng(seed).permutation(np.flatnonzero(release.suppressed))[:4]
    for cell in cells.tolist():
        changed = release.publishing(np.arange(len(problem.table)) == cell)
        assert told(session.publish([cell])) == told(audit(problem, changed, exact=False, certify=False))
    many = np.isin(np.arange(len(problem.table)), cells)
    assert told(session.publish(many)) == told(audit(problem, release.publishing(many), exact=False, certify=False))


def test_findings_that_are_kept_are_not_worked_out_again(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = cube(3)
    release = ts.protect(problem, ts.Suppress(time_limit_s=0.5))
    findings = audit(problem, release)
    assert findings.safe
    session = Audit.after(findings, Attackers())
    asked: list[int] = []
    search = outsiders.protection

    def counted(system: System, wanted: Any, *others: Any, **options: Any) -> Any:
        asked.append(len(wanted))
        return search(system, wanted, *others, **options)

    monkeypatch.setattr(outsiders, "protection", counted)
    again = session.judge(release, exact=False, certify=False)
    assert again.safe
    assert sum(asked) == 0
    assert again.insiders is not None
    assert again.insiders.programs == 0


@pytest.mark.parametrize("seed", fresh(3, "sums beyond those that are known"))
def test_sums_that_a_published_cell_adds_are_all_found(seed: int) -> None:
    """Those of a fresh search that were not judged before; and no other."""
    problem = cube(seed)
    random = np.random.default_rng(seed)
    pattern = problem.sensitivity.mask | (random.random(len(problem.table)) < 0.5)
    base = System.of(problem, Release.from_suppression(problem, pattern))
    before = constant_sums(base)
    for cell in random.choice(np.flatnonzero(pattern), 6, replace=False).tolist():
        less = pattern.copy()
        less[cell] = False
        system = System.of(problem, Release.from_suppression(problem, less))
        every, beyond = constant_sums(system), constant_sums(system, known=before.known)
        assert beyond.beyond
        assert as_cells(system, beyond) <= as_cells(system, every)
        assert as_cells(system, every) - as_cells(base, before) <= as_cells(system, beyond)


def as_cells(system: System, sums: ConstantSums) -> set[tuple[int, ...]]:
    """Sums as the table's cells."""
    found = np.split(system.cells[sums.cells.indices], sums.cells.indptr[1:-1])
    return {tuple(sorted(each.tolist())) for each in found} if len(sums) else set()
