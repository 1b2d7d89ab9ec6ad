"""Batch files of τ-ARGUS (`.arb`) read: their commands, and the tables that they describe."""

from __future__ import annotations

from tablesafe.tauargus.batch.commands import Batch, Note
from tablesafe.tauargus.batch.parse import parse_arb, read_arb

__all__ = ["Batch", "Note", "parse_arb", "read_arb"]
