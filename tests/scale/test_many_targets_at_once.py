"""Several jobs at once in the shell: none disturbs another, not even where they write the same files."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from tablesafe.pipeline import run
from tablesafe.verify import verify

RUN = (
    "import sys; from tablesafe.cli import main; from tablesafe.report import writing; "
    "writing.pictures = lambda *args, **options: {}; main(sys.argv[1:])"
)
"""Without drawings, which take longer than all the rest."""


def test_several_jobs_at_once(write_job: Callable[..., Path], tmp_path: Path) -> None:
    """Two write each to its own place, two to one and the same, from other rules: of these, one wins whole."""
    first = write_job("jobs", 'temporary = "scratch"')
    folder = first.parent
    (folder / "scratch").mkdir()
    text = first.read_text(encoding="utf-8").replace('algorithm = "modular"\n', "")
    jobs = []
    for i in range(4):
        own = f"own{i}" if i < 2 else "shared"
        job = folder / f"job{i}.toml"
        changed = text.replace("public/table.csv", f"{own}/table.csv").replace("p = 10", f"p = {10 + i}")
        changed = changed.replace("[run]", f'internal = "internal-{own}"\n\n[run]')
        job.write_text(changed, encoding="utf-8")
        jobs.append(job)
    running = [
        subprocess.Popen([sys.executable, "-c", RUN, "run", str(job), "--quiet"], stderr=subprocess.PIPE, text=True)
        for job in jobs
    ]
    for process in running:
        _, errors = process.communicate()
        assert process.returncode == 0, errors
    for own in ("own0", "own1", "shared"):
        verify(folder / f"internal-{own}/certificate.json.gz", release=folder / own / "table.csv")
    hidden = [path for path in folder.rglob("*") if path.name.startswith(".tablesafe")]
    assert hidden == []
    assert list((folder / "scratch").iterdir()) == []
    alone = tmp_path / "alone"
    shutil.copytree(folder, alone)
    before = (folder / "own1/table.csv").read_bytes()
    assert run(alone / "job1.toml").published
    assert (alone / "own1/table.csv").read_bytes() == before, "the same as when it is alone"
