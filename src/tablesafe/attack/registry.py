"""Every attack by its name, in the order in which they are tried: the cheapest first."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from tablesafe.attack.adjustment import ReverseAdjustment
from tablesafe.attack.centroid import RandomCentroid
from tablesafe.attack.entropy import MaximumEntropy
from tablesafe.attack.estimate import Attack
from tablesafe.attack.hit_and_run import HitAndRun
from tablesafe.attack.parameters import ShrunkMidpoint
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
from tablesafe.core.equations import Floats
from tablesafe.core.errors import InvalidOption
from tablesafe.files.read import did_you_mean

ATTACKS: dict[str, type[Attack]] = {
    attack.name: attack
    for attack in (
        PublishedValue, SimplexVertex, InteriorPoint, AnalyticCentre, ChebyshevCentre, MaximumEntropy, Midpoint,
        Shuttle, AdditiveMidpoint, VertexMean, InteriorMean, RandomCentroid, HitAndRun, ShrunkMidpoint,
        ReverseAdjustment,
    )
}  # fmt: skip

ALL = "all"


def choose(names: Sequence[str] = (), *, seed: int | None = None, prior: Floats | None = None) -> tuple[Attack, ...]:
    """The attacks of these names, or all; with the seed and the prior table where they take one."""
    wanted = list(ATTACKS) if not names or ALL in names else [_known(name) for name in dict.fromkeys(names)]
    given = {name: value for name, value in (("seed", seed), ("prior", prior)) if value is not None}
    return tuple(_made(ATTACKS[name], given) for name in wanted)


def _made(kind: Any, given: dict[str, Any]) -> Attack:
    takes = {spec.name for spec in dataclasses.fields(kind)}
    attack: Attack = kind(**{name: value for name, value in given.items() if name in takes})
    return attack


def _known(name: str) -> str:
    """The attack's name, however its words are joined."""
    spelled = {kind.replace("-", " "): kind for kind in ATTACKS}
    plain = name.strip().lower().replace("-", " ").replace("_", " ")
    if plain not in spelled:
        hint = did_you_mean(plain, list(spelled)) or f"there are {', '.join(ATTACKS)}."
        raise InvalidOption(f"There is no attack named {name!r}.", hint=hint)
    return spelled[plain]
