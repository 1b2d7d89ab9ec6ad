"""An answer about an earlier job says nothing about the job as it is now, however late it comes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("nicegui", reason="the web app needs the extra 'web'")

from nicegui import Client, core, ui
from running import DRAFT, FIRMS, in_session

from tablesafe.web.pages.data import _columns
from tablesafe.web.pages.dimensions import _Tree
from tablesafe.web.pages.screen import Screen
from tablesafe.web.sessions import Session, Sessions
from tablesafe.web.worker import TaskFailed

FAILED = TaskFailed("InvalidJob", "Dimension 'region' is of kind 'hrc', but names no hierarchy.")
TREE: dict[str, Any] = {
    "codes": 6, "leaves": 5, "levels": 2, "sums": 1, "notes": [], "strange": [], "many": 0, "none": False,
    "offered": [],
    "equations": [], "nodes": [],
}  # fmt: skip


def on_a_page(tmp_path: Path, scenario: Callable[[Screen], Awaitable[None]]) -> None:
    """Run a scenario on an open page whose job is sound."""

    async def begin(_: Sessions, session: Session) -> None:
        core.loop = asyncio.get_running_loop()
        session.workspace.store("firms.csv", FIRMS)
        with Client(ui.page("/"), request=None):
            screen = Screen(session.workspace, session.runs)
            screen.replace_draft(DRAFT)
            assert not screen.faults
            await scenario(screen)

    in_session(tmp_path, begin)


def texts(box: ui.element) -> list[str]:
    return [each.text for each in box.descendants() if isinstance(each, ui.label)]


def test_a_tree_that_failed_is_not_blamed_on_the_job_that_mended_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(screen: Screen) -> None:
        asked: list[Any] = []

        async def compute(task: Any, part: Any, name: str) -> Any:
            asked.append(dict(part["dimensions"][name]))
            if len(asked) == 1:
                screen.put(("dimensions", "region", "missing"), "unknown")  # while the first is being answered
                await tree.draw()
                raise FAILED
            return TREE

        monkeypatch.setattr(screen, "compute", compute)
        tree = _Tree(screen, "region")
        line = screen.fault_line(("dimensions", "region"))
        await tree.draw()
        assert asked == [{}, {"missing": "unknown"}]
        assert not screen.faults
        assert not line.visible
        assert texts(tree.box)[0].startswith("6 codes")

    on_a_page(tmp_path, scenario)


def test_a_tree_that_fails_is_told_beside_its_dimension(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(screen: Screen) -> None:
        async def compute(*_: Any) -> Any:
            raise FAILED

        monkeypatch.setattr(screen, "compute", compute)
        tree = _Tree(screen, "region")
        line = screen.fault_line(("dimensions", "region"))
        await tree.draw()
        assert line.visible
        assert line.text == FAILED.message

    on_a_page(tmp_path, scenario)


@pytest.mark.parametrize("fails", [True, False])
def test_columns_of_a_file_that_is_not_the_source_any_more_are_not_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: bool
) -> None:
    async def scenario(screen: Screen) -> None:
        async def columns(_: Any) -> Any:
            screen.put(("source", "delimiter"), ";")
            if fails:
                raise FAILED
            return []

        monkeypatch.setattr(type(screen.workspace), "columns", columns)
        holder = ui.element("div")
        before = screen.columns = ["region"]
        await _columns(screen, holder)
        assert screen.columns == before
        assert not texts(holder)
        assert FAILED.message not in [str(fault.message) for fault in screen.faults]

    on_a_page(tmp_path, scenario)


def test_a_question_that_is_given_up_takes_no_other_with_it(tmp_path: Path) -> None:
    """A process ends with a question that nobody waits for; who waits behind it is answered by another."""

    async def scenario(_: Sessions, session: Session) -> None:
        session.workspace.store("firms.csv", FIRMS)
        session.workspace.draft = dict(DRAFT)
        await session.workspace.columns()
        worker = session.workspace._worker
        given_up = asyncio.create_task(session.workspace.table())
        behind = [asyncio.create_task(session.workspace.columns()) for _ in range(2)]
        while worker is None or not worker.busy:
            await asyncio.sleep(0.01)
        given_up.cancel()
        for answer in behind:
            assert [column["name"] for column in await answer] == ["region", "firm", "size", "turnover"]

    in_session(tmp_path, scenario)
