"""What is asked for quickly answers quickly: names and options are known without algorithms and solvers."""

from __future__ import annotations

import ast
import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from tablesafe.attack.registry import ATTACKS
from tablesafe.core.problem import Problem
from tablesafe.core.registry import Registry
from tablesafe.core.sensitivity import Sensitivity
from tablesafe.core.table import Table
from tablesafe.io.jj import write_jj
from tablesafe.methods import METHODS
from tablesafe.rules import RULES

UNASKED = (
    "matplotlib",
    "duckdb",
    "pyarrow",
    "pandas",
    "scipy.optimize",
    "scipy.special",
    "scipy.spatial",
    "distributed",
)
"""What only some jobs need: plots, records, columns of Arrow, some methods, a cluster."""
HEAVY = ("highspy", "numba", "scipy.sparse.linalg", "scipy.linalg", *UNASKED)
ALGORITHMS = ("tablesafe.audit.audit", "tablesafe.methods.suppress.method", "tablesafe.solve.highs")


def loaded(code: str, modules: tuple[str, ...]) -> list[str]:
    """Which of the modules a program has loaded at its end."""
    say = f"import sys; print([m for m in {modules!r} if m in sys.modules])"
    found = subprocess.run([sys.executable, "-c", f"{code}\n{say}"], capture_output=True, text=True, check=True)
    return list(ast.literal_eval(found.stdout.splitlines()[-1]))


@pytest.mark.parametrize("module", ["tablesafe.job", "tablesafe.cli.app", "tablesafe.web.server"])
def test_no_algorithm_is_loaded_before_it_is_asked_for(module: str) -> None:
    if module == "tablesafe.web.server":
        pytest.importorskip("nicegui")
    records = {"duckdb", "pyarrow"} if module == "tablesafe.web.server" else set()  # its desk looks into files at once
    assert set(loaded(f"import {module}", (*HEAVY, *ALGORITHMS))) <= records


ALL_OPTIONS = """
import tablesafe, tablesafe.job, tablesafe.cli.app
from dataclasses import MISSING, fields
from typing import get_type_hints
from tablesafe.methods import METHODS
for kind in METHODS.values():
    needed = [each for each in fields(kind) if each.default is MISSING and each.default_factory is MISSING]
    made = kind(**{each.name: each.metadata["example"] for each in needed})
    assert callable(made.protect) and get_type_hints(kind)
"""


def test_the_options_of_every_method_are_known_without_a_solver_and_a_compiler() -> None:
    """Whoever reads a job or draws a form makes them all: none of that computes anything."""
    assert loaded(ALL_OPTIONS, ("highspy", "numba", "scipy.optimize", "tablesafe.solve.highs")) == []


def test_a_problem_from_the_shell_loads_nothing_that_it_does_not_need(tmp_path: Path) -> None:
    """No plots without being asked for, no reader of records for a file of cells, no method but its own."""
    table = Table.from_cells(
        pl.DataFrame({"r": list("aabb"), "c": list("xyxy"), "value": [3, 40, 50, 60]}),
        dimensions={"r": None, "c": None}, value="value", missing_totals="compute",
    )  # fmt: skip
    first = np.arange(len(table)) == table.index(r="a", c="x")
    write_jj(Problem(table, sensitivity=Sensitivity.of(first, 2.0 * first)), tmp_path / "table.jj")
    folder, other = (
        tmp_path / "office",
        ("tablesafe.tabulate.run", "tablesafe.methods.adjust", "tablesafe.report.plots.style"),
    )
    call = "from tablesafe.cli.app import call\nassert call(['suppress', {!r}, '--internal', {!r}, '--quiet'{}]) == 0"
    plain = call.format(str(tmp_path / "table.jj"), str(folder), "")
    assert loaded(plain, (*UNASKED, *other, "numba")) == [], "four cells need no compiler"
    assert '<figure class="plot' not in (folder / "report.html").read_text(encoding="utf-8")
    if find_spec("matplotlib") is not None:
        drawn = call.format(str(tmp_path / "table.jj"), str(folder), ", '--pictures'")
        assert loaded(drawn, ("matplotlib",)) == ["matplotlib"]
        assert '<figure class="plot' in (folder / "report.html").read_text(encoding="utf-8")


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
    lazy = "attack", "linked_views", "methods", "pipeline", "rules", "tabulate", "web"
    for home in (f"tablesafe.{name}" for name in lazy):
        package = import_module(home)
        for name in package.__all__:
            assert name.isupper() or getattr(package, name).__name__ == name
        with pytest.raises(AttributeError, match="no attribute 'nothing'"):
            _ = package.nothing
