"""Prove what every safe pattern must cost, by cutting planes with SciPy alone; `check.py` checks the certificate.

The inequalities are those of Fischetti & Salazar-González (2001): capacity constraints from the duals of the attacker's
programs, bridgeless and cover inequalities; then a little branching. Slow beside an engine, and nothing of it is
believed: multipliers are rounded to short fractions, and the checker derives everything from them anew.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from heapq import heappop, heappush
from itertools import count
from math import inf
from time import process_time
from typing import Any

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

from benchmarks.arena.check import Bound, Instance, _Part, _parts

TINY, VIOLATED = 1e-9, 1e-4
DENOMINATOR = 720
"""Multipliers are rounded to fractions no finer than this; in tables nearly all of them are small."""


def proved(instance: Instance, *, seconds: float, known: float = inf) -> dict[str, Any]:
    """A certificate, as good as `seconds` of CPU allow; done when the bound reaches a `known` pattern's cost."""
    prover = _Prover(instance, process_time() + seconds)
    prover.cut_at_the_root()
    return prover.branch(known)


@dataclass
class _Node:
    """A part of the tree: what is fixed in it, its bound and weights, and its two halves where it was divided."""

    fixed: dict[int, int]
    bound: float = 0.0
    weights: dict[int, float] = field(default_factory=dict)
    empty: bool = False
    halves: tuple[int, _Node, _Node] | None = None


class _Prover:
    """The master program over the cells that may be withheld, and the inequalities found so far."""

    def __init__(self, instance: Instance, deadline: float) -> None:
        self.instance, self.deadline = instance, deadline
        self.free = np.flatnonzero(~instance.always & (instance.status != "z"))
        self.column = np.full(len(instance.ids), -1)
        self.column[self.free] = np.arange(len(self.free))
        self.bound = Bound(instance, {"sha256": instance.sha256, "cuts": [], "tree": {}})
        self.cuts: list[dict[str, Any]] = []
        self.rows: list[tuple[np.ndarray, np.ndarray, float]] = []
        self.seen: set[tuple[Any, ...]] = set()
        self.targets = self._targets()

    def _targets(self) -> list[tuple[int, int]]:
        """Sensitive cells and ways that do not protect each other already, the largest levels first."""
        own, reached = self.instance, np.zeros((len(self.instance.ids), 2))
        for cells in _parts(own, own.always):
            part = _Part(own, cells)
            part.open()
            reached[cells] = part.reached
        need = np.where(own.sensitive[:, None], own.levels[:, :2], 0.0)
        open_ways = np.argwhere(reached < need * (1 - 1e-6) - TINY)
        order = np.argsort(-need[tuple(open_ways.T)], kind="stable")
        return [(int(cell), 1 if way else -1) for cell, way in open_ways[order]]

    @property
    def late(self) -> bool:
        """Whether the time is over."""
        return process_time() > self.deadline

    def add(self, cut: dict[str, Any], x: np.ndarray) -> bool:
        """Take an inequality, as the checker will derive it, if `x` violates it."""
        coefficients, right = self.bound._cut(cut)
        cells = np.fromiter(coefficients, dtype=np.int64, count=len(coefficients))
        figures = np.array([float(each) for each in coefficients.values()])
        scale = max(float(np.abs(figures).max(initial=0.0)), TINY)
        if (float(right) - figures @ x[cells]) / scale < VIOLATED:
            return False
        key = (tuple(cells.tolist()), tuple(figures.tolist()), float(right))
        if key in self.seen:
            return False
        self.seen.add(key)
        self.bound.cuts.append((coefficients, right))
        self.cuts.append(cut)
        self.rows.append((self.column[cells], figures, float(right)))
        return True

    def solve(self, node: _Node) -> np.ndarray:
        """The relaxation under what is fixed; its duals are the weights. Without a pattern: weights that show it."""
        if not self.rows:
            return self._whole(np.zeros(len(self.free)))
        starts = np.cumsum([0] + [len(columns) for columns, _, _ in self.rows])
        columns, figures = (np.concatenate([row[k] for row in self.rows]) for k in (0, 1))
        matrix = sparse.csr_array((-figures, columns, starts), shape=(len(self.rows), len(self.free)))
        right = -np.array([row[2] for row in self.rows])
        limits = np.column_stack([np.zeros(len(self.free)), np.ones(len(self.free))])
        for cell, value in node.fixed.items():
            limits[self.column[cell]] = value
        cost = self.instance.cost[self.free]
        answer = linprog(cost, A_ub=matrix, b_ub=right, bounds=limits, method="highs")
        node.empty = answer.status == 2
        if node.empty:
            matrix = sparse.hstack([matrix, sparse.csr_array(np.full((len(self.rows), 1), -1.0))])
            limits = np.vstack([limits, [0, np.inf]])
            cost = np.append(np.zeros(len(self.free)), 1.0)
            answer = linprog(cost, A_ub=matrix, b_ub=right, bounds=limits, method="highs")
        if answer.status != 0:
            raise RuntimeError(f"the relaxation failed: {answer.message}")
        node.bound = inf if node.empty else float(answer.fun)
        duals = -answer.ineqlin.marginals
        node.weights = {int(k): float(duals[k]) for k in np.flatnonzero(duals > TINY)}
        return self._whole(np.clip(answer.x[: len(self.free)], 0.0, 1.0))

    def _whole(self, x: np.ndarray) -> np.ndarray:
        """How much of each cell is withheld: all of those that always are."""
        full = self.instance.always.astype(float)
        full[self.free] = np.where(x < TINY, 0.0, x)
        return full

    def cut_at_the_root(self) -> None:
        """Add violated inequalities until there are none, or the time is over."""
        root = _Node({})
        while not self.late and self.separate(self.solve(root)):
            pass

    def separate(self, x: np.ndarray) -> bool:
        """Whether `x` violates an inequality that can be found; all that were found are taken."""
        before = len(self.cuts)
        for cut in self._capacities(x):
            if self.add(cut, x):
                self._add_cover(len(self.cuts) - 1, x)
        if len(self.cuts) == before:
            for k, cut in enumerate(self.cuts):
                if "target" in cut:
                    self._add_cover(k, x)
            for cut in self._bridges(x):
                self.add(cut, x)
        return len(self.cuts) > before

    def _program(self, x: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray, sparse.csr_array, np.ndarray]]:
        """The cells withheld in part or whole by connected parts: the part, its rows, and its equations."""
        for cells in _parts(self.instance, x > 0):
            matrix = sparse.csr_array(sparse.csc_array(self.instance.equations)[:, cells])
            rows = np.flatnonzero(np.diff(matrix.indptr) > 0)
            place = np.full(len(x), -1)
            place[cells] = np.arange(len(cells))
            yield cells, rows, matrix[rows], place

    def _capacities(self, x: np.ndarray) -> Iterator[dict[str, Any]]:
        """The attacker's programs: where a target cannot move as far as it must, the dual says what is missing."""
        for cells, rows, matrix, place in self._program(x):
            room = self.instance.room[cells] * x[cells][:, None]
            asked = [(cell, side) for cell, side in self.targets if place[cell] >= 0]
            moved = np.zeros((len(cells), 2))
            for cell, side in asked:
                level = self.instance.levels[cell][0 if side < 0 else 1]
                if self.late or moved[place[cell], 0 if side < 0 else 1] >= level * (1 - VIOLATED):
                    continue
                move, duals = _farthest(matrix, np.column_stack([-room[:, 0], room[:, 1]]), place[cell], side)
                moved = np.maximum(moved, np.column_stack([-move, move]))
                if side * move[place[cell]] < level * (1 - VIOLATED):
                    identity = int(self.instance.ids[cell])
                    yield {"target": identity, "side": side, "equations": _short(rows, duals)}

    def _bridges(self, x: np.ndarray) -> Iterator[dict[str, Any]]:
        """Cells of the support, not sensitive, that the others cannot move as far as they are withheld."""
        for cells, rows, matrix, place in self._program(x):
            share = np.where(self.instance.always[cells], 1.0, x[cells])
            limits = np.column_stack([-share, share])
            for cell in cells[(share > 0.05) & ~self.instance.always[cells]].tolist():
                if self.late:
                    return
                own = limits.copy()
                own[place[cell]] = (-2.0, 2.0)
                move, duals = _farthest(matrix, own, place[cell], 1)
                if move[place[cell]] < x[cell] - VIOLATED:
                    cut = {"bridge": int(self.instance.ids[cell]), "equations": _short(rows, duals)}
                    if cell not in self.bound._reduced({cell: Fraction(1)}, cut["equations"]):
                        yield cut

    def _add_cover(self, k: int, x: np.ndarray) -> None:
        """Cells that are withheld much for what they give, as long as they do not suffice: one more must be."""
        coefficients, right = self.bound.cuts[k]
        inside: list[int] = []
        total = Fraction(0)
        for cell, figure in sorted(coefficients.items(), key=lambda pair: -x[pair[0]] / float(pair[1])):
            if total + figure < right:
                total += figure
                inside.append(int(self.instance.ids[cell]))
        if inside and right > 0:
            self.add({"cover": k, "inside": sorted(inside)}, x)

    def branch(self, known: float) -> dict[str, Any]:
        """Divide the part with the least bound, until all reach what is known or the time is over."""
        root = _Node({})
        x = self.solve(root)
        turn = count(1)  # parts of equal bounds come in the order in which they were made
        waiting: list[tuple[float, int, _Node, np.ndarray]] = [(root.bound, 0, root, x)]
        while waiting and not self.late and waiting[0][0] < known - 1 + VIOLATED:
            _, number, node, x = heappop(waiting)
            broken = np.abs(x[self.free] - 0.5)
            if broken.min(initial=0.5) > 0.5 - VIOLATED:  # whole, and no inequality is violated
                heappush(waiting, (inf, number, node, x))
                continue
            cell = int(self.free[np.argmin(broken)])
            halves = (_Node({**node.fixed, cell: 0}), _Node({**node.fixed, cell: 1}))
            node.halves = (cell, *halves)
            for half in halves:
                x = self.solve(half)
                while not half.empty and half.bound < known - 1 and not self.late and self.separate(x):
                    x = self.solve(half)
                heappush(waiting, (half.bound, next(turn), half, x))
        return self._certificate(root)

    def _certificate(self, root: _Node) -> dict[str, Any]:
        """What the checker needs: the inequalities with a weight in some leaf, and the tree."""
        used: dict[int, int] = {}

        def number(k: int) -> int:
            if "cover" in self.cuts[k]:
                number(self.cuts[k]["cover"])
            return used.setdefault(k, len(used))

        def told(node: _Node) -> dict[str, Any]:
            if node.halves is not None:
                cell, zero, one = node.halves
                return {"branch": int(self.instance.ids[cell]), "zero": told(zero), "one": told(one)}
            weights = {str(number(k)): str(_fraction(w, 10**6)) for k, w in node.weights.items()}
            return {"weights": weights} | ({"empty": True} if node.empty else {})

        tree = told(root)
        cuts = [dict(self.cuts[k]) for k in used]
        for cut in cuts:
            if "cover" in cut:
                cut["cover"] = used[cut["cover"]]
        certificate = {"sha256": self.instance.sha256, "cuts": cuts, "tree": tree}
        return certificate | {"bound": str(Bound(self.instance, certificate).value())}


def _farthest(matrix: sparse.csr_array, bounds: np.ndarray, place: int, side: int) -> tuple[np.ndarray, np.ndarray]:
    """The move that takes one cell farthest, and the duals of the equations."""
    goal = np.zeros(matrix.shape[1])
    goal[place] = side
    answer = linprog(-goal, A_eq=matrix, b_eq=np.zeros(matrix.shape[0]), bounds=bounds, method="highs")
    if answer.status != 0:
        raise RuntimeError(f"an attacker's program failed: {answer.message}")
    return answer.x, -answer.eqlin.marginals


def _short(rows: np.ndarray, duals: np.ndarray) -> list[tuple[int, str]]:
    """Multipliers as short fractions: those of a table are, and any others are valid too."""
    pairs = ((int(row), _fraction(float(dual), DENOMINATOR)) for row, dual in zip(rows, duals, strict=True))
    return [(row, str(figure)) for row, figure in pairs if figure]


def _fraction(number: float, denominator: int) -> Fraction:
    return Fraction(number).limit_denominator(denominator)
