"""The certificate: witness tables that prove what the audit found, for anyone to recheck with addition only.

`tablesafe.verify` reads it and shares no code with this file. The format is described there and in `document`.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tablesafe.audit.exact import ExactLimits, ExactMove, exact_in_units, times
from tablesafe.audit.proofs import Group
from tablesafe.audit.signing import signature
from tablesafe.audit.system import System
from tablesafe.core.equations import Floats
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release, Status
from tablesafe.files.write import whole_file

FORMAT, VERSION = "tablesafe certificate", 1
NOTICE = (
    "CONFIDENTIAL. An internal document of the office: it holds the true values of withheld cells and the protection "
    "levels. It proves that a release is safe; never publish it, and never keep it beside the release."
)
SEPARATOR = "\x1f"
PACKED = 3
"""How hard a certificate is compressed: at 6 one of 24,000 cells takes three times as long, and is a tenth smaller."""
SIGNED = b"tablesafe certificate signature 1\n"
"""What a signed text begins with, so that no other signature of the same key can pass for one."""


@dataclass(frozen=True, eq=False)
class Certificate:
    """What proves the findings of one audit: confidential, and saved only where the user says."""

    problem: Problem = field(repr=False)
    release: Release = field(repr=False)
    system: System = field(repr=False)
    groups: tuple[Group, ...] = field(repr=False)
    open: NDArray[np.intp] = field(repr=False)
    """Sensitive cells without a proof."""
    others: tuple[str, ...] = ()
    """What the audit found beyond its own proofs: cells open to insiders, sums that fail a rule."""
    attackers: tuple[str, ...] = ()
    """The verdict line by line: whom the audit looked at, and how far."""
    whole: bool = False
    """Whether the attacker knows that values are whole numbers of the unit, so that all witnesses are."""
    published: Release | None = field(default=None, repr=False)
    """The release as it is published, where the audit took other bounds for it."""

    @property
    def witnesses(self) -> int:
        """How many witness tables it holds."""
        return sum(len(group.moves) for group in self.groups)

    def document(self) -> dict[str, Any]:
        """The certificate as plain data, with the hash of it all."""
        content = self._content()
        return {**content, "sha256": _sha256(_joined(_texts(content)))}

    def _content(self) -> dict[str, Any]:
        """All that it says, all numbers whole or fractions "p/q" of `10**-decimals`.

        Cells are numbered as in the table. An equation lists its total, then its parts; −1 − cell is a part that is
        subtracted. Witnesses come in chains: each lists the cells that changed since the one before it (the first:
        since the truth), and their values as whole numbers over the chain's denominator. Witness 0 is the truth, the
        others are numbered through all chains. A proof names a cell and the witnesses that show it low and high enough.
        """
        table, system = self.problem.table, self.system
        lower, upper = exact_bounds(self.problem, self.release, system)
        shown = published_units(self.release)
        pinned = self._pinned(shown)
        fixed = table.integers[pinned].tolist()
        unknown = [*system.cells.tolist(), *pinned]
        chains, proofs = self._chains()
        sensitive = self.problem.sensitive
        levels = self.problem.sensitivity
        return {
            "format": FORMAT,
            "version": VERSION,
            "notice": NOTICE,
            "method": self.release.method,
            "release": release_hash(self.release),
            "response": self.release.heading,
            "decimals": table.decimals,
            "whole": self.whole,
            **_codes(self.release),
            "captions": _captions(self.release),
            "published": shown,
            "absent": np.flatnonzero(self.release.status == Status.BY_DESIGN).tolist(),
            "changed": [cell for cell in unknown if shown[cell] is not None],
            "unknown": {
                "cells": unknown,
                "truth": [*system.truth.tolist(), *fixed],
                "lower": [*_numbers(lower), *fixed],
                "upper": [*_numbers(upper), *fixed],
            },
            "announced": self._announced(unknown),
            "equations": _equations(system),
            "sensitive": {
                "cells": sensitive.tolist(),
                **{
                    name: _numbers(exact_in_units(level[sensitive], table.decimals))
                    for name, level in (("lower", levels.lower), ("upper", levels.upper), ("sliding", levels.sliding))
                },
            },
            "open": self.open.tolist(),
            "others": list(self.others),
            "attackers": list(self.attackers),
            "proofs": proofs,
            "chains": chains,
        }

    def _announced(self, unknown: list[int]) -> dict[str, list[Any]]:
        """The intervals of unknown cells that the release may tell its readers, as it writes them."""
        release = self.release if self.published is None else self.published
        cells = np.array(unknown, dtype=np.intp)
        if release.private_bounds and release.intervals is None:
            cells = cells[:0]
        else:
            cells = cells[release.announced(intervals=True)[cells]]
        ends = release.announced_bounds(intervals=True) if len(cells) else (np.zeros(0), np.zeros(0))
        low, high = (_exact_ends(end[cells], release.table.decimals) for end in ends)
        return {"cells": cells.tolist(), "from": low, "to": high}

    def _pinned(self, shown: list[int | str | None]) -> list[int]:
        """Cells that the attacker knows although the release does not show their value: the bounds leave no room."""
        table = self.problem.table
        known = np.ones(len(table), dtype=np.bool_)
        known[self.system.cells] = False
        return [cell for cell in np.flatnonzero(known).tolist() if shown[cell] != int(table.integers[cell])]

    def _chains(self) -> tuple[list[dict[str, Any]], list[list[int]]]:
        """The witnesses, those of a group with equal denominators in a row, and the proofs that name them."""
        chains: list[dict[str, Any]] = []
        proofs: list[list[int]] = []
        told = 1  # the truth is witness 0
        for group in self.groups:
            number = np.zeros(len(group.moves) + 1, dtype=np.int64)
            for over in sorted({move.denominator for move in group.moves}):
                chain = [at for at, move in enumerate(group.moves) if move.denominator == over]
                number[np.array(chain) + 1] = np.arange(len(chain)) + told
                told += len(chain)
                chains.append({"over": over, "witnesses": self._witnesses([group.moves[at] for at in chain])})
            proofs += np.column_stack([self.system.cells[group.at], number[group.low], number[group.high]]).tolist()
        return chains, proofs

    def _witnesses(self, moves: list[ExactMove]) -> list[dict[str, list[int]]]:
        witnesses, before = [], ExactMove(np.zeros(0, np.intp), np.zeros(0, np.int64))
        for move in moves:
            cells = np.union1d(before.cells, move.cells)
            new = move.at(cells)
            differ = np.asarray(before.at(cells) != new, np.bool_)
            at = cells[differ]
            values = times(self.system.truth[at], move.denominator) + new[differ]
            witnesses.append({"cells": self.system.cells[at].tolist(), "values": values.tolist()})
            before = move
        return witnesses

    def save(self, path: str | Path, *, key: str | Path | None = None) -> None:
        """Write the certificate, whole or not at all; a name that ends in .gz is compressed.

        It holds true values: keep it in a folder of its own, away from the release. `key` is a file with a private key
        that `tablesafe key` made: it signs all that the certificate says.
        """
        texts = _texts(self._content())
        said = _joined(texts)
        own = {"sha256": _text(_sha256(said))}
        if key is not None:
            own["signature"] = _text(signature(key, SIGNED + said.encode("utf-8", "surrogatepass")))
        chains = texts.pop("chains")
        lines = [f"{_text(name)}: {text}" for name, text in {**texts, **own}.items() if isinstance(text, str)]
        each = ",\n".join(chains)
        data = ("{" + ",\n".join([*lines, f'"chains": [\n{each}\n]']) + "}\n").encode("utf-8", "surrogatepass")
        with whole_file(path) as temporary:
            temporary.write_bytes(gzip.compress(data, PACKED, mtime=0) if Path(path).suffix == ".gz" else data)


def exact_bounds(problem: Problem, release: Release, system: System) -> tuple[NDArray[Any], NDArray[Any]]:
    """The bounds on the unknown cells in units: floats where all are whole or infinite, otherwise exact fractions."""
    cells, decimals = system.cells, problem.table.decimals
    lower = _exact_side(system.lower, np.maximum(release.lower, problem.lower)[cells], decimals)
    upper = _exact_side(system.upper, np.minimum(release.upper, problem.upper)[cells], decimals)
    return lower, upper


def exact_limits(problem: Problem, release: Release, system: System) -> ExactLimits:
    """How far each unknown cell may move from the truth, exactly."""
    return ExactLimits.of(*exact_bounds(problem, release, system), system.truth)


def _exact_side(units: Floats, given: Floats, decimals: int) -> NDArray[Any]:
    with np.errstate(invalid="ignore"):
        broken = np.flatnonzero(np.isfinite(units) & (units != np.rint(units)))
    if not broken.size:
        return units
    out = np.empty(len(units), dtype=object)
    finite = np.isfinite(units)
    out[~finite] = units[~finite]
    out[finite] = [int(bound) for bound in np.rint(units[finite]).tolist()]
    out[broken] = exact_in_units(given[broken], decimals)
    return out


def published_units(release: Release) -> list[int | str | None]:
    """What the release shows of each cell, in units; None where it shows nothing."""
    numbers: list[int | str | None] = [None] * len(release.values)
    shown = np.flatnonzero(~release.suppressed)
    for cell, number in zip(shown.tolist(), _shown_units(release, shown), strict=True):
        numbers[cell] = number
    return numbers


def _shown_units(release: Release, shown: NDArray[np.intp]) -> list[int | str]:
    decimals, values = release.table.decimals, release.values[shown]
    units = np.rint(values * 10.0**decimals)
    whole = (units / 10.0**decimals == values) & (np.abs(units) < 2**53)
    out: list[int | str] = units.astype(np.int64).tolist()
    odd = np.flatnonzero(~whole)
    for at, number in zip(odd.tolist(), exact_in_units(values[odd], decimals).tolist(), strict=True):
        out[at] = _number(number)
    return out


def release_hash(release: Release) -> str:
    """SHA-256 over the codes and values that the release shows, independent of the order of its rows."""
    keep = release.status != Status.BY_DESIGN
    texts = pl.Series("value", [None if v is None else str(v) for v in published_units(release)], dtype=pl.String)
    columns = [series.rename(f"d{i}") for i, series in enumerate(release.table.code_columns().values())]
    lines = (
        pl.DataFrame([*columns, texts.fill_null("")])
        .filter(pl.Series(keep))
        .select(pl.concat_str(pl.all(), separator=SEPARATOR))
        .to_series()
        .sort()
        .to_list()
    )
    header = [*release.table.code_columns(), release.heading, str(release.table.decimals)]
    return _sha256("\n".join([SEPARATOR.join(header), *lines]))


def _exact_ends(ends: Floats, decimals: int) -> list[int | str | None]:
    """Ends of intervals in units; None for an end that is infinite."""
    finite = np.isfinite(ends)
    numbers: list[int | str | None] = [None] * len(ends)
    for at, number in zip(
        np.flatnonzero(finite).tolist(), exact_in_units(ends[finite], decimals).tolist(), strict=True
    ):
        numbers[at] = _number(number)
    return numbers


def _captions(release: Release) -> dict[str, dict[str, str]]:
    """The labels that the release may write beside its codes, by dimension."""
    trees = release.table.dimensions if release.table.names is None else {}
    return {
        name: {code: str(tree.labels[code]) for code in tree.codes if code in tree.labels}
        for name, tree in trees.items()
        if tree.labels
    }


def _codes(release: Release) -> dict[str, Any]:
    table = release.table
    if table.names is not None:
        labels = [[str(name) for name in table.names]]
        return {"dimensions": ["cell"], "labels": labels, "codes": [list(range(len(table)))]}
    return {
        "dimensions": list(table.dimensions),
        "labels": [list(hierarchy.codes) for hierarchy in table.dimensions.values()],
        "codes": table.codes.T.tolist(),
    }


def _equations(system: System) -> list[list[int]]:
    """The equations in which an unknown cell stands, each as its total and its signed parts."""
    table = system.table
    matrix = table.equations[system.rows].copy()
    matrix.eliminate_zeros()
    row = np.repeat(np.arange(len(system.rows)), np.diff(matrix.indptr))
    is_total = matrix.indices == table.totals[system.rows][row]
    order = np.lexsort((~is_total, row))
    cells, signs = matrix.indices[order].astype(np.int64), matrix.data[order]
    leads = matrix.indptr[:-1]
    signs = signs * -signs[leads][row]  # the total stands on the other side, whatever sign it was given
    encoded = np.where(signs > 0, cells, -1 - cells)
    encoded[leads] = cells[leads]
    flat, starts = encoded.tolist(), matrix.indptr.tolist()
    return [flat[start:stop] for start, stop in pairwise(starts)]


def _numbers(values: NDArray[Any]) -> list[int | str | None]:
    if values.dtype == object:
        return [_number_or_none(value) for value in values.tolist()]
    numbers: list[int | str | None] = [None] * len(values)
    finite = np.isfinite(values)
    whole = finite & (values == np.rint(values)) & (np.abs(values) < 2**53)
    for cell, number in zip(np.flatnonzero(whole).tolist(), values[whole].astype(np.int64).tolist(), strict=True):
        numbers[cell] = number
    for cell in np.flatnonzero(finite & ~whole).tolist():
        numbers[cell] = _number(float(values[cell]))
    return numbers


def _number_or_none(value: int | float | Fraction) -> int | str | None:
    """A number; None for one without end."""
    return None if isinstance(value, float) and math.isinf(value) else _number(value)


def _number(value: int | float | Fraction) -> int | str:
    """A whole number as such, a fraction as "p/q"."""
    if isinstance(value, int):
        return value
    exact = Fraction(value)
    return exact.numerator if exact.denominator == 1 else f"{exact.numerator}/{exact.denominator}"


def _text(value: Any) -> str:
    return _encoder.encode(value)


def _texts(content: Mapping[str, Any]) -> dict[str, str | list[str]]:
    """Each entry as JSON, once, for its hash and for its file; of the chains, which are nearly all of it, each one."""
    texts: dict[str, str | list[str]] = {name: _text(value) for name, value in content.items() if name != "chains"}
    return {**texts, "chains": [_text(chain) for chain in content["chains"]]}


def _joined(texts: Mapping[str, str | list[str]]) -> str:
    """The JSON of the whole, with its keys in order and no space: what is hashed, and signed."""
    whole = {name: text if isinstance(text, str) else "[" + ",".join(text) + "]" for name, text in texts.items()}
    return "{" + ",".join(f"{_text(name)}:{whole[name]}" for name in sorted(whole)) + "}"


_encoder = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", errors="surrogatepass")).hexdigest()
