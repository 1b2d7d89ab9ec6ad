"""The least costly pattern is that of all patterns gone through one by one, whatever the table and its wishes."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from dataclasses import fields, replace
from multiprocessing import get_context
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import tablesafe as ts
from oracle.patterns import best_pattern
from oracle.suppression import grid, open_cells, product
from seeds import fresh
from tablesafe.core.errors import InvalidProblem
from tablesafe.core.hierarchy import Hierarchy
from tablesafe.core.problem import Problem
from tablesafe.core.sensitivity import Sensitivity
from tablesafe.core.table import Table
from tablesafe.methods.suppress.branch_and_cut import exact, master_problem
from tablesafe.methods.suppress.branch_and_cut.attacker import Attacker
from tablesafe.methods.suppress.branch_and_cut.exact import BranchAndCut, least_costly
from tablesafe.methods.suppress.branch_and_cut.master_problem import Covering
from tablesafe.methods.suppress.branch_and_cut.targets import Targets, View
from tablesafe.methods.suppress.incumbent import Incumbent
from tablesafe.methods.suppress.instance import Instance
from tablesafe.methods.suppress.pattern import CannotProtect
from tablesafe.methods.suppress.responses import groups_of
from tablesafe.solve.program import SolveStatus
from tablesafe.work.budget import Budget

TREE = Hierarchy.from_pairs([("T", "A"), ("T", "b"), ("A", "a1"), ("A", "a2")])
WEB = Hierarchy.from_equations("T=a+b+c; X=a+b; Y=b+c")
KINDS = ("flat", "tree", "cube", "web", "linked")
MOST = 11
"""Cells to choose from: the others are frozen."""


def flat(size: int) -> Hierarchy:
    return Hierarchy.flat([f"c{i}" for i in range(size)])


def a_table(random: np.random.Generator, kind: str) -> Table:
    if kind == "linked":
        tables = []
        shared = [int(v) for v in random.integers(1, 60, 3)]
        for other in "yz":
            rows: dict[str, list[Any]] = {"x": [], other: [], "value": []}
            for i, total in enumerate(shared):
                part = int(random.integers(0, total + 1))
                for code, value in (("p", part), ("q", total - part), ("Total", total)):
                    rows["x"].append(f"x{i}")
                    rows[other].append(code)
                    rows["value"].append(value)
            for code in ("p", "q", "Total"):
                rows["x"].append("Total")
                rows[other].append(code)
                rows["value"].append(
                    sum(v for x, o, v in zip(rows["x"], rows[other], rows["value"], strict=False) if o == code)
                )
            tables.append(Table.from_cells(rows, dimensions={"x": None, other: None}, total="Total"))
        return ts.link(tables)
    sizes = {
        "flat": [flat(3), flat(int(random.integers(2, 4)))],
        "tree": [TREE, flat(2)],
        "cube": [flat(2), flat(2), flat(2)],
        "web": [WEB, flat(2)],
    }[kind]
    return product(sizes, random)


def a_problem(random: np.random.Generator, kind: str, wish: str) -> Problem:
    table = a_table(random, kind)
    inner = np.flatnonzero(table.value > 0)
    mask = np.zeros(len(table), dtype=np.bool_)
    mask[random.choice(inner, min(int(random.integers(1, 4)), len(inner)), replace=False)] = True
    level = np.ceil(table.value * random.choice([0.1, 0.3]))
    lower: Any = level
    sliding: Any = 0.0
    bounds: dict[str, Any] = {}
    if wish == "zero levels":
        level = lower = 0.0
    if wish == "sliding":
        level, lower = (np.floor(table.value * share) for share in random.choice([0.0, 0.1], 2))
        sliding = np.ceil(table.value * 0.4)
    if wish == "prior bounds":
        bounds = {"lower": np.floor(table.value * 0.5), "upper": np.ceil(table.value * 1.6)}
    if wish == "tight bounds":
        bounds = {"lower": table.value - np.ceil(level * 1.0), "upper": table.value + np.ceil(level * 1.5)}
    fixed = mask.copy()
    free = np.flatnonzero(~mask & (table.value != 0))
    frozen = np.zeros(len(table), dtype=np.bool_)
    if len(free) > MOST:
        frozen[random.choice(free, len(free) - MOST, replace=False)] = True
    withheld = None
    if wish == "withheld":
        withheld = ~fixed & ~frozen & (random.random(len(table)) < 0.15)
    problem = Problem(
        table, sensitivity=Sensitivity.of(mask, lower, level, sliding), frozen=frozen, withheld=withheld, **bounds
    )
    cost = {
        "zero costs": lambda: random.integers(0, 3, len(table)).astype(float),
        "large costs": lambda: random.choice([1.0, 3.0, 1e9, 1e9 + 1], len(table)),
        "fractions": lambda: random.random(len(table)) * 10 + 0.01,
        "unit": lambda: np.ones(len(table)),
    }.get(wish, lambda: np.maximum(table.value, 1.0))()
    return problem.replace(cost=cost)


WISHES = (
    "levels", "zero levels", "sliding", "prior bounds", "tight bounds", "withheld", "zero costs", "large costs",
    "fractions", "unit",
)  # fmt: skip


def check(seed: int, kind: str, wish: str) -> str:
    """Compare with all patterns; says what came out."""
    random = np.random.default_rng((seed, KINDS.index(kind), WISHES.index(wish)))
    problem = a_problem(random, kind, wish)
    given = problem.sensitivity.mask | problem.suppressed | problem.withheld
    free = np.flatnonzero(~given & ~problem.frozen & (problem.table.value != 0))
    best = best_pattern(problem, problem.cost, [[cell] for cell in free.tolist()])
    suppress = ts.Suppress(algorithm="optimal", time_limit_s=60)
    outsiders = ts.Run(attackers=ts.Attackers(insiders=False, unions=False, integers=False))
    if best is None:
        with pytest.raises(InvalidProblem):
            suppress.protect(problem, outsiders)
        return "impossible"
    release = suppress.protect(problem, outsiders)
    assert not open_cells(problem, release)
    assert release.solution is not None
    assert problem.cost[release.suppressed & ~given].sum() == pytest.approx(best, rel=1e-9)
    assert release.solution.objective == pytest.approx(best, rel=1e-9)
    assert release.solution.bound <= best * (1 + 1e-9) + 1e-9
    assert release.solution.status == "optimal" or wish == "zero costs"
    return "optimal"


@pytest.mark.parametrize("wish", WISHES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", fresh(1, "no pattern is better"))
def test_no_pattern_is_better(seed: int, kind: str, wish: str) -> None:
    check(seed, kind, wish)


def test_a_little_of_a_very_dear_cell_is_much() -> None:
    """Beside a cost of 1e9 the solver's tolerances are worth more than a cell of cost 1: no bound may rest on them."""
    assert check(910_001, "flat", "large costs") == "optimal"


@pytest.mark.parametrize("seed", fresh(4, "the same in all responses"))
def test_no_pattern_that_is_the_same_in_all_responses_is_better(seed: int) -> None:
    """Two response variables and their sum: what is withheld in one is withheld in all."""
    random = np.random.default_rng(seed)
    home, export = (random.integers(1, 60, (2, 3)) for _ in range(2))
    tables = []
    for name, values in {"home": home, "export": export, "all": home + export}.items():
        table = grid(values.tolist())
        tables.append(Table(**{**{f.name: getattr(table, f.name) for f in fields(table) if f.init}, "response": name}))
    table = ts.link(tables, equations="all = home + export")
    mask = ~table.is_total & (random.random(len(table)) < 0.1)
    problem = Problem(table, sensitivity=Sensitivity.of(mask, np.ceil(table.value / 5)))
    group = groups_of(table)
    given = np.isin(group, group[mask])
    hidden = problem.replace(suppressed=given)
    size = np.bincount(group)
    cost = (np.bincount(group, weights=problem.cost) / size)[group]
    units = [np.flatnonzero(group == name).tolist() for name in np.unique(group[~given])]
    best = best_pattern(hidden, cost, units)
    assert best is not None
    outsiders = ts.Run(attackers=ts.Attackers(insiders=False, unions=False, integers=False))
    release = ts.Suppress(algorithm="optimal", same_pattern=True, time_limit_s=60).protect(problem, outsiders)
    assert not open_cells(problem, release)
    assert release.solution is not None
    assert release.solution.objective == pytest.approx(best)
    assert release.solution.bound == pytest.approx(best)


@pytest.mark.parametrize("seed", fresh(3, "small instances with deviations"))
def test_small_instances_are_solved_without_a_table_and_with_deviations(seed: int) -> None:
    """The entry for many small instances: the same optimum, and for every target a deviation that proves it."""
    random = np.random.default_rng(seed)
    problem = a_problem(random, KINDS[seed % len(KINDS)], "levels")
    instance = Instance.of(problem, problem.cost, zeros=False)
    given = problem.sensitivity.mask
    free = np.flatnonzero(~given & ~problem.frozen & (problem.table.value != 0))
    best = best_pattern(problem, problem.cost, [[cell] for cell in free.tolist()])
    if best is None:
        with pytest.raises(CannotProtect):
            least_costly(instance, Budget())
        return
    answer = least_costly(instance, Budget())
    assert answer is not None
    assert answer.optimal
    assert answer.cost == pytest.approx(best)
    served: set[int] = set()
    for held in answer.deviations:
        moved = np.zeros(len(instance))
        moved[held.cells] = held.amount
        assert answer.pattern[held.cells].all()
        assert np.abs(instance.rows @ moved).max(initial=0.0) < 1e-6
        assert (moved <= instance.up + 1e-6).all()
        assert (-moved <= instance.down + 1e-6).all()
        for target in held.served.tolist():
            assert instance.sign[target] * moved[instance.cell[target]] >= instance.level[target] * (1 - 1e-6)
        served |= set(held.served.tolist())
    assert served == set(range(len(instance.level)))
    again = least_costly(instance, Budget(), first=answer.pattern)
    assert again is not None
    assert again.cost == pytest.approx(best)


@pytest.mark.parametrize("seed", fresh(10, "what a search tells an audit"))
def test_what_a_search_tells_an_audit_protects_every_target(seed: int) -> None:
    """Moves within the pattern, of which one or its reverse takes each target far enough: nothing is left to find."""
    random = np.random.default_rng(seed)
    table = product([flat(int(random.integers(2, 9))), flat(int(random.integers(2, 9)))], random)
    mask = random.random(len(table)) < random.choice([0.15, 0.5])  # some protect themselves, often all
    mask[int(random.integers(len(table)))] = True
    problem = Problem(table, sensitivity=Sensitivity.of(mask, np.ceil(table.value / 8)))
    instance = Instance.of(problem, problem.cost)
    incumbent = Incumbent(instance, budget=Budget(), report=lambda cost, bound: None)
    search = BranchAndCut(incumbent)
    try:
        search.advance(incumbent.late)
    except CannotProtect:
        return
    assert incumbent.best is not None
    reached = np.zeros(len(instance.level))
    for move in search.witnesses(incumbent.best):
        moved = np.zeros(len(instance))
        moved[move.cells] = move.amount
        assert incumbent.best[np.abs(moved) > 1e-6].all()
        assert np.abs(instance.rows @ moved).max(initial=0.0) < 1e-6
        for sign in (1, -1):
            over = np.maximum(
                sign * moved / np.maximum(instance.up, 1e-9), -sign * moved / np.maximum(instance.down, 1e-9)
            )
            part = 1.0 / max(1.0, float(over[np.abs(moved) > 1e-6].max(initial=0.0)))
            assert part == 1.0 or sign < 0 or part > 1 - 1e-6
            reached = np.maximum(reached, part * sign * moved[instance.cell] * instance.sign)
    assert (reached >= instance.level * (1 - 1e-6)).all()


def test_parts_that_share_nothing_are_proved_by_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once a choice has held, every part gets more nodes with each try; in one tree their branchings would multiply."""
    random = np.random.default_rng(1)
    table = product([flat(5), flat(5), flat(4)], random)
    mask = np.zeros(len(table), dtype=np.bool_)
    mask[random.choice(np.flatnonzero((table.value > 0) & ~table.is_total), 8, replace=False)] = True
    problem = Problem(table, sensitivity=Sensitivity.of(mask, np.ceil(table.value * 0.3)))
    one = Instance.of(problem, problem.cost)
    rows = sparse.csr_array(sparse.block_diag([one.rows, one.rows]))
    both = {name: np.tile(getattr(one, name), 2) for name in ("cost", "forced", "live", "up", "down", "sign", "level")}
    cell = np.concatenate([one.cell, one.cell + len(one)])
    twice = replace(one, rows=rows, columns=sparse.csc_array(rows), cell=cell, **both)
    monkeypatch.setattr(exact, "WIDE", 0)
    monkeypatch.setattr(exact, "NODES", 1)
    monkeypatch.setattr(BranchAndCut, "_branched", lambda _: pytest.fail("it was left to the tree"))
    answer = least_costly(twice, Budget())
    assert answer is not None
    assert answer.optimal


def test_what_is_one_large_part_is_branched_on_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The integer solver takes long there, and its answers to the cuts of the whole become ever worse."""
    random = np.random.default_rng(1)
    table = product([flat(5), flat(5), flat(4)], random)
    mask = np.zeros(len(table), dtype=np.bool_)
    mask[random.choice(np.flatnonzero((table.value > 0) & ~table.is_total), 8, replace=False)] = True
    problem = Problem(table, sensitivity=Sensitivity.of(mask, np.ceil(table.value * 0.3)))
    monkeypatch.setattr(exact, "WIDE", 0)
    monkeypatch.setattr(master_problem, "DENSE", 0)
    monkeypatch.setattr(Covering, "choose", lambda *_, **__: pytest.fail("a choice was made"))
    answer = least_costly(Instance.of(problem, problem.cost), Budget())
    assert answer is not None
    assert answer.optimal


def test_while_cutting_takes_long_patterns_are_made_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """After twice as much work each time, as long as the bound is far from the best pattern."""
    random = np.random.default_rng(1)
    table = product([flat(5), flat(5), flat(4)], random)
    mask = np.zeros(len(table), dtype=np.bool_)
    mask[random.choice(np.flatnonzero((table.value > 0) & ~table.is_total), 8, replace=False)] = True
    problem = Problem(table, sensitivity=Sensitivity.of(mask, np.ceil(table.value * 0.3)))
    instance = Instance.of(problem, problem.cost)
    made: list[int] = []
    for least in (0.0, 1e9):
        monkeypatch.setattr(exact, "PATTERN_S", least)
        incumbent = Incumbent(instance, budget=Budget(), report=lambda cost, bound: None)
        incumbent.keep(instance.live | instance.forced, instance.pattern_cost(instance.live))
        search, costs = BranchAndCut(incumbent), []
        repair = exact.Repair
        monkeypatch.setattr(exact, "Repair", lambda *given, r=repair, c=costs: c.append(1) or r(*given))
        search.cut(incumbent.late)
        monkeypatch.setattr(exact, "Repair", repair)
        made.append(len(costs))
    assert made[0] > made[1] > 0


def test_a_program_for_which_digits_do_not_suffice_is_asked_again_nearer(monkeypatch: pytest.MonkeyPatch) -> None:
    """To move nothing is an answer, so a solver that finds none had rooms too far away to tell numbers apart."""
    ask, tried = Attacker._run, []

    def short_sighted(self: Attacker, cell: int, sign: int, far: float, view: View) -> SolveStatus:
        tried.append(far)
        return SolveStatus.INFEASIBLE if far > 1e8 else ask(self, cell, sign, far, view)

    monkeypatch.setattr(Attacker, "_run", short_sighted)
    table = grid([[4_000.0] * 3] * 3)
    level = np.full(len(table), 3_000.0)
    sensitivity = replace(Sensitivity.none(len(table)), mask=level > 0, lower=level, upper=level)
    problem = Problem(table, sensitivity=sensitivity, lower=-np.inf)
    instance = Instance.of(problem, np.ones(len(table)), zeros=True)
    attacker = Attacker(instance, Budget())
    attacker.load(np.ones(len(instance)))
    assert attacker.ask(0, 1, 3_000.0).reach >= 3_000.0
    assert tried[0] > 1e8 >= tried[-1]


@pytest.mark.parametrize("seed", fresh(20, "a move goes back as far as it says"))
def test_a_move_goes_back_as_far_as_it_says_and_serves_whom_it_can(seed: int) -> None:
    """Whoever is said to be served by a move, or by its reverse, is moved far enough within everybody's room."""
    random = np.random.default_rng(seed)
    table = a_table(random, KINDS[seed % 4])
    mask = table.value > 0
    problem = Problem(table, sensitivity=Sensitivity.of(mask, 1.0, np.ceil(table.value / 4), 0.0))
    instance = Instance.of(problem, np.maximum(table.value, 1.0), zeros=False)
    targets = Targets(instance.cell, instance.sign, instance.level)
    attacker = Attacker(instance, Budget())
    share = np.where(instance.live, random.choice([0.3, 1.0], len(instance)), 0.0)
    attacker.load(share)
    for at in random.permutation(len(targets))[:6].tolist():
        cell, level = int(targets.cell[at]), float(targets.level[at])
        move = attacker.ask(cell, int(targets.sign[at]), level)
        own = np.flatnonzero(attacker.part[targets.cell] == attacker.part[cell])
        moved = move.amount[attacker.place[targets.cell[own]]]
        for other in own[targets.settled_by(own, at, move.cells, move.amount, moved, move.back)].tolist():
            by = move.amount[attacker.place[targets.cell[other]]]
            times = targets.level[other] / (targets.sign[other] * by)
            amount = times * move.amount
            assert (amount <= instance.up[move.cells] * share[move.cells] * (1 + 1e-6) + 1e-6).all()
            assert (-amount <= instance.down[move.cells] * share[move.cells] * (1 + 1e-6) + 1e-6).all()


def test_the_pattern_is_the_same_whoever_does_the_work() -> None:
    problem = a_problem(np.random.default_rng(11), "web", "levels")
    suppress = ts.Suppress(time_limit_s=60)
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        together = suppress.protect(problem, ts.Run(executor=pool))
    alone = suppress.protect(problem, ts.Run())
    assert (together.suppressed == alone.suppressed).all()
    assert together.solution is not None
    assert alone.solution is not None
    assert (together.solution.objective, together.solution.bound) == (alone.solution.objective, alone.solution.bound)
