"""What methods for counts ask of a table: that it holds counts."""

from __future__ import annotations

import numpy as np

from tablesafe.core.equations import Integers
from tablesafe.core.errors import InvalidTable, and_more
from tablesafe.core.table import Table
from tablesafe.tabulate.origin import Origin


def whole_counts(table: Table, what: str, *, if_negative: str, if_fraction: str) -> Integers:
    """The counts of a table, refused where they are negative or no whole numbers; `what` is the method, in words."""
    value = table.integers
    negative = np.flatnonzero(value < 0)
    if negative.size:
        raise InvalidTable(
            f"{what} is for counts, but cell {table.describe(int(negative[0]))} is negative{and_more(negative.size)}.",
            hint=if_negative,
        )
    if table.decimals:
        parts = np.flatnonzero(value % 10**table.decimals)
        raise InvalidTable(
            f"{what} is for counts, but cell {table.describe(int(parts[0]))} is not a whole "
            f"number{and_more(parts.size)}.",
            hint=if_fraction,
        )
    return value


def is_count(table: Table) -> bool:
    """Whether every cell holds the number of its records."""
    origin = table.origin
    return isinstance(origin, Origin) and not origin.plan.listed and origin.plan.weight is None
