"""The architecture holds: a module imports only from the layers above it (design: "Data flows one way")."""

from __future__ import annotations

import ast
from collections import Counter
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import tablesafe

SOURCE = Path(tablesafe.__file__).parent
LAYERS = [
    "core.language", "core.errors", "core.display", "core.registry", "core.machine", "files", "core.options",
    "core.hierarchy", "core.totals", "core.equations", "work", "solve", "core.table", "core.cube", "core.linking",
    "core.sensitivity", "tabulate", "rules", "core.problem", "core.mechanism", "core.release", "core.statuses",
    "core.posterior", "core", "linked_views", "loss", "audit", "verify", "attack", "methods", "experiments", "io",
    "tauargus", "report", "job", "pipeline", "batch_jobs", "web", "cli",
]  # fmt: skip
SOLVERS = {"highspy", "pyscipopt"}


def layer_of(module: str) -> str:
    """The layer of a dotted module name below tablesafe: the longest of them that it begins with."""
    name = module.removeprefix("tablesafe").lstrip(".")
    inside = [layer for layer in LAYERS if name == layer or name.startswith(layer + ".")]
    return max(inside, key=len, default=name.split(".")[0])


Imports = tuple[ast.Import | ast.ImportFrom, ...]


@cache
def read(path: Path) -> tuple[Imports, Imports]:
    """Every import of a file; and those that are done when it is loaded: not those of types, nor those of functions."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    every = tuple(node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom))
    at_load: list[ast.Import | ast.ImportFrom] = []
    waiting: list[ast.stmt] = list(tree.body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.If) and "TYPE_CHECKING" not in ast.unparse(node.test):
            waiting += [*node.body, *node.orelse]
        elif isinstance(node, ast.Try):
            waiting += node.body
        elif isinstance(node, ast.Import | ast.ImportFrom):
            at_load.append(node)
    return every, tuple(at_load)


def imports_of(path: Path) -> set[str]:
    """Every module that a file imports, at the top or inside a function."""
    found: set[str] = set()
    for node in read(path)[0]:
        if isinstance(node, ast.Import):
            found.update(name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative imports hide the layer"
            found.add(node.module or "")
            if node.module == "tablesafe":
                found.update(f"tablesafe.{name.name}" for name in node.names)
    return found


MODULES = sorted(SOURCE.rglob("*.py"))


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_a_module_imports_only_from_layers_above_it(path: Path) -> None:
    own = layer_of("tablesafe." + ".".join(path.relative_to(SOURCE).with_suffix("").parts))
    if own in {"__init__", "__main__"}:
        return
    assert own in LAYERS, f"{path.name} belongs to no layer"
    for module in imports_of(path):
        if module.startswith("tablesafe."):
            other = layer_of(module)
            if other in {"__init__", "core"}:
                continue
            assert LAYERS.index(other) <= LAYERS.index(own), f"{own} must not import {module}"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_only_one_file_imports_a_solver(path: Path) -> None:
    solvers = {module for module in imports_of(path) if module.split(".")[0] in SOLVERS}
    assert not solvers or path.relative_to(SOURCE).as_posix() == "solve/highs.py"


def test_the_verifier_shares_no_code_with_the_audit() -> None:
    ours = {module for module in imports_of(SOURCE / "verify.py") if module.startswith("tablesafe")}
    assert ours <= {"tablesafe.core.errors"}


def named(imports: Imports) -> set[str]:
    """The modules of ours that imports name."""
    found: set[str] = set()
    for node in imports:
        if isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
        elif node.module is not None:
            modules = {f"{node.module}.{name.name}" for name in node.names}
            found |= {each if each in FILES else node.module for each in modules}
    return found & set(FILES)


FILES = {
    ".".join(("tablesafe", *path.relative_to(SOURCE).with_suffix("").parts)).removesuffix(".__init__"): path
    for path in MODULES
}


def test_no_chain_of_imports_is_long() -> None:
    """Whoever follows a thought opens few files: a chain is what stands between a module and the last that it needs."""
    graph = {module: named(read(path)[1]) - {module} for module, path in FILES.items()}
    order = list(TopologicalSorter(graph).static_order())
    length: dict[str, int] = {}
    for module in order:
        length[module] = max((1 + length[below] for below in graph[module]), default=0)
    longest = max(length, key=length.__getitem__)
    assert length[longest] <= 20, longest


def test_no_file_name_stands_in_four_packages() -> None:
    names = Counter(path.name for path in MODULES if path.name != "__init__.py")
    assert [name for name, times in names.items() if times > 3] == []


SUBDIVIDED = {"methods", "report", "web", "pipeline", "job", "cli"}
"""Packages whose folders are packages of their own."""


def package_of(module: str) -> str:
    """The package that a module is a part of; a folder's `__init__` is a module of the package around the folder."""
    parts = module.split(".")[1:]
    if parts and parts[0] in SUBDIVIDED and len(parts) > 2:
        return ".".join(parts[:2])
    return parts[0] if len(parts) > 1 or (parts and (SOURCE / parts[0]).is_dir()) else module


def test_no_module_is_there_for_one_module_of_another_package() -> None:
    """It would belong there. What a package shows to all others stands in its `__init__`."""
    users: dict[str, set[str]] = {module: set() for module in FILES}
    for module, path in FILES.items():
        for used in named(read(path)[0]) - {module}:
            users[used].add(module)
    inner = [module for module, path in FILES.items() if path.name not in {"__init__.py", "__main__.py"}]
    single = {module: next(iter(users[module])) for module in inner if len(users[module]) == 1}
    assert {module: user for module, user in single.items() if package_of(user) != package_of(module)} == {}


BELOW_AND_ABOVE = {"core", "files", "work", "solve"}
"""Packages between which the layers run: `core.errors` is the first of them and `core.table` the last."""


def test_no_two_packages_need_each_other() -> None:
    needs: dict[str, set[str]] = {}
    for module, path in FILES.items():
        own = module.split(".")[1] if module != "tablesafe" else ""
        for used in imports_of(path):
            other = used.split(".")[1] if used.startswith("tablesafe.") else own
            if own and other != own and not {own, other} <= BELOW_AND_ABOVE:
                needs.setdefault(own, set()).add(other)
    assert set(TopologicalSorter(needs).static_order()) >= {"pipeline", "tauargus", "batch_jobs"}  # or a CycleError
