"""Moves that a run promised before it was killed: kept once, in order, and only if they are our own."""

from __future__ import annotations

import fcntl
import json
import os
import stat
import threading
from pathlib import Path

import pytest

from tablesafe.core.errors import InvalidFile
from tablesafe.files import private as scratch
from tablesafe.files.atomic import NOTE, Placement, note, point
from tablesafe.files.private import HIDDEN, LOCK, sweep
from tablesafe.pipeline.outputs import together


def test_a_file_of_an_earlier_run_goes_with_the_new_ones_or_stays_with_the_old(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All or nothing holds for what is taken away as well; what this run writes itself is not taken away."""
    old, new = tmp_path / "internal/workbook", tmp_path / "internal/proof"
    old.parent.mkdir()
    old.write_text("earlier")

    def write_anew() -> None:
        with together() as outputs:
            for name in ("workbook", "proof", "never there"):
                outputs.clear(old.with_name(name))
            outputs.place(new, private=True).write_text("later")

    real = Path.replace

    def full(self: Path, target: Path) -> Path:
        if target.name == "proof":
            raise OSError(28, "No space left on device")
        return real(self, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", full)
        with pytest.raises(InvalidFile, match="No space left"):
            write_anew()
    assert old.read_text() == "earlier"
    assert not new.exists()
    write_anew()
    assert not old.exists()
    assert new.read_text() == "later"
    assert [file.name for file in old.parent.iterdir()] == ["proof"]


@pytest.fixture
def killed(tmp_path: Path) -> tuple[Path, Path]:
    """Two private folders, as a run leaves them that is killed with its moves noted: the office's, the release's."""
    office, public = tmp_path / "internal", tmp_path / "public"
    folders = (office / f"{HIDDEN}a", public / f"{HIDDEN}b")
    for folder in folders:
        folder.mkdir(parents=True, mode=0o700)
        (folder / LOCK).touch()
    (folders[0] / "0").write_text("killed")
    (folders[1] / "1").write_text("killed")
    point(folders[0], folders[1])
    note(folders[1], [Placement(office / "proof", folders[0] / "0"), Placement(public / "table", folders[1] / "1")])
    return folders


def write(folder: Path) -> None:
    with together() as outputs:
        outputs.place(folder / "internal/proof", private=True).write_text("later")
        outputs.place(folder / "public/table").write_text("later")


def test_a_run_that_was_killed_while_another_worked_does_not_come_back_over_it(
    killed: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other made its folders before: it meets the promise only when it puts its own files in place."""
    with monkeypatch.context() as patch:
        patch.setattr(scratch, "sweep", lambda *args: None)
        write(tmp_path)
    for name in ("internal", "public"):
        sweep(tmp_path / name, HIDDEN)
    assert (tmp_path / "internal/proof").read_text() == "later"
    assert (tmp_path / "public/table").read_text() == "later"
    assert not any(folder.exists() for folder in killed)


def test_nobody_finishes_moves_while_another_puts_files_in_place(killed: tuple[Path, Path], tmp_path: Path) -> None:
    handle = os.open(tmp_path / "public", os.O_RDONLY)
    fcntl.flock(handle, fcntl.LOCK_EX)  # as another run holds it while it places its own
    thread = threading.Thread(target=sweep, args=(tmp_path / "internal", HIDDEN))
    thread.start()
    thread.join(0.3)
    assert not (tmp_path / "internal/proof").exists()
    assert killed[0].exists()
    os.close(handle)
    thread.join()
    assert (tmp_path / "internal/proof").read_text() == (tmp_path / "public/table").read_text() == "killed"


def test_files_of_a_promise_that_somebody_else_is_keeping_are_left_alone(killed: tuple[Path, Path]) -> None:
    handle = os.open(killed[1] / LOCK, os.O_RDWR)
    fcntl.flock(handle, fcntl.LOCK_EX)
    sweep(killed[0].parent, HIDDEN)
    assert (killed[0] / "0").exists(), "it is about to be moved"
    os.close(handle)
    sweep(killed[1].parent, HIDDEN)
    assert (killed[0].parent / "proof").read_text() == (killed[1].parent / "table").read_text() == "killed"


def test_a_promise_that_cannot_be_kept_now_is_kept_later(
    killed: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Path.replace

    def read_only(self: Path, target: Path) -> Path:
        if target.name == "table":
            raise PermissionError(13, "Permission denied")
        return real(self, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", read_only)
        for name in ("internal", "public"):
            sweep(tmp_path / name, HIDDEN)
    assert (tmp_path / "internal/proof").exists()
    for name in ("internal", "public"):
        sweep(tmp_path / name, HIDDEN)
    assert (tmp_path / "public/table").read_text() == "killed"
    assert not any(folder.exists() for folder in killed)


@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() != 0, reason="only root gives files away")
def test_nobody_obeys_the_note_of_somebody_else(killed: tuple[Path, Path], tmp_path: Path) -> None:
    """Whoever may write into the folder of the release could put one there in the place of ours."""
    victim, planted = tmp_path / "victim", killed[1] / "1"
    victim.write_text("mine")
    (killed[1] / NOTE).write_text(json.dumps([[str(victim), str(planted)]]))
    os.chown(killed[1], 12345, 12345)
    for name in ("internal", "public"):
        sweep(tmp_path / name, HIDDEN)
    assert victim.read_text() == "mine"


@pytest.mark.parametrize("text", ["[", "[1]", "3", "[[1, 2]]", '{"a": 1}', "\x00"])
def test_a_note_that_is_none_is_no_promise(killed: tuple[Path, Path], text: str) -> None:
    (killed[1] / NOTE).write_text(text)
    sweep(killed[1].parent, HIDDEN)
    assert not killed[1].exists()


NAMES = ("internal/proof", "internal/cells", "public/table", "public/copy")


@pytest.mark.parametrize("old", [False, True], ids=["first", "over old ones"])
@pytest.mark.parametrize("name", NAMES)
def test_if_one_file_cannot_be_placed_all_are_as_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, old: bool
) -> None:
    for each in NAMES if old else ():
        (tmp_path / each).parent.mkdir(exist_ok=True)
        (tmp_path / each).write_text("old")
    real, failed = Path.replace, []

    def stubborn(self: Path, target: Path) -> Path:
        if target == tmp_path / name and not failed:
            failed.append(target)
            raise OSError(28, "No space left on device")
        return real(self, target)

    monkeypatch.setattr(Path, "replace", stubborn)

    def place() -> None:
        with together() as outputs:
            for each in NAMES:
                outputs.place(tmp_path / each, private=each.startswith("internal")).write_text("new")

    with pytest.raises(InvalidFile, match="No space left"):
        place()
    assert failed
    found = {str(path.relative_to(tmp_path)): path.read_text() for path in tmp_path.rglob("*") if path.is_file()}
    assert found == (dict.fromkeys(NAMES, "old") if old else {})


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_what_stays_in_the_office_is_for_its_owner_only(tmp_path: Path, umask: int) -> None:
    """While it is written and afterwards, whatever the user's own setting."""
    before = os.umask(umask)
    try:
        with together() as outputs:
            written = [
                outputs.place(tmp_path / "internal/proof", private=True), outputs.place(tmp_path / "public/table")
            ]  # fmt: skip
            for path in written:
                path.write_text("x")
                assert stat.S_IMODE(path.stat().st_mode) == 0o600
                assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
        with scratch.private_folder(tmp_path) as made:
            assert stat.S_IMODE(made.stat().st_mode) == 0o700
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "internal/proof").stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "internal").stat().st_mode) == 0o700 & ~umask
    assert stat.S_IMODE((tmp_path / "public/table").stat().st_mode) == 0o666 & ~umask
