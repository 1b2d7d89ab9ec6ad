"""In a real browser: codes mapped and merged, a release repaired after a decision, sessions saved and opened, keys."""

from __future__ import annotations

import random
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
from browsing import Visitor

from tablesafe.job import load_job

HRC = "A\n@A01\n@A02\nB\n@B05\n@B06\nC\n@C10\n@C11\n"
KEPT = """() => new Promise(done => {
    const pane = document.querySelector('.q-tab-panel:not([style*="display: none"]) .ts-grid') || document.querySelector('.ts-grid');
    const data = new DataTransfer();
    pane.dispatchEvent(new ClipboardEvent('copy', { clipboardData: data, bubbles: true }));
    done(data.getData('text/plain'));
})"""  # noqa: E501
"""What Ctrl-C in a table copies; headless browsers have no clipboard."""


def odd(path: Path) -> Path:
    """Records with codes that the hierarchy does not have: one spelled otherwise, one unknown; five sizes."""
    draw = random.Random(11)
    lines = ["firm;nace;size;turnover"]
    for number in range(120):
        code = draw.choice(["A01", "A02", "B05", "B06", "C10", "c11" if number % 3 else "C11"])
        code = "X99" if number in {7, 8, 9, 10} else code
        size = draw.choice(["0-9", "10-49", "50-249", "250-499", "500+"])
        lines.append(f"f{number};{code};{size};{draw.lognormvariate(6, 1.3):.1f}".replace(".", ","))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("odd")
    (folder / "nace.hrc").write_text(HRC, encoding="utf-8")
    return odd(folder / "odd.csv"), folder / "nace.hrc"


def test_codes_are_mapped_merged_and_a_release_is_repaired(
    visitor: Visitor, given: tuple[Path, Path], tmp_path: Path
) -> None:
    visitor.upload(*given)
    _strange_codes_are_mapped(visitor)
    _codes_are_merged(visitor)
    _keys_are_told(visitor)
    visitor.step("Method")
    visitor.write("time_limit_s", "600")  # far more than it takes: no answer is cut by the clock
    visitor.look(visitor.run())
    _cells_are_copied(visitor)
    _only_what_changed_is_repaired(visitor, given, tmp_path)
    _a_session_is_saved_and_opened(visitor, tmp_path)
    assert not visitor.complaints


def _strange_codes_are_mapped(visitor: Visitor) -> None:
    page = visitor.page
    visitor.step("Dimensions")
    visitor.choose("kind", "from a hierarchy file (.hrc)")
    visitor.choose("hierarchy", "nace.hrc")
    asked = page.get_by_role("region", name="Codes that nace does not have")
    asked.get_by_text("2 codes of the data are not in this hierarchy.").wait_for()
    assert asked.get_by_label("c11 counts in").input_value() == "C11"
    asked.get_by_role("button", name="Count them so").click()
    visitor.until_job(lambda job: job["dimensions"]["nace"]["hierarchy"] == "nace-2.hrc")
    page.get_by_role("region", name="Tree of nace").get_by_text("11 codes").wait_for()
    assert asked.count() == 0


def _codes_are_merged(visitor: Visitor) -> None:
    """By a proposal, by choosing, and back: what is sensitive follows at once."""
    page = visitor.page
    visitor.step("Rules")
    before = visitor.number()
    card = page.get_by_role("region", name="A coarser table")
    card.get_by_role("button", name="Propose codes to merge").click()
    first = card.get_by_role("list", name="Proposals").get_by_role("button").first
    assert re.match("Merge|Drop", first.inner_text())
    first.click()
    page.wait_for_function(f"document.querySelector('.ts-big').textContent !== '{before:,}'")
    assert visitor.number() < before
    card.get_by_label("Compared").filter(has_text=f"{before:,} sensitive cells became {visitor.number():,}").wait_for()
    card.get_by_role("button", name="Undo the last").click()
    page.wait_for_function(f"document.querySelector('.ts-big').textContent === '{before:,}'")
    card.locator("summary").click()
    card.get_by_label("Dimension").click()
    page.get_by_role("option", name="size", exact=True).click()
    card.get_by_label("Codes to merge").click()
    for code in ("250-499", "500+"):
        page.get_by_role("option", name=code, exact=True).click()
    page.keyboard.press("Escape")
    card.get_by_label("Name of the new code").fill("250+")
    card.get_by_role("button", name="Merge", exact=True).click()
    card.get_by_text("Merge size 250-499 with 500+ (size.hrc)").wait_for()
    assert tomllib.loads(visitor.job())["dimensions"]["size"]["hierarchy"] == "size.hrc"
    drawn = card.get_by_role("group", name="Codes that can be dragged onto one another")
    drawn.get_by_role("button", name="250+").wait_for()  # what was merged is one code now
    first, second = (drawn.get_by_role("button", name=code, exact=True) for code in ("0-9", "10-49"))
    first.drag_to(second)
    card.get_by_text("Merge size 10-49 with 0-9 (size-2.hrc)").wait_for()
    card.get_by_role("button", name="Undo the last").click()
    card.get_by_text("Merge size 10-49 with 0-9").wait_for(state="detached")
    first.wait_for()  # two codes again
    first.press("Enter")
    second.press("Enter")
    card.get_by_role("button", name="Merge", exact=True).click()
    card.get_by_text("Merge size 0-9 with 10-49 (size-2.hrc)").wait_for()
    card.get_by_role("button", name="Undo the last").click()
    card.get_by_text("Merge size 0-9 with 10-49").wait_for(state="detached")


def _keys_are_told(visitor: Visitor) -> None:
    page = visitor.page
    page.locator("main h1").press("?")
    panel = page.get_by_role("complementary", name="Keys")
    panel.get_by_text("copy the cells that are chosen").wait_for()
    panel.get_by_role("button", name="Close").click()
    panel.wait_for(state="hidden")


def _cells_are_copied(visitor: Visitor) -> None:
    """Two cells side by side, with their headings, as lines with tabs."""
    page = visitor.page
    grid = page.get_by_role("grid").first
    grid.focus()
    page.keyboard.press("Control+Home")
    page.keyboard.press("Shift+ArrowRight")
    lines = [line.split("\t") for line in page.evaluate(KEPT).splitlines()]
    assert [len(line) for line in lines] == [3, 3]
    assert lines[1][0].startswith("Total")


def _only_what_changed_is_repaired(visitor: Visitor, given: tuple[Path, Path], tmp_path: Path) -> None:
    """A decision by clicking; the next release begins with the last one, and the shell makes the same of the job."""
    page = visitor.page
    page.locator(".ts-cell.k-published").last.click()
    panel = page.get_by_role("complementary", name="Cell")
    panel.get_by_label("Reason").fill("asked for")
    panel.get_by_role("button", name="Decide", exact=True).click()
    panel.get_by_role("button", name="Repair only what changed").click()
    section = page.locator('section[aria-label="run-2"]')
    section.get_by_text("repaired from run-1").wait_for()
    visitor.look(section)
    assert page.get_by_role("status", name="Verdict").inner_text().startswith("✓ SAFE")
    assert page.get_by_role("status", name="Outdated").count() == 0
    assert "keep" not in tomllib.loads(visitor.job())["method"]
    there = tmp_path / "shell"
    there.mkdir()
    for name in ("Job file", "Decisions, for the job file", "Pattern that it began with, for the job file"):
        with page.expect_download() as waiting:
            page.get_by_role("link", name=name, exact=True).click()
        waiting.value.save_as(there / waiting.value.suggested_filename)
    with page.expect_download() as waiting:
        page.get_by_role("link", name="Release (CSV)", exact=True).click()
    waiting.value.save_as(tmp_path / "app.csv")
    with zipfile.ZipFile(_saved(visitor, tmp_path)) as packed:  # the hierarchies that were made in the app
        for name in ("nace-2.hrc", "size.hrc", "odd.csv"):
            packed.extract(name, there)
    done = subprocess.run([sys.executable, "-m", "tablesafe", "run", str(there / "job.toml"), "--quiet"], check=False)
    assert done.returncode == 0
    made = there / load_job(there / "job.toml").output.release[0]
    assert made.read_bytes() == (tmp_path / "app.csv").read_bytes()


def _saved(visitor: Visitor, folder: Path) -> Path:
    visitor.step("Data")
    with visitor.page.expect_download() as waiting:
        visitor.page.get_by_role("button", name="Save the session").click()
    path = folder / str(waiting.value.suggested_filename)
    waiting.value.save_as(path)
    return path


def _a_session_is_saved_and_opened(visitor: Visitor, tmp_path: Path) -> None:
    """After a new job, a file brings everything back; so does a job that was run."""
    page = visitor.page
    saved = _saved(visitor, tmp_path)
    before = visitor.job()
    page.get_by_role("button", name="New job").click()
    page.get_by_role("button", name="Save the session").wait_for(state="detached")
    visitor.upload(saved)
    assert visitor.job() == before
    visitor.step("Result")
    page.get_by_role("tab", name="Decisions").click()
    page.get_by_role("cell", name="asked for").wait_for()
    visitor.step("Data")
    page.get_by_role("button", name="New job").click()
    page.get_by_role("list", name="Recent jobs").get_by_role("button", name=re.compile("run-2: SAFE")).click()
    page.get_by_role("combobox", name="What nace is").wait_for()
    assert visitor.job() == before
