"""A report as a file: a page, JSON or a workbook by the ending of its name."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from importlib.util import find_spec
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Self

from tablesafe.core import language as languages
from tablesafe.core.errors import InvalidOption, InvalidRelease
from tablesafe.core.language import CODES, Code
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release
from tablesafe.files.write import write_text
from tablesafe.report.document import as_json
from tablesafe.report.layout import Layout
from tablesafe.report.page import pictures, render
from tablesafe.report.sheet import write_sheet
from tablesafe.report.summary import Origin, Summary, summarise
from tablesafe.report.verdict import judge

if TYPE_CHECKING:
    from tablesafe.attack.suite import Scores
    from tablesafe.audit.findings import Findings
    from tablesafe.methods.intervals.leaks import Leaks
    from tablesafe.report.progress import Trace

PAGES, DOCUMENTS, SHEETS = (".html", ".htm"), (".json",), (".xlsx",)
ENDINGS = (*PAGES, *DOCUMENTS, *SHEETS)
NO_WORKBOOK = "There is no table.xlsx: Excel files need the extra 'excel' (pip install 'tablesafe[excel]')."
HURRIED = "The run was stopped: there is no table.xlsx. The whole table is in cells.csv."


@dataclass(frozen=True, eq=False, kw_only=True)
class Subject:
    """All that a report is about; the public version uses of it only what the release says."""

    problem: Problem = field(repr=False)
    release: Release = field(repr=False)
    findings: Findings | None = field(default=None, repr=False)
    scores: Scores | None = field(default=None, repr=False)
    leaks: Leaks | None = field(default=None, repr=False)
    trace: Trace | None = field(default=None, repr=False)
    """How the method went on, where it told."""
    origin: Origin = field(default_factory=Origin)
    intervals: bool = False
    """Whether the office announces an interval for each changed value."""
    pictures: bool = True
    """Whether pages have pictures: who draws them takes longer to load than a small table to protect."""
    workbook: bool = True
    """Whether the office gets its table as a workbook too: who stopped a run waits for the files."""
    spare_s: float = inf
    """Seconds that may be taken for what an attacker derives of cells that were withheld to protect others."""
    language: Code = "en"
    """In which language the pages are."""
    rows: str | None = None
    columns: str | None = None
    seen: Findings | None = field(default=None, repr=False)
    """Findings that know cells withheld to protect others too, for the office's table; found when they are needed."""

    def summary(self, *, internal: bool) -> Summary:
        """What the report says, for the office or for the public."""
        return summarise(
            self.problem, self.release, self.findings, origin=self.origin, internal=internal, scores=self.scores,
            leaks=self.leaks, intervals=self.intervals, rows=self.rows, columns=self.columns,
            seen=self._seen if internal else None, language=languages.language(self.language),
        )  # fmt: skip

    def layout(self, *, internal: bool) -> Layout:
        """The table, for the office or for the public."""
        if internal:
            return Layout.internal(self.problem, self.release, self._seen, rows=self.rows, columns=self.columns)
        return Layout.public(self.release, rows=self.rows, columns=self.columns, intervals=self.intervals)

    @cached_property
    def _seen(self) -> Findings | None:
        """The findings with what an attacker derives of cells withheld to protect others, where that is soon known."""
        if self.seen is not None or self.findings is None or self.spare_s <= 0:
            return self.findings if self.seen is None else self.seen
        from tablesafe.report.derived import SECONDS, with_withheld  # solvers come with it: for the office only

        return with_withheld(self.findings, seconds=min(SECONDS, self.spare_s))

    def with_table_in(self, names: Iterable[str]) -> Self:
        """The same, with the files that hold the whole table, for pages that show only a part of it."""
        return replace(self, origin=replace(self.origin, elsewhere=" and ".join(names)))

    def write_internal(self, place: Callable[[str], Path]) -> None:
        """Write everything for the office: page, JSON and workbook; `place` gives the path of each name.

        Without the extra `excel`, or after a stop, there is no workbook, and the page says so.
        """
        names, subject = ["cells.csv"], replace(self, seen=self._seen)
        if not self.workbook:
            subject = replace(subject, origin=replace(self.origin, remark=HURRIED))
        elif find_spec("xlsxwriter") is None:
            subject = replace(subject, origin=replace(self.origin, remark=NO_WORKBOOK))
        elif not subject.write_workbook(place("table.xlsx"), internal=True):
            names = ["table.xlsx", "cells.csv"]  # nothing of it had to be left out of the workbook
        subject = subject.with_table_in(names)
        summary = subject.summary(internal=True) if self.language == "en" else None
        for name in ("report.html", "report.json"):
            subject.write(place(name), internal=True, summary=summary)

    def write_workbook(self, path: str | Path, *, internal: bool) -> tuple[str, ...]:
        """Write the table as a workbook; what had to be left out is returned."""
        told = judge(self.problem, self.findings, self.leaks, internal=False)
        layout, lines = self.layout(internal=internal), (told.word, *told.lines)
        return write_sheet(layout, path, title=self.origin.title, verdict=lines, private=internal)

    def write(self, path: str | Path, *, internal: bool, summary: Summary | None = None) -> None:
        """Write the report as its ending says; an internal one can be read by its owner only."""
        ending = Path(path).suffix.lower()
        if ending in SHEETS:
            self.write_workbook(path, internal=internal)
            return
        if ending in DOCUMENTS:
            english = replace(self, language="en").summary(internal=internal) if summary is None else summary
            write_text(path, as_json(english), private=internal)
        elif ending in PAGES:
            summary = self.summary(internal=internal) if summary is None else summary
            drawn = pictures(self, internal=internal) if self.pictures else {}
            write_text(path, render(summary, drawn), private=internal)
        else:
            raise InvalidOption(f"{Path(path).name} ends in {ending!r}.", hint=f"reports are {', '.join(ENDINGS)}.")


def report(
    problem: Problem,
    release: Release,
    findings: Findings | None = None,
    *,
    path: str | Path,
    internal: bool = False,
    title: str = "",
    scores: Scores | None = None,
    intervals: bool = False,
    rows: str | None = None,
    columns: str | None = None,
    language: Code = "en",
) -> Path:
    """Write a report on a release: a page, JSON or a workbook, as the path ends in .html, .json or .xlsx.

    The public version says nothing that the release does not say; `internal=True` writes the office's version, with
    rule parameters, true values, what attackers derive and the scores of attacks. `intervals` says that the office
    announces an interval for each changed value. `rows` and `columns` name the dimensions that the table is shown by.
    `language` is that of a page: en, de, fr or es.
    """
    if language not in CODES:
        raise InvalidOption(f"There is no language {language!r}.", hint=f"there are {', '.join(CODES)}.")
    if len(release.values) != len(problem.table):
        raise InvalidRelease(f"The release has {len(release.values):,} cells, the table {len(problem.table):,}.")
    origin = Origin(title, made=datetime.now().astimezone())
    subject = Subject(
        problem=problem, release=release, findings=findings, scores=scores, origin=origin, intervals=intervals,
        rows=rows, columns=columns, language=language,
    )  # fmt: skip
    subject.write(path, internal=internal)
    return Path(path)
