"""Keep a process that computes for the app to its own files, also where a file names another one to read.

Paths in a job are checked before it runs. But a metadata file, say, names hierarchy files in turn; so the process asks
Python to tell it of every file it opens, and refuses what lies neither in its workspace, nor in the folder that the
user allowed, nor among the program's own files. It is a second lock on the same door, not a cage for hostile code.
"""

from __future__ import annotations

import json
import os
import re
import struct
import sys
import sysconfig
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO

from tablesafe.core.machine import ask_here, hear_asks, hold_interrupts, stand_back, watch

SYSTEM = ("/usr/", "/lib/", "/lib64/", "/proc/", "/sys/", "/dev/null", "/dev/urandom", "/dev/shm/", "/opt/", "/nix/")
ETC = {"/etc/os-release", "/etc/mime.types", "/etc/localtime", "/etc/timezone"}
PROCESS = re.compile(r"/proc/(\d+)(?:/(\w+))?")
SECRETS = {"environ", "mem", "cmdline", "fd", "root", "cwd", "task"}
"""What the system tells of a process that may hold passwords or lead to other files."""
COMPILED = (".py", ".pyc", ".so", ".pyd", ".nbi", ".nbc", ".pth")
"""Program text and what is compiled from it, wherever it is kept."""


def confine(workspace: Path, allowed: Path | None) -> None:
    """From now on, refuse to open any other file; for the rest of this process."""
    roots = [workspace.resolve(), *([] if allowed is None else [allowed.resolve()])]
    program = tuple(f"{os.path.realpath(path)}{os.sep}" for path in _program())

    def hear(event: str, arguments: Sequence[Any]) -> None:
        if event == "open" and isinstance(arguments[0], (str, bytes)):
            name = os.fsdecode(arguments[0])
            if name != os.devnull and not may_open(os.path.realpath(name), roots, program):
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
    installed = (path for path in sys.path if Path(path).name in {"site-packages", "dist-packages"})  # ~/.local too
    fonts = (str(Path.home() / folder / "matplotlib") for folder in (".cache", ".config"))  # found once for all plots
    return {sys.prefix, sys.base_prefix, package, *sysconfig.get_paths().values(), *installed, *fonts}


# A process that computes for the app: `python -m tablesafe.web.child`, started by `Worker` and by nobody else.
#
# The server must answer while tables are read and programs solved, so nothing of that happens in it. Tasks and answers
# are JSON: whatever a hostile file does to this process, the server only reads text from it. A watcher process ends the
# whole group when the server is gone, however it ended, so that nothing runs on without anybody to stop it.


HEADER = struct.Struct(">I")
STOP = {"stop": True}
"""What the server writes to ask for the best answer so far, where it cannot send a signal."""
STOPPED, NO_MEMORY = "Stopped: nothing was written.", "There is not enough memory for this table."
FEWER, DEBUG = "try fewer dimensions, or a machine with more memory.", "run the job file from the shell with --debug."
FAILED = "tablesafe failed ({kind})."
"""What is said of errors that are not ours."""
NICE = 5
"""How far a process stands back, so that the server answers while all cores compute."""
OWN = "tablesafe.web."
"""Only functions of these modules are tasks."""


@dataclass(slots=True)
class Desk:
    """What a process keeps between tasks: the folder it works in, whatever it has loaded, and whom it tells."""

    folder: Path
    tell: Callable[[dict[str, Any]], None]
    """Send an event to the server while a task goes on."""
    loaded: dict[str, Any] = field(default_factory=dict)
    language: str = "en"
    """The code of the language in which whoever asks reads."""


def read_message(stream: BinaryIO) -> Any:
    """The next message; None when there are no more."""
    head = stream.read(HEADER.size)
    if len(head) < HEADER.size:
        return None
    return json.loads(stream.read(HEADER.unpack(head)[0]))


def write_message(stream: BinaryIO, message: Any) -> None:
    """Send one message."""
    body = json.dumps(message, ensure_ascii=False, default=_plain).encode()
    stream.write(HEADER.pack(len(body)) + body)
    stream.flush()


def _plain(value: Any) -> Any:
    """What JSON does not know: numbers and arrays of NumPy, paths, sets."""
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, (set, frozenset)):
        return sorted(value)
    return str(value)


def serve(requests: BinaryIO, answers: BinaryIO, folder: Path) -> None:
    """Do one task after another until there are no more."""
    desk = Desk(folder, lambda event: write_message(answers, {"event": event}))
    while (request := _next(requests)) is not None:
        try:
            desk.language = request.get("language", "en")
            value = task_of(request["task"])(desk, *request["arguments"])
            answer = {"value": value}
        except BaseException as error:  # an interrupt too is an answer
            answer = {"error": describe(error)}
        _sent(answers, answer)


def _next(requests: BinaryIO) -> Any:
    """The next task; an interrupt that comes when there is none to stop means nothing."""
    while True:
        try:
            return read_message(requests)
        except KeyboardInterrupt:
            continue


def _sent(answers: BinaryIO, answer: dict[str, Any]) -> None:
    """Send an answer, whole, even if it is interrupted meanwhile."""
    hold_interrupts()
    write_message(answers, answer)


def sifted(given: BinaryIO) -> BinaryIO:
    """The tasks among what the server writes, where it can neither send a signal nor have this process watched.

    A thread of its own reads all the time: it hears when this process is asked to stop, and ends it with the server.
    """
    ours, theirs = os.pipe()

    def read() -> None:
        with os.fdopen(theirs, "wb") as tasks:
            while (message := read_message(given)) is not None:
                if message == STOP:
                    ask_here()
                else:
                    write_message(tasks, message)
        os._exit(1)

    threading.Thread(target=read, daemon=True).start()
    return os.fdopen(ours, "rb")


def task_of(name: str) -> Callable[..., Any]:
    """The function that a task names."""
    module, _, function = name.partition(":")
    if not module.startswith(OWN):
        raise ValueError("not a task of the app")
    found: Callable[..., Any] = getattr(import_module(module), function)
    return found


def describe(error: BaseException) -> dict[str, Any]:
    """An error for the page: in the user's words if it is one of ours, otherwise only its kind.

    What other errors say may hold a value of the data.
    """
    from tablesafe.core.errors import Interrupted, TablesafeError

    if isinstance(error, (KeyboardInterrupt, Interrupted)):
        return {"kind": "Interrupted", "message": STOPPED, "hint": ""}
    if isinstance(error, TablesafeError):
        from tablesafe.core.language import frozen
        from tablesafe.job.remedies import as_field, settings

        error.speech = as_field
        told, hint = map(frozen, error.words)
        advised = [(each.name, each.value, each.of) for each in settings(error.advice)]
        return {
            "kind": type(error).__name__, "message": told, "hint": hint, "about": list(error.about),
            "settings": advised,
        }  # fmt: skip
    if isinstance(error, MemoryError):
        return {"kind": "MemoryError", "message": NO_MEMORY, "hint": FEWER}
    message = {"text": FAILED, "parts": {"kind": type(error).__name__}}
    return {"kind": type(error).__name__, "message": message, "hint": DEBUG}


def main() -> None:
    """Take the pipes that the server left, and serve."""
    life, folder, workspace, allowed = sys.argv[1], *map(Path, sys.argv[2:4]), sys.argv[4]
    hear_asks(None)
    if life:
        watch(int(life))
    requests = sys.stdin.buffer if life else sifted(sys.stdin.buffer)
    answers = os.fdopen(os.dup(1), "wb")
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 1)  # what a library prints is no answer, and may hold values
    os.dup2(nowhere, 2)
    os.umask(0o077)
    stand_back(NICE)
    os.chdir(folder)
    confine(workspace, Path(allowed) if allowed else None)
    serve(requests, answers, folder)


if __name__ == "__main__":
    main()
