"""Rules: what is sensitive, and how far it must be hidden.

A rule is a frozen dataclass that looks at a table and returns a `Sensitivity`: a mask and protection levels. Several
rules of a problem combine by union and maximum; `AnyOf`, `AllOf`, `Waiver`, `RequestRule` and `Levels` make rules from
rules. Each is loaded when it is asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tablesafe.core.registry import Registry, loader

if TYPE_CHECKING:
    from tablesafe.core.sensitivity import Rule, Sensitivity
    from tablesafe.rules.combined import AllOf, AnyOf, Levels, Manual, RequestRule, Waiver
    from tablesafe.rules.counts import Threshold, ZeroCells
    from tablesafe.rules.groups import GroupDisclosure
    from tablesafe.rules.linear import PQ, Dominance, LinearSensitivity, PPercent

RULES: Registry[Any] = Registry(
    {
        "threshold": "tablesafe.rules.counts:Threshold",
        "p_percent": "tablesafe.rules.linear:PPercent",
        "pq": "tablesafe.rules.linear:PQ",
        "dominance": "tablesafe.rules.linear:Dominance",
        "linear": "tablesafe.rules.linear:LinearSensitivity",
        "zero_cells": "tablesafe.rules.counts:ZeroCells",
        "group": "tablesafe.rules.groups:GroupDisclosure",
        "manual": "tablesafe.rules.combined:Manual",
        "any_of": "tablesafe.rules.combined:AnyOf",
        "all_of": "tablesafe.rules.combined:AllOf",
        "levels": "tablesafe.rules.combined:Levels",
        "waiver": "tablesafe.rules.combined:Waiver",
        "request": "tablesafe.rules.combined:RequestRule",
    }
)
"""The rules by the names that the command line and the job file know."""

__all__ = [
    "PQ",
    "RULES",
    "AllOf",
    "AnyOf",
    "Dominance",
    "GroupDisclosure",
    "Levels",
    "LinearSensitivity",
    "Manual",
    "PPercent",
    "RequestRule",
    "Rule",
    "Sensitivity",
    "Threshold",
    "Waiver",
    "ZeroCells",
]

_SENSITIVITY = "tablesafe.core.sensitivity"
__getattr__ = loader(__name__, {**RULES.kinds, "Rule": _SENSITIVITY, "Sensitivity": _SENSITIVITY})
