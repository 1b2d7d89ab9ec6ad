"""Rounding of small counts only."""

from __future__ import annotations

from tablesafe.methods.small_counts.small_counts import SmallCounts

__all__ = ["SmallCounts"]
