"""Fixtures that every test may use."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile(  # these machines are noisy: no test asserts a time; what lands is judged on equal examples
    "tablesafe", deadline=None, derandomize=bool(os.environ.get("CI"))
)
settings.load_profile("tablesafe")

REPOSITORY = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def instances() -> Path:
    """The folder of benchmark instances; tests that need it skip, by name, where it is not there."""
    folder = Path(os.environ.get("TABLESAFE_INSTANCES", REPOSITORY.parent / "shared" / "instances"))
    if not folder.is_dir():
        pytest.skip("the benchmark instances are not here: set TABLESAFE_INSTANCES")
    return folder


@pytest.fixture(scope="session")
def paper_data() -> Path:
    """Published worked examples, copied into the repository with author, title and table number."""
    return Path(__file__).resolve().parent / "papers" / "data"
