"""Recheck a certificate with addition only: `python -m tablesafe.verify certificate.json`.

This file stands alone. It uses the standard library and nothing else, no solver, no floating point, and no code of the
audit that made the certificate, so that it can be read from top to bottom and believed. Two things are beyond the
standard library and are loaded when they are asked for: Ed25519 signatures (`cryptography`) and Parquet (`pyarrow`).

A certificate lists the cells of a table, what the release shows of each, the equations between them, and the bounds
that an attacker knows beforehand. A *witness* is a complete table: the true one with some unknown cells changed. For
every sensitive cell that it calls protected, the certificate names two witnesses. If both satisfy every equation and
every bound, and agree with every published value, then no attacker can rule out either, and the cell is hidden at
least as far as the two are apart. All numbers are whole numbers, or fractions written "p/q", of `10**-decimals`.

The checksum shows damage, not forgery: whoever edits a certificate can compute it again. A signature covers everything
in the file but itself and the checksum, with it the digest of the release; only the holder of the private key can make
it. A published file (CSV, or the .xlsx, .parquet, PX, JSON-stat, SDMX-CSV and SDMX-ML that tablesafe writes) agrees
with the certificate when every column and every entry in it is known: the codes and their labels, the values, whether a
cell is published, and the intervals that the release announces.
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
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from tablesafe.core.errors import InvalidCertificate, MissingExtra

FORMAT = "tablesafe certificate"
VERSION = 1
"""Of the format of certificates that this program reads."""
FRACTION = re.compile(r"-?[0-9]+/[1-9][0-9]*")
PLAIN = re.compile(r"[+-]?[0-9]*[.,]?[0-9]*(?:[eE][+-]?[0-9]{1,3})?")
"""A number as published files write it; an exponent of more digits would fill the memory."""
SPARE = re.compile(r"-?(?:0|[1-9][0-9]*)?(?:[.,][0-9]*)?(?:[eE][+-]?[0-9]{1,3})?")
"""The same without signs, spaces and zeros that no number needs."""
DELIMITERS = ",;\t|"
REPEAT = "repeat the audit; a certificate is never edited."
GIVE = "give the file of the release (.csv, .xlsx, .parquet, .px, .json, .sdmx.csv, .xml) as it was written."
SIGNED = b"tablesafe certificate signature 1\n"
"""What a signed text begins with, so that no other signature of the same key can pass for one."""
MARKS = ("", "c", "x", "s", "-", "–", ".", "..", "...", "…", ":", "*", "n.a.", "na", "confidential", "suppressed")
"""What stands in the place of a withheld value; anything else might be one."""
WITHHELD = ("confidential", "c", "x", "suppressed", "withheld", "")
SHOWN = ("published", "")
"""What the column of statuses says of a cell."""
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
    """What else the certificate admits: cells (possibly) open to insiders, sums that fail a rule, tables not proved."""
    attackers: tuple[str, ...]
    """The verdict of the audit, line by line: whom it looked at, and how far. Witnesses prove what is hidden from
    outsiders; the rest is its word."""
    witnesses: int
    equations: int
    unknown: int
    changed: int
    """Unknown cells of which the release shows a changed value (adjusted, rounded) or an interval."""
    release_checked: bool
    """Whether a published file was compared as well."""
    signer: str | None = None
    """Fingerprint of the key that the certificate says it was signed with."""
    signature_checked: bool = False
    """Whether the signature was checked, with a key that was given."""

    @property
    def safe(self) -> bool:
        """Whether every sensitive cell is proved to be protected, and nothing else is admitted to be open."""
        return self.protected == self.cells and not self.others

    def __str__(self) -> str:
        lines = [
            f"{self.protected:,} of {self.cells:,} sensitive cells are protected: proved by {self.witnesses:,} witness "
            f"tables over {self.unknown:,} unknown cells and {self.equations:,} equations.",
            "The audit says:",
            *self.attackers,
            "The published file agrees with the certificate."
            if self.release_checked
            else "No published file was compared.",
        ]
        if self.signature_checked:
            lines.append(f"The signature is that of the key given ({self.signer}).")
        elif self.signer is not None:
            lines.append(f"It is signed with the key {self.signer}, which was not checked: that takes the public key.")
        else:
            lines.append("It is not signed: it proves itself, but not who made it.")
        if self.changed:
            lines.append(f"{self.changed:,} of the unknown cells are published with changed values.")
        if self.open:
            more = f" and {len(self.open) - 10:,} more" if len(self.open) > 10 else ""
            are = "cell is" if len(self.open) == 1 else "cells are"
            lines.append(f"{len(self.open):,} sensitive {are} open: {', '.join(self.open[:10])}{more}.")
        if self.others:
            found = f"{len(self.others):,} openings to respondents or by sums, or things not proved"
            lines.append(f"The audit also found {found}:")
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
    captions: dict[str, dict[str, str]]
    """Labels of codes by dimension; a code without one is its own label."""
    announced: dict[int, tuple[Number | None, Number | None]]
    """Intervals that the release may tell its readers, of unknown cells."""

    def describe(self, cell: int) -> str:
        codes = [f"{d}={self.labels[i][self.codes[i][cell]]}" for i, d in enumerate(self.dimensions)]
        return f"({', '.join(codes)})"


def verify(path: str | Path, *, release: str | Path | None = None, key: str | Path | None = None) -> Verification:
    """Recheck every claim of a certificate, and compare it with the published file if one is given.

    With `key`, a file with a public key that `tablesafe key` made, the certificate must be signed by that key. Raises
    InvalidCertificate, with the reason, for a certificate that is damaged, edited, cut short, not signed where it must
    be, made for another release, or that claims more than its witnesses show.
    """
    path = Path(path)
    try:
        document, signature = _read(path)
        signer = _signer(signature)
        if key is not None:
            _check_signature(document, signature, Path(key), path.name)
        content = _content(document)
        _check_release_hash(content, document["release"])
        rows = _equations_of_unknown(content)
        _check_truth(content)
        proved, witnesses = _check_proofs(content, rows)
        _check_complete(content, proved)
        found = replace(_found(content, document, proved, witnesses), signer=signer, signature_checked=key is not None)
    except _Unreadable:
        raise
    except InvalidCertificate as error:
        raise InvalidCertificate(f"{path.name} is not a valid certificate: {error}", hint=REPEAT) from None
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError) as error:
        raise InvalidCertificate(
            f"{path.name} is not a valid certificate: it is damaged ({type(error).__name__}: {str(error)[:100]}).",
            hint=REPEAT,
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


def _read(path: Path) -> tuple[dict[str, Any], Any]:
    """The document, if it is one of ours, whole, and as it was written; and its signature, if there is one."""
    try:
        data = _bytes_of(path)
        document = json.loads(data.decode("utf-8"), parse_float=_refuse_float, parse_constant=_refuse_float)
    except FileNotFoundError:
        raise _Unreadable(f"There is no certificate {str(path)!r}.", hint="check the path.") from None
    except OSError as error:
        why = error.strerror or error
        raise _Unreadable(f"{path.name} cannot be read: {why}.", hint="copy it again.") from error
    except (EOFError, zlib.error, ValueError, RecursionError) as error:
        raise _Unreadable(
            f"{path.name} is damaged or cut short: {error}.", hint="copy it again, or repeat the audit."
        ) from error
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise _Unreadable(f"{path.name} is not a certificate of tablesafe.", hint="is it the right file?")
    if document.get("version") != VERSION:
        raise _Unreadable(
            f"{path.name} has version {document.get('version')!r} of the format; this program reads version {VERSION}.",
            hint="verify it with the release of tablesafe that made it.",
        )
    claimed, signature = document.pop("sha256", None), document.pop("signature", None)
    if hashlib.sha256(_canonical(document)).hexdigest() != claimed:
        raise _Unreadable(
            f"{path.name} was changed after it was made: its content does not match its own checksum.",
            hint="repeat the audit; a certificate is never edited.",
        )
    return document, signature


def _canonical(document: dict[str, Any]) -> bytes:
    """The one way to write a document, over which checksum and signature are made."""
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return text.encode("utf-8", errors="surrogatepass")


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
        captions=_captions(document.get("captions", {}), dimensions),
        announced=_announced(document.get("announced", {"cells": [], "from": [], "to": []}), set(unknown), n),
    )
    if content.decimals > MOST_DECIMALS:
        raise InvalidCertificate(f"it says that values have {content.decimals} decimals.")
    if any(published[cell] is not None for cell in content.absent):
        raise InvalidCertificate("it lists a cell both as published and as left out of the release.")
    if set(_cells(document["changed"], n)) != {cell for cell in unknown if published[cell] is not None}:
        raise InvalidCertificate("it takes a published cell as unknown, but does not list it as changed.")
    return content


def _captions(captions: Any, dimensions: list[str]) -> dict[str, dict[str, str]]:
    if not set(captions) <= set(dimensions):
        raise InvalidCertificate("it has labels for a dimension that the table does not have.")
    if any(not isinstance(label, str) for labels in captions.values() for label in labels.values()):
        raise InvalidCertificate("its labels are damaged.")
    return dict(captions)


def _announced(intervals: Any, unknown: set[int], n: int) -> dict[int, tuple[Number | None, Number | None]]:
    cells = _cells(intervals["cells"], n)
    if not set(cells) <= unknown:
        raise InvalidCertificate("it announces an interval for a cell that is known.")
    ends = zip(map(_bound, intervals["from"]), map(_bound, intervals["to"]), strict=True)
    return dict(zip(cells, ends, strict=True))


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


# -- the signature -------------------------------------------------------------------------------------------------


def _signer(signature: Any) -> str | None:
    """The fingerprint of the key that a signature names; it is looked at only for its form."""
    if signature is None:
        return None
    if not isinstance(signature, dict) or set(signature) != {"algorithm", "public_key", "value"}:
        raise InvalidCertificate("its signature is damaged.")
    if signature["algorithm"] != "Ed25519":
        raise InvalidCertificate(f"it is signed by {signature['algorithm']!r}, and only Ed25519 is known.")
    public, value = bytes.fromhex(signature["public_key"]), bytes.fromhex(signature["value"])
    if len(public) != 32 or len(value) != 64:
        raise InvalidCertificate("its signature is damaged.")
    return fingerprint(public)


def fingerprint(public: bytes) -> str:
    """A short name of a public key, to compare by eye."""
    digest = hashlib.sha256(public).hexdigest()[:32]
    return ":".join(digest[i : i + 4] for i in range(0, 32, 4))


def _check_signature(document: dict[str, Any], signature: Any, key: Path, name: str) -> None:
    """The document was signed by the holder of the private key that belongs to the public one given."""
    given, bad = _public_key(key)
    again = f"ask whoever made {name}; do not trust it as it is."
    if signature is None:
        raise _Unreadable(f"{name} is not signed, but a signature of {key.name} is asked for.", hint=again)
    if bytes.fromhex(signature["public_key"]) != given.public_bytes_raw():
        raise _Unreadable(
            f"{name} is signed with another key: {_signer(signature)}, not {fingerprint(given.public_bytes_raw())} of "
            f"{key.name}.",
            hint=again,
        )
    try:
        given.verify(bytes.fromhex(signature["value"]), SIGNED + _canonical(document))
    except bad:
        raise _Unreadable(f"{name} was changed after it was signed: its signature does not fit.", hint=again) from None


def _public_key(path: Path) -> tuple[Any, type[Exception]]:
    """An Ed25519 public key from a PEM file, and what it raises for a signature that does not fit."""
    try:
        from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
        from cryptography.hazmat.primitives.serialization import load_pem_public_key
    except ImportError:
        raise MissingExtra("Checking a signature", "sign") from None
    hint = "give the file that ends in .pub, as 'tablesafe key' made it."
    try:
        data = _bytes_of(path)
    except (OSError, EOFError, zlib.error) as error:
        why = getattr(error, "strerror", None) or error
        raise _Unreadable(f"The key {str(path)!r} cannot be read: {why}.", hint=hint) from error
    if b"PRIVATE KEY" in data:
        raise _Unreadable(f"{path.name} holds a private key, which nobody needs to check a signature.", hint=hint)
    try:
        key = load_pem_public_key(data)
    except (ValueError, UnsupportedAlgorithm):
        raise _Unreadable(f"{path.name} holds no public key.", hint=hint) from None
    if not isinstance(key, Ed25519PublicKey):
        raise _Unreadable(f"{path.name} holds a key of another kind than Ed25519.", hint=hint)
    return key, InvalidSignature


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
    """The published file shows exactly what the certificate says it shows, cell by cell, and nothing besides."""
    header, lines = _table_of(release, content)
    try:
        columns = _columns_of(content, header)
        rows = _rows_of(content, columns, lines, release.name)
    except _Foreign as error:
        raise _foreign(name, release, str(error)) from None
    keys = zip(
        *([names[at] for at in positions] for names, positions in zip(content.labels, content.codes, strict=True)),
        strict=True,
    )
    only_shown = all(row.value is not None for row in rows.values())
    for cell, key in enumerate(keys):
        row = rows.pop(key, None)
        if row is None:  # all that is withheld may be left out, but not some of it
            if content.published[cell] is not None or not (cell in content.absent or only_shown):
                raise _foreign(name, release, f"cell {content.describe(cell)} is not in the file")
            continue
        if cell in content.absent and row.value is None:
            raise _foreign(name, release, f"line {row.line}: the release has no cell {content.describe(cell)}")
        why = _disagreement(content, cell, row)
        if why:
            raise _foreign(name, release, f"line {row.line}: {why}")
    if rows:
        key, stranger = next(iter(rows.items()))
        where = f"line {stranger.line}: the table has no cell ({', '.join(key)})"
        raise _foreign(name, release, where)


class _Foreign(Exception):
    """Why a published file is not the one of the certificate."""


@dataclass(frozen=True, slots=True)
class _Row:
    """One row of a published file, in units of the certificate."""

    line: int
    value: Number | None
    low: Number | None
    high: Number | None
    texts: tuple[str, str, str]
    """The three as they stand in the file."""


def _disagreement(content: _Content, cell: int, row: _Row) -> str:
    """In what a row says something else of its cell than the certificate; nothing when it agrees."""
    shown, named = content.published[cell], f"cell {content.describe(cell)}"
    if shown is None and row.value is not None:
        return f"{named} is published there, but the certificate takes it as withheld"
    if shown is not None and row.value is None:
        return f"{named} is withheld there"
    scale = 10**content.decimals
    if not _same(row.value, shown):
        return f"{named} is published there with another value"
    if not _as_written(row.texts[0], shown, scale):
        return f"the value of {named} has other digits there than it needs, which may say something"
    if row.low is None and row.high is None:
        return ""
    ends = row.texts[1:]
    if cell not in content.truth:
        exact = _same(row.low, shown) and _same(row.high, shown)
        exact &= all(_as_written(text, shown, scale) for text in ends)
        return "" if exact else f"{named} is published with its value, and its interval says something else"
    if not _announces_no_more(content, cell, row.low, row.high):
        return f"the interval of {named} says more than the certificate assumes"
    low, high = content.announced.get(cell, (None, None))
    alike = _same(row.low, low) and _same(row.high, high)
    if not (alike and _as_written(ends[0], low, scale) and _as_written(ends[1], high, scale)):
        return f"the interval of {named} is not the one that the release announces"
    return ""


def _same(one: Number | None, other: Number | None) -> bool:
    """Whether two numbers are equal, but for what fifteen digits of a file do not hold."""
    if one is None or other is None or one == other:
        return one == other
    try:
        return f"{float(one):.15g}" == f"{float(other):.15g}"
    except OverflowError:
        return False


def _as_written(text: str, number: Number | None, scale: int) -> bool:
    """Whether a number stands there in no other digits than its own: those beyond the last can spell anything.

    So programs write it: exactly, or as the nearest floating-point number in 15 to 17 digits.
    """
    if number is None:
        return True  # a mark, or no end
    if not SPARE.fullmatch(text):
        return False
    plain, given = Fraction(number) / scale, Fraction(text.replace(",", "."))
    if given == plain:
        return True
    try:
        near = float(plain)
    except OverflowError:
        return False
    return any(given == Fraction(f"{near:.{digits}g}") for digits in (15, 16, 17))


def _announces_no_more(content: _Content, cell: int, low: Number | None, high: Number | None) -> bool:
    lower, upper = content.lower[cell], content.upper[cell]
    return (low is None or (lower is not None and lower >= low)) and (
        high is None or (upper is not None and upper <= high)
    )


def _foreign(name: str, release: Path, why: str) -> InvalidCertificate:
    return InvalidCertificate(
        f"{name} was not made for {release.name}: {why}.",
        hint="audit the file that will be published, and keep the certificate of that audit.",
    )


@dataclass(frozen=True, slots=True)
class _Columns:
    """Where in a published file each thing stands; every column is one of these."""

    count: int
    codes: list[int]
    captions: list[tuple[int, int, dict[str, str]]]
    """Of each column of labels: where it is, where its code is, and the labels."""
    value: int
    status: int | None
    low: int | None
    high: int | None


def _columns_of(content: _Content, header: list[str]) -> _Columns:
    """Every column of the file, known by its name; one that is not known may hold anything."""
    twice = [name for name in header if header.count(name) > 1]
    if twice:
        raise _Foreign(f"it has two columns {twice[0]!r}")
    needed = [*content.dimensions, content.response]
    if not set(needed) <= set(header):
        raise _Foreign(f"it does not have the columns {', '.join(map(repr, needed))} of the certificate")
    status = "cell status" if "status" in content.dimensions else "status"
    labels = {f"{name} label": name for name in content.captions if f"{name} label" not in needed}
    further = [name for name in (status, "from", "to") if name not in needed]
    for name in header:
        if name not in {*needed, *labels, *further}:
            known = ", ".join(map(repr, [*needed, *labels, *further]))
            raise _Foreign(f"its column {name!r} is not part of the release, which has {known}")
    at = {name: header.index(name) for name in header}
    interval = [at.get(name) if name in further else None for name in ("from", "to")]
    if (interval[0] is None) != (interval[1] is None):
        raise _Foreign("it has only one of the columns 'from' and 'to'")
    return _Columns(
        len(header),
        [at[name] for name in content.dimensions],
        [(at[label], at[name], content.captions[name]) for label, name in labels.items() if label in at],
        at[content.response],
        at.get(status) if status in further else None,
        *interval,
    )


def _rows_of(
    content: _Content, columns: _Columns, lines: Iterable[tuple[int, list[str], str]], name: str
) -> dict[tuple[str, ...], _Row]:
    """The rows of the published file by their codes; each line comes with its number and how it looks."""
    rows: dict[tuple[str, ...], _Row] = {}
    looks: dict[bool, tuple[str, ...]] = {}
    scale = 10**content.decimals
    for line, row, style in lines:
        where = f"{name}, line {line}"
        if len(row) < columns.count:
            raise InvalidCertificate(f"{where} is cut short.", hint=GIVE)
        if len(row) > columns.count:
            raise _Foreign(f"line {line} has more entries than the first line has names")
        key = tuple(row[i] for i in columns.codes)
        if key in rows:
            raise InvalidCertificate(f"{where} repeats cell ({', '.join(key)}).", hint=GIVE)
        for i, code, labels in columns.captions:
            if row[i] != labels.get(row[code], row[code]):
                raise _Foreign(f"line {line}: {row[i]!r} is not the label of {row[code]!r}")
        value = _published_number(row[columns.value], scale, where)
        status = "" if columns.status is None else row[columns.status]
        if status.strip().lower() not in (WITHHELD if value is None else SHOWN):
            raise _Foreign(f"line {line}: {status!r} is not what a release says of a cell")
        look = (status, style, row[columns.value] if value is None else "")
        if looks.setdefault(value is None, look) != look:
            what = "withheld" if value is None else "published"
            raise _Foreign(f"line {line} is marked otherwise than the {what} cells before it, which tells them apart")
        low, high = (
            None if i is None else _published_number(row[i], scale, where, ends=True)
            for i in (columns.low, columns.high)
        )
        texts = [row[columns.value], *("" if i is None else row[i] for i in (columns.low, columns.high))]
        rows[key] = _Row(line, value, low, high, (texts[0], texts[1], texts[2]))
    _check_styles(row.texts[0] for row in rows.values() if row.value is not None)
    return rows


def _check_styles(texts: Iterable[str]) -> None:
    """Zeros at the end are decimals that all numbers have, or a single one: otherwise they could mark some of them."""
    decimals = [found[1] for text in texts if (found := re.fullmatch(r"-?[0-9]+[.,]([0-9]+)", text))]
    if any(each.endswith("0") and each != "0" for each in decimals) and len({*map(len, decimals)} - {0}) > 1:
        raise _Foreign("some values have more zeros at the end than others, which tells them apart")


def _published_number(text: str, scale: int, where: str, *, ends: bool = False) -> Number | None:
    """A published value in units; a mark is a withheld one, and of the ends of intervals inf is none."""
    text = text.strip()
    if text.lower() in (("", "inf", "-inf") if ends else MARKS):
        return None
    try:
        known = PLAIN.fullmatch(text) and any(character.isdigit() for character in text)
        value = Fraction(text.replace(",", ".")) * scale if known else None
    except (ValueError, ZeroDivisionError):
        value = None
    if value is None:
        raise InvalidCertificate(f"{where}: {text!r} is neither a number nor a mark for a withheld cell.", hint=GIVE)
    return value.numerator if value.denominator == 1 else value


# -- the published file, whatever its kind -------------------------------------------------------------------------


def _table_of(release: Path, content: _Content) -> tuple[list[str], Iterator[tuple[int, list[str], str]]]:
    """The names of the columns, and the rows with their number and how they look; the content tells the kind."""
    try:
        data = _bytes_of(release)
        if data.startswith(b"PAR1"):
            return _parquet_table(release, len(content.published))
        if data.startswith(b"PK"):
            return _workbook_table(data)
        needed, text = [*content.dimensions, content.response], _decode(data)
        if data.startswith(b"<?xml"):
            return needed, _sdmx_ml_rows(content, data)
        for begins, rows in TEXTS:
            if re.match(begins, text):
                return needed, rows(content, text)
        return _text_table(text, needed, release.name)
    except _Foreign as error:
        raise InvalidCertificate(
            f"{release.name} holds more than a release: {error}.", hint="publish the file as tablesafe wrote it."
        ) from None
    except (OSError, EOFError, zlib.error, UnicodeDecodeError, csv.Error, ValueError, LookupError) as error:
        why = getattr(error, "strerror", None) or error
        raise InvalidCertificate(f"{release.name} cannot be read: {why}.", hint=GIVE) from error


def _text_table(text: str, needed: Sequence[str], name: str) -> tuple[list[str], Iterator[tuple[int, list[str], str]]]:
    """A CSV file; the delimiter is the one that makes the columns needed of its first line."""
    first, header, delimiter = io.StringIO(text).readline(), [""], DELIMITERS[0]
    for mark in DELIMITERS:
        named = [_unguarded(column.strip()) for column in next(csv.reader([first], delimiter=mark), [])]
        if set(needed) <= set(named):
            header, delimiter = named, mark
            break
    reader = csv.reader(io.StringIO(text), delimiter=delimiter)
    next(reader, [])

    def rows() -> Iterator[tuple[int, list[str], str]]:
        try:
            empty = 0
            for row in reader:
                if not row:
                    empty = reader.line_num
                    continue
                if empty:
                    raise _Foreign(f"line {empty} is empty")
                yield reader.line_num, [_unguarded(entry) for entry in row], ""
        except csv.Error as error:
            message = f"{name}, line {reader.line_num} cannot be read: {error}."
            raise InvalidCertificate(message, hint=GIVE) from error

    return header, rows()


def _unguarded(code: str) -> str:
    """A code without the apostrophe that keeps spreadsheets from running it."""
    return code[1:] if re.match(r"'+[=+\-@\t\r]", code) else code


def _parquet_table(release: Path, cells: int) -> tuple[list[str], Iterator[tuple[int, list[str], str]]]:
    """A Parquet file with columns of text and numbers, and with no metadata but the kinds of its columns."""
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise InvalidCertificate("Reading Parquet needs pyarrow.", hint="install it, or give the CSV.") from None
    try:
        file = parquet.ParquetFile(release)
        about, schema = file.metadata, file.schema_arrow
        if about.num_rows > cells:
            raise _Foreign(f"it has {about.num_rows:,} rows, but the table has {cells:,} cells")
        if sum(about.row_group(i).total_byte_size for i in range(about.num_row_groups)) > _read_limit():
            raise OSError(0, f"it unpacks to more than {_read_limit():,} bytes")
        notes = {*(about.metadata or {}), *(schema.metadata or {})} - {b"ARROW:schema"}
        notes |= {note for each in schema for note in each.metadata or {}} - {b"PARQUET:field_id"}
        if notes:
            names = ", ".join(repr(note.decode("utf-8", "replace")) for note in sorted(notes))
            raise _Foreign(f"it has metadata of its own ({names})")
        for each in schema:
            if str(each.type) not in {"string", "large_string", "string_view", "int64", "double"}:
                raise _Foreign(f"its column {each.name!r} holds {each.type}, neither text nor numbers")
        columns = [column.to_pylist() for column in file.read().columns]
        named = [each.name for each in schema if str(each.type) == "string"]
        for column in parquet.ParquetFile(release, read_dictionary=named).read(named).columns:
            for chunk in column.chunks if pyarrow.types.is_dictionary(column.type) else ():
                if {*range(len(chunk.dictionary))} - {*chunk.indices.to_pylist()}:
                    raise _Foreign("it holds texts that no cell shows")
    except pyarrow.ArrowException as error:
        raise OSError(0, "it is damaged") from error
    words = [at for at, each in enumerate(schema) if "string" in str(each.type)]  # none is not an empty text
    lines = (
        (line, ["" if entry is None else str(entry) for entry in row], "".join("-x"[row[at] is None] for at in words))
        for line, row in enumerate(zip(*columns, strict=True), start=2)
    )
    return list(schema.names), lines


WORKBOOK_PARTS = (
    "[Content_Types].xml", "_rels/.rels", "docProps/app.xml", "docProps/core.xml", "xl/_rels/workbook.xml.rels",
    "xl/sharedStrings.xml", "xl/styles.xml", "xl/theme/theme1.xml", "xl/workbook.xml", "xl/worksheets/sheet1.xml",
)  # fmt: skip
SHEET: dict[str, str] = {
    "worksheet": "", "dimension": "ref", "sheetViews": "", "sheetView": "tabSelected workbookViewId",
    "pane": "ySplit topLeftCell activePane state", "selection": "pane activeCell sqref",
    "sheetFormatPr": "defaultRowHeight", "cols": "", "col": "min max width customWidth", "sheetData": "",
    "row": "r spans", "c": "r s t", "v": "", "pageMargins": "left right top bottom header footer",
}  # fmt: skip
"""What a sheet consists of, and with which attributes: nothing is hidden, computed, commented or linked."""
WORKBOOK: dict[str, str] = {
    "workbook": "", "fileVersion": "appName lastEdited lowestEdited rupBuild", "workbookPr": "defaultThemeVersion",
    "bookViews": "", "workbookView": "xWindow yWindow windowWidth windowHeight", "sheets": "",
    "sheet": "name sheetId id", "calcPr": "calcId fullCalcOnLoad",
}  # fmt: skip
INSIDE = {"sheetData": "worksheet", "row": "sheetData", "c": "row", "v": "c", "si": "sst", "t": "si"}
"""Where the elements that hold text stand."""
STRINGS: dict[str, str] = {"sst": "count uniqueCount", "si": "", "t": "space"}
PROPERTIES = re.compile(r"(?:Microsoft Excel|0|1|false|Worksheets|cells|1[0-9]\.[0-9]{4}|2000-01-01T00:00:00Z)?")
"""All that the properties of a workbook say."""


def _workbook_table(data: bytes) -> tuple[list[str], Iterator[tuple[int, list[str], str]]]:
    """A workbook of one sheet, as tablesafe writes it: each part of it is known, and nothing stands between them."""
    try:
        parts = _unpacked(data)
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError) as error:
        raise OSError(0, f"it is damaged ({error})") from error
    trees = {name: _parsed(name, part) for name, part in parts.items()}
    sheets = [each.get("name") for each in _known(trees["xl/workbook.xml"], WORKBOOK, "xl/workbook.xml", "sheet")]
    if sheets != ["cells"]:
        raise _Foreign(f"its sheets are {', '.join(map(repr, sheets))}, and a release has one, 'cells'")
    for name in WORKBOOK_PARTS:
        if name.startswith("docProps"):
            texts = [text for each in trees[name].iter() for text in (each.text, each.tail) if text]
            if not all(PROPERTIES.fullmatch(text.strip()) for text in texts):
                raise _Foreign(f"its properties ({name}) say something")
        elif name not in {"xl/sharedStrings.xml", "xl/worksheets/sheet1.xml"}:
            if any((each.text or "").strip() or (each.tail or "").strip() for each in trees[name].iter()):
                raise _Foreign(f"{name} holds text")
            if any(_tag(each) == "numFmt" or each.get("TargetMode") for each in trees[name].iter()):
                raise _Foreign(f"{name} holds formats or links of its own")
    strings = ["".join(each.itertext()) for each in _known(trees["xl/sharedStrings.xml"], STRINGS, "its texts", "si")]
    strings = [re.sub("_x([0-9A-Fa-f]{4})_", lambda found: chr(int(found[1], 16)), text) for text in strings]
    lines = _sheet_rows(_known(trees["xl/worksheets/sheet1.xml"], SHEET, "its sheet", "row"), strings)
    if not lines:
        raise OSError(0, "its sheet is empty")
    (_, header, _), *rows = lines
    return header, iter([(line, row + [""] * (len(header) - len(row)), style) for line, row, style in rows])


def _unpacked(data: bytes) -> dict[str, bytes]:
    """The parts of a workbook, all of them known, with nothing before, between or after them."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        infos = archive.infolist()
        strange = sorted({info.filename for info in infos} - set(WORKBOOK_PARTS))
        if strange:
            raise _Foreign(f"it has a part {strange[0]!r}")
        if sorted(info.filename for info in infos) != sorted(WORKBOOK_PARTS):
            raise OSError(0, "it lacks a part of a workbook, or has one twice")
        if archive.comment or any(info.comment or info.extra for info in infos):
            raise _Foreign("its archive holds comments")
        if sum(info.file_size for info in infos) > _read_limit():
            raise OSError(0, f"it unpacks to more than {_read_limit():,} bytes; {LIMIT_VARIABLE}=16GB raises the limit")
        size = sum(76 + 2 * len(info.filename.encode()) + info.compress_size for info in infos) + 22
        if size != len(data):
            raise _Foreign("its archive holds more than its parts")
        return {info.filename: archive.read(info) for info in infos}


def _parsed(name: str, part: bytes) -> ElementTree.Element:
    """A part as a tree; what a tree would not show (comments, declarations) is not there."""
    if b"<!" in part or part.count(b"<?") > 1 or not part.startswith(b'<?xml version="1.0" encoding="UTF-8"'):
        raise _Foreign(f"{name} holds comments")
    try:
        return ElementTree.fromstring(part)  # without declarations there are no entities to expand
    except ElementTree.ParseError as error:
        raise OSError(0, f"{name} is damaged ({error})") from error


def _tag(element: ElementTree.Element) -> str:
    return element.tag.rpartition("}")[2]


def _known(root: ElementTree.Element, known: dict[str, str], what: str, wanted: str) -> list[ElementTree.Element]:
    """The elements of one kind in a tree of which every element and attribute is known, and text is where it should."""
    places = {(_tag(outer), _tag(inner)) for outer in root.iter() for inner in outer}
    for each in root.iter():
        tag = _tag(each)
        if tag not in known or any(inner == tag and outer != INSIDE.get(tag, outer) for outer, inner in places):
            raise _Foreign(f"{what} holds a {tag!r} where none should be")
        strange = {name.rpartition("}")[2] for name in each.attrib} - set(known[tag].split())
        if strange:
            raise _Foreign(f"{what} holds a {tag!r} that is {sorted(strange)[0]!r}")
        if (tag not in {"v", "t"} and (each.text or "").strip()) or (each.tail or "").strip():
            raise _Foreign(f"{what} holds text beside its cells")
    return [each for each in root.iter() if _tag(each) == wanted]


def _sheet_rows(rows: list[ElementTree.Element], strings: list[str]) -> list[tuple[int, list[str], str]]:
    """The rows of a sheet as text, with their number and the format of their cells; every text of the file is used."""
    found, used = [], set()
    for line, row in enumerate(rows, start=1):
        entries: list[str] = []
        for cell in row:
            place = re.fullmatch(r"([A-Z]{1,3})([0-9]+)", cell.get("r", ""))
            if place is None or int(place[2]) != line or row.get("r") != str(line):
                raise OSError(0, f"row {line} of its sheet is damaged")
            at = 0
            for letter in place[1]:
                at = 26 * at + ord(letter) - 64
            if at <= len(entries):
                raise OSError(0, f"row {line} of its sheet is damaged")
            text = "".join(cell.itertext())
            if cell.get("t") == "s":
                used.add(int(text))
                text = strings[int(text)]
            elif cell.get("t") is not None:
                raise _Foreign(f"row {line} of its sheet holds what is neither text nor a number")
            entries += [""] * (at - 1 - len(entries)) + [text]
        found.append((line, entries, ",".join(sorted({cell.get("s", "") for cell in row}))))
    if used != set(range(len(strings))):
        raise _Foreign("it holds texts that no cell shows")
    return found


# -- formats of statistical offices, as tablesafe writes them ------------------------------------------------------

Rows = Iterator[tuple[int, list[str], str]]
FLOW = re.compile(r"[A-Za-z][\w.@$-]*:[A-Za-z][\w@$-]*\([0-9]+(?:\.[0-9]+)*\)")
"""The name of a dataflow, which the office chooses: AGENCY:ID(1.0)."""
LEAD = {"STRUCTURE": "dataflow", "ACTION": "I"}
STATUSES = {"OBS_STATUS": ("Q", "A"), "CONF_STATUS": ("C", "F")}
"""What the attributes of an observation say: of a withheld cell, of a published one."""
PX_TEXT = re.compile(r'"[^"]*"(?:\s*"[^"]*")*')
PX_LINE = re.compile(r'([A-Z-]+)(?:\("([^"]*)"\))?=((?:"[^"]*"|[^";])*);\n')


def _require(true: bool, why: str) -> None:
    if not true:
        raise _Foreign(why)


def _title(content: _Content) -> str:
    return f"{content.response} by {', '.join(content.dimensions)}"


def _combined(codes: Sequence[Sequence[str]], entries: Iterable[tuple[int, str]]) -> Rows:
    """Entries by their position among all combinations of codes, the last dimension running fastest, as rows."""
    for position, text in entries:
        row, rest = [text], position
        for own in reversed(codes):
            rest, at = divmod(rest, len(own))
            row.insert(0, own[at])
        yield position + 1, row, ""


def _json_stat_rows(content: _Content, text: str) -> Rows:
    """JSON-stat 2: every key is known, and every code and label; statuses mark what has no value, alike."""
    document = json.loads(text, parse_float=str, parse_int=str, object_pairs_hook=_once)
    _require(isinstance(document, dict), "it is no dataset")
    keys = {"version", "class", "label", "id", "size", "dimension", "value"}
    strange = sorted({*document} - keys - {"status"})
    _require(not strange, f"it holds {strange[:1]}, which is not part of a release")
    _require(keys <= {*document}, "it lacks a part of a dataset")
    names = content.dimensions
    _require((document["version"], document["class"]) == ("2.0", "dataset"), "it is no dataset of version 2.0")
    _require(document["label"] == _title(content), "its label is not the one that tablesafe writes")
    _require(document["id"] == names and {*document["dimension"]} == {*names}, "its dimensions are others")
    codes = [_json_stat_codes(content, i, document["dimension"][name]) for i, name in enumerate(names)]
    _require(document["size"] == [str(len(own)) for own in codes], "its sizes are not those of its dimensions")
    given, many = document["value"], 1
    for own in codes:
        many *= len(own)
    _require(isinstance(given, list) or all(str(int(at)) == at for at in given), "its positions are no plain numbers")
    values = dict(enumerate(given)) if isinstance(given, list) else {int(at): value for at, value in given.items()}
    _require(
        len(values) == many if isinstance(given, list) else all(0 <= at < many for at in values), "it is cut short"
    )
    _require(all(value is None or isinstance(value, str) for value in values.values()), "a value is no number")
    hidden = {str(at): "c" for at, value in values.items() if value is None}
    _require(document.get("status", {}) == hidden, "its statuses say more than that a cell is withheld")
    return _combined(codes, ((at, value or "") for at, value in sorted(values.items())))


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    _require(len(found) == len(pairs), "it holds a key twice")
    return found


def _json_stat_codes(content: _Content, at: int, dimension: Any) -> list[str]:
    """The codes of a dimension in the order of the file; its labels are those of the release."""
    name, known = content.dimensions[at], set(content.labels[at])
    _require({*dimension} == {"label", "category"} and dimension["label"] == name, f"dimension {name!r} says more")
    category = dimension["category"]
    _require({*category} <= {"index", "label", "child"}, f"dimension {name!r} says more")
    codes: list[str] = category["index"]
    _require(isinstance(codes, list), f"dimension {name!r} does not list its codes")
    _require(len(set(codes)) == len(codes) and set(codes) <= known, f"dimension {name!r} has codes of its own")
    captions = content.captions.get(name, {})
    labels = category.get("label", {})
    _require(not labels or labels == {code: captions.get(code, code) for code in codes}, f"labels of {name!r} differ")
    tree = category.get("child", {})
    _require(all(code in known for total, parts in tree.items() for code in (total, *parts)), f"{name!r} says more")
    return codes


def _px_rows(content: _Content, text: str) -> Rows:
    """PX: every keyword is known, and every code and value; two points stand for a withheld cell, a dash for none."""
    at, known, codes = 0, _px_keywords(content), {}
    head, mark, data = text.partition("DATA=\n")
    _require(bool(mark) and data.endswith("\n;\n"), "its DATA do not end as they should")
    while at < len(head):
        line = PX_LINE.match(head, at)
        _require(line is not None, f"something stands between its keywords: {head[at : at + 20]!r}")
        assert line is not None
        at, (keyword, about, raw) = line.end(), line.groups()
        if about is None and keyword in known:
            _require(re.fullmatch(known.pop(keyword), raw, re.DOTALL) is not None, f"its {keyword} says something")
            continue
        _require(about in content.dimensions and keyword in PX_ABOUT, f"it holds {keyword}, which no release has")
        texts = _px_texts(raw)
        own, captions = set(content.labels[content.dimensions.index(about)]), content.captions.get(about, {})
        if keyword == "CODES":
            _require(about not in codes and len(set(texts)) == len(texts), f"it has codes of {about!r} twice")
            codes[about] = texts
        named = own | {captions.get(code, code) for code in own}
        _require(
            re.sub(PX_TEXT, "", raw).strip(",:\n ") == "" and set(texts) <= named, f"{keyword} of {about!r} says more"
        )
        if keyword == "VALUES":
            following = re.match(rf'CODES\("{re.escape(about)}"\)=((?:"[^"]*"|[^";])*);\n', head[at:])
            after = [] if following is None else _px_texts(following[1])
            _require(texts == [captions.get(code, code) for code in after], f"labels of {about!r} differ")
    _require(set(codes) == set(content.dimensions), "it lacks the codes of a dimension")
    words, laid = data[: -len("\n;\n")].split(), [codes[name] for name in content.dimensions]
    many = 1
    for each in laid:
        many *= len(each)
    _require(len(words) == many, f"it has {len(words):,} values for {many:,} cells")
    _require(all(word in {'".."', '"-"'} or word[-1].isdigit() for word in words), "its DATA hold other marks")
    return _combined(laid, ((i, word.strip('"')) for i, word in enumerate(words) if word != '"-"'))


def _px_texts(raw: str) -> list[str]:
    """The texts of a keyword; a long one is in parts, on lines of their own."""
    return ["".join(part.replace('"', "").split("\n")) for part in PX_TEXT.findall(raw)]


PX_ABOUT = ("VALUES", "CODES", "ELIMINATION", "HIERARCHIES")


def _px_keywords(content: _Content) -> dict[str, str]:
    """What each keyword of the whole file says, as a pattern."""

    def texts(*words: str) -> str:
        plain = (re.sub(r"\s*[\r\n]+\s*", "#", word).replace('"', "'") for word in words)
        parts = ([own[i : i + 200] for i in range(0, len(own), 200)] or [""] for own in plain)
        return ",".join("\n".join(re.escape(f'"{part}"') for part in each) for each in parts)

    names, own = content.dimensions, texts("tablesafe")
    stub, heading = (names[:-1], names[-1:]) if len(names) > 1 else (names, [])
    return {
        "CHARSET": texts("ANSI"), "AXIS-VERSION": texts("2013"), "CODEPAGE": texts("utf-8"), "LANGUAGE": texts("en"),
        "DECIMALS": "15", "SHOWDECIMALS": "[0-6]", "MATRIX": own, "SUBJECT-CODE": own, "SUBJECT-AREA": own,
        "TITLE": texts(_title(content)), "CONTENTS": texts(content.response), "UNITS": texts("unit"),
        "STUB": texts(*stub), **({"HEADING": texts(*heading)} if heading else {}),
    }  # fmt: skip


def _sdmx_names(content: _Content) -> dict[str, str]:
    """Dimensions by the names that SDMX allows: letters, digits, _ - @ $, no two alike."""
    taken: dict[str, str] = {}
    about = {"STRUCTURE", "STRUCTURE_ID", "STRUCTURE_NAME", "ACTION", "DATAFLOW", "SERIES_KEY", "OBS_KEY"}
    for name in content.dimensions:
        plain = re.sub(r"[^A-Za-z0-9_@$-]", "_", name) or "DIMENSION"
        while plain in taken or plain in {"OBS_VALUE", *STATUSES, *about}:
            plain += "_"
        taken[plain] = name
    return taken


def _sdmx_row(names: Sequence[str], given: dict[str, str], line: int) -> tuple[int, list[str], str]:
    """One observation: its codes, its value, and statuses that say no more than whether it is published."""
    strange = sorted({*given} - {*names, "OBS_VALUE", *STATUSES})
    _require(not strange, f"observation {line} has {strange[:1]}, which is not part of a release")
    _require({*names} <= {*given}, f"observation {line} lacks a code")
    value = given.get("OBS_VALUE", "")
    for name, (withheld, shown) in STATUSES.items():
        _require(given.get(name) == (shown if value else withheld), f"observation {line}: {name} says more")
    return line, [*(given[name] for name in names), value], ""


def _sdmx_csv_rows(content: _Content, text: str) -> Rows:
    """SDMX-CSV 1.0 and 2.0: what leads each row is the same in all."""
    reader = csv.reader(io.StringIO(text))
    header = next(reader)
    _require(len(set(header)) == len(header), "it has two columns of one name")
    names, flows, rows = list(_sdmx_names(content)), set(), []
    for row in reader:
        _require(len(row) == len(header), f"line {reader.line_num} has more or fewer entries than the first line")
        given = dict(zip(header, row, strict=True))
        flow = given.pop("STRUCTURE_ID", "") or given.pop("DATAFLOW", "")
        flows.add(flow)
        _require(bool(FLOW.fullmatch(flow)) and len(flows) == 1, f"line {reader.line_num} is of another dataflow")
        for name, known in LEAD.items():
            _require(given.pop(name, known) == known, f"line {reader.line_num}: {name} says more")
        rows.append(_sdmx_row(names, given, reader.line_num))
    return iter(rows)


SDMX_HEADER = {
    "ID": "[0-9a-f-]{36}", "Test": "false", "Prepared": "[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z",
    "StructureUsage": f"(?:urn:sdmx:org.sdmx.infomodel.datastructure.Dataflow={FLOW.pattern})?",
}  # fmt: skip
SDMX_ABOUT = {
    "StructureSpecificData": "schemaLocation", "Header": "", "ID": "", "Test": "", "Prepared": "", "Sender": "id",
    "Structure": "structureID namespace dimensionAtObservation", "StructureUsage": "",
    "Ref": "agencyID id version class", "DataSet": "structureRef type dataScope action",
}  # fmt: skip
"""Elements of SDMX-ML 2.1 and 3.0 around the observations, and their attributes."""
SDMX_WORDS = re.compile(
    r"(?:http://www\.sdmx\.org/resources/sdmxml/schemas/v[23]_[01](?:/[a-z]+)+(?: "
    r"https://registry\.sdmx\.org/schemas/v[23]_[01]/SDMXMessage\.xsd)?|http://www\.w3\.org/2001/XMLSchema-instance|"
    rf"urn:sdmx:org\.sdmx\.infomodel\.datastructure\.Dataflow={FLOW.pattern}(?::ObsLevelDim:AllDimensions)?|"
    r"ZZZ|AllDimensions|ns1:DataSetType|Information|Dataflow|[A-Za-z][\w.@$-]*|[0-9]+(?:\.[0-9]+)*)"
)
"""All that these attributes and the names of namespaces say; identifiers are the office's."""


def _sdmx_ml_rows(content: _Content, data: bytes) -> Rows:
    """SDMX-ML: every element and attribute is known."""
    root = _parsed("it", data)
    names, version = list(_sdmx_names(content)), re.compile(r"[0-9]+(?:\.[0-9]+)*")
    rows: list[tuple[int, list[str], str]] = []
    declared = re.findall(r"""xmlns(?::\w+)?\s*=\s*["']([^"']*)["']""", _decode(data))
    known = all(uri.startswith(("http:", "urn:")) and SDMX_WORDS.fullmatch(uri) for uri in declared)
    _require(known, "its namespaces say more")
    for each in root.iter():
        tag, text = _tag(each), (each.text or "").strip()
        _require(not (each.tail or "").strip(), "it holds text between its elements")
        if tag == "Obs":
            _require(not text and not len(each), "an observation holds text")
            rows.append(_sdmx_row(names, dict(each.attrib), len(rows) + 1))
            continue
        _require(tag in SDMX_ABOUT, f"it holds a {tag!r}, which no release has")
        attributes = {name.rpartition("}")[2]: value for name, value in each.attrib.items()}
        _require({*attributes} <= set(SDMX_ABOUT[tag].split()), f"its {tag!r} says more")
        _require(all(SDMX_WORDS.fullmatch(value) for value in attributes.values()), f"its {tag!r} says more")
        numbers = [name for name, value in attributes.items() if version.fullmatch(value)]
        _require(set(numbers) <= {"version"}, f"its {tag!r} says more")
        _require(re.fullmatch(SDMX_HEADER.get(tag, ""), text) is not None, f"its {tag!r} says something")
    return iter(rows)


TEXTS = ((r"\{", _json_stat_rows), ("CHARSET=", _px_rows), ("(?:STRUCTURE|DATAFLOW),", _sdmx_csv_rows))
"""How files of text begin, and who reads them; all others are CSV."""


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
    key = None
    if "--key" in given[:-1]:
        at = given.index("--key")
        key = given[at + 1]
        del given[at : at + 2]
    if len(given) not in {1, 2} or given[0].startswith("-"):
        print("usage: python -m tablesafe.verify CERTIFICATE [PUBLISHED] [--key OFFICE.pub]")
        return 0 if given[:1] in (["-h"], ["--help"]) else 2
    try:
        found = verify(given[0], release=given[1] if len(given) == 2 else None, key=key)
    except (InvalidCertificate, MissingExtra) as error:
        print(error, file=sys.stderr)
        return 2
    print(found)
    return 0 if found.safe else 1


if __name__ == "__main__":
    sys.exit(main())
