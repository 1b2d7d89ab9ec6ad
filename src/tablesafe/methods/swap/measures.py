"""What a swap did: by area, and in all. Confidential."""

from __future__ import annotations

import warnings

import numpy as np
import polars as pl

from tablesafe.methods.microdata.areas import Areas
from tablesafe.methods.microdata.records import Microdata
from tablesafe.methods.swap.pairing import Pairs
from tablesafe.methods.swap.search import Search, by_profile
from tablesafe.methods.swap.units import Units


def strata_of(microdata: Microdata, areas: Areas, search: Search, pairs: Pairs) -> pl.DataFrame:
    """Per finest area: its units, the rate, what that asks for, and what was swapped."""
    targets, at_risk = search.targets, search.risky < len(search.levels)
    n = len(targets.units)
    return areas.names(microdata).with_columns(
        pl.Series("units", targets.units),
        pl.Series("rate", targets.rate),
        pl.Series("asked at least", targets.floor),
        pl.Series("asked at most", targets.ceiling),
        pl.Series("swapped", pairs.done()),
        pl.Series("at risk", np.bincount(search.area[at_risk], minlength=n)),
        pl.Series("at risk and swapped", np.bincount(search.area[at_risk & pairs.swapped], minlength=n)),
    )


def tell_short(strata: pl.DataFrame) -> None:
    """Say where the rate could not be met."""
    short = strata.filter(pl.col("swapped") < pl.col("asked at least"))
    if len(short):
        first = short.row(0, named=True)
        name = ", ".join(str(first[column]) for column in short.columns[: short.columns.index("units")])
        warnings.warn(
            f"{len(short):,} of {len(strata):,} areas have too few partners to swap as many as their rate asks for, "
            f"such as {name}. Match on fewer columns, or add a fallback.",
            stacklevel=4,
        )


def facts_of(units: Units, search: Search, pairs: Pairs) -> dict[str, float]:
    """The measures of the whole file."""
    at_risk = search.risky < len(search.levels)
    both = np.flatnonzero(pairs.swapped)
    across = search.apart(both, pairs.partner[both])
    coarse = search.levels[0]
    facts: dict[str, float] = {
        "records": int(units.size.sum()),
        "records changed": int(units.size[both].sum()),
        "units": len(units),
        "units swapped": len(both),
        "share of units swapped": len(both) / max(len(units), 1),
        "units at risk": int(at_risk.sum()),
        "units at risk swapped": int(at_risk[both].sum()),
        "units at risk swapped across the level of their risk": int((across & at_risk[both]).sum()),
        "units swapped within the coarsest area": int((coarse[both] == coarse[pairs.partner[both]]).sum()),
    }
    for number, count in enumerate(by_profile(pairs, search.profiles)):
        facts["units swapped by match" if not number else f"units swapped by fallback {number}"] = count
    return facts
