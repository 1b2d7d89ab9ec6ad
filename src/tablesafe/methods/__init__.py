"""Methods turn a problem into a release. Each is a frozen dataclass with a `protect`; `METHODS` names them all."""

from __future__ import annotations

from typing import ClassVar, Protocol

from tablesafe.methods.adjust.method import Adjust
from tablesafe.methods.cell_key.method import CellKey
from tablesafe.methods.given import Pattern, PublishAll, Withhold
from tablesafe.methods.impute.method import BlankAndImpute
from tablesafe.methods.intervals.method import PublishIntervals
from tablesafe.methods.noise.method import Noise
from tablesafe.methods.round.method import Round
from tablesafe.methods.small_counts.method import SmallCounts
from tablesafe.methods.suppress.method import Suppress
from tablesafe.methods.swap.method import Swap
from tablesafe.methods.views import SuppressViews
from tablesafe.problem import Problem
from tablesafe.release import Release

__all__ = [
    "METHODS",
    "Adjust",
    "BlankAndImpute",
    "CellKey",
    "Method",
    "Noise",
    "Pattern",
    "PublishAll",
    "PublishIntervals",
    "Round",
    "SmallCounts",
    "Suppress",
    "SuppressViews",
    "Swap",
    "Withhold",
    "protect",
]


class Method(Protocol):
    """A way to protect: its options are its fields, each with its help."""

    name: ClassVar[str]

    def protect(self, problem: Problem) -> Release: ...


METHODS: dict[str, type[Method]] = {
    method.name: method
    for method in (
        PublishAll,
        Withhold,
        Pattern,
        Suppress,
        Adjust,
        Round,
        SmallCounts,
        PublishIntervals,
        SuppressViews,
        CellKey,
        Noise,
        Swap,
        BlankAndImpute,
    )
}
"""Every method by the name that a job file calls it."""


def protect(problem: Problem, method: Method) -> Release:
    """Protect a problem by a method; the release still has to pass its audit."""
    return method.protect(problem)
