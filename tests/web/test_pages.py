"""What pages need that no browser is needed for: roles of columns, windows of tables, blame, the progress curve."""

from __future__ import annotations

import ast
import re
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browsing import firms
from hypothesis import given
from hypothesis import strategies as st

import tablesafe
from tablesafe import pipeline
from tablesafe.core.errors import TablesafeError
from tablesafe.core.language import THOUSANDS, language
from tablesafe.job import parse_job
from tablesafe.job.words import key_of
from tablesafe.pipeline import build_problem
from tablesafe.tabulate.axes import in_order
from tablesafe.web.child import Desk
from tablesafe.web.desk import kept_at, result_of, suggest
from tablesafe.web.long_tasks import _keep
from tablesafe.web.pages.bringing import Arrivals
from tablesafe.web.pages.progress import BLUE, HIGH, ORANGE, WIDE, curve, share_done, stages, stopping, time_left
from tablesafe.web.roles import DIMENSION, NOTHING, VALUE, role_of, roles_of, set_role
from tablesafe.web.runs import Point, Run, State
from tablesafe.web.tasks.data import fits, regions, sensitive, tree
from tablesafe.web.tasks.windows import MOST_LINES, about, as_text, derived, layout_of, plain, window

JOB = """[source]
file = "firms.csv"
respondent = "firm"
[dimensions.nace]
kind = "prefixes"
lengths = [1]
[dimensions.region]
[response]
value = "turnover"
[[rules]]
rule = "threshold"
[[rules]]
rule = "p_percent"
"""


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Desk:
    folder = tmp_path_factory.mktemp("desk")
    firms(folder / "firms.csv")
    return Desk(folder, lambda event: None)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Desk:
    """A desk with the result of a run."""
    folder = tmp_path_factory.mktemp("finished")
    run = folder / "runs" / "run-1"
    run.mkdir(parents=True)
    firms(run / "firms.csv")
    (run / "job.toml").write_text(JOB)
    _keep(kept_at(run), pipeline.run(run / "job.toml"))
    return Desk(folder, lambda event: None)


@pytest.fixture(scope="module")
def view() -> dict[str, Any]:
    return {"of": {"job": JOB}}


# -- uploads -----------------------------------------------------------------------------------------------------


@given(st.permutations(["firms.csv", "list.csv", "nace.hrc", "large.csv"]))
def test_files_chosen_together_are_taken_in_that_order_however_they_come_in(order: list[str]) -> None:
    coming = Arrivals()
    coming.chosen(["firms.csv", "list.csv", "large.csv", "nace.hrc"])
    taken = [coming.ended(name, [] if name == "large.csv" else [name]) for name in order]
    assert taken == [[], [], [], ["firms.csv", "list.csv", "nace.hrc"]]
    coming.chosen(["later.csv"])
    assert coming.ended("later.csv", ["later (2).csv"]) == ["later (2).csv"]


# -- columns -----------------------------------------------------------------------------------------------------


@given(
    st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from([NOTHING, DIMENSION, VALUE, "respondent", "weight"])))
)
def test_a_column_is_what_it_was_last_said_to_be(said: list[tuple[str, str]]) -> None:
    draft: dict[str, Any] = {"source": {"file": "x.csv"}}
    latest: dict[str, str] = {}
    for column, role in said:
        set_role(draft, column, role)
        if role in {"respondent", "weight"}:  # only one column can be that
            latest = {name: was for name, was in latest.items() if was != role}
        latest[column] = role
    for column in "abcd":
        assert role_of(draft, column) == latest.get(column, NOTHING)
        assert role_of(draft, column) in roles_of(draft)
    assert draft.get("response") != {}


def test_a_dimension_may_have_another_name_than_its_column() -> None:
    draft = {"source": {"file": "x.csv"}, "dimensions": {"state": {"column": "STATE"}}}
    assert role_of(draft, "STATE") == DIMENSION
    set_role(draft, "STATE", NOTHING)
    assert draft["dimensions"] == {}


def test_a_guessed_title_follows_what_columns_are_and_another_stays() -> None:
    """It is printed above the release."""
    draft: dict[str, Any] = {
        "title": "turnover by region and size", "source": {"file": "x.csv"}, "dimensions": {"region": {}, "size": {}},
        "response": {"value": ["turnover"]},
    }  # fmt: skip
    set_role(draft, "size", NOTHING)
    assert draft["title"] == "turnover by region"
    set_role(draft, "nace", DIMENSION)
    set_role(draft, "staff", VALUE)
    assert draft["title"] == "turnover and staff by region and nace"
    draft["title"] = "Structural business statistics"
    set_role(draft, "nace", NOTHING)
    assert draft["title"] == "Structural business statistics"


# -- windows -----------------------------------------------------------------------------------------------------


def test_windows_put_together_are_the_whole_table(desk: Desk, view: dict[str, Any]) -> None:
    whole = window(desk, {**view, "opened": "all"}, [0, 100, 0, 100])
    rows, columns = whole["count"]
    assert (rows, columns) == (10, 4)
    pieces = [window(desk, {**view, "opened": "all"}, [i, i + 3, 1, 3]) for i in range(0, rows, 3)]
    cells = [row["cells"] for piece in pieces for row in piece["rows"]]
    assert cells == [row["cells"][1:3] for row in whole["rows"]]
    problem = build_problem(parse_job(JOB, desk.folder / "job.toml"))
    signs = [cell[2] for row in whole["rows"] for cell in row["cells"]]
    assert signs.count("S") == len(problem.sensitive)


@pytest.mark.parametrize("span", [[-5, 10**9, -1, 10**9], [10**6, 10**6 + 5, 0, 1], [3, 1, 2, 0]])
def test_a_window_is_bounded_whatever_a_browser_asks_for(desk: Desk, view: dict[str, Any], span: list[int]) -> None:
    part = window(desk, view, span)
    assert len(part["rows"]) <= MOST_LINES
    assert part["count"][0] <= 10


def test_true_values_are_told_only_where_they_are_asked_for(finished: Desk) -> None:
    problem = result_of(finished, "run-1").problem
    hidden, shown = ({"of": {"run": "run-1"}, "opened": "all", "truth": truth} for truth in (False, True))
    without, told = (window(finished, view, [0, 50, 0, 50])["rows"] for view in (hidden, shown))
    before, after = ([cell for row in rows for cell in row["cells"]] for rows in (without, told))
    withheld = [(one, other) for one, other in zip(before, after, strict=True) if one[0] == "×"]
    assert withheld
    secrets = {f"{value:,.0f}" for value in problem.table.value[problem.sensitive].tolist()}
    for one, other in withheld:
        assert "True value" in other[3]
        assert "True value" not in one[3]
        assert "To be hidden from" not in one[3]
    assert any(secret in other[3] for secret in secrets for _, other in withheld)
    asked = [cell for row in without for cell in row["cells"] if cell[4] >= 0]
    assert all("True value" not in derived(finished, "run-1", cell[4]) for cell in asked[:2])


def test_lines_fold_and_unfold(desk: Desk, view: dict[str, Any]) -> None:
    opened = window(desk, {**view, "opened": "all"}, [0, 50, 0, 10])
    line = next(row["key"] for row in opened["rows"] if row["text"] == "A")
    folded = window(desk, {**view, "opened": "all", "turned": {"row": [line, 10**6]}}, [0, 50, 0, 10])
    gone = {row["text"] for row in opened["rows"]} - {row["text"] for row in folded["rows"]}
    assert gone == {"A01", "A02"}
    top = window(desk, {**view, "opened": "none"}, [0, 50, 0, 10])
    assert [row["text"] for row in top["rows"]] == ["Total"]


def test_dimensions_change_places(desk: Desk, view: dict[str, Any]) -> None:
    turned = {**view, "rows": "region", "columns": "nace"}
    assert (about(desk, turned)["rows"], about(desk, turned)["columns"]) == ("region", "nace")
    assert layout_of(desk, {**view, "rows": "no such", "columns": 7, "filters": {"x": "y"}}).rows.name == "nace"
    numbers = {kind[0]: kind[4] for kind in about(desk, view)["kinds"]}
    assert sum(numbers.values()) == about(desk, view)["cells"] == 40


# -- looking -----------------------------------------------------------------------------------------------------


def test_a_tree_is_shown_as_it_is_built(desk: Desk) -> None:
    draft = {"source": {"file": "firms.csv"}, "dimensions": {"nace": {"kind": "prefixes", "lengths": [1]}}}
    found = tree(desk, draft, "nace")
    assert (found["codes"], found["leaves"], found["levels"]) == (10, 6, 3)
    assert [node["id"] for node in found["nodes"][0]["children"]] == ["A", "B", "C"]
    flat = tree(desk, {**draft, "dimensions": {"nace": {}}}, "nace")
    assert (flat["codes"], flat["levels"]) == (7, 2)
    assert tree(desk, draft, "other")["codes"] == 0
    with_nameless = tree(desk, {**draft, "dimensions": {"nace": {"missing": "unknown"}}}, "nace")
    assert "unknown" in [node["id"] for node in with_nameless["nodes"][0]["children"]]


def test_the_codes_of_a_dimension_come_from_the_table_that_has_it(desk: Desk) -> None:
    (desk.folder / "sizes.csv").write_text("nace,size,turnover\nA01,small,5\nA01,large,6\n")
    tables = [{"dimensions": ["nace", "size"], "file": "sizes.csv"}]
    draft = {"source": {"file": "firms.csv", "kind": "cells"}, "dimensions": {"size": {}}, "tables": tables}
    assert tree(desk, draft, "size")["leaves"] == 2


def test_equations_that_form_no_tree_are_listed(desk: Desk) -> None:
    equations = ["T = a + b", "U = b + c"]
    draft = {"source": {"file": "firms.csv"}, "dimensions": {"d": {"equations": equations}}}
    assert tree(desk, draft, "d")["equations"] == equations


def test_sensitive_cells_are_counted_by_rule_and_listed_by_size(desk: Desk) -> None:
    found = sensitive(desk, JOB)
    problem = build_problem(parse_job(JOB, desk.folder / "job.toml"))
    assert found["sensitive"] == len(problem.sensitive) == len(found["rows"])
    largest = float(np.abs(problem.table.value[problem.sensitive]).max())
    assert float(found["rows"][0]["value"].replace(",", "")) == largest
    assert max(found["by_rule"].values()) <= found["sensitive"] <= sum(found["by_rule"].values())
    assert regions(desk, JOB).startswith("<svg")
    assert regions(desk, JOB.partition('[[rules]]\nrule = "p_percent"')[0]) == ""


def test_a_file_of_the_allowed_folder_is_suggested_by_its_name_in_the_job(desk: Desk, tmp_path: Path) -> None:
    """In the workspace it is a link; the job must not name what it leads to."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (desk.folder / "2025").mkdir()
    (desk.folder / "2025" / "linked.csv").symlink_to(firms(elsewhere / "real.csv"))
    draft = suggest(desk, "2025/linked.csv", {})
    assert draft["source"]["file"] == "2025/linked.csv"
    assert "real" not in repr(draft)
    assert {} not in draft.values()


# -- errors ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("about", "path"),
    [
        (("source", "where"), ("source", "where")),
        (("dimension", "nace", "hierarchy"), ("dimensions", "nace", "hierarchy")),
        (("dimension", "region", "hierarchy"), ("dimensions", "region")),
        (("dimension", "region", "missing"), ("dimensions", "region", "missing")),
        (("column", "firm"), ("source", "respondent")),
        (("column", "area"), ("dimensions", "region")),
        (("column", "turnover"), ("response", "value", 0)),
        (("file", "nace.hrc"), ("dimensions", "nace", "hierarchy")),
        (("contributors",), ("rules", 1)),
        (("method",), ("method", "name")),
        (("option", "Suppress", "margin"), ("method", "margin")),
        (("option", "PPercent", "p"), ("source", "file")),
        ((), ("source", "file")),
    ],
)
def test_an_error_is_shown_beside_what_it_is_about(about: tuple[str, ...], path: tuple[str, ...]) -> None:
    draft = {
        "source": {"file": "firms.csv", "where": "a > 1", "respondent": "firm"},
        "dimensions": {"nace": {"hierarchy": "trees/nace.hrc"}, "region": {"column": "area"}},
        "response": {"value": "turnover"},
        "rules": [{"rule": "threshold"}, {"rule": "p_percent"}],
        "method": {"name": "suppress", "margin": 0.1},
    }
    assert key_of(draft, about) == path


@pytest.mark.parametrize(
    ("change", "path"),
    [
        (('value = "turnover"', 'value = "turnovr"'), ("response", "value", 0)),
        (('respondent = "firm"', 'respondent = "firn"'), ("source", "respondent")),
        (("[source]", "[source]\nwhere = 'nace = 1 AND'"), ("source", "where")),
    ],
)
def test_the_work_itself_says_what_an_error_is_about(
    desk: Desk, change: tuple[str, str], path: tuple[str, ...]
) -> None:
    job = JOB.replace(*change)
    assert job != JOB
    with pytest.raises(TablesafeError) as raised:
        build_problem(parse_job(job, desk.folder / "job.toml"))
    assert key_of(tomllib.loads(job), raised.value.about) == path


# -- the curve ---------------------------------------------------------------------------------------------------


def test_the_curve_shows_bound_and_best_answer() -> None:
    assert curve([]) == ""
    assert curve([Point(1.0, None, 3.0)]) == ""
    drawn = curve([Point(0.0, 200.0, 0.0), Point(2.0, 150.0, float("inf")), Point(4.0, 120.0, 100.0)])
    assert drawn.count("<polyline") == 2
    assert "best 120, no less than 100, gap 16.7%" in drawn
    assert "nan" not in drawn


def test_an_answer_that_the_bound_has_passed_is_dotted_until_there_is_one_that_withstands_more() -> None:
    told = [Point(0.0, 90.0, 10.0), Point(2.0, 50.0, 50.0), Point(4.0, None, 70.0), Point(8.0, 100.0, 90.0)]
    drawn = curve(told)
    drawn_as = re.compile(
        r'points="(\S+)[^"]* (\S+)" fill="none" stroke="(#\w+)" stroke-width="2" stroke-dasharray="([^"]*)"'
    )
    lines = drawn_as.findall(drawn)
    assert [tuple(line[2:]) for line in lines] == [(ORANGE, "6 4"), (BLUE, ""), (BLUE, "1 5"), (BLUE, "")]
    begins, ends = ([line[i].partition(",")[0] for line in lines[1:]] for i in (0, 1))
    assert begins[1:] == ends[:-1]  # one goes on where the other ends
    assert [line[3] for line in drawn_as.findall(curve(told[:2]))] == ["6 4", ""]


def test_a_single_answer_is_a_mark_and_a_line_up_to_now() -> None:
    drawn = curve([Point(2.0, 50.0, 0.0)], 10.0)
    line = re.search(r'points="([^"]+)"', drawn)
    assert line is not None
    places = [tuple(map(float, place.split(","))) for place in line[1].split()]
    assert places[0][0] < places[-1][0]  # it has a length
    assert places[0][1] == places[-1][1]
    assert drawn.count("●</text>") == 1
    assert "no bound is proven" in drawn
    assert "no less than" not in drawn
    assert "10 s" in drawn
    assert "6.0 s" in curve([Point(5.0, 50.0, 0.0)], 10.0, 4.0)  # reading the data before is no part of the search


@given(
    st.lists(st.tuples(st.floats(0, 1e4), st.floats(0, 1e12), st.floats(allow_nan=False)), min_size=1, max_size=60),
    st.floats(0, 1e5),
)
def test_whatever_is_told_is_drawn_inside_the_picture(told: list[tuple[float, float, float]], now: float) -> None:
    drawn = curve([Point(seconds, best, bound) for seconds, best, bound in sorted(told)], now)
    for numbers in re.findall(r'points="([^"]+)"', drawn):
        for place in numbers.split():
            x, y = map(float, place.split(","))
            assert 0 <= x <= WIDE
            assert 0 <= y <= HIGH
    assert "proven to be the least" in drawn or "best" in drawn


def test_pages_that_run_in_workers_do_not_load_the_framework() -> None:
    folder = Path(__file__).parents[2] / "src" / "tablesafe" / "web"
    tasks = sorted((folder / "tasks").glob("*.py"))
    assert {"windows", "data", "results"} <= {path.stem for path in tasks}
    for path in (*tasks, folder / "long_tasks.py"):
        assert "nicegui" not in path.read_text(encoding="utf-8")


# -- stages of a run -----------------------------------------------------------------------------------------------


def going(stage: str, *costs: tuple[float, float], seconds: float = 10.0, limit: float | None = 60.0) -> Run:
    run = Run("run-1", Path(), "t", "", state=State.RUNNING, stage=stage, limit_s=limit)
    run.history = [Point(float(at), cost, bound) for at, (cost, bound) in enumerate(costs)]
    run.started, run.ended = 0.0, seconds
    return run


def test_a_cost_that_rises_says_against_whom() -> None:
    """46.8 million, met by its bound, becomes 81.1 when respondents are guarded: both are told, and why."""
    run = going("protect", (90e6, 10e6), (46.8e6, 46.8e6), (81.1e6, 46.8e6))
    told = [each.words for each in stages(run)]
    assert "Against outsiders: 46,800,000" in told
    assert "Against respondents and sums: 34,300,000 more, 81,100,000 in all" in told
    words = curve(run.history)
    assert "46,800,000 hide the cells from outsiders, proven to be the least" in words
    assert "costs 34,300,000 more: 81,100,000" in words


def test_what_is_still_to_be_hidden_from_others_is_told_from_the_beginning() -> None:
    run = going("protect", (8.0, 5.0))
    run.beyond = "respondents and sums"
    assert [(each.mark, each.words) for each in stages(run)][1:3] == [
        ("now", "Against outsiders: 8"),
        ("later", "Against respondents and sums"),
    ]
    run = going("protect", (8.0, 8.0))
    run.beyond = "respondents"
    assert [(each.mark, each.words) for each in stages(run)][1:3] == [
        ("done", "Against outsiders: 8"),
        ("now", "Against respondents"),
    ]
    words = curve(run.history, beyond=run.beyond)
    assert "8 hide the cells from outsiders, proven to be the least; what it takes against respondents" in words
    assert "best 8, proven to be the least" in curve(run.history)  # nobody else is to be withstood
    run.state = State.FAILED
    assert [each.mark for each in stages(run)][1:3] == ["done", "later"]


def test_a_run_that_stops_says_what_it_keeps() -> None:
    assert stopping(going("protect")) == (
        "stopping: the best safe pattern so far is kept; if there is none yet, nothing is published but zeros"
    )
    assert stopping(going("protect", (8.0, 5.0))) == "stopping: the answer that costs 8 is made safe and kept"


def test_the_stages_of_a_finished_run_are_those_of_its_method() -> None:
    run = going("write", (8.0, 8.0))
    prices = [("outsiders", 5, 8.0), ("respondents", 2, 3.0), ("sums", 0, 0.0)]
    attackers = [{"attacker": who, "cells": cells, "cost": cost, "proved": True} for who, cells, cost in prices]
    run.facts = {"solution": {"attackers": attackers}, "verdict": "SAFE"}
    run.state = State.DONE
    assert [(each.mark, each.words) for each in stages(run)] == [
        ("done", "Table and rules"),
        ("done", "Against outsiders: 8 (5 cells)"),
        ("done", "Against respondents: 3 more (2 cells more)"),
        ("done", "Against sums: nothing more"),
        ("done", "Audit and certificate: SAFE"),
        ("done", "Files"),
    ]


def test_the_bar_only_grows_and_is_full_at_the_end() -> None:
    order = [("start", 0.0), ("tabulate", 1.0), ("rules", 2.0), ("protect", 3.0), ("protect", 30.0), ("audit", 50.0)]
    shares = []
    for stage, seconds in [*order, ("write", 70.0)]:
        run = going(stage, seconds=seconds)
        run.search_began = 3.0
        shares.append(share_done(run) or 0.0)
    assert shares == sorted(shares)
    assert shares[-1] < 1
    run.state = State.DONE
    assert share_done(run) == 1


def test_the_time_that_is_left_is_that_of_the_limit() -> None:
    run = going("protect", seconds=23.0)
    run.search_began = 3.0
    assert time_left(run) == "at most 40 s left"
    run.ended = 80.0
    assert time_left(run) == "the time limit is over: what is left is finished"
    assert time_left(going("protect", limit=None)) == ""


def test_a_hierarchy_is_matched_to_the_dimension_whose_codes_it_holds(desk: Desk) -> None:
    (desk.folder / "codes.hrc").write_text("A\n@A01\n@A02\nB\n@B05\n@B06\nC\n@C10\n@C11\n@C12\n")
    (desk.folder / "gaps.hrc").write_text("A\n@A01\n@A02\nB\n@B05\n@B06\nC\n@C10\n")
    (desk.folder / "other.hrc").write_text("A\n@A01\n@A02\nD\n@D1\n@D2\n")
    draft = {
        "source": {"file": "firms.csv"},
        "dimensions": {"nace": {}, "region": {}},
        "rules": [{"rule": "threshold"}],
    }
    assert fits(desk, draft, "codes.hrc") == {"nace": 0}
    assert fits(desk, draft, "gaps.hrc") == {"nace": 1}  # the page Dimensions asks where that code counts
    assert fits(desk, draft, "other.hrc") == {}
    del draft["dimensions"]["nace"]  # a column that nothing is made of yet
    assert fits(desk, draft, "codes.hrc") == {}
    assert fits(desk, draft, "codes.hrc", ["region", "turnover"]) == {"nace": 0}
    draft["dimensions"]["nace"] = {"hierarchy": "codes.hrc"}
    assert fits(desk, draft, "codes.hrc") == {}


def test_a_copied_view_is_the_view(finished: Desk) -> None:
    view = {"of": {"run": "run-1"}, "opened": "all"}
    part = window(finished, view, [0, 100, 0, 100])
    text, copied, of = as_text(finished, view)
    lines = [line.split("\t") for line in text.splitlines()]
    assert len(lines) - 1 == copied == of
    assert lines[0][1:] == [head["text"] for head in part["heads"]]
    assert [line[0] for line in lines[1:]] == [row["text"] for row in part["rows"]]
    assert [line[1:] for line in lines[1:]] == [
        [cell[0].replace(",", "") for cell in row["cells"]] for row in part["rows"]
    ]


def test_tables_are_said_in_the_language_of_whoever_asks(finished: Desk) -> None:
    """Side by side in one process: neither gets what was said to the other."""
    view, german = {"of": {"run": "run-1"}, "opened": "all", "truth": True}, replace(finished, language="de")
    cells = [
        [cell for row in window(desk, view, [0, 100, 0, 100])["rows"] for cell in row["cells"]]
        for desk in (finished, german, finished)
    ]
    assert cells[0] == cells[2]
    english, other = ([hover for _, _, _, hover, *_ in each] for each in cells[:2])
    assert all("contributor" in hover for hover in english if hover)
    assert not [hover for hover in other if re.search("contributor|True value|attacker", hover)]
    assert {text.replace(",", THOUSANDS) for text, *_ in cells[0]} == {text for text, *_ in cells[1]}
    assert any(THOUSANDS in text for text, *_ in cells[1])
    assert THOUSANDS not in as_text(german, view)[0]


@pytest.mark.parametrize(
    ("text", "code", "copied"),
    [
        ("1,234,567.50", "en", "1234567.50"),
        ("-1,234", "en", "-1234"),
        (f"1{THOUSANDS}234,125", "de", "1234,125"),
        ("1,125", "de", "1,125"),
        ("p_percent, threshold", "en", "p_percent, threshold"),
        ("1,000 to 2,000", "en", "1,000 to 2,000"),
        ("×", "fr", "×"),
    ],
)
def test_numbers_are_copied_as_spreadsheets_read_them(text: str, code: str, copied: str) -> None:
    assert plain(text, language(code)) == copied


@pytest.mark.parametrize(
    ("codes", "ordered"),
    [
        (["250+", "1-9", "50-249", "10-49"], ["1-9", "10-49", "50-249", "250+"]),
        (["r10", "r9", "r1", "a"], ["a", "r1", "r9", "r10"]),
        (["10", "9", "-1"], ["-1", "9", "10"]),
        (["b", "a2b", "a2a", "a10"], ["a2a", "a2b", "a10", "b"]),
    ],
)
def test_codes_stand_in_the_order_that_a_reader_expects(codes: list[str], ordered: list[str]) -> None:
    assert in_order(codes) == ordered


CLASS = r"\.([a-zA-Z][\w-]*(?:\\\.\d)?)"


def test_every_class_of_pages_is_in_a_style_sheet_and_no_other_is_kept_ready() -> None:
    """No script looks for classes in the browser: what a page names and no sheet has would do nothing, unnoticed."""
    web = Path(tablesafe.__file__).parent / "web"
    named: set[str] = set()
    for path in web.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func).endswith(".classes"):
                parts = [each for part in (*node.args, *node.keywords) for each in ast.walk(part)]
                asked = {id(each) for part in parts if isinstance(part, ast.Compare) for each in ast.walk(part)}
                told = [each.value for each in parts if isinstance(each, ast.Constant) and id(each) not in asked]
                texts = [each for each in told if isinstance(each, str)]
                named |= {word for text in texts for word in text.split()}
    sheets = {path.name: path.read_text(encoding="utf-8") for path in (web / "static").glob("*.css")}
    words = {name: {each.replace("\\", "") for each in re.findall(CLASS, text)} for name, text in sheets.items()}
    assert len(named) > 80
    assert sorted(word for word in named - set().union(*words.values()) if word[:2] not in {"q-", "k-"}) == []
    utilities = sheets["plain.css"].partition("@layer utilities")[2]
    assert sorted({each.replace("\\", "") for each in re.findall(CLASS, utilities)} - named) == []
