"""Fixtures that every test may use."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import core, settings

from seeds import VARIABLE, session_seed
from tablesafe.hierarchy import Hierarchy
from tablesafe.problem import Problem
from tablesafe.rules.sensitivity import Sensitivity
from tablesafe.table import Table

settings.register_profile(  # no test asserts a time: machines are noisy; examples are new in each run, in CI too
    "tablesafe", deadline=None, derandomize=False, print_blob=True
)
settings.load_profile("tablesafe")

REPOSITORY = Path(__file__).resolve().parent.parent


def pytest_configure(config: pytest.Config) -> None:
    """Let hypothesis follow the seed of the session, unless --hypothesis-seed asks for another."""
    if config.getoption("--hypothesis-seed", None) is None:
        core.global_force_seed = session_seed()  # type: ignore[assignment]


def pytest_report_header() -> str:
    return f"seed: {session_seed()} ({VARIABLE}={session_seed()} repeats this run)"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Tell the seed again below the failures, where people look, and where a quiet run has no header."""
    if terminalreporter.stats.get("failed") or terminalreporter.stats.get("error"):
        terminalreporter.write_line(f"{VARIABLE}={session_seed()} repeats this run.")


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


@pytest.fixture(scope="session")
def dandekar(paper_data: Path) -> Problem:
    """Dandekar & Cox, "Synthetic Tabular Data" (2002), Table 1: 10 × 6 × 4 with totals, 24 sensitive cells."""
    frame = pl.read_csv(paper_data / "dandekar_10x6x4" / "cells.csv").with_columns(
        pl.col("col", "row", "level").cast(pl.String)
    )
    sizes = {"col": 10, "row": 6, "level": 4}
    dimensions = {d: Hierarchy.from_pairs([(str(n), str(i)) for i in range(1, n)]) for d, n in sizes.items()}
    columns = ["sensitive", "protection", "synthetic_value_2002"]
    table = Table.from_cells(frame, dimensions=dimensions, columns=columns)
    mask = table.columns["sensitive"] > 0
    return Problem(table, sensitivity=Sensitivity.of(mask, np.asarray(table.columns["protection"])))
