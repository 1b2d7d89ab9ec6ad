"""Hints in the words of a job file: what is an argument in Python is a key in a section there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from tablesafe.core.errors import TablesafeError

_MISSING = re.compile(r"missing=\{'([^']*)': '([^']*)'\}")
_TEXT = re.compile(r"\b([a-z_]+)=('[^']*'|\"[^\"]*\")")
_OPEN = re.compile(r"\b([a-z_]+)=(…|\.\.\.)")
_TRUTH = re.compile(r"\b([a-z_]+)=(True|False)\b")
_OPTION = re.compile(r"\b(lower|upper|cost)= ?(?=[ ,.;]|$|or )")
SECTIONS = {
    "where": "[source]",
    "empty": "[source]",
    "delimiter": "[source]",
    "memory_limit": "[run]",
    "engine": "[run]",
}


@contextmanager
def in_job_words() -> Iterator[None]:
    """Let errors that leave the block speak of keys, not of arguments."""
    try:
        yield
    except TablesafeError as error:
        if error.args and isinstance(error.args[0], str):
            error.args = (reworded(error.args[0]), *error.args[1:])
        raise


def reworded(message: str) -> str:
    """A message with Python's arguments as keys of a job file."""
    message = _MISSING.sub(lambda found: f'missing = "{found[2]}" in [dimensions.{found[1]}]', message)
    message = _TEXT.sub(lambda found: f'{_key(found[1])}"{found[2][1:-1]}"', message)
    message = _OPEN.sub(lambda found: f"{_key(found[1])}…{_section(found[1])}", message)
    message = _TRUTH.sub(lambda found: f"{_key(found[1])}{found[2].lower()}", message)
    return _OPTION.sub(lambda found: f"{found[1]!r}", message)


def _key(name: str) -> str:
    return f"{name} = "


def _section(name: str) -> str:
    return f" in {SECTIONS[name]}" if name in SECTIONS else ""
