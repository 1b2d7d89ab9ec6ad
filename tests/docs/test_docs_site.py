"""The site is built from the pages without a warning, its links lead somewhere, and it needs no other host."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from documented import DOCS, REPOSITORY, pages

LOADED = {("link", "href"), ("script", "src"), ("img", "src"), ("iframe", "src"), ("source", "src"), ("use", "href")}
"""What a browser fetches by itself."""


class Page(HTMLParser):
    """The links of a page, the places in it, and what a browser loads with it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.places: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if value is None:
                continue
            if name == "id":
                self.places.add(value)
            if (tag, name) in LOADED:
                self.loaded.append(value)
            elif tag == "a" and name == "href":
                self.links.append(value)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The whole site, built anew; warnings are errors."""
    folder = tmp_path_factory.mktemp("site")
    command = [
        sys.executable,
        "-m",
        "sphinx",
        "-q",
        "-E",
        "-W",
        "--keep-going",
        "-b",
        "html",
        "-d",
        str(folder / "cache"),
    ]
    done = subprocess.run([*command, str(DOCS), str(folder / "html")], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder / "html"


@pytest.fixture(scope="module")
def built(site: Path) -> dict[Path, Page]:
    return {path.resolve(): Page(path.read_text(encoding="utf-8")) for path in site.rglob("*.html")}


def test_every_page_is_in_the_site_and_in_its_menu(site: Path) -> None:
    menu = Page((site / "index.html").read_text(encoding="utf-8")).links
    for page in pages():
        made = page.removesuffix(".md") + ".html"
        assert (site / made).is_file()
        assert page == "index.md" or made in menu, f"{page} is not in docs/contents.py"


def test_every_link_within_the_site_leads_somewhere(built: dict[Path, Page]) -> None:
    for path, page in built.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or not link:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            assert target in built or target.is_file(), f"{path.name}: {link}"
            if parts.fragment and target in built:
                assert unquote(parts.fragment) in built[target].places, f"{path.name}: {link}"


def test_nothing_is_loaded_from_another_host(site: Path, built: dict[Path, Page]) -> None:
    for path, page in built.items():
        for link in page.loaded:
            assert not urlsplit(link).netloc, f"{path.name} loads {link}"
    for style in site.rglob("*.css"):
        text = style.read_text(encoding="utf-8")
        assert not re.search(r"(?:url\(|@import)\s*['\"]?(?:https?:)?//", text), style.name


def test_formulas_are_shown_by_the_browser_itself(site: Path) -> None:
    text = (site / "explanation" / "rules.html").read_text(encoding="utf-8")
    assert "<math" in text
    assert not [link for link in Page(text).loaded if "mathjax" in link.lower()]


def test_a_browser_asks_nobody_for_anything(site: Path) -> None:
    program = shutil.which("chromium")
    if program is None:
        pytest.skip("Chromium is not here")
    from playwright.sync_api import sync_playwright

    asked: list[str] = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        page = browser.new_page()
        page.on("request", lambda request: asked.append(request.url))
        for name in ("index", "tutorial", "explanation/rules", "papers/cox-kelly"):
            page.goto((site / f"{name}.html").as_uri())
            assert page.locator("h1").first.is_visible()
        browser.close()
    assert asked
    assert all(url.startswith(("file:", "data:")) for url in asked), asked


def test_links_of_the_pages_lead_somewhere_on_their_own() -> None:
    """As plain Markdown too, without the site: files and folders of the repository."""
    for page in pages():
        text = re.sub(r"```.*?```", "", (DOCS / page).read_text(encoding="utf-8"), flags=re.DOTALL)
        for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text):
            if urlsplit(target).scheme:
                continue
            found = ((DOCS / page).parent / target).resolve()
            assert found.exists(), f"{page}: {target}"
            assert found.is_relative_to(REPOSITORY), f"{page}: {target}"
