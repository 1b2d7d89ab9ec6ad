"""Plots as SVG, PNG or PDF: `ts.plots.intervals(findings).save("intervals.svg")`.

Each function draws a figure of its own, without any global state, and returns a `Plot`. What a plot may show is said in
its docstring: all but the `heat_map` of a release alone are for the office only.
"""

from __future__ import annotations

from tablesafe.report.plots.changes import accuracy_by_size, percent_changes
from tablesafe.report.plots.densities import densities
from tablesafe.report.plots.frontier import frontier
from tablesafe.report.plots.heatmap import heat_map
from tablesafe.report.plots.intervals import intervals
from tablesafe.report.plots.named import named_plot
from tablesafe.report.plots.plot import Plot
from tablesafe.report.plots.progress import progress
from tablesafe.report.plots.regions import sensitivity_regions

__all__ = [
    "Plot",
    "accuracy_by_size",
    "densities",
    "frontier",
    "heat_map",
    "intervals",
    "named_plot",
    "percent_changes",
    "progress",
    "sensitivity_regions",
]
