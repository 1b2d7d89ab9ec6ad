"""Tasks: a look at finished runs. They run in the worker process of a session; all of it is for the office only."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from tablesafe.core.language import Language, language
from tablesafe.loss import Share
from tablesafe.web.child import Desk
from tablesafe.web.desk import problem_of, result_of

MOST_LISTED = 500
"""Rows of a frame that are shown."""


def loss_of(desk: Desk, run: str) -> dict[str, Any]:
    """What users of a release miss: totals, by level, and the distribution of changes."""
    from tablesafe.loss import loss

    result, speech = result_of(desk, run), language(desk.language)
    found = loss(result.problem, result.release)
    return {
        "finest": _part(found.finest),
        "whole": _part(found.whole),
        "levels": _table(found.levels(), speech),
        "changes": _table(found.distribution(), speech) if found.changed else None,
    }


def _part(part: Share) -> dict[str, float]:
    return {
        "withheld": part.withheld, "changed": part.changed, "cells": part.cells,
        "share": part.percent_of_cells / 100, "value": part.percent_of_value / 100,
    }  # fmt: skip


def _table(frame: Any, speech: Language) -> dict[str, Any]:
    percent = [name.startswith("percent ") for name in frame.columns]
    rows = [
        [
            speech.number(f"{value:.1f}") if share and value is not None else _shown(value, speech)
            for value, share in zip(row, percent, strict=True)
        ]
        for row in frame.head(MOST_LISTED).iter_rows()
    ]
    return {"columns": frame.columns, "rows": rows, "numbers": [dtype.is_numeric() for dtype in frame.dtypes]}


def _shown(value: Any, speech: Language) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return speech.number(f"{value:,.4g}" if abs(value) < 1000 else f"{value:,.0f}")
    return speech.number(f"{value:,}") if isinstance(value, int) and not isinstance(value, bool) else str(value)


def plot(desk: Desk, run: str, name: str) -> str:
    """A picture of a run; empty where there is nothing to show."""
    from tablesafe.core.release import Status
    from tablesafe.loss.quality import quality
    from tablesafe.report import plots

    result = result_of(desk, run)
    match name:
        case "intervals":
            return plots.intervals(result.findings).svg() if len(result.problem.sensitive) else ""
        case "changes":
            changed = bool((result.release.status == Status.CHANGED).any())
            return plots.percent_changes(quality(result.problem, result.release)).svg() if changed else ""
        case "heat":
            return plots.heat_map(result.release, result.problem).svg()
        case _:
            return ""


def measures(desk: Desk, runs: list[str]) -> list[dict[str, Any]]:
    """What several releases cost and how safe they are, one row each."""
    from tablesafe.loss import loss

    rows, speech = [], language(desk.language)

    def shown(value: Any) -> str:
        return _shown(value, speech)

    for run in runs:
        result = result_of(desk, run)
        found, scores = loss(result.problem, result.release), result.scores
        solution = result.release.solution
        rows.append(
            {
                "run": run,
                "method": result.release.method,
                "verdict": str(result.verdict.word),
                "open cells": shown(len({opening.cell for opening in result.findings.open})),
                "cells": shown(found.cells),
                "sensitive": shown(len(result.problem.sensitive)),
                "finest level: cells lost": speech.number(f"{found.finest.percent_of_cells:.1f}%"),
                "finest level: value lost": speech.number(f"{found.finest.percent_of_value:.1f}%"),
                "all levels: cells lost": speech.number(f"{found.whole.percent_of_cells:.1f}%"),
                "all levels: value lost": speech.number(f"{found.whole.percent_of_value:.1f}%"),
                "withheld": shown(found.withheld),
                "withheld, not sensitive": shown(found.withheld_complementary),
                "changed": shown(found.changed),
                "average change in percent": shown(float(found.average_percent)),
                "attacks": "" if scores is None else scores.headline,
                "answer": "" if solution is None else str(solution.status),
                "seconds": shown(float(sum(result.seconds.values()))),
            }
        )
    return rows


def density_plots(desk: Desk, cells: list[dict[str, Any]]) -> list[str]:
    """A picture of how the solutions of an attack spread, for each of some cells."""
    from tablesafe.report.plots.densities import CellDensity, cell_density

    return [cell_density(CellDensity(**cell)).svg() for cell in cells]


def frontier_plot(desk: Desk, rows: list[dict[str, Any]], by_loss: str, by_risk: str) -> dict[str, Any]:
    """What releases cost against what they leave open, as a picture and as a table."""
    from tablesafe.report.frontier import Measures
    from tablesafe.report.plots import frontier

    found = Measures(tuple(rows), by_loss, by_risk)  # type: ignore[arg-type]
    return {
        "svg": frontier(found, width_inches=8.2).svg(),
        "efficient": found.efficient.tolist(),
        "loss": found.loss.tolist(),
        "risk": [number if np.isfinite(number) else None for number in found.risk.tolist()],
    }


def pattern_for(desk: Desk, run: str, job: str) -> str:
    """The pattern of a run as a file for the job as it is now; without cells that this wants published. Internal."""
    from tablesafe.core.errors import InvalidOption

    problem, release = problem_of(desk, job), result_of(desk, run).release
    table = problem.table
    if list(table.dimensions.items()) != list(release.table.dimensions.items()) or len(table) != len(release.table):
        raise InvalidOption("The table has other cells than that of this run.", hint="run the job again.")
    withheld = (release.suppressed & ~problem.frozen)[: table.seen]
    codes = {name: column.gather(np.arange(table.seen)) for name, column in table.code_columns().items()}
    return str(pl.DataFrame({**codes, "suppressed": withheld}).write_csv())
