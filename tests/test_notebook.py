"""Notebooks: objects show themselves, of bounded size; a release shows only what may be published."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Any

import numpy as np
import polars as pl
import pytest

import tablesafe as ts
from tablesafe.core.sensitivity import Sensitivity
from tablesafe.report.cells import Kind
from tablesafe.report.notebook import COLUMNS, LINES

REGIONS = ["North", "<script>alert(1)</script>", "West & 'co'", "South"]
VALUES = [731.0, 92817.0, 55.0, 6143.0]


class Checked(HTMLParser):
    """Every tag is closed by its own."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.open.append(tag)
        self.tags.add(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def checked(html: str) -> str:
    parser = Checked()
    parser.feed(html)
    assert not parser.open
    assert "script" not in parser.tags
    return html


def words(html: str) -> str:
    """What the reader sees."""
    return re.sub(r"<[^>]*>", " ", re.sub(r"<style>.*?</style>", "", html))


def problem_of(values: list[float]) -> ts.Problem:
    frame = pl.DataFrame({"region": ["Total", *REGIONS], "value": [sum(values), *values]})
    table = ts.Table.from_cells(frame, dimensions={"region": ts.Hierarchy.flat(REGIONS, total="Total")})
    mask = np.array([False, True, False, True, False])
    return ts.Problem(table, sensitivity=Sensitivity.of(mask, 2.0, reason="p%"))


def release_of(problem: ts.Problem) -> ts.Release:
    return ts.Release.from_suppression(problem, np.array([False, True, False, True, True]))


@pytest.fixture(scope="module")
def problem() -> ts.Problem:
    return problem_of(VALUES)


@pytest.fixture(scope="module")
def release(problem: ts.Problem) -> ts.Release:
    return release_of(problem)


def everything(problem: ts.Problem, release: ts.Release) -> list[Any]:
    table = problem.table
    return [
        table, problem, release, ts.audit(problem, release), problem.sensitivity, ts.loss(problem, release),
        ts.quality(problem, release), table.dimensions["region"],
        ts.Scores.of([ts.attack(problem, release, ts.Midpoint())]), ts.attack(problem, release, ts.Midpoint()),
        ts.frontier(problem, {"ours": release}),
    ]  # fmt: skip


def test_everything_shows_itself_escaped_and_says_what_is_confidential(
    problem: ts.Problem, release: ts.Release
) -> None:
    for thing in everything(problem, release):
        html = checked(thing._repr_html_())
        public = isinstance(thing, (ts.Release, ts.Hierarchy))
        assert ("Confidential" in html) == (not public), type(thing).__name__


def test_a_table_shows_its_values_and_colours_by_status(problem: ts.Problem, release: ts.Release) -> None:
    shown = words(problem.table._repr_html_())
    assert all(f"{value:,.0f}" in shown for value in [*VALUES, sum(VALUES)])
    html = problem._repr_html_()
    assert html.count(f'<td style="background:{Kind.SENSITIVE.colour}') == 2
    assert release._repr_html_().count(f'<td style="background:{Kind.WITHHELD.colour}') == 3


def test_a_release_shows_nothing_of_what_it_withholds(problem: ts.Problem, release: ts.Release) -> None:
    html = release._repr_html_()
    for value in problem.table.value[release.suppressed]:
        assert f"{value:,.0f}" not in html
    assert "sensitive" not in html
    assert "complementary" not in html
    elsewhere = release_of(problem_of([700.0, 92817.0, 86.0, 6143.0]))
    assert elsewhere._repr_html_() == html


def test_large_tables_stay_small(release: ts.Release) -> None:
    n = 400
    names = [f"{i} {'very long name ' * 30}" for i in range(n)]
    frame = pl.DataFrame(
        {"a": np.repeat(names, 60), "b": np.tile([f"b{i}" for i in range(60)], n), "value": np.ones(60 * n)}
    )
    table = ts.Table.from_cells(frame, dimensions=["a", "b"], missing_totals="compute")
    problem = ts.Problem(table, rules=[], sensitivity=Sensitivity.of(table.value < 2, 0.5))
    withheld = ts.Release.from_suppression(problem, np.asarray(table.value < 2))
    for thing in (table, problem, withheld, problem.sensitivity, ts.loss(problem, withheld), table.dimensions["a"]):
        html = checked(thing._repr_html_())
        assert len(html) < 40_000
        assert html.count("<tr>") <= LINES + 2
        assert len(repr(thing)) < 2_000
    html = withheld._repr_html_()
    assert f"{LINES:,} of {n + 1:,} lines, {COLUMNS:,} of 61 columns" in html
    rows = re.findall(r"<tr>(.*?)</tr>", html)
    assert {row.count("<td") + row.count("<th") for row in rows if "colspan" not in row} == {COLUMNS + 2}


def test_hierarchies_are_indented_and_gaps_marked() -> None:
    tree = ts.Hierarchy.from_pairs([("T", f"c{i}") for i in range(40)] + [("c0", "x"), ("c0", "y")])
    html = checked(tree._repr_html_())
    assert "43 codes in 3 levels" in html
    assert "…" in html
    assert words(html).split()[:4] == ["Hierarchy", "of", "43", "codes"]


def test_redesigns_and_runs_show_themselves(tmp_path: Any) -> None:
    frame = pl.DataFrame({"r": ["a", "a", "b", "b", "c"], "v": [1, 2, 3, 4, 90], "firm": ["1", "2", "3", "4", "5"]})
    frame.write_csv(tmp_path / "firms.csv")
    table = ts.tabulate(frame, dimensions={"r": None}, value="v", respondent="firm")
    problem = ts.Problem(table, rules=[ts.Threshold(n=2)])
    assert "Proposals" in checked(ts.redesign(problem)._repr_html_())
    (tmp_path / "job.toml").write_text(
        '[source]\nfile = "firms.csv"\nrespondent = "firm"\n[dimensions.r]\n[response]\nvalue = "v"\n'
        '[[rules]]\nrule = "threshold"\nn = 2\n[method]\nname = "suppress"\ntime_limit_s = 2\n'
    )
    result = ts.run(tmp_path / "job.toml")
    html = checked(result._repr_html_())  # type: ignore[attr-defined]
    assert "Result" in html
    assert "90" not in words(html)
    assert result.trace is not None
