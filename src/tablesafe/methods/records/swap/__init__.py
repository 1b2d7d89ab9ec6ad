"""Record swapping."""

from __future__ import annotations

from tablesafe.methods.records.swap.swap import Swap

__all__ = ["Swap"]
