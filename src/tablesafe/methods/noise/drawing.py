"""Random numbers that belong to somebody: drawn from a secret and a name, the same in every table.

A respondent that had another factor in another table, another filter or another month would be told by the mean of
them. Numbers that only hang on a seed and a place in the file could be drawn again by whoever knows the respondents:
without a seed of the office the amounts themselves are the secret.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
import polars as pl

from tablesafe.core.equations import Floats, Integers
from tablesafe.methods.microdata.records import Microdata

BYTES = 8
"""Bytes of a hash; a number takes the 53 bits of them that a float can hold."""


@dataclass(frozen=True, slots=True)
class Secret:
    """What numbers are drawn from."""

    word: str

    @classmethod
    def of(cls, seed: int | None, amounts: Sequence[Integers]) -> Secret:
        """The seed of the office, or else the amounts, whatever their order."""
        if seed is not None:
            return cls(f"seed {int(seed)}")
        digest = blake2b(digest_size=16)
        for amount in amounts:
            digest.update(np.sort(amount).astype("<i8").tobytes())
        return cls(f"amounts {digest.hexdigest()}")

    def generator(self) -> np.random.Generator:
        """A stream of numbers."""
        return np.random.default_rng(int.from_bytes(blake2b(self.word.encode(), digest_size=16).digest(), "big"))

    def numbers(self, names: pl.Series, purpose: str) -> Floats:
        """A number from 0 to below 1 for each name, another one for each purpose: a keyed hash, a microsecond each."""
        start = blake2b(f"{self.word}:{purpose}:".encode(), digest_size=BYTES)

        def hashed(name: str) -> int:
            own = start.copy()
            own.update(name.encode())
            return int.from_bytes(own.digest(), "big")

        drawn = np.fromiter(map(hashed, names.to_list()), dtype=np.uint64, count=len(names))
        return np.asarray((drawn >> np.uint64(11)) / 2.0**53)


@dataclass(frozen=True, slots=True)
class Parties:
    """Respondents or companies: their names in order, and the number of each record's."""

    names: pl.Series
    of_record: Integers

    @classmethod
    def of(cls, text: pl.Series) -> Parties:
        """The parties that a column of names makes."""
        names = text.unique().sort()
        return cls(names, text.cast(pl.Enum(names)).to_physical().to_numpy().astype(np.int64))

    def __len__(self) -> int:
        return len(self.names)


def respondents(microdata: Microdata, respondent: str | None, holding: str | None) -> tuple[Parties, Parties]:
    """Respondents and companies: a company is a holding, or a respondent without one.

    A record without a respondent, and each record where nobody tells respondents apart, is one of its own.
    """
    plan = None if microdata.origin is None else microdata.origin.plan
    respondent = respondent or (plan.respondent if plan else None)
    holding = holding or (plan.holding if plan else None)
    own = pl.select(pl.lit("record ") + pl.Series(microdata.rank).cast(pl.String)).to_series()
    if respondent is not None:
        own = _named("respondent ", microdata.text(microdata.column(respondent, "Noise.respondent")), own)
    if holding is None:
        both = Parties.of(own)
        return both, both
    held = _named("holding ", microdata.text(microdata.column(holding, "Noise.holding")), own)
    return Parties.of(own), Parties.of(held)


def _named(word: str, text: pl.Series, otherwise: pl.Series) -> pl.Series:
    return pl.select(pl.coalesce(pl.lit(word) + text, otherwise)).to_series()
