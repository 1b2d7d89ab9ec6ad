"""What must be hidden, from whom, and at what cost: the question that every method answers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tablesafe.core.display import shown
from tablesafe.core.equations import Floats, Mask
from tablesafe.core.errors import InvalidOption, InvalidProblem, Setting, Words, and_more
from tablesafe.core.sensitivity import Rule, Sensitivity
from tablesafe.core.table import Table

MOST_JUDGED = 1_000
"""Sensitive unseen cells up to which each is judged like a cell that is shown."""


@shown
@dataclass(frozen=True, eq=False, init=False)
class Problem:
    """A table, what is sensitive in it, what an attacker knows beforehand, what must stay as it is, and costs.

    `lower` and `upper` are the attacker's prior bounds: 0 and infinity by default, and no lower bound at all where
    contributions may be negative (`Table.may_be_negative`). `frozen` cells must be published unchanged. `suppressed`
    cells are withheld already. `withheld` cells are never published by design (inner cells of a cube of which only
    margins appear): unknown, at no cost. The table's unseen cells are always of that kind; everybody knows only that
    they are not negative, where contributions cannot be. Rules hold for them too where the records told who
    contributes; where very many are sensitive, only those count as such that the table gives away by its bounds when
    nothing at all is withheld. `unjudged` says how many do not: an audit asks about them, as far as it has time.

    `shows_zeros` says whether everybody knows that cells of value zero are never withheld, so that what is withheld of
    whole numbers is 1 or more; when it is not said, a release tells it that shows some zeros and withholds none.
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
    unjudged: int = 0
    shows_zeros: bool | None = field(default=None, repr=False)

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
        shows_zeros: bool | None = None,
    ) -> None:
        if not isinstance(table, Table):
            raise InvalidOption(
                f"A Problem is made from a Table, got a {type(table).__name__}.",
                hint="ts.tabulate(…) makes one from records, ts.Table.from_cells(…) from cells.",
            )
        rules = _rules(rules)
        combined, unjudged = _judged(table, _flagged(rules, table))
        if sensitivity is not None:
            combined = combined | _of_all(table, sensitivity)
        parts: dict[str, Any] = {
            "table": table,
            "rules": rules,
            "sensitivity": combined,
            "lower": _filled(least(table) if lower is None else lower, table, "lower"),
            "upper": _filled(np.inf if upper is None else upper, table, "upper"),
            "cost": np.abs(table.value) if cost is None else _filled(cost, table, "cost"),
            "frozen": _mask(frozen, table, "frozen"),
            "suppressed": _mask(suppressed, table, "suppressed"),
            "withheld": _mask(withheld, table, "withheld"),
            "unjudged": unjudged,
            "shows_zeros": shows_zeros,
        }
        if table.unseen is not None:
            parts.update(_unseen(parts, table.unseen))
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
            (
                "the attacker's bounds must contain the true value; widen ",
                Setting("lower", None),
                " or ",
                Setting("upper", None),
                ".",
            ),
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

    def _refuse(self, bad: Mask, what: str, hint: Words = "") -> None:
        if bad.any():
            cell = int(np.flatnonzero(bad)[0])
            raise InvalidProblem(f"Cell {self.table.describe(cell)} {what}{and_more(int(bad.sum()))}.", hint=hint)

    def replace(self, **changes: Any) -> Problem:
        """The same problem with some parts changed; the sensitivity is kept, not recomputed from the rules."""
        parts = {
            "sensitivity": self.sensitivity, "lower": self.lower, "upper": self.upper, "cost": self.cost,
            "frozen": self.frozen, "suppressed": self.suppressed, "withheld": self.withheld,
            "shows_zeros": self.shows_zeros, **changes,
        }  # fmt: skip
        table = parts.pop("table", self.table)
        new = Problem(table, **parts)
        object.__setattr__(new, "rules", tuple(changes.get("rules", self.rules)))
        object.__setattr__(new, "unjudged", self.unjudged)
        return new

    @cached_property
    def with_zeros_shown(self) -> Problem:
        """The same of whole numbers whose zeros are never withheld, as everybody knows: what is withheld is 1 or more.

        A total is no less than its parts; levels ask for nothing below that. Cells that no release shows anyhow may be
        zero all the same.
        """
        table, levels = self.table, self.sensitivity
        raised = (table.integers > 0) & ~self.withheld & ~table.may_be_negative & (self.lower < 1)
        if not raised.any():
            return self
        least = np.where(table.may_be_negative, -np.inf, np.where(raised, 1.0, np.maximum(self.lower, 0.0)))
        added = np.flatnonzero(np.asarray((table.equations < 0).sum(axis=1)) == 1)
        parts, totals = table.equations[added].maximum(0).astype(np.float64), table.totals[added]
        while True:
            known = least.copy()
            np.maximum.at(known, totals, parts @ np.maximum(least, 0.0))
            if (known == least).all():
                break
            least = known
        raised = ~self.withheld & ~table.may_be_negative & (least > self.lower)
        cut = np.where(raised, np.minimum(levels.lower, table.value - least), levels.lower)
        lower = np.where(raised, least, self.lower)
        return self.replace(lower=lower, sensitivity=replace(levels, lower=cut), shows_zeros=True)

    def flagging_unjudged(self) -> Problem:
        """The problem in which those unseen cells alone are sensitive that are in this one too many to be judged."""
        found = _flagged(self.rules, self.table)
        assert self.table.unseen is not None
        left = self.replace(sensitivity=found.where(self.table.unseen & ~self.sensitivity.mask))
        object.__setattr__(left, "unjudged", 0)
        return left

    @property
    def bounds_differ(self) -> bool:
        """Whether the attacker's prior bounds are not the same for all cells that may change.

        Bounds of single cells are often made from the true values: some attackers know them, readers must not.
        """
        free = ~self.frozen if self.table.unseen is None else ~(self.frozen | self.table.unseen)
        return any(len(np.unique(side[free])) > 1 for side in (self.lower, self.upper))

    @property
    def sensitive(self) -> NDArray[np.intp]:
        """The numbers of the sensitive cells."""
        return np.flatnonzero(self.sensitivity.mask)


def _flagged(rules: tuple[Rule, ...], table: Table) -> Sensitivity:
    """What the rules say of all cells."""
    return reduce(lambda a, b: a | b, [rule(table) for rule in rules], Sensitivity.none(len(table)))


def least(table: Table) -> Floats:
    """What everybody knows every cell to be no less than: 0, or nothing where contributions may be negative.

    Of counts that are shown because somebody is there, while empty cells are left out, everybody knows that they are 1.
    """
    return np.where(table.may_be_negative, -np.inf, np.where(table.occupied, 1.0, 0.0))


def _rules(given: Any) -> tuple[Rule, ...]:
    """The rules as a tuple; a single one may stand alone."""
    several = (given,) if isinstance(given, str | type) or callable(given) else given
    if not isinstance(several, Iterable):
        raise InvalidOption(f"rules must be a list of rules, got {given!r}.", hint="rules=[ts.Threshold(n=3)]")
    out = tuple(several)
    for rule in out:
        if isinstance(rule, type):
            raise InvalidOption(
                f"{rule.__name__} is a kind of rule.", hint=f"rules=[ts.{rule.__name__}()] with options."
            )
        if isinstance(rule, str) or not callable(rule):
            made = "".join(part.capitalize() for part in rule.split("_")) if isinstance(rule, str) else "Threshold"
            raise InvalidOption(
                f"{rule!r} is not a rule, but a {type(rule).__name__}.",
                hint=f"a rule is made with its options, as in rules=[ts.{made or 'Threshold'}(…)]; a job file and the "
                f"command line take names.",
            )
    return out


def waive(problem: Problem, cells: Mask) -> Problem:
    """The problem without some sensitive cells: their contributors agreed to publication."""
    return problem.replace(sensitivity=problem.sensitivity.where(~cells))


def _filled(value: Floats | float, table: Table, name: str) -> Floats:
    array = np.asarray(value, dtype=np.float64)
    n, array = len(table), table.whole_mask(array)
    if array.shape not in {(), (n,)}:
        raise InvalidProblem(f"{name!r} has {array.size:,} entries, but the table has {table.seen:,} cells.")
    return np.broadcast_to(array, (n,)).copy() if array.shape == () else array.copy()


def _mask(value: Mask | None, table: Table, name: str) -> Mask:
    n = len(table)
    if value is None:
        return np.zeros(n, dtype=np.bool_)
    array = table.whole_mask(np.asarray(value))
    if array.shape != (n,) or array.dtype != np.bool_:
        raise InvalidProblem(
            f"{name!r} must be {table.seen:,} booleans, one per cell; got {array.dtype} of shape {array.shape}."
        )
    return array.copy()


def _unseen(parts: dict[str, Any], unseen: Mask) -> dict[str, Any]:
    """What holds for unseen cells whatever was said: withheld, free of cost, and known by their sign at most."""
    least = 0.0 if bool((parts["lower"][~unseen] >= 0).any()) else -np.inf
    return {
        "lower": np.where(unseen, least, parts["lower"]),
        "upper": np.where(unseen, np.inf, parts["upper"]),
        "cost": np.where(unseen, 0.0, parts["cost"]),
        "frozen": parts["frozen"] & ~unseen,
        "suppressed": parts["suppressed"] & ~unseen,
        "withheld": parts["withheld"] | unseen,
    }


def _of_all(table: Table, sensitivity: Sensitivity) -> Sensitivity:
    """Sensitivity of all cells, from that of all or of the shown ones."""
    if table.unseen is None or len(sensitivity.mask) != table.seen:
        return sensitivity
    more, given = table.whole_mask, sensitivity
    levels = (more(given.lower), more(given.upper), more(given.sliding))
    return Sensitivity(more(given.mask), *levels, more(given.reason), given.reasons)


def _judged(table: Table, found: Sensitivity) -> tuple[Sensitivity, int]:
    """What rules say of unseen cells: all of it, or, of very many, what matters when everything shown is published.

    Bounds only get wider when cells are withheld. So one propagation, from a table with nothing withheld, finds every
    unseen cell that propagation can give away in any release.
    """
    if table.unseen is None:
        return found, 0
    asked = found.mask & table.unseen
    if not table.judged:
        return found.where(~table.unseen), 0
    if int(asked.sum()) <= MOST_JUDGED:
        return found, 0
    value = table.integers.astype(np.float64)
    from tablesafe.solve.propagate import propagate  # only for very many unseen cells: it has to be compiled

    lower, upper = propagate(table.equations, np.where(table.unseen, 0.0, value), np.where(table.unseen, np.inf, value))
    unit = 10.0**table.decimals
    close = (lower > value - found.lower * unit) | (upper < value + found.upper * unit)
    close |= (upper - lower < found.sliding * unit) | (upper == lower)
    keep = ~table.unseen | (asked & close)
    return found.where(keep), int((asked & ~close).sum())
