"""The rule explorer: regions, conversions and what cannot be compared."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tablesafe.core.errors import InvalidOption
from tablesafe.rules import PQ, AnyOf, Dominance, LinearSensitivity, PPercent, Rule, Threshold
from tablesafe.rules.explorer import (
    TRIANGLE,
    as_linear,
    convert,
    counterexample,
    describe,
    is_subadditive,
    safe_region,
    sensitive_at,
    sensitivity_of,
)


def test_shares_decide_as_the_rule_says() -> None:
    assert sensitive_at(PPercent(p=10), 0.9, 0.05).tolist() is True
    assert sensitive_at(PPercent(p=10), np.array([0.5, 0.5]), np.array([0.5, 0.4])).tolist() == [True, False]
    assert sensitive_at(Dominance(n=2, k=85), [0.5, 0.5], [0.35, 0.36]).tolist() == [False, True]
    assert not sensitive_at(Threshold(n=3), 1.0, 0.0)
    assert sensitive_at(AnyOf(rules=(Threshold(n=3), Dominance(n=3, k=90))), 0.6, 0.35)


@pytest.mark.parametrize("shares", [(0.4, 0.5), (0.7, 0.4), (0.5, -0.1)])
def test_shares_outside_the_triangle_are_refused(shares: tuple[float, float]) -> None:
    with pytest.raises(InvalidOption, match="triangle"):
        sensitive_at(PPercent(), *shares)


def test_the_safe_region_of_dominance_is_cut_at_k() -> None:
    corners = {(float(a), float(b)) for a, b in safe_region(Dominance(n=1, k=75))}
    assert corners == {(0.0, 0.0), (0.75, 0.0), (0.75, 0.25), (0.5, 0.5)}
    assert safe_region(LinearSensitivity(weights=(-1, -1))) == TRIANGLE


@pytest.mark.parametrize(
    ("rule", "family", "conservatism", "expected"),
    [
        (PPercent(p=25), "dominance_1", "more", Dominance(n=1, k=100 / 2.25)),
        (PPercent(p=25), "dominance_1", "less", Dominance(n=1, k=80)),
        (PPercent(p=25), "dominance_2", "more", Dominance(n=2, k=80)),
        (PPercent(p=25), "dominance_2", "less", Dominance(n=2, k=200 / 2.25)),
        (PPercent(p=25), "pq", "less", PQ(p=25, q=100)),
        (PQ(p=10, q=40), "p_percent", "more", PPercent(p=25)),
        (Dominance(n=1, k=80), "p_percent", "more", PPercent(p=25)),
        (Dominance(n=1, k=40), "p_percent", "less", PPercent(p=50)),
        (Dominance(n=1, k=80), "dominance_2", "more", Dominance(n=2, k=80)),
        (Dominance(n=2, k=80), "dominance_1", "less", Dominance(n=1, k=80)),
        (Dominance(n=2, k=80), "dominance_1", "more", Dominance(n=1, k=40)),
    ],
)
def test_conversions_in_both_directions(rule: Rule, family: Any, conservatism: Any, expected: Rule) -> None:
    found: Any = convert(rule, family, conservatism=conservatism)
    assert type(found) is type(expected)
    for option in ("p", "q", "n", "k"):
        assert getattr(found, option, None) == pytest.approx(getattr(expected, option, None))


@pytest.mark.parametrize(
    ("rule", "family", "conservatism"),
    [
        (Dominance(n=1, k=80), "p_percent", "less"),  # two equal contributors are safe by (1,80), never by p%
        (Dominance(n=2, k=50), "p_percent", "more"),
        (Dominance(n=1, k=80), "dominance_2", "less"),
    ],
)
def test_where_no_rule_is_that_conservative_an_error_says_so(rule: Rule, family: Any, conservatism: Any) -> None:
    with pytest.raises(InvalidOption, match=f"{conservatism} conservative"):
        convert(rule, family, conservatism=conservatism)


def test_bad_questions_are_refused() -> None:
    with pytest.raises(InvalidOption, match="'dominance_2'"):
        convert(PPercent(), "dominance_3", conservatism="more")  # type: ignore[arg-type]
    with pytest.raises(InvalidOption, match="'more' or 'less'"):
        convert(PPercent(), "pq", conservatism="most")  # type: ignore[arg-type]
    with pytest.raises(InvalidOption, match="Threshold does not weigh"):
        safe_region(Threshold())
    with pytest.raises(InvalidOption, match="several measures"):
        as_linear(AnyOf(rules=(PPercent(), Dominance())))
    with pytest.raises(InvalidOption, match="above zero"):
        as_linear(LinearSensitivity(weights=(0, 1)))


def test_the_usual_rules_are_subadditive() -> None:
    for rule in (PPercent(p=10, coalition=3), PQ(), Dominance(n=4, k=90), LinearSensitivity(weights=(3, 2, 2, -1))):
        assert is_subadditive(rule)


def test_a_weight_below_that_of_the_rest_is_found_out() -> None:
    found = counterexample(LinearSensitivity(weights=(1, -2), rest=-1))
    assert found is not None
    one, other = found
    rule = LinearSensitivity(weights=(1, -2), rest=-1)
    assert sensitivity_of(rule, one) + sensitivity_of(rule, other) < sensitivity_of(rule, one + other)


def test_rules_describe_themselves() -> None:
    assert describe(PPercent(p=10)) == "p% with p = 10"
    assert describe(PPercent(p=10, coalition=2)) == "p% with p = 10, coalition of 2"
    assert describe(PQ()) == "pq with p = 10, q = 50"
    assert describe(AnyOf(rules=(Dominance(), Threshold()))) == "(2, 85) dominance or Threshold"
    assert describe(LinearSensitivity(weights=(1, 0), rest=-10)) == "linear 1, 0; rest -10"
