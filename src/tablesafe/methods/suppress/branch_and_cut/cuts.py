"""Inequalities that every pattern worth looking at satisfies.

Capacity cuts say that a target needs room around it, bridgeless cuts that nothing is withheld which cannot move, cover
cuts round the former (Fischetti & Salazar-González, sections 4.1 to 4.4). Coefficients are rounded up, so that they
hold in exact arithmetic.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tablesafe.core.equations import Floats, Integers, Mask
from tablesafe.methods.suppress.branch_and_cut.attacker import Attacker, Prices
from tablesafe.methods.suppress.branch_and_cut.branching import WHOLE
from tablesafe.methods.suppress.branch_and_cut.master_problem import Cut
from tablesafe.methods.suppress.branch_and_cut.targets import NOTHING, View
from tablesafe.methods.suppress.instance import Instance

UPWARDS = 1 + 1e-12
"""Coefficients are rounded up, so that rounding makes no cut invalid."""
TINY = 1e-6
"""Smaller coefficients are raised to this: solvers take them for nothing."""
VIOLATION, ROUGHLY = 1e-4, 1e-2
"""By how much the relaxation must violate a capacity cut, and a cover, for these to be added."""
WIDEST_COVER = 4.0
"""Sum of a relaxation over a capacity cut beyond which a cover is unlikely to be violated."""


@dataclass(frozen=True, eq=False)
class Variables:
    """Which cells are chosen about, and together with which: a variable for each cell or group of cells."""

    of_cell: Integers
    """The variable of each cell; −1 for what is withheld or published in any case."""
    cost: Floats
    alone: Mask
    """Whether a variable stands for one cell only."""
    cell: Integers
    """The (first) cell of each variable."""

    @cached_property
    def by_cell(self) -> bool:
        """Whether every variable stands for one cell: then they are numbered as the cells are."""
        return bool(self.alone.all())

    @classmethod
    def of(cls, instance: Instance, group: Integers | None) -> Variables:
        """One variable for every cell that may be withheld; for every group of them, where groups are given."""
        chosen = instance.live & ~instance.forced
        names = np.arange(len(instance)) if group is None else group
        kept, first, number, size = np.unique(names[chosen], return_index=True, return_inverse=True, return_counts=True)
        of_cell = np.full(len(instance), -1, dtype=np.int64)
        of_cell[chosen] = number
        place = np.searchsorted(kept, names).clip(max=max(len(kept) - 1, 0))
        paid = ~instance.forced & (kept[place] == names) if len(kept) else chosen
        cost = np.bincount(place[paid], weights=instance.cost[paid], minlength=len(kept)).astype(np.float64)
        return cls(of_cell, cost, size == 1, np.flatnonzero(chosen)[first])

    def shares(self, forced: Mask, x: Floats) -> Floats:
        """The share of each cell."""
        return np.where(self.of_cell >= 0, np.append(x, 0.0)[self.of_cell], forced.astype(np.float64))


def capacity(
    instance: Instance,
    variables: Variables,
    questions: Sequence[Prices],
    level: float,
    high: Floats,
    view: View = NOTHING,
) -> Cut | None:
    """What the prices of one question (two for a width) prove about every pattern that protects a target.

    Withheld cells go to the right-hand side, coefficients are cut down to what remains to be reached, and variables
    that are 0 in every better pattern are left out. None where nothing remains. A view that asks only while some cells
    are withheld is content when one of them is published.
    """
    room, cells = [], []
    for prices in questions:
        up, down = view.rooms(prices.cells, instance.up[prices.cells], instance.down[prices.cells])
        room.append(np.abs(prices.number) / prices.over * np.where(prices.number > 0, up, down) * UPWARDS)
        cells.append(prices.cells)
    carried, variable = np.concatenate(room), variables.of_cell[np.concatenate(cells)]
    given = float(carried[variable < 0].sum())
    need = level - given - 1e-12 * (level + given)
    if need <= 1e-9 * level:
        return None
    useful = (variable >= 0) & (carried > 0)
    kept, total = variable[useful], carried[useful]
    if len(questions) > 1 or not variables.by_cell:
        kept, place = np.unique(kept, return_inverse=True)
        total = np.bincount(place, weights=total, minlength=len(kept)).astype(np.float64)
    cut = Cut(kept, np.clip(total * UPWARDS / need * UPWARDS, TINY, 1.0))
    return (cut if not len(view.unless) else _unless_published(cut, variables.of_cell[view.unless])).among(high > 0)


def _unless_published(cut: Cut, chosen: Integers) -> Cut:
    """The cut that holds only where all of some variables are 1."""
    chosen = np.unique(chosen[chosen >= 0])
    names, place = np.unique(np.concatenate([cut.variables, chosen]), return_inverse=True)
    carried = np.concatenate([cut.coefficients, -np.ones(len(chosen))])
    sums = np.bincount(place, weights=carried, minlength=len(names))
    some = sums != 0
    return Cut(names[some], sums[some], cut.least - len(chosen))


def bridgeless(attacker: Attacker, variables: Variables, share: Floats, x: Floats, high: Floats) -> list[Cut]:
    """Cuts for cells that the rest of a pattern does not let move at all: some other cell is needed for each."""
    attacker.load(share, unit=True)
    cells = variables.cell[variables.alone & (x > WHOLE)]
    awake = np.zeros(len(share), dtype=np.bool_)
    awake[cells] = True
    cuts = []
    for cell in cells[np.argsort(attacker.part[cells], kind="stable")].tolist():
        if not awake[cell]:
            continue
        move = attacker.ask(cell, 1, 1.0)
        awake[move.cells[np.abs(move.amount) > share[move.cells] - VIOLATION]] = False
        if move.reach > share[cell] - VIOLATION:
            continue
        prices = attacker.prices()
        if (prices.number[prices.cells == cell] == prices.over).any():  # says only that the cell moves as it does
            continue
        own = int(variables.of_cell[cell])
        named = variables.of_cell[prices.cells[prices.cells != cell]]
        if (named < 0).any():
            continue
        named = np.unique(named[(high[named] > 0)])
        named = named[named != own]
        if float(x[named].sum()) < share[cell] - 1e-3:
            cuts.append(Cut(np.append(named, own), np.append(np.ones(len(named)), -1.0), 0.0, always=False))
    return cuts


def covers(capacities: Sequence[Cut], x: Floats, high: Floats) -> list[Cut]:
    """From a capacity cut and variables that do not fulfil it together: one of the others is needed.

    Those of them that carry at least as much as any other join, and the right-hand side rises with each.
    """
    cuts = []
    for cut in capacities:
        keep = high[cut.variables] > 0
        variables, carried = cut.variables[keep], cut.coefficients[keep]
        share = x[variables]
        if not len(variables) or share.sum() > WIDEST_COVER:
            continue
        on = np.flatnonzero((share > WHOLE) & (carried < 1 - 1e-9))
        inside, total = [], 0.0
        for at in on[np.lexsort((carried[on], -share[on] / carried[on]))].tolist():
            if total + carried[at] < 1 - 1e-9:
                total += float(carried[at])
                inside.append(at)
        if not inside:
            continue
        outside = np.ones(len(variables), dtype=np.bool_)
        outside[inside] = False
        rest = np.flatnonzero(outside & (share <= WHOLE))
        rest = rest[np.argsort(carried[rest], kind="stable")]
        fits = rest[total + np.cumsum(carried[rest]) < 1 - 1e-9]
        outside[fits] = False
        joining = [at for at in inside if carried[at] >= carried[outside].max(initial=0.0)]
        least = 1.0 + len(joining)
        if share[outside].sum() + share[joining].sum() < least - ROUGHLY:
            named = np.sort(np.append(variables[outside], variables[joining]))
            cuts.append(Cut(named, np.ones(len(named)), least, always=False))
    return cuts
