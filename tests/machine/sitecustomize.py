"""Make Python here what it is on Windows, as far as that goes: no fork, no locks, no limits, hardly any signals.

It is put on the path of a process, and of all that it starts, by `test_other_machines.py`. The standard library keeps
the signals that it needs itself on this system, where on Windows it would do without.
"""

import multiprocessing
import multiprocessing.popen_fork
import os
import signal
import subprocess
import sys
import tempfile
import types

ABSENT = {"fcntl", "resource", "pwd", "grp", "termios", "syslog"}
OF_OS = ["fork", "forkpty", "killpg", "getpgrp", "getpgid", "setsid", "getuid", "geteuid", "nice", "sched_getaffinity",
         "O_NOFOLLOW", "O_CLOEXEC", "O_NONBLOCK"]  # fmt: skip
OF_SIGNAL = ["SIGKILL", "SIGUSR1", "SIGUSR2", "SIGALRM", "SIGHUP", "SIGPIPE", "setitimer", "siginterrupt",
             "pthread_sigmask", "SIG_BLOCK"]  # fmt: skip


class Absent:
    """Says of some modules that they do not exist."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name in ABSENT:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


sys.meta_path.insert(0, Absent)
for name in ABSENT:
    sys.modules.pop(name, None)
kept = types.ModuleType("signal")
vars(kept).update(vars(signal))
subprocess.signal = multiprocessing.popen_fork.signal = kept
tempfile.gettempdir()
for module, names in ((os, OF_OS), (signal, OF_SIGNAL)):
    for name in names:
        if hasattr(module, name):
            delattr(module, name)
multiprocessing.set_start_method("spawn", force=True)
