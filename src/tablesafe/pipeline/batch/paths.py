"""Files that a batch file names: as they are, or as they would lie beside it."""

from __future__ import annotations

import re
from pathlib import Path

from tablesafe.job.arb.model import Batch

_ELSEWHERE = re.compile(r"^(?:[A-Za-z]:|\\\\|//)")
"""A drive letter, or a share of another machine."""


def target(batch: Batch, name: str) -> tuple[Path, str]:
    """Where a file is written, and a remark where that is not the place named.

    A path of another machine cannot be written to: the file goes beside the batch file.
    """
    folder = batch.path.parent
    if _ELSEWHERE.match(name):
        here = folder / re.split(r"[\\/]", name)[-1]
        return here, f"{name!r} is a path of another machine: the file is written beside {batch.path.name}."
    return folder / name.replace("\\", "/"), ""
