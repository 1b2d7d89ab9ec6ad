"""A batch file of τ-ARGUS (`.arb`) as frozen dataclasses, each command with the line it stands on."""

from __future__ import annotations

from tablesafe.job.arb.model import Batch, Note
from tablesafe.job.arb.read import parse_arb, read_arb

__all__ = ["Batch", "Note", "parse_arb", "read_arb"]
