"""Patterns for tables with many sensitive cells: safe whenever they are stopped, and not below the bound."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module
from itertools import combinations

import numpy as np
import polars as pl
import pytest
from scipy.linalg import null_space
from scipy.optimize import linprog

import tablesafe as ts
from seeds import fresh
from tablesafe.audit.doubts import Listed
from tablesafe.audit.exact import ExactMove
from tablesafe.audit.respondent_knowledge import Guard, Knowledge
from tablesafe.audit.system import System
from tablesafe.core.equations import Mask
from tablesafe.core.problem import Problem
from tablesafe.methods.suppress import linear_programs, method, simultaneous, strategy
from tablesafe.methods.suppress.branch_and_cut.targets import Targets
from tablesafe.methods.suppress.condensed import Condensed
from tablesafe.methods.suppress.hypercube_method import Seen, against_insiders
from tablesafe.methods.suppress.incumbent import Incumbent
from tablesafe.methods.suppress.instance import Instance
from tablesafe.methods.suppress.levels import demanded
from tablesafe.methods.suppress.lower_bound import lower_bound
from tablesafe.methods.suppress.many_targets import (
    by_many_at_once,
    completed,
    convincing_patterns,
    first_pattern,
    improved,
    moves_within,
)
from tablesafe.methods.suppress.pattern import CannotProtect, Pattern
from tablesafe.methods.suppress.repair import repaired
from tablesafe.methods.suppress.search import Search, Unfinished
from tablesafe.methods.suppress.sequential import never
from tablesafe.methods.suppress.simultaneous import Convincing, Reach, Together, TogetherForAll, levels
from tablesafe.methods.suppress.top_down import Subtables, from_the_top, next_wave
from tablesafe.methods.suppress.widen_and_thin import published_again
from tablesafe.solve.hypercubes import Hypercubes
from tablesafe.work.budget import Budget
from tablesafe.work.processes import Processes
from tablesafe.work.run import OUTSIDERS

TREES = {
    "region": ts.Hierarchy.from_pairs([("R", "N"), ("R", "S"), *(("N", c) for c in "abc"), *(("S", c) for c in "def")]),
    "size": ts.Hierarchy.from_pairs([("all", "small"), ("all", "large")]),
    "nace": ts.Hierarchy.from_pairs([("T", "1"), ("T", "2"), ("1", "10"), ("1", "11"), ("2", "20"), ("2", "21")]),
}
SMALL = {"a": TREES["size"], "b": ts.Hierarchy.from_pairs([("B", "p"), ("B", "q"), ("B", "r")])}


def firms(seed: int, records: int, trees: dict[str, ts.Hierarchy]) -> Problem:
    """Few firms per cell and a heavy tail: most fine cells are sensitive, many are empty."""
    rng = np.random.default_rng(seed)
    columns = {name: rng.choice(list(tree.leaves), records) for name, tree in trees.items()}
    frame = pl.DataFrame({**columns, "v": np.round(rng.lognormal(3, 1.3, records), 1), "firm": np.arange(records)})
    table = ts.tabulate(frame, dimensions=trees, value="v", respondent="firm")
    return ts.Problem(table, rules=[ts.Threshold(n=3), ts.PPercent(p=10)])


def read(problem: Problem) -> tuple[Instance, Hypercubes]:
    table = problem.table
    cubes = Hypercubes.of(list(table.dimensions.values()), table.codes)
    assert cubes is not None
    return Instance.of(demanded(problem, 0.0, {}), problem.cost, zeros=False), cubes


def unprotected(instance: Instance, pattern: Mask) -> list[int]:
    """The targets that a fresh linear program each cannot move far enough."""
    at = np.flatnonzero(pattern)
    equations = instance.rows[:, at]
    bounds = [(-float(instance.down[i]), float(min(instance.up[i], 1e7))) for i in at]
    left = []
    for target, (cell, sign, level) in enumerate(zip(instance.cell, instance.sign, instance.level, strict=True)):
        cost = np.where(at == cell, -float(sign), 0.0)
        answer = linprog(cost, A_eq=equations, b_eq=np.zeros(equations.shape[0]), bounds=bounds, method="highs")
        if -answer.fun < level * (1 - 1e-6):
            left.append(target)
    return left


@pytest.mark.parametrize("seed", fresh(2, "many targets, safe"))
def test_what_is_kept_is_safe_and_no_dearer_than_the_first(seed: int) -> None:
    problem = firms(seed, 90, TREES)
    instance, cubes = read(problem)
    first, failed = first_pattern(instance, cubes)
    if len(failed):
        pytest.skip("a cell that no hypercube protects")
    incumbent = Incumbent(instance, budget=Budget(work=5.0), report=lambda cost, bound: None)
    incumbent.keep(first, instance.pattern_cost(first))
    improved(incumbent, list(problem.table.dimensions.values()), cubes, np.random.default_rng(0), incumbent.budget)
    assert incumbent.best is not None
    assert incumbent.best_cost <= instance.pattern_cost(first)
    assert incumbent.bound <= incumbent.best_cost * (1 + 1e-9)
    assert not unprotected(instance, incumbent.best)


class Rings:
    """A clock that says after so many looks that the time is over."""

    def __init__(self, looks: int) -> None:
        self.left = looks

    def __call__(self) -> float:
        self.left -= 1
        return 0.0 if self.left > 0 else 1e9


@pytest.mark.parametrize("looks", [1, 5, 20, 200, 700])
def test_a_pattern_is_safe_whenever_it_is_stopped(looks: int) -> None:
    problem = firms(fresh(1, "many targets, stopped")[0], 70, TREES)
    instance, cubes = read(problem)
    first, failed = first_pattern(instance, cubes)
    if len(failed):
        pytest.skip("a cell that no hypercube protects")
    incumbent = Incumbent(instance, budget=Budget(1.0, clock=Rings(looks)), report=lambda cost, bound: None)
    incumbent.keep(first, instance.pattern_cost(first))
    improved(incumbent, list(problem.table.dimensions.values()), cubes, np.random.default_rng(0), incumbent.budget)
    assert incumbent.best is not None
    assert not unprotected(instance, incumbent.best)


@pytest.mark.parametrize("seed", fresh(2, "many targets, together"))
def test_who_is_said_to_move_far_enough_does(seed: int) -> None:
    """Within what is withheld by then, without any hypercube."""
    problem = firms(seed, 90, TREES)
    instance, cubes = read(problem)
    subtables = Subtables(instance, list(problem.table.dimensions.values()), cubes)
    rise, fall = levels(instance)
    condensed = Condensed.of(instance)
    pattern = Pattern(condensed.instance)
    suggested = from_the_top(instance, subtables, rise, fall, Budget())
    together = Together(pattern, condensed.whole(suggested), Budget(), np.random.default_rng(1))
    together.protect(only=seed % 2 == 0)
    assert set(unprotected(instance, condensed.members(pattern.withheld) | instance.forced)) <= set(pattern.open)
    for name, deviation in pattern.kept.items():
        move = np.zeros(len(condensed.instance))
        move[deviation.cells] = deviation.amount
        assert np.abs(condensed.instance.rows @ move).max() <= 1e-6 * np.abs(move).max()
        assert len(deviation.served)
        assert (pattern.by[deviation.served] == name).all()
    whole = completed(instance, condensed, pattern, cubes)
    assert whole is None or not unprotected(instance, whole)


def test_as_many_processes_as_there_are_suggest_the_same() -> None:
    problem = firms(7, 90, TREES)
    instance, cubes = read(problem)
    subtables = Subtables(instance, list(problem.table.dimensions.values()), cubes)
    rise, fall = levels(instance)
    here = from_the_top(instance, subtables, rise, fall, Budget())
    with Processes(2) as pool:
        there = from_the_top(instance, subtables, rise, fall, Budget(), pool)
    assert (here == there).all()
    assert (here & ~instance.forced).any()


def test_subtables_that_are_looked_at_at_once_have_no_cell_in_common() -> None:
    problem = firms(7, 90, TREES)
    instance, cubes = read(problem)
    subtables = Subtables(instance, list(problem.table.dimensions.values()), cubes)
    queue = sorted((int(subtables.depth[i]), i) for i in range(len(subtables)))
    seen: list[int] = []
    while queue:
        wave = next_wave(queue, subtables, len(instance))
        cells = np.concatenate([subtables.cells[i] for i in wave])
        assert len(np.unique(cells)) == len(cells)
        assert len({int(subtables.depth[i]) for i in wave}) == 1
        seen += wave
    assert sorted(seen) == list(range(len(subtables)))
    assert sorted(subtables.depth[seen].tolist()) == subtables.depth[seen].tolist()


def test_a_deviation_is_kept_for_whom_it_moves_as_far_as_the_level_and_its_reverse_where_there_is_room() -> None:
    instance, _ = read(firms(3, 90, TREES))
    rise, fall = levels(instance)
    cell = int(np.flatnonzero((rise > 1) & (fall > 1) & (instance.down >= 2 * rise))[0])
    alone = np.arange(len(instance)) == cell
    reach = Reach(Pattern(instance))
    reach.add(np.where(alone, 2 * instance.up[cell], 0.0))  # a solver's noise, at its worst
    assert reach.rises[cell]
    assert reach.falls[cell]  # turned around, by as much as there is room for
    assert (np.abs(next(iter(reach.pattern.deviations)).amount) <= instance.up[cell]).all()
    before = reach.withheld
    reach.add(np.where(alone, rise[cell], 0.0))
    reach.add(np.zeros(len(instance)))
    assert len(reach.pattern.kept) == 1  # nobody needs another one
    assert (reach.withheld == before).all()
    held = replace(instance, down=np.where(alone, 0.5 * fall[cell], instance.down))
    reach = Reach(Pattern(held))
    reach.add(np.where(alone, rise[cell], 0.0))
    assert reach.rises[cell]
    assert not reach.falls[cell]  # nothing falls by more than it has
    assert cell in reach.open


def test_deviations_that_convince_everybody_are_kept_and_use_nothing_that_is_published() -> None:
    """What every respondent is said to be convinced of, an audit of the pattern finds open to none of them."""
    problem = firms(3, 120, TREES)
    instance, _ = read(problem)
    everything = ts.Release.from_suppression(problem, instance.live | instance.forced)
    system = System.of(problem, everything)
    known = Knowledge.of(system, 1)
    assert known is not None
    listed = Listed.of(problem, known).among(system.cells, len(problem.table))
    convincing = Convincing(instance, listed, instance.forced)
    before = len(convincing.open)
    together = TogetherForAll(convincing, instance.live, Budget(work=5.0), np.random.default_rng(1))
    together.protect()
    assert len(convincing.open) < before
    served = np.concatenate([each.served for each in convincing.pattern.deviations])
    assert len(served) == len(set(served.tolist())) > 0
    convinced = np.where(instance.sign > 0, convincing.rises[instance.cell], convincing.falls[instance.cell])
    assert convinced[convincing.pattern.by >= 0].all()
    moves = list(together.found)
    assert len(moves) == len(convincing.pattern.kept)
    for move in moves:
        assert np.abs(instance.rows @ move).max() <= 1e-6 * max(1.0, np.abs(move).max())
        assert convincing.withheld[move != 0].all()
    found = ts.audit(problem, ts.Release.from_suppression(problem, convincing.withheld), exact=False, certify=False)
    assert {opening.cell for opening in found.failing} <= set(convincing.open.tolist())


def test_moves_that_an_audit_could_not_check_convince_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """A vertex without simple fractions: the search would count on it, and the audit find everything open again."""
    problem = firms(3, 120, TREES)
    instance, _ = read(problem)
    system = System.of(problem, ts.Release.from_suppression(problem, instance.live | instance.forced))
    known = Knowledge.of(system, 1)
    assert known is not None
    listed = Listed.of(problem, known).among(system.cells, len(problem.table))
    convincing = Convincing(instance, listed, instance.forced)
    before = convincing.open
    monkeypatch.setattr(simultaneous, "in_fractions", lambda move: None)
    together = TogetherForAll(convincing, instance.live, Budget(work=1.0), np.random.default_rng(1))
    together.protect()
    assert not list(together.found)
    assert (convincing.open == before).all()


@pytest.mark.parametrize("seed", fresh(2, "many targets, bound"))
def test_no_safe_pattern_costs_less_than_the_bound(seed: int) -> None:
    """Against all patterns of a tiny table."""
    problem = firms(seed, 14, SMALL)
    instance, cubes = read(problem)
    subtables = Subtables(instance, list(problem.table.dimensions.values()), cubes)
    bound = lower_bound(instance, Targets(instance.cell, instance.sign, instance.level), subtables, Budget())
    chosen = np.flatnonzero(instance.live & ~instance.forced)
    for size in range(len(chosen) + 1):
        for some in combinations(chosen.tolist(), size):
            pattern = instance.forced.copy()
            pattern[list(some)] = True
            cost = instance.pattern_cost(pattern)
            if cost < bound * (1 - 1e-9):
                assert unprotected(instance, pattern)


@pytest.mark.parametrize("seed", fresh(2, "condensed"))
def test_what_moves_together_is_one_cell_and_nothing_else_is_lost(seed: int) -> None:
    instance, _ = read(firms(seed, 60, TREES))
    condensed = Condensed.of(instance)
    small, live = condensed.instance.rows.toarray(), np.flatnonzero(instance.live)
    assert small.shape[1] < len(instance)
    assert small.shape[0] < instance.rows.shape[0]
    assert condensed.instance.cost.sum() == pytest.approx(instance.cost.sum())
    moves = null_space(small)[condensed.number]
    moves[~instance.live] = 0.0
    assert np.abs(instance.rows @ moves).max() < 1e-9
    assert np.linalg.matrix_rank(moves) == len(live) - np.linalg.matrix_rank(instance.rows.toarray()[:, live])


@pytest.mark.parametrize("seed", fresh(3, "hypercubes that an insider cannot rule out"))
def test_a_hypercube_for_an_insider_keeps_to_what_it_may_know(seed: int) -> None:
    instance, cubes = read(firms(seed, 90, TREES))
    rng, targets = np.random.default_rng(seed), 12
    some = replace(instance, cell=instance.cell[:targets], sign=instance.sign[:targets], level=instance.level[:targets])
    shared = [np.full(len(instance), np.inf), instance.down * rng.random(len(instance))]
    seen_by = []
    for target in range(targets):
        cells = np.flatnonzero(rng.random(len(instance)) < 0.5)
        alone, down = rng.random(len(cells)) < 0.2, instance.down[cells] * rng.random(len(cells))
        seen_by.append(Seen(shared[target % 2], cells, alone, down))
    guards = [each.guard for each in seen_by]
    pattern, left = against_insiders(iter(seen_by), some, cubes, never)
    assert not against_insiders(iter(seen_by), some, cubes, lambda: True)[0][~some.forced].any()
    for target in sorted(set(range(targets)) - set(left.tolist())):
        cell, guard = int(some.cell[target]), guards[target]
        down = np.where(guard.alone, 0.0, np.minimum(instance.down, guard.down))
        up = np.where(guard.alone, 0.0, instance.up)
        down[cell], up[cell] = instance.down[cell], instance.up[cell]
        seen = replace(
            instance, down=down, up=up, cell=some.cell[[target]], sign=some.sign[[target]], level=some.level[[target]]
        )
        assert not unprotected(seen, pattern)


CONVINCING = 1
"""A seed of firms some of whom hypercubes convince."""


@pytest.mark.parametrize("seed", [CONVINCING, *fresh(1, "hypercubes that nobody can rule out")])
def test_the_first_pattern_convinces_every_respondent_and_the_second_costs_less(seed: int) -> None:
    problem = firms(seed, 90, TREES)
    instance, cubes = read(problem)
    guard = Guard.of(problem)
    assert guard is not None
    (first, left), (second, _) = convincing_patterns(instance, cubes, guard, Budget)
    assert not left.size
    assert not unprotected(instance, first)
    assert not unprotected(instance, second)
    assert instance.pattern_cost(second) <= instance.pattern_cost(first)
    convinced = 0
    for target in range(len(instance.level)):
        cell = int(instance.cell[target])
        down = np.where(guard.alone, 0.0, np.minimum(instance.down, guard.down))
        up = np.where(guard.alone, 0.0, instance.up)
        down[cell], up[cell] = instance.down[cell], instance.up[cell]
        if cubes.cheapest(cell, float(instance.level[target]), instance.cost, np.minimum(down, up)) is not None:
            seen = replace(instance, down=down, up=up, cell=instance.cell[[target]], sign=instance.sign[[target]])
            assert not unprotected(replace(seen, level=instance.level[[target]]), first)
            convinced += 1
    assert convinced or seed != CONVINCING


def safe_from_all(problem: Problem, pattern: Mask) -> bool:
    """By an audit that knows nothing of how the pattern was made."""
    return ts.audit(problem, ts.Release.from_suppression(problem, pattern), exact=False, certify=False).safe


def never_mended(pattern: Mask) -> None:
    """Nothing that fails is repaired."""


def unheard(cost: float) -> None:
    """Nobody hears what a pattern costs."""


@pytest.mark.parametrize("seed", fresh(2, "many targets, published again"))
def test_what_is_published_again_was_not_needed(seed: int) -> None:
    """All is withheld at first; a fresh audit of what is left finds nothing open to anybody."""
    problem = firms(seed, 120, TREES)
    instance, _ = read(problem)
    everything = instance.live | instance.forced
    session = ts.Audit(problem)
    if session.judge(ts.Release.from_suppression(problem, everything), exact=False, certify=False).failing:
        pytest.skip("a cell that nothing protects")
    told: list[float] = []
    fewer = published_again(session, instance, everything, Budget(work=3.0), Budget(), never_mended, told.append)
    assert not (fewer & ~everything).any()
    assert instance.pattern_cost(everything) > told[0]
    assert told == sorted(told, reverse=True)
    assert told[-1] == instance.pattern_cost(fewer)
    assert safe_from_all(problem, fewer)


@pytest.mark.parametrize("looks", [1, 3, 10, 40, 150])
def test_it_is_safe_whenever_publishing_again_is_stopped(looks: int) -> None:
    problem = firms(3, 120, TREES)
    instance, _ = read(problem)
    everything, session = instance.live | instance.forced, ts.Audit(problem)
    session.judge(ts.Release.from_suppression(problem, everything), exact=False, certify=False)
    limit = Budget(1.0, clock=Rings(looks))
    assert safe_from_all(problem, published_again(session, instance, everything, limit, limit, never_mended, unheard))


def test_after_a_stop_what_was_not_looked_at_for_sums_is_not_taken_for_safe() -> None:
    """Sums that nobody had time to look for did not fail: the pattern was kept, and lost by the audit that decides."""
    problem = firms(3, 120, TREES)
    instance, _ = read(problem)
    everything, session = instance.live | instance.forced, ts.Audit(problem)
    session.judge(ts.Release.from_suppression(problem, everything), exact=False, certify=False)
    stopped = Budget()
    stopped.stop()
    given: list[Mask] = []
    kept = published_again(session, instance, everything, Budget(work=3.0), stopped, given.append, unheard)
    assert (kept == everything).all()
    assert not given, "nothing is mended for somebody who waits"


def test_what_a_trial_says_wrongly_is_taken_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nobody is asked what it relies on, the whole audit does not pass, and the last safe pattern stays."""
    problem = firms(3, 120, TREES)
    instance, _ = read(problem)
    everything, session = instance.live | instance.forced, ts.Audit(problem)
    session.judge(ts.Release.from_suppression(problem, everything), exact=False, certify=False)
    monkeypatch.setattr(ts.Audit, "relied_on", lambda self, cells: np.zeros(len(problem.table), dtype=np.bool_))
    assert safe_from_all(
        problem, published_again(session, instance, everything, Budget(work=3.0), Budget(), never_mended, unheard)
    )


def test_what_a_trial_says_wrongly_is_mended_where_that_pays(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = firms(3, 120, TREES)
    instance, _ = read(problem)
    everything, session = instance.live | instance.forced, ts.Audit(problem)
    session.judge(ts.Release.from_suppression(problem, everything), exact=False, certify=False)
    monkeypatch.setattr(ts.Audit, "relied_on", lambda self, cells: np.zeros(len(problem.table), dtype=np.bool_))
    given: list[Mask] = []

    def mended(pattern: Mask) -> Mask:
        given.append(pattern)
        return repaired(session, instance, pattern)[0]

    fewer = published_again(session, instance, everything, Budget(work=3.0), Budget(), mended, unheard)
    assert given
    assert instance.pattern_cost(fewer) < instance.pattern_cost(everything)
    assert safe_from_all(problem, fewer)


@pytest.mark.parametrize("seed", fresh(3, "patterns of many at once are safe, and each is cheaper than the last"))
def test_patterns_of_many_at_once_are_safe_and_each_is_cheaper(seed: int) -> None:
    """Without hypercubes, for tables in which a program for each target takes too long."""
    problem = firms(seed, 90, {"a": TREES["region"], "b": TREES["nace"]})
    instance, _ = read(problem)
    last = np.inf
    for pattern, moves in by_many_at_once(instance, Budget(600.0), np.random.default_rng(seed)):
        cost = instance.pattern_cost(pattern)
        assert cost < last
        last = cost
        release = ts.Release.from_suppression(problem, pattern)
        assert ts.audit(problem, release, insiders=False, unions=False).safe
        for move in moves:
            assert pattern[move.cells].all()
            assert not (problem.table.equations[:, move.cells] @ move.numerators).any()


@pytest.mark.parametrize("seed", fresh(3, "an audit is told of exact deviations that protect every target"))
def test_an_audit_is_told_of_exact_deviations_that_protect_every_target(seed: int) -> None:
    problem = firms(seed, 90, {"a": TREES["region"], "b": TREES["nace"]})
    instance, _ = read(problem)
    for pattern, _ in by_many_at_once(instance, Budget(600.0), np.random.default_rng(seed)):
        open_ = np.ones(len(instance.level), dtype=np.bool_)
        for move in moves_within(instance, pattern, Budget(600.0)):
            assert pattern[move.cells].all()
            assert not (instance.rows[:, move.cells] @ move.numerators).any()
            by = move.numerators / move.denominator
            assert (by <= instance.up[move.cells] * (1 + 1e-12)).all()
            assert (-by <= instance.down[move.cells] * (1 + 1e-12)).all()
            whole = np.zeros(len(instance))
            whole[move.cells] = by
            far = instance.sign * whole[instance.cell]
            back = (-by <= instance.up[move.cells]).all() and (by <= instance.down[move.cells]).all()
            open_ &= (far < instance.level) & ~(back & (-far >= instance.level))
        room = np.where(instance.sign > 0, instance.up[instance.cell], instance.down[instance.cell])
        assert not (open_ & (instance.level * (1 + 1e-4) < room)).any()


def test_patterns_that_audits_take_long_for_come_with_deviations(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that branch and cut has found, too: not only those of programs that move many at once."""
    problem = firms(1, 90, {"a": TREES["region"], "b": TREES["nace"]})
    asked: list[Mask] = []

    def told(instance: Instance, pattern: Mask, budget: Budget) -> list[ExactMove]:
        asked.append(pattern)
        return moves_within(instance, pattern, budget)

    monkeypatch.setattr(import_module("tablesafe.methods.suppress.method"), "moves_within", told)
    monkeypatch.setattr(strategy, "AT_ONCE", 0.0)
    monkeypatch.setattr(strategy, "_affordable", lambda _: False)
    monkeypatch.setattr(Search, "build_of_boxes", lambda *_, **__: None)
    monkeypatch.setattr(Search, "of_hypercubes", lambda *_, **__: None)
    release = ts.Suppress(time_limit_s=20).protect(problem, ts.Run(attackers=OUTSIDERS))
    assert ts.audit(problem, release, insiders=False, unions=False).safe
    assert asked
    assert (asked[-1] == release.suppressed).all()


@pytest.mark.parametrize("seed", [1, 2])
def test_where_programs_for_each_take_too_long_many_are_moved_at_once(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = firms(seed, 90, {"a": TREES["region"], "b": TREES["nace"]})
    monkeypatch.setattr(strategy, "_affordable", lambda _: False)
    monkeypatch.setattr(strategy, "_by_programs", lambda _: pytest.fail("there is no time for it"))
    monkeypatch.setattr(Search, "build_of_boxes", lambda *_, **__: None)
    release = ts.Suppress(algorithm="sequential", time_limit_s=20).protect(problem, ts.Run(attackers=OUTSIDERS))
    assert ts.audit(problem, release, insiders=False, unions=False).safe


@pytest.mark.parametrize("grace", [True, False])
def test_a_program_without_time_does_not_say_that_a_cell_cannot_be_protected(
    grace: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a busy machine the wall's clock ends a program that the processor has hardly begun: it has no answer."""
    instance, _ = read(firms(1, 90, {"a": TREES["region"], "b": TREES["nace"]}))
    monkeypatch.setattr(linear_programs, "cheapest_point", lambda *_, **__: None)
    for seconds, error in ((0.0, Unfinished), (600.0, CannotProtect)):
        search = Search(instance, budget=Budget(seconds), seed=0, report=lambda *_: None)
        with pytest.raises(error):
            search.build(grace=grace)


def test_beyond_some_cells_no_program_over_the_whole_moves_what_no_hypercube_protects(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It grows with the table, not with those that are left: 53 s for 2 of 111,822 targets. Repair sees to them."""
    problem = firms(3, 90, TREES)

    def without_some(instance: Instance, cubes: Hypercubes, *args: object) -> tuple[Mask, np.ndarray]:
        """All but the first targets are protected; these have no hypercube, as far as it is told."""
        left = np.arange(3)
        return first_pattern(instance.asking(np.arange(3, len(instance.level))), cubes)[0], left

    def refused(*args: object, **named: object) -> None:
        raise AssertionError("a program over the whole table")

    monkeypatch.setattr(method, "too_many", lambda targets, seconds: True)
    monkeypatch.setattr(method, "first_pattern", without_some)
    monkeypatch.setattr(method, "by_many_at_once", refused)
    monkeypatch.setattr(method, "modular", refused)
    monkeypatch.setattr(method, "improved", lambda *_: [])
    asked = ts.Suppress(algorithm="modular", time_limit_s=60)
    with pytest.raises(AssertionError, match="over the whole"):
        ts.protect(problem, asked, ts.Run(attackers=OUTSIDERS))
    monkeypatch.setattr(method, "TOGETHER", 0)
    release = ts.protect(problem, asked, ts.Run(attackers=OUTSIDERS))
    assert ts.audit(problem, release, insiders=False, unions=False).safe


def test_no_cheaper_pattern_is_begun_when_the_limit_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first safe pattern may take longer than the limit; the second took as long again (limit of 10 s, 14.5)."""
    problem = firms(3, 90, TREES)
    begun: list[int] = []

    def patterns(instance: Instance, cubes: Hypercubes, *args: object) -> Iterator[tuple[Mask, np.ndarray]]:
        for turn in range(2):
            begun.append(turn)
            yield first_pattern(instance, cubes)

    monkeypatch.setattr(method, "too_many", lambda targets, seconds: True)
    monkeypatch.setattr(method, "convincing_patterns", patterns)
    monkeypatch.setattr(method, "ALL_AUDITED_S", 100.0)
    monkeypatch.setattr(method, "FOR_ALL_S", 100.0)
    release = ts.protect(problem, ts.Suppress(algorithm="modular", time_limit_s=1e-6))
    assert begun == [0]
    assert ts.audit(problem, release).safe
    ts.protect(problem, ts.Suppress(algorithm="modular", time_limit_s=60))
    assert begun[1:] == [0, 1], "given time the second is begun"
