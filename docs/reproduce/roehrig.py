"""Roehrig, Padman, Krishnan & Duncan: linked views of a bank's loans."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

import tablesafe as ts
from reproduce.cases import DATA, loaded, printed
from reproduce.layout import head, places, table

NAME = "roehrig"
PAPER = (
    "S. F. Roehrig, R. Padman, R. Krishnan and G. T. Duncan, *Exact and Heuristic Methods for Cell Suppression in "
    "Multi-Dimensional Linked Tables*."
)
BANKS, LOANS = ("National", "Anytown", "Iron City", "1st Cyber"), ("RE", "IN", "CC", "CM")
STATUSES = ("Late 0-29", "Late 30-89", "Late 90+", "Non-accrual")
SECRET = ("bank", "status")
SIZES = (4, 5, 6)
PROBLEMS = 12


def page() -> str:
    """The page, in Markdown."""
    folder = DATA / "roehrig_banking"
    bounds = pl.read_csv(folder / "expected_bounds.csv").with_columns(pl.col("^(lower|upper).*$").cast(pl.Float64))
    expected = loaded("roehrig_banking/expected.json")
    problem = ts.views(
        {("bank", "loan"): folder / "bank_by_loan.csv", ("loan", "status"): folder / "loan_by_status.csv"},
        confidential=[SECRET],
        tolerable={SECRET: bounds.select(*SECRET, lower="tolerable_lower", upper="tolerable_upper")},
    )
    lines = head(
        NAME, "Roehrig et al.: linked views", PAPER,
        "Loans by bank and type, and loans by type and payment status, are published; loans by bank and status are "
        "confidential. The cube of all three never appears, but the two published views bound the third. The "
        "numbers of "
        "the paper's tables of this example are not in our transcript; rows and columns are named as in the print.",
    )  # fmt: skip
    optimal = ts.protect(problem, ts.SuppressViews(algorithm="optimal"))
    print_ = _pattern(problem, expected["ip_pattern"])
    lines += _bounds(problem, bounds, {"": None, "_after_ip": print_})
    lines += _patterns(problem, expected, {"printed": print_, "ours": optimal})
    parts = (_counts(problem, expected), _big_m(problem, expected), _tables_5_and_6(expected), places(NAME))
    return "\n".join([*lines, *(line for part in parts for line in part)]) + "\n"


def _pattern(problem: ts.Problem, chosen: dict[str, list[list[str]]]) -> ts.Release:
    mask = np.zeros(len(problem.table), dtype=np.bool_)
    mask[[problem.table.index(bank=b, loan=k) for b, k in chosen["bank_by_loan"]]] = True
    mask[[problem.table.index(loan=k, status=s) for k, s in chosen["loan_by_status"]]] = True
    return ts.Release.from_suppression(problem, mask)


def _bounds(problem: ts.Problem, bounds: pl.DataFrame, releases: dict[str, ts.Release | None]) -> list[str]:
    found = {
        suffix: {(r["bank"], r["status"]): r for r in ts.view_bounds(problem, release).frame().iter_rows(named=True)}
        for suffix, release in releases.items()
    }
    rows = []
    for row in bounds.iter_rows(named=True):
        at = row["bank"], row["status"]
        line = [f"{row['bank']}, {row['status']}", f"[{row['tolerable_lower']}, {row['tolerable_upper']}]"]
        for suffix, answer in found.items():
            line += [f"[{row[f'lower{suffix}']:g}, {row[f'upper{suffix}']:g}]"]
            line += [f"[{answer[at]['lower']:g}, {answer[at]['upper']:g}]"]
        rows.append(line)
    headers = [
        "bank, status",
        "tolerable",
        "all published: printed",
        "ours",
        "after the printed pattern: printed",
        "ours",
    ]
    return [
        "", "## What the views say about the confidential one", "",
        "Where a bound lies inside the tolerable interval, the views disclose too much: four bounds, all of Iron "
        "City. One printed bound differs from ours: for Anytown, non-accrual, after the pattern the paper prints 30. "
        "What is then published allows no more than 9 + 2 + 3 + 15 = 29.",
        *table(headers, rows, left=6),
    ]  # fmt: skip


def _patterns(problem: ts.Problem, expected: Any, releases: dict[str, ts.Release]) -> list[str]:
    views: dict[str, tuple[Any, Any, Any]] = {
        "bank × loan": (BANKS, LOANS, lambda r, c: problem.table.index(bank=r, loan=c)),
        "loan × status": (LOANS, STATUSES, lambda r, c: problem.table.index(loan=r, status=c)),
    }
    lines = ["## The patterns", "", "Withheld cells are marked x; the number is what the office knows."]
    for name, (rows, columns, at) in views.items():
        for who, release in releases.items():
            body = [
                [
                    r,
                    *(
                        f"{problem.table.value[at(r, c)]:g}{' x' if release.suppressed[at(r, c)] else ''}"
                        for c in columns
                    ),
                ]
                for r in rows
            ]
            lines += ["", f"{name}, {who}:", *table(["", *columns], body)]
    return lines


def _counts(problem: ts.Problem, expected: Any) -> list[str]:
    rows = []
    for algorithm in ("optimal", "tabu", "greedy", "random"):
        release = ts.protect(problem, ts.SuppressViews(algorithm=algorithm))
        count = int((release.suppressed & ~problem.withheld).sum())
        safe = "yes" if ts.audit(problem, release).safe else "no"
        rows.append([algorithm, str(expected[f"{algorithm}_suppressions"]), str(count), safe])
    return ["## Suppressions by method", *table(["method", "printed", "ours", "safe, by the audit"], rows)]


def _generated(size: int) -> list[np.ndarray[Any, Any]]:
    """Cubes by the printed recipe: at least one upper and three lower disclosures."""
    random = np.random.default_rng(size)
    found: list[np.ndarray[Any, Any]] = []
    while len(found) < PROBLEMS:
        shape = (size, size, size)
        small = random.random(shape) < 0.9
        cube = np.where(small, random.integers(0, 4, shape), random.integers(500, 1001, shape))
        a, b, c = cube.sum(axis=2), cube.sum(axis=0), cube.sum(axis=1)
        upper = np.minimum(a[:, :, None], b[None]).sum(axis=1)
        lower = np.maximum(a[:, :, None] + b[None] - a.sum(axis=0)[None, :, None], 0).sum(axis=1)
        if (upper < 1.2 * c).any() and (lower > 0).sum() >= 3:
            found.append(cube)
    return found


def _big_m(problem: ts.Problem, expected: Any) -> list[str]:
    rows = [
        [row["loan"], f"{expected['big_m_lower_by_loan'][row['loan']]:g}", f"{row['lower']:g}", f"{row['upper']:g}"]
        for row in ts.view_big_m(problem).iter_rows(named=True)
    ]
    headers = ["loan", "printed", "`ts.view_big_m(problem)`, lower bounds", "upper bounds"]
    return [
        "## The refined big-M of the integer program", "",
        "The paper replaces one large M by the most that withholding in each slice can lower a lower bound.",
        *table(headers, rows),
    ]  # fmt: skip


def _tables_5_and_6(expected: Any) -> list[str]:
    averages = expected["table6_average_suppressions_1000_problems"]
    rows, optimum = [], {}
    for size in SIZES:
        counts: dict[Any, list[int]] = {"greedy": [], "random": [], "tabu": [], "optimal": []}
        for cube in _generated(size):
            problem = ts.views(
                cube, dimensions="abc", published=[("a", "b"), ("b", "c")], confidential=[("a", "c")], percent=20
            )
            for algorithm, found in counts.items():
                release = ts.protect(problem, ts.SuppressViews(algorithm=algorithm, steps=400))
                found.append(int((release.suppressed & ~problem.withheld).sum()))
        theirs, optimum[size] = averages[str(size)], float(np.mean(counts["optimal"]))
        rows.append([f"{size} × {size} × {size}", *(f"{theirs[k]:g}" for k in ("greedy", "random", "tabu")),
                     *(f"{np.mean(found):.1f}" for found in counts.values())])  # fmt: skip
    headers = ["cube", "greedy, printed", "random, printed", "tabu, printed", "greedy, ours", "random, ours",
               "tabu, ours",
               "optimal, ours"]  # fmt: skip
    exact = printed("roehrig", "optimal_average_size_4")
    return [
        "## Tables 5 and 6: generated problems", "",
        f"Average numbers of suppressions. The paper has 1,000 problems of each size, this page {PROBLEMS} by the same "
        "recipe; `python -m benchmarks run views` runs more, up to 10 × 10 × 10. Our optimum is proved. "
        "Printed are the "
        "rows of Table 6 for these sizes.",
        *table(headers, rows),
        "Table 5 has the optimum, found by the integer program:",
        *table(["cube", "printed, average (Table 5)", "optimal, ours"],
               [["4 × 4 × 4", f"{exact:.1f}", f"{optimum[4]:.1f}"]]),
        f"No heuristic withholds fewer cells than the optimum of the same problems. At size 4 the tabu search "
        "of Table 6 "
        f"averages {averages['4']['tabu']:g}, where the paper's own optima (Table 5) average {exact:.1f} and ours "
        f"{optimum[4]:.1f} (6.6 to 7.0 over other draws by the recipe). So either the problems behind the 5.58 are "
        "easier than the recipe makes them, or not all of their disclosures were closed: with the upper disclosures "
        "left open the optimum still averages 6.6. From size 5 on the printed averages lie above our optima, as they "
        "must.",
    ]  # fmt: skip
