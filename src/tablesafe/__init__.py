"""Make statistical tables safe to publish, and prove it.

Every public name lives here and is loaded when it is first used, so that `tablesafe --help` does not load a solver.
`ts.audit`, `ts.tabulate`, `ts.verify`, `ts.attack` and `ts.loss` are the functions; the modules of the same names are
reached by `from tablesafe.audit.system import System`.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tablesafe.errors import TablesafeError
    from tablesafe.hierarchy import Hierarchy
    from tablesafe.linking import link
    from tablesafe.problem import Problem
    from tablesafe.release import Release, Status
    from tablesafe.table import Contributors, Table

__version__ = "0.1.0"

_HOME = {
    "Contributors": "tablesafe.table",
    "Hierarchy": "tablesafe.hierarchy",
    "Problem": "tablesafe.problem",
    "Release": "tablesafe.release",
    "Status": "tablesafe.release",
    "Table": "tablesafe.table",
    "TablesafeError": "tablesafe.errors",
    "link": "tablesafe.linking",
}

__all__ = [
    "Contributors",
    "Hierarchy",
    "Problem",
    "Release",
    "Status",
    "Table",
    "TablesafeError",
    "link",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'tablesafe' has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    setattr(sys.modules[__name__], name, value)
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])


class _Package(ModuleType):
    """Keeps public functions in place when Python binds the module of the same name."""

    def __setattr__(self, name: str, value: object) -> None:
        if not (isinstance(value, ModuleType) and name in _HOME):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
