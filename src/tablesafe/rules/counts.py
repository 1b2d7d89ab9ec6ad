"""Rules that count: too few contributors, and cells known to be zero."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, get_args

import numpy as np

from tablesafe.core.equations import Integers, Mask
from tablesafe.core.errors import InvalidTable, Setting
from tablesafe.core.options import require_choice, require_number, require_whole
from tablesafe.core.sensitivity import Sensitivity, range_levels, reachable
from tablesafe.core.table import Table

Counted = Literal["respondents", "holdings"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Threshold:
    """Flag cells with fewer than `n` contributors.

    Cells without any contributor show nobody's data and are safe, unless `zero` says that the absence itself must not
    be known. Structural zeros are known to all and always safe. A count says nothing about how far a value must be
    hidden: without a safety range the cell must only not be known exactly. Counts are unweighted: a sampled
    respondent is one respondent.
    """

    n: int = field(
        default=3, kw_only=False, metadata={"help": "fewest contributors that make a cell safe", "slider": (1, 30, 1)}
    )
    on: Counted = field(default="respondents", metadata={"help": "whom to count: respondents or holdings"})
    zero: bool = field(default=False, metadata={"help": "also flag cells without any contributor"})
    range_percent: float = field(
        default=0.0,
        metadata={"help": "safety range around the value, in percent of it", "slider": (0.0, 100.0, 1.0)},
    )
    range_absolute: float = field(default=0.0, metadata={"help": "safety range around the value, in its own unit"})

    def __post_init__(self) -> None:
        require_whole(self, "n", at_least=1)
        require_choice(self, "on", get_args(Counted))
        require_number(self, "range_percent", at_least=0)
        require_number(self, "range_absolute", at_least=0)

    def __call__(self, table: Table) -> Sensitivity:
        """Flag the cells of a table."""
        count = _counted(table, self.on)
        mask = _not_structural(table, (count < self.n) & ((count > 0) | self.zero))
        level = range_levels(table, self.range_percent, self.range_absolute)
        return Sensitivity.of(mask, reachable(table, level), level, reason="threshold")


@dataclass(frozen=True, slots=True, kw_only=True)
class ZeroCells:
    """Flag cells of value zero that have contributors: each of them is known to have reported nothing.

    This is τ-ARGUS's zero rule. A percentage of zero is zero, so the safety range is an amount; it reaches only upwards
    where values cannot be negative. Structural zeros are safe.
    """

    range_absolute: float = field(default=0.0, metadata={"help": "safety range above zero, in the value's own unit"})

    def __post_init__(self) -> None:
        require_number(self, "range_absolute", at_least=0)

    def __call__(self, table: Table) -> Sensitivity:
        """Flag the cells of a table."""
        mask = _not_structural(table, (table.integers == 0) & (_counted(table, "respondents") > 0))
        level = range_levels(table, 0.0, self.range_absolute)
        return Sensitivity.of(mask, reachable(table, level), level, reason="zero")


def _counted(table: Table, on: Counted) -> Integers:
    count = table.count if on == "respondents" else table.holdings
    if count is None:
        held: tuple[str | Setting, ...] = () if on == "respondents" else (" with ", Setting("holding", None))
        column = Setting("count" if on == "respondents" else "holdings", None)
        raise InvalidTable(
            f"The rule counts {on}, but the table does not say how many {on} each cell has.",
            hint=("tabulate from microdata", *held, ", or name the column with ", column),
            about=("counts",),
        )
    return count


def _not_structural(table: Table, mask: Mask) -> Mask:
    return mask if table.structural_zero is None else np.asarray(mask & ~table.structural_zero)
