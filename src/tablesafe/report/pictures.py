"""The plots of a page, as SVG elements by the name of their place; none without the extra `plots`."""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from tablesafe.loss import loss
from tablesafe.quality import quality

if TYPE_CHECKING:
    from tablesafe.report.writing import Subject

LARGE = 300
"""Cells from which on a heat map shows what the table beside it does not."""
LARGEST = 3_000_000
"""Cells up to which it is drawn: beyond, nobody could see one."""
MOST_DENSITIES = 12


def pictures(subject: Subject, *, internal: bool) -> dict[str, str]:
    """What can be drawn of a release; for the public only its heat map."""
    if find_spec("matplotlib") is None:
        return {}
    drawn: dict[str, Callable[[], Any] | None] = {"heat": _heat(subject, internal)}
    if internal:
        drawn |= {
            "regions": _regions(subject), "intervals": _intervals(subject), "changes": _changes(subject),
            "densities": _densities(subject), "progress": _progress(subject),
        }  # fmt: skip
    return {name: _inside(draw().svg(), name) for name, draw in drawn.items() if draw is not None}


def _inside(svg: str, name: str) -> str:
    """The picture as part of a page: no addresses of name spaces, and names of its parts that no other picture has."""
    bare = re.sub(r'\sxmlns(:\w+)?="[^"]*"', "", svg).replace("xlink:href=", "href=")
    named = re.sub(r'\bid="([^"]+)"', rf'id="{name}-\1"', bare)
    return re.sub(r'(href="#|url\(#)', rf"\g<1>{name}-", named)


def _heat(subject: Subject, internal: bool) -> Callable[[], Any] | None:
    from tablesafe.report.plots import heat_map

    if not LARGE <= len(subject.release.table) <= LARGEST or not subject.release.table.dimensions:
        return None
    if internal:
        return lambda: heat_map(subject.release, subject.problem, subject.findings, rows=subject.rows)
    return lambda: heat_map(subject.release, rows=subject.rows)


def _regions(subject: Subject) -> Callable[[], Any] | None:
    """The rules that can be drawn in the triangle of the two largest shares."""
    from tablesafe.report.plots import sensitivity_regions
    from tablesafe.report.plots.regions import drawable

    rules = drawable(subject.problem.rules)
    return (lambda: sensitivity_regions(rules)) if rules else None


def _intervals(subject: Subject) -> Callable[[], Any] | None:
    from tablesafe.report.plots import intervals

    findings = subject.findings
    return None if findings is None or not len(subject.problem.sensitive) else lambda: intervals(findings)


def _changes(subject: Subject) -> Callable[[], Any] | None:
    from tablesafe.report.plots import percent_changes

    if not loss(subject.problem, subject.release).changed:
        return None
    return lambda: percent_changes(quality(subject.problem, subject.release))


def _densities(subject: Subject) -> Callable[[], Any] | None:
    from tablesafe.report.plots import densities

    found = None if subject.scores is None else subject.scores.with_density
    return None if found is None else lambda: densities(found, most=MOST_DENSITIES)


def _progress(subject: Subject) -> Callable[[], Any] | None:
    from tablesafe.report.plots import progress

    trace = subject.trace
    return (lambda: progress(trace)) if trace is not None and trace.steps else None
