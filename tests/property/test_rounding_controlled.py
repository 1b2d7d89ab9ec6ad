"""Controlled rounding of random tables of two to five dimensions: sums, windows, multiples, optima, bases, chance."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from oracle.counts import hierarchy, rounded
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release
from tablesafe.core.table import Table
from tablesafe.methods.round.bases import bases_of
from tablesafe.solve.program import SolveStatus


@st.composite
def tables(draw: st.DrawFn, least: int, most: int, trees: int) -> Table:
    """A table of so many dimensions, of which up to `trees` have a hierarchy; some inner cells are left out."""
    count = draw(st.integers(least, most))
    widest = {2: 4, 3: 3, 4: 2, 5: 2}[count]
    shapes = [draw(st.lists(st.integers(1, 2 if d < trees else 1), min_size=2, max_size=widest)) for d in range(count)]
    hierarchies = [hierarchy(shape) for shape in shapes]
    random = np.random.default_rng(draw(st.integers(0, 10**6)))
    rows = list(product(*(h.leaves for h in hierarchies)))
    values = random.poisson(draw(st.sampled_from([0.5, 3.0, 40.0])), len(rows)).astype(float)
    kept = random.random(len(rows)) < draw(st.sampled_from([1.0, 0.7]))
    kept[0] = True
    names = [f"d{i}" for i in range(count)]
    frame = pl.DataFrame({name: [row[i] for row in rows] for i, name in enumerate(names)} | {"value": values})
    return Table.from_cells(
        frame.filter(pl.Series(kept)),
        dimensions=dict(zip(names, hierarchies, strict=True)),
        missing_totals="compute",
    )


def beyond(table: Table, release: Release, bases: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """What holds for every controlled rounding; the steps of each cell beyond its neighbours."""
    values = release.values.astype(np.int64)
    assert (values == release.values).all()
    assert (values >= 0).all()
    assert (values % bases == 0).all()
    assert not (table.equations.astype(np.int64) @ values).any()
    assert ((release.lower <= table.value) & (table.value <= release.upper)).all()
    low, high = table.integers // bases * bases, -(-table.integers // bases) * bases
    steps: np.ndarray[Any, Any] = np.maximum(np.maximum(low - values, values - high), 0) // bases
    assert (release.upper - values == (steps + 1) * bases - 1).all()
    return steps


@given(tables(2, 5, trees=5), st.sampled_from([2, 3, 5, 10]), st.sampled_from(["absolute", "squared", "relative"]))
@settings(max_examples=6)
def test_tables_of_two_to_five_dimensions(table: Table, base: int, distance: str) -> None:
    release, said = rounded(Problem(table), base=base, distance=distance, time_limit_s=0.3)
    steps = beyond(table, release, np.full(len(table), base))
    multiple = table.integers % base == 0
    assert (release.values[multiple & (steps == 0)] == table.value[multiple & (steps == 0)]).all()
    assert bool(said) == bool(steps.any())
    assert release.solution is not None
    assert release.solution.bound <= release.solution.objective + 1e-9


@given(tables(2, 2, trees=1), st.sampled_from([2, 3, 5]))
@settings(max_examples=30)
def test_in_a_network_chance_alone_rounds_every_cell(table: Table, base: int) -> None:
    release, said = rounded(Problem(table), base=base, unbiased=True, seed=len(table))
    assert not beyond(table, release, np.full(len(table), base)).any()
    assert not said


@given(tables(2, 3, trees=3), st.sampled_from([(2, 4), (5, 10), (5, 20)]))
@settings(max_examples=12)
def test_a_coarser_base_on_top(table: Table, bases: tuple[int, int]) -> None:
    option = {"d0": (bases[1], bases[0])}
    release, _ = rounded(Problem(table), base=bases[0], bases=option, time_limit_s=0.5)
    beyond(table, release, bases_of(table, bases[0], option))


@given(tables(2, 3, trees=2), st.integers(0, 10**6))
@settings(max_examples=25)
def test_frozen_multiples_stay_and_withheld_cells_say_nothing(table: Table, seed: int) -> None:
    random = np.random.default_rng(seed)
    frozen = (table.integers % 5 == 0) & (random.random(len(table)) < 0.3)
    withheld = ~frozen & (random.random(len(table)) < 0.1)
    problem = Problem(table, frozen=frozen, suppressed=withheld)
    release, _ = rounded(problem, time_limit_s=0.5)
    assert (release.values[frozen] == table.value[frozen]).all()
    assert (release.suppressed == withheld).all()
    rows = np.asarray(abs(table.equations).astype(np.int64) @ withheld.astype(np.int64)) == 0
    values = np.where(withheld, 0, release.values).astype(np.int64)
    assert not (table.equations.astype(np.int64) @ values)[rows].any()
    assert ((release.lower <= table.value) & (table.value <= release.upper)).all()


@given(st.integers(0, 10**6), st.sampled_from([2, 3]))
@settings(max_examples=25)
def test_two_hierarchies_are_optimal_by_enumeration(seed: int, base: int) -> None:
    """Two hierarchical dimensions are no network: the linear program alone would not do."""
    random = np.random.default_rng(seed)
    names, tree = ["a", "b"], hierarchy([2, 1])
    rows = list(product(tree.leaves, tree.leaves))
    values = random.integers(0, 2 * base, len(rows)) * (random.random(len(rows)) < 0.7)
    frame = pl.DataFrame({n: [row[i] for row in rows] for i, n in enumerate(names)} | {"value": values.astype(float)})
    table = Table.from_cells(frame, dimensions=dict.fromkeys(names, tree), missing_totals="compute")
    low, above = table.integers // base, table.integers % base
    inner = np.flatnonzero(~table.is_total & (above > 0))
    choices = (np.arange(2 ** len(inner))[:, None] >> np.arange(len(inner))) & 1
    steps = np.where(table.is_total, 0, low)[None].repeat(len(choices), axis=0)
    steps[:, inner] += choices
    for _ in range(3):  # from the inner cells up
        for row, total in enumerate(table.totals):
            span = slice(table.equations.indptr[row], table.equations.indptr[row + 1])
            parts = [i for i in table.equations.indices[span] if i != total]
            steps[:, total] = steps[:, parts].sum(axis=1)
    fits = ((steps >= low) & (steps <= low + (above > 0))).all(axis=1)
    distance = np.abs(base * steps[fits] - table.integers).sum(axis=1)
    release, said = rounded(Problem(table), base=base)
    assert release.solution is not None
    assert release.solution.status == SolveStatus.OPTIMAL
    assert bool(said) == (not fits.any())
    if fits.any():
        assert release.solution.objective == distance.min()
