"""Whatever stops a run, and whenever: afterwards there is a complete release with its proof, or none."""

from __future__ import annotations

import os
import shutil
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from injection import count, disk_full, fail_at, kill_at
from small_job import DATA, JOB

import seeds
from tablesafe.core.errors import InvalidFile, TablesafeError, Terminated
from tablesafe.files.private import HIDDEN, OPEN, sweep
from tablesafe.pipeline import run
from tablesafe.verify import verify

OLD = b"the release of an earlier run\n"
EVERY = bool(os.environ.get("TABLESAFE_FAULTS"))
"""Set to try every moment, and each twice."""
pytestmark = pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="needs /proc")


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The job with a pattern that is known already, and what a run of it writes."""
    folder = tmp_path_factory.mktemp("template")
    (folder / "scratch").mkdir()
    (folder / "firms.csv").write_text(DATA, encoding="utf-8")
    (folder / "job.toml").write_text(JOB, encoding="utf-8")
    assert run(folder / "job.toml").safe
    shutil.copy(folder / "public/table.csv", folder / "pattern.csv")
    shutil.rmtree(folder / "public")
    shutil.rmtree(folder / "internal")
    given = 'name = "pattern"\nfile = "pattern.csv"'
    (folder / "job.toml").write_text(JOB.replace('name = "suppress"\ntime_limit_s = 5', given), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def expected(template: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The files of a run to which nothing happens."""
    folder = tmp_path_factory.mktemp("expected") / "job"
    shutil.copytree(template, folder)
    assert run(folder / "job.toml").safe
    return {name: (folder / name).read_bytes() for name in RELEASE + PROOF}


RELEASE = ("public/table.csv", "public/copy.csv")
PROOF = ("internal/certificate.json.gz", "internal/cells.csv")


@pytest.fixture
def fresh(template: Path, tmp_path: Path) -> Callable[[bool], Path]:
    """A new folder with the job; with an earlier release in it, or without."""
    made = 0

    def make(old: bool) -> Path:
        nonlocal made
        made += 1
        folder = tmp_path / str(made)
        shutil.copytree(template, folder)
        if old:
            for name in RELEASE:
                (folder / name).parent.mkdir(exist_ok=True)
                (folder / name).write_bytes(OLD)
        return folder

    return make


def go(folder: Path) -> Callable[[], object]:
    return lambda: run(folder / "job.toml")


def states(folder: Path, expected: dict[str, bytes], old: bool) -> set[str]:
    """Of each file of the release whether it is new or as before; anything else is half a file."""
    found = set()
    for name in RELEASE:
        path = folder / name
        before = path.read_bytes() == OLD if path.exists() and old else not path.exists() and not old
        if before:
            found.add("before")
        else:
            assert path.read_bytes() == expected[name], f"{name} is neither whole nor absent"
            found.add("new")
    if "new" in found:
        for name in PROOF:
            assert (folder / name).read_bytes() == expected[name], "a release is seen before its proof"
        verify(folder / PROOF[0], release=folder / RELEASE[0])
    return found


def leftovers(folder: Path) -> list[str]:
    """Every file and folder that is neither given nor asked for."""
    given = {"firms.csv", "job.toml", "pattern.csv", "scratch", "public", "internal"}
    found = [path.relative_to(folder).parts for path in folder.rglob("*")]
    hidden = {"/".join(parts) for parts in found if any(part.startswith(".") for part in parts)}
    spilled = {"/".join(parts) for parts in found if parts[0] == "scratch" and len(parts) > 1}
    return sorted({*hidden, *spilled, *("/".join(parts) for parts in found if parts[0] not in given)})


def moments(total: int, share: int, late: int, what: str) -> Iterator[int]:
    """The moments to try: all of them, or a share of the early and a larger one of the late, when files are placed.

    Each run of the tests begins with another moment, so that together they try all of them.
    """
    placing, first = max(0, total - 40), seeds.fresh(1, what)[0] % share
    yield from range(total) if EVERY else [*range(first, placing, share), *range(placing + first % late, total, late)]


def sweep_all(folder: Path) -> None:
    """Do what the next run does first."""
    for name, prefix in (("public", HIDDEN), ("internal", HIDDEN), ("scratch", OPEN), ("", HIDDEN)):
        sweep(folder / name, prefix)


@pytest.mark.parametrize("old", [False, True], ids=["first", "over an old one"])
def test_a_kill_at_any_moment(fresh: Callable[[bool], Path], expected: dict[str, bytes], old: bool) -> None:
    total = len(count((folder := fresh(old)), go(folder)))
    assert states(folder, expected, old) == {"new"}
    assert total > 60
    for i, n in enumerate(moments(total, 36, 6, f"kill, {old}")):
        folder = fresh(old)
        assert kill_at(n, folder, go(folder))
        states(folder, expected, old)
        sweep_all(folder)
        assert len(states(folder, expected, old)) == 1, f"after {n}: some files of the release are new, some are not"
        assert leftovers(folder) == [], f"after {n}"
        if i % 16 == 0 or EVERY:
            assert run(folder / "job.toml").safe
            assert states(folder, expected, old) == {"new"}
        shutil.rmtree(folder)


def test_files_are_on_the_disk_before_they_are_moved(fresh: Callable[[bool], Path]) -> None:
    """Every file, then the note about them, and only then the moves; and after these the names in the folders."""
    names = count((folder := fresh(False)), go(folder))
    written = len([path for name in ("public", "internal") for path in (folder / name).iterdir()])
    moves = [i for i, name in enumerate(names) if name == "os.rename"][-written:]
    assert names[: moves[0]].count("os.fsync") >= written + 2
    assert "os.fsync" in names[moves[-1] :]


def test_two_runs_do_not_place_files_at_the_same_time(tmp_path: Path) -> None:
    import fcntl
    import threading

    from tablesafe.pipeline.outputs import together

    handle = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(handle, fcntl.LOCK_EX)  # as another run holds it while it places its own

    def place() -> None:
        with together() as outputs:
            outputs.place(tmp_path / "table.csv").write_text("x")

    thread = threading.Thread(target=place)
    thread.start()
    thread.join(0.5)
    assert not (tmp_path / "table.csv").exists()
    os.close(handle)
    thread.join()
    assert (tmp_path / "table.csv").exists()


TRIED = {disk_full: (24, 4), MemoryError: (40, 10), KeyboardInterrupt: (40, 10), Terminated: (40, 10)}


@pytest.mark.parametrize("fault", TRIED, ids=lambda f: f.__name__)
def test_a_fault_at_any_moment(
    fresh: Callable[[bool], Path], expected: dict[str, bytes], fault: Callable[[], BaseException]
) -> None:
    """Other than after a kill, everything is cleaned up at once, and the user is told in plain words."""
    events = count((folder := fresh(True)), go(folder))
    for n in moments(len(events), *TRIED[fault], fault.__name__):
        folder = fresh(True)
        outcome: BaseException | None = None
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                fail_at(n, folder, go(folder), fault)
        except (TablesafeError, MemoryError, KeyboardInterrupt, Terminated) as error:
            outcome = error
        if fault is disk_full and outcome is not None:
            assert isinstance(outcome, (InvalidFile, TablesafeError))
            assert "No space left" in str(outcome)
        found = states(folder, expected, True)
        assert len(found) == 1, f"after {n}: some files of the release are new, some are not"
        assert (outcome is None) <= (found == {"new"}), f"after {n}: it failed, and did not say so"
        if events[n] not in {"os.remove", "os.rmdir"}:  # what cannot be removed is left for the next run
            assert leftovers(folder) == [], f"after {n}, at once"
        sweep_all(folder)
        assert leftovers(folder) == [], f"after {n}"
        shutil.rmtree(folder)
