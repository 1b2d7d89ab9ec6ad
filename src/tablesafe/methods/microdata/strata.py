"""Who is at risk, and how many are to be changed in each area: higher rates where few live, in whole numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from tablesafe.core.equations import Floats, Integers, Mask
from tablesafe.methods.microdata.areas import Areas
from tablesafe.methods.microdata.numbering import paired
from tablesafe.methods.microdata.options import Steps

CLOSE = 1e-9
"""Rates times units that are whole up to the noise of floating point are whole."""


@dataclass(frozen=True, eq=False)
class Targets:
    """How many units of each area are to be changed: floor or ceiling of rate × units, by chance."""

    units: Integers = field(repr=False)
    rate: Floats = field(repr=False)
    floor: Integers = field(repr=False)
    ceiling: Integers = field(repr=False)
    drawn: Integers = field(repr=False)

    @classmethod
    def of(cls, area: Integers, usable: Mask, rate: float, steps: Steps, random: np.random.Generator) -> Targets:
        """The targets of areas 0, 1, …, by their usable units."""
        units = np.bincount(area[usable], minlength=int(area.max(initial=-1)) + 1)
        rates = np.full(len(units), float(rate))
        for limit, higher in sorted(steps, reverse=True):
            rates[units < limit] = higher
        wanted = rates * units
        near = np.rint(wanted)
        wanted = np.where(np.abs(wanted - near) <= CLOSE * np.maximum(near, 1.0), near, wanted)
        floor = np.floor(wanted).astype(np.int64)
        up = random.random(len(units)) < wanted - floor
        return cls(units, rates, floor, np.ceil(wanted).astype(np.int64), floor + up)


def alike(key: Integers, areas: Areas) -> list[Integers]:
    """Per level and record: how many records of its area have its key, itself included."""
    out = []
    for area in areas.levels:
        pair = paired(area, key)
        out.append(np.bincount(pair)[pair])
    return out


def risky_level(counts: Sequence[Integers], k: int) -> tuple[Integers, Integers]:
    """The coarsest level at which fewer than `k` records are alike (the number of levels where none is), and how many.

    The count is that at the finest level: the fewer, the greater the risk.
    """
    levels = len(counts)
    level = np.full(len(counts[0]), levels, dtype=np.int64)
    for n in range(levels - 1, -1, -1):
        level[counts[n] < k] = n
    return level, counts[-1]
