"""Batch files of τ-ARGUS (`.arb`): run as they are, by our methods of the same role; and our jobs written as such."""

from __future__ import annotations

from tablesafe.tauargus.batch.commands import Batch, Note
from tablesafe.tauargus.batch.files import BatchResult
from tablesafe.tauargus.batch.parse import parse_arb, read_arb
from tablesafe.tauargus.batch.session import run_batch

__all__ = ["Batch", "BatchResult", "Note", "parse_arb", "read_arb", "run_batch"]
