"""What data leave to decide: each answer does what its button says, and then the question is no longer in the way."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tablesafe.core.errors import TablesafeError
from tablesafe.io.frames import read_frame
from tablesafe.job import dump_job, parse_job
from tablesafe.job.draft import draft_job
from tablesafe.job.questions import Question, questions
from tablesafe.job.toml import read_toml
from tablesafe.pipeline import build_problem

ROWS = """firm,region,size,turnover
a,N,1,100
b,N,1,50
c,S,1,
d,S,2,-20
e,,2,70
f,,2,30
g,S,1,60
h,N,2,40
"""


@dataclass(frozen=True)
class Column:
    name: str
    empty: int = 0
    negative: int = 0


COLUMNS = {"region": Column("region", empty=2), "turnover": Column("turnover", empty=1, negative=1)}


def draft(**source: Any) -> dict[str, Any]:
    return {
        "source": {"file": "firms.csv", "kind": "records", **source},
        "dimensions": {"region": {}, "size": {}},
        "response": {"value": ["turnover"]},
        "rules": [{"rule": "threshold"}],
    }


def with_answer(job: dict[str, Any], question: Question, number: int) -> dict[str, Any]:
    answer = question.answers[number]
    at: Any = job
    for key in answer.path[:-1]:
        at = at.setdefault(key, {})
    at[answer.path[-1]] = answer.value
    return job


def test_complete_data_leave_nothing_to_decide() -> None:
    assert questions(draft(), {name: Column(name) for name in ("region", "size", "turnover")}) == ()


def test_what_is_found_is_told_with_what_happens_now() -> None:
    assert [f"{each.found}: {each.now}" for each in questions(draft(), COLUMNS)] == [
        "2 records have no 'region': the run stops there",
        "1 record has no 'turnover': the run stops there",
        "1 record has a negative 'turnover': so no cell is known to be 0 or more",
    ]


def test_finished_cells_are_not_asked_about() -> None:
    assert questions(draft(kind="cells"), COLUMNS) == ()


@pytest.mark.parametrize("code", [0, 1])
@pytest.mark.parametrize("negative", [0, 1])
def test_every_answer_is_a_job_that_runs(tmp_path: Path, code: int, negative: int) -> None:
    from tablesafe.web.drafts import toml_of

    (tmp_path / "firms.csv").write_text(ROWS)
    job = draft()
    with pytest.raises(TablesafeError, match="turnover"):
        build_problem(parse_job(toml_of(job), tmp_path / "job.toml"))
    for number in (code, 0, negative):
        asked = questions(job, COLUMNS)
        which = next(each for each in asked if each.stops) if any(each.stops for each in asked) else asked[-1]
        job = with_answer(job, which, number)
    assert not any(each.stops for each in questions(job, COLUMNS))
    table = build_problem(parse_job(toml_of(job), tmp_path / "job.toml")).table
    kept = 100 + 50 + 60 + 40 - (0 if negative else 20) + (100 if code else 0)
    assert table.value.max() == kept


def test_the_first_job_of_a_file_stops_nowhere(tmp_path: Path) -> None:
    head, _, rows = ROWS.partition("\n")
    (tmp_path / "firms.csv").write_text(f"{head}\n{rows * 8}")
    job, looks = draft_job(tmp_path / "firms.csv", read_frame(tmp_path / "firms.csv"), folder=tmp_path)
    assert {look.name: (look.empty, look.negative) for look in looks}["turnover"] == (8, 8)
    asked = questions(read_toml(dump_job(job)), {look.name: look for look in looks})
    assert [(each.column, each.stops) for each in asked] == [
        ("region", False),
        ("turnover", False),
        ("turnover", False),
    ]
    assert job.output.release == ("public/release.csv",)
