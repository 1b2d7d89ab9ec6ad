"""Numbers as text, for every format that holds them as text."""

from __future__ import annotations

import numpy as np
import polars as pl

from tablesafe.core.equations import Floats

LARGEST_WHOLE = 2.0**62


def as_text(values: Floats) -> pl.Series:
    """Whole numbers without a decimal point, all others as short as reads back to the same float."""
    number = np.asarray(values, dtype=np.float64)
    whole = (number == np.floor(number)) & (np.abs(number) < LARGEST_WHOLE)
    integers = pl.Series(np.where(whole, number, 0.0).astype(np.int64)).cast(pl.String)
    return integers.zip_with(pl.Series(whole), pl.Series(number).cast(pl.String))


def with_decimals(values: Floats, decimals: int, *, comma: bool = False) -> pl.Series:
    """A fixed number of decimals, as other programs like them."""
    scaled = np.rint(np.asarray(values, dtype=np.float64) * 10.0**decimals)
    if decimals <= 0 or not bool((np.abs(scaled) < LARGEST_WHOLE).all()):
        return as_text(np.asarray(values, dtype=np.float64))
    digits = pl.Series("digits", np.abs(scaled).astype(np.int64)).cast(pl.String).str.zfill(decimals + 1)
    sign = pl.Series("sign", np.where(scaled < 0, "-", ""), dtype=pl.String)
    point = "," if comma else "."
    pieces = [pl.col("sign"), pl.col("digits").str.head(-decimals), pl.lit(point), pl.col("digits").str.tail(decimals)]
    return pl.DataFrame([sign, digits]).select(pl.concat_str(pieces)).to_series()
