"""A brute-force attacker for values that may be negative: it knows records, rules by hand, and linear programs.

Nothing of `tablesafe` is used here. A table is two flat dimensions with their totals; an attacker is anybody, or some
contributors together. Each knows the sums, what is published, its own contributions, and bounds given beforehand.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from math import inf

import numpy as np
from scipy.optimize import linprog

Cell = tuple[str, str]
TOTAL = "Total"
TIE = 1e-6


@dataclass(frozen=True)
class Signed:
    """Records as (row, column, contributor, amount), and whether an attacker may take a contribution to be negative."""

    records: list[tuple[str, str, str, float]]
    negative: bool
    p: float = 10.0
    fewest: int = 3

    @cached_property
    def cells(self) -> dict[Cell, dict[str, float]]:
        """What each contributor has in each cell, totals too."""
        out: dict[Cell, dict[str, float]] = {}
        for row, column, who, amount in self.records:
            for cell in ((row, column), (row, TOTAL), (TOTAL, column), (TOTAL, TOTAL)):
                mine = out.setdefault(cell, {})
                mine[who] = mine.get(who, 0.0) + amount
        return out

    def equations(self) -> Iterator[list[tuple[Cell, float]]]:
        """The sums of rows and columns."""
        cells = self.cells
        for side in (0, 1):
            for code in sorted({cell[1 - side] for cell in cells}):
                line = [cell for cell in cells if cell[1 - side] == code]
                yield [(cell, -1.0 if cell[side] == TOTAL else 1.0) for cell in line]

    def level(self, cell: Cell) -> float | None:
        """The protection level of a cell by threshold and p%, in absolute contributions; None when it is safe."""
        sizes = sorted((abs(amount) for amount in self.cells[cell].values()), reverse=True)
        short = self.p / 100 * sizes[0] - sum(sizes[2:])
        if short > 0:
            return short
        return 0.0 if len(sizes) < self.fewest else None

    def need(self, cell: Cell, who: frozenset[str]) -> tuple[float, float] | None:
        """How far down and up a cell must be able to go for these contributors; None when nothing is asked.

        (0, 0) asks that it is not known exactly.
        """
        mine, level = self.cells[cell], self.level(cell)
        if level is None or set(mine) <= who:
            return None
        down = up = level
        first = max(mine, key=lambda one: abs(mine[one]))
        if level > 0 and first in who:
            rest = sorted((abs(mine[one]) for one in mine if one not in who), reverse=True)
            down = up = min(level, self.p / 100 * rest[0] - sum(rest[1:]))
            if up <= TIE:
                return None
        if not self.negative:
            down = min(down, sum(mine.values()) - sum(mine[one] for one in who if one in mine))
        return down, up

    def interval(
        self, cell: Cell, hidden: set[Cell], who: frozenset[str], bounds: dict[Cell, tuple[float, float]]
    ) -> tuple[float, float]:
        """What these contributors derive about a withheld cell, by two linear programs."""
        cells, unknown = self.cells, sorted(hidden)
        at = {one: i for i, one in enumerate(unknown)}
        matrix, rhs = [], []
        for line in self.equations():
            row, known = np.zeros(len(unknown)), 0.0
            for one, sign in line:
                if one in at:
                    row[at[one]] += sign
                else:
                    known += sign * sum(cells[one].values())
            matrix.append(row)
            rhs.append(-known)
        limits = []
        for one in unknown:
            value, own = sum(cells[one].values()), sum(cells[one].get(w, 0.0) for w in who)
            low, high = bounds.get(one, (-inf, inf) if self.negative else (0.0, inf))
            if set(cells[one]) <= who:
                low = high = value
            elif not self.negative:
                low = max(low, own)
            limits.append((low if low > -inf else None, high if high < inf else None))
        ends = []
        for sign in (1.0, -1.0):
            cost = np.zeros(len(unknown))
            cost[at[cell]] = sign
            found = linprog(cost, A_eq=np.array(matrix), b_eq=np.array(rhs), bounds=limits, method="highs")
            if found.status == 4:  # HiGHS sometimes cannot tell unbounded from infeasible: the truth is feasible
                found = linprog(cost, A_eq=np.array(matrix), b_eq=np.array(rhs), bounds=limits, method="highs-ds",
                                options={"presolve": False})  # fmt: skip
            assert found.status in {0, 3}, found.message
            ends.append(-sign * inf if found.status == 3 else float(sign * found.fun))
        return ends[0], ends[1]

    def attackers(self, coalition: int) -> Iterator[frozenset[str]]:
        """Anybody, and every coalition of contributors."""
        everyone = sorted({who for _, _, who, _ in self.records})
        yield frozenset()
        for size in range(1, coalition + 1):
            yield from map(frozenset, combinations(everyone, size))

    def openings(
        self, hidden: set[Cell], *, coalition: int = 1, bounds: dict[Cell, tuple[float, float]] | None = None
    ) -> set[tuple[Cell, frozenset[str]]]:
        """Sensitive cells, and from whom they are not hidden far enough."""
        out = set()
        inside = {who for cell in hidden for who in self.cells[cell]}
        for who in self.attackers(coalition):
            if not who <= inside:  # somebody who has nothing in withheld cells adds nothing to what the others know
                continue
            for cell, mine in self.cells.items():
                asked = self.need(cell, who)
                if asked is None:
                    continue
                value = sum(mine.values())
                if cell not in hidden:
                    out.add((cell, who))
                    continue
                low, high = self.interval(cell, hidden, who, bounds or {})
                if asked == (0.0, 0.0):
                    if high - low <= TIE:
                        out.add((cell, who))
                elif low > value - asked[0] + TIE or high < value + asked[1] - TIE:
                    out.add((cell, who))
        return out
