"""Which files of the machine the app may read: those inside the folder that was named at its start, and no others."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from tablesafe.core.errors import InvalidFile

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
            raise InvalidFile(f"There is no folder {str(path)!r}.\n\nHint: name the folder that the app may read.")
        return cls(root)

    def resolve(self, name: str) -> Path:
        """The file of this name, as the system knows it; anything but a plain, visible file inside is refused.

        Links are followed before the question is asked, so that a link inside cannot lead outside.
        """
        path = self._inside(name)
        if not stat.S_ISREG(_mode(path, name)):
            raise InvalidFile(f"{name!r} is not a file.")
        return path

    def entries(self, name: str = "") -> list[Entry]:
        """What lies in a folder inside: folders first, each in the order of its names. What is refused is not shown."""
        if self.root is None:
            return []
        folder = self._inside(name) if name else self.root
        if not stat.S_ISDIR(_mode(folder, name)):
            raise InvalidFile(f"{name!r} is not a folder.")
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
            raise InvalidFile("This app may read no folder.\n\nHint: start it with one: 'tablesafe serve FOLDER'.")
        if "\x00" in name or "\\" in name or len(name) > 4096:
            raise _outside(name)
        wanted = PurePosixPath(name)
        if wanted.is_absolute() or any(part == ".." or part.startswith(".") for part in wanted.parts):
            raise _outside(name)
        try:
            path = (self.root / wanted).resolve(strict=True)
        except (OSError, RuntimeError):
            raise InvalidFile(f"There is no file {name!r} in the folder of this app.") from None
        if not path.is_relative_to(self.root):
            raise _outside(name)
        if any(part.startswith(".") for part in path.relative_to(self.root).parts):
            raise _outside(name)
        return path


def _outside(name: str) -> InvalidFile:
    return InvalidFile(
        f"{name[:200]!r} is not in the folder that this app may read.\n\n"
        f"Hint: choose a file below it; hidden files and links that lead outside are refused."
    )


def _mode(path: Path, name: str) -> int:
    try:
        return path.stat().st_mode
    except OSError:
        raise InvalidFile(f"There is no file {name!r} in the folder of this app.") from None
