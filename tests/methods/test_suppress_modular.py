"""Suppression in parts: safe on every structure, and the same pattern whoever does the work."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.sparse import csgraph

from oracle.counts import tree
from tablesafe.audit.audit import audit
from tablesafe.audit.respondent_knowledge import Guard
from tablesafe.core.equations import Integers, roll_up
from tablesafe.core.errors import InvalidProblem
from tablesafe.core.hierarchy import Hierarchy
from tablesafe.core.linking import link
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release
from tablesafe.core.sensitivity import Sensitivity
from tablesafe.core.table import Table
from tablesafe.io.jj import read_jj
from tablesafe.methods.suppress import Suppress, subtables
from tablesafe.methods.suppress import modular as parts
from tablesafe.methods.suppress.instance import Instance
from tablesafe.methods.suppress.modular import modular
from tablesafe.methods.suppress.sequential import Sequential
from tablesafe.methods.suppress.subtables import Subtables, blocks, waves
from tablesafe.work.executor import in_order, workers


def random_table(dimensions: dict[str, Hierarchy], random: np.random.Generator) -> Table:
    """Every combination of leaves has a cell; a few are zero."""
    leaves = [np.flatnonzero(~h.is_total) for h in dimensions.values()]
    grid = np.stack(np.meshgrid(*leaves, indexing="ij"), -1).reshape(-1, len(dimensions)).astype(np.int32)
    values = random.integers(0, 90, len(grid)) * (random.random(len(grid)) < 0.9)
    codes, sums = roll_up(grid, list(dimensions.values()), {"value": values})
    return Table.from_codes(codes, sums["value"].astype(float), dimensions)


def random_problem(table: Table, random: np.random.Generator, share: float = 0.1) -> Problem:
    mask = ~table.is_total & (table.value > 0) & (random.random(len(table)) < share)
    return Problem(table, sensitivity=Sensitivity.of(mask, np.ceil(table.value / 5)), frozen=table.value == 0)


def hierarchical_problem(seed: int, fans: tuple[tuple[int, ...], ...] = ((3, 4), (2, 5), (3,))) -> Problem:
    random = np.random.default_rng(seed)
    return random_problem(
        random_table({name: tree(name, f) for name, f in zip("abcd", fans, strict=False)}, random), random
    )


def assert_safe_or_hopeless(problem: Problem) -> None:
    """The pattern passes the audit; if there is none, withholding everything would not have done either."""
    try:
        release = Suppress(algorithm="modular", time_limit_s=5).protect(problem)
    except InvalidProblem:
        everything = Release.from_suppression(problem, ~problem.frozen)
        assert not audit(problem, everything).protected.all()
        return
    assert audit(problem, release).safe
    assert release.suppressed[problem.sensitive].all()
    assert not (release.suppressed & problem.frozen).any()


@settings(max_examples=4)
@given(st.integers(0, 2**32 - 1), st.sampled_from([((3, 4), (2, 5), (3,)), ((4, 5), (6,)), ((12,), (9,))]))
def test_hierarchical_tables_are_safe(seed: int, fans: tuple[tuple[int, ...], ...]) -> None:
    assert_safe_or_hopeless(hierarchical_problem(seed, fans))


@settings(max_examples=5)
@given(st.integers(0, 2**32 - 1))
def test_linked_tables_are_safe(seed: int) -> None:
    random = np.random.default_rng(seed)
    whole = random_table({"a": tree("a", (3, 4)), "b": tree("b", (5,)), "c": tree("c", (4,))}, random)
    sections = []
    for kept, other in ((("a", "b"), "c"), (("a", "c"), "b")):
        at = list(whole.dimensions).index(other)
        own = whole.codes[:, at] == whole.dimensions[other].position(other)
        columns = [list(whole.dimensions).index(name) for name in kept]
        sections.append(
            Table.from_codes(
                whole.codes[own][:, columns], whole.value[own], {name: whole.dimensions[name] for name in kept}
            )
        )
    assert_safe_or_hopeless(random_problem(link(sections), random))


@settings(max_examples=5)
@given(st.integers(0, 2**32 - 1))
def test_structures_that_are_no_tree_are_safe(seed: int) -> None:
    random = np.random.default_rng(seed)
    odd = Hierarchy.from_equations(
        ["13=4+5+6", "12=1+6", "11=3+4", "10=2+5", "14=1+2+3+4+5+6", "14=13+1+2+3", "14=12+11+10"]
    )
    assert_safe_or_hopeless(random_problem(random_table({"odd": odd, "b": tree("b", (2, 3))}, random), random, 0.15))


@pytest.mark.parametrize("name", ["targus", "table7", "table8", "hier13x7x7d", "table1"])
def test_instances_of_the_literature_are_safe(instances: Path, name: str) -> None:
    problem = read_jj(instances / "jj" / f"{name}.jj")
    release = Suppress(algorithm="modular", time_limit_s=2).protect(problem)
    assert audit(problem, release).safe


@contextmanager
def processes() -> Iterator[Executor]:
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        yield pool


@contextmanager
def dask_cluster() -> Iterator[Executor]:
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client.get_executor()


@pytest.mark.filterwarnings("ignore")  # of other people's event loops
@pytest.mark.parametrize("somewhere", [processes, dask_cluster])
def test_the_pattern_does_not_depend_on_who_does_the_work(somewhere, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr(parts, "TARGETS", 8)
    monkeypatch.setattr(parts, "DOUBTFUL", 8)
    monkeypatch.setattr(parts, "REGION", 120)
    problem = hierarchical_problem(3, ((3, 4), (4, 3)))
    instance = Instance.of(problem, problem.cost, zeros=False)
    alone = modular(instance, seconds=1.0)
    again = modular(instance, seconds=1.0)
    with somewhere() as executor:
        elsewhere = modular(instance, seconds=1.0, executor=executor)
    assert alone.sum() > instance.forced.sum()
    assert (alone == again).all()
    assert (alone == elsewhere).all()


def test_small_parts_protect_as_well_as_large_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = hierarchical_problem(5)
    instance = Instance.of(problem, problem.cost, zeros=False)
    for region in (20, 200, 10_000):
        monkeypatch.setattr(parts, "REGION", region)
        pattern = modular(instance)
        assert audit(problem, Release.from_suppression(problem, pattern), exact=False).protected.all()


def test_second_thoughts_never_cost_more() -> None:
    problem = hierarchical_problem(8)
    instance = Instance.of(problem, problem.cost, zeros=False)
    plan = parts.Modular(instance, None, None)
    plan.protect()
    before = instance.pattern_cost(plan.pattern.withheld)
    plan.clean_up(10.0)
    assert instance.pattern_cost(plan.pattern.withheld) < before


def test_guarded_patterns_leave_respondents_in_the_dark() -> None:
    """The only contributor of a withheld cell knows it: a pattern that moves others only is safe from it."""
    problem = hierarchical_problem(4, ((3, 4), (4, 3)))
    random = np.random.default_rng(4)
    leaf = ~problem.table.is_total
    count = np.where(leaf & (random.random(len(problem.table)) < 0.2), 1, 9)
    counted = Table.from_codes(
        problem.table.codes, problem.table.value, problem.table.dimensions, count=count.astype(np.int64)
    )
    known = Problem(counted, sensitivity=problem.sensitivity, frozen=problem.frozen)
    guard = Guard.of(known)
    assert guard is not None
    release = Suppress(algorithm="modular", time_limit_s=2).protect(known)
    findings = audit(known, release)
    assert findings.safe
    assert Guard.of(problem) is None


def test_subtables_of_a_product_are_the_children_of_one_code_in_each_dimension() -> None:
    table = random_table({"a": tree("a", (3, 4)), "b": tree("b", (2, 2))}, np.random.default_rng(0))
    found = Subtables.of(table.equations)
    parents = np.column_stack(
        [
            np.array([code.rpartition(".")[0] for code in hierarchy.codes])[table.codes[:, d]]
            for d, hierarchy in enumerate(table.dimensions.values())
        ]
    )
    _, wanted = np.unique(parents, axis=0, return_inverse=True)
    assert len(set(zip(found.number.tolist(), wanted.tolist(), strict=True))) == len(set(wanted.tolist()))
    assert found.depth[table.index(a="a", b="b")] == 0
    assert found.depth.max() == 4


def test_around_a_cell_stand_its_subtable_the_ones_below_it_and_their_margins() -> None:
    table = random_table({"a": tree("a", (3, 4)), "b": tree("b", (2, 2))}, np.random.default_rng(0))
    found = Subtables.of(table.equations)

    def codes(cell: int) -> tuple[str, str]:
        a, b = (h.codes[i] for h, i in zip(table.dimensions.values(), table.codes[cell], strict=True))
        return a, b

    def box(a: str, b: str) -> set[tuple[str, str]]:
        """A code of each dimension, and what it is the total of."""
        below = [[own, *(c for c in h.codes if c.rpartition(".")[0] == own)] for own, h in
                 zip((a, b), table.dimensions.values(), strict=True)]  # fmt: skip
        return {(one, other) for one in below[0] for other in below[1]}

    leaf = found.around(np.array([table.index(a="a.1.2", b="b.0.1")]))
    assert {codes(cell) for cell in leaf.tolist()} == box("a.1", "b.0")
    inner = found.around(np.array([table.index(a="a.1", b="b.0")]))
    wanted = box("a", "b") | box("a.1", "b") | box("a", "b.0")
    assert {codes(cell) for cell in inner.tolist()} == wanted


@given(data=st.data())
def test_batches_hold_every_position_once_and_keep_to_their_room(data: st.DataObject) -> None:
    table = random_table({"a": tree("a", (3, 4)), "b": tree("b", (2, 2))}, np.random.default_rng(0))
    found = Subtables.of(table.equations)
    cells = np.array(data.draw(st.lists(st.integers(0, len(table) - 1), max_size=60)), dtype=np.int64)
    size, room = data.draw(st.integers(1, 20)), data.draw(st.integers(1, 40))
    batches = found.batches(cells, size, room)
    assert sorted(np.concatenate([np.zeros(0, np.int64), *batches]).tolist()) == list(range(len(cells)))
    inner = np.bincount(found.number)
    for own in batches:
        subtables = np.unique(found.number[cells[own]])
        assert len(own) <= size
        assert len(set(found.depth[cells[own]].tolist())) == 1
        assert len(subtables) == 1 or inner[subtables[:-1]].sum() <= room


def flat_table(*sides: int) -> Table:
    return random_table({f"d{i}": tree(f"d{i}", (side,)) for i, side in enumerate(sides)}, np.random.default_rng(0))


def subtables_of(parts: sparse.csr_array) -> Integers:
    """The subtable of each cell when none is cut; a row for each equation, with its parts."""
    (m, n), entries = parts.shape, parts.tocoo()
    links = sparse.coo_array((np.ones(parts.nnz), (entries.row, m + entries.col)), shape=(m + n, m + n))
    return np.asarray(csgraph.connected_components(links, directed=False)[1][m:], dtype=np.int64)


def test_a_block_has_every_combination_of_its_codes() -> None:
    table = flat_table(7, 9, 5, 6)
    matrix = sparse.csr_array((table.equations > 0).astype(np.int64))
    number = blocks(matrix, subtables_of(matrix), 100)
    inner = np.unique(number[~table.is_total])
    assert np.bincount(number).max() <= 100
    assert len(inner) < 7 * 9 * 5 * 6 / 20
    for own in inner:
        codes = table.codes[number == own]
        assert len(codes) == np.prod([len(np.unique(codes[:, d])) for d in range(4)])
        assert min(len(np.unique(codes[:, d])) for d in range(4)) > 1


@given(st.integers(0, 2**32 - 1), st.integers(2, 60), st.sampled_from([(4, 5, 6), (12, 11), (3, 4, 3, 4)]))
def test_blocks_of_tables_with_holes_are_parts_of_their_subtables(seed: int, most: int, sides: tuple[int, ...]) -> None:
    table = flat_table(*sides)
    there = np.random.default_rng(seed).random(len(table)) < 0.6
    matrix = sparse.csr_array((table.equations > 0).astype(np.int64))
    matrix = sparse.csr_array(matrix[:, np.flatnonzero(there)])
    group = subtables_of(matrix)
    number = blocks(matrix, group, most)
    assert np.bincount(number).max() <= most
    small = np.bincount(group)[group] <= most
    assert (number[small] == group[small]).all()
    for own in np.unique(number):
        assert len(np.unique(group[number == own])) == 1


@settings(max_examples=4)
@given(st.integers(0, 2**32 - 1), st.sampled_from([(5, 5, 5, 5), (14, 13), (8, 7, 6)]))
def test_tables_without_hierarchies_are_safe_in_blocks(seed: int, sides: tuple[int, ...]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(subtables, "LARGEST", 40)
        patch.setattr(parts, "ROOM", 60)
        patch.setattr(parts, "LEAST", 60)
        assert_safe_or_hopeless(hierarchical_problem(seed, tuple((side,) for side in sides)))


def test_waves_hold_every_batch_once_and_no_more_than_asked() -> None:
    depth = [0, 1, 1, 1, 1, 1, 2, 2]
    found = waves([np.arange(1)] * len(depth), depth, 2)
    assert sorted(i for wave in found for i in wave) == list(range(len(depth)))
    assert all(len(wave) <= 2 and len({depth[i] for i in wave}) == 1 for wave in found)


def test_results_come_in_the_order_of_the_tasks() -> None:
    with workers(None, 0.0) as pool:
        assert in_order(abs, [-3, 2, -1], [0.1, 5.0, 0.2], pool) == [3, 2, 1]


def test_nothing_sensitive_withholds_nothing() -> None:
    problem = hierarchical_problem(1)
    nothing = problem.replace(sensitivity=Sensitivity.none(len(problem.table)))
    assert not Suppress(algorithm="modular").protect(nothing).suppressed.any()


@pytest.mark.parametrize(("seed", "guarded"), [(0, False), (1, True), (2, True)])
def test_in_large_subtables_boxes_protect_every_target(
    seed: int, guarded: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the pattern alone, before any audit; with a guard, by boxes that no single respondent can rule out."""
    monkeypatch.setattr(subtables, "LARGEST", 20)
    random = np.random.default_rng(seed)
    table = random_table({name: tree(name, (5,)) for name in "abc"}, random)
    problem = random_problem(table, random, share=0.08)
    alone = ~table.is_total & ~problem.sensitivity.mask & (random.random(len(table)) < 0.2)
    guard = Guard(alone, table.value * 0.8) if guarded else None
    instance, told = Instance.of(problem, problem.cost, zeros=False), []
    plan = parts.Modular(instance, guard, None, lambda cost, bound: told.append(cost))
    plan.protect()
    before = instance.pattern_cost(plan.pattern.withheld)
    plan.clean_up(10.0)
    assert told, "it looked for other boxes"
    assert told[-1] == pytest.approx(instance.pattern_cost(plan.pattern.withheld))
    assert told[-1] <= before
    release = Release.from_suppression(problem, plan.pattern.withheld)
    assert audit(problem, release, insiders=False, unions=False).safe
    if guarded:
        held = [one for one in plan.pattern.deviations if one.guarded]
        assert held
        for one in held:
            own = np.unique(instance.cell[list(one.served)])
            assert not (alone[one.cells] & ~np.isin(one.cells, own)).any()


def test_small_subtables_take_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    """They find cheaper deviations there, and take no longer."""

    def never(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr(parts, "boxed", never)
    assert_safe_or_hopeless(hierarchical_problem(1))


def test_what_one_respondent_knows_stays_out_of_guarded_deviations() -> None:
    """Also once it is withheld for others, and after these have been protected otherwise."""
    problem = hierarchical_problem(3, ((5,), (5,), (5,)))
    alone = np.zeros(len(problem.table), dtype=np.bool_)
    instance = Instance.of(problem, problem.cost, zeros=False)
    target, own = 0, int(instance.cell[0])
    first = Sequential.by_programs(instance, boxes=True).cheapest(target, 0)
    assert first is not None
    first = replace(first, served=np.array([target]))
    alone[first.cells[first.cells != own]] = True
    engine = Sequential.by_programs(instance, Guard(alone, np.full(len(alone), np.inf)), boxes=True)
    engine.pattern.drop(engine.pattern.add(first))
    engine.pattern.add(first)
    assert not engine.protect_all([target], effort=0, strict=np.ones(len(instance.level), dtype=np.bool_))
    *_, last = engine.pattern.deviations
    assert last.guarded
    assert not alone[last.cells].any()
