"""The instances of the arena: tables made from a seed in whole numbers only, equal on every machine for ever.

Random numbers are those of splitmix64 (Steele, Lea & Flood 2014), amounts are quotients of whole numbers: no library's
generator and no logarithm has a say. Files that are public elsewhere are named with their checksum and not copied.
"""

from __future__ import annotations

import gzip
import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial, reduce
from itertools import product
from pathlib import Path

import numpy as np
from scipy import sparse

HERE = Path(__file__).resolve().parent
SHARED = HERE.parent.parent.parent / "shared" / "instances"
Fans = tuple[int, ...]
"""How many parts a code of each level has."""


def splitmix(seed: int, stream: int, count: int) -> np.ndarray:
    """`count` numbers of 32 bits, the same for equal seed and stream."""
    with np.errstate(over="ignore"):
        start = np.uint64(seed) * np.uint64(0xD1342543DE82EF95) + np.uint64(stream) * np.uint64(0x2545F4914F6CDD1D)
        z = start + np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return np.asarray((z ^ (z >> np.uint64(31))) >> np.uint64(32)).astype(np.int64)


def tail(numbers: np.ndarray, scale: int, cap: int) -> np.ndarray:
    """Whole amounts with a tail like 1/x: `scale` in the lower half, up to `cap` times that."""
    return np.asarray(scale * 2**32 // (numbers + 2**32 // cap) + 1)


def below(numbers: np.ndarray, most: int) -> np.ndarray:
    """Numbers of 32 bits as whole numbers below `most`."""
    return np.asarray(numbers * most >> 32)


@dataclass(frozen=True)
class Axis:
    """One dimension: nodes from the total down, the leaves below each, and which nodes are parts of which."""

    leaves: int
    spans: tuple[tuple[int, int], ...]
    """The first leaf of a node, and the one after its last."""
    parts: tuple[tuple[int, tuple[int, ...]], ...]

    @classmethod
    def of(cls, fans: Fans) -> Axis:
        """A regular tree, level by level."""
        leaves = reduce(lambda a, b: a * b, fans, 1)
        spans, parts, level, wide = [(0, leaves)], [], [0], leaves
        for fan in fans:
            wide //= fan
            below_it = []
            for node in level:
                first = len(spans)
                spans += [(spans[node][0] + i * wide, spans[node][0] + (i + 1) * wide) for i in range(fan)]
                parts.append((node, tuple(range(first, first + fan))))
                below_it += range(first, first + fan)
            level = below_it
        return cls(leaves, tuple(spans), tuple(parts))

    def summed(self, values: np.ndarray, axis: int) -> np.ndarray:
        """The sums of all nodes along one axis of leaf values."""
        running = np.insert(np.cumsum(values, axis=axis), 0, 0, axis=axis)
        first, last = np.array(self.spans).T
        return np.asarray(np.take(running, last, axis=axis) - np.take(running, first, axis=axis))


def equations(axes: list[Axis]) -> sparse.csr_array:
    """A total less its parts, for every total of every dimension and all codes of the others."""
    blocks = []
    for d, axis in enumerate(axes):
        members = [(i, node, -1) for i, (node, _) in enumerate(axis.parts)]
        members += [(i, part, 1) for i, (_, parts) in enumerate(axis.parts) for part in parts]
        rows, columns, entries = zip(*members, strict=True)
        own = sparse.csr_array((entries, (rows, columns)), shape=(len(axis.parts), len(axis.spans)))
        others = [own if e == d else sparse.eye_array(len(other.spans), dtype=np.int64) for e, other in enumerate(axes)]
        blocks.append(reduce(partial(sparse.kron, format="csr"), others))
    return sparse.csr_array(sparse.vstack(blocks)).astype(np.int64)


@dataclass(frozen=True)
class Cells:
    """A table before it is written: figures by cell, and equations."""

    value: np.ndarray
    sensitive: np.ndarray
    level: np.ndarray
    matrix: sparse.csr_array

    def text(self, *, unit: bool = False) -> str:
        """As a JJ file: cost = value, or 1; the attacker knows that cells lie in [0, 1.5 times the grand total]."""
        most = 3 * int(self.value.max()) // 2
        cost = np.ones_like(self.value) if unit else self.value
        status = np.where(self.sensitive, "u", np.where(self.value == 0, "z", "s"))
        level = np.where(self.sensitive, self.level, 0)
        lines = ["0", str(len(self.value))]
        columns = (self.value.tolist(), cost.tolist(), status.tolist(), level.tolist())
        lines += [f"{i} {v} {c} {s} 0 {most} {p} {p} 0" for i, (v, c, s, p) in enumerate(zip(*columns, strict=True))]
        rows = self.matrix
        lines.append(str(rows.shape[0]))
        for first, last in zip(rows.indptr[:-1].tolist(), rows.indptr[1:].tolist(), strict=True):
            pairs = sorted(zip(rows.indices[first:last].tolist(), rows.data[first:last].tolist(), strict=True))
            lines.append(f"0 {last - first} : " + " ".join(f"{cell} ({c})" for cell, c in pairs))
        return "\n".join(lines) + "\n"


def values(fans: tuple[Fans, ...], seed: int) -> Cells:
    """A table of amounts, 4% of the inner cells empty; 10% of all cells are sensitive, by a tenth of their value."""
    axes = [Axis.of(each) for each in fans]
    shape = tuple(axis.leaves for axis in axes)
    size = int(np.prod(shape))
    inner = tail(splitmix(seed, 1, size), 20, 200) * (below(splitmix(seed, 2, size), 100) >= 4)
    sums = inner.reshape(shape)
    for d, axis in enumerate(axes):
        sums = axis.summed(sums, d)
    value = sums.ravel()
    depth = reduce(np.add.outer, [np.array([last - first for first, last in axis.spans]) == 1 for axis in axes]).ravel()
    chosen = (below(splitmix(seed, 3, len(value)), 100) < 10) & (value > 0) & (depth > 0)
    return Cells(value, chosen, -(-value // 10), equations(axes))


def firms(fans: tuple[Fans, ...], seed: int, *, count: int) -> Cells:
    """Microdata: most firms at few codes, skewed; cells with fewer than three firms, or open by p% (10), are sensitive.

    Cells without a firm are no cells. A cell's level is what the p% rule asks for, at least a twentieth of the value
    where only the threshold asks.
    """
    axes = [Axis.of(each) for each in fans]
    turnover = tail(splitmix(seed, 1, count), 10, 5_000)
    place = []
    for d, axis in enumerate(axes):
        one, two = (below(splitmix(seed, 10 * d + k, count), axis.leaves) for k in (2, 3))
        place.append(np.minimum(one, two))
    shape = tuple(len(axis.spans) for axis in axes)
    number, total, first, second = (np.zeros(int(np.prod(shape)), dtype=np.int64) for _ in range(4))
    for nodes in product(*(_levels(axis) for axis in axes)):
        key = np.ravel_multi_index([node[at] for node, at in zip(nodes, place, strict=True)], shape)
        order = np.lexsort((-turnover, key))
        cells, start, firms_in = np.unique(key[order], return_index=True, return_counts=True)
        amounts = turnover[order]
        number[cells], total[cells], first[cells] = firms_in, np.add.reduceat(amounts, start), amounts[start]
        second[cells] = np.where(firms_in > 1, amounts[np.minimum(start + 1, count - 1)], 0)
    short = -(-first // 10) - (total - first - second)
    sensitive = (number > 0) & ((number < 3) | (short > 0))
    level = np.maximum(np.maximum(short, -(-total // 20)), 1)
    there = number > 0
    matrix = equations(axes)[:, np.flatnonzero(there)]
    matrix = matrix[np.diff(matrix.indptr) > 0]
    return Cells(total[there], sensitive[there], level[there], sparse.csr_array(matrix))


def _levels(axis: Axis) -> list[np.ndarray]:
    """For each level of a tree the node of every leaf."""
    widths = sorted({last - first for first, last in axis.spans}, reverse=True)
    found = []
    for width in widths:
        nodes = [i for i, (first, last) in enumerate(axis.spans) if last - first == width]
        found.append(np.repeat(np.array(nodes), width))
    return found


MADE: dict[str, tuple[str, Callable[[], str]]] = {
    "flat_2d_20": ("20 × 20", lambda: values(((20,), (20,)), 1).text()),
    "flat_2d_20_unit": ("20 × 20, every cell costs 1", lambda: values(((20,), (20,)), 1).text(unit=True)),
    "flat_2d_50": ("50 × 50", lambda: values(((50,), (50,)), 2).text()),
    "flat_2d_100": ("100 × 100", lambda: values(((100,), (100,)), 3).text()),
    "flat_3d_8": ("8 × 8 × 8", lambda: values(((8,), (8,), (8,)), 4).text()),
    "flat_3d_10": ("10 × 10 × 10", lambda: values(((10,), (10,), (10,)), 5).text()),
    "flat_4d_5": ("5 × 5 × 5 × 5", lambda: values(((5,),) * 4, 6).text()),
    "tree_2d_1k": ("two trees of two levels", lambda: values(((4, 6), (4, 8)), 7).text()),
    "tree_2d_4k": ("two trees of three levels", lambda: values(((3, 4, 4), (3, 4, 4)), 8).text()),
    "tree_3d_2k": ("three trees", lambda: values(((3, 3), (3, 3), (2, 4)), 9).text()),
    "firms_2d_700": ("20,000 firms", lambda: firms(((4,), (6, 4, 5)), 10, count=20_000).text()),
    "firms_2d_1k": ("2,000 firms by two trees", lambda: firms(((4, 6), (4, 8)), 11, count=2_000).text()),
    "firms_3d_2k": (
        "1,500 firms by two trees and sizes",
        lambda: firms(((3, 4), (4,), (5, 6)), 12, count=1_500).text(),
    ),
    "firms_3d_20k": (
        "20,000 firms by two trees of three levels and sizes",
        lambda: firms(((3, 3, 4), (4,), (6, 4, 4)), 13, count=20_000).text(),
    ),
}
"""What an instance is, and its file."""
NAMED: dict[str, str] = {
    "bench/2d_20": "flat", "bench/2d_50": "flat", "bench/2d_100": "flat", "bench/3d_10": "flat", "bench/3d_20": "flat",
    "bench/h_2k": "two trees", "bench/h_10k": "two trees", "bench/h3_5k": "three dimensions with trees",
    "bench/h_50k": "two trees",
    "jj/targus": "CSPLIB", "jj/table7": "CSPLIB", "jj/table8": "CSPLIB", "jj/table1": "CSPLIB",
    "jj/hier13": "CSPLIB", "jj/hier16": "CSPLIB", "jj/two5in6": "CSPLIB", "jj/nine5d": "CSPLIB",
}  # fmt: skip
"""Files of the shared folder of instances, which are not copied into the repository."""


def file_of(name: str, folder: Path) -> Path | None:
    """The file of an instance: made here, or found in the shared folder; None where it is not here."""
    if name in MADE:
        path = folder / f"{name}.jj"
        if not path.exists():
            path.write_text(MADE[name][1](), encoding="utf-8")
        return path
    shared = Path(os.environ.get("TABLESAFE_INSTANCES", SHARED))
    return next((path for end in (".jj", ".jj.gz") if (path := shared / f"{name}{end}").is_file()), None)


def gzipped(text: str) -> bytes:
    """The same bytes every time."""
    return gzip.compress(text.encode("utf-8"), compresslevel=9, mtime=0)


def checksum(text: str) -> str:
    """Of the text of a file, gzipped or not."""
    return hashlib.sha256(text.encode("utf-8")).hexdigest()
