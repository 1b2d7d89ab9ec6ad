"""Networks: recognised where a table is one, and flows as cheap as a linear program finds them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from oracle.suppression import TREE, product
from tablesafe.core.hierarchy import Hierarchy
from tablesafe.core.table import Table
from tablesafe.solve.network import Network, cheapest_circulation, network_of

DEEP = Hierarchy.from_pairs([*TREE, ("a1", "p"), ("a1", "q"), ("p", "p1"), ("p", "p2"), ("b1", "s"), ("b1", "t")])
SHALLOW = Hierarchy.from_pairs(TREE)
FLAT = Hierarchy.flat(["x", "y", "z"])


def table_of(*hierarchies: Hierarchy) -> Table:
    return product(hierarchies, np.random.default_rng(5))


def incidence(network: Network) -> np.ndarray:
    """The network as equations: what flows into each node but the last, less what flows out."""
    matrix = np.zeros((network.nodes, len(network.tail)))
    for arc, (tail, head) in enumerate(zip(network.tail, network.head, strict=True)):
        matrix[tail, arc] -= 1
        matrix[head, arc] += 1
    return matrix[:-1]


@pytest.mark.parametrize(
    "dimensions", [(FLAT,), (FLAT, FLAT), (DEEP, FLAT), (FLAT, DEEP), (SHALLOW, FLAT), (DEEP,)], ids=str
)
def test_circulations_are_exactly_the_solutions_of_the_equations(dimensions: tuple[Hierarchy, ...]) -> None:
    equations = table_of(*dimensions).equations
    network = network_of(equations)
    assert network is not None
    one, other = equations.toarray().astype(float), incidence(network)
    rank = np.linalg.matrix_rank(one)
    assert np.linalg.matrix_rank(other) == rank
    assert np.linalg.matrix_rank(np.vstack([one, other])) == rank


@pytest.mark.parametrize("dimensions", [(SHALLOW, SHALLOW), (FLAT, FLAT, FLAT), (DEEP, SHALLOW)], ids=str)
def test_what_is_no_network_is_refused(dimensions: tuple[Hierarchy, ...]) -> None:
    assert network_of(table_of(*dimensions).equations) is None


def test_cells_without_equations_move_alone() -> None:
    network = network_of(np.zeros((0, 2)))
    assert network is not None
    ones = np.ones(2)
    assert cheapest_circulation(network, 1, -1.0, ones, ones, ones, ones) == pytest.approx([0.0, -1.0])


@settings(max_examples=60)
@given(st.integers(0, 2**32 - 1), st.sampled_from([(FLAT, FLAT), (DEEP, FLAT)]))
def test_flows_cost_what_the_linear_program_says(seed: int, dimensions: tuple[Hierarchy, ...]) -> None:
    random = np.random.default_rng(seed)
    matrix = table_of(*dimensions).equations.toarray().astype(float)
    n = matrix.shape[1]
    network = network_of(matrix)
    assert network is not None
    live = random.random(n) < 0.8
    up, down = (random.integers(0, 5, n) * 0.5 * live for _ in range(2))
    price_up, price_down = random.random(n) * random.integers(0, 2, n), random.random(n)
    arc, amount = int(random.integers(n)), float(random.choice([-2.0, -1.0, 1.0, 2.5]))
    flow = cheapest_circulation(network, arc, amount, up, down, price_up, price_down)
    bounds = [(0.0, most) for most in (*up, *down)]
    bounds[arc], bounds[n + arc] = (max(amount, 0.0),) * 2, (max(-amount, 0.0),) * 2
    cost = np.concatenate([price_up, price_down])
    cost[[arc, n + arc]] = 0.0
    answer = linprog(cost, A_eq=np.hstack([matrix, -matrix]), b_eq=np.zeros(len(matrix)), bounds=bounds, method="highs")
    if flow is None:
        assert answer.status == 2
        return
    others = np.arange(n) != arc
    assert matrix @ flow == pytest.approx(np.zeros(len(matrix)), abs=1e-9)
    assert (flow[others] <= up[others] + 1e-9).all()
    assert (flow[others] >= -down[others] - 1e-9).all()
    paid = np.maximum(flow, 0) @ (price_up * others) + np.maximum(-flow, 0) @ (price_down * others)
    assert paid == pytest.approx(answer.fun, abs=1e-7)
