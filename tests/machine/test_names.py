"""Only `core.machine` names what exists on some systems and not on others; and paths of every system are understood."""

from __future__ import annotations

import ast
import os
from pathlib import Path

import pytest

import tablesafe
from tablesafe.core import machine
from tablesafe.core.errors import InvalidFile
from tablesafe.web.folders import Folder

SOURCE = Path(tablesafe.__file__).parent
MODULES = {"fcntl", "resource", "pwd", "grp", "termios", "msvcrt", "winreg"}
NAMES = {
    "os": {"fork", "forkpty", "killpg", "getpgrp", "getpgid", "setsid", "getuid", "geteuid", "nice", "O_NOFOLLOW",
           "sched_getaffinity", "O_CLOEXEC", "O_NONBLOCK", "mkfifo", "statvfs", "uname", "umask"},
    "signal": {"SIGKILL", "SIGUSR1", "SIGUSR2", "SIGALRM", "SIGHUP", "SIGPIPE", "setitimer", "siginterrupt",
               "pthread_sigmask", "SIG_BLOCK", "alarm", "pause"},
}  # fmt: skip
ALLOWED = {("web/child.py", "umask")}  # there on every system; it makes what a process writes private where that counts


def named(path: Path) -> set[str]:
    """What a module names that does not exist everywhere."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found.update(each.name for each in node.names if each.name in MODULES)
        elif isinstance(node, ast.ImportFrom) and node.module in MODULES:
            found.add(str(node.module))
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            if node.attr in NAMES.get(node.value.id, set()):
                found.add(node.attr)
        elif isinstance(node, ast.keyword) and node.arg in {"start_new_session", "preexec_fn", "process_group"}:
            found.add(node.arg)
    return found


def test_only_one_module_names_what_differs_between_systems() -> None:
    found = {(path.relative_to(SOURCE).as_posix(), each) for path in SOURCE.rglob("*.py") for each in named(path)}
    assert {each for each in found if each[0] != "core/machine.py"} - ALLOWED == set()


def test_the_check_sees_such_names(tmp_path: Path) -> None:
    bad = tmp_path / "bad.py"
    bad.write_text("import fcntl, os, signal\nos.fork()\nos.kill(1, signal.SIGKILL)\nrun(start_new_session=True)\n")
    assert named(bad) == {"fcntl", "fork", "SIGKILL", "start_new_session"}


@pytest.mark.parametrize(
    ("name", "last"),
    [
        (r"C:\Daten 2024\Größe.hrc", "Größe.hrc"), (r"\\server\Freigabe\Über uns\a b.rda", "a b.rda"),
        ("//server/share/x.asc", "x.asc"), ("sub/folder/x.asc", "x.asc"), ("x.asc", "x.asc"), (r"D:x.asc", "x.asc"),
    ],
)  # fmt: skip
def test_the_last_part_of_a_path_of_any_system(name: str, last: str) -> None:
    assert machine.last_part(name) == last


@pytest.mark.parametrize("name", [r"C:\x.txt", "c:/x.txt", r"\\server\share\x.txt", "//server/share/x.txt", "Z:x"])
def test_drives_and_shares_are_places_of_windows_only(name: str) -> None:
    assert machine.is_elsewhere(name, windows=False)
    assert not machine.is_elsewhere(name, windows=True)


@pytest.mark.parametrize("name", ["x.txt", "Jahr 2024/Größe.txt", r"sub\x.txt", "/home/x.txt"])
def test_other_paths_are_places_of_this_machine(name: str) -> None:
    assert not machine.is_elsewhere(name, windows=False)


@pytest.mark.parametrize("name", ["C:/x.csv", "c:x.csv", "//server/share/x.csv"])
def test_the_app_reads_no_drive_and_no_share_by_name(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidFile, match="not in the folder"):
        Folder.at(tmp_path).resolve(name)


@pytest.mark.parametrize("second_names", [True, False])
def test_a_file_stands_in_for_another_where_no_links_are_allowed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, second_names: bool
) -> None:
    def refused(*_: object, **__: object) -> None:
        raise OSError(22, "A required privilege is not held by the client")

    monkeypatch.setattr(Path, "symlink_to", refused)
    if not second_names:
        monkeypatch.setattr(Path, "hardlink_to", refused)
    original, place = tmp_path / "Größe.csv", tmp_path / "stand in.csv"
    original.write_bytes(b"a\r\nb\n")
    machine.stand_in(place, original)
    assert place.read_bytes() == b"a\r\nb\n"
    assert not place.is_symlink()
    assert place.samefile(original) == second_names


def test_a_private_file_is_bytes_and_its_owners(tmp_path: Path) -> None:
    with os.fdopen(machine.open_private(tmp_path / "x", os.O_WRONLY | os.O_CREAT | os.O_EXCL), "wb") as file:
        file.write(b"1\n2\n")
    assert (tmp_path / "x").read_bytes() == b"1\n2\n"
    assert machine.is_for_owner_only((tmp_path / "x").stat())
    assert machine.is_own((tmp_path / "x").stat())
