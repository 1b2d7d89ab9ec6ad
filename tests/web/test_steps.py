"""A tick means that a page has what it needs and was looked at; a result belongs to the job that it was made of."""

from __future__ import annotations

import copy
from pathlib import Path

from running import DRAFT, FIRMS, give, in_session

from tablesafe.web.sessions import Session, Sessions
from tablesafe.web.steps import EDITED, note_job, note_look, state_of

GAPS = FIRMS + "".join(f",g{i},s1,{90 + i}\n" for i in range(4)) + "r1,h,s2,\n"


def states(session: Session) -> list[str]:
    workspace = session.workspace
    faults = workspace.check() if workspace.draft else []
    return [state_of(step, workspace, session.runs, faults) for step in (*EDITED, "Result", "Compare")]


def test_nothing_is_ticked_before_it_was_looked_at(tmp_path: Path) -> None:
    async def scenario(sessions: Sessions, session: Session) -> None:
        assert states(session) == [""] * 6
        await give(session, FIRMS, copy.deepcopy(DRAFT))
        session.workspace.guessed = True
        assert states(session) == [""] * 6
        for number, step in enumerate(EDITED):
            note_look(session.workspace, step)
            assert states(session) == ["done"] * (number + 1) + [""] * (5 - number)

    in_session(tmp_path, scenario)


def test_what_the_data_leave_open_is_asked(tmp_path: Path) -> None:
    async def scenario(sessions: Sessions, session: Session) -> None:
        draft = copy.deepcopy(DRAFT)
        draft["dimensions"]["region"]["missing"] = "missing"
        draft["source"]["where"] = '"turnover" IS NOT NULL'
        await give(session, GAPS, draft)
        session.workspace.guessed = True
        note_look(session.workspace, "Data")
        await session.workspace.columns()
        assert [each.column for each in session.workspace.open_questions()] == ["region", "turnover"]
        assert states(session)[0] == "ask"
        for question in session.workspace.open_questions():
            session.workspace.accepted.add(str(question.found))
        assert states(session)[0] == "done"
        draft["dimensions"]["region"]["missing"] = "error"  # somebody's choice, but the run would stop
        assert states(session)[0] == "ask"

    in_session(tmp_path, scenario)


def test_a_finished_job_needs_no_look(tmp_path: Path) -> None:
    async def scenario(sessions: Sessions, session: Session) -> None:
        await give(session, FIRMS, copy.deepcopy(DRAFT))
        note_job(session.workspace)
        assert states(session)[:4] == ["done"] * 4
        session.workspace.draft["dimensions"]["firm"] = {}
        assert states(session)[:4] == ["done", "", "done", "done"]  # another dimension is to be looked at
        del session.workspace.draft["response"]["value"]
        session.workspace.draft["rules"][0]["n"] = "three"
        assert states(session)[2] == "fault"

    in_session(tmp_path, scenario)


def test_a_result_is_outdated_when_its_job_is(tmp_path: Path) -> None:
    async def scenario(sessions: Sessions, session: Session) -> None:
        draft = copy.deepcopy(DRAFT)
        await give(session, FIRMS, draft)
        run = session.runs.start()
        await run.finished()
        assert run.safe, run.message
        assert session.runs.outdated(run) == ()
        assert states(session)[4] == "done"
        draft["rules"][0]["n"] = 4
        assert tuple(map(str, session.runs.outdated(run))) == (
            "rules 1, n: not set → 4",
        )  # 3 holds when nothing is said
        assert states(session)[4] == "old"
        draft["rules"][0]["n"] = "many"
        assert tuple(map(str, session.runs.outdated(run))) == ("the job has errors now",)
        draft["rules"][0]["n"] = 3
        assert session.runs.outdated(run) == ()
        await give(session, FIRMS + "r1,f1,s1,5\n", draft)
        assert tuple(map(str, session.runs.outdated(run))) == ("firms.csv was replaced",)

    in_session(tmp_path, scenario)


def test_a_release_is_not_called_after_what_is_confidential(tmp_path: Path) -> None:
    async def scenario(sessions: Sessions, session: Session) -> None:
        draft = copy.deepcopy(DRAFT)
        del draft["output"]
        await give(session, FIRMS, draft)
        job = session.workspace.job()
        assert job.output.release == ("public/release.csv", "public/release.xlsx")
        suggested = await session.workspace.suggest("firms.csv")
        assert "firms" not in str(suggested["output"])

    in_session(tmp_path, scenario)
