"""Records that changed into a combination that the table has no cell for."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import polars as pl

from tablesafe.core.equations import Mask, cell_keys
from tablesafe.methods.microdata.records import Microdata


def novel(microdata: Microdata, changed: pl.DataFrame) -> Mask:
    """The changed records whose combination of codes no true record has, in one of the tables that are shown.

    A table with its empty cells has a place for every combination: there, nothing is novel.
    """
    out = np.zeros(len(microdata), dtype=np.bool_)
    table, origin = microdata.table, microdata.origin
    if table is None or origin is None or origin.plan.zeros:
        return out
    after = Microdata(changed, table)
    plan = origin.plan
    same = {d: microdata.frame[c].equals(changed[c], null_equal=True) for d, c in plan.column_of.items()}
    before = {d: microdata.positions(d) for d in plan.dimensions}
    now = {d: before[d] if same[d] else after.positions(d) for d in plan.dimensions}
    margins: Iterable[Iterable[str]] = [tuple(plan.dimensions)] if plan.margins is None else plan.margins
    for margin in margins:
        shown = [d for d in plan.dimensions if d in margin]
        if all(same[d] for d in shown):
            continue
        codes = np.stack([np.concatenate([before[d], now[d]]) for d in shown], axis=1)
        keys = cell_keys(codes + 1, [len(table.dimensions[d]) + 1 for d in shown])
        out |= ~np.isin(keys[len(microdata) :], keys[: len(microdata)])
    return out
