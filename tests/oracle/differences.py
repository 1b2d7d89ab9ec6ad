"""An attacker who subtracts published tables from each other, by brute force: it shares no code with `src/`.

It sees what is published as sums over records, and looks for sets of records whose total follows exactly: by adding and
subtracting a few published cells, and by linear programs over everything at once. What it finds it judges by the
respondents in the set, each counted once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import combinations, product

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog

Row = dict[str, object]
Cell = tuple[str, ...]
Fails = Callable[[dict[str, int]], bool]
"""Whether a set fails a rule, from what each of its respondents reported."""

TOTAL = "Total"


@dataclass(frozen=True)
class Sheet:
    """One published table: what spans it, which records it counts, and which cells it does not show."""

    name: str
    dimensions: tuple[str, ...]
    where: Callable[[Row], bool]
    withheld: frozenset[Cell]


def cells_of(rows: list[Row], sheet: Sheet) -> dict[Cell, frozenset[int]]:
    """Every cell of a sheet, withheld or not, as a set of records."""
    found: dict[Cell, set[int]] = {}
    for i, row in enumerate(rows):
        if sheet.where(row):
            for keep in product([True, False], repeat=len(sheet.dimensions)):
                code = tuple(str(row[d]) if k else TOTAL for d, k in zip(sheet.dimensions, keep, strict=True))
                found.setdefault(code, set()).add(i)
    return {code: frozenset(inside) for code, inside in found.items()}


@dataclass(frozen=True)
class Attack:
    """The groups of records that any cell tells apart, and the published sums over them."""

    groups: list[list[int]]
    published: NDArray[np.int64]
    value: NDArray[np.int64]
    shares: list[dict[str, int]]
    """Per group, what each respondent reported."""
    least: NDArray[np.int64] | int = 0
    """What the attacker knows each group to be no less than."""

    @classmethod
    def of(cls, rows: list[Row], sheets: list[Sheet], *, empty: tuple[str, ...] = ()) -> Attack:
        """What the sheets show; with `empty`, nobody knows which combinations of these dimensions have no record."""
        real = len(rows)
        codes = [sorted({str(row[d]) for row in rows}) for d in empty]
        rows = [*rows, *({**dict(zip(empty, code, strict=True)), "firm": ""} for code in product(*codes) if empty)]
        every = [(sheet, code, inside) for sheet in sheets for code, inside in cells_of(rows, sheet).items()]
        by_mark: dict[tuple[bool, ...], list[int]] = {}
        for i in range(len(rows)):
            mark = tuple(i in inside for _, _, inside in every)
            if any(mark):
                by_mark.setdefault(mark, []).append(i)
        marks = np.array(list(by_mark), dtype=np.int64)
        shown = [k for k, (sheet, code, _) in enumerate(every) if code not in sheet.withheld]
        groups = list(by_mark.values())
        shares = []
        for group in groups:
            share: dict[str, int] = {}
            for i in (i for i in group if i < real):
                share[str(rows[i]["firm"])] = share.get(str(rows[i]["firm"]), 0) + int(str(rows[i]["value"]))
            shares.append(share)
        value = np.array([sum(share.values()) for share in shares])
        return cls(groups, marks[:, shown].T, value, shares)

    def knowing(self, firm: str) -> Attack:
        """The same by a respondent: it knows what it reported, and all of a group in which nobody else did."""
        alone = [group for group, share in enumerate(self.shares) if set(share) == {firm}]
        known = np.eye(len(self.groups), dtype=np.int64)[alone]
        own = np.array([share.get(firm, 0) for share in self.shares])
        return replace(self, published=np.vstack([self.published, known]), least=own)

    def merged(self, some: tuple[int, ...]) -> dict[str, int]:
        """What each respondent has in a set of groups."""
        out: dict[str, int] = {}
        for group in some:
            for firm, amount in self.shares[group].items():
                out[firm] = out.get(firm, 0) + amount
        return out

    def by_combinations(self, fails: Fails, most: int = 3) -> Iterator[tuple[int, ...]]:
        """Sets that fail, and that a few published cells with factors ±1 and ±2 add up to (or to twice)."""
        rows = np.unique(self.published, axis=0)
        seen: set[tuple[int, ...]] = set()
        for size in range(1, most + 1):
            factors = np.array([f for f in product((1, -1, 2, -2), repeat=size) if f[0] > 0])
            for chosen in combinations(range(len(rows)), size):
                sums = factors @ rows[list(chosen)]
                top = sums.max(axis=1)
                good = (sums >= 0).all(axis=1) & (top > 0) & ((sums == 0) | (sums == top[:, None])).all(axis=1)
                for each in sums[good]:
                    some = tuple(np.flatnonzero(each).tolist())
                    if some not in seen and fails(self.merged(some)):
                        seen.add(some)
                        yield some

    def by_programs(self, candidates: Iterator[tuple[int, ...]]) -> Iterator[tuple[int, ...]]:
        """Sets among the candidates whose total has one possible value in all tables that are not negative."""
        for some in candidates:
            low, high = self.interval(some)
            if high - low < 1e-6:
                yield some

    def interval(self, some: tuple[int, ...]) -> tuple[float, float]:
        """The least and the most that a set of groups can add up to."""
        cost = np.zeros(len(self.groups))
        cost[list(some)] = 1
        known = self.published @ self.value
        bounds = np.column_stack([np.broadcast_to(self.least, len(cost)), np.full(len(cost), np.inf)])
        ends = []
        for sign in (1, -1):
            found = linprog(sign * cost, A_eq=self.published, b_eq=known, bounds=bounds, method="highs")
            ends.append(np.inf if found.status == 3 else sign * found.fun)
        return float(ends[0]), float(ends[1])

    def small(self, n: int) -> Iterator[tuple[int, ...]]:
        """Every set of groups with fewer than `n` respondents, and some."""
        seen: set[tuple[int, ...]] = set()
        firms = sorted({firm for share in self.shares for firm in share})
        for few in combinations(firms, min(n - 1, len(firms))):
            inside = [g for g, share in enumerate(self.shares) if set(share) <= set(few)]
            for size in range(1, len(inside) + 1):
                for some in combinations(inside, size):
                    if some not in seen and self.merged(some):
                        seen.add(some)
                        yield some

    def all(self) -> Iterator[tuple[int, ...]]:
        """Every set of groups."""
        for size in range(1, len(self.groups) + 1):
            yield from combinations(range(len(self.groups)), size)

    def failing(self, fails: Fails) -> Iterator[tuple[int, ...]]:
        """Every set of groups that fails a rule."""
        return (some for some in self.all() if fails(self.merged(some)))
