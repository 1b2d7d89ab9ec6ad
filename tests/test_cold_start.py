"""What is asked for quickly answers quickly: names and options are known without algorithms and solvers."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module

import pytest

from tablesafe.attack.registry import ATTACKS
from tablesafe.core.registry import Registry
from tablesafe.methods import METHODS
from tablesafe.rules import RULES

HEAVY = ("highspy", "numba", "scipy.optimize", "scipy.sparse.linalg", "matplotlib")
ALGORITHMS = ("tablesafe.audit.audit", "tablesafe.methods.suppress", "tablesafe.solve.highs")


@pytest.mark.parametrize("module", ["tablesafe.job", "tablesafe.cli.app", "tablesafe.web.server"])
def test_no_algorithm_is_loaded_before_it_is_asked_for(module: str) -> None:
    if module == "tablesafe.web.server":
        pytest.importorskip("nicegui")
    code = f"import sys; import {module}; print([m for m in {(*HEAVY, *ALGORITHMS)!r} if m in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


@pytest.mark.parametrize("registry", [METHODS, ATTACKS, RULES], ids=["methods", "attacks", "rules"])
def test_a_registry_says_where_each_kind_is_and_finds_its_name_again(registry: Registry[type]) -> None:
    assert len(registry) == len({*registry.values()})
    for name, kind in registry.items():
        assert registry.name_of(kind) == name
        assert getattr(kind, "name", name) == name
    assert "nothing of the kind" not in registry
    assert registry.name_of(int) is None
    with pytest.raises(KeyError):
        registry["nothing of the kind"]


def test_a_package_that_loads_its_names_later_has_them_all() -> None:
    for home in ("tablesafe.attack", "tablesafe.methods", "tablesafe.pipeline", "tablesafe.tabulate"):
        package = import_module(home)
        for name in package.__all__:
            assert name.isupper() or getattr(package, name).__name__ == name
        with pytest.raises(AttributeError, match="no attribute 'nothing'"):
            _ = package.nothing
