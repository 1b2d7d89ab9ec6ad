"""What takes long, and is left out of `make quick`."""

from __future__ import annotations

from functools import cache
from pathlib import Path

TESTS = Path(__file__).resolve().parent


@cache
def slow_names() -> frozenset[str]:
    """What tests/slow.txt names."""
    lines = (TESTS / "slow.txt").read_text(encoding="utf-8").splitlines()
    return frozenset(line.strip() for line in lines if line.strip() and not line.startswith("#"))
