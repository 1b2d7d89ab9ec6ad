"""Every attack by its name, in the order in which they are tried: the cheapest first."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tablesafe.core.errors import InvalidOption
from tablesafe.core.registry import Registry
from tablesafe.files.read import did_you_mean

if TYPE_CHECKING:
    from tablesafe.attack.estimate import Attack
    from tablesafe.core.equations import Floats

ATTACKS: Registry[type[Attack]] = Registry(
    {
        "published value": "tablesafe.attack.points:PublishedValue",
        "simplex vertex": "tablesafe.attack.points:SimplexVertex",
        "interior point": "tablesafe.attack.points:InteriorPoint",
        "analytic centre": "tablesafe.attack.points:AnalyticCentre",
        "chebyshev centre": "tablesafe.attack.points:ChebyshevCentre",
        "maximum entropy": "tablesafe.attack.entropy:MaximumEntropy",
        "midpoint": "tablesafe.attack.points:Midpoint",
        "shuttle": "tablesafe.attack.shuttle:Shuttle",
        "additive midpoint": "tablesafe.attack.points:AdditiveMidpoint",
        "mean of vertices": "tablesafe.attack.programs:VertexMean",
        "mean of interior solutions": "tablesafe.attack.programs:InteriorMean",
        "random centroids": "tablesafe.attack.centroid:RandomCentroid",
        "hit-and-run": "tablesafe.attack.hit_and_run:HitAndRun",
        "shrunk midpoint": "tablesafe.attack.parameters:ShrunkMidpoint",
        "reverse adjustment": "tablesafe.attack.adjustment:ReverseAdjustment",
    }
)
"""Every attack by its name."""

ALL = "all"


def choose(names: Sequence[str] = (), *, seed: int | None = None, prior: Floats | None = None) -> tuple[Attack, ...]:
    """The attacks of these names, or all; with the seed and the prior table where they take one."""
    given = {name: value for name, value in (("seed", seed), ("prior", prior)) if value is not None}
    return tuple(_made(ATTACKS[name], given) for name in chosen(names))


def chosen(names: Sequence[str] = ()) -> list[str]:
    """The names of these attacks as they are registered, or of all."""
    return list(ATTACKS) if not names or ALL in names else [_known(name) for name in dict.fromkeys(names)]


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
