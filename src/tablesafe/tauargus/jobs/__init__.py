"""Batch files of τ-ARGUS as jobs of ours: run by the pipeline, written as its files; and our jobs as such."""

from __future__ import annotations

from tablesafe.tauargus.jobs.files import BatchResult
from tablesafe.tauargus.jobs.running import run_batch

__all__ = ["BatchResult", "run_batch"]
