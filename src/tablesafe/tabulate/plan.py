"""What is asked of a tabulation, checked before any record is read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations
from typing import Any, TypeAlias

from tablesafe.core.cube import IGNORE, TIE, unseen_levels
from tablesafe.core.errors import InvalidOption
from tablesafe.core.hierarchy import TOTAL, Equation, Hierarchy, parse_equations, require_hierarchies
from tablesafe.core.table import Negative
from tablesafe.files.read import did_you_mean
from tablesafe.tabulate.records_and_columns import Columns, Records, Where

Progress: TypeAlias = Callable[[str, int, int | None], None]
"""Told what is being done, how much of it is done, and how much there is (when that is known)."""

ERROR, DROP = "error", "drop"
RECORDS = "records"
SHADOW, COST, UNWEIGHTED = "shadow", "cost", "unweighted"


@dataclass(frozen=True, slots=True)
class Measure:
    """Something that is added up over records: columns with their signs; without any, each record counts 1."""

    terms: tuple[tuple[str, int], ...] = ()
    weighted: bool = False


@dataclass(frozen=True, slots=True)
class Response:
    """One response variable: what cells hold, and by what contributors are ranked."""

    name: str
    value: Measure
    amount: Measure
    """What contributors reported: unweighted; of the shadow variable, if there is one."""
    added: Measure | None
    """What contributors add to the weighted total; without weights the same as `amount`, and None."""


@dataclass(frozen=True)
class Plan:
    """A tabulation, with every option in its final form."""

    dimensions: Mapping[str, Hierarchy | None]
    column_of: Mapping[str, str]
    responses: tuple[Response, ...]
    extras: Mapping[str, Measure]
    """Further sums per cell, by the name of the table's column."""
    respondent: str | None = None
    holding: str | None = None
    weight: str | None = None
    frequency: str | None = None
    """How many respondents a row stands for; without it, each row stands for one."""
    request: str | None = None
    largest: int = 3
    where: Where = None
    missing: Mapping[str, str] = field(default_factory=dict)
    margins: tuple[frozenset[str], ...] | None = None
    zeros: bool = False
    total: Mapping[str, str] = field(default_factory=dict)
    equations: tuple[Equation, ...] = ()
    listed: tuple[str, ...] = ()
    """The response variables that the user named as columns."""
    empty: tuple[str, ...] = ()
    """Texts that stand for nothing, such as NA."""
    negative: Negative = "auto"
    """Whether contributions may be negative."""
    cube: str = TIE
    """Whether the unseen cells that tie the margins together are tabulated too."""

    @cached_property
    def crossed(self) -> tuple[frozenset[str], ...]:
        """The cross-classifications that may tie the margins together, and what two of them share: leaves only."""
        if self.margins is None or self.cube != TIE:
            return ()
        names = list(self.dimensions)
        wide = unseen_levels([tuple(int(name in margin) for name in names) for margin in self.margins])
        found = [frozenset(name for name, level in zip(names, levels, strict=True) if level) for levels in wide]
        shared = [one & other for one, other in combinations(found, 2)]
        return tuple(dict.fromkeys(each for each in [*found, *shared] if each))

    @cached_property
    def measures(self) -> tuple[Measure, ...]:
        """Everything that is added up, each once."""
        found = [m for r in self.responses for m in (r.value, r.amount, r.added) if m is not None]
        return tuple(dict.fromkeys([*found, *self.extras.values()]))

    @cached_property
    def numbers(self) -> tuple[str, ...]:
        """The columns that must hold numbers."""
        added = (column for measure in self.measures for column, _ in measure.terms)
        single = (column for column in (self.weight, self.frequency, self.request) if column is not None)
        return tuple(dict.fromkeys([*self.listed, *added, *single]))

    @cached_property
    def rankings(self) -> tuple[tuple[Measure, Measure | None], ...]:
        """By what contributors are ranked, each once: by what they reported and, with weights, by what they add too.

        With each ranking goes the other measure: somebody with a small amount and a large weight may add the most.
        """
        if not self.largest:
            return ()
        weighted = [(r.added, r.amount) for r in self.responses if r.added is not None]
        return tuple(dict.fromkeys([*((r.amount, r.added) for r in self.responses), *weighted]))

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """Every column of the source that is needed, except those only a filter names."""
        single = [self.respondent, self.holding]
        named = [*self.column_of.values(), *self.numbers, *(c for c in single if c is not None), *self.where_columns]
        return tuple(dict.fromkeys(named))

    @property
    def where_columns(self) -> tuple[str, ...]:
        """The columns that a filter by codes names."""
        return tuple(self.where) if isinstance(self.where, Mapping) else ()

    @property
    def merged(self) -> bool:
        """Whether one contributor may have several records."""
        return self.respondent is not None or self.holding is not None

    @property
    def counts_respondents(self) -> bool:
        """Whether respondents are told apart within contributors."""
        return self.respondent is not None and self.holding is not None


def make_plan(
    records: Records,
    columns: Columns,
    *,
    dimensions: Mapping[str, Hierarchy | None] | Sequence[str],
    column_of: Mapping[str, str] | None = None,
    largest: int = 3,
    margins: Iterable[Sequence[str]] | None = None,
    missing: str | Mapping[str, str] = ERROR,
    zeros: bool = False,
    total: str | Mapping[str, str] = TOTAL,
    cube: str = TIE,
) -> Plan:
    """Check the options against each other, and put them in their final form."""
    require_hierarchies(dimensions)
    spanned = dict(dimensions) if isinstance(dimensions, Mapping) else dict.fromkeys(dimensions)
    if not spanned:
        raise InvalidOption("A table needs at least one dimension.", hint="dimensions={'region': None}")
    if isinstance(largest, bool) or not isinstance(largest, int) or not 0 <= largest <= 1000:
        raise InvalidOption(f"largest must be a whole number from 0 to 1,000, got {largest!r}.")
    if columns.request is not None and largest == 0:
        raise InvalidOption("A request belongs to the largest contributor of a cell: largest must be 1 or more.")
    if cube not in {TIE, IGNORE}:
        raise InvalidOption(f"cube must be 'tie' or 'ignore', got {cube!r}.")
    names = list(spanned)
    _refuse_unknown(names, column_of or {}, "column_of")
    value, weighted = columns.value, columns.weight is not None
    listed = () if value is None else (value,) if isinstance(value, str) else tuple(value)
    given = columns.equations
    equations = () if given is None else tuple(parse_equations(given, "the response equations"))
    extras = {name: Measure(((name, 1),), weighted) for name in columns.further}
    for name, column in ((SHADOW, columns.shadow), (COST, columns.cost)):
        if column is not None:
            extras[name] = Measure(((column, 1),), weighted)
    _refuse_clash(names, extras, columns.request)
    if (columns.respondent is not None or columns.holding is not None) and value is not None:
        extras.setdefault(RECORDS, Measure())
    return Plan(
        dimensions=spanned,
        column_of={name: (column_of or {}).get(name, name) for name in names},
        responses=_responses(columns, listed, equations),
        extras=extras,
        respondent=columns.respondent,
        holding=columns.holding,
        weight=columns.weight,
        frequency=columns.frequency,
        request=columns.request,
        largest=0 if columns.frequency is not None else largest,
        where=records.where,
        missing=_per_dimension(names, missing, ERROR, "missing"),
        margins=_margins(spanned, margins),
        zeros=zeros,
        total=_per_dimension(names, total, TOTAL, "total"),
        equations=equations,
        listed=listed,
        empty=tuple(records.empty),
        negative=columns.negative,
        cube=cube,
    )


def _responses(columns: Columns, listed: Sequence[str], equations: Sequence[Equation]) -> tuple[Response, ...]:
    """The response variables; one that an equation names as a total is the sum of its parts in every record."""
    weighted, shadow, frequency = columns.weight is not None, columns.shadow, columns.frequency
    names = list(dict.fromkeys(listed))
    if len(names) < len(listed):
        raise InvalidOption(f"value names {next(n for n in names if listed.count(n) > 1)!r} twice.")
    if not names:
        if equations:
            raise InvalidOption("equations tie response variables together, but value names none.")
        return (_response(RECORDS, () if frequency is None else ((frequency, 1),), weighted, shadow),)
    first = {e.total: e for e in reversed(equations)}
    names = [*(total for total in first if total not in names), *names]
    unknown = sorted({part for e in equations for part in e.parts} - set(names))
    if unknown:
        raise InvalidOption(
            f"The equations name {unknown[0]!r}, which is not among the values {', '.join(map(repr, listed))}.",
            hint=f"{did_you_mean(unknown[0], names) or f'add {unknown[0]!r} to value.'}",
        )
    return tuple(_response(name, _terms(name, first, ()), weighted, shadow) for name in names)


def _response(name: str, terms: tuple[tuple[str, int], ...], weighted: bool, shadow: str | None) -> Response:
    ranked = terms if shadow is None else ((shadow, 1),)
    return Response(name, Measure(terms, weighted), Measure(ranked), Measure(ranked, True) if weighted else None)


def _terms(name: str, equations: Mapping[str, Equation], above: tuple[str, ...]) -> tuple[tuple[str, int], ...]:
    if name in above:
        raise InvalidOption(f"The response equations go in a circle: {' = '.join([*above, name])}.")
    if name not in equations:
        return ((name, 1),)
    signs: dict[str, int] = {}
    for part, sign in zip(equations[name].parts, equations[name].signs, strict=True):
        for column, inner in _terms(part, equations, (*above, name)):
            signs[column] = signs.get(column, 0) + sign * inner
    return tuple((column, sign) for column, sign in signs.items() if sign)


def _margins(
    dimensions: Mapping[str, Hierarchy | None], margins: Iterable[Sequence[str]] | None
) -> tuple[frozenset[str], ...] | None:
    if margins is None:
        return None
    chosen = [frozenset([margin] if isinstance(margin, str) else margin) for margin in margins]
    if not chosen:
        raise InvalidOption("margins names no table.", hint="margins=[['nace', 'region'], ['nace', 'size']]")
    for margin in chosen:
        _refuse_unknown(list(dimensions), dict.fromkeys(margin), "margins")
    for name, hierarchy in dimensions.items():
        if hierarchy is not None and hierarchy.total is None and any(name not in margin for margin in chosen):
            raise InvalidOption(
                f"Dimension {name!r} has no single total ({', '.join(map(repr, hierarchy.roots[:4]))}), so every "
                f"margin must contain it.",
                hint=f"add the total of {name!r} to its hierarchy.",
            )
    return tuple(dict.fromkeys(chosen))


def _per_dimension(names: list[str], given: str | Mapping[str, str], default: str, option: str) -> dict[str, str]:
    if isinstance(given, str):
        return dict.fromkeys(names, given)
    _refuse_unknown(names, given, option)
    return {name: given.get(name, default) for name in names}


def _refuse_unknown(names: list[str], given: Mapping[str, Any], option: str) -> None:
    for name in given:
        if name not in names:
            hint = did_you_mean(name, names) or f"the dimensions are {', '.join(map(repr, names))}."
            raise InvalidOption(f"{option} names {name!r}, which is no dimension.", hint=hint)


def _refuse_clash(names: list[str], extras: Mapping[str, Measure], request: str | None) -> None:
    for name in [*extras, *([] if request is None else [request])]:
        if name in names:
            raise InvalidOption(f"{name!r} is a dimension and cannot be added up as well.")
    if request is not None and request in extras:
        raise InvalidOption(f"{request!r} is the request and cannot be added up as well.")
