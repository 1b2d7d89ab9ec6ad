"""The pattern that every search keeps, and the finders: what they say is true of the equations themselves."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import seeds
from oracle.counts import tree
from tablesafe.audit.respondent_knowledge import Guard
from tablesafe.core.equations import roll_up
from tablesafe.core.problem import Problem
from tablesafe.core.sensitivity import Sensitivity
from tablesafe.core.table import Table
from tablesafe.methods.suppress.deviations import Deviation, DeviationFinder, Room, Wanted
from tablesafe.methods.suppress.flow import Flows
from tablesafe.methods.suppress.hypercube_method import HypercubeMethod
from tablesafe.methods.suppress.hypercubes import Boxes, Cubes, both_ways
from tablesafe.methods.suppress.instance import Instance
from tablesafe.methods.suppress.linear_programs import LocalPrograms, least_of
from tablesafe.methods.suppress.pattern import CannotProtect, Pattern, Trial
from tablesafe.methods.suppress.sequential import Sequential, never
from tablesafe.solve.boxes import System
from tablesafe.solve.highs import Model
from tablesafe.solve.hypercubes import Hypercubes
from tablesafe.work.budget import Budget


def a_problem(seed: int, fans: tuple[tuple[int, ...], ...] = ((2, 3), (5,))) -> Problem:
    """A table of trees with a few sensitive cells."""
    random = np.random.default_rng(seed)
    dimensions = {name: tree(name, fan) for name, fan in zip("abc", fans, strict=False)}
    leaves = [np.flatnonzero(~h.is_total) for h in dimensions.values()]
    grid = np.stack(np.meshgrid(*leaves, indexing="ij"), -1).reshape(-1, len(dimensions)).astype(np.int32)
    codes, sums = roll_up(grid, list(dimensions.values()), {"value": random.integers(5, 90, len(grid))})
    table = Table.from_codes(codes, sums["value"].astype(float), dimensions)
    mask = ~table.is_total & (random.random(len(table)) < 0.15)
    mask[int(np.flatnonzero(~table.is_total)[0])] = True
    return Problem(table, sensitivity=Sensitivity.of(mask, np.ceil(table.value / 5)))


def an_instance(seed: int) -> Instance:
    problem = a_problem(seed)
    return Instance.of(problem, problem.cost, zeros=False)


def a_deviation(instance: Instance, random: np.random.Generator, target: int) -> Deviation:
    """Any cells: the books do not ask whether they add up."""
    cells = np.unique(np.append(random.integers(0, len(instance), 6), instance.cell[target]))
    return Deviation(cells, random.choice([-1.0, 1.0], len(cells)), np.array([target]))


def assert_kept(pattern: Pattern) -> None:
    """What is kept up to date is what a look at all deviations says."""
    instance = pattern.instance
    uses = np.zeros(len(instance), dtype=np.int64)
    by = np.full(len(instance.level), -1)
    for name, deviation in pattern.kept.items():
        uses[deviation.cells] += 1
        by[deviation.served] = name
    assert (pattern.uses == uses).all()
    assert (pattern.by == by).all()
    assert (pattern.withheld == (instance.forced | (uses > 0))).all()
    assert pattern.cost == pytest.approx(instance.pattern_cost(pattern.withheld & ~instance.forced))
    free = np.where(pattern.withheld, pattern.least, np.maximum(instance.cost, pattern.least))
    assert (pattern.price == free).all()
    for cell in range(len(instance)):
        names = [name for name, deviation in pattern.kept.items() if cell in deviation.cells]
        assert pattern.relying_on([cell]) == sorted(names)


@pytest.mark.parametrize("seed", seeds.fresh(3, "pattern"))
def test_what_a_pattern_keeps_up_to_date_is_so(seed: int) -> None:
    """Add, drop, exchange, try and undo, in any order."""
    random = np.random.default_rng(seed)
    instance = an_instance(seed)
    pattern = Pattern(instance, least_of(instance, boxes=False))
    for _ in range(60):
        free, names = pattern.open.tolist(), list(pattern.kept)
        step = int(random.integers(4))
        if step <= 1 and free:
            pattern.add(a_deviation(instance, random, int(random.choice(free))))
        elif step == 2 and names:
            pattern.drop(int(random.choice(names)))
        elif names:
            some = [int(name) for name in random.choice(names, min(3, len(names)), replace=False)]
            before, kept = pattern.withheld, dict(pattern.kept)
            new = [a_deviation(instance, random, int(pattern.kept[name].served[0])) for name in some]
            if random.random() < 0.5:
                most = pattern.cost * float(random.uniform(0.5, 1.5))
                if pattern.exchange(some, new, most):
                    assert pattern.cost <= most
                else:
                    assert (pattern.withheld == before).all()
                    assert pattern.kept == kept
            else:
                trial = Trial(pattern, some)
                assert set(trial.targets.tolist()) == set(np.flatnonzero(pattern.by < 0)) - set(free)
                for deviation in new:
                    pattern.add(deviation)
                trial.undo()
                assert (pattern.withheld == before).all()
                assert pattern.kept == kept
        assert_kept(pattern)


def test_other_prices_hold_for_a_while() -> None:
    instance = an_instance(1)
    pattern, random = Pattern(instance), np.random.default_rng(1)
    pattern.add(a_deviation(instance, random, 0))
    before, banned = pattern.price.copy(), np.array([2, 3])
    with pattern.charging(10 * instance.cost, banned):
        assert (pattern.price[banned] == np.inf).all()
        others = np.setdiff1d(np.arange(len(instance)), banned)
        assert (pattern.price[others] == 10 * before[others]).all()
        name = pattern.add(a_deviation(instance, random, 1))
        assert not pattern.price[pattern.kept[name].cells].any()
    pattern.drop(name)
    assert (pattern.price == before).all()


@pytest.mark.parametrize("seed", seeds.fresh(3, "served"))
def test_whom_a_deviation_protects(seed: int) -> None:
    """By hand, target by target: stretched as far as every cell can go, or turned around, it moves that far."""
    instance = an_instance(seed)
    engine = Sequential.by_programs(instance)
    for target in range(len(instance.level)):
        found = engine.cheapest(target, 3)
        assert found is not None
        served = set(engine.pattern.protected_by(found, Room(instance.up, instance.down)).tolist())
        for other in range(len(instance.level)):
            own = found.amount[found.cells == instance.cell[other]] * instance.sign[other]
            far = 0.0
            for way in (1, -1):
                rooms = np.where(way * found.amount > 0, instance.up[found.cells], instance.down[found.cells])
                far = max(far, float((rooms / np.abs(found.amount)).min() * way * own[0]) if own.size else 0.0)
            close = abs(far - instance.level[other]) < 1e-6 * instance.level[other]
            assert close or (other in served) == (far > instance.level[other])


def finders(problem: Problem, instance: Instance) -> dict[str, DeviationFinder]:
    """One of each kind, with nothing withheld but the sensitive cells."""
    pattern, solver = Pattern(instance), Model.small()
    flows = Flows.of(instance, Budget())
    cubes = Hypercubes.of(list(problem.table.dimensions.values()), problem.table.codes)
    assert flows is not None
    assert cubes is not None
    return {
        "boxes": Boxes(System.of(instance.rows, instance.up, instance.down), Budget()),
        "hypercubes": Cubes(cubes),
        "flows": flows,
        "programs": LocalPrograms(pattern, solver),
    }


KNOWN = 1
"""A seed of a problem in which each kind finds something."""


@pytest.mark.parametrize("kind", ["boxes", "hypercubes", "flows", "programs"])
@pytest.mark.parametrize("seed", [KNOWN, *seeds.fresh(1, "finders")])
def test_every_finder_keeps_what_all_promise(kind: str, seed: int) -> None:
    """It adds up, has the room, moves the target by its level, and leaves alone what must stay."""
    problem = a_problem(seed)
    instance = Instance.of(problem, problem.cost, zeros=False)
    instance = both_ways(instance) if kind == "hypercubes" else instance
    finder, random, found = finders(problem, instance)[kind], np.random.default_rng(seed), 0
    for target in range(len(instance.level)):
        cell, sign, level = int(instance.cell[target]), int(instance.sign[target]), float(instance.level[target])
        price = np.where(instance.forced, 0.0, instance.cost)
        price[(random.random(len(instance)) < 0.1) & (np.arange(len(instance)) != cell)] = np.inf
        shrunk = instance.down * np.where(random.random(len(instance)) < 0.2, 0.5, 1.0)
        shrunk[cell] = instance.down[cell]
        room = Room(shrunk if kind == "hypercubes" else instance.up, shrunk)
        deviation = finder.cheapest(Wanted(cell, sign, level, price, room, effort=4))
        if deviation is None:
            continue
        found += 1
        move = np.zeros(len(instance))
        move[deviation.cells] = deviation.amount
        assert len(np.unique(deviation.cells)) == len(deviation.cells)
        assert deviation.amount.all()
        assert np.abs(instance.rows @ move).max() <= 1e-6 * np.abs(move).max()
        assert (move <= room.up * (1 + 1e-6) + 1e-6).all()
        assert (-move <= room.down * (1 + 1e-6) + 1e-6).all()
        assert move[cell] * sign == pytest.approx(level)
        assert np.isfinite(price[deviation.cells]).all()
    assert found or seed != KNOWN


def test_a_target_without_a_deviation_is_told_or_raised() -> None:
    instance = an_instance(2)
    held = replace(instance, up=np.where(instance.forced, instance.up, 0.0), down=np.zeros(len(instance)))
    assert Sequential.by_programs(held).protect_all() == list(range(len(instance.level)))
    with pytest.raises(CannotProtect) as failure:
        Sequential.by_programs(held).protect_all(insist=True)
    assert failure.value.target == 0


def test_hypercubes_protect_both_ways_and_convince_respondents_where_they_can() -> None:
    problem = a_problem(5, ((2, 3), (4,), (3,)))
    instance = Instance.of(problem, problem.cost, zeros=False)
    cubes = Hypercubes.of(list(problem.table.dimensions.values()), problem.table.codes)
    assert cubes is not None
    alone = np.random.default_rng(5).random(len(instance)) < 0.1
    for guard in (None, Guard(alone, instance.down * 0.9)):
        engine = Sequential.by_hypercubes(instance, cubes, guard)
        assert engine.protect_all() == []
        room, guarded = engine.instance.down, 0
        for each in engine.pattern.deviations:
            own = engine.instance.cell[each.served]
            guarded += each.guarded
            reach = room if guard is None or not each.guarded else np.minimum(room, guard.down)
            known = np.zeros(len(alone), dtype=np.bool_) if guard is None or not each.guarded else alone
            others = np.setdiff1d(each.cells, own)
            assert not known[others].any()
            assert (engine.instance.level[each.served] <= reach[others].min()).all()
        assert guarded > 0 or guard is None
        method = HypercubeMethod(instance, cubes, guard)
        method.protect_all(never)
        before = method.cost
        method.clean_up(never, lambda cost: None)
        assert not len(method.failed)
        assert method.cost <= before
