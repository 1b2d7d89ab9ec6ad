"""Insiders, unions and integers against brute force on small tables, which shares no code with the audit."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import linprog

from tablesafe.audit.insiders import insiders
from tablesafe.audit.integers import cube_bounds, frechet, integer_intervals, is_network
from tablesafe.audit.sums import constant_sums
from tablesafe.audit.system import System
from tablesafe.audit.unions import unions
from tablesafe.core.hierarchy import Hierarchy
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release
from tablesafe.core.sensitivity import Sensitivity
from tablesafe.core.table import Contributors, Table
from tablesafe.rules import PPercent, Threshold

SLOW = settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck))
QUICK = settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))

ROWS, COLUMNS = "abc", "xyz"
P = 20

Cell = tuple[str, str]


@dataclass(frozen=True)
class Records:
    """What each firm has in each cell, margins included."""

    has: Mapping[Cell, Mapping[int, int]]

    @classmethod
    def of(cls, entries: Sequence[tuple[str, str, int, int]]) -> Records:
        has: dict[Cell, dict[int, int]] = {}
        for row, column, firm, amount in entries:
            for cell in itertools.product((row, "Total"), (column, "Total")):
                has.setdefault(cell, {})
                has[cell][firm] = has[cell].get(firm, 0) + amount
        return cls(has)

    def table(self, depth: int) -> tuple[Table, dict[Cell, int]]:
        """The table that keeps so many contributors per cell."""
        hierarchies = {"row": Hierarchy.flat(list(ROWS)), "column": Hierarchy.flat(list(COLUMNS))}
        cells = sorted(self.has)
        codes = [[h.position(c) for h, c in zip(hierarchies.values(), cell, strict=True)] for cell in cells]
        amount, identity = np.zeros((len(cells), depth)), np.full((len(cells), depth), -1)
        for at, cell in enumerate(cells):
            ranked = sorted(self.has[cell].items(), key=lambda item: (-item[1], item[0]))[:depth]
            for place, (firm, size) in enumerate(ranked):
                amount[at, place], identity[at, place] = size, firm
        table = Table.from_codes(
            np.array(codes, np.int32),
            np.array([sum(self.has[cell].values()) for cell in cells], float),
            hierarchies,
            count=np.array([len(self.has[cell]) for cell in cells]),
            contributors=Contributors(amount, identity),
        )
        return table, {cell: at for at, cell in enumerate(cells)}

    @property
    def firms(self) -> list[int]:
        return sorted(self.has["Total", "Total"])


@st.composite
def records(draw: st.DrawFn, firms: int = 9, most: int = 5) -> Records:
    entries = []
    for row, column in itertools.product(ROWS, COLUMNS):
        for firm in draw(st.lists(st.integers(0, firms - 1), min_size=0, max_size=most, unique=True)):
            entries.append((row, column, firm, draw(st.integers(1, 60))))
    assume(entries)
    return Records.of(entries)


@st.composite
def pattern(draw: st.DrawFn, table: Table, always: NDArray[np.bool_]) -> NDArray[np.bool_]:
    rare = draw(st.lists(st.booleans(), min_size=len(table), max_size=len(table)))
    return np.array(rare) | always


def extremes(system: System, weight: NDArray[Any], lower: NDArray[Any], upper: NDArray[Any]) -> tuple[float, float]:
    """The least and the most of a weighted sum, by two fresh linear programs."""
    out = []
    for sign in (1, -1):
        answer = linprog(
            sign * weight, A_eq=system.matrix.toarray(), b_eq=system.rhs, bounds=np.column_stack([lower, upper])
        )
        out.append(sign * answer.fun if answer.status == 0 else -sign * np.inf)
    return out[0], out[1]


# -- insiders ----------------------------------------------------------------------------------------------------------


def seen(
    known: Records, cells: Sequence[Cell], system: System, place: Mapping[Cell, int], coalition: Sequence[int]
) -> tuple[NDArray[Any], NDArray[Any]]:
    """The bounds of every unknown cell as a coalition sees them."""
    lower, upper = system.lower.copy(), system.upper.copy()
    position = {cell: int(np.flatnonzero(system.cells == place[cell])[0]) for cell in cells}
    for cell, at in position.items():
        own = sum(known.has[cell].get(firm, 0) for firm in coalition)
        lower[at] = max(lower[at], own)
        if set(known.has[cell]) <= set(coalition):
            lower[at] = upper[at] = system.truth[at]
    return lower, upper


def required(
    contributions: Mapping[int, int], coalition: Sequence[int], lower: float, upper: float
) -> tuple[float, float]:
    """The levels of a cell against a coalition, from the definition in the module's text."""
    ranked = sorted(contributions.items(), key=lambda item: (-item[1], item[0]))
    total = sum(contributions.values())
    own = sum(contributions.get(firm, 0) for firm in coalition)
    if ranked[0][0] in coalition:
        largest = ranked[0][1]
        second = ranked[1][1] if len(ranked) > 1 else 0
        rest = total - largest - second
        other = max(amount for firm, amount in ranked if firm not in coalition)
        hidden = total - own - other
        lower, upper = (min(level, max(0.0, (level + rest) / largest * other - hidden)) for level in (lower, upper))
    return min(lower, total - own), upper


def open_to(
    known: Records, cells: Sequence[Cell], system: System, place: Mapping[Cell, int], problem: Problem, size: int
) -> Iterator[tuple[Cell, tuple[int, ...], float, float]]:
    """Every sensitive cell that the outsider cannot open but some coalition can, with what it sees."""
    for cell in cells:
        number = place[cell]
        if not problem.sensitivity.mask[number]:
            continue
        at = int(np.flatnonzero(system.cells == number)[0])
        value, weight = float(system.truth[at]), np.eye(len(system))[at]
        levels = problem.sensitivity.lower[number], problem.sensitivity.upper[number]
        low, high = extremes(system, weight, system.lower, system.upper)
        if low > value - levels[0] + 1e-6 or high < value + levels[1] - 1e-6:
            continue
        for count in range(1, size + 1):
            for coalition in itertools.combinations(known.firms, count):
                if set(known.has[cell]) <= set(coalition):
                    continue
                down, up = required(known.has[cell], coalition, *levels)
                low, high = extremes(system, weight, *seen(known, cells, system, place, coalition))
                if low > value - down + 1e-6 or high < value + up - 1e-6:
                    yield cell, coalition, low, high


@st.composite
def cases(
    draw: st.DrawFn, depth: st.SearchStrategy[int]
) -> tuple[Records, Problem, System, dict[Cell, int], list[Cell]]:
    known = draw(records())
    table, place = known.table(draw(depth))
    full, _ = known.table(9)
    sensitivity = PPercent(p=P)(full)
    problem = Problem(table, sensitivity=sensitivity)
    mask = draw(pattern(table, sensitivity.mask))
    system = System.of(problem, Release.from_suppression(problem, mask))
    assume(len(system) >= 2)
    cells = [cell for cell, number in place.items() if number in set(system.cells.tolist())]
    return known, problem, system, place, cells


@SLOW
@given(case=cases(st.just(9)), size=st.sampled_from([1, 1, 2]))
def test_insiders_are_those_that_brute_force_finds(case: Any, size: int) -> None:
    known, problem, system, place, cells = case
    truly = list(open_to(known, cells, system, place, problem, size))
    found = insiders(problem, system, coalition=size, names=True)
    assert {insider.cell for insider in found.found} == {place[cell] for cell, *_ in truly}
    assert all(insider.certain for insider in found.found)
    for insider in found.found:
        coalition = tuple(int(name) for name in insider.names)
        matches = [(low, high) for cell, who, low, high in truly if place[cell] == insider.cell and who == coalition]
        assert matches, "the coalition that is named does open the cell"
        assert np.allclose(matches[0], (insider.lower, insider.upper), atol=1e-6)
        exactly = [high - low < 1e-6 for cell, _, low, high in truly if place[cell] == insider.cell]
        assert insider.exact == any(exactly) or size > 1, (
            "of single insiders one who knows the cell exactly is the worst"
        )


@SLOW
@given(case=cases(st.integers(1, 3)), size=st.sampled_from([1, 1, 2]))
def test_short_lists_never_hide_an_insider_and_never_make_one_certain(case: Any, size: int) -> None:
    known, problem, system, place, cells = case
    assume(problem.table.contributors is not None and problem.table.contributors.depth >= size)
    truly = {place[cell] for cell, *_ in open_to(known, cells, system, place, problem, size)}
    found = insiders(problem, system, coalition=size)
    assert truly <= {insider.cell for insider in found.found}
    assert {insider.cell for insider in found.found if insider.certain} <= truly


@SLOW
@given(case=cases(st.just(9)))
def test_where_no_insider_is_found_nobody_is_estimated_closely(case: Any) -> None:
    """The rule's own promise: no respondent can bound another's contribution from above within p percent."""
    known, problem, system, place, cells = case
    opened = {insider.cell for insider in insiders(problem, system).found}
    for cell in cells:
        number = place[cell]
        if not problem.sensitivity.mask[number] or number in opened:
            continue
        at = int(np.flatnonzero(system.cells == number)[0])
        weight = np.eye(len(system))[at]
        low, high = extremes(system, weight, system.lower, system.upper)
        below, above = problem.sensitivity.lower[number], problem.sensitivity.upper[number]
        if low > system.truth[at] - below + 1e-6 or high < system.truth[at] + above - 1e-6:
            continue  # open to anybody
        for firm, own in known.has[cell].items():
            others = [amount for other, amount in known.has[cell].items() if other != firm]
            if others:
                _, high = extremes(system, weight, *seen(known, cells, system, place, (firm,)))
                assert high - own >= (1 + P / 100) * max(others) - 1e-6


# -- unions ------------------------------------------------------------------------------------------------------------


def bounds_of(system: System) -> tuple[NDArray[Any], NDArray[Any]]:
    """Every cell's interval, by linear programs."""
    every = [extremes(system, np.eye(len(system))[at], system.lower, system.upper) for at in range(len(system))]
    return np.array([low for low, _ in every]), np.array([high for _, high in every])


@QUICK
@given(known=records(), data=st.data())
def test_every_constant_pair_and_triple_is_found_and_nothing_else(known: Records, data: st.DataObject) -> None:
    table, _ = known.table(2)
    problem = Problem(table)
    mask = data.draw(pattern(table, np.zeros(len(table), np.bool_)))
    system = System.of(problem, Release.from_suppression(problem, mask))
    assume(2 <= len(system) <= 11)
    lower, upper = bounds_of(system)
    free = [at for at in range(len(system)) if upper[at] - lower[at] > 1e-6]
    truly = set()
    for size in (2, 3):
        for some in itertools.combinations(free, size):
            low, high = extremes(
                system, np.isin(np.arange(len(system)), some).astype(float), system.lower, system.upper
            )
            if high - low < 1e-6:
                truly.add(some)
    found = constant_sums(system, lower=lower, upper=upper)
    rows = [tuple(np.sort(found.cells.indices[a:b]).tolist()) for a, b in itertools.pairwise(found.cells.indptr)]
    assert len(set(rows)) == len(rows)
    assert truly == {row for row in rows if len(row) <= 3}
    for number, row in enumerate(rows):
        low, high = extremes(system, np.isin(np.arange(len(system)), row).astype(float), system.lower, system.upper)
        assert high - low < 1e-6
        weights = found.combination_of(number)
        total = sum(size * system.matrix[[at]].toarray()[0] for at, size in weights.items())
        assert [float(x) for at, x in enumerate(total) if at in free] == [float(at in row) for at in free]


def fails(known: Records, cells: Sequence[Cell]) -> bool:
    """Whether a sum fails threshold 3 or the p% rule, from the records."""
    merged: dict[int, int] = {}
    for cell in cells:
        for firm, amount in known.has[cell].items():
            merged[firm] = merged.get(firm, 0) + amount
    ranked = sorted(merged.values(), reverse=True)
    rest = sum(ranked[2:])
    return 0 < len(ranked) < 3 or rest * 100 < P * ranked[0]


@SLOW
@given(known=records(firms=14, most=4), depth=st.sampled_from([2, 3, 9]), data=st.data())
def test_unions_fail_as_the_records_say(known: Records, depth: int, data: st.DataObject) -> None:
    table, place = known.table(depth)
    rules = [Threshold(n=3), PPercent(p=P)]
    problem = Problem(table, rules)
    mask = data.draw(pattern(table, problem.sensitivity.mask))
    system = System.of(problem, Release.from_suppression(problem, mask))
    assume(2 <= len(system) <= 11)
    name = {number: cell for cell, number in place.items()}
    lower, upper = bounds_of(system)
    found = unions(problem, system, lower=lower, upper=upper)
    for union in found.failed:
        cells = [name[number] for number in union.cells]
        assert union.value == sum(sum(known.has[cell].values()) for cell in cells)
        count = len({firm for cell in cells for firm in known.has[cell]})
        assert union.fewest is not None
        assert union.most is not None
        assert union.fewest <= count <= union.most
        if union.certain:
            assert fails(known, cells)
    free = [at for at in range(len(system)) if upper[at] - lower[at] > 1e-6]
    told = [set(union.cells) for union in found.failed]
    for size in (2, 3):
        for some in itertools.combinations(free, size):
            low, high = extremes(
                system, np.isin(np.arange(len(system)), some).astype(float), system.lower, system.upper
            )
            numbers = system.cells[list(some)].tolist()
            if high - low < 1e-6 and fails(known, [name[number] for number in numbers]):
                assert any(union <= set(numbers) for union in told)
    if depth == 9:
        assert all(union.certain for union in found.failed)


# -- integers ----------------------------------------------------------------------------------------------------------


def cube_table(inner: NDArray[Any]) -> Table:
    """A flat table with all its margins."""
    full = inner
    for axis in range(inner.ndim):
        full = np.concatenate([full, full.sum(axis=axis, keepdims=True)], axis=axis)
    hierarchies = {f"d{axis}": Hierarchy.flat([str(i) for i in range(n)]) for axis, n in enumerate(inner.shape)}
    index = np.indices(full.shape).reshape(inner.ndim, -1).T
    codes = np.column_stack(
        [
            np.array([h.position("Total" if i == n else str(i)) for i in range(n + 1)], np.int32)[index[:, axis]]
            for axis, (h, n) in enumerate(zip(hierarchies.values(), inner.shape, strict=True))
        ]
    )
    return Table.from_codes(codes, full.ravel().astype(float), hierarchies)


def every_table(system: System) -> tuple[NDArray[Any], NDArray[Any]]:
    """The least and the most of each cell over all whole tables, listed one by one."""
    matrix, n = system.matrix.toarray().astype(np.int64), len(system)
    lower = np.ceil(system.lower).astype(np.int64)
    upper = np.floor(system.upper).astype(np.int64)
    low, high = (side(matrix * lower, matrix * upper) for side in (np.minimum, np.maximum))
    low_left, high_left = (np.cumsum(x[:, ::-1], axis=1)[:, ::-1] for x in (low, high))
    least, most, table = upper.copy(), lower.copy(), np.zeros(n, np.int64)

    def visit(at: int, rest: NDArray[Any]) -> None:
        if at == n:
            if not rest.any():
                np.minimum(least, table, out=least)
                np.maximum(most, table, out=most)
            return
        if (rest < low_left[:, at]).any() or (rest > high_left[:, at]).any():
            return
        for value in range(int(lower[at]), int(upper[at]) + 1):
            table[at] = value
            visit(at + 1, rest - matrix[:, at] * value)

    visit(0, system.rhs)
    return least, most


@st.composite
def small_cubes(draw: st.DrawFn) -> tuple[Table, NDArray[np.bool_]]:
    shape = draw(st.sampled_from([(2, 3), (3, 3), (2, 2, 2), (2, 2, 3)]))
    size = int(np.prod(shape))
    inner = np.array(draw(st.lists(st.integers(0, 3), min_size=size, max_size=size))).reshape(shape)
    table = cube_table(inner)
    mask = draw(st.lists(st.booleans(), min_size=len(table), max_size=len(table)))
    return table, ~table.is_total if draw(st.booleans()) else np.array(mask)


@QUICK
@given(case=small_cubes())
def test_integer_intervals_equal_enumeration(case: tuple[Table, NDArray[np.bool_]]) -> None:
    table, mask = case
    problem = Problem(table, upper=float(table.value.max()))
    system = System.of(problem, Release.from_suppression(problem, mask))
    assume(0 < len(system) <= 14)
    least, most = every_table(system)
    found = integer_intervals(system)
    assert found.proven.all()
    assert (found.lower == least).all()
    assert (found.upper == most).all()
    bounds = cube_bounds(system)
    assert bounds is not None
    assert (bounds[0] <= least).all()
    assert (bounds[1] >= most).all()


@QUICK
@given(
    edges=st.lists(
        st.tuples(st.integers(0, 4), st.integers(0, 4)).filter(lambda e: e[0] < e[1]),
        min_size=3,
        max_size=8,
        unique=True,
    ),
    chosen=st.data(),
)
def test_integers_where_linear_programs_have_halves(edges: list[tuple[int, int]], chosen: st.DataObject) -> None:
    """Each pair of cells may hold one together: the sum of an odd cycle is at most half its length, rounded down."""
    first = chosen.draw(st.integers(0, 4))
    value = {f"x{i}": float(i == first) for i in range(5)}
    equations = []
    for number, (one, other) in enumerate(edges):
        value[f"s{number}"] = 1.0 - value[f"x{one}"] - value[f"x{other}"]
        value[f"t{number}"] = 1.0
        equations.append(f"t{number} = x{one} + x{other} + s{number}")
    equations.append("all = " + " + ".join(f"x{i}" for i in range(5)))
    value["all"] = 1.0
    table = Table.from_equations(equations, value)
    hidden = np.array([not name.startswith("t") for name in value], dtype=np.bool_)
    problem = Problem(table, upper=np.array([5.0 if name == "all" else 1.0 for name in value]))
    system = System.of(problem, Release.from_suppression(problem, hidden))
    least, most = every_table(system)
    found = integer_intervals(system)
    assert found.proven.all()
    assert (found.lower == least).all()
    assert (found.upper == most).all()


@QUICK
@given(data=st.data())
def test_networks_are_recognised_by_their_determinants(data: st.DataObject) -> None:
    """What is called a network is totally unimodular: every square part has determinant −1, 0 or 1."""
    rows, columns = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 5))
    entries = data.draw(st.lists(st.sampled_from([0, 0, 1, -1]), min_size=rows * columns, max_size=rows * columns))
    matrix = np.array(entries).reshape(rows, columns)
    if is_network(sparse.csr_array(matrix)):
        for size in range(1, min(rows, columns) + 1):
            for some in itertools.combinations(range(rows), size):
                for others in itertools.combinations(range(columns), size):
                    assert abs(round(np.linalg.det(matrix[np.ix_(some, others)]))) <= 1


@QUICK
@given(
    shape=st.sampled_from([(2, 3), (3, 2, 2), (2, 2, 2, 2)]),
    data=st.data(),
)
def test_frechet_bounds_hold_and_are_exact_for_two_margins(shape: tuple[int, ...], data: st.DataObject) -> None:
    size = int(np.prod(shape))
    inner = np.array(data.draw(st.lists(st.integers(0, 9), min_size=size, max_size=size))).reshape(shape)
    axes = range(len(shape))
    kept = data.draw(
        st.lists(st.sets(st.sampled_from(list(axes)), min_size=1, max_size=len(shape) - 1), min_size=1, max_size=3)
    )
    margins = {tuple(sorted(keep)): inner.sum(axis=tuple(a for a in axes if a not in keep)) for keep in kept}
    lower, upper = frechet(margins, shape)
    assert (lower <= inner).all()
    assert (inner <= upper).all()
    if len(margins) == 2 and set().union(*margins) == set(axes):
        equations, totals = [], []
        for keep, values in margins.items():
            for index in np.ndindex(*values.shape):
                where = np.ones(shape, bool)
                for axis, i in zip(keep, index, strict=True):
                    where &= np.indices(shape)[axis] == i
                equations.append(where.ravel().astype(float))
                totals.append(float(values[index]))
        for at in range(size):
            cost = np.eye(size)[at]
            least = linprog(cost, A_eq=np.array(equations), b_eq=totals).fun
            most = -linprog(-cost, A_eq=np.array(equations), b_eq=totals).fun
            assert np.isclose(lower.ravel()[at], least, atol=1e-6)
            assert np.isclose(upper.ravel()[at], most, atol=1e-6)


def test_levels_given_without_rules_need_no_unions() -> None:
    table = cube_table(np.arange(1, 5).reshape(2, 2))
    mask = ~table.is_total
    problem = Problem(table, sensitivity=Sensitivity.of(mask, 1.0))
    found = unions(problem, System.of(problem, Release.from_suppression(problem, mask)))
    assert found.safe
    assert found.sums == 0
    assert "no rules" in found.searched
