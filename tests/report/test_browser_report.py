"""The page in a real browser: it folds, changes slices, is walked by keyboard, prints, and asks nobody for anything."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from report_cases import guarded, made, magnitude

import tablesafe as ts
from tablesafe.report.excerpt import PAGE

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api", reason="the browser tests need playwright")
    if CHROMIUM is None:
        pytest.skip("the browser tests need Chromium")
    with playwright.sync_playwright() as running:
        chromium = running.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield chromium
        chromium.close()


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    """A page that notes what goes wrong and what it asks for."""
    shown = browser.new_page(viewport={"width": 1280, "height": 900})
    shown.troubles, shown.asked = [], []
    shown.on("console", lambda message: shown.troubles.append(message.text))
    shown.on("pageerror", lambda error: shown.troubles.append(str(error)))
    shown.on("request", lambda request: shown.asked.append(request.url))
    yield shown
    shown.close()


def visible(page: Any) -> list[str]:
    """The codes of the lines that show."""
    rows = page.locator(".slice:not([hidden]) tbody tr:not([hidden])")
    return [text.split()[0] for text in rows.locator("th").all_inner_texts()]


@pytest.mark.parametrize("internal", [False, True])
def test_the_hierarchy_folds(page: Any, written: Callable[..., Path], internal: bool) -> None:
    page.goto(written(made("suppress"), ".html", internal=internal).as_uri())
    every = visible(page)
    assert len(every) == 11
    page.get_by_role("button", name="Fold A", exact=True).click()
    assert visible(page) == [code for code in every if code not in {"A1", "A2", "+A3"}]
    page.get_by_role("button", name="Unfold A", exact=True).press("Enter")
    assert visible(page) == every
    page.get_by_role("button", name="Fold to the first level").click()
    assert visible(page) == ["Total", "A", "B", "=C"]
    page.get_by_role("button", name="Fold Total", exact=True).click()
    assert visible(page) == ["Total"]
    page.get_by_role("button", name="Unfold all").click()
    assert visible(page) == every
    assert not page.troubles
    assert {url.partition(":")[0] for url in page.asked} <= {"file", "data"}
    assert len([url for url in page.asked if url.startswith("file:")]) == 1


def test_slices_can_be_chosen(page: Any, written: Callable[..., Path]) -> None:
    page.goto(written(made("three dimensions"), ".html", internal=True).as_uri())
    names = page.locator("#slice option").all_inner_texts()
    assert len(names) == 4
    page.locator("#slice").select_option(index=2)
    assert page.locator(".slice:not([hidden]) .slice-name").all_inner_texts() == [names[2]]


def test_cells_can_be_walked_by_keyboard(page: Any, written: Callable[..., Path]) -> None:
    case = made("suppress")
    page.goto(written(case, ".html", internal=True).as_uri())
    first = page.locator('.slice td[tabindex="0"]')
    first.focus()
    told = page.locator("#told")
    assert "activity Total · region All" in told.inner_text()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    assert "activity A1 · region North" in told.inner_text()
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    assert "activity A1 · region All" in told.inner_text()


def test_everything_can_be_read_without_the_script(browser: Any, written: Callable[..., Path]) -> None:
    context = browser.new_context(java_script_enabled=False)
    shown = context.new_page()
    shown.goto(written(made("suppress"), ".html", internal=False).as_uri())
    assert shown.locator("tbody tr:visible", has=shown.locator("td[class^=k-]")).count() == 11
    context.close()


def test_it_prints_on_pages(page: Any, written: Callable[..., Path]) -> None:
    page.goto(written(made("five dimensions"), ".html", internal=True).as_uri())
    pdf = page.pdf(prefer_css_page_size=True)
    assert pdf.startswith(b"%PDF")
    assert pdf.count(b"/Type /Page\\n") >= 2 or pdf.count(b"/Page") >= 2


@pytest.mark.parametrize("name", ["linked", "three dimensions", "five dimensions"])
@pytest.mark.parametrize("internal", [False, True])
def test_all_slices_are_printed(page: Any, written: Callable[..., Path], name: str, internal: bool) -> None:
    """Whichever slice is chosen on the screen, paper has every slice of the page, each once under its name."""
    page.goto(written(made(name), ".html", internal=internal).as_uri())
    slices = page.locator(".slice")
    assert slices.count() > 1 or name == "linked"
    assert page.locator(".slice:visible").count() == 1
    page.emulate_media(media="print")
    assert page.locator(".slice:visible").count() == slices.count()
    names = page.locator(".slice-name:visible").all_inner_texts()
    assert len(set(names)) == len(names)
    page.emulate_media(media="screen")
    assert page.locator(".slice:visible").count() == 1


def test_paper_says_how_many_slices_are_left_out(page: Any, tmp_path: Path) -> None:
    """More slices than there is room for: those on the page are printed, and the number of the others is told."""
    problem = guarded(magnitude(9, 9), share=0.02)
    path = tmp_path / "many.html"
    ts.report(problem, ts.protect(problem, ts.Withhold()), path=path)
    page.goto(path.as_uri())
    page.emulate_media(media="print")
    shown, note = page.locator(".slice:visible").count(), page.locator(".note").first.inner_text()
    assert 1 < shown <= PAGE.slices
    assert note.startswith(f"{shown} of 100 slices by 'd0' and 'd1' are here")
    assert f"{100 - shown} are left out" in note
    assert page.locator(".note").first.is_visible()


def test_the_interval_of_a_complementary_cell_is_told_in_the_office_only(
    page: Any, written: Callable[..., Path]
) -> None:
    """By pointing and by keyboard; the public page does not even tell such cells from others."""
    case = made("suppress")
    page.goto(written(case, ".html", internal=True).as_uri())
    cell = page.locator("td.k-complementary").first
    assert "An attacker derives" in cell.get_attribute("title")
    cell.click()
    assert "An attacker derives" in page.locator("#told").inner_text()
    page.goto(written(case, ".html", internal=False).as_uri())
    assert page.locator("td.k-complementary").count() == 0
    assert "attacker derives" not in page.content()


def test_nothing_stands_over_the_edge_of_a_narrow_screen(browser: Any, written: Callable[..., Path]) -> None:
    shown = browser.new_page(viewport={"width": 420, "height": 800})
    shown.goto(written(made("suppress"), ".html", internal=True).as_uri())
    wide = shown.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    shown.close()
    assert wide <= 0
