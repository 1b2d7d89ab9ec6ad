"""All files of one run, put in place together or not at all."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from tablesafe.errors import InvalidFile


@dataclass(slots=True)
class Outputs:
    """Files written under temporary names beside their places, and not yet visible."""

    written: dict[Path, Path] = field(default_factory=dict)
    """The temporary file of each target."""
    private: set[Path] = field(default_factory=set)
    folders: list[Path] = field(default_factory=list)
    """Folders that did not exist before, outermost first."""

    def place(self, target: Path, *, private: bool = False) -> Path:
        """A temporary path to write `target` to; a private file is for its owner's eyes only."""
        try:
            self._make_folder(target.parent, private=private)
            if target.is_dir():
                raise IsADirectoryError(0, "it is a folder")
            handle, name = tempfile.mkstemp(
                prefix=f".{target.name}.", suffix=".part" + target.suffix, dir=target.parent
            )
        except OSError as error:
            raise InvalidFile(f"Cannot write {str(target)!r}: {error.strerror}.") from error
        os.close(handle)
        self.written[target] = Path(name)
        if private:
            self.private.add(target)
        return Path(name)

    def _make_folder(self, folder: Path, *, private: bool) -> None:
        lacking = [parent for parent in (folder, *folder.parents) if not parent.exists()]
        for parent in reversed(lacking):
            parent.mkdir(mode=0o700 if private and parent == folder else 0o777)
            self.folders.append(parent)

    def commit(self) -> None:
        """Rename every file into its place; if one cannot be, put everything back as it was."""
        umask = os.umask(0)
        os.umask(umask)
        done: list[tuple[Path, Path | None]] = []
        with _uninterrupted():
            try:
                for target, temporary in self.written.items():
                    temporary.chmod(0o600 if target in self.private else 0o666 & ~umask)
                    done.append((target, _copy_of(target)))
                    temporary.replace(target)
            except OSError as error:
                for placed, before in reversed(done):
                    _put_back(placed, before)
                raise InvalidFile(f"Cannot write {str(target)!r}: {error.strerror}.") from error
            for _, before in done:
                if before is not None:
                    before.unlink(missing_ok=True)
            self.folders.clear()

    def discard(self) -> None:
        """Remove what is left of the temporary files, and folders made for nothing."""
        for temporary in self.written.values():
            temporary.unlink(missing_ok=True)
        for folder in reversed(self.folders):
            with suppress(OSError):
                folder.rmdir()


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Hold back Ctrl-C for the moment in which files change places, and deliver it afterwards."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    held: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, frame: held.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if held:
        signal.raise_signal(signal.SIGINT)


def _copy_of(target: Path) -> Path | None:
    """A second name for the file that stands in the place already, until all new ones are there."""
    if not target.exists():
        return None
    copy = target.with_name(f".{target.name}.{os.getpid()}.before")
    copy.unlink(missing_ok=True)
    try:
        os.link(target, copy)
    except OSError:  # a file system without links
        shutil.copy2(target, copy)
    return copy


def _put_back(target: Path, before: Path | None) -> None:
    if before is not None:
        before.replace(target)
    else:
        target.unlink(missing_ok=True)


@contextmanager
def together() -> Iterator[Outputs]:
    """Collect files; put them all in place when the block ends well, and none of them otherwise."""
    outputs = Outputs()
    try:
        yield outputs
        outputs.commit()
    finally:
        outputs.discard()
