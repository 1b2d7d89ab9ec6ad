"""Rules made from rules: unions, intersections, waivers, requests, other levels; and cells flagged by hand."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import reduce

import numpy as np

from tablesafe.core.equations import Floats, Mask
from tablesafe.core.errors import InvalidOption
from tablesafe.core.options import about, require_number, require_rule
from tablesafe.core.sensitivity import Rule, Sensitivity, range_levels, reachable
from tablesafe.core.table import Table
from tablesafe.rules.columns import Column, amounts, listed, marked, requested, waived
from tablesafe.rules.contributions import shadowed
from tablesafe.rules.counts import Threshold, ZeroCells
from tablesafe.rules.linear import PQ, Dominance, LinearSensitivity, PPercent

WEIGHING = ("p%", "pq", "dominance", "linear")
"""Reasons of rules that weigh contributors against each other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnyOf:
    """Flag cells that at least one rule flags, hidden as far as the strictest of them asks."""

    rules: tuple[Rule, ...] = field(metadata={"help": "rules of which one is enough"})

    def __post_init__(self) -> None:
        _require_rules(self)

    def __call__(self, table: Table) -> Sensitivity:
        """Flag the cells of a table."""
        return reduce(lambda one, other: one | other, [rule(table) for rule in self.rules])


@dataclass(frozen=True, slots=True, kw_only=True)
class AllOf:
    """Flag cells that every rule flags, hidden as far as the strictest of them asks.

    For offices that protect, say, dominated cells only where they also have few contributors.
    """

    rules: tuple[Rule, ...] = field(metadata={"help": "rules that must all agree"})

    def __post_init__(self) -> None:
        _require_rules(self)

    def __call__(self, table: Table) -> Sensitivity:
        """Flag the cells of a table."""
        return reduce(lambda one, other: one & other, [rule(table) for rule in self.rules])


@dataclass(frozen=True, slots=True, kw_only=True)
class Levels:
    """Flag what a rule flags, with other protection levels.

    By default they are the rule's own. Factors make them asymmetric: `lower=0.5` asks for half the level below the
    value. A sliding level asks only for the width of the attacker's interval, wherever it lies: with `lower=0`,
    `upper=0`, `sliding=2` an interval twice as wide as the level is enough. With a safety range, in percent or as an
    amount, that range is the level that the factors apply to.
    """

    of: Rule = field(metadata={"help": "the rule that flags"})
    lower: float = field(
        default=1.0, metadata={"help": "lower level, as a multiple of the rule's own", "slider": (0.0, 5.0, 0.1)}
    )
    upper: float = field(
        default=1.0, metadata={"help": "upper level, as a multiple of the rule's own", "slider": (0.0, 5.0, 0.1)}
    )
    sliding: float = field(
        default=0.0,
        metadata={"help": "sliding level, as a multiple of the rule's upper level", "slider": (0.0, 5.0, 0.1)},
    )
    range_percent: float = field(
        default=0.0, metadata={"help": "range instead of the rule's level, in percent", "slider": (0.0, 100.0, 1.0)}
    )
    range_absolute: float = field(default=0.0, metadata={"help": "range instead of the rule's level, as an amount"})

    def __post_init__(self) -> None:
        require_rule(self, "of", self.of)
        for name in ("lower", "upper", "sliding", "range_percent", "range_absolute"):
            require_number(self, name, at_least=0)

    def __call__(self, table: Table) -> Sensitivity:
        """Flag the cells of a table."""
        return self.applied(table, self.of(table))

    def applied(self, table: Table, found: Sensitivity) -> Sensitivity:
        """The levels asked for, in place of those found."""
        ranged = self.range_percent > 0 or self.range_absolute > 0
        level = np.where(found.mask, range_levels(table, self.range_percent, self.range_absolute), 0.0)
        lower, upper = (level, level) if ranged else (found.lower, found.upper)
        return replace(
            found,
            lower=reachable(table, self.lower * lower),
            upper=self.upper * upper,
            sliding=np.maximum(found.sliding, self.sliding * upper),
        )


@dataclass(frozen=True, kw_only=True)
class Waiver:
    """Flag what a rule flags, except where those concerned agreed to publication.

    Whole cells may be waived, by a column of the table or a mask. Or contributors may have waived: they need no
    protection any more, but what they know still endangers the others. So rules that weigh contributors look at the
    largest one that did not waive, with those who did among its attackers; and a cell of which every contributor
    waived is safe by any rule.
    """

    of: Rule = field(metadata={"help": "the rule that flags"})
    cells: Column | None = field(default=None, metadata={"help": "column that marks the waived cells"})
    respondents: tuple[str | int, ...] = field(default=(), metadata={"help": "contributors that agreed to publication"})

    def __post_init__(self) -> None:
        require_rule(self, "of", self.of)
        _set_respondents(self, self.respondents)
        if self.cells is None and not self.respondents:
            raise InvalidOption("Waiver needs cells or respondents: whose data may be published?")

    def __call__(self, table: Table) -> Sensitivity:
        """Flag the cells of a table."""
        found = self.of(table) if not self.respondents else self._protecting_others(table)
        return found if self.cells is None else found.where(~waived(table, self.cells))

    def _protecting_others(self, table: Table) -> Sensitivity:
        consent = listed(table.contributors, self.respondents)
        assert table.contributors is not None
        known = (table.contributors.identity >= 0).sum(axis=1)
        everyone = table.count if table.holdings is None else table.holdings
        agreed = (consent.sum(axis=1) == known) & (known > 0) & _nothing_unseen(shadowed(table))
        agreed &= True if everyone is None else known >= everyone
        return _with_waived(self.of, table, consent).where(~agreed)


@dataclass(frozen=True, kw_only=True)
class RequestRule:
    """Flag what a rule flags, but only where the largest contributor asked for protection.

    So is foreign trade protected: passively, on request. The request comes from a column of the table that says of each
    cell what its largest contributor asked for, or from the names of the respondents that asked. With sampling weights
    both are heard, who reported the most and who adds the most; so are all that are the largest together, as far as the
    table keeps them, and two requests of one respondent. τ-ARGUS's request rule
    tells two kinds of requests apart, with a share of the total for each and a minimum count for both:
    `AnyOf(rules=(RequestRule(of=AnyOf(rules=(Dominance(n=1, k=70), Threshold(n=3))), request="asked", code=1), …))`.
    Its safety margin is `Levels(of=…, range_percent=…)`.
    """

    of: Rule = field(metadata={"help": "the rule that flags, on request"})
    request: Column | None = field(
        default=None, metadata={"help": "column with the request of each cell's largest contributor"}
    )
    code: float = field(default=1, metadata={"help": "value of the column that is a request"})
    respondents: tuple[str | int, ...] = field(default=(), metadata={"help": "contributors that asked for protection"})

    def __post_init__(self) -> None:
        require_rule(self, "of", self.of)
        require_number(self, "code")
        _set_respondents(self, self.respondents)
        if (self.request is None) == (not self.respondents):
            raise InvalidOption("RequestRule needs either request, a column, or respondents: who asked for protection?")

    def __call__(self, table: Table) -> Sensitivity:
        """Flag the cells of a table."""
        return self.applied(table, self.of(table))

    def applied(self, table: Table, found: Sensitivity) -> Sensitivity:
        """What was found, where it was asked for."""
        asked = found.where(self._asked(table))
        return replace(asked, reason=asked.mask.astype(np.uint32), reasons=("request",))

    def _asked(self, table: Table) -> Mask:
        if self.request is None:
            named, kept = listed(table.contributors, self.respondents), table.contributors
            assert kept is not None
            sizes = [size for size in (kept.amount, kept.weighted) if size is not None]
            most = [np.abs(size) == np.abs(size).max(axis=1, keepdims=True) for size in sizes]
            return np.asarray((named & np.logical_or.reduce(most)).any(axis=1))
        return requested(table, self.request, self.code)


@dataclass(frozen=True, kw_only=True)
class Manual:
    """Flag cells by hand, by a column of the table or a mask, with a safety range or levels of their own.

    A level given by a column or an array goes before the range. To declare cells safe by hand use `Waiver(cells=…)`.
    """

    cells: Column = field(metadata={"help": "column that marks the sensitive cells"})
    range_percent: float = field(
        default=0.0, metadata={"help": "safety range around the value, in percent of it", "slider": (0.0, 100.0, 1.0)}
    )
    range_absolute: float = field(default=0.0, metadata={"help": "safety range around the value, in its own unit"})
    lower: Column | None = field(default=None, metadata={"help": "column with the lower protection levels"})
    upper: Column | None = field(default=None, metadata={"help": "column with the upper protection levels"})
    sliding: Column | None = field(default=None, metadata={"help": "column with the sliding protection levels"})

    def __post_init__(self) -> None:
        require_number(self, "range_percent", at_least=0)
        require_number(self, "range_absolute", at_least=0)

    def __call__(self, table: Table) -> Sensitivity:
        """Flag the cells of a table."""
        level = range_levels(table, self.range_percent, self.range_absolute)
        lower = reachable(table, level if self.lower is None else amounts(table, self.lower))
        upper = level if self.upper is None else amounts(table, self.upper)
        sliding: Floats | float = 0.0 if self.sliding is None else amounts(table, self.sliding)
        return Sensitivity.of(marked(table, self.cells), lower, upper, sliding, reason="manual")


def agreed(rules: Iterable[Rule], table: Table) -> tuple[Mask, ...]:
    """Which of the kept contributors agreed to publication (per cell and place), as each of the rules has it.

    Rules that know of other waivers, or of none, hide other contributors, and all of them hold. What asks for levels
    without weighing contributors hides everybody.
    """
    every = {names for rule in rules for names in _waived_for(rule, frozenset())} or {frozenset()}
    places = 1 if table.contributors is None else table.contributors.identity.shape[1]
    nobody = np.zeros((len(table), places), dtype=np.bool_)
    return tuple(
        listed(table.contributors, names) if names else nobody
        for names in sorted(every, key=lambda names: sorted(map(str, names)))
    )


def not_to_be_known(rules: Iterable[Rule], found: Sensitivity) -> Mask:
    """Cells that are sensitive whatever their contributors weigh: they have too few, or somebody said so.

    A rule that weighs contributors is content where those who are left hide each other. The others are not: nobody may
    know such a cell exactly but all its contributors together.
    """
    weighing = {*WEIGHING, *(["request"] if all(map(_weighs_on_request, rules)) else [])}
    others = sum(1 << bit for bit, reason in enumerate(found.reasons) if reason not in weighing)
    return np.asarray(found.mask & ((found.reason & np.uint32(others)) != 0))


def measured_by_value(rules: Iterable[Rule]) -> bool:
    """Whether one of the rules measures cells with negative contributions by their value, not by absolute values."""
    return any(getattr(rule, "negative", "absolute") == "value" or measured_by_value(_inner(rule)) for rule in rules)


def _inner(rule: Rule) -> tuple[Rule, ...]:
    """The rules that a rule is made from."""
    match rule:
        case AnyOf() | AllOf():
            return rule.rules
        case Waiver() | Levels() | RequestRule():
            return (rule.of,)
        case _:
            return ()


def _waived_for(rule: Rule, names: frozenset[str | int], ranged: bool = False) -> Iterator[frozenset[str | int]]:
    """Who agreed to publication, for each part of a rule that weighs contributors, and for each that asks for levels.

    The latter take no notice of waivers. Inside `Levels` with a range of its own every part asks for levels.
    """
    match rule:
        case PPercent() | PQ() | Dominance() | LinearSensitivity():
            yield names
        case Waiver():
            yield from _waived_for(rule.of, names | {*rule.respondents}, ranged)
        case Levels():
            yield from _waived_for(rule.of, names, ranged or rule.range_percent > 0 or rule.range_absolute > 0)
        case AnyOf() | AllOf() | RequestRule():
            for part in _inner(rule):
                yield from _waived_for(part, names, ranged)
        case Threshold() | ZeroCells() if not ranged and not _range(rule):
            return
        case _:
            yield frozenset()


def _range(rule: Threshold | ZeroCells) -> float:
    return max(getattr(rule, "range_percent", 0.0), rule.range_absolute)


def _weighs_on_request(rule: Rule) -> bool:
    """Whether all that a rule flags on request is flagged by what contributors weigh."""
    match rule:
        case RequestRule():
            return all(isinstance(part, PPercent | PQ | Dominance | LinearSensitivity) for part in _leaves(rule.of))
        case _:
            return all(map(_weighs_on_request, _inner(rule)))


def _leaves(rule: Rule) -> Iterator[Rule]:
    inner = _inner(rule)
    if not inner:
        yield rule
    for part in inner:
        yield from _leaves(part)


def _with_waived(rule: Rule, table: Table, waived: Mask) -> Sensitivity:
    """Apply a rule, protecting only those contributors that did not waive."""
    match rule:
        case PPercent() | PQ() | Dominance() | LinearSensitivity():
            return rule.measure(table, waived)
        case AnyOf():
            return reduce(lambda one, other: one | other, [_with_waived(part, table, waived) for part in rule.rules])
        case AllOf():
            return reduce(lambda one, other: one & other, [_with_waived(part, table, waived) for part in rule.rules])
        case Levels() | RequestRule():
            return rule.applied(table, _with_waived(rule.of, table, waived))
        case _:
            return rule(table)


def _nothing_unseen(table: Table) -> Mask:
    """Cells whose value the contributors kept account for."""
    kept = table.contributors
    assert kept is not None
    added = (kept.amount if kept.weighted is None else kept.weighted).sum(axis=1)
    return np.asarray(np.abs(table.value - added) <= 1e-9 * np.maximum(1.0, np.abs(table.value)))


def _require_rules(rule: AnyOf | AllOf) -> None:
    rules = tuple(rule.rules) if isinstance(rule.rules, (list, tuple)) else (rule.rules,)
    object.__setattr__(rule, "rules", rules)
    if not rules:
        raise InvalidOption(f"{type(rule).__name__}.rules must name at least one rule.", about=about(rule, "rules"))
    for part in rules:
        require_rule(rule, "rules", part)


def _set_respondents(rule: Waiver | RequestRule, respondents: object) -> None:
    names = (respondents,) if isinstance(respondents, (str, int)) else tuple(respondents)  # type: ignore[arg-type]
    object.__setattr__(rule, "respondents", names)
