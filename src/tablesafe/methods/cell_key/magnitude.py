"""Cell keys for magnitudes: noise in proportion to the largest contributions of a cell.

The noise of a cell is that of a few contributions: each draws a change from the perturbation table, in units of its own
size times a share that falls from small to large contributions (the flex function). Enderle, Giessing & Tent (2020),
Calculation of Risk Probabilities for the Cell Key Method; SGA "Open source tools for perturbative confidentiality
methods", deliverable 4.2; as in the R package cellKey and in τ-ARGUS.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from tablesafe.core.equations import Floats, Mask
from tablesafe.core.errors import InvalidOption, InvalidTable, Setting
from tablesafe.core.options import is_number, require_choice, require_number, require_whole
from tablesafe.core.table import Table
from tablesafe.methods.cell_key.keys import CellKeys
from tablesafe.methods.cell_key.table import PerturbationTable

MOST_TOP = 6
"""Largest contributions that may get noise of their own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Magnitude:
    """Noise for magnitudes instead of counts, in proportion to the largest contributions of each cell.

    A contribution below `flex_point` gets noise of `small` times its size per unit of the perturbation table; above it
    the share falls towards `large`. Without a flex point the share is `small` throughout. The j-th largest contribution
    counts with the j-th of the `weights`. Zeros stay zero, and no positive value becomes negative.
    """

    by: Literal["largest", "mean", "value"] = field(
        default="largest",
        metadata={"help": "what the noise is in proportion to: the largest contributions, the mean one, or the value"},
    )
    top: int = field(default=1, metadata={"help": "how many of the largest contributions each add noise, 1 to 6"})
    small: float = field(
        default=0.2, metadata={"help": "share of a small contribution that one unit of the perturbation table is"}
    )
    large: float = field(default=0.03, metadata={"help": "the share that large contributions come near to"})
    flex_point: float | None = field(
        default=None, metadata={"help": "size from which on the share falls from small to large", "example": 1000.0}
    )
    exponent: float = field(default=3.0, metadata={"help": "how fast the share falls, 1 or more"})
    weights: tuple[float, ...] = field(
        default=(),
        metadata={
            "help": "weight of each of the largest contributions, from 1 down; all 1 when not given",
            "example": (1.0, 0.5, 0.2),
        },
    )
    separation: bool = field(
        default=False, metadata={"help": "treat values too small to scale like counts, by a table of their own"}
    )
    small_cells: str | PerturbationTable | None = field(
        default=None,
        metadata={
            "help": "file with the perturbation table of such values; designed like one of counts when not given",
            "example": "ptab_small.txt",
            "file": True,
        },
    )
    odd: str | PerturbationTable | None = field(
        default=None,
        metadata={
            "help": "file with the perturbation table of cells with an odd number of contributors; the other table is "
            "then that of even ones; top must be 1",
            "example": "ptab_odd.txt",
            "file": True,
        },
    )
    extra: float = field(
        default=0.0, metadata={"help": "further units added to the first change of sensitive cells, whatever its sign"}
    )
    include_zeros: bool = field(
        default=False, metadata={"help": "add up the keys also of records whose own value is zero"}
    )
    turn_first: bool = field(
        default=False,
        metadata={"help": "turn the digits of the cell key before the first draw too, so that counts show other noise"},
    )
    digits: int = field(
        default=18, metadata={"help": "decimals of the record keys that are turned for a further draw, 1 to 18"}
    )

    def __post_init__(self) -> None:
        require_choice(self, "by", ("largest", "mean", "value"))
        require_whole(self, "top", at_least=1)
        require_whole(self, "digits", at_least=1)
        if self.top > MOST_TOP or (self.top > 1 and self.by != "largest"):
            raise InvalidOption(
                f"Magnitude.top must be 1 to {MOST_TOP}, and 1 unless by is 'largest', got {self.top}.",
                about=("option", "Magnitude", "top"),
            )
        if self.digits > 18:
            raise InvalidOption(
                f"Magnitude.digits must be 1 to 18, got {self.digits}.", about=("option", "Magnitude", "digits")
            )
        require_number(self, "small", above=0, at_most=1)
        require_number(self, "large", at_least=0, at_most=1)
        require_number(self, "exponent", at_least=1)
        require_number(self, "extra", at_least=0)
        if self.flex_point is not None:
            require_number(self, "flex_point", above=0)
            require_number(self, "large", above=0, at_most=self.small)
        self._require_weights()
        if self.odd is not None and self.top > 1:
            raise InvalidOption(
                "Magnitude.odd needs top = 1: parity is that of the whole cell.", about=("option", "Magnitude", "odd")
            )

    def _require_weights(self) -> None:
        given = np.array([w if is_number(w) else np.nan for w in self.weights], dtype=np.float64)
        if not given.size:
            return
        falls = given[0] == 1 and bool((np.diff(given) <= 0).all()) and bool((given >= 0).all())
        if len(given) != self.top or not falls:
            raise InvalidOption(
                f"Magnitude.weights must be {self.top} numbers from 1 down to 0 or more, one for each of the largest "
                f"contributions, got {self.weights!r}.",
                about=("option", "Magnitude", "weights"),
            )

    @property
    def shares(self) -> Floats:
        """The weight of each contribution that adds noise."""
        return np.array(self.weights, dtype=np.float64) if self.weights else np.ones(self.top)

    def scale(self, size: Floats) -> Floats:
        """One unit of the perturbation table for contributions of a size: the size times its share.

        Above the flex point f it is large · (1 + (small·x − large·f) / (large·f) · (2f / (f + x))^exponent) for size x.
        """
        if self.flex_point is None:
            return self.small * size
        f, low, high = self.flex_point, self.large, self.small
        beyond = np.maximum(size, f)
        share = low * (1 + (high * beyond - low * f) / (low * f) * (2 * f / (f + beyond)) ** self.exponent)
        return np.asarray(size * np.where(size < f, high, share))

    def separation_point(self, table: PerturbationTable) -> float:
        """Below this size the noise of the table for small cells is larger than noise in proportion would be."""
        spread = float(table.constraints()["variance"][-1])
        return float(np.sqrt(spread / (self.shares**2).sum()) / self.small)


@dataclass(frozen=True, eq=False)
class MagnitudeNoise:
    """The perturbation tables of a magnitude, ready to draw from."""

    options: Magnitude
    usual: PerturbationTable
    odd: PerturbationTable | None = None
    small_cells: PerturbationTable | None = None

    @property
    def separation_point(self) -> float:
        """The size below which a contribution is treated like a count; 0 without separation."""
        return 0.0 if self.small_cells is None else self.options.separation_point(self.small_cells)

    def perturbed(self, table: Table, keys: CellKeys, sensitive: Mask) -> Floats:
        """Every value with its noise; contribution by contribution, each on what the others before it left."""
        options, value = self.options, table.value.copy()
        sizes = contributions(table, options)
        done = value == 0
        if options.turn_first:
            keys = keys.turned(options.digits)
        for j, weight in enumerate(options.shares):
            extra = np.where(sensitive, options.extra, 0.0) if j == 0 else np.zeros(len(value))
            change = self._change(value, sizes[:, j], weight, keys, table, extra, first=j == 0)
            value = np.where(done, value, value + change)
            keys = keys.turned(options.digits)
        return value

    def _change(
        self, value: Floats, size: Floats, weight: float, keys: CellKeys, table: Table, extra: Floats, *, first: bool
    ) -> Floats:
        room, key = np.abs(value), keys.fraction
        unit = np.minimum(self.options.scale(size) * weight, room)
        tiny = size < self.separation_point
        unit = np.where(tiny, 1.0, unit)
        amount = room / np.where(unit > 0, unit, np.inf)
        units = self._drawn(self.usual, amount, key)
        if self.odd is not None:
            is_odd = _contributor_count(table) % 2 == 1
            units = np.where(is_odd, self._drawn(self.odd, amount, key), units)
        if self.small_cells is not None:
            units = np.where(tiny, self._drawn(self.small_cells, room, key) if first else 0.0, units)
        units = units + np.where(units < 0, -extra, extra) * (~tiny | first)
        change = np.maximum(units * unit, -room) * np.where(size > 0, 1.0, 0.0)
        return np.asarray(np.where(value < 0, -change, change))

    @staticmethod
    def _drawn(table: PerturbationTable, amount: Floats, key: Floats) -> Floats:
        return table.interpolated(np.minimum(amount, table.count[-1]), key)


def contributions(table: Table, options: Magnitude) -> Floats:
    """The sizes that the noise is in proportion to, one column per draw."""
    if options.by == "value":
        return np.abs(table.value)[:, None]
    if options.by == "mean":
        return (np.abs(table.value) / np.maximum(_contributor_count(table), 1))[:, None]
    largest = table.largest(options.top)
    kept = table.contributors
    if kept is not None and kept.weighted is not None:
        largest = kept.weighted[:, : options.top]
    return np.abs(largest)


def _contributor_count(table: Table) -> Floats:
    if table.count is None:
        raise InvalidTable(
            "This needs the number of contributors of each cell, but the table has none.",
            hint=(
                "tabulate the records, or name the column that holds it (",
                Setting("count"),
                ").",
            ),
        )
    return table.count.astype(np.float64)


# What a published magnitude says about the true one, when only the size of the noise is known.


RATIO = 1.001
"""Between neighbouring points of the grid on which the noise is bounded; each interval is at most this much wider."""
SPAN = 1e9
"""How far the grid reaches below and above the published values; beyond it there is no bound."""
HALVINGS = 60
"""Steps in which is found how far a cell can fall before its noise is too small for what was published."""


def magnitude_range(noise: MagnitudeNoise, published: Floats, decimals: int) -> tuple[Floats, Floats]:
    """The smallest and the largest true value that each published one can come from.

    Contributions do not add up to more than their cell, so a cell of value x has some largest noise: a bound that
    whoever knows the design can work out. True and published values have the same decimals.
    """
    scale = 10.0**decimals
    half_unit = 0.5 / scale
    top = max(float(published.max(initial=0.0)), half_unit, 1e-9)
    start = top / SPAN
    grid: Floats = start * np.float64(RATIO) ** np.arange(int(np.ceil(2 * np.log(SPAN) / np.log(RATIO))) + 1)
    reach = largest_noise(noise, grid)
    rises = grid + reach
    first = np.searchsorted(rises, published - half_unit, side="left")
    lower = np.where(first == 0, 0.0, grid[np.maximum(first, 1) - 1])
    falls = np.append(grid[:-1] - reach[1:], np.inf)
    least = np.minimum.accumulate(falls[::-1])[::-1]
    last = np.searchsorted(least, published + half_unit, side="right")
    upper = np.where(last >= len(grid) - 1, np.inf, grid[np.minimum(last, len(grid) - 1)])
    almost = 1 - 1e-6
    return np.floor(lower * scale + almost) / scale, np.ceil(upper * scale - almost) / scale


def largest_noise(noise: MagnitudeNoise, value: Floats) -> Floats:
    """The largest possible change of cells of some values, sorted from the smallest.

    The j-th largest contribution is at most a j-th of the cell, and all of them together are at most the cell, with
    noise in proportion to them of at most the largest share.
    """
    options = noise.options
    tables = [table for table in (noise.usual, noise.odd) if table is not None]
    most = max(table.maximum_change for table in tables)
    units = [np.maximum.accumulate(options.scale(value / j)) for j in range(1, options.top + 1)]
    share = np.maximum.accumulate(options.scale(value) / value)
    together = np.minimum(options.shares @ np.array(units), share * value)
    reach = most * together + options.extra * units[0]
    if noise.small_cells is None:
        return np.asarray(reach)
    return np.asarray(np.maximum(reach, noise.small_cells.maximum_change + options.extra))


def believed_range(noise: MagnitudeNoise, table: Table, published: Floats, sensitive: Mask) -> tuple[Floats, Floats]:
    """Values around the true one that everybody must hold for possible, whatever they know of the cell.

    Whoever is the largest contributor knows how large the noise can be, and so does whoever knows how many there are: a
    bound for all cells of the same value is wider than what they believe. As a cell falls its largest contribution may
    fall, and the noise with it; as it rises the noise grows, unless contributions may be negative. What is
    nearer to the published value than `extra` is no value of a sensitive cell.
    """
    sizes, after = _sizes_that_remain(table, noise.options)
    value, seen = np.abs(table.value), np.abs(published)
    each = np.maximum(_contributor_count(table), 1.0)[:, None] if noise.options.by == "mean" else 1.0

    def furthest(way: int, less: Mask) -> Floats:
        near, far = np.zeros(len(value)), np.where(way < 0, value, value + seen + least_reach(noise, sizes, 1))
        for _ in range(HALVINGS):
            middle = (near + far) / 2
            fallen = np.where(less, middle, 0.0)[:, None] / each
            reach = least_reach(noise, np.maximum(sizes - fallen, after), way)
            fits = way * (value + way * middle - seen) <= reach
            near, far = np.where(fits, middle, near), np.where(fits, far, middle)
        return near

    every = np.ones(len(value), dtype=np.bool_)
    low, high = value - furthest(-1, every), value + furthest(1, table.may_be_negative)
    if noise.options.extra:
        up, down = _gaps(noise, table, seen)
        low = np.where(sensitive & (seen <= value), np.maximum(low, np.minimum(value, seen + down)), low)
        high = np.where(sensitive & (seen >= value), np.minimum(high, np.maximum(value, seen - up)), high)
    turned = table.value < 0
    return np.where(turned, -high, low), np.where(turned, -low, high)


def _sizes_that_remain(table: Table, options: Magnitude) -> tuple[Floats, Floats]:
    """What the noise is in proportion to, at least: as it is, and if a contributor falls behind the next.

    With weights contributions are taken from those who reported the most, and somebody who overtakes them, or is left
    when they fall behind, may add much less: no less than it reports, as far as no weight is below 1.
    """
    sizes = contributions(table, options)
    after, kept = np.zeros_like(sizes), table.contributors
    if options.by != "largest" or kept is None:
        return sizes, after
    reported = np.abs(kept.amount)
    if kept.weighted is not None:
        added = np.abs(kept.weighted)
        light = np.divide(added, reported, out=np.ones_like(added), where=reported > 0)
        reported = reported * min(1.0, float(light.min(initial=1.0)))
        sizes = np.minimum(sizes, reported[:, : options.top])
    following = reported[:, 1 : options.top + 1]
    after[:, : following.shape[1]] = following
    return sizes, after


def _gaps(noise: MagnitudeNoise, table: Table, seen: Floats) -> tuple[Floats, Floats]:
    """No less than the smallest noise, up and down, that `extra` leaves to values between truth and published value."""
    sizes = contributions(table, noise.options).max(axis=1, initial=0.0)
    kept = table.contributors
    if kept is not None:
        sizes = np.maximum(
            sizes, np.abs(kept.amount if kept.weighted is None else kept.weighted).max(axis=1, initial=0)
        )
    unit = noise.options.small * (sizes + np.abs(seen - np.abs(table.value)))
    unit = unit if noise.small_cells is None else np.maximum(unit, 1.0)
    tables = [each for each in (noise.usual, noise.odd, noise.small_cells) if each is not None]
    up, down = (noise.options.extra + max(each.first_possible[side] for each in tables) for side in (0, 1))
    return up * unit, down * unit


def least_reach(noise: MagnitudeNoise, sizes: Floats, way: int) -> Floats:
    """The noise that is possible whatever is larger than these sizes, and whichever perturbation table is meant.

    Noise that takes values below the published ones up to it (`way` −1), or those above down to it (1).
    """
    options, side = noise.options, 0 if way < 0 else 1
    most = min(table.always_possible[side] for table in (noise.usual, noise.odd) if table is not None)
    units = options.shares * _never_less(options, sizes)
    units[:, 1:] = np.where(sizes[:, 1:] < noise.separation_point, 0.0, units[:, 1:])
    reach = most * units.sum(axis=1)
    if noise.small_cells is None:
        return np.asarray(reach)
    tiny = noise.small_cells.always_possible[side] * np.minimum(sizes[:, 0], 1.0)
    return np.asarray(np.where(sizes[:, 0] < noise.separation_point, np.minimum(reach, tiny), reach))


def _never_less(options: Magnitude, sizes: Floats) -> Floats:
    """One unit of the perturbation table for contributions of at least such sizes: above a flex point it may fall."""
    unit = options.scale(sizes)
    if options.flex_point is None:
        return unit
    grid: Floats = options.flex_point * np.float64(RATIO) ** np.arange(int(np.log(SPAN) / np.log(RATIO)))
    later = np.minimum.accumulate(options.scale(grid)[::-1])[::-1]
    first = np.minimum(np.searchsorted(grid, sizes, side="right"), len(grid) - 1)
    return np.asarray(np.minimum(unit, later[first] / RATIO))
