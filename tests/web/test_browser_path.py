"""The whole path in a real browser: upload, columns, hierarchy, rules, run, table, compare, downloads."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from browsing import UNNAMED, Visitor, firms

from tablesafe.job import load_job

DRAW_ANEW = """() => {
    const grid = getElement(Number(document.querySelector('.ts-grid-box').id.slice(1)));
    grid.fill(JSON.parse(JSON.stringify(grid.held)));
}"""
"""What an answer to the question for a window does."""


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return firms(tmp_path_factory.mktemp("data") / "firms.csv")


def saved(visitor: Visitor, link: str, folder: Path) -> Path:
    """Download what a link of the result page names."""
    with visitor.page.expect_download() as waiting:
        visitor.page.get_by_role("link", name=link, exact=True).click()
    path = folder / str(waiting.value.suggested_filename)
    waiting.value.save_as(path)
    return path


def test_from_upload_to_download(visitor: Visitor, data: Path, tmp_path: Path) -> None:
    page = visitor.page
    visitor.upload(data)
    _columns_are_guessed(visitor)
    _a_hierarchy_is_built_by_looking_at_it(visitor)
    _sliders_change_what_is_sensitive(visitor)
    _nothing_is_without_a_name(visitor)
    visitor.step("Method")
    visitor.write("seed", "3")
    section = visitor.run()
    visitor.look(section)
    assert page.get_by_role("status", name="Verdict").inner_text().startswith("✓ SAFE")
    _the_table_tells_why(visitor)
    _a_click_survives_what_is_drawn_meanwhile(visitor)
    page.get_by_role("tab", name="Decisions").click()
    page.get_by_text("None yet.").wait_for()
    for tab in ("Plots", "Loss"):
        page.get_by_role("tab", name=tab).click()
        page.locator(".q-tab-panel:visible").locator("table, svg").first.wait_for()
    _downloads_agree_with_the_shell(visitor, data, tmp_path)
    _a_cell_is_found_and_decided_on(visitor)
    _attacks_are_scored(visitor)
    _two_releases_side_by_side(visitor)
    assert visitor.hosts() == {f"127.0.0.1:{visitor.app.port}"}
    _nothing_stays_in_the_browser(visitor, data)
    assert not visitor.complaints


def _columns_are_guessed(visitor: Visitor) -> None:
    page = visitor.page
    table = page.locator("table.ts-list").inner_text()
    assert all(name in table for name in ("firm", "nace", "region", "turnover"))
    shown = {
        name: page.get_by_role("combobox", name=f"What {name} is").locator("xpath=ancestor::label").inner_text()
        for name in ("firm", "nace", "turnover")
    }
    assert [text.splitlines()[0] for text in shown.values()] == ["respondent", "dimension", "value"]
    draft = tomllib.loads(visitor.job())
    assert draft["source"]["respondent"] == "firm"


def _a_hierarchy_is_built_by_looking_at_it(visitor: Visitor) -> None:
    visitor.step("Dimensions")
    page = visitor.page
    tree = page.get_by_role("region", name="Tree of nace")
    tree.get_by_text("7 codes").wait_for()
    visitor.choose("kind", "by the beginnings of codes")
    page.get_by_role("checkbox", name="1", exact=True).first.click()
    tree.get_by_text("10 codes").wait_for()
    assert tree.get_by_text("A (2)").is_visible()
    assert tomllib.loads(visitor.job())["dimensions"]["nace"]["lengths"] == [1]


def _sliders_change_what_is_sensitive(visitor: Visitor) -> None:
    visitor.step("Rules")
    page = visitor.page
    before = visitor.number()
    slider = page.get_by_role("slider", name="p", exact=True)
    slider.focus()
    for _ in range(2):
        page.keyboard.press("PageUp")
    page.wait_for_function(f"document.querySelector('.ts-big').textContent !== '{before:,}'")
    assert visitor.number() > before
    strict = next(rule for rule in tomllib.loads(visitor.job())["rules"] if rule["rule"] == "p_percent")
    assert strict["p"] > 10
    page.get_by_role("button", name="Look at the table").click()
    page.locator(".ts-cell.k-sensitive").first.wait_for()


def _nothing_is_without_a_name(visitor: Visitor) -> None:
    for step in ("Data", "Dimensions", "Rules", "Method"):
        visitor.step(step)
        assert visitor.page.evaluate(UNNAMED) == []


def _the_table_tells_why(visitor: Visitor) -> None:
    page = visitor.page
    lines = page.locator(".ts-line").count()
    cell = page.locator(".ts-cell.k-sensitive").first
    assert "S" in cell.inner_text()  # a sign, not the colour alone
    cell.hover()
    told = page.locator(".ts-bubble").inner_text()
    assert "Sensitive by" in told
    assert "An attacker derives" in told
    page.get_by_role("button", name="Fold A (2)").or_(page.get_by_role("button", name="Fold A", exact=True)).click()
    page.wait_for_function(f"document.querySelectorAll('.ts-line').length === {lines - 2}")
    page.get_by_role("button", name="Unfold all").click()
    page.wait_for_function(f"document.querySelectorAll('.ts-line').length === {lines}")


def _a_click_survives_what_is_drawn_meanwhile(visitor: Visitor) -> None:
    """The answer to an earlier question may come while a button is being pressed."""
    page = visitor.page
    lines = page.locator(".ts-line").count()
    page.get_by_role("button", name="Fold A (2)").or_(page.get_by_role("button", name="Fold A", exact=True)).hover()
    page.mouse.down()
    page.evaluate(DRAW_ANEW)
    page.mouse.up()
    page.wait_for_function(f"document.querySelectorAll('.ts-line').length === {lines - 2}")
    page.get_by_role("button", name="Unfold all").click()
    page.wait_for_function(f"document.querySelectorAll('.ts-line').length === {lines}")


def _downloads_agree_with_the_shell(visitor: Visitor, data: Path, tmp_path: Path) -> None:
    """The job file, run from the shell beside the same data, makes the same release."""
    here, there = tmp_path / "app", tmp_path / "shell"
    here.mkdir()
    there.mkdir()
    (there / data.name).write_bytes(data.read_bytes())
    job = saved(visitor, "Job file", there)
    release = saved(visitor, "Release (CSV)", here)
    for link in ("Release (Excel)", "Public report", "Internal report", "Certificate"):
        assert saved(visitor, link, here).stat().st_size > 500
    done = subprocess.run([sys.executable, "-m", "tablesafe", "run", str(job), "--quiet"], check=False)
    assert done.returncode == 0
    assert release.read_bytes() == (there / load_job(job).output.release[0]).read_bytes()


def _a_cell_is_found_and_decided_on(visitor: Visitor) -> None:
    """By its code, then in its panel; the result is outdated, and going back makes it current again."""
    page = visitor.page
    page.get_by_role("tab", name="Cells", exact=True).click()
    page.get_by_label("Status", exact=True).click()
    page.get_by_role("option", name="every status").click()
    page.get_by_label("Find by code or name").fill("C11 north")
    page.get_by_text("1 cell", exact=True).wait_for()
    page.locator(".q-tab-panel:visible .ts-cell").first.click()
    panel = page.get_by_role("complementary", name="Cell")
    panel.get_by_role("heading", name="nace C11 · region North").wait_for()
    _the_table_is_beside_the_panel(visitor, panel)
    panel.get_by_role("button", name=re.compile("^What if it were")).click()
    panel.get_by_text(re.compile("(SAFE|OPEN|PROVED): ")).wait_for()
    panel.get_by_label("Reason").fill("everybody knows the firm")
    panel.get_by_role("button", name="Decide", exact=True).click()
    outdated = page.get_by_role("status", name="Outdated")
    outdated.get_by_text("C11 · North: not decided → sensitive").wait_for()
    panel.get_by_role("button", name="Close").click()
    assert tomllib.loads(visitor.job())["problem"]["apriori"] == "decisions.csv"
    page.get_by_role("tab", name="Decisions").click()
    page.get_by_role("cell", name="everybody knows the firm").wait_for()
    page.get_by_role("button", name="Undo the last").click()
    outdated.wait_for(state="detached")


IN_SIGHT = """() => { const cell = [...document.querySelectorAll('.ts-cell.ts-at')].find(e => e.offsetParent);
    return cell && cell.getBoundingClientRect().bottom <= innerHeight && cell.getBoundingClientRect().top >= 0; }"""


def _the_table_is_beside_the_panel(visitor: Visitor, panel: Any) -> None:
    """Nothing of what the panel speaks of is under it, and the cell is in sight."""
    page = visitor.page
    for width in (1024, 1400):
        page.set_viewport_size({"width": width, "height": 900})
        page.locator(".q-tab-panel:visible .ts-cell").first.click()
        page.wait_for_function(IN_SIGHT)
        main, beside = page.locator(".ts-grid:visible").first.bounding_box(), panel.bounding_box()
        assert main["x"] + main["width"] <= beside["x"], width
        assert page.evaluate("() => document.documentElement.scrollWidth <= innerWidth"), width


def _attacks_are_scored(visitor: Visitor) -> None:
    page = visitor.page
    page.get_by_role("tab", name="Attacks").click()
    page.get_by_role("button", name="Attack", exact=True).click()
    page.get_by_role("cell", name="analytic centre").first.wait_for()


def _two_releases_side_by_side(visitor: Visitor) -> None:
    page = visitor.page
    visitor.step("Method")
    visitor.choose("method", "withhold")
    section = visitor.run("run-2")
    section.get_by_role("button", name="Look at the result").wait_for()
    assert "open" in section.inner_text()
    visitor.step("Compare")
    page.locator(".ts-cell.ts-differs").first.wait_for()
    assert page.get_by_role("grid").count() == 2
    told = page.get_by_role("region", name="Loss and risk").inner_text()
    assert re.search(r"verdict\s+SAFE\s+OPEN", told)


def _nothing_stays_in_the_browser(visitor: Visitor, data: Path) -> None:
    kept = re.sub(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "", visitor.stored())  # by chance any digits
    words = {word for line in data.read_text().splitlines() for word in line.split(",") if len(word) > 3}
    assert not {word for word in words if word in kept}
    cookies: list[dict[str, Any]] = visitor.page.context.cookies()
    assert [(cookie["httpOnly"], cookie["sameSite"]) for cookie in cookies] == [(True, "Strict")]
