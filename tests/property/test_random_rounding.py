"""Random and conventional rounding: what the release states, and what the audit derives from it, by brute force."""

from __future__ import annotations

from itertools import product

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tablesafe.audit.audit import audit
from tablesafe.core.mechanism import Transition
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release
from tablesafe.core.table import Table
from tablesafe.methods.round import Round

NAMES = ["a", "b", "c", "d"]
TOTALS = {"ab": "ab", "cd": "cd", "ac": "ac", "bd": "bd", "abcd": "abcd"}


def square(inner: np.ndarray) -> Table:
    """Two rows and two columns with all totals, as named cells."""
    of = dict(zip(NAMES, inner.tolist(), strict=True))
    values = of | {name: sum(of[part] for part in parts) for name, parts in TOTALS.items()}
    equations = ["ab = a + b", "cd = c + d", "ac = a + c", "bd = b + d", "abcd = ab + cd", "abcd = ac + bd"]
    return Table.from_equations(equations, {name: float(value) for name, value in values.items()})


def sums() -> np.ndarray:
    """Every cell of the square as a sum of the four inner ones."""
    return np.array([[part in name for part in NAMES] for name in [*NAMES, *TOTALS]], dtype=np.int64)


def roundable(true: np.ndarray, published: np.ndarray, base: int, method: str) -> np.ndarray:
    """Whether each published count can come from each true one."""
    down = true - true % base
    if method == "conventional":
        return published == np.where(2 * (true % base) >= base, down + base, down)
    return (published == down) | ((true % base > 0) & (published == down + base))


def possible(release: Release, base: int, method: str, additive: bool) -> tuple[np.ndarray, np.ndarray]:
    """The least and the most of every cell over all true tables that could have become this release."""
    top = int(release.values[:4].max()) + base
    tables = np.array(list(product(range(top), repeat=4)))
    cells = tables @ sums().T
    judged = slice(0, 4) if additive else slice(0, 9)
    fits = roundable(cells[:, judged], release.values[judged].astype(np.int64), base, method).all(axis=1)
    return cells[fits].min(axis=0), cells[fits].max(axis=0)


@given(
    st.lists(st.integers(0, 7), min_size=4, max_size=4),
    st.sampled_from([2, 3, 5]),
    st.sampled_from(["random", "conventional"]),
    st.booleans(),
    st.integers(0, 5),
)
@settings(max_examples=60)
def test_the_audit_derives_exactly_what_brute_force_does(
    inner: list[int], base: int, method: str, additive: bool, seed: int
) -> None:
    problem = Problem(square(np.array(inner)))
    release = Round(base=base, method=method, additive=additive, seed=seed).protect(problem)  # type: ignore[arg-type]
    least, most = possible(release, base, method, additive)
    assert (release.lower <= least).all()
    assert (most <= release.upper).all()
    findings = audit(problem, release, cells="all", insiders=False, unions=False, certify=False, integers=True)
    lower, upper = problem.table.value.copy(), problem.table.value.copy()
    lower[findings.cells], upper[findings.cells] = findings.lower, findings.upper
    np.testing.assert_allclose(lower, least, atol=1e-6)
    np.testing.assert_allclose(upper, most, atol=1e-6)


@given(st.lists(st.integers(0, 6), min_size=4, max_size=4), st.sampled_from([2, 3]), st.integers(0, 5))
@settings(max_examples=40)
def test_sums_of_inner_cells_not_shown_state_what_can_be_known(inner: list[int], base: int, seed: int) -> None:
    """All four inner cells are withheld: the reader knows only that each was rounded, and what they add up to."""
    table = square(np.array(inner))
    problem = Problem(table, withheld=~table.is_total)
    release = Round(base=base, method="random", additive=True, seed=seed).protect(problem)
    shown = release.values[4:].astype(np.int64)
    top = int(shown.max())
    rounded = np.array(list(product(range(0, top + 1, base), repeat=4)))
    rounded = rounded[(rounded @ sums()[4:].T == shown).all(axis=1)]
    least = (np.maximum(rounded - base + 1, 0) @ sums().T).min(axis=0)
    most = ((rounded + base - 1) @ sums().T).max(axis=0)
    assert (release.lower[4:] <= least[4:]).all()
    assert (most[4:] <= release.upper[4:]).all()
    assert (release.lower[4:] <= table.value[4:]).all()
    assert (release.upper[4:] == most[4:]).all()
    alone = release.values == 0
    assert (release.lower[alone] == 0).all()
    findings = audit(problem, release, cells="all", insiders=False, unions=False, certify=False, integers=True)
    assert (findings.lower >= least[findings.cells]).all()  # judged as if all were shown: no wider than what can be
    assert (findings.upper <= most[findings.cells]).all()
    small = (table.value > 0) & ~np.isin(np.arange(9), findings.cells[findings.lower < findings.upper])
    assert not small.any()


@given(st.integers(2, 9), st.integers(0, 10**6), st.booleans())
@settings(max_examples=30)
def test_expected_values_are_the_counts_themselves(base: int, seed: int, additive: bool) -> None:
    """By the probabilities of each inner cell, which the totals add up."""
    random = np.random.default_rng(seed)
    table = square(random.integers(0, 40, 4))
    release = Round(base=base, method="random", additive=additive, seed=seed).protect(Problem(table))
    assert release.mechanism is not None
    through = np.flatnonzero(release.mechanism.cells)
    assert through.tolist() == (list(range(4)) if additive else list(range(9)))
    transition = release.mechanism.transitions[0]
    candidates = np.arange(table.integers.max() + base + 1)
    chance = transition.probability(table.integers[through, None], candidates[None])
    np.testing.assert_allclose(chance.sum(axis=1), 1)
    np.testing.assert_allclose(chance @ candidates, table.value[through])
    if additive:
        assert (sums() @ release.values[:4] == release.values).all()


def test_the_transition_of_a_release_is_that_of_its_base() -> None:
    release = Round(base=7, method="random").protect(Problem(square(np.array([1, 2, 3, 4]))))
    assert release.mechanism is not None
    np.testing.assert_array_equal(release.mechanism.transitions[0].rows, Transition.random_rounding(7).rows)


def test_conventional_rounding_is_a_mechanism_without_chance() -> None:
    release = Round(base=5, method="conventional").protect(Problem(square(np.array([1, 2, 3, 4]))))
    assert release.mechanism is not None
    assert set(np.unique(release.mechanism.transitions[0].rows)) == {0.0, 1.0}
