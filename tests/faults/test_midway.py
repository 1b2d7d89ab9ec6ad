"""Real trouble in the middle of a whole run: folders that go, fill up or may not be written to, inputs, signals."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from test_disk import EVERY, RELEASE, leftovers

from tablesafe.core.errors import InvalidFile
from tablesafe.pipeline import run
from tablesafe.report.progress import Event
from tablesafe.verify import verify

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="signals and folders as Linux has them")
STAGES = ("tabulate", "protect", "audit", "write") if EVERY else ("audit",)


def at(stage: str, happen: Callable[[], object]) -> Callable[[Event], None]:
    """Let something happen once, when a run comes to a stage."""
    done: list[object] = []

    def listen(event: Event) -> None:
        if event.stage == stage and not done:
            done.append(None)
            happen()

    return listen


def complete_or_none(folder: Path) -> bool:
    """Whether there is a release; half of one, or one without its proof, there never is."""
    there = {(folder / name).exists() for name in RELEASE}
    assert len(there) == 1
    if there == {True}:
        verify(folder / "internal/certificate.json.gz", release=folder / RELEASE[0])
    return there == {True}


# -- folders -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("name", ["public", "internal"])
def test_a_folder_that_is_removed_is_made_again(job: Path, name: str, stage: str) -> None:
    run(job)
    assert run(job, on_event=at(stage, lambda: shutil.rmtree(job.parent / name))).published
    assert complete_or_none(job.parent)
    assert leftovers(job.parent) == []


@pytest.mark.parametrize("name", ["public", "internal"])
def test_a_file_in_the_place_of_a_folder(job: Path, name: str) -> None:
    with pytest.raises(InvalidFile, match="Cannot write"):
        run(job, on_event=at("audit", (job.parent / name).touch))
    assert (job.parent / name).read_bytes() == b""
    assert not any((job.parent / release).exists() for release in RELEASE)
    assert leftovers(job.parent) == []


@pytest.fixture
def mounted(job: Path) -> Iterator[Path]:
    """A small disk of its own for the release."""
    folder = job.parent / "public"
    folder.mkdir()
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(folder)], check=False,
                          stderr=subprocess.DEVNULL) if shutil.which("mount") else None  # fmt: skip
    if made is None or made.returncode:
        pytest.skip("no disk may be mounted here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.mark.parametrize("old", [False, True], ids=["first", "over an old one"])
def test_a_disk_that_fills_up(job: Path, mounted: Path, old: bool) -> None:
    if old:
        run(job)
    before = {path.name: path.read_bytes() for path in mounted.iterdir()}

    def fill() -> None:
        with (mounted / "full").open("wb", buffering=0) as file, suppress(OSError):
            while True:
                file.write(b"x" * 512)

    with pytest.raises(InvalidFile, match="No space left"):
        run(job, on_event=at("audit", fill))
    (mounted / "full").unlink()
    assert {path.name: path.read_bytes() for path in mounted.iterdir()} == before
    assert leftovers(job.parent) == []
    assert run(job).published


def test_a_disk_that_becomes_read_only(job: Path, mounted: Path) -> None:
    def remount(how: str) -> None:
        subprocess.run(["mount", "-o", f"remount,{how}", str(mounted)], check=True)

    run(job)
    before = {path.name: path.read_bytes() for path in mounted.iterdir()}
    with pytest.raises(InvalidFile, match="Read-only"):
        run(job, on_event=at("audit", lambda: remount("ro")))
    assert {path.name: path.read_bytes() for path in mounted.iterdir()} == before
    remount("rw")
    assert leftovers(job.parent) == []
    assert run(job).published


# -- inputs ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["replaced", "removed"])
def test_an_input_that_is_not_the_same_any_more(job: Path, how: str) -> None:
    """Once it is read, what becomes of it makes no difference; before, there is no release."""
    data = job.parent / "firms.csv"
    plain = data.read_text()
    run(job)
    expected = {name: (job.parent / name).read_bytes() for name in RELEASE}

    def change() -> None:
        data.unlink()
        if how == "replaced":
            data.write_text(plain.replace("404", "405"))

    with pytest.raises(InvalidFile, match=r"firms\.csv"):
        run(job, on_event=at("rules", change))
    assert {name: (job.parent / name).read_bytes() for name in RELEASE} == expected, "as before"
    data.write_text(plain)
    assert run(job, on_event=at("audit", change)).published
    assert {name: (job.parent / name).read_bytes() for name in RELEASE} == expected
    assert leftovers(job.parent) == []


# -- signals -----------------------------------------------------------------------------------------------------------

SLOW = """
import sys, time
from importlib import import_module
from pathlib import Path
from tablesafe.cli import main
from tablesafe.report import writing
from tablesafe.work.stopping import asked
writing.pictures = lambda *args, **options: {}
job, where, seen, heard = sys.argv[1:]
module, name = where.split(":")
found = import_module(module)
real = getattr(found, name)
def slow(*args, **options):
    Path(seen).touch()
    while True:
        time.sleep(0.02)
        if asked():
            Path(heard).touch()
setattr(found, name, slow)
sys.argv[1:] = ["run", job]
main()
"""
SEARCH, WRITING = "tablesafe.pipeline.attempts:outcome", "tablesafe.pipeline.running:write_internal"
SIGNALS = [(signal.SIGINT, SEARCH), (signal.SIGINT, WRITING), (signal.SIGTERM, SEARCH)]
MORE = [(signal.SIGINT, "tablesafe.pipeline.running:audit"), (signal.SIGTERM, WRITING)]


ONCE = """
import os, sys
from importlib import import_module
from tablesafe.cli import main
job, where, number = sys.argv[1:]
module, name = where.split(":")
found = import_module(module)
real = getattr(found, name)
def stopped(*args, **options):
    os.kill(os.getpid(), int(number))
    return real(*args, **options)
setattr(found, name, stopped)
sys.argv[1:] = ["run", job]
main()
"""
AUDITING, GUESSING = "tablesafe.pipeline.running:audit", "tablesafe.pipeline.running:_attacked"


@pytest.mark.parametrize("place", [SEARCH, AUDITING, GUESSING, WRITING])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_single_signal_keeps_what_there_is_wherever_it_comes(job: Path, number: signal.Signals, place: str) -> None:
    """Search, audit, guesses or files: the run goes on to its end, by the shortest way, and writes a release.

    What it does not write for want of time is not there at all: that of an earlier run would pass for its own.
    """
    of_an_earlier_run = [job.parent / "internal" / name for name in ("table.xlsx", "attack.csv", "heat_map.png")]
    for file in of_an_earlier_run:
        file.parent.mkdir(exist_ok=True)
        file.write_text("earlier")
    command = [sys.executable, "-c", ONCE, str(job), place, str(int(number))]
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert complete_or_none(job.parent)
    assert leftovers(job.parent) == []
    late = place in (GUESSING, WRITING)
    assert (job.parent / "internal/table.xlsx").exists() == (place == WRITING), "by the shortest way"
    assert late or not (job.parent / "internal/attack.csv").exists()
    assert not any(file.exists() and file.read_bytes() == b"earlier" for file in of_an_earlier_run)


@pytest.mark.parametrize(("number", "place"), SIGNALS + MORE if EVERY else SIGNALS)
def test_two_signals_one_after_the_other(job: Path, number: signal.Signals, place: str) -> None:
    """The second comes while the first is dealt with.

    The first only asks for an end with the best that there is, and two in one moment may arrive as one: so the second
    waits until the first was heard.
    """
    seen, heard = job.parent / "scratch/seen", job.parent / "scratch/heard"
    process = subprocess.Popen(
        [sys.executable, "-c", SLOW, str(job), place, str(seen), str(heard)], stderr=subprocess.PIPE, text=True
    )

    def await_mark(mark: Path) -> None:
        while not mark.exists():
            assert process.poll() is None
            time.sleep(0.02)
        mark.unlink()

    await_mark(seen)
    os.kill(process.pid, number)
    await_mark(heard)
    os.kill(process.pid, number)
    _, errors = process.communicate()
    heard.unlink(missing_ok=True)
    assert process.returncode == 130, errors
    assert "Traceback" not in errors
    assert not complete_or_none(job.parent)
    run(job)  # whatever the second one kept from being removed
    assert leftovers(job.parent) == []
