"""The best pattern among the cells that searches have used so far: few enough to choose exactly.

Every deviation that a search tries, kept or not, names cells that are worth withholding somewhere. The least costly
pattern made of these cells is found by cuts, in programs that are a fraction of the size of the table's, and it is
better than every pattern that contributed to it. (Construct, merge, solve and adapt: Blum et al.)
"""

from __future__ import annotations

from contextlib import suppress

import numpy as np

from tablesafe.methods.suppress.narrowed import narrowed
from tablesafe.methods.suppress.optimal import optimise
from tablesafe.methods.suppress.search import Search, Unfinished

ROUNDS = 1
"""Rounds of all targets that are worth it here: among few cells the relaxation rises fast."""


def combine(search: Search, *, seconds: float, patience: int) -> bool:
    """Choose anew among the cells used so far; says whether the best pattern became better."""
    assert search.best is not None
    instance, before = search.instance, search.best_cost
    cells = np.flatnonzero((search.ever_used | search.best | instance.forced) & instance.live)
    part = narrowed(search, cells, seconds=seconds)
    with suppress(Unfinished):  # the time of this part is over, not that of the search: what it found counts
        optimise(part, patience=patience, rounds=ROUNDS)
    return search.best_cost < before
