"""The app's private folder: uploads, runs and temporary files, for its owner only, and gone when the app has ended."""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PREFIX = "tablesafe-serve-"
LOCK = "lock"


@contextmanager
def private_folder(parent: Path | None = None) -> Iterator[Path]:
    """A folder that only this user can enter; removed at the end, with all that lies in it.

    Temporary files of this process and its children go there too, so that none is left behind.
    """
    parent = Path(tempfile.gettempdir()) if parent is None else parent
    remove_stale(parent)
    folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent)).resolve()
    lock = _locked(folder)
    try:
        with _temporary_files_in(folder / "tmp"):
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def _locked(folder: Path) -> int:
    """Hold the folder's lock; the file gets its name when it is locked already, so that nobody finds it free."""
    unnamed = folder / f"{LOCK}.new"
    lock = os.open(unnamed, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    unnamed.rename(folder / LOCK)
    return lock


@contextmanager
def _temporary_files_in(folder: Path) -> Iterator[None]:
    folder.mkdir(mode=0o700)
    before, variable = tempfile.tempdir, os.environ.get("TMPDIR")
    tempfile.tempdir, os.environ["TMPDIR"] = str(folder), str(folder)
    try:
        yield
    finally:
        tempfile.tempdir = before
        if variable is None:
            os.environ.pop("TMPDIR", None)
        else:
            os.environ["TMPDIR"] = variable


def remove_stale(parent: Path) -> int:
    """Remove folders that killed servers of this user left behind; say how many.

    A folder in use holds its lock. One that is a link, belongs to somebody else, or may be entered by others is not
    ours: it is left alone.
    """
    removed = 0
    for folder in parent.glob(PREFIX + "*"):
        if _is_ours(folder) and _is_abandoned(folder):
            shutil.rmtree(folder, ignore_errors=True)
            removed += 1
    return removed


def _is_ours(folder: Path) -> bool:
    try:
        about = folder.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(about.st_mode) and about.st_uid == os.getuid() and stat.S_IMODE(about.st_mode) == 0o700


def _is_abandoned(folder: Path) -> bool:
    """Whether nobody holds the lock; a folder whose lock is not there yet is just being made."""
    try:
        lock = os.open(folder / LOCK, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    finally:
        os.close(lock)
    return True
