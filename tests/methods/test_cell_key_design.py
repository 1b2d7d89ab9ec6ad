"""Perturbation tables: the design keeps its conditions exactly, and says what cannot be had."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

import tablesafe as ts
from tablesafe.core.errors import InvalidOption

EXACT = 1e-12


@given(
    maximum=st.integers(1, 10), smallest=st.integers(1, 6), share=st.floats(0.001, 0.99),
    stay=st.none() | st.floats(0, 0.8), monotone=st.booleans(),
)  # fmt: skip
def test_every_row_keeps_its_conditions_exactly(
    maximum: int, smallest: int, share: float, stay: float | None, monotone: bool
) -> None:
    assume(smallest <= maximum)
    most = _largest_variance(maximum, monotone=monotone)
    variance = share * most if stay is None else (1 - stay) * (1 + share * (most - 1))
    table = ts.design_perturbation(
        maximum_change=maximum, variance=variance, smallest=smallest, stay=stay, monotone=monotone
    )
    found = table.constraints()
    assert (found["sum"] - 1).abs().max() <= EXACT
    assert found["mean"].abs().max() <= EXACT * maximum
    assert found["variance"][-1] == pytest.approx(variance, abs=EXACT * maximum**2)
    assert (table.probability >= 0).all()
    if stay is not None:
        assert found["stays"][-1] == pytest.approx(stay, abs=EXACT)
    lines = table.frame().filter(pl.col("p") > 0)
    assert lines["v"].abs().max() <= maximum
    assert not lines["j"].is_between(1, smallest - 1).any()
    assert lines["j"].min() == 0
    assert lines.filter(pl.col("i") == 0)["v"].to_list() == [0]
    if monotone:
        last = table.frame().filter(pl.col("i") == pl.col("i").max())
        for side in (last.filter(pl.col("v") > 0), last.filter(pl.col("v") < 0).reverse()):
            assert (side["p"].diff().drop_nulls() <= EXACT).all()


def _largest_variance(maximum: int, *, monotone: bool) -> float:
    """Where larger changes must not be likelier, the largest is that of equally likely ones."""
    return (maximum + 1) * (2 * maximum + 1) / 6 if monotone else float(maximum**2)


def test_order_is_given_up_for_large_counts_only_when_asked() -> None:
    with pytest.raises(InvalidOption, match=r"no change likelier than a smaller one it is 0 to 2\.5"):
        ts.design_perturbation(maximum_change=2, variance=3)
    assert ts.design_perturbation(maximum_change=2, variance=3, monotone=False).constraints()["variance"][
        -1
    ] == pytest.approx(3, abs=EXACT)


@settings(max_examples=20)
@given(maximum=st.integers(1, 8), smallest=st.integers(1, 4), variance=st.floats(0.05, 40))
def test_small_counts_get_the_variance_or_the_nearest_to_it(maximum: int, smallest: int, variance: float) -> None:
    assume(smallest <= maximum)
    assume(variance < _largest_variance(maximum, monotone=True))
    table = ts.design_perturbation(maximum_change=maximum, variance=variance, smallest=smallest)
    for count, got in table.constraints().select("count", "variance").rows()[1:]:
        points = np.array([v for v in range(-maximum, maximum + 1) if count + v == 0 or count + v >= smallest])
        low, high = (
            float(linprog(sign * points**2, A_eq=np.vstack([np.ones(len(points)), points]), b_eq=[1, 0]).fun) * sign
            for sign in (1, -1)
        )
        assert got == pytest.approx(min(max(variance, low), high), abs=1e-7)


def test_a_change_of_one_has_only_one_distribution() -> None:
    table = ts.design_perturbation(maximum_change=1, variance=0.3)
    assert table.frame().filter(pl.col("i") == 1)["p"].to_list() == pytest.approx([0.15, 0.7, 0.15], abs=EXACT)


def test_large_changes_are_not_likelier_than_small_ones() -> None:
    free = ts.design_perturbation(maximum_change=5, variance=3, smallest=3, stay=0.5, monotone=False).frame()
    ordered = ts.design_perturbation(maximum_change=5, variance=3, smallest=3, stay=0.5).frame()
    two, one = ((pl.col("i") == 6) & (pl.col("v") == v) for v in (-2, -1))
    assert free.filter(two)["p"].item() > free.filter(one)["p"].item()
    assert ordered.filter(two)["p"].item() <= ordered.filter(one)["p"].item() + EXACT


def test_the_sample_of_tau_argus_is_this_design(instances: Path) -> None:
    """Its table has changes up to 5, variance 3, no counts of 1 and 2, and a probability of 0.5 to stay."""
    sample = ts.read_perturbation(instances / "tauargus" / "cellkey" / "ptab_freq.txt")
    table = ts.design_perturbation(maximum_change=5, variance=3, smallest=3, stay=0.5)
    ours, theirs = table.frame().filter(pl.col("p") > 0), sample.frame()
    assert ours["i"].to_list() == theirs["i"].to_list()
    assert ours["v"].to_list() == theirs["v"].to_list()
    assert (ours["p"] - theirs["p"]).abs().max() < 5e-8  # the file has eight decimals


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"maximum_change": 1, "smallest": 3}, "A count of 1 cannot be changed with mean zero"),
        ({"maximum_change": 2, "smallest": 3}, "A count of 3 .* it cannot go both up and down"),
        ({"variance": 26.0, "monotone": False}, "Counts of 5 and more cannot have a variance of 26: .* it is 0 to 25"),
        (
            {"stay": 0.9, "monotone": False},
            "Counts of 5 and more cannot have a variance of 3: .* 0.9 to stay it is 0.1 to 2.5",
        ),
        ({"variance": 0.01, "stay": 0.5, "monotone": False}, "it is 0.5 to 12.5"),
        ({"variance": 0.01, "stay": 0.5}, "it is 0.5 to 5.5"),
        ({"maximum_change": 0}, "maximum_change of a perturbation table must be a whole number"),
        ({"variance": 0.0}, "must be a number above 0"),
        ({"variance": float("nan")}, "must be a number above 0"),
        ({"smallest": 0}, "smallest of a perturbation table"),
        ({"stay": 1.0}, "probability to stay"),
        ({"counts": (0, 2)}, "counts must be from 1 to 5"),
    ],
)
def test_what_cannot_be_had_is_said(options: dict[str, float], message: str) -> None:
    with pytest.raises(InvalidOption, match=message):
        ts.design_perturbation(**options)  # type: ignore[arg-type]


def test_probabilities_that_do_not_add_up_are_an_error() -> None:
    with pytest.raises(InvalidOption, match=r"count of 1 add up to 0.9, not to 1"):
        ts.PerturbationTable.of([(1, [-1, 1], [0.5, 0.4])])
    with pytest.raises(InvalidOption, match="negative"):
        ts.PerturbationTable.of([(1, [-1, 1], [1.5, -0.5])])
    with pytest.raises(InvalidOption, match="a count of 1 would become negative"):
        ts.PerturbationTable.of([(1, [-2, 2], [0.5, 0.5])])
    with pytest.raises(InvalidOption, match="0 must stay 0"):
        ts.PerturbationTable.of([(0, [0, 1], [0.5, 0.5]), (1, [0], [1])])
    with pytest.raises(InvalidOption, match="no row above 0"):
        ts.PerturbationTable.of([(0, [0], [1])])


@given(st.integers(0, 40), st.floats(0, 1, exclude_max=True))
def test_the_true_count_is_in_the_range_that_the_published_one_implies(count: int, key: float) -> None:
    table = ts.design_perturbation(smallest=3, stay=0.4)
    change = table.changes(np.array([min(count, len(table) - 1)]), np.array([key]))
    published = np.array([count]) + change.astype(np.int64)
    low, high = table.true_range(published)
    assert low[0] <= count <= high[0]
    every = np.arange(80)
    chance = table.transition.probability(every, np.full(80, published[0]))
    assert [low[0], high[0]] == [every[chance > 0].min(), every[chance > 0].max()]


def test_keys_divide_the_unit_interval() -> None:
    table = ts.PerturbationTable.of([(1, [-1, 0, 1], [0.25, 0.5, 0.25])])
    keys = np.array([0.0, 0.2499, 0.25, 0.7499, 0.75, 0.999999])
    assert table.changes(np.ones(6, dtype=np.intp), keys).tolist() == [-1, -1, 0, 0, 1, 1]
