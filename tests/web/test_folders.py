"""No name leads out of the allowed folder, by whatever spelling, link or file type."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tablesafe.core.errors import InvalidFile
from tablesafe.web.folders import Folder


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A folder with good files, and every kind of bad one, inside and around it."""
    root = tmp_path / "allowed"
    (root / "sub").mkdir(parents=True)
    (root / "firms.csv").write_text("a")
    (root / "sub" / "deep.csv").write_text("b")
    (root / "näme with space.csv").write_text("c")
    (root / ".hidden.csv").write_text("x")
    (root / ".secret").mkdir()
    (root / ".secret" / "in.csv").write_text("x")
    (tmp_path / "outside.csv").write_text("x")
    (tmp_path / "allowed-too").mkdir()
    (tmp_path / "allowed-too" / "x.csv").write_text("x")
    (root / "link-in.csv").symlink_to(root / "firms.csv")
    (root / "link-out.csv").symlink_to(tmp_path / "outside.csv")
    (root / "link-dir").symlink_to(tmp_path)
    (root / "link-hidden.csv").symlink_to(root / ".hidden.csv")
    (root / "loop").symlink_to(root / "loop")
    (root / "broken.csv").symlink_to(root / "gone.csv")
    os.mkfifo(root / "pipe.csv")
    return root


@pytest.mark.parametrize("name", ["firms.csv", "sub/deep.csv", "näme with space.csv", "sub//deep.csv", "./firms.csv"])
def test_files_inside_are_found(root: Path, name: str) -> None:
    found = Folder.at(root).resolve(name)
    assert found.is_relative_to(root)
    assert found.is_file()


def test_a_link_that_stays_inside_is_its_target(root: Path) -> None:
    assert Folder.at(root).resolve("link-in.csv") == root / "firms.csv"


BAD = [
    "../outside.csv", "sub/../../outside.csv", "/etc/passwd", "//etc/passwd", "..", ".", "", "sub", "/", "link-out.csv",
    "link-dir/outside.csv", "link-dir/allowed/firms.csv/../../../outside.csv", ".hidden.csv", ".secret/in.csv",
    "link-hidden.csv", "loop", "broken.csv", "pipe.csv", "gone.csv", "firms.csv/x", "..\\outside.csv",
    "sub\\..\\..\\outside.csv", "firms.csv\x00", "\x00", "x" * 5000, "../allowed-too/x.csv", "~/x", "file:///etc/passwd",
    "sub/../firms.csv", "/proc/self/environ", "link-dir",
]  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_everything_else_is_refused(root: Path, name: str) -> None:
    with pytest.raises(InvalidFile):
        Folder.at(root).resolve(name)


def test_devices_and_sockets_are_refused(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(root)  # the path of a socket must be short
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("a.sock")
        with pytest.raises(InvalidFile):
            Folder.at(root).resolve("a.sock")
    (root / "zero").symlink_to("/dev/zero")
    with pytest.raises(InvalidFile):
        Folder.at(root).resolve("zero")


PIECES = ["..", ".", "/", "\\", "a", "firms.csv", "link-dir", "%2e", "\x00", "~"]


@given(name=st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
def test_whatever_is_found_is_inside(tmp_path_factory: pytest.TempPathFactory, name: str) -> None:
    root = tmp_path_factory.getbasetemp() / "fuzzed" / "allowed"
    if not root.exists():
        root.mkdir(parents=True)
        (root / "firms.csv").write_text("a")
        (root / "a").write_text("a")
        (root / "link-dir").symlink_to(root.parent)
        (root.parent / "a").write_text("outside")
    try:
        found = Folder.at(root).resolve(name)
    except InvalidFile:
        return
    assert found.parent == root
    assert found.read_text() == "a"


def test_without_a_folder_there_is_nothing(root: Path) -> None:
    assert Folder().entries() == []
    with pytest.raises(InvalidFile, match="may read no folder"):
        Folder().resolve(str(root / "firms.csv"))


def test_only_what_may_be_chosen_is_listed(root: Path) -> None:
    names = [entry.name for entry in Folder.at(root).entries()]
    assert names == ["sub", "firms.csv", "link-in.csv", "näme with space.csv"]
    assert [entry.name for entry in Folder.at(root).entries("sub")] == ["sub/deep.csv"]
    for name in ("..", "../allowed-too", "link-dir", "/", ".secret", "firms.csv", "gone"):
        with pytest.raises(InvalidFile):
            Folder.at(root).entries(name)


def test_the_folder_must_be_there(root: Path) -> None:
    for path in (root / "gone", root / "firms.csv"):
        with pytest.raises(InvalidFile, match="There is no folder"):
            Folder.at(path)
