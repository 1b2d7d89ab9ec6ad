"""What a process used: CPU seconds with those of its children, and the most memory it held."""

from __future__ import annotations

import resource
from pathlib import Path
from time import perf_counter


def cpu_seconds() -> float:
    """CPU seconds of this process and of the ones that it started and that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


STATUS = Path("/proc/self/status")
CLEAR = Path("/proc/self/clear_refs")


def forget_peak() -> float:
    """Begin to look for the peak anew where the kernel lets us, and say how much memory is held now."""
    try:
        CLEAR.write_text("5")
        return _marked("VmRSS")
    except OSError:
        return 0.0


def peak_mb() -> float:
    """The most memory that this process held since then, and its largest worker process with it, where it had any."""
    if not STATUS.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return _marked("VmHWM") + resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024


def _marked(mark: str) -> float:
    """Megabytes by one of the kernel's marks; `ru_maxrss` would include what the process held that started this one."""
    return int(next(line for line in STATUS.read_text().splitlines() if line.startswith(mark)).split()[1]) / 1024


class Stopwatch:
    """CPU and wall seconds since it was made."""

    def __init__(self) -> None:
        self._cpu, self._wall = cpu_seconds(), perf_counter()

    @property
    def cpu_s(self) -> float:
        """CPU seconds, children included."""
        return cpu_seconds() - self._cpu

    @property
    def wall_s(self) -> float:
        """Seconds by the clock on the wall."""
        return perf_counter() - self._wall
