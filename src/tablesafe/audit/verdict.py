"""The verdict of an audit: one word, and line by line what was examined and how far that goes.

It is made here and nowhere else. Console, log, JSON, report, web app and certificate repeat its lines word for word,
or as a catalogue has them in another language (`core.language`).
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
from tablesafe.core.language import Text, joined, text

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
    texts: tuple[Text, ...]
    """Outsiders, respondents, sums; then what limits the proof, if anything does."""
    possibly: tuple[PossiblyOpen, ...] = ()
    """Cells that are open only if contributors that are not listed are large: confidential."""

    @property
    def lines(self) -> tuple[str, ...]:
        """The lines in English."""
        return tuple(map(str, self.texts))

    @property
    def safe(self) -> bool:
        """Whether the release may be published: nothing is open, or was left unproved without being chosen."""
        return self.word in {Word.SAFE, Word.NOTHING}

    def with_intervals(self, *, leaking: bool) -> Verdict:
        """The verdict on a release that also publishes intervals, which were attacked on their own."""
        what = text("they give more away than the rules allow" if leaking else "they give nothing more away")
        told = text("published intervals: attacked on their own; {what}.", what=what)
        return replace(self, word=Word.OPEN if leaking else self.word, texts=(*self.texts, told))

    def __str__(self) -> str:
        return "\n".join([str(self.word), *self.lines])


def verdict_of(findings: Findings) -> Verdict:
    """The verdict that follows from what an audit examined and proved."""
    return Verdict(
        _word(findings),
        (
            text("outsiders: {what}", what=_outsiders(findings)),
            text("respondents: {what}", what=_respondents(findings)),
            text("sums: {what}", what=_sums(findings)),
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


def _outsiders(findings: Findings) -> Text:
    problem = findings.problem
    if not len(problem.sensitive):
        return text("no cell is sensitive." if problem.rules else "no rule was applied, so no cell is sensitive.")
    who = [text(OUTSIDER)]
    if findings.release.judged is not None:
        who.append(text(", even knowing more about what was changed than the release tells"))
    if findings.apart:
        who.append(text(" and takes linked tables that were not examined together one by one"))
    whom = joined("", who)
    found = [each for each in findings.open if each.attacker == OUTSIDER and each.how is not How.SUM]
    if any(each.how is not How.UNPROVED for each in found):
        return text("sensitive cells are open to {whom}.", whom=whom)
    if found:
        return text(
            "not proved: nothing shows that every sensitive cell is hidden from {whom} as far as the rules ask.",
            whom=whom,
        )
    if findings.certificate is None:
        how = text("found by linear programs, no proof was made.")
    else:
        how = text("proved in exact arithmetic, by tables that agree with the release.")
    return text("every sensitive cell is hidden from {whom} as far as the rules ask; {how}", whom=whom, how=how)


def _respondents(findings: Findings) -> Text:
    insiders = findings.insiders
    if insiders is None:
        return text("not examined, because the audit was asked to leave them out.")
    if not insiders.examined:
        return text("not examined, the table does not tell them.")
    if not len(findings.problem.sensitive):
        return text("no cell is sensitive.")
    if not insiders.checked:
        return text("not examined, because no sensitive cell is hidden from outsiders.")
    who = (
        text("each by itself, no coalitions")
        if insiders.coalition == 1
        else text("alone and in coalitions of up to {number}", number=insiders.coalition)
    )
    told = []
    if any(insider.certain for insider in insiders.found):
        told.append(text("sensitive cells are open to some of them"))
    if insiders.unsearched:
        told.append(text("not proved for all cells: there are more coalitions than could be looked at"))
    if insiders.late:
        told.append(text("not proved for all cells: the time was over before all respondents were looked at"))
    if any(not insider.certain for insider in insiders.found):
        told.append(_if_large(findings, "sensitive cells"))
    if not told:
        told.append(text("none comes closer to a sensitive cell than the rules allow"))
    if not findings.protected.all():
        told.append(text("cells that are open to outsiders were not looked at again"))
    return text(
        "examined, every contributor to withheld cells that the table tells of, {who}, knowing its own part: {told}.",
        who=who,
        told=joined("; ", told),
    )


def _sums(findings: Findings) -> Text:
    unions = findings.unions
    if unions is None:
        return text("not examined, because the audit was asked to leave them out.")
    if not unions.examined:
        return text("not examined, there are protection levels only, and no rule that could judge a sum.")
    told = []
    if any(union.certain for union in unions.failed):
        told.append(text("some fail a rule"))
    if any(not union.certain for union in unions.failed):
        told.append(_if_large(findings, "sums"))
    if unions.late:
        told.append(text("not proved: the time was over before all were searched for"))
    if not told:
        told.append(text("none fails a rule" if unions.sums else "none was found"))
    return text(
        "those of withheld cells that can be derived were searched for ({searched}): {told}.",
        searched=unions.search,
        told=joined("; ", told),
    )


def _if_large(findings: Findings, what: str) -> Text:
    accepted = "" if findings.possibly == "open" else text(", which was accepted (possibly = accept)")
    return text(
        "{what} are possibly open, if contributors that the table does not list are large{accepted}",
        what=text(what),
        accepted=accepted,
    )


# -- what limits the proof ---------------------------------------------------------------------------------------------


def _limits(findings: Findings) -> list[Text]:
    """What was not looked at, or only in part."""
    table = findings.problem.table
    told = [text("published alone: {what}", what=table.without_sums)] if table.without_sums else []
    if findings.late and not bool(findings.protected.all()):
        told.append(text("time: it was over before all was decided; cells not proved to be hidden may be so."))
    told += [text("not examined together: {what}", what=str(each)) for each in findings.apart]
    if table.unseen is not None:
        told.append(
            text(
                "unseen cells: {number:,} of the cross-classification that linked tables are margins of; {judged}",
                number=len(table) - table.seen,
                judged=_judged_unseen(findings),
            )
        )
        if findings.system.is_large:
            told.append(
                text(
                    "unseen cells: so many that most were held at their values to prove cells protected, and to look "
                    "at respondents: what is called open may not be; sums were looked for among shown cells."
                )
            )
    if _not_crossed(findings):
        told.append(
            text(
                "respondents: that one of them is alone in a combination of codes which none of the linked tables "
                "shows, and they do not need, was not taken to be known to it."
            )
        )
    return told


def _not_crossed(findings: Findings) -> bool:
    """Whether respondents were looked at, and some dimensions are crossed neither by a table nor by unseen cells."""
    table, insiders = findings.problem.table, findings.insiders
    if insiders is None or not insiders.examined or not insiders.checked or table.names is not None:
        return False
    spans = np.zeros(len(table), dtype=np.int64)
    for d, tree in enumerate(table.dimensions.values()):
        roots = np.array([tree.position(code) for code in tree.roots])
        spans |= (~np.isin(table.codes[:, d], roots)).astype(np.int64) << d
    return int(np.bitwise_or.reduce(spans, initial=0)) not in set(np.unique(spans).tolist())


def _judged_unseen(findings: Findings) -> Text:
    problem = findings.problem
    if findings.unseen_parts:
        accepted = "" if findings.possibly == "open" else text(", which was accepted (possibly = accept)")
        return text(
            "who contributes to them is not known, so that no rule was applied to them, and nothing is proved about "
            "respondents who know their own part of them{accepted}; records would tell it, tabulated into all these "
            "tables at once.",
            accepted=accepted,
        )
    if not problem.table.judged and findings.worked_out == 0:
        return text("who contributes to them is not known, so that no rule was applied to them.")
    if not problem.table.judged:
        accepted = "" if findings.possibly == "open" else text(", which was accepted (possibly = accept)")
        known = "some can be worked out" if findings.worked_out else "there are too many to see which can be worked out"
        return text(
            "who contributes to them is not known, so that no rule was applied to them, and {known}{accepted}; records "
            "would tell it, tabulated into all these tables at once.",
            known=text(known),
            accepted=accepted,
        )
    accepted = "" if findings.possibly == "open" else text(", which was accepted (possibly = accept)")
    unproved = text(
        "; nothing shows that {number:,} of them are hidden as far as the rules ask{accepted}",
        number=findings.unproved,
        accepted=accepted,
    )
    left = unproved if findings.unproved else ""
    return text("those that are sensitive were judged like cells that are shown{left}.", left=left)


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
    listed = 0 if table.contributors is None else table.contributors.certain
    if lists is None or not listed:
        return "the contributors of each cell, from the records (tabulate with respondent=… and largest=…)"
    most = int(np.max(lists.everyone[findings.system.cells], initial=0))
    if most > MOST_LISTED:
        return f"the records: some withheld cells have {most:,} contributors, and {listed:,} of each are listed"
    if most > listed:
        return f"more contributors listed: largest = {most} lists all of every withheld cell, now it is {listed}"
    return "who the contributors are, the same name in every cell (respondent=…), from the records"
