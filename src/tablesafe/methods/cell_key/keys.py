"""Record keys as exact whole numbers: read from a column, or drawn from an identifier by a secret seed.

Keys in [0, 1) are taken to 18 decimals, as whole numbers of 10⁻¹⁸.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from tablesafe.core.equations import Floats, Integers, Mask, cell_keys
from tablesafe.core.errors import InvalidOption, InvalidTable, and_more
from tablesafe.core.linking import RESPONSE
from tablesafe.core.problem import Problem
from tablesafe.core.table import Table
from tablesafe.files.read import Source
from tablesafe.methods.counting import whole_counts
from tablesafe.tabulate.origin import Origin

WHOLE = 10**18
"""The whole to which keys in [0, 1) refer."""
HASHED_BITS = 60
"""Bits of a hash that a key is made of."""
FEWEST = 20
"""Of fewer keys nothing can be said about how they are spread."""
PARTS, UNEVEN = 10, 80.0
"""Chi-square of keys in ten equal parts: uniform ones exceed this less than once in 10¹² times."""


def read_record_keys(records: Source, column: str, modulus: int | None) -> Integers:
    """The keys that stand in a column of the records: in [0, 1), or whole numbers below the modulus."""
    numbers = _key_numbers(records, column)
    most = 1 if modulus is None else modulus
    outside = np.flatnonzero((numbers < 0) | (numbers >= most))
    if outside.size:
        hint = (
            "record keys are numbers from 0 to below 1; for whole numbers say which modulus they have (modulus=256)."
            if modulus is None
            else "check the modulus."
        )
        raise InvalidTable(
            f"The record key at {records.where(int(outside[0]))} (column {column!r}) is not in [0, {most:,})"
            f"{and_more(outside.size)}.",
            hint=hint,
        )
    if len(numbers) >= FEWEST and bool((numbers == numbers[0]).all()):
        raise InvalidTable(
            f"All {len(numbers):,} record keys in column {column!r} are {numbers[0]:g}: such keys hide nothing.",
            hint="record keys are random numbers, another one for every record.",
        )
    if modulus is None:
        _warn_uneven(numbers, column)
        return whole_fraction(numbers)
    parts = np.flatnonzero(numbers != np.rint(numbers))
    if parts.size:
        raise InvalidTable(
            f"The record key at {records.where(int(parts[0]))} (column {column!r}) is no whole number"
            f"{and_more(parts.size)}.",
            hint="leave the modulus out for keys in [0, 1).",
        )
    return numbers.astype(np.int64)


def _warn_uneven(numbers: Floats, column: str) -> None:
    """Say so when the keys are clearly not uniform: the noise would not have the mean and variance of its design."""
    distinct = np.unique(numbers)
    expected = len(distinct) / PARTS
    spread = (
        float(((np.bincount((distinct * PARTS).astype(np.intp), minlength=PARTS) - expected) ** 2).sum()) / expected
    )
    if len(distinct) >= FEWEST * PARTS and spread > UNEVEN:
        warnings.warn(
            f"The record keys in column {column!r} are not spread evenly over [0, 1): the noise will not have the mean "
            f"and the variance of its design.",
            stacklevel=2,
        )


def _key_numbers(records: Source, column: str) -> Floats:
    records.require(column)
    text = records.frame[column].cast(pl.String).str.strip_chars()
    missing = (text.is_null() | (text == "") | (text.str.to_lowercase() == "nan")).to_numpy()
    if missing.any():
        raise InvalidTable(
            f"The record key is missing at {records.where(int(missing.argmax()))} (column {column!r})"
            f"{and_more(int(missing.sum()))}.",
            hint="every record needs a key; draw them by a seed where there are none.",
        )
    return records.numbers(column)


def whole_fraction(numbers: Floats) -> Integers:
    """Numbers in [0, 1) as whole numbers of 10⁻¹⁸: exactly as written, up to 15 decimals; else as the float is."""
    short = np.rint(numbers * 1e15)
    written = short / 1e15 == numbers
    long = np.minimum(np.rint(numbers * 1e18), 1e18 - 1)
    return np.where(written & (short < 1e15), short.astype(np.int64) * 1000, long.astype(np.int64))


def drawn_record_keys(records: Source, column: str, seed: int) -> Integers:
    """Keys drawn from an identifier: SHA-256 of seed and identifier, so the same in every table and on every machine.

    The identifier and the seed together determine the key: whoever knows both knows the noise.
    """
    text = records.text(column)
    missing = (text.is_null() | (text == "")).to_numpy()
    if missing.any():
        raise InvalidTable(
            f"The identifier {column!r} is empty at {records.where(int(missing.argmax()))}"
            f"{and_more(int(missing.sum()))}: no record key can be drawn from it.",
            hint="fill it in, or name another column.",
        )
    distinct = pl.DataFrame({"name": text.unique()})
    if distinct.height == 1 and len(text) >= FEWEST:
        raise InvalidTable(
            f"All {len(text):,} records have the same {column!r}, so they would get the same key: such keys hide "
            f"nothing.",
            hint="name a column that identifies the records.",
        )
    hashed = f"CAST('0x' || substr(sha256('{int(seed)}:' || name), 1, 15) AS UBIGINT)::HUGEINT"
    import duckdb

    from tablesafe.tabulate.sources import Scanned, frame_of

    with duckdb.connect(":memory:") as database:
        database.register("distinct_names", Scanned(distinct))
        asked = f"SELECT name, CAST({hashed} * {WHOLE} // {2**HASHED_BITS} AS BIGINT) AS key FROM distinct_names"
        keys = frame_of(database, asked)
    joined = pl.DataFrame({"name": text}).join(keys, on="name", how="left", maintain_order="left")
    return joined["key"].to_numpy().astype(np.int64)


# Cell keys, in exact whole numbers.
#
# A record keeps its key in every table, and the key of a cell is the sum of the keys of its records, of which only the
# remainder counts: cells of the same records have the same key, wherever they stand. Keys are added up in limbs of six
# digits, so that sums over a billion records stay exact.


LIMB, LIMBS = 10**6, 3
"""Six digits a limb, three limbs a key: eighteen digits."""
MOST = LIMB**2
"""The largest modulus of whole keys."""


@dataclass(frozen=True, eq=False)
class CellKeys:
    """The key of each cell: a whole number from 0 to one less than `modulus`."""

    whole: Integers = field(repr=False)
    modulus: int

    @property
    def fraction(self) -> Floats:
        """The keys as numbers in [0, 1)."""
        return np.minimum(self.whole / float(self.modulus), np.nextafter(1.0, 0.0))

    def turned(self, digits: int) -> CellKeys:
        """The keys for a further draw of the same cells: the first of `digits` decimals becomes the last.

        Keys with another modulus than a power of ten are multiplied by a number that has no divisor in common with it.
        Either way every key stays as likely as it was.
        """
        if self.modulus == WHOLE:
            unit = WHOLE // 10**digits
            leading, rest = np.divmod(self.whole // unit, 10 ** (digits - 1))
            return CellKeys((rest * 10 + leading) * unit, WHOLE)
        return CellKeys(self.whole * _coprime(self.modulus) % self.modulus, self.modulus)


def _coprime(modulus: int) -> int:
    """A number near the golden section of the modulus that shares no divisor with it, and small enough to multiply."""
    found = int(min(modulus, 2**22) * 0.618) | 1
    while np.gcd(found, modulus) > 1:
        found += 1
    return found


def cell_keys_from_records(
    table: Table, key_of: Callable[[Source], Integers], *, modulus: int, include_zeros: bool
) -> CellKeys:
    """Add up the keys of each cell's records; of a response, those of the records that contribute to it."""
    origin = origin_of(table)
    assert origin is not None, "the caller checks"
    records = origin.records()
    source = _named(records, origin)
    keys = key_of(source)
    responses = origin.plan.responses
    columns: dict[str, Integers] = {}
    for r, response in enumerate(responses):
        counted = _contributes(source, response.value.terms, include_zeros)
        own = keys if counted is None else np.where(counted, keys, 0)
        columns |= {_limb(r, limb): own // LIMB**limb % LIMB for limb in range(LIMBS)}
    clash = set(columns) & set(records.columns)
    if clash:
        raise InvalidTable(f"The records have a column {sorted(clash)[0]!r}.", hint="rename it.")
    summed = origin.table(
        records.with_columns(**{name: pl.Series(column) for name, column in columns.items()}),
        value=None, equations=None, weight=None, respondent=None, holding=None, shadow=None, cost=None, request=None,
        largest=0, columns=list(columns),
    )  # fmt: skip
    at, response_of = _matched(table, summed, [response.name for response in responses])
    sums = [np.stack([_sums(summed, _limb(r, limb)) for r in range(len(responses))]) for limb in range(LIMBS)]
    limbs = [both[response_of, at] for both in sums]
    return CellKeys(_remainder(limbs, modulus), modulus)


def origin_of(table: Table) -> Origin | None:
    """How the table was tabulated here; None for a table that was read or linked."""
    return table.origin if isinstance(table.origin, Origin) else None


def _named(records: pl.DataFrame, origin: Origin) -> Source:
    """The records under the name of their file, so that an error can say where a key is wrong."""
    given = origin.source
    if not isinstance(given, str | Path):
        return Source(records, "the source")
    has_lines = Path(given).suffix.lower() in {".csv", ".txt", ".tsv"} and origin.plan.where is None
    return Source(records, Path(given).name, first_line=2 if has_lines else None)


def _limb(response: int, limb: int) -> str:
    return f"cell key {response}.{limb}"


def _sums(table: Table, name: str) -> Integers:
    return np.asarray(np.rint(table.columns[name]), dtype=np.int64)


def _remainder(limbs: Sequence[Integers], modulus: int) -> Integers:
    """The remainder of sums of limbs, without leaving 64 bits."""
    low, middle, high = limbs
    if modulus == WHOLE:
        return np.asarray(((high % LIMB) * LIMB**2 + (middle % LIMB**2) * LIMB + low) % WHOLE)
    return np.asarray(((middle % modulus) * LIMB + low) % modulus)


def _contributes(source: Source, terms: Sequence[tuple[str, int]], include_zeros: bool) -> Mask | None:
    """Which records contribute to a response; None for all of them."""
    if not terms or include_zeros:
        return None
    return np.asarray(np.sum([sign * source.numbers(column) for column, sign in terms], axis=0) != 0)


def _matched(table: Table, summed: Table, responses: Sequence[str]) -> tuple[Integers, Integers]:
    """The cell of the summed keys for each cell of the table, and its response."""
    names = [name for name in table.dimensions if name != RESPONSE or name in summed.dimensions]
    if names != list(summed.dimensions):
        raise InvalidTable("The table no longer has the dimensions of its records, so no cell keys can be found.")
    codes = np.empty((len(table), len(names)), dtype=np.int64)
    for d, name in enumerate(names):
        theirs = {code: i for i, code in enumerate(summed.dimensions[name].codes)}
        place = np.array([theirs.get(code, -1) for code in table.dimensions[name].codes], dtype=np.int64)
        codes[:, d] = place[table.codes[:, list(table.dimensions).index(name)]]
    sizes = [len(summed.dimensions[name]) for name in names]
    theirs_key = cell_keys(summed.codes, sizes)
    order = np.argsort(theirs_key)
    ours = cell_keys(np.maximum(codes, 0).astype(np.int32), sizes)
    place = order[np.minimum(np.searchsorted(theirs_key[order], ours), len(order) - 1)]
    lost = np.flatnonzero((theirs_key[place] != ours) | (codes < 0).any(axis=1))
    if lost.size:
        raise InvalidTable(
            f"Cell {table.describe(int(lost[0]))} has no records, so it has no cell key{and_more(lost.size)}.",
            hint="was the table changed after it was tabulated?",
        )
    if len(responses) < 2 or RESPONSE not in table.dimensions:
        return place, np.zeros(len(table), dtype=np.int64)
    number = {name: r for r, name in enumerate(responses)}
    of_code = np.array([number[code] for code in table.dimensions[RESPONSE].codes], dtype=np.int64)
    return place, of_code[table.codes[:, list(table.dimensions).index(RESPONSE)]]


def given_cell_keys(table: Table, given: Any, modulus: int | None, name: str) -> CellKeys:
    """Cell keys as given for cells: sums of record keys, of which the remainder counts."""
    keys = np.asarray(given, dtype=np.float64)
    if keys.shape != (len(table),):
        raise InvalidOption(f"There are {keys.size:,} cell keys, but the table has {len(table):,} cells.")
    bad = np.flatnonzero(~np.isfinite(keys) | (keys < 0) | (keys >= 2.0**53))
    if bad.size:
        raise InvalidTable(
            f"The cell key of {table.describe(int(bad[0]))} ({name}) is missing, negative or too large"
            f"{and_more(bad.size)}.",
            hint="a cell key is the sum of the keys of the cell's records.",
        )
    if modulus is None:
        found = CellKeys(whole_fraction(_fractional(keys)), WHOLE)
    else:
        parts = np.flatnonzero(keys != np.rint(keys))
        if parts.size:
            raise InvalidTable(
                f"The cell key of {table.describe(int(parts[0]))} ({name}) is no whole number{and_more(parts.size)}.",
                hint="leave the modulus out for keys in [0, 1).",
            )
        found = CellKeys(keys.astype(np.int64) % modulus, modulus)
    _refuse_blanks(table, found, name)
    return found


def _fractional(keys: Floats) -> Floats:
    """What stands behind the decimal point, to as many decimals as a float of that size holds."""
    before = np.floor(np.log10(np.maximum(keys, 0.1))) + 1
    scale = 10.0 ** (15 - before)
    part = np.rint((keys - np.floor(keys)) * scale) / scale
    return np.where(part >= 1.0, 0.0, part)


def _refuse_blanks(table: Table, keys: CellKeys, name: str) -> None:
    """A cell with a value and the key 0 had none: by chance that is rare, and empty entries are read as 0."""
    filled = table.integers != 0
    blank = np.flatnonzero(filled & (keys.whole == 0))
    steps = keys.modulus // int(np.gcd.reduce(np.append(keys.whole[filled], keys.modulus)))
    if blank.size > 10 * int(filled.sum()) / max(steps, 1):
        raise InvalidTable(
            f"Cell {table.describe(int(blank[0]))} has no cell key ({name} is empty or 0){and_more(blank.size)}.",
            hint="every cell with records needs the sum of their keys.",
        )


# What the cell key method takes for counts and for magnitudes, and what it refuses.


def counts_of(problem: Problem, maximum_change: float) -> Integers:
    """The counts of a problem; refuses negative numbers, fractions and weights, and warns of magnitudes."""
    magnitudes = "for magnitudes, set the options of magnitude (ts.Magnitude)."
    value = whole_counts(
        problem.table,
        "The cell key method",
        if_negative=magnitudes,
        if_fraction=f"take the unweighted counts; {magnitudes}",
    )
    _refuse_weights(problem)
    _warn_of_magnitudes(problem, maximum_change)
    return value


def refuse_counts(problem: Problem) -> None:
    """Noise in proportion to contributions hides nothing where everybody knows that each of them is 1."""
    table = problem.table
    if table.count is not None and table.decimals == 0 and bool((table.count == table.integers).all()):
        raise InvalidTable(
            "The table counts its contributors, so noise in proportion to the largest contributions is too small to "
            "hide them.",
            hint="leave out magnitude: the cell key method for counts is made for them.",
        )


def _refuse_weights(problem: Problem) -> None:
    origin = origin_of(problem.table)
    if origin is not None and origin.plan.weight is not None:
        raise InvalidTable(
            f"The cell key method changes counts of records, but these are weighted by {origin.plan.weight!r}.",
            hint="tabulate without the weight.",
        )


def _warn_of_magnitudes(problem: Problem, maximum_change: float) -> None:
    """Say so when what looks like counts is made of contributions that such noise cannot hide."""
    kept, origin = problem.table.contributors, origin_of(problem.table)
    counts_records = origin is not None and not origin.plan.listed
    if kept is not None and not counts_records and float(np.abs(kept.amount).max(initial=0.0)) > maximum_change:
        warnings.warn(
            f"{problem.table.response!r} is perturbed as a count, but single contributions are larger than the maximum "
            f"change of {maximum_change:g}: such noise does not hide them. For magnitudes there is ts.Magnitude.",
            stacklevel=5,
        )
