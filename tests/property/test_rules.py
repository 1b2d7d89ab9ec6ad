"""Masks and levels follow from what disclosure means, tried out contributor by contributor in exact fractions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations, permutations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from tablesafe.core.table import Contributors, Table
from tablesafe.rules import PQ, AllOf, AnyOf, Dominance, LinearSensitivity, PPercent, Rule, Threshold, Waiver
from tablesafe.rules.explorer import (
    Family,
    convert,
    counterexample,
    is_subadditive,
    safe_region,
    sensitive_at,
    sensitivity_of,
)

Amounts = Sequence[Fraction]
Shortfall = Callable[[Amounts, Fraction], Fraction]


@dataclass(frozen=True)
class Record:
    """What one respondent of a holding reported, and its sampling weight."""

    holding: int
    amount: Fraction
    weight: Fraction = Fraction(1)


Cell = list[Record]


def records(*, lowest: int = 0, highest: int = 60, weights: Sequence[int] = (10,)) -> st.SearchStrategy[list[Cell]]:
    """Tables of a few cells; small amounts, so that ties and exact boundaries are frequent."""
    record = st.builds(
        Record,
        st.integers(0, 6),
        st.integers(lowest, highest).map(lambda n: Fraction(n, 10)),
        st.sampled_from(weights).map(lambda w: Fraction(w, 10)),
    )
    return st.lists(st.lists(record, max_size=6), min_size=1, max_size=5)


def merged(cell: Cell) -> list[tuple[int, Fraction, Fraction]]:
    """Each holding once: who, what it reported, what it adds to the weighted total; the largest first."""
    holdings = sorted({record.holding for record in cell})
    of = {h: [r for r in cell if r.holding == h] for h in holdings}
    sums = [(h, sum((r.amount for r in of[h]), Fraction(0)), weighted_sum(of[h])) for h in holdings]
    return sorted(sums, key=lambda entry: -abs(entry[1]))


def weighted_sum(cell: Cell) -> Fraction:
    return sum((record.amount * record.weight for record in cell), Fraction(0))


def table_of(cells: list[Cell], depth: int, *, weighted: bool = False) -> Table:
    """A table of unconnected cells, as tabulation would hand it to a rule; sums made in floats, with their noise."""
    n = len(cells)
    amount, added = np.zeros((n, depth)), np.zeros((n, depth))
    identity = np.full((n, depth), -1, dtype=np.int64)
    for i, cell in enumerate(cells):
        for j, (holding, reported, adds) in enumerate(merged(cell)[:depth]):
            amount[i, j] = sum(float(r.amount) for r in cell if r.holding == holding)
            added[i, j] = sum(float(r.amount) * float(r.weight) for r in cell if r.holding == holding)
            assert abs(amount[i, j] - reported) + abs(added[i, j] - adds) < 1e-9
            identity[i, j] = holding
    return Table(
        np.array([int(weighted_sum(cell) * 100) for cell in cells], dtype=np.int64),
        2,
        sparse.csr_array((0, n), dtype=np.int8),
        np.zeros(0, np.int64),
        names=np.arange(n),
        count=np.array([len(cell) for cell in cells], dtype=np.int64),
        holdings=np.array([len(merged(cell)) for cell in cells], dtype=np.int64),
        contributors=Contributors(amount, identity, added if weighted else None),
    )


def worst(amounts: Amounts, total: Fraction, size: int, attack: Callable[[Fraction, Fraction], Fraction]) -> Fraction:
    """The worst attack on any contributor by any coalition of others; `attack` takes the target and the remainder."""
    found = Fraction(0)
    for target, victim in enumerate(amounts):
        others = [amount for i, amount in enumerate(amounts) if i != target]
        for coalition in combinations(others, min(size, len(others))):
            found = max(found, attack(victim, total - victim - sum(coalition)))
    return found


def p_percent(p: Fraction, coalition: int) -> Shortfall:
    """By how much the total falls short of an estimate that is p percent off.

    The coalition knows its own amounts and the total, so that its best upper estimate of the victim is what is left.
    """

    def attack(victim: Fraction, remainder: Fraction) -> Fraction:
        estimate = victim + remainder
        return (1 + p / 100) * victim - estimate

    return lambda amounts, total: worst(amounts, total, coalition, attack)


def pq(p: Fraction, q: Fraction, coalition: int) -> Shortfall:
    """The same, where the remainder is known to within q percent beforehand: it hides only that part."""

    def attack(victim: Fraction, remainder: Fraction) -> Fraction:
        estimate = victim + remainder - (1 - q / 100) * remainder
        return ((1 + p / 100) * victim - estimate) / (q / 100)

    return lambda amounts, total: worst(amounts, total, coalition, attack)


def dominance(n: int, k: Fraction) -> Shortfall:
    """By how much the total falls short of being so large that n contributors hold k percent of it."""

    def shortfall(amounts: Amounts, total: Fraction) -> Fraction:
        groups = combinations(amounts, min(n, len(amounts)))
        return max([Fraction(0), *(sum(group, Fraction(0)) * 100 / k - total for group in groups)])

    return shortfall


def linear(weights: Sequence[int], rest: int) -> Shortfall:
    """For weights that never increase the ordered sum is the largest of all orders."""

    def shortfall(amounts: Amounts, total: Fraction) -> Fraction:
        padded = [*amounts, *[Fraction(0)] * len(weights)]
        best = max(
            sum((w * x for w, x in zip(weights, order, strict=False)), Fraction(0)) + rest * (total - sum(order))
            for order in permutations(padded, len(weights))
        )
        return max(best / -rest, Fraction(0))

    return shortfall


def assert_agrees(rule: Rule, table: Table, expected: Sequence[Fraction]) -> None:
    found = rule(table)
    assert found.mask.tolist() == [shortfall > 0 for shortfall in expected]
    np.testing.assert_allclose(found.upper, [float(shortfall) for shortfall in expected], rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(found.lower, np.minimum(found.upper, np.where(found.mask, table.value, 0)))
    assert not found.sliding.any()


percents = st.sampled_from([Fraction(1), Fraction(10), Fraction(25), Fraction(50), Fraction(333, 10), Fraction(100)])
shares = st.sampled_from([Fraction(40), Fraction(50), Fraction(75), Fraction(85), Fraction(7391, 100), Fraction(99)])


@given(records(), percents, st.integers(1, 3), st.integers(0, 3))
@settings(deadline=None)
def test_p_percent_is_the_best_estimate_of_any_coalition(
    cells: list[Cell], p: Fraction, coalition: int, more: int
) -> None:
    expected = [p_percent(p, coalition)([a for _, a, _ in merged(cell)], weighted_sum(cell)) for cell in cells]
    table = table_of(cells, coalition + 1 + more)
    assert_agrees(PPercent(p=float(p), coalition=coalition), table, expected)


@given(records(), percents, st.integers(1, 2))
@settings(deadline=None)
def test_the_upper_level_is_the_least_growth_that_makes_a_cell_safe(cells: list[Cell], p: Fraction, size: int) -> None:
    rule = PPercent(p=float(p), coalition=size)
    level = rule(table_of(cells, size + 1)).upper
    for cell, growth in zip(cells, level, strict=True):
        if growth > 0:
            amounts, total = [a for _, a, _ in merged(cell)], weighted_sum(cell)
            exact = Fraction(growth).limit_denominator(10**9)
            assert p_percent(p, size)(amounts, total + exact) == 0
            assert p_percent(p, size)(amounts, total + exact * Fraction(999, 1000)) > 0


@given(records(), percents.filter(lambda p: p < 60), st.sampled_from([Fraction(60), Fraction(100)]), st.integers(1, 2))
@settings(deadline=None)
def test_pq_is_p_percent_with_prior_knowledge(cells: list[Cell], p: Fraction, q: Fraction, coalition: int) -> None:
    expected = [pq(p, q, coalition)([a for _, a, _ in merged(cell)], weighted_sum(cell)) for cell in cells]
    table = table_of(cells, coalition + 1)
    assert_agrees(PQ(p=float(p), q=float(q), coalition=coalition), table, expected)


@given(records(), st.integers(1, 3), shares)
@settings(deadline=None)
def test_dominance_is_the_share_of_any_group(cells: list[Cell], n: int, k: Fraction) -> None:
    expected = [dominance(n, k)([a for _, a, _ in merged(cell)], weighted_sum(cell)) for cell in cells]
    assert_agrees(Dominance(n=n, k=float(k)), table_of(cells, n), expected)


@given(records(), st.lists(st.integers(-3, 5), min_size=1, max_size=3), st.integers(-9, -3))
@settings(deadline=None)
def test_a_linear_measure_is_the_largest_over_all_orders(cells: list[Cell], weights: list[int], rest: int) -> None:
    weights.sort(reverse=True)
    expected = [linear(weights, rest)([a for _, a, _ in merged(cell)], weighted_sum(cell)) for cell in cells]
    rule = LinearSensitivity(weights=tuple(weights), rest=rest)
    assert_agrees(rule, table_of(cells, len(weights)), expected)


@given(records(weights=(10, 20, 15, 37)), percents, st.integers(1, 2))
@settings(deadline=None)
def test_published_weights_let_attackers_subtract_weighted_amounts(cells: list[Cell], p: Fraction, size: int) -> None:
    """The estimate of the victim's own amount is what is left of the total divided by its weight."""

    def shortfall(cell: Cell) -> Fraction:
        found = Fraction(0)
        holdings = [(reported, adds) for _, reported, adds in merged(cell) if reported > 0]
        for target, (reported, adds) in enumerate(holdings):
            others = [y for i, (_, y) in enumerate(holdings) if i != target]
            for coalition in combinations(others, min(size, len(others))):
                weight = adds / reported
                estimate = (weighted_sum(cell) - sum(coalition)) / weight
                found = max(found, ((1 + p / 100) * reported - estimate) * weight)
        return found

    table = table_of(cells, 6, weighted=True)
    assert_agrees(PPercent(p=float(p), coalition=size), table, [shortfall(cell) for cell in cells])


@given(records(weights=(10, 20, 15, 37)), percents, st.integers(1, 2))
@settings(deadline=None)
def test_unpublished_weights_leave_attackers_their_own_amounts(cells: list[Cell], p: Fraction, size: int) -> None:
    expected = [p_percent(p, size)([a for _, a, _ in merged(cell)], weighted_sum(cell)) for cell in cells]
    table = table_of(cells, size + 1, weighted=True)
    assert_agrees(PPercent(p=float(p), coalition=size, sampling_weights="unpublished"), table, expected)


@given(records(weights=(10, 20, 30)), shares, st.integers(1, 3))
@settings(deadline=None)
def test_expanded_weights_are_so_many_contributors(cells: list[Cell], k: Fraction, n: int) -> None:
    single = [list({record.holding: record for record in cell}.values()) for cell in cells]  # one weight per holding
    expected = []
    for cell in single:
        expanded = [record.amount for record in cell for _ in range(int(record.weight))]
        expected.append(dominance(n, k)(expanded, weighted_sum(cell)))
    table = table_of(single, n, weighted=True)
    assert_agrees(Dominance(n=n, k=float(k), sampling_weights="expanded"), table, expected)


@given(records(lowest=-60), percents, st.integers(1, 2))
@settings(deadline=None)
def test_negative_contributions_count_by_their_absolute_values(cells: list[Cell], p: Fraction, size: int) -> None:
    sizes = [[abs(a) for _, a, _ in merged(cell)] for cell in cells]
    expected = [p_percent(p, size)(amounts, sum(amounts, Fraction(0))) for amounts in sizes]
    rule = PPercent(p=float(p), coalition=size)
    everyone = rule(table_of(cells, 7))
    assert everyone.mask.tolist() == [shortfall > 0 for shortfall in expected]
    np.testing.assert_allclose(everyone.upper, [float(shortfall) for shortfall in expected], rtol=1e-9, atol=1e-12)
    few = rule(table_of(cells, size + 1))
    assert (few.mask >= everyone.mask).all()
    assert (few.upper >= everyone.upper - 1e-9).all()


@given(records(), percents, shares, st.integers(1, 2), st.sets(st.integers(0, 6), min_size=1))
@settings(deadline=None)
def test_waivers_leave_the_others_protected_from_everyone(
    cells: list[Cell], p: Fraction, k: Fraction, size: int, waived: set[int]
) -> None:
    """Only attacks on those who did not waive count, but whoever did may take part in them."""

    def shortfalls(cell: Cell) -> tuple[Fraction, Fraction]:
        entries, total = [(h, a) for h, a, _ in merged(cell)], weighted_sum(cell)
        by_p = by_k = Fraction(0)
        for target, (holding, victim) in enumerate(entries):
            others = [a for i, (_, a) in enumerate(entries) if i != target]
            for helpers in combinations(others, min(size, len(others))):
                if holding not in waived:
                    by_p = max(by_p, (1 + p / 100) * victim - total + sum(helpers))
                    by_k = max(by_k, (victim + sum(helpers)) * 100 / k - total)
        return by_p, by_k

    if not any(cells):
        return
    rules: list[Rule] = [PPercent(p=float(p), coalition=size), Dominance(n=size + 1, k=float(k))]
    for rule, expected in zip(rules, zip(*map(shortfalls, cells), strict=True), strict=True):
        assert_agrees(Waiver(of=rule, respondents=tuple(waived)), table_of(cells, 7), expected)
        few = Waiver(of=rule, respondents=tuple(waived))(table_of(cells, size + 1))
        assert (few.mask | (np.array(expected) <= 0)).all()  # the one to protect may not be among those kept: caution
        assert (few.upper >= np.array(expected, dtype=np.float64) - 1e-9).all()


@given(records(), st.integers(1, 5), st.sampled_from(["respondents", "holdings"]), st.booleans())
@settings(deadline=None)
def test_threshold_counts_contributors(cells: list[Cell], n: int, on: str, zero: bool) -> None:
    counts = [len(cell) if on == "respondents" else len({r.holding for r in cell}) for cell in cells]
    found = Threshold(n=n, on=on, zero=zero, range_percent=20)(table_of(cells, 1))  # type: ignore[arg-type]
    assert found.mask.tolist() == [count < n and (count > 0 or zero) for count in counts]
    np.testing.assert_allclose(
        found.upper, [0.2 * float(weighted_sum(c)) * m for c, m in zip(cells, found.mask, strict=True)]
    )


@given(records(), st.lists(st.sampled_from([PPercent(), Threshold(), Dominance(), PQ()]), min_size=1, max_size=4))
@settings(deadline=None)
def test_combinations_are_unions_and_intersections_with_the_larger_levels(cells: list[Cell], rules: list[Rule]) -> None:
    table = table_of(cells, 2)
    found = [rule(table) for rule in rules]
    either, both = AnyOf(rules=tuple(rules))(table), AllOf(rules=tuple(rules))(table)
    levels = np.max([one.upper for one in found], axis=0)
    assert (either.mask == np.any([one.mask for one in found], axis=0)).all()
    assert (both.mask == np.all([one.mask for one in found], axis=0)).all()
    assert (either.upper == levels).all()
    assert (both.upper == np.where(both.mask, levels, 0)).all()
    for cell in range(len(table)):
        assert bool(either.why(cell)) == bool(either.mask[cell])


hundredths = st.integers(1, 9999).map(lambda n: Fraction(n, 100))


def one_cell(amounts: list[int], rest: int) -> Table:
    return Table(
        np.array([sum(amounts) + rest]),
        0,
        sparse.csr_array((0, 1), dtype=np.int8),
        np.zeros(0, np.int64),
        names=np.arange(1),
        contributors=Contributors(np.array([amounts], float), np.full((1, len(amounts)), -1)),
    )


@given(st.integers(1, 10**13), hundredths, st.integers(-2, 2))
@settings(deadline=None)
def test_a_boundary_is_exact_however_large_the_cell(base: int, p: Fraction, off: int) -> None:
    """A remainder of exactly p percent is safe and one unit less is not, up to numbers that just add exactly."""
    largest = max(base // 10**4, 1) * 10**4
    needed = int(largest * p / 100)
    rest = max(needed + off, 0)
    found = PPercent(p=float(p))(one_cell([largest, largest], rest))
    assert bool(found.mask[0]) == (rest < needed)
    assert found.upper[0] == max(needed - rest, 0)


@given(st.integers(10**8, 10**9), st.integers(1, 999_999), st.sampled_from([0, 0, 0, -1, 1]), st.data())
@settings(deadline=None)
def test_a_share_of_exactly_k_percent_is_safe(base: int, millionths: int, off: int, data: st.DataObject) -> None:
    """Also where whole numbers would overflow: shares in millionths of cells up to 10^15."""
    top, rest = base * millionths, base * (10**6 - millionths)
    cuts = sorted(data.draw(st.lists(st.integers(0, top), min_size=2, max_size=2)))
    parts = sorted([cuts[0], cuts[1] - cuts[0], top - cuts[1]], reverse=True)
    rest = max(rest + off, 0)
    found = Dominance(n=3, k=millionths / 10**4)(one_cell(parts, rest))
    assert bool(found.mask[0]) == (top * 10**6 > millionths * (top + rest))


rules_with_regions = st.one_of(
    st.integers(1, 100).map(lambda p: PPercent(p=p)),
    st.integers(1, 49).map(lambda p: PQ(p=p, q=50)),
    st.tuples(st.integers(1, 2), st.integers(5, 99)).map(lambda nk: Dominance(n=nk[0], k=nk[1])),
    st.integers(51, 95).map(lambda k: AnyOf(rules=(PPercent(p=10), Dominance(n=1, k=k)))),
)
points = st.tuples(st.integers(0, 200), st.integers(0, 200)).map(lambda ab: (max(ab), min(ab)))
triangle = points.filter(lambda ab: sum(ab) <= 200).map(lambda ab: (ab[0] / 200, ab[1] / 200))


def outside(polygon: Sequence[tuple[Fraction, Fraction]], point: tuple[float, float]) -> float:
    """How far a point lies outside a convex polygon, at the most (negative inside)."""
    corners = np.array(polygon, dtype=np.float64)
    edges = np.roll(corners, -1, axis=0) - corners
    to_point = np.array(point) - corners
    cross = edges[:, 0] * to_point[:, 1] - edges[:, 1] * to_point[:, 0]
    return float(np.max(-cross / np.hypot(*edges.T)))


@given(rules_with_regions, st.lists(triangle, min_size=1, max_size=20))
@settings(deadline=None)
def test_the_region_of_a_rule_is_where_it_flags(rule: Rule, shares: list[tuple[float, float]]) -> None:
    first, second = np.array(shares).T
    flagged = sensitive_at(rule, first, second)
    region = safe_region(rule)
    for point, sensitive in zip(shares, flagged, strict=True):
        distance = outside(region, point)
        if abs(distance) > 1e-9:  # on the line the polygon's floats cannot tell
            assert sensitive == (distance > 0)


families = st.sampled_from(["p_percent", "pq", "dominance_1", "dominance_2"])


@given(rules_with_regions, families, st.sampled_from(["more", "less"]), st.lists(triangle, min_size=1, max_size=30))
@settings(deadline=None)
def test_a_converted_rule_flags_no_less_or_no_more(
    rule: Rule, family: Family, direction: str, shares: list[tuple[float, float]]
) -> None:
    try:
        other = convert(rule, family, conservatism=direction, q=80)  # type: ignore[arg-type]
    except ValueError:
        return
    first, second = np.array(shares).T
    mild, strict = (rule, other) if direction == "more" else (other, rule)
    clear = np.array([min(abs(outside(safe_region(r), point)) for r in (rule, other)) > 1e-9 for point in shares])
    assert (~sensitive_at(mild, first, second) | sensitive_at(strict, first, second) | ~clear).all()


@given(rules_with_regions, st.sampled_from(["p_percent", "dominance_1", "dominance_2"]))
@settings(max_examples=15, deadline=None)
def test_a_converted_rule_is_the_nearest(rule: Rule, family: Family) -> None:
    """One a little milder is no longer more conservative, one a little stricter no longer less."""
    grid, fine = np.linspace(0, 1, 201), np.linspace(0, 1, 20_001)
    first, second = (axis.ravel() for axis in np.meshgrid(grid, grid))
    inside = (second <= first) & (first + second <= 1)
    first = np.concatenate([first[inside], fine, fine / 2, 1 - fine / 2])  # rules touch mostly at the triangle's sides
    second = np.concatenate([second[inside], 0 * fine, fine / 2, fine / 2])
    flagged = sensitive_at(rule, first, second)
    for direction, factor in (("more", 0.93), ("less", 1.07)):
        try:
            other = convert(rule, family, conservatism=direction)  # type: ignore[arg-type]
            nudged: Rule = replace(
                other,
                **{k: getattr(other, k) * f for k, f in {"p": factor, "k": 1 / factor}.items() if hasattr(other, k)},
            )
        except ValueError:  # there is none, or none beyond it
            continue
        found = sensitive_at(nudged, first, second)
        assert (flagged & ~found).any() if direction == "more" else (found & ~flagged).any()


@given(st.lists(st.integers(-3, 5), min_size=1, max_size=4), st.integers(-5, -1), st.data())
@settings(deadline=None)
def test_subadditive_is_what_it_says(weights: list[int], rest: int, data: st.DataObject) -> None:
    rule = LinearSensitivity(weights=tuple(weights), rest=rest)
    example = counterexample(rule)
    assert is_subadditive(rule) == (example is None)
    if example is not None:
        one, other = example
        assert sensitivity_of(rule, one + other) > sensitivity_of(rule, one) + sensitivity_of(rule, other)
    else:
        vectors = st.lists(st.integers(0, 9), min_size=6, max_size=6).map(np.array)
        one, other = data.draw(vectors), data.draw(vectors)
        assert sensitivity_of(rule, one + other) <= sensitivity_of(rule, one) + sensitivity_of(rule, other) + 1e-9
