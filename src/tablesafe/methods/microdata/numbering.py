"""Numbers for groups of records, and records in the order of such numbers: fast where the numbers are small."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tablesafe.core.equations import Integers

ROOMY = 4
"""Numbers up to so many times as many as there are entries are counted instead of sorted."""


def dense(keys: Integers) -> Integers:
    """The same groups with the numbers 0, 1, … in the order of the keys, which are 0 or more."""
    top = int(keys.max(initial=-1)) + 1
    if top > ROOMY * len(keys) + 2**16:
        return np.unique(keys, return_inverse=True)[1].astype(np.int64)
    there = np.zeros(top, dtype=np.bool_)
    there[keys] = True
    return np.asarray((np.cumsum(there) - 1)[keys], dtype=np.int64)


def paired(one: Integers, other: Integers) -> Integers:
    """A number per combination of two numbers."""
    return dense(one * (int(other.max(initial=0)) + 1) + other)


def in_order(keys: Integers) -> NDArray[np.intp]:
    """The places of the keys, which are 0 or more, from the smallest up; equals stay in their order."""
    small = int(keys.max(initial=0)) < 2**16
    return np.argsort(keys.astype(np.uint16) if small else keys, kind="stable")  # numbers of 16 bits are not compared


def shuffled(random: np.random.Generator, keys: Integers) -> NDArray[np.intp]:
    """The places of the keys, which are 0 or more, from the smallest up; equals in random order."""
    mixed = random.permutation(len(keys))
    return np.asarray(mixed[in_order(keys[mixed])])


def rank_within(groups: Integers) -> Integers:
    """The place of each entry within its group: 0 for the first."""
    order = in_order(groups)
    ordered = groups[order]
    first = np.searchsorted(ordered, ordered)
    out = np.empty(len(groups), dtype=np.int64)
    out[order] = np.arange(len(groups)) - first
    return out
