"""A file that lets an interrupted audit go on where it stopped.

It holds intervals, so it is as confidential as the table: only its owner may read it, and it is removed when the audit
is done. It is bound to one question by a hash and written whole or not at all.
"""

from __future__ import annotations

import hashlib
import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tablesafe.audit.system import System
from tablesafe.core.equations import Floats, Mask
from tablesafe.core.errors import InvalidFile
from tablesafe.files.write import whole_file

EVERY_S = 15.0
"""Seconds between two saves."""


class Checkpoint:
    """Which unknown cells are finished, and their intervals."""

    def __init__(self, path: str | Path | None, system: System) -> None:
        self._path = None if path is None else Path(path)
        self._digest = "" if path is None else digest(system)
        self._saved = time.monotonic()
        self.done: Mask = np.zeros(len(system), dtype=np.bool_)
        self.lower: Floats = np.full(len(system), np.nan)
        self.upper: Floats = np.full(len(system), np.nan)
        if self._path is not None and self._path.exists():
            self._load(self._path)

    def _load(self, path: Path) -> None:
        try:
            with path.open("rb") as opened, np.load(opened, allow_pickle=False) as file:
                belongs = str(file["digest"]) == self._digest
                cells, lower, upper = file["cells"], file["lower"], file["upper"]
                n = len(self.done)
                if not (cells.dtype.kind == "i" and cells.shape == lower.shape == upper.shape == (len(cells),)):
                    raise ValueError("the arrays differ in length")
                if len(cells) and not (cells.min() >= 0 and cells.max() < n):
                    raise ValueError("there is no such cell")
                lower, upper = lower.astype(np.float64, casting="safe"), upper.astype(np.float64, casting="safe")
        except (KeyboardInterrupt, MemoryError):
            raise
        except Exception as error:  # a damaged archive fails in many ways
            raise InvalidFile(f"{path.name!r} is not a checkpoint of an audit.\n\nHint: remove it.") from error
        if not belongs:
            raise InvalidFile(
                f"The checkpoint {path.name!r} belongs to another audit: table, release or bounds differ.\n\n"
                f"Hint: remove it, or name another file."
            )
        self.put(cells, lower, upper)

    def put(self, cells: NDArray[np.intp], lower: Floats, upper: Floats) -> None:
        """These cells are finished."""
        self.done[cells] = True
        self.lower[cells], self.upper[cells] = lower, upper

    def save(self, *, now: bool = False) -> None:
        """Write the file, if it is time."""
        if self._path is None or (not now and time.monotonic() - self._saved < EVERY_S):
            return
        cells = np.flatnonzero(self.done)
        name, lower, upper = np.array(self._digest), self.lower[cells], self.upper[cells]
        with whole_file(self._path, private=True) as temporary, temporary.open("wb") as file:
            np.savez(file, digest=name, cells=cells, lower=lower, upper=upper)
        self._saved = time.monotonic()

    def remove(self) -> None:
        """The audit is done."""
        if self._path is not None:
            self._path.unlink(missing_ok=True)


def digest(system: System) -> str:
    """A hash of everything that an interval depends on."""
    state = hashlib.sha256()
    matrix = system.matrix.tocsr()
    for array in (matrix.indptr, matrix.indices, matrix.data, system.lower, system.upper, system.truth):
        state.update(str(array.dtype).encode() + np.ascontiguousarray(array).tobytes())
    return state.hexdigest()
