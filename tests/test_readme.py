"""The README's own words work."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import tablesafe

REPOSITORY = Path(__file__).resolve().parent.parent


def test_the_six_lines_of_python_run(monkeypatch: pytest.MonkeyPatch) -> None:
    text = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    found = re.search(r"<!-- tested: readme -->\n```python\n(.*?)```", text, flags=re.DOTALL)
    assert found is not None
    monkeypatch.chdir(Path(tablesafe.__file__).parent / "demo")
    names: dict[str, object] = {}
    exec(found[1], names)
    assert names["findings"].safe  # type: ignore[attr-defined]
