"""One pattern for several response variables: a cell withheld in one of them is withheld in all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from tablesafe.core.equations import Floats, Integers, Mask, cell_keys
from tablesafe.core.errors import InvalidOption, InvalidProblem
from tablesafe.core.linking import RESPONSE
from tablesafe.core.problem import Problem
from tablesafe.core.table import Table
from tablesafe.methods.suppress.instance import Instance
from tablesafe.methods.suppress.pattern import Pattern, Trial
from tablesafe.methods.suppress.sequential import Sequential


def groups_of(table: Table) -> Integers:
    """Which cells are the same but for their response variable: equal numbers."""
    if RESPONSE not in table.dimensions:
        raise InvalidOption(
            "Suppress.same_pattern needs several response variables, but the table has one.",
            hint="leave it out; or link the tables of all variables first.",
            about=("option", "Suppress", "same_pattern"),
        )
    at = list(table.dimensions).index(RESPONSE)
    sizes = [len(hierarchy) for name, hierarchy in table.dimensions.items() if name != RESPONSE]
    keys = cell_keys(np.delete(table.codes, at, axis=1), sizes)
    return np.unique(keys, return_inverse=True)[1].astype(np.int64)


def closed(pattern: Mask, group: Integers) -> Mask:
    """The pattern with everything that belongs to a withheld cell."""
    return np.asarray(np.bincount(group, weights=pattern)[group] > 0)


def together(problem: Problem, cost: Floats, group: Integers) -> tuple[Problem, Floats]:
    """The problem and its costs when cells of a group are withheld or published together.

    A group pays by equal shares, so that no pattern of whole groups costs less than the best pattern of cells.
    """
    given = problem.suppressed | problem.sensitivity.mask
    frozen = closed(problem.frozen & ~problem.withheld, group) & ~problem.withheld
    clash = np.flatnonzero(frozen & closed(given, group))
    if clash.size:
        own = group == group[clash[0]]
        one, other = int(np.flatnonzero(own & given)[0]), int(np.flatnonzero(own & problem.frozen)[0])
        raise InvalidProblem(
            f"Cell {problem.table.describe(one)} must be withheld and {problem.table.describe(other)} is frozen, but "
            f"same_pattern withholds both or none.",
            hint="unfreeze it, waive the other, or leave out same_pattern.",
        )
    size = np.bincount(group)
    mean = np.bincount(group, weights=cost) / size
    suppressed = closed(given, group) & ~problem.withheld
    return problem.replace(frozen=frozen, suppressed=suppressed), mean[group]


def thinned_groups(instance: Instance, pattern: Mask, group: Integers, stop: Callable[[], bool]) -> Mask:
    """The pattern of whole groups without those that are not needed, the most costly taken out first."""
    live = instance.live & closed(pattern, group)
    inside = replace(instance, live=live, up=np.where(live, instance.up, 0.0), down=np.where(live, instance.down, 0.0))
    engine = Sequential.by_programs(inside)
    engine.protect_all(insist=True)
    state = engine.pattern
    price = np.bincount(group, weights=inside.cost).astype(np.float64)
    chosen = np.unique(group[state.complementary])
    banned = np.zeros(len(inside), dtype=np.bool_)
    for number in chosen[np.argsort(-price[chosen], kind="stable")].tolist():
        if stop():
            break
        members = np.flatnonzero(group == number)
        banned[members] = True
        used = np.bincount(group, weights=state.used) > 0
        if not _published(engine, members, banned, np.where(used[group], 0.0, inside.cost), price, group):
            banned[members] = False
    return closed(state.withheld, group)


def _published(
    engine: Sequential, members: Integers, banned: Mask, cost: Floats, price: Floats, group: Integers
) -> bool:
    """Try to do without a group; put everything back unless that is cheaper."""
    pattern = engine.pattern
    before = _price(pattern, price, group)
    trial = Trial(pattern, pattern.relying_on(members.tolist()))
    with pattern.charging(cost, np.flatnonzero(banned)):
        failed = engine.protect_all(trial.targets.tolist())
    if not failed and _price(pattern, price, group) < before:
        return True
    trial.undo()
    return False


def _price(pattern: Pattern, price: Floats, group: Integers) -> float:
    return float(price[np.unique(group[pattern.complementary])].sum())
