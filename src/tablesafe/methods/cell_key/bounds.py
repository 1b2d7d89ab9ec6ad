"""What a published magnitude says about the true one, when only the size of the noise is known."""

from __future__ import annotations

import numpy as np

from tablesafe.core.equations import Floats
from tablesafe.methods.cell_key.magnitude import MagnitudeNoise

RATIO = 1.001
"""Between neighbouring points of the grid on which the noise is bounded; each interval is at most this much wider."""
SPAN = 1e9
"""How far the grid reaches below and above the published values; beyond it there is no bound."""


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
