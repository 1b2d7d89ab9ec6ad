"""The verdict of an audit: one word, and line by line what was examined and how far that goes.

It is made here and nowhere else. Console, log, JSON, report, web app and certificate repeat its lines word for word.
They hold no number that must stay in the office, and no name of a cell that is open: cells that are possibly open are
listed apart.

The ways in which a cell can be open, and to whom.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING

import numpy as np

from tablesafe.audit.respondent_knowledge import Lists

if TYPE_CHECKING:
    from tablesafe.audit.findings import Findings


OUTSIDER = "anyone who sees the release"


class How(StrEnum):
    """In which way a cell is open."""

    PUBLISHED = "published"
    """The release shows it."""
    EXACT = "exact"
    """The release does not show it, but gives it away."""
    LOWER = "lower"
    """It can be bounded from below too closely."""
    UPPER = "upper"
    """It can be bounded from above too closely."""
    WIDTH = "width"
    """The whole interval is too narrow."""
    UNPROVED = "unproved"
    """A solver says it is protected, but no exact table was found that proves it."""
    SUM = "sum"
    """A sum of withheld cells can be derived, and fails a rule itself."""


@dataclass(frozen=True, slots=True)
class Opening:
    """One way in which one sensitive cell, or a sum of withheld cells, is open."""

    cell: int
    """The cell; of a sum, its first."""
    name: str
    how: How
    short: float
    """How much further the interval would have to reach, in the table's unit."""
    lower: float
    """What the attacker derives."""
    upper: float
    attacker: str = OUTSIDER
    certain: bool = True
    """False when it takes contributions that the table does not list, but that are possible."""
    because: str = ""
    """How it follows, where that was found along the way."""

    def __str__(self) -> str:
        return f"{self.name}: {self.how}, open to {self.attacker}"


# -- the verdict -------------------------------------------------------------------------------------------------------


MOST_LISTED = 1_000
"""Contributors of a cell that `tabulate` can keep."""


class Word(StrEnum):
    """The verdict in a word."""

    SAFE = "SAFE"
    """Every sensitive cell is protected from every attacker who was examined."""
    OPEN = "OPEN"
    """Somebody comes too close to a sensitive cell."""
    POSSIBLY_OPEN = "POSSIBLY OPEN"
    """Nothing is known to be open, but contributors that the table does not list may open something."""
    NOT_PROVED = "NOT PROVED"
    """Nothing is known to be open, but not all of it is proved to be protected."""
    NOTHING = "NOTHING TO JUDGE"
    """Nobody said what is sensitive."""


@dataclass(frozen=True, slots=True)
class PossiblyOpen:
    """A cell that the table does not tell enough about: confidential."""

    cell: str
    attacker: str
    settled_by: str
    """What the audit would have to be given to decide it."""

    def __str__(self) -> str:
        return f"{self.cell}: possibly open to {self.attacker}; to settle it: {self.settled_by}"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the audit says of a release, in a word and in lines that may be published with it."""

    word: Word
    lines: tuple[str, ...]
    """Outsiders, respondents, sums; then what limits the proof, if anything does."""
    possibly: tuple[PossiblyOpen, ...] = ()
    """Cells that are open only if contributors that are not listed are large: confidential."""

    @property
    def safe(self) -> bool:
        """Whether the release may be published: nothing is open, or was left unproved without being chosen."""
        return self.word in {Word.SAFE, Word.NOTHING}

    def with_intervals(self, *, leaking: bool) -> Verdict:
        """The verdict on a release that also publishes intervals, which were attacked on their own."""
        what = "they give more away than the rules allow" if leaking else "they give nothing more away"
        lines = (*self.lines, f"published intervals: attacked on their own; {what}.")
        return replace(self, word=Word.OPEN if leaking else self.word, lines=lines)

    def __str__(self) -> str:
        return "\n".join([str(self.word), *self.lines])


def verdict_of(findings: Findings) -> Verdict:
    """The verdict that follows from what an audit examined and proved."""
    return Verdict(
        _word(findings),
        (
            f"outsiders: {_outsiders(findings)}",
            f"respondents: {_respondents(findings)}",
            f"sums: {_sums(findings)}",
            *_limits(findings),
        ),
        _possibly(findings),
    )


def _word(findings: Findings) -> Word:
    if any(opening.how is not How.UNPROVED for opening in findings.open):
        return Word.OPEN
    if findings.open or findings.not_proved:
        return Word.NOT_PROVED
    if findings.failing:
        return Word.POSSIBLY_OPEN
    problem = findings.problem
    return Word.SAFE if problem.rules or len(problem.sensitive) else Word.NOTHING


# -- the three lines ---------------------------------------------------------------------------------------------------


def _outsiders(findings: Findings) -> str:
    problem = findings.problem
    if not len(problem.sensitive):
        return "no cell is sensitive." if problem.rules else "no rule was applied, so no cell is sensitive."
    who = OUTSIDER
    if findings.release.judged is not None:
        who += ", even knowing what inner cells not shown were changed to"
    if findings.apart:
        who += " and takes linked tables that were not examined together one by one"
    found = [each for each in findings.open if each.attacker == OUTSIDER and each.how is not How.SUM]
    if any(each.how is not How.UNPROVED for each in found):
        return f"sensitive cells are open to {who}."
    if found:
        return f"not proved: nothing shows that every sensitive cell is hidden from {who} as far as the rules ask."
    if findings.certificate is None:
        how = "found by linear programs, no proof was made."
    else:
        how = "proved in exact arithmetic, by tables that agree with the release."
    return f"every sensitive cell is hidden from {who} as far as the rules ask; {how}"


def _respondents(findings: Findings) -> str:
    insiders = findings.insiders
    if insiders is None:
        return "not examined, because the audit was asked to leave them out."
    if not insiders.examined:
        return "not examined, the table does not tell them."
    if not len(findings.problem.sensitive):
        return "no cell is sensitive."
    if not insiders.checked:
        return "not examined, because no sensitive cell is hidden from outsiders."
    who = (
        "each by itself, no coalitions"
        if insiders.coalition == 1
        else f"alone and in coalitions of up to {insiders.coalition}"
    )
    examined = f"examined, every contributor to withheld cells that the table tells of, {who}, knowing its own part"
    told = []
    if any(insider.certain for insider in insiders.found):
        told.append("sensitive cells are open to some of them")
    if insiders.unsearched:
        told.append("not proved for all cells: there are more coalitions than could be looked at")
    if insiders.late:
        told.append("not proved for all cells: the time was over before all respondents were looked at")
    if any(not insider.certain for insider in insiders.found):
        told.append(_if_large(findings, "sensitive cells"))
    if not told:
        told.append("none comes closer to a sensitive cell than the rules allow")
    if not findings.protected.all():
        told.append("cells that are open to outsiders were not looked at again")
    return f"{examined}: {'; '.join(told)}."


def _sums(findings: Findings) -> str:
    unions = findings.unions
    if unions is None:
        return "not examined, because the audit was asked to leave them out."
    if not unions.examined:
        return "not examined, there are protection levels only, and no rule that could judge a sum."
    told = []
    if any(union.certain for union in unions.failed):
        told.append("some fail a rule")
    if any(not union.certain for union in unions.failed):
        told.append(_if_large(findings, "sums"))
    if unions.late:
        told.append("not proved: the time was over before all were searched for")
    if not told:
        told.append("none fails a rule" if unions.sums else "none was found")
    return f"those of withheld cells that can be derived were searched for ({unions.searched}): {'; '.join(told)}."


def _if_large(findings: Findings, what: str) -> str:
    accepted = "" if findings.possibly == "open" else ", which was accepted (possibly = accept)"
    return f"{what} are possibly open, if contributors that the table does not list are large{accepted}"


# -- what limits the proof ---------------------------------------------------------------------------------------------


def _limits(findings: Findings) -> list[str]:
    """What was not looked at, or only in part."""
    table = findings.problem.table
    told = [f"published alone: {table.without_sums}"] if table.without_sums else []
    if findings.late and not bool(findings.protected.all()):
        told.append("time: it was over before all was decided; cells not proved to be hidden may be so.")
    told += [f"not examined together: {each}" for each in findings.apart]
    if table.unseen is not None:
        told.append(
            f"unseen cells: {len(table) - table.seen:,} of the cross-classification that linked tables are margins of; "
            f"{_judged_unseen(findings)}"
        )
        if findings.system.is_large:
            told.append(
                "unseen cells: so many that most were held at their values to prove cells protected, and to look at "
                "respondents: what is called open may not be; sums were looked for among shown cells."
            )
    return told


def _judged_unseen(findings: Findings) -> str:
    problem = findings.problem
    if not problem.table.judged:
        return (
            "who contributes to them is not known, so that no rule was applied to them and no respondent is taken to "
            "know of them."
        )
    left = "; some are sensitive that were asked about by bounds only" if problem.unjudged else ""
    return f"those that are sensitive were judged like cells that are shown{left}."


# -- possibly open -----------------------------------------------------------------------------------------------------


def _possibly(findings: Findings) -> tuple[PossiblyOpen, ...]:
    if not findings.possible:
        return ()
    settled_by = _settled_by(findings)
    return tuple(PossiblyOpen(_named(each), each.attacker, settled_by) for each in _one_each(findings.possible))


def _named(opening: Opening) -> str:
    return f"{opening.name} ({opening.because})" if opening.how is How.SUM else opening.name


def _one_each(openings: Sequence[Opening]) -> list[Opening]:
    """The openings without those that differ only in the side from which a cell is too close."""
    return list({(each.name, each.because, each.attacker): each for each in openings}.values())


def _settled_by(findings: Findings) -> str:
    """What the audit would have to be given to decide what is possibly open."""
    table = findings.problem.table
    lists = Lists.of(table)
    listed = 0 if table.contributors is None else table.contributors.depth
    if lists is None or not listed:
        return "the contributors of each cell, from the records (tabulate with respondent=… and largest=…)"
    most = int(np.max(lists.everyone[findings.system.cells], initial=0))
    if most > MOST_LISTED:
        return f"the records: some withheld cells have {most:,} contributors, and {listed:,} of each are listed"
    if most > listed:
        return f"more contributors listed: largest = {most} lists all of every withheld cell, now it is {listed}"
    return "who the contributors are, the same name in every cell (respondent=…), from the records"
