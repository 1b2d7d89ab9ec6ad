"""Files out, whole or not at all: written beside their place under another name, then renamed."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tablesafe.core.errors import InvalidFile
from tablesafe.core.machine import sync, usual_mode
from tablesafe.files.limits import is_input, kind_of
from tablesafe.files.private import HIDDEN, private_folder


def require_replaceable(path: Path) -> None:
    """Check that a file may be put in a place: not over a folder, a device or a pipe, also not through a link."""
    kind = "no name of a file" if "\x00" in str(path) else kind_of(path)
    if kind:
        raise InvalidFile(f"Cannot write {str(path)!r}: it is {kind}.", hint="name a file.")
    if is_input(path):
        raise InvalidFile(
            f"Cannot write {str(path)!r}: it was read, and writing it would destroy the original.",
            hint="name another file.",
        )


@contextmanager
def system_errors() -> Iterator[None]:
    """Let a full disk, and the like, be an error of the system, whoever writes: libraries put it in words of their own.

    Only what the system said is kept: the rest may quote what was being written.
    """
    try:
        yield
    except Exception as error:
        if isinstance(error, OSError) and error.strerror:
            raise
        inner = next((each for each in error.args if isinstance(each, OSError)), None)
        number = re.search(r"\(os error (\d+)\)", str(error)) if inner is None else None
        if number is not None:
            inner = OSError(int(number[1]), os.strerror(int(number[1])))
        if inner is None:
            raise
        raise inner from None


@contextmanager
def whole_file(path: str | Path, *, private: bool = False) -> Iterator[Path]:
    """Give a temporary path beside `path`; rename it into place when all went well, otherwise remove it.

    A private file is for its owner's eyes only. What is in place is on the disk, also after a loss of power.
    """
    path = Path(path)
    require_replaceable(path)
    if path.parent.name.startswith(HIDDEN):  # it is put in place by those who made the folder
        with system_errors():
            yield path
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        raise InvalidFile(f"Cannot write {str(path)!r}: {getattr(error, 'strerror', error)}.") from error
    try:
        with private_folder(path.parent, prefix=HIDDEN) as folder:
            temporary = folder / path.name
            with system_errors():
                yield temporary
            temporary.chmod(0o600 if private else usual_mode())
            sync(temporary)
            temporary.replace(path)
            sync(path.parent)
    except OSError as error:
        raise InvalidFile(f"Cannot write {str(path)!r}: {error.strerror}.") from error


def write_text(path: str | Path, text: str, *, private: bool = False) -> None:
    """Write UTF-8 text, whole or not at all."""
    with whole_file(path, private=private) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")


def json_lines(document: Mapping[str, Any]) -> str:
    """A document as JSON that can be read and compared by lines: one a key, and one an entry of a list.

    Indenting it by the library takes ten times as long, which counts for tens of thousands of cells. A number that JSON
    does not know is an error.
    """
    lines = []
    for name, value in document.items():
        if isinstance(value, list) and value and isinstance(value[0], (dict, list)):
            text = "[\n  " + ",\n  ".join(map(_plain.encode, value)) + "\n ]"
        else:
            text = _plain.encode(value)
        lines.append(f" {_plain.encode(str(name))}: {text}")
    return "{\n" + ",\n".join(lines) + "\n}"


_plain = json.JSONEncoder(ensure_ascii=False, allow_nan=False)
