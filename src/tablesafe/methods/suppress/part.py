"""One part of a large table, as plain data: its answer depends on nothing else.

So it can be worked on anywhere: here, in another process, on another machine. Whatever stands outside a part stays as
it is, so a deviation found inside holds in the whole table.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tablesafe.audit.respondent_knowledge import Guard
from tablesafe.core.equations import Floats, Integers, Mask
from tablesafe.methods.suppress.instance import Instance


@dataclass(frozen=True, slots=True)
class Held:
    """A deviation, and the targets it protects."""

    cells: Integers
    amount: Floats
    served: tuple[int, ...]
    guarded: bool = False
    """Whether no single respondent can rule it out."""


@dataclass(frozen=True, eq=False)
class Part:
    """Some cells of a table, with all that a search among them needs; cells and targets are numbered from 0."""

    rows: sparse.csr_array = field(repr=False)
    cost: Floats = field(repr=False)
    withheld: Mask = field(repr=False)
    """Withheld whatever is decided here."""
    up: Floats = field(repr=False)
    down: Floats = field(repr=False)
    cell: Integers = field(repr=False)
    sign: NDArray[np.int8] = field(repr=False)
    level: Floats = field(repr=False)
    guard: Guard | None = field(default=None, repr=False)
    near_first: bool = False
    """Whether to look among near cells first, and only then among cheap ones."""
    boxes: bool = False
    """Whether to look for boxes, and for programs only where there is none."""
    pending: tuple[int, ...] = ()
    """Targets to protect, in this order."""
    strict: bool = False
    """Whether only deviations will do for them that no respondent can rule out."""
    held: tuple[Held, ...] = ()
    doubtful: tuple[int, ...] = ()
    """Cells to publish again if that pays, in this order."""
    seconds: float = np.inf
    """Work to spend on the doubtful, as a quiet machine would count it: equal on every machine."""
    most_s: float = np.inf
    """Seconds after which programs are given up."""

    @classmethod
    def cut(cls, instance: Instance, cells: Integers, targets: Integers, withheld: Mask, guard: Guard | None) -> Self:
        """Cut some cells (ascending) out of an instance, with some of the targets; nothing is pending yet."""
        columns = sparse.csc_array(instance.columns[:, cells])
        used = np.flatnonzero(np.bincount(columns.indices, minlength=columns.shape[0]))
        return cls(
            rows=sparse.csr_array(sparse.csr_array(columns)[used]),
            cost=instance.cost[cells],
            withheld=withheld[cells],
            up=instance.up[cells],
            down=instance.down[cells],
            cell=np.searchsorted(cells, instance.cell[targets]),
            sign=instance.sign[targets],
            level=instance.level[targets],
            guard=None if guard is None else guard.take(cells),
        )


@dataclass(frozen=True, slots=True)
class Outcome:
    """The deviations of a part after the work on it, and the targets it could not protect."""

    held: tuple[Held, ...]
    failed: tuple[int, ...]
    seconds: float
    """Work spent."""
