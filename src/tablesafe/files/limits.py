"""Files that somebody else made: what a path may be, and how much may come out of it.

A file of a few kilobytes can unpack to more than any machine holds, a pipe can keep a reader waiting for ever, and a
device has no end. Everything that reads a file asks here first. The limit is generous; an office with larger files
raises it: `TABLESAFE_READ_LIMIT=16GB`.
"""

from __future__ import annotations

import gzip
import io
import os
import re
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import IO

from tablesafe.core.errors import InvalidFile, InvalidOption, TablesafeError
from tablesafe.core.language import Text, text
from tablesafe.core.machine import open_plain

VARIABLE = "TABLESAFE_READ_LIMIT"
LARGER, UNPACKS = "{name} is larger than {most:,} bytes.", "{name} unpacks to more than {most:,} bytes."
"""How a file is too large."""
DEFAULT_LIMIT = 4 << 30
"""Most bytes that one file may take in memory, unpacked."""
EXPANSION = 200
"""A packed file that is streamed may be larger than the limit, but not by more than this many times its size."""
ROWS_PER_BYTE = 10_000
"""More rows than this for each byte of a Parquet file are no data."""
GZIP = b"\x1f\x8b"
CHUNK = 1 << 20
"""Bytes that are read or unpacked at a time."""
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_KINDS = (
    (stat.S_ISDIR, "a folder, not a file"),
    (stat.S_ISFIFO, "a pipe, not a file"),
    (stat.S_ISCHR, "a device, not a file"),
    (stat.S_ISBLK, "a device, not a file"),
    (stat.S_ISSOCK, "a socket, not a file"),
)


UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")
"""Characters that steer a terminal, turn text around, or cannot be written at all."""


def visible(text: str) -> str:
    """Text from a file or a path as a terminal may show it: what would steer the terminal is spelled out."""
    return UNSEEN.sub(lambda found: found[0].encode("unicode_escape", "surrogatepass").decode(), text)


def read_limit() -> int:
    """Most bytes that one file may take in memory: the default, or what the environment says."""
    text = os.environ.get(VARIABLE)
    if text is None:
        return DEFAULT_LIMIT
    found = re.fullmatch(r"\s*([0-9]{1,15})\s*([KMGT]?)(?:i?B)?\s*", text, re.IGNORECASE)
    if found is None or not int(found[1]):
        raise InvalidOption(f"{VARIABLE} is {text!r}.", hint="write it like 8GB.")
    return int(found[1]) * _UNITS[found[2].upper()]


def kind_of(path: Path, *, follow: bool = True) -> str:
    """What a path is when it is no plain file, in words; nothing when it is one or is not there."""
    try:
        mode = path.stat(follow_symlinks=follow).st_mode
    except (OSError, ValueError):
        return ""
    return next((words for test, words in _KINDS if test(mode)), "")


def is_there(path: Path) -> bool:
    """Whether a path leads to something; one that no file system can hold does not."""
    try:
        return path.exists()
    except (OSError, ValueError):
        return False


_inputs: ContextVar[set[tuple[int, int]] | None] = ContextVar("inputs", default=None)
"""The files that a command has read so far, as the file system knows them; None where nobody keeps account."""


@contextmanager
def inputs_kept() -> Iterator[None]:
    """Within this block nothing may be written over a file that was read in it, by whatever name."""
    before = _inputs.set(set())
    try:
        yield
    finally:
        _inputs.reset(before)


def note_input(path: Path) -> None:
    """Keep in mind that a file is an input."""
    read = _inputs.get()
    if read is not None:
        with suppress(OSError, ValueError):
            found = path.stat()
            read.add((found.st_dev, found.st_ino))


def is_input(path: Path) -> bool:
    """Whether a path leads to a file that was read; a link itself is no input, for it would be replaced."""
    try:
        found = path.stat(follow_symlinks=False)
    except (OSError, ValueError):
        return False
    return (found.st_dev, found.st_ino) in (_inputs.get() or ())


def read_plain(path: Path) -> bytes:
    """The bytes of a plain file, with errors in the user's words; nothing else is waited for."""
    try:
        handle = open_plain(path)
    except FileNotFoundError:
        raise InvalidFile(
            text("There is no file {path!r}.", path=str(path)), hint="paths are relative to the job file."
        ) from None
    except PermissionError:
        raise InvalidFile(
            text("{path!r} may not be read by this user.", path=str(path)), hint="ask its owner, or copy it."
        ) from None
    except (OSError, ValueError) as error:
        what = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise InvalidFile(f"{str(path)!r} cannot be read: {what}.", hint="check the path.") from error
    kind = next((words for test, words in _KINDS if test(os.fstat(handle).st_mode)), "")
    if kind:
        os.close(handle)
        raise InvalidFile(f"{str(path)!r} is {kind}.", hint="name a file; save what comes from elsewhere first.")
    note_input(path)
    with os.fdopen(handle, "rb") as file:
        try:
            return b"".join(_pieces_within(file, path.name))
        except OSError as error:
            raise InvalidFile(
                f"{str(path)!r} cannot be read: {error.strerror}.", hint="check the disk, or copy the file again."
            ) from error


def _pieces_within(file: IO[bytes], name: str) -> Iterator[bytes]:
    limit, size = read_limit(), 0
    while piece := file.read(16 * CHUNK):
        size += len(piece)
        if size > limit:
            raise _too_large(LARGER, name)
        yield piece


def unpacked(data: bytes, name: str) -> bytes:
    """The content of a gzip file, within the limit; other bytes are returned as they are."""
    if not data.startswith(GZIP):
        return data
    limit = read_limit()
    pieces, size = [], 0
    for piece in _gzip_pieces(data, name):
        size += len(piece)
        if size > limit:
            raise _too_large(UNPACKS, name)
        pieces.append(piece)
    return b"".join(pieces)


def _gzip_pieces(data: bytes, name: str) -> Iterator[bytes]:
    """What a gzip file holds, a piece at a time."""
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as stream:
            while piece := stream.read(CHUNK):
                yield piece
    except (OSError, EOFError, zlib.error) as error:
        raise InvalidFile(
            text("{name} is a damaged gzip file: {why}.", name=name, why=str(error)), hint="copy it again."
        ) from error


def require_streamable(path: Path, unpacked_so_far: int) -> None:
    """Check, while a packed file is streamed, that it does not unpack beyond all measure."""
    if unpacked_so_far > max(read_limit(), EXPANSION * path.stat().st_size):
        raise _too_large(UNPACKS, path.name)


def require_bounded_zip(path: Path) -> None:
    """Check that a workbook, which is a zip file, unpacks within the limit, whatever its directory says."""
    limit, size = read_limit(), 0
    try:
        with path.open("rb") as file, zipfile.ZipFile(file) as archive:
            for member in archive.infolist():
                if member.flag_bits & 1:
                    raise InvalidFile(
                        text("{name} is protected by a password.", name=path.name), hint="save it without one."
                    )
                for piece in _member_pieces(file, member):
                    size += piece
                    if size > limit:
                        raise _too_large(UNPACKS, path.name)
    except (zipfile.BadZipFile, zlib.error, OSError, EOFError, ValueError, struct.error, NotImplementedError) as error:
        raise InvalidFile(
            text("{name} is damaged: {why}.", name=path.name, why=str(error)),
            hint="open it in the program that wrote it.",
        ) from error


def _member_pieces(file: IO[bytes], member: zipfile.ZipInfo) -> Iterator[int]:
    """How many bytes come out of a member, a piece at a time; its own claim is not believed."""
    file.seek(member.header_offset)
    signature, names, extras = struct.unpack("<4s22xHH", file.read(30))
    if signature != b"PK\x03\x04" or member.compress_type not in {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}:
        raise zipfile.BadZipFile("a part of it cannot be unpacked")
    file.seek(names + extras, os.SEEK_CUR)
    if member.compress_type == zipfile.ZIP_STORED:
        yield member.compress_size
        return
    stream, left = zlib.decompressobj(-15), member.compress_size
    while left > 0 and not stream.eof:
        data = file.read(min(1 << 16, left))
        if not data:
            raise zipfile.BadZipFile("it ends too soon")
        left -= len(data)
        while data and not stream.eof:
            yield len(stream.decompress(data, CHUNK))
            data = stream.unconsumed_tail


@contextmanager
def refused_as(told: str, hint: str, **parts: str) -> Iterator[None]:
    """Turn whatever a library says against a file, also a panic of compiled code, into the user's words.

    These are `told`, with what the library said as `why` among its parts.
    """
    try:
        yield
    except (KeyboardInterrupt, SystemExit, GeneratorExit, MemoryError, TablesafeError):
        raise
    except BaseException as error:  # a panic is no Exception
        said = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise InvalidFile(Text(told, (*parts.items(), ("why", said[:200]))), hint=hint) from error


def require_plausible_rows(name: str, rows: int, columns: int, size: int, *, in_memory: bool) -> None:
    """Check what a Parquet file announces before anything is made room for."""
    implausible = rows < 0 or rows > ROWS_PER_BYTE * max(size, 1)
    if implausible or (in_memory and 8 * rows * max(columns, 1) > read_limit()):
        raise InvalidFile(
            f"{name} announces {rows:,} rows and {columns:,} columns in {size:,} bytes, more than can be held.",
            hint=f"is it the right file? {VARIABLE}=16GB raises the limit for files that are read whole.",
        )


def _too_large(told: str, name: str) -> InvalidFile:
    return InvalidFile(
        text(told, name=name, most=read_limit()),
        hint=text("if that is right, raise the limit: {variable}=16GB in the environment.", variable=VARIABLE),
    )
