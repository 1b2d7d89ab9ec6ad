"""What the public sees, and what that says about the truth.

A release holds, per cell, a published value or none, and the interval that the release itself implies for the truth:
`[v, v]` for a published cell, the attacker's prior for a suppressed one, the rounding window for a rounded one, the
announced deviation for an adjusted one. So one attacker's linear program audits every method.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tablesafe.core.display import shown
from tablesafe.core.equations import Floats, Mask
from tablesafe.core.errors import InvalidOption, InvalidRelease, Setting
from tablesafe.core.mechanism import Mechanism
from tablesafe.core.problem import Problem
from tablesafe.core.table import RESPONSE, Table
from tablesafe.files.native import to_library

if TYPE_CHECKING:
    from tablesafe.solve.program import Solution

BOUND_DIGITS = 12
"""Of announced bounds that are no whole numbers."""


class Status(IntEnum):
    """What happened to a cell. The office's own view; a release shows only whether a value is there."""

    PUBLISHED = 0
    SENSITIVE = 1
    """Withheld because it is sensitive itself."""
    COMPLEMENTARY = 2
    """Withheld to protect another cell."""
    GIVEN = 3
    """Withheld because somebody asked for it before."""
    BY_DESIGN = 4
    """Never published by design."""
    CHANGED = 5
    """Published with another value: adjusted, rounded, perturbed."""

    @property
    def word(self) -> str:
        """The plain word for it."""
        return self.name.lower().replace("_", " ")


@shown
@dataclass(frozen=True, eq=False)
class Release:
    """Per cell the published value or none, a status, and the interval implied for the truth."""

    table: Table = field(repr=False)
    values: Floats = field(repr=False)
    """NaN where nothing is published."""
    lower: Floats = field(repr=False)
    upper: Floats = field(repr=False)
    status: NDArray[np.uint8] = field(repr=False)
    """A `Status` per cell."""
    method: str = "suppression"
    solution: Solution | None = field(default=None, repr=False)  # its objective adds up withheld values
    intervals: Mask | None = field(default=None, repr=False)
    """Withheld cells for which the interval is published in the place of the value."""
    mechanism: Mechanism | None = field(default=None, repr=False)
    """How chance turned true counts into the published ones, where a method works so; never written to a file."""
    judged: tuple[Floats, Floats] | None = field(default=None, repr=False)
    """Bounds that the audit takes in the place of `lower` and `upper`, where these may be wider than what can be
    concluded: no wider than that, hence never too safe. Confidential, never written to a file."""
    private_bounds: bool = field(default=False, repr=False)
    """Whether `lower` and `upper` of changed values follow prior bounds of single cells, which only some attackers
    know: then they are for the audit and not for readers."""
    shows_zeros: bool | None = field(default=None, repr=False)
    """Whether everybody knows that no cell of value zero was withheld (see `Problem`)."""

    @property
    def as_judged(self) -> Self:
        """The release with the bounds that the audit takes."""
        return self if self.judged is None else replace(self, lower=self.judged[0], upper=self.judged[1], judged=None)

    @property
    def tells_what_is_zero(self) -> bool:
        """Whether what is withheld is known not to be zero: by the office's rule, or because zeros are seen shown.

        Not where one is withheld all the same, whatever was said, or where values are published that are not true.
        """
        zero = (self.table.integers == 0) & (self.status != Status.BY_DESIGN)
        if bool((zero & self.suppressed).any()) or bool((self.status == Status.CHANGED).any()):
            return False
        if self.table.structural_zero is not None:
            zero &= ~self.table.structural_zero
        return bool(zero.any()) if self.shows_zeros is None else self.shows_zeros

    @property
    def heading(self) -> str:
        """What the column of values is called: the response variable, unless the cells are of several."""
        taken = self.table.dimensions if self.table.names is None else ("cell",)
        return "value" if RESPONSE in taken or self.table.response in taken else self.table.response

    @property
    def status_heading(self) -> str:
        """What the column of statuses is called: another name where a dimension is called status."""
        return "cell status" if "status" in self.table.dimensions else "status"

    @property
    def suppressed(self) -> Mask:
        """Which cells show no value."""
        return np.isnan(self.values)

    @classmethod
    def from_suppression(
        cls, problem: Problem, mask: NDArray[Any], *, method: str = "suppression", solution: Solution | None = None
    ) -> Self:
        """The release of a suppression pattern, made here or elsewhere; `mask` marks what is withheld.

        Cells withheld by design are withheld in any case. A sensitive cell left in the open is published: the audit
        will say so.
        """
        table = problem.table
        mask = table.whole_mask(np.asarray(mask))
        if mask.shape != (len(table),) or mask.dtype != np.bool_:
            raise InvalidRelease(
                f"A pattern is one boolean per cell ({table.seen:,}); got {mask.dtype} of shape {mask.shape}."
            )
        clash = np.flatnonzero(mask & problem.frozen)
        if clash.size:
            raise InvalidRelease(
                f"Cell {table.describe(int(clash[0]))} is withheld in the pattern, but frozen to be published.",
                hint="unfreeze it, or leave it out of the pattern.",
            )
        hidden = mask | problem.withheld
        status = np.full(len(table), Status.PUBLISHED, dtype=np.uint8)
        status[hidden] = Status.COMPLEMENTARY
        status[hidden & problem.suppressed] = Status.GIVEN
        status[hidden & problem.sensitivity.mask] = Status.SENSITIVE
        status[problem.withheld] = Status.BY_DESIGN
        return cls(
            table,
            np.where(hidden, np.nan, table.value),
            np.where(hidden, problem.lower, table.value),
            np.where(hidden, problem.upper, table.value),
            status,
            method,
            solution,
            shows_zeros=problem.shows_zeros,
        )

    def withholding(self, problem: Problem, cells: Mask) -> Self:
        """The release without the values of some cells."""
        judged = self.as_judged
        status = np.where(problem.sensitivity.mask, Status.SENSITIVE, Status.COMPLEMENTARY)
        status = np.where(problem.suppressed & ~problem.sensitivity.mask, Status.GIVEN, status)
        kept = (self.status == Status.BY_DESIGN) | (np.isnan(self.values) & cells)
        return replace(
            self,
            values=np.where(cells, np.nan, self.values),
            lower=np.where(cells, problem.lower, judged.lower),
            upper=np.where(cells, problem.upper, judged.upper),
            status=np.where(cells & ~kept, status, self.status).astype(np.uint8),
            solution=None,
            judged=None,
        )

    def publishing(self, cells: Mask) -> Self:
        """The release with the true values of some cells."""
        judged, value = self.as_judged, self.table.value
        return replace(
            self,
            values=np.where(cells, value, self.values),
            lower=np.where(cells, value, judged.lower),
            upper=np.where(cells, value, judged.upper),
            status=np.where(cells, Status.PUBLISHED, self.status).astype(np.uint8),
            intervals=None if self.intervals is None else self.intervals & ~cells,
            solution=None,
            judged=None,
        )

    def frame(self, *, labels: bool = False, intervals: bool = False) -> pl.DataFrame:
        """What may be published: the codes and the values, and nothing else.

        Cells withheld by design are left out; a cell withheld because it is sensitive looks like any other. With
        `intervals` the interval that the release announces for each changed value is shown too; where a method
        publishes intervals in the place of withheld values, those are shown in any case. Intervals that follow prior
        bounds of single cells are refused: such bounds are often made from the truth.
        """
        columns: dict[str, Any] = dict(self.table.code_columns())
        if labels:
            for name, hierarchy in self.table.dimensions.items():
                if hierarchy.labels:
                    text = pl.Series([hierarchy.labels.get(code, code) for code in hierarchy.codes], dtype=pl.String)
                    at = self.table.codes[:, list(self.table.dimensions).index(name)].astype(np.uint32)
                    columns[f"{name} label"] = text.gather(at)
        columns[self.heading] = self._shown(self.values)
        word = np.where(self.suppressed, "confidential", "published")
        columns[self.status_heading] = pl.Series(word, dtype=pl.String)
        if intervals or self.intervals is not None:
            lower, upper = self.announced_bounds(intervals=intervals)
            columns["from"], columns["to"] = self._shown(lower), self._shown(upper)
        return pl.DataFrame(columns).filter(pl.Series(self.status != Status.BY_DESIGN))

    def to_pandas(self, *, labels: bool = False, intervals: bool = False) -> Any:
        """What may be published as a pandas frame, codes as categories in the order of their hierarchies."""
        return to_library(self.frame(labels=labels, intervals=intervals), "pandas", self.table.orders)

    def to_native(self, *, labels: bool = False, intervals: bool = False) -> Any:
        """What may be published, in the library that the data came from."""
        frame = self.frame(labels=labels, intervals=intervals)
        return to_library(frame, self.table.library, self.table.orders)

    def announced(self, *, intervals: bool) -> Mask:
        """Cells whose interval readers are told; with `intervals` also those of changed values, unless it must not."""
        if self.intervals is not None:
            return self.intervals
        if intervals and self.private_bounds:
            raise InvalidOption(
                (
                    Setting("intervals", True),
                    " would show every reader the attacker's prior bounds, which differ from cell to cell: "
                    "such bounds are often made from the true values.",
                ),
                hint="publish without intervals, or give the problem one lower and one upper bound for all cells.",
            )
        return ~self.suppressed & intervals

    def announced_bounds(self, *, intervals: bool) -> tuple[Floats, Floats]:
        """The ends of the intervals that readers are told, as they are written; NaN where they are told none."""
        shown = self.announced(intervals=intervals)
        return _rounded(np.where(shown, self.lower, np.nan)), _rounded(np.where(shown, self.upper, np.nan))

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """What may be published, for whatever reads Arrow: `pd.DataFrame.from_arrow(release)`."""
        return self.frame().__arrow_c_stream__(requested_schema)

    def _shown(self, values: Floats) -> pl.Series:
        """Numbers for the public: whole ones without a decimal point."""
        series = pl.Series(values, nan_to_null=True)
        known = values[~np.isnan(values)]
        whole = bool(np.isfinite(known).all()) and bool((known == np.rint(known)).all())
        return series.cast(pl.Int64) if whole else series


def _rounded(bounds: Floats) -> Floats:
    """Bounds without the last bits of floating point, in which one could see that a bound is the true value itself."""
    sizes = np.abs(bounds, where=np.isfinite(bounds), out=np.ones(len(bounds)))
    scale = 10.0 ** (BOUND_DIGITS - np.ceil(np.log10(np.maximum(sizes, 1.0))))
    rough = np.isfinite(bounds) & (bounds != np.rint(bounds))
    return np.where(rough, np.rint(np.where(rough, bounds, 0.0) * scale) / scale, bounds)


def require_problem_and_release(what: str, problem: object, release: object) -> None:
    """Refuse arguments in the wrong order or of the wrong kind before anything is asked of them."""
    if isinstance(problem, Release) and isinstance(release, Problem):
        raise InvalidOption(f"{what} takes the problem first.", hint=f"{what}(problem, release)")
    for given, kind, hint in (
        (problem, Problem, "ts.Problem(table, rules=[…])"),
        (release, Release, "ts.protect(problem, method), or ts.Release.from_suppression(problem, mask)"),
    ):
        if not isinstance(given, kind):
            raise InvalidOption(
                f"{what} takes a problem and a release; got a {type(given).__name__} for the {kind.__name__.lower()}.",
                hint=hint,
            )
