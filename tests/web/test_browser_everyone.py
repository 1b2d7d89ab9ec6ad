"""For everyone: axe-core finds nothing on any page in either colour scheme; nothing is cut off on any screen."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from browsing import Visitor, firms
from serving import Served

STEPS = ("Data", "Dimensions", "Rules", "Method", "Result", "Compare")
TABS = ("Table", "Cells", "Decisions", "Plots", "Loss")
MOST_BYTES, MOST_REQUESTS = 490_000, 27
"""Of the first page; it was 534,000 bytes in 21 requests when the app began, and is 470,000 in 26."""
CLIPPED = """() => [...document.querySelectorAll('.ts-main *')]
  .filter(e => e.offsetParent && !e.closest('.ts-scroll, .ts-grid, .ts-code'))
  .filter(e => e.getBoundingClientRect().right > innerWidth + 1)
  .map(e => e.outerHTML.slice(0, 120))"""
CUT = """() => [...document.querySelectorAll('.ts-scroll:has(> .ts-list), .ts-grid')]
  .filter(e => e.offsetParent && e.scrollWidth > e.clientWidth + 1).map(e => e.outerHTML.slice(0, 120))"""
"""Lists and tables of which a column is out of sight."""
SMALL = """() => [...document.querySelectorAll('.ts-app a[href], .ts-app button, .ts-app summary, .ts-app [role=tab]')]
  .filter(e => e.offsetParent && !e.closest('.ts-hidden'))
  .filter(e => { const r = e.getBoundingClientRect(); return r.height < 23.5 || r.width < 23.5 })
  .map(e => e.outerHTML.slice(0, 120))"""
"""What is smaller than a target may be (WCAG 2.2, 2.5.8)."""


def findings(axe: Any, visitor: Visitor) -> list[str]:
    """What axe-core has to say about the page."""
    found = axe.run(visitor.page).response["violations"]
    lines = [f"{each['id']}: {node['html'][:200]}" for each in found for node in each["nodes"]]
    return [line for line in lines if '<main class="q-page"' not in line]  # the framework's frame around all of it


def settled(visitor: Visitor, step: str) -> None:
    """Go to a page, and wait until it has what it asks for."""
    visitor.step(step)
    if step == "Result":
        visitor.page.wait_for_selector(".ts-cell")
    visitor.page.wait_for_function("() => !document.querySelector('.q-spinner')")


def test_axe_finds_nothing_and_nothing_is_cut_off(visitor: Visitor, tmp_path: Path) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-core is not installed").Axe()
    page = visitor.page
    data = firms(tmp_path / "firms.csv")  # with amounts as long as those of offices
    data.write_text(re.sub(r",(\d+)\n", r",\g<1>123.25\n", data.read_text()))
    visitor.upload(data)
    assert page.locator("html").get_attribute("lang")
    visitor.step("Method")
    visitor.write("time_limit_s", "10")
    visitor.run().get_by_role("button", name="Look at the result").wait_for()
    said = []
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        for step in STEPS:
            settled(visitor, step)
            said += [f"{scheme}, {step}: {line}" for line in findings(axe, visitor)]
        settled(visitor, "Result")
        for tab in TABS:
            page.get_by_role("tab", name=tab, exact=True).click()
            page.wait_for_function("() => !document.querySelector('.q-spinner')")
            said += [f"{scheme}, {tab}: {line}" for line in findings(axe, visitor)]
        _attacks(visitor, first=scheme == "light")
        said += [f"{scheme}, Attacks: {line}" for line in findings(axe, visitor)]
        page.get_by_role("tab", name="Table", exact=True).click()
        page.locator(".ts-cell.k-sensitive:visible").first.click()
        page.get_by_role("complementary", name="Cell").get_by_role("button", name="Decide", exact=True).wait_for()
        said += [f"{scheme}, panel: {line}" for line in findings(axe, visitor)]
        page.get_by_role("complementary", name="Cell").get_by_role("button", name="Close").click()
    assert not said, "\n".join(said)
    for width in (1400, 1024, 390):
        page.set_viewport_size({"width": width, "height": 844})
        for step in STEPS:
            settled(visitor, step)
            assert page.evaluate("() => document.documentElement.scrollWidth <= innerWidth"), (width, step)
            assert page.evaluate(CLIPPED) == [], (width, step)
            assert width < 1000 or page.evaluate(CUT) == [], (width, step)
            assert page.evaluate(SMALL) == [], (width, step)
    assert not visitor.complaints


def test_the_first_page_is_light(app: Served, chromium: Any) -> None:
    """What comes over the wire for somebody who was never here: less, in hardly more parts, than when it began."""
    context = chromium.new_context()
    page, weights, asked = context.new_page(), list[float](), list[str]()
    session = context.new_cdp_session(page)
    session.on("Network.loadingFinished", lambda event: weights.append(event["encodedDataLength"]))
    session.on("Network.requestWillBeSent", lambda event: asked.append(event["request"]["url"]))
    session.send("Network.enable")
    Visitor(page, app).enter()
    page.get_by_role("button", name="Job file", exact=True).click()
    page.get_by_role("complementary", name="Job file").get_by_role("button", name="Close").wait_for()
    context.close()
    assert 300_000 < sum(weights) < MOST_BYTES
    assert len(asked) <= MOST_REQUESTS, asked


def _attacks(visitor: Visitor, *, first: bool) -> None:
    """Scores, cells by risk and densities, as an attack leaves them."""
    page = visitor.page
    page.get_by_role("tab", name="Attacks").click()
    if first:
        page.get_by_role("button", name="Attack", exact=True).click()
    page.get_by_role("region", name="Densities").locator("figure svg").first.wait_for()
    page.wait_for_function("() => !document.querySelector('.q-spinner')")
