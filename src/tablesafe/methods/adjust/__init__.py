"""Controlled tabular adjustment: all cells are published, and some of them are changed."""

from __future__ import annotations

from tablesafe.methods.adjust.adjust import Adjust

__all__ = ["Adjust"]
