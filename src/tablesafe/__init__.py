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
    from tablesafe.attack import AnalyticCentre, ChebyshevCentre, Midpoint, SimplexVertex, attack
    from tablesafe.audit.audit import audit
    from tablesafe.errors import TablesafeError
    from tablesafe.hierarchy import Hierarchy
    from tablesafe.io.jj import read_jj, write_jj
    from tablesafe.linking import link
    from tablesafe.loss import loss
    from tablesafe.methods import Adjust, Pattern, PublishAll, Round, Suppress, Withhold, protect
    from tablesafe.pipeline import run
    from tablesafe.problem import Problem, waive
    from tablesafe.release import Release, Status
    from tablesafe.rules import (
        PQ,
        AllOf,
        AnyOf,
        Dominance,
        Levels,
        LinearSensitivity,
        Manual,
        PPercent,
        RequestRule,
        Sensitivity,
        Threshold,
        Waiver,
        ZeroCells,
    )
    from tablesafe.table import Contributors, Table
    from tablesafe.tabulate import tabulate
    from tablesafe.verify import verify

__version__ = "0.1.0"

_HOMES = {
    "tablesafe.attack": ("AnalyticCentre", "ChebyshevCentre", "Midpoint", "SimplexVertex", "attack"),
    "tablesafe.audit.audit": ("audit",),
    "tablesafe.errors": ("TablesafeError",),
    "tablesafe.hierarchy": ("Hierarchy",),
    "tablesafe.io.jj": ("read_jj", "write_jj"),
    "tablesafe.linking": ("link",),
    "tablesafe.loss": ("loss",),
    "tablesafe.methods": ("Adjust", "Pattern", "PublishAll", "Round", "Suppress", "Withhold", "protect"),
    "tablesafe.pipeline": ("run",),
    "tablesafe.problem": ("Problem", "waive"),
    "tablesafe.release": ("Release", "Status"),
    "tablesafe.rules": (
        "PQ", "AllOf", "AnyOf", "Dominance", "Levels", "LinearSensitivity", "Manual", "PPercent", "RequestRule",
        "Sensitivity", "Threshold", "Waiver", "ZeroCells",
    ),
    "tablesafe.table": ("Contributors", "Table"),
    "tablesafe.tabulate": ("tabulate",),
    "tablesafe.verify": ("verify",),
}  # fmt: skip
_HOME = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [
    "PQ",
    "Adjust",
    "AllOf",
    "AnalyticCentre",
    "AnyOf",
    "ChebyshevCentre",
    "Contributors",
    "Dominance",
    "Hierarchy",
    "Levels",
    "LinearSensitivity",
    "Manual",
    "Midpoint",
    "PPercent",
    "Pattern",
    "Problem",
    "PublishAll",
    "Release",
    "RequestRule",
    "Round",
    "Sensitivity",
    "SimplexVertex",
    "Status",
    "Suppress",
    "Table",
    "TablesafeError",
    "Threshold",
    "Waiver",
    "Withhold",
    "ZeroCells",
    "attack",
    "audit",
    "link",
    "loss",
    "protect",
    "read_jj",
    "run",
    "tabulate",
    "verify",
    "waive",
    "write_jj",
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
