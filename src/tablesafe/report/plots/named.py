"""Plots by name, for job files and other places that ask for one in words: `intervals.svg`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import PurePath

from tablesafe.attack.suite import Scores
from tablesafe.audit.findings import Findings
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release
from tablesafe.core.sensitivity import Rule
from tablesafe.loss.quality import quality
from tablesafe.report.plots.changes import accuracy_by_size, percent_changes
from tablesafe.report.plots.densities import densities
from tablesafe.report.plots.heatmap import heat_map
from tablesafe.report.plots.intervals import intervals
from tablesafe.report.plots.plot import Plot
from tablesafe.report.plots.progress import progress
from tablesafe.report.plots.regions import drawable, sensitivity_regions
from tablesafe.report.progress import Trace


def named_plot(
    name: str,
    problem: Problem,
    release: Release,
    findings: Findings | None = None,
    scores: Scores | None = None,
    trace: Trace | None = None,
) -> Plot | None:
    """Draw the plot of this name for the office; None where there is nothing to draw it from. Internal only."""
    ways: dict[str, Callable[[], Plot | None]] = {
        "regions": lambda: _regions(problem.rules),
        "intervals": lambda: None if findings is None else intervals(findings),
        "densities": lambda: _densities(scores),
        "heat_map": lambda: heat_map(release, problem, findings),
        "changes": lambda: heat_map(release, problem, findings, by="change"),
        "percent_changes": lambda: percent_changes(quality(problem, release)),
        "accuracy_by_size": lambda: accuracy_by_size(quality(problem, release)),
        "progress": lambda: progress(trace) if trace is not None and trace.steps else None,
    }
    return ways[PurePath(name).stem]()


def _regions(rules: tuple[Rule, ...]) -> Plot | None:
    found = drawable(rules)
    return sensitivity_regions(found) if found else None


def _densities(scores: Scores | None) -> Plot | None:
    found = None if scores is None else scores.with_density
    return None if found is None else densities(found)
