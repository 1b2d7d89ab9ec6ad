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
    from tablesafe.attack import (
        AdditiveMidpoint,
        AnalyticCentre,
        ChebyshevCentre,
        HitAndRun,
        InteriorMean,
        InteriorPoint,
        MaximumEntropy,
        Midpoint,
        RandomCentroid,
        Scores,
        SimplexVertex,
        VertexMean,
        attack,
    )
    from tablesafe.attack.adjustment import ReverseAdjustment, reverse_adjustment
    from tablesafe.attack.candidates import candidate_tables
    from tablesafe.attack.parameters import infer_p, shrink
    from tablesafe.attack.pattern import known_office, match_pattern
    from tablesafe.attack.reconstruction import reconstruct
    from tablesafe.attack.shrinking import ShrunkMidpoint
    from tablesafe.attack.trial import trial_p, trial_p_by_method
    from tablesafe.audit.audit import audit
    from tablesafe.errors import TablesafeError
    from tablesafe.hierarchy import Hierarchy
    from tablesafe.io.apriori import apply_cells, apply_hst
    from tablesafe.io.jj import read_jj, write_jj
    from tablesafe.io.patterns import read_pattern
    from tablesafe.linking import link
    from tablesafe.loss import loss
    from tablesafe.methods import Adjust, Pattern, PublishAll, PublishIntervals, Round, Suppress, Withhold, protect
    from tablesafe.methods.adjust.measures import statistics
    from tablesafe.methods.adjust.publish import guessed
    from tablesafe.methods.adjust.relaxed import Relaxed
    from tablesafe.methods.adjust.statistics import Keep
    from tablesafe.methods.adjust.tabu.options import Tabu
    from tablesafe.methods.intervals.leaks import check_intervals
    from tablesafe.methods.suppress.stability import stability
    from tablesafe.methods.views import SuppressViews, ViewBounds, view_bounds, views
    from tablesafe.pipeline import run
    from tablesafe.problem import Problem, waive
    from tablesafe.quality import Quality, quality
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
    "tablesafe.attack": (
        "AdditiveMidpoint", "AnalyticCentre", "ChebyshevCentre", "HitAndRun", "InteriorMean", "InteriorPoint",
        "MaximumEntropy", "Midpoint", "RandomCentroid", "Scores", "SimplexVertex", "VertexMean", "attack",
    ),
    "tablesafe.attack.adjustment": ("ReverseAdjustment", "reverse_adjustment"),
    "tablesafe.attack.candidates": ("candidate_tables",),
    "tablesafe.attack.parameters": ("infer_p", "shrink"),
    "tablesafe.attack.pattern": ("known_office", "match_pattern"),
    "tablesafe.attack.reconstruction": ("reconstruct",),
    "tablesafe.attack.shrinking": ("ShrunkMidpoint",),
    "tablesafe.attack.trial": ("trial_p", "trial_p_by_method"),
    "tablesafe.audit.audit": ("audit",),
    "tablesafe.errors": ("TablesafeError",),
    "tablesafe.hierarchy": ("Hierarchy",),
    "tablesafe.io.apriori": ("apply_cells", "apply_hst"),
    "tablesafe.io.jj": ("read_jj", "write_jj"),
    "tablesafe.io.patterns": ("read_pattern",),
    "tablesafe.linking": ("link",),
    "tablesafe.loss": ("loss",),
    "tablesafe.methods": (
        "Adjust", "Pattern", "PublishAll", "PublishIntervals", "Round", "Suppress", "Withhold", "protect",
    ),
    "tablesafe.methods.intervals.leaks": ("check_intervals",),
    "tablesafe.methods.suppress.stability": ("stability",),
    "tablesafe.methods.views": ("SuppressViews", "ViewBounds", "view_bounds", "views"),
    "tablesafe.methods.adjust.measures": ("statistics",),
    "tablesafe.methods.adjust.publish": ("guessed",),
    "tablesafe.methods.adjust.relaxed": ("Relaxed",),
    "tablesafe.methods.adjust.statistics": ("Keep",),
    "tablesafe.methods.adjust.tabu.options": ("Tabu",),
    "tablesafe.pipeline": ("run",),
    "tablesafe.problem": ("Problem", "waive"),
    "tablesafe.quality": ("Quality", "quality"),
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
    "AdditiveMidpoint",
    "Adjust",
    "AllOf",
    "AnalyticCentre",
    "AnyOf",
    "ChebyshevCentre",
    "Contributors",
    "Dominance",
    "Hierarchy",
    "HitAndRun",
    "InteriorMean",
    "InteriorPoint",
    "Keep",
    "Levels",
    "LinearSensitivity",
    "Manual",
    "MaximumEntropy",
    "Midpoint",
    "PPercent",
    "Pattern",
    "Problem",
    "PublishAll",
    "PublishIntervals",
    "Quality",
    "RandomCentroid",
    "Relaxed",
    "Release",
    "RequestRule",
    "ReverseAdjustment",
    "Round",
    "Scores",
    "Sensitivity",
    "ShrunkMidpoint",
    "SimplexVertex",
    "Status",
    "Suppress",
    "SuppressViews",
    "Table",
    "TablesafeError",
    "Tabu",
    "Threshold",
    "VertexMean",
    "ViewBounds",
    "Waiver",
    "Withhold",
    "ZeroCells",
    "apply_cells",
    "apply_hst",
    "attack",
    "audit",
    "candidate_tables",
    "check_intervals",
    "guessed",
    "infer_p",
    "known_office",
    "link",
    "loss",
    "match_pattern",
    "protect",
    "quality",
    "read_jj",
    "read_pattern",
    "reconstruct",
    "reverse_adjustment",
    "run",
    "shrink",
    "stability",
    "statistics",
    "tabulate",
    "trial_p",
    "trial_p_by_method",
    "verify",
    "view_bounds",
    "views",
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
