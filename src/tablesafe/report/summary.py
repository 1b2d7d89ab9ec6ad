"""What a run did, in numbers and words, for the public and for the office.

The public page may say nothing that the release does not say: no rule parameters, no split between sensitive and
complementary cells, no sum of withheld values. The internal page says it all.
"""

from __future__ import annotations

import dataclasses
import platform
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from importlib import metadata
from textwrap import shorten
from typing import TYPE_CHECKING, Any

import numpy as np

import tablesafe
from tablesafe.equations import Mask
from tablesafe.linking import RESPONSE
from tablesafe.posterior import posterior
from tablesafe.problem import Problem
from tablesafe.release import Release, Status
from tablesafe.rules.sensitivity import Rule
from tablesafe.solve.program import Solution
from tablesafe.table import Table

if TYPE_CHECKING:
    from tablesafe.attack.scores import Scores
    from tablesafe.audit.findings import Findings

LIBRARIES = ("numpy", "scipy", "polars", "duckdb", "highspy", "numba")
ROUNDING = 1e-9
"""Relative rounding error of a sum of published values."""
OPEN_SHOWN = 50
"""How many open cells the internal page lists; the findings file has them all."""


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


@dataclass(frozen=True, slots=True)
class RuleLine:
    """One rule: its name and what it is for; its parameters are a secret."""

    name: str
    what: str
    parameters: str = ""


@dataclass(frozen=True, slots=True)
class LevelLine:
    """The cells at one level of one dimension."""

    dimension: str
    level: str
    codes: int
    cells: int
    withheld: int
    sensitive: int | None


@dataclass(frozen=True, slots=True)
class StatusLine:
    """How many cells were published, withheld or changed; the share of the table's value is a secret."""

    word: str
    cells: int
    share: float
    value_share: float | None = None


@dataclass(frozen=True, slots=True)
class AttackLine:
    """How near one way to guess comes: a secret."""

    name: str
    disclosed: str
    share: float
    error: str
    variation: str
    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """Everything that a page shows."""

    internal: bool
    verdict: str
    headline: str
    origin: Origin
    response: str
    cells: int
    equations: int
    method: str
    additive: bool
    """Whether every published total is the sum of its published parts: as the public can see for itself."""
    solution: str
    rules: tuple[RuleLine, ...]
    reasons: tuple[tuple[str, int], ...]
    """Sensitive cells by what made them so: a secret."""
    sensitive: int | None
    levels: tuple[LevelLine, ...]
    statuses: tuple[StatusLine, ...]
    audit: tuple[tuple[str, str], ...]
    open: tuple[Mapping[str, str], ...]
    more_open: int
    chance: str
    """What is believed about counts that were changed by chance: a secret."""
    attack: str
    """What the nearest guess of an intruder comes to: a secret."""
    attacks: tuple[AttackLine, ...]
    versions: tuple[tuple[str, str], ...]


def summarise(
    problem: Problem, release: Release, findings: Findings | None, *, origin: Origin, internal: bool,
    scores: Scores | None = None,
) -> Summary:  # fmt: skip
    """Collect what the page shows: everything for the office, or only what the public may know."""
    table = problem.table
    solution = release.solution
    opened = _open_cells(problem, findings) if internal and findings is not None else []
    return Summary(
        internal=internal,
        verdict="not audited" if findings is None else "safe" if findings.safe else "open",
        headline=_headline(problem, findings, internal),
        origin=origin if internal else dataclasses.replace(origin, job="", files={}),
        response=_responses(table),
        cells=len(table),
        equations=table.equations.shape[0],
        method=_method(release.method),
        additive=_adds_up(release),
        solution=""
        if solution is None or not internal
        else f"{solution.status}, {_gap(solution)}, {solution.seconds:.1f} s",
        rules=tuple(_rules(problem, internal)),
        reasons=tuple(_reasons(problem)) if internal else (),
        sensitive=len(problem.sensitive) if internal else None,
        levels=tuple(_levels(problem, release.suppressed, internal)),
        statuses=tuple(_statuses(table, release, internal)),
        audit=tuple(_audit(problem, findings, internal)),
        open=tuple(opened),
        more_open=0 if findings is None or not internal else max(0, len(findings.open) - OPEN_SHOWN),
        chance=str(posterior(problem, release)) if internal and release.mechanism is not None else "",
        attack=scores.headline if internal and scores is not None else "",
        attacks=tuple(_attacks(scores)) if internal and scores is not None else (),
        versions=tuple(_versions()),
    )


def _method(name: str) -> str:
    """The method by its name, with what it does in a sentence."""
    from tablesafe.methods import METHODS  # solvers and compilers come with it: only for pages of releases made here

    what = (METHODS[name].__doc__ or "").splitlines()[0].replace("`", "") if name in METHODS else ""
    return f"{name}: {what[:1].lower()}{what[1:].removesuffix('.')}" if what else name


def _adds_up(release: Release) -> bool:
    """Whether the published values keep every sum of which no cell is withheld."""
    equations, hidden = release.table.equations, release.suppressed
    whole = abs(equations).astype(np.int64) @ hidden.astype(np.int64) == 0
    gaps = np.abs((equations.astype(np.float64) @ np.nan_to_num(release.values))[whole])
    return not bool((gaps > ROUNDING * (1 + np.nanmax(np.abs(release.values), initial=0.0))).any())


def _headline(problem: Problem, findings: Findings | None, internal: bool) -> str:
    if findings is None:
        return "This release was not audited."
    if findings.safe and not problem.rules and not len(problem.sensitive):
        return "No rule was applied, so no cell was called sensitive: there was nothing to come too close to."
    if findings.safe:
        proved = "" if findings.certificate is None else " Exact tables prove it."
        return f"Nobody who sees this release can come closer to a sensitive cell than the rules allow.{proved}"
    if not internal:
        return "This release did not pass its audit."
    cells = len({opening.cell for opening in findings.open})
    return f"{_counted(cells, 'cell')} can be derived too closely from this release."


def _gap(solution: Solution) -> str:
    """How far the answer can be from the best; no bound is no gap of 100%."""
    unproven = solution.bound == 0 < solution.objective
    return "no bound proven" if unproven else f"gap {solution.gap:.2%}"


def _responses(table: Table) -> str:
    return ", ".join(table.dimensions[RESPONSE].codes) if RESPONSE in table.dimensions else table.response


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


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


def _levels(problem: Problem, withheld: Mask, internal: bool) -> list[LevelLine]:
    """Cells, withheld and sensitive cells by the depth of their code in each dimension."""
    table, lines = problem.table, []
    for d, (name, hierarchy) in enumerate(table.dimensions.items()):
        depth = hierarchy.depth[table.codes[:, d]]
        for level in range(int(hierarchy.depth.max(initial=0)) + 1):
            here = depth == level
            codes = [code for code, at in zip(hierarchy.codes, hierarchy.depth, strict=True) if at == level]
            shown = shorten(", ".join(codes[:6]), 28, placeholder=" …")
            sensitive = int((problem.sensitivity.mask & here).sum()) if internal else None
            lines.append(LevelLine(name, shown, len(codes), int(here.sum()), int((withheld & here).sum()), sensitive))
    return lines


def _statuses(table: Table, release: Release, internal: bool) -> list[StatusLine]:
    shown = release.status != Status.BY_DESIGN
    n = max(1, int(shown.sum()))
    if not internal:
        hidden = release.suppressed & shown
        words = {"published": shown & ~hidden, "withheld": hidden}
        return [StatusLine(word, int(mask.sum()), int(mask.sum()) / n) for word, mask in words.items()]
    total = float(np.abs(table.value).sum()) or 1.0
    lines = []
    for status in Status:
        mask = release.status == status
        if mask.any():
            value = float(np.abs(table.value[mask]).sum()) / total
            lines.append(StatusLine(status.word, int(mask.sum()), int(mask.sum()) / len(table), value))
    return lines


def _audit(problem: Problem, findings: Findings | None, internal: bool) -> list[tuple[str, str]]:
    if findings is None:
        return [("Audit", "none")]
    facts = [
        ("Attacker", "knows every published value, every sum in and between the linked tables, and common bounds"),
        ("Insiders", "not looked at" if findings.insiders is None else "respondents that know what they reported"),
        ("Sums", "not looked at" if findings.unions is None else "sums of withheld cells that can be derived"),
        ("Result", "safe" if findings.safe else "open"),
    ]
    if internal:
        sensitive = problem.sensitivity.mask[findings.cells]
        protected = int(findings.protected[sensitive].sum())
        facts.append(("Outsiders", f"{protected:,} of {int(sensitive.sum()):,} sensitive cells are hidden from them"))
        facts.append(("Open", _counted(len(findings.open), "way") + " to come too close"))
        if findings.possible:
            more = _counted(len(findings.possible), "way") + " more, if contributors that are not listed are large"
            facts.append(("Possible", f"{more}: keep more of them (largest = … in [source])"))
        if findings.certificate is not None:
            facts.append(("Proof", _counted(findings.certificate.witnesses, "witness table") + " in exact arithmetic"))
    return facts


def _attacks(scores: Scores) -> list[AttackLine]:
    """One line per attack."""
    return [
        AttackLine(
            row["attack"],
            f"{row['disclosed']:,} of {row['sensitive']:,}",
            row["share"],
            _percent(row["median relative error"]),
            _percent(row["median coefficient of variation"]),
            row["note"],
        )
        for row in scores.frame().to_dicts()
    ]


def _percent(share: float | None) -> str:
    return "" if share is None else "∞" if share == np.inf else f"{share:.1%}"


def _open_cells(problem: Problem, findings: Findings) -> list[Mapping[str, str]]:
    digits = problem.table.decimals
    return [
        {
            "cell": opening.name,
            "how": str(opening.how),
            "derived": _interval(opening.lower, opening.upper, digits),
            "short": f"{opening.short:,.{digits}f}",
            "attacker": opening.attacker,
        }
        for opening in findings.open[:OPEN_SHOWN]
    ]


def _interval(lower: float, upper: float, digits: int) -> str:
    ends = ["∞" if end == np.inf else "−∞" if end == -np.inf else f"{end:,.{digits}f}" for end in (lower, upper)]
    return ends[0] if ends[0] == ends[1] else " to ".join(ends)


def _versions() -> list[tuple[str, str]]:
    found = [("tablesafe", tablesafe.__version__), ("Python", platform.python_version())]
    for name in LIBRARIES:
        try:
            found.append((name, metadata.version(name)))
        except metadata.PackageNotFoundError:
            continue
    return found


def render(summary: Summary) -> str:
    """The summary as one HTML page that needs nothing else: no network, no scripts, no fonts."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("tablesafe.report", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("page.html.jinja").render(summary=summary)
