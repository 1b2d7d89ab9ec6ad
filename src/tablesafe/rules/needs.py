"""What rules ask of a table: the rules inside them, and how many of the largest contributors they look at."""

from __future__ import annotations

from tablesafe.core.sensitivity import Rule
from tablesafe.rules import PQ, AllOf, AnyOf, Dominance, Levels, LinearSensitivity, PPercent, RequestRule, Waiver


def inner_rules(rule: Rule) -> tuple[Rule, ...]:
    """The rules that a rule is made from."""
    match rule:
        case AnyOf() | AllOf():
            return rule.rules
        case Levels() | Waiver() | RequestRule():
            return (rule.of,)
        case _:
            return ()


def contributors_needed(rules: tuple[Rule, ...]) -> int:
    """How many of the largest contributors of each cell the rules look at."""
    depth = 0
    for rule in rules:
        match rule:
            case PPercent() | PQ() | Dominance() | LinearSensitivity():
                depth = max(depth, len(rule.measure.weights))
            case _:
                depth = max(depth, contributors_needed(inner_rules(rule)))
    return depth
