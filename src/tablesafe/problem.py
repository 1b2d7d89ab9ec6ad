"""What must be hidden, from whom, and at what cost: the question that every method answers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tablesafe.display import shown
from tablesafe.equations import Floats, Mask
from tablesafe.errors import InvalidOption, InvalidProblem
from tablesafe.rules.sensitivity import Rule, Sensitivity
from tablesafe.table import Table


@shown
@dataclass(frozen=True, eq=False, init=False)
class Problem:
    """A table, what is sensitive in it, what an attacker knows beforehand, what must stay as it is, and costs.

    `lower` and `upper` are the attacker's prior bounds: 0 and infinity by default, and no lower bound at all where
    contributions may be negative (`Table.may_be_negative`). `frozen` cells must be published unchanged. `suppressed`
    cells are withheld already. `withheld` cells are never published by design (inner cells of a cube of which only
    margins appear): unknown, at no cost.
    """

    table: Table
    rules: tuple[Rule, ...]
    sensitivity: Sensitivity = field(repr=False)
    lower: Floats = field(repr=False)
    upper: Floats = field(repr=False)
    cost: Floats = field(repr=False)
    frozen: Mask = field(repr=False)
    suppressed: Mask = field(repr=False)
    withheld: Mask = field(repr=False)

    def __init__(
        self,
        table: Table,
        rules: Sequence[Rule] | Rule = (),
        *,
        sensitivity: Sensitivity | None = None,
        lower: Floats | float | None = None,
        upper: Floats | float | None = None,
        cost: Floats | None = None,
        frozen: Mask | None = None,
        suppressed: Mask | None = None,
        withheld: Mask | None = None,
    ) -> None:
        if not isinstance(table, Table):
            raise InvalidOption(
                f"A Problem is made from a Table, got a {type(table).__name__}.\n\n"
                f"Hint: ts.tabulate(…) makes one from records, ts.Table.from_cells(…) from cells."
            )
        rules = _rules(rules)
        n = len(table)
        found = [rule(table) for rule in rules]
        if sensitivity is not None:
            found.append(sensitivity)
        combined = reduce(lambda a, b: a | b, found, Sensitivity.none(n))
        parts: dict[str, Any] = {
            "table": table,
            "rules": rules,
            "sensitivity": combined,
            "lower": _filled(least(table) if lower is None else lower, n, "lower"),
            "upper": _filled(np.inf if upper is None else upper, n, "upper"),
            "cost": np.abs(table.value) if cost is None else _filled(cost, n, "cost"),
            "frozen": _mask(frozen, n, "frozen"),
            "suppressed": _mask(suppressed, n, "suppressed"),
            "withheld": _mask(withheld, n, "withheld"),
        }
        if table.structural_zero is not None:
            parts["frozen"] = parts["frozen"] | table.structural_zero
        for name, value in parts.items():
            object.__setattr__(self, name, value)
        self._check()

    def _check(self) -> None:
        value, sensitivity = self.table.value, self.sensitivity
        if len(sensitivity.mask) != len(self.table):
            raise InvalidProblem(
                f"Sensitivity is given for {len(sensitivity.mask)} cells, the table has {len(self.table)}."
            )
        self._refuse(np.isnan(self.lower) | np.isnan(self.upper), "has a prior bound that is not a number")
        self._refuse(
            (value < self.lower) | (value > self.upper),
            "lies outside the attacker's prior bounds",
            "the attacker's bounds must contain the true value; widen lower= or upper=.",
        )
        self._refuse(
            ~np.isfinite(self.cost) | (self.cost < 0),
            "has a cost that is negative or not a number",
            "costs must be 0 or more; freeze a cell that must be published.",
        )
        self._refuse(
            self.frozen & sensitivity.mask,
            "is sensitive, but frozen to be published",
            "unfreeze it, or waive it.",
        )
        self._refuse(self.frozen & self.suppressed, "is frozen to be published, but marked as suppressed")
        self._refuse(self.frozen & self.withheld, "is frozen to be published, but withheld by design")

    def _refuse(self, bad: Mask, what: str, hint: str = "") -> None:
        if bad.any():
            cell = int(np.flatnonzero(bad)[0])
            more = f" (and {int(bad.sum()) - 1:,} more)" if bad.sum() > 1 else ""
            raise InvalidProblem(
                f"Cell {self.table.describe(cell)} {what}{more}." + (f"\n\nHint: {hint}" if hint else "")
            )

    def replace(self, **changes: Any) -> Problem:
        """The same problem with some parts changed; the sensitivity is kept, not recomputed from the rules."""
        parts = {
            "sensitivity": self.sensitivity, "lower": self.lower, "upper": self.upper, "cost": self.cost,
            "frozen": self.frozen, "suppressed": self.suppressed, "withheld": self.withheld, **changes,
        }  # fmt: skip
        table = parts.pop("table", self.table)
        new = Problem(table, **parts)
        object.__setattr__(new, "rules", tuple(changes.get("rules", self.rules)))
        return new

    @property
    def bounds_differ(self) -> bool:
        """Whether the attacker's prior bounds are not the same for all cells that may change.

        Bounds of single cells are often made from the true values: some attackers know them, readers must not.
        """
        free = ~self.frozen
        return any(len(np.unique(side[free])) > 1 for side in (self.lower, self.upper))

    @property
    def sensitive(self) -> NDArray[np.intp]:
        """The numbers of the sensitive cells."""
        return np.flatnonzero(self.sensitivity.mask)


def least(table: Table) -> Floats:
    """What everybody knows every cell to be no less than: 0, or nothing where contributions may be negative."""
    return np.where(table.may_be_negative, -np.inf, 0.0)


def _rules(given: Any) -> tuple[Rule, ...]:
    """The rules as a tuple; a single one may stand alone."""
    several = (given,) if isinstance(given, str | type) or callable(given) else given
    if not isinstance(several, Iterable):
        raise InvalidOption(f"rules must be a list of rules, got {given!r}.\n\nHint: rules=[ts.Threshold(n=3)]")
    out = tuple(several)
    for rule in out:
        if isinstance(rule, type):
            raise InvalidOption(
                f"{rule.__name__} is a kind of rule.\n\nHint: rules=[ts.{rule.__name__}()] with options."
            )
        if isinstance(rule, str) or not callable(rule):
            made = "".join(part.capitalize() for part in rule.split("_")) if isinstance(rule, str) else "Threshold"
            raise InvalidOption(
                f"{rule!r} is not a rule, but a {type(rule).__name__}.\n\n"
                f"Hint: a rule is made with its options, as in rules=[ts.{made or 'Threshold'}(…)]; a job file and the "
                f"command line take names."
            )
    return out


def waive(problem: Problem, cells: Mask) -> Problem:
    """The problem without some sensitive cells: their contributors agreed to publication."""
    return problem.replace(sensitivity=problem.sensitivity.where(~cells))


def _filled(value: Floats | float, n: int, name: str) -> Floats:
    array = np.asarray(value, dtype=np.float64)
    if array.shape not in {(), (n,)}:
        raise InvalidProblem(f"{name!r} has {array.size:,} entries, but the table has {n:,} cells.")
    return np.broadcast_to(array, (n,)).copy() if array.shape == () else array.copy()


def _mask(value: Mask | None, n: int, name: str) -> Mask:
    if value is None:
        return np.zeros(n, dtype=np.bool_)
    array = np.asarray(value)
    if array.shape != (n,) or array.dtype != np.bool_:
        raise InvalidProblem(
            f"{name!r} must be {n:,} booleans, one per cell; got {array.dtype} of shape {array.shape}."
        )
    return array.copy()
