"""A disk that is really full: whoever writes, the user is told so, and nothing is left."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import polars as pl
import pytest

from tablesafe.core.errors import InvalidFile
from tablesafe.files.write import system_errors, write_text
from tablesafe.io.frames import write_frame
from tablesafe.pipeline.outputs import together

FRAME = pl.DataFrame({"code": [f"x{i * 7919 % 100003}" for i in range(20_000)]})
WRITERS: dict[str, Callable[[Path], object]] = {
    "table.csv": lambda path: write_frame(FRAME, path),
    "table.parquet": lambda path: write_frame(FRAME, path),
    "table.xlsx": lambda path: write_frame(FRAME, path),
    "table.txt": lambda path: write_text(path, "x" * 1_000_000),
}


@pytest.fixture
def full(tmp_path: Path) -> Iterator[Path]:
    """A disk with room for one small file."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = shutil.which("mount")
    if (
        mount is None
        or subprocess.run(
            [mount, "-t", "tmpfs", "-o", "size=32k", "tmpfs", str(folder)], check=False, stderr=subprocess.DEVNULL
        ).returncode
    ):
        pytest.skip("no disk may be mounted here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("together_with_others", [False, True], ids=["alone", "together"])
def test_the_user_is_told_that_the_disk_is_full(full: Path, name: str, together_with_others: bool) -> None:
    def write() -> None:
        if not together_with_others:
            WRITERS[name](full / name)
            return
        with together() as outputs:
            write_text(outputs.place(full / "first.txt"), "x")
            WRITERS[name](outputs.place(full / name))

    with pytest.raises(InvalidFile, match=rf"Cannot write '.*{name}': No space left on device\.$"):
        write()
    assert list(full.iterdir()) == []


def test_whoever_writes_a_file_of_several_may_run_out_of_room(full: Path) -> None:
    """A library that writes to the place that it was given, and puts the trouble in words of its own."""

    def write() -> None:
        with together() as outputs:
            FRAME.write_csv(outputs.place(full / "table.csv"))

    with pytest.raises(InvalidFile, match=r"Cannot write '.*table\.csv': No space left on device\.$"):
        write()
    assert list(full.iterdir()) == []


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        (OSError("No space left on device (os error 28)"), "No space left on device"),
        (pl.exceptions.ComputeError("98765.4 cannot be written (os error 5)"), "Input/output error"),
        (RuntimeError(OSError(28, "No space left on device")), "No space left on device"),
    ],
    ids=["words", "values", "inside"],
)
def test_only_what_the_system_said_is_kept(said: Exception, kept: str) -> None:
    def fail() -> None:
        with system_errors():
            raise said

    with pytest.raises(OSError, match=kept) as told:
        fail()
    assert told.value.strerror == kept
    assert "98765" not in str(told.value)


def test_other_errors_stay_what_they_are() -> None:
    for error in (ValueError("x"), OSError(2, "No such file"), OSError("of no number")):
        with pytest.raises(type(error)) as told, system_errors():
            raise error
        assert told.value is error
