"""Hypercubes over hierarchies: they add up everywhere, have the room, and none is cheaper than the one found."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import tablesafe as ts
from oracle.attacker import naive
from seeds import fresh
from tablesafe.audit import hypercubes as in_audit
from tablesafe.audit.audit import audit
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release
from tablesafe.core.table import Table
from tablesafe.methods.suppress import hypercube_method as in_suppress
from tablesafe.methods.suppress.deviations import Room, Wanted
from tablesafe.methods.suppress.hypercubes import Cubes
from tablesafe.solve.hypercubes import Hypercubes

TREES = {
    "a": ts.Hierarchy.from_pairs([("A", "A1"), ("A", "A2"), ("A1", "a"), ("A1", "b"), ("A2", "c"), ("A2", "d")]),
    "b": ts.Hierarchy.from_pairs([("B", "p"), ("B", "q"), ("B", "r")]),
    "c": ts.Hierarchy.from_pairs([("C", "C1"), ("C", "z"), ("C1", "x"), ("C1", "y")]),
}


def firms(seed: int, records: int = 60) -> Table:
    """Few firms per cell, a heavy tail, some holdings: most fine cells are sensitive."""
    rng = np.random.default_rng(seed)
    frame = pl.DataFrame(
        {
            "a": rng.choice(list("abcd"), records),
            "b": rng.choice(list("pqr"), records),
            "c": rng.choice(list("xyz"), records),
            "turnover": np.round(rng.lognormal(3, 1.2, records), 1),
            "firm": [f"F{i}" for i in range(records)],
            "group": [f"G{i}" for i in rng.integers(0, records, records)],
        }
    )
    return ts.tabulate(frame, dimensions=TREES, value="turnover", respondent="firm", holding="group")


def every_cube(table: Table) -> list[np.ndarray]:
    """All deviations by a leaf or a pair of leaves in each dimension, as signs over the cells; by brute force."""
    place = {tuple(codes): cell for cell, codes in enumerate(map(tuple, table.cells().select(list(TREES)).rows()))}
    signs = []
    for hierarchy in TREES.values():
        above: dict[str, set[str]] = {}
        for leaf in hierarchy.leaves:
            chain, parts = {leaf}, {p: e.total for e in hierarchy.as_equations() for p in e.parts}
            while leaf in parts:
                leaf = parts[leaf]
                chain.add(leaf)
            above[min(chain, key=lambda code: hierarchy.leaves.index(code) if code in hierarchy.leaves else 99)] = chain
        single = [dict.fromkeys(chain, 1) for chain in above.values()]
        double = [
            {code: (code in above[i]) - (code in above[j]) for code in above[i] ^ above[j]}
            for i, j in product(above, above)
            if i != j
        ]
        signs.append([*single, *double])
    out = []
    for chosen in product(*signs):
        y = np.zeros(len(table))
        for codes in product(*(own.items() for own in chosen)):
            cell = place.get(tuple(code for code, _ in codes))
            if cell is None:
                break
            y[cell] = np.prod([sign for _, sign in codes])
        else:
            out.append(y)
    return out


@pytest.mark.parametrize("seed", range(6))
def test_none_is_cheaper_and_all_add_up(seed: int) -> None:
    table = firms(seed)
    rng = np.random.default_rng(seed)
    cubes = Hypercubes.of(list(table.dimensions.values()), table.codes)
    assert cubes is not None
    every = np.array(every_cube(table))
    assert not (table.equations.astype(np.int64) @ every.T).any()
    price, room = rng.integers(0, 50, len(table)).astype(float), rng.integers(1, 9, len(table)).astype(float)
    price[rng.random(len(table)) < 0.1] = np.inf
    for cell in range(len(table)):
        need = float(rng.integers(1, 5))
        usable = (every[:, cell] != 0) & ((every == 0) | (room >= need)).all(axis=1)
        costs = np.where(every[usable] != 0, price, 0.0).sum(axis=1)
        least = float(costs.min(initial=np.inf))
        found = cubes.cheapest(cell, need, price, room)
        if found is None:
            assert least == np.inf
            continue
        cells, signs = found
        y = np.zeros(len(table))
        y[cells] = signs
        assert len(np.unique(cells)) == len(cells)
        assert y[cell] == 1
        assert (room[cells] >= need).all()
        assert not (table.equations.astype(np.int64) @ y).any()
        assert price[cells].sum() == least


def test_what_is_no_tree_has_none() -> None:
    several = ts.Hierarchy.from_equations(["T = a + b + c", "T = d + e", "d = a + b"])
    assert Hypercubes.of([several], np.arange(len(several), dtype=np.int32)[:, None]) is None


@pytest.mark.parametrize("seed", [0, 1, *fresh(2, "audits with and without hypercubes")])
def test_the_audit_says_the_same_with_and_without_them(
    seed: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Proofs by hypercubes change no verdict: of outsiders, respondents and sums."""
    table = firms(seed)
    problem = Problem(table, rules=[ts.Threshold(n=3), ts.PPercent(p=10)])
    rng = np.random.default_rng(seed)
    release = Release.from_suppression(problem, problem.sensitivity.mask | (rng.random(len(table)) < 0.25))
    plain = audit(problem, release)
    monkeypatch.setattr(in_audit, "FEW", 0)
    boxed = audit(problem, release)
    quick = audit(problem, release, exact=False)
    for other in (boxed, quick):
        np.testing.assert_array_equal(other.protected, plain.protected)
        assert other.safe == plain.safe
        assert other.insiders is not None
        assert plain.insiders is not None
        assert {i.cell for i in other.insiders.found} == {i.cell for i in plain.insiders.found}
    assert boxed.certificate is not None
    boxed.certificate.save(tmp_path / "certificate.json.gz")
    ts.verify(tmp_path / "certificate.json.gz")


@pytest.mark.parametrize("seed", [0, 1, *fresh(2, "patterns of hypercubes")])
def test_patterns_of_hypercubes_are_safe(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the audit with respondents and sums, and by linear programs that share no code with it."""
    monkeypatch.setattr(in_suppress, "FEW", 0)
    monkeypatch.setattr(in_audit, "FEW", 0)
    problem = Problem(firms(seed, records=150), rules=[ts.Threshold(n=3), ts.PPercent(p=10)])
    release = ts.protect(problem, ts.Suppress(algorithm="modular"))
    monkeypatch.undo()
    findings = audit(problem, release)
    assert findings.safe, findings
    table, hidden = problem.table, np.flatnonzero(release.suppressed)
    matrix = table.equations[:, hidden].toarray().astype(float)
    rhs = matrix @ table.value[hidden]
    for cell in problem.sensitive[:: max(1, len(problem.sensitive) // 12)].tolist():
        at = int(np.searchsorted(hidden, cell))
        low, high = naive(matrix, rhs, np.zeros(len(hidden)), np.full(len(hidden), np.inf), at)
        value, levels = table.value[cell], problem.sensitivity
        assert low <= value - levels.lower[cell] + 1e-6
        assert high >= value + levels.upper[cell] - 1e-6


def test_a_level_that_no_hypercube_has_the_room_for_is_shared_out() -> None:
    table = ts.Table.from_cells(
        pl.DataFrame({"r": ["a", "a", "a", "b", "b", "b"], "c": list("xyzxyz"), "value": [100, 6, 7, 90, 8, 9]}),
        dimensions={"r": None, "c": None},
        missing_totals="compute",
    )
    cubes = Hypercubes.of(list(table.dimensions.values()), table.codes)
    assert cubes is not None
    inner = ~np.isin(np.arange(len(table)), table.totals)
    room = np.where(inner, table.value, 0.0)
    cell = int(np.flatnonzero(table.value == 100)[0])
    assert cubes.cheapest(cell, 10.0, np.zeros(len(table)), room) is None
    wanted = Wanted(cell, 1, 10.0, np.zeros(len(table)), Room(room, room), effort=1)
    together = Cubes(cubes).cheapest(wanted)
    assert together is not None
    assert set(table.value[together.cells].tolist()) == {100, 6, 7, 90, 8, 9}
    move = np.zeros(len(table))
    move[together.cells] = together.amount
    assert move[cell] == 10.0
    assert (np.abs(move) <= np.where(np.arange(len(table)) == cell, np.inf, room)).all()
    assert not (table.equations @ move).any()
    assert Cubes(cubes).cheapest(wanted._replace(effort=0)) is None
    assert Cubes(cubes).cheapest(wanted._replace(level=14.0)) is None
