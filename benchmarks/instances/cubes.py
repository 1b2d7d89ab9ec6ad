"""Cubes whose views are published: the problems of Roehrig, Padman, Krishnan & Duncan, Tables 5 and 6, and larger ones.

By the printed recipe each cell is with probability 0.9 uniform on 0 to 3, else uniform on 500 to 1,000; a × b and b × c
are published, a × c may become known to lie in [0, 1.2 c]; a problem needs at least one upper and three lower
disclosures. Beyond size 10 the recipe yields hardly any such problem, so in the larger cubes it fills a 6 × 6 block of
every slice, at random codes, and the rest is empty.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.registry import Made, instance

BLOCK, SEED = 6, 1


def recipe(shape: tuple[int, ...], random: np.random.Generator) -> np.ndarray:
    """Cells as printed."""
    small = random.random(shape) < 0.9
    return np.where(small, random.integers(0, 4, shape), random.integers(500, 1001, shape))


def small(size: int, count: int, folder: Path) -> Made:
    """Many cubes with enough disclosures."""
    return Made(facts={"size": count, "cubes": list(_enough(size, count))})


def _enough(size: int, count: int) -> Iterator[np.ndarray]:
    """Many are drawn at once, for few are taken."""
    random = np.random.default_rng([SEED, size])
    batch = max(1, 200_000 // size**3)
    while count > 0:
        cubes = recipe((batch, size, size, size), random)
        a, b, c = cubes.sum(axis=3), cubes.sum(axis=1), cubes.sum(axis=2)
        upper = np.minimum(a[:, :, :, None], b[:, None]).sum(axis=2)
        total = a.sum(axis=1)[:, None, :, None]
        lower = np.maximum(a[:, :, :, None] + b[:, None] - total, 0).sum(axis=2)
        enough = (upper < 1.2 * c - 1e-9).any(axis=(1, 2)) & ((lower > 0).sum(axis=(1, 2)) >= 3)
        for cube in cubes[enough][:count]:
            count -= 1
            yield cube


def large(size: int, folder: Path) -> Made:
    """One cube: in every slice a block by the recipe, the rest empty."""
    random = np.random.default_rng([SEED, size])
    cube = np.zeros((size, size, size), dtype=np.int64)
    for j in range(size):
        rows, columns = (random.choice(size, BLOCK, replace=False) for _ in range(2))
        cube[np.ix_(rows, np.array([j]), columns)] = recipe((BLOCK, 1, BLOCK), random)
    return Made(facts={"size": 1, "cubes": [cube]})


instance("views_4_few", "10 cubes of 4 × 4 × 4 with published views", 10, partial(small, 4, 10))
for _size in range(4, 11):
    instance(f"views_{_size}", f"100 cubes of {_size} × {_size} × {_size} with published views", 100,
             partial(small, _size, 100))  # fmt: skip
for _size in (20, 50, 100):
    instance(f"views_{_size}", f"a cube of {_size} × {_size} × {_size} with published views", 1, partial(large, _size))
