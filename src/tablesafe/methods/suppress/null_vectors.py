"""Publish again what is not needed, where contributions may be negative: there only the equations hide anything.

Without bounds a withheld cell is either determined by what is published or can be anything. A random vector of the null
space of the withheld cells tells which: it is zero at a cell that is determined, and nowhere else. Two cells move in
step if their entries have one ratio in several such vectors; whoever knows the one, its only contributor, then knows
the other. To publish a cell is to take the vectors that are zero there: one step of Gaussian elimination among them. So
a few dozen vectors, from one factorisation, answer for a few dozen cells published one after the other what an audit
would say of all sensitive cells; what they leave is a proposal, and the audit has the last word.
"""

from __future__ import annotations

import numpy as np

from tablesafe.audit.respondent_knowledge import Lists
from tablesafe.audit.sums import null_vectors
from tablesafe.core.equations import Floats, Integers, Mask
from tablesafe.core.problem import Problem
from tablesafe.methods.suppress.instance import Instance
from tablesafe.work.budget import Budget

VECTORS = 64
"""Random vectors of one factorisation: all but `LOOKED_AT` of them can be used up."""
LOOKED_AT = 3
"""Vectors that are compared: that all agree by chance does not happen."""
DEAD, IN_STEP = 1e-7, 1e-6
"""What counts as zero, and as one ratio."""


def unbounded(problem: Problem, instance: Instance) -> bool:
    """Whether no attacker knows a bound of any cell that may be withheld, so that amounts make no difference."""
    may = instance.live | instance.forced
    return bool(np.isneginf(problem.lower[may]).all() and np.isposinf(problem.upper[may]).all())


def published_by_null_vectors(
    problem: Problem, instance: Instance, pattern: Mask, budget: Budget, *, respondents: bool
) -> Mask:
    """The pattern without what outsiders and single `respondents` do not need, the most costly first, while time lasts.

    Only respondents who are alone in one cell are thought of here, and no sums: the rest is for the audit.
    """
    pattern = pattern.copy()
    forced = instance.forced
    order = np.flatnonzero(pattern & ~forced)
    order = order[np.argsort(-instance.cost[order], kind="stable")]
    kernel: _Kernel | None = None
    for cell in order.tolist():
        if budget.over:
            break
        if kernel is None or kernel.left <= LOOKED_AT + 1:
            kernel = _Kernel(problem, pattern, respondents=respondents)
        if kernel.publish(cell):
            pattern[cell] = False
    return pattern


class _Kernel:
    """Random vectors of the null space of the withheld cells, and who must not become known by them."""

    def __init__(self, problem: Problem, pattern: Mask, *, respondents: bool) -> None:
        table = problem.table
        cells = np.flatnonzero(pattern)
        self.at = np.full(len(table), -1)
        self.at[cells] = np.arange(len(cells))
        matrix = table.equations[:, cells].tocsr()
        self.vectors = null_vectors(matrix[np.flatnonzero(np.diff(matrix.indptr))], len(cells), VECTORS)
        self.left = VECTORS
        self._target = problem.sensitivity.mask[cells]
        lists = Lists.of(table) if respondents else None
        self._owner = np.full(len(cells), -1) if lists is None else _owners(lists, cells)
        self._hidden = np.flatnonzero(np.abs(self.vectors[:, 0]) > DEAD)
        self._before = self._known(self.vectors[:, :LOOKED_AT])

    def publish(self, cell: int) -> bool:
        """Publish a cell if nothing becomes known by that; says whether it is."""
        at, vectors = int(self.at[cell]), self.vectors[:, : self.left]
        pivot = LOOKED_AT + int(np.abs(vectors[at, LOOKED_AT:]).argmax())
        if abs(vectors[at, pivot]) <= DEAD:
            return True  # everybody knows it already
        times = vectors[at] / vectors[at, pivot]
        looked = vectors[:, :LOOKED_AT] - np.outer(vectors[:, pivot], times[:LOOKED_AT])
        if (self._known(looked) & ~self._before).any():
            return False
        gone = vectors[:, pivot].copy()
        vectors -= np.outer(gone, times)
        vectors[at] = 0.0
        vectors[:, pivot] = vectors[:, -1]
        self.left -= 1
        return True

    def _known(self, vectors: Floats) -> Mask:
        """The targets that are determined; known to somebody else; part of a sum of two that is determined: three rows.

        Somebody else knows one that moves in step with a cell of which it is the only contributor. If another cell
        falls as far as a target rises, their sum is as good as published: that is left to where it is so already.
        """
        known = np.zeros((3, len(vectors)), dtype=np.bool_)
        known[0] = np.abs(vectors).max(axis=1) <= DEAD
        cells = self._hidden
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = vectors[cells, 1:] / vectors[cells, :1]
        order = np.argsort(ratio[:, 0], kind="stable")
        cells, ratio = cells[order], ratio[order]
        with np.errstate(invalid="ignore"):
            apart = ~(np.abs(np.diff(ratio, axis=0)) <= IN_STEP * (1 + np.abs(ratio[1:]))).all(axis=1)
        first = np.concatenate([[0], 1 + np.flatnonzero(apart)])
        group = np.repeat(np.arange(len(first)), np.diff(np.append(first, len(cells))))
        owner, rises = self._owner[cells], vectors[cells, 0] > 0
        most = np.maximum.reduceat(owner, first)[group]
        least = np.minimum.reduceat(np.where(owner < 0, np.iinfo(np.int64).max, owner), first)[group]
        both = np.logical_or.reduceat(rises, first)[group] & ~np.logical_and.reduceat(rises, first)[group]
        known[1, cells] = (most >= 0) & ((most != owner) | (least != owner))
        known[2, cells] = both
        return known & self._target


def _owners(lists: Lists, cells: Integers) -> Integers:
    """The only contributor of each cell; −1 where there are several."""
    return np.where(lists.everyone[cells] == 1, lists.who[cells, 0], -1)
