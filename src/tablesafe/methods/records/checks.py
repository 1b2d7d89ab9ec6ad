"""Checks of the options that methods on records share, with one wording for all of them."""

from __future__ import annotations

from numbers import Integral
from typing import Any

from tablesafe.core.errors import InvalidOption
from tablesafe.core.options import about, is_number

Steps = tuple[tuple[int, float], ...]
"""Areas with fewer units than the first number have the rate that follows."""


def require_columns(method: object, *names: str) -> None:
    """Refuse options that are no list of columns: a single word would be taken for its letters."""
    for name in names:
        _require_list(getattr(method, name), f"{type(method).__name__}.{name}")


def require_lists(method: object, name: str) -> None:
    """Refuse an option that is no list of lists of columns."""
    option, value = f"{type(method).__name__}.{name}", getattr(method, name)
    if not isinstance(value, list | tuple) or any(isinstance(inner, str) for inner in value):
        raise InvalidOption(
            f"{option} must be a list of lists of columns, got {value!r}.",
            hint=f"{name}=(('age', 'sex'), ('sex',))",
            about=about(method, name),
        )
    for inner in value:
        _require_list(inner, option)


def _require_list(value: Any, option: str) -> None:
    if isinstance(value, str):
        raise InvalidOption(
            f"{option} must be a list of columns, got the word {value!r}.",
            hint=f"put it into brackets, with a comma behind it: {option.split('.')[1]}=({value!r},)",
            about=("option", *option.split(".")),
        )
    if not isinstance(value, list | tuple) or not all(isinstance(column, str) for column in value):
        raise InvalidOption(
            f"{option} must be a list of names of columns, got {value!r}.", about=("option", *option.split("."))
        )


def require_column(method: object, *names: str) -> None:
    """Refuse options that are no name of a column, nor left out."""
    for name in names:
        value = getattr(method, name)
        if value is not None and (not isinstance(value, str) or not value):
            raise InvalidOption(
                f"{type(method).__name__}.{name} must be the name of a column, got {value!r}.",
                about=about(method, name),
            )


def require_seed(method: object, *, optional: bool = False) -> None:
    """Refuse a seed that nothing can be drawn with; it is a secret, and not repeated."""
    seed: Any = getattr(method, "seed", None)
    if seed is None and optional:
        return
    if isinstance(seed, bool) or not isinstance(seed, Integral) or seed < 0:
        raise InvalidOption(
            f"{type(method).__name__}.seed must be a whole number of 0 or more.", about=about(method, "seed")
        )


def require_share(value: Any, name: str) -> None:
    """Refuse a rate that is no share."""
    if not is_number(value) or not 0 <= value <= 1:
        raise InvalidOption(
            f"{name} must be a number from 0 to 1 (0.05 is 5 percent), got {value!r}.",
            about=("option", *name.split(" ")[-1].split(".")),
        )


def require_rates(method: object) -> None:
    """Refuse rates outside [0, 1], and steps that are no pairs of a number of units and a rate."""
    name = type(method).__name__
    require_share(getattr(method, "rate", None), f"{name}.rate")
    steps: Any = getattr(method, "rate_by_population", ())
    for step in steps if isinstance(steps, list | tuple) else (steps,):
        pair = isinstance(step, list | tuple) and len(step) == 2
        if not pair or not is_number(step[0]) or step[0] != int(step[0]) or step[0] < 1:
            raise InvalidOption(
                f"{name}.rate_by_population lists pairs of a number of units, whole and 1 or more, and a rate, such as "
                f"((100, 0.3), (1000, 0.2)); got {step!r}.",
                about=about(method, "rate_by_population"),
            )
        require_share(step[1], f"The rates of {name}.rate_by_population")
