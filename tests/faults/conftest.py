"""A small job that is stopped in every way, and what must be true afterwards."""

from __future__ import annotations

from pathlib import Path

import pytest
from small_job import DATA, JOB


@pytest.fixture
def job(tmp_path: Path) -> Path:
    """A folder with the job and its records."""
    (tmp_path / "scratch").mkdir()
    (tmp_path / "firms.csv").write_text(DATA, encoding="utf-8")
    (tmp_path / "job.toml").write_text(JOB, encoding="utf-8")
    return tmp_path / "job.toml"
