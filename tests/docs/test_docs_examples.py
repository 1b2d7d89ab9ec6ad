"""Every Python and shell example of the documentation runs, in order, as it stands; what it shows is what comes out."""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import matplotlib
import pytest
from documented import DOCS, MADE, RUN, Block, blocks, has_examples, pages, text_of

from tablesafe.cli.app import call

CLOCK = re.compile(r"\b\d+(?:\.\d+)? ?(?:seconds?|s)\b|\bin \d+(?:\.\d+)?s\b")
LIMIT = re.compile(r"(time[_-]limit[_-]s ?=? ?)\d+(?:\.\d+)?")
HASTE_S = 0.5
"""An example shall run: what it shows does not depend on how long a search may take, so none takes long here."""
SHELL = re.compile(r"[|&;<>$`*?(){}]")


@pytest.mark.filterwarnings("ignore:fetch_arrow_table:DeprecationWarning")  # Ibis asks DuckDB in the old way
@pytest.mark.parametrize("page", [page for page in pages() if has_examples(page)])
def test_every_example_of_a_page_runs(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    matplotlib.use("Agg")
    folder = tmp_path / "examples"
    shutil.copytree(DOCS / "examples", folder)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("COLUMNS", "100")
    names: dict[str, object] = {"__name__": "__main__"}
    printed = ""
    for block in (hasty(block) for block in blocks(page)):
        if block.kind == "not run":
            assert block.file, f"say why it is not run: {block.text}"
        elif block.kind == "file":
            (folder / block.file).parent.mkdir(parents=True, exist_ok=True)
            (folder / block.file).write_text(block.text, encoding="utf-8")
        elif block.kind == "shown":
            assert_alike(block.text, (folder / block.file).read_text(encoding="utf-8"))
        elif block.kind == "output":
            assert_alike(block.text, printed)
        elif block.language == "python":
            printed = in_python(block, page, names)
        elif block.language == "sh":
            commands = block.text.replace("\\\n", " ").splitlines()
            if all(is_ours(command) for command in commands):
                for command in commands:
                    in_process(command)
            else:
                in_shell(block.text, folder)
        elif block.language == "console":
            in_console(block.text, folder)


def hasty(block: Block) -> Block:
    """The same example with a shorter search; what it is compared with stays as it is."""
    if block.kind in {"output", "shown"}:
        return block
    return replace(block, text=LIMIT.sub(rf"\g<1>{HASTE_S}", block.text))


def in_python(block: Block, page: str, names: dict[str, object]) -> str:
    """What the block prints."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(block.text, page, "exec"), names)
    return out.getvalue()


def in_shell(text: str, folder: Path) -> str:
    """What the commands print; they must all succeed."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "TERM": "dumb"}
    done = subprocess.run(
        ["bash", "-e", "-c", text], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{text}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def in_console(text: str, folder: Path) -> None:
    """Run each command after a `$ ` and compare what it prints with the lines below it, where there are any."""
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, _, expected = part.partition("\n")
        while command.endswith("\\"):
            more, _, expected = expected.partition("\n")
            command = command[:-1] + more.strip()
        printed = in_process(command) if is_ours(command) else in_shell(command, folder)
        if expected.strip():
            assert_alike(expected, printed)


def is_ours(command: str) -> bool:
    """Whether a line is one command of ours, without anything that a shell would have to understand."""
    return command.startswith("tablesafe ") and not SHELL.search(command)


def in_process(command: str) -> str:
    """Run one command of ours without starting another Python; it must succeed."""
    out, errors = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
        code = call(shlex.split(command, comments=True)[1:])
    assert code == 0, f"{command}\n{out.getvalue()}\n{errors.getvalue()}"
    return out.getvalue()


def assert_alike(expected: str, printed: str) -> None:
    """Equal but for times and blanks at the ends of lines; a line of `...` stands for any lines."""
    wanted = [re.escape(line) if line != "..." else None for line in plain(expected)]
    pattern = "".join("(?:.*\n)*?" if line is None else f"{line}\n" for line in wanted)
    text = "".join(f"{line}\n" for line in plain(printed))
    assert re.fullmatch(pattern, text), f"shown:\n{expected}\nprinted:\n{printed}"


def plain(text: str) -> list[str]:
    return [CLOCK.sub("TIME", line.rstrip()) for line in text.strip("\n").splitlines()]


@pytest.mark.parametrize("page", [page for page in pages() if page not in MADE])
def test_the_pages_name_only_what_exists(page: str) -> None:
    """Every `ts.name` on a page is public, whatever language it stands in."""
    import tablesafe as ts

    named = set(re.findall(r"\bts[.$]([A-Za-z_]+)", text_of(page)))
    assert named <= set(dir(ts))


@pytest.mark.parametrize("page", [page for page in pages() if page not in MADE])
def test_every_block_says_what_it_is(page: str) -> None:
    """A block without a language would not be run, and nobody would notice."""
    for block in blocks(page):
        assert block.language, f"{page}: say what this is (text, if nothing else): {block.text[:60]}"
        assert block.language in {*RUN, "text", "toml", "r", "json"}, block.language
