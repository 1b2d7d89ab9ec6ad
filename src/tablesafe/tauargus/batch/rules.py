"""SAFETYRULE as our rules.

| τ-ARGUS | here |
|---|---|
| `P(p,n)` | `PPercent(p, coalition=n)`; `P(p,q,n)` is `PQ` |
| `NK(n,k)` | `Dominance(n, k)` |
| `FREQ(n,range)` | `Threshold(n)`: fewer than n; the range in percent |
| `ZERO(range)` | `ZeroCells`: the range is an amount |
| `REQ(p1,p2,[n,]range)` | the largest contributor asked (code 1 or 2) and has more than p1 or p2 percent; or anybody asked and there are fewer than n |
| `MIS(1)` | `Waiver` of the cells with a missing code |
| `WGT(1)` | the sampling weights, in the rules as so many contributors |
| `MAN(range)` | the range of cells that are unsafe by hand, in percent |

The first two `P` and `NK` are about respondents, the next two about holdings; so are the first and the second `FREQ` and
`REQ`. A rule with 0 holds a place and is not applied.
"""  # noqa: E501

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tablesafe.core.equations import Mask
from tablesafe.core.errors import InvalidJob
from tablesafe.core.table import Table
from tablesafe.io.apriori import MANUAL_RANGE
from tablesafe.rules import (
    PQ,
    AnyOf,
    Dominance,
    Levels,
    LinearSensitivity,
    PPercent,
    RequestRule,
    Rule,
    Threshold,
    Waiver,
    ZeroCells,
)
from tablesafe.rules.contributions import SamplingWeights
from tablesafe.tauargus.batch.commands import RuleCall, RuleName, SafetyRule

COUNTING = frozenset({"FREQ", "ZERO"})
"""Rules that do not compare contributions."""
ASKED = "request of anyone"
"""The column that counts the contributors who asked for protection."""


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules of one table, by the level that they look at."""

    calls: tuple[RuleCall, ...] = ()
    line: int = 0

    @classmethod
    def of(cls, command: SafetyRule | None) -> Rules:
        """The rules of a command; without one, none."""
        return cls() if command is None else cls(command.rules, command.line)

    def _last(self, name: RuleName, default: float) -> float:
        return next((call.numbers[0] for call in self.calls if call.name == name), default)

    @property
    def manual_range(self) -> float:
        """Percent of the value that hides a cell which is unsafe by hand."""
        return self._last("MAN", MANUAL_RANGE)

    @property
    def weighted(self) -> bool:
        """Whether the sampling weights are used."""
        return self._last("WGT", 0) == 1

    @property
    def missing_is_safe(self) -> bool:
        """Whether cells with a missing code are safe whatever the rules say."""
        return self._last("MIS", 0) == 1

    @property
    def respondents(self) -> tuple[RuleCall, ...]:
        """Rules about single respondents that are applied."""
        return self._at(0)

    @property
    def holdings(self) -> tuple[RuleCall, ...]:
        """Rules about holdings that are applied."""
        return self._at(1)

    @property
    def flags(self) -> bool:
        """Whether any rule says what is sensitive; else the given statuses do."""
        return bool(self.respondents or self.holdings)

    @property
    def requests(self) -> bool:
        """Whether a rule looks at requests."""
        return any(call.name == "REQ" for call in (*self.respondents, *self.holdings))

    def _at(self, level: int) -> tuple[RuleCall, ...]:
        found = []
        for name, each in (("P", 2), ("NK", 2), ("FREQ", 1), ("ZERO", 1), ("REQ", 1)):
            same = [call for call in self.calls if call.name == name]
            found += [call for call in same[level * each : (level + 1) * each] if _applies(call)]
        return tuple(found)


def _applies(call: RuleCall) -> bool:
    """Whether a rule is more than a place holder."""
    match call.name:
        case "P":
            return call.numbers[0] > 0
        case "NK":
            return call.numbers[0] > 0 and 0 < call.numbers[1] < 100
        case "FREQ":
            return call.numbers[0] > 0
        case "REQ":
            return max(call.numbers[:2]) > 0
        case _:
            return True


def refuse_for_counts(rules: Rules) -> None:
    """A table of counts has no contributions to compare."""
    for call in (*rules.respondents, *rules.holdings):
        if call.name in {"P", "NK", "ZERO", "REQ"}:
            raise InvalidJob(
                f"{call} looks at contributions, but the table only counts (<freq>).",
                hint="use FREQ, or name a response variable.",
            )


def contributors_of(calls: tuple[RuleCall, ...]) -> int:
    """How many of the largest contributors the rules look at."""
    depth = [1]
    for call in calls:
        if call.name == "P":
            depth.append(int(call.numbers[-1]) + 1 if len(call.numbers) > 1 else 2)
        elif call.name == "NK":
            depth.append(int(call.numbers[0]))
    return max(depth)


def build_rules(
    holdings: tuple[RuleCall, ...],
    respondents: tuple[RuleCall, ...],
    table: Table,
    *,
    weighted: bool,
    request: str | None = None,
    safe: Mask | None = None,
) -> tuple[Rule, ...]:
    """Our rules for a table; `safe` marks cells with a missing code, where these are safe."""
    weights: SamplingWeights = "expanded" if weighted else "published"
    rules = (
        *(_rule(call, table, True, weights, request) for call in holdings),
        *(_rule(call, table, False, weights, request) for call in respondents),
    )
    if safe is None or not safe.any() or not rules:
        return rules
    return (Waiver(of=AnyOf(rules=rules), cells=safe),)


def _rule(call: RuleCall, table: Table, holdings: bool, weights: SamplingWeights, request: str | None) -> Rule:
    numbers = call.numbers
    match call.name:
        case "P":
            return _percent(numbers, weights)
        case "NK":
            return Dominance(n=int(numbers[0]), k=numbers[1], sampling_weights=weights)
        case "FREQ":
            on: Any = "holdings" if holdings else "respondents"
            return Threshold(n=int(numbers[0]), on=on, range_percent=numbers[1])
        case "ZERO":
            return ZeroCells(range_absolute=numbers[0])
        case _:
            assert call.name == "REQ"
            assert request is not None
            return _request(numbers, table, holdings, weights, request)


def _percent(numbers: tuple[float, ...], weights: SamplingWeights) -> Rule:
    p, coalition = numbers[0], int(numbers[-1]) if len(numbers) > 1 else 1
    q = numbers[1] if len(numbers) == 3 else 100.0
    if coalition == 0:  # nobody in the cell attacks
        return LinearSensitivity(weights=(p / q,), sampling_weights=weights)
    if q < 100:
        return PQ(p=p, q=q, coalition=coalition, sampling_weights=weights)
    return PPercent(p=p, coalition=coalition, sampling_weights=weights)


def _request(numbers: tuple[float, ...], table: Table, holdings: bool, weights: SamplingWeights, request: str) -> Rule:
    """On request: the largest contributor asked and has too large a share, or anybody did and there are too few."""
    *shares, margin = numbers
    parts: list[Rule] = [
        RequestRule(of=Dominance(n=1, k=share, sampling_weights=weights), request=request, code=code)
        for code, share in enumerate(shares[:2], start=1)
        if 0 < share < 100
    ]
    fewest = int(shares[2]) if len(shares) > 2 else 0
    if fewest > 0:
        on: Any = "holdings" if holdings else "respondents"
        asked = np.asarray(table.columns[ASKED]) > 0
        parts.append(RequestRule(of=Threshold(n=fewest, on=on), request=asked))
    of = AnyOf(rules=tuple(parts))
    if margin > 0:
        return Levels(of=of, range_percent=margin)
    return Levels(of=of, lower=0.0, upper=0.0)
