"""Save a workspace as one file, and open it again: here, or in another app."""

from __future__ import annotations

import shutil
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tablesafe.core.errors import InvalidFile, TablesafeError
from tablesafe.core.language import text
from tablesafe.io.decisions import Decision
from tablesafe.web.drafts import Draft, draft_of, toml_of
from tablesafe.web.tasks.saving import OPENED, STRANGE, pack, unpack
from tablesafe.web.workspace import MOST_FILES, Workspace


async def save(workspace: Workspace) -> Path:
    """Pack the job, its files and all decisions; the path of the file."""
    state = {
        "who": workspace.who,
        "guessed": workspace.guessed,
        "accepted": sorted(workspace.accepted),
        "decisions": [[{**asdict(each), "codes": dict(each.codes)} for each in group] for group in workspace.decisions],
    }
    where = await workspace.compute(pack, toml_of(workspace.draft), state, list(workspace.files))
    return workspace.path / str(where)


async def open_saved(workspace: Workspace, name: str) -> Draft:
    """Put what a file among the files holds in the place of the job; its draft. A file that is none changes nothing."""
    try:
        found = await workspace.compute(unpack, name, MOST_FILES, workspace.limits.total_bytes)
        draft, state = draft_of(found["job"]), found["state"]
        try:
            decisions = [tuple(_decision(each) for each in group) for group in state["decisions"]]
            who, accepted = str(state["who"]), {str(each) for each in state["accepted"]}
            guessed = bool(state["guessed"])
        except (KeyError, TypeError, ValueError) as error:
            raise InvalidFile(
                text(STRANGE, name=name), hint="what it tells of its decisions cannot be read."
            ) from error
    except TablesafeError:
        workspace.remove(name)
        raise
    workspace.clear()
    opened = workspace.path / OPENED
    for each in found["files"]:
        (workspace.path / each).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        (opened / each).replace(workspace.path / each)
        workspace.files[each] = workspace.path / each
    shutil.rmtree(opened, ignore_errors=True)
    workspace.decisions[:] = decisions
    workspace.who, workspace.guessed, workspace.accepted = who, guessed, accepted
    return draft


def _decision(told: Any) -> Decision:
    texts = {key: str(told[key]) for key in ("who", "why", "when")}
    codes = {str(name): str(code) for name, code in told["codes"].items()}
    return Decision(codes, told["what"], float(told["cost"]), **texts)
