"""The machine and the versions that figures belong to; neither names nor paths of it."""

from __future__ import annotations

import os
import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from benchmarks import peers

LIBRARIES = ("tablesafe", "numpy", "scipy", "highspy", "numba", "polars", "duckdb", "pandas")
REPOSITORY = Path(__file__).resolve().parent.parent


def described() -> dict[str, Any]:
    """CPU, memory, system, Python, and the versions of what is compared."""
    return {
        "cpu": _first("/proc/cpuinfo", "model name", platform.processor() or platform.machine()),
        "cores": os.cpu_count(),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9, 1),
        "system": f"{platform.system()} {platform.release().split('-')[0]} {platform.machine()}",
        "distribution": _first("/etc/os-release", "PRETTY_NAME", "").strip('"'),
        "python": platform.python_version(),
        "libraries": {name: found for name in LIBRARIES if (found := _version(name))},
        "peers": peers.versions(),
        "commit": commit(),
    }


def load() -> float:
    """How many processes wanted to run in the last minute: figures of a busy machine say so."""
    return round(os.getloadavg()[0], 1)


def sentence(machine: dict[str, Any]) -> str:
    """The description in one line."""
    libraries = ", ".join(f"{name} {number}" for name, number in {**machine["libraries"], **machine["peers"]}.items())
    return (
        f"{machine['cpu']}, {machine['cores']} cores, {machine['memory_gb']} GB; {machine['distribution']}, "
        f"{machine['system']}; Python {machine['python']}; {libraries}; commit {machine['commit'] or 'unknown'}."
    )


def _first(path: str, key: str, otherwise: str) -> str:
    """The value of a key in a file of the system."""
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except OSError:
        return otherwise
    found = (line for line in lines if line.startswith(key))
    return next(found, f"{key}={otherwise}").replace(":", "=", 1).partition("=")[2].strip()


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


def commit() -> str:
    """The commit that is checked out; nothing where there is no history."""
    command = ["git", "-C", str(REPOSITORY), "rev-parse", "--short", "HEAD"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""
