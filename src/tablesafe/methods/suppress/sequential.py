"""One sensitive cell after another, then second thoughts: publish again, destroy and repair."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tablesafe.core.equations import Floats, Integers, Mask
from tablesafe.methods.suppress.deviations import Prices
from tablesafe.methods.suppress.instance import Instance
from tablesafe.methods.suppress.witnesses import CannotProtect, Witnesses

Stop = Callable[[], bool]

MOST = 6
"""Complementary cells that are reconsidered together, at most."""
CROWD = 2_000
"""Cells among which these are looked for."""
NOISIEST = 0.6


def protect_all(
    witnesses: Witnesses,
    cost: Floats | Prices,
    *,
    targets: list[int] | None = None,
    inside: Mask | None = None,
    stop: Stop = lambda: False,
) -> bool:
    """Protect every target, from the most demanding down; one that an earlier deviation protects is skipped.

    Cells `inside` are tried first. Says whether it came to the end before it was stopped.
    """
    pending = dict.fromkeys(range(len(witnesses.instance.level)) if targets is None else targets)
    while pending and not stop():
        witnesses.protect(next(iter(pending)), pending, cost=cost, inside=inside)
    return not pending


def clean_up(witnesses: Witnesses, stop: Stop) -> None:
    """Publish again what is not needed, the most costly first."""
    cells = witnesses.complementary
    for cell in cells[np.argsort(-witnesses.instance.cost[cells], kind="stable")].tolist():
        if stop():
            return
        if witnesses.uses[cell]:
            reconsider(witnesses, np.array([cell]), witnesses.instance.cost, banned=True)


def improve(
    witnesses: Witnesses,
    random: np.random.Generator,
    stop: Stop,
    *,
    patience: int,
    heat: Callable[[], float],
    offer: Callable[[Witnesses], None],
) -> None:
    """Destroy and repair small parts of the pattern until no best one was found for `patience` tries.

    A pattern may become worse by a share of its cost, drawn around `heat`; every best one is offered.
    """
    instance = witnesses.instance
    idle, best = 0, witnesses.cost
    while idle < patience and not stop():
        cells = witnesses.complementary
        if not len(cells):
            return
        weight = np.sqrt(instance.cost[cells]) + 1e-12
        chosen = _around(witnesses, int(random.choice(cells, p=weight / weight.sum())), random)
        noise = NOISIEST * random.random()
        cost = instance.cost if noise < 0.1 else _disturbed(instance, noise, random)
        slack = heat() * best * random.exponential()
        reconsider(witnesses, chosen, cost, banned=random.random() < 0.5, random=random, slack=slack)
        idle += 1
        if witnesses.cost < best * (1 - 1e-12):
            idle, best = 0, witnesses.cost
            offer(witnesses)


def _disturbed(instance: Instance, noise: float, random: np.random.Generator) -> Prices:
    """The costs, each multiplied by something near one; equal for a cell however often it is asked."""
    factors = np.exp(noise * random.standard_normal(997))
    step = int(random.integers(1, 997))
    return lambda _, cells: instance.cost[cells] * factors[(cells * step) % 997]


def _around(witnesses: Witnesses, centre: int, random: np.random.Generator) -> Integers:
    """A complementary cell, and perhaps those nearest to it."""
    many = int(np.exp(random.uniform(0.0, np.log(MOST))))
    if many == 1:
        return np.array([centre])
    near = witnesses.neighbourhoods.nearest(centre, CROWD)
    return near[(witnesses.uses[near] > 0) & ~witnesses.instance.forced[near]][:many]


def reconsider(
    witnesses: Witnesses,
    cells: Integers,
    cost: Floats | Prices,
    *,
    banned: bool,
    random: np.random.Generator | None = None,
    slack: float = 0.0,
) -> bool:
    """Take cells out of the pattern and protect anew whoever relied on them; keep the result if it is no worse.

    What the rest of the pattern allows is tried first: it costs nothing more, even what was there only for them.
    `slack` is how much worse it may be. Says whether something was gained.
    """
    before = witnesses.cost
    most = before * (1 + 1e-12) + slack
    targets = witnesses.relying_on(cells.tolist())
    inside = witnesses.pattern
    old = witnesses.held(targets)
    for target in targets:
        witnesses.drop(target)
    order = targets if random is None else [targets[i] for i in random.permutation(len(targets))]
    forbidden = None
    inside[cells] = False
    if banned:
        forbidden = np.zeros(len(witnesses.instance), dtype=np.bool_)
        forbidden[cells] = True
    pending = dict.fromkeys(order)
    done: list[int] = []
    try:
        while pending and witnesses.cost <= most:
            waiting = set(pending)
            witnesses.protect(next(iter(pending)), pending, banned=forbidden, cost=cost, inside=inside)
            done += waiting - set(pending)
        if witnesses.cost <= most:
            return witnesses.cost < before * (1 - 1e-12)
    except CannotProtect:
        pass
    for target in done:
        witnesses.drop(target)
    for held in old:
        witnesses.add(held)
    return False
