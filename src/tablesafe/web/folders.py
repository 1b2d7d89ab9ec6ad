"""The app's private folder: uploads, runs and temporary files, for its owner only, and gone when the app has ended."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import TypeAlias

from tablesafe.core.errors import InvalidFile
from tablesafe.core.language import text
from tablesafe.core.machine import LOCKS, TEMPORARY, is_for_owner_only, is_own, lock, open_private

Stamp: TypeAlias = tuple[int, int, int]
"""What changes when a file does: when it was written, its size, and which file it is."""
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
    held = _locked(folder)
    try:
        with _temporary_files_in(folder / "tmp"):
            yield folder
    finally:
        if not LOCKS:  # Windows removes no file that is open
            os.close(held)
        shutil.rmtree(folder, ignore_errors=True)
        if LOCKS:
            os.close(held)


def _locked(folder: Path) -> int:
    """Hold the folder's lock; the file gets its name when it is locked already, so that nobody finds it free."""
    unnamed = folder / f"{LOCK}.new"
    handle = open_private(unnamed, os.O_RDWR | os.O_CREAT | os.O_EXCL)
    lock(handle, wait=True)
    if LOCKS:
        unnamed.rename(folder / LOCK)
    return handle


@contextmanager
def _temporary_files_in(folder: Path) -> Iterator[None]:
    folder.mkdir(mode=0o700)
    before, variables = tempfile.tempdir, {name: os.environ.get(name) for name in TEMPORARY}
    tempfile.tempdir = str(folder)
    os.environ.update(dict.fromkeys(TEMPORARY, str(folder)))
    try:
        yield
    finally:
        tempfile.tempdir = before
        for name, value in variables.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


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
    return stat.S_ISDIR(about.st_mode) and is_own(about) and is_for_owner_only(about)


def _is_abandoned(folder: Path) -> bool:
    """Whether nobody holds the lock; a folder whose lock is not there yet is just being made, or there are no locks."""
    try:
        handle = open_private(folder / LOCK, os.O_RDWR)
    except OSError:
        return False
    try:
        lock(handle)
    except OSError:
        return False
    finally:
        os.close(handle)
    return True


# Which files of the machine the app may read: those inside the folder that was named at its start, and no others.


MOST_ENTRIES = 2_000
"""Entries of a folder that are shown; nobody reads more."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A file or folder that may be chosen."""

    name: str
    """Its path relative to the allowed folder, with slashes."""
    folder: bool
    size: int


@dataclass(frozen=True, slots=True)
class Folder:
    """The allowed folder; without a root nothing may be chosen."""

    root: Path | None = None

    @classmethod
    def at(cls, path: str | Path | None) -> Folder:
        """The folder at a path, which must be there; links in the path itself are followed once, now."""
        if path is None:
            return cls()
        root = Path(path).resolve()
        if not root.is_dir():
            raise InvalidFile(f"There is no folder {str(path)!r}.", hint="name the folder that the app may read.")
        return cls(root)

    def resolve(self, name: str) -> Path:
        """The file of this name, as the system knows it; anything but a plain, visible file inside is refused.

        Links are followed before the question is asked, so that a link inside cannot lead outside.
        """
        path = self._inside(name)
        if not stat.S_ISREG(_mode(path, name)):
            raise InvalidFile(text("{name!r} is not a file.", name=name))
        return path

    def entries(self, name: str = "") -> list[Entry]:
        """What lies in a folder inside: folders first, each in the order of its names. What is refused is not shown."""
        if self.root is None:
            return []
        folder = self._inside(name) if name else self.root
        if not stat.S_ISDIR(_mode(folder, name)):
            raise InvalidFile(text("{name!r} is not a folder.", name=name))
        prefix = PurePosixPath(folder.relative_to(self.root).as_posix())
        found = [entry for item in os.scandir(folder) if (entry := self._entry(prefix, item)) is not None]
        return sorted(found, key=lambda entry: (not entry.folder, entry.name.lower()))[:MOST_ENTRIES]

    def _entry(self, prefix: PurePosixPath, item: os.DirEntry[str]) -> Entry | None:
        name = str(prefix / item.name)
        try:
            about = self._inside(name).stat()
        except (InvalidFile, OSError):
            return None
        if stat.S_ISDIR(about.st_mode):
            return Entry(name, True, 0)
        return Entry(name, False, about.st_size) if stat.S_ISREG(about.st_mode) else None

    def _inside(self, name: str) -> Path:
        """The path of a name, if neither the name nor what it leads to is outside or hidden."""
        if self.root is None:
            raise InvalidFile("This app may read no folder.", hint="start it with one: 'tablesafe serve FOLDER'.")
        if "\x00" in name or "\\" in name or len(name) > 4096:
            raise _outside(name)
        wanted = PurePosixPath(name)
        absolute = wanted.is_absolute() or PureWindowsPath(name).drive
        if absolute or any(part == ".." or part.startswith(".") for part in wanted.parts):
            raise _outside(name)
        try:
            path = (self.root / wanted).resolve(strict=True)
        except (OSError, RuntimeError):
            raise InvalidFile(text("There is no file {name!r} in the folder of this app.", name=name)) from None
        if not path.is_relative_to(self.root):
            raise _outside(name)
        if any(part.startswith(".") for part in path.relative_to(self.root).parts):
            raise _outside(name)
        return path


def _outside(name: str) -> InvalidFile:
    return InvalidFile(
        text("{name!r} is not in the folder that this app may read.", name=name[:200]),
        hint="choose a file below it; hidden files and links that lead outside are refused.",
    )


def _mode(path: Path, name: str) -> int:
    try:
        return path.stat().st_mode
    except OSError:
        raise InvalidFile(text("There is no file {name!r} in the folder of this app.", name=name)) from None


def stamp_of(path: Path) -> Stamp | None:
    """What changes when a file does."""
    try:
        about = path.stat()
    except OSError:
        return None
    return about.st_mtime_ns, about.st_size, about.st_ino
