"""Work on finished runs in the background: attacks with densities, releases measured alike, values tried in turn."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
from browsing import firms
from running import give, in_session

from tablesafe.core.errors import InvalidJob, InvalidOption
from tablesafe.job import parse_job
from tablesafe.web.background import State
from tablesafe.web.sessions import Session, Sessions

DRAFT: dict[str, Any] = {
    "source": {"file": "firms.csv", "respondent": "firm"},
    "dimensions": {"nace": {}, "region": {}},
    "response": {"value": ["turnover"]},
    "rules": [{"rule": "threshold", "n": 3}, {"rule": "p_percent", "p": 10}],
    "method": {"name": "suppress", "time_limit_s": 5.0},
}


@pytest.fixture
def records(tmp_path: Path) -> str:
    return firms(tmp_path / "records.csv").read_text(encoding="utf-8")


def test_attacks_keep_the_densities_of_cells(tmp_path: Path, records: str) -> None:
    async def scenario(sessions: Sessions, session: Session) -> None:
        await give(session, records, copy.deepcopy(DRAFT))
        run = session.runs.start()
        await run.finished()
        work = session.runs.attack(run, ("midpoint", "random centroids"), time_limit_s=20.0)
        told = []
        while not work.state.ended:
            told.append(work.found)
            await work._changed.wait()
        assert work.state is State.DONE, work.message
        names = [row["attack"] for row in work.found["attacks"]]
        assert names[0] == "midpoint"
        (only,) = work.found["densities"]
        assert only["attack"] == "random centroids"
        assert 0 < len(only["cells"]) <= only["all"]
        for cell in only["cells"]:
            assert cell["lower"] <= cell["truth"] <= cell["upper"]
            assert sum(cell["counts"]) > 0
        assert any(found and len(found["attacks"]) == 1 for found in told)  # the first was told before the second ended

    in_session(tmp_path, scenario)


def test_a_stop_keeps_what_was_told(tmp_path: Path, records: str) -> None:
    async def scenario(sessions: Sessions, session: Session) -> None:
        await give(session, records, copy.deepcopy(DRAFT))
        run = session.runs.start()
        await run.finished()
        work = session.runs.attack(run, ("midpoint", "hit-and-run", "mean of vertices"), time_limit_s=60.0)
        while not work.found and not work.state.ended:
            await work._changed.wait()
        work.stop()
        await work.finished()
        assert work.found["attacks"]
        if work.state is State.STOPPED:
            assert "kept" in work.message

    in_session(tmp_path, scenario)


def test_runs_with_several_values_are_measured_alike(tmp_path: Path, records: str) -> None:
    """Each run has a job file of its own that says its value; the draft stays; all are measured by the same rules."""

    async def scenario(sessions: Sessions, session: Session) -> None:
        await give(session, records, copy.deepcopy(DRAFT))
        before = copy.deepcopy(session.workspace.draft)
        runs = []
        for name in ("sequential", "optimal"):
            draft = {**copy.deepcopy(session.workspace.draft), "method": {"name": "suppress", "algorithm": name}}
            runs.append(session.runs.start(draft, f"algorithm = {name}"))
        other = session.runs.start({**copy.deepcopy(before), "rules": [{"rule": "threshold", "n": 4}]})
        with pytest.raises(InvalidOption, match="finished"):
            session.runs.measure({runs[0].id: "a"}, runs[0].id)
        for run in (*runs, other):
            await run.finished()
        assert session.workspace.draft == before
        methods = [parse_job(run.job_text, run.path / "job.toml").method for run in runs]
        assert [method.algorithm for method in methods] == ["sequential", "optimal"]  # type: ignore[attr-defined]
        assert all((run.path / "job.toml").read_text(encoding="utf-8") == run.job_text for run in runs)
        assert runs[0].facts["problem"] == runs[1].facts["problem"] != other.facts["problem"]
        assert runs[0].facts["table"] == other.facts["table"]
        assert runs[1].facts["words"] == "suppress algorithm=optimal"
        work = session.runs.measure({run.id: run.note or "other" for run in (*runs, other)}, runs[0].id)
        assert session.runs.measuring is work
        await work.finished()
        assert work.state is State.DONE, work.message
        rows = work.found["rows"]
        assert list(rows) == [run.id for run in (*runs, other)]
        assert {row["sensitive cells"] for row in rows.values()} == {rows[runs[0].id]["sensitive cells"]}
        assert rows[runs[0].id]["percent open"] == 0.0

    in_session(tmp_path, scenario)


def test_a_draft_that_is_wrong_is_not_started(tmp_path: Path, records: str) -> None:
    async def scenario(sessions: Sessions, session: Session) -> None:
        await give(session, records, copy.deepcopy(DRAFT))
        draft = {**copy.deepcopy(DRAFT), "method": {"name": "suppress", "margin": -3}}
        with pytest.raises(InvalidJob, match="margin"):
            session.runs.start(draft)
        assert not session.runs.runs

    in_session(tmp_path, scenario)
