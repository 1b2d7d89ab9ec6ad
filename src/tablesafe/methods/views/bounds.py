"""What published views say about the confidential ones: by the matrix operators where exact, else by the audit.

The operators are exact when
- two views are published, perhaps with the total of each slice (a combination of the codes that the views share);
- every further published total follows from view cells that are published themselves, so that it tells nothing new;
- an attacker knows nothing about the cube and the confidential views but that they are not negative.
Confidential views may keep any of the dimensions; entries of the published ones may be withheld, or known to lie in
intervals. In all other cases (three views, totals over withheld entries, prior bounds) the audit's linear programs
answer. Asked for by name, the operators then still give bounds that are true, if not sharp: for k − 1 of the k faces of
a k-dimensional table Σ min over all faces, and Σ max over all pairs of faces (Fréchet bounds), exact for k = 3.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tablesafe.audit.integers import frechet
from tablesafe.audit.intervals import exact_intervals
from tablesafe.audit.system import System
from tablesafe.core.equations import Floats, Integers, Mask
from tablesafe.core.errors import InvalidOption, InvalidProblem, Setting
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release
from tablesafe.methods.views.instance import Axes, Structure
from tablesafe.methods.views.operators import Interval, sums_of_slices

By = Literal["auto", "operators", "audit"]


@dataclass(frozen=True, eq=False)
class ViewBounds:
    """The interval of every confidential cell, and whether it is exact."""

    problem: Problem = field(repr=False)
    cells: NDArray[np.intp] = field(repr=False)
    lower: Floats = field(repr=False)
    upper: Floats = field(repr=False)
    by: str
    """Who says so: the operators or the audit."""
    exact: bool

    @property
    def protected(self) -> Mask:
        """Which intervals reach as far as the protection levels ask."""
        levels, value = self.problem.sensitivity, self.problem.table.value[self.cells]
        slack = 1e-9 * np.maximum(1.0, np.abs(value))
        down, up = value - levels.lower[self.cells], value + levels.upper[self.cells]
        return (self.lower <= down + slack) & (self.upper >= up - slack)

    def frame(self) -> pl.DataFrame:
        """One row per confidential cell: its codes and its interval. Confidential."""
        columns = {
            name: codes.gather(self.cells.astype(np.uint32))
            for name, codes in self.problem.table.code_columns().items()
        }
        return pl.DataFrame({**columns, "lower": self.lower, "upper": self.upper, "protected": self.protected})


def view_bounds(problem: Problem, release: Release | None = None, *, by: By = "auto") -> ViewBounds:
    """The interval that a release (by default one that withholds nothing more) leaves for every sensitive cell.

    `auto` takes the operators where they are exact and the audit elsewhere; either can be asked for by name.
    """
    if by not in {"auto", "operators", "audit"}:
        raise InvalidOption(f"view_bounds' by must be 'auto', 'operators' or 'audit', got {by!r}.")
    if release is None:
        release = Release.from_suppression(problem, problem.suppressed)
    cells = problem.sensitive
    if by != "audit":
        found = _by_operators(problem, release, cells, sharp=by == "auto")
        if found is not None:
            return found
        if by == "operators":
            raise InvalidProblem(
                "The operators know only margins of one cube, without hierarchies, of values that are not negative.",
                hint=(
                    "leave out ",
                    Setting("by", "operators"),
                    ", and the audit answers.",
                ),
            )
    return _by_audit(problem, release, cells)


def _by_audit(problem: Problem, release: Release, cells: NDArray[np.intp]) -> ViewBounds:
    system = System.of(problem, release)
    lower, upper = problem.table.value[cells], problem.table.value[cells]
    position = np.full(len(problem.table), -1, dtype=np.intp)
    position[system.cells] = np.arange(len(system))
    hidden = np.flatnonzero(position[cells] >= 0)
    found = exact_intervals(system, position[cells[hidden]])
    unit = 10.0**problem.table.decimals
    lower[hidden], upper[hidden] = found.lower / unit, found.upper / unit
    return ViewBounds(problem, cells, lower, upper, "audit", True)


def _by_operators(problem: Problem, release: Release, cells: NDArray[np.intp], *, sharp: bool) -> ViewBounds | None:
    structure = Structure.of(problem)
    if structure is None:
        return None
    low = np.maximum(release.lower, problem.lower)
    high = np.minimum(release.upper, problem.upper)
    unknown = np.isin(np.arange(len(low)), structure.inner) | problem.sensitivity.mask
    if bool((low[unknown] != 0).any() or np.isfinite(high[unknown]).any() or (low < 0).any()):
        return None
    shown = [axes for axes, at in structure.margins.items() if bool(((low[at] > 0) | np.isfinite(high[at])).any())]
    faces = [axes for axes in shown if not any(set(axes) < set(other) for other in shown)]
    exact = exact_faces(structure, shown, faces, low == high)
    if sharp and not exact:
        return None
    lower, upper = np.zeros(len(low)), np.full(len(low), np.inf)
    secret = [axes for axes, at in structure.margins.items() if problem.sensitivity.mask[at].any()]
    if exact:
        for axes in secret:
            two = _of_two_faces(structure, (faces[0], faces[1]), axes, low, high)
            lower[structure.margins[axes]], upper[structure.margins[axes]] = two
    else:
        least, most = _of_many_faces(structure, shown, low, high)
        for axes in secret:
            summed = tuple(d for d in range(len(structure.shape)) if d not in axes)
            lower[structure.margins[axes]] = least.sum(axis=summed)
            upper[structure.margins[axes]] = most.sum(axis=summed)
    return ViewBounds(problem, cells, lower[cells], upper[cells], "operators", exact)


def exact_faces(structure: Structure, shown: list[Axes], faces: list[Axes], known: Mask) -> bool:
    """Whether the operators are exact: two faces that span the cube, and totals that tell nothing more."""
    if len(faces) != 2 or set(faces[0]) | set(faces[1]) != set(range(len(structure.shape))):
        return False
    shared = tuple(sorted(set(faces[0]) & set(faces[1])))
    for axes in shown:
        if axes in faces or axes == shared:
            continue
        follows = [face for face in faces if set(axes) < set(face) and _follows(structure, axes, face, known)]
        if not follows:
            return False
    return True


def _follows(structure: Structure, axes: Axes, face: Axes, known: Mask) -> bool:
    """Whether every known total of a margin adds up entries of a face that are all known."""
    summed = tuple(at for at, d in enumerate(face) if d not in axes)
    return bool((known[structure.margins[face]].all(axis=summed) | ~known[structure.margins[axes]]).all())


def _of_two_faces(
    structure: Structure, faces: tuple[Axes, Axes], secret: Axes, low: Floats, high: Floats
) -> tuple[Floats, Floats]:
    """The bounds of a confidential view, in its own shape."""
    one, two = faces
    shared = [d for d in one if d in two]
    rows, columns = [d for d in one if d not in two], [d for d in two if d not in one]
    first, second = (_face(structure, face, shared, low, high) for face in faces)
    keep_s, keep_r, keep_c = ([d for d in part if d in secret] for part in (shared, rows, columns))
    a = first.collapsed(*_groups(structure, rows, keep_r))
    b = second.collapsed(*_groups(structure, columns, keep_c))
    group, count = _groups(structure, shared, keep_s)
    total = None
    if tuple(shared) in structure.margins:
        at = structure.margins[tuple(shared)].ravel()
        total = Interval(low[at], high[at])
    lower, upper = sums_of_slices(a, b, group, count, total)
    order = [*keep_s, *keep_r, *keep_c]
    shape = [structure.shape[d] for d in order]
    back = [order.index(d) for d in secret]
    return lower.reshape(shape).transpose(back), upper.reshape(shape).transpose(back)


def _face(structure: Structure, face: Axes, shared: list[int], low: Floats, high: Floats) -> Interval:
    cells = sliced(structure, face, shared)
    return Interval(low[cells], high[cells])


def sliced(structure: Structure, face: Axes, shared: list[int]) -> Integers:
    """The cells of a face with one row per combination of the shared codes."""
    order = [face.index(d) for d in shared] + [at for at, d in enumerate(face) if d not in shared]
    slices = int(np.prod([structure.shape[d] for d in shared], dtype=np.int64))
    return structure.margins[face].transpose(order).reshape(slices, -1)


def _groups(structure: Structure, axes: list[int], keep: list[int]) -> tuple[Integers, int]:
    """For each combination of the codes of some axes its number when only some of them are kept."""
    sizes = [structure.shape[d] for d in axes]
    index = np.indices(sizes).reshape(len(sizes), int(np.prod(sizes, dtype=np.int64)))
    number = np.zeros(index.shape[1], dtype=np.int64)
    for d in keep:
        number = number * structure.shape[d] + index[axes.index(d)]
    return number, int(np.prod([structure.shape[d] for d in keep], dtype=np.int64))


def _of_many_faces(structure: Structure, shown: list[Axes], low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """Fréchet bounds of the cells of the cube; withheld entries count as unknown."""
    margins: dict[Sequence[int], NDArray[np.generic]] = {
        axes: np.where(low[cells] == high[cells], low[cells], np.nan)
        for axes, cells in structure.margins.items()
        if axes in shown
    }
    return frechet(margins, structure.shape)
