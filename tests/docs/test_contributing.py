"""CONTRIBUTING.md tells where things are: every place that it names is there, and every package is told."""

from __future__ import annotations

import re
from pathlib import Path

import tablesafe

SOURCE = Path(tablesafe.__file__).parent
ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
CODE = re.findall(r"`([^`\n]+)`", TEXT)


def test_every_place_that_is_named_is_there() -> None:
    places = {code for code in CODE if re.fullmatch(r"[\w./]+", code) and ("/" in code or code.endswith(".py"))}
    places = {place for place in places if not place.startswith(("../", "tablesafe/"))}
    assert len(places) > 30
    assert [place for place in sorted(places) if not (SOURCE / place).exists() and not (ROOT / place).exists()] == []


def test_every_module_of_the_core_and_every_package_is_told() -> None:
    core = {f"core.{path.stem}" for path in (SOURCE / "core").glob("*.py") if path.stem != "__init__"}
    assert {code for code in CODE if re.fullmatch(r"core\.\w+", code)} == core
    packages = {f"{path.parent.name}/" for path in SOURCE.glob("*/__init__.py")} - {"core/"}
    assert packages <= set(CODE)


def test_an_example_is_a_commit() -> None:
    """That it exists is not asked: a clone may be shallow, and a release has no history at all."""
    shown = re.findall(r"`git show (\w+)( -- [^`]+)?`", TEXT)
    assert len(shown) >= 6
    assert [commit for commit, _ in shown if not re.fullmatch(r"[0-9a-f]{7}", commit)] == []
    kept = [path for _, paths in shown for path in paths.split()[1:]]
    assert [path for path in kept if not (ROOT / path).exists()] == []
