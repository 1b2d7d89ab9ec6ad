"""The pictures of the app in README and documentation: `TABLESAFE_PICTURES=docs/pictures pytest` on this file."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from browsing import Visitor

FOLDER = os.environ.get("TABLESAFE_PICTURES")
MOST_BYTES = 300_000


@pytest.mark.skipif(not FOLDER, reason="set TABLESAFE_PICTURES to the folder of the pictures")
def test_pictures_of_the_app(visitor: Visitor) -> None:
    folder = Path(FOLDER or "")
    folder.mkdir(parents=True, exist_ok=True)
    page = visitor.page

    def take(name: str) -> None:
        page.mouse.move(700, 8)
        page.wait_for_timeout(700)
        path = folder / f"app-{name}.png"
        page.screenshot(path=str(path))
        assert path.stat().st_size < MOST_BYTES

    visitor.demo()
    take("data")
    visitor.step("Dimensions")
    page.get_by_role("region", name="Tree of state").get_by_text("65 codes").wait_for()
    take("dimensions")
    visitor.step("Rules")
    visitor.number()
    page.locator("section[aria-label='Where the rules draw the line'] svg").wait_for()
    take("rules")
    visitor.step("Method")
    section = visitor.run()
    section.locator("svg").wait_for()
    take("run")
    visitor.look(section)
    page.get_by_label("Down", exact=True).wait_for()
    page.evaluate("document.querySelector('.q-tabs').scrollIntoView({block: 'start'}); scrollBy(0, -70)")
    page.locator(".ts-cell.k-complementary").first.hover()
    page.wait_for_timeout(500)
    page.screenshot(path=str(folder / "app-result.png"))
    assert (folder / "app-result.png").stat().st_size < MOST_BYTES
    visitor.step("Method")
    visitor.choose("method", "withhold")
    visitor.run("run-2").get_by_role("button", name="Look at the result").wait_for()
    visitor.step("Compare")
    page.locator(".ts-cell.ts-differs").first.wait_for()
    page.evaluate(
        "document.querySelector('section[aria-label=\"Tables side by side\"]').scrollIntoView(); scrollBy(0, -70)"
    )
    take("compare")
