"""The attack: what an intruder would guess from a release, and how near to the truth it comes."""

from __future__ import annotations

from tablesafe.attack.estimate import Estimate
from tablesafe.attack.points import ATTACKS, AnalyticCentre, Attack, ChebyshevCentre, Midpoint, SimplexVertex
from tablesafe.attack.suite import attack

__all__ = [
    "ATTACKS",
    "AnalyticCentre",
    "Attack",
    "ChebyshevCentre",
    "Estimate",
    "Midpoint",
    "SimplexVertex",
    "attack",
]
