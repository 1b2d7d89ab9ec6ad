"""Delimited text files of any size: encoding, delimiter and header, without reading them whole."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import itertools
import tempfile
import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from tablesafe.core.errors import InvalidFile, InvalidOption
from tablesafe.core.language import text
from tablesafe.files.limits import require_streamable
from tablesafe.files.read import guess_delimiter, read_bytes_probe

CHUNK, HEAD = 1 << 24, 1 << 16
"""Bytes that are rewritten at a time, and that show how a file is written."""


@dataclass(frozen=True, slots=True)
class CsvFile:
    """A delimited text file: where it is, how it is written, and the names of its columns."""

    path: Path
    name: str
    encoding: str
    delimiter: str
    header: tuple[str, ...]

    def line(self, row: int) -> int:
        """The line on which record `row` (from 0) ends; empty lines and line breaks in quotes are counted."""
        with open_bytes(self.path) as raw, io.TextIOWrapper(raw, self.encoding, errors="replace", newline="") as text:
            reader = csv.reader(text, delimiter=self.delimiter)
            next(itertools.islice(filter(None, reader), row + 1, None), None)
            return reader.line_num


def look_at_csv(path: Path, private: Path, delimiter: str | None) -> CsvFile:
    """Look at a text file: its encoding, delimiter and header; one that is not UTF-8 is rewritten as UTF-8."""
    read_bytes_probe(path)
    encoding = _encoding(path)
    name, original = path.name, path
    with open_bytes(path) as raw:
        lines = raw.read(HEAD)
    old = b"\r" in lines and b"\n" not in lines  # lines end as they did on the first Macintosh
    if encoding != "utf-8-sig" or old:
        path = _as_utf8(path, private, encoding, old=old)
    with open_bytes(path) as raw:
        head = raw.read(HEAD).decode("utf-8-sig", errors="ignore")
    if not head.strip():
        raise InvalidFile(text("{name} is empty.", name=name), hint="is it the right file, and complete?")
    delimiter = delimiter or guess_delimiter(head)
    try:
        header = tuple(column.strip() for column in next(csv.reader(io.StringIO(head), delimiter=delimiter)))
    except (csv.Error, TypeError, ValueError) as error:
        raise InvalidOption(
            f"{delimiter!r} cannot delimit the columns of {name}: {error}.", hint="it is one character, as ; is."
        ) from error
    repeated = [column for column, times in Counter(header).items() if times > 1]
    if repeated:
        raise InvalidFile(
            text("{name} has two columns named {column!r}.", name=name, column=repeated[0]), hint="rename one of them."
        )
    return CsvFile(path.absolute(), original.name, "utf-8-sig", delimiter, header)


def open_bytes(path: Path) -> IO[bytes]:
    """Open a file to read its bytes, unpacked."""
    try:
        return gzip.open(path, "rb") if path.suffix.lower() == ".gz" else path.open("rb")  # type: ignore[return-value]
    except OSError as error:
        raise InvalidFile(f"{str(path)!r} cannot be read: {error.strerror}.") from error


def _chunks(path: Path) -> Iterator[bytes]:
    """The bytes of a file, unpacked, a chunk at a time; a packed file that swells beyond all measure is refused."""
    size = 0
    try:
        with open_bytes(path) as raw:
            while chunk := raw.read(CHUNK):
                size += len(chunk)
                if path.suffix.lower() == ".gz":
                    require_streamable(path, size)
                yield chunk
    except (OSError, EOFError, zlib.error) as error:
        raise InvalidFile(
            text("{name} cannot be read: {why}.", name=path.name, why=str(error)), hint="copy it again."
        ) from error


def _encoding(path: Path) -> str:
    """UTF-8 if the whole file is, UTF-16 if it says so, otherwise Windows-1252."""
    decoder, first = codecs.getincrementaldecoder("utf-8")(), True
    try:
        for chunk in _chunks(path):
            if first and chunk.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
                return "utf-16"
            if first and b"\x00" in chunk[:4096]:
                raise InvalidFile(
                    text("{name} is not a text file.", name=path.name), hint="give a CSV or a Parquet file."
                )
            first = False
            if not chunk.isascii():
                decoder.decode(chunk)
            elif decoder.getstate()[0]:
                return "cp1252"
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return "cp1252"
    return "utf-8-sig"


def _as_utf8(path: Path, private: Path, encoding: str, *, old: bool = False) -> Path:
    """Rewrite a text file as UTF-8 in the private folder, a chunk at a time; `old` ends of lines become new ones."""
    with tempfile.NamedTemporaryFile(dir=private, prefix="utf8-", suffix=".csv", delete=False) as out:
        decoder = codecs.getincrementaldecoder(encoding)(errors="replace")
        for chunk in _chunks(path):
            text = decoder.decode(chunk)
            out.write((text.replace("\r", "\n") if old else text).encode())
        out.write(decoder.decode(b"", final=True).encode())
    return Path(out.name)
