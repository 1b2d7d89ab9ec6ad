"""Choose 0/1 variables at least cost under inequalities that arrive one after another.

One hot relaxation gives bounds, reduced costs fix what no better answer needs, and what is left falls apart into blocks
that are solved on their own: by branching with bounds that hold in exact arithmetic, and where that takes long, the
answer (not the bound) by the integer solver.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tablesafe.core.equations import Floats, Integers, Mask
from tablesafe.core.errors import SolverFailure
from tablesafe.methods.suppress.branch_and_cut.branching import (
    ALIKE,
    WHOLE,
    Block,
    Bound,
    Branching,
    Entries,
    Least,
    connected,
    contradictory,
    safe_bound,
    scale_of,
    split,
    step_of,
)
from tablesafe.solve.highs import DUAL, SIMPLEX, Model
from tablesafe.solve.program import Columns, Program, Rows, Scale, SolveStatus
from tablesafe.work.budget import ENDLESS, Budget

NODES = 50
"""Nodes of the branching of a part by itself: what parts cost adds up, where their branchings would multiply."""
SOLVER_NODES = 200
"""Nodes of the integer solver: its answer will mostly be cut off, the next cuts help more than a finer one."""
DENSE, HEAVY = 40_000, 5_000
"""Entries of a part beyond which it is not branched on by itself, and beyond which the integer solver comes first."""
DEAR = 0.1
"""What variables may cost, in units of the least cost, by which they lie beyond their bounds: the solver's tolerance is
nothing to it, but with a cost of 1e9 beside one of 1 it is much."""


@dataclass(frozen=True, slots=True)
class Cut:
    """`coefficients · x[variables] ≥ least`."""

    variables: NDArray[np.int64]
    coefficients: Floats
    least: float = 1.0
    always: bool = True
    """False when it holds only for answers that are better than the best one known."""
    whole: Cut | None = None
    """The same with the variables that are 0 in all those answers, where they were left out."""

    def among(self, some: NDArray[np.bool_]) -> Cut:
        """The cut without other variables."""
        kept = some[self.variables]
        return self if kept.all() else Cut(self.variables[kept], self.coefficients[kept], self.least, whole=self)

    def key(self) -> int:
        """Equal for equal cuts."""
        return hash((self.variables.tobytes(), self.coefficients.round(9).tobytes(), self.least))


@dataclass(frozen=True, slots=True)
class Relaxed:
    """The fractional answer of least cost within some bounds, and what its prices prove about all answers there.

    `proved` is infinite where there is no answer at all, and minus infinity where nothing was proved.
    """

    x: Floats
    bound: Bound
    proved: float


@dataclass(frozen=True, slots=True)
class Choice:
    """A 0/1 answer to all cuts, if there is a better one than was known, and a proven lower bound on every answer."""

    x: Floats | None
    bound: float
    least: bool = True
    """Whether the answer is proved to be the least for all cuts."""
    floors: tuple[Cut, ...] = ()
    """What parts of all better answers cost at least, where the relaxation does not say so."""


class Covering:
    """The cuts found so far, their relaxation, and what is fixed in every answer better than the best one known."""

    def __init__(self, cost: Floats, work: Budget | None = None) -> None:
        self._work = Budget() if work is None else work
        self.cost = cost
        self.step = step_of(cost)
        self._scale = scale_of(cost)
        n = len(cost)
        self.low, self.high = np.zeros(n), np.ones(n)
        self.cuts: list[Cut] = []
        self._seen: set[int] = set()
        self._rows: sparse.csr_array | None = None
        self.entries = Entries(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0))
        """The coefficients of all cuts, cut by cut; `least` are their right-hand sides."""
        self.least = np.zeros(0)
        self._enforced = self.low.copy(), self.high.copy()
        empty, none = Columns(np.zeros(n + 1, np.int32), np.zeros(0, np.int32), np.zeros(0), 0), np.zeros(0)
        self._model = Model(
            Program(cost / self._scale, empty, none, none, self.low, self.high), scale=Scale(), work=self._work,
            simplex_strategy=DUAL, **SIMPLEX,
        )  # fmt: skip
        self.bound = Bound(np.zeros(0), np.zeros(n), np.zeros(n), np.zeros(n))
        self.proved = 0.0
        self._prices = self._last_prices = np.zeros(0)
        self.point = np.zeros(n)
        self._known: dict[tuple[bytes, bytes], Least] = {}
        self._before = np.zeros(n)
        """The last answers of the parts: most of them the next cuts leave alone."""

    def add(self, cuts: list[Cut]) -> int:
        """Add what is new; says how many that were."""
        new = []
        for cut in cuts:
            key = cut.key()
            if key not in self._seen:
                self._seen.add(key)
                new.append(cut)
        if new:
            length = np.array([len(cut.variables) for cut in new])
            value, column = (
                np.concatenate([cut.coefficients for cut in new]),
                np.concatenate([cut.variables for cut in new]),
            )
            row, least = np.repeat(np.arange(len(new)), length), np.array([cut.least for cut in new])
            start = np.concatenate([[0], np.cumsum(length)])
            self._model.add_rows(Rows(start, column, value, len(self.cost)), least, np.full(len(new), np.inf))
            old = self.entries
            self.entries = Entries(
                np.append(old.row, row + len(self.cuts)), np.append(old.column, column), np.append(old.value, value)
            )
            self.least = np.append(self.least, least)
            self.cuts += new
            self._rows = None
        return len(new)

    def rows(self) -> tuple[sparse.csr_array, Floats]:
        """All cuts as a matrix, and their right-hand sides."""
        if self._rows is None:
            entries = self.entries
            start = np.searchsorted(entries.row, np.arange(len(self.cuts) + 1))
            shape = len(self.cuts), len(self.cost)
            self._rows = sparse.csr_array((entries.value, entries.column, start), shape=shape)
        return self._rows, self.least

    def relax(self, seconds: float = np.inf) -> Floats:
        """The fractional answer of least cost; `proved` is the bound its prices prove, infinite when none is left."""
        relaxed = self.within(self.low, self.high, seconds)
        if relaxed is None:  # the time was over: the last answer stands
            return self.point
        if relaxed.proved == -np.inf:
            raise SolverFailure("The relaxation of the suppression problem was not solved.")
        self.proved = relaxed.proved
        if np.isfinite(relaxed.proved):
            self.bound, self.point = relaxed.bound, relaxed.x
            self._prices = self._last_prices
        return self.point

    def within(self, low: Floats, high: Floats, seconds: float = np.inf) -> Relaxed | None:
        """The relaxation within other bounds; None where the time was over before it was solved."""
        changed = np.flatnonzero((self._enforced[0] != low) | (self._enforced[1] != high))
        if len(changed):
            self._model.set_bounds(changed, low[changed], high[changed])
            self._enforced = low.copy(), high.copy()
        least, entries = self.least, self.entries
        status = self._model.run(ENDLESS if seconds == np.inf else Budget(seconds))
        if status is SolveStatus.INFEASIBLE:
            ray = self._model.ray()
            for turned in (self._hardest(low, high), *(() if ray is None else (ray, -ray))):
                if contradictory(entries, least, turned, low, high):
                    return Relaxed(self.point, self.bound, np.inf)
        if status is SolveStatus.STOPPED:
            return None
        if status is not SolveStatus.OPTIMAL:
            return Relaxed(self.point, self.bound, -np.inf)
        x, prices = self._model.answer()
        if float((self.cost * np.abs(x - np.clip(x, low, high))).sum()) > DEAR * self._scale:
            self._model.forget()  # what is fixed goes out of the basis
            if self._model.run() is SolveStatus.OPTIMAL:
                x, prices = self._model.answer()
        self._last_prices = prices * self._scale
        bound = safe_bound(self.cost, entries, least, self._last_prices, low, high)
        return Relaxed(np.clip(x, 0.0, 1.0), bound, bound.over())

    def _hardest(self, low: Floats, high: Floats) -> Floats:
        """A price on the row that the bounds of its variables leave furthest from fulfilled."""
        entries, least = self.entries, self.least
        most = np.maximum(entries.value * low[entries.column], entries.value * high[entries.column])
        short = least - np.bincount(entries.row, weights=most, minlength=len(least))
        prices = np.zeros(len(least))
        prices[np.argmax(short)] = 1.0
        return prices

    def slack(self, best: float) -> float:
        """By how much an answer must cost less than the best one known, to be better."""
        return self.step or ALIKE * best

    def up(self, bound: float) -> float:
        """A bound rounded up to what a sum of whole costs can be."""
        return float(np.ceil(bound / self.step) * self.step) + 0.0 if self.step and bound < np.inf else max(bound, 0.0)

    def nothing_better(self, bound: float, best: float) -> bool:
        """Whether no answer that a bound holds for is better than the best one known."""
        return bound == np.inf or self.up(bound) > best - self.slack(best)

    def fix(self, best: float) -> int:
        """Fix the variables that reduced costs decide in every answer better than `best`; says how many."""
        if not np.isfinite(best) or not np.isfinite(self.proved):
            return 0
        room = best - self.slack(best) - self.proved
        zero = (self.bound.dearer > room) & (self.low < self.high)
        one = (self.bound.cheaper > room) & (self.low < self.high)
        fixed = np.flatnonzero(zero | one)
        if len(fixed):
            self.high[zero] = 0.0
            self.low[one] = 1.0
            both = np.flatnonzero(self.low > self.high)  # no better answer at all: the bound will say so
            self.low[both] = 0.0
            self.high[both] = 1.0
        return len(fixed)

    def decide(self, relaxed: Relaxed, best: float, low: Floats, high: Floats) -> None:
        """Fix, within the bounds of a relaxation, what its reduced costs decide in every better answer there."""
        if np.isfinite(best):
            room = best - self.slack(best) - relaxed.proved
            free = low < high
            high[free & (relaxed.bound.dearer > room)] = 0.0
            low[free & (relaxed.bound.cheaper > room)] = 1.0

    def choose(
        self,
        *,
        best: float = np.inf,
        nodes: int = NODES,
        nodes_of_largest: int = 0,
        seconds: float = 0.0,
        stop: Callable[[], bool] = lambda: False,
    ) -> Choice:
        """An answer that costs less than `best`, of the least cost that is found, and a bound on all such answers.

        It is the least, and the bound is that, where every part shows it within so many nodes; a part that holds most
        of what is undecided has a number of its own. Elsewhere the answer is
        the integer solver's, which has so many `seconds` for it, and is not believed to be more; without them it is
        the best that was seen on the way, if any.
        """
        matrix, least = self.rows()
        entries = self.entries
        free = self.low < self.high
        open_rows, parts = self._parts()
        left = least - matrix @ np.where(self.low == 1, 1.0, 0.0)
        prices = np.zeros(len(least))  # of cuts that no relaxation has seen yet, none is known
        prices[: len(self._prices)] = self._prices
        prices[~open_rows] = 0.0
        bound = safe_bound(self.cost, entries, left, prices, np.zeros(len(free)), free.astype(np.float64))
        x = np.rint(self.low)
        slack = self.slack(best) if np.isfinite(best) else self.step
        branching = Branching(self._work, self.step, slack, nodes, stop)
        values = [self.up(max(bound.over(rows, columns), 0.0)) for rows, columns in parts]
        total = float(self.cost[self.low == 1].sum()) + sum(values)
        complete, proved, floors, chosen = True, True, [], sum(len(columns) for _, columns in parts)
        for at in sorted(range(len(parts)), key=lambda at: len(parts[at][1])):
            if total > best - slack:
                return Choice(None, min(total, best))
            rows, columns = parts[at]
            point = self.point[columns]
            if np.abs(point - np.rint(point)).max() < WHOLE:
                x[columns] = np.rint(point)
                continue
            mostly = 2 * len(columns) > chosen
            if self._still_least(rows, columns, values[at], left):
                x[columns] = self._before[columns]
                continue
            branching.nodes = nodes_of_largest if mostly else nodes
            answer = self._least_of(rows, columns, values[at], best - (total - values[at]), branching, seconds)
            if answer.bound > values[at]:
                total += answer.bound - values[at]
                floors.append(Cut(columns, self.cost[columns] / answer.bound, 1 - ALIKE, always=False))
            if answer.ones is None:
                complete = False
            else:
                x[answer.ones] = 1.0
                self._before[columns] = x[columns]
                proved &= float(self.cost[answer.ones].sum()) <= answer.bound * (1 + ALIKE)
        if total > best - slack:
            return Choice(None, min(total, best))
        return Choice(x if complete else None, total, proved, tuple(floors))

    def _parts(self) -> tuple[Mask, list[tuple[Integers, Integers]]]:
        """The cuts that are not fulfilled by what is decided, and the parts into which these and the rest fall."""
        entries, least = self.entries, self.least
        lowest = np.bincount(
            entries.row,
            weights=np.where(entries.value > 0, self.low[entries.column], self.high[entries.column]) * entries.value,
            minlength=len(least),
        )
        open_rows = np.asarray(lowest < least - 1e-9)
        inside = (self.low < self.high)[entries.column] & open_rows[entries.row]
        parts = connected(entries.row[inside], entries.column[inside], (len(least), len(self.cost)))
        return open_rows, [(rows, columns) for rows, columns in parts if len(columns)]

    def in_one_piece(self) -> bool:
        """Whether most of what is undecided is one part, and too much of it to be branched on by itself."""
        undecided, matrix = int((self.low < self.high).sum()), self.rows()[0]
        return any(
            2 * len(columns) > undecided and matrix[rows][:, columns].nnz > DENSE for rows, columns in self._parts()[1]
        )

    def _still_least(self, rows: Integers, columns: Integers, value: float, left: Floats) -> bool:
        """Whether the last answer to some part still is one, and costs no more than the part's bound."""
        before = self._before[columns]
        if float(self.cost[columns] @ before) > value * (1 + ALIKE):
            return False
        return bool((self.rows()[0][rows][:, columns] @ before >= left[rows] - 1e-9).all())

    def _least_of(
        self, rows: Integers, columns: Integers, value: float, limit: float, branching: Branching, seconds: float
    ) -> Least:
        """The least cost of one part, and its answer; what was found before is not looked for again."""
        key = (rows.tobytes(), columns.tobytes())
        known = self._known.get(key)
        if known is not None:
            return known
        matrix, least = self.rows()
        some = sparse.csr_array(matrix[rows])
        left = least[rows] - some @ np.where(self.low == 1, 1.0, 0.0)
        answer = Least(value, None)
        own = some[:, columns].tocoo()
        if own.nnz <= (HEAVY if seconds > 0 else DENSE):
            block = Block(Entries(own.row, own.col, own.data), left, self.cost[columns], columns, rows)
            answer = branching.together(split(block, np.zeros(len(columns)), np.ones(len(columns))), limit)
            if answer.bound > limit - branching.slack:
                return answer
            if answer.ones is not None and float(self.cost[answer.ones].sum()) <= answer.bound * (1 + ALIKE):
                self._known[key] = answer
                return answer
        if seconds <= 0 or branching.stop():
            return answer
        return Least(answer.bound, self._chosen(some[:, columns], left, columns, seconds))

    def _chosen(self, matrix: sparse.csr_array, least: Floats, columns: Integers, seconds: float) -> Integers | None:
        """The integer solver's answer to a part: its 1s."""
        cost = self.cost[columns]
        scale = float(cost.mean()) or 1.0
        m, n = matrix.shape
        program = Program(
            cost, sparse.csr_array(matrix), least, np.full(m, np.inf), np.zeros(n), np.ones(n), np.ones(n, np.bool_)
        )
        model = Model(
            program,
            scale=Scale(price=1.0 / scale),
            work=self._work,
            mip_rel_gap=0.0,
            mip_abs_gap=0.999 * self.step / scale if self.step else 1e-6,
            mip_heuristic_effort=0.05,
            mip_detect_symmetry=False,
            mip_max_nodes=SOLVER_NODES,
        )
        model.run(Budget(seconds))
        solution = model.solution()
        return np.asarray(columns[np.rint(solution.point) == 1]) if solution.found else None
