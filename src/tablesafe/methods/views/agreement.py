"""Do views of one cube agree, and what cube could they come from?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tablesafe.core.equations import Integers
from tablesafe.core.errors import InvalidTable, SolverFailure
from tablesafe.methods.views.reading import View, words
from tablesafe.solve.program import SolveStatus
from tablesafe.solve.views import whole_point

Margins = Mapping[View, Integers]


def refuse_contradictions(margins: Margins, codes: Mapping[str, Sequence[str]], decimals: int) -> None:
    """Two views must have the same sums over the dimensions that they share."""
    for (one, first), (two, second) in combinations(margins.items(), 2):
        shared = [name for name in one if name in two]
        left, right = added_up(first, one, shared), added_up(second, two, shared)
        bad = np.argwhere(left != right)
        if bad.size:
            at = tuple(bad[0].tolist())
            where = ", ".join(f"{name}={codes[name][i]}" for name, i in zip(shared, at, strict=True))
            sums = [f"{int(x[at]) / 10**decimals:,.{decimals}f}" for x in (left, right)]
            more = f" ({len(bad) - 1:,} more such sums differ.)" if len(bad) > 1 else ""
            raise InvalidTable(
                f"The views {words(one)} and {words(two)} contradict each other: {f'for {where} ' if where else ''}"
                f"the first adds up to {sums[0]}, the second to {sums[1]}.{more}\n\n"
                "Hint: were both made from the same records? Correct one of them."
            )


def added_up(array: NDArray[np.int64], view: Sequence[str], keep: Sequence[str]) -> Integers:
    """The sums over all dimensions but some, in the order of these."""
    left = [name for name in view if name in keep]
    sums = array.sum(axis=tuple(d for d, name in enumerate(view) if name not in keep))
    return np.asarray(np.transpose(sums, [left.index(name) for name in keep]), dtype=np.int64)


def consistent_cube(
    margins: Margins, sizes: Mapping[str, int], *, more: Margins, limit: int, time_limit_s: float
) -> Integers:
    """Some cube of whole numbers that has all these margins, in the order of `sizes`.

    Views of which each new one meets the earlier ones inside one of them are joined slice by slice, in closed form.
    Others, and further margins `more` as long as the cube has at most `limit` cells, need an integer program.
    """
    joined = _joined(margins, sizes)
    cells = int(np.prod(list(sizes.values())))
    fits = joined is not None and all(
        np.array_equal(added_up(joined, tuple(sizes), view), array) for view, array in more.items()
    )
    if joined is not None and (fits or cells > limit):
        return joined
    matrix, right = margin_sums({**margins, **more}, sizes)
    status, found = whole_point(matrix, right, time_limit_s=time_limit_s)
    if found is not None:
        return found.reshape(tuple(sizes.values()))
    if status is SolveStatus.INFEASIBLE:
        raise InvalidTable(
            "The views contradict each other: no table without negative values has all of them as margins, though any "
            "two of them agree.\n\nHint: were they made from the same records?"
        )
    if joined is None:
        raise SolverFailure(
            "No whole table that agrees with all views was found in time.\n\n"
            "Hint: give the cube itself instead of its views."
        )
    return joined


def margin_sums(margins: Margins, sizes: Mapping[str, int]) -> tuple[sparse.csr_array, Integers]:
    """One row per margin cell over the cells of the cube, and what the rows add up to."""
    shape = tuple(sizes.values())
    cells = np.arange(int(np.prod(shape)))
    blocks, right = [], []
    for view, array in margins.items():
        row = places_in(view, sizes)
        blocks.append(sparse.csr_array((np.ones(len(cells)), (row, cells)), shape=(array.size, len(cells))))
        right.append(array.ravel())
    return sparse.csr_array(sparse.vstack(blocks, format="csr")), np.concatenate(right)


def places_in(view: Sequence[str], sizes: Mapping[str, int]) -> Integers:
    """For each cell of the cube its place among the cells of a view."""
    place = np.zeros((1,) * len(sizes), dtype=np.int64)
    names = list(sizes)
    for name in view:
        d = names.index(name)
        own = np.arange(sizes[name]).reshape([-1 if e == d else 1 for e in range(len(names))])
        place = place * sizes[name] + own
    return np.broadcast_to(place, tuple(sizes.values())).ravel()


def _joined(margins: Margins, sizes: Mapping[str, int]) -> Integers | None:
    """The views joined one after another; None when some view meets several others at once."""
    rest = dict(margins)
    first = next(iter(rest))
    have, cube = first, rest.pop(first)
    used = [set(first)]
    while rest:
        ready = [v for v in rest if any(set(v) & set(have) <= earlier for earlier in used)]
        if not ready:
            return None
        view = ready[0]
        cube, have = _join(cube, have, rest.pop(view), view)
        used.append(set(view))
    for name in sizes:
        if name not in have:  # nobody says how it is split: all in the first code
            cube = np.concatenate([cube[..., None], np.zeros((*cube.shape, sizes[name] - 1), np.int64)], axis=-1)
            have = (*have, name)
    return added_up(cube, have, tuple(sizes))


def _join(one: Integers, first: View, two: Integers, second: View) -> tuple[Integers, View]:
    """A table over the dimensions of both, with both as margins.

    In every slice of the shared codes the parts of either side are laid end to end along the same total; how much two
    parts overlap is what their common cell gets.
    """
    shared = tuple(name for name in first if name in second)
    rows = tuple(name for name in first if name not in second)
    columns = tuple(name for name in second if name not in first)
    size = {**dict(zip(first, one.shape, strict=True)), **dict(zip(second, two.shape, strict=True))}
    slices = int(np.prod([size[name] for name in shared], dtype=np.int64))
    a = np.cumsum(added_up(one, first, (*shared, *rows)).reshape(slices, -1), axis=1)
    b = np.cumsum(added_up(two, second, (*shared, *columns)).reshape(slices, -1), axis=1)
    before_a, before_b = (np.concatenate([np.zeros((slices, 1), np.int64), x[:, :-1]], axis=1) for x in (a, b))
    overlap = np.minimum(a[:, :, None], b[:, None, :]) - np.maximum(before_a[:, :, None], before_b[:, None, :])
    order = (*shared, *rows, *columns)
    return np.maximum(overlap, 0).reshape([size[name] for name in order]), order
