"""Estimates in the layout of the literature: Tables 4 and 5 of Dandekar's "Myth & Reality". Confidential throughout."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from tablesafe.attack.density import Density
from tablesafe.attack.estimate import Estimate
from tablesafe.core.equations import Floats
from tablesafe.core.errors import InvalidOption


def attack_table(vertex: Estimate, interior: Estimate, programs: Estimate) -> pl.DataFrame:
    """Table 4: per hidden sensitive cell its audit range, two null-objective guesses, and the mean over many programs.

    `vertex` and `interior` are guesses with nothing to minimise, by the simplex and by an interior-point method.
    """
    cells, density = _shown(programs)
    problem, count = programs.problem, int(density.solutions.max(initial=0))
    value = problem.table.value[cells]
    columns: dict[str, Any] = _codes(programs, cells) | {
        "value": value,
        "protection": problem.sensitivity.upper[cells],
        "lp_lower": density.lower,
        "lp_upper": density.upper,
        "simplex_null_objective": vertex.values[cells],
        "pcx_null_objective": interior.values[cells],
        f"mean_{count}_lp": density.mean,
        f"stddev_{count}_lp": density.deviation,
        f"cv_percent_{count}_lp": 100 * density.variation,
    }
    return pl.DataFrame(columns)


def density_table(programs: Estimate) -> pl.DataFrame:
    """Table 5: per hidden sensitive cell how many solutions fall into each tenth of its audit range."""
    cells, density = _shown(programs)
    return pl.DataFrame(
        _codes(programs, cells)
        | {
            "counts_in_10_equal_intervals": [" ".join(map(str, row)) for row in density.counts.tolist()],
            "interval_edges": [_edges(row) for row in density.edges],
        }
    )


def _shown(programs: Estimate) -> tuple[Any, Density]:
    """The sensitive cells that the release does not tell, and their density."""
    if programs.density is None:
        raise InvalidOption(
            f"The attack {programs.attack!r} has one solution only, and no density.\n\n"
            f"Hint: take VertexMean(), InteriorMean(), RandomCentroid() or HitAndRun()."
        )
    cells = np.intersect1d(programs.cells, programs.unknown)
    return cells, programs.density.take(np.searchsorted(programs.unknown, cells))


def _codes(estimate: Estimate, cells: Any) -> dict[str, pl.Series]:
    columns = estimate.problem.table.code_columns()
    return {name: column.gather(cells.astype(np.uint32)) for name, column in columns.items()}


def _edges(row: Floats) -> str:
    """Whole numbers as in print, cut off and not rounded."""
    return " ".join(f"{int(np.floor(edge + 1e-9))}" if np.isfinite(edge) else "" for edge in row)
