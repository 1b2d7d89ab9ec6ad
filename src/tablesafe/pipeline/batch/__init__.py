"""Run a batch file of τ-ARGUS as it is: its tables, its rules, its methods by ours of the same role, its files."""

from __future__ import annotations

from tablesafe.pipeline.batch.result import BatchResult
from tablesafe.pipeline.batch.running import run_batch

__all__ = ["BatchResult", "run_batch"]
