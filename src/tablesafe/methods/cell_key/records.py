"""Record keys as exact whole numbers: read from a column, or drawn from an identifier by a secret seed.

Keys in [0, 1) are taken to 18 decimals, as whole numbers of 10⁻¹⁸.
"""

from __future__ import annotations

import warnings

import duckdb
import numpy as np
import polars as pl

from tablesafe.core.equations import Floats, Integers
from tablesafe.core.errors import InvalidTable
from tablesafe.files.read import Source
from tablesafe.methods.counting import more

WHOLE = 10**18
"""The whole to which keys in [0, 1) refer."""
HASHED_BITS = 60
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
            f"{more(outside.size)}.\n\nHint: {hint}"
        )
    if len(numbers) >= FEWEST and bool((numbers == numbers[0]).all()):
        raise InvalidTable(
            f"All {len(numbers):,} record keys in column {column!r} are {numbers[0]:g}: such keys hide nothing.\n\n"
            f"Hint: record keys are random numbers, another one for every record."
        )
    if modulus is None:
        _warn_uneven(numbers, column)
        return whole_fraction(numbers)
    parts = np.flatnonzero(numbers != np.rint(numbers))
    if parts.size:
        raise InvalidTable(
            f"The record key at {records.where(int(parts[0]))} (column {column!r}) is no whole number"
            f"{more(parts.size)}.\n\nHint: leave the modulus out for keys in [0, 1)."
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
            f"{more(int(missing.sum()))}.\n\nHint: every record needs a key; draw them by a seed where there are none."
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
            f"{more(int(missing.sum()))}: no record key can be drawn from it.\n\n"
            f"Hint: fill it in, or name another column."
        )
    distinct = pl.DataFrame({"name": text.unique()})
    if distinct.height == 1 and len(text) >= FEWEST:
        raise InvalidTable(
            f"All {len(text):,} records have the same {column!r}, so they would get the same key: such keys hide "
            f"nothing.\n\nHint: name a column that identifies the records."
        )
    hashed = f"CAST('0x' || substr(sha256('{int(seed)}:' || name), 1, 15) AS UBIGINT)::HUGEINT"
    with duckdb.connect(":memory:") as database:
        database.register("distinct_names", distinct)
        keys = database.sql(
            f"SELECT name, CAST({hashed} * {WHOLE} // {2**HASHED_BITS} AS BIGINT) AS key FROM distinct_names"
        ).pl()
    joined = pl.DataFrame({"name": text}).join(keys, on="name", how="left", maintain_order="left")
    return joined["key"].to_numpy().astype(np.int64)
