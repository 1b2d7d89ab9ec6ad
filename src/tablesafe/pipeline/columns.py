"""What else a job needs of its source: columns that rules and options name, and how many contributors."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any, get_args, get_origin, get_type_hints

import numpy as np

from tablesafe.job.model import Job
from tablesafe.rules import PQ, AllOf, AnyOf, Dominance, Levels, LinearSensitivity, PPercent, RequestRule, Waiver
from tablesafe.rules.sensitivity import Rule

COSTS = ("value", "count", "unit", "log")
"""What a cost may be besides a column."""


def extra_columns(job: Job) -> list[str]:
    """Columns that a rule or an option of the problem names; the request column is read in another way."""
    options = job.problem
    named = [options.lower, options.upper, options.frozen, options.suppressed, options.withheld, options.waived]
    cost = [] if options.cost in COSTS else [options.cost]
    columns = [*(name for name in named if isinstance(name, str)), *cost, *_of_rules(job.rules)]
    return [name for name in dict.fromkeys(columns) if name != job.source.request]


def _of_rules(rules: tuple[Rule, ...]) -> Iterator[str]:
    """Options of rules that may be an array or, as text, the name of a column."""
    for rule in rules:
        hints = get_type_hints(type(rule))
        specs: Any = dataclasses.fields(rule) if dataclasses.is_dataclass(rule) else ()
        for spec in specs:
            value = getattr(rule, spec.name)
            if isinstance(value, str) and any(get_origin(kind) is np.ndarray for kind in get_args(hints[spec.name])):
                yield value
        yield from _of_rules(inner_rules(rule))


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
