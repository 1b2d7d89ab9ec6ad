"""What a run did, in numbers and words, for the public and for the office.

The public summary may say nothing that the release does not say: no rule parameters, no split between sensitive and
complementary cells, no sum of withheld values, not how many values were really changed. The internal one says it all.
"""

from __future__ import annotations

import dataclasses
import platform
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from importlib import metadata
from typing import TYPE_CHECKING, Any

import numpy as np

import tablesafe
from tablesafe.core.language import ENGLISH, Language
from tablesafe.core.linking import RESPONSE
from tablesafe.core.posterior import posterior
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release, Status
from tablesafe.core.sensitivity import Rule
from tablesafe.core.table import Table
from tablesafe.report.cells import OfficeCells
from tablesafe.report.excerpt import Excerpt
from tablesafe.report.layout import Layout
from tablesafe.report.losses import Changes, LevelLine, StatusLine, changes, levels, statuses
from tablesafe.report.margins import Margins, margins
from tablesafe.report.verdict import AttackLine, DangerLine, Judgement, OpenLine, attack_lines, danger_lines, judge

if TYPE_CHECKING:
    from tablesafe.attack.suite import Scores
    from tablesafe.audit.findings import Findings
    from tablesafe.methods.intervals.leaks import Leaks

LIBRARIES = ("numpy", "scipy", "polars", "duckdb", "highspy", "numba")
ROUNDING = 1e-9
"""Relative rounding error of a sum of published values."""


@dataclass(frozen=True, slots=True)
class Origin:
    """What the summary cannot know from the table: where it came from and how to make it again."""

    title: str = ""
    source: str = ""
    command: str = ""
    job: str = ""
    """The text of the job file: it holds rule parameters, so only the internal page shows it."""
    files: Mapping[str, str] = field(default_factory=dict)
    """SHA-256 of each input file, by name."""
    made: datetime | None = None
    seconds: Mapping[str, float] = field(default_factory=dict)
    """How long each stage of the run took."""
    elsewhere: str = ""
    """Where the whole table is, when the page shows only a part of it."""
    remark: str = ""
    """What could not be written beside the page, and why."""
    name_source: bool = False
    """Whether the public may know the name of the source; the office does in any case."""

    @property
    def for_the_public(self) -> Origin:
        """What the public may know of it."""
        source = self.source if self.name_source else ""
        return dataclasses.replace(self, source=source, job="", files={}, seconds={})


@dataclass(frozen=True, slots=True)
class RuleLine:
    """One rule: its name and what it is for; its parameters are a secret."""

    name: str
    what: str
    parameters: str = ""


@dataclass(frozen=True, slots=True)
class DimensionLine:
    """One dimension: how many codes and levels it has."""

    name: str
    codes: int
    levels: int
    total: str


@dataclass(frozen=True, slots=True)
class Solved:
    """How good the method's answer is. A secret: the objective adds up withheld values."""

    status: str
    objective: float | None
    bound: float | None
    gap: float | None
    """None when no bound is proven."""
    seconds: float
    warning: str = ""
    """What must be said about an answer far from its bound."""
    priced: str = ""
    """What each attacker costs."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Summary:
    """Everything that a page shows."""

    internal: bool
    language: Language
    """In which language its page is."""
    verdict: Judgement
    origin: Origin
    response: str
    cells: int
    equations: int
    contributors: int | None
    """How many contribute to the whole table: for the office."""
    dimensions: tuple[DimensionLine, ...]
    method: str
    what: str
    """What the method does."""
    additive: bool
    """Whether every published total is the sum of its published parts: as the public can see for itself."""
    solved: Solved | None
    rules: tuple[RuleLine, ...]
    given: bool
    """Whether which cells are sensitive was given with the table, without any rule."""
    reasons: tuple[tuple[str, int], ...]
    """Sensitive cells by what made them so: a secret."""
    sensitive: int | None
    statuses: tuple[StatusLine, ...]
    levels: tuple[LevelLine, ...]
    changes: Changes | None
    margins: Margins | None
    chance: str
    """What is believed about counts that were changed by chance: a secret."""
    attack: str
    """What the nearest guess of an intruder comes to: a secret."""
    attacks: tuple[AttackLine, ...]
    danger: tuple[DangerLine, ...]
    """The sensitive cells in most danger: a secret."""
    excerpt: Excerpt = field(repr=False)
    unasked: int
    """Withheld cells of which nobody computed what an attacker derives: for the office."""
    versions: tuple[tuple[str, str], ...]

    @property
    def withheld(self) -> int:
        """Cells that show no value, of those that were meant to be seen."""
        return sum(line.withheld for line in self.levels if line.dimension == self.levels[0].dimension)

    @property
    def may_differ(self) -> int:
        """Published cells whose value can differ from the true one."""
        return sum(line.may_differ for line in self.levels if line.dimension == self.levels[0].dimension)

    @property
    def open(self) -> tuple[OpenLine, ...]:
        """Ways in which cells are open."""
        return self.verdict.open


def summarise(
    problem: Problem, release: Release, findings: Findings | None, *, origin: Origin, internal: bool,
    scores: Scores | None = None, leaks: Leaks | None = None, intervals: bool = False,
    rows: str | None = None, columns: str | None = None, seen: Findings | None = None,
    language: Language = ENGLISH,
) -> Summary:  # fmt: skip
    """Collect what the page shows: everything for the office, or only what the public may know.

    `intervals` says that the office announces an interval for each changed value. `rows` and `columns` name the
    dimensions that the table is shown by; `seen` are findings that know more cells, for the table of the office.
    """
    table = release.table
    layout = (
        Layout.internal(problem, release, seen or findings, rows=rows, columns=columns, language=language)
        if internal
        else Layout.public(release, rows=rows, columns=columns, intervals=intervals, language=language)
    )
    scored = scores if internal else None
    return Summary(
        internal=internal,
        language=language,
        verdict=judge(problem, findings, leaks, internal=internal),
        origin=origin if internal else origin.for_the_public,
        response=_responses(table),
        cells=table.seen if internal else int((release.status != Status.BY_DESIGN).sum()),
        equations=table.equations.shape[0],
        contributors=_contributors(table) if internal else None,
        dimensions=tuple(_dimensions(table)),
        method=release.method,
        what=_what(release.method),
        additive=_adds_up(release),
        solved=_solved(release) if internal else None,
        rules=tuple(_rules(problem, internal)),
        given=not problem.rules and bool(len(problem.sensitive)),
        reasons=tuple(_reasons(problem)) if internal else (),
        sensitive=len(problem.sensitive) if internal else None,
        statuses=statuses(problem, release, internal=internal),
        levels=levels(problem, release, internal=internal),
        changes=changes(problem, release) if internal else None,
        margins=margins(findings) if internal and findings is not None and len(problem.sensitive) else None,
        chance=str(posterior(problem, release)) if internal and release.mechanism is not None else "",
        attack=scored.headline if scored is not None else "",
        attacks=attack_lines(scored) if scored is not None else (),
        danger=danger_lines(scored) if scored is not None else (),
        excerpt=Excerpt.of(layout),
        unasked=_unasked(layout),
        versions=tuple(_versions()),
    )


def _unasked(layout: Layout) -> int:
    """How many withheld cells there are of which nobody computed what an attacker derives."""
    view = layout.view
    return int(view.may_be_asked(np.arange(len(layout.table))).sum()) if isinstance(view, OfficeCells) else 0


def _what(name: str) -> str:
    """What a method does, in a sentence."""
    from tablesafe.methods import METHODS  # solvers and compilers come with it: only for pages of releases made here

    return (METHODS[name].__doc__ or "").splitlines()[0].replace("`", "") if name in METHODS else ""


def _adds_up(release: Release) -> bool:
    """Whether the published values keep every sum of which no cell is withheld."""
    equations, hidden = release.table.equations, release.suppressed
    whole = abs(equations).astype(np.int64) @ hidden.astype(np.int64) == 0
    gaps = np.abs((equations.astype(np.float64) @ np.nan_to_num(release.values))[whole])
    return not bool((gaps > ROUNDING * (1 + np.nanmax(np.abs(release.values), initial=0.0))).any())


def _solved(release: Release) -> Solved | None:
    """How the method ended; a bound of nothing is no bound."""
    found = release.solution
    if found is None:
        return None
    known = bool(np.isfinite(found.objective))
    proven = known and bool(np.isfinite(found.bound)) and not found.bound == 0 < found.objective
    return Solved(
        str(found.status),
        float(found.objective) if known else None,
        float(found.bound) if proven else None,
        float(found.gap) if proven else None,
        float(found.seconds),
        " ".join([*([found.warning] if found.warning else []), *found.notes]),
        found.priced,
    )


def _responses(table: Table) -> str:
    return ", ".join(table.dimensions[RESPONSE].codes) if RESPONSE in table.dimensions else table.response


def _contributors(table: Table) -> int | None:
    """How many contribute to the largest cell by count, which is the total where there is one."""
    return None if table.count is None else int(table.count.max(initial=0))


def _dimensions(table: Table) -> list[DimensionLine]:
    return [
        DimensionLine(name, len(tree), int(tree.depth.max(initial=0)) + 1, tree.total or "")
        for name, tree in table.dimensions.items()
    ]


def _rules(problem: Problem, internal: bool) -> list[RuleLine]:
    """The rules; the public sees each kind once, without parameters."""
    lines = [
        RuleLine(type(rule).__name__, _first_line(rule), parameters(rule) if internal else "") for rule in problem.rules
    ]
    return list(dict.fromkeys(lines))


def _reasons(problem: Problem) -> list[tuple[str, int]]:
    """How many cells each reason flagged; one cell may have several."""
    sensitivity = problem.sensitivity
    return [(name, int((sensitivity.reason >> np.uint32(j) & 1).sum())) for j, name in enumerate(sensitivity.reasons)]


def parameters(rule: Rule) -> str:
    """The options of a rule in one line."""
    specs: Any = dataclasses.fields(rule) if dataclasses.is_dataclass(rule) else ()
    return ", ".join(f"{spec.name} = {getattr(rule, spec.name)}" for spec in specs if spec.repr)


def _first_line(rule: Rule) -> str:
    return (type(rule).__doc__ or "").strip().partition("\n")[0].replace("`", "")


def _versions() -> list[tuple[str, str]]:
    found = [("tablesafe", tablesafe.__version__), ("Python", platform.python_version())]
    for name in LIBRARIES:
        try:
            found.append((name, metadata.version(name)))
        except metadata.PackageNotFoundError:
            continue
    return found
