"""What blanking and imputing did: by area, by variable, and in all. Confidential."""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tablesafe.core.equations import Mask
from tablesafe.methods.records.areas import Areas, Targets, beside
from tablesafe.methods.records.behind import Microdata
from tablesafe.methods.records.impute.control import Controlled, Margins


def facts_of(margins: Margins, made: Controlled, changed: Mask, at_risk: Mask, widened: int) -> dict[str, float]:
    """The measures of the whole file."""
    sizes = np.maximum(np.bincount(margins.group, minlength=margins.groups), 1)
    shares = np.abs(margins.gaps(made.values)).reshape(-1, max(margins.groups, 1)) / np.maximum(sizes, 1)
    facts: dict[str, float] = {
        "records": len(margins.group),
        "records blanked": len(margins.rows),
        "records changed": int(changed.sum()),
        "records filled in with what was blanked in another": int(made.passed_on.sum()),
        "records put back to the truth": int(made.restored.sum()),
        "records at risk": int(at_risk.sum()),
        "records at risk blanked": int(at_risk[margins.rows].sum()),
        "records with a donor from a wider class": widened,
        "tolerance": margins.tolerance,
        "largest change of a share": float(shares.max(initial=0.0)),
    }
    drifts = np.abs(margins.drifts(made.values)) * margins.tolerance
    for j, variable in enumerate(margins.variables):
        if variable.codes is None:
            facts[f"largest relative change of the sum of {variable.name}"] = float(drifts[:, j].max(initial=0.0))
    return facts


def strata_of(
    microdata: Microdata, areas: Areas, targets: Targets, blank: NDArray[np.intp], at_risk: Mask
) -> pl.DataFrame:
    """Per finest area: its records, the rate, what that asks for, and what was blanked."""
    n = len(targets.units)
    risky = np.zeros(len(microdata), dtype=np.bool_)
    risky[blank] = at_risk[blank]
    return beside(
        areas.names(microdata),
        {
            "records": targets.units,
            "rate": targets.rate,
            "asked at least": targets.floor,
            "asked at most": targets.ceiling,
            "blanked": np.bincount(areas.finest[blank], minlength=n),
            "at risk": np.bincount(areas.finest[at_risk], minlength=n),
            "at risk and blanked": np.bincount(areas.finest[risky], minlength=n),
        },
    )


def words_of(microdata: Microdata, groups: tuple[str, ...]) -> pl.DataFrame:
    """The groups in the user's codes, a row per group, by their numbers."""
    group = microdata.classes(groups)
    first = np.zeros(int(group.max(initial=-1)) + 1, dtype=np.int64)
    first[group[::-1]] = np.arange(len(group))[::-1]
    if not groups:
        return pl.DataFrame({"group": ["all"] * len(first)})
    return pl.DataFrame([microdata.text(column).gather(first).alias(column) for column in groups])
