"""Rules that weigh the contributors of a cell: p%, pq, dominance, and every other linear sensitivity measure.

All of them are one thing (Cox, "Linear sensitivity measures in statistical disclosure control", 1981): with the
contributors ordered by size, a cell is sensitive when `S = w1·x1 + … + wm·xm − rest > 0`. Scaled so that the weight of
the rest is −1, S is also the upper protection level: by so much would the rest have to be larger for the cell to be
safe. A cell with S = 0 is safe; S is decided exactly, for the parameters as they are written (33.3 is 333/10).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import lcm
from typing import Any, get_args

import numpy as np

from tablesafe.core.equations import Floats, Mask
from tablesafe.core.errors import InvalidOption, Setting
from tablesafe.core.options import exactly, is_number, require_choice, require_number, require_whole
from tablesafe.core.sensitivity import Sensitivity, reachable
from tablesafe.core.table import Table
from tablesafe.rules.contributions import NOISE, Contributions, Negative, SamplingWeights, contributions, shadowed


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """A linear sensitivity measure: weights for the largest contributors, and −1 for all the others."""

    weights: tuple[Fraction, ...]
    reason: str
    sampling_weights: SamplingWeights = "published"
    negative: Negative = "absolute"

    def __call__(self, table: Table, waived: Mask | None = None) -> Sensitivity:
        """Flag the cells whose measure is above zero; it is their protection level, on both sides.

        Where contributors were ranked by a shadow variable, the level is the same share of the value.
        """
        seen = shadowed(table)
        given = contributions(
            seen,
            len(self.weights),
            sampling_weights=self.sampling_weights,
            negative=self.negative,
            waived=waived,
        )
        excess = np.maximum(self.measure(given), 0.0)
        level = excess / given.scale if seen is table else given.share(excess) * np.abs(table.value)
        return Sensitivity.of(excess > 0, reachable(table, level), level, reason=self.reason)

    def measure(self, given: Contributions) -> Floats:
        """S of each cell, in units: exact in whole numbers where they fit, and in any case where it is near zero."""
        if given.whole and self._fits(given):
            return self._exact(given.largest, given.rest, np.int64)
        terms = given.largest * np.array([float(weight) for weight in self.weights])
        value: Floats = terms.sum(axis=1) - given.rest
        size = np.abs(terms).sum(axis=1) + given.rest
        if not given.whole:
            value[np.abs(value) <= NOISE * size] = 0.0
            return value
        near = np.flatnonzero((np.abs(value) <= 1e-9 * size) & (size > 0))
        value[near] = self._exact(given.largest[near], given.rest[near], object)
        return value

    def _fits(self, given: Contributions) -> bool:
        """Whether S in whole numbers stays below 2^62 in every cell."""
        common = lcm(*(weight.denominator for weight in self.weights))
        largest = float(given.largest.max(initial=0.0)) * sum(abs(float(weight)) for weight in self.weights)
        return common * (largest + float(given.rest.max(initial=0.0))) < 2.0**62

    def _exact(self, largest: Floats, rest: Floats, kind: type[Any]) -> Floats:
        """S in whole numbers: those of the processor, or Python's, which never overflow."""
        common = lcm(*(weight.denominator for weight in self.weights))
        weights = np.array([int(weight * common) for weight in self.weights], dtype=kind)
        amounts: Any = largest.astype(np.int64).astype(kind)
        others: Any = rest.astype(np.int64).astype(kind)
        return np.asarray((amounts @ weights - common * others) / common, dtype=np.float64)


_ABOUT_WEIGHTS = {
    "help": "what an attacker knows of sampling weights: published (it subtracts its weighted amount), "
    "unpublished (only what it reported), expanded (a weight of w stands for w contributors, as in τ-ARGUS)"
}
_ABOUT_NEGATIVE = {
    "help": "how to measure a cell with negative contributions: by the sum of absolute contributions, "
    "or by the absolute value of the cell"
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PPercent:
    """Flag cells in which one contributor can be estimated to within `p` percent by others.

    The best-placed attackers are the `coalition` next-largest contributors together: they subtract what they know from
    the published total, and only the remainder hides the largest. Sensitive when the remainder is less than p/100 of
    the largest; equal is safe. The upper level is what is missing: were the total that much larger, their estimate
    would be off by p percent (Handbook on Statistical Disclosure Control, ch. 4). A contributor is a holding where the
    table was made with holdings; places without a contributor count as zero.
    """

    p: float = field(
        default=10.0,
        metadata={
            "help": "closest estimate allowed, in percent of the largest contribution",
            "slider": (0.5, 100.0, 0.5),
        },
    )
    coalition: int = field(
        default=1,
        metadata={"help": "how many contributors may share what they know", "slider": (1, 10, 1)},
    )
    sampling_weights: SamplingWeights = field(default="published", metadata=_ABOUT_WEIGHTS)
    negative: Negative = field(default="absolute", metadata=_ABOUT_NEGATIVE)

    def __post_init__(self) -> None:
        require_number(self, "p", above=0, at_most=100)
        require_whole(self, "coalition", at_least=1)
        _require_views(self)

    @property
    def measure(self) -> Measure:
        """p/100 of the largest, nothing for the coalition, less the rest."""
        return Measure(
            weights=(exactly(self.p) / 100, *[Fraction(0)] * int(self.coalition)),
            reason="p%",
            sampling_weights=self.sampling_weights,
            negative=self.negative,
        )

    def __call__(self, table: Table) -> Sensitivity:
        """Flag the cells of a table."""
        return self.measure(table)


@dataclass(frozen=True, slots=True, kw_only=True)
class PQ:
    """Flag cells that let others improve their estimate of a contributor from within `q` to within `p` percent.

    Before publication everybody can estimate everybody to within q percent. The attackers subtract what they know and
    what they can estimate; the remainder, known to within q percent, hides the largest. Sensitive when q percent of
    the remainder is less than p percent of the largest; equal is safe. With q = 100 it is the p% rule.
    """

    p: float = field(
        default=10.0,
        metadata={"help": "closest estimate allowed after publication, in percent", "slider": (0.5, 99.0, 0.5)},
    )
    q: float = field(
        default=50.0,
        metadata={"help": "closest estimate possible before publication, in percent", "slider": (1.0, 100.0, 0.5)},
    )
    coalition: int = field(
        default=1,
        metadata={"help": "how many contributors may share what they know", "slider": (1, 10, 1)},
    )
    sampling_weights: SamplingWeights = field(default="published", metadata=_ABOUT_WEIGHTS)
    negative: Negative = field(default="absolute", metadata=_ABOUT_NEGATIVE)

    def __post_init__(self) -> None:
        require_number(self, "q", above=0, at_most=100)
        require_number(self, "p", above=0)
        if not self.p < self.q:
            raise InvalidOption(
                (
                    "PQ.p must be below PQ.q, got ",
                    Setting("p", self.p),
                    " and ",
                    Setting("q", self.q),
                    ".",
                ),
                hint="q is what anybody knows before publication, p what nobody may know after it.",
                about=("option", "PQ", "p"),
            )
        require_whole(self, "coalition", at_least=1)
        _require_views(self)

    @property
    def measure(self) -> Measure:
        """p/q of the largest, nothing for the coalition, less the rest."""
        return Measure(
            weights=(exactly(self.p) / exactly(self.q), *[Fraction(0)] * int(self.coalition)),
            reason="pq",
            sampling_weights=self.sampling_weights,
            negative=self.negative,
        )

    def __call__(self, table: Table) -> Sensitivity:
        """Flag the cells of a table."""
        return self.measure(table)


@dataclass(frozen=True, slots=True, kw_only=True)
class Dominance:
    """Flag cells of which the `n` largest contributors hold more than `k` percent: the (n,k) rule.

    Exactly k percent is safe. The upper level is what the total would have to grow by for their share to be k percent:
    100/k times their sum, less the total. Where negative contributions are measured by absolute values, the total is
    the sum of those.
    """

    n: int = field(default=2, metadata={"help": "how many of the largest contributors", "slider": (1, 10, 1)})
    k: float = field(
        default=85.0, metadata={"help": "largest share allowed to them, in percent", "slider": (1.0, 99.5, 0.5)}
    )
    sampling_weights: SamplingWeights = field(default="published", metadata=_ABOUT_WEIGHTS)
    negative: Negative = field(default="absolute", metadata=_ABOUT_NEGATIVE)

    def __post_init__(self) -> None:
        require_whole(self, "n", at_least=1)
        require_number(self, "k", above=0, below=100)
        _require_views(self)

    @property
    def measure(self) -> Measure:
        """100/k − 1 times each of the n largest, less the rest."""
        return Measure(
            weights=(100 / exactly(self.k) - 1,) * int(self.n),
            reason="dominance",
            sampling_weights=self.sampling_weights,
            negative=self.negative,
        )

    def __call__(self, table: Table) -> Sensitivity:
        """Flag the cells of a table."""
        return self.measure(table)


@dataclass(frozen=True, slots=True, kw_only=True)
class LinearSensitivity:
    """Flag cells whose linear sensitivity measure is above zero: `S = w1·x1 + w2·x2 + … + rest·(all others)`.

    The contributors are ordered from the largest down. The weight of the rest must be negative: the others are what
    hides the largest. The upper level is by how much the rest would have to be larger for S to be zero. Any scale
    will do: weights (1, 0) with rest −10 are the p% rule with p = 10.
    """

    weights: tuple[float, ...] = field(metadata={"help": "weights of the largest contributors, the largest first"})
    rest: float = field(default=-1.0, metadata={"help": "weight of all other contributors, below zero"})
    sampling_weights: SamplingWeights = field(default="published", metadata=_ABOUT_WEIGHTS)
    negative: Negative = field(default="absolute", metadata=_ABOUT_NEGATIVE)

    def __post_init__(self) -> None:
        if not isinstance(self.weights, Sequence) or not self.weights or not all(map(is_number, self.weights)):
            raise InvalidOption(
                f"LinearSensitivity.weights must be a list of numbers, got {self.weights!r}.",
                about=("option", "LinearSensitivity", "weights"),
            )
        object.__setattr__(self, "weights", tuple(self.weights))
        require_number(self, "rest", below=0)
        _require_views(self)

    @property
    def measure(self) -> Measure:
        """The same measure with a weight of −1 for the rest."""
        return Measure(
            weights=tuple(exactly(weight) / -exactly(self.rest) for weight in self.weights),
            reason="linear",
            sampling_weights=self.sampling_weights,
            negative=self.negative,
        )

    def __call__(self, table: Table) -> Sensitivity:
        """Flag the cells of a table."""
        return self.measure(table)


def _require_views(rule: object) -> None:
    require_choice(rule, "sampling_weights", get_args(SamplingWeights))
    require_choice(rule, "negative", get_args(Negative))
