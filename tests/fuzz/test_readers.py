"""Every reader, whatever the file: it is read, or refused by name with a hint; soon, and in bounded memory."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from fuzz.bounds import EXAMPLES, examples, refusal
from fuzz.mutations import damaged
from fuzz.targets import TARGETS, Target, sealed

SLOW = {"cells.xlsx": 4, "dta": 2, "sav": 2, "xpt": 2}
"""Readers that start a process of their own get fewer examples."""
MARKS = [b"", b"\n", b"\x00" * 100, b"\xff\xfe", b"\xef\xbb\xbf", b"\x1f\x8b", b"PK\x03\x04"]
UNNAMED = {"equations", "prefixes"}
"""Readers that are given codes, not a file."""


def judge(target: Target, content: bytes) -> str | None:
    """What is said against a content, after checking that it is said as it should be."""
    with tempfile.TemporaryDirectory() as folder:
        path = target.lay_out(Path(folder), sealed(content) if target.sealed else content)
        said = refusal(target.read, path)
    if said is not None:
        assert "Traceback" not in said
        assert len(said) < 20_000, "a message is for people"
    return said


@pytest.mark.parametrize("name", TARGETS)
def test_the_seed_itself_is_read(name: str) -> None:
    target = TARGETS[name]
    assert judge(target, target.seed()) is None


@pytest.mark.draws
@pytest.mark.parametrize("name", TARGETS)
def test_a_damaged_file_is_read_or_refused(name: str) -> None:
    target = TARGETS[name]

    @settings(
        max_examples=min(examples(12), 10**6) if name not in SLOW else examples(SLOW[name]),
        suppress_health_check=list(HealthCheck), phases=[Phase.explicit, Phase.generate], database=None,
    )  # fmt: skip
    @given(damaged(target.seed()))
    def run(content: bytes) -> None:
        said = judge(target, content)
        if said is not None and name not in UNNAMED:
            assert names_a_file(target, said), said
            assert "Hint: " in said or name == "job", said  # each error of a job says itself what to do

    run()


def names_a_file(target: Target, said: str) -> bool:
    """Whether a message names the file, one that goes with it, or the column that is at fault."""
    return any(name in said for name in (target.name, *target.beside, "Column '", "given for records without a code"))


ALIKE = ["dta", "sav", "xpt"]
"""Readers that are one, in a process of its own: each mark is tried on one of them."""


def marked() -> list[tuple[str, bytes]]:
    """Every reader with every mark, but for those that are one."""
    alike = {(ALIKE[at % len(ALIKE)], mark) for at, mark in enumerate(MARKS)}
    return [(name, mark) for name in TARGETS for mark in MARKS if name not in ALIKE or (name, mark) in alike]


@pytest.mark.parametrize(("name", "content"), marked())
def test_nothing_and_bare_marks(name: str, content: bytes) -> None:
    judge(TARGETS[name], content)


@settings(max_examples=EXAMPLES or 4, suppress_health_check=list(HealthCheck))
@given(st.sampled_from(sorted(set(TARGETS) - set(SLOW))), st.binary(max_size=200))
def test_any_bytes(name: str, content: bytes) -> None:
    judge(TARGETS[name], content)
