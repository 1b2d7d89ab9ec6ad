"""Rounding to a base."""

from __future__ import annotations

from tablesafe.methods.round.round import Round

__all__ = ["Round"]
