"""The big-M of the integer program of two views, slice by slice, for whoever wants to see how tight it is."""

from __future__ import annotations

import numpy as np
import polars as pl

from tablesafe.core.errors import InvalidProblem
from tablesafe.core.problem import Problem
from tablesafe.methods.views.fitting import fitted, view_costs
from tablesafe.methods.views.program import refined_big_m


def view_big_m(problem: Problem) -> pl.DataFrame:
    """The smallest M that is safe in each slice of two views: a row per slice, by the codes that the views share.

    `lower` is the most by which withholding in the slice can lower a lower bound that is too high, `upper` the most by
    which it need raise an upper bound that is too low; in the table's own unit. They are made from the values, and as
    confidential. (Roehrig, Padman, Krishnan & Duncan; `SuppressViews(algorithm="optimal")` takes these.)
    """
    fit = fitted(problem, view_costs(problem, "unit", ()), balance=0.0)
    if fit is None:
        raise InvalidProblem(
            "Only two published views of one cube, without hierarchies or prior bounds, lead to the program whose M is "
            "asked for.\n\nHint: ts.views makes such problems."
        )
    refined, table, unit = refined_big_m(fit.views), problem.table, 10.0**problem.table.decimals
    shared = {}
    for d, (name, codes) in enumerate(table.code_columns().items()):
        within = [table.codes[cells, d] for cells in (fit.cells_a, fit.cells_b)]
        if all(bool((each == within[0][:, :1]).all()) for each in within):
            shared[name] = codes.gather(fit.cells_a[:, 0].astype(np.uint32))
    return pl.DataFrame({**shared, "lower": refined.lower / unit, "upper": refined.upper / unit})
