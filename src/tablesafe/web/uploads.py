"""Names of uploads, which are whatever somebody chose, made safe."""

from __future__ import annotations

import re
import unicodedata
from collections import deque
from collections.abc import AsyncIterator, Mapping
from typing import Any

from python_multipart.multipart import MultipartParser, parse_options_header

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
            f"{name} is too large: {room / 1e6:,.0f} MB may be uploaded.",
            hint="start the app with the folder of the file, or with a higher --upload-limit-mb.",
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


# The files of an uploaded form, piece by piece: nothing is collected in memory or in a shared folder first.


MOST_HEADER = 8 << 10
"""Bytes of the headers of one part."""


class _Parts:
    """What the parser has found and nobody has taken yet: ("file", name), ("data", bytes), ("end", None)."""

    def __init__(self, boundary: bytes) -> None:
        self.found: deque[tuple[str, Any]] = deque()
        self._name = self._value = b""
        self._disposition = b""
        self._inside = False
        self.parser = MultipartParser(
            boundary,
            {
                "on_part_begin": self._begin,
                "on_header_field": self._field,
                "on_header_value": self._text,
                "on_header_end": self._header,
                "on_headers_finished": self._headers,
                "on_part_data": self._data,
                "on_part_end": self._end,
            },
        )

    def _begin(self) -> None:
        self._name = self._value = self._disposition = b""
        self._inside = False

    def _field(self, data: bytes, start: int, end: int) -> None:
        self._name = _short(self._name + data[start:end])

    def _text(self, data: bytes, start: int, end: int) -> None:
        self._value = _short(self._value + data[start:end])

    def _header(self) -> None:
        if self._name.lower() == b"content-disposition":
            self._disposition = self._value
        self._name = self._value = b""

    def _headers(self) -> None:
        filename = file_name(self._disposition)
        self._inside = filename is not None
        if filename is not None:
            self.found.append(("file", filename))

    def _data(self, data: bytes, start: int, end: int) -> None:
        if self._inside:
            self.found.append(("data", data[start:end]))

    def _end(self) -> None:
        if self._inside:
            self.found.append(("end", None))
        self._inside = False


def _short(text: bytes) -> bytes:
    if len(text) > MOST_HEADER:
        raise InvalidFile("The upload is not a form as browsers send it.")
    return text


def file_name(disposition: bytes) -> str | None:
    """The name of the file that a part holds; None when it holds none."""
    kind, options = parse_options_header(disposition)
    name = options.get(b"filename")
    return None if kind != b"form-data" or name is None else name.decode("utf-8", "replace")


async def file_parts(
    content_type: str, stream: AsyncIterator[bytes]
) -> AsyncIterator[tuple[str, AsyncIterator[bytes]]]:
    """Every file of a form: its name and its bytes, which must be taken before the next file is asked for."""
    kind, options = parse_options_header(content_type)
    boundary = options.get(b"boundary")
    if kind != b"multipart/form-data" or not boundary:
        raise InvalidFile("The upload is not a form as browsers send it.")
    parts = _Parts(boundary)
    while (item := await _next(parts, stream)) is not None:
        if item[0] == "file":
            yield item[1], _content(parts, stream)


async def _content(parts: _Parts, stream: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    while True:
        item = await _next(parts, stream)
        if item is None:
            raise InvalidFile("The upload was broken off.")
        if item[0] == "end":
            return
        yield item[1]


async def _next(parts: _Parts, stream: AsyncIterator[bytes]) -> tuple[str, Any] | None:
    """What comes next in the form; None at its end."""
    from python_multipart.exceptions import ParseError

    while not parts.found:
        try:
            chunk = await anext(stream)
        except StopAsyncIteration:
            return None
        try:
            parts.parser.write(chunk)
        except ParseError:
            raise InvalidFile("The upload is not a form as browsers send it.") from None
    return parts.found.popleft()
