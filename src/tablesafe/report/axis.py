"""The codes of one dimension as lines for eyes: in the order of the tree, each with its depth and its parent."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Self

import numpy as np
from numpy.typing import NDArray

from tablesafe.core.equations import Integers, Mask
from tablesafe.core.hierarchy import Hierarchy


@dataclass(frozen=True, eq=False)
class Axis:
    """Lines of a table for eyes, all of them arrays; line i shows the code `codes[i]`.

    A code that is part of several totals stands once, under the lowest of them.
    """

    name: str
    """The dimension, or empty for the single column of a table with one dimension."""
    codes: NDArray[np.object_] = field(repr=False)
    labels: NDArray[np.object_] = field(repr=False)
    """The label of each code; empty where it has none."""
    position: Integers = field(repr=False)
    """Where each line's code stands in the hierarchy."""
    depth: NDArray[np.int32] = field(repr=False)
    """Levels below the top."""
    parent: Integers = field(repr=False)
    """The line of which each is a part; −1 at the top."""
    end: Integers = field(repr=False)
    """The first line after everything below a line: `end[i] == i + 1` where nothing is below it."""

    @classmethod
    def of(cls, name: str, hierarchy: Hierarchy) -> Self:
        """The codes of a hierarchy, every total before its parts."""
        parent = _parents(hierarchy)
        order = _tree_order(parent)
        line = np.empty(len(order), dtype=np.int64)
        line[order] = np.arange(len(order))
        above = parent[order]
        return cls._from_lines(
            name,
            np.array(hierarchy.codes, dtype=object)[order],
            np.array([hierarchy.labels.get(code, "") for code in hierarchy.codes], dtype=object)[order],
            order,
            np.where(above >= 0, line[np.maximum(above, 0)], -1),
        )

    @classmethod
    def flat(cls, name: str, codes: NDArray[np.object_]) -> Self:
        """Lines without any structure."""
        n = len(codes)
        blank = np.full(n, "", dtype=object)
        return cls._from_lines(name, codes, blank, np.arange(n, dtype=np.int64), np.full(n, -1, dtype=np.int64))

    @classmethod
    def _from_lines(
        cls, name: str, codes: NDArray[np.object_], labels: NDArray[np.object_], position: Integers, parent: Integers
    ) -> Self:
        depth = _depths(parent)
        return cls(name, codes, labels, position, depth, parent, _ends(depth))

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def has_children(self) -> Mask:
        """Which lines can be folded."""
        return self.end > np.arange(1, len(self) + 1)

    @property
    def foldable(self) -> bool:
        """Whether there is anything to fold."""
        return bool((self.depth > 0).any())

    def heading(self, line: int) -> str:
        """The code with its label."""
        code, label = str(self.codes[line]), str(self.labels[line])
        return f"{code} {label}" if label and label != code else code

    def to_depth(self, depth: int) -> Integers:
        """The lines at most so many levels below the top."""
        return np.flatnonzero(self.depth <= depth)

    def visible(self, opened: Mask) -> Integers:
        """The lines that show when some are opened: all whose every total is. Level by level, not line by line."""
        shown = self.parent < 0
        for level in range(1, int(self.depth.max(initial=0)) + 1):
            here = np.flatnonzero(self.depth == level)
            above = self.parent[here]
            shown[here] = shown[above] & opened[above]
        return np.flatnonzero(shown)

    def line_of(self, positions: NDArray[np.integer]) -> Integers:
        """The line of each position in the hierarchy."""
        line = np.empty(len(self), dtype=np.int64)
        line[self.position] = np.arange(len(self))
        found: Integers = line[positions]
        return found


def _parents(hierarchy: Hierarchy) -> Integers:
    """The total that each code is shown under, −1 for none: the lowest of those that it is part of, then the first."""
    matrix = hierarchy.equations.tocoo()
    total, part = hierarchy.totals[matrix.row].astype(np.int64), matrix.col.astype(np.int64)
    below = part != total
    total, part, row = total[below], part[below], matrix.row[below].astype(np.int64)
    depth = np.zeros(len(hierarchy), dtype=np.int64)
    while bool((depth[part] < depth[total] + 1).any()):  # once per level: equations have no cycles
        np.maximum.at(depth, part, depth[total] + 1)
    lowest = depth[part] == depth[total] + 1
    total, part, row = total[lowest], part[lowest], row[lowest]
    first = np.argsort(-row, kind="stable")  # of several assignments the last one stays
    parent = np.full(len(hierarchy), -1, dtype=np.int64)
    parent[part[first]] = total[first]
    return parent


def _tree_order(parent: Integers) -> Integers:
    """Every code after its parent and before its parent's next part, in the order of the hierarchy."""
    parts: dict[int, list[int]] = {}
    for code, above in enumerate(parent.tolist()):
        parts.setdefault(above, []).append(code)
    order: list[int] = []
    waiting = parts.get(-1, [])[::-1]
    while waiting:
        code = waiting.pop()
        order.append(code)
        waiting.extend(parts.get(code, [])[::-1])
    return np.array(order, dtype=np.int64)


def _depths(parent: Integers) -> NDArray[np.int32]:
    depth = np.zeros(len(parent), dtype=np.int32)
    front = np.flatnonzero(parent < 0)
    level = 0
    while front.size:
        depth[front] = level
        level += 1
        below = np.zeros(len(parent), dtype=np.bool_)
        below[front] = True
        front = np.flatnonzero((parent >= 0) & below[np.maximum(parent, 0)])
    return depth


def _ends(depth: NDArray[np.int32]) -> Integers:
    """The next line that is as high or higher: found level by level."""
    n = len(depth)
    end = np.full(n, n, dtype=np.int64)
    for level in range(int(depth.max(initial=0)) + 1):
        stops = np.append(np.flatnonzero(depth <= level), n)
        here = np.flatnonzero(depth == level)
        end[here] = stops[np.searchsorted(stops, here, side="right")]
    return end
