"""Several published tables over the same units: which units each of their cells counts.

The units fall into *parts*: those that exactly the same cells of all tables count. Every published cell is a sum of
parts, so one system of equations holds all that the tables say together, however their areas and filters overlap.

How finished tables overlap: one hierarchy per dimension, with the codes of all of them down to common parts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, reduce
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tablesafe.core.equations import Integers, Mask, cell_keys
from tablesafe.core.errors import InvalidHierarchy, InvalidOption, InvalidTable
from tablesafe.core.hierarchy import Equation, Hierarchy
from tablesafe.core.table import Table
from tablesafe.files.read import read_source

MOST_ENTRIES = 30_000_000
"""Parts listed in cells, over all cells."""


@dataclass(frozen=True, eq=False)
class Overlap:
    """Published cells as sums of parts."""

    names: tuple[str, ...]
    """What the tables are called."""
    tables: tuple[Table, ...] = field(repr=False)
    owner: NDArray[np.intp] = field(repr=False)
    """The table of each cell."""
    number: NDArray[np.intp] = field(repr=False)
    """The cell's number in its table."""
    members: sparse.csr_array = field(repr=False)
    """One row per cell, one column per part: which parts it counts."""

    def describe(self, cell: int) -> str:
        """Name a cell by its table and codes."""
        at = int(self.owner[cell])
        return f"{self.names[at]} {self.tables[at].describe(int(self.number[cell]))}"

    @cached_property
    def size(self) -> Integers:
        """How many parts each cell counts."""
        return np.asarray(np.diff(self.members.indptr), dtype=np.int64)

    @cached_property
    def _by_part(self) -> sparse.csc_array:
        return sparse.csc_array(self.members)

    def part(self, part: int) -> str:
        """Name a part by the smallest cell of each table that counts it."""
        column = self._by_part.indices[self._by_part.indptr[part] : self._by_part.indptr[part + 1]]
        words = []
        for at, name in enumerate(self.names):
            inside = column[self.owner[column] == at]
            if inside.size:
                words.append("in " + self.describe(int(inside[np.argmin(self.size[inside])])))
            else:
                words.append(f"not in {name}")
        return ", ".join(words)

    def families(self, visible: Mask) -> Iterator[NDArray[np.intp]]:
        """Sets of visible cells of one table that have no part in common: its levels, the coarsest first."""
        for at, table in enumerate(self.tables):
            cuts = [_cuts(hierarchy) for hierarchy in table.dimensions.values()]
            for levels in sorted(product(*(range(len(c)) for c in cuts)), key=sum):
                inside = (self.owner == at) & visible
                for d, level in enumerate(levels):
                    inside[self.owner == at] &= cuts[d][level][table.codes[self.number[self.owner == at], d]]
                found = np.flatnonzero(inside)
                if found.size and int(np.asarray(self.members[found].sum(axis=0)).max(initial=0)) <= 1:
                    yield found


def _cuts(hierarchy: Hierarchy) -> list[Mask]:
    """Ways to cut through a hierarchy, from the total down: codes at a depth, and leaves above it."""
    depth = hierarchy.depth
    leaf = ~hierarchy.is_total
    return [(depth == d) | (leaf & (depth < d)) for d in range(int(depth.max(initial=0)) + 1)]


def upwards(leaves: NDArray[np.int32], table: Table) -> sparse.csr_array:
    """Which cells of a table (rows) count which combinations of leaf codes (columns)."""
    hierarchies = list(table.dimensions.values())
    codes, origin = leaves, np.arange(len(leaves))
    for d, hierarchy in enumerate(hierarchies):
        up = abs(hierarchy.leaf_matrix).T.tocsr()
        row = np.full(len(hierarchy), -1, dtype=np.int64)
        row[~hierarchy.is_total] = np.arange(up.shape[0])
        codes, origin = _spread(codes, origin, d, up, row[codes[:, d]])
    return _located(codes, origin, table, len(leaves))


def downwards(codes: NDArray[np.int32], hierarchies: Sequence[Hierarchy]) -> tuple[NDArray[np.int32], NDArray[np.intp]]:
    """The combinations of leaves below each combination of codes, and which combination each belongs to."""
    origin = np.arange(len(codes))
    for d, hierarchy in enumerate(hierarchies):
        below = abs(hierarchy.leaf_matrix)
        leaf = np.flatnonzero(~hierarchy.is_total)
        codes, origin = _spread(codes, origin, d, below, codes[:, d].astype(np.int64))
        codes[:, d] = leaf[codes[:, d]]
    return codes, origin


def _spread(
    codes: NDArray[np.int32], origin: NDArray[np.intp], d: int, onto: sparse.csr_array, row: Integers
) -> tuple[NDArray[np.int32], NDArray[np.intp]]:
    """Each combination once for every entry in its row of a matrix, with that entry as its code of one dimension."""
    times = np.diff(onto.indptr)[row]
    if int(times.sum()) > MOST_ENTRIES:
        raise InvalidTable(
            f"The tables overlap in more than {MOST_ENTRIES:,} ways.", hint="compare fewer tables, or coarser ones."
        )
    at = np.repeat(np.arange(len(codes)), times)
    start = np.repeat(onto.indptr[row] - (np.cumsum(times) - times), times)
    wide = codes[at]
    wide[:, d] = onto.indices[start + np.arange(len(at))]
    return wide, origin[at]


def _located(codes: NDArray[np.int32], origin: NDArray[np.intp], table: Table, n: int) -> sparse.csr_array:
    """Ones where a combination belongs to a cell; combinations that are no cell of the table are left out."""
    sizes = [len(h) for h in table.dimensions.values()]
    both = cell_keys(np.concatenate([table.codes, codes]), sizes)
    have, wanted = both[: len(table)], both[len(table) :]
    order = np.argsort(have)
    at = np.minimum(np.searchsorted(have[order], wanted), len(have) - 1)
    there = have[order][at] == wanted
    cells = order[at[there]]
    return sparse.csr_array(
        (np.ones(len(cells), np.int8), (cells, origin[there])), shape=(len(table), n), dtype=np.int8
    )


def joined(tables: Mapping[str, Table], members: Sequence[sparse.csr_array]) -> tuple[Overlap, Integers]:
    """The overlap of tables whose cells are sums of given pieces; pieces that the same cells count are one part.

    Returns also the part of each piece, −1 for a piece that no cell counts.
    """
    stacked = sparse.csr_array(sparse.vstack(members, format="csr"))
    hashed = hashes(sparse.csr_array(stacked.T))
    counted = np.diff(stacked.tocsc().indptr) > 0
    _, first, inverse = np.unique(hashed[counted], axis=0, return_index=True, return_inverse=True)
    part = np.full(stacked.shape[1], -1, dtype=np.int64)
    part[counted] = inverse.ravel()
    chosen = np.flatnonzero(counted)[first]
    columns = sparse.csr_array(stacked[:, chosen])
    columns.sort_indices()
    sizes = [matrix.shape[0] for matrix in members]
    overlap = Overlap(
        tuple(tables), tuple(tables.values()), np.repeat(np.arange(len(sizes)), sizes),
        np.concatenate([np.arange(size) for size in sizes]), columns,
    )  # fmt: skip
    return overlap, part


def hashes(sets: sparse.csr_array) -> Integers:
    """Two numbers per row, equal exactly when the rows are (but for a chance of one in 2^120)."""
    random = np.random.default_rng(20261115)
    weights = random.integers(1, 2**62, size=(sets.shape[1], 2), dtype=np.int64)
    whole = sets.astype(np.int64)
    with np.errstate(over="ignore"):
        return np.column_stack([whole @ weights[:, 0], whole @ weights[:, 1]])


# -- codes of finished tables ------------------------------------------------------------------------------------------


def overlap_of(
    tables: Mapping[str, Table], dimensions: Mapping[str, Hierarchy], correspondence: Mapping[str, Any]
) -> Overlap:
    """Which parts each cell of each table counts."""
    names = list(dict.fromkeys(name for table in tables.values() for name in table.dimensions))
    for option, given in (("dimensions", dimensions), ("correspondence", correspondence)):
        for name in given:
            if name not in names:
                raise InvalidOption(f"{option} names {name!r}, but the tables have {', '.join(map(repr, names))}.")
    joint = {name: _joint(name, tables, dimensions, correspondence) for name in names}
    sizes = [len(h) for h in joint.values()]
    keys, owners = [], []
    for label, table in tables.items():
        leaves, owner = downwards(_codes(label, table, joint), list(joint.values()))
        keys.append(cell_keys(leaves, sizes))
        owners.append(owner)
    _, piece = np.unique(np.concatenate(keys), return_inverse=True)
    pieces, start = int(piece.max(initial=-1)) + 1, 0
    members = []
    for owner, table in zip(owners, tables.values(), strict=True):
        own = piece[start : start + len(owner)]
        members.append(
            sparse.csr_array((np.ones(len(own), np.int8), (owner, own)), shape=(len(table), pieces), dtype=np.int8)
        )
        start += len(owner)
    kept = sparse.diags_array((~_empty(tables, members)).astype(np.int8), dtype=np.int8)
    inside = [sparse.csr_array(each @ kept).astype(np.int8) for each in members]
    for each in inside:
        each.eliminate_zeros()
    return joined(tables, inside)[0]


def _empty(tables: Mapping[str, Table], members: Sequence[sparse.csr_array]) -> Mask:
    """The pieces that some table says are empty: inside a total, but in none of the cells that it is the sum of."""
    empty = np.zeros(members[0].shape[1], dtype=np.bool_)
    for table, own in zip(tables.values(), members, strict=True):
        left = sparse.csr_array(table.equations.astype(np.int32) @ own.astype(np.int32))
        left.eliminate_zeros()
        row = np.repeat(np.arange(left.shape[0]), np.diff(left.indptr))
        odd = np.zeros(left.shape[0], dtype=np.bool_)
        odd[row[left.data != -1]] = True  # no plain sum of parts
        empty[left.indices[~odd[row]]] = True
    return empty


def _joint(
    name: str, tables: Mapping[str, Table], dimensions: Mapping[str, Hierarchy], correspondence: Mapping[str, Any]
) -> Hierarchy:
    """One hierarchy with the codes of all tables, down to the parts that they tell apart."""
    own = [table.dimensions[name] for table in tables.values() if name in table.dimensions]
    found = [dimensions[name]] if name in dimensions else []
    if name in correspondence:
        found.append(from_correspondence(correspondence[name], name))
    return reduce(lambda one, other: one.merge(other), [*found, *own])


def from_correspondence(source: Any, name: str = "the areas") -> Hierarchy:
    """Codes of several divisions of the same ground: a row per smallest area, a column for each division.

    An empty entry means that the area lies outside that division.
    """
    read = read_source(source, name=f"the correspondence of {name!r}")
    columns = {column: read.text(column).fill_null("").to_list() for column in read.frame.columns}
    areas = [f"area {i + 1}" for i in range(read.frame.height)]
    equations: list[Equation] = []
    seen: dict[str, str] = {}
    for column, codes in columns.items():
        parts: dict[str, list[str]] = {}
        for area, code in zip(areas, codes, strict=True):
            if code:
                parts.setdefault(code, []).append(area)
        for code, inside in parts.items():
            if code in seen:
                raise InvalidHierarchy(
                    f"Code {code!r} stands in the columns {seen[code]!r} and {column!r} of {read.name}.",
                    hint="give the codes of different divisions different names.",
                )
            seen[code] = column
            equations.append(Equation(code, tuple(inside), (1,) * len(inside), read.name))
    return Hierarchy._build([*seen, *areas], equations, labels=None, name=read.name)


def _codes(label: str, table: Table, joint: Mapping[str, Hierarchy]) -> NDArray[np.int32]:
    out = np.empty((len(table), len(joint)), dtype=np.int32)
    own = list(table.dimensions)
    for d, (name, hierarchy) in enumerate(joint.items()):
        if name in table.dimensions:
            to = np.array([hierarchy.position(code) for code in table.dimensions[name].codes], dtype=np.int32)
            out[:, d] = to[table.codes[:, own.index(name)]]
            continue
        whole = np.flatnonzero(np.diff(abs(hierarchy.leaf_matrix).indptr) == len(hierarchy.leaves))
        if not whole.size:
            raise InvalidTable(
                f"Table {label!r} has no dimension {name!r}, and no code of it stands for everything.",
                hint=f"add the total of {name!r} to dimensions=.",
            )
        out[:, d] = whole[0]
    return out
