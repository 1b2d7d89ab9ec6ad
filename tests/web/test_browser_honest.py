"""What pages say is so: stages with their costs, no true value unless asked for, losses of the finest level first."""

from __future__ import annotations

import re
from pathlib import Path

from browsing import Visitor, firms

FLAGS = """region,size,turnover,flag,n
Total,Total,100,F,9
Total,a,60,F,5
Total,b,40,F,4
N,Total,50,F,5
N,a,30,A,2
N,b,20,D,3
S,Total,50,F,4
S,a,30,D,3
S,b,20,A,1
"""


POSSIBLY = """title = "Possibly open"
[source]
file = "cells.csv"
kind = "cells"
count = "n"
contributions = ["first", "second"]
contributors = ["who", "other"]
[response]
value = "amount"
[dimensions.row]
[dimensions.column]
[[rules]]
rule = "manual"
cells = "mark"
lower = "level"
upper = "level"
[method]
name = "pattern"
file = "pattern.csv"
"""
CELLS = """row,column,amount,n,first,second,who,other,mark,level
Total,Total,509,14,100,55,A,G,0,0
Total,x,248,5,100,50,A,F,0,0
Total,y,159,6,50,50,I,J,0,0
Total,z,102,6,30,30,O,P,0,0
a,Total,131,6,100,11,A,B,0,0
a,x,103,2,100,3,A,B,1,22
a,y,14,3,5,5,C,D,0,0
a,z,14,3,5,5,E,G,0,0
b,Total,378,9,50,50,F,G,0,0
b,x,145,3,50,50,F,G,0,0
b,y,145,3,50,50,I,J,0,0
b,z,88,3,30,30,O,P,0,0
"""
"""B has 4 in (a, y) and in (a, z): the two largest that are listed do not show it, and B could know much of (a, x)."""
HOLDING = "[...document.querySelectorAll('.ts-line')].filter(line => line.querySelector('.ts-cell.{css}')).length"
SHOWN = "[...document.querySelectorAll('.ts-line')].every(line => line.querySelector('.ts-cell.{css}'))"


def test_a_result_says_what_it_cost_and_gives_nothing_away(visitor: Visitor, tmp_path: Path) -> None:
    page = visitor.page
    visitor.upload(firms(tmp_path / "secret.csv"))
    visitor.step("Method")
    assert page.get_by_role("region", name="Method").locator("summary", has_text="More options").is_visible()
    visitor.write("time_limit_s", "600")
    section = visitor.run()
    section.get_by_role("button", name="Look at the result").wait_for()
    stages = section.get_by_role("list", name="Stages").inner_text()
    assert re.search(r"Against outsiders: [\d,]+ \(\d+ cells?\)", stages)
    assert "Against respondents: " in stages
    assert "Audit and certificate: SAFE" in stages
    assert section.get_by_role("progressbar").get_attribute("aria-valuenow") == "100"
    visitor.look(section)
    with page.expect_download() as waiting:
        page.get_by_role("link", name="Release (CSV)", exact=True).click()
    assert "secret" not in waiting.value.suggested_filename
    _only(visitor, "lines with cells that are sensitive", "k-sensitive")
    _only(visitor, "lines with cells that are complementary", "k-complementary")
    _truths_are_shown_only_on_request(visitor)
    page.get_by_role("tab", name="Loss").click()
    page.get_by_role("heading", name="Finest level").wait_for()
    levels = page.get_by_role("heading", name="By level, the finest first")
    assert levels.bounding_box()["y"] > page.get_by_role("heading", name="Finest level").bounding_box()["y"]
    _a_release_of_nothing_is_no_answer(visitor)
    assert not visitor.complaints


def _only(visitor: Visitor, words: str, css: str) -> None:
    """Lines without such a cell go, all others stay; then all lines again."""
    page = visitor.page
    every, holding = page.locator(".ts-line").count(), page.evaluate(HOLDING.format(css=css))
    assert holding
    visitor.choose("Show", words)
    page.wait_for_function(SHOWN.format(css=css))
    assert page.locator(".ts-line").count() == holding
    visitor.choose("Show", "all lines")
    page.wait_for_function(f"document.querySelectorAll('.ts-line').length === {every}")


def _truths_are_shown_only_on_request(visitor: Visitor) -> None:
    page = visitor.page
    withheld = page.locator(".ts-cell.k-sensitive").first
    bubble = page.get_by_role("tooltip").first
    withheld.hover()
    bubble.filter(has_text="sensitive").wait_for()
    told = bubble.inner_text()
    page.get_by_text("Show true values").first.click()
    page.wait_for_function("/[0-9]/.test(document.querySelector('.ts-cell.k-sensitive').textContent)")
    truth = re.sub(r"[^\d,.]", "", withheld.inner_text())
    assert truth
    assert truth not in told
    assert "to be hidden from" not in told.lower()


def _a_release_of_nothing_is_no_answer(visitor: Visitor) -> None:
    """Every cell is sensitive: it is safe to withhold all of them, and nobody is told that this is well."""
    page = visitor.page
    visitor.step("Rules")
    visitor.write("n", "1000")
    visitor.step("Method")
    section = visitor.run("run-2")
    section.get_by_text("done: safe, but nothing is published").wait_for()
    visitor.look(section)
    told = page.get_by_role("status", name="Nothing is published")
    assert "Nothing is published but zeros" in told.inner_text()
    assert told.get_by_role("button", name="Run again").is_visible()
    assert "safe" not in (page.get_by_role("status", name="Verdict").get_attribute("class") or "").split()


def test_statuses_that_can_be_read_in_several_ways_are_asked_about(visitor: Visitor, tmp_path: Path) -> None:
    (tmp_path / "flags.csv").write_text(FLAGS, encoding="utf-8")
    visitor.upload(tmp_path / "flags.csv")
    assert visitor.page.get_by_role("combobox", name="What flag is").input_value() == "status"
    visitor.step("Rules")
    visitor.page.get_by_role("button", name="Set scheme to sdmx-conf").first.click()
    visitor.until_job(lambda job: job["source"].get("scheme") == "sdmx-conf")
    assert visitor.number() == 2


def test_what_is_possibly_open_is_never_green_and_can_be_found(visitor: Visitor, tmp_path: Path) -> None:
    page = visitor.page
    held = [line.split(",")[:2] for line in CELLS.splitlines()[1:]]
    pattern = [[*codes, "published" if "Total" in codes else "withheld"] for codes in held]
    for name, text in {
        "job.toml": POSSIBLY,
        "cells.csv": CELLS,
        "pattern.csv": "\n".join(map(",".join, [["row", "column", "status"], *pattern])),
    }.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    visitor.upload(*(tmp_path / name for name in ("cells.csv", "pattern.csv", "job.toml")))
    visitor.until_job(lambda job: job["method"]["name"] == "pattern")
    visitor.step("Method")
    visitor.look(visitor.run())
    told = page.get_by_role("status", name="Possibly open")
    assert told.inner_text().startswith("? 1 possibly open")
    assert "largest = 3" in told.inner_text()
    assert "safe" not in (page.get_by_role("status", name="Verdict").get_attribute("class") or "").split()
    _only(visitor, "lines with cells that are possibly open", "k-possibly-open")
    visitor.step("Method")
    visitor.choose("method", "withhold")
    visitor.look(visitor.run("run-2"))
    assert page.get_by_role("status", name="Verdict").inner_text().startswith("! OPEN")
    _only(visitor, "lines with cells that are open", "k-open")
    _only(visitor, "lines with withheld cells", "k-open")
    assert not visitor.complaints
