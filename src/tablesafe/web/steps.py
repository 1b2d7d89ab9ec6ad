"""Where the user stands: which pages have what they need and were looked at, and which still ask for something.

A tick promises something: this page has what it needs, and somebody looked at it, or it needs no look. What a look at
the data guessed is not yet anybody's decision.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from tablesafe.job.decode import Fault
from tablesafe.job.model import Source
from tablesafe.web.folders import stamp_of

if TYPE_CHECKING:
    from tablesafe.web.runs import Runs
    from tablesafe.web.workspace import Workspace

State = Literal["", "done", "fault", "ask", "old"]
"""Not yet; done; wrong; there is a question to answer; there is a result, but of another job."""
EDITED = ("Data", "Dimensions", "Rules", "Method")
"""The pages on which the job is made."""
STEP_OF = {
    "title": "Data", "source": "Data", "response": "Data", "dimensions": "Dimensions", "tables": "Dimensions",
    "rules": "Rules", "problem": "Rules",
}  # fmt: skip
"""On which page each part of a job is edited; all others on the page of the method."""


def step_of(fault: Fault) -> str:
    """The page on which a fault can be mended."""
    return STEP_OF.get(str(fault.path[0]) if fault.path else "source", "Method")


def address_of(step: str) -> str:
    """Where a page is."""
    return "/" if step == EDITED[0] else f"/{step.lower()}"


def holds_problem(draft: dict[str, Any]) -> bool:
    """Whether the source describes its cells and what is sensitive itself, as JJ files do."""
    source = draft.get("source", {})
    name, kind = source.get("file"), source.get("kind", "auto")
    if not isinstance(name, str) or not isinstance(kind, str):
        return False
    return Source(file=name).holds == "problem" if kind == "auto" else kind == "problem"


def note_look(workspace: Workspace, step: str) -> None:
    """Somebody looked at a page as it is now."""
    if workspace.draft:
        workspace.looked_at[step] = _shown(workspace, step)


def note_job(workspace: Workspace) -> None:
    """Somebody brought a finished job: it says everything, and nothing in it is a guess."""
    for step in EDITED:
        note_look(workspace, step)


def state_of(step: str, workspace: Workspace, runs: Runs, faults: Sequence[Fault]) -> State:
    """Where a page stands."""
    if step not in EDITED:
        return _of_runs(step, runs)
    if not workspace.draft:
        return ""
    if any(step_of(fault) == step for fault in faults):
        return "fault"
    if step == "Data" and workspace.open_questions():
        return "ask"
    needs_no_look = step != "Method" and holds_problem(workspace.draft)
    return "done" if needs_no_look or workspace.looked_at.get(step) == _shown(workspace, step) else ""


def _of_runs(step: str, runs: Runs) -> State:
    finished = [run for run in runs.runs.values() if run.facts]
    if step == "Compare":
        return "done" if len(finished) > 1 else ""
    if not finished:
        return ""
    return "old" if all(runs.outdated(run) for run in finished) else "done"


def _shown(workspace: Workspace, step: str) -> str:
    """What a page shows that others decide: when that changes, it must be looked at again."""
    draft = workspace.draft
    name = draft.get("source", {}).get("file")
    stamp = stamp_of(workspace.files[name]) if name in workspace.files else None
    dimensions = list(draft.get("dimensions", {})) if step == "Dimensions" else None
    return repr((name, stamp, dimensions))
