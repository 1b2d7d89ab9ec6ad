"""One target after another: each gets the cheapest deviation, given what is withheld already; then second thoughts.

The order of all heuristics since Kelly, Golden & Assad. It is the same for a whole table and for a part of one, for
outsiders and respondents, and for every kind of finder: only the instance, the room and the finder differ.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import numpy as np

from tablesafe.audit.respondent_knowledge import Guard
from tablesafe.core.equations import Floats, Integers, Mask
from tablesafe.methods.suppress.deviations import Deviation, DeviationFinder, Room, Wanted
from tablesafe.methods.suppress.hypercubes import Cubes, both_ways
from tablesafe.methods.suppress.instance import Instance
from tablesafe.methods.suppress.linear_programs import EFFORTS, LocalPrograms, least_of
from tablesafe.methods.suppress.pattern import CannotProtect, Pattern, Trial
from tablesafe.solve.highs import Model
from tablesafe.solve.hypercubes import Hypercubes

GUARDED = 2
"""Efforts spent on a deviation that convinces respondents."""
TOO_MUCH = 5.0
"""How many times as much it may cost to convince all respondents at once; else each has its own deviation later."""
SAMPLED, FEW, RARELY = 200, 5, 0.02
"""Targets that show whether there are boxes; how many of them, and which share, may have none."""

Stop = Callable[[], bool]


def never() -> bool:
    """A stop that does not come."""
    return False


class Sequential:
    """Protects the targets of a pattern by the deviations of a finder, and finds others for those it relies on."""

    def __init__(
        self, pattern: Pattern, finder: DeviationFinder, guard: Guard | None = None, *, prefer: bool = False
    ) -> None:
        """With a guard, what convinces respondents is taken unless it is dear; with `prefer` at any price, at first."""
        self.pattern, self.finder, self.instance = pattern, finder, pattern.instance
        self._prefer = prefer
        self._room = Room(self.instance.up, self.instance.down)
        self._pending = np.zeros(len(self.instance.level), dtype=np.bool_)
        self.watched_by(guard)

    @classmethod
    def by_programs(
        cls,
        instance: Instance,
        guard: Guard | None = None,
        solver: Model | None = None,
        *,
        boxes: bool = False,
        near_first: bool = False,
    ) -> Sequential:
        """By linear programs over the cells around each target; with `boxes`, by programs only where there is none."""
        pattern = Pattern(instance, least_of(instance, boxes=boxes))
        return cls(pattern, LocalPrograms(pattern, solver or Model.small(), boxes=boxes, near_first=near_first), guard)

    @classmethod
    def by_hypercubes(cls, instance: Instance, cubes: Hypercubes, guard: Guard | None = None) -> Sequential:
        """By hypercubes alone, both ways at once: one target for each sensitive cell."""
        return cls(Pattern(both_ways(instance)), Cubes(cubes), guard, prefer=True)

    def watched_by(self, guard: Guard | None) -> None:
        """Look from now on for deviations that these respondents cannot rule out: what they know is room."""
        self._convincing = None
        if guard is not None:
            down = np.minimum(self._room.down, np.maximum(guard.down, 0.0))
            up = down if self._room.up is self._room.down else self._room.up  # both ways at once
            self._believed, self._alone = Room(up, down), guard.alone
            self._convincing = Room(np.where(guard.alone, 0.0, up), np.where(guard.alone, 0.0, down))

    # -- first thoughts --------------------------------------------------------------------------------------------

    def protect_all(
        self,
        targets: Iterable[int] | None = None,
        *,
        effort: int = EFFORTS,
        most: float = np.inf,
        strict: Mask | None = None,
        first: Mask | None = None,
        insist: bool = False,
        stop: Stop = never,
    ) -> list[int]:
        """Protect targets in order, as long as the pattern costs less than `most`; returns those left open.

        One that an earlier deviation protects is skipped. Cells that come `first` are tried first. With a guard,
        deviations that no respondent can rule out are preferred; `strict` targets take no other. With `insist` the
        first target without a deviation raises `CannotProtect`; with a limit it ends the search.
        """
        pattern, pending = self.pattern, self._pending
        order = list(range(len(pending)) if targets is None else targets)
        pending[order] = True
        failed: list[int] = []
        try:
            for target in order:
                if not pending[target]:
                    continue
                if stop():
                    break
                found = self._found(target, effort, most - pattern.cost, strict, first)
                pending[target] = False
                if found is None:
                    if insist:
                        raise CannotProtect(target)
                    failed.append(target)
                else:
                    pattern.learn(found.cells)
                    pattern.add(found)
                    pending[found.served] = False
                if (failed and most < np.inf) or pattern.cost > most:
                    break
            return failed + [target for target in order if pending[target]]
        finally:
            pending[order] = False

    def cheapest(
        self, target: int, effort: int, most: float = np.inf, first: Mask | None = None, room: Room | None = None
    ) -> Deviation | None:
        """The cheapest deviation that the finder has for a target."""
        instance = self.instance
        return self.finder.cheapest(
            Wanted(
                int(instance.cell[target]), int(instance.sign[target]), float(instance.level[target]),
                self.pattern.price, room or self._room, most, effort, first,
            )
        )  # fmt: skip

    def _found(
        self, target: int, effort: int, most: float, strict: Mask | None, first: Mask | None
    ) -> Deviation | None:
        """A deviation, with all pending targets that rely on it; one that convinces respondents, if it is not dear."""
        if self._convincing is None:
            found = self.cheapest(target, effort, most, first)
            return None if found is None else self._serving(found, target, self._room)
        own = strict is not None and bool(strict[target])
        wide = effort if own else 0 if self._prefer else min(effort, GUARDED)
        guarded = self._convincing_one(target, wide, most, first)
        if guarded is not None and (own or self._prefer or not self.pattern.dear(guarded.cells)):
            return self._serving(guarded, target, self._believed, guarded=True)
        if own:
            return None
        found = self.cheapest(target, effort, most, first)
        if guarded is not None and (found is None or self._price_of_guard(guarded, found) < TOO_MUCH):
            return self._serving(guarded, target, self._believed, guarded=True)
        return None if found is None else self._serving(found, target, self._room, but=strict)

    def _convincing_one(self, target: int, effort: int, most: float, first: Mask | None) -> Deviation | None:
        """A cheap deviation that no single respondent can rule out.

        Whoever knows the cell itself, it is from the others that it must be hidden.
        """
        assert self._convincing is not None
        cell, (up, down) = int(self.instance.cell[target]), self._convincing
        before = float(up[cell]), float(down[cell])
        up[cell], down[cell] = self._room.up[cell], self._room.down[cell]
        found = self.cheapest(target, effort, most, first, self._convincing)
        up[cell], down[cell] = before
        return found

    def _serving(
        self, found: Deviation, target: int, room: Room, *, guarded: bool = False, but: Mask | None = None
    ) -> Deviation:
        """The deviation with the pending targets that it protects besides, so that nobody can rule it out for them."""
        if self._convincing is not None and self._prefer and not guarded:
            return replace(found, served=np.array([target]))  # others may have one that convinces everybody
        others = self.pattern.protected_by(found, room)
        others = others[self._pending[others] & (others != target)]
        if guarded:
            cell = self.instance.cell
            others = others[(cell[others] == cell[target]) | ~self._alone[cell[target]]]
        elif but is not None:
            others = others[~but[others]]
        return replace(found, served=np.concatenate([[target], others]), guarded=guarded)

    def _price_of_guard(self, guarded: Deviation, plain: Deviation) -> float:
        """How many times as much a deviation costs that no respondent can rule out."""
        pattern = self.pattern
        return pattern.fresh_cost(guarded.cells) / max(pattern.fresh_cost(plain.cells), pattern.usual)

    # -- second thoughts -------------------------------------------------------------------------------------------

    def reconsider(
        self,
        cells: Integers,
        *,
        most: float | None = None,
        effort: int = 1,
        within: bool = True,
        banned: bool = True,
        cost: Floats | None = None,
        ordered: Callable[[Integers], Integers] | None = None,
        crowded: float = np.inf,
        stop: Stop = never,
    ) -> bool:
        """Take cells out of the pattern and protect anew whoever relied on them; keep the result if it costs less.

        Or if it costs no more than `most`. What the rest of the pattern allows is tried first, even what was there only
        for them, unless `within` is not wanted. The cells may be used again unless they are `banned`. `cost` are other
        costs to search with. Nothing is done where more than `crowded` deviations rely on them, and after a `stop`
        all is as it was. Says whether the result was kept.
        """
        pattern = self.pattern
        names = pattern.relying_on(cells.tolist())
        if not names or len(names) > crowded:
            return False
        limit = pattern.cost * (1 - 1e-12) if most is None else most
        first = None
        if within:
            first = pattern.withheld
            first[cells] = False
        trial = Trial(pattern, names)
        strict = None
        if self._convincing is not None and not self._prefer:
            strict = np.zeros(len(self._pending), dtype=np.bool_)
            for each in trial.dropped:
                strict[each.served] = each.guarded
        targets = trial.targets if ordered is None else ordered(trial.targets)
        with pattern.charging(cost, cells if banned else None):
            failed = self.protect_all(
                targets.tolist(), effort=effort, most=limit, strict=strict, first=first, stop=stop
            )
        if failed or pattern.cost > limit:
            trial.undo()
            return False
        return True


def boxed(engine: Sequential, targets: Sequence[int], rarely: float = RARELY) -> list[int] | None:
    """Protect targets by boxes alone; returns those that have none, or None where these are many.

    That is so for the totals of a hierarchy; elsewhere there are few for which no single box has the room.
    """
    without: list[int] = []
    for some in (targets[:SAMPLED], targets[SAMPLED:]):
        without += engine.protect_all(some, effort=0)
        if len(without) > FEW + rarely * len(some):
            return None
    return without
