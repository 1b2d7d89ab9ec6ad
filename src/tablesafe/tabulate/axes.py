"""The dimensions of a tabulation: which code of the records is which leaf of the hierarchy."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import sparse

from tablesafe.core.errors import InvalidHierarchy, InvalidTable, Setting
from tablesafe.core.hierarchy import Hierarchy
from tablesafe.core.language import text
from tablesafe.tabulate.plan import DROP, ERROR, Plan

Locate = Callable[[int, str], str]
"""Where a code of a dimension (by number) first occurs, in the user's terms."""


@dataclass(frozen=True)
class Axis:
    """One dimension: its hierarchy, and the leaves that occur in the records."""

    name: str
    hierarchy: Hierarchy
    written: tuple[str, ...] = field(repr=False)
    """The codes as they are written in the records."""
    leaf: NDArray[np.int64] = field(repr=False)
    """Which of the used leaves each written code is."""
    used: NDArray[np.int32] = field(repr=False)
    """Positions, in the hierarchy, of the leaves that occur."""
    missing: int = -1
    """Which of the used leaves a missing code is, or −1."""


def make_axes(plan: Plan, codes: Sequence[Sequence[str]], missing: Sequence[int], locate: Locate) -> tuple[Axis, ...]:
    """Match the codes that occur with the hierarchies; every code must be a leaf."""
    axes = []
    for i, (dimension, hierarchy) in enumerate(plan.dimensions.items()):
        word = plan.missing[dimension]
        extra = word if missing[i] and word not in {ERROR, DROP} else None
        if hierarchy is None:
            hierarchy = _flat(dimension, [*codes[i], *([] if extra is None else [extra])], plan.total[dimension])
        elif extra is not None and hierarchy.total is not None and not _knows(hierarchy, extra):
            hierarchy = hierarchy.with_part(extra)
        _refuse_multiples(hierarchy, dimension)
        axes.append(_axis(i, dimension, hierarchy, tuple(codes[i]), extra, locate))
    if np.prod([float(max(len(axis.used), 1)) for axis in axes]) >= 2.0**62:
        raise InvalidTable("There are more combinations of codes than can be numbered.", hint="use fewer dimensions.")
    return tuple(axes)


def _knows(hierarchy: Hierarchy, code: str) -> bool:
    return bool(hierarchy.positions(pl.Series([code], dtype=pl.String))[0] >= 0)


def _axis(
    i: int, dimension: str, hierarchy: Hierarchy, written: tuple[str, ...], extra: str | None, locate: Locate
) -> Axis:
    every = [*written, *([] if extra is None else [extra])]
    positions = hierarchy.positions(pl.Series(every, dtype=pl.String))
    for row in np.flatnonzero(positions < 0)[:1].tolist():
        if extra is not None and row == len(written):
            raise InvalidHierarchy(
                text(
                    "Code {extra!r}, given for records without a code of {dimension!r}, is not in {name}.",
                    extra=extra,
                    dimension=dimension,
                    name=hierarchy.name,
                ),
                hint=text("add it to the hierarchy, or name another code in {option}", option=Setting("missing")),
            )
        raise hierarchy.unknown(every[row], locate(i, every[row]), dimension)
    for row in np.flatnonzero(hierarchy.is_total[positions])[:1].tolist():
        where = "" if row == len(written) else f" at {locate(i, every[row])}"
        raise InvalidHierarchy(
            text(
                "Code {code!r} of {dimension!r}{where} is a total of {name}, not a leaf.",
                code=every[row],
                dimension=dimension,
                where=where,
                name=hierarchy.name,
            ),
            hint=text(
                "records carry the codes of leaves; leave out rows that are totals already "
                "({option}), or add a leaf such as {other!r} to the hierarchy.",
                option=Setting("where"),
                other=every[row] + " other",
            ),
        )
    used, leaf = np.unique(positions, return_inverse=True)
    at_missing = -1 if extra is None else int(leaf[-1])
    return Axis(dimension, hierarchy, written, leaf[: len(written)].astype(np.int64), used.astype(np.int32), at_missing)


def in_order(codes: Sequence[str]) -> list[str]:
    """Codes in the order that a reader expects: numbers in them count as numbers, so that 50-249 comes before 250+."""
    if all(code.removeprefix("-").isdecimal() for code in codes):
        return sorted(codes, key=lambda code: (int(code), code))
    return sorted(codes, key=lambda code: (_parts(code), code))


def _parts(code: str) -> list[tuple[str, int]]:
    """Texts and numbers of a code in turn, the first a text."""
    parts = enumerate(re.split(r"([0-9]{1,18})", code))
    return [("", int(part)) if at % 2 else (part, 0) for at, part in parts]


def _flat(dimension: str, codes: Sequence[str], total: str) -> Hierarchy:
    """All codes that occur under one total, in the order that a reader expects."""
    distinct = list(dict.fromkeys(code.strip() for code in codes))
    ordered = in_order(distinct)
    if "" in distinct:
        blank = next(code for code in codes if not code.strip())
        raise InvalidTable(
            text(
                "Dimension {dimension!r} has a code of nothing but blanks: {blank!r}.", dimension=dimension, blank=blank
            ),
            hint=text(
                "correct the records, or say that it stands for nothing: empty = [{blank}].", blank=json.dumps(blank)
            ),
        )
    if total in ordered:
        raise InvalidTable(
            text(
                "Dimension {dimension!r} has the code {total!r}, which is also the name of its total.",
                dimension=dimension,
                total=total,
            ),
            hint=text(
                "leave out records that are totals already ({option}), or pass another {option2}",
                option=Setting("where"),
                option2=Setting("total"),
            ),
        )
    return Hierarchy.flat(ordered, total=total, name=f"dimension {dimension!r}")


def _refuse_multiples(hierarchy: Hierarchy, dimension: str) -> None:
    """A record belongs to a code or not: no minus signs, nothing counted twice, no total with two contents."""
    matrix = hierarchy.leaf_matrix
    odd = np.flatnonzero(matrix.data != 1)
    if odd.size:
        code = hierarchy.codes[int(np.searchsorted(matrix.indptr, odd[0], side="right")) - 1]
        leaf = hierarchy.leaves[int(matrix.indices[odd[0]])]
        times = int(matrix.data[odd[0]])
        raise InvalidHierarchy(
            f"Records cannot be tabulated by {dimension!r}: {leaf!r} counts {times} times in {code!r} of "
            f"{hierarchy.name}.",
            hint=f"leave {code!r} out, and compute it from the finished table.",
        )
    residual = sparse.csr_array(hierarchy.equations.astype(np.int32) @ matrix)
    residual.eliminate_zeros()
    if residual.nnz:
        row = int(np.flatnonzero(np.diff(residual.indptr))[0])
        code = hierarchy.codes[int(hierarchy.totals[row])]
        raise InvalidHierarchy(
            f"Records cannot be tabulated by {dimension!r}: {hierarchy.name} breaks {code!r} down in several ways that "
            f"do not have the same leaves.",
            hint="break it down to the same leaves, or leave one of the ways out.",
        )
