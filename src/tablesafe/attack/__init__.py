"""The attack: what an intruder would guess from a release, and how near to the truth it comes."""

from __future__ import annotations

from tablesafe.attack.centroid import RandomCentroid
from tablesafe.attack.density import Density
from tablesafe.attack.entropy import MaximumEntropy
from tablesafe.attack.estimate import Estimate
from tablesafe.attack.guess import Attack, Guess
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
from tablesafe.attack.sampling import HitAndRun
from tablesafe.attack.scores import Scores
from tablesafe.attack.suite import attack

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
