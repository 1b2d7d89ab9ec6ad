"""Sums, distinct counts and largest contributors of every cell, in compiled loops over sorted rows.

Rows come sorted by contributor. A contributor that lives in one leaf cell is noted there, and carried to the totals
once at the end, where only the largest matter. One that lives in several leaf cells goes to its totals by itself, one
combination of layers after the other: within one, each of its leaf cells has one total, and where two have the same,
their amounts are merged. Respondents are counted in the same way. So memory is that of the cells, not of the records,
and what is worked on at a time (the cells of one combination of layers) lies close together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from tablesafe.core.equations import Integers
from tablesafe.tabulate.lattice import Lattice, Steps
from tablesafe.work.compiled import compiled

RESPONDENTS, HOLDERS, MEASURES = 0, 1, 2
"""Columns of sums: respondents, contributors, and then the measures."""

STAMP, RUN, OWN = 2, 3, 4
"""Further columns of the state of a cell: the contributor and the respondent that were here last, and what the former
has (ranked amounts, what it adds to weighted totals, its request). After these, per ranking, the least amount that
still gets a place among the largest: −1 while places are free."""


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of the leaf aggregate, sorted by contributor and respondent."""

    leaf: NDArray[np.int32] = field(repr=False)
    contributor: Integers = field(repr=False)
    """−1: contributors too small to matter, taken together."""
    respondent: Integers = field(repr=False)
    """−1: respondents that live in this cell only; their number is in `many`."""
    many: Integers = field(repr=False)
    """Respondents and contributors that a row stands for, where they have no number."""
    measures: Integers = field(repr=False)
    request: Integers = field(repr=False)
    """What is asked for: a bit for each code."""

    def __len__(self) -> int:
        return len(self.leaf)


@dataclass(frozen=True, eq=False)
class Best:
    """The largest contributors of some nodes, for each ranking: what they reported, who they are, what they carry."""

    amount: Integers = field(repr=False)
    who: Integers = field(repr=False)
    carried: Integers = field(repr=False)
    """What they add to the weighted total, if there are weights, and their request, if there are requests."""

    @classmethod
    def empty(cls, nodes: int, rankings: int, depth: int, carried: int) -> Self:
        """Nobody yet."""
        shape = (nodes, rankings, depth)
        return cls(np.zeros(shape, np.int64), np.full(shape, -1, np.int64), np.zeros((*shape, carried), np.int64))


@dataclass(frozen=True, eq=False)
class Tally:
    """What has been added up so far. The arrays are filled in place."""

    lattice: Lattice
    ranked: Integers
    """For each ranking the measure by which contributors are ranked and, with weights, the one that they add."""
    requested: bool
    told_apart: bool
    """Whether contributors have respondents of their own; otherwise every contributor is a respondent."""
    sums: Integers = field(repr=False)
    """Per leaf cell: the measures, and the respondents and contributors that live in it alone."""
    alone: Best = field(repr=False)
    """Per leaf cell: the largest of those that live in it alone."""
    state: Integers = field(repr=False)
    """Per cell: the respondents and contributors that live in several leaf cells, and what is needed on the way."""
    spread: Best = field(repr=False)
    """Per cell: the largest of those that live in several leaf cells."""
    tick: Integers = field(repr=False)

    @classmethod
    def start(
        cls, lattice: Lattice, ranked: Integers, depth: int, measures: int, *, requested: bool, told_apart: bool
    ) -> Self:
        """Nothing added up yet."""
        (rankings, kinds), carried = ranked.shape, ranked.shape[1] - 1 + requested
        state = np.zeros((len(lattice.codes), OWN + rankings * kinds + requested + rankings), np.int64)
        state[:, state.shape[1] - rankings :] = -1
        return cls(
            lattice, ranked, requested, told_apart,
            sums=np.zeros((len(lattice.keys), MEASURES + measures), np.int64),
            alone=Best.empty(len(lattice.keys), rankings, depth, carried),
            state=state,
            spread=Best.empty(len(lattice.codes), rankings, depth, carried),
            tick=np.zeros(1, np.int64),
        )  # fmt: skip

    def add(self, rows: Rows) -> None:
        """Add rows; a contributor must be whole, and not come again."""
        apart = _settle(
            rows.leaf, rows.contributor, rows.respondent, rows.many, rows.measures, rows.request,
            self.ranked, self.requested, self.told_apart,
            self.sums, self.alone.amount, self.alone.who, self.alone.carried,
        )  # fmt: skip
        leaf, who = rows.leaf[apart], rows.contributor[apart]
        own = [rows.measures[apart][:, self.ranked.T.ravel()]]
        if self.requested:
            own.append(rows.request[apart, None].astype(np.int64))
        values = np.ascontiguousarray(np.concatenate(own, axis=1))
        starts = np.flatnonzero(np.diff(who, prepend=-2, append=-2))
        respondent = rows.respondent[apart]
        run = np.where(respondent >= 0, self._ticks(len(leaf)) + np.cumsum(np.diff(respondent, prepend=-2) != 0), -1)
        tick = self._ticks(len(starts))
        for cell in _descend(self.lattice.steps, leaf):
            _spread(
                cell, starts, who, run, values, tick, len(self.ranked), self.ranked.shape[1] > 1,
                self.requested, self.told_apart, self.state, self.spread.amount, self.spread.who, self.spread.carried,
            )  # fmt: skip

    def count(self, leaf: NDArray[np.int32], respondent: Integers) -> None:
        """Count respondents that belong to several contributors: one row per leaf cell, sorted by respondent."""
        run = self._ticks(len(leaf)) + np.cumsum(np.diff(respondent, prepend=-2) != 0)
        for cell in _descend(self.lattice.steps, leaf):
            _count(cell, run, self.state)

    def _ticks(self, n: int) -> int:
        """Numbers that were not used before: the next n of them follow the one returned."""
        before = int(self.tick[0])
        self.tick[0] += n + 1
        return before + 1

    def finish(self) -> Totals:
        """The counts, the sums and the largest contributors of every cell of the table."""
        sums, best = self.sums, self.alone
        for step in self.lattice.steps:
            n = int(step.max()) + 1
            above = np.zeros((n, sums.shape[1]), np.int64)
            _carry_sums(step, sums, above)
            last = step is self.lattice.steps[-1]
            larger = self.spread if last else Best.empty(n, *best.carried.shape[1:])
            _carry_best(step, best.amount, best.who, best.carried, larger.amount, larger.who, larger.carried)
            sums, best = above, larger
        sums[:, :MEASURES] += self.state[:, :MEASURES]
        return Totals(sums[:, RESPONDENTS].copy(), sums[:, HOLDERS].copy(), sums[:, MEASURES:], best)


@dataclass(frozen=True, eq=False)
class Totals:
    """What was added up, per cell of the table."""

    respondents: Integers = field(repr=False)
    holders: Integers = field(repr=False)
    """Contributors: holdings, and respondents without one."""
    sums: Integers = field(repr=False)
    best: Best = field(repr=False)


def _descend(steps: Sequence[Steps], node: NDArray[np.int32]) -> Iterator[NDArray[np.int32]]:
    """For every combination of layers, the cell of each row, or −1."""
    if not steps:
        yield node
        return
    for step in steps[0]:
        above = step[node]  # the last entry of a step is for node −1
        if len(above) and int(above.max()) >= 0:
            yield from _descend(steps[1:], above)


@compiled(nogil=True)
def _place(
    amount: Any, who: Any, carried: Any, node: int, r: int, new_amount: int, new: int,
    source: Any, row: int, added: int, request: int,
) -> None:  # fmt: skip
    """Put a contributor in its place among the largest: by absolute amount, then by name.

    What it carries is in `source[row]`: at `added` what it adds to the weighted total, at `request` its request; −1 if
    there is no such thing.
    """
    depth = amount.shape[2]
    size = abs(new_amount)
    at = depth
    while at > 0:
        other = who[node, r, at - 1]
        if other >= 0:
            least = abs(amount[node, r, at - 1])
            if least > size or (least == size and other < new):
                break
        at -= 1
    if at == depth:
        return
    for i in range(depth - 1, at, -1):
        amount[node, r, i] = amount[node, r, i - 1]
        who[node, r, i] = who[node, r, i - 1]
        for c in range(carried.shape[3]):
            carried[node, r, i, c] = carried[node, r, i - 1, c]
    amount[node, r, at] = new_amount
    who[node, r, at] = new
    if added >= 0:
        carried[node, r, at, 0] = source[row, added]
    if request >= 0:
        carried[node, r, at, carried.shape[3] - 1] = source[row, request]


@compiled(nogil=True)
def _settle(
    leaf: Any, contributor: Any, respondent: Any, many: Any, measures: Any, request: Any,
    ranked: Any, requested: bool, told_apart: bool, sums: Any, amount: Any, names: Any, carried: Any,
) -> Any:  # fmt: skip
    """Add what stays in the leaf cells; the rows returned belong to contributors that live in several."""
    apart = np.zeros(len(leaf), np.bool_)
    own = np.zeros((1, ranked.size + 1), np.int64)
    begin = 0
    while begin < len(leaf):
        who, here = contributor[begin], leaf[begin]
        end, several = begin + 1, False
        while end < len(leaf) and contributor[end] == who and who >= 0:
            several = several or leaf[end] != here
            end += 1
        for i in range(begin, end):
            for m in range(measures.shape[1]):
                sums[leaf[i], MEASURES + m] += measures[i, m]
            if who < 0 or (told_apart and respondent[i] < 0):
                sums[leaf[i], RESPONDENTS] += many[i, 0]
            elif told_apart and not several and (i == begin or respondent[i] != respondent[i - 1]):
                sums[here, RESPONDENTS] += 1
            apart[i] = several
        if who < 0:
            sums[here, HOLDERS] += many[begin, 1]
        elif not several:
            sums[here, HOLDERS] += 1
            sums[here, RESPONDENTS] += not told_apart
            own[:] = 0
            for i in range(begin, end):
                for kind in range(ranked.shape[1]):
                    for r in range(ranked.shape[0]):
                        own[0, kind * ranked.shape[0] + r] += measures[i, ranked[r, kind]]
                own[0, -1] |= request[i]
            for r in range(ranked.shape[0]):
                _place(
                    amount, names, carried, here, r, own[0, r], who, own, 0,
                    ranked.shape[0] + r if ranked.shape[1] > 1 else -1, ranked.size if requested else -1,
                )  # fmt: skip
        begin = end
    return apart


@compiled(nogil=True)
def _spread(
    cells: Any, starts: Any, who: Any, run: Any, values: Any, tick: int, rankings: int, weighted: bool,
    requested: bool, told_apart: bool, state: Any, amount: Any, names: Any, carried: Any,
) -> None:  # fmt: skip
    """Merge what each contributor has in cells of one combination of layers, and note it there."""
    wide = values.shape[1]
    summed = wide - 1 if requested else wide
    floor = OWN + wide
    path = np.zeros(np.diff(starts).max(), np.int32)
    for group in range(len(starts) - 1):
        length = 0
        for i in range(starts[group], starts[group + 1]):
            cell = cells[i]
            if cell < 0:
                continue
            if state[cell, STAMP] != tick + group:
                state[cell, STAMP] = tick + group
                path[length] = cell
                length += 1
                for c in range(wide):
                    state[cell, OWN + c] = values[i, c]
            else:
                for c in range(summed):
                    state[cell, OWN + c] += values[i, c]
                if requested:
                    state[cell, OWN + summed] |= values[i, summed]
            if told_apart and run[i] >= 0 and state[cell, RUN] != run[i]:
                state[cell, RUN] = run[i]
                state[cell, RESPONDENTS] += 1
        for at in range(length):
            cell = path[at]
            state[cell, HOLDERS] += 1
            state[cell, RESPONDENTS] += not told_apart
            for r in range(rankings):
                if abs(state[cell, OWN + r]) > state[cell, floor + r]:  # in a tie, the one that came first stays
                    _place(
                        amount, names, carried, cell, r, state[cell, OWN + r], who[starts[group]], state, cell,
                        OWN + rankings + r if weighted else -1, OWN + summed if requested else -1,
                    )  # fmt: skip
                    if names[cell, r, -1] >= 0:
                        state[cell, floor + r] = abs(amount[cell, r, -1])


@compiled(nogil=True)
def _count(cells: Any, run: Any, state: Any) -> None:
    """Count each respondent once in each cell."""
    for i in range(len(cells)):
        if cells[i] >= 0 and state[cells[i], RUN] != run[i]:
            state[cells[i], RUN] = run[i]
            state[cells[i], RESPONDENTS] += 1


@compiled(nogil=True)
def _carry_sums(step: Any, sums: Any, above: Any) -> None:
    """Add every node to its totals in the next stage."""
    for layer in range(step.shape[0]):
        for node in range(len(sums)):
            target = step[layer, node]
            if target >= 0:
                for c in range(sums.shape[1]):
                    above[target, c] += sums[node, c]


@compiled(nogil=True)
def _carry_best(step: Any, amount: Any, who: Any, carried: Any, up_amount: Any, up_who: Any, up_carried: Any) -> None:
    """Bring the largest contributors of every node to its totals in the next stage."""
    nodes, rankings, depth, width = carried.shape
    flat = carried.reshape(nodes * rankings * depth, width)
    for layer in range(step.shape[0]):
        for node in range(nodes):
            target = step[layer, node]
            if target < 0:
                continue
            for r in range(rankings):
                for i in range(depth):
                    if who[node, r, i] < 0:
                        break
                    _place(
                        up_amount, up_who, up_carried, target, r, amount[node, r, i], who[node, r, i],
                        flat, (node * rankings + r) * depth + i, 0 if width > 0 else -1, width - 1 if width > 0 else -1,
                    )  # fmt: skip
