"""Bad and odd input, in the library, in a job file and at the prompt: one clear message, or a plain answer."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest

from oracle.suppression import grid, open_cells
from tablesafe.audit.audit import audit
from tablesafe.cli.app import call
from tablesafe.core.errors import InvalidInput, InvalidProblem, InvalidTable
from tablesafe.core.problem import Problem
from tablesafe.core.sensitivity import Sensitivity
from tablesafe.core.table import Table
from tablesafe.io.jj import write_jj
from tablesafe.methods.suppress import Suppress
from tablesafe.pipeline import run
from tablesafe.solve.program import SolveStatus

JOB = """\
[source]
file = "cells.csv"
kind = "cells"
count = "n"
[dimensions.region]
[response]
value = "value"
[[rules]]
rule = "threshold"
n = 3
{problem}
[method]
name = "suppress"
time_limit_s = 2
[output]
release = "public/table.csv"
"""
GOOD = "region,value,n\nTotal,100,20\nN,60,10\nS,30,8\nW,10,2\n"

BAD = {
    "a sensitive cell that is frozen": (GOOD, 'frozen = [{region = "W"}]', "(region=W) is sensitive, but frozen"),
    "levels above the cell's bounds": (GOOD, 'within_percent = 5\napriori = "known.csv"', "they end 0.5 above it"),
    "negative costs": (
        GOOD.replace("n\n", "n,c\n", 1).replace("20\n", "20,1\n").replace("10\n", "10,-1\n").replace("8\n", "8,1\n")
        .replace("10,2\n", "10,2,1\n"),
        'cost = "c"',
        "(region=N) has a cost that is negative",
    ),
    "a table that does not add up": (GOOD.replace("100", "101"), "", "is 101 but its parts add up to 100"),
    "no room at all": (GOOD, 'frozen = [{region = ["Total", "N", "S"]}]', "unfreeze one of (region=Total), (region=N)"),
}  # fmt: skip

PLAIN = {
    "nothing sensitive": (GOOD.replace(",2\n", ",12\n"), 0),
    "everything sensitive": ("region,value,n\nTotal,100,2\nN,60,1\nS,40,1\n", 3),
    "one cell": ("region,value,n\nN,60,1\n", 1),
    "one cell that is safe": ("region,value,n\nN,60,9\n", 0),
}


def job(folder: Path, cells: str, problem: str = "") -> Path:
    (folder / "cells.csv").write_text(cells)
    (folder / "known.csv").write_text("region,lower_level,upper_level\nW,3,3\n")
    (folder / "job.toml").write_text(JOB.format(problem=f"[problem]\n{problem}" if problem else ""))
    return folder / "job.toml"


@pytest.mark.parametrize("case", BAD)
def test_bad_input_in_a_job_file(tmp_path: Path, case: str) -> None:
    cells, problem, words = BAD[case]
    with pytest.raises(InvalidInput) as caught:
        run(job(tmp_path, cells, problem))
    assert words in str(caught.value)
    assert "Hint:" in str(caught.value)
    assert not (tmp_path / "public").exists()


@pytest.mark.parametrize("case", BAD)
def test_bad_input_at_the_prompt(tmp_path: Path, case: str, capsys: pytest.CaptureFixture[str]) -> None:
    cells, problem, words = BAD[case]
    code = call(["suppress", str(job(tmp_path, cells, problem))])
    printed = capsys.readouterr()
    assert code == 2
    assert words in " ".join(printed.err.split())
    assert "Traceback" not in printed.err
    assert not (tmp_path / "public").exists()


@pytest.mark.parametrize("case", PLAIN)
def test_odd_but_good_input_has_a_plain_answer(tmp_path: Path, case: str, capsys: pytest.CaptureFixture[str]) -> None:
    cells, withheld = PLAIN[case]
    path = job(tmp_path, cells)
    result = run(path)
    assert result.safe
    assert result.release.suppressed.sum() == withheld
    assert call(["suppress", str(path), "--quiet"]) == 0
    assert capsys.readouterr().out == ""


# -- the same in the library -------------------------------------------------------------------------------------------


def cell(table: Table, **codes: str) -> np.ndarray:
    mask = np.zeros(len(table), dtype=np.bool_)
    mask[table.index(**codes)] = True
    return mask


def test_a_sensitive_cell_cannot_be_frozen() -> None:
    table = grid([[5, 6], [7, 8]])
    mask = cell(table, r="a", c="x")
    with pytest.raises(InvalidProblem, match=r"\(r=a, c=x\) is sensitive, but frozen to be published\.\n\nHint"):
        Problem(table, sensitivity=Sensitivity.of(mask, 1.0), frozen=mask)


@pytest.mark.parametrize(
    ("levels", "words"),
    [
        ((1.0, 9.0, 0.0), "rise by 9, but they end 3 above it"),
        ((6.0, 1.0, 0.0), "fall by 6, but they end 5 below it"),
        ((1.0, 1.0, 9.0), "must be 9 wide, they are 8"),
    ],
)
def test_levels_above_the_bounds_are_told_apart(levels: tuple[float, float, float], words: str) -> None:
    table = grid([[5, 6], [7, 8]])
    mask = cell(table, r="a", c="x")
    problem = Problem(table, sensitivity=Sensitivity.of(mask, *levels), upper=np.where(mask, 8.0, np.inf))
    with pytest.raises(InvalidProblem, match=words):
        Suppress().protect(problem)


def test_a_value_that_the_bounds_give_away_cannot_be_hidden() -> None:
    table = grid([[5, 6], [7, 8]])
    mask = cell(table, r="a", c="x")
    problem = Problem(
        table, sensitivity=Sensitivity.of(mask), lower=np.where(mask, 5.0, 0.0), upper=np.where(mask, 5.0, np.inf)
    )
    with pytest.raises(InvalidProblem, match="they give its value away"):
        Suppress().protect(problem)


@pytest.mark.parametrize("cost", [-1.0, np.nan, np.inf])
def test_costs_that_are_no_costs_are_refused(cost: float) -> None:
    table = grid([[5, 6], [7, 8]])
    costs = np.ones(len(table))
    costs[table.index(r="b", c="y")] = cost
    with pytest.raises(InvalidProblem, match=r"\(r=b, c=y\)"):
        Suppress(cost=costs).protect(Problem(table, sensitivity=Sensitivity.of(cell(table, r="a", c="x"), 1.0)))
    with pytest.raises(InvalidProblem, match=r"\(r=b, c=y\)"):
        Problem(table, cost=costs)


def test_a_table_that_does_not_add_up_is_refused() -> None:
    with pytest.raises(InvalidTable, match=r"'t' is 10 but its parts add up to 9"):
        Table.from_equations(["t = a + b"], {"t": 10.0, "a": 4.0, "b": 5.0})


@pytest.mark.parametrize("algorithm", ["auto", "optimal", "sequential", "modular", "network"])
def test_nothing_sensitive_is_an_empty_answer(algorithm: str) -> None:
    release = Suppress(algorithm=algorithm).protect(Problem(grid([[5, 6], [7, 8]])))  # type: ignore[arg-type]
    assert not release.suppressed.any()
    assert release.solution is not None
    assert release.solution.status is SolveStatus.OPTIMAL
    assert release.solution.objective == 0


@pytest.mark.parametrize("algorithm", ["auto", "optimal", "sequential", "modular", "network"])
def test_everything_sensitive_withholds_everything(algorithm: str) -> None:
    table = grid([[5, 6], [7, 8]])
    problem = Problem(table, sensitivity=Sensitivity.of(np.ones(len(table), dtype=np.bool_), 2.0))
    release = Suppress(algorithm=algorithm).protect(problem)  # type: ignore[arg-type]
    assert release.suppressed.all()
    assert audit(problem, release).safe


@pytest.mark.parametrize("algorithm", ["auto", "optimal", "sequential", "modular", "network"])
def test_one_cell(algorithm: str) -> None:
    table = Table.from_cells({"r": ["N"], "value": [5]}, dimensions=["r"])
    for mask in (np.array([True]), np.array([False])):
        problem = Problem(table, sensitivity=Sensitivity.of(mask, 2.0))
        release = Suppress(algorithm=algorithm).protect(problem)  # type: ignore[arg-type]
        assert release.suppressed.tolist() == mask.tolist()
        assert audit(problem, release).safe


@pytest.mark.parametrize("algorithm", ["auto", "optimal", "sequential", "modular", "network"])
def test_disconnected_parts_are_protected_apart(algorithm: str) -> None:
    """Two tables that share nothing, and a cell in no sum: each is protected by its own cells only."""
    values = {"t": 9.0, "a": 4.0, "b": 5.0, "u": 30.0, "c": 10.0, "d": 20.0, "alone": 7.0}
    table = Table.from_equations(["t = a + b", "u = c + d"], values)
    names = np.array(table.names, dtype=str)
    problem = Problem(table, sensitivity=Sensitivity.of(np.isin(names, ["a", "c", "alone"]), 2.0))
    release = Suppress(algorithm=algorithm).protect(problem)  # type: ignore[arg-type]
    assert set(names[release.suppressed]) == {"a", "b", "c", "d", "alone"}
    assert open_cells(problem, release) == []
    only = problem.replace(sensitivity=Sensitivity.of(names == "a", 2.0))
    assert set(names[Suppress(algorithm=algorithm).protect(only).suppressed]) == {"a", "b"}  # type: ignore[arg-type]


def test_a_jj_file_goes_the_same_way(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = Table.from_equations(
        ["t = a + b", "u = c + d"], {"t": 9.0, "a": 4.0, "b": 5.0, "u": 3.0, "c": 1.0, "d": 2.0}
    )
    problem = Problem(table, sensitivity=Sensitivity.of(np.array(table.names, dtype=str) == "a", 2.0))
    write_jj(problem, tmp_path / "two.jj")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        code = call(["suppress", str(tmp_path / "two.jj"), "--internal", str(tmp_path / "in"), "--json"])
    assert code == 0
    assert '"complementary": 1' in capsys.readouterr().out
    wrong = (tmp_path / "two.jj").read_text().replace("0 9 9 ", "0 8 8 ", 1)
    assert wrong != (tmp_path / "two.jj").read_text()
    (tmp_path / "wrong.jj").write_text(wrong)
    assert call(["suppress", str(tmp_path / "wrong.jj"), "--internal", str(tmp_path / "in")]) == 2
    assert "is off by 1" in capsys.readouterr().err
