"""The public surface: these names are kept, and each is what it says."""

from __future__ import annotations

import subprocess
import sys
from types import ModuleType

import pytest

import tablesafe as ts

DESIGNED = {
    "Hierarchy", "tabulate", "Table", "link", "Problem", "Threshold", "PPercent", "PQ", "Dominance", "read_jj",
    "write_jj", "protect", "Suppress", "Adjust", "Round", "Release", "audit", "verify", "attack", "AnalyticCentre",
    "loss", "run",
}  # fmt: skip


def test_every_name_of_the_design_is_public() -> None:
    assert set(ts.__all__) >= DESIGNED


@pytest.mark.parametrize("name", ts.__all__)
def test_a_public_name_can_be_used(name: str) -> None:
    thing = getattr(ts, name)
    assert callable(thing)
    assert not isinstance(thing, ModuleType)
    assert thing.__doc__


def test_functions_stay_when_modules_of_the_same_name_are_loaded() -> None:
    code = (
        "import tablesafe as ts, tablesafe.audit.system, tablesafe.tabulate\n"
        "import tablesafe.verify, tablesafe.loss, tablesafe.attack\n"
        "from types import ModuleType\n"
        "names = ['audit', 'tabulate', 'verify', 'loss', 'attack']\n"
        "assert not any(isinstance(getattr(ts, name), ModuleType) for name in names)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_importing_tablesafe_loads_no_solver() -> None:
    code = "import sys, tablesafe, tablesafe.cli; assert not {'highspy', 'numba', 'duckdb'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_unknown_names_are_refused() -> None:
    with pytest.raises(AttributeError, match="nonsense"):
        ts.nonsense  # noqa: B018
