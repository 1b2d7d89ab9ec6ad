"""Branching on the relaxation of all cuts: nodes are bounds of variables, the one with the least bound comes first.

Of several with the same bound it is the last one that was opened: with equal costs many are alike, and going down finds
answers. Cuts that are found at a node hold everywhere. Which variable is branched on is decided by strong branching:
for some of those nearest to one half both sides are solved, and every bound that comes out is proved.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import NDArray

from tablesafe.core.equations import Floats, Integers
from tablesafe.methods.suppress.branch_and_cut.branching import WHOLE
from tablesafe.methods.suppress.branch_and_cut.master_problem import Covering, Relaxed

CANDIDATES = 8
"""Variables that are tried before one is branched on."""
MILDLY = 0.1
"""Weight of the larger rise of the two sides of a branching, beside the smaller one."""

Small = NDArray[np.int8]


@dataclass(order=True, slots=True)
class Node:
    """Bounds of the variables, and a proved bound on every answer within them."""

    bound: float
    age: int
    low: Small = field(compare=False, repr=False)
    high: Small = field(compare=False, repr=False)


class Tree:
    """The open nodes of a search."""

    def __init__(self, covering: Covering) -> None:
        self._covering = covering
        self._heap: list[Node] = []
        self._made = 0
        self._given_up = np.inf
        self.push(covering.proved, covering.low, covering.high)

    def __bool__(self) -> bool:
        return bool(self._heap)

    @property
    def bound(self) -> float:
        """What is proved of all answers that are better than the best."""
        return min(self._heap[0].bound if self._heap else np.inf, self._given_up)

    def push(self, bound: float, low: Floats, high: Floats) -> None:
        """Open a node."""
        self._made += 1
        node = Node(self._covering.up(bound), -self._made, low.astype(np.int8), high.astype(np.int8))
        heapq.heappush(self._heap, node)

    def pop(self) -> tuple[float, Floats, Floats]:
        """The node with the least bound, with what was decided for all of them since it was opened."""
        node = heapq.heappop(self._heap)
        return node.bound, np.maximum(node.low, self._covering.low), np.minimum(node.high, self._covering.high)

    def give_up(self, bound: float) -> None:
        """Leave a node as it is: the bound of the whole will not rise above its own."""
        self._given_up = min(self._given_up, bound)

    def branch(
        self, relaxed: Relaxed, low: Floats, high: Floats, pruned: Callable[[float], bool], stop: Callable[[], bool]
    ) -> bool:
        """Open the two sides of a node; where one of them is proved to hold nothing better, close in on the other.

        Says whether the node is worth another look: some of its variables were decided.
        """
        candidates = self._candidates(relaxed.x, np.flatnonzero(low < high))
        if not len(candidates):
            self.give_up(relaxed.proved)
            return False
        best, chosen, values = -1.0, int(candidates[0]), (relaxed.proved, relaxed.proved)
        for variable in candidates.tolist():
            sides = self._sides(variable, low, high)
            if sides is None or stop():
                break
            dead = pruned(sides[0]), pruned(sides[1])
            if all(dead):
                return False
            if any(dead):
                low[variable] = high[variable] = 1.0 if dead[0] else 0.0
                return True
            rises = sides[0] - relaxed.proved, sides[1] - relaxed.proved
            score = min(rises) + MILDLY * max(rises)
            if score > best:
                best, chosen, values = score, variable, sides
        for side in (0.0, 1.0):
            down, up = low.copy(), high.copy()
            down[chosen] = up[chosen] = side
            self.push(max(values[int(side)], relaxed.proved), down, up)
        return False

    def _candidates(self, x: Floats, free: Integers) -> Integers:
        """Variables to branch on: those nearest to one half, the dearest first.

        Where all are whole but for rounding it is those whose rounding costs most: of a cost of 1e9 a little is much.
        """
        cost, away = self._covering.cost[free], np.minimum(x[free], 1 - x[free])
        order = np.lexsort((-cost, -away))
        if not (away > WHOLE).any():
            return free[np.argsort(-away * cost, kind="stable")[:CANDIDATES]]
        return free[order[away[order] > WHOLE][:CANDIDATES]]

    def _sides(self, variable: int, low: Floats, high: Floats) -> tuple[float, float] | None:
        """What is proved of both sides of a variable; None where the time was over before."""
        proved = []
        for side in (0.0, 1.0):
            down, up = low.copy(), high.copy()
            down[variable] = up[variable] = side
            relaxed = self._covering.within(down, up)
            if relaxed is None:
                return None
            proved.append(relaxed.proved)
        return proved[0], proved[1]


def least_answer(covering: Covering, first: Floats, stop: Callable[[], bool] = lambda: False) -> Floats:
    """The 0/1 answer of least cost to all cuts, where `first` is one; the best so far when it is stopped."""
    covering.relax()
    tree, best = Tree(covering), first
    cost = float(covering.cost @ first)
    while tree and not stop() and not covering.nothing_better(tree.bound, cost):
        _, low, high = tree.pop()
        again = True
        while again and not (low > high).any():
            relaxed = covering.within(low, high)
            if relaxed is None or covering.nothing_better(relaxed.proved, cost):
                break
            x = np.rint(relaxed.x)
            if np.abs(relaxed.x - x).max(initial=0.0) < WHOLE and float(covering.cost @ x) < cost:
                best, cost = x, float(covering.cost @ x)
                if covering.nothing_better(relaxed.proved, cost):
                    break
            covering.decide(relaxed, cost, low, high)
            again = tree.branch(relaxed, low, high, partial(covering.nothing_better, best=cost), stop)
    return best
