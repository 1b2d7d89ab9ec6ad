"""Random numbers that belong to somebody: drawn from a secret and a name, the same in every table.

A respondent that had another factor in another table, another filter or another month would be told by the mean of
them. Numbers that only hang on a seed and a place in the file could be drawn again by whoever knows the respondents:
without a seed of the office the amounts themselves are the secret.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Literal

import numpy as np
import polars as pl
from scipy.special import ndtr, ndtri

from tablesafe.core.equations import Floats, Integers
from tablesafe.methods.records.behind import Microdata
from tablesafe.work.compiled import compiled

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


# Factors around 1 that keep away from 1: a size between two limits, and a direction.
#
# Evans, Zayatz & Slanta, "Using noise for disclosure limitation of establishment tabular data" (1998): every
# establishment of a company goes the same way, so that noise does not cancel where one company dominates; as often up
# as down, so that it cancels where there are many.


Shape = Literal["uniform", "triangular", "normal"]
SHAPES: tuple[Shape, ...] = ("uniform", "triangular", "normal")


def draw_sizes(chance: Floats, least: float, most: float, shape: Shape) -> Floats:
    """How far from 1 each factor lies, from numbers drawn between 0 and 1.

    Triangular sizes are most likely near `least`, normal ones near the middle of the range (with a quarter of its
    width as standard deviation, cut at its ends).
    """
    width = most - least
    if shape == "triangular":
        sizes = most - width * np.sqrt(1 - chance)
    elif shape == "normal":
        low, high = ndtr(-2.0), ndtr(2.0)
        sizes = (least + most) / 2 + width / 4 * ndtri(low + chance * (high - low))
    else:
        sizes = least + width * chance
    return np.asarray(np.clip(sizes, least, most))


def draw_directions(chance: Floats) -> Floats:
    """Up or down, each as likely."""
    return np.where(chance < 0.5, 1.0, -1.0)


def balanced(company: Integers, cell: Integers, amount: Floats, first: Floats) -> Floats:
    """Directions that offset each other within cells; `first` says where a company goes that has nothing to offset.

    Entries say by how much a company would move a cell. The companies that move most come first, and each goes the way
    that makes up for what those before it did to its cells: the alternating directions of Massell & Funk ("Recent
    developments in the use of noise for protecting magnitude data tables", 2007), for companies in several cells too.
    As `first` is as likely up as down, so is every direction: a company's expected factor remains 1.
    """
    n = len(first)
    order = np.argsort(company, kind="stable")
    start = np.searchsorted(company[order], np.arange(n + 1))
    moved = np.bincount(company, np.abs(amount), n)
    largest = np.argsort(-moved, kind="stable")
    cells = int(cell.max(initial=-1)) + 1
    return np.asarray(_offset(largest, start, cell[order], amount[order], first, np.zeros(cells)))


@compiled
def _offset(turn: Any, start: Any, cell: Any, amount: Any, first: Any, so_far: Any) -> Any:
    """One company after the other takes the way that makes the sum of squares smaller."""
    direction = first.copy()
    for company in turn:
        pull = 0.0
        for entry in range(start[company], start[company + 1]):
            pull += so_far[cell[entry]] * amount[entry]
        if pull > 0:
            direction[company] = -1.0
        elif pull < 0:
            direction[company] = 1.0
        for entry in range(start[company], start[company + 1]):
            so_far[cell[entry]] += direction[company] * amount[entry]
    return direction
