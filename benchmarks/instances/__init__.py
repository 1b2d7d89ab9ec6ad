"""Instances: generators with seeds, and the files of the shared folder. Importing this registers all of them."""

from __future__ import annotations

from benchmarks.instances import (
    census,
    counts,
    cubes,
    files,
    firms,
    jobs,
    microdata,
    papers,
    patterns,
    records,
    values,
)

__all__ = [
    "census",
    "counts",
    "cubes",
    "files",
    "firms",
    "jobs",
    "microdata",
    "papers",
    "patterns",
    "records",
    "values",
]
