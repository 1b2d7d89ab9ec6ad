"""How finished tables overlap: one hierarchy per dimension, with the codes of all of them down to common parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tablesafe.audit.overlap import Overlap, downwards, joined
from tablesafe.core.equations import Mask, cell_keys
from tablesafe.core.errors import InvalidHierarchy, InvalidOption, InvalidTable
from tablesafe.core.hierarchy import Equation, Hierarchy
from tablesafe.core.table import Table
from tablesafe.files.read import read_source


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
                    f"Code {code!r} stands in the columns {seen[code]!r} and {column!r} of {read.name}.\n\n"
                    f"Hint: give the codes of different divisions different names."
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
                f"Table {label!r} has no dimension {name!r}, and no code of it stands for everything.\n\n"
                f"Hint: add the total of {name!r} to dimensions=."
            )
        out[:, d] = whole[0]
    return out
