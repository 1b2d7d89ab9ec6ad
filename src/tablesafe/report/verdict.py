"""The verdict of a report: what the audit says, in words; and how near guesses come, which stays in the office."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tablesafe.audit.verdict import Verdict, Word
from tablesafe.core.language import Text, text
from tablesafe.core.problem import Problem
from tablesafe.core.table import Table
from tablesafe.report.cells import interval, numbers

if TYPE_CHECKING:
    from tablesafe.attack.suite import Scores
    from tablesafe.audit.findings import Findings
    from tablesafe.methods.intervals.leaks import Leaks

OPEN_SHOWN = 50
"""How many open cells the internal page lists; the findings file has them all."""
DANGER_SHOWN = 12
"""How many of the cells nearest to being guessed."""
BETWEEN = " · "
"""Between the codes of a cell."""
UNAUDITED = "NOT AUDITED"


@dataclass(frozen=True, slots=True)
class OpenLine:
    """One way in which a cell is open: a secret."""

    cell: str
    how: str
    derived: str
    short: str
    attacker: str


@dataclass(frozen=True, slots=True)
class Judgement:
    """What the audit says, as the page shows it."""

    word: str
    """The word of the verdict, or that there was no audit."""
    passed: bool | None
    """Whether the release may be published; None where there was nothing to judge."""
    texts: tuple[Text, ...]
    """The lines of the verdict, word for word."""
    facts: tuple[tuple[str, Text | str], ...]
    open: tuple[OpenLine, ...] = ()
    more_open: int = 0
    possibly: tuple[str, ...] = ()
    """Cells that are possibly open, and what would settle them: a secret."""
    more_possibly: int = 0

    @property
    def lines(self) -> tuple[str, ...]:
        """The lines in English."""
        return tuple(map(str, self.texts))


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


def judge(problem: Problem, findings: Findings | None, leaks: Leaks | None, *, internal: bool) -> Judgement:
    """What the audit found, for the office or for the public."""
    if findings is None:
        return Judgement(UNAUDITED, None, (text("This release was not audited."),), ())
    verdict = findings.verdict if leaks is None else findings.verdict.with_intervals(leaking=leaks.leaking)
    told = Judgement(
        str(verdict.word), None if verdict.word is Word.NOTHING else verdict.safe, verdict.texts, _known(verdict)
    )
    if not internal:
        return told
    possibly = tuple(map(str, verdict.possibly))
    return replace(
        told,
        facts=(*told.facts, *_counts(problem, findings, leaks)),
        open=_open_lines(problem, findings),
        more_open=max(0, len(findings.open) - OPEN_SHOWN),
        possibly=possibly[:OPEN_SHOWN],
        more_possibly=max(0, len(possibly) - OPEN_SHOWN),
    )


def _known(verdict: Verdict) -> tuple[tuple[str, Text], ...]:
    """What the attacker is taken to know, and the verdict."""
    knows = text("knows every published value, every sum in and between the linked tables, and common bounds")
    word = text(str(verdict.word))
    return ("Attacker", knows), ("Result", word if verdict.safe else text("{word}: not safe", word=word))


def _counts(problem: Problem, findings: Findings, leaks: Leaks | None) -> list[tuple[str, Text | str]]:
    """How much of what was looked at holds: for the office."""
    facts: list[tuple[str, Text | str]] = []
    sensitive = problem.sensitivity.mask[findings.cells]
    if sensitive.any():
        protected = int(findings.protected[sensitive].sum())
        told = text(
            "{protected:,} of {all:,} sensitive cells, from outsiders", protected=protected, all=int(sensitive.sum())
        )
        facts.append(("Hidden", told))
    ways = len(findings.open)
    told = text("1 way to come too close") if ways == 1 else text("{number:,} ways to come too close", number=ways)
    facts.append(("Open", told))
    if findings.possible:
        facts.append(
            ("Possibly open", text("ways to come too close: {number:,}", number=len(findings.verdict.possibly)))
        )
    if leaks is not None:
        facts.append(("Intervals", str(leaks)))
    if findings.certificate is not None:
        many = findings.certificate.witnesses
        one, several = "1 witness table in exact arithmetic", "{number:,} witness tables in exact arithmetic"
        facts.append(("Proof", text(one) if many == 1 else text(several, number=many)))
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


def _finite(number: Any) -> float | None:
    return None if number is None or not np.isfinite(number) else float(number)
