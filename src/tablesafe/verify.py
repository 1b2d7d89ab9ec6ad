"""Recheck a certificate with addition only: `python -m tablesafe.verify certificate.json`.

This file stands alone. It uses the standard library and nothing else, no solver, no floating point, and no code of the
audit that made the certificate, so that it can be read from top to bottom and believed.

A certificate lists the cells of a table, what the release shows of each, the equations between them, and the bounds
that an attacker knows beforehand. A *witness* is a complete table: the true one with some unknown cells changed. For
every sensitive cell that it calls protected, the certificate names two witnesses. If both satisfy every equation and
every bound, and agree with every published value, then no attacker can rule out either, and the cell is hidden at
least as far as the two are apart. All numbers are whole numbers, or fractions written "p/q", of `10**-decimals`.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import json
import os
import re
import stat
import sys
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from tablesafe.errors import InvalidCertificate

FORMAT = "tablesafe certificate"
VERSION = 1
FRACTION = re.compile(r"-?[0-9]+/[1-9][0-9]*")
PLAIN = re.compile(r"[+-]?[0-9]*[.,]?[0-9]*(?:[eE][+-]?[0-9]{1,3})?")
"""A number as published files write it; an exponent of more digits would fill the memory."""
DELIMITERS = ",;\t|"
REPEAT = "\n\nHint: repeat the audit; a certificate is never edited."
GIVE = "\n\nHint: give the CSV file of the release, as it was written."
LIMIT_VARIABLE = "TABLESAFE_READ_LIMIT"
MOST_DECIMALS = 400
"""More than any number of a table has; ten to the power of a stranger's number would never end."""

Number = int | Fraction


class _Unreadable(InvalidCertificate):
    """The file as a whole is not a certificate; there is nothing in it to check."""


@dataclass(frozen=True, slots=True)
class Verification:
    """What a certificate proves. Open cells are named by the user's own codes."""

    cells: int
    """Sensitive cells in all."""
    protected: int
    """Sensitive cells whose two witnesses were rechecked."""
    open: tuple[str, ...]
    """Sensitive cells that the certificate itself calls open to anyone who sees the release."""
    others: tuple[str, ...]
    """What else the certificate admits: cells open to insiders, sums that fail a rule."""
    attackers: tuple[str, ...]
    """Whom the audit looked at, in words. Witnesses prove what is hidden from outsiders; the rest is its word."""
    witnesses: int
    equations: int
    unknown: int
    changed: int
    """Unknown cells of which the release shows a changed value (adjusted, rounded) or an interval."""
    release_checked: bool
    """Whether a published file was compared as well."""

    @property
    def safe(self) -> bool:
        """Whether every sensitive cell is proved to be protected, and nothing else is admitted to be open."""
        return self.protected == self.cells and not self.others

    def __str__(self) -> str:
        lines = [
            f"{self.protected:,} of {self.cells:,} sensitive cells are protected: proved by {self.witnesses:,} witness "
            f"tables over {self.unknown:,} unknown cells and {self.equations:,} equations.",
            f"The audit looked at: {' '.join(self.attackers)}",
            "The published file agrees with the certificate."
            if self.release_checked
            else "No published file was compared.",
        ]
        if self.changed:
            lines.append(f"{self.changed:,} of the unknown cells are published with changed values.")
        if self.open:
            more = f" and {len(self.open) - 10:,} more" if len(self.open) > 10 else ""
            are = "cell is" if len(self.open) == 1 else "cells are"
            lines.append(f"{len(self.open):,} sensitive {are} open: {', '.join(self.open[:10])}{more}.")
        if self.others:
            lines.append(f"The audit also found {len(self.others):,} openings to insiders or by sums:")
            lines.extend(f"  {other}" for other in self.others[:10])
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class _Content:
    """The parts of a certificate, checked for form but not yet for truth."""

    response: str
    decimals: int
    whole: bool
    """Whether an attacker knows that all values are whole numbers of the unit, so that witnesses must be."""
    dimensions: list[str]
    labels: list[list[str]]
    codes: list[list[int]]
    published: list[Number | None]
    absent: frozenset[int]
    """Cells that the release leaves out by design."""
    lower: dict[int, Number | None]
    upper: dict[int, Number | None]
    truth: dict[int, Number]
    """True value of every unknown cell; a cell that is not in here is known to the attacker."""
    equations: list[list[int]]
    """The total, then the parts; a part that is subtracted is written as its complement (-1 - cell)."""
    levels: dict[int, tuple[Number, Number, Number]]
    open: list[int]
    proofs: list[list[int]]
    """A sensitive cell, and the witnesses that show it low and high enough; witness 0 is the truth."""
    chains: list[dict[str, Any]]
    """Witnesses, numbered from 1 through all chains, each as its changes against the one before it."""

    def describe(self, cell: int) -> str:
        codes = [f"{d}={self.labels[i][self.codes[i][cell]]}" for i, d in enumerate(self.dimensions)]
        return f"({', '.join(codes)})"


def verify(path: str | Path, *, release: str | Path | None = None) -> Verification:
    """Recheck every claim of a certificate, and compare it with the published file if one is given.

    Raises InvalidCertificate, with the reason, for a certificate that is damaged, edited, cut short, made for another
    release, or that claims more than its witnesses show.
    """
    path = Path(path)
    try:
        document = _read(path)
        content = _content(document)
        _check_release_hash(content, document["release"])
        rows = _equations_of_unknown(content)
        _check_truth(content)
        proved, witnesses = _check_proofs(content, rows)
        _check_complete(content, proved)
        found = _found(content, document, proved, witnesses)
    except _Unreadable:
        raise
    except InvalidCertificate as error:
        raise InvalidCertificate(f"{path.name} is not a valid certificate: {error}{REPEAT}") from None
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError) as error:
        raise InvalidCertificate(
            f"{path.name} is not a valid certificate: it is damaged "
            f"({type(error).__name__}: {str(error)[:100]}).{REPEAT}"
        ) from error
    if release is None:
        return found
    _check_published_file(content, Path(release), path.name)
    return replace(found, release_checked=True)


def _found(content: _Content, document: dict[str, Any], proved: set[int], witnesses: int) -> Verification:
    return Verification(
        cells=len(content.levels),
        protected=len(proved),
        open=tuple(content.describe(cell) for cell in content.open),
        others=tuple(str(other) for other in document["others"]),
        attackers=tuple(str(who) for who in document["attackers"]),
        witnesses=witnesses,
        equations=len(content.equations),
        unknown=len(content.truth),
        changed=len(document["changed"]),
        release_checked=False,
    )


# -- reading -------------------------------------------------------------------------------------------------------


def _read(path: Path) -> dict[str, Any]:
    """The document, if it is one of ours, whole, and as it was written."""
    try:
        data = _bytes_of(path)
        document = json.loads(data.decode("utf-8"), parse_float=_refuse_float, parse_constant=_refuse_float)
    except FileNotFoundError:
        raise _Unreadable(f"There is no certificate {str(path)!r}.\n\nHint: check the path.") from None
    except OSError as error:
        why = error.strerror or error
        raise _Unreadable(f"{path.name} cannot be read: {why}.\n\nHint: copy it again.") from error
    except (EOFError, zlib.error, ValueError, RecursionError) as error:
        raise _Unreadable(
            f"{path.name} is damaged or cut short: {error}.\n\nHint: copy it again, or repeat the audit."
        ) from error
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise _Unreadable(f"{path.name} is not a certificate of tablesafe.\n\nHint: is it the right file?")
    if document.get("version") != VERSION:
        raise _Unreadable(
            f"{path.name} has version {document.get('version')!r} of the format; this program reads version {VERSION}."
            f"\n\nHint: verify it with the release of tablesafe that made it."
        )
    claimed = document.pop("sha256", None)
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    if hashlib.sha256(text.encode("utf-8", errors="surrogatepass")).hexdigest() != claimed:
        raise _Unreadable(
            f"{path.name} was changed after it was made: its content does not match its own checksum.\n\n"
            f"Hint: repeat the audit; a certificate is never edited."
        )
    return document


def _bytes_of(path: Path) -> bytes:
    """The content of a plain file, unpacked; a pipe or a device has no end, and a few bytes can unpack to anything."""
    try:
        mode = path.stat().st_mode
    except ValueError as error:
        raise OSError(0, str(error)) from error
    if not stat.S_ISREG(mode):
        raise OSError(0, "it is not a plain file")
    with path.open("rb") as packed:
        opened: Any = gzip.GzipFile(fileobj=packed) if packed.peek(2)[:2] == b"\x1f\x8b" else packed
        most, size, pieces = _read_limit(), 0, []
        while piece := opened.read(1 << 20):
            size += len(piece)
            if size > most:
                raise OSError(0, f"it holds more than {most:,} bytes; {LIMIT_VARIABLE}=16GB raises the limit")
            pieces.append(piece)
    return b"".join(pieces)


def _read_limit() -> int:
    """Most bytes that a file may unpack to: `TABLESAFE_READ_LIMIT`, such as 16GB, or 4 GB."""
    found = re.fullmatch(
        r"\s*([0-9]{1,15})\s*([KMGT]?)(?:i?B)?\s*", os.environ.get(LIMIT_VARIABLE, "4G"), re.IGNORECASE
    )
    if found is None:
        raise OSError(0, f"{LIMIT_VARIABLE} should be written like 8GB")
    return int(found[1]) << 10 * " KMGT".index(found[2].upper() or " ")


def _refuse_float(text: str) -> Number:
    raise ValueError(f"it holds {text}, but a certificate has only whole numbers and fractions")


def _content(document: dict[str, Any]) -> _Content:
    dimensions, labels, codes = document["dimensions"], document["labels"], document["codes"]
    if not (len(dimensions) == len(labels) == len(codes)):
        raise InvalidCertificate("dimensions, labels and codes differ in number.")
    published = [None if value is None else _number(value) for value in document["published"]]
    n = len(published)
    _check_codes(labels, codes, n)
    unknown = _cells(document["unknown"]["cells"], n)
    content = _Content(
        response=document["response"],
        decimals=_whole(document["decimals"]),
        whole=document["whole"] is not False,
        dimensions=dimensions,
        labels=labels,
        codes=codes,
        published=published,
        absent=frozenset(_cells(document["absent"], n)),
        lower=dict(zip(unknown, map(_bound, document["unknown"]["lower"]), strict=True)),
        upper=dict(zip(unknown, map(_bound, document["unknown"]["upper"]), strict=True)),
        truth=dict(zip(unknown, map(_number, document["unknown"]["truth"]), strict=True)),
        equations=document["equations"],
        levels=_levels(document["sensitive"], n),
        open=_cells(document["open"], n),
        proofs=document["proofs"],
        chains=document["chains"],
    )
    if content.decimals > MOST_DECIMALS:
        raise InvalidCertificate(f"it says that values have {content.decimals} decimals.")
    if any(published[cell] is not None for cell in content.absent):
        raise InvalidCertificate("it lists a cell both as published and as left out of the release.")
    if set(_cells(document["changed"], n)) != {cell for cell in unknown if published[cell] is not None}:
        raise InvalidCertificate("it takes a published cell as unknown, but does not list it as changed.")
    return content


def _levels(sensitive: dict[str, Any], n: int) -> dict[int, tuple[Number, Number, Number]]:
    columns = ([_number(value) for value in sensitive[name]] for name in ("lower", "upper", "sliding"))
    levels = dict(zip(_cells(sensitive["cells"], n), zip(*columns, strict=True), strict=True))
    if any(level < 0 for triple in levels.values() for level in triple):
        raise InvalidCertificate("a protection level is negative.")
    return levels


def _number(value: Any) -> Number:
    """A whole number, or a fraction written "p/q"; nothing else is exact."""
    if type(value) is int:
        return value
    if isinstance(value, str) and FRACTION.fullmatch(value):
        return Fraction(value)
    raise InvalidCertificate(f"{value!r} is neither a whole number nor a fraction.")


def _bound(value: Any) -> Number | None:
    return None if value is None else _number(value)


def _whole(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise InvalidCertificate(f"{value!r} should be a whole number of 0 or more.")
    return value


def _cells(values: Any, n: int) -> list[int]:
    """Distinct cell numbers within the table."""
    if not isinstance(values, list) or any(type(cell) is not int or not 0 <= cell < n for cell in values):
        raise InvalidCertificate("it names a cell that the table does not have.")
    if len(set(values)) != len(values):
        raise InvalidCertificate("it names the same cell twice in one list.")
    return values


def _check_codes(labels: list[list[str]], codes: list[list[int]], n: int) -> None:
    for names, positions in zip(labels, codes, strict=True):
        if len(positions) != n:
            raise InvalidCertificate(f"it has codes for {len(positions)} cells, but values for {n}.")
        if any(type(at) is not int or not 0 <= at < len(names) for at in positions):
            raise InvalidCertificate("it uses a code that it does not list.")
        if len(set(names)) != len(names) or any(not isinstance(name, str) for name in names):
            raise InvalidCertificate("its lists of codes are damaged.")
    if len(set(zip(*codes, strict=True))) != n:
        raise InvalidCertificate("two of its cells have the same codes.")


# -- checking ------------------------------------------------------------------------------------------------------


def _members(equation: list[int]) -> Iterator[tuple[int, int]]:
    """The cells of an equation with their signs: total − parts = 0."""
    yield equation[0], 1
    for part in equation[1:]:
        yield (part, -1) if part >= 0 else (-1 - part, 1)


def _equations_of_unknown(content: _Content) -> dict[int, list[tuple[int, int]]]:
    """For every unknown cell the equations it stands in; along the way every equation is checked for the truth."""
    rows: dict[int, list[tuple[int, int]]] = {cell: [] for cell in content.truth}
    n = len(content.published)
    for row, equation in enumerate(content.equations):
        total: Number = 0
        if type(equation[0]) is not int or equation[0] < 0:
            raise InvalidCertificate(f"equation {row + 1} has no total.")
        seen = set()
        for cell, sign in _members(equation):
            if not 0 <= cell < n or cell in seen:
                raise InvalidCertificate(f"equation {row + 1} is damaged.")
            seen.add(cell)
            if cell in rows:
                rows[cell].append((row, sign))
                value: Number | None = content.truth[cell]
            else:
                value = content.published[cell]
            if value is None:
                raise InvalidCertificate(
                    f"cell {content.describe(cell)} is withheld, but the certificate does not treat it as unknown."
                )
            total += sign * value
        if total != 0:
            raise InvalidCertificate(
                f"the true values do not add up to cell {content.describe(equation[0])} (equation {row + 1})."
            )
    return rows


def _check_truth(content: _Content) -> None:
    for cell, value in content.truth.items():
        low, high = content.lower[cell], content.upper[cell]
        if (low is not None and value < low) or (high is not None and value > high):
            raise InvalidCertificate(
                f"the true value of cell {content.describe(cell)} lies outside what an attacker knows."
            )


def _check_proofs(content: _Content, rows: dict[int, list[tuple[int, int]]]) -> tuple[set[int], int]:
    """Recheck every witness, and what the proofs say of them; returns the proved cells and how many witnesses."""
    claims = [_claim(content, *proof) for proof in content.proofs]
    wanted: dict[int, list[int]] = {}
    for cell, low, high in claims:
        wanted.setdefault(low, []).append(cell)
        wanted.setdefault(high, []).append(cell)
    shown: dict[tuple[int, int], Number] = {(0, cell): content.truth[cell] for cell in wanted.get(0, ())}
    witnesses = 0
    for chain in content.chains:
        over = _whole(chain["over"])
        if over < 1 or (content.whole and over != 1):
            raise InvalidCertificate(f"a witness after number {witnesses} is not a table of whole numbers.")
        for current in _witnesses(content, rows, chain["witnesses"], over, witnesses):
            witnesses += 1
            for cell in wanted.get(witnesses, ()):
                shown[witnesses, cell] = Fraction(current[cell], over) if cell in current else content.truth[cell]
    for cell, low, high in claims:
        if low > witnesses or high > witnesses:
            raise InvalidCertificate(f"the proof of cell {content.describe(cell)} names a witness that is missing.")
        _check_claim(content, cell, shown[low, cell], shown[high, cell])
    proved = {cell for cell, _, _ in claims}
    if len(proved) != len(claims):
        raise InvalidCertificate("it proves the same cell twice.")
    return proved, witnesses


def _claim(content: _Content, cell: int, low: int, high: int) -> tuple[int, int, int]:
    if cell not in content.levels:
        raise InvalidCertificate("it proves a cell that it does not list as sensitive.")
    if cell not in content.truth:
        raise InvalidCertificate(f"cell {content.describe(cell)} is called protected, but it is published.")
    return cell, _whole(low), _whole(high)


def _witnesses(
    content: _Content, rows: dict[int, list[tuple[int, int]]], chain: list[dict[str, Any]], over: int, before: int
) -> Iterator[dict[int, int]]:
    """Each witness of a chain in turn, as the cells that were changed; all values are over one denominator.

    All equations held before, so only those in which a changed cell stands need adding up again.
    """
    current: dict[int, int] = {}
    for index, witness in enumerate(chain, start=before + 1):
        residual: dict[int, Number] = {}
        cells = _cells(witness["cells"], len(content.published))
        for cell, value in zip(cells, witness["values"], strict=True):
            if cell not in rows:
                raise InvalidCertificate(f"witness {index} changes cell {content.describe(cell)}, which is published.")
            if type(value) is not int:
                raise InvalidCertificate(f"witness {index} holds {value!r}, which is not a whole number.")
            low, high = content.lower[cell], content.upper[cell]
            if (low is not None and value < low * over) or (high is not None and value > high * over):
                raise InvalidCertificate(
                    f"witness {index}: the value of cell {content.describe(cell)} lies outside what an attacker knows."
                )
            change = value - (current[cell] if cell in current else content.truth[cell] * over)
            for row, sign in rows[cell]:
                residual[row] = residual.get(row, 0) + sign * change
            current[cell] = value
        for row, off in residual.items():
            if off != 0:
                total = content.describe(content.equations[row][0])
                raise InvalidCertificate(f"witness {index} does not add up to cell {total} (equation {row + 1}).")
        yield current


def _check_claim(content: _Content, cell: int, low: Number, high: Number) -> None:
    value, (lower, upper, sliding) = content.truth[cell], content.levels[cell]
    if low > value - lower:
        raise InvalidCertificate(f"cell {content.describe(cell)} is not protected downwards as far as its level asks.")
    if high < value + upper:
        raise InvalidCertificate(f"cell {content.describe(cell)} is not protected upwards as far as its level asks.")
    if high - low < sliding:
        raise InvalidCertificate(f"the interval of cell {content.describe(cell)} is narrower than its level asks.")
    if high <= low:
        raise InvalidCertificate(f"both witnesses give cell {content.describe(cell)} the same value.")


def _check_complete(content: _Content, proved: set[int]) -> None:
    """Every sensitive cell is either proved or admitted to be open."""
    admitted = set(content.open)
    if admitted & proved:
        raise InvalidCertificate("it calls a cell both open and protected.")
    for cell in content.levels:
        if cell not in proved and cell not in admitted:
            raise InvalidCertificate(f"sensitive cell {content.describe(cell)} is neither proved nor listed as open.")
    if admitted - content.levels.keys():
        raise InvalidCertificate("it lists a cell as open that is not sensitive.")


# -- the release ---------------------------------------------------------------------------------------------------


def _check_release_hash(content: _Content, claimed: Any) -> None:
    lines = []
    for cell, value in enumerate(content.published):
        if cell not in content.absent:
            codes = [names[at[cell]] for names, at in zip(content.labels, content.codes, strict=True)]
            lines.append("\x1f".join([*codes, "" if value is None else str(value)]))
    lines.sort()
    header = "\x1f".join([*content.dimensions, content.response, str(content.decimals)])
    text = "\n".join([header, *lines])
    if hashlib.sha256(text.encode("utf-8", errors="surrogatepass")).hexdigest() != claimed:
        raise InvalidCertificate("the published values in it are not those of the release it was made for.")


def _check_published_file(content: _Content, release: Path, name: str) -> None:
    """The published file shows exactly what the certificate says it shows, cell by cell."""
    rows = _published_rows(content, release)
    keys = zip(
        *([names[at] for at in positions] for names, positions in zip(content.labels, content.codes, strict=True)),
        strict=True,
    )
    for cell, key in enumerate(keys):
        row = rows.pop(key, None)
        if row is None:
            if content.published[cell] is not None:
                raise InvalidCertificate(_foreign(name, release, f"cell {content.describe(cell)} is not in the file"))
            continue
        line, value, low, high = row
        if value != content.published[cell]:
            what = "is withheld there" if value is None else "is published there with another value"
            if content.published[cell] is None:
                what = "is published there, but the certificate takes it as withheld"
            where = f"line {line}: cell {content.describe(cell)} {what}"
            raise InvalidCertificate(_foreign(name, release, where))
        if cell in content.truth and not _announces_no_more(content, cell, low, high):
            where = f"line {line}: the interval of cell {content.describe(cell)} says more than the certificate assumes"
            raise InvalidCertificate(_foreign(name, release, where))
    if rows:
        key, (line, *_) = next(iter(rows.items()))
        raise InvalidCertificate(_foreign(name, release, f"line {line}: the table has no cell ({', '.join(key)})"))


def _announces_no_more(content: _Content, cell: int, low: Number | None, high: Number | None) -> bool:
    lower, upper = content.lower[cell], content.upper[cell]
    return (low is None or (lower is not None and lower >= low)) and (
        high is None or (upper is not None and upper <= high)
    )


def _foreign(name: str, release: Path, why: str) -> str:
    return (
        f"{name} was not made for {release.name}: {why}.\n\n"
        f"Hint: audit the file that will be published, and keep the certificate of that audit."
    )


def _published_rows(
    content: _Content, release: Path
) -> dict[tuple[str, ...], tuple[int, Number | None, Number | None, Number | None]]:
    """The rows of the published file by their codes: line, value, and the interval announced, if any."""
    try:
        return _rows_of(content, release.name, _decode(_bytes_of(release)))
    except (OSError, EOFError, zlib.error, UnicodeDecodeError, csv.Error) as error:
        why = getattr(error, "strerror", None) or error
        raise InvalidCertificate(f"{release.name} cannot be read: {why}.{GIVE}") from error


def _rows_of(
    content: _Content, name: str, text: str
) -> dict[tuple[str, ...], tuple[int, Number | None, Number | None, Number | None]]:
    delimiter, header = _header(text, [*content.dimensions, content.response], name)
    at = [header.index(dimension) for dimension in content.dimensions]
    value_at = header.index(content.response)
    from_at = header.index("from") if {"from", "to"} <= set(header) else None
    to_at = None if from_at is None else header.index("to")
    rows: dict[tuple[str, ...], tuple[int, Number | None, Number | None, Number | None]] = {}
    reader = csv.reader(io.StringIO(text), delimiter=delimiter)
    next(reader)
    scale = 10**content.decimals
    for row in reader:
        if not row:
            continue
        where = f"{name}, line {reader.line_num}"
        if len(row) < len(header):
            raise InvalidCertificate(f"{where} is cut short.{GIVE}")
        key = tuple(_unguarded(row[i]) for i in at)
        if key in rows:
            raise InvalidCertificate(f"{where} repeats cell ({', '.join(key)}).{GIVE}")
        value, low, high = (
            None if i is None else _published_number(row[i], scale, where) for i in (value_at, from_at, to_at)
        )
        rows[key] = (reader.line_num, value, low, high)
    return rows


def _unguarded(code: str) -> str:
    """A code without the apostrophe that keeps spreadsheets from running it."""
    return code[1:] if re.match(r"'[=+\-@\t\r]", code) else code


def _header(text: str, needed: Sequence[str], name: str) -> tuple[str, list[str]]:
    first = io.StringIO(text).readline()
    for delimiter in DELIMITERS:
        header = [_unguarded(column.strip()) for column in next(csv.reader([first], delimiter=delimiter), [])]
        if set(needed) <= set(header):
            return delimiter, header
    wanted = ", ".join(map(repr, needed))
    raise InvalidCertificate(f"{name} does not have the columns {wanted} of the certificate.{GIVE}")


def _published_number(text: str, scale: int, where: str) -> Number | None:
    """A published value in units; text without any digit (empty, "c", "...") is a withheld one."""
    text = text.strip()
    if not any(character.isdigit() for character in text):
        return None
    try:
        value = Fraction(text.replace(",", ".")) * scale if PLAIN.fullmatch(text) else None
    except (ValueError, ZeroDivisionError):
        value = None
    if value is None:
        raise InvalidCertificate(f"{where}: {text!r} is neither a number nor a mark for a withheld cell.{GIVE}")
    return value.numerator if value.denominator == 1 else value


def _decode(data: bytes) -> str:
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data.decode("utf-16")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("cp1252", errors="replace")


def main(arguments: Sequence[str] | None = None) -> int:
    """Verify from the command line: 0 when all is protected, 1 when cells are open, 2 when the certificate is wrong."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if len(given) not in {1, 2} or given[0] in {"-h", "--help"}:
        print("usage: python -m tablesafe.verify CERTIFICATE [PUBLISHED.csv]")
        return 0 if given[:1] in (["-h"], ["--help"]) else 2
    try:
        found = verify(given[0], release=given[1] if len(given) == 2 else None)
    except InvalidCertificate as error:
        print(error, file=sys.stderr)
        return 2
    print(found)
    return 0 if found.safe else 1


if __name__ == "__main__":
    sys.exit(main())
