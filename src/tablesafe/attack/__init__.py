"""The attack: what an intruder would guess from a release, and how near to the truth it comes.

Every attack of the registry has its name here, and is loaded when it is asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tablesafe.attack.registry import ATTACKS
from tablesafe.core.registry import loader

if TYPE_CHECKING:
    from tablesafe.attack.adjustment import ReverseAdjustment, reverse_adjustment
    from tablesafe.attack.centroid import RandomCentroid
    from tablesafe.attack.entropy import MaximumEntropy
    from tablesafe.attack.estimate import Attack, Density, Estimate, Guess
    from tablesafe.attack.hit_and_run import HitAndRun
    from tablesafe.attack.parameters import ShrunkMidpoint, infer_p, shrink
    from tablesafe.attack.pattern import candidate_tables, known_office, match_pattern
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
    from tablesafe.attack.shuttle import Shuttle
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
    "ReverseAdjustment",
    "Scores",
    "ShrunkMidpoint",
    "Shuttle",
    "SimplexVertex",
    "VertexMean",
    "attack",
    "candidate_tables",
    "infer_p",
    "known_office",
    "match_pattern",
    "reverse_adjustment",
    "shrink",
]

__getattr__ = loader(
    __name__,
    {
        **ATTACKS.kinds,
        **dict.fromkeys(("Attack", "Density", "Estimate", "Guess"), "tablesafe.attack.estimate"),
        **dict.fromkeys(("Scores", "attack"), "tablesafe.attack.suite"),
        **dict.fromkeys(("infer_p", "shrink"), "tablesafe.attack.parameters"),
        **dict.fromkeys(("candidate_tables", "known_office", "match_pattern"), "tablesafe.attack.pattern"),
        "reverse_adjustment": "tablesafe.attack.adjustment",
    },
)
