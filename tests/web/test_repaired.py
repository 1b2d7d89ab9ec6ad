"""A release repaired from the last one: what a decision asks for changes, and the shell makes the same of the job."""

from __future__ import annotations

import copy
import shutil
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
from running import DRAFT, FIRMS, give, in_session

from tablesafe.core.errors import TablesafeError
from tablesafe.io.decisions import Decision
from tablesafe.web.runs import State, repairing
from tablesafe.web.sessions import Session, Sessions


def withheld(path: Path) -> set[tuple[str, str]]:
    frame = pl.read_csv(path, infer_schema=False)
    return {(row["region"], row["size"]) for row in frame.to_dicts() if not row["turnover"]}


def test_only_what_changed_is_repaired(tmp_path: Path) -> None:
    async def scenario(sessions: Sessions, session: Session) -> None:
        workspace, runs = session.workspace, session.runs
        await give(session, FIRMS, copy.deepcopy(DRAFT))
        first = runs.start()
        await first.finished()
        before = withheld(first.file("public/table.csv"))
        cell = next(
            (region, size) for region in ("r0", "r1") for size in ("s0", "s1", "s2") if (region, size) not in before
        )
        workspace.decide([Decision(dict(zip(("region", "size"), cell, strict=True)), "sensitive", 1.0)])
        assert runs.outdated(first)
        second = await runs.repair(first)
        await second.finished()
        assert second.state is State.DONE
        assert second.safe
        assert not runs.outdated(second)
        assert str(second.note) == "repaired from run-1"
        after = withheld(second.file("public/table.csv"))
        assert cell in after
        assert "keep" in second.job_text
        assert "keep" not in workspace.job_text()
        there = tmp_path / "shell"
        there.mkdir()
        for name in (*second.read, "job.toml"):
            shutil.copy(second.path / name, there / name)
        subprocess.run([sys.executable, "-m", "tablesafe", "run", "job.toml", "--quiet"], cwd=there, check=True)
        assert (there / "public/table.csv").read_bytes() == second.file("public/table.csv").read_bytes()
        _going_back(session)
        await runs.remove("run-2")
        assert "pattern-run-2.csv" not in workspace.files

    in_session(tmp_path, scenario)


def _going_back(session: Session) -> None:
    """To the job of a run, with files that were removed and decisions that were made."""
    workspace, runs = session.workspace, session.runs
    second, text, decided = runs.get("run-2"), workspace.job_text(), list(workspace.decisions)
    workspace.clear()
    assert runs.recent() == [second, runs.get("run-1")]
    workspace.draft = runs.go_back(second)
    assert workspace.job_text() == text
    assert workspace.decisions == decided
    assert not runs.outdated(second)
    assert runs.recent() == [runs.get("run-1")]
    workspace.draft = runs.go_back(runs.get("run-1"))
    assert not workspace.decisions
    assert "decisions.csv" not in workspace.files


def test_what_withholds_nothing_cannot_be_repaired() -> None:
    with pytest.raises(TablesafeError, match="withholds cells"):
        repairing({"method": {"name": "round", "base": 5}}, "pattern.csv")
    assert repairing({}, "p.csv")["method"] == {
        "name": "suppress",
        "keep": "p.csv",
        "clean_up": True,
        "time_limit_s": 10,
    }
