"""What a rule says about each cell: whether it is sensitive, and how far it must be hidden."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from tablesafe.core.display import shown
from tablesafe.core.equations import Floats, Mask
from tablesafe.core.errors import InvalidProblem

if TYPE_CHECKING:
    from tablesafe.core.table import Table


@shown
@dataclass(frozen=True, eq=False)
class Sensitivity:
    """Per cell: sensitive or not, and the lower, upper and sliding protection levels (0 where not sensitive).

    An attacker's interval [lo, hi] for a sensitive cell of value a must reach to a − lower, to a + upper, and be at
    least `sliding` wide. A sensitive cell with all levels 0 must only not be known exactly.
    """

    mask: Mask = field(repr=False)
    lower: Floats = field(repr=False)
    upper: Floats = field(repr=False)
    sliding: Floats = field(repr=False)
    reason: NDArray[np.uint32] = field(repr=False)
    """Bit j is set when `reasons[j]` flagged the cell."""
    reasons: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        mask: Mask,
        lower: Floats | float = 0.0,
        upper: Floats | float | None = None,
        sliding: Floats | float = 0.0,
        *,
        reason: str = "given",
    ) -> Self:
        """Levels for the sensitive cells; the upper level equals the lower unless given."""
        mask = np.asarray(mask, dtype=np.bool_)
        low = _level(mask, lower, "lower")
        high = low if upper is None else _level(mask, upper, "upper")
        return cls(mask, low, high, _level(mask, sliding, "sliding"), mask.astype(np.uint32), (reason,))

    @classmethod
    def none(cls, n: int) -> Self:
        """Nothing is sensitive."""
        zero = np.zeros(n)
        return cls(np.zeros(n, np.bool_), zero, zero, zero, np.zeros(n, np.uint32), ())

    def __or__(self, other: Sensitivity) -> Sensitivity:
        """Sensitive by either, hidden as far as the stricter asks."""
        reasons = tuple(dict.fromkeys([*self.reasons, *other.reasons]))
        if len(reasons) > 32:
            raise InvalidProblem("More than 32 rules cannot be combined.")
        reason = self.reason.copy()  # our own reasons come first in the union, so their bits stay
        for j, name in enumerate(other.reasons):
            bit = np.uint32(1) << np.uint32(reasons.index(name))
            reason |= np.where(other.reason & (np.uint32(1) << np.uint32(j)), bit, np.uint32(0))
        return Sensitivity(
            self.mask | other.mask,
            np.maximum(self.lower, other.lower),
            np.maximum(self.upper, other.upper),
            np.maximum(self.sliding, other.sliding),
            reason,
            reasons,
        )

    def __and__(self, other: Sensitivity) -> Sensitivity:
        """Sensitive only by both, hidden as far as the stricter asks.

        Not as far as the milder: a threshold asks for no level at all, but hiding a cell does not add contributors.
        """
        return (self | other).where(self.mask & other.mask)

    def where(self, keep: Mask) -> Sensitivity:
        """The same for some cells; the others become not sensitive (waivers, for example)."""
        return Sensitivity(
            self.mask & keep,
            np.where(keep, self.lower, 0.0),
            np.where(keep, self.upper, 0.0),
            np.where(keep, self.sliding, 0.0),
            np.where(keep, self.reason, np.uint32(0)),
            self.reasons,
        )

    def why(self, cell: int) -> tuple[str, ...]:
        """The rules that flagged a cell."""
        return tuple(name for j, name in enumerate(self.reasons) if int(self.reason[cell]) >> j & 1)


def _level(mask: Mask, level: Floats | float, name: str) -> Floats:
    array = np.where(mask, np.broadcast_to(np.asarray(level, dtype=np.float64), mask.shape), 0.0)
    if not (np.isfinite(array).all() and (array >= 0).all()):
        raise InvalidProblem(f"The {name} protection levels must be finite and not negative.")
    return array


def reachable(table: Table, lower: Floats) -> Floats:
    """Lower levels cut off at zero, or at one, where everybody knows that nothing is below it.

    Where no contribution can be negative the attacker starts from zero, so that no release could ever make it believe
    less; nor from one, in a table of counts that leaves out empty cells. Cells whose contributions may be negative have
    no such floor.
    """
    return np.where(table.may_be_negative, lower, np.minimum(lower, table.value - table.occupied))


def range_levels(table: Table, percent: float, absolute: float) -> Floats:
    """A safety range around each value: in percent of it, or the same amount for all; the wider of the two.

    Gains and losses may leave next to nothing of a value: where contributions may be negative, the percentage is one of
    the absolute contributions listed, if these are more.
    """
    size = np.abs(table.value)
    if table.contributors is not None and bool(table.may_be_negative.any()) and "shadow" not in table.columns:
        kept = table.contributors
        seen = np.abs(kept.amount if kept.weighted is None else kept.weighted).sum(axis=1)
        size = np.where(table.may_be_negative, np.maximum(size, seen), size)
    return np.maximum(percent / 100 * size, absolute)


class Rule(Protocol):
    """A rule looks at a table and says what is sensitive."""

    def __call__(self, table: Table) -> Sensitivity: ...
