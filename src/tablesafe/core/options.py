"""Checks of the rules' options, with one wording for all of them."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from fractions import Fraction
from numbers import Integral, Rational, Real
from typing import Any

from tablesafe.core.errors import InvalidOption
from tablesafe.core.language import joined, text

NUMBER = ("{kind}.{name} must be a number, got {value!r}.", "{kind}.{name} must be a number {wanted}, got {value!r}.")
LIMITS = {
    "above": "above {limit}",
    "at least": "at least {limit}",
    "below": "below {limit}",
    "at most": "at most {limit}",
}
_COMPARE = {"above": operator.gt, "at least": operator.ge, "below": operator.lt, "at most": operator.le}


def about(options: object, name: str) -> tuple[str, str, str]:
    """What an error about an option is about."""
    return "option", type(options).__name__, name


def is_number(value: Any) -> bool:
    """Whether a value is a finite number; yes and no are not."""
    return not isinstance(value, bool) and isinstance(value, Real) and math.isfinite(value)


def require_number(
    rule: object,
    name: str,
    *,
    above: float | None = None,
    at_least: float | None = None,
    below: float | None = None,
    at_most: float | None = None,
) -> None:
    """Check that an option is a finite number within its limits."""
    value: Any = getattr(rule, name)
    limits = {"above": above, "at least": at_least, "below": below, "at most": at_most}
    given = {word: limit for word, limit in limits.items() if limit is not None}
    if not is_number(value) or not all(_COMPARE[word](value, limit) for word, limit in given.items()):
        wanted = joined(" and ", [text(LIMITS[word], limit=f"{limit:g}") for word, limit in given.items()])
        raise InvalidOption(
            text(NUMBER[bool(given)], kind=type(rule).__name__, name=name, wanted=wanted, value=value),
            about=about(rule, name),
        )


def require_whole(rule: object, name: str, *, at_least: int) -> None:
    """Check that an option is a whole number, and large enough."""
    value: Any = getattr(rule, name)
    if isinstance(value, bool) or not isinstance(value, Integral) or value < at_least:
        raise InvalidOption(
            text(
                "{kind}.{name} must be a whole number of at least {at_least}, got {value!r}.",
                kind=type(rule).__name__,
                name=name,
                at_least=at_least,
                value=value,
            ),
            about=about(rule, name),
        )


def require_choice(rule: object, name: str, choices: Sequence[str]) -> None:
    """Check that an option is one of the words it may be."""
    value = getattr(rule, name)
    if value not in choices:
        raise InvalidOption(
            text(
                "{kind}.{name} must be one of {several}, got {value!r}.",
                kind=type(rule).__name__,
                name=name,
                several=", ".join(map(repr, choices)),
                value=value,
            ),
            about=about(rule, name),
        )


def require_rule(rule: object, name: str, value: Any) -> None:
    """Check that what should be a rule can be applied to a table."""
    if not callable(value) or isinstance(value, type):
        raise InvalidOption(
            f"{type(rule).__name__}.{name} must be a rule, got {value!r}.",
            hint="for example PPercent(p=10).",
            about=about(rule, name),
        )


def exactly(number: Any) -> Fraction:
    """The number as the user wrote it: 0.1 is one tenth, not the nearest binary fraction."""
    return Fraction(number) if isinstance(number, Rational) else Fraction(repr(float(number)))
