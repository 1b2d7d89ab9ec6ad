"""The pages for users of other programs: every Python and shell example on them runs, in order, as it stands."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import matplotlib
import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
DOCS = REPOSITORY / "docs"
PAGES = ["from-tauargus.md", "from-sdctable.md", "from-gausssuppression.md", "from-r.md"]
BLOCK = re.compile(r"(?:<!-- (file|shown): (\S+) -->\n)?```(\w*)\n(.*?)```", flags=re.DOTALL)


@dataclass(frozen=True, slots=True)
class Block:
    """One example: its language, its text, and the file that it is or shows."""

    language: str
    text: str
    kind: str
    file: str


def blocks(page: str) -> list[Block]:
    text = (DOCS / page).read_text(encoding="utf-8")
    return [Block(language, body, kind, file) for kind, file, language, body in BLOCK.findall(text)]


def in_shell(text: str, folder: Path) -> None:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-e", "-c", text], cwd=folder, env={**os.environ, "PATH": path}, capture_output=True, text=True
    )
    assert done.returncode == 0, f"{text}\n{done.stdout}\n{done.stderr}"


@pytest.mark.parametrize("page", PAGES)
def test_every_example_of_a_page_runs(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    matplotlib.use("Agg")
    folder = tmp_path / "examples"
    shutil.copytree(DOCS / "examples", folder)
    monkeypatch.chdir(folder)
    names: dict[str, object] = {}
    ran = 0
    for block in blocks(page):
        if block.kind == "file":
            (folder / block.file).write_text(block.text, encoding="utf-8")
        elif block.kind == "shown":
            assert (folder / block.file).read_text(encoding="utf-8") == block.text
        elif block.language == "python":
            exec(compile(block.text, page, "exec"), names)
        elif block.language == "sh":
            in_shell(block.text, folder)
        ran += bool(block.kind) or block.language in {"python", "sh"}
    assert ran >= 3


@pytest.mark.parametrize("page", PAGES)
def test_the_pages_name_only_what_exists(page: str) -> None:
    """Every `ts.name` on a page is public, whatever language it stands in."""
    import tablesafe as ts

    text = (DOCS / page).read_text(encoding="utf-8")
    named = set(re.findall(r"\bts[.$]([A-Za-z_]+)", text))
    assert named
    assert named <= set(ts.__all__)


@pytest.mark.parametrize("page", PAGES)
def test_links_between_pages_lead_somewhere(page: str) -> None:
    for target in re.findall(r"\]\(([\w-]+\.md)\)", (DOCS / page).read_text(encoding="utf-8")):
        assert (DOCS / target).is_file(), target
