"""A safe pattern near a fractional one: target by target at least cost, then without what is not needed.

Each target is moved as far as it must at the least cost of the cells that move with it, among the cells that the
relaxation or the best pattern uses (Fischetti & Salazar-González, section 5). Every cell is two variables, up and down.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tablesafe.core.equations import Floats, Integers, Mask
from tablesafe.methods.suppress.branch_and_cut.attacker import NEGLIGIBLE, Attacker, far_of
from tablesafe.methods.suppress.branch_and_cut.cuts import Variables
from tablesafe.methods.suppress.branch_and_cut.master_problem import Covering
from tablesafe.methods.suppress.branch_and_cut.separation import UP_AND_DOWN
from tablesafe.methods.suppress.branch_and_cut.targets import NOTHING, Targets, View
from tablesafe.methods.suppress.instance import Instance
from tablesafe.solve.highs import DUAL, SIMPLEX, Model
from tablesafe.solve.neighbourhood import spans
from tablesafe.solve.program import Columns, Program, Scale, SolveStatus
from tablesafe.work.budget import Budget

USED = 1e-7
"""A move, in the units of the program, that is more than noise of the solver."""
FAR = 1e4
"""How far a cell without a bound may move, in units of the largest level."""
A_LITTLE = 1e-3
"""What every further cell costs, as a share of the mean: so that deviations stay short."""


class Repair:
    """Protects the targets that a pattern leaves open, among some of the cells."""

    def __init__(
        self, instance: Instance, variables: Variables, targets: Targets, work: Budget, shares: Floats, among: Mask
    ) -> None:
        self._instance, self._variables, self._targets, self._work = instance, variables, targets, work
        self._shares = shares
        self.pattern = instance.forced | ((shares > 1 - 1e-6) & instance.live)
        self.relies: dict[int, Integers] = {}
        """The cells that each target moves with."""
        self._load(among)

    def _load(self, among: Mask) -> None:
        instance = self._instance
        self._cells = np.flatnonzero((among | self.pattern) & instance.live)
        entries, length = spans(instance.columns.indptr, self._cells)
        rows, index = np.unique(instance.columns.indices[entries], return_inverse=True)
        value, n = instance.columns.data[entries].astype(np.float64), len(self._cells)
        start = np.concatenate([[0], np.cumsum(np.tile(length, 2))])
        both = Columns(start, np.tile(index, 2), np.concatenate([value, -value]), len(rows))
        self._far, self._view = FAR * float(self._targets.level.max(initial=1.0)), NOTHING
        self._room = np.minimum(np.concatenate([instance.up[self._cells], instance.down[self._cells]]), self._far)
        self._place = np.full(len(instance), -1, dtype=np.int64)
        self._place[self._cells] = np.arange(n)
        cost = self._prices()
        program = Program.equations(both, np.zeros(len(rows)), np.zeros(2 * n), self._room, cost=np.tile(cost, 2))
        self._model = Model(program, scale=Scale(), work=self._work, simplex_strategy=DUAL, **SIMPLEX)

    def _prices(self) -> Floats:
        """What a unit of each cell's move costs: nothing where it is withheld, less where the relaxation wants it."""
        cells, variable = self._cells, self._variables.of_cell[self._cells]
        cost = np.where(variable >= 0, np.append(self._variables.cost, 0.0)[variable], 0.0)
        scale = float(self._variables.cost.mean()) or 1.0
        return np.where(self.pattern[cells], 0.0, (1 - self._shares[cells]) * cost / scale + A_LITTLE)

    def all(self, which: Integers, stop: Callable[[], bool]) -> bool:
        """Protect some targets, one after another; False when the time is over before, or one
        finds no way."""
        done = np.zeros(len(self._targets), dtype=np.bool_)
        widened = False
        for at in which.tolist():
            if done[at]:
                continue
            if stop():
                return False
            if self._protect(at, which, done):
                continue
            if not widened:
                self._load(self._instance.live)
                widened = True
                if self._protect(at, which, done):
                    continue
            return False
        return True

    def _protect(self, at: int, which: Integers, done: Mask) -> bool:
        """Move one target, and note which others move far enough with it."""
        sign, cell, level = int(self._targets.sign[at]), int(self._targets.cell[at]), float(self._targets.level[at])
        if sign:
            return self._move(at, cell, sign, level, which, done)
        up, down = self._instance.up[cell], self._instance.down[cell]
        sides = UP_AND_DOWN if up >= down else UP_AND_DOWN[::-1]
        first = min(level, float(max(up, down)))
        rest = level - first
        self.relies.pop(at, None)
        if not self._move(at, cell, sides[0], first, which, done):
            return self._move(at, cell, sides[1], level, which, done) if min(up, down) >= level else False
        return rest <= 0 or self._move(at, cell, sides[1], rest, which, done)

    def _look_from(self, view: View) -> None:
        """Take the rooms of all cells as somebody sees them."""
        if view is self._view:
            return
        n, cells, instance = len(self._cells), self._cells, self._instance
        here = np.union1d(self._view.within(cells)[0], view.within(cells)[0])
        some = cells[here]
        up, down = view.rooms(some, instance.up[some], instance.down[some])
        both = np.concatenate([here, here + n])
        self._room[both] = np.minimum(np.concatenate([up, down]), self._far)
        self._model.set_bounds(both, np.zeros(len(both)), self._room[both])
        self._view = view

    def _move(self, at: int, cell: int, sign: int, level: float, which: Integers, done: Mask) -> bool:
        self._look_from(self._targets.view_of(at))
        n, place = len(self._cells), int(self._place[cell])
        moving, resting = (place, place + n) if sign > 0 else (place + n, place)
        self._model.set_bound(moving, level, max(level, self._room[moving]))
        self._model.set_bound(resting, 0.0, 0.0)
        solved = self._model.run() is SolveStatus.OPTIMAL
        if solved:
            self._take(at, self._model.answer()[0], which, done)
        self._model.set_bound(moving, 0.0, self._room[moving])
        self._model.set_bound(resting, 0.0, self._room[resting])
        return solved

    def _take(self, at: int, point: Floats, which: Integers, done: Mask) -> None:
        n, targets = len(self._cells), self._targets
        amount = point[:n] - point[n:]
        used = self._cells[np.abs(amount) > USED]
        new = used[~self.pattern[used]]
        if len(new):
            variable = np.unique(self._variables.of_cell[new])
            new = np.flatnonzero(np.isin(self._variables.of_cell, variable) & self._instance.live)
            self.pattern[new] = True
            place = self._place[new]
            place = place[place >= 0]
            self._model.set_costs(np.concatenate([place, place + n]), np.zeros(2 * len(place)))
        far = np.where(self._place[targets.cell[which]] >= 0, amount[self._place[targets.cell[which]]], 0.0)
        settled = which[targets.settled_by(which, at, self._cells, amount, far) & ~done[which]]
        done[settled] = True
        for other in settled.tolist():
            self.relies[other] = used
        done[at] = True
        before = self.relies.get(at) if targets.sign[at] == 0 else None
        self.relies[at] = used if before is None else np.union1d(before, used)


def cleaned(
    instance: Instance,
    variables: Variables,
    targets: Targets,
    attacker: Attacker,
    covering: Covering,
    repair: Repair,
    stop: Callable[[], bool],
) -> Mask:
    """The pattern without the cells that are not needed, the dearest first, unless a cut needs them."""
    pattern = repair.pattern.copy()
    used = np.zeros(len(instance), dtype=np.bool_)
    for cells in repair.relies.values():
        used[cells] = True
    wanted = np.zeros(len(variables.cost), dtype=np.bool_)
    kept = variables.of_cell[used & pattern]
    wanted[kept[kept >= 0]] = True
    pattern &= (variables.of_cell < 0) | np.append(wanted, False)[variables.of_cell]
    attacker.load(pattern.astype(np.float64))
    entries, least = covering.entries, covering.least
    order = np.argsort(entries.column, kind="stable")
    begin = np.searchsorted(entries.column[order], np.arange(len(wanted) + 1))
    carries = np.where(wanted[entries.column], entries.value, 0.0)
    held = np.bincount(entries.row, weights=carries, minlength=len(least)).astype(np.float64)
    enough = targets.enough
    far = float(targets.level.max(initial=1.0))
    users: dict[int, set[int]] = {}
    for at, cells in repair.relies.items():
        for cell in cells.tolist():
            users.setdefault(cell, set()).add(at)
    some = np.flatnonzero(wanted & variables.alone)
    some = some[np.lexsort((-variables.cost[some], attacker.part[variables.cell[some]]))]
    for variable in some.tolist():
        if stop():
            break
        cell = int(variables.cell[variable])
        span = order[begin[variable] : begin[variable + 1]]
        rows, carried = entries.row[span], entries.value[span]
        if ((least[rows] > 0) & (held[rows] - carried < least[rows] - 1e-9)).any():
            continue
        own = attacker.part[cell]  # a deviation may have pieces that have nothing to do with each other
        relying = [at for at in sorted(users.get(cell, ())) if attacker.part[targets.cell[at]] == own]
        new = _without(cell, relying, targets, enough, attacker, far)
        if new is None:
            continue
        for at, cells in new.items():
            for old in repair.relies[at].tolist():
                users[old].discard(at)
            for fresh in cells.tolist():
                users.setdefault(fresh, set()).add(at)
            repair.relies[at] = cells
        pattern[cell] = False
        held[rows] -= carried
    return pattern


def _without(
    cell: int, relying: list[int], targets: Targets, enough: Floats, attacker: Attacker, far: float
) -> dict[int, Integers] | None:
    """What targets move with instead when a cell is published; None, and it stays withheld, when one cannot."""
    new: dict[int, Integers] = {}
    for at in relying:
        if at in new:
            continue
        sign, own = int(targets.sign[at]), int(targets.cell[at])
        reach, cells = 0.0, []
        for side in UP_AND_DOWN if sign == 0 else (sign,):
            attacker.bring(int(attacker.part[cell]), far_of(far))
            attacker.publish(cell)
            move = attacker.ask(own, side, far, view=targets.view_of(at))
            reach += move.reach
            cells.append(move.cells[np.abs(move.amount) > NEGLIGIBLE])
            others = np.array([other for other in relying if other not in new], dtype=np.int64)
            moved = move.amount[attacker.place[targets.cell[others]]]
            for other in others[targets.settled_by(others, at, move.cells, move.amount, moved, move.back)].tolist():
                new[other] = cells[-1]
        if reach < enough[at]:
            attacker.withhold(cell)
            return None
        new[at] = np.unique(np.concatenate(cells))
    if not relying:
        attacker.bring(int(attacker.part[cell]), far_of(far))
        attacker.publish(cell)
    return new
