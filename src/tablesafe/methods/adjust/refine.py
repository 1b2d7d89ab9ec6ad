"""From the least change to one that is good in other ways: statistics kept, another measure minimised."""

from __future__ import annotations

from time import monotonic

import numpy as np

from tablesafe.core.equations import Integers
from tablesafe.core.errors import InvalidOption
from tablesafe.core.problem import Problem
from tablesafe.methods.adjust.keeping import keep_statistics
from tablesafe.methods.adjust.means import Means
from tablesafe.methods.adjust.statistics import Keep, missed
from tablesafe.methods.adjust.tabu.options import Tabu
from tablesafe.methods.adjust.tabu.search import TabuSearch


def refined(
    problem: Problem, means: Means, moves: Integers, *, keep: Keep | None, tabu: Tabu | None, seed: int,
    seconds: float,
) -> Integers:  # fmt: skip
    """Keep the statistics by linear programs, then search by the measure of a tabu search within their limits."""
    begin, instance = monotonic(), means.instance
    statistics = keep.wanted(problem, instance) if keep is not None and keep.beyond_mean else []
    if keep is not None and statistics:
        share = 0.5 if tabu is not None else 1.0
        moves = keep_statistics(keep, means, statistics, moves, deadline=begin + max(seconds, 1.0) * share, seed=seed)
    if tabu is None:
        return moves
    _refuse_other_groups(keep, tabu)
    search = TabuSearch(problem, means, tabu, begin + max(seconds, 1.0), np.random.default_rng(seed), keep=keep)
    found = search.run([moves])
    return moves if missed(statistics, found.astype(np.float64), 1e-6) else found


def _refuse_other_groups(keep: Keep | None, tabu: Tabu) -> None:
    """Limits and measure are about the same cells: a search keeps one set of sums."""
    if keep is None or not keep.beyond_mean:
        return
    if keep.responses:
        raise InvalidOption(
            "Keep.responses cannot be combined with a tabu search.\n\nHint: give Tabu.function a measure of your own."
        )
    if keep.over is not tabu.over and keep.over != tabu.over:
        raise InvalidOption(
            f"Keep.over is {keep.over!r}, but Tabu.over is {tabu.over!r}.\n\nHint: give both the same cells."
        )
