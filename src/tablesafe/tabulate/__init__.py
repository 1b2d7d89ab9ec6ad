"""Microdata in, a table out: sums, counts and the largest contributors of every cell of every wanted margin."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tablesafe.core.registry import loader

if TYPE_CHECKING:
    from tablesafe.tabulate.records_and_columns import Columns, Records
    from tablesafe.tabulate.run import tabulate

__all__ = ["Columns", "Records", "tabulate"]

__getattr__ = loader(
    __name__,
    {
        "Columns": "tablesafe.tabulate.records_and_columns",
        "Records": "tablesafe.tabulate.records_and_columns",
        "tabulate": "tablesafe.tabulate.run",
    },
)
