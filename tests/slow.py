"""What takes long, and is left out of `make quick`."""

from __future__ import annotations

from pathlib import Path

TESTS = Path(__file__).resolve().parent


def slow_names() -> set[str]:
    """What tests/slow.txt names."""
    lines = (TESTS / "slow.txt").read_text(encoding="utf-8").splitlines()
    return {line.strip() for line in lines if line.strip() and not line.startswith("#")}
