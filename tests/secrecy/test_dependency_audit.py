"""The dependency audit fails on a vulnerability, and says by name when it could not ask."""

from __future__ import annotations

import json
from importlib.machinery import SourceFileLoader
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parent.parent.parent
GOOD = {"name": "numpy", "version": "2.0", "vulns": []}
BAD = {"name": "jinja2", "version": "3.0", "vulns": [{"id": "CVE-2024-1", "fix_versions": ["3.1"]}]}
UNASKED = {"name": "polars", "skip_reason": "not found"}


def judge(packages: object) -> tuple[int, str]:
    loaded = SourceFileLoader("dependency_audit", str(REPOSITORY / ".ci" / "audit")).load_module()
    code, text = loaded.judge(packages if isinstance(packages, str) else json.dumps({"dependencies": packages}))
    return int(code), str(text)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_what_it_says() -> None:
    assert judge([GOOD, UNASKED]) == (0, "dependency audit: 1 of 2 packages looked up, 0 with vulnerabilities.")
    code, text = judge([GOOD, BAD])
    assert code == 1
    assert "jinja2 3.0: CVE-2024-1, fixed in 3.1" in text
    for nothing in ([UNASKED], [], "", "no JSON"):
        code, text = judge(nothing)
        assert code == 0
        assert text.startswith("dependency audit SKIPPED: ")


def test_make_check_asks() -> None:
    makefile = (REPOSITORY / "Makefile").read_text(encoding="utf-8")
    check = makefile.partition("\ncheck:")[2].partition("\n\n")[0]
    assert ".ci/audit" in check
