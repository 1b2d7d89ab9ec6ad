"""Private folders that do not outlive their process: what is in them is confidential, or not yet to be seen.

Each folder holds a lock for as long as its process lives. Whoever makes a folder of the same kind in the same place
first removes those whose lock nobody holds: their process was killed before it could. A folder of a living process is
never touched, on whatever side of a container it lives: the lock is the system's, not a number in a file name.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path

from tablesafe.core.machine import LOCKS, is_own, is_writable_by_others, lock, open_private
from tablesafe.files.atomic import alone_in, carry_out, places, pointed

LOCK = "lock"
HIDDEN = ".tablesafe-"
"""Begins the names of folders beside the files of a user."""
OPEN = "tablesafe-scratch-"
"""Begins the names of folders in the system's folder for temporary files."""
TRIES = 20
"""New folders that may be swept away by others before ours is locked; more is no accident."""


@contextmanager
def private_folder(parent: str | Path | None, *, prefix: str = OPEN) -> Iterator[Path]:
    """A folder that only this user can enter, gone when the block ends, or else when the next one is made here."""
    place = Path(tempfile.gettempdir() if parent is None else parent)
    sweep(place, prefix)
    folder, held = _locked(place, prefix)
    try:
        yield folder
    finally:
        try:
            _remove(folder)
        finally:
            if held is not None:
                os.close(held)


def sweep(place: Path, prefix: str, *, alone: bool = False) -> None:
    """Remove the folders here whose process is gone; what it had promised to put in place is put there first.

    Meanwhile nobody else puts files there, or the later of two runs would not win whole; `alone` says that the caller
    has seen to that already.
    """
    try:
        found = [Path(entry.path) for entry in os.scandir(place) if _is_ours(entry, prefix)]
    except OSError:
        return
    for folder in sorted(found):
        with nullcontext() if alone else alone_in(_touched(folder)), _taken(folder) as ours:
            if ours and _finished(folder):
                _remove(folder)


def _remove(folder: Path) -> None:
    """Remove a folder, its lock last: what cannot be removed now, or not before a kill, is left for the next one."""
    with suppress(OSError):
        for entry in list(os.scandir(folder)):
            if entry.is_dir(follow_symlinks=False):
                shutil.rmtree(entry.path)
            elif entry.name != LOCK:
                Path(entry.path).unlink(missing_ok=True)
        (folder / LOCK).unlink(missing_ok=True)
        folder.rmdir()


def _touched(folder: Path) -> list[Path]:
    """The folders whose files a promise speaks of."""
    with suppress(OSError):
        return [parent for parent in places(pointed(folder) or folder) if parent.is_dir()]
    return []


def _finished(folder: Path) -> bool:
    """Keep the promise about the files of a folder, wherever it is noted; whether nothing is left to be done."""
    noted = pointed(folder)
    try:
        if noted is None:
            carry_out(folder)
            return True
        if not _is_own(noted):  # gone, and all of it done; or somebody else's, whom nobody obeys
            return True
        with _taken(noted) as ours:
            if ours:
                carry_out(noted)
            return ours or not noted.exists()
    except FileNotFoundError:  # the user has removed the places
        return True
    except OSError:  # a full disk, a folder that may not be written to: for the next one
        return False


def _is_own(folder: Path) -> bool:
    """Whether this is a folder that this user made, and no link."""
    try:
        found = folder.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and is_own(found)


def _is_ours(entry: os.DirEntry[str], prefix: str) -> bool:
    """Whether this may be a folder of this kind that this user made."""
    return entry.name.startswith(prefix) and _is_own(Path(entry.path))


@contextmanager
def _taken(folder: Path) -> Iterator[bool]:
    """Whether nobody holds the lock of a folder; while the block lasts, we do. Without locks nobody can tell."""
    if not LOCKS:
        yield False
        return
    try:
        handle = open_private(folder / LOCK, os.O_RDWR)
    except FileNotFoundError:  # not locked yet, or an empty remainder, which can go
        with suppress(OSError):
            folder.rmdir()
        yield False
        return
    except OSError:
        yield False
        return
    try:
        yield _lock(handle)
    finally:
        os.close(handle)


def _lock(handle: int) -> bool:
    try:
        lock(handle)
    except OSError:
        return False
    return True


def _locked(place: Path, prefix: str) -> tuple[Path, int | None]:
    """A new folder with its lock held; another one if somebody swept it away before it was."""
    for _ in range(TRIES):
        folder = Path(tempfile.mkdtemp(prefix=prefix, dir=place))
        if not LOCKS:
            return folder, None
        try:
            handle = open_private(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_EXCL)
        except FileNotFoundError:
            continue
        except BaseException:  # also Ctrl-C: nobody else knows of the folder yet
            shutil.rmtree(folder, ignore_errors=True)
            raise
        try:
            lock(handle)
        except BlockingIOError:
            os.close(handle)
            continue
        except OSError:  # a file system without locks: without the file, nobody takes the folder for abandoned
            os.close(handle)
            (folder / LOCK).unlink()
            return folder, None
        if (folder / LOCK).exists():
            return folder, handle
        os.close(handle)
    raise OSError(0, f"no private folder stays in {str(place)!r}")


def locked_file(path: Path) -> int | None:
    """Take the lock that a file stands for; None when another process holds it. It is ours until it is closed."""
    handle = open_private(path, os.O_RDWR | os.O_CREAT)
    if _lock(handle):
        return handle
    os.close(handle)
    return None


def require_own(folder: Path) -> None:
    """Check that only this user can put files into a folder: others would read what is kept, or plant an answer."""
    for found in (folder.lstat(), folder.stat()):
        if not is_own(found):
            raise PermissionError(errno.EPERM, f"{folder.name!r} belongs to somebody else")
    if is_writable_by_others(folder.stat()):
        raise PermissionError(errno.EPERM, f"others can write into {folder.name!r}")
