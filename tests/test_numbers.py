"""Numbers at the top of a module are chosen by somebody: each says in words what it is for."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import tablesafe

SOURCE = Path(tablesafe.__file__).parent


def _named(node: ast.stmt) -> tuple[list[str], ast.expr] | None:
    """The names that a statement gives to a value, if they are written as those of constants."""
    if isinstance(node, ast.Assign) and len(node.targets) == 1:
        target, value = node.targets[0], node.value
    elif isinstance(node, ast.AnnAssign) and node.value is not None:
        target, value = node.target, node.value
    else:
        return None
    names = [each.id for each in ast.walk(target) if isinstance(each, ast.Name)]
    return (names, value) if names and all(name.strip("_").isupper() for name in names) else None


def _is_number(value: ast.expr) -> bool:
    """Whether it is made of numbers only: texts and tables of names speak for themselves."""
    kinds = [type(each.value) for each in ast.walk(value) if isinstance(each, ast.Constant)]
    return bool({int, float} & set(kinds)) and str not in kinds


def silent(path: Path) -> list[str]:
    """The numbers of a file that are followed by no words, neither by a docstring nor in a comment."""
    text = path.read_text(encoding="utf-8")
    lines, body = text.splitlines(), ast.parse(text).body
    found = []
    for node, after in zip(body, [*body[1:], None], strict=True):
        named = _named(node)
        if named is None or not _is_number(named[1]):
            continue
        told = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
        beside = "#" in lines[(node.end_lineno or node.lineno) - 1] or lines[node.lineno - 2].startswith("#")
        if not told and not beside:
            found += named[0]
    return found


@pytest.mark.parametrize("package", sorted({path.relative_to(SOURCE).parts[0] for path in SOURCE.rglob("*.py")}))
def test_a_number_says_what_it_is_for(package: str) -> None:
    place = SOURCE / package
    files = sorted(place.rglob("*.py")) if place.is_dir() else [place]
    assert {str(path.relative_to(SOURCE)): names for path in files if (names := silent(path))} == {}


def test_a_silent_number_is_found(tmp_path: Path) -> None:
    text = 'A = 1\nB, C = 2, 3\n"""Both."""\nD = 4  # why\nNAMES = ("x", 1)\nE: float = 1e-9\n'
    (tmp_path / "some.py").write_text(text)
    assert silent(tmp_path / "some.py") == ["A", "E"]
