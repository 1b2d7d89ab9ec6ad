"""A cell that nothing protects is merged with one beside it, where the job says so; and the release is safe."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

import tablesafe as ts
from tablesafe.core.errors import InvalidProblem
from tablesafe.methods.redesign.proposals import merging
from tablesafe.pipeline import Result

JOB = """
[source]
file = "firms.csv"
respondent = "firm"
[dimensions.region]
[dimensions.branch]
[response]
value = ["turnover"]
[[rules]]
rule = "threshold"
[problem]
frozen = FROZEN
[method]
name = "suppress"
unprotectable = "POLICY"
[audit]
certificate = false
[attack]
attacks = []
[output]
release = ["public/release.csv"]
"""
FROZEN = """[
  {branch = "x", region = "Total"}, {branch = "x", region = "south"}, {branch = "x", region = "west"},
  {branch = "x", region = "east"},
]"""


def _records(folder: Path) -> None:
    """One firm in the north in branch x, four everywhere else."""
    rows = [
        {"firm": f"{region}{branch}{i}", "region": region, "branch": branch, "turnover": 10.0 + i}
        for region in ("north", "south", "west", "east")
        for branch in ("x", "y", "z")
        for i in range(1 if (region, branch) == ("north", "x") else 4)
    ]
    pl.DataFrame(rows).write_csv(folder / "firms.csv")


def _run(folder: Path, policy: str) -> Result:
    _records(folder)
    (folder / "job.toml").write_text(JOB.replace("FROZEN", FROZEN).replace("POLICY", policy), encoding="utf-8")
    result = ts.run(folder / "job.toml")
    assert isinstance(result, Result)
    return result


def test_without_the_policy_it_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InvalidProblem, match="north"):
        _run(tmp_path, "error")


def test_the_code_is_merged_with_one_beside_it(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="join .*north"):
        result = _run(tmp_path, "merge")
    assert result.findings.safe
    written = pl.read_csv(tmp_path / "public" / "release.csv")
    merged = [code for code in written["region"].unique().to_list() if "north" in code]
    assert merged != ["north"]
    assert len(merged) == 1
    notes = result.release.solution.notes if result.release.solution is not None else ()
    assert any("unprotectable = merge" in note for note in notes)
    assert "unprotectable = merge" in (tmp_path / "internal" / "report.html").read_text(encoding="utf-8")
    total = written.filter(pl.col("region") == "Total", pl.col("branch") == "Total")["turnover"][0]
    assert total == pytest.approx(pl.read_csv(tmp_path / "firms.csv")["turnover"].sum())


def test_merging_removes_the_cell_from_the_sensitive_ones(tmp_path: Path) -> None:
    _records(tmp_path)
    table = ts.tabulate(
        pl.read_csv(tmp_path / "firms.csv"), dimensions=["region", "branch"], value="turnover", respondent="firm"
    )
    problem = ts.Problem(table, rules=[ts.Threshold(n=3)])
    found = merging(problem, int(table.index(region="north", branch="x")))
    assert found is not None
    step, coarser = found
    assert step.kind == "join"
    assert not len(coarser.sensitive)


@pytest.mark.filterwarnings("ignore:nothing protects a cell of the table as it was. drop the parts")
def test_a_code_without_parts_among_codes_that_have_some_is_merged_too(tmp_path: Path) -> None:
    """The west is a single town, north and south have parts: it cannot be joined with either as they are."""
    rows = [
        {"firm": f"{town}{branch}{i}", "region": town, "branch": branch, "turnover": 10.0 + i}
        for town in ("n1", "n2", "s1", "s2", "w1")
        for branch in ("x", "y")
        for i in range(1 if town == "w1" else 5)
    ]
    pl.DataFrame(rows).write_csv(tmp_path / "firms.csv")
    (tmp_path / "region.hrc").write_text("north\n@n1\n@n2\nsouth\n@s1\n@s2\nwest\n@w1\n", encoding="utf-8")
    frozen = ", ".join(f'{{branch = "Total", region = "{code}"}}' for code in ("Total", "north", "south"))
    job = JOB.replace("FROZEN", f"[{frozen}]").replace("POLICY", "merge")
    job = job.replace("[dimensions.region]", '[dimensions.region]\nhierarchy = "region.hrc"')
    (tmp_path / "job.toml").write_text(job, encoding="utf-8")
    with pytest.warns(UserWarning, match="join .*west"):
        result = ts.run(tmp_path / "job.toml")
    assert result.findings.safe
    codes = pl.read_csv(tmp_path / "public" / "release.csv")["region"].unique().to_list()
    assert "west" not in codes
    assert any("west" in code for code in codes)
    assert {"n1", "n2"} <= set(codes) or {"s1", "s2"} <= set(codes), "of one neighbour the parts stay"
