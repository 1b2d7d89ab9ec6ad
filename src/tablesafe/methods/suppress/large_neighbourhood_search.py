"""Large neighbourhood search: destroy a small part of a pattern and repair it, by deviations of any kind.

(Shaw, Principles and Practice of Constraint Programming, 1998; worse patterns are accepted as in simulated annealing.)
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tablesafe.core.equations import Floats, Integers
from tablesafe.methods.suppress.instance import Instance
from tablesafe.methods.suppress.sequential import Sequential, Stop
from tablesafe.solve.neighbourhood import rings

MOST = 6
"""Complementary cells that are reconsidered together, at most."""
CROWD = 2_000
"""Cells among which these are looked for."""
NOISIEST = 0.6
NO_WORSE = 1 + 1e-12


def clean_up(engine: Sequential, stop: Stop) -> None:
    """Publish again what is not needed, the most costly first."""
    pattern = engine.pattern
    for cell in pattern.dearest_first().tolist():
        if stop():
            return
        if pattern.uses[cell]:
            engine.reconsider(np.array([cell]), most=pattern.cost * NO_WORSE, stop=stop)


def improve(
    engine: Sequential,
    random: np.random.Generator,
    stop: Stop,
    *,
    patience: int,
    heat: Callable[[], float],
    offer: Callable[[Sequential], None],
) -> None:
    """Destroy and repair small parts of the pattern until no best one was found for `patience` tries.

    A pattern may become worse by a share of its cost, drawn around `heat`; every best one is offered.
    """
    pattern, instance = engine.pattern, engine.instance
    idle, best = 0, pattern.cost
    while idle < patience and not stop():
        cells = pattern.complementary
        if not len(cells):
            return
        weight = np.sqrt(instance.cost[cells]) + 1e-12
        centre = int(random.choice(cells, p=weight / weight.sum()))
        chosen = _around(engine, centre, random)
        noise = NOISIEST * random.random()
        cost = None if noise < 0.1 else _disturbed(instance, noise, random)
        slack = heat() * best * random.exponential()
        engine.reconsider(
            chosen,
            most=pattern.cost * NO_WORSE + slack,
            banned=random.random() < 0.5,
            cost=cost,
            ordered=random.permutation,
            stop=stop,
        )
        idle += 1
        if pattern.cost < best * (1 - 1e-12):
            idle, best = 0, pattern.cost
            offer(engine)


def _disturbed(instance: Instance, noise: float, random: np.random.Generator) -> Floats:
    """The costs, each multiplied by something near one."""
    factors = np.exp(noise * random.standard_normal(997))
    step = int(random.integers(1, 997))
    return np.asarray(instance.cost * factors[(np.arange(len(instance)) * step) % 997])


def _around(engine: Sequential, centre: int, random: np.random.Generator) -> Integers:
    """A complementary cell, and perhaps those nearest to it."""
    many = int(np.exp(random.uniform(0.0, np.log(MOST))))
    if many == 1:
        return np.array([centre])
    instance, chosen, seen = engine.instance, [centre], 1
    for ring, _ in rings(instance.rows, instance.columns, np.array([centre]), instance.live):
        chosen += ring[(engine.pattern.uses[ring] > 0) & ~instance.forced[ring]].tolist()
        seen += len(ring)
        if len(chosen) >= many or seen > CROWD:
            break
    return np.array(chosen[:many])
