"""The pipeline, the command line and the app work without fork, locks, limits and POSIX signals, by spawn alone."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import httpx

HERE = Path(__file__).parent
LIMIT_S = 900
"""For a process that hangs; a busy machine takes long."""
FIRMS = "Region,Größe,firm,turnover\n" + "".join(
    f"r{i % 5},s{i % 4},f{i % 17},{100 + (i * 7919) % 997}\n" for i in range(120)
)
JOB = """
title = "Umsätze"

[source]
file = "Daten 2024/Umsätze.csv"
respondent = "firm"

[dimensions.Region]

[dimensions."Größe"]

[response]
value = "turnover"

[[rules]]
rule = "p_percent"
p = 20

[output]
release = ["öffentlich/Tabelle 1.csv"]
internal = "intern"
"""
BARE = """
import importlib.util, multiprocessing, os, signal
assert not hasattr(os, "fork") and not hasattr(signal, "SIGKILL")
assert multiprocessing.get_start_method() == "spawn"
try:
    import fcntl
except ModuleNotFoundError:
    print("bare")
"""
POOL = """
from concurrent.futures import Executor
from tablesafe.work.processes import Processes

if __name__ == "__main__":
    with Processes(2) as pool:
        print(sorted(each.result() for each in [pool.submit(abs, -1), pool.submit(abs, -2)]))
"""
APP = """
import asyncio, sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
import running
from tablesafe.web.runs import State

async def quick(sessions, session):
    await running.give(session, running.FIRMS, running.DRAFT)
    run = session.runs.start()
    await run.finished()
    assert run.state is State.DONE, run.message
    assert run.file("public/table.csv").stat().st_size

async def stopped(sessions, session):
    await running.give(session, *running.hard(6))
    run = session.runs.start()
    await running.until(run, lambda: run.history)
    run.stop()
    await run.finished()
    assert run.state is State.DONE, run.message
    assert run.safe and run.asked_to_stop
    assert run.file("public/table.csv").stat().st_size

if __name__ == "__main__":
    for name, scenario in (("quick", quick), ("stopped", stopped)):
        place = Path(sys.argv[1]) / name
        place.mkdir()
        running.in_session(place, scenario)
    print("both ended")
"""


def surroundings(place: Path) -> dict[str, str]:
    path = os.pathsep.join([str(HERE), *filter(None, [os.environ.get("PYTHONPATH")])])
    return {**os.environ, "PYTHONPATH": path, "TMPDIR": str(place), "PYTHONWARNINGS": "ignore"}


def said(place: Path, *command: str) -> str:
    """What a process says there; it must end well."""
    done = subprocess.run(
        [sys.executable, *command], cwd=place, env=surroundings(place), capture_output=True, text=True, timeout=LIMIT_S
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_machine_is_as_bare_as_it_is_meant_to_be(tmp_path: Path) -> None:
    assert said(tmp_path, "-c", BARE) == "bare\n"


def test_a_job_runs_from_the_command_line_in_folders_with_spaces_and_umlauts(tmp_path: Path) -> None:
    place = tmp_path / "Müller & Söhne, Übersicht"
    (place / "Daten 2024").mkdir(parents=True)
    (place / "Daten 2024" / "Umsätze.csv").write_text(FIRMS, encoding="utf-8")
    (place / "Auftrag 1.toml").write_text(JOB, encoding="utf-8")
    said(place, "-m", "tablesafe", "run", "Auftrag 1.toml")
    release = (place / "öffentlich" / "Tabelle 1.csv").read_text(encoding="utf-8")
    assert release.startswith("Region,Größe")
    assert list(place.rglob(".tablesafe-*")) == []


def test_a_pool_of_processes_works(tmp_path: Path) -> None:
    (tmp_path / "pool.py").write_text(POOL)
    assert said(tmp_path, "pool.py") == "[1, 2]\n"


def test_the_app_runs_a_job_and_stops_one(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(APP)
    assert said(tmp_path, "app.py", str(tmp_path), str(HERE.parent / "web")).endswith("both ended\n")


def test_the_server_answers(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tablesafe", "serve", "--port", "0", "--no-browser"]
    with subprocess.Popen(
        command, cwd=tmp_path, env=surroundings(tmp_path), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as server:
        try:
            assert server.stdout is not None
            printed = ""
            while (found := re.search(r"(http://\S+)/\?token=(\S+)", printed)) is None:
                line = server.stdout.readline()
                assert line, printed
                printed += line
            with httpx.Client(base_url=found[1], timeout=LIMIT_S) as browser:
                assert browser.get(f"/?token={found[2]}").status_code == 303
                assert browser.get("/").status_code == 200
        finally:
            server.terminate()
        server.wait(LIMIT_S)
    assert list(tmp_path.glob("tablesafe-serve-*")) == []
