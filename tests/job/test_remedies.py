"""What an error advises can be done: each remedy is a key that a job has, and with it the error is gone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tablesafe.core.errors import Setting, TablesafeError
from tablesafe.job import parse_job
from tablesafe.job.remedies import as_field, remedies, settings
from tablesafe.pipeline import build_problem
from tablesafe.web.drafts import toml_of
from tablesafe.web.forms import put

RECORDS = "firm,region,turnover\n" + "".join(f"f{i},{'NS'[i % 2]},{10 + i}\n" for i in range(8))
CELLS = "region,size,value\n" + "".join(
    f"{r},{s},{v}\n" for r, s, v in [("N", "1", 10), ("N", "2", 20), ("S", "1", 30), ("S", "2", 40)]
)


def draft(**source: Any) -> dict[str, Any]:
    return {
        "source": {"file": "data.csv", **source},
        "dimensions": {"region": {}},
        "response": {"value": ["turnover"]},
        "rules": [{"rule": "threshold"}],
    }


def failing(folder: Path, job: dict[str, Any], data: str) -> TablesafeError:
    (folder / "data.csv").write_text(data)
    with pytest.raises(TablesafeError) as caught:
        build_problem(parse_job(toml_of(job), folder / "job.toml"))
    return caught.value


def works(folder: Path, job: dict[str, Any]) -> None:
    build_problem(parse_job(toml_of(job), folder / "job.toml"))


def test_records_without_a_code_are_left_out(tmp_path: Path) -> None:
    job = draft()
    error = failing(tmp_path, job, RECORDS + "f9,,7\n")
    (answer,) = remedies(job, error.about, settings(error.advice))
    assert str(answer.words) == "Leave out the records without a code of region"
    put(job, answer.path, answer.value)
    works(tmp_path, job)


def test_totals_that_are_missing_are_added_up(tmp_path: Path) -> None:
    job = draft(kind="cells")
    job["dimensions"]["size"] = {}
    job["response"]["value"] = ["value"]
    job["source"]["count"] = "value"
    error = failing(tmp_path, job, CELLS)
    words = {str(each.words): each for each in remedies(job, error.about, settings(error.advice))}
    answer = words["Add up the totals that are missing"]
    put(job, answer.path, answer.value)
    works(tmp_path, job)


def test_codes_of_several_levels_ask_for_the_file_that_is_there(tmp_path: Path) -> None:
    (tmp_path / "region.hrc").write_text("N\n@N1\n@N2\nS\n@S1\n@S2\n")
    job = draft(kind="cells", count="n")
    job["response"]["value"] = ["value"]
    rows = [("Total", 100), ("N", 40), ("S", 60), ("N1", 10), ("N2", 30), ("S1", 20), ("S2", 40)]
    error = failing(tmp_path, job, "region,value,n\n" + "".join(f"{code},{v},9\n" for code, v in rows))
    assert "tolerance" not in error.hint
    (answer,) = remedies(job, error.about, settings(error.advice), ["data.csv", "region.hrc"])
    assert str(answer.words) == "Use the hierarchy file region.hrc for region"
    put(job, answer.path, answer.value)
    works(tmp_path, job)


def test_the_hierarchy_file_of_another_dimension_is_no_remedy() -> None:
    """It would make things worse: the codes of one are not those of the other."""
    job = {
        "source": {"file": "data.csv"},
        "dimensions": {"region": {"hierarchy": "region.hrc"}, "nace": {"hierarchy": "activities.hrc"}, "size": {}},
    }
    files = ["region.hrc", "region-2.hrc", "areas.hrc", "activities.hrc", "nace.hrc", "NACE-2.hrc"]
    found = remedies(job, ("dimension", "region"), (), files)
    assert [each.value for each in found] == ["region-2.hrc", "areas.hrc"]


def test_a_large_difference_is_no_rounding(tmp_path: Path) -> None:
    job = draft(kind="cells", count="n")
    job["response"]["value"] = ["value"]
    rows = "region,value,n\nTotal,{},9\nN,40,5\nS,60,4\n"
    assert "tolerance" not in failing(tmp_path, job, rows.format(70)).hint
    error = failing(tmp_path, job, rows.format("100.5"))
    (answer,) = remedies(job, error.about, settings(error.advice))
    assert (answer.path, answer.value) == (("source", "tolerance"), 0.5)
    put(job, answer.path, answer.value)
    with pytest.warns(UserWarning, match="recomputed"):
        works(tmp_path, job)


def test_options_of_a_method_are_its_own() -> None:
    job = {"method": {"name": "adjust"}, "source": {"file": "x"}}
    advised = (Setting("zeros", True), Setting("nonsense", 3))
    assert [each.path for each in remedies(job, ("method",), advised)] == [("method", "zeros")]
    assert [each.path for each in remedies(job, (), advised)] == [("source", "zeros")]


def test_an_option_is_called_as_its_field_is() -> None:
    assert str(as_field(Setting("missing", "drop", "region"))) == "missing: drop for 'region'"
    assert str(as_field(Setting("where"))) == "the option 'where'"
