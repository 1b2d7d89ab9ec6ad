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

from tablesafe.core.equations import Floats, Integers
from tablesafe.core.errors import SolverFailure
from tablesafe.methods.suppress.branch_and_cut.branching import (
    ALIKE,
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
from tablesafe.solve.program import Columns, Program, Scale, SolveStatus
from tablesafe.work.budget import Budget

NODES = 12
"""Nodes of a block's own branching before the integer solver is asked for its answer."""
SOLVER_NODES = 200
"""Nodes of the integer solver: its answer will mostly be cut off, the next cuts help more than a finer one."""
QUICKLY, DENSE = 400_000, 4_000_000
"""Entries of a part beyond which only the integer solver chooses, and the relaxation's bound stands: at first,
and in the end."""
WHOLE = 1e-6


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
class Choice:
    """A 0/1 answer to all cuts, if there is a better one than was known, and a proven lower bound on every answer."""

    x: Floats | None
    bound: float


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
        empty, none = Columns(np.zeros(n + 1, np.int32), np.zeros(0, np.int32), np.zeros(0), 0), np.zeros(0)
        self._model = Model(
            Program(cost / self._scale, empty, none, none, self.low, self.high), scale=Scale(), work=self._work,
            simplex_strategy=DUAL, **SIMPLEX,
        )  # fmt: skip
        self.bound = Bound(np.zeros(0), np.zeros(n), np.zeros(n), np.zeros(n))
        self.proved = 0.0
        self._prices = np.zeros(0)
        self.point = np.zeros(n)
        self._known: dict[tuple[bytes, bytes], tuple[float, Least]] = {}

    def add(self, cuts: list[Cut]) -> int:
        """Add what is new; says how many that were."""
        new = []
        for cut in cuts:
            key = cut.key()
            if key not in self._seen:
                self._seen.add(key)
                new.append(cut)
        if new:
            self.cuts += new
            self._rows = None
            length = np.array([len(cut.variables) for cut in new])
            rows = sparse.csr_array(
                (
                    np.concatenate([cut.coefficients for cut in new]),
                    np.concatenate([cut.variables for cut in new]),
                    np.concatenate([[0], np.cumsum(length)]),
                ),
                shape=(len(new), len(self.cost)),
            )
            self._model.add_rows(rows, np.array([cut.least for cut in new]), np.full(len(new), np.inf))
        return len(new)

    def rows(self) -> tuple[sparse.csr_array, Floats]:
        """All cuts as a matrix, and their right-hand sides."""
        if self._rows is None:
            length = np.array([len(cut.variables) for cut in self.cuts], dtype=np.int64)
            self._rows = sparse.csr_array(
                (
                    np.concatenate([np.zeros(0), *(cut.coefficients for cut in self.cuts)]),
                    np.concatenate([np.zeros(0, np.int64), *(cut.variables for cut in self.cuts)]),
                    np.concatenate([[0], np.cumsum(length)]),
                ),
                shape=(len(self.cuts), len(self.cost)),
            )
            self._right = np.array([cut.least for cut in self.cuts])
            row = np.repeat(np.arange(len(length)), length)
            self._entries = Entries(row, self._rows.indices.astype(np.int64), self._rows.data)
        return self._rows, self._right

    def relax(self, seconds: float = np.inf) -> Floats:
        """The fractional answer of least cost; `proved` is the bound its prices prove, infinite when none is left."""
        _, least = self.rows()
        status = self._model.run(Budget(seconds))
        if status is SolveStatus.INFEASIBLE:
            ray = self._model.ray()
            for turned in (self._hardest(least), *(() if ray is None else (ray, -ray))):
                if contradictory(self._entries, least, turned, self.low, self.high):
                    self.proved = np.inf
                    return self.point
        if status is not SolveStatus.OPTIMAL:
            if status is SolveStatus.STOPPED:  # the time was over: the last answer stands
                return self.point
            raise SolverFailure(f"The relaxation of the suppression problem was not solved ({status}).")
        x, prices = self._model.answer()
        self._prices = prices * self._scale
        self.bound = safe_bound(self.cost, self._entries, least, self._prices, self.low, self.high)
        self.proved = self.bound.over()
        self.point = np.clip(x, 0.0, 1.0)
        return self.point

    def _hardest(self, least: Floats) -> Floats:
        """A price on the row that the bounds of its variables leave furthest from fulfilled."""
        entries = self._entries
        most = np.maximum(entries.value * self.low[entries.column], entries.value * self.high[entries.column])
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
            self._model.set_bounds(fixed, self.low[fixed], self.high[fixed])
        return len(fixed)

    def choose(
        self,
        *,
        best: float = np.inf,
        nodes: int = NODES,
        seconds: float = np.inf,
        stop: Callable[[], bool] = lambda: False,
    ) -> Choice:
        """An answer that costs less than `best`, of the least cost that is found, and a bound on all such answers.

        The bound is proved as far as the nodes of every block allow; the answer is the least cost as far as the
        integer solver can be believed.
        """
        matrix, least = self.rows()
        entries = self._entries
        free = self.low < self.high
        lowest = np.bincount(
            entries.row,
            weights=np.where(entries.value > 0, self.low[entries.column], self.high[entries.column]) * entries.value,
            minlength=len(least),
        )
        open_rows = lowest < least - 1e-9
        inside = free[entries.column] & open_rows[entries.row]
        left = least - matrix @ np.where(self.low == 1, 1.0, 0.0)
        prices = np.zeros(len(least))  # of cuts that no relaxation has seen yet, none is known
        prices[: len(self._prices)] = self._prices
        prices[~open_rows] = 0.0
        bound = safe_bound(self.cost, entries, left, prices, np.zeros(len(free)), free.astype(np.float64))
        parts = connected(entries.row[inside], entries.column[inside], matrix.shape)
        x = np.rint(self.low)
        slack = self.slack(best) if np.isfinite(best) else self.step
        branching = Branching(self._work, self.step, slack, nodes, stop)
        parts = [(rows, columns) for rows, columns in parts if len(columns)]
        values = [self.up(max(bound.over(rows, columns), 0.0)) for rows, columns in parts]
        total = float(self.cost[self.low == 1].sum()) + sum(values)
        complete = True
        for at in sorted(range(len(parts)), key=lambda at: len(parts[at][1])):
            if total > best - slack:
                return Choice(None, min(total, best))
            rows, columns = parts[at]
            point = self.point[columns]
            if np.abs(point - np.rint(point)).max() < WHOLE:
                x[columns] = np.rint(point)
                continue
            answer = self._least(rows, columns, values[at], best - (total - values[at]), branching, nodes, seconds)
            total += max(answer.bound - values[at], 0.0)
            if answer.ones is None:
                complete = False
            else:
                x[answer.ones] = 1.0
        if total > best - slack:
            return Choice(None, min(total, best))
        return Choice(x if complete else None, total)

    def _least(
        self,
        rows: Integers,
        columns: Integers,
        value: float,
        limit: float,
        branching: Branching,
        nodes: int,
        seconds: float,
    ) -> Least:
        """The least cost of one part, and its answer; what was found before is not looked for again."""
        key = (rows.tobytes(), columns.tobytes())
        known = self._known.get(key)
        if known is not None and (known[0] >= nodes or known[1].bound >= limit):
            return known[1]
        matrix, least = self.rows()
        some = sparse.csr_array(matrix[rows])
        left = least[rows] - some @ np.where(self.low == 1, 1.0, 0.0)
        if len(rows) * len(columns) > (DENSE if nodes > NODES else QUICKLY):
            return Least(value, self._chosen(some[:, columns], left, columns, seconds))
        block = Block(some[:, columns].toarray(), left, self.cost[columns], columns, rows)
        branching.nodes = nodes
        answer = branching.together(split(block, np.zeros(len(columns)), np.ones(len(columns))), limit)
        if answer.bound > limit - branching.slack:
            return answer
        finished = answer.ones is not None and self._cost_of(answer.ones) <= answer.bound * (1 + ALIKE)
        if not finished and not branching.stop():
            ones = known[1].ones if known is not None else self._chosen(some[:, columns], left, columns, seconds)
            if answer.ones is None or (ones is not None and self._cost_of(ones) < self._cost_of(answer.ones)):
                answer = Least(answer.bound, ones)
        if answer.ones is not None:
            self._known[key] = (2**60 if finished else nodes, answer)
        return answer

    def _cost_of(self, ones: Integers) -> float:
        return float(self.cost[ones].sum())

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
