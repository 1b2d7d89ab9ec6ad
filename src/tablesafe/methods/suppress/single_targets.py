"""Convince everybody of one target after another, each by sparse deviations in as small a part of the table as will do.

Programs that move a thousand targets at once leave those that must move far: these would move, but not together with so
many others, and what hypercubes withhold for them costs more than all the rest. Asked alone they are soon done, if the
program is the right one. It moves its target exactly as far as it must get, and pays a little for each unit that any
cell moves, and the cost of the cell where it is not withheld yet. So nothing moves that need not: of a vertex of a
program that only moves its target as far as it can thousands of respondents are in doubt, of this one some dozens, and
the second or third deviation convinces these. The dual simplex method begins with nothing moved, which misses nothing
but the level; that a target cannot move so is told by some pivots.

Most such deviations keep to one code of a hierarchy, what is below it, and the totals above it; everything beside it
keeps still. These parts of a table are tried from the smallest, and the whole at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial

import numpy as np
from scipy import sparse

from tablesafe.core.equations import Floats, Integers, Mask
from tablesafe.methods.suppress.condensed import Condensed
from tablesafe.methods.suppress.simultaneous import EACH, FLAT, SUGGESTED, USED, Convincing
from tablesafe.solve.highs import DUAL, PRIMAL, SIMPLEX, Model
from tablesafe.solve.hypercubes import Hypercubes
from tablesafe.solve.program import Program, Scale, SolveStatus, power_of_two
from tablesafe.work.budget import Budget
from tablesafe.work.side_by_side import AT_ONCE, side_by_side

TURNS = 12
"""Deviations for a target at the most."""
SHARES = (1.0, 0.5, 0.25)
"""Shares of those who are in doubt whom a deviation is to convince, one tried after the other."""
LARGER, WHOLE = 2.0, 0.7
"""How many times as large as the last one a part is that is tried after it, and share of all cells from which on a part
is no smaller program than the whole."""
DEARLY = 1e-3
"""Share of the cost so far from which on a deviation is looked for in a larger part too (20,000 firms, all convinced:
138 million after 117 s of CPU with twice that, 125 after 120 s with a third)."""
BY_THE_WAY, IN_DOUBT = 0.02, 3.0
"""What a unit costs that a withheld cell moves, in shares of what the median cell costs for a level; and how many times
that where its only contributor will be in doubt."""
FAR = 20.0
"""How many times the level of its target any cell moves at the most."""
SLOPES = 2
"""How often a deviation that withholds more is looked for again among the cells it uses, at prices by their moves."""
PIVOTS, LAST_PIVOTS, AGAIN = 12_000, 60_000, 3_000
"""Pivots after which a program is given up (two seconds); the same for what is left at the end, and for a program that
is to make an answer cheaper."""
PER_PROGRAM, PER_PIVOT, PER_PIVOT_AND_ROW = 1e-3, 8e-6, 5e-9
"""Seconds of work for a program, for each of its pivots, and for each pivot and row: sparse as its answers are, a pivot
takes a sixth of what others take."""


@dataclass(frozen=True, eq=False)
class Part:
    """Some cells, ascending, and the equations among them when all others keep still."""

    cells: Integers = field(repr=False)
    rows: sparse.csr_array = field(repr=False)
    """Of what each cell rises, and then of what each falls."""

    def __len__(self) -> int:
        return len(self.cells)

    def __contains__(self, cell: int) -> bool:
        at = int(np.searchsorted(self.cells, cell))
        return at < len(self.cells) and int(self.cells[at]) == cell


class Parts:
    """The parts of a table along each code of its hierarchies, made when they are asked for, and the whole."""

    def __init__(self, condensed: Condensed, cubes: Hypercubes) -> None:
        self._condensed, self._cubes = condensed, cubes
        self._parts: dict[tuple[int, int], Part] = {}

    @cached_property
    def whole(self) -> Part:
        """All cells."""
        return self._made(self._condensed.instance.live)

    def along(self, cell: int) -> list[Part]:
        """Parts in which a cell may move, the smallest first, each much larger than the one before; not the whole.

        Each is what stands below a code or above it, with the code itself.
        """
        cubes, member, found = self._cubes, int(self._condensed.first[cell]), list[Part]()
        for dimension, code in enumerate(cubes.codes[member].tolist()):
            first, last = cubes.first[dimension], cubes.last[dimension]
            low, high = cubes.leaves[dimension : dimension + 2].tolist()
            for above in cubes.chain[low + first[code]].tolist():
                if above >= 0 and last[above] - first[above] < high - low:
                    found.append(self._part(dimension, above))
        chosen, size = list[Part](), 0.0
        for part in sorted(found, key=len):
            if cell in part and size * LARGER <= len(part) < WHOLE * len(self._condensed):
                chosen.append(part)
                size = len(part)
        return chosen

    def _part(self, dimension: int, code: int) -> Part:
        """What stands along a code, without what is equal to something that does not."""
        key = (dimension, code)
        if key not in self._parts:
            first, last = self._cubes.first[dimension], self._cubes.last[dimension]
            codes = self._cubes.codes[:, dimension]
            inside = (first[codes] >= first[code]) & (last[codes] <= last[code])
            inside |= (first[codes] <= first[code]) & (last[codes] >= last[code])
            every = self._condensed.instance.live.copy()
            np.logical_and.at(every, self._condensed.number, inside)
            self._parts[key] = self._made(every)
        return self._parts[key]

    def _made(self, those: Mask) -> Part:
        cells = np.flatnonzero(those)
        columns = sparse.csc_array(self._condensed.instance.columns[:, cells])
        used = np.flatnonzero(np.bincount(columns.indices, minlength=columns.shape[0]))
        rows = sparse.csr_array(sparse.csr_array(columns)[used])
        return Part(cells, sparse.csr_array(sparse.hstack([rows, -rows], format="csr")))


class OneByOne:
    """Convinces everybody of what a pattern leaves open, two targets at once."""

    def __init__(
        self, reach: Convincing, parts: Parts, suggested: Mask, budget: Budget, random: np.random.Generator
    ) -> None:
        self.reach, self.parts, self.budget, self.instance, self._random = reach, parts, budget, reach.instance, random
        own = self.instance.cost[self.instance.live & ~self.instance.forced]
        each = EACH * float(own.mean() if own.size else 0.0)
        self._cost = np.where(suggested, SUGGESTED, 1.0) * (self.instance.cost + each)
        positive = own[own > 0]
        self._usual = float(np.median(positive)) if positive.size else 1.0
        self._need = np.maximum(reach.rise, reach.fall)
        self._pivots = PIVOTS
        self._models: dict[int, tuple[Part, int, Model]] = {}
        """The last program of each target that is being looked at."""

    def protect(self) -> None:
        """Parts of the table first, the cells that must move furthest before others: these use what those withhold.

        Then all of it, for what is left. There those come first that need move least: with much to move, a program over
        all of a large table takes seconds.
        """
        cells = self.reach.open
        self._go_through(cells[np.argsort(-self._need[cells], kind="stable")], self.parts.along)
        for self._pivots in (PIVOTS, LAST_PIVOTS):
            cells = self.reach.open
            self._go_through(cells[np.argsort(self._need[cells], kind="stable")], lambda cell: [self.parts.whole])

    def _go_through(self, cells: Integers, parts: Callable[[int], Sequence[Part]]) -> None:
        """Convince everybody of some cells, one after the other."""
        waiting, turns = cells[::-1].tolist(), dict.fromkeys(cells.tolist(), 0)
        active = list[int]()
        while not self.budget.over:
            for cell in [cell for cell in active if turns[cell] >= TURNS or self._done(cell)]:
                active.remove(cell)
                self._models.pop(cell, None)
            while len(active) < AT_ONCE and waiting:
                cell = waiting.pop()
                if not self._done(cell):
                    active.append(cell)
            if not active:
                return
            asked = [partial(self._next, cell, parts(cell)) for cell in active]
            for cell, move in zip(active, side_by_side(asked, self.budget), strict=True):
                turns[cell] += 1 if move is not None else TURNS
                if move is not None:
                    self.reach.add(move)

    def _done(self, cell: int) -> bool:
        return bool(self.reach.rises[cell] and self.reach.falls[cell])

    def _next(self, cell: int, parts: Sequence[Part], budget: Budget) -> Floats | None:
        """A deviation that convinces somebody who is in doubt of a cell, if it can be all; None if none is found."""
        reach, instance = self.reach, self.instance
        side = -1 if reach.rises[cell] else 1
        for share in SHARES:
            left = reach.doubts.sample(cell, side, share, self._random)
            asked = reach.doubts.asking(cell, side, left, instance.down, instance.up)
            best, least = None, np.inf
            for part in parts:
                found = self._cheapest(part, cell, side, *asked, budget)
                cost = np.inf if found is None else instance.pattern_cost((found != 0) & ~reach.withheld)
                if cost < least:
                    best, least = found, cost
                if budget.over or least <= DEARLY * instance.pattern_cost(reach.withheld):
                    break
            if best is not None or budget.over:
                return best
        return None

    def _cheapest(
        self, part: Part, cell: int, side: int, level: float, down: Floats, up: Floats, budget: Budget
    ) -> Floats | None:
        """The deviation of a part that costs least, by slope scaling: see `Together`."""
        cells, n, at = part.cells, len(part), int(np.searchsorted(part.cells, cell))
        withheld = self.reach.withheld[cells]
        lower, upper = np.zeros(2 * n), np.concatenate([np.minimum(room[cells], FAR * level) for room in (up, down)])
        own, other = (at, n + at) if side > 0 else (n + at, at)
        lower[own] = upper[own] = level
        upper[other] = 0.0
        unit = np.where(self.reach.doubts.listed.alone[cells], IN_DOUBT, 1.0) * (BY_THE_WAY * self._usual / level)

        def price(moved: Floats) -> Floats:
            """What a unit of each cell costs, rising or falling, if it moves about so far."""
            each = unit + np.where(withheld, 0.0, self._cost[cells] / np.maximum(moved, FLAT * level))
            return np.tile(each / unit.min(), 2)

        first = price(np.clip(self.instance.down[cells], 1.0, level))
        model = self._begun(part, cell, side, level, lower, upper, first)
        best = None
        for turn in range(1 + SLOPES):
            move = _move(model, budget)
            if move is None:
                break
            best = move
            fresh = (move != 0) & ~withheld
            if not fresh.any() or turn == SLOPES:
                break
            model.set(simplex_strategy=PRIMAL, simplex_iteration_limit=AGAIN)
            idle = np.flatnonzero(np.tile(~fresh & ~withheld, 2))
            model.set_bounds(idle, np.zeros(len(idle)), np.zeros(len(idle)))
            model.set_costs(np.arange(2 * n), price(np.abs(move)))
        if best is None:
            return None
        out = np.zeros(len(self.instance))
        out[cells] = best
        return out

    def _begun(
        self, part: Part, cell: int, side: int, level: float, lower: Floats, upper: Floats, cost: Floats
    ) -> Model:
        """The program of a part, from the last answer about the same cell and side: what is asked differs by a few."""
        before = self._models.get(cell)
        if before is not None and before[0] is part and before[1] == side:
            model, every = before[2], np.arange(len(cost))
            model.set_bounds(every, lower, upper)
            model.set_costs(every, cost)
        else:
            zeros = np.zeros(part.rows.shape[0])
            program = Program.equations(part.rows, zeros, lower, upper, cost=cost)
            model = Model(program, scale=Scale(power_of_two(level), 1.0), **SIMPLEX)
        model.set(simplex_strategy=DUAL, simplex_iteration_limit=self._pivots)
        self._models[cell] = part, side, model
        return model


def _move(model: Model, budget: Budget) -> Floats | None:
    """By how much each cell moves in the answer to a program; None where there is none, or no time."""
    status = model.run(budget)
    pivots = max(model.info("simplex_iteration_count"), 0)
    rows = len(model.program.row_lower)
    budget.count(PER_PROGRAM + (PER_PIVOT + PER_PIVOT_AND_ROW * rows) * pivots)
    point = model.solution().point if status is SolveStatus.OPTIMAL else np.zeros(0)
    if not len(point):
        return None
    move = np.subtract(*np.split(point, 2))
    move[np.abs(move) <= USED] = 0.0
    return np.asarray(move)
