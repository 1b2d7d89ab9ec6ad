"""Keep a process that computes for the app to its own files, also where a file names another one to read.

Paths in a job are checked before it runs. But a metadata file, say, names hierarchy files in turn; so the process asks
Python to tell it of every file it opens, and refuses what lies neither in its workspace, nor in the folder that the
user allowed, nor among the program's own files. It is a second lock on the same door, not a cage for hostile code.
"""

from __future__ import annotations

import os
import re
import sys
import sysconfig
from collections.abc import Sequence
from pathlib import Path
from typing import Any

SYSTEM = ("/usr/", "/lib/", "/lib64/", "/proc/", "/sys/", "/dev/null", "/dev/urandom", "/dev/shm/", "/opt/", "/nix/")
ETC = {"/etc/os-release", "/etc/mime.types", "/etc/localtime", "/etc/timezone"}
PROCESS = re.compile(r"/proc/(\d+)(?:/(\w+))?")
SECRETS = {"environ", "mem", "cmdline", "fd", "root", "cwd", "task"}
"""What the system tells of a process that may hold passwords or lead to other files."""
COMPILED = (".py", ".pyc", ".so", ".nbi", ".nbc", ".pth")
"""Program text and what is compiled from it, wherever it is kept."""


def confine(workspace: Path, allowed: Path | None) -> None:
    """From now on, refuse to open any other file; for the rest of this process."""
    roots = [workspace.resolve(), *([] if allowed is None else [allowed.resolve()])]
    program = tuple(f"{os.path.realpath(path)}{os.sep}" for path in _program())

    def hear(event: str, arguments: Sequence[Any]) -> None:
        if event == "open" and isinstance(arguments[0], (str, bytes)):
            name = os.fsdecode(arguments[0])
            if not may_open(os.path.realpath(name), roots, program):
                raise PermissionError(13, "Not a file of this workspace", Path(name).name)

    sys.addaudithook(hear)


def may_open(path: str, roots: Sequence[Path], program: tuple[str, ...]) -> bool:
    """Whether a file, by its real path, is the program's or in a root; hidden files in there are not."""
    for root in roots:
        if Path(path).is_relative_to(root):
            hidden = any(part.startswith(".") for part in Path(path).relative_to(root).parts)
            return not hidden or root == roots[0]
    process = PROCESS.match(path)
    if process is not None and (int(process[1]) != os.getpid() or process[2] in SECRETS):
        return False
    return path.startswith(SYSTEM) or path in ETC or path.endswith(COMPILED) or path.startswith(program)


def _program() -> set[str]:
    """Where this program's own files are."""
    package = str(Path(__file__).resolve().parents[1])
    fonts = (str(Path.home() / folder / "matplotlib") for folder in (".cache", ".config"))  # found once for all plots
    return {sys.prefix, sys.base_prefix, package, *sysconfig.get_paths().values(), *fonts}
