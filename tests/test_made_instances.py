"""What tests of the benchmark instances show, on instances made by seed: a fresh clone tests the same code."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

import tablesafe as ts
from oracle.attacker import naive
from oracle.counts import rounded
from oracle.made import SHAPES, made
from oracle.suppression import open_cells
from seeds import fresh
from tablesafe.audit.audit import audit
from tablesafe.audit.intervals import exact_intervals
from tablesafe.audit.system import System
from tablesafe.core.errors import InvalidProblem
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release
from tablesafe.tauargus.microdata import read_microdata
from tablesafe.verify import verify

CASES = [(shape, seed) for shape in SHAPES for seed in fresh(2, f"made instances, {shape}")]


@pytest.fixture(scope="module", params=CASES, ids=str)
def problem(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Problem:
    """An instance, as it comes back from a file."""
    path = tmp_path_factory.mktemp("made") / "made.jj"
    ts.write_jj(made(*request.param), path)
    return ts.read_jj(path)


def pattern(problem: Problem, share: float) -> np.ndarray:
    random = np.random.default_rng(len(problem.table))
    return problem.sensitivity.mask | ((random.random(len(problem.table)) < share) & ~problem.frozen)


@pytest.mark.parametrize(("shape", "seed"), CASES)
def test_a_file_says_what_the_problem_is(shape: str, seed: int, tmp_path: Path) -> None:
    problem = made(shape, seed)
    path = tmp_path / "made.jj.gz"
    ts.write_jj(problem, path)
    again = ts.read_jj(path)
    for name in ("lower", "upper", "cost", "frozen"):
        assert (getattr(again, name) == getattr(problem, name)).all(), name
    assert (again.table.value == problem.table.value).all()
    assert (again.sensitivity.mask == problem.sensitivity.mask).all()
    assert (again.sensitivity.upper == problem.sensitivity.upper).all()
    assert abs(again.table.equations).sum() == abs(problem.table.equations).sum()
    assert not again.table.residual().any()


@pytest.mark.parametrize("algorithm", ["sequential", "optimal", "modular"])
def test_a_pattern_is_safe_and_its_bound_holds(problem: Problem, algorithm: str) -> None:
    try:
        release = ts.Suppress(algorithm=algorithm, time_limit_s=1).protect(problem)  # type: ignore[arg-type]
    except InvalidProblem:
        assert open_cells(problem, ~problem.frozen), "not even withholding everything would have done"
        return
    assert audit(problem, release).safe
    assert open_cells(problem, release) == []
    assert release.solution is not None
    assert release.solution.bound <= release.solution.objective * (1 + 1e-9)
    added = release.suppressed & ~problem.sensitivity.mask
    assert release.solution.objective == pytest.approx(problem.cost[added].sum())


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9])
def test_intervals_are_those_of_naive_linear_programs(problem: Problem, share: float) -> None:
    system = System.of(problem, Release.from_suppression(problem, pattern(problem, share)))
    wanted = np.arange(len(system))[:: max(1, len(system) // 4)]
    found = exact_intervals(system, wanted)
    for i, cell in enumerate(wanted.tolist()):
        ends = naive(system.matrix.astype(float), system.rhs.astype(float), system.lower, system.upper, cell)
        np.testing.assert_allclose([found.lower[i], found.upper[i]], ends, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("share", [0.3, 0.9])
def test_what_is_protected_is_proved(problem: Problem, tmp_path: Path, share: float) -> None:
    release = Release.from_suppression(problem, pattern(problem, share))
    findings = audit(problem, release, insiders=False, unions=False)
    open_by_programs = open_cells(problem, release)
    assert findings.cells[~findings.protected].tolist() == open_by_programs
    assert findings.certificate is not None
    findings.certificate.save(tmp_path / "certificate.json.gz")
    release.frame().write_csv(tmp_path / "release.csv")
    found = verify(tmp_path / "certificate.json.gz", release=tmp_path / "release.csv")
    assert found.protected == len(findings.cells) - len(open_by_programs)


def test_a_change_adds_up_and_moves_every_sensitive_cell_far_enough(problem: Problem) -> None:
    release = ts.Adjust(cost="inverse", time_limit_s=1).protect(problem)
    moved = np.rint(release.values).astype(np.int64) - problem.table.integers
    levels = problem.sensitivity
    assert not (problem.table.equations.astype(np.int64) @ moved).any()
    assert ((moved >= levels.upper) | (-moved >= levels.lower))[levels.mask].all()
    assert not moved[problem.frozen].any()


def test_a_rounding_adds_up_around_the_truth(problem: Problem) -> None:
    release, _ = rounded(problem, base=5, time_limit_s=1.0)
    values = np.rint(release.values).astype(np.int64)
    assert (values % 5 == 0).all()
    assert not (problem.table.equations.astype(np.int64) @ values).any()
    assert ((release.lower <= problem.table.value) & (problem.table.value <= release.upper)).all()


META = """region 1 2
  <RECODEABLE>
  <HIERARCHICAL>
  <HIERCODELIST> "region.hrc"
  <HIERLEADSTRING> "@"
size 4 1
  <RECODEABLE>
turnover 6 8
  <NUMERIC>
group 15 4
  <HOLDING>
"""


@pytest.mark.parametrize("seed", fresh(3, "made microdata"))
def test_fixed_width_microdata_give_the_table_of_their_records(seed: int, tmp_path: Path) -> None:
    """As τ-ARGUS's own samples do: every value, every holding, every cell of the hierarchy."""
    random, n = np.random.default_rng(seed), 300
    records = pl.DataFrame(
        {
            "region": random.choice(["N1", "N2", "N3", "S1", "S2"], n),
            "size": random.choice(["1", "2", "3"], n),
            "turnover": np.ceil(random.lognormal(4, 1.5, n)).astype(np.int64),
            "group": [f"g{number:03d}" for number in random.integers(0, 120, n)],
        }
    )
    lines = [f"{r} {s} {t:>8} {g}" for r, s, t, g in records.rows()]
    (tmp_path / "d.asc").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (tmp_path / "d.rda").write_text(META, encoding="utf-8")
    (tmp_path / "region.hrc").write_text("N\n@N1\n@N2\n@N3\nS\n@S1\n@S2\n", encoding="utf-8")
    data = read_microdata(tmp_path / "d.asc", dimensions=["region", "size"])
    assert data.holding == "group"
    table = ts.tabulate(data.frame, dimensions=data.dimensions, value="turnover", holding=data.holding, largest=2)
    whole = records.with_columns(top=pl.col("region").str.slice(0, 1))
    for row in table.cells().iter_rows(named=True):
        chosen = whole
        if row["region"] != "Total":
            chosen = chosen.filter(pl.col("top" if len(row["region"]) == 1 else "region") == row["region"])
        if row["size"] != "Total":
            chosen = chosen.filter(pl.col("size") == row["size"])
        cell = table.index(region=row["region"], size=row["size"])
        assert table.value[cell] == chosen["turnover"].sum()
        by_holding = chosen.group_by("group").agg(pl.col("turnover").sum())["turnover"].sort(descending=True)
        assert table.largest(1)[cell, 0] == by_holding[0]
