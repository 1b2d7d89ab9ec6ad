"""Which targets a (fractional) pattern leaves open, and the capacity cuts that say so."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tablesafe.core.equations import Floats, Integers, Mask
from tablesafe.methods.suppress.branch_and_cut.attacker import NEGLIGIBLE, Attacker, Move, Prices
from tablesafe.methods.suppress.branch_and_cut.cuts import VIOLATION, Variables, capacity
from tablesafe.methods.suppress.branch_and_cut.master_problem import Cut
from tablesafe.methods.suppress.branch_and_cut.targets import EVERYBODY, Targets
from tablesafe.methods.suppress.deviations import Deviation
from tablesafe.methods.suppress.instance import UNBOUNDED, Instance

UP_AND_DOWN = (1, -1)
"""The directions in which a target must be able to move."""
LEAST = 1e-6
"""Share of a cell that a deviation needs at least, however much room it has: none is not enough."""
SWEPT = 16
"""Targets of a part from which on it is worth moving many at once before they are asked about one by one."""
UNLIMITED = 1e9
"""How many times its level a target is asked about, so that no room is cut off."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What was seen of a pattern: violated cuts, and the targets that it leaves open."""

    cuts: list[Cut]
    whose: list[int]
    """The target of each cut."""
    open: list[int]
    moves: list[Move]
    """What takes the others far enough, where somebody wants to know."""


def _violated(cut: Cut | None, x: Floats) -> bool:
    return cut is not None and float(cut.coefficients @ x[cut.variables]) < cut.least - VIOLATION


class Separation:
    """Asks about every target; remembers deviations that still hold."""

    def __init__(
        self, instance: Instance, targets: Targets, variables: Variables, attacker: Attacker, stop: Callable[[], bool]
    ) -> None:
        self._instance, self.targets, self._variables = instance, targets, variables
        self._attacker, self._stop = attacker, stop
        self._enough = targets.enough
        self._known: dict[int, tuple[Integers, Floats]] = {}
        self._endless = bool((np.maximum(instance.up, instance.down) >= UNBOUNDED).any())

    def only(self, which: Integers) -> None:
        """Forget all other targets."""
        self.targets = self.targets.take(which)
        self._enough = self.targets.enough
        self._known.clear()

    def look(self, share: Floats, x: Floats, high: Floats, *, sweep: bool = False, tell: bool = False) -> Seen:
        """Ask about all targets, part by part; a deviation that moves others far enough settles these too.

        Where an answer leaves a target open, the cell that the cut names most is set free and the question repeated:
        the next cut names others. With `sweep` many targets are first moved at once: for who expects most to hold.
        With `tell` the moves that settle something are kept.
        """
        whole = bool((np.rint(x) == x).all())
        order, begin, part = self._loaded(share)
        awake = np.ones(len(order), dtype=np.bool_)
        swept = self._sweep(order, begin, awake) if sweep else []
        found = swept if tell else []
        cuts: list[Cut] = []
        whose: list[int] = []
        left: list[int] = []
        for at in order.tolist():
            if not awake[at] or self._still_holds(at, share) or self._lifted(at, share):
                continue
            if self._stop():
                left.append(at)
                break
            own = order[begin[part[at]] : begin[part[at] + 1]]
            waiting = np.count_nonzero(awake) if tell else 0
            moves, questions = self._ask(at, own, awake, tight=self._endless and not whole)
            if tell and np.count_nonzero(awake) < waiting:
                found += moves
            if sum(move.reach for move in moves) >= self._enough[at]:
                self._remember(at, moves)
                continue
            cut = self._cut(at, questions, high)
            if not whole and not _violated(cut, x):
                continue
            if not _violated(cut, x):  # perhaps only because rooms were cut off
                moves, questions = self._ask(at, own, awake, times=UNLIMITED)
                found += moves if tell else ()
                if sum(move.reach for move in moves) >= self._enough[at]:
                    continue
                cut = self._cut(at, questions, high)
            left.append(at)
            if cut is None or not _violated(cut, x):
                continue
            cuts.append(cut)
            if len(questions) == 1:
                cuts += self._another(at, cut, x, high)
            whose += [at] * (len(cuts) - len(whose))
        return Seen(cuts, whose, left, found)

    def _sweep(self, order: Integers, begin: Integers, awake: Mask) -> list[Move]:
        """Put to sleep the targets of large parts that moves of many at once settle, or their reverses.

        Says which moves did so.
        """
        found: list[Move] = []
        targets, random = self.targets, np.random.default_rng(0)
        for first, last in zip(begin[:-1].tolist(), begin[1:].tolist(), strict=True):
            own = order[first:last]
            own = own[(targets.view[own] == EVERYBODY) & (targets.sign[own] != 0)]
            if len(own) < SWEPT:
                continue
            cells, place = np.unique(targets.cell[own], return_inverse=True)
            level = np.zeros(len(cells))
            np.maximum.at(level, place, targets.level[own])
            for move in self._attacker.sweep(cells, level, random):
                moved = np.abs(move.amount[self._attacker.place[targets.cell[own]]])
                awake[own[moved >= self._enough[own]]] = False
                found.append(move)
                if self._stop():
                    return found
        return found

    def witnesses(self, share: Floats) -> list[Move]:
        """Deviations of a safe pattern that, with their reverses, take every target far enough: few that move many."""
        order, begin, part = self._loaded(share)
        awake = np.ones(len(order), dtype=np.bool_)
        found = self._sweep(order, begin, awake)
        for at in order.tolist():
            if awake[at] and not self._stop():
                own = order[begin[part[at]] : begin[part[at] + 1]]
                found += self._ask(at, own, awake, back=False)[0]
        return found

    def deviations(self, share: Floats) -> tuple[Deviation, ...]:
        """For each target a deviation that moves it far enough, and the others that it serves as well."""
        order, begin, part = self._loaded(share)
        awake = np.ones(len(order), dtype=np.bool_)
        found = []
        for at in order.tolist():
            if awake[at] and not self._stop():
                own = order[begin[part[at]] : begin[part[at] + 1]]
                before = awake[own].copy()
                moves, _ = self._ask(at, own, awake, back=False)
                if awake[at]:  # it does not get there
                    continue
                used = np.abs(moves[0].amount) > NEGLIGIBLE
                served = np.union1d([at], own[before & ~awake[own]])
                found.append(Deviation(moves[0].cells[used], moves[0].amount[used], served))
        return tuple(found)

    def _loaded(self, share: Floats) -> tuple[Integers, Integers, Integers]:
        """Take a pattern: the targets by connected part and view, where each part begins among them, the part of each.

        All targets of a part are asked about in one model, those of one view without a change of its rooms.
        """
        self._attacker.load(share)
        part, seen = self._attacker.part[self.targets.cell], self.targets.seen_from
        order = np.argsort(part, kind="stable") if seen is None else np.lexsort((seen, part))
        return order, np.searchsorted(part[order], np.arange(len(self._attacker.starts))), part

    def _ask(
        self, at: int, own: Integers, awake: Mask, *, times: float = 1.0, tight: bool = False, back: bool = True
    ) -> tuple[list[Move], list[Prices]]:
        """The furthest moves of a target, and their prices; its `own` part's targets that they settle go to sleep.

        So do those that they settle by going `back`. What is far is said by so many `times` its level.
        """
        targets = self.targets
        sign, cell, level = int(targets.sign[at]), int(targets.cell[at]), times * float(targets.level[at])
        view = targets.view_of(at)
        moves, questions = [], []
        for side in UP_AND_DOWN if sign == 0 else (sign,):
            move = self._attacker.ask(cell, side, level, view=view, tight=tight)
            moves.append(move)
            if sign == 0 or move.reach < self._enough[at]:
                questions.append(self._attacker.prices())
            moved, far = move.amount[self._attacker.place[self.targets.cell[own]]], move.back if back else 0.0
            awake[own[self.targets.settled_by(own, at, move.cells, move.amount, moved, far)]] = False
        return moves, questions

    def _cut(self, at: int, questions: list[Prices], high: Floats) -> Cut | None:
        view = self.targets.view_of(at)
        return capacity(self._instance, self._variables, questions, float(self._enough[at]), high, view)

    def _another(self, at: int, cut: Cut, x: Floats, high: Floats) -> list[Cut]:
        """A second cut for the same target, around the cell that the first one leans on."""
        weight = cut.coefficients * (x[cut.variables] > 1e-6)
        most = int(np.argmax(weight)) if len(weight) else 0
        if not len(weight) or weight[most] <= 1e-9:
            return []
        cell = int(self._variables.cell[cut.variables[most]])
        if self._attacker.part[cell] != self._attacker.part[self.targets.cell[at]]:
            return []
        reach = self._attacker.ask_again_without_bounds_of(cell)
        if reach is None or reach >= self._enough[at]:
            return []
        other = self._cut(at, [self._attacker.prices()], high)
        return [other] if other is not None and _violated(other, x) else []

    def _lifted(self, at: int, share: Floats) -> bool:
        """Whether a target is asked about only together with something that is published."""
        unless = self.targets.view_of(at).unless
        return bool(len(unless)) and float(np.sum(1 - share[unless])) > 1 - VIOLATION

    def _still_holds(self, at: int, share: Floats) -> bool:
        known = self._known.get(at)
        return known is not None and bool((known[1] <= share[known[0]] + 1e-9).all())

    def _remember(self, at: int, moves: list[Move]) -> None:
        """The deviations of a target, taken back to what it needs, and the shares of their rooms that they use."""
        instance, total = self._instance, sum(move.reach for move in moves)
        taken, cells = [], []
        for move in moves:
            some, amount = move.cells, move.amount
            up, down = self.targets.view_of(at).rooms(some, instance.up[some], instance.down[some])
            room = np.minimum(np.where(amount > 0, up, down), self.targets.level[at])
            used = (np.abs(amount) > NEGLIGIBLE) & (room > 0)  # without room it is noise
            some, amount, room = some[used], amount[used], room[used]
            taken.append(np.clip(np.abs(amount) / room * min(self.targets.level[at] / total, 1.0), LEAST, 1.0))
            cells.append(some)
        self._known[at] = (np.concatenate(cells), np.concatenate(taken))
