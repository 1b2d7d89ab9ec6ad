"""The verdict of a report: what the audit says, in words; and how near guesses come, which stays in the office."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tablesafe.problem import Problem
from tablesafe.report.cells import interval, numbers
from tablesafe.table import Table

if TYPE_CHECKING:
    from tablesafe.attack.scores import Scores
    from tablesafe.audit.findings import Findings
    from tablesafe.methods.intervals.leaks import Leaks

OPEN_SHOWN = 50
"""How many open cells the internal page lists; the findings file has them all."""
DANGER_SHOWN = 12
"""How many of the cells nearest to being guessed."""
BETWEEN = " · "
"""Between the codes of a cell."""
SAFE, OPEN, NOTHING, UNAUDITED = "safe", "open", "nothing to judge", "not audited"


@dataclass(frozen=True, slots=True)
class OpenLine:
    """One way in which a cell is open: a secret."""

    cell: str
    how: str
    derived: str
    short: str
    attacker: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the audit says."""

    word: str
    """safe, open, nothing to judge, or not audited."""
    headline: str
    facts: tuple[tuple[str, str], ...]
    open: tuple[OpenLine, ...] = ()
    more_open: int = 0


@dataclass(frozen=True, slots=True)
class AttackLine:
    """How near one way to guess comes: a secret."""

    name: str
    disclosed: int
    sensitive: int
    share: float
    median_error: float | None
    median_variation: float | None
    seconds: float
    note: str


@dataclass(frozen=True, slots=True)
class DangerLine:
    """A sensitive cell that guesses come near to: a secret."""

    cell: str
    value: str
    guess: str
    """Empty when no attack guessed at it."""
    attack: str
    disclosed_by: int
    attacks: int
    exactly: bool


def judge(problem: Problem, findings: Findings | None, leaks: Leaks | None, *, internal: bool) -> Verdict:
    """What the audit found, for the office or for the public."""
    if findings is None:
        return Verdict(UNAUDITED, "This release was not audited.", (("Audit", "none"),))
    opened = _open_lines(problem, findings) if internal else ()
    more = max(0, len(findings.open) - OPEN_SHOWN) if internal else 0
    leaking = leaks is not None and not leaks.safe
    word = OPEN if leaking or not findings.safe else SAFE if _anything(problem) else NOTHING
    headline = _headline(findings, leaks, word, internal)
    facts = tuple(_facts(problem, findings, leaks, word, internal))
    return Verdict(word, headline, facts, opened, more)


def _anything(problem: Problem) -> bool:
    """Whether anybody said what is to be protected."""
    return bool(problem.rules) or bool(len(problem.sensitive))


def _headline(findings: Findings, leaks: Leaks | None, word: str, internal: bool) -> str:
    if word == NOTHING:
        return "No rule says which cells are sensitive, so the audit had nothing to judge."
    if word == SAFE:
        proved = "" if findings.certificate is None else " A certificate in exact arithmetic proves it."
        return f"Nobody who sees this release can come closer to a sensitive cell than the rules allow.{proved}"
    if findings.not_proved and not findings.open and (leaks is None or leaks.safe):
        return "Not proved: some of the linked tables were not examined together."
    if not internal:
        return "This release did not pass its audit: some sensitive cells can be derived too closely."
    if findings.safe:
        return str(leaks)
    cells = len({opening.cell for opening in findings.open})
    return f"{counted(cells, 'cell')} can be derived too closely from this release."


def _facts(
    problem: Problem, findings: Findings, leaks: Leaks | None, word: str, internal: bool
) -> list[tuple[str, str]]:
    facts = [
        ("Attacker", "knows every published value, every sum in and between the linked tables, and common bounds"),
        ("Insiders", "not looked at" if findings.insiders is None else "respondents that know what they reported"),
        ("Sums", "not looked at" if findings.unions is None else "sums of withheld cells that can be derived"),
        *(("Not examined together", str(each)) for each in problem.table.apart),
        ("Result", "not safe" if word == OPEN else word),
    ]
    if problem.table.without_sums:
        facts.append(("Published alone", problem.table.without_sums))
    if not internal:
        return facts
    sensitive = problem.sensitivity.mask[findings.cells]
    if sensitive.any():
        protected = int(findings.protected[sensitive].sum())
        facts.append(("Outsiders", f"{protected:,} of {int(sensitive.sum()):,} sensitive cells are hidden from them"))
    else:
        facts.append(("Outsiders", "no cell is sensitive"))
    facts.append(("Open", counted(len(findings.open), "way") + " to come too close"))
    if findings.possible:
        more = counted(len(findings.possible), "way") + " more, if contributors that are not listed are large"
        facts.append(("Possible", f"{more}: keep more of them (largest = … in [source])"))
    if leaks is not None:
        facts.append(("Intervals", str(leaks)))
    if findings.certificate is not None:
        facts.append(("Proof", counted(findings.certificate.witnesses, "witness table") + " in exact arithmetic"))
    return facts


def _open_lines(problem: Problem, findings: Findings) -> tuple[OpenLine, ...]:
    digits = problem.table.decimals
    return tuple(
        OpenLine(
            opening.name.strip("()'") if opening.how == "sum" else cell_codes(problem.table, opening.cell),
            str(opening.how),
            interval(opening.lower, opening.upper, digits),
            f"{opening.short:,.{digits}f}",
            opening.attacker,
        )
        for opening in findings.open[:OPEN_SHOWN]
    )


def attack_lines(scores: Scores) -> tuple[AttackLine, ...]:
    """One line per attack."""
    return tuple(
        AttackLine(
            row["attack"], row["disclosed"], row["sensitive"], row["share"], _finite(row["median relative error"]),
            _finite(row["median coefficient of variation"]), row["seconds"], row["note"],
        )
        for row in scores.frame().to_dicts()
    )  # fmt: skip


def danger_lines(scores: Scores) -> tuple[DangerLine, ...]:
    """The sensitive cells that guesses come nearest to."""
    table = scores.estimates[0].problem.table
    names = list(table.code_columns())
    return tuple(
        DangerLine(
            BETWEEN.join(str(row[name]) for name in names), _shown(row["true value"], table.decimals),
            _shown(row["nearest guess"], table.decimals), row["nearest attack"], row["disclosed by"], row["attacks"],
            row["known exactly"],
        )
        for row in scores.ranking().head(DANGER_SHOWN).to_dicts()
    )  # fmt: skip


def cell_codes(table: Table, cell: int) -> str:
    """A cell by its codes alone, in the order of the dimensions."""
    if table.names is not None:
        return str(table.names[cell])
    trees = table.dimensions.values()
    return BETWEEN.join(tree.codes[at] for tree, at in zip(trees, table.codes[cell].tolist(), strict=True))


def _shown(number: float | None, decimals: int) -> str:
    return "" if number is None else numbers(np.array([number]), decimals)[0]


def counted(number: int, noun: str) -> str:
    """So many things, in words."""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def _finite(number: Any) -> float | None:
    return None if number is None or not np.isfinite(number) else float(number)
