"""The plots of a page, as SVG elements by the name of their place; none without the extra `plots`."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from tablesafe.core.language import Language
from tablesafe.loss import loss
from tablesafe.loss.quality import quality
from tablesafe.report.axis import Axis
from tablesafe.report.cells import WITHHELD_TEXT, Kind
from tablesafe.report.excerpt import Slice
from tablesafe.report.summary import Summary
from tablesafe.report.verdict import BETWEEN

if TYPE_CHECKING:
    from jinja2 import Template

    from tablesafe.report.writing import Subject


LARGE = 300
"""Cells from which on a heat map shows what the table beside it does not."""
LARGEST = 3_000_000
"""Cells up to which it is drawn: beyond, nobody could see one."""
MOST_DENSITIES = 12
"""Cells whose guesses are drawn, each in a picture of its own."""


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


# A summary as one HTML page that needs nothing else: no network, no fonts, and a script of its own for folding.


CONTENTS = {
    "in": "What went in", "rules": "What is confidential", "table": "The table", "sensitive": "Sensitive cells",
    "attacks": "Attacks", "loss": "What it cost", "method": "How it was protected", "audit": "How it was audited",
    "again": "How to make it again",
}  # fmt: skip

HOW = {
    "published": "it is published", "exact": "known exactly", "lower": "too close from below",
    "upper": "too close from above", "width": "the interval is too narrow", "unproved": "not proved to be hidden",
    "sum": "a sum is known exactly",
}  # fmt: skip
"""In which ways a cell is open, in words."""
LONG = 25
"""Lines of a slice from which on its codes can be searched."""


@dataclass(frozen=True, slots=True)
class ShownCell:
    """A cell of the page."""

    main: str
    sign: str
    small: str
    """The true value, below a changed one."""
    css: str
    hover: str


@dataclass(frozen=True, slots=True)
class Heading:
    """A code with its label."""

    code: str
    label: str


@dataclass(frozen=True, slots=True)
class ShownRow:
    """A line of the page."""

    code: str
    label: str
    depth: int
    children: bool
    leads: bool
    """Whether it must be unfolded to see the first withheld cell."""
    cells: tuple[ShownCell, ...]


@dataclass(frozen=True, slots=True)
class ShownSlice:
    """A slice of the page."""

    name: str
    corner: str
    open_depth: int
    columns: tuple[Heading, ...]
    rows: tuple[ShownRow, ...]


def render(summary: Summary, pictures: Mapping[str, str] | None = None) -> str:
    """The page; `pictures` are SVG elements by the name of their place."""
    script, slices = _asset("page.js"), tuple(_slice(each, summary.language) for each in summary.excerpt.slices)
    absent = {"sensitive": not summary.margins, "attacks": not (summary.attacks or summary.chance)}
    page = _template().render(
        s=summary,
        say=summary.language.say,
        slices=slices,
        searchable=any(len(each.rows) > LONG for each in slices),
        foldable=any(row.children for each in slices for row in each.rows),
        legend=_legend(summary),
        tiles=_tiles(summary),
        words=_words,
        how=HOW,
        contents=[(key, summary.language.say(name)) for key, name in CONTENTS.items() if not absent.get(key, False)],
        pictures=pictures or {},
        figure=figure,
        cell_words="" if len(summary.dimensions) < 2 else BETWEEN.join(line.name for line in summary.dimensions),
        style=_colours(summary) + _asset("page.css"),
        script=script,
        script_hash="sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
    )
    return page.lstrip()


@cache
def _template() -> Template:
    """The page as Jinja translated it: that takes longer than all the rest of a small page, so it is done once."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("tablesafe.report", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("page.html.jinja")


@cache
def _asset(name: str) -> str:
    return files("tablesafe.report").joinpath(name).read_text(encoding="utf-8")


def _colours(summary: Summary) -> str:
    """A class per kind of cell that the table has: its tint, and the colour of its sign."""
    kinds = dict.fromkeys([*_legend(summary), *(line.kind for line in summary.statuses), Kind.ABSENT])
    rules = [f".{k.css} {{ background: {k.colour}; }} .{k.css} sup, .{k.css} b {{ color: {k.ink}; }}" for k in kinds]
    white = [f".{Kind.OPEN.css} {{ color: {Kind.OPEN.ink}; font-weight: 700; }}"] if Kind.OPEN in kinds else []
    return "\n".join([*rules, *white, ""])


def _legend(summary: Summary) -> list[Kind]:
    """The kinds of cells that the whole table has."""
    return list(summary.excerpt.slices[0].layout.counts())


def _tiles(summary: Summary) -> list[tuple[str, str]]:
    """The figures that come first."""
    say = summary.language.say
    tiles = [(say("{number:,}", number=summary.cells), say("cells"))]
    if summary.sensitive is not None:
        tiles.append((say("{number:,}", number=summary.sensitive), say("sensitive")))
    tiles.append((say("{number:,}", number=summary.withheld), say("withheld")))
    if summary.changes is not None:
        changed = int(dict(summary.changes.measures)["cells changed"])
        tiles.append((say("{number:,}", number=changed), say("changed")))
    elif summary.may_differ:
        tiles.append((say("{number:,}", number=summary.may_differ), say("can differ from the true value")))
    if summary.attacks:
        most = max(line.share for line in summary.attacks)
        tiles.append((f"{100 * most:.0f} %", say("of sensitive cells guessed by the best attack")))
    return [*tiles, (say(summary.method.replace("_", " ")), say("method"))]


def _words(name: str) -> str:
    """The name of a rule as people write it: `LinearSensitivity` is a linear sensitivity."""
    first, *others = re.sub(r"(?<=.)(?=[A-Z][a-z])", " ", name).split()
    return " ".join([first, *(each.lower() for each in others)])


def _slice(each: Slice, language: Language) -> ShownSlice:
    layout, window = each.layout, each.window
    down, across = layout.rows.name, layout.columns.name
    depth, children, leads = each.depth, each.has_children, each.leads
    return ShownSlice(
        each.name,
        language.say("{down} by {across}", down=down, across=across) if across else down,
        each.open_depth,
        tuple(_heading(layout.columns, line) for line in window.columns.tolist()),
        tuple(
            ShownRow(*_code(layout.rows, line), depth[i], children[i], leads[i], _cells(each, i))
            for i, line in enumerate(window.rows.tolist())
        ),
    )


def _code(axis: Axis, line: int) -> tuple[str, str]:
    code, label = str(axis.codes[line]), str(axis.labels[line])
    return code, label if label != code else ""


def _heading(axis: Axis, line: int) -> Heading:
    return Heading(*_code(axis, line))


def _cells(each: Slice, i: int) -> tuple[ShownCell, ...]:
    window = each.window
    return tuple(
        _cell(text, truth, kind, window.hover(i, j))
        for j, (text, truth, kind) in enumerate(zip(window.text[i], window.truth[i], window.kind[i], strict=True))
    )


def _cell(text: str, truth: str, kind: Kind, hover: str) -> ShownCell:
    """Withheld values show the truth in the office; a changed one has it below."""
    hidden = text in ("", WITHHELD_TEXT) and bool(truth)
    main, small = (truth, "") if hidden else (text, truth if truth != text else "")
    return ShownCell(main, "" if kind.sign == main else kind.sign, small, kind.css, hover)


def figure(value: float, digits: int) -> str:
    """A number with so many significant digits, separators of thousands and no exponent where it can be helped."""
    if abs(value) >= 10 ** (digits - 1):
        return f"{value:,.0f}"
    return f"{value:,.{digits}g}"
