"""In a real browser: the stages of a run as they come, also when a dearer answer comes long after the first."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browsing import Visitor, firms
from serving import Served, served

TOLD: tuple[dict[str, Any], ...] = (
    {"stage": "protect", "message": "Protecting 4 sensitive cells"},
    {"stage": "protect", "message": "Protecting 4 sensitive cells", "incumbent": 46_800.0, "bound": 40_000.0},
    {"stage": "protect", "message": "Protecting 4 sensitive cells", "incumbent": 46_800.0, "bound": 46_800.0},
    {"stage": "protect", "message": "Protecting 4 sensitive cells", "incumbent": 81_100.0, "bound": 46_800.0},
    {"stage": "audit", "message": "Auditing"},
)
"""What a search for a release says one after the other: the last answer hides from more attackers than the first."""
WAITS = '''
import asyncio, json, pathlib, runpy, sys
from tablesafe.web.worker import Worker
work = Worker.call

async def call(self, task, *arguments, tell=None, language="en"):
    """Runs say what the test wants, each when it wants it, and then what there is."""
    if task.__name__ == "run_job":
        for number, event in enumerate(json.loads(pathlib.Path("told.json").read_text())):
            while not pathlib.Path(f"{number}.now").exists():
                await asyncio.sleep(0.02)
            tell(event)
        while not pathlib.Path("end.now").exists():
            await asyncio.sleep(0.02)
    return await work(self, task, *arguments, tell=tell, language=language)

Worker.call = call
runpy.run_module("tablesafe", run_name="__main__", alter_sys=True)
'''
"""The app, but that runs wait for files before they say anything."""


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """The app with runs that wait for the test."""
    place = tmp_path_factory.mktemp("app")
    (place / "here").mkdir()
    (place / "here" / "told.json").write_text(json.dumps(TOLD))
    with served(place, program=WAITS) as running:
        yield running


def test_stages_tell_the_truth_when_a_dearer_answer_comes_late(visitor: Visitor, tmp_path: Path) -> None:
    """One after the other: no answer yet, one for outsiders, its proof, and long after it the one for all."""
    page, folder = visitor.page, visitor.app.folder
    visitor.upload(firms(tmp_path / "firms.csv", n=40))
    visitor.step("Method")
    section = visitor.run()
    stages = section.get_by_role("list")

    def shares() -> float:
        return float(section.locator(".ts-bar > div").evaluate("e => parseFloat(e.style.width)"))

    def now(words: str) -> None:
        stages.locator("li.now").get_by_text(words, exact=True).wait_for()

    def say(number: int, *words: str) -> None:
        (folder / f"{number}.now").touch()
        for each in words:
            section.get_by_text(each).first.wait_for()

    say(0, "Protect")
    now("Protect")
    assert section.get_by_text("Against outsiders").count() == 0  # nothing is claimed before there is an answer
    say(1, "Against outsiders: 46,800", "best 46,800, no less than 40,000, gap 14.5%")
    now("Against outsiders: 46,800")
    assert stages.locator("li.later").first.inner_text().splitlines()[-1] == "Against respondents and sums"
    early = shares()
    say(2, "46,800 hide the cells from outsiders, proven to be the least; what it takes against respondents and sums")
    now("Against respondents and sums")
    assert early <= shares() < 100.0  # the best is found, and yet it goes on
    say(3, "Against respondents and sums: 34,300 more, 81,100 in all", "hiding them from respondents and in sums")
    assert stages.get_by_text("Against outsiders: 46,800").count() == 1  # what it was against outsiders stays told
    assert shares() < 100.0
    say(4, "Audit and certificate")
    now("Audit and certificate")
    (folder / "end.now").touch()
    section.get_by_text("Audit and certificate: SAFE").wait_for()
    visitor.look(section)
    assert page.get_by_role("status", name="Verdict").inner_text().startswith("✓ SAFE")
    assert not visitor.complaints
