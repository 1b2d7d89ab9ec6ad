"""The audit reproduces what papers print: intervals, open cells, cells given away."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.optimize import LinearConstraint, milp

from tablesafe.audit.audit import audit
from tablesafe.audit.findings import Findings
from tablesafe.audit.verdict import How
from tablesafe.core.hierarchy import Hierarchy
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release
from tablesafe.core.sensitivity import Sensitivity
from tablesafe.core.table import Table
from tablesafe.verify import verify

# -- Dandekar, "Protecting Sensitive Tabular Data by Complementary Cell Suppression: Myth & Reality", Tables 1 to 5


def dandekar(paper_data: Path, pattern: str) -> tuple[Problem, Release]:
    """The 10 × 6 × 4 table; the last code of each dimension is its total."""
    cells = pl.read_csv(paper_data / "dandekar_10x6x4" / "cells.csv")
    dimensions = {
        name: Hierarchy.from_pairs([(str(size), str(code)) for code in range(1, size)])
        for name, size in (("col", 10), ("row", 6), ("level", 4))
    }
    table = Table.from_cells(cells, dimensions=dimensions)
    levels = cells["protection"].fill_null(0).to_numpy().astype(float)
    sensitivity = Sensitivity.of(cells["sensitive"].to_numpy() == 1, levels)
    problem = Problem(table, sensitivity=sensitivity, frozen=table.value == 0)
    return problem, Release.from_suppression(problem, cells[pattern].is_not_null().to_numpy())


def test_dandekar_every_interval_is_the_printed_one(paper_data: Path) -> None:
    problem, release = dandekar(paper_data, "suppression_44")
    expected = pl.read_csv(paper_data / "dandekar_10x6x4" / "expected_attack_44.csv")
    found = audit(problem, release).frame().with_columns(pl.col("col", "row", "level").cast(pl.Int64))
    both = expected.join(found, on=["col", "row", "level"], how="left", validate="1:1", suffix=" found")
    assert len(both) == len(found) == problem.sensitive.size
    assert np.abs(both["from"] - both["lp_lower"]).max() < 1e-9  # type: ignore[operator]
    assert np.abs(both["to"] - both["lp_upper"]).max() < 1e-9  # type: ignore[operator]


@pytest.mark.parametrize(("pattern", "values"), [("suppression_44", [786, 1050]), ("suppression_39", [1050])])
@pytest.mark.parametrize("exact", [True, False])
def test_dandekar_only_the_cells_printed_as_borderline_are_open(
    paper_data: Path, tmp_path: Path, pattern: str, values: list[int], exact: bool
) -> None:
    problem, release = dandekar(paper_data, pattern)
    findings = audit(problem, release, exact=exact)
    assert sorted(findings.value[~findings.protected]) == values
    assert [opening.how for opening in findings.open] == [How.UPPER] * len(values)
    assert not findings.safe
    assert findings.certificate is not None
    findings.certificate.save(tmp_path / "certificate.json")
    verified = verify(tmp_path / "certificate.json")
    assert (verified.protected, len(verified.open)) == (24 - len(values), len(values))


# -- Cox, "Vulnerability of Complementary Cell Suppression to Intruder Attack"


def vulnerability(paper_data: Path) -> dict[str, Any]:
    text = (paper_data / "cox_vulnerability.json").read_text(encoding="utf-8")
    return dict(json.loads(text))


def flat(values: np.ndarray[Any, Any], names: Sequence[str]) -> Table:
    """A flat table of any number of dimensions with all its totals."""
    codes = [[*map(str, range(1, size + 1)), "Total"] for size in values.shape]
    padded = values
    for axis in range(values.ndim):
        padded = np.concatenate([padded, padded.sum(axis=axis, keepdims=True)], axis=axis)
    rows = list(product(*codes))
    frame = pl.DataFrame(
        {name: [row[i] for row in rows] for i, name in enumerate(names)} | {"value": padded.ravel().astype(float)}
    )
    return Table.from_cells(frame, dimensions=list(names))


def judged(table: Table, hidden: Sequence[dict[str, str]], levels: dict[int, float] | None = None) -> Findings:
    """Audit all withheld cells of a table; some may be sensitive with levels."""
    mask = np.zeros(len(table), dtype=np.bool_)
    mask[[table.index(**codes) for codes in hidden]] = True
    level = np.zeros(len(table))
    for cell, amount in (levels or {}).items():
        level[cell] = amount
    sensitive = np.isin(np.arange(len(table)), list(levels)) if levels else mask
    problem = Problem(table, sensitivity=Sensitivity.of(sensitive, level))
    return audit(problem, Release.from_suppression(problem, mask), cells="all")


INNER_2X2 = [{"row": r, "column": c} for r in "12" for c in "12"]


def test_cox_the_cycle_protects_x_and_every_interval_is_the_printed_one(paper_data: Path) -> None:
    case = vulnerability(paper_data)["cycle_2x2"]
    cells = case["cells"]
    table = flat(np.array([[cells["X"], cells["B"]], [cells["C"], cells["A"]]]), ["row", "column"])
    x = table.index(row="1", column="1")
    findings = judged(table, INNER_2X2, {x: case["protection_of_X"]})
    assert findings.safe
    found = {int(cell): (low, high) for cell, low, high in zip(findings.cells, findings.lower, findings.upper)}  # noqa: B905
    for name, (r, c) in {"X": "11", "B": "12", "C": "21", "A": "22"}.items():
        assert found[table.index(row=r, column=c)] == tuple(case["exact_intervals"][name])


def test_cox_the_same_pattern_fails_when_x_may_fall_by_one_only(paper_data: Path) -> None:
    cells = vulnerability(paper_data)["cycle_2x2_unprotected"]["cells"]
    table = flat(np.array([[cells["X"], cells["B"]], [cells["C"], cells["A"]]]), ["row", "column"])
    findings = judged(table, INNER_2X2, {table.index(row="1", column="1"): 2.0})
    assert [(opening.how, opening.short) for opening in findings.open] == [(How.LOWER, 1.0)]


def filled(equations: np.ndarray[Any, Any], totals: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Any table of whole numbers with the printed margins: the attacker's view does not depend on which."""
    n = equations.shape[1]
    found = milp(np.zeros(n), constraints=LinearConstraint(equations, totals, totals), integrality=np.ones(n))
    assert found.success
    return np.rint(found.x).astype(np.int64)


def margins(shape: Sequence[int], axis: int) -> np.ndarray[Any, Any]:
    """The sums over one axis of a cube, as a matrix."""
    index = np.arange(int(np.prod(shape))).reshape(shape)
    sums = np.moveaxis(index, axis, -1).reshape(-1, shape[axis])
    matrix = np.zeros((len(sums), index.size))
    np.put_along_axis(matrix, sums, 1.0, axis=1)
    return matrix


def test_cox_three_cells_of_the_cube_are_given_away(paper_data: Path) -> None:
    case = vulnerability(paper_data)["table_3_3x3x3"]
    shape = (3, 3, 3)  # plane, row, column
    totals = [case["vertical_margin"], case["column_margin_by_plane"], case["row_margin_by_plane"]]
    equations = np.vstack([margins(shape, axis) for axis in range(3)])
    inner = filled(equations, np.concatenate([np.ravel(t) for t in totals])).reshape(shape)
    table = flat(inner, ["plane", "row", "column"])
    hidden = [{"plane": p, "row": r, "column": c} for p, r, c in product("123", repeat=3)]
    findings = judged(table, hidden)
    diagonal = {table.index(plane=i, row=i, column=i) for i in "123"}
    assert diagonal <= set(findings.disclosed_exactly.tolist())
    for cell in diagonal:
        assert table.value[cell] == 1
        why = findings.explain(cell)
        assert why is not None
        assert why.bound == 1


def test_cox_one_cell_of_the_four_by_four_table_is_given_away_and_how(paper_data: Path) -> None:
    case = vulnerability(paper_data)["table_4_4x4"]
    inner = np.zeros((4, 4), dtype=np.int64)
    equations, totals = [margins((4, 4), 1), margins((4, 4), 0)], [case["row_totals"], case["column_totals"]]
    for place, value in case["published"].items():
        r, c = (int(code) - 1 for code in place.split(","))
        inner[r, c] = 1
        equations.append((inner == 1).ravel()[None].astype(float))
        totals.append([value])
        inner[r, c] = 0
    values = filled(np.vstack(equations), np.concatenate(totals)).reshape(4, 4)
    table = flat(values, ["row", "column"])
    hidden = [dict(zip(("row", "column"), place.split(","), strict=True)) for place in case["suppressed"]]
    findings = judged(table, hidden)
    given = table.index(row="1", column="1")
    assert findings.disclosed_exactly.tolist() == [given]
    assert table.value[given] == case["disclosed"]["1,1"]
    why = findings.explain(given)
    assert why is not None
    assert why.relation == "="
    assert why.bound == 1
    assert len(why.equations) == 4  # rows 1 and 2 less columns 2 and 3


# -- Roehrig, Padman, Krishnan & Duncan, "Exact and Heuristic Methods for Cell Suppression in Multi-Dimensional Linked
# -- Tables": bank × loan and loan × status are published, bank × status is confidential, the cube never appears

BANKS, LOANS = ("National", "Anytown", "Iron City", "1st Cyber"), ("RE", "IN", "CC", "CM")
STATUSES = ("Late 0-29", "Late 30-89", "Late 90+", "Non-accrual")
MISPRINTED = {("Anytown", "Non-accrual", "upper_after_ip"): 29.0}
"""Printed is 30, but what is published allows Anytown no more than RE 9 + IN 2 + CC 3 + CM 15."""


def banking(paper_data: Path) -> tuple[Problem, pl.DataFrame]:
    """The three views of the cube, without any further totals."""
    folder = paper_data / "roehrig_banking"
    by_loan = {(b, k): v for b, k, v in pl.read_csv(folder / "bank_by_loan.csv").iter_rows()}
    by_status = {(k, s): v for k, s, v in pl.read_csv(folder / "loan_by_status.csv").iter_rows()}
    bounds = pl.read_csv(folder / "expected_bounds.csv")
    tolerable = {
        (b, s): (low, high) for b, s, low, high in bounds.select("bank", "status", "^tolerable.*$").iter_rows()
    }
    shape = (len(BANKS), len(LOANS), len(STATUSES))
    confidential = margins(shape, 1)
    limits = [tolerable[b, s] for b in BANKS for s in STATUSES]
    exact = [
        LinearConstraint(margins(shape, 2), *2 * [[by_loan[b, k] for b in BANKS for k in LOANS]]),
        LinearConstraint(margins(shape, 0), *2 * [[by_status[k, s] for k in LOANS for s in STATUSES]]),
        LinearConstraint(confidential, [low for low, _ in limits], [high for _, high in limits]),
    ]
    n = int(np.prod(shape))
    found = milp(np.zeros(n), constraints=exact, integrality=np.ones(n))
    assert found.success
    cube = np.rint(found.x).reshape(shape)
    rows = [(b, k, s, cube[i]) for i, (b, k, s) in zip(np.ndindex(shape), product(BANKS, LOANS, STATUSES), strict=True)]
    rows += [(b, k, "Total", by_loan[b, k]) for b, k in product(BANKS, LOANS)]
    rows += [("Total", k, s, by_status[k, s]) for k, s in product(LOANS, STATUSES)]
    rows += [(b, "Total", s, cube[i, :, j].sum()) for i, b in enumerate(BANKS) for j, s in enumerate(STATUSES)]
    frame = pl.DataFrame(
        rows, schema={"bank": pl.String, "loan": pl.String, "status": pl.String, "value": pl.Float64}, orient="row"
    )
    dimensions = {
        name: Hierarchy.flat(list(codes), total="Total")
        for name, codes in (("bank", BANKS), ("loan", LOANS), ("status", STATUSES))
    }
    table = Table.from_cells(frame, dimensions=dimensions, missing_totals="none")
    secret = ((frame["loan"] == "Total") & (frame["bank"] != "Total")).to_numpy()
    design = ~((frame["bank"] == "Total") | (frame["status"] == "Total")).to_numpy()
    low = np.array([tolerable.get((b, s), (v, v))[0] for b, _, s, v in rows])
    high = np.array([tolerable.get((b, s), (v, v))[1] for b, _, s, v in rows])
    sensitivity = Sensitivity.of(
        secret, np.where(secret, table.value - low, 0), np.where(secret, high - table.value, 0)
    )
    return Problem(table, sensitivity=sensitivity, withheld=design), bounds


@pytest.mark.parametrize(("pattern", "suffix", "open_cells"), [(None, "", 4), ("ip_pattern", "_after_ip", 0)])
def test_roehrig_the_banking_views_come_out_as_printed(
    paper_data: Path, tmp_path: Path, pattern: str | None, suffix: str, open_cells: int
) -> None:
    problem, bounds = banking(paper_data)
    table = problem.table
    mask = np.zeros(len(table), dtype=np.bool_)
    if pattern:
        chosen = json.loads((paper_data / "roehrig_banking" / "expected.json").read_text(encoding="utf-8"))[pattern]
        mask[[table.index(bank=b, loan=k, status="Total") for b, k in chosen["bank_by_loan"]]] = True
        mask[[table.index(bank="Total", loan=k, status=s) for k, s in chosen["loan_by_status"]]] = True
    findings = audit(problem, Release.from_suppression(problem, mask))
    found = {(row["bank"], row["status"]): (row["from"], row["to"]) for row in findings.frame().iter_rows(named=True)}
    for row in bounds.with_columns(pl.col("^(lower|upper).*$").cast(pl.Float64)).iter_rows(named=True):
        sides = (f"lower{suffix}", f"upper{suffix}")
        expected = tuple(MISPRINTED.get((row["bank"], row["status"], side), row[side]) for side in sides)
        assert found[row["bank"], row["status"]] == pytest.approx(expected), row
    assert len(findings.open) == open_cells
    assert findings.certificate is not None
    findings.certificate.save(tmp_path / "certificate.json")
    assert verify(tmp_path / "certificate.json").safe == (open_cells == 0)
