"""Compare rules before choosing one: which flags more, what one is in terms of another, and does it add up.

With the shares of the largest and the second-largest contributor as coordinates, every cell lies in the triangle with
corners (0, 0), (1, 0) and (½, ½), and a rule that weighs contributors cuts it in two along a straight line. So rules
are compared by corners of polygons, in exact fractions. The others are taken to be many and small, which matters only
to rules that look at a third contributor.

Source: Federal Committee on Statistical Methodology, Statistical Policy Working Paper 22, chapter on methods for
tabular data, Table 1 and technical notes.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from tablesafe.core.equations import Floats, Mask
from tablesafe.core.errors import InvalidOption
from tablesafe.core.options import exactly
from tablesafe.core.sensitivity import Rule
from tablesafe.core.table import Contributors, Table
from tablesafe.rules.combined import AnyOf
from tablesafe.rules.linear import PQ, Dominance, LinearSensitivity, Measure, PPercent

Family = Literal["p_percent", "pq", "dominance_1", "dominance_2"]
"""Rules with one parameter: p%, pq for a given q, (1,k) and (2,k)."""
Point: TypeAlias = tuple[Fraction, Fraction]
Polygon: TypeAlias = tuple[Point, ...]

TRIANGLE: Polygon = (
    (Fraction(0), Fraction(0)),
    (Fraction(1), Fraction(0)),
    (Fraction(1, 2), Fraction(1, 2)),
)
"""Every cell: the second-largest share is no more than the largest, and both together no more than all."""


def measures(rule: Rule) -> tuple[Measure, ...]:
    """The linear measures of which one above zero makes a cell sensitive."""
    match rule:
        case PPercent() | PQ() | Dominance() | LinearSensitivity():
            return (rule.measure,)
        case AnyOf():
            return tuple(measure for part in rule.rules for measure in measures(part))
        case _:
            raise InvalidOption(
                f"{type(rule).__name__} does not weigh contributors, so it has no region of its own.",
                hint="PPercent, PQ, Dominance, LinearSensitivity, or an AnyOf of these.",
            )


def as_linear(rule: Rule) -> LinearSensitivity:
    """The rule as a linear sensitivity measure with a weight of 1 for the largest contributor.

    This is the scale of Working Paper 22: `S = x1 − (100/p)·rest` for p%, and `S = x1 + … + xn − k/(100 − k)·rest` for
    (n,k).
    """
    measure = _only_measure(rule)
    first = measure.weights[0]
    if first <= 0:
        raise InvalidOption("The weight of the largest contributor must be above zero to scale the others by it.")
    return LinearSensitivity(
        weights=tuple(float(weight / first) for weight in measure.weights),
        rest=float(-1 / first),
        sampling_weights=measure.sampling_weights,
        negative=measure.negative,
    )


def sensitivity_of(rule: Rule, contributions: Sequence[float] | Floats) -> float:
    """S of one cell with these contributions, in the scale of `as_linear` (a `LinearSensitivity` keeps its own)."""
    linear = rule if isinstance(rule, LinearSensitivity) else as_linear(rule)
    weights = [exactly(weight) for weight in linear.weights]
    ordered = sorted((exactly(abs(x)) for x in contributions), reverse=True)
    padded = weights + [exactly(linear.rest)] * max(len(ordered) - len(weights), 0)
    return float(sum((w * x for w, x in zip(padded, ordered, strict=False)), Fraction(0)))


def sensitive_at(rule: Rule, first: ArrayLike, second: ArrayLike) -> Mask:
    """Whether a rule flags a cell with these shares of the largest and second-largest contributor.

    Any rule will do: it is applied to a table of such cells, with many small others and as many contributors as any
    threshold may ask for.
    """
    one, other = np.broadcast_arrays(np.asarray(first, np.float64), np.asarray(second, np.float64))
    a, b = one.ravel(), other.ravel()
    if bool(((b < 0) | (b > a) | (a + b > 1 + 1e-12)).any()):
        raise InvalidOption("Shares must lie in the triangle: 0 ≤ second ≤ first, and first + second ≤ 1.")
    mask: Mask = rule(_cells_with_shares(a, b, depth=_depth(rule))).mask
    return mask.reshape(one.shape)


def safe_region(rule: Rule) -> Polygon:
    """The corners of the part of the triangle that a rule calls safe; it is convex."""
    region = TRIANGLE
    for measure in measures(rule):
        region = _clip(region, measure, side=-1)
    return region


def convert(
    rule: Rule, to: Family, *, conservatism: Literal["more", "less"], q: float = 100.0
) -> PPercent | PQ | Dominance:
    """The nearest rule of another family that is more, or less, conservative.

    `more`: the mildest one that flags every cell that `rule` flags. `less`: the strictest one that flags none that
    `rule` does not. Where no rule of that family is, an error says so. Exact up to the rounding of its parameter.
    """
    if to not in get_args(Family):
        raise InvalidOption(f"There is no family of rules {to!r}: there are {', '.join(map(repr, get_args(Family)))}.")
    if conservatism not in {"more", "less"}:
        raise InvalidOption(f"conservatism must be 'more' or 'less', got {conservatism!r}.")
    if conservatism == "more":
        corners = [point for measure in measures(rule) for point in _clip(TRIANGLE, measure, side=1)]
    else:
        corners = list(safe_region(rule))
    found = _nearest(to, corners, strictest=conservatism == "less", q=q)
    if found is None:
        raise InvalidOption(
            f"No rule of the family {to!r} is {conservatism} conservative than {describe(rule)} for every cell.",
            hint="ask for the other direction, or for another family.",
        )
    return found


def is_subadditive(rule: Rule) -> bool:
    """Whether a cell joined from two cells is never more sensitive than they are together.

    Only then does every union of safe cells stay safe. It holds for a linear measure exactly when the weights never
    increase from the largest contributor to the rest (Cox 1981).
    """
    return counterexample(rule) is None


def counterexample(rule: Rule) -> tuple[Floats, Floats] | None:
    """Two cells, as the contributions of the same respondents, that are more sensitive joined than apart; or None.

    Where the weight of place j + 1 exceeds that of place j, take j equal respondents in each cell, all but one of them
    the same: joined, the two that differ take places j and j + 1 instead of j twice.
    """
    measure = _only_measure(rule)
    weights = [*measure.weights, Fraction(-1)]
    for j in range(len(weights) - 1):
        if weights[j + 1] > weights[j]:
            one, other = np.zeros(j + 2), np.zeros(j + 2)
            one[: j + 1] = 1.0
            other[:j] = other[j + 1] = 1.0
            return one, other
    return None


def describe(rule: Rule) -> str:
    """A rule in the field's short notation, for legends. It names parameters, so it is the office's secret."""
    match rule:
        case PPercent():
            return f"p% with p = {rule.p:g}" + _coalition(rule.coalition)
        case PQ():
            return f"pq with p = {rule.p:g}, q = {rule.q:g}" + _coalition(rule.coalition)
        case Dominance():
            return f"({rule.n}, {rule.k:g}) dominance"
        case LinearSensitivity():
            return f"linear {', '.join(f'{w:g}' for w in rule.weights)}; rest {rule.rest:g}"
        case AnyOf():
            return " or ".join(describe(part) for part in rule.rules)
        case _:
            return type(rule).__name__


def _coalition(size: int) -> str:
    return "" if size == 1 else f", coalition of {size}"


def _only_measure(rule: Rule) -> Measure:
    found = measures(rule)
    if len(found) != 1:
        raise InvalidOption(f"{describe(rule)} is several measures, not one.", hint="look at its parts one by one.")
    return found[0]


def _at(measure: Measure, point: Point) -> Fraction:
    """The measure of a cell with total 1, of which the largest hold these shares and small others the rest."""
    first, second = point
    weights = [*measure.weights, Fraction(-1)]
    return weights[0] * first + weights[1] * second - (1 - first - second)


def _clip(polygon: Polygon, measure: Measure, side: Literal[1, -1]) -> Polygon:
    """The part of a convex polygon on one side of a measure's line, the line included: 1 is the sensitive side."""
    out: list[Point] = []
    for here, there in zip(polygon, polygon[1:] + polygon[:1], strict=True):
        h, t = side * _at(measure, here), side * _at(measure, there)
        if h >= 0:
            out.append(here)
        if h * t < 0:
            share = h / (h - t)
            out.append((here[0] + share * (there[0] - here[0]), here[1] + share * (there[1] - here[1])))
    return tuple(dict.fromkeys(out))


def _nearest(to: Family, corners: Sequence[Point], *, strictest: bool, q: float) -> PPercent | PQ | Dominance | None:
    """The rule whose line touches the corners from the right side."""
    if not corners or (not strictest and any(first == 0 for first, _ in corners)):
        return None
    if to in {"p_percent", "pq"}:
        ratios = [(1 - first - second) / first for first, second in corners if first > 0]
        if not ratios:
            return None
        ratio = min(ratios) if strictest else max(ratios)
        top = exactly(q) if to == "pq" else Fraction(100)
        if not (0 < ratio < 1 or (ratio == 1 and to == "p_percent")):
            return None
        return PPercent(p=float(100 * ratio)) if to == "p_percent" else PQ(p=float(ratio * top), q=q)
    n = 1 if to == "dominance_1" else 2
    shares = [sum(point[:n], Fraction(0)) for point in corners]
    share = max(shares) if strictest else min(shares)
    return Dominance(n=n, k=float(100 * share)) if 0 < share < 1 else None


def _depth(rule: Any) -> int:
    """How many contributors a rule, or any rule inside it, may look at."""
    inner = [*getattr(rule, "rules", ()), *([rule.of] if hasattr(rule, "of") else [])]
    own = len(rule.measure.weights) if hasattr(rule, "measure") else 2
    return max([own, 2, *(_depth(part) for part in inner)])


def _cells_with_shares(first: Floats, second: Floats, depth: int) -> Table:
    n, scale = len(first), 10**12
    amount = np.zeros((n, depth))
    amount[:, 0], amount[:, 1] = np.rint(first * scale), np.rint(second * scale)
    many = np.full(n, 10**6, dtype=np.int64)
    return Table(
        np.full(n, scale, dtype=np.int64),
        0,
        sparse.csr_array((0, n), dtype=np.int8),
        np.zeros(0, np.int64),
        names=np.arange(n),
        codes=np.zeros((n, 0), np.int32),
        count=many,
        holdings=many,
        contributors=Contributors(amount, np.full(amount.shape, -1, dtype=np.int64)),
    )
