"""One sensitive cell after another, then second thoughts: publish again, destroy and repair."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tablesafe.equations import Floats, Integers
from tablesafe.methods.suppress.witnesses import CannotProtect, Witnesses

Stop = Callable[[], bool]


def protect_all(witnesses: Witnesses, cost: Floats, *, targets: list[int] | None = None) -> None:
    """Protect every target, from the most demanding down; one that an earlier deviation protects is skipped."""
    pending = dict.fromkeys(range(len(witnesses.instance.level)) if targets is None else targets)
    while pending:
        witnesses.protect(next(iter(pending)), pending, cost=cost)


def clean_up(witnesses: Witnesses, stop: Stop) -> None:
    """Publish again what is not needed, the most costly first."""
    cells = witnesses.complementary
    for cell in cells[np.argsort(-witnesses.instance.cost[cells], kind="stable")].tolist():
        if stop():
            return
        if witnesses.uses[cell]:
            reconsider(witnesses, np.array([cell]), witnesses.instance.cost, banned=True)


def improve(witnesses: Witnesses, random: np.random.Generator, stop: Stop, *, patience: int) -> None:
    """Destroy and repair small parts of the pattern until nothing was gained for `patience` tries."""
    instance = witnesses.instance
    idle = 0
    while idle < patience and not stop():
        cells = witnesses.complementary
        if not len(cells):
            return
        weight = np.sqrt(instance.cost[cells]) + 1e-12
        centre = int(random.choice(cells, p=weight / weight.sum()))
        chosen = _around(witnesses, centre, random)
        noise = 0.4 * random.random()
        cost = instance.cost if noise < 0.1 else instance.cost * np.exp(noise * random.standard_normal(len(instance)))
        gained = reconsider(witnesses, chosen, cost, banned=random.random() < 0.5, random=random)
        idle = 0 if gained else idle + 1


def _around(witnesses: Witnesses, centre: int, random: np.random.Generator) -> Integers:
    """One complementary cell, or a few near each other."""
    if random.random() < 0.5:
        return np.array([centre])
    ball = witnesses.neighbourhoods.ball(centre, 1 if random.random() < 0.5 else 2)
    near = ball[(witnesses.uses[ball] > 0) & ~witnesses.instance.forced[ball]]
    some = random.choice(near, size=min(len(near), int(random.integers(2, 8))), replace=False)
    return np.unique(np.append(some, centre))


def reconsider(
    witnesses: Witnesses,
    cells: Integers,
    cost: Floats,
    *,
    banned: bool,
    random: np.random.Generator | None = None,
) -> bool:
    """Take cells out of the pattern and protect anew whoever relied on them; keep the result if it is no worse.

    Says whether something was gained.
    """
    before = witnesses.cost
    targets = witnesses.relying_on(cells.tolist())
    old = witnesses.held(targets)
    for target in targets:
        witnesses.drop(target)
    order = targets if random is None else [targets[i] for i in random.permutation(len(targets))]
    forbidden = None
    if banned:
        forbidden = np.zeros(len(witnesses.instance), dtype=np.bool_)
        forbidden[cells] = True
    pending = dict.fromkeys(order)
    done: list[int] = []
    try:
        while pending:
            waiting = set(pending)
            witnesses.protect(next(iter(pending)), pending, banned=forbidden, cost=cost)
            done += waiting - set(pending)
        if witnesses.cost <= before * (1 + 1e-12):
            return witnesses.cost < before * (1 - 1e-12)
    except CannotProtect:
        pass
    for target in done:
        witnesses.drop(target)
    for deviation, served in old:
        witnesses.add(deviation, served)
    return False
