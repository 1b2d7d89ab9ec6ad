"""Small-count rounding on random tables: nothing small is left, everything adds up, and what it states is so."""

from __future__ import annotations

from unittest import mock

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracle.smallcounts import least_error, possible
from tablesafe.audit.audit import audit
from tablesafe.core.hierarchy import Hierarchy
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release, Status
from tablesafe.core.table import Table
from tablesafe.methods.small_counts import SmallCounts
from tablesafe.methods.small_counts import conclusions as bounds
from tablesafe.methods.small_counts.units import Structure, Units


def cube(inner: np.ndarray) -> Table:
    """A flat table of any number of dimensions with all its totals and zeros."""
    hierarchies = {
        f"d{d}": Hierarchy.from_pairs([("T", str(code)) for code in range(size)]) for d, size in enumerate(inner.shape)
    }
    places = np.indices(inner.shape).reshape(inner.ndim, -1).astype(str)
    frame = dict(zip(hierarchies, places, strict=True)) | {"value": inner.ravel().astype(float)}
    return Table.from_cells(pl.DataFrame(frame), dimensions=hierarchies, missing_totals="compute")


def nested(random: np.random.Generator, mean: float) -> Table:
    """Two hierarchies of two levels below the total."""
    trees = [
        Hierarchy.from_pairs([("T", g) for g in "abc"] + [(g, g + leaf) for g in "ab" for leaf in "123"])
        for _ in range(2)
    ]
    rows = [(one, other) for one in trees[0].leaves for other in trees[1].leaves]
    frame = {"x": [r[0] for r in rows], "y": [r[1] for r in rows], "value": random.poisson(mean, len(rows)) * 1.0}
    return Table.from_cells(
        pl.DataFrame(frame), dimensions=dict(zip("xy", trees, strict=True)), missing_totals="compute"
    )


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    """Cubes and nested tables of small counts; all shown, or only margins, or some margins."""
    random = np.random.default_rng(draw(st.integers(0, 10**6)))
    mean = draw(st.sampled_from([0.4, 1.5, 4.0]))
    shape = draw(st.sampled_from([(4, 5), (3, 3, 4), (2, 3, 2, 2), None]))
    table = nested(random, mean) if shape is None else cube(random.poisson(mean, shape))
    hide = draw(st.sampled_from(["nothing", "inner", "some"]))
    hidden = np.zeros(len(table), dtype=np.bool_)
    if hide != "nothing":
        hidden |= ~table.is_total
    if hide == "some":
        hidden |= random.random(len(table)) < 0.3
        hidden[table.index()] = False
    return Problem(table, withheld=hidden)


def rounded_sums_exist(problem: Problem, release: Release) -> bool:
    """Whether the published counts are sums of something: with all inner cells shown, of the inner cells."""
    shown = ~release.suppressed
    full = np.where(shown, np.nan_to_num(release.values), 0.0)
    equations = problem.table.equations
    known = np.asarray(abs(equations) @ (~shown).astype(np.int64)) == 0
    return not (equations @ full)[known].any()


@given(problems(), st.sampled_from([2, 3, 5, 10]), st.integers(0, 3))
@settings(max_examples=24)
def test_no_small_count_is_left_and_all_adds_up(problem: Problem, limit: int, seed: int) -> None:
    table = problem.table
    release = SmallCounts(limit=limit, seed=seed).protect(problem)
    values = release.values[~problem.withheld]
    assert not ((values > 0) & (values < limit)).any()
    assert (values >= 0).all()
    assert np.isnan(release.values[problem.withheld]).all()
    assert rounded_sums_exist(problem, release)
    assert ((release.lower <= table.value) & (table.value <= release.upper)).all()
    assert ((release.status == Status.CHANGED) == (~problem.withheld & (release.values != table.value))).all()
    again = SmallCounts(limit=limit, seed=seed).protect(problem)
    assert (again.values[~problem.withheld] == values).all()


@given(problems(), st.sampled_from([2, 3, 5]))
@settings(max_examples=20)
def test_only_what_must_change_does(problem: Problem, limit: int) -> None:
    """A published count with no small count inside it, or beside it in the same total, is the true one."""
    release = SmallCounts(limit=limit).protect(problem)
    table, shown = problem.table, ~problem.withheld
    if not (shown & (table.integers > 0) & (table.integers < limit)).any():
        assert (release.values[shown] == table.value[shown]).all()
        assert (release.status != Status.CHANGED).all()
    if shown.all():
        inner = ~table.is_total
        kept = inner & ((table.integers >= limit) | (table.integers == 0))
        assert (release.values[kept] == table.value[kept]).all()
        exact = inner & (release.values > limit)
        assert (release.lower[exact] == release.upper[exact]).all()


def units_of(problem: Problem) -> tuple[Units, np.ndarray]:
    """The units of a problem, and each cell's sum as a row of ones and zeros."""
    structure = Structure.of(problem.table)
    assert structure is not None
    units = Units.of(structure, ~problem.withheld)
    at = np.arange(len(problem.table))
    return units, np.column_stack([structure.up((at == unit).astype(np.int64)) for unit in np.flatnonzero(units.first)])


@st.composite
def tiny(draw: st.DrawFn, *, shown: bool) -> Problem:
    """Tables so small that every table which agrees with the release can be tried; some counts announced as true."""
    random = np.random.default_rng(draw(st.integers(0, 10**6)))
    table = cube(random.poisson(draw(st.sampled_from([0.6, 1.2])), draw(st.sampled_from([(2, 2), (2, 3)]))))
    hidden = np.zeros(len(table), dtype=np.bool_)
    if not shown:
        hidden = ~table.is_total
        if draw(st.booleans()):
            hidden[draw(st.integers(0, len(table) - 1))] = True
    return Problem(table, withheld=hidden)


def concluded(problem: Problem, release: Release) -> tuple[np.ndarray, np.ndarray]:
    """What the audit says about every cell."""
    findings = audit(problem, release, cells="all", insiders=False, unions=False, certify=False, integers=True)
    lower, upper = problem.table.value.copy(), problem.table.value.copy()
    lower[findings.cells], upper[findings.cells] = findings.lower, findings.upper
    return np.rint(lower), np.rint(upper)


def tried(problem: Problem, release: Release, limit: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The cells that are made of whole units, and the least and the most that each of them can be.

    Where one cell of a shown margin is withheld by design and none of the others is 0, a reader may take it for one
    that was left out because it is empty, and so all that is shown for occupied.
    """
    occupied = problem.table.leaves_out_empty(~problem.withheld)
    shown = np.where(release.suppressed, -1, np.nan_to_num(release.values)).astype(np.int64)
    units, sums = units_of(problem)
    whole = units.whole()
    return whole, *possible(sums, np.where(whole, shown, -1), limit, occupied=occupied)


@given(tiny(shown=True), st.sampled_from([2, 3]))
@settings(max_examples=12)
def test_what_a_reader_can_conclude_is_stated_and_the_audit_agrees(problem: Problem, limit: int) -> None:
    release = SmallCounts(limit=limit).protect(problem)
    _, least, most = tried(problem, release, limit)
    for lower, upper in ((release.lower, release.upper), concluded(problem, release)):
        np.testing.assert_array_equal(lower, least)
        np.testing.assert_array_equal(upper, most)


@pytest.mark.parametrize("limit", [2, 3])
def test_one_cell_that_is_not_shown_may_be_empty_so_the_others_are_not(limit: int) -> None:
    """The first row shows 0 for its 1; a reader who takes the column that is missing for empty knows it was no 0."""
    table = cube(np.array([[1, 0], [0, 2]]))
    hidden = ~table.is_total
    hidden[table.index(d1="0")] = True
    problem = Problem(table, withheld=hidden)
    release = SmallCounts(limit=limit).protect(problem)
    row = table.index(d0="0")
    assert release.values[row] == 0
    whole, least, most = tried(problem, release, limit)
    for lower, upper in ((release.lower, release.upper), concluded(problem, release)):
        assert lower[row] == 1
        np.testing.assert_array_equal(lower[whole], least[whole])
        np.testing.assert_array_equal(upper[whole], most[whole])


@given(tiny(shown=False), st.sampled_from([2, 3]))
@settings(max_examples=4)
def test_the_same_where_inner_cells_are_not_shown(problem: Problem, limit: int) -> None:
    release = SmallCounts(limit=limit).protect(problem)
    assert release.judged is None
    whole, least, most = tried(problem, release, limit)
    for lower, upper in ((release.lower, release.upper), concluded(problem, release)):
        np.testing.assert_array_equal(lower[whole], least[whole])
        np.testing.assert_array_equal(upper[whole], most[whole])


@given(tiny(shown=False), st.sampled_from([2, 3]))
@settings(max_examples=15)
def test_large_tables_are_judged_no_milder_than_by_all_that_could_be(problem: Problem, limit: int) -> None:
    """What holds for tables too large to go through is tried on small ones."""
    with mock.patch.object(bounds, "FEW", 0):
        release = SmallCounts(limit=limit).protect(problem)
    assert release.judged is not None
    truth, (low, high) = problem.table.value, release.judged
    assert ((release.lower <= low) & (low <= truth) & (truth <= high) & (high <= release.upper)).all()
    whole, least, most = tried(problem, release, limit)
    assert (release.lower[whole] <= least[whole]).all()
    assert (release.upper[whole] >= most[whole]).all()
    lower, upper = concluded(problem, release)
    assert (lower[whole] >= least[whole]).all()
    assert (upper[whole] <= most[whole]).all()
    small = ~problem.withheld & (truth > 0) & (truth < limit)
    assert (lower[small] < upper[small]).all()  # and what was changed is not taken for known


@given(st.integers(0, 10**6), st.sampled_from([(3, 3), (3, 4), (2, 2, 3)]), st.sampled_from([3, 5]))
@settings(max_examples=40)
def test_errors_are_near_the_least_possible(seed: int, shape: tuple[int, ...], limit: int) -> None:
    problem = Problem(cube(np.random.default_rng(seed).poisson(1.5, shape)))
    release = SmallCounts(limit=limit, seed=seed).protect(problem)
    units, sums = units_of(problem)
    best = least_error(sums, problem.table.integers[units.first], limit)
    off = float(((release.values - problem.table.value) ** 2).sum())
    assert best <= off <= 1.2 * best + limit**2
