"""Boxes against every box there is, one after the other."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from tablesafe.core.equations import Floats
from tablesafe.core.hierarchy import Hierarchy
from tablesafe.core.table import Table
from tablesafe.solve.boxes import DIRECTIONS, Space, System, cheapest_box
from tablesafe.work.budget import Budget

LETTERS = "abcdefghij"


def a_table(sizes: list[int]) -> Table:
    """A table without hierarchies, with all its totals."""
    dimensions = {f"d{i}": Hierarchy.flat(list(LETTERS[:n]), total="T") for i, n in enumerate(sizes)}
    codes = [[*LETTERS[:n], "T"] for n in sizes]
    cells = list(product(*codes))
    value = [float(np.prod([n if code == "T" else 1 for code, n in zip(cell, sizes, strict=True)])) for cell in cells]
    frame: dict[str, object] = {name: [cell[i] for cell in cells] for i, name in enumerate(dimensions)}
    return Table.from_cells(frame | {"value": value}, dimensions=dimensions)


def cheapest_of_all(table: Table, up: Floats, down: Floats, cell: int, sign: int, level: float, price: Floats) -> float:
    """The price of the cheapest box, by looking at every opposite corner."""
    codes = table.codes
    total = np.array([int(hierarchy.is_total.argmax()) for hierarchy in table.dimensions.values()])
    at = {tuple(code): i for i, code in enumerate(codes.tolist())}
    best = np.inf
    for other in codes.tolist():
        if any(a == b for a, b in zip(codes[cell].tolist(), other, strict=True)):
            continue
        cost = 0.0
        for turns in product((0, 1), repeat=len(other)):
            corner = [b if turn else a for a, b, turn in zip(codes[cell].tolist(), other, turns, strict=True)]
            move = sign
            for direction, turn in enumerate(turns):
                with_total = total[direction] in (other[direction], codes[cell, direction])
                move *= 1 if not turn or with_total else -1
            one = at[tuple(corner)]
            if (up if move > 0 else down)[one] < level:
                cost = np.inf
            cost += price[one] if any(turns) else 0.0
        best = min(best, cost)
    return best


@settings(max_examples=20)
@given(data=st.data(), seed=st.integers(0, 10**6))
def test_the_box_is_the_cheapest_of_all(data: st.DataObject, seed: int) -> None:
    sizes = data.draw(st.lists(st.integers(2, 4), min_size=1, max_size=4).filter(lambda some: np.prod(some) < 100))
    table, random = a_table(sizes), np.random.default_rng(seed)
    n = len(table)
    up, down = random.integers(0, 9, n).astype(float), random.integers(0, 9, n).astype(float)
    price = np.where(random.random(n) < 0.2, np.inf, random.integers(0, 50, n).astype(float))
    system = System.of(sparse.csr_array(table.equations.astype(np.float64)), up, down)
    space, work, boxes = Space.over(system), Budget(), 0
    for cell, sign in product(random.integers(0, n, 3).tolist(), (1, -1)):
        level = float(random.integers(1, 4))
        least = cheapest_of_all(table, up, down, cell, sign, level, price)
        found = cheapest_box(system, space, cell, sign, level, price, work)
        if found is None:
            assert least == np.inf
            continue
        boxes += 1
        cells, amount = found
        move = np.zeros(n)
        move[cells] = amount
        assert len(np.unique(cells)) == 2 ** len(sizes)
        assert not (table.equations @ move).any()
        assert move[cell] == sign * level
        assert (move <= up).all()
        assert (move >= -down).all()
        assert price[cells[cells != cell]].sum() == pytest.approx(least)
    assert boxes == 0 or work.spent > 0  # what has no room, or no partner to move, is told without a search


def test_the_totals_of_a_hierarchy_have_no_box_and_its_leaves_do() -> None:
    tree = Hierarchy.from_equations("T = P + Q; P = a + b + c; Q = d + e + f")
    codes = ["T", "P", "Q", *"abcdef"]
    worth = {"T": 6.0, "P": 3.0, "Q": 3.0}
    cells = list(product(codes, codes))
    frame = {
        "r": [r for r, _ in cells], "c": [c for _, c in cells],
        "value": [worth.get(r, 1.0) * worth.get(c, 1.0) for r, c in cells],
    }  # fmt: skip
    table = Table.from_cells(frame, dimensions={"r": tree, "c": tree})
    room = np.full(len(table), 100.0)
    system = System.of(sparse.csr_array(table.equations.astype(np.float64)), room, room)
    space = Space.over(system)
    names = [tuple(row) for row in table.cells().select("r", "c").rows()]
    for i, (r, c) in enumerate(names):
        found = cheapest_box(system, space, i, 1, 1.0, np.ones(len(table)))
        leaves = r.islower() and c.islower()
        assert (found is not None) == leaves
        if found is not None:
            assert {"abc" if code in "abc" else "def" for cell in found[0] for code in names[cell]} <= {
                "abc" if r in "abc" else "def", "abc" if c in "abc" else "def",
            }  # fmt: skip


def test_a_cell_in_very_many_equations_has_no_box() -> None:
    rows = sparse.csr_array(np.ones((DIRECTIONS + 1, 2)))
    system = System.of(rows, np.ones(2), np.ones(2))
    assert cheapest_box(system, Space.over(system), 0, 1, 1.0, np.ones(2)) is None


@given(seed=st.integers(0, 10**6), lines=st.integers(2, 3))
def test_in_equations_that_are_no_table_a_box_still_adds_up(seed: int, lines: int) -> None:
    random = np.random.default_rng(seed)
    m, n = 6, 14
    dense = np.zeros((m, n))
    for cell in range(n):
        dense[random.choice(m, lines, replace=False), cell] = random.choice([-1.0, 1.0], lines)
    system = System.of(sparse.csr_array(dense), np.full(n, 3.0), np.full(n, 3.0))
    space = Space.over(system)
    for cell in range(n):
        found = cheapest_box(system, space, cell, 1, 2.0, random.random(n))
        if found is not None:
            move = np.zeros(n)
            np.add.at(move, found[0], found[1])
            assert not (dense @ move).any()
            assert move[cell] == 2.0
            assert np.abs(move).max() <= 3.0
