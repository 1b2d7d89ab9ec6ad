"""The cell key method: noise that depends on nothing but the records of a cell."""

from __future__ import annotations

from tablesafe.methods.cell_key.cell_key import CellKey

__all__ = ["CellKey"]
