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
    _truths_are_shown_only_on_request(visitor)
    page.get_by_role("tab", name="Loss").click()
    page.get_by_role("heading", name="Finest level").wait_for()
    levels = page.get_by_role("heading", name="By level, the finest first")
    assert levels.bounding_box()["y"] > page.get_by_role("heading", name="Finest level").bounding_box()["y"]
    _a_release_of_nothing_is_no_answer(visitor)
    assert not visitor.complaints


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
