"""The pictures of tables and reports in the README: `TABLESAFE_PICTURES=docs/pictures pytest` on this file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

import tablesafe as ts

FOLDER = os.environ.get("TABLESAFE_PICTURES")
MOST_BYTES = 300_000
DEMO = Path(ts.__file__).parent / "demo"
needed = pytest.mark.skipif(not FOLDER, reason="set TABLESAFE_PICTURES to the folder of the pictures")

PAGE = """<!doctype html><meta charset="utf-8"><style>
body {{ font: 15px system-ui, "Noto Sans", sans-serif; margin: 16px; display: flex; gap: 28px; width: max-content; }}
h2 {{ font-size: 17px; margin: 0 0 8px; }} body > div {{ max-width: 560px; }}</style>
<div><h2>Before: what the office knows</h2>{before}</div><div><h2>After: what everyone may see</h2>{after}</div>"""


def problem() -> ts.Problem:
    """Revenue of electric utilities by state and sector."""
    table = ts.tabulate(
        DEMO / "eia_utilities_1996.csv",
        dimensions={"STATE": ts.Hierarchy.from_levels(DEMO / "states.csv", total="US")},
        value=["RESREVENUE", "COMREVENUE", "INDREVENUE"],
        equations=["REVENUE = RESREVENUE + COMREVENUE + INDREVENUE"],
        respondent="UTILITYID",
        where="UTILITYID <> 0",
        largest=10,
    )
    return ts.Problem(table, rules=[ts.Threshold(n=3), ts.PPercent(p=10)])


def take(page: Any, name: str, **options: Any) -> None:
    path = Path(FOLDER or "") / f"{name}.png"
    page.screenshot(path=str(path), **options)
    assert path.stat().st_size < MOST_BYTES


@needed
def test_picture_of_a_table_before_and_after(chromium: Any) -> None:
    asked = problem()
    release = ts.protect(asked, ts.Suppress(time_limit_s=10))
    assert ts.audit(asked, release).safe
    page = chromium.new_page(viewport={"width": 1400, "height": 700})
    page.set_content(PAGE.format(before=asked._repr_html_(), after=release._repr_html_()))
    take(page.locator("body"), "before-after")
    page.close()


@needed
def test_picture_of_a_report(chromium: Any, tmp_path: Path) -> None:
    asked = problem()
    release = ts.protect(asked, ts.Suppress(time_limit_s=10))
    ts.report(
        asked, release, ts.audit(asked, release), path=tmp_path / "report.html", internal=True,
        title="Revenue of electric utilities in the United States, 1996",
    )  # fmt: skip
    page = chromium.new_page(viewport={"width": 1200, "height": 900})
    page.goto((tmp_path / "report.html").as_uri())
    page.locator("h2", has_text="The table").scroll_into_view_if_needed()
    page.evaluate("[...document.querySelectorAll('h2')].find(h => h.textContent == 'The table').scrollIntoView()")
    take(page, "report-table")
    page.evaluate("scrollTo(0, 0)")
    take(page, "report")
    page.close()
