"""What differs between systems, and nothing else does: locks, owners, limits, signals, and how processes end together.

Offices run Windows. There `fcntl`, `resource`, `os.fork` and most signals do not exist; so only this module names them
(`tests/test_machine.py` checks it). What a system lacks is done another way where there is one, and left out where
there is none: every function says which.
"""

from __future__ import annotations

import _thread
import contextlib
import ctypes
import os
import shutil
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path, PureWindowsPath
from types import FrameType
from typing import Any

fcntl: Any
try:
    import fcntl
except ImportError:
    fcntl = None
resource: Any
try:
    import resource
except ImportError:
    resource = None

_os: Any = os
_signal: Any = signal
DEATH_SIGNAL = 1
"""The option of Linux's prctl for the signal that a process gets when its parent dies."""

# -- files ---------------------------------------------------------------------------------------------------------

LOCKS = fcntl is not None
"""Whether a process can hold a lock that ends with it. Without, a folder in use cannot be told from one left behind."""

TEMPORARY = ("TMPDIR", "TEMP", "TMP")
"""The variables that say where temporary files go, on one system or another."""


def open_private(path: str | Path, flags: int) -> int:
    """Open a file for its owner's eyes only, as bytes and never through a link, where the system knows of these."""
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0), 0o600)


def open_plain(path: str | Path) -> int:
    """Open a file to read its bytes; a pipe that nobody writes to is not waited for."""
    return os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))


def stand_in(place: Path, target: Path) -> None:
    """Let a file be read in another place too: by a link, a second name, or a copy where nothing else is allowed."""
    try:
        place.symlink_to(target)
    except FileExistsError:
        raise
    except (OSError, NotImplementedError):  # Windows wants a right for links that few users have
        try:
            place.hardlink_to(target)
        except (OSError, NotImplementedError):
            shutil.copyfile(target, place)


def last_part(name: str) -> str:
    """The last part of a path in a file of the user, whichever system it was written for."""
    return PureWindowsPath(name).name


def is_elsewhere(name: str, *, windows: bool = os.name == "nt") -> bool:
    """Whether a path names a place that this system cannot have: a drive or a share, unless this is Windows."""
    return not windows and bool(PureWindowsPath(name).drive)


def lock(handle: int, *, wait: bool = False) -> None:
    """Hold the lock of an open file until it is closed; an OSError says that somebody else does.

    Without locks, nobody else ever does.
    """
    if LOCKS:
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))


def locked_folder(folder: Path) -> int | None:
    """Wait for the lock of a folder and hold it until the handle is closed; None where folders cannot be locked."""
    if not LOCKS:
        return None
    handle = os.open(folder, os.O_RDONLY)
    with contextlib.suppress(OSError):  # a file system without locks
        lock(handle, wait=True)
    return handle


def is_own(found: os.stat_result) -> bool:
    """Whether a file belongs to this user; where the system does not tell, it is taken to."""
    return not hasattr(os, "getuid") or bool(found.st_uid == _os.getuid())


def is_for_owner_only(found: os.stat_result) -> bool:
    """Whether nobody else can enter a folder or read a file; other systems than POSIX keep that elsewhere."""
    return os.name != "posix" or not stat.S_IMODE(found.st_mode) & 0o077


def is_writable_by_others(found: os.stat_result) -> bool:
    """Whether others can put files into a folder."""
    return os.name == "posix" and bool(found.st_mode & (stat.S_IWGRP | stat.S_IWOTH))


def usual_mode() -> int:
    """The mode of a file that is for everybody whom the user lets see files."""
    umask = os.umask(0)
    os.umask(umask)
    return 0o666 & ~umask


def sync(path: Path) -> None:
    """Make sure that a file, or the names in a folder, are on the disk and not only on their way.

    Windows writes names of its own accord, and what a file holds only through a handle that may write.
    """
    if os.name == "nt" and path.is_dir():
        return
    handle = os.open(path, os.O_RDWR if os.name == "nt" else os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


# -- limits --------------------------------------------------------------------------------------------------------


def leave_no_core_dump() -> None:
    """Leave no image of the memory, with all values in it, on disk if the process crashes; Windows asks its owner."""
    if resource is not None:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))


def open_files(wanted: int) -> int:
    """Let this process have so many files and connections open, or as many as it may; how many that is."""
    if resource is None:
        return wanted
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < wanted:
        most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
            soft = most
    return int(soft)


def stand_back(steps: int) -> None:
    """Let other processes go first; on Windows whoever starts this one says so (`apart`)."""
    if hasattr(os, "nice"):
        os.nice(steps)


def cores() -> int:
    """The processors that this process may use."""
    return len(_os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


# -- processes -----------------------------------------------------------------------------------------------------

GROUPS = hasattr(os, "fork") and hasattr(os, "killpg") and hasattr(signal, "SIGKILL") and hasattr(signal, "SIGUSR1")
"""Whether processes form groups that can be watched and ended as one, and can be sent a signal of our own.

Otherwise a process hears of its stop, and of the end of the one that it works for, by what it reads.
"""


def apart() -> dict[str, Any]:
    """How to start a process that has a group of its own, so that Ctrl-C in the shell is not for it."""
    if GROUPS:
        return {"start_new_session": True}
    return {"creationflags": getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0)
            | getattr(subprocess, "BELOW_NORMAL_PRIORITY_CLASS", 0)}  # fmt: skip


def end_group(pid: int) -> None:
    """End a process and all that it started; only where there are groups."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        _os.killpg(pid, _signal.SIGKILL)


def was_ended(code: int) -> bool:
    """Whether a process ended because somebody, or the system for want of memory, ended it."""
    return GROUPS and code == -_signal.SIGKILL


def watch(life: int) -> None:
    """Split off a process that waits for the other end of a pipe to close, and then ends the whole group."""
    if _os.fork():
        os.close(life)
        return
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for stream in (0, 1, 2):
        with contextlib.suppress(OSError):
            os.close(stream)
    while os.read(life, 1):
        pass
    _os.killpg(_os.getpgrp(), _signal.SIGKILL)


def after_fork(do: Callable[[], None]) -> None:
    """Have a process that is copied from this one begin with something; where none can be copied, nothing is done."""
    if hasattr(os, "register_at_fork"):
        _os.register_at_fork(after_in_child=do)


def die_with(parent: int) -> None:
    """Have Linux end this process with the one that started it; elsewhere a thread must wait for that."""
    if sys.platform == "linux" and hasattr(signal, "SIGKILL"):
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(DEATH_SIGNAL, _signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)


# -- signals -------------------------------------------------------------------------------------------------------

ASK: signal.Signals = getattr(signal, "SIGUSR1", getattr(signal, "SIGBREAK", signal.SIGTERM))
"""The signal by which a process is asked to keep the best that it has; from within, where none can be sent."""
ALARM: int | None = getattr(signal, "SIGALRM", None)
Handler = Callable[[int, FrameType | None], Any]


def hear_asks(handler: Handler | None) -> None:
    """Call a handler, in the first thread, when this process is asked to stop; None hears nothing any more."""
    for number in (ASK, *(() if ALARM is None else (ALARM,))):
        signal.signal(number, signal.SIG_IGN if handler is None else handler)
        if handler is not None and hasattr(signal, "siginterrupt"):
            _signal.siginterrupt(number, False)
    if handler is None and ALARM is not None:
        _signal.setitimer(_signal.ITIMER_REAL, 0)


def ask_here() -> None:
    """Ask this process to stop, from any of its threads; nothing happens unless it hears."""
    _thread.interrupt_main(ASK)


def ask_again(seconds: float) -> None:
    """Ask the same after a while."""
    if ALARM is not None:
        _signal.setitimer(_signal.ITIMER_REAL, seconds)
        return
    timer = threading.Timer(seconds, ask_here)
    timer.daemon = True
    timer.start()


def hold_interrupts() -> None:
    """Let no Ctrl-C break into what follows: it waits, or where signals cannot wait it is lost."""
    if hasattr(signal, "pthread_sigmask"):
        _signal.pthread_sigmask(_signal.SIG_BLOCK, {signal.SIGINT})
    else:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
