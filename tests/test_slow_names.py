"""What is called slow exists: a list that nobody keeps would let tests slip out of `make quick`, or into it."""

from __future__ import annotations

import ast
from functools import cache

import pytest

from slow import TESTS, slow_names


@cache
def functions_of(path: str) -> frozenset[str]:
    """The functions of a file of tests."""
    tree = ast.parse((TESTS / path).read_text(encoding="utf-8"))
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


@pytest.mark.parametrize("name", sorted(slow_names()))
def test_what_is_called_slow_is_there(name: str) -> None:
    path, _, test = name.partition("::")
    assert (TESTS / path).exists()
    if test:
        assert test in functions_of(path)
