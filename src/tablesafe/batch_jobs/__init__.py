"""Batch files of τ-ARGUS as jobs of ours: run by the pipeline, written as its files; and our jobs as such."""

from __future__ import annotations

from tablesafe.batch_jobs.files import BatchResult
from tablesafe.batch_jobs.running import run_batch

__all__ = ["BatchResult", "run_batch"]
