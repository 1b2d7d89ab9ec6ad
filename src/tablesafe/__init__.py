"""Make statistical tables safe to publish, and prove it.

Every public name lives here and is loaded when it is first used, so that `tablesafe --help` does not load a solver.
`ts.audit`, `ts.tabulate`, `ts.verify`, `ts.attack`, `ts.loss` and `ts.report` are the functions; the modules of the
same names are reached by `from tablesafe.audit.system import System`. `ts.plots` and `ts.experiments` are modules:
`ts.plots.intervals(findings)`.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tablesafe import experiments as experiments
    from tablesafe.attack import (
        AdditiveMidpoint,
        AnalyticCentre,
        ChebyshevCentre,
        HitAndRun,
        InteriorMean,
        InteriorPoint,
        MaximumEntropy,
        Midpoint,
        PublishedValue,
        RandomCentroid,
        ReverseAdjustment,
        Scores,
        ShrunkMidpoint,
        Shuttle,
        SimplexVertex,
        VertexMean,
        attack,
        candidate_tables,
        infer_p,
        known_office,
        match_pattern,
        reverse_adjustment,
        shrink,
    )
    from tablesafe.attack.reconstruction import reconstruct
    from tablesafe.attack.trial import trial_p, trial_p_by_method
    from tablesafe.audit.audit import Audit, audit
    from tablesafe.audit.differencing.difference import difference
    from tablesafe.audit.differencing.disclosures import Published
    from tablesafe.batch_jobs.export import export_tauargus
    from tablesafe.core.errors import TablesafeError
    from tablesafe.core.hierarchy import Hierarchy
    from tablesafe.core.linking import link
    from tablesafe.core.posterior import Posterior, posterior
    from tablesafe.core.problem import Problem, waive
    from tablesafe.core.release import Release, Status
    from tablesafe.core.table import Contributors, Table
    from tablesafe.io.apriori import apply_cells
    from tablesafe.io.crosstab import read_crosstab
    from tablesafe.io.dataset import Dataset
    from tablesafe.io.jj import read_jj, write_jj
    from tablesafe.io.jsonstat import read_jsonstat, write_jsonstat
    from tablesafe.io.patterns import read_pattern
    from tablesafe.io.ptable import read_perturbation, read_perturbations, write_perturbation
    from tablesafe.io.px import read_px, write_px
    from tablesafe.io.sdmx import read_sdmx, write_sdmx
    from tablesafe.linked_views import views
    from tablesafe.loss import loss
    from tablesafe.loss.noise import NoiseMeasures, noise_measures
    from tablesafe.loss.quality import Quality, quality
    from tablesafe.loss.records import distances
    from tablesafe.loss.statistics import statistics
    from tablesafe.methods import (
        Adjust,
        BlankAndImpute,
        CellKey,
        Noise,
        Pattern,
        PublishAll,
        PublishIntervals,
        Round,
        SmallCounts,
        Suppress,
        Swap,
        Withhold,
        protect,
    )
    from tablesafe.methods.adjust.aims import Keep, Relaxed, Tabu
    from tablesafe.methods.adjust.publish import guessed
    from tablesafe.methods.cell_key.design import design_perturbation
    from tablesafe.methods.cell_key.magnitude import Magnitude
    from tablesafe.methods.cell_key.table import PerturbationTable
    from tablesafe.methods.intervals.leaks import check_intervals
    from tablesafe.methods.records.behind import Edited
    from tablesafe.methods.records.measures import chances
    from tablesafe.methods.redesign.proposals import Proposals, redesign
    from tablesafe.methods.redesign.steps import Step
    from tablesafe.methods.suppress.stability import stability
    from tablesafe.methods.views import SuppressViews
    from tablesafe.methods.views.bounds import ViewBounds, view_bounds
    from tablesafe.methods.views.program import view_big_m
    from tablesafe.pipeline import run
    from tablesafe.report import plots as plots
    from tablesafe.report.frontier import Frontier, frontier
    from tablesafe.report.progress import Trace
    from tablesafe.report.writing import report
    from tablesafe.rules import (
        PQ,
        AllOf,
        AnyOf,
        Dominance,
        GroupDisclosure,
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
    from tablesafe.tabulate import Columns, Records, tabulate
    from tablesafe.tauargus.apriori import apply_hst
    from tablesafe.tauargus.cell_keys import cell_key_from_metadata
    from tablesafe.verify import verify
    from tablesafe.work.run import Attackers, Run

__version__ = "0.1.0"

_HOMES = {
    "tablesafe.attack": (
        "AdditiveMidpoint", "AnalyticCentre", "ChebyshevCentre", "HitAndRun", "InteriorMean", "InteriorPoint",
        "MaximumEntropy", "Midpoint", "PublishedValue", "RandomCentroid", "ReverseAdjustment", "Scores",
        "ShrunkMidpoint", "Shuttle", "SimplexVertex", "VertexMean", "attack", "candidate_tables", "infer_p",
        "known_office", "match_pattern", "reverse_adjustment", "shrink",
    ),
    "tablesafe.attack.reconstruction": ("reconstruct",),
    "tablesafe.attack.trial": ("trial_p", "trial_p_by_method"),
    "tablesafe.audit.audit": ("Audit", "audit"),
    "tablesafe.audit.differencing.difference": ("difference",),
    "tablesafe.audit.differencing.disclosures": ("Published",),
    "tablesafe.core.errors": ("TablesafeError",),
    "tablesafe.core.hierarchy": ("Hierarchy",),
    "tablesafe.io.apriori": ("apply_cells",),
    "tablesafe.tauargus.apriori": ("apply_hst",),
    "tablesafe.io.jj": ("read_jj", "write_jj"),
    "tablesafe.io.dataset": ("Dataset",),
    "tablesafe.io.jsonstat": ("read_jsonstat", "write_jsonstat"),
    "tablesafe.io.px": ("read_px", "write_px"),
    "tablesafe.io.crosstab": ("read_crosstab",),
    "tablesafe.io.sdmx": ("read_sdmx", "write_sdmx"),
    "tablesafe.io.patterns": ("read_pattern",),
    "tablesafe.io.ptable": ("read_perturbation", "read_perturbations", "write_perturbation"),
    "tablesafe.tauargus.cell_keys": ("cell_key_from_metadata",),
    "tablesafe.core.linking": ("link",),
    "tablesafe.loss": ("loss",),
    "tablesafe.methods": (
        "Adjust", "BlankAndImpute", "CellKey", "Noise", "Pattern", "PublishAll", "PublishIntervals", "Round",
        "SmallCounts", "Suppress", "Swap", "Withhold", "protect",
    ),
    "tablesafe.methods.intervals.leaks": ("check_intervals",),
    "tablesafe.methods.records.behind": ("Edited",),
    "tablesafe.loss.records": ("distances",),
    "tablesafe.methods.records.measures": ("chances",),
    "tablesafe.methods.redesign.proposals": ("Proposals", "redesign"),
    "tablesafe.methods.redesign.steps": ("Step",),
    "tablesafe.methods.suppress.stability": ("stability",),
    "tablesafe.methods.views": ("SuppressViews",),
    "tablesafe.methods.views.bounds": ("ViewBounds", "view_bounds"),
    "tablesafe.linked_views": ("views",),
    "tablesafe.methods.views.program": ("view_big_m",),
    "tablesafe.loss.statistics": ("statistics",),
    "tablesafe.methods.adjust.publish": ("guessed",),
    "tablesafe.methods.adjust.aims": ("Keep", "Relaxed", "Tabu"),
    "tablesafe.methods.cell_key.design": ("design_perturbation",),
    "tablesafe.methods.cell_key.magnitude": ("Magnitude",),
    "tablesafe.loss.noise": ("NoiseMeasures", "noise_measures"),
    "tablesafe.methods.cell_key.table": ("PerturbationTable",),
    "tablesafe.pipeline": ("run",),
    "tablesafe.batch_jobs.export": ("export_tauargus",),
    "tablesafe.core.posterior": ("Posterior", "posterior"),
    "tablesafe.core.problem": ("Problem", "waive"),
    "tablesafe.loss.quality": ("Quality", "quality"),
    "tablesafe.core.release": ("Release", "Status"),
    "tablesafe.report.frontier": ("Frontier", "frontier"),
    "tablesafe.report.progress": ("Trace",),
    "tablesafe.report.writing": ("report",),
    "tablesafe.rules": (
        "PQ", "AllOf", "AnyOf", "Dominance", "GroupDisclosure", "Levels", "LinearSensitivity", "Manual", "PPercent",
        "RequestRule", "Sensitivity", "Threshold", "Waiver", "ZeroCells",
    ),
    "tablesafe.core.table": ("Contributors", "Table"),
    "tablesafe.tabulate": ("Columns", "Records", "tabulate"),
    "tablesafe.verify": ("verify",),
    "tablesafe.work.run": ("Attackers", "Run"),
}  # fmt: skip
_MODULES = {"experiments": "tablesafe.experiments", "plots": "tablesafe.report.plots"}
_HOME = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [
    "PQ",
    "AdditiveMidpoint",
    "Adjust",
    "AllOf",
    "AnalyticCentre",
    "AnyOf",
    "Attackers",
    "Audit",
    "BlankAndImpute",
    "CellKey",
    "ChebyshevCentre",
    "Columns",
    "Contributors",
    "Dataset",
    "Dominance",
    "Edited",
    "Frontier",
    "GroupDisclosure",
    "Hierarchy",
    "HitAndRun",
    "InteriorMean",
    "InteriorPoint",
    "Keep",
    "Levels",
    "LinearSensitivity",
    "Magnitude",
    "Manual",
    "MaximumEntropy",
    "Midpoint",
    "Noise",
    "NoiseMeasures",
    "PPercent",
    "Pattern",
    "PerturbationTable",
    "Posterior",
    "Problem",
    "Proposals",
    "PublishAll",
    "PublishIntervals",
    "Published",
    "PublishedValue",
    "Quality",
    "RandomCentroid",
    "Records",
    "Relaxed",
    "Release",
    "RequestRule",
    "ReverseAdjustment",
    "Round",
    "Run",
    "Scores",
    "Sensitivity",
    "ShrunkMidpoint",
    "Shuttle",
    "SimplexVertex",
    "SmallCounts",
    "Status",
    "Step",
    "Suppress",
    "SuppressViews",
    "Swap",
    "Table",
    "TablesafeError",
    "Tabu",
    "Threshold",
    "Trace",
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
    "cell_key_from_metadata",
    "chances",
    "check_intervals",
    "design_perturbation",
    "difference",
    "distances",
    "export_tauargus",
    "frontier",
    "guessed",
    "infer_p",
    "known_office",
    "link",
    "loss",
    "match_pattern",
    "noise_measures",
    "posterior",
    "protect",
    "quality",
    "read_crosstab",
    "read_jj",
    "read_jsonstat",
    "read_pattern",
    "read_perturbation",
    "read_perturbations",
    "read_px",
    "read_sdmx",
    "reconstruct",
    "redesign",
    "report",
    "reverse_adjustment",
    "run",
    "shrink",
    "stability",
    "statistics",
    "tabulate",
    "trial_p",
    "trial_p_by_method",
    "verify",
    "view_big_m",
    "view_bounds",
    "views",
    "waive",
    "write_jj",
    "write_jsonstat",
    "write_perturbation",
    "write_px",
    "write_sdmx",
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        value: Any = import_module(_MODULES[name])
    elif name in _HOME:
        value = getattr(import_module(_HOME[name]), name)
    else:
        raise AttributeError(f"module 'tablesafe' has no attribute {name!r}")
    setattr(sys.modules[__name__], name, value)
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, *_MODULES, "__version__"])


class _Package(ModuleType):
    """Keeps public functions in place when Python binds the module of the same name."""

    def __setattr__(self, name: str, value: object) -> None:
        if not (isinstance(value, ModuleType) and name in _HOME):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
