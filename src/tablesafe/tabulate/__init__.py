"""Microdata in, a table out: sums, counts and the largest contributors of every cell of every wanted margin."""

from __future__ import annotations

from tablesafe.tabulate.run import tabulate

__all__ = ["tabulate"]
