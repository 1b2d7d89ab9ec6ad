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
from tablesafe.report import writing
from tablesafe.report.progress import Event
from tablesafe.verify import verify

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="signals and folders as Linux has them")
STAGES = ("tabulate", "protect", "audit", "write") if EVERY else ("audit",)


@pytest.fixture(autouse=True)
def _without_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "pictures", lambda *args, **options: {})


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
from pathlib import Path
from tablesafe.cli import main
from tablesafe.report import writing
writing.pictures = lambda *args, **options: {}
job, where, seen = sys.argv[1:]
module, name = where.split(":")
from importlib import import_module
found = import_module(module)
real = getattr(found, name)
def slow(*args, **options):
    Path(seen).touch()
    for _ in range(36000):
        time.sleep(0.1)
    return real(*args, **options)
setattr(found, name, slow)
sys.exit(main(["run", job]))
"""
PLACES = ["tablesafe.pipeline.running:_protected", "tablesafe.pipeline.running:_audited",
          "tablesafe.pipeline.running:write_internal"]  # fmt: skip


# Since Ctrl-C stops a budget first and interrupts only the second time, two of them in one moment may arrive as one:
# the cases with SIGINT are left to the long run until they wait between the two.
SIGNALS = [(signal.SIGTERM, PLACES[1])]
MORE = [
    (signal.SIGINT, PLACES[0]),
    (signal.SIGINT, PLACES[2]),
    (signal.SIGTERM, PLACES[0]),
    (signal.SIGTERM, PLACES[2]),
]


@pytest.mark.parametrize(("number", "place"), SIGNALS + MORE if EVERY else SIGNALS)
def test_two_signals_one_after_the_other(job: Path, number: signal.Signals, place: str) -> None:
    """The second comes while the first is dealt with."""
    seen = job.parent / "scratch/seen"
    process = subprocess.Popen(
        [sys.executable, "-c", SLOW, str(job), place, str(seen)], stderr=subprocess.PIPE, text=True
    )
    while not seen.exists():
        assert process.poll() is None
        time.sleep(0.02)
    seen.unlink()
    os.kill(process.pid, number)
    os.kill(process.pid, number)
    _, errors = process.communicate()
    assert process.returncode == 130, errors
    assert "Traceback" not in errors
    assert not complete_or_none(job.parent)
    if process.returncode == 130:
        run(job)  # whatever the second one kept from being removed
    assert leftovers(job.parent) == []
