"""What the protection cost, in lines for a page: cells by status and by level, and how far values were changed.

The lines for the public come from the release alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from textwrap import shorten

import numpy as np
from numpy.typing import NDArray

from tablesafe.core.equations import Integers, Mask
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release, Status
from tablesafe.core.table import Table
from tablesafe.loss import Loss, loss
from tablesafe.loss.quality import quality
from tablesafe.loss.statistics import statistics
from tablesafe.report.cells import KINDS, NUMBER, Kind, OfficeCells, PublicCells

GROUPS = ("all", "inner", "totals", "sensitive")
"""Groups of cells that statistics are compared for."""


@dataclass(frozen=True, slots=True)
class StatusLine:
    """How many cells are of one kind; the share of the table's value is a secret."""

    kind: Kind
    cells: int
    share: float
    value_share: float | None = None


@dataclass(frozen=True, slots=True)
class LevelLine:
    """The cells at one level of one dimension; what is None is not for the public."""

    dimension: str
    level: int
    codes: int
    example: str
    """Some of the codes of the level."""
    cells: int
    withheld: int
    may_differ: int
    """Published cells whose value can differ from the true one."""
    sensitive: int | None = None
    changed: int | None = None
    withheld_value_share: float | None = None
    average_percent: float | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a small table of measures: a word and numbers."""

    word: str
    numbers: tuple[float | None, ...]


@dataclass(frozen=True, slots=True)
class Changes:
    """How far published values are from the true ones. A secret."""

    measures: tuple[tuple[str, float], ...]
    distribution: tuple[tuple[str, int], ...]
    """Percent of change in classes, and how many cells are in each."""
    sizes: tuple[Row, ...]
    """By size of the true value: cells, changed cells, average and largest percent change."""
    statistics: tuple[Row, ...]
    """By group of cells: mean, published mean, variance ratio, correlation, slope."""


def statuses(problem: Problem, release: Release, *, internal: bool) -> tuple[StatusLine, ...]:
    """Cells by kind, of those that are meant to be seen."""
    kind = OfficeCells(problem, release).kind if internal else PublicCells(release).kind
    size = np.abs(problem.table.value) if internal else np.zeros(len(kind))
    meant = kind != NUMBER[Kind.ABSENT]
    cells = np.bincount(kind, minlength=len(KINDS))
    value = np.bincount(kind, weights=size, minlength=len(KINDS))
    every, total = max(1, int(meant.sum())), float(value.sum()) or 1.0
    return tuple(
        StatusLine(each, int(cells[i]), int(cells[i]) / every, float(value[i]) / total if internal else None)
        for i, each in enumerate(KINDS)
        if cells[i] and each is not Kind.ABSENT
    )


def levels(problem: Problem, release: Release, *, internal: bool) -> tuple[LevelLine, ...]:
    """Cells, withheld and changed cells by the depth of their code in each dimension."""
    return tuple(_level_lines(release.table, release, _Measured(problem, loss(problem, release)) if internal else None))


@dataclass(frozen=True, slots=True)
class _Measured:
    """What only the office knows."""

    problem: Problem
    loss: Loss


def _level_lines(table: Table, release: Release, known: _Measured | None) -> Iterator[LevelLine]:
    meant = release.status != Status.BY_DESIGN
    withheld, differ = meant & release.suppressed, meant & ~release.suppressed & (release.lower < release.upper)
    for dimension, depth, codes, examples in _groups(table):
        n = len(codes)
        cells, hidden, moved = (_count(depth, mask, n) for mask in (meant, withheld, differ))
        for level in np.flatnonzero(cells).tolist():
            line = LevelLine(
                dimension, level, int(codes[level]), examples[level], int(cells[level]), int(hidden[level]),
                int(moved[level]),
            )  # fmt: skip
            yield line if known is None else _with_secrets(line, depth == level, known)


def _with_secrets(line: LevelLine, here: Mask, known: _Measured) -> LevelLine:
    """The line with what only the office knows of these cells."""
    found, size = known.loss, np.abs(known.problem.table.value)
    value, lost = float(size[here & found.meant].sum()), float(size[here & found.missing].sum())
    percent = found.percent[here & np.isfinite(found.percent) & (size > 0)]
    return replace(
        line,
        sensitive=int((here & found.meant & known.problem.sensitivity.mask).sum()),
        changed=int((here & found.altered).sum()),
        withheld_value_share=lost / value if value else 0.0,
        average_percent=float(percent.mean()) if percent.size else 0.0,
    )


def _groups(table: Table) -> Iterator[tuple[str, NDArray[np.int32], Integers, list[str]]]:
    """Per dimension: the level of each cell, codes per level, and some of them; named cells are inner or totals."""
    for d, (name, tree) in enumerate(table.dimensions.items()):
        n = int(tree.depth.max(initial=0)) + 1
        named: list[list[str]] = [[] for _ in range(n)]
        for code, level in zip(tree.codes, tree.depth.tolist(), strict=True):
            if len(named[level]) < 7:
                named[level].append(code)
        counts = np.bincount(tree.depth, minlength=n)
        words = [shorten(", ".join(codes[:6]), 30, placeholder=" …") or f"{codes[0][:28]} …" for codes in named]
        yield name, tree.depth[table.codes[:, d]], counts, words
    if not table.dimensions:
        inner = (~table.is_total).astype(np.int32)
        yield "cells", inner, np.bincount(inner, minlength=2), ["totals", "inner cells"]


def _count(depth: NDArray[np.int32], mask: Mask, n: int) -> Integers:
    return np.bincount(depth[mask], minlength=n)


def changes(problem: Problem, release: Release) -> Changes | None:
    """How far published values are from the true ones; None when none was changed."""
    found = quality(problem, release)
    if not found.loss.changed:
        return None
    frames = [statistics(problem, release, over=group) for group in GROUPS]
    kept = ("cells", "mean", "published mean", "variance ratio", "correlation", "slope")
    shown = ("cells", "cells changed", "average percent change", "largest percent change", "percent of the quantity")
    return Changes(
        tuple((_spelled(name, found.limits), float(value)) for name, value in found.totals().items()),
        tuple((word, int(cells)) for word, cells in found.distribution().iter_rows()),
        tuple(Row(row["size"], tuple(_finite(row[name]) for name in shown)) for row in found.by_size().to_dicts()),
        tuple(
            Row(row["group"], tuple(_finite(row[name]) for name in kept))
            for frame in frames
            for row in frame.to_dicts()
        ),
    )


def _spelled(name: str, limits: tuple[float, float]) -> str:
    """What a measure is called, with the limits of good and fair spelled out."""
    good, fair = limits
    return {
        "good cells": f"good cells (changed by at most {good:g} %)",
        "fair cells": f"fair cells ({good:g} to {fair:g} %)",
        "poor cells": f"poor cells (more than {fair:g} %)",
    }.get(name, name)


def _finite(number: float | None) -> float | None:
    return None if number is None or not np.isfinite(number) else float(number)
