"""A job file: one TOML file that says what goes in, what is sensitive, how to protect it, and what comes out."""

from __future__ import annotations

from tablesafe.job.dump import dump_job
from tablesafe.job.load import load_job, parse_job, parse_rule
from tablesafe.job.model import Job

__all__ = ["Job", "dump_job", "load_job", "parse_job", "parse_rule"]
