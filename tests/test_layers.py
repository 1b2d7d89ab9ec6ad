"""The architecture holds: a module imports only from the layers above it (design: "Data flows one way")."""

from __future__ import annotations

import ast
from collections import Counter
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import tablesafe

SOURCE = Path(tablesafe.__file__).parent
LAYERS = [
    "core.errors", "core.display", "core.registry", "core.machine", "files", "core.options", "core.hierarchy",
    "core.totals", "core.equations", "work", "solve", "core.table", "core.cube", "core.linking", "core.sensitivity",
    "tabulate", "rules", "core.problem", "core.mechanism", "core.release", "core.statuses", "core.posterior", "core",
    "loss", "audit", "verify", "attack", "methods", "experiments", "io", "tauargus", "report", "job", "pipeline",
    "batch_jobs", "web", "cli",
]  # fmt: skip
SOLVERS = {"highspy", "pyscipopt"}


def layer_of(module: str) -> str:
    """The layer of a dotted module name below tablesafe: the longest of them that it begins with."""
    name = module.removeprefix("tablesafe").lstrip(".")
    inside = [layer for layer in LAYERS if name == layer or name.startswith(layer + ".")]
    return max(inside, key=len, default=name.split(".")[0])


def imports_of(path: Path) -> set[str]:
    """Every module that a file imports, at the top or inside a function."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
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


def loaded_by(path: Path) -> set[str]:
    """The modules of ours that a file loads when it is itself loaded: not those of types, nor those of functions."""
    found: set[str] = set()
    waiting: list[ast.stmt] = list(ast.parse(path.read_text(encoding="utf-8")).body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.If) and "TYPE_CHECKING" not in ast.unparse(node.test):
            waiting += [*node.body, *node.orelse]
        elif isinstance(node, ast.Try):
            waiting += node.body
        elif isinstance(node, ast.ImportFrom) and node.module is not None and node.module.startswith("tablesafe"):
            modules = {f"{node.module}.{name.name}" for name in node.names}
            found |= {each if each in FILES else node.module for each in modules}
        elif isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
    return found & set(FILES)


FILES = {
    ".".join(("tablesafe", *path.relative_to(SOURCE).with_suffix("").parts)).removesuffix(".__init__"): path
    for path in MODULES
}


def test_no_chain_of_imports_is_long() -> None:
    """Whoever follows a thought opens few files: a chain is what stands between a module and the last that it needs."""
    graph = {module: loaded_by(path) - {module} for module, path in FILES.items()}
    order = list(TopologicalSorter(graph).static_order())
    length: dict[str, int] = {}
    for module in order:
        length[module] = max((1 + length[below] for below in graph[module]), default=0)
    longest = max(length, key=length.__getitem__)
    assert length[longest] <= 20, longest


def test_no_file_name_stands_in_four_packages() -> None:
    names = Counter(path.name for path in MODULES if path.name != "__init__.py")
    assert [name for name, times in names.items() if times > 3] == []


DOORS = {"tablesafe.web.server", "tablesafe.report.notebook"}
"""Opened by one command, which starts an application, or by an object that is shown in a notebook."""


def used_by(path: Path) -> set[str]:
    """The modules of ours that a file names: in imports of any kind, or as `module:Name` in a registry."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            modules = {f"{node.module}.{name.name}" for name in node.names}
            found |= {each if each in FILES else node.module for each in modules}
        elif isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            named = node.value.partition(":")[0]
            found |= {named, f"tablesafe.{named}"}
    return found & set(FILES)


def test_no_module_is_there_for_one_module_of_another_folder() -> None:
    """It would belong there. What is public is used by everybody; a folder may be opened by the one that it is in."""
    users: dict[str, set[str]] = {module: set() for module in FILES}
    for module, path in FILES.items():
        for used in used_by(path) - {module}:
            users[used].add(module)
    apart = {
        module: user
        for module, (user, *others) in ((module, those) for module, those in users.items() if those)
        if not others and FILES[module].name != "__init__.py" and user != "tablesafe"
        if FILES[user].parent not in FILES[module].parents and module not in DOORS
    }
    assert apart == {}


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
