"""`tablesafe attack`, and the attack in a job: what a user sees and what is written."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from tablesafe.cli.app import call
from tablesafe.core.errors import InvalidRelease
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release
from tablesafe.core.sensitivity import Sensitivity
from tablesafe.core.table import Table
from tablesafe.io.jj import write_jj
from tablesafe.io.patterns import read_release, read_values


def two_pairs() -> Problem:
    table = Table.from_equations(
        ["s = a + b", "t = c + d", "u = a + c"], {"s": 10, "a": 5, "b": 5, "t": 10, "c": 2, "d": 8, "u": 7}
    )
    mask = np.array([0, 1, 0, 0, 0, 0, 0], dtype=np.bool_)
    hidden = np.array([0, 0, 1, 0, 1, 1, 0], dtype=np.bool_)
    return Problem(table, sensitivity=Sensitivity.of(mask, 1.0), suppressed=hidden)


@pytest.fixture
def instance(tmp_path: Path) -> Path:
    write_jj(two_pairs(), tmp_path / "t.jj")
    return tmp_path / "t.jj"


def test_attacks_by_name_print_a_headline_and_write_files(
    instance: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = {name: tmp_path / f"{name}.csv" for name in ("risk", "scores", "densities")}
    code = call(
        ["attack", str(instance), "--attacks", "midpoint", "--attacks", "mean-of-vertices", "-o", str(files["risk"]),
         "--scores", str(files["scores"]), "--densities", str(files["densities"]), "--plot", str(tmp_path / "d.png")]
    )  # fmt: skip
    said = " ".join(capsys.readouterr().out.split())
    assert code == 0
    assert "of 1 sensitive cells" in said
    assert pl.read_csv(files["scores"])["attack"].to_list()[:2] == ["midpoint", "mean of vertices"]
    assert pl.read_csv(files["risk"]).height == 1
    assert pl.read_csv(files["densities"])["attack"].to_list() == ["mean of vertices"]
    assert (tmp_path / "d.png").stat().st_size > 0


def test_json_and_a_cell_that_is_given_away(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    problem = two_pairs().replace(suppressed=np.zeros(7, np.bool_))
    write_jj(problem, tmp_path / "open.jj")
    code = call(["attack", str(tmp_path / "open.jj"), "--attacks", "all", "--time-limit-s", "20", "--json"])
    document = json.loads(capsys.readouterr().out)
    assert code == 1
    assert "(known exactly: 1)" in document["headline"]
    assert all(row["exactly"] == 1 for row in document["attacks"])


def test_errors_name_what_is_wrong(instance: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(["attack", str(instance), "--attacks", "midpont"]) == 2
    assert "did you mean 'midpoint'" in " ".join(capsys.readouterr().err.split())
    assert call(["attack", str(instance), "--time-limit-s", "0"]) == 2
    assert call(["attack", str(instance), "--attacks", "midpoint", "--densities", "x.csv"]) == 2


def test_a_release_with_intervals_is_read_back(tmp_path: Path) -> None:
    problem = two_pairs()
    table = problem.table
    values = np.where(table.value == 5, 6.0, table.value)
    lower, upper = np.where(table.value == 5, 4.0, table.value), np.where(table.value == 5, 8.0, table.value)
    frame = Release(table, values, lower, upper, np.zeros(7, np.uint8)).frame(intervals=True)
    frame.with_columns(
        pl.when(pl.col("cell") == "d").then(None).otherwise(pl.col("value")).alias("value")
    ).with_columns(
        pl.when(pl.col("cell") == "d").then(None).otherwise(pl.col(name)).alias(name) for name in ("from", "to")
    ).write_csv(tmp_path / "r.csv")
    found = read_release(tmp_path / "r.csv", problem)
    names = [] if table.names is None else [str(name) for name in table.names]
    at = {name: i for i, name in enumerate(names)}
    assert (found.lower[at["a"]], found.upper[at["a"]]) == (4, 8)
    assert np.isnan(found.values[at["d"]])
    assert found.upper[at["d"]] == np.inf
    assert found.lower[at["s"]] == found.upper[at["s"]] == 10


def test_a_wrong_value_without_an_interval_is_refused(tmp_path: Path) -> None:
    pl.DataFrame({"cell": ["s"], "value": [11], "from": [None], "to": [None]}).write_csv(tmp_path / "r.csv")
    with pytest.raises(InvalidRelease, match="not its own"):
        read_release(tmp_path / "r.csv", two_pairs())


def test_last_periods_table_is_read_by_code(tmp_path: Path) -> None:
    pl.DataFrame({"cell": ["b", "a"], "value": [4.0, None]}).write_csv(tmp_path / "last.csv")
    found = read_values(tmp_path / "last.csv", two_pairs())
    assert found[2] == 4
    assert np.isnan(np.delete(found, 2)).all()


def test_a_job_attacks_its_release_and_the_internal_report_says_so(tmp_path: Path) -> None:
    from tablesafe.pipeline import run

    write_jj(two_pairs(), tmp_path / "t.jj")
    (tmp_path / "job.toml").write_text(
        '[source]\nfile = "t.jj"\n\n[method]\nname = "withhold"\n\n[audit]\ninsiders = false\n\n'
        '[attack]\nattacks = ["midpoint", "hit-and-run"]\n\n[output]\nreport = "public/public.html"\nforce = true\n',
        encoding="utf-8",
    )
    result = run(tmp_path / "job.toml")
    assert result.scores is not None
    internal = (tmp_path / "internal" / "report.html").read_text(encoding="utf-8")
    assert result.scores.headline in internal
    assert "hit-and-run" in internal
    public = (tmp_path / "public" / "public.html").read_text(encoding="utf-8")
    assert "intruder" not in public
    assert (tmp_path / "internal" / "attack.csv").exists()
    assert result.facts()["attack"] == result.scores.headline
