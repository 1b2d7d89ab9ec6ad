"""Hypercubes: the deviations that two codes in each direction allow, in tables whose dimensions are trees.

Take a leaf in each dimension, and in some of them a second one. Let the cell of the first leaves rise by an amount,
change the sign wherever a second leaf takes the place of the first, and let every total follow: each code moves that
has one of the two leaves below it and not the other, and where there is no second leaf all codes above the first. That
adds up in every equation, whatever the hierarchies are. Giessing & Repsilber's hypercube method looks for such
deviations among the cells of one subtable; here the leaves may stand anywhere, so that totals are protected by the same
search. It takes microseconds, and most cells of a table with many withheld ones are protected by a hypercube.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from tablesafe.core.equations import Floats, Integers
from tablesafe.core.hierarchy import Hierarchy
from tablesafe.work.compiled import compiled

LARGEST = 100_000_000
"""Combinations of codes up to which a cell is found by an array over all of them."""
WIDTH = 96
"""Leaves, or pairs of leaves, that are tried in each dimension: the cheapest ones."""
CORNERS = 4_096
"""Cells of a hypercube beyond which it is not looked at."""
LOOKS = 400_000
"""Cells looked at before the best hypercube so far has to do."""


@dataclass(frozen=True, eq=False)
class Hypercubes:
    """The cells of a table as combinations of codes, and the trees of their dimensions."""

    codes: Integers = field(repr=False)
    """For each cell its codes."""
    index: NDArray[Any] = field(repr=False)
    """The cell of every combination of codes; −1 where there is none."""
    stride: Integers = field(repr=False)
    chain: Integers = field(repr=False)
    """For each leaf of each dimension, in the order of the trees, the codes from it to the top; −1 beyond that."""
    leaves: Integers = field(repr=False)
    """Where the leaves of each dimension begin in `chain`; one more at the end."""
    first: Integers = field(repr=False)
    """For each dimension and code the first leaf below it, and in `last` the one after the last."""
    last: Integers = field(repr=False)

    @classmethod
    def of(cls, dimensions: Sequence[Hierarchy], codes: NDArray[np.int32]) -> Self | None:
        """The hypercubes of a table; None where a dimension is no tree, or there are too many combinations."""
        sizes = np.array([len(hierarchy) for hierarchy in dimensions], dtype=np.int64)
        if not len(sizes) or float(np.prod(sizes.astype(np.float64))) > LARGEST:
            return None
        trees = [_tree(hierarchy) for hierarchy in dimensions]
        if any(tree is None for tree in trees):
            return None
        chains = [tree for tree in trees if tree is not None]
        stride = np.concatenate([np.cumprod(sizes[::-1])[::-1][1:], [1]])
        index = np.full(int(np.prod(sizes)), -1, dtype=np.int32)
        own = codes.astype(np.int64)
        keys = own @ stride
        index[keys] = np.arange(len(keys), dtype=np.int32)
        if len(np.unique(keys)) < len(keys):
            return None
        deepest = max(chain.shape[1] for chain in chains)
        chain = np.full((sum(len(c) for c in chains), deepest), -1, dtype=np.int64)
        leaves = np.concatenate([[0], np.cumsum([len(c) for c in chains])])
        first = np.zeros((len(chains), int(sizes.max())), dtype=np.int64)
        last = np.zeros_like(first)
        for k, c in enumerate(chains):
            chain[leaves[k] : leaves[k + 1], : c.shape[1]] = c
            first[k] = len(c)
            for depth in range(c.shape[1]):
                leaf = np.flatnonzero(c[:, depth] >= 0)
                np.minimum.at(first[k], c[leaf, depth], leaf)
                np.maximum.at(last[k], c[leaf, depth], leaf + 1)
        return cls(own, index, stride, chain, leaves, first, last)

    def leaves_below(self, cells: Integers) -> Integers:
        """How many combinations of leaves stand below each of some cells: the fewer, the finer."""
        dimension, codes = np.arange(self.codes.shape[1]), self.codes[cells]
        return np.asarray((self.last[dimension, codes] - self.first[dimension, codes]).prod(axis=1))

    def cheapest(
        self, cell: int, need: float, price: Floats, room: Floats, *, most: float = np.inf, looks: int = LOOKS
    ) -> tuple[Integers, Integers] | None:
        """The cells of the cheapest hypercube that moves a cell, each of which has the room to move by `need`.

        With the cells comes the sign with which each moves when the first rises. `price` is infinite for a cell that
        must stay. None where there is no hypercube cheaper than `most`, or none was seen in so many `looks`.
        """
        pair = np.empty((len(self.stride), 2), dtype=np.int64)
        if not _cheapest(
            self.codes[cell], self.index, self.stride, self.chain, self.leaves, self.first, self.last, price, room,
            need, most, looks, pair,
        ):  # fmt: skip
            return None
        cells, signs = np.empty(CORNERS, np.int64), np.empty(CORNERS, np.int64)
        count = _expand(self.index, self.stride, self.chain, self.leaves, pair, cells, signs)
        at = signs[:count][cells[:count] == cell][0]
        return cells[:count].copy(), signs[:count] * at


def _tree(hierarchy: Hierarchy) -> Integers | None:
    """For each leaf, in the order of the tree, the codes from it to its top; None where the hierarchy is no tree."""
    if not hierarchy.is_tree:
        return None
    n = len(hierarchy)
    parent = np.full(n, -1, dtype=np.int64)
    for equation in hierarchy.as_equations():
        total = hierarchy.position(equation.total)
        for part in equation.parts:
            parent[hierarchy.position(part)] = total
    above = [np.arange(n)]
    while (above[-1] >= 0).any():
        above.append(np.where(above[-1] >= 0, parent[above[-1]], -1))
    codes = np.column_stack(above[:-1])
    depth = (codes >= 0).sum(axis=1)
    from_top = np.full_like(codes, -1)
    for code in range(n):
        from_top[code, : depth[code]] = codes[code, : depth[code]][::-1]
    leaf = np.setdiff1d(np.arange(n), parent)
    order = np.lexsort(tuple(from_top[leaf][:, k] for k in reversed(range(codes.shape[1]))))
    return codes[leaf[order]]


@compiled
def _moved(chain: Integers, i: int, j: int, codes: Integers, signs: Integers) -> int:
    """The codes that move when leaf i rises and leaf j, if any, falls; returns how many."""
    n, depth = 0, chain.shape[1]
    for a in range(depth):
        c = chain[i, a]
        if c < 0:
            break
        common = False
        if j >= 0:
            for b in range(depth):
                common |= chain[j, b] == c
        if common:
            break
        codes[n], signs[n] = c, 1
        n += 1
    if j >= 0:
        for b in range(depth):
            c = chain[j, b]
            if c < 0:
                break
            common = False
            for a in range(depth):
                common |= chain[i, a] == c
            if common:
                break
            codes[n], signs[n] = c, -1
            n += 1
    return n


@compiled
def _up_to(
    chain: Integers, leaf: int, end: int, index: Integers, base: int, stride: int, price: Floats, room: Floats,
    need: float,
) -> float:  # fmt: skip
    """What it costs to move the codes from a leaf up to, and without, a code; infinity where one of them cannot."""
    cost = 0.0
    for a in range(chain.shape[1]):
        c = chain[leaf, a]
        if c == end or c < 0:
            break
        cell = index[base + c * stride]
        if cell < 0 or room[cell] < need:
            return np.inf
        cost += price[cell]
    return cost


@compiled
def _options(
    codes: Integers, k: int, index: Integers, stride: Integers, chain: Integers, leaves: Integers, first: Integers,
    last: Integers, price: Floats, room: Floats, need: float, most: float, one: Integers, two: Integers, cost: Floats,
) -> int:  # fmt: skip
    """The cheapest leaves and pairs of leaves in one dimension, with the target's codes in the others."""
    base = 0
    for h in range(len(codes)):
        if h != k:
            base += codes[h] * stride[h]
    begin, end, step, own = leaves[k], leaves[k + 1], stride[k], codes[k]
    low, high = begin + first[k, own], begin + last[k, own]
    width = int(np.sqrt(WIDTH)) if high - low > 1 else WIDTH
    rising = np.empty(high - low)
    for i in range(low, high):
        rising[i - low] = _up_to(chain, i, own, index, base, step, price, room, need)
    some = np.argsort(rising, kind="mergesort")[:width]
    top = 0
    while chain[low, top] != own:
        top += 1
    falling, partner = np.full(end - begin + 1, np.inf), np.full(end - begin + 1, -1)
    path, inner, outer = 0.0, low, high
    while True:
        cell = index[base + chain[low, top] * step]
        if cell < 0 or room[cell] < need:
            break
        path += price[cell]
        top += 1
        if top == chain.shape[1] or chain[low, top] < 0:
            falling[end - begin] = path
            break
        above = chain[low, top]
        left, right = begin + first[k, above], begin + last[k, above]
        for j in range(left, right):
            if j < inner or j >= outer:
                falling[j - begin] = path + _up_to(chain, j, above, index, base, step, price, room, need)
                partner[j - begin] = j
        inner, outer = left, right
    others = np.argsort(falling, kind="mergesort")[: WIDTH if high - low == 1 else 3 * width]
    n = 0
    for a in some:
        for b in others:
            total = rising[a] + falling[b]
            if total < most and n < len(one):
                one[n], two[n], cost[n] = low + a, partner[b], total
                n += 1
    return n


@compiled
def _cheapest(
    codes: Integers, index: Integers, stride: Integers, chain: Integers, leaves: Integers, first: Integers,
    last: Integers, price: Floats, room: Floats, need: float, most: float, looks: int, pair: Integers,
) -> bool:  # fmt: skip
    """Choose a leaf or a pair in one dimension after the other, the cheapest first; what was chosen bounds the rest."""
    d = len(codes)
    own = 0.0
    at = 0
    for k in range(d):
        at += codes[k] * stride[k]
    cell = index[at]
    if room[cell] < need:
        return False
    own = price[cell]
    width = 4 * WIDTH
    one, two, cost = np.empty((d, width), np.int64), np.empty((d, width), np.int64), np.empty((d, width))
    count, order = np.zeros(d, np.int64), np.empty((d, width), np.int64)
    for k in range(d):
        count[k] = _options(
            codes, k, index, stride, chain, leaves, first, last, price, room, need, most, one[k], two[k], cost[k]
        )
        if count[k] == 0:
            return False
        order[k, : count[k]] = np.argsort(cost[k, : count[k]], kind="mergesort")
    turn = np.argsort(count, kind="mergesort")
    keys, size = np.empty((d + 1, CORNERS), np.int64), np.zeros(d + 1, np.int64)
    moved, signs = np.empty(2 * chain.shape[1], np.int64), np.empty(2 * chain.shape[1], np.int64)
    keys[0, 0], size[0] = at, 1
    spent, next_, paid = 0, np.zeros(d + 1, np.int64), np.zeros(d + 1)
    paid[0] = own
    level, found, best = 0, False, most
    while level >= 0:
        k = turn[level]
        if next_[level] >= count[k]:
            level -= 1
            continue
        x = order[k, next_[level]]
        next_[level] += 1
        if paid[level] + cost[k, x] - own >= best:
            level -= 1  # all that follow cost more
            continue
        n = _moved(chain, one[k, x], two[k, x], moved, signs)
        if size[level] * n > CORNERS:
            continue
        total, m = 0.0, 0
        for p in range(size[level]):
            for c in range(n):
                key = keys[level, p] + (moved[c] - codes[k]) * stride[k]
                other = index[key]
                spent += 1
                if other < 0 or room[other] < need:
                    total = np.inf
                    break
                total += price[other]
                keys[level + 1, m] = key
                m += 1
            if total >= best:
                break
        if total >= best:
            if spent > looks:
                return found
            continue
        paid[level + 1], size[level + 1] = total, m
        if level + 1 == d:
            best, found = total, True
            for h in range(d):
                chosen = order[turn[h], next_[h] - 1]
                pair[turn[h], 0], pair[turn[h], 1] = one[turn[h], chosen], two[turn[h], chosen]
            if best <= own:
                return True
        else:
            next_[level + 1] = 0
            level += 1
    return found


@compiled
def _expand(
    index: Integers, stride: Integers, chain: Integers, leaves: Integers, pair: Integers, cells: Integers,
    signs: Integers,
) -> int:  # fmt: skip
    """The cells of a hypercube, and their signs; returns how many."""
    keys = np.empty(CORNERS, np.int64)
    keys[0], signs[0], size = 0, 1, 1
    moved, sign = np.empty(2 * chain.shape[1], np.int64), np.empty(2 * chain.shape[1], np.int64)
    for k in range(len(stride)):
        n = _moved(chain, pair[k, 0], pair[k, 1], moved, sign)
        for p in range(size - 1, -1, -1):
            key, way = keys[p], signs[p]
            for c in range(n - 1, -1, -1):
                keys[p * n + c], signs[p * n + c] = key + moved[c] * stride[k], way * sign[c]
        size *= n
    for p in range(size):
        cells[p] = index[keys[p]]
    return size


@compiled
def adds_up(start: Integers, row: Integers, value: Integers, cells: Integers, moved: Integers, sums: Integers) -> bool:
    """Whether moves of some cells change no sum, in whole numbers; `sums` has a zero for each row, before and after."""
    fine = True
    for i in range(len(cells)):
        for z in range(start[cells[i]], start[cells[i] + 1]):
            sums[row[z]] += value[z] * moved[i]
    for i in range(len(cells)):
        for z in range(start[cells[i]], start[cells[i] + 1]):
            fine &= sums[row[z]] == 0
    for i in range(len(cells)):
        for z in range(start[cells[i]], start[cells[i] + 1]):
            sums[row[z]] = 0
    return fine
