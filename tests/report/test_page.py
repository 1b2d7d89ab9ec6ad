"""The page stands alone, is sound HTML, and says what its JSON says."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from report_cases import Case, guarded, made, magnitude

import tablesafe as ts
from tablesafe.audit.verdict import How
from tablesafe.report import page as drawing
from tablesafe.report.excerpt import PAGE, Excerpt, Space
from tablesafe.report.layout import Layout
from tablesafe.report.margins import margins
from tablesafe.report.page import HOW, _words
from tablesafe.report.summary import Origin, summarise
from tablesafe.rules import RULES

VOID = {"meta", "link", "br", "hr", "img", "input"}


class Balanced(HTMLParser):
    """Notes tags that are not closed, or closed in the wrong order, ids, and what the page refers to."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.wrong: list[str] = []
        self.ids: list[str] = []
        self.references: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._note(attrs)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._note(attrs)

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.wrong.append(tag)

    def _note(self, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == "id":
                self.ids.append(value or "")
            if name in {"href", "src", "xlink:href", "data", "action", "poster", "srcset"}:
                self.references.append(value or "")


def read(page: str) -> Balanced:
    parser = Balanced()
    parser.feed(page)
    parser.close()
    return parser


@pytest.mark.parametrize("internal", [False, True])
def test_the_page_is_sound_and_needs_nothing_else(case: Case, internal: bool, written: Callable[..., Path]) -> None:
    page = written(case, ".html", internal=internal).read_text(encoding="utf-8")
    found = read(page)
    assert not found.open
    assert not found.wrong
    assert len(found.ids) == len(set(found.ids))
    assert all(reference.startswith(("#", "data:")) for reference in found.references)
    assert not re.search(r"@import|url\((?!['\"]?(#|data:))|https?:", page)
    assert page.startswith("<!DOCTYPE html>")
    for target in (reference for reference in found.references if re.fullmatch(r"#[a-z]+", reference)):
        assert target[1:] in found.ids


def test_only_its_own_script_may_run(written: Callable[..., Path]) -> None:
    page = written(made("suppress"), ".html", internal=True).read_text(encoding="utf-8")
    script = page[page.index("<script>") + 8 : page.rindex("</script>")]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in html.unescape(page)
    assert page.count("<script") == 1
    assert not re.search(r"\son[a-z]+=", page)


def test_codes_and_titles_are_text_not_markup(tmp_path: Path) -> None:
    frame = {"r": ["<b>x</b>", "\"'&"], "value": [1, 2]}
    table = ts.Table.from_cells(pl.DataFrame(frame), dimensions={"r": None}, missing_totals="compute")
    problem = ts.Problem(table)
    release = ts.protect(problem, ts.PublishAll())
    path = ts.report(problem, release, path=tmp_path / "r.html", title="</title><script>alert(1)</script>")
    page = path.read_text(encoding="utf-8")
    assert "<b>x</b>" not in page
    assert "&lt;b&gt;x&lt;/b&gt;" in page
    assert page.count("<script") == 1


@pytest.mark.parametrize("internal", [False, True])
def test_the_page_says_what_its_json_says(case: Case, internal: bool, written: Callable[..., Path]) -> None:
    page = html.unescape(written(case, ".html", internal=internal).read_text(encoding="utf-8"))
    told = json.loads(written(case, ".json", internal=internal).read_text(encoding="utf-8"))
    assert told["internal"] is internal
    assert all(f"<p>{line}</p>" in page for line in told["verdict"]["lines"])
    failed = ": not safe" if told["verdict"]["passed"] is False else ""
    assert f'class="word">{told["verdict"]["word"]}{failed}<' in page
    for status in told["statuses"]:
        assert status["status"] in page
        assert f"{status['cells']:,}" in page
    for each in told["table"]["slices"]:
        for row in each["rows"]:
            assert row["code"] in page
            assert all(cell["text"] in page or internal for cell in row["cells"])
    for note in told["table"]["notes"]:
        assert note in page
    for name, version in told["reproduce"]["versions"].items():
        assert f"{name} {version}" in page


PUBLIC_KEYS = {
    "format", "internal", "title", "made", "verdict", "input", "rules", "sensitive", "statuses", "levels", "table",
    "margins", "attacks", "changes", "method", "reproduce",
}  # fmt: skip


@pytest.mark.parametrize("internal", [False, True])
def test_the_keys_of_the_json_stay(case: Case, internal: bool, written: Callable[..., Path]) -> None:
    """They are documented in tablesafe.report.document: programs rely on them."""
    told = json.loads(written(case, ".json", internal=internal).read_text(encoding="utf-8"))
    assert set(told) == PUBLIC_KEYS
    assert told["format"] == "tablesafe report 1"
    if not internal:
        assert not any(told[key] for key in ("sensitive", "margins", "attacks", "changes"))
        assert not told["verdict"]["open"]
        assert not told["input"]["files"]


def test_every_cell_of_a_small_table_is_in_the_json(written: Callable[..., Path]) -> None:
    case = made("three dimensions")
    told = json.loads(written(case, ".json", internal=True).read_text(encoding="utf-8"))
    truths = [cell["truth"] for s in told["table"]["slices"] for row in s["rows"] for cell in row["cells"]]
    assert sorted(truths) == sorted(f"{value:,.0f}" for value in case.problem.table.value)
    assert not told["table"]["notes"]


def test_verdicts() -> None:
    def word(case: Case) -> str:
        return summarise(case.problem, case.release, case.findings, origin=Origin(), internal=False).verdict.word

    assert word(made("suppress")) == "SAFE"
    assert word(made("open")) == "OPEN"
    assert word(made("no rules")) == "NOTHING TO JUDGE"
    case = made("suppress")
    assert summarise(case.problem, case.release, None, origin=Origin(), internal=True).verdict.word == "NOT AUDITED"


def test_the_counts_of_the_levels_add_up(case: Case) -> None:
    for internal in (False, True):
        summary = summarise(case.problem, case.release, case.findings, origin=Origin(), internal=internal)
        meant = case.release.status != ts.Status.BY_DESIGN
        for name in {line.dimension for line in summary.levels}:
            lines = [line for line in summary.levels if line.dimension == name]
            assert sum(line.cells for line in lines) == int(meant.sum())
            assert sum(line.withheld for line in lines) == int((meant & case.release.suppressed).sum())
            if internal:
                sensitive = case.problem.sensitivity.mask & meant
                assert sum(line.sensitive or 0 for line in lines) == int(sensitive.sum())
                changed = meant & ~case.release.suppressed & (case.release.values != case.problem.table.value)
                assert sum(line.changed or 0 for line in lines) == int(changed.sum())
        assert sum(line.cells for line in summary.statuses) == (len(meant) if internal else int(meant.sum()))


def test_those_with_least_room_come_first_and_open_ones_reach_too_short() -> None:
    for name in ("suppress", "open", "linked", "round"):
        found = margins(made(name).findings)
        reach = [np.inf if line.reach is None else line.reach for line in found.lines]
        assert reach == sorted(reach)
        for line in found.lines:
            assert line.protected == ((np.inf if line.reach is None else line.reach) >= 1 - 1e-9)
            assert 0 <= line.bar[0] <= line.bar[1] <= 100
            assert 0 <= line.band[0] <= line.band[1] <= 100


def test_of_a_large_table_the_first_levels_are_shown_and_the_rest_is_named() -> None:
    layout = Layout.internal(guarded(magnitude(9, 9)))
    whole = Excerpt.of(layout, Space(cells=10**6, rows=10**6, columns=100, slices=1000))
    assert whole.cells == len(layout.table)
    assert not whole.notes
    part = Excerpt.of(layout, Space(cells=60, rows=50, columns=3, slices=4))
    assert part.cells <= 60
    assert len(part.notes) == 2
    assert "slices" in part.notes[0]
    first = part.slices[0]
    assert first.filters == dict(layout.filters)
    for each in part.slices:
        above = each.parent[each.parent >= 0]
        assert (above < np.flatnonzero(each.parent >= 0)).all()
    assert Excerpt.of(layout, PAGE).cells <= PAGE.cells


def test_room_is_shared_by_all_slices_where_one_alone_would_fill_it() -> None:
    """The first slice has half of it; the others show their first levels, and the page says so."""
    layout = Layout.internal(guarded(magnitude(30)), rows="d0", columns="region")
    part = Excerpt.of(layout, Space(cells=480, rows=30, columns=4, slices=60))
    names = {tuple(each.filters.items()) for each in part.slices}
    assert len(part.slices) == len(names) > 3
    assert part.cells <= 480
    assert len(part.slices[0].window.rows) >= max(len(each.window.rows) for each in part.slices)
    told = " ".join(part.notes)
    assert "of the first slice are shown down" in told
    assert "after the first only the first levels" in told
    assert (len(part.slices) < 11) == ("are left out" in told)


def test_without_matplotlib_there_is_a_page_without_plots(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(drawing, "find_spec", lambda name: None)
    case = made("adjust")
    ts.report(case.problem, case.release, case.findings, path=tmp_path / "page.html", internal=True)
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert 'class="plot' not in page
    assert "How far values were changed" in page


def test_with_matplotlib_there_are_plots(written: Callable[..., Path]) -> None:
    pytest.importorskip("matplotlib")
    page = written(made("adjust"), ".html", internal=True).read_text(encoding="utf-8")
    assert {"plot intervals", "plot changes"} <= set(re.findall(r'<figure class="([^"]*)"', page))


def test_every_way_to_be_open_and_every_rule_has_words() -> None:
    assert set(HOW) == {str(how) for how in How}
    names = [_words(rule.__name__) for rule in RULES.values()]
    assert names[:5] == ["Threshold", "P percent", "PQ", "Dominance", "Linear sensitivity"]


def test_an_open_release_is_called_not_safe(written: Callable[..., Path]) -> None:
    """The word open alone could be taken for a recommendation."""
    for internal in (False, True):
        page = written(made("open"), ".html", internal=internal).read_text(encoding="utf-8")
        assert '<p class="word">OPEN: not safe</p>' in page
        assert "<dt>Result</dt><dd>OPEN: not safe</dd>" in page
