"""Fixtures of the browser tests: one server and one Chromium per file, a session of their own for every visitor."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from browsing import Visitor
from serving import Served, served

Newcomer = Callable[[], Visitor]
AS_USERS_HAVE_IT = {"test_runs.py", "test_browser_path.py"}
"""Where jobs draw the pictures of their reports too."""


@pytest.fixture(scope="module", autouse=True)
def _plain_reports(request: pytest.FixtureRequest) -> Iterator[None]:
    """Processes that run jobs leave the pictures out of reports, where nobody looks at them."""
    if request.path.name in AS_USERS_HAVE_IT:
        yield
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(Path(__file__).parent / "plain"), prepend=os.pathsep)
        yield


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """The app, as `tablesafe serve` starts it."""
    with served(tmp_path_factory.mktemp("app")) as running:
        yield running


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """A real browser; tests that need it skip, by name, where there is none."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    found = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if found is None:
        pytest.skip("there is no Chromium on this machine")
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def newcomer(app: Served, chromium: Any) -> Iterator[Newcomer]:
    """Brings visitors in, each with a session of their own."""
    contexts = []

    def come() -> Visitor:
        context = chromium.new_context(viewport={"width": 1400, "height": 900}, accept_downloads=True)
        contexts.append(context)
        visitor = Visitor(context.new_page(), app)
        visitor.enter()
        return visitor

    yield come
    for context in contexts:
        context.close()


@pytest.fixture
def visitor(newcomer: Newcomer) -> Visitor:
    """Somebody who has just opened the app."""
    return newcomer()
