"""Cheaper patterns: up to which p would an office that spares cost have withheld something else?

An office that withholds as little as it can pays for every percent of p. So an intruder looks for patterns that cost
less than the one in the release and still protect everybody by some smaller p: the office's p is larger than that, or
it would have taken one of them. The patterns come from the classic sequence of linear programs, one for each sensitive
cell and direction, in which what is withheld already costs nothing (Kelly, Golden & Assad 1992), from scratch and from
the release's own pattern with one cell published; then whatever is not needed is published again. Whatever is found
holds: a better search can only raise the bound.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tablesafe.audit.intervals import exact_intervals
from tablesafe.audit.system import System
from tablesafe.core.equations import Floats, Mask
from tablesafe.core.table import Table
from tablesafe.solve.small import Columns, SmallSolver, columns_of

FINEST = 0.25
"""Percentage points between a p for which a cheaper pattern is known and one for which none was found."""
SCRATCH = 16
"""Patterns made from scratch for each p, with the sensitive cells in another order and costs a little different."""
SPREAD = 0.6
"""By what share costs are changed to find other patterns."""


@dataclass(eq=False)
class Cheaper:
    """The search for cheaper patterns of one table."""

    table: Table = field(repr=False)
    primary: NDArray[np.intp] = field(repr=False)
    pattern: Mask = field(repr=False)
    cost: Floats = field(repr=False)
    lower: Floats = field(repr=False)
    """What everybody knows about each cell if it is withheld, in units."""
    upper: Floats = field(repr=False)
    most: int
    """Linear programs after which the bound found so far must do."""
    seed: int = 0
    programs: int = 0

    @cached_property
    def value(self) -> Floats:
        """The values, in units."""
        return self.table.integers.astype(np.float64)

    @cached_property
    def eligible(self) -> Mask:
        """Cells that the office may withhold: those that it does, and inner ones that hold something."""
        return self.pattern | (~self.table.is_total & (self.table.integers > 0))

    @cached_property
    def paid(self) -> float:
        """What the release's pattern costs."""
        return float(self.cost[self.pattern].sum())

    @cached_property
    def _columns(self) -> Columns:
        both = sparse.csc_array(sparse.hstack([self.table.equations, -self.table.equations]).astype(np.float64))
        return columns_of(both.indptr, both.indices, both.data, both.shape[0])

    @cached_property
    def _solver(self) -> SmallSolver:
        return SmallSolver()

    def largest_p(self, upper: float) -> float:
        """The largest p, in percent and below `upper`, for which a cheaper pattern was found; 0 if none was."""
        random, low, high = np.random.default_rng(self.seed), 0.0, upper
        while high - low > FINEST and self.programs < self.most:
            middle = (low + high) / 2
            reached = max((self._reaches(each) for each in self._found(middle, random)), default=0.0)
            low, high = (max(low, min(reached, upper)), high) if reached >= middle * (1 - 1e-9) else (low, middle)
        return low

    def _found(self, p: float, random: np.random.Generator) -> Iterator[Mask]:
        """The first cheaper pattern for a p."""
        for allowed, start, noise in self._starts(random):
            if self.programs >= self.most:
                return
            made = self._pattern(p, allowed, start, noise)
            if made is not None and float(self.cost[made].sum()) < self.paid * (1 - 1e-9):
                yield made
                return

    def _starts(self, random: np.random.Generator) -> Iterator[tuple[Mask, Mask, Floats]]:
        """What may be withheld, what is at first, and by how much costs are changed."""
        only = np.zeros(len(self.table), np.bool_)
        only[self.primary] = True
        even = np.ones(len(self.table))
        yield self.eligible, only, even
        for cell in np.flatnonzero(self.pattern & ~only)[np.argsort(-self.cost[self.pattern & ~only])].tolist():
            allowed, start = self.eligible.copy(), self.pattern.copy()
            allowed[cell] = start[cell] = False
            yield allowed, start, even
        for _ in range(SCRATCH):
            yield self.eligible, only, random.uniform(1 - SPREAD, 1 + SPREAD, len(even))

    def _pattern(self, p: float, allowed: Mask, start: Mask, noise: Floats) -> Mask | None:
        """Withhold what each sensitive cell needs in turn, then publish again what none of them does."""
        made = start.copy()
        order = np.argsort(-self.value[self.primary] * noise[self.primary])
        for cell in self.primary[order].tolist():
            for sign in (1, -1):
                moved = self._move(p, cell, sign, allowed, np.where(made, 0.0, self.cost * noise))
                if moved is None:
                    return None
                made |= moved
        others = np.setdiff1d(np.flatnonzero(made), self.primary)
        for cell in others[np.argsort(-self.cost[others])].tolist():
            if self._protects(p, made, without=cell):
                made[cell] = False
        return made

    def _move(self, p: float, cell: int, sign: int, allowed: Mask, cost: Floats) -> Mask | None:
        """The cells that move when one moves by p of its value, at least cost; None if it cannot."""
        self.programs += 1
        n, need = len(self.table), p / 100 * self.value[cell]
        if need > (self.upper[cell] - self.value[cell] if sign > 0 else self.value[cell] - self.lower[cell]) + 1e-9:
            return None
        up = np.where(allowed, self.upper - self.value, 0.0)
        down = np.where(allowed, self.value - self.lower, 0.0)
        least, most = np.zeros(2 * n), np.concatenate([up, down])
        own, other = (cell, n + cell) if sign > 0 else (n + cell, cell)
        least[own] = most[own] = need
        most[other] = 0.0
        price = np.concatenate([cost, cost]) / max(float(cost.max(initial=0.0)), 1e-12)
        answer = self._solver.minimise(price, least, most, self._columns)
        if answer is None:
            return None
        return np.asarray(np.abs(answer.x[:n] - answer.x[n:]) > 1e-7 * max(need, 1.0))

    def _protects(self, p: float, made: Mask, *, without: int) -> bool:
        """Whether a pattern without one cell still lets every sensitive cell move by p of its value, either way."""
        allowed, free = made.copy(), np.zeros(len(self.table))
        allowed[without] = False
        return all(
            self._move(p, cell, sign, allowed, free) is not None for cell in self.primary.tolist() for sign in (1, -1)
        )

    def _reaches(self, made: Mask) -> float:
        """Up to which p a pattern protects, exactly, in percent."""
        cells = np.flatnonzero(made)
        system = System.over(self.table, cells, self.lower[cells], self.upper[cells])
        found = exact_intervals(system, np.searchsorted(cells, self.primary))
        own = self.value[self.primary]
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.where(own > 0, np.minimum(own - found.lower, found.upper - own) / own, np.inf)
        return 100 * float(share.min(initial=np.inf))
