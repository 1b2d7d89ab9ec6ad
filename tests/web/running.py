"""Jobs and sessions for tests of runs."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from tablesafe.web.folders import Folder
from tablesafe.web.runs import Queue, Run
from tablesafe.web.sessions import Session, Sessions

FIRMS = "region,firm,size,turnover\n" + "".join(
    f"r{i % 5},f{i % 17},s{i % 4},{100 + (i * 7919) % 997}\n" for i in range(120)
)
DRAFT: dict[str, Any] = {
    "title": "Turnover",
    "source": {"file": "firms.csv", "respondent": "firm"},
    "dimensions": {"region": {}, "size": {}},
    "response": {"value": ["turnover"]},
    "rules": [{"rule": "threshold", "n": 3}, {"rule": "p_percent", "p": 20}],
    "output": {"release": ["public/table.csv"]},
}


def hard(size: int = 9) -> tuple[str, dict[str, Any]]:
    """Data and a job whose best answer takes far longer than a test: three dimensions, every seventh cell sensitive."""
    lines = []
    for cell in range(size**3):
        codes = f"a{cell % size},b{cell // size % size},c{cell // size**2}"
        for k in range(6):
            large = 900 if k == 0 and (cell * 7919) % 7 == 0 else 30
            lines.append(f"{codes},f{(cell * 31 + k) % 997},{large + (cell * 104729 + k * 1299709) % 97}\n")
    method = {"name": "suppress", "algorithm": "optimal", "time_limit_s": 600.0}
    draft = {
        **DRAFT,
        "dimensions": {"a": {}, "b": {}, "c": {}},
        "rules": [{"rule": "p_percent", "p": 20}],
        "method": method,
        "audit": {"unions": False, "insiders": False},
    }
    return "a,b,c,firm,turnover\n" + "".join(lines), draft


def in_session(tmp_path: Path, scenario: Callable[[Sessions, Session], Awaitable[None]], places: int = 2) -> None:
    """Run a scenario with a session, and end all of it."""

    async def main() -> None:
        sessions = Sessions(tmp_path / "private", Folder(), queue=Queue(places))
        (tmp_path / "private").mkdir(mode=0o700)
        session = sessions.find(sessions.create())
        assert session is not None
        try:
            await scenario(sessions, session)
        finally:
            await sessions.close()
        assert list((tmp_path / "private").iterdir()) == []

    asyncio.run(main())


async def give(session: Session, text: str, draft: dict[str, Any]) -> None:
    async def chunks() -> Any:
        yield text.encode()

    await session.workspace.receive("firms.csv", chunks())
    session.workspace.draft = draft


async def until(run: Run, condition: Callable[[], bool]) -> None:
    while not condition():
        assert not run.state.ended, (run.state, run.message)
        await run.changed()
