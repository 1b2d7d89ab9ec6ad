"""Complementary cell suppression: exact where it can be, fast where it must be, safe always."""

from __future__ import annotations

from tablesafe.methods.suppress.suppress import Algorithm, Suppress, Unprotectable

__all__ = ["Algorithm", "Suppress", "Unprotectable"]
