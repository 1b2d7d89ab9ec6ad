"""The least cost of 0/1 variables under inequalities, proved: by parts, by bounds from duals, and by branching.

What reduced costs and the inequalities themselves decide is fixed; the rest falls apart into parts that have no
inequality in common, and the costs of parts add up where their branchings would multiply. Every bound is computed from
the prices of a linear program with a margin for all rounding (Neumaier & Shcherbina), so it holds whatever the solver
did wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from tablesafe.core.equations import Floats, Integers, Mask
from tablesafe.solve.highs import DUAL, SIMPLEX, Model
from tablesafe.solve.program import Columns, Program, Scale, SolveStatus
from tablesafe.work.budget import Budget

ROUNDING = 2.0**-52
"""Relative error of one operation in floats: bounds are lowered by what these may add up to."""
CLEARLY = 1e-7
"""By how much an inequality must be violated before it decides anything."""
WHOLE = 1e-6
"""How near to 0 or 1 a variable of the relaxation counts as whole, in all of branch-and-cut."""
CANDIDATES, FEW_CANDIDATES, SMALL = 24, 12, 100
"""Variables that are tried before one is branched on, fewer in small blocks; and how many variables those have. Both
sides of each are solved, and many are seen to hold no better answer: with a third as many the hard parts of h_10k take
2.5 to 4 times as many nodes, and 1.3 to 3.6 times the work."""
DEEPEST = 150
"""Blocks within blocks beyond which nothing more is opened: each takes three calls of Python's stack."""
ALIKE = 5e-10
"""Share of the cost by which an answer must be better to count, where costs are not whole."""
SPAN = 1e-9
"""The smallest cost that can be told from nothing beside the largest."""
LARGEST = 2.0**50
"""Sums of whole costs up to this are exact."""


@dataclass(frozen=True, slots=True)
class Entries:
    """The entries of a sparse matrix."""

    row: Integers
    column: Integers
    value: Floats

    def times(self, x: Floats, rows: int) -> Floats:
        """The matrix, which has so many rows, times a vector."""
        return np.bincount(self.row, weights=self.value * x[self.column], minlength=rows).astype(np.float64)


@dataclass(frozen=True, slots=True)
class Block:
    """`entries · x ≥ least` for 0/1 variables of some cost; `names` are their numbers outside, `rows` those of rows.

    Entries come row by row.
    """

    entries: Entries
    least: Floats
    cost: Floats
    names: Integers
    rows: Integers


@dataclass(frozen=True, slots=True)
class Bound:
    """A bound that holds in exact arithmetic, and by how much at least each variable adds to it at 1, or takes off."""

    of_row: Floats
    of_column: Floats
    dearer: Floats
    cheaper: Floats

    def over(self, rows: Integers | slice = slice(None), columns: Integers | slice = slice(None)) -> float:
        """The bound of some rows and variables that share nothing with others."""
        one, other = self.of_row[rows], self.of_column[columns]
        sums = float(np.abs(one).sum() + np.abs(other).sum())
        return float(one.sum() + other.sum()) - ROUNDING * (len(one) + len(other) + 4) * sums


@dataclass(frozen=True, slots=True)
class Split:
    """What is left of a block when some variables are fixed: parts without a common row, and the cost of the fixed."""

    parts: list[Block]
    cost: float
    ones: Integers


def safe_bound(cost: Floats, entries: Entries, least: Floats, prices: Floats, low: Floats, high: Floats) -> Bound:
    """The bound that prices prove, whatever they are: rounding errors are bounded and taken off.

    It is a sum over rows and variables, so it has one for each part of them.
    """
    y = np.maximum(prices, 0.0)
    paid = y[entries.row]
    used = paid > 0
    terms, column = entries.value[used] * paid[used], entries.column[used]
    n = len(cost)
    reduced = cost - np.bincount(column, weights=terms, minlength=n)
    count = np.bincount(column, minlength=n) + 4
    error = (np.bincount(column, weights=np.abs(terms), minlength=n) + np.abs(cost)) * ROUNDING * count
    below = reduced - error
    of_column = np.minimum(below * low, below * high)
    return Bound(least * y, of_column, below, -(reduced + error))


def contradictory(entries: Entries, least: Floats, prices: Floats, low: Floats, high: Floats) -> bool:
    """Whether prices prove, in exact arithmetic, that no point within the bounds fulfils all rows."""
    nothing = safe_bound(np.zeros(len(low)), entries, least, prices, low, high)
    return nothing.over() > 0


def scale_of(cost: Floats) -> float:
    """What costs are divided by for a solver: its tolerances are absolute, and the smallest costs must count."""
    positive = cost[cost > 0]
    return max(float(positive.min()), float(positive.max()) * SPAN) if len(positive) else 1.0


def step_of(cost: Floats) -> float:
    """The number that all (whole) costs are multiples of; 0 when they are not whole."""
    if not len(cost) or not (cost == np.rint(cost)).all() or float(cost.sum()) >= LARGEST:
        return 0.0
    return float(np.gcd.reduce(cost.astype(np.int64)))


def rounded_up(bound: float, cost: Floats) -> float:
    """A bound on sums of (whole) costs, rounded up to what such a sum can be."""
    step = step_of(cost)
    return float(np.ceil(bound * (1 - 1e-12) / step - 1e-9) * step) + 0.0 if step else bound


def split(block: Block, low: Floats, high: Floats) -> Split | None:
    """Fix what follows from the bounds, drop what is fulfilled, and part the rest; None when nothing fulfils it all."""
    entries, m = block.entries, len(block.least)
    row, column, falling = entries.row, entries.column, entries.value < 0
    size = np.abs(entries.value)
    low, high = low.copy(), high.copy()
    while True:
        most = np.where(falling, -low[column], high[column]) * size
        spare = np.bincount(row, weights=most, minlength=m) - block.least
        if (spare < -CLEARLY).any():
            return None
        needed = np.flatnonzero((size > spare[row] + CLEARLY) & (low < high)[column])
        if not len(needed):
            break
        low[column[needed[~falling[needed]]]] = 1.0
        high[column[needed[falling[needed]]]] = 0.0
        if (low > high).any():
            return None
    ones, undecided = np.flatnonzero(low == 1), low < high
    least = np.where(falling, -high[column], low[column]) * size
    is_open = np.bincount(row, weights=least, minlength=m) < block.least - 1e-9
    rest = block.least - entries.times(low, m)
    some = is_open[row] & undecided[column]
    return Split(_parted(block, is_open, undecided, some, rest), float(block.cost[ones].sum()), block.names[ones])


def _parted(block: Block, is_open: Mask, undecided: Mask, some: Mask, rest: Floats) -> list[Block]:
    """The parts of some rows and variables of a block, of which `some` entries are between them."""
    open_rows, free = np.flatnonzero(is_open), np.flatnonzero(undecided)
    row = (np.cumsum(is_open) - 1)[block.entries.row[some]]
    column = (np.cumsum(undecided) - 1)[block.entries.column[some]]
    parts = connected(row, column, (len(open_rows), len(free)))
    part, place, within = (np.zeros(len(one), dtype=np.int64) for one in (open_rows, open_rows, free))
    for at, (rows, columns) in enumerate(parts):
        part[rows], place[rows], within[columns] = at, np.arange(len(rows)), np.arange(len(columns))
    order = np.argsort(part[row], kind="stable")
    ends = np.searchsorted(part[row][order], np.arange(len(parts) + 1))
    found = []
    for at, (rows, columns) in enumerate(parts):
        own = order[ends[at] : ends[at + 1]]
        entries = Entries(place[row[own]], within[column[own]], block.entries.value[some][own])
        rows, columns = open_rows[rows], free[columns]
        found.append(Block(entries, rest[rows], block.cost[columns], block.names[columns], block.rows[rows]))
    return found


def connected(row: Integers, column: Integers, shape: tuple[int, int]) -> list[tuple[Integers, Integers]]:
    """The rows and columns of each connected part of a matrix, given where it has entries; no rows, no part.

    Entries come row by row.
    """
    m, n = shape
    start = np.full(m + n + 1, len(row), dtype=np.int32)
    start[:m] = np.searchsorted(row, np.arange(m))
    graph = sparse.csr_array(  # from rows to columns: in the form that SciPy works with
        (np.ones(len(row)), (m + column).astype(np.int32), start), shape=(m + n, m + n)
    )
    count, labels = csgraph.connected_components(graph, directed=False)
    by_row, by_column = np.argsort(labels[:m], kind="stable"), np.argsort(labels[m:], kind="stable")
    row_ends = np.searchsorted(labels[:m][by_row], np.arange(count + 1))
    column_ends = np.searchsorted(labels[m:][by_column], np.arange(count + 1))
    return [
        (by_row[row_ends[k] : row_ends[k + 1]], by_column[column_ends[k] : column_ends[k + 1]])
        for k in np.unique(labels[:m]).tolist()
    ]


@dataclass(slots=True)
class Node:
    """A block with its relaxation solved: a bound, and the point where the relaxation is least."""

    block: Block
    model: Model
    scale: float
    bound: Bound
    x: Floats
    proved: float
    value: float
    """The bound, and what it is when rounded up."""

    def whole(self) -> bool:
        """Whether the point is a 0/1 answer."""
        near = np.rint(self.x)
        if np.abs(self.x - near).max(initial=0.0) > WHOLE:
            return False
        return bool((self.block.entries.times(near, len(self.block.least)) >= self.block.least - CLEARLY).all())


@dataclass(frozen=True, slots=True)
class Least:
    """A bound on every answer (or the limit given), and the variables that are 1 in the best answer, where found."""

    bound: float
    ones: Integers | None


@dataclass(slots=True)
class Branching:
    """Branch and bound over blocks. Answers must be less than a limit by more than `slack`, or they are no better."""

    work: Budget
    step: float
    slack: float
    nodes: int
    """How many nodes may still be opened."""
    stop: Callable[[], bool] = lambda: False
    idle: list[Model] = field(default_factory=list)
    """Models that are no longer needed: another block can have them."""
    depth: int = 0
    """Blocks that the one at hand is within."""

    def solved(self, block: Block) -> Node:
        """Solve the relaxation of a block."""
        model = self.idle.pop() if self.idle else Model(work=self.work, simplex_strategy=DUAL, **SIMPLEX)
        n, scale = len(block.cost), scale_of(block.cost)
        entries = block.entries
        order = np.argsort(entries.column, kind="stable")
        column, row, value = entries.column[order], entries.row[order], entries.value[order]
        start = np.concatenate([[0], np.cumsum(np.bincount(column, minlength=n))])
        columns, endless = Columns(start, row, value, len(block.least)), np.full(len(block.least), np.inf)
        model.load(Program(block.cost / scale, columns, block.least, endless, np.zeros(n), np.ones(n)), scale=Scale())
        prices = np.zeros(len(block.least))
        x = np.full(n, 0.5)
        if model.run() is SolveStatus.OPTIMAL:
            x, prices = model.answer()
        bound = safe_bound(block.cost, entries, block.least, prices * scale, np.zeros(n), np.ones(n))
        proved = bound.over()
        return Node(block, model, scale, bound, np.clip(x, 0.0, 1.0), proved, self.up(max(proved, 0.0)))

    def up(self, bound: float) -> float:
        """A bound on sums of whole costs, rounded up to what such a sum can be."""
        return float(np.ceil(bound / self.step) * self.step) if self.step else bound

    def together(self, some: Split | None, limit: float) -> Least:
        """The least cost of all parts together."""
        if some is None:
            return Least(limit, None)
        nodes = [self.solved(part) for part in some.parts]
        total = some.cost + sum(node.value for node in nodes)
        ones: list[Integers] | None = [some.ones]
        for node in sorted(nodes, key=lambda node: len(node.block.cost)):
            if total > limit - self.slack:
                return Least(min(total, limit), None)
            least = self.least(node, limit - (total - node.value))
            total += max(least.bound - node.value, 0.0)
            if ones is not None and least.ones is not None:
                ones.append(least.ones)
            else:
                ones = None
        if total > limit - self.slack:
            return Least(min(total, limit), None)
        return Least(total, None if ones is None else np.concatenate(ones))

    def least(self, node: Node, limit: float) -> Least:
        """The least cost of a block whose relaxation is solved."""
        block = node.block
        if node.value > limit - self.slack:
            return Least(min(node.value, limit), None)
        known = None
        if node.whole():
            chosen = np.rint(node.x) == 1
            cost = float(block.cost[chosen].sum())
            known = block.names[chosen] if cost <= limit - self.slack else None
            if known is not None and cost <= node.value * (1 + ALIKE):
                return Least(node.value, known)
        if self.nodes <= 0 or self.depth >= DEEPEST or self.stop():
            return Least(node.value, known)
        self.nodes -= 1
        low, high = self._fixed(node, limit)
        self.depth += 1
        if float((high - low).sum()) < 0.8 * len(low):
            self.idle.append(node.model)
            least = self.together(split(block, low, high), limit)
        else:
            least = self._branched(node, limit, low, high)
        self.depth -= 1
        return least

    def _fixed(self, node: Node, limit: float) -> tuple[Floats, Floats]:
        """Bounds of the variables in every answer below the limit."""
        room = limit - self.slack - node.proved
        low = np.where(node.bound.cheaper > room, 1.0, 0.0)
        return low, np.where(node.bound.dearer > room, 0.0, 1.0)

    def _branched(self, node: Node, limit: float, low: Floats, high: Floats) -> Least:
        """One variable at 0 and at 1: that which raises both bounds most.

        Where trying variables has decided some, what is left is looked at again first: it may fall apart.
        """
        undecided = int((low < high).sum())
        variable, order = self._choice(node, limit, low, high)
        self.idle.append(node.model)
        if order and int((low < high).sum()) < undecided:
            least = self.together(split(node.block, low, high), limit)
            return Least(max(least.bound, node.value), least.ones)
        bound, best = np.inf, None
        for value in order:
            down, up = low.copy(), high.copy()
            down[variable] = up[variable] = value
            child = self.together(split(node.block, down, up), limit)
            bound = min(bound, child.bound)
            if child.ones is not None:
                best = child.ones
                inside = np.isin(node.block.names, best)
                limit = float(node.block.cost[inside].sum())
        return Least(max(min(bound, limit), node.value), best)

    def _choice(self, node: Node, limit: float, low: Floats, high: Floats) -> tuple[int, tuple[float, ...]]:
        """The variable to branch on, and its sides, the likelier to hold the best answer first.

        Sides that are seen to hold no better answer are closed; where a variable has none left, there is no answer.
        """
        x, model = node.x, node.model
        fractional = np.flatnonzero((x > WHOLE) & (x < 1 - WHOLE) & (low < high))
        if not len(fractional):
            fractional = np.flatnonzero(low < high)
        order = np.lexsort((-node.block.cost[fractional], np.abs(x[fractional] - 0.5)))
        gain, chosen, sides = -1.0, int(fractional[order[0]]), (0.0, 1.0)
        for variable in fractional[order[: CANDIDATES if len(x) > SMALL else FEW_CANDIDATES]].tolist():
            value = []
            for side in (0.0, 1.0):
                model.set_bound(variable, side, side)
                solved = model.run() is SolveStatus.OPTIMAL
                value.append(min(model.objective * node.scale if solved else limit, limit) - node.proved)
                if solved and self._over(node, limit, low, high, variable, side):
                    low[variable], high[variable] = max(low[variable], 1 - side), min(high[variable], 1 - side)
                if low[variable] > high[variable]:
                    return variable, ()
                model.set_bound(variable, low[variable], high[variable])
            score = max(value[0], 1e-6 * node.scale) * max(value[1], 1e-6 * node.scale)
            if score > gain:
                gain, chosen = score, variable
                sides = (0.0, 1.0) if value[0] <= value[1] else (1.0, 0.0)
        return chosen, sides

    def _over(self, node: Node, limit: float, low: Floats, high: Floats, variable: int, side: float) -> bool:
        """Whether the prices of a program with one variable fixed prove that there is no better answer."""
        if node.model.objective * node.scale <= limit - self.slack:
            return False
        block, low, high = node.block, low.copy(), high.copy()
        low[variable] = high[variable] = side
        prices = node.model.answer()[1] * node.scale
        bound = safe_bound(block.cost, block.entries, block.least, prices, low, high).over()
        return self.up(bound) > limit - self.slack
