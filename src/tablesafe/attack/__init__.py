"""The attack: what an intruder would guess from a release, and how near to the truth it comes."""

from __future__ import annotations

from tablesafe.attack.centroid import RandomCentroid
from tablesafe.attack.entropy import MaximumEntropy
from tablesafe.attack.estimate import Attack, Density, Estimate, Guess
from tablesafe.attack.hit_and_run import HitAndRun
from tablesafe.attack.points import (
    AdditiveMidpoint,
    AnalyticCentre,
    ChebyshevCentre,
    InteriorPoint,
    Midpoint,
    PublishedValue,
    SimplexVertex,
)
from tablesafe.attack.programs import InteriorMean, VertexMean
from tablesafe.attack.registry import ATTACKS
from tablesafe.attack.suite import Scores, attack

__all__ = [
    "ATTACKS",
    "AdditiveMidpoint",
    "AnalyticCentre",
    "Attack",
    "ChebyshevCentre",
    "Density",
    "Estimate",
    "Guess",
    "HitAndRun",
    "InteriorMean",
    "InteriorPoint",
    "MaximumEntropy",
    "Midpoint",
    "PublishedValue",
    "RandomCentroid",
    "Scores",
    "SimplexVertex",
    "VertexMean",
    "attack",
]
