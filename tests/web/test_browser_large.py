"""Large tables in a real browser: pages answer while a long run goes on, and only windows of the table travel.

How long things take is printed, not asserted (`pytest -s`): machines differ.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest
from browsing import Visitor

MILLION = pytest.param(
    10_000, marks=pytest.mark.skipif(not os.environ.get("TABLESAFE_MILLION"), reason="set TABLESAFE_MILLION to try it")
)


def records(path: Path, codes: int) -> Path:
    """A record per pair of a code and an area: with totals, a table of `codes` times 100 cells."""
    with path.open("w", encoding="utf-8") as file:
        file.write("firm,code,area,amount\n")
        for i in range(codes - 1):
            file.writelines(f"f{i}x{j},c{i:05d},a{j:02d},{(i * 7919 + j * 104729) % 9973 + 1}\n" for j in range(99))
    return path


def job(file: str) -> str:
    return f"""title = "Large"
[source]
file = "{file}"
respondent = "firm"
[dimensions.code]
[dimensions.area]
[response]
value = "amount"
[[rules]]
rule = "p_percent"
p = 10.0
[method]
name = "suppress"
time_limit_s = 600.0
"""


@pytest.mark.parametrize("codes", [1_000, MILLION])
def test_a_large_table_scrolls_while_a_long_run_goes_on(visitor: Visitor, tmp_path: Path, codes: int) -> None:
    page = visitor.page
    (tmp_path / "job.toml").write_text(job("large.csv"))
    visitor.upload(records(tmp_path / "large.csv", codes))
    page.set_input_files("input[type=file]", str(tmp_path / "job.toml"))
    page.get_by_text("Large", exact=True).wait_for()
    visitor.step("Rules")
    cells = codes * 100
    page.get_by_text(f"of {cells:,} cells").wait_for()
    visitor.step("Method")
    section = visitor.run()
    section.get_by_text("running").wait_for()
    visitor.step("Rules")
    page.get_by_text(f"of {cells:,} cells").wait_for()
    page.get_by_role("button", name="Look at the table").click()
    page.wait_for_selector(".ts-cell")
    page.get_by_role("button", name="Unfold all").click()
    page.wait_for_function(f"document.querySelector('[role=grid]').getAttribute('aria-rowcount') === '{codes + 1}'")
    times = {"scroll": [_scrolled(page, share) for share in (0.5, 1.0, 0.1)]}
    drawn = page.locator(".ts-cell").count()
    assert 0 < drawn < 3_000  # the rest of the table is not in the browser
    assert page.locator(".ts-side").last.inner_text().strip() != ""
    for step in ("Data", "Dimensions", "Method", "Result", "Rules"):
        times[f"page {step}"] = [_opened(page, step)]
    times["answer"] = [_answered(visitor) for _ in range(5)]
    visitor.step("Method")
    assert section.get_by_text("running").is_visible()
    print(f"\n{cells:,} cells:", {name: [f"{1000 * t:.0f} ms" for t in each] for name, each in times.items()})


def test_all_that_is_chosen_is_copied_and_decided_on_not_only_what_is_drawn(visitor: Visitor, tmp_path: Path) -> None:
    page, codes = visitor.page, 120
    (tmp_path / "job.toml").write_text(job("large.csv"))
    visitor.upload(records(tmp_path / "large.csv", codes))
    page.set_input_files("input[type=file]", str(tmp_path / "job.toml"))
    page.get_by_text("Large", exact=True).wait_for()
    visitor.step("Rules")
    page.get_by_role("button", name="Look at the table").click()
    page.get_by_role("button", name="Unfold all").click()
    grid = page.locator(f"[role=grid][aria-rowcount='{codes + 1}']")
    grid.focus()
    page.keyboard.press("Control+Home")
    for _ in range(codes // 2):  # however high the window is
        page.keyboard.press("Shift+PageDown")
    page.locator(f".ts-line[aria-rowindex='{codes + 1}'] .ts-in").wait_for()
    assert page.locator(".ts-line").count() < codes
    page.evaluate("() => { navigator.clipboard.writeText = async (text) => { window.kept = text; }; }")
    grid.evaluate("grid => grid.dispatchEvent(new ClipboardEvent('copy', { clipboardData: new DataTransfer() }))")
    page.wait_for_function("() => window.kept")
    lines = [line.split("\t") for line in page.evaluate("() => window.kept").splitlines()]
    assert [name for name, _ in lines[2:]] == [f"c{number:05d}" for number in range(codes - 1)]
    assert sum(int(value) for _, value in lines[2:]) == int(lines[1][1])
    page.keyboard.press("Enter")
    panel = page.get_by_role("complementary", name="Cell")
    panel.get_by_role("heading", name=f"{codes} cells are chosen").wait_for()
    assert not visitor.complaints


def _scrolled(page: Any, share: float) -> float:
    """Scroll to a place of the table; how long until what is there is drawn."""
    start = time.perf_counter()
    page.evaluate(
        """async (share) => {
            const pane = document.querySelector('[role=grid]'), rows = Number(pane.getAttribute('aria-rowcount')) - 1;
            pane.scrollTop = share * pane.scrollHeight;
            const wanted = Math.min(Math.floor(share * rows), rows - 2);
            const near = () => [...pane.querySelectorAll('[role=row][aria-rowindex]')]
                .some(row => Math.abs(Number(row.getAttribute('aria-rowindex')) - wanted) < 30);
            while (!near()) await new Promise(done => setTimeout(done, 5));
        }""",
        share,
    )
    return time.perf_counter() - start


def _opened(page: Any, step: str) -> float:
    """Follow a link of the steps; how long until the page is there, by the browser's own clock."""
    return float(
        page.evaluate(
            """async (step) => {
                const start = performance.now();
                [...document.querySelectorAll('nav a')].find(link => link.textContent.includes(step)).click();
                const there = () => document.querySelector('h1')?.textContent === step;
                while (!there()) await new Promise(done => setTimeout(done, 2));
                return (performance.now() - start) / 1000;
            }""",
            step,
        )
    )


def _answered(visitor: Visitor) -> float:
    start = time.perf_counter()
    assert visitor.page.context.request.get(f"{visitor.app.home}/rules").ok
    return time.perf_counter() - start
