"""Adjustments that keep statistics: what is promised, over random tables with hierarchies; options and messages."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import tablesafe as ts
from tablesafe.core.equations import Integers
from tablesafe.core.errors import InvalidOption, InvalidProblem
from tablesafe.core.linking import link
from tablesafe.core.sensitivity import Sensitivity
from tablesafe.loss.statistics import Relation, groups_of, pairs_of
from tablesafe.methods.adjust.costs import cost_of
from tablesafe.methods.adjust.forms import Between, Column, Curved, Linear
from tablesafe.methods.adjust.instance import Allowance, Instance

REGIONS = ts.Hierarchy.from_pairs([("T", "N"), ("T", "S"), ("N", "n1"), ("N", "n2"), ("S", "s1"), ("S", "s2")])
KINDS = ts.Hierarchy.flat(["x", "y", "z"], total="all", name="kinds")


def table_of(values: Integers, decimals: int = 0, response: str = "value") -> ts.Table:
    """Four districts in two regions, by three kinds, with all totals."""
    places = list(product(["n1", "n2", "s1", "s2"], ["x", "y", "z"]))
    frame = pl.DataFrame(
        {
            "region": [r for r, _ in places],
            "kind": [k for _, k in places],
            response: [int(v) / 10**decimals for v in values.ravel()],
            "block": [1.0 if r in {"n1", "s1"} else 2.0 for r, _ in places],
        }
    )
    return ts.Table.from_cells(
        frame, dimensions={"region": REGIONS, "kind": KINDS}, value=response, missing_totals="compute",
        columns=["block"],
    )  # fmt: skip


def problem_of(table: ts.Table, random: np.random.Generator, share: float = 0.35) -> ts.Problem:
    """Random sensitive cells, totals among them, with levels below a fifth of their values."""
    mask = (random.random(len(table)) < share) & (table.integers > 0)
    level = np.maximum(table.value * (0.02 + 0.15 * random.random(len(table))), 10.0**-table.decimals)
    return ts.Problem(table, sensitivity=Sensitivity.of(mask, np.minimum(level, table.value), level))


@st.composite
def problems(draw: st.DrawFn, *, decimals: tuple[int, ...] = (0, 1)) -> ts.Problem:
    """Random tables with a hierarchy; at least three cells are sensitive."""
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    values = np.where(random.random((4, 3)) < 0.1, 0, np.rint(10.0 ** (1.5 + 2.5 * random.random((4, 3)))))
    problem = problem_of(table_of(values.astype(np.int64), draw(st.sampled_from(decimals))), random)
    assume(len(problem.sensitive) >= 3)
    return problem


def moves_of(problem: ts.Problem, release: ts.Release) -> Integers:
    """The published changes in whole units."""
    units = release.values * 10.0**problem.table.decimals
    published = np.rint(units)
    np.testing.assert_allclose(published, units, rtol=1e-12, atol=1e-6)
    return published.astype(np.int64) - problem.table.integers


def promises(problem: ts.Problem, release: ts.Release, moves: Integers) -> None:
    """Sums hold in whole numbers, nothing sensitive is near its true value, nothing is negative."""
    table, s = problem.table, problem.sensitivity
    assert not (table.equations.astype(np.int64) @ moves).any()
    moved = moves / 10.0**table.decimals
    noise = 1e-9 * np.maximum(1.0, table.value)
    assert ((moved >= s.upper - noise) | (-moved >= s.lower - noise))[s.mask].all()
    assert (moves[s.mask] != 0).all()
    assert (table.integers + moves >= 0).all()
    assert not moves[table.integers == 0].any()
    assert ((release.lower <= table.value) & (table.value <= release.upper)).all()


def attempt(problem: ts.Problem, method: ts.Adjust) -> ts.Release | None:
    """The release, or none when the office asks too much."""
    try:
        return method.protect(problem)
    except InvalidProblem:
        return None


def adjust(keep: ts.Keep, **options: Any) -> ts.Adjust:
    return ts.Adjust(cost="constant", directions="alternating", keep=keep, time_limit_s=60, **options)


@given(problems(), st.sampled_from(["sensitive", "all", "inner", "region", "block"]))
@settings(max_examples=20)
def test_means_are_kept_exactly(problem: ts.Problem, over: str) -> None:
    release = attempt(problem, adjust(ts.Keep(over=over)))
    if release is None:
        return
    moves = moves_of(problem, release)
    promises(problem, release, moves)
    for group in groups_of(problem, over):
        assert moves[group.cells].sum() == 0


@given(problems(), st.sampled_from(["variance", "correlation", "slope"]), st.floats(0.01, 0.3), st.booleans())
@settings(max_examples=4)
def test_limits_hold(problem: ts.Problem, name: str, within: float, mean: bool) -> None:
    limits: dict[str, Any] = {name: within}
    release = attempt(problem, adjust(ts.Keep(mean=mean, **limits), capacity_percent=60.0))
    if release is None:
        return
    moves = moves_of(problem, release)
    promises(problem, release, moves)
    cells = problem.sensitive
    found = Relation.of(problem.table.value[cells], release.values[cells])
    deviation = {
        "variance": abs(found.variance_ratio - 1), "correlation": 1 - found.correlation, "slope": abs(found.slope - 1)
    }  # fmt: skip
    assert deviation[name] <= within + 1e-6
    assert not mean or moves[cells].sum() == 0
    capacity = np.floor(0.6 * problem.table.integers + 1e-9)
    assert (np.abs(moves) <= capacity)[~problem.sensitivity.mask].all()


def test_the_best_slope_is_the_best_over_all_directions() -> None:
    """With four sensitive cells the least |L| over every choice of directions, amounts by a fine grid."""
    random = np.random.default_rng(3)
    table = table_of(random.integers(100, 900, (4, 3)))
    inner = np.flatnonzero(~table.is_total)[[0, 4, 8, 11]]
    mask = np.zeros(len(table), np.bool_)
    mask[inner] = True
    level = np.where(mask, np.rint(0.1 * table.value), 0.0)
    problem = ts.Problem(table, sensitivity=Sensitivity.of(mask, level), upper=np.floor(1.2 * table.value),
                         lower=np.ceil(0.8 * table.value))  # fmt: skip
    release = adjust(ts.Keep(mean=False, slope="best")).protect(problem)
    ours = abs(Relation.of(table.value[inner], release.values[inner]).slope - 1)
    d = table.value[inner] - table.value[inner].mean()
    weights, low, high = d / (d @ d), level[inner], np.floor(0.2 * table.value[inner])
    reach = []
    for signs in product((1, -1), repeat=4):
        ends = np.sort(np.column_stack([weights * low * signs, weights * high * signs]), axis=1).sum(axis=0)
        reach.append(0.0 if ends[0] <= 0 <= ends[1] else float(np.abs(ends).min()))
    assert ours <= min(reach) + 4 / np.sqrt(d @ d)


def few_sensitive(seed: int) -> ts.Problem:
    """Six sensitive inner cells: directions and amounts are chosen together, so answers are the best there are."""
    random = np.random.default_rng(seed)
    table = table_of(random.integers(50, 500, (4, 3)))
    mask = np.zeros(len(table), np.bool_)
    mask[random.choice(np.flatnonzero(~table.is_total), 6, replace=False)] = True
    return ts.Problem(table, sensitivity=Sensitivity.of(mask, np.ceil(table.value * 0.1)))


def test_the_change_is_least_among_those_that_keep_the_statistics() -> None:
    problem = few_sensitive(8)

    def cost(**options: Any) -> float:
        solution = ts.Adjust(cost="constant", keep=ts.Keep(**options)).protect(problem).solution
        assert solution is not None
        return solution.objective

    mean, loose, tight = cost(), cost(slope=0.1), cost(slope=0.01)
    best, alone = cost(slope="best"), cost(slope="best", order="alone")
    assert mean <= loose <= tight + 2
    assert tight <= best + 2
    assert best <= alone + 2
    assert cost(slope="best", order="last") <= mean * (1 + 1e-6) + 2
    assert cost(slope="best", order="last", slack_percent=10) <= mean * 1.1 + 2


def test_equal_seed_equal_release() -> None:
    problem = few_sensitive(5)
    method = adjust(ts.Keep(variance="best", slope=0.1))
    np.testing.assert_array_equal(method.protect(problem).values, method.protect(problem).values)


# -- two responses -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def linked() -> ts.Problem:
    """Employees and turnover of the same cells, some of both sensitive."""
    random = np.random.default_rng(2)
    employees = random.integers(200, 900, (4, 3))
    turnover = (employees * random.uniform(5, 15, (4, 3))).astype(np.int64)
    table = link([table_of(employees, response="employees"), table_of(turnover, response="turnover")])
    mask = ~table.is_total & (random.random(len(table)) < 0.3)
    return ts.Problem(table, sensitivity=Sensitivity.of(mask, np.ceil(0.1 * table.value)))


@pytest.mark.parametrize("name", ["correlation", "slope"])
def test_the_relation_of_two_responses_is_kept(linked: ts.Problem, name: str) -> None:
    limits: dict[str, Any] = {name: 0.002}
    keep = ts.Keep(mean=True, responses=("employees", "turnover"), over="inner", **limits)
    release = adjust(keep).protect(linked)
    moves = moves_of(linked, release)
    promises(linked, release, moves)
    row = ts.statistics(linked, release, over="inner", responses=("employees", "turnover")).row(0, named=True)
    assert row["cells"] == 12
    off = abs(row[f"published {name}"] - row[name]) / (row[name] if name == "slope" else 1.0)
    assert off <= 0.002 + 1e-6
    for pair in pairs_of(linked, ("employees", "turnover"), groups_of(linked, "inner")):
        assert moves[pair.first].sum() == moves[pair.second].sum() == 0


def test_responses_are_named_and_there(linked: ts.Problem) -> None:
    with pytest.raises(InvalidOption, match="names 'profit'"):
        adjust(ts.Keep(responses=("employees", "profit"))).protect(linked)
    with pytest.raises(InvalidOption, match="two response variables"):
        ts.Keep(responses=("employees",))
    alone = problem_of(table_of(np.full((4, 3), 50)), np.random.default_rng(0))
    with pytest.raises(InvalidOption, match="several response variables"):
        adjust(ts.Keep(responses=("employees", "turnover"))).protect(alone)


# -- forms -------------------------------------------------------------------------------------------------------------


def columns() -> tuple[Column, Column]:
    random = np.random.default_rng(1)
    first, second = random.uniform(10, 100, 8), random.uniform(10, 100, 8)
    return Column("a", first, np.arange(6), np.arange(6)), Column("b", second, np.arange(2, 8), np.arange(6, 12))


@pytest.mark.parametrize("name", ["slope", "correlation"])
def test_tangents_of_relations_are_their_derivatives(name: str) -> None:
    first, second = columns()
    statistic = Between(first, second, name, None, "a, b")
    random = np.random.default_rng(4)
    at, step = random.normal(size=12) * 3, random.normal(size=12) * 1e-5
    row = statistic.rows(at)[0]
    ahead, back = statistic._signed(at + step), statistic._signed(at - step)
    assert row.coefficient @ step[row.cells] == pytest.approx((ahead - back) / 2, rel=1e-4)
    assert row.constant + row.coefficient @ at[row.cells] == pytest.approx(statistic._signed(at))


def test_forms_of_spread_are_exact_where_they_were_taken_and_below_elsewhere() -> None:
    first, _ = columns()
    random = np.random.default_rng(6)
    statistic = Curved(first, None, "variance")
    at = random.normal(size=12) * 20
    statistic.note(at)
    row = statistic.rows(at)[0]
    for moves in (at, random.normal(size=12) * 20, np.zeros(12)):
        spread = np.sqrt(Relation.of(first.values, first.published(moves)).variance_ratio)
        form = row.constant + row.coefficient @ moves[row.cells]
        assert form <= spread + 1e-12
        assert (moves is not at) or form == pytest.approx(spread)


def test_deviations_of_nothing_changed_are_zero() -> None:
    first, second = columns()
    still = np.zeros(12)
    for statistic in (Linear(first), Curved(first, None, "variance"), Curved(first, None, "correlation")):
        assert statistic.deviation(still) == pytest.approx(0, abs=1e-12)
    assert Between(first, second, "slope", None, "").deviation(still) == pytest.approx(0, abs=1e-12)


# -- options and messages ----------------------------------------------------------------------------------------------


def test_groups_by_word_dimension_column_and_name() -> None:
    problem = problem_of(table_of(np.arange(1, 13).reshape(4, 3)), np.random.default_rng(0))
    table = problem.table
    assert [g.name for g in groups_of(problem, "region")] == [f"region={c}" for c in REGIONS.codes]
    assert sum(g.cells.size for g in groups_of(problem, "region")) == len(table)
    mask = np.zeros(len(table), np.bool_)
    mask[:4] = True
    named = groups_of(problem, {"first": mask, "second": np.array([5, 6])})
    assert [g.cells.tolist() for g in named] == [[0, 1, 2, 3], [5, 6]]
    with pytest.raises(InvalidOption, match="did you mean 'region'"):
        groups_of(problem, "regoin")
    with pytest.raises(InvalidOption, match="mask of"):
        groups_of(problem, {"wrong": np.array([0.5])})


@pytest.mark.parametrize(
    "options", [{"variance": -1.0}, {"slope": "good"}, {"order": "middle"}, {"slack_percent": -1.0},
                {"formulation": "linear", "variance": 0.1}],
)  # fmt: skip
def test_options_are_checked(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidOption):
        ts.Keep(**options)


def test_a_mean_that_leaves_no_room_is_named() -> None:
    table = table_of(np.arange(10, 22).reshape(4, 3))
    mask = np.zeros(len(table), np.bool_)
    mask[3] = True
    problem = ts.Problem(table, sensitivity=Sensitivity.of(mask, 2.0))
    with pytest.raises(InvalidProblem, match=r"while the mean(?s:.)*mean=False"):
        adjust(ts.Keep()).protect(problem)
    assert adjust(ts.Keep(over="inner")).protect(problem).values[3] != table.value[3]


def test_a_limit_that_cannot_be_kept_is_named_with_what_can() -> None:
    problem = few_sensitive(8)
    with pytest.raises(InvalidProblem, match=r"correlation over sensitive cannot be kept within 1e-06(?s:.)*allow"):
        adjust(ts.Keep(correlation=1e-6)).protect(problem)


def test_a_group_without_spread_is_refused() -> None:
    problem = problem_of(table_of(np.full((4, 3), 50)), np.random.default_rng(1))
    with pytest.raises(InvalidOption, match="different values"):
        adjust(ts.Keep(mean=False, variance="best", over={"one": np.array([0])})).protect(problem)


def test_mean_rows_join_the_equations() -> None:
    problem = problem_of(table_of(np.arange(20, 32).reshape(4, 3)), np.random.default_rng(0))
    instance = Instance.of(problem, cost_of(problem, "constant"), Allowance())
    bound = ts.Keep().with_means(problem, instance).instance
    assert bound.matrix.shape[0] == instance.matrix.shape[0] + 1
    assert ts.Keep(mean=False).with_means(problem, instance).instance is instance


def test_statistics_of_a_release_that_changes_nothing() -> None:
    problem = problem_of(table_of(np.arange(20, 32).reshape(4, 3)), np.random.default_rng(0))
    release = ts.Release.from_suppression(problem, np.zeros(len(problem.table), np.bool_))
    frame = ts.statistics(problem, release, over="region")
    assert frame.height == len(REGIONS)
    for name in ("correlation", "slope", "variance ratio"):
        np.testing.assert_allclose(frame[name].to_numpy(), 1.0)
    assert (frame["chi-square"] == 0).all()
