"""The steps of a redesign: codes joined, parts, levels and dimensions dropped, tables left out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from tablesafe.core.equations import Integers, Mask
from tablesafe.core.errors import InvalidOption
from tablesafe.core.hierarchy import Hierarchy
from tablesafe.core.table import Table
from tablesafe.methods.redesign.recode import Recode, cut, join, parts_of

Kind = Literal["join", "drop parts", "drop level", "drop dimension", "leave out"]
MOST_SHOWN = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One change of a table's design."""

    kind: Kind
    dimension: str = ""
    codes: tuple[str, ...] = ()
    """The codes that are joined, or the one whose parts are dropped."""
    into: str = ""
    """What the joined codes are called."""
    margin: tuple[str, ...] = ()
    """The dimensions that span the table to leave out."""

    def __str__(self) -> str:
        shown = ", ".join(map(repr, self.codes[:MOST_SHOWN])) + (" …" if len(self.codes) > MOST_SHOWN else "")
        match self.kind:
            case "join":
                return f"join {shown} of {self.dimension} as {self.into!r}"
            case "drop parts":
                return f"drop the parts of {shown} of {self.dimension}"
            case "drop level":
                return f"drop the finest level of {self.dimension}"
            case "drop dimension":
                return f"drop {self.dimension}"
            case "leave out":
                return f"leave out the table by {' × '.join(self.margin)}"

    def recode(self, hierarchy: Hierarchy) -> Recode:
        """What the step makes of the hierarchy of its dimension."""
        match self.kind:
            case "join":
                return join(hierarchy, self.codes, self.into)
            case "drop parts":
                return cut(hierarchy, self.codes)
            case "drop level":
                return cut(hierarchy, above_finest(hierarchy))
            case _:
                return cut(hierarchy, hierarchy.roots[:1])


def above_finest(hierarchy: Hierarchy) -> tuple[str, ...]:
    """The codes right above the deepest ones of a tree."""
    parts = parts_of(hierarchy)
    deepest = int(hierarchy.depth.max(initial=0))
    chosen = [code for code in parts if int(hierarchy.depth[hierarchy.position(code)]) == deepest - 1]
    if not chosen:
        raise InvalidOption(f"{hierarchy.name} has one code only, so it has no level to drop.")
    return tuple(chosen)


def spans(table: Table) -> Integers:
    """Per cell which dimensions it does not stand at the total of, as bits."""
    bits = np.zeros(len(table), dtype=np.int64)
    for d, hierarchy in enumerate(table.dimensions.values()):
        top = -1 if hierarchy.total is None else hierarchy.position(hierarchy.total)
        bits |= (table.codes[:, d] != top).astype(np.int64) << d
    return bits


def span_of(names: Mapping[str, Hierarchy], margin: tuple[str, ...]) -> int:
    """The bits of some dimensions."""
    order = list(names)
    for name in margin:
        if name not in order:
            raise InvalidOption(f"There is no dimension {name!r}; there are {', '.join(map(repr, order))}.")
    return sum(1 << order.index(name) for name in margin)


def finest(table: Table, span: int) -> Mask:
    """The innermost cells of the table spanned by some dimensions: leaves in these, totals in the others."""
    mask = np.ones(len(table), dtype=np.bool_)
    for d, hierarchy in enumerate(table.dimensions.values()):
        if span >> d & 1:
            mask &= ~hierarchy.is_total[table.codes[:, d]]
        else:
            mask &= table.codes[:, d] == hierarchy.position(hierarchy.total or "")
    return mask
