"""Cells whose borders no swap crosses: everyone in them has only partners in them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tablesafe.core.equations import Integers, Mask
from tablesafe.core.hierarchy import Hierarchy
from tablesafe.core.table import Table
from tablesafe.methods.microdata.records import Microdata
from tablesafe.methods.swap.pairing import NOBODY


def never_left(table: Table, microdata: Microdata, moving: Sequence[str], alike: Integers) -> Mask:
    """The cells that no record can leave or come into when records of one class exchange the moving columns."""
    out = np.ones(len(table), dtype=np.bool_)
    origin = microdata.origin
    assert origin is not None
    for d, (name, hierarchy) in enumerate(table.dimensions.items()):
        if origin.plan.column_of.get(name) in moving:
            out &= _closed(hierarchy, microdata.positions(name), alike)[table.codes[:, d]]
    return out


def _closed(hierarchy: Hierarchy, at: NDArray[np.int32], alike: Integers) -> Mask:
    """The codes that hold all records of a class or none, whichever class it is: the total does always."""
    there = at > NOBODY
    leaf = np.cumsum(~hierarchy.is_total) - 1
    inner = int((~hierarchy.is_total).sum())
    classes = int(alike.max(initial=-1)) + 1
    held = sparse.csr_array((np.ones(int(there.sum())), (leaf[at[there]], alike[there])), shape=(inner, classes))
    counted = (sparse.csr_array(hierarchy.leaf_matrix) @ held).tocoo()
    some = (counted.data > 0) & (counted.data < np.bincount(alike[there], minlength=classes)[counted.col])
    out = np.ones(len(hierarchy), dtype=np.bool_)
    out[counted.row[some]] = False
    return out
