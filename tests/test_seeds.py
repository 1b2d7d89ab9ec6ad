"""Examples are new in every run, in CI too, and the printed seed draws them again."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

from hypothesis import settings

from seeds import VARIABLE, fresh, session_seed

DRAWN = """
from hypothesis import given, settings, strategies as st
drawn = []
@settings(max_examples=20, database=None)
@given(st.integers(0, 2**32))
def test_draws(number):
    drawn.append(number)
def test_tells():
    from seeds import fresh
    print("DRAWN", drawn, fresh(3, "x"))
"""


def drawn(folder: Path, seed: int | None) -> str:
    """What one run draws where CI runs: hypothesis would take fixed examples there."""
    tests = Path(__file__).parent
    (folder / "conftest.py").write_text((tests / "conftest.py").read_text(encoding="utf-8"), encoding="utf-8")
    (folder / "test_draws.py").write_text(DRAWN, encoding="utf-8")
    environment = {name: value for name, value in os.environ.items() if name != VARIABLE}
    environment |= {"CI": "true", "PYTHONPATH": os.pathsep.join([str(tests), os.environ.get("PYTHONPATH", "")])}
    environment |= {} if seed is None else {VARIABLE: str(seed)}
    command = [sys.executable, "-m", "pytest", "-s", "-p", "no:cacheprovider", "--rootdir", str(folder), str(folder)]
    told = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert told.returncode == 0, told.stdout + told.stderr
    assert f"{VARIABLE}=" in told.stdout, "the header tells how to repeat it"
    return next(line for line in told.stdout.splitlines() if "DRAWN" in line)


def test_a_seed_draws_the_same_again_and_another_run_something_else(tmp_path: Path) -> None:
    first, again, other = drawn(tmp_path, 5), drawn(tmp_path, 5), drawn(tmp_path, None)
    assert first == again
    assert first != other


def test_seeds_of_tests_differ_and_follow_the_session() -> None:
    assert fresh(3, "one") == fresh(3, "one")
    assert set(fresh(3, "one")).isdisjoint(fresh(3, "another"))
    assert str(session_seed()) == os.environ[VARIABLE]
    assert not settings().derandomize


def test_all_draw_from_the_seeds_that_a_soak_knows() -> None:
    """By another name the module is there twice, and `make soak` leaves out what was drawn from the other one."""
    another = re.compile(r"^\s*(from|import) tests\b", re.MULTILINE)
    files = Path(__file__).parent.rglob("*.py")
    assert [file.name for file in files if another.search(file.read_text(encoding="utf-8"))] == []


def draws(function: ast.FunctionDef) -> bool:
    """Whether a test takes as many seeds as there are, and not only the first."""
    inside = [node for line in function.body for node in ast.walk(line)]
    first = {id(node.value) for node in inside if isinstance(node, ast.Subscript)}
    calls = (node for node in inside if isinstance(node, ast.Call) and id(node) not in first)
    return any(ast.unparse(call.func) in {"fresh", "seeds.fresh"} and len(call.args) == 2 for call in calls)


def test_what_draws_within_itself_says_so() -> None:
    """A soak sees the seeds that are parameters of a test; others it must be told of, or it leaves the test out."""
    silent = []
    for file in sorted(Path(__file__).parent.rglob("test_*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_") and draws(node):
                told = any("draws" in ast.unparse(mark) for mark in node.decorator_list)
                silent += [] if told or file.name == "test_seeds.py" else [f"{file.name}::{node.name}"]
    assert silent == []
