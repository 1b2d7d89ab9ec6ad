"""Findings: who is protected, who is open, by how much and how; and what the odd cases look like."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from tablesafe.audit.audit import audit
from tablesafe.audit.verdict import How
from tablesafe.core.errors import InvalidInput, InvalidOption, InvalidRelease
from tablesafe.core.hierarchy import Hierarchy
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release, Status
from tablesafe.core.sensitivity import Sensitivity
from tablesafe.core.table import Table
from tablesafe.rules.counts import Threshold
from tablesafe.verify import verify


def table_of(values: Any) -> Table:
    """A flat table with rows 1, 2, … and columns 1, 2, …, and all totals."""
    values = np.asarray(values, dtype=float)
    rows = [(str(i + 1), str(j + 1)) for i, j in np.ndindex(values.shape)]
    frame = pl.DataFrame({"row": [r for r, _ in rows], "column": [c for _, c in rows], "value": values.ravel()})
    return Table.from_cells(frame, dimensions=["row", "column"], missing_totals="compute")


def cells_of(table: Table, *places: str) -> np.ndarray[Any, Any]:
    """A mask of cells given as "12" for row 1, column 2."""
    mask = np.zeros(len(table), dtype=np.bool_)
    mask[[table.index(row=place[0], column=place[1]) for place in places]] = True
    return mask


CYCLE = ("11", "12", "21", "22")


def cycle_problem(level: float, **options: Any) -> tuple[Problem, Release]:
    """X = 10 can fall by 8 and rise by 5 (Cox's first cycle)."""
    table = table_of([[10, 5], [7, 8]])
    problem = Problem(table, sensitivity=Sensitivity.of(cells_of(table, "11"), level), **options)
    return problem, Release.from_suppression(problem, cells_of(table, *CYCLE))


# -- the verdict -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("certify", [True, False])
@pytest.mark.parametrize(
    ("level", "protected"), [(0, True), (5, True), (5.000000001, False), (4.999999999, True), (6, False), (9, False)]
)
def test_a_bound_that_meets_its_level_exactly_is_protected_and_a_billionth_short_is_open(
    level: float, protected: bool, exact: bool, certify: bool
) -> None:
    findings = audit(*cycle_problem(level), exact=exact, certify=certify)
    assert findings.safe is protected
    assert bool(findings.open) is not protected


@pytest.mark.parametrize(("bound", "protected"), [(785.4, True), (785.3999999999, False), (785.39, False)])
def test_a_fractional_level_is_met_exactly_by_a_fractional_bound(bound: float, protected: bool) -> None:
    """Ten percent of 714 is 71.4, which no float holds; the attacker's prior says at most 785.4."""
    table = table_of([[714, 500], [600, 900]])
    mask = cells_of(table, "11")
    upper = np.where(mask, bound, np.inf)
    problem = Problem(table, sensitivity=Sensitivity.of(mask, 0.1 * table.value), upper=upper)
    findings = audit(problem, Release.from_suppression(problem, cells_of(table, *CYCLE)))
    assert findings.safe is protected
    assert protected or findings.open[0].how in {How.UPPER, How.UNPROVED}


@pytest.mark.parametrize(("sliding", "protected"), [(13, True), (13.000001, False), (12, True)])
def test_a_sliding_level_asks_for_width_only(sliding: float, protected: bool) -> None:
    table = table_of([[10, 5], [7, 8]])
    sensitivity = Sensitivity.of(cells_of(table, "11"), sliding=sliding)
    problem = Problem(table, sensitivity=sensitivity)
    findings = audit(problem, Release.from_suppression(problem, cells_of(table, *CYCLE)))
    assert findings.safe is protected
    assert protected or findings.open[0].how is How.WIDTH


def test_without_levels_a_cell_must_only_not_be_known() -> None:
    table = table_of([[10, 5], [7, 8]])
    problem = Problem(table, sensitivity=Sensitivity.of(cells_of(table, "11", "12")))
    assert audit(problem, Release.from_suppression(problem, cells_of(table, *CYCLE))).safe
    alone = audit(problem, Release.from_suppression(problem, cells_of(table, "11", "12", "21")))
    assert [opening.how for opening in alone.open] == [How.EXACT, How.EXACT]
    assert set(alone.disclosed_exactly) == set(problem.sensitive)


@settings(max_examples=12, deadline=None)
@given(seed=st.integers(0, 10**9))
def test_intervals_and_verdict_are_those_of_naive_linear_programs(seed: int) -> None:
    random = np.random.default_rng(seed)
    table = table_of(random.integers(0, 40, random.integers(2, 5, 2)))
    n = len(table)
    sensitive = random.random(n) < 0.3
    levels = random.integers(0, 12, n).astype(float)
    problem = Problem(table, sensitivity=Sensitivity.of(sensitive, levels, levels + 1))
    mask = sensitive | (random.random(n) < 0.5)
    findings = audit(problem, Release.from_suppression(problem, mask), cells="all")
    known = np.where(mask, np.nan, table.value)
    bounds = np.column_stack([np.where(mask, 0, known), np.where(mask, np.inf, known)])
    zero = np.zeros(table.equations.shape[0])
    for cell, low, high, good in zip(findings.cells, findings.lower, findings.upper, findings.protected, strict=True):
        for sign, side in ((1, low), (-1, high)):
            objective = np.zeros(n)
            objective[cell] = sign
            answer = linprog(objective, A_eq=table.equations.astype(float), b_eq=zero, bounds=bounds)
            assert (answer.status == 3 and side == -sign * np.inf) or side == pytest.approx(sign * answer.fun, abs=1e-6)
        value, level = table.value[cell], levels[cell]
        reaches = low <= value - level + 1e-7 and high >= value + level + 1 - 1e-7
        assert good == (reaches or not sensitive[cell])


@settings(max_examples=40, deadline=None)
@given(values=st.lists(st.integers(0, 4), min_size=6, max_size=6), hidden=st.sets(st.integers(0, 5), min_size=2))
def test_flat_tables_agree_with_enumeration_of_all_tables_of_whole_numbers(values: list[int], hidden: set[int]) -> None:
    """Flat two-dimensional tables have whole vertices, so all whole tables give the same intervals."""
    inner = np.array(values).reshape(2, 3)
    table = table_of(inner)
    places = [f"{i // 3 + 1}{i % 3 + 1}" for i in sorted(hidden)]
    mask = cells_of(table, *places)
    problem = Problem(table, sensitivity=Sensitivity.of(mask))
    findings = audit(problem, Release.from_suppression(problem, mask))
    rows, columns, shown = inner.sum(axis=1), inner.sum(axis=0), [i for i in range(6) if i not in hidden]
    first = [(a, b, rows[0] - a - b) for a, b in product(range(int(rows[0]) + 1), repeat=2)]
    tables = [np.concatenate([top, columns - np.array(top)]) for top in first]
    possible = np.array([t for t in tables if (t >= 0).all() and (t[shown] == inner.ravel()[shown]).all()])
    for at, place in zip(sorted(hidden), places, strict=True):
        entry = np.flatnonzero(findings.cells == table.index(row=place[0], column=place[1]))[0]
        found = (findings.lower[entry], findings.upper[entry])
        assert found == pytest.approx((possible[:, at].min(), possible[:, at].max()))


# -- odd cases ---------------------------------------------------------------------------------------------------------


def test_nothing_sensitive_is_safe() -> None:
    table = table_of([[1, 2], [3, 4]])
    problem = Problem(table)
    findings = audit(problem, Release.from_suppression(problem, cells_of(table, *CYCLE)))
    assert findings.safe
    assert findings.cells.size == 0
    assert "no rule was applied" in findings.text()
    assert findings.frame().height == 0


def test_a_sensitive_cell_left_in_the_open_is_open() -> None:
    table = table_of([[1, 2], [3, 4]])
    problem = Problem(table, sensitivity=Sensitivity.of(cells_of(table, "11"), 1.0))
    findings = audit(problem, Release.from_suppression(problem, np.zeros(len(table), dtype=np.bool_)))
    assert [(opening.how, opening.short) for opening in findings.open] == [(How.PUBLISHED, 1.0)]
    assert findings.disclosed_exactly.size == 0
    assert "(row=1, column=1): published" in findings.text()


def test_everything_withheld_is_safe_even_with_huge_levels() -> None:
    table = table_of([[1, 2], [3, 4]])
    everything = np.ones(len(table), dtype=np.bool_)
    lower = Sensitivity.of(everything, table.value, np.full(len(table), 1e9))
    problem = Problem(table, sensitivity=lower)
    assert audit(problem, Release.from_suppression(problem, everything)).safe


def test_a_level_that_the_prior_bounds_do_not_allow_is_open_by_the_difference() -> None:
    problem, release = cycle_problem(4, upper=42.0)
    assert audit(problem, release).safe
    table = problem.table
    upper = np.where(cells_of(table, "11"), 11.0, np.inf)
    narrow = problem.replace(upper=upper)
    findings = audit(narrow, Release.from_suppression(narrow, cells_of(table, *CYCLE)))
    assert [(opening.how, opening.short) for opening in findings.open] == [(How.UPPER, 3.0)]


def test_a_release_of_another_problem_is_refused() -> None:
    problem, release = cycle_problem(2)
    other = table_of([[10, 5], [7, 8]])
    renamed = Table.from_cells(
        other.cells().with_columns(pl.col("row").replace("2", "3")), dimensions=["row", "column"]
    )
    foreign = Problem(renamed)
    with pytest.raises(InvalidRelease, match="another problem"):
        audit(problem, Release.from_suppression(foreign, np.zeros(len(renamed), dtype=np.bool_)))
    small = Problem(table_of([[1, 2]]))
    with pytest.raises(InvalidRelease, match="cells"):
        audit(problem, Release.from_suppression(small, np.zeros(len(small.table), dtype=np.bool_)))
    different = Problem(table_of([[11, 5], [7, 8]]))
    with pytest.raises(InvalidRelease, match="false about cell"):
        audit(problem, Release.from_suppression(different, np.zeros(len(different.table), dtype=np.bool_)))
    with pytest.raises(InvalidOption):
        audit(problem, release, cells="some")  # type: ignore[arg-type]


def test_a_rounded_release_hides_a_sensitive_cell_in_its_window() -> None:
    table = table_of([[11, 4], [7, 9]])
    problem = Problem(table, sensitivity=Sensitivity.of(cells_of(table, "11"), 1.0))
    rounded = 5.0 * np.rint(table.value / 5)
    release = Release(
        table, rounded, np.maximum(rounded - 2.5, 0), rounded + 2.5,
        np.full(len(table), Status.CHANGED, dtype=np.uint8), "rounding",
    )  # fmt: skip
    findings = audit(problem, release)
    assert findings.safe
    assert findings.lower[0] <= 10
    assert findings.upper[0] >= 12
    tight = audit(problem.replace(sensitivity=Sensitivity.of(cells_of(table, "11"), 2.0)), release)
    assert How.UPPER in {opening.how for opening in tight.open}  # 11 + 2 lies beyond the window around 10


# -- how it is told ----------------------------------------------------------------------------------------------------


@settings(max_examples=12, deadline=None)
@given(seed=st.integers(0, 10**9))
def test_every_finite_bound_has_an_explanation_that_proves_it(seed: int) -> None:
    random = np.random.default_rng(seed)
    table = table_of(random.integers(0, 9, random.integers(2, 5, 2)))
    mask = random.random(len(table)) < 0.5
    problem = Problem(table, sensitivity=Sensitivity.of(mask))
    findings = audit(problem, Release.from_suppression(problem, mask))
    for cell, low, high in zip(findings.cells.tolist(), findings.lower, findings.upper, strict=True):
        for side, bound in (("lower", low), ("upper", high)):
            why = findings.explain(cell, side)  # type: ignore[arg-type]
            if not np.isfinite(bound):
                assert why is None
                continue
            assert why is not None
            assert float(why.bound) == pytest.approx(bound, abs=1e-6)
            value = sum((c * int(table.integers[k]) for k, c in why.known.items()), Fraction(0))
            value += sum((c * b for c, b in why.limited.values()), Fraction(0))
            assert value == why.bound
            assert set(why.known) <= set(np.flatnonzero(~mask).tolist())
            assert set(why.limited) <= set(np.flatnonzero(mask).tolist())
            assert why.relation == ("=" if not why.limited else "≤" if side == "upper" else "≥")


def test_a_cell_given_away_by_a_chain_is_spelled_out_in_the_users_codes() -> None:
    region = Hierarchy.from_pairs([("T", "N"), ("T", "S"), ("N", "n1"), ("N", "n2"), ("S", "s1"), ("S", "s2")])
    frame = pl.DataFrame({"region": ["n1", "n2", "s1", "s2"], "value": [1.0, 2.0, 3.0, 4.0]})
    table = Table.from_cells(frame, dimensions={"region": region}, missing_totals="compute")
    mask = np.zeros(len(table), dtype=np.bool_)
    mask[[table.index(region="N"), table.index(region="n1")]] = True
    problem = Problem(table, sensitivity=Sensitivity.of(mask))
    findings = audit(problem, Release.from_suppression(problem, mask))
    why = findings.explain(table.index(region="n1"))
    assert why is not None
    assert why.text == "(region=n1) = (region=T) − (region=n2) − (region=S)"
    assert len(why.steps) == 2
    assert why.text in findings.text()


def test_a_bound_names_the_cells_whose_limits_it_uses() -> None:
    problem, release = cycle_problem(9)
    findings = audit(problem, release)
    why = findings.explain(int(findings.cells[0]), "upper")
    assert why is not None
    assert why.text == "(row=1, column=1) ≤ (row=1, column=Total), since (row=1, column=2) ≥ 0"


def test_asking_about_a_cell_that_was_not_audited_says_what_to_do() -> None:
    findings = audit(*cycle_problem(2))
    with pytest.raises(InvalidInput, match="cells='all'"):
        findings.explain(findings.problem.table.index())


def test_frame_json_and_text_agree() -> None:
    problem, release = cycle_problem(6)
    findings = audit(problem, release, cells="all")
    frame = findings.frame()
    assert frame.height == 4
    assert frame.filter(~pl.col("protected")).height == 1
    row = frame.filter("sensitive").row(0, named=True)
    assert (row["from"], row["to"], row["required from"], row["required to"]) == (2, 15, 4, 16)
    assert (row["open"], row["short"]) == ("upper", 1)
    told = json.loads(findings.to_json())
    assert told["safe"] is False
    assert told["open"][0]["because"]
    assert len(told["cells"]) == 4
    assert findings.text().startswith(
        "OPEN: 0 of 1 sensitive cells are protected from outsiders (4 of 9 cells are withheld)."
    )
    assert "must reach up to 16, 1 short" in findings.text()


def test_infinite_bounds_are_null_in_json() -> None:
    table = table_of([[1, 2], [3, 4]])
    everything = np.ones(len(table), dtype=np.bool_)
    problem = Problem(table, sensitivity=Sensitivity.of(everything))
    told = json.loads(audit(problem, Release.from_suppression(problem, everything)).to_json())
    assert told["safe"] is True
    assert {row["to"] for row in told["cells"]} == {None}


# -- insiders and sums -------------------------------------------------------------------------------------------------


def contributed() -> Table:
    """Two cells of one contributor each, which stand in one row; all other cells have many."""
    cells = {
        ("1", "a"): {"A": 50.0},
        ("1", "b"): {"B": 30.0},
        ("1", "c"): {f"x{i}": 5.0 for i in range(10)},
        ("2", "a"): {f"y{i}": 6.0 for i in range(6)},
        ("2", "b"): {f"z{i}": 4.0 for i in range(7)},
        ("2", "c"): {f"w{i}": 5.0 for i in range(10)},
    }
    sums: dict[tuple[str, str], dict[str, float]] = {}
    for (row, column), amounts in cells.items():
        for place in product((row, "Total"), (column, "Total")):
            sums.setdefault(place, {}).update(amounts)
    rows = []
    for (row, column), amounts in sums.items():
        largest = sorted(amounts.items(), key=lambda item: -item[1])[:2] + [(None, 0.0)] * 2
        rows.append(
            (row, column, sum(amounts.values()), len(amounts), *(largest[k][j] for j in (1, 0) for k in (0, 1)))
        )
    schema = ["row", "column", "value", "count", "amount 1", "amount 2", "name 1", "name 2"]
    return Table.from_cells(
        pl.DataFrame(rows, schema=schema, orient="row"), dimensions=["row", "column"], count="count",
        largest=["amount 1", "amount 2"], identity=["name 1", "name 2"],
    )  # fmt: skip


def test_insiders_and_sums_make_a_release_unsafe_that_outsiders_cannot_break(tmp_path: Path) -> None:
    table = contributed()
    problem = Problem(table, rules=[Threshold(n=3)])
    mask = np.zeros(len(table), dtype=np.bool_)
    mask[[table.index(row=row, column=column) for row in "12" for column in "ab"]] = True
    release = Release.from_suppression(problem, mask)
    outsiders = audit(problem, release, insiders=False, unions=False)
    assert outsiders.safe
    findings = audit(problem, release)
    assert findings.protected.all()
    assert not findings.safe
    assert {opening.how for opening in findings.open} == {How.EXACT, How.SUM}
    assert "2 cells are open to insiders, 1 sums of withheld cells fail a rule" in findings.text()
    assert "(row=1, column=a) + (row=1, column=b) = (row=1, column=Total) − (row=1, column=c)" in findings.text()
    assert not {"A", "B"} & set(findings.text().split())  # by role, never by name
    assert findings.certificate is not None
    findings.certificate.save(tmp_path / "certificate.json")
    verified = verify(tmp_path / "certificate.json")
    assert verified.protected == verified.cells == 2
    assert len(verified.others) == 3
    assert not verified.safe


# -- whole numbers -----------------------------------------------------------------------------------------------------

CORNERS = np.array(list(product(range(4), repeat=8))).reshape(-1, 2, 2, 2)


def whole_cubes(cube: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """All 3 × 3 × 3 tables of whole numbers with the same two-way margins: one corner decides the rest."""
    tables = np.zeros((len(CORNERS), 3, 3, 3), dtype=np.int64)
    tables[:, :2, :2, :2] = CORNERS
    tables[:, 2, :2, :2] = cube.sum(axis=0)[:2, :2] - tables[:, :2, :2, :2].sum(axis=1)
    tables[:, :, 2, :2] = cube.sum(axis=1)[:, :2] - tables[:, :, :2, :2].sum(axis=2)
    tables[:, :, :, 2] = cube.sum(axis=2) - tables[:, :, :, :2].sum(axis=3)
    return tables[(tables >= 0).all(axis=(1, 2, 3))]


def cube_problem(cube: np.ndarray[Any, Any], level: float) -> tuple[Problem, Release]:
    codes = list(product("123", repeat=3))
    frame = pl.DataFrame(
        {d: [c[i] for c in codes] for i, d in enumerate("xyz")} | {"value": cube.ravel().astype(float)}
    )
    table = Table.from_cells(frame, dimensions=list("xyz"), missing_totals="compute")
    mask = ~table.is_total
    problem = Problem(table, sensitivity=Sensitivity.of(mask, np.minimum(table.value, level), level))
    return problem, Release.from_suppression(problem, mask)


def test_an_attacker_who_knows_whole_numbers_learns_what_enumeration_shows(tmp_path: Path) -> None:
    random = np.random.default_rng(2)
    for _ in range(12):
        cube = (random.random((3, 3, 3)) < 0.45).astype(np.int64)
        problem, release = cube_problem(cube, 0.5)
        findings = audit(problem, release, integers=True)
        possible = whole_cubes(cube)
        place = {findings.problem.table.index(x=x, y=y, z=z): (int(x) - 1, int(y) - 1, int(z) - 1)
                 for x, y, z in product("123", repeat=3)}  # fmt: skip
        low = [possible[:, *place[cell]].min() for cell in findings.cells.tolist()]
        high = [possible[:, *place[cell]].max() for cell in findings.cells.tolist()]
        assert findings.lower.tolist() == low
        assert findings.upper.tolist() == high
        value = findings.value
        assert findings.protected.tolist() == [
            a <= max(v - 0.5, 0) and b >= v + 0.5 for a, b, v in zip(low, high, value, strict=True)
        ]
        assert findings.certificate is not None
        findings.certificate.save(tmp_path / "certificate.json")
        assert verify(tmp_path / "certificate.json").protected == int(findings.protected.sum())


@pytest.mark.parametrize(("integers", "interval"), [(False, (0.0, 1.0)), (True, (1.0, 1.0))])
def test_whole_numbers_give_away_what_fractions_hide(integers: bool, interval: tuple[float, float]) -> None:
    """An odd cycle: x = y = z = 1/2 and w = 0 is possible, but the only whole table has w = 1."""
    table = Table.from_equations(
        ["p = x + y", "q = y + z", "r = z + x + w"], {"x": 0, "y": 1, "z": 0, "w": 1, "p": 1, "q": 1, "r": 1}
    )
    hidden = np.array([True] * 4 + [False] * 3)
    problem = Problem(table, sensitivity=Sensitivity.of(np.arange(7) == 3, 1.0, 0.0))
    findings = audit(problem, Release.from_suppression(problem, hidden), integers=integers)
    assert (findings.lower[0], findings.upper[0]) == interval
    assert findings.safe is not integers


def test_values_with_decimals_are_not_whole_numbers() -> None:
    table = table_of([[1.5, 2], [3, 4]])
    problem = Problem(table)
    with pytest.raises(InvalidOption, match="1 decimals"):
        audit(problem, Release.from_suppression(problem, table.value > 100), integers=True)


# -- time, progress, other machines ------------------------------------------------------------------------------------


def test_without_time_nothing_is_called_protected_that_is_not() -> None:
    problem, release = cube_problem(np.arange(27).reshape(3, 3, 3), 2.0)
    slow, quick = audit(problem, release), audit(problem, release, cells="all", time_limit_s=0.0)
    assert slow.exact
    assert not quick.exact
    assert (quick.protected <= slow.protected).all()
    assert (quick.lower >= slow.lower - 1e-9).all()
    assert (quick.upper <= slow.upper + 1e-9).all()


def test_progress_ends_at_one_and_another_executor_changes_nothing() -> None:
    problem, release = cube_problem(np.arange(27).reshape(3, 3, 3), 2.0)
    shares: list[float] = []
    with ThreadPoolExecutor(2) as executor:
        threads = audit(problem, release, executor=executor, progress=shares.append)
    here = audit(problem, release)
    assert shares[-1] == 1.0
    assert all(0 <= share <= 1 for share in shares)
    assert (threads.lower.tolist(), threads.upper.tolist()) == (here.lower.tolist(), here.upper.tolist())
    assert threads.protected.tolist() == here.protected.tolist()
