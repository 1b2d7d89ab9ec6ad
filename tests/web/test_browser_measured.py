"""In a real browser: how solutions spread, what an attacker derives on request, values tried in turn, risk and loss."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from browsing import UNNAMED, Visitor, firms

from tablesafe.job import load_job


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return firms(tmp_path_factory.mktemp("data") / "firms.csv")


def test_a_result_is_looked_at_more_closely(visitor: Visitor, data: Path) -> None:
    page = visitor.page
    visitor.upload(data)
    visitor.step("Method")
    section = visitor.run()
    visitor.look(section)
    _an_interval_is_found_on_request(visitor)
    _solutions_of_an_attack_are_drawn(visitor)
    visitor.step("Method")
    drawn = page.locator("section[aria-label='run-1'] svg[role=img]")
    assert "hide the cells from outsiders" in drawn.get_attribute("aria-label")
    assert drawn.locator("polyline").first.get_attribute("points").count(",") >= 2
    assert not visitor.complaints


def _an_interval_is_found_on_request(visitor: Visitor) -> None:
    """Pointing tells how to ask; clicking, or arriving by keyboard, asks; then pointing tells, too."""
    page = visitor.page
    cell = page.locator(".ts-cell.k-complementary").first
    cell.hover()
    assert "Click on it" in page.locator(".ts-bubble").inner_text()
    cell.click()
    page.wait_for_function("document.querySelector('.ts-told').textContent.includes('An attacker derives')")
    panel = page.get_by_role("complementary", name="Cell")
    panel.get_by_role("heading", name="It protects").wait_for()
    panel.get_by_role("button", name="Close").click()
    page.mouse.move(5, 5)
    cell.hover()
    assert "An attacker derives" in page.locator(".ts-bubble").inner_text()
    grid = page.get_by_role("grid")
    grid.focus()
    page.keyboard.press("Control+Home")
    for _ in range(40):  # down and to the right, line by line, until another such cell
        page.keyboard.press("ArrowDown")
        told = page.locator(".ts-told").inner_text()
        if "Click on it" in told:
            break
        if "C11" in told:
            for _ in range(6):
                page.keyboard.press("ArrowUp")
            page.keyboard.press("ArrowRight")
    assert "Click on it" in page.locator(".ts-told").inner_text()
    page.wait_for_function("document.querySelector('.ts-told').textContent.includes('An attacker derives')")


def _solutions_of_an_attack_are_drawn(visitor: Visitor) -> None:
    page = visitor.page
    page.get_by_role("tab", name="Attacks").click()
    page.get_by_role("button", name="Attack", exact=True).click()
    panel = page.get_by_role("region", name="Densities")
    panel.locator("figure svg").first.wait_for()
    pictures = panel.get_by_role("img").count()
    assert pictures == panel.locator("figure").count() > 1
    words = panel.get_by_role("img").first.get_attribute("aria-label")
    assert "The true value is" in words
    assert "to be hidden from" in words
    panel.locator("summary").first.press("Enter")  # the same in numbers, by keyboard
    assert panel.locator("details[open] tbody tr").count() == 10
    panel.get_by_label("Cells", exact=True).press("Backspace")  # takes the last cell away
    page.wait_for_function(f"document.querySelectorAll('figure svg').length === {pictures - 1}")
    assert page.evaluate(UNNAMED) == []


def test_values_are_tried_measured_and_taken(visitor: Visitor, data: Path, tmp_path: Path) -> None:
    page = visitor.page
    visitor.upload(data)
    visitor.step("Compare")
    before = visitor.job()
    page.get_by_label("Option", exact=True).wait_for()
    visitor.choose("Option", "margin")
    values = page.get_by_label("Values, separated by commas")
    values.fill("0, -4")
    values.press("Enter")
    page.get_by_role("region", name="Try several values").get_by_text("margin").last.wait_for()
    assert page.get_by_role("region", name="Runs under way").count() == 0  # one is wrong: none is started
    values.fill("0, 3")
    page.get_by_role("button", name="Run them").click()
    page.get_by_role("region", name="Runs under way").get_by_text("margin = 3").wait_for()
    assert page.get_by_role("button", name="Stop run-2").is_visible()
    assert visitor.job() == before
    card = page.get_by_role("region", name="Risk against loss")
    card.get_by_text("2 releases of the table").wait_for()
    card.get_by_role("button", name="Measure").click()
    picture = card.get_by_role("img")
    picture.wait_for()
    page.get_by_role("region", name="Measures of the releases").or_(card.locator("table")).first.wait_for()
    assert "Loss against risk of 2 releases" in picture.get_attribute("aria-label")
    lines = card.locator("tbody tr").all_inner_texts()
    assert [line.split()[0] for line in lines] == ["run-1:", "run-2:"]
    assert any("✓ yes" in line for line in lines)
    visitor.choose("Risk", "least room, in protection levels")
    page.wait_for_function("[...document.querySelectorAll('svg text')].some(t => t.textContent.includes('least room'))")
    assert page.evaluate(UNNAMED) == []
    card.get_by_role("button", name="Make the job of run-2 the one that is edited").click()
    visitor.until_job(lambda job: job.get("method", {}).get("margin") == 3)
    taken = visitor.job()
    assert tomllib.loads(taken)["method"]["margin"] == 3
    _the_run_can_be_made_again(visitor, taken, data, tmp_path)
    assert not visitor.complaints


def _the_run_can_be_made_again(visitor: Visitor, taken: str, data: Path, tmp_path: Path) -> None:
    """What was tried in the app is a job file: from the shell it makes the same release."""
    page = visitor.page
    visitor.step("Result")
    page.get_by_role("link", name="Release (CSV)", exact=True).wait_for()
    with page.expect_download() as waiting:
        page.get_by_role("link", name="Release (CSV)", exact=True).click()
    waiting.value.save_as(tmp_path / "app.csv")
    (tmp_path / data.name).write_bytes(data.read_bytes())
    (tmp_path / "job.toml").write_text(taken, encoding="utf-8")
    command = [sys.executable, "-m", "tablesafe", "run", str(tmp_path / "job.toml"), "--quiet"]
    assert subprocess.run(command, check=False).returncode == 0
    made = tmp_path / load_job(tmp_path / "job.toml").output.release[0]
    assert made.read_bytes() == (tmp_path / "app.csv").read_bytes()
