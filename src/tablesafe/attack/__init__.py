"""The attack: what an intruder would guess from a release, and how near to the truth it comes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tablesafe.core.registry import loader

if TYPE_CHECKING:
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

__getattr__ = loader(
    __name__,
    {
        "RandomCentroid": "tablesafe.attack.centroid",
        "MaximumEntropy": "tablesafe.attack.entropy",
        "Attack": "tablesafe.attack.estimate",
        "Density": "tablesafe.attack.estimate",
        "Estimate": "tablesafe.attack.estimate",
        "Guess": "tablesafe.attack.estimate",
        "HitAndRun": "tablesafe.attack.hit_and_run",
        "AdditiveMidpoint": "tablesafe.attack.points",
        "AnalyticCentre": "tablesafe.attack.points",
        "ChebyshevCentre": "tablesafe.attack.points",
        "InteriorPoint": "tablesafe.attack.points",
        "Midpoint": "tablesafe.attack.points",
        "PublishedValue": "tablesafe.attack.points",
        "SimplexVertex": "tablesafe.attack.points",
        "InteriorMean": "tablesafe.attack.programs",
        "VertexMean": "tablesafe.attack.programs",
        "ATTACKS": "tablesafe.attack.registry",
        "Scores": "tablesafe.attack.suite",
        "attack": "tablesafe.attack.suite",
    },
)
