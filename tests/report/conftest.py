"""Fixtures of the tests of the report."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from report_cases import MADE, Case, made

import tablesafe as ts


@pytest.fixture(params=MADE)
def case(request: pytest.FixtureRequest) -> Case:
    """Every kind of release in turn."""
    return made(request.param)


@pytest.fixture(scope="session")
def written(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Write a report of a case, once for all tests; nobody may change it."""
    folder = tmp_path_factory.mktemp("reports")

    def write(case: Case, ending: str, *, internal: bool) -> Path:
        path = folder / f"{case.name} {'internal' if internal else 'public'}{ending}"
        if not path.exists():
            ts.report(case.problem, case.release, case.findings, path=path, internal=internal, title=case.name)
        return path

    return write
