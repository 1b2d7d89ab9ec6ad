"""Names of uploads, which are whatever somebody chose, made safe."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from typing import Any

from tablesafe.core.errors import InvalidFile
from tablesafe.web.drafts import JOB_FILE

RESERVED = {JOB_FILE, "runs", "tmp", "public", "internal"}
"""Names that the app itself uses in a workspace."""
_BAD = re.compile(r"[^\w .,;()+@=&'#%!~€§°-]+")
"""What may not stand in a name: what shells, other systems and patterns of names would take for something else."""


class TooLarge(InvalidFile):
    """An upload beyond what is allowed."""

    def __init__(self, name: str, room: int) -> None:
        super().__init__(
            f"{name} is too large: {room / 1e6:,.0f} MB may be uploaded.\n\n"
            f"Hint: start the app with the folder of the file, or with a higher --upload-limit-mb."
        )


def plain_name(name: str) -> str:
    """A name for an upload that is safe anywhere: no folders, no hidden or reserved names, no odd characters.

    All that does no harm stays, blanks too: the job file must find the same file beside it elsewhere.
    """
    name = unicodedata.normalize("NFC", name.replace("\\", "/").rpartition("/")[2])
    name = _BAD.sub("_", name).strip("._ ")
    stem, dot, suffix = name.rpartition(".")
    name = f"{stem[:100]}.{suffix[:20]}" if dot else name[:100]
    if not name or not re.search(r"\w", name):
        name = "upload"
    return f"upload_{name}" if name.lower() in RESERVED else name


def other_name(name: str, taken: Mapping[str, Any]) -> str:
    """The name with a number, when it is taken."""
    stem, dot, suffix = name.rpartition(".")
    number = 2
    while (other := f"{stem}-{number}.{suffix}" if dot else f"{name}-{number}") in taken:
        number += 1
    return other
