"""Who is protected by which deviation, in one part of a table: protect its sensitive cells, or publish again what they
no longer need.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from scipy import sparse

from tablesafe.audit.respondent_knowledge import Guard
from tablesafe.core.equations import Floats, Integers, Mask
from tablesafe.methods.suppress.books import Books, Targets
from tablesafe.methods.suppress.instance import Instance
from tablesafe.methods.suppress.part import Held, Outcome, Part
from tablesafe.methods.suppress.sparing import cheapest_point, sparing
from tablesafe.methods.suppress.surroundings import Effort, Scratch, around
from tablesafe.solve.boxes import Space, System, cheapest_box
from tablesafe.solve.highs import Model
from tablesafe.work.budget import Budget

EFFORTS = 4
GUARDED = 2
SECOND_THOUGHTS = 1
"""Efforts spent on a target, on a deviation that convinces respondents, and on a cell that may be published again."""
EVERYTHING = 3
"""The effort that looks at everything; only where there is no other way."""
DEAR = 10.0
"""How many times as much as the others a deviation costs that makes one look further."""
TOO_MUCH = 5.0
"""How many times as much it may cost to convince all respondents at once; else each has its own deviation later."""
RUINOUS = 300.0
"""The same for looking at everything, in parts of at most so many cells."""
SMALL = 20_000
LEARNING = 0.05
MOSTLY = 0.3
"""Share of what such a deviation costs from which on a cell is one that makes it dear."""
ALMOST_FREE, NEARLY_FREE = 0.01, 0.1
"""Share of its cost that a cell withheld already is charged: the fewer cells a deviation needs, the better. The second
is for boxes."""
LEEWAY = 1.5
"""A program counts what is withheld already as almost free, not as free: how much dearer than it pays it may look."""
NEAR = 2_000
"""Cells that count as near."""
SAMPLED, FEW, RARELY = 200, 5, 0.02
"""Targets that show whether there are boxes; how many of them, and which share, may have none."""
CROWDED = 60
"""Deviations that rely on a cell, beyond which it is not reconsidered."""


def work(part: Part) -> Outcome:
    """Protect what is pending, then reconsider what is doubtful."""
    ledger = Ledger(part, None if part.most_s == np.inf else Model.small(Budget(part.most_s)))
    for held in part.held:
        ledger.add(held)
    strict = frozenset(part.pending) if part.strict else frozenset()
    failed = ledger.protect_all(part.pending, strict=strict)
    for cell in part.doubtful:
        if ledger.seconds > part.seconds:
            break
        ledger.reconsider(cell)
    return Outcome(tuple(ledger.deviations), tuple(failed), ledger.seconds)


def ledger_of(
    instance: Instance,
    targets: Integers,
    guard: Guard | None,
    solver: Model | None = None,
    *,
    boxes: bool = False,
) -> Ledger:
    """A ledger for some targets of a whole instance."""
    part = Part(
        instance.rows, instance.cost, instance.forced, instance.up, instance.down,
        instance.cell[targets], instance.sign[targets], instance.level[targets], guard, boxes=boxes,
    )  # fmt: skip
    return Ledger(part, solver)


def boxed(ledger: Ledger, targets: Sequence[int]) -> list[int] | None:
    """Protect targets by boxes alone; returns those that have none, or None where these are many.

    That is so for the totals of a hierarchy; elsewhere there are few for which no single box has the room.
    """
    without: list[int] = []
    for some in (targets[:SAMPLED], targets[SAMPLED:]):
        without += ledger.protect_all(some, efforts=0)
        if len(without) > FEW + RARELY * len(some):
            return None
    return without


class Ledger:
    """Who is protected by which deviation, in one part."""

    def __init__(self, part: Part, solver: Model | None = None) -> None:
        self.part = part
        self._books = Books(part.cost, part.withheld)
        self._targets = Targets(part.cell, part.sign, part.level)
        self._affordable = np.inf
        self._system = System.of(part.rows, part.up, part.down)
        self._scratch = Scratch.over(self._system)
        self._space = Space.over(self._system) if part.boxes else None
        self._before: Mask | None = None
        self._solver = solver or Model.small()
        cheap, near, *wide = _efforts(part.rows)
        self._efforts = (near, cheap, *wide) if part.near_first else (cheap, near, *wide)
        positive = part.cost[part.cost > 0]
        self._usual = float(np.median(positive)) if positive.size else 1.0
        self._least = (NEARLY_FREE if part.boxes else ALMOST_FREE) * (part.cost + 0.1 * self._usual)
        self._price = np.where(part.withheld, self._least, np.maximum(part.cost, self._least))
        self.watched_by(part.guard)

    def watched_by(self, guard: Guard | None) -> None:
        """Look from now on for deviations that these respondents cannot rule out."""
        self._guard, self._guarded, self._guarded_price = guard, self._system, self._price
        if guard is not None:
            self._guarded = self._system._replace(down=np.minimum(self.part.down, guard.down))
            self._guarded_price = np.where(guard.alone, np.inf, self._price)

    @property
    def seconds(self) -> float:
        """Work spent, as a quiet machine would count it."""
        return self._solver.work.spent

    @property
    def used(self) -> Mask:
        """The cells that some deviation uses."""
        return self._books.uses > 0

    @property
    def deviations(self) -> Iterable[Held]:
        """The deviations kept, in the order in which they were found."""
        return self._books.kept.values()

    @property
    def cost(self) -> float:
        """What is withheld because of them."""
        return self._books.cost

    def protect_all(
        self,
        targets: Iterable[int],
        *,
        efforts: int = EFFORTS,
        most: float = np.inf,
        strict: frozenset[int] = frozenset(),
        seconds: float = np.inf,
    ) -> list[int]:
        """Protect targets in order, as long as the cost stays below `most`; returns those left open.

        That ends after so many `seconds` of work.

        With a guard, deviations that no respondent can rule out come first; `strict` targets take no other.
        """
        pending, failed = dict.fromkeys(targets), []
        end = self.seconds + seconds
        while pending and self.seconds <= end:
            target = next(iter(pending))
            self._affordable = LEEWAY * (most - self.cost)
            found = self._guarded_first(target, efforts, pending, strict)
            if found is None:
                del pending[target]
                failed.append(target)
            else:
                self._learn(found.cells)
                self.add(found)
                for served in found.served:
                    del pending[served]
            if (failed and most < np.inf) or self.cost > most:
                break
        return [*failed, *pending]

    def _guarded_first(
        self, target: int, efforts: int, pending: dict[int, None], strict: frozenset[int]
    ) -> Held | None:
        if self._guard is not None:
            guarded = self._guarded_deviation(target, efforts if target in strict else min(efforts, GUARDED))
            if guarded is not None and (target in strict or not self._dear(guarded[0])):
                return self._held_guarded(guarded, target, pending)
            if target in strict:
                return None
            found = self.cheapest(target, efforts)
            if guarded is not None and (found is None or self._price_of_guard(guarded[0], found[0]) < TOO_MUCH):
                return self._held_guarded(guarded, target, pending)
        else:
            found = self.cheapest(target, efforts)
        if found is None:
            return None
        served = self._also_protected(*found, target, pending, self._system)
        return Held(*found, (target, *(other for other in served if other not in strict)))

    def _held_guarded(self, found: tuple[Integers, Floats], target: int, pending: dict[int, None]) -> Held:
        return Held(*found, (target, *self._also_guarded(*found, target, pending)), guarded=True)

    def _price_of_guard(self, guarded: Integers, plain: Integers) -> float:
        """How many times as much a deviation costs that no respondent can rule out."""
        return self._fresh_cost(guarded) / max(self._fresh_cost(plain), self._usual)

    def _guarded_deviation(self, target: int, efforts: int) -> tuple[Integers, Floats] | None:
        """A cheap deviation that no single respondent can rule out."""
        assert self._guard is not None
        cell, system = int(self.part.cell[target]), self._guarded
        plain, price, down = self._price, float(self._guarded_price[cell]), float(system.down[cell])
        self._price = self._guarded_price
        self._price[cell], system.down[cell] = plain[cell], self.part.down[cell]
        found = self.cheapest(target, efforts, guarded=True)
        self._price[cell], system.down[cell] = price, down
        self._price = plain
        return found

    def cheapest(self, target: int, efforts: int, *, guarded: bool = False) -> tuple[Integers, Floats] | None:
        """The cells of a cheap deviation that protects a target, and by how much each moves.

        A linear program likes a little of a very dear cell: where that makes a deviation dear, one without it is looked
        for, here and further away.
        """
        best = self._boxed(target, guarded=guarded)
        price, sizes = self._price, {0}
        for wide, effort in enumerate(self._efforts):
            if not self._worth_it(wide, efforts, None if best is None else best[0]):
                break
            found = self._found(target, effort, sizes, guarded=guarded)
            while found is not None and (best is None or self._fresh_cost(found[0]) < self._fresh_cost(best[0])):
                best = found
                if wide >= EVERYTHING or not self._dear(best[0]):
                    break
                self._price = self._price.copy()
                self._price[self._dearest(best[0], int(self.part.cell[target]))] = np.inf
                found = self._found(target, effort, sizes, guarded=guarded)
        self._price = price
        return best

    def _boxed(self, target: int, *, guarded: bool) -> tuple[Integers, Floats] | None:
        """While something is reconsidered, what the pattern before allows; else the cheapest box, if wanted."""
        within = None if self._before is None else self._within(self._before, target, guarded=guarded)
        if within is not None:
            return within
        if self._space is None:
            return None
        cell, sign, level = self._asked(target)
        system = self._guarded if guarded else self._system
        return cheapest_box(system, self._space, cell, sign, level, self._price, self._solver.work)

    def _within(self, pattern: Mask, target: int, *, guarded: bool) -> tuple[Integers, Floats] | None:
        """A deviation among the cells of a pattern and what is withheld besides."""
        price, allowed = self._price, pattern | self.part.withheld | self.used
        self._price = np.where(allowed & (price < np.inf), self._least, np.inf)
        found = self._found(target, self._efforts[1], {0}, guarded=guarded)
        self._price = price
        return found

    def _asked(self, target: int) -> tuple[int, int, float]:
        """The cell of a target, which way it must move, and how far."""
        return int(self.part.cell[target]), int(self.part.sign[target]), float(self.part.level[target])

    def _found(self, target: int, effort: Effort, sizes: set[int], *, guarded: bool) -> tuple[Integers, Floats] | None:
        """A cheap deviation among the cells that an effort looks at; None if there is none, or they were looked at."""
        part, system = self.part, self._guarded if guarded else self._system
        cell, sign, level = self._asked(target)
        program = around(system, self._scratch, cell, sign, level, self._price, effort)
        if program is None or len(program.cells) in sizes:
            return None
        sizes.add(len(program.cells))
        x = cheapest_point(self._solver, program, program.price, self._affordable)
        if x is None:
            return None
        free = (self._books.uses[program.cells] > 0) | part.withheld[program.cells]
        return sparing(self._solver, program, x, np.where(free, 0.0, part.cost[program.cells]), level)

    def _worth_it(self, wide: int, efforts: int, best: Integers | None) -> bool:
        """Whether to look as wide as that: where nothing was found yet, or what was found is dear."""
        if best is None:
            return wide < efforts
        if wide < EVERYTHING:
            return wide < efforts and self._dear(best)
        enough = efforts > SECOND_THOUGHTS and len(self.part.cost) <= SMALL
        return enough and self._fresh_cost(best) > RUINOUS * self._usual

    def _dearest(self, cells: Integers, own: int) -> Integers:
        """The cells that make up most of what a deviation costs."""
        fresh = cells[(self._books.uses[cells] == 0) & ~self.part.withheld[cells] & (cells != own)]
        most: Mask = self.part.cost[fresh] > MOSTLY * self._fresh_cost(cells)
        return np.asarray(fresh[most])

    def _fresh_cost(self, cells: Integers) -> float:
        fresh = cells[(self._books.uses[cells] == 0) & ~self.part.withheld[cells]]
        return float(self.part.cost[fresh].sum())

    def _dear(self, cells: Integers) -> bool:
        """Whether a deviation costs so much more than the others that it is worth looking for another further away."""
        return self._fresh_cost(cells) > DEAR * self._usual

    def _learn(self, cells: Integers) -> None:
        """Remember what deviations usually cost; one that is dear counts as what would just be called so."""
        self._usual += LEARNING * (min(self._fresh_cost(cells), DEAR * self._usual) - self._usual)

    def _also_guarded(self, cells: Integers, amount: Floats, target: int, pending: dict[int, None]) -> Iterable[int]:
        """Pending targets that a guarded deviation protects as well, so that no respondent can rule it out for them."""
        assert self._guard is not None
        own = int(self.part.cell[target])
        for other in self._also_protected(cells, amount, target, pending, self._guarded):
            if self.part.cell[other] == own or not self._guard.alone[own]:
                yield other

    def _also_protected(
        self, cells: Integers, amount: Floats, target: int, pending: dict[int, None], system: System
    ) -> Iterable[int]:
        """Pending targets that the deviation protects as well."""
        for other in self._targets.protected_by(cells, amount, system.up, system.down):
            if other in pending and other != target:
                yield other

    def add(self, held: Held) -> None:
        """Keep a deviation; its cells are almost free from now on."""
        self._books.add(held)
        self._charge(held.cells, self._least[held.cells])

    def drop(self, name: int) -> Held:
        """Forget a deviation."""
        held = self._books.drop(name)
        gone = held.cells[(self._books.uses[held.cells] == 0) & ~self.part.withheld[held.cells]]
        self._charge(gone, np.maximum(self.part.cost[gone], self._least[gone]))
        return held

    def _charge(self, cells: Integers, price: Floats) -> None:
        """Set the price of cells; those that a respondent knows alone stay out of guarded deviations."""
        self._price[cells] = price
        if self._guard is not None:
            self._guarded_price[cells] = np.where(self._guard.alone[cells], np.inf, price)

    def reconsider(self, cell: int, *, programs: bool = True) -> None:
        """Publish a cell again and protect anew whoever relied on it; keep the result if it costs less.

        What the pattern before allows is tried first, unless `programs` are not wanted: then only boxes are looked for.
        """
        names = self._books.relying_on([cell])
        if not names or len(names) > CROWDED or self.part.withheld[cell]:
            return
        before, first = self.cost, self._books.next
        self._before = self.used if programs else None
        old = [self.drop(name) for name in names]
        own = np.array([cell])
        price = self._price[own]
        self._charge(own, np.array([np.inf]))
        targets = sorted(target for held in old for target in held.served)
        limit = before * (1 - 1e-12)
        strict = frozenset(target for held in old if held.guarded for target in held.served)
        efforts = SECOND_THOUGHTS if self._space is None else 0
        failed = self.protect_all(targets, efforts=efforts, most=limit, strict=strict)
        self._charge(own, price)
        self._before = None
        if failed or self.cost > limit:
            for name in [name for name in self._books.kept if name >= first]:
                self.drop(name)
            for held in old:
                self.add(held)


def _efforts(rows: sparse.csr_array) -> tuple[Effort, ...]:
    """How wide to look: in d dimensions the far corner of a box is d steps away, and one more step shows other ways.

    First the cheapest cells there; then all that are near, because cells withheld already are cheap and may crowd out
    those that help; then the cheapest of a wide area; then everything.
    """
    d = max(1, rows.nnz // max(1, rows.shape[1]))
    return (
        Effort(d + 1, 30_000, 200 * d),
        Effort(d + 1, NEAR, 2 * NEAR),
        Effort(64, 200_000, 4_000),
        Effort(10**6, 10**9, 10**9),
    )
