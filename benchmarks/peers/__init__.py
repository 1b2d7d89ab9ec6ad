"""Where the peers live: an interpreter of their own, for they need other versions of the libraries.

`TABLESAFE_PEERS` names it; without, `.venv-peers` in the repository does, which `make peers` fills.
"""

from __future__ import annotations

import json
import os
import subprocess
from math import inf
from pathlib import Path
from typing import Any

from benchmarks.registry import Case, NotHere, Outcome

REPOSITORY = Path(__file__).resolve().parent.parent.parent
SCRIPT = Path(__file__).parent / "run.py"
MISSING = "the peers are not installed: make peers"
STARTING_S = 10.0
"""A peer must be done that much before the whole case is stopped: its own start, and writing its input."""


def interpreter() -> Path | None:
    """The peers' interpreter, if there is one."""
    given = os.environ.get("TABLESAFE_PEERS")
    path = Path(given) if given else REPOSITORY / ".venv-peers" / "bin" / "python"
    return path if path.exists() else None


def versions() -> dict[str, str]:
    """Which peers there are, and in which version."""
    python = interpreter()
    if python is None:
        return {}
    ask = (
        "import json, importlib.metadata as m\n"
        "print(json.dumps({d.metadata['Name']: d.version for d in m.distributions()}))"
    )
    done = subprocess.run([str(python), "-c", ask], capture_output=True, text=True, check=False)
    known = json.loads(done.stdout) if done.returncode == 0 else {}
    return {name: known[name] for name in ("pytauargus", "acro", "pandas") if name in known}


def asked(case: Case, task: str, *arguments: str | Path, most_s: float = inf) -> dict[str, Any]:
    """The answer of a peer; what it says when it fails is the reason in the row.

    `most_s` is when one is stopped that does not keep to the time it was given.
    """
    if case.peers is None:
        raise NotHere(MISSING)
    command = [str(case.peers), str(SCRIPT), task, *map(str, arguments)]
    limit = min(max(case.patience_s - STARTING_S, 1.0), most_s)
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit, cwd=case.scratch, check=False)
    except subprocess.TimeoutExpired:
        raise TimeoutError(f"no answer in {limit:.0f} s") from None
    if "No module named" in done.stderr:
        raise NotHere(done.stderr.strip().splitlines()[-1])
    if done.returncode < 0:
        raise RuntimeError(f"the peer was ended by signal {-done.returncode}")
    if done.returncode:
        raise RuntimeError((done.stderr.strip().splitlines() or ["no reason given"])[-1][:200])
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


def outcome(answer: dict[str, Any], **rest: Any) -> Outcome:
    """The peer's own clock, with the rest of what is known of its run."""
    kept = {key: answer[key] for key in ("cpu_s", "wall_s", "peak_mb", "added_mb")}
    return Outcome(**kept, **rest)
