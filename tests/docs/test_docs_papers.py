"""The pages of the papers are what the code gives today: the quick ones are made again and compared."""

from __future__ import annotations

import re
import sys

import pytest
from documented import DOCS

sys.path.insert(0, str(DOCS))
try:
    from reproduce.pages import PAGES, SLOW
finally:
    sys.path.remove(str(DOCS))


def test_every_paper_has_its_page() -> None:
    there = {path.stem for path in (DOCS / "papers").glob("*.md")} - {"index"}
    assert there == set(PAGES)
    assert set(PAGES) >= SLOW


@pytest.mark.parametrize("name", sorted(set(PAGES) - SLOW))
def test_a_page_is_what_the_code_gives(name: str) -> None:
    written = (DOCS / "papers" / f"{name}.md").read_text(encoding="utf-8")
    assert numbers(written) == numbers(PAGES[name]()), f"run: python docs/reproduce {name}"


def numbers(page: str) -> list[str]:
    """Lines, with every number to four digits: another processor may differ in the last."""
    return [
        re.sub(r"-?\d[\d,]*\.\d+", lambda m: f"{float(m[0].replace(',', '')):.4g}", line) for line in page.splitlines()
    ]
