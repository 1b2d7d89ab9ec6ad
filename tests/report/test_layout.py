"""A layout shows every cell once, in its place, and a public one reads nothing but the release."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from report_cases import Case, guarded, made, magnitude, twin

import tablesafe as ts
from tablesafe.core.errors import InvalidInput
from tablesafe.core.release import Status
from tablesafe.core.table import Table
from tablesafe.report.axis import Axis
from tablesafe.report.cells import Kind, OfficeCells, derives, interval, numbers
from tablesafe.report.derived import with_withheld, withheld_unasked
from tablesafe.report.layout import Layout


@st.composite
def trees(draw: st.DrawFn, name: str) -> ts.Hierarchy:
    """A random tree: each code below one of those before it."""
    n = draw(st.integers(2, 9))
    above = [draw(st.integers(0, i)) for i in range(n)]
    pairs = [(f"{name}{above[i]}", f"{name}{i + 1}") for i in range(n)]
    children: dict[str, list[str]] = {}
    for parent, child in pairs:
        children.setdefault(parent, []).append(child)
    for parent, only in children.items():
        if len(only) == 1:  # a single part would be the same code twice
            pairs.append((parent, f"{only[0]}x"))
    return ts.Hierarchy.from_pairs(pairs)


@st.composite
def tables(draw: st.DrawFn) -> Table:
    """A random sparse table over one to four trees."""
    trees_of = {name: draw(trees(name)) for name in "abcd"[: draw(st.integers(1, 4))]}
    leaves = [st.sampled_from(tree.leaves) for tree in trees_of.values()]
    cells = draw(st.lists(st.tuples(*leaves), min_size=1, max_size=12, unique=True))
    frame = pl.DataFrame(
        {name: [cell[i] for cell in cells] for i, name in enumerate(trees_of)}
        | {"value": draw(st.lists(st.integers(1, 99), min_size=len(cells), max_size=len(cells)))}
    )
    return Table.from_cells(frame, dimensions=trees_of, missing_totals="compute")


@given(tables(), st.data())
def test_a_cell_stands_where_its_codes_say(table: Table, data: st.DataObject) -> None:
    """Every window against a search through all cells."""
    names = list(table.dimensions)
    rows = data.draw(st.sampled_from([None, *names]))
    others = [name for name in names if name != rows]
    columns = data.draw(st.sampled_from([None, *others])) if others else None
    layout = Layout.internal(table, rows=rows, columns=columns)
    held = {name: data.draw(st.sampled_from(table.dimensions[name].codes)) for name in layout.filters}
    layout = layout.at(filters=held)
    window = layout.window()
    codes = [dict(zip(names, row, strict=True)) for row in table.cells().select(names).iter_rows()]
    for i, row in enumerate(layout.rows.codes):
        for j, column in enumerate(layout.columns.codes):
            wanted = {layout.rows.name: row, **held} | ({layout.columns.name: column} if layout.columns.name else {})
            found = [cell for cell, own in enumerate(codes) if own == wanted]
            assert window.cell[i, j] == (found[0] if found else -1)
            assert window.text[i][j] == (f"{table.value[found[0]]:,.0f}" if found else "")
            assert (window.kind[i][j] is Kind.ABSENT) == (not found)
            assert bool(window.hover(i, j)) == bool(found)
            if found:
                assert layout.place(found[0]) == (i, j)


@given(tables(), st.data())
def test_cells_are_found_by_their_codes(table: Table, data: st.DataObject) -> None:
    layout, names = Layout.internal(table), list(table.dimensions)
    asked = data.draw(
        st.lists(st.tuples(*(st.sampled_from([*table.dimensions[n].codes, "nowhere"]) for n in names)), max_size=8)
    )
    found = layout.find({name: [each[i] for each in asked] for i, name in enumerate(names)})
    cells = {tuple(row): cell for cell, row in enumerate(table.cells().select(names).iter_rows())}
    assert found.tolist() == [cells.get(each, -1) for each in asked]


@given(trees("t"))
def test_lines_are_in_the_order_of_the_tree(tree: ts.Hierarchy) -> None:
    axis = Axis.of("t", tree)
    assert sorted(axis.codes) == sorted(tree.codes)
    parts = {e.total: set(e.parts) for e in tree.as_equations()}
    for i, code in enumerate(axis.codes):
        below = set(axis.codes[i + 1 : axis.end[i]])
        direct = {axis.codes[j] for j in range(len(axis)) if axis.parent[j] == i}
        assert direct == parts.get(code, set())
        assert direct <= below
        assert axis.has_children[i] == (code in parts)
        assert axis.depth[i] == tree.depth[tree.position(code)]


@given(trees("t"), st.data())
def test_a_line_shows_when_everything_above_it_is_open(tree: ts.Hierarchy, data: st.DataObject) -> None:
    axis = Axis.of("t", tree)
    opened = np.array(data.draw(st.lists(st.booleans(), min_size=len(axis), max_size=len(axis))))
    shown = []
    for line in range(len(axis)):
        above, visible = int(axis.parent[line]), True
        while above >= 0:
            visible &= bool(opened[above])
            above = int(axis.parent[above])
        if visible:
            shown.append(line)
    assert axis.visible(opened).tolist() == shown


def test_a_code_with_several_totals_stands_once_under_the_lowest() -> None:
    axis = Axis.of("d", ts.Hierarchy.from_equations("T=a+b+c; T=x+c; x=a+b; U=a+c"))
    assert sorted(axis.codes) == sorted("TabcxU")
    assert axis.codes[axis.parent[list(axis.codes).index("a")]] == "x"


def test_any_dimension_can_stand_down_or_across() -> None:
    layout = Layout.internal(magnitude(3, 2))
    assert (layout.rows.name, layout.columns.name) == ("activity", "d1")
    turned = layout.at(rows="d1")
    assert (turned.rows.name, turned.columns.name) == ("d1", "activity")
    assert turned.filters == layout.filters
    other = layout.at(columns="region", filters={"d0": "01"})
    assert (other.rows.name, other.columns.name) == ("activity", "region")
    assert other.filters == {"d0": "01", "d1": "Total"}


def test_what_is_no_dimension_or_no_line_is_refused() -> None:
    layout = Layout.internal(magnitude())
    with pytest.raises(InvalidInput, match="region"):
        layout.at(rows="regoin")
    with pytest.raises(InvalidInput, match="down and across"):
        layout.at(rows="region", columns="region")
    with pytest.raises(InvalidInput, match="no code"):
        Layout.internal(magnitude(3), filters={"d0": "nowhere"})
    with pytest.raises(InvalidInput, match="lines"):
        layout.window(range(10_000, 10_002))


def test_a_public_layout_reads_only_what_the_release_says(case: Case) -> None:
    """The same window and the same words from a release whose secrets are all replaced."""
    other = twin(case)
    for filters in _some_filters(case):
        one = Layout.public(case.release, filters=filters)
        two = Layout.public(other.release, filters=filters)
        assert _seen(one) == _seen(two)
        assert one.counts() == two.counts()


def _some_filters(case: Case) -> list[dict[str, str]]:
    layout = Layout.public(case.release)
    return [{}, {name: case.release.table.dimensions[name].codes[-1] for name in layout.filters}]


def _seen(layout: Layout) -> list[Any]:
    window = layout.window()
    height, width = window.cell.shape
    return [window.text, window.truth, window.kind, [window.hover(i, j) for i in range(height) for j in range(width)]]


def test_the_office_sees_values_reasons_and_what_an_attacker_derives() -> None:
    problem = guarded(magnitude())
    release = ts.protect(problem, ts.Suppress())
    findings = ts.audit(problem, release, insiders=False, unions=False)
    layout = Layout.internal(problem, release, findings)
    cell = int(problem.sensitive[0])
    row, column = layout.place(cell) or (0, 0)
    window = layout.window([row], [column])
    assert window.text == [["×"]]
    assert window.truth == [[f"{problem.table.value[cell]:,.0f}"]]
    assert window.kind[0][0] is Kind.SENSITIVE
    hover = window.hover(0, 0)
    at = findings.cells.tolist().index(cell)
    assert interval(float(findings.lower[at]), float(findings.upper[at]), 0) in hover
    for word in ("p% with p = 7.31", "To be hidden from", "Protected"):
        assert word in hover


def test_an_open_cell_is_marked() -> None:
    problem = guarded(magnitude())
    release = ts.Release.from_suppression(problem, problem.sensitivity.mask)
    findings = ts.audit(problem, release, insiders=False, unions=False)
    assert not findings.safe
    kinds = Layout.internal(problem, release, findings).counts()
    assert kinds[Kind.OPEN] == len({opening.cell for opening in findings.open})


def test_what_is_not_part_of_the_publication_is_not_shown(dandekar: ts.Problem) -> None:
    problem = dandekar.replace(withheld=~dandekar.table.is_total & ~dandekar.sensitivity.mask)
    release = ts.Release.from_suppression(problem, problem.sensitivity.mask)
    public, office = Layout.public(release), Layout.internal(problem, release)
    assert sum(public.counts().values()) == int((~problem.withheld).sum())
    assert sum(office.counts().values()) == len(problem.table)
    assert Kind.BY_DESIGN in office.counts()


def test_another_view_keeps_the_lines() -> None:
    problem = guarded(magnitude(3))
    one = Layout.public(ts.protect(problem, ts.Withhold()), rows="d0")
    two = one.shown_as(Layout.public(ts.protect(problem, ts.PublishAll())).view)
    assert two.rows is one.rows
    assert Kind.WITHHELD not in two.counts()


@pytest.mark.parametrize(
    ("lower", "upper", "text"),
    [
        (1, 1, "1"),
        (0, 5, "0 to 5"),
        (0, np.inf, "0 or more"),
        (-np.inf, 3, "3 or less"),
        (-np.inf, np.inf, "any number"),
    ],
)
def test_intervals_in_words(lower: float, upper: float, text: str) -> None:
    assert interval(lower, upper, 0) == text


def test_numbers_have_separators_and_no_negative_zero() -> None:
    assert numbers(np.array([1234567.891, -0.001, -5.0, np.nan]), 2) == ["1,234,567.89", "0.00", "-5.00", ""]


def test_published_values_are_not_rounded_for_the_eye() -> None:
    """A value with decimals keeps them in the public layout, even when the table has none."""
    problem = guarded(magnitude())
    release = ts.protect(problem, ts.PublishAll())
    moved = replace(release, values=release.values + 0.25)
    assert Layout.public(moved).window([0], [0]).text[0][0].endswith(".25")


# -- what an attacker derives of cells withheld to protect others ----------------------------------------------------


@pytest.mark.parametrize("name", ["suppress", "linked", "suppress from records", "three dimensions"])
def test_the_office_sees_the_interval_of_every_withheld_cell(name: str) -> None:
    """As the audit of all cells finds it; and nothing else about the release changes."""
    case = made(name)
    seen = with_withheld(case.findings, most=10**6, seconds=60.0)
    assert not len(withheld_unasked(seen))
    every = ts.audit(case.problem, case.release, cells="all", insiders=False, unions=False)
    place = {int(cell): i for i, cell in enumerate(every.cells)}
    layout = Layout.internal(case.problem, case.release, seen)
    assert isinstance(layout.view, OfficeCells)
    complementary = np.flatnonzero(case.release.status == Status.COMPLEMENTARY)
    assert len(complementary) or name == "three dimensions"
    for cell in complementary.tolist():
        i = place[cell]
        words = derives(float(every.lower[i]), float(every.upper[i]), layout.view.decimals)
        assert words in layout.view.facts(cell)
        assert "Protected" not in layout.view.facts(cell)
    assert seen.open == case.findings.open
    assert np.array_equal(layout.view.kind, Layout.internal(case.problem, case.release, case.findings).view.kind)


def test_too_many_cells_or_too_long_a_search_leave_the_findings_as_they_are() -> None:
    case = made.__wrapped__("suppress")  # of its own: what an audit has derived once, it knows without any time
    assert with_withheld(case.findings, most=1) is case.findings
    assert with_withheld(case.findings, seconds=-1.0) is case.findings
    view = OfficeCells(case.problem, case.release, case.findings)
    asked = np.flatnonzero(view.may_be_asked(np.arange(len(case.problem.table))))
    assert np.array_equal(asked, withheld_unasked(case.findings))
    assert not OfficeCells(case.problem).may_be_asked(asked).any()
