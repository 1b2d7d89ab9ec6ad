"""What must not be seen, and a search for it in all that can be seen.

The data are made for the search: every record, every cell and every parameter is a number that occurs nowhere else, and
so long that it does not turn up by chance.
"""

from __future__ import annotations

import base64
import gzip
import io
import math
import re
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random

import numpy as np
import polars as pl

from tablesafe.core.problem import Problem
from tablesafe.core.release import Release, Status

REGIONS = {"NO": ("NO1", "NO2"), "SO": ("SO1", "SO2", "SO3")}
SIZES = ("small", "middle", "large")
HRC = "".join(f"{top}\n" + "".join(f"@{leaf}\n" for leaf in leaves) for top, leaves in REGIONS.items())
PARAMETERS = {
    "p": 13.5793172,
    "range_percent": 17.9318243,
    "k": 86.4173529,
    "pq_p": 9.8137246,
    "pq_q": 61.3971825,
    "within_percent": 83.2174519,
    "manual_range": 23.7194628,
    "least_percent": 5.8137429,
    "most_percent": 14.6173928,
    "rate": 0.3871925,
    "margin": 0.0413796,
    "capacity_percent": 341.3779154,
    "variance": 2.9178346,
}
SEED = 918273645
ATTACK_SEED = 736455182
NUMBER = re.compile(r"\d[\d.,'_\u00a0\u2009\u202f ]*(?:[eE][+-]?\d+)?")
PREFIX = 7
"""So many digits of a withheld number give it away."""


def records() -> pl.DataFrame:
    """Firms with unique turnovers of eight digits, one to six in a cell, some of them in one group."""
    chance, rows = Random(20261115), []
    for region in (leaf for leaves in REGIONS.values() for leaf in leaves):
        for size in SIZES:
            for _ in range(chance.randrange(1, 7)):
                turnover = chance.randrange(12_345_678, 98_765_432)
                rows.append((region, size, turnover, f"F{chance.randrange(10**8, 10**9)}",
                             f"G{chance.randrange(10**8, 10**9)}"))  # fmt: skip
    return pl.DataFrame(rows, schema=["region", "size", "turnover", "firm", "group"], orient="row")


@dataclass(frozen=True)
class Secrets:
    """What must not be seen: whole numbers to the last digit, numbers by their first digits, and words."""

    exact: frozenset[str]
    prefixes: frozenset[str]
    words: frozenset[str]

    @classmethod
    def of(cls, problem: Problem, release: Release, frame: pl.DataFrame) -> Secrets:
        """All that a release must not tell, and nothing that it does tell.

        True values that are withheld or changed, every contribution, every respondent, every parameter and the seeds.
        An interval that is announced around a changed value may end at the true one, by chance.
        """
        truth, told = problem.table.value, release.values
        changed = release.status == Status.CHANGED
        ends = np.concatenate([release.lower[changed], release.upper[changed]])
        public = {digits(value) for value in [*told[~np.isnan(told)], *ends[np.isfinite(ends)]]}
        hidden = {digits(value) for value in [*truth[~(told == truth)], *frame["turnover"].to_list()]} - public
        starts = {value[:PREFIX] for value in public}
        parameters = {digits(value) for value in (*PARAMETERS.values(), SEED, ATTACK_SEED)}
        return cls(
            frozenset(hidden | parameters),
            frozenset({value[:PREFIX] for value in hidden if len(value) >= PREFIX} - starts
                      | {value[:PREFIX] for value in parameters}),
            frozenset([*frame["firm"].to_list(), *frame["group"].to_list(),
                       *(shown for value in PARAMETERS.values() for shown in rounded(value))]),
        )  # fmt: skip

    def found_in(self, text: str) -> set[str]:
        """Every secret that a text gives away, in whatever way it is written."""
        found = {word for word in self.words if word in text}
        for number in numbers(text):
            if number in self.exact or (len(number) >= PREFIX and number[:PREFIX] in self.prefixes):
                found.add(number)
        return found


def rounded(value: float) -> tuple[str, str]:
    """A parameter as a page would show it: five digits and more, for 0.041 is also how long something took."""
    decimals = max(3, 4 - math.floor(math.log10(value)))
    return f"{value:.{decimals}f}", f"{value:.{decimals + 1}f}"


def digits(value: float) -> str:
    """The significant digits of a number, without sign, point and zeros around them."""
    text = f"{abs(value):.9f}" if value != int(value) else str(abs(int(value)))
    return (text.rstrip("0") if "." in text else text).replace(".", "").lstrip("0")


def numbers(text: str) -> Iterator[str]:
    """The digits of every number in a text: with separators between thousands, with decimals, with an exponent."""
    for match in NUMBER.finditer(text):
        plain = re.split(r"[eE]", match[0])[0]
        yield from {_bare(plain), *map(_bare, re.split(r"[,'_\u00a0\u2009\u202f ]", plain)), *re.findall(r"\d+", plain)}


def _bare(text: str) -> str:
    return re.sub(r"\D", "", text).lstrip("0")


def texts(path: Path) -> Iterator[tuple[str, str]]:
    """All that can be read in a file: itself, what is packed or encoded in it, and the cells of a Parquet file."""
    yield from _texts(path.name, path.read_bytes())


def _texts(name: str, data: bytes) -> Iterator[tuple[str, str]]:
    if data.startswith(b"\x1f\x8b"):
        yield from _texts(name + " unpacked", gzip.decompress(data))
    elif data.startswith(b"PK"):
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            yield name, "\n".join(archive.namelist())
            for member in archive.namelist():
                yield from _texts(f"{name}: {member}", archive.read(member))
    elif data.startswith(b"PAR1"):
        yield name, pl.read_parquet(io.BytesIO(data)).write_csv()
        yield name, data.decode("utf-8", errors="replace")
    else:
        text = data.decode("utf-8", errors="replace")
        yield name, text
        for packed in re.findall(r"[A-Za-z0-9+/]{60,}={0,2}", text):
            yield (
                f"{name}: encoded",
                base64.b64decode(packed + "=" * (-len(packed) % 4)).decode("utf-8", errors="replace"),
            )
