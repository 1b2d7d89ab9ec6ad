"""All files of one run, put in place together or not at all."""

from __future__ import annotations

import os
import shutil
import signal
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from tablesafe.core.errors import InvalidFile
from tablesafe.core.machine import sync, usual_mode
from tablesafe.files.atomic import Placement, alone_in, carry_out, forget, make, note, point
from tablesafe.files.private import HIDDEN, private_folder, sweep
from tablesafe.files.write import require_replaceable, system_errors


@dataclass(slots=True)
class Outputs:
    """Files written into private folders beside their places, and not yet visible."""

    written: dict[Path, Path] = field(default_factory=dict)
    """The temporary file of each target."""
    private: set[Path] = field(default_factory=set)
    outdated: set[Path] = field(default_factory=set)
    """Places of files that an earlier run may have left, and that go when those of this one come."""
    folders: list[Path] = field(default_factory=list)
    """Folders that did not exist before, outermost first."""
    _beside: dict[Path, Path] = field(default_factory=dict)
    """The private folder in each folder of targets."""
    last: bool = False
    """Whether nothing is done after these files: then it is too late to stop when they are in place."""
    _stack: ExitStack = field(default_factory=ExitStack)

    def place(self, target: Path, *, private: bool = False) -> Path:
        """A temporary path to write `target` to; a private file is for its owner's eyes only."""
        require_replaceable(target)
        try:
            folder = self._folder(target.parent, private=private)
            temporary = folder / f"{len(self.written)}-{target.name}"
            temporary.touch(mode=0o600)
        except (OSError, ValueError) as error:
            raise InvalidFile(f"Cannot write {str(target)!r}: {getattr(error, 'strerror', error)}.") from error
        self.written[target] = temporary
        if private:
            self.private.add(target)
        return temporary

    def clear(self, target: Path) -> None:
        """What stands in this place is of an earlier run: it must not pass for a file of this one.

        It goes in the same moment in which the files of this run come, unless one of them takes its place.
        """
        self.outdated.add(target)

    def _folder(self, parent: Path, *, private: bool) -> Path:
        if parent not in self._beside:
            lacking = [folder for folder in (parent, *parent.parents) if not folder.exists()]
            for folder in reversed(lacking):
                folder.mkdir(mode=0o700 if private and folder == parent else 0o777)
                self.folders.append(folder)
            self._beside[parent] = self._stack.enter_context(private_folder(parent, prefix=HIDDEN))
        return self._beside[parent]

    def commit(self) -> None:
        """Rename every file into its place; if one cannot be, put everything back as it was.

        What stays in the office comes first: wherever a release is seen, its proof lies in its place already.
        """
        if not self.written:
            return
        order = sorted(self.written, key=lambda target: target not in self.private)
        moves = [Placement(target.absolute(), self.written[target].absolute()) for target in order]
        gone = sorted(place for place in self.outdated - self.written.keys() if place.is_file() or place.is_symlink())
        moves = [*(Placement(place.absolute(), None) for place in gone), *moves]
        noted = self._beside[order[-1].parent].absolute()
        with _uninterrupted(last=self.last), alone_in(list(self._beside)):
            for folder in self._beside:  # moves of a run that was killed while this one worked: they come before ours
                sweep(folder, HIDDEN, alone=True)
            try:
                self._make_ready(noted)
                note(noted, moves)
                _carry_out_or_undo(noted)
            except OSError as error:
                where = error.filename2 or order[-1]
                raise InvalidFile(f"Cannot write {str(where)!r}: {error.strerror}.") from error
            self.folders.clear()

    def _make_ready(self, noted: Path) -> None:
        """Give every file its mode, see that it is on the disk, and tell each folder where the note will be."""
        mode = usual_mode()
        for target, temporary in self.written.items():
            temporary.chmod(0o600 if target in self.private else mode)
            sync(temporary)
        for folder in self._beside.values():
            if folder.absolute() != noted:
                point(folder, noted)
            sync(folder)

    def discard(self) -> None:
        """Remove what is left of the temporary files, and folders made for nothing."""
        self._stack.close()
        for folder in reversed(self.folders):
            with suppress(OSError):
                folder.rmdir()


def _carry_out_or_undo(noted: Path) -> None:
    """Make the moves of a note; if one fails, note that what was there before comes back, and bring it back."""
    undo: list[Placement] = []

    def keep(move: Placement) -> None:
        folder = noted if move.file is None else move.file.parent
        undo.insert(0, Placement(move.place, _copy_of(move.place, folder / f"before-{len(undo)}")))

    try:
        carry_out(noted, keep)
    except BaseException:
        try:
            note(noted, undo)
        except OSError:  # a full disk: without a note nobody goes on with it
            forget(noted)
        make(undo)
        forget(noted)
        raise


def _copy_of(target: Path, copy: Path) -> Path | None:
    """A second name for the file that stands in the place already, until all new ones are there."""
    if not target.exists():
        return None
    try:
        os.link(target, copy)
    except OSError:  # a file system without links, or another one
        shutil.copy2(target, copy)
    return copy


@contextmanager
def _uninterrupted(*, last: bool) -> Iterator[None]:
    """Hold back Ctrl-C and the wish to end for the moment in which files change places, and deliver it afterwards.

    Unless they are in place then and nothing comes after them: it would be said that nothing was written.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    held: list[int] = []
    before = {
        number: signal.signal(number, lambda got, _: held.append(got)) for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler or signal.SIG_DFL)
    if held and not last:
        signal.raise_signal(held[0])


@contextmanager
def together(*, last: bool = False) -> Iterator[Outputs]:
    """Collect files; put them all in place when the block ends well, and none of them otherwise."""
    outputs = Outputs(last=last)
    try:
        with system_errors():
            yield outputs
        outputs.commit()
    except OSError as error:
        where = next(reversed(outputs.written), None)
        raise InvalidFile(f"Cannot write {str(where or 'files')!r}: {error.strerror}.") from error
    finally:
        outputs.discard()
