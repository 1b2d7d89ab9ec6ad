"""Put many files in place as one: what is to be moved is written down first, and whoever finds the note finishes it.

A single rename is all or nothing, several are not: a process can be killed between two of them. So the moves are noted
on the disk before the first is made. Until the note is there, nothing has happened; from then on all of it will, if
need be by the next process that works in one of the folders.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tablesafe.core.machine import locked_folder, sync

NOTE = "moves.json"
POINTER = "noted-in"
"""In a folder whose files another folder's note speaks of: the path of that folder."""


@dataclass(frozen=True, slots=True)
class Placement:
    """A file to be put in place; without one, what stands in the place is to go."""

    place: Path
    file: Path | None


def point(folder: Path, to: Path) -> None:
    """Say in a folder that the note about its files is in another."""
    _write(folder / POINTER, str(to))


def pointed(folder: Path) -> Path | None:
    """The folder that has the note about the files of this one; None when there is none."""
    with suppress(OSError, ValueError):
        found = Path((folder / POINTER).read_text(encoding="utf-8"))
        if found.name.startswith(".tablesafe-"):
            return found
    return None


def note(folder: Path, moves: Sequence[Placement]) -> None:
    """Write down what is to be moved, in the place of an earlier note: from here on it will be done."""
    listed = [[str(move.place), None if move.file is None else str(move.file)] for move in moves]
    _write(folder / NOTE, json.dumps(listed))


def carry_out(folder: Path, before: Callable[[Placement], None] | None = None) -> None:
    """Make the moves that are noted in a folder, as far as they are not made already; then they are on the disk."""
    make(_noted(folder), before)


def make(moves: Sequence[Placement], before: Callable[[Placement], None] | None = None) -> None:
    """Make some moves; `before` is told of each, and then every file must be there."""
    for move in moves:
        if before is not None:
            before(move)
        if move.file is None:
            move.place.unlink(missing_ok=True)
        elif before is not None or move.file.exists():
            move.file.replace(move.place)
    for parent in {move.place.parent for move in moves}:
        sync(parent)


def forget(folder: Path) -> None:
    """Take back what was noted: nobody is to make these moves any more."""
    with suppress(OSError):
        (folder / NOTE).unlink(missing_ok=True)


def places(folder: Path) -> list[Path]:
    """The folders into which the moves noted in a folder put files."""
    return sorted({move.place.parent for move in _noted(folder)})


def _noted(folder: Path) -> list[Placement]:
    try:
        listed = json.loads((folder / NOTE).read_text(encoding="utf-8"))
        return [Placement(Path(place), None if file is None else Path(file)) for place, file in listed]
    except FileNotFoundError:
        return []
    except (ValueError, TypeError):  # half a note is none: it was never promised
        return []


def _write(path: Path, text: str) -> None:
    part = path.with_name(path.name + ".part")
    part.write_text(text, encoding="utf-8")
    sync(part)
    part.replace(path)
    sync(path.parent)


@contextmanager
def alone_in(folders: Sequence[Path]) -> Iterator[None]:
    """Let nobody else put files into these folders meanwhile, so that of two runs the later one wins whole."""
    with ExitStack() as stack:
        for folder in sorted({folder.resolve() for folder in folders}):
            handle = locked_folder(folder)
            if handle is not None:
                stack.callback(os.close, handle)
        yield
