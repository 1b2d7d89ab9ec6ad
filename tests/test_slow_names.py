"""What is called slow exists: a list that nobody keeps would let tests slip out of `make quick`, or into it."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from slow import TESTS, slow_names


@pytest.mark.parametrize("name", sorted(slow_names()))
def test_what_is_called_slow_is_there(name: str) -> None:
    path, _, test = name.partition("::")
    found: Path = TESTS / path
    assert found.exists()
    if test:
        tree = ast.parse(found.read_text(encoding="utf-8"))
        assert test in {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
