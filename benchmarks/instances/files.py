"""The files of the shared folder; without it, rows say that it is not here."""

from __future__ import annotations

import csv
import os
from functools import partial
from pathlib import Path

from benchmarks.registry import Made, NotHere, instance
from tablesafe.io.jj import read_jj

REPOSITORY = Path(__file__).resolve().parent.parent.parent
CELLS: dict[str, int] = {
    "bench/2d_20": 441, "bench/2d_50": 2_601, "bench/2d_100": 10_201, "bench/3d_10": 1_331, "bench/3d_20": 9_261,
    "bench/h_2k": 2_535, "bench/h3_5k": 4_320, "bench/h_10k": 8_008, "bench/h_50k": 61_854,
    "jj/targus": 162, "jj/table7": 624, "jj/hier13x7x7d": 637, "jj/table8": 1_271, "jj/table1": 1_584,
    "jj/hier13": 2_020, "jj/hier13x13x13a": 2_197, "jj/hier16": 3_564, "jj/two5in6": 5_681, "jj/nine5d": 10_733,
}  # fmt: skip
"""Benchmark instances by how many cells they have."""


def shared() -> Path:
    """The shared folder of instances."""
    folder = Path(os.environ.get("TABLESAFE_INSTANCES", REPOSITORY.parent / "shared" / "instances"))
    if not folder.is_dir():
        raise NotHere("the shared instances are not here: set TABLESAFE_INSTANCES")
    return folder


def read(name: str, folder: Path) -> Made:
    """A JJ file."""
    path = next((path for end in (".jj", ".jj.gz") if (path := shared() / f"{name}{end}").is_file()), None)
    if path is None:
        raise NotHere(f"the shared instances have no {name}")
    return Made(read_jj(path), facts={"file": name})


def lines(path: str, **wanted: str) -> list[dict[str, str]]:
    """The rows of a table beside the instances in which some columns have these values."""
    with (shared() / path).open(encoding="utf-8") as file:
        return [row for row in csv.DictReader(file) if all(row[key] == value for key, value in wanted.items())]


for _name, _cells in CELLS.items():
    instance(_name, "a JJ file of the shared instances", _cells, partial(read, _name))
