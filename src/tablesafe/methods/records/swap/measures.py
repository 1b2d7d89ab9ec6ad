"""What a swap did: by area, and in all. Confidential."""

from __future__ import annotations

import warnings

import numpy as np
import polars as pl

from tablesafe.methods.records.areas import Areas, beside
from tablesafe.methods.records.behind import Microdata
from tablesafe.methods.records.swap.pairing import Pairs
from tablesafe.methods.records.swap.partners import Search, Units, by_profile


def strata_of(microdata: Microdata, areas: Areas, search: Search, pairs: Pairs) -> pl.DataFrame:
    """Per finest area: its units, the rate, what that asks for, and what was swapped."""
    targets, at_risk = search.targets, search.risky < len(search.levels)
    n = len(targets.units)
    return beside(
        areas.names(microdata),
        {
            "units": targets.units,
            "rate": targets.rate,
            "asked at least": targets.floor,
            "asked at most": targets.ceiling,
            "swapped": pairs.done(),
            "at risk": np.bincount(search.area[at_risk], minlength=n),
            "at risk and swapped": np.bincount(search.area[at_risk & pairs.swapped], minlength=n),
        },
    )


def tell_short(names: pl.DataFrame, search: Search, pairs: Pairs) -> None:
    """Say where the rate could not be met, and whether somebody at risk stays where all should go."""
    short = np.flatnonzero(pairs.done() < search.targets.floor)
    if short.size:
        name = ", ".join(map(str, names.row(int(short[0]))))
        warnings.warn(
            f"{short.size:,} of {len(names):,} areas have too few partners to swap as many as their rate asks for, "
            f"such as {name}. Match on fewer columns, or add a fallback.",
            stacklevel=4,
        )
    stay = int(((search.risky < len(search.levels)) & ~pairs.swapped).sum())
    if search.all_at_risk and stay:
        warnings.warn(
            f"{stay:,} units at risk stay where they are: no unit that is like them in the columns of Swap.match lives "
            f"beyond the border that they must cross. Match on fewer columns, or add a fallback.",
            stacklevel=4,
        )


def facts_of(units: Units, search: Search, pairs: Pairs) -> dict[str, float]:
    """The measures of the whole file."""
    at_risk = search.risky < len(search.levels)
    both = np.flatnonzero(pairs.swapped)
    coarse = search.levels[0]
    facts: dict[str, float] = {
        "records": int(units.size.sum()),
        "records changed": int(units.size[both].sum()),
        "units": len(units),
        "units swapped": len(both),
        "share of units swapped": len(both) / max(len(units), 1),
        "units at risk": int(at_risk.sum()),
        "units at risk swapped": int(at_risk[both].sum()),
        "units swapped within the coarsest area": int((coarse[both] == coarse[pairs.partner[both]]).sum()),
    }
    for number, count in enumerate(by_profile(pairs, search.profiles)):
        facts["units swapped by match" if not number else f"units swapped by fallback {number}"] = count
    return facts
