"""Warming up compiles what a first table needs, tells of every piece, and says so from the command line."""

from __future__ import annotations

import pytest

from tablesafe.cli import warming


@pytest.mark.parametrize("name", list(warming.PIECES))
def test_every_piece_of_work_can_be_done(name: str) -> None:
    warming._do(name)


def test_every_piece_is_told_of_as_it_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[tuple[str, int, int]] = []
    monkeypatch.setattr(warming, "PIECES", {"rounding": warming.PIECES["rounding"]})
    warming.warm_up(lambda *each: told.append(each), workers=1)
    assert told == [("rounding", 1, 1)]
