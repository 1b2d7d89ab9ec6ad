"""What offices ask of suppression: costs, preferences, last period, levels of every kind, several responses."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracle.suppression import TREE, grid, intervals, open_cells, product
from seeds import fresh
from tablesafe.audit.audit import Audit, audit
from tablesafe.core.equations import Floats
from tablesafe.core.errors import InvalidOption, InvalidProblem
from tablesafe.core.hierarchy import Hierarchy
from tablesafe.core.linking import RESPONSE, link
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release, Status
from tablesafe.core.sensitivity import Sensitivity
from tablesafe.core.table import Table
from tablesafe.methods.suppress import Suppress
from tablesafe.methods.suppress.costs import MEASURES, cost_of
from tablesafe.methods.suppress.instance import Instance
from tablesafe.methods.suppress.search import Search
from tablesafe.methods.suppress.stability import stability
from tablesafe.methods.suppress.widen_and_thin import judge_of, widened
from tablesafe.rules import PPercent, Threshold
from tablesafe.tabulate import tabulate
from tablesafe.work.budget import Budget
from tablesafe.work.run import Attackers, Run

VALUES = [[5, 6, 20], [7, 8, 30], [9, 40, 50]]


def one_sensitive(table: Table, level: float = 1.0, **codes: str) -> Sensitivity:
    mask = np.zeros(len(table), dtype=np.bool_)
    mask[table.index(**codes)] = True
    return Sensitivity.of(mask, level)


def complementary(release: Release) -> set[str]:
    return {release.table.describe(int(c)) for c in np.flatnonzero(release.status == Status.COMPLEMENTARY)}


# -- costs -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "formula"),
    [
        ("unit", lambda v: np.ones_like(v)),
        ("value", lambda v: v),
        ("log", lambda v: np.log(1 + v)),
        ("inverse", lambda v: 1 / (1 + v)),
        ("log_over_value", lambda v: np.log(1 + v) / (1 + v)),
    ],
)
def test_measures_are_what_they_say(name: str, formula: Callable[[Floats], Floats]) -> None:
    table = grid(VALUES)
    assert cost_of(Problem(table), name, 1.0) == pytest.approx(formula(table.value))


@pytest.mark.parametrize("power", [0.0, 0.5, 1.0, 2.0])
def test_box_cox_transforms_the_costs(power: float) -> None:
    table = grid(VALUES)
    wanted = np.log1p(table.value) if power == 0 else table.value**power
    assert cost_of(Problem(table), "value", power) == pytest.approx(wanted)


def test_distance_grows_with_the_steps_from_the_nearest_sensitive_cell() -> None:
    table = grid([[1, 2, 3, 4, 5], [6, 7, 8, 9, 10]])
    problem = Problem(table, sensitivity=one_sensitive(table, r="a", c="x"))
    cost = cost_of(problem, "distance", 1.0)
    along = [cost[table.index(r="a", c=c)] for c in "yzuv"]
    assert along == [1, 2, 3, 4]
    assert cost[table.index(r="b", c="v")] == 5
    near = Suppress(cost="distance").protect(problem)
    assert complementary(near) == {"(r=a, c=y)", "(r=b, c=x)", "(r=b, c=y)"}


def test_distance_counts_sums_in_a_table_without_dimensions() -> None:
    values = {"t": 10.0, "a": 4.0, "b": 6.0, "a1": 1.0, "a2": 3.0, "alone": 5.0}
    table = Table.from_equations(["t = a + b", "a = a1 + a2"], values)
    problem = Problem(table, sensitivity=Sensitivity.of(table.names == "a1", 1.0))
    assert cost_of(problem, "distance", 1.0).tolist() == [2, 1, 2, 1, 1, 3]


def test_costs_that_steer_to_large_cells_do() -> None:
    table = grid(VALUES)
    problem = Problem(table, sensitivity=one_sensitive(table, r="a", c="x"), frozen=table.is_total)
    small, large = (Suppress(cost=cost).protect(problem) for cost in ("value", "inverse"))
    assert complementary(small) == {"(r=a, c=y)", "(r=b, c=x)", "(r=b, c=y)"}
    assert complementary(large) == {"(r=a, c=z)", "(r=c, c=x)", "(r=c, c=z)"}


def test_a_column_and_an_array_are_the_same_cost() -> None:
    wish = {("b", "x"): 50.0, ("b", "y"): 50.0, ("a", "y"): 2.0, ("c", "x"): 1.0, ("c", "y"): 1.0, ("b", "z"): 9.0}
    table = grid(VALUES, wish=wish | {("a", "z"): 9.0, ("c", "z"): 9.0})
    problem = Problem(table, sensitivity=one_sensitive(table, r="a", c="x"), frozen=table.is_total)
    by_name, by_array = (Suppress(cost=c).protect(problem) for c in ("wish", table.columns["wish"]))
    assert complementary(by_name) == complementary(by_array) == {"(r=a, c=y)", "(r=c, c=x)", "(r=c, c=y)"}


def test_counts_cost_what_they_count() -> None:
    rows = {"r": ["Total", "a", "b", "c"], "value": [60, 10, 20, 30], "n": [16, 3, 9, 4]}
    table = Table.from_cells(rows, dimensions=["r"], count="n")
    problem = Problem(table, sensitivity=one_sensitive(table, r="a"), frozen=table.is_total)
    assert complementary(Suppress(cost="count").protect(problem)) == {"(r=c)"}
    assert complementary(Suppress(cost="value").protect(problem)) == {"(r=b)"}
    with pytest.raises(InvalidOption, match="number of contributors"):
        Suppress(cost="count").protect(Problem(grid(VALUES)))


@pytest.mark.parametrize("cost", list(MEASURES))
def test_every_cost_gives_a_safe_pattern(cost: str) -> None:
    tree = Hierarchy.from_pairs(TREE)
    table = product([tree, Hierarchy.flat(["x", "y", "z"])], np.random.default_rng(3))
    mask = ~table.is_total & (table.value > 40)
    count = np.maximum(table.integers // 10, 1)
    problem = Problem(Table(**{**vars_of(table), "count": count}), sensitivity=Sensitivity.of(mask, 5.0))
    assert open_cells(problem, Suppress(cost=cost, time_limit_s=2).protect(problem)) == []


def vars_of(table: Table) -> dict[str, object]:
    return {name: getattr(table, name) for name in table.__dataclass_fields__}


# -- preferences, last period, secrecy ---------------------------------------------------------------------------------


def test_degrees_of_preference_decide_between_cells() -> None:
    table = grid(VALUES)
    sensitivity = one_sensitive(table, r="a", c="x")
    problem = Problem(table, sensitivity=sensitivity, frozen=table.is_total)
    degree = np.zeros(len(table))
    wanted = ["(r=a, c=z)", "(r=b, c=z)", "(r=b, c=x)"]
    degree[[i for i in range(len(table)) if table.describe(i) in wanted]] = 5.0
    assert complementary(Suppress(prefer=degree).protect(problem)) == set(wanted)
    assert complementary(Suppress(prefer=-degree).protect(problem)).isdisjoint({"(r=a, c=z)", "(r=b, c=z)"})
    with pytest.raises(InvalidProblem, match="degrees go from -30 to 30"):
        Suppress(prefer=degree * 100).protect(problem)
    with pytest.raises(InvalidOption, match="'likes', which is no column"):
        Suppress(prefer="likes").protect(problem)


def test_last_periods_pattern_is_preferred_and_stability_measured() -> None:
    table = grid([[5, 6, 7], [8, 9, 10], [9, 11, 12]])
    problem = Problem(table, sensitivity=one_sensitive(table, r="a", c="x"), frozen=table.is_total)
    last = ["(r=a, c=x)", "(r=a, c=z)", "(r=c, c=x)", "(r=c, c=z)"]
    previous = np.array([table.describe(i) in last for i in range(len(table))])
    before, after = Suppress().protect(problem), Suppress(previous=previous).protect(problem)
    assert complementary(before) == {"(r=a, c=y)", "(r=b, c=x)", "(r=b, c=y)"}
    assert complementary(after) == set(last[1:])
    one, other = stability(problem, before, previous), stability(problem, after, previous)
    assert (one.before, one.kept, one.dropped, one.new) == (3, 0, 3, 3)
    assert (other.share_kept, other.similarity, other.new) == (1.0, 1.0, 0)
    assert "3 complementary cells of last period 3 are kept (100%)" in str(other)


def test_secret_seeds_give_different_patterns_of_equal_cost() -> None:
    """Who knows the algorithm, but not the seed, cannot tell which of the equally good patterns was chosen."""
    table = grid([[10, 10, 10, 10]] * 4)
    problem = Problem(table, sensitivity=one_sensitive(table, r="a", c="x"), frozen=table.is_total)
    patterns = {}
    for seed in range(1, 7):
        first, again = (Suppress(algorithm="sequential", randomise=1e-6, seed=seed).protect(problem) for _ in range(2))
        assert (first.suppressed == again.suppressed).all()
        assert first.solution is not None
        assert first.solution.objective == pytest.approx(30.0)
        patterns[first.suppressed.tobytes()] = seed
    assert len(patterns) > 2
    with pytest.raises(InvalidOption, match="seed"):
        Suppress(randomise=0.1)


def test_the_bound_holds_for_undisturbed_costs() -> None:
    table = product([Hierarchy.from_pairs(TREE), Hierarchy.flat(["x", "y", "z"])], np.random.default_rng(8))
    mask = ~table.is_total & (table.value > 45)
    problem = Problem(table, sensitivity=Sensitivity.of(mask, 9.0))
    plain = Suppress(algorithm="optimal", time_limit_s=600).protect(problem).solution
    secret = Suppress(algorithm="optimal", time_limit_s=600, randomise=0.3, seed=5).protect(problem).solution
    assert plain is not None
    assert secret is not None
    assert plain.gap == pytest.approx(0.0)
    assert secret.bound <= plain.objective * (1 + 1e-9) <= secret.objective * (1 + 2e-9)


# -- levels, bounds, zeros ---------------------------------------------------------------------------------------------


@settings(max_examples=15)
@given(st.integers(0, 2**32 - 1))
def test_sliding_and_asymmetric_levels_hold(seed: int) -> None:
    random = np.random.default_rng(seed)
    table = product([Hierarchy.flat(["a", "b", "c"]), Hierarchy.flat(["x", "y", "z"])], random, most=30)
    mask = ~table.is_total & (random.random(len(table)) < 0.25) & (table.value > 0)
    lower, upper = np.minimum(random.integers(0, 6, len(table)), table.value), random.integers(0, 9, len(table)) * 1.0
    sliding = random.integers(0, 16, len(table)) * 1.0
    problem = Problem(table, sensitivity=Sensitivity.of(mask, lower, upper, sliding))
    try:
        release = Suppress(time_limit_s=1).protect(problem)
    except InvalidProblem:
        assert open_cells(problem, (table.value != 0) | mask)  # everything that may be withheld would not have done
        return
    assert open_cells(problem, release) == []
    assert audit(problem, release).safe


def test_a_sliding_level_goes_to_the_side_that_has_room() -> None:
    """The total is published and the other part is zero: the cell cannot rise, but it can fall."""
    table = Table.from_cells({"r": ["Total", "A", "B"], "value": [5, 5, 0]}, dimensions=["r"])
    mask = np.array([False, True, False])
    frozen = np.array([True, False, False])
    for sensitivity in (Sensitivity.of(mask), Sensitivity.of(mask, 0.0, 0.0, 4.0)):
        problem = Problem(table, sensitivity=sensitivity, frozen=frozen)
        release = Suppress(zeros=True).protect(problem)
        assert release.suppressed.tolist() == [False, True, True]
        assert audit(problem, release).safe


def test_zeros_are_withheld_only_if_they_may_be() -> None:
    table = grid([[5, 0, 9], [0, 8, 9], [9, 9, 9]])
    mask = one_sensitive(table, r="a", c="x").mask
    problem = Problem(table, sensitivity=Sensitivity.of(mask, 1.0, 0.0), frozen=table.is_total)
    zero = table.value == 0
    assert not (Suppress().protect(problem).suppressed & zero).any()
    allowed = Suppress(zeros=True).protect(problem)
    assert (allowed.suppressed & zero).any()
    assert open_cells(problem, allowed) == []


def test_prior_bounds_take_room_away() -> None:
    """An attacker who knows all values to within 10% makes it take more, or larger, cells."""
    table = grid([[50, 6, 60], [7, 8, 90], [9, 40, 50]])
    sensitivity = one_sensitive(table, 5.0, r="a", c="x")
    loose = Suppress().protect(Problem(table, sensitivity=sensitivity))
    tight = Problem(table, sensitivity=sensitivity, lower=table.value * 0.9, upper=table.value * 1.1)
    release = Suppress().protect(tight)
    assert open_cells(tight, release) == []
    assert open_cells(tight, loose)


def test_a_margin_goes_only_as_far_as_there_is_room() -> None:
    """The level itself takes all that the prior bounds leave: a margin must not make the impossible of it."""
    table = grid([[2, 6, 20], [7, 8, 30], [9, 40, 50]])
    sensitivity = one_sensitive(table, 2.0, r="a", c="x")
    problem = Problem(table, sensitivity=sensitivity, upper=np.where(sensitivity.mask, 5.0, np.inf))
    release = Suppress(margin=1.0).protect(problem)
    low, high = intervals(problem, release.suppressed)[table.index(r="a", c="x")]
    assert (low, high) == (0.0, 5.0)


@settings(max_examples=10)
@given(st.integers(0, 2**32 - 1), st.sampled_from([0.1, 0.5, 2.0]))
def test_a_margin_protects_further_wherever_that_is_possible(seed: int, margin: float) -> None:
    random = np.random.default_rng(seed)
    table = product([Hierarchy.flat(["a", "b", "c"]), Hierarchy.flat(["x", "y", "z"])], random, most=30)
    mask = ~table.is_total & (random.random(len(table)) < 0.2) & (table.value > 4)
    problem = Problem(table, sensitivity=Sensitivity.of(mask, np.floor(table.value / 5)), frozen=table.value == 0)
    wider = problem.replace(
        sensitivity=Sensitivity.of(mask, np.minimum(problem.sensitivity.lower * (1 + margin), table.value),
                                   problem.sensitivity.upper * (1 + margin))
    )  # fmt: skip
    most = set(open_cells(wider, ~problem.frozen))
    assert set(open_cells(wider, Suppress(margin=margin, time_limit_s=2).protect(problem))) <= most


def test_counts_are_protected_against_who_knows_that_they_are_whole() -> None:
    random = np.random.default_rng(4)
    flat = [Hierarchy.flat(list(codes)) for codes in ("ab", "xy", "uvw")]
    table = product(flat, random, most=8)
    table = Table(**{**vars_of(table), "count": table.integers})
    problem = Problem(table, rules=[Threshold(n=3)])
    release = Suppress(zeros=True, time_limit_s=5).protect(problem)
    assert audit(problem, release, integers=True).safe


# -- contributors ------------------------------------------------------------------------------------------------------


def firms(seed: int, *, groups: bool) -> Table:
    random = np.random.default_rng(seed)
    n = 60
    data = pl.DataFrame(
        {
            "firm": np.arange(n),
            "group": random.integers(0, 25, n),
            "r": random.choice(list("abc"), n),
            "c": random.choice(list("xyz"), n),
            "turnover": np.round(np.exp(random.normal(3, 1, n))) + 1,
        }
    )
    holding = "group" if groups else None
    return tabulate(data, dimensions=["r", "c"], value="turnover", respondent="firm", holding=holding, largest=3)


@pytest.mark.parametrize("groups", [False, True])
@pytest.mark.parametrize("seed", fresh(4, "no insider no holding and no derivable sum is open"))
def test_no_insider_no_holding_and_no_derivable_sum_is_open(seed: int, groups: bool) -> None:
    table = firms(seed, groups=groups)
    problem = Problem(table, rules=[Threshold(n=3), PPercent(p=15)])
    release = Suppress(time_limit_s=5).protect(problem)
    findings = audit(problem, release)
    assert findings.insiders is not None
    assert findings.unions is not None
    assert findings.safe
    assert open_cells(problem, release) == []


def test_coalitions_are_kept_out_when_asked_for() -> None:
    table = firms(2, groups=False)
    problem = Problem(table, rules=[Threshold(n=3), PPercent(p=15)])
    release = Suppress(time_limit_s=5).protect(problem, Run(attackers=Attackers(coalition=2)))
    assert audit(problem, release, coalition=2).safe


@pytest.mark.parametrize("seed", fresh(3, "where aimed repair does not end more is withheld all around"))
def test_where_aimed_repair_does_not_end_more_is_withheld_all_around(seed: int) -> None:
    """From the sensitive cells alone, with the audit as the only guide: safe, and no cell of the start published."""
    table = firms(seed, groups=True)
    problem = Problem(table, rules=[Threshold(n=3), PPercent(p=15)])
    start = problem.sensitivity.mask
    instance = Instance.of(problem, problem.cost)
    pattern, _ = widened(problem, instance, start, judge_of(Audit(problem)), Budget(2))
    assert audit(problem, Release.from_suppression(problem, pattern)).safe
    assert pattern[start].all()
    assert not pattern.all()


def test_what_stays_open_to_insiders_is_said() -> None:
    """Two firms in all: whatever is withheld, each knows the other as well as the total does."""
    data = pl.DataFrame({"firm": [1, 2], "r": ["a", "b"], "turnover": [10.0, 20.0]})
    table = tabulate(data, dimensions=["r"], value="turnover", respondent="firm", largest=2)
    sensitivity = Problem(table, rules=[PPercent(p=15)]).sensitivity.where(~table.is_total)
    problem = Problem(table, sensitivity=sensitivity, frozen=table.is_total)
    with pytest.raises(InvalidProblem, match="stays open"):
        Suppress(time_limit_s=2).protect(problem)


# -- several response variables ----------------------------------------------------------------------------------------


def responses(seed: int) -> Problem:
    random = np.random.default_rng(seed)
    home, export = (random.integers(1, 60, (3, 3)) for _ in range(2))
    parts = {"home": home, "export": export, "all": home + export}
    tables = []
    for name, values in parts.items():
        table = grid(values.tolist())
        tables.append(Table(**{**vars_of(table), "response": name}))
    table = link(tables, equations="all = home + export")
    mask = ~table.is_total & (random.random(len(table)) < 0.08)
    return Problem(table, sensitivity=Sensitivity.of(mask, np.ceil(table.value / 5)))


@settings(max_examples=6)
@given(st.integers(0, 2**32 - 1))
def test_patterns_of_linked_responses_are_safe_apart_and_together(seed: int) -> None:
    problem = responses(seed)
    at = list(problem.table.dimensions).index(RESPONSE)
    apart, same = (Suppress(same_pattern=same, time_limit_s=3).protect(problem) for same in (False, True))
    assert open_cells(problem, apart) == []
    assert open_cells(problem, same) == []
    codes = np.delete(problem.table.codes, at, axis=1)
    withheld: dict[bytes, set[bool]] = {}
    for key, hidden in zip(codes, same.suppressed.tolist(), strict=True):
        withheld.setdefault(key.tobytes(), set()).add(hidden)
    assert all(len(kinds) == 1 for kinds in withheld.values())
    assert same.solution is not None
    assert same.solution.bound <= same.solution.objective


@settings(max_examples=4)
@given(st.integers(0, 2**32 - 1))
def test_the_same_pattern_hides_from_respondents_too(seed: int) -> None:
    """A few firms in many cells: repair against insiders is what makes these patterns safe, and it comes in groups."""
    random = np.random.default_rng(seed)
    n = 40
    frame = pl.DataFrame(
        {
            "firm": random.integers(0, 25, n),
            "r": random.choice(list("abc"), n),
            "c": random.choice(list("xyz"), n),
            "home": np.ceil(random.lognormal(3.0, 1.5, n)),
            "export": np.ceil(random.lognormal(2.0, 1.5, n)),
        }
    )
    parts = ("home", "export")
    tables = [tabulate(frame, dimensions=["r", "c"], value=part, respondent="firm", largest=3) for part in parts]
    problem = Problem(link(tables), rules=[PPercent(p=10)])
    release = Suppress(same_pattern=True, time_limit_s=3).protect(problem)
    assert audit(problem, release).safe


def test_the_same_pattern_needs_several_responses_and_no_contradiction() -> None:
    table = grid(VALUES)
    with pytest.raises(InvalidOption, match="several response variables"):
        Suppress(same_pattern=True).protect(Problem(table, sensitivity=one_sensitive(table, r="a", c="x")))
    problem = responses(1)
    cell = int(problem.sensitive[0])
    at = list(problem.table.dimensions).index(RESPONSE)
    alike = (np.delete(problem.table.codes, at, axis=1) == np.delete(problem.table.codes[cell], at)).all(axis=1)
    frozen = alike & ~problem.sensitivity.mask
    with pytest.raises(InvalidProblem, match="same_pattern withholds both or none"):
        Suppress(same_pattern=True).protect(problem.replace(frozen=frozen))


def test_progress_tells_cost_and_bound() -> None:
    heard: list[tuple[float, float]] = []
    table = product([Hierarchy.from_pairs(TREE), Hierarchy.flat(["x", "y", "z"])], np.random.default_rng(8))
    problem = Problem(table, sensitivity=Sensitivity.of(~table.is_total & (table.value > 45), 9.0))
    release = Suppress().protect(problem, Run(progress=lambda cost, bound: heard.append((cost, bound))))
    assert release.solution is not None
    assert heard[-1][0] == pytest.approx(release.solution.objective)
    assert heard[-1][1] == pytest.approx(release.solution.bound)
    assert [cost for cost, _ in heard] == sorted((cost for cost, _ in heard), reverse=True)


def test_an_interrupt_keeps_the_best_safe_pattern(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(search: Search, **_: object) -> None:
        search.offer(search.build())
        raise KeyboardInterrupt

    monkeypatch.setattr("tablesafe.methods.suppress.method.find", interrupted)
    table = product([Hierarchy.from_pairs(TREE), Hierarchy.from_pairs(TREE)], np.random.default_rng(8))
    problem = Problem(table, sensitivity=Sensitivity.of(~table.is_total & (table.value > 45), 9.0))
    with pytest.warns(UserWarning, match="Interrupted: the best pattern so far"):
        release = Suppress(algorithm="optimal").protect(problem)
    assert open_cells(problem, release) == []
