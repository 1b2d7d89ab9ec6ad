"""An intruder with records, linear programs and patience, who asks of a release that is called safe whether it is.

It shares no code with tablesafe. A table is a set of cells, each a set of parts; what is shown of a cell is an
interval, of one value where it is published. Whoever attacks knows the sums, what is shown, that nothing is negative,
and what it reported itself: then a cell is no less than that, and known where nobody else is in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations, product
from math import inf

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import LinearConstraint, linprog, milp

Cell = tuple[str, ...]
Shares = dict[str, float]
"""What each contributor has in a cell."""

TOTAL = "Total"
TIE = 1e-6


@dataclass(frozen=True)
class Rule:
    """A p% rule, a threshold, or both, as the documentation has them; whoever agreed is not protected by the first."""

    p: float | None = None
    n: int = 0
    agreed: frozenset[str] = frozenset()
    """Who agreed to publication, as the p% rule has it."""
    agreed_to_few: frozenset[str] = frozenset()
    """And as the threshold has it: where all of a cell agreed, few are enough."""

    def few(self, has: Shares) -> bool:
        """Whether a cell has too few contributors."""
        return 0 < len(has) < self.n and not set(has) <= self.agreed_to_few

    def level(self, has: Shares) -> float:
        """How far the p% rule asks a cell to be hidden; 0 where it does not."""
        hidden = [(amount, who) for who, amount in has.items() if who not in self.agreed]
        if self.p is None or not hidden:
            return 0.0
        largest, who = max(hidden)
        second = max((amount for other, amount in has.items() if other != who), default=0.0)
        return max(self.p / 100 * largest - (sum(has.values()) - largest - second), 0.0)

    def fails(self, has: Shares) -> bool:
        """Whether a cell, or a sum of cells, may not be known."""
        return self.few(has) or self.level(has) > TIE

    def needs(self, has: Shares, coalition: frozenset[str]) -> tuple[float, float]:
        """How far below and above its value a cell must be possible for those who know their part of it."""
        level, own = self.level(has), sum(has.get(who, 0.0) for who in coalition)
        value = sum(has.values())
        hidden = [(amount, who) for who, amount in has.items() if who not in self.agreed]
        if level and max(hidden)[1] in coalition:
            left = [amount for amount, who in hidden if who not in coalition]
            assert self.p is not None
            most = max(left, default=0.0)
            level = min(level, max(self.p / 100 * most - (value - own - most), 0.0)) if left else 0.0
        return min(level, value - own), level


@dataclass(frozen=True)
class Intruder:
    """What a release shows of every cell, and the records behind it."""

    parts: Mapping[Cell, frozenset[int]]
    """Every cell that readers know to exist, as a set of parts."""
    shares: Sequence[Shares]
    """The contributors of each part."""
    shown: Mapping[Cell, tuple[float, float]]
    """The interval that the release shows of a cell; not there where it shows nothing."""
    least: float = 0.0
    """What no part is below."""
    known: Mapping[Cell, tuple[float, float]] = field(default_factory=dict)
    """What is known of cells that are not shown, by the office's own rules for example."""
    whole: bool = False
    """Whether values are known to be whole numbers."""

    @cached_property
    def has(self) -> dict[Cell, Shares]:
        """The contributors of each cell, each counted once."""
        return {cell: self.merged(parts) for cell, parts in self.parts.items()}

    def merged(self, parts: frozenset[int]) -> Shares:
        """The contributors of several parts together."""
        out: Shares = {}
        for part in parts:
            for who, amount in self.shares[part].items():
                out[who] = out.get(who, 0.0) + amount
        return out

    @cached_property
    def everyone(self) -> list[str]:
        """All contributors."""
        return sorted({who for has in self.shares for who in has})

    def row(self, cell: Cell) -> NDArray[np.float64]:
        """A cell as a sum of parts."""
        out = np.zeros(len(self.shares))
        out[list(self.parts[cell])] = 1.0
        return out

    def bounds(self, coalition: frozenset[str]) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """The cells as rows, and what the members of a coalition know each of them to be between."""
        rows, low, high = [], [], []
        for cell, has in self.has.items():
            one, other = self.shown.get(cell, (-inf, inf))
            if cell in self.known:
                one, other = max(one, self.known[cell][0]), min(other, self.known[cell][1])
            mine = sum(has.get(who, 0.0) for who in coalition)
            if has and set(has) <= coalition:
                one = other = mine
            elif self.least == 0.0:
                one = max(one, mine)
            if one > -inf or other < inf:
                rows.append(self.row(cell))
                low.append(one)
                high.append(other)
        return np.array(rows).reshape(-1, len(self.shares)), np.array(low), np.array(high)

    def interval(self, cell: Cell, coalition: frozenset[str] = frozenset()) -> tuple[float, float]:
        """What some contributors together, or nobody in particular, derive of a cell."""
        rows, low, high = self.bounds(coalition)
        return self._ends(self.row(cell), rows, low, high)

    def _ends(
        self, cost: NDArray[np.float64], rows: NDArray[np.float64], low: NDArray[np.float64], high: NDArray[np.float64]
    ) -> tuple[float, float]:
        ends = []
        equal = low == high
        above, below = ~equal & (high < inf), ~equal & (low > -inf)
        for sign in (1.0, -1.0):
            if self.whole:
                found = milp(
                    sign * cost,
                    integrality=np.ones(len(cost)),
                    bounds=_bounds(self.least, len(cost)),
                    constraints=LinearConstraint(rows, low, high),
                )
            else:
                found = linprog(
                    sign * cost,
                    A_eq=rows[equal] if equal.any() else None,
                    b_eq=low[equal] if equal.any() else None,
                    A_ub=np.vstack([rows[above], -rows[below]]) if (above | below).any() else None,
                    b_ub=np.concatenate([high[above], -low[below]]) if (above | below).any() else None,
                    bounds=(None if self.least == -inf else self.least, None),
                )
            if found.status in {3, 4} and found.x is None:
                ends.append(-sign * inf)
            else:
                assert found.status == 0, found.message
                ends.append(float(found.fun) * sign)
        return ends[0], ends[1]

    # -- what it objects to ----------------------------------------------------------------------------------------

    def objections(self, rule: Rule, coalition: int = 1, *, sums: int = 3) -> Iterator[str]:
        """Everything that somebody learns although the rules do not allow it, in words."""
        for cell, has in self.has.items():
            if not rule.fails(has):
                continue
            if cell in self.shown and self.shown[cell][0] == self.shown[cell][1]:
                yield f"{cell} is published"
                continue
            for size in range(coalition + 1):
                for some in combinations(self.everyone, size):
                    yield from self._too_close(cell, frozenset(some), rule)
        yield from self.sums(rule, sums)

    def _too_close(self, cell: Cell, coalition: frozenset[str], rule: Rule) -> Iterator[str]:
        has = self.has[cell]
        if set(has) <= coalition:
            return
        value = sum(has.values())
        below, above = rule.needs(has, coalition)
        if not (below > TIE or above > TIE or rule.few(has)):
            return
        low, high = self.interval(cell, coalition)
        who = "/".join(sorted(coalition)) or "anyone"
        told = f"{who} derives {low:g} to {high:g} of {cell}, {value:g} of {has}"
        if low > value - below + TIE or high < value + above - TIE:
            yield f"{told}: it must be possible from {value - below:g} to {value + above:g}"
        elif rule.few(has) and high - low < TIE:
            yield told

    def sums(self, rule: Rule, most: int) -> Iterator[str]:
        """Sums of cells that are not shown, but constant in everything that agrees with the release."""
        rows, low, high = self.bounds(frozenset())
        equal = low == high
        fixed = rows[equal]
        hidden = [cell for cell in self.parts if self.has[cell] and self._hidden(cell)]
        for size in range(2, most + 1):
            for some in combinations(hidden, size):
                together = [self.parts[cell] for cell in some]
                union = frozenset().union(*together)
                if len(union) != sum(map(len, together)) or not rule.fails(self.merged(union)):
                    continue
                cost = np.zeros(len(self.shares))
                cost[list(union)] = 1.0
                if not _spanned(fixed, cost):
                    continue
                yield f"{' + '.join(map(str, some))} is known: {self.merged(union)}"

    def _hidden(self, cell: Cell) -> bool:
        one, other = self.shown.get(cell, (-inf, inf))
        if one == other:
            return False
        low, high = self.interval(cell)
        return high - low > TIE


def _spanned(rows: NDArray[np.float64], one: NDArray[np.float64]) -> bool:
    if not len(rows):
        return False
    found = np.linalg.lstsq(rows.T, one, rcond=None)[0]
    return bool(np.abs(rows.T @ found - one).max() < 1e-9)


def _bounds(least: float, count: int) -> object:
    from scipy.optimize import Bounds

    return Bounds(np.full(count, least), np.full(count, inf))


# -- tables -----------------------------------------------------------------------------------------------------------


def crossed(
    rows: Sequence[tuple[Cell, str, float]], above: Sequence[Mapping[str, str]]
) -> tuple[dict[Cell, frozenset[int]], list[Shares]]:
    """All cells that records fall into, and their parts: the finest of them. `above` has each code's parent, by
    dimension; the total is above those that have none."""
    finest: dict[Cell, Shares] = {}
    for codes, who, amount in rows:
        mine = finest.setdefault(codes, {})
        mine[who] = mine.get(who, 0.0) + amount
    cells: dict[Cell, set[int]] = {}
    for at, codes in enumerate(finest):
        for cell in product(*(ways(code, parents) for code, parents in zip(codes, above, strict=True))):
            cells.setdefault(cell, set()).add(at)
    return {cell: frozenset(parts) for cell, parts in cells.items()}, list(finest.values())


def ways(code: str, parents: Mapping[str, str]) -> list[str]:
    """A code and all that are above it."""
    out = [code]
    while out[-1] in parents:
        out.append(parents[out[-1]])
    return [*out, TOTAL]
