"""A person at a real browser: opens the app, goes from page to page, and everything the browser asks for is noted."""

from __future__ import annotations

import os
import random
import re
import time
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from serving import Served

PATIENCE_MS = 1000 * int(os.environ.get("TABLESAFE_TEST_PATIENCE_S", "600"))
"""How long to wait for something to appear; on a busy machine a worker takes its time to start."""


def firms(path: Path, n: int = 90, seed: int = 7) -> Path:
    """Microdata of made-up firms: activity codes of three letters, a region, a turnover."""
    draw = random.Random(seed)
    lines = ["firm,nace,region,turnover"]
    for number in range(n):
        code = draw.choice(["A01", "A02", "B05", "B06", "C10", "C11"])
        where = draw.choice(["North", "South", "West"])
        lines.append(f"firm{number:03d},{code},{where},{int(draw.lognormvariate(6, 1.3)) + 1}")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@dataclass
class Visitor:
    """One person with one browser window and a session of their own."""

    page: Any
    app: Served
    asked: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.page.set_default_timeout(PATIENCE_MS)
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.on("websocket", lambda socket: self.asked.append(socket.url))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on(
            "console", lambda message: self.complaints.append(message.text) if message.type == "error" else None
        )

    def enter(self) -> None:
        """Open the address that the app printed."""
        self.page.goto(self.app.address)
        self.page.wait_for_selector("h1")

    def step(self, name: str) -> None:
        """Go to a page by its link."""
        self.page.get_by_role("navigation", name="Steps").get_by_role("link", name=name).click()
        self.page.wait_for_selector(f"h1:text-is('{name}')")

    def upload(self, *paths: Path) -> None:
        """Upload files; the columns of the source appear."""
        self.page.set_input_files("input[type=file]", [str(path) for path in paths])
        self.page.get_by_role("combobox", name=re.compile("^What .* is$")).first.wait_for()

    def demo(self) -> None:
        """Use the demo data."""
        self.page.get_by_role("button", name="Use the demo data").click()
        self.page.get_by_role("combobox", name=re.compile("^What .* is$")).first.wait_for()

    def choose(self, label: str, option: str) -> None:
        """Choose an option of a list."""
        self.page.get_by_label(label, exact=True).first.click()
        self.page.get_by_role("option", name=option, exact=True).click()

    def write(self, label: str, text: str, *, noted: bool = True) -> None:
        """Write into the field of an option, and wait until the job has it."""
        box = self.page.get_by_label(label, exact=True).and_(self.page.locator("input:not([type=range])")).first
        box.fill(text)
        if noted:
            self.until_job(lambda job: text in (str(value).removesuffix(".0") for value in values_of(label, job)))

    def until_job(self, holds: Callable[[Any], bool]) -> None:
        """Wait until something holds of the job that is being made."""
        end = time.monotonic() + PATIENCE_MS / 1000
        while not holds(tomllib.loads(self.page.context.request.get(f"{self.app.home}/job.toml").text())):
            assert time.monotonic() < end, "the job did not become so"
            self.page.wait_for_timeout(50)

    def job(self) -> str:
        """The job file as the app shows it."""
        self.page.get_by_role("button", name="Job file", exact=True).click()
        text = str(self.page.get_by_label("Text of the job file").inner_text())
        self.page.get_by_role("complementary", name="Job file").get_by_role("button", name="Close").click()
        return text

    def number(self) -> int:
        """How many cells are sensitive, as the page Rules says."""
        self.page.wait_for_function("/^[0-9,]+$/.test(document.querySelector('.ts-big')?.textContent)")
        return int(self.page.locator(".ts-big").inner_text().replace(",", ""))

    def run(self, name: str = "run-1") -> Any:
        """Start a run; the section that shows it."""
        self.page.get_by_role("button", name="Run the job").click()
        section = self.page.locator(f'section[aria-label="{name}"]')
        section.wait_for()
        return section

    def look(self, section: Any) -> None:
        """Wait for the end of a run and look at its result."""
        section.get_by_role("button", name="Look at the result").click()
        self.page.wait_for_selector("h1:text-is('Result')")
        self.page.wait_for_selector(".ts-cell")

    def hosts(self) -> set[str]:
        """Every host that the browser asked for anything."""
        found = {urlsplit(url) for url in self.asked}
        return {parts.netloc for parts in found if parts.scheme not in {"data", "blob"}}

    def stored(self) -> str:
        """All that the browser keeps for the app, but for its cookie."""
        return str(
            self.page.evaluate(
                """async () => JSON.stringify([
                    Object.entries(localStorage), Object.entries(sessionStorage), document.cookie,
                    await indexedDB.databases(), await caches.keys(),
                ])"""
            )
        )


def values_of(key: str, part: Any) -> Iterator[Any]:
    """Whatever stands under a key in a job, however deep."""
    for name, value in part.items() if isinstance(part, dict) else enumerate(part) if isinstance(part, list) else ():
        if name == key:
            yield value
        yield from values_of(key, value)


UNNAMED = """() => [...document.querySelectorAll(
    'input:not([type=hidden]), textarea, select, button, a[href], [role=slider], [role=combobox], [role=grid]')]
  .filter(e => e.offsetParent !== null && !e.closest('[aria-hidden=true]'))
  .filter(e => !(e.getAttribute('aria-label') || e.textContent.trim() || e.title || e.labels?.length
                 || e.closest('label')?.textContent.trim() || e.closest('[aria-label]')))
  .map(e => e.outerHTML.slice(0, 160))"""
"""Everything that can be used but has no name for those who cannot see it."""
