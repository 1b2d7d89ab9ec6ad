"""Check a pattern for a table: what it costs, which sensitive cells it leaves open, and what any pattern must cost.

check.py INSTANCE.jj PATTERN.txt [BOUND.json]       both may be gzipped

One file, NumPy and SciPy only: it shares no code with any program that makes patterns. Cells are open by the
definition: the largest and the smallest value of a sensitive cell over all tables that fulfil the equations and agree
with what is published, by linear programs, must reach its protection levels. Bounds are checked in exact fractions.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from scipy.optimize import linprog
from scipy.sparse.csgraph import connected_components

SLACK = 1e-6
"""How far below its level, relative to the larger of 1 and the value, a move may stay: the solver's tolerance."""
TOGETHER = 12
"""Programs that move all open cells of a part at once, at random signs, before cells are asked one by one."""


class Wrong(Exception):
    """A file that is not what it should be: the message says where."""


@dataclass(frozen=True)
class Instance:
    """A JJ file: cells with value, cost, status, the attacker's bounds, levels; and equations that sum to nothing."""

    ids: np.ndarray
    value: np.ndarray
    cost: np.ndarray
    status: np.ndarray
    room: np.ndarray
    """How far down and up a cell may lie by the attacker's bounds, two columns."""
    levels: np.ndarray
    """Lower, upper and sliding protection level, three columns."""
    equations: sparse.csr_array
    sha256: str

    @property
    def sensitive(self) -> np.ndarray:
        """Which cells must be protected."""
        return self.status == "u"

    @property
    def always(self) -> np.ndarray:
        """Which cells every pattern withholds: the sensitive ones, and those marked m."""
        return np.isin(self.status, ("u", "m"))


def text_of(path: Path) -> str:
    """The text of a file, gzipped or not."""
    data = path.read_bytes()
    return (gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data).decode("utf-8")


def read_instance(path: Path) -> Instance:
    """A JJ file as it stands; its equations must hold in whole numbers."""
    text = text_of(path)
    lines = [line for line in text.splitlines() if line.strip()]
    count = int(lines[1])
    cells = [line.split() for line in lines[2 : 2 + count]]
    short = next((i for i, cell in enumerate(cells) if len(cell) != 9), None)
    if short is not None or len(cells) != count:
        raise Wrong(f"{path.name}, line {3 + (len(cells) if short is None else short)}: a cell has nine columns.")
    ids = np.array([int(cell[0]) for cell in cells])
    place = {int(identity): i for i, identity in enumerate(ids)}
    figures = np.array([[float(cell[k]) for k in (1, 2, 4, 5, 6, 7, 8)] for cell in cells])
    value = figures[:, 0]
    if (figures[:, 2] > value).any() or (figures[:, 3] < value).any() or (figures[:, 1] < 0).any():
        raise Wrong(f"{path.name}: a value lies outside its bounds, or a cost is negative.")
    matrix = _equations(lines[3 + count : 3 + count + int(lines[2 + count])], place, value, path.name)
    return Instance(
        ids, value, figures[:, 1], np.array([cell[3] for cell in cells]),
        np.column_stack([value - figures[:, 2], figures[:, 3] - value]), figures[:, 4:], matrix,
        hashlib.sha256(text.encode("utf-8")).hexdigest(),
    )  # fmt: skip


def _equations(lines: list[str], place: dict[int, int], value: np.ndarray, name: str) -> sparse.csr_array:
    """The coefficients; an equation that does not hold for the true values is an error."""
    rows, columns, entries = [], [], []
    for row, line in enumerate(lines):
        head, _, terms = line.partition(":")
        parts = terms.replace("(", " ").replace(")", " ").split()
        members, coefficients = [place[int(each)] for each in parts[::2]], [int(each) for each in parts[1::2]]
        right = float(head.split()[0])
        if abs(sum(c * value[i] for i, c in zip(members, coefficients, strict=True)) - right) > 1e-6 * max(
            1.0, float(np.abs(value[members]).max())
        ):
            raise Wrong(f"{name}: equation {row + 1} does not hold.")
        rows += [row] * len(members)
        columns += members
        entries += coefficients
    return sparse.csr_array((entries, (rows, columns)), shape=(len(lines), len(place)))


@dataclass(frozen=True)
class Pattern:
    """Which cells a program withholds, and what it says of itself."""

    hidden: np.ndarray
    said: dict[str, str]


def read_pattern(path: Path, instance: Instance) -> Pattern:
    """Cells by their ids, `7` or `12-19`, between blanks and lines; `# key: value` for what is said of it.

    Sensitive cells are withheld whether or not the file names them.
    """
    named, said = [], {}
    for line in text_of(path).splitlines():
        body, _, comment = line.partition("#")
        key, colon, text = comment.partition(":")
        if colon:
            said[key.strip()] = text.strip()
        for word in body.split():
            first, _, last = word.partition("-")
            if not first.isdigit() or (last and not last.isdigit()):
                raise Wrong(f"{path.name}: {word!r} is neither the id of a cell nor a range of ids.")
            named.append(np.arange(int(first), int(last or first) + 1))
    wanted = np.concatenate(named) if named else np.zeros(0, dtype=np.int64)
    unknown = np.setdiff1d(wanted, instance.ids)
    if unknown.size:
        raise Wrong(f"{path.name}: the instance has no cell {unknown[0]}.")
    hidden = np.isin(instance.ids, wanted) | instance.always
    frozen = np.flatnonzero(hidden & (instance.status == "z"))
    if frozen.size:
        raise Wrong(f"{path.name}: cell {instance.ids[frozen[0]]} may not be withheld (status z).")
    return Pattern(hidden, said)


def pattern_text(instance: Instance, hidden: np.ndarray, said: dict[str, str]) -> str:
    """A pattern as a file: what is said of it, then the further cells it withholds, in ranges."""
    ids = np.sort(instance.ids[hidden & ~instance.always])
    lines = [f"# {key}: {value}" for key, value in said.items()]
    runs = np.split(ids, np.flatnonzero(np.diff(ids) > 1) + 1) if ids.size else []
    words = [str(run[0]) if run.size == 1 else f"{run[0]}-{run[-1]}" for run in runs]
    lines += [" ".join(words[i : i + 16]) for i in range(0, len(words), 16)]
    return "\n".join(lines) + "\n"


def open_cells(instance: Instance, hidden: np.ndarray) -> list[int]:
    """The ids of the sensitive cells that do not have their protection, by linear programs."""
    found: list[int] = []
    for part in _parts(instance, hidden):
        if instance.sensitive[part].any():
            found += instance.ids[part[_Part(instance, part).open()]].tolist()
    return sorted(found)


def _parts(instance: Instance, hidden: np.ndarray) -> Iterator[np.ndarray]:
    """Withheld cells in connected parts: cells of different parts stand in no equation together."""
    cells = np.flatnonzero(hidden)
    matrix = sparse.csc_array(instance.equations)[:, cells]
    links = sparse.csr_array(abs(matrix).T @ abs(matrix))
    count, label = connected_components(links, directed=False)
    order = np.argsort(label, kind="stable")
    for group in np.split(order, np.searchsorted(label[order], np.arange(1, count))):
        yield cells[group]


class _Part:
    """A connected part of a pattern: how far its cells can move while all published cells stay."""

    def __init__(self, instance: Instance, cells: np.ndarray) -> None:
        matrix = sparse.csr_array(sparse.csc_array(instance.equations)[:, cells])
        self.matrix = matrix[np.diff(matrix.indptr) > 0]
        self.room = instance.room[cells]
        self.levels = instance.levels[cells]
        self.sensitive = instance.sensitive[cells]
        self.slack = SLACK * np.maximum(1.0, np.abs(instance.value[cells]))
        self.reached = np.zeros((len(cells), 2))
        """How far down and up each cell was seen to move."""

    def open(self) -> np.ndarray:
        """The places of the sensitive cells that cannot move as far as they must."""
        random = np.random.default_rng(1)
        for _ in range(TOGETHER):
            asked = np.flatnonzero(self.lacking())
            if asked.size < 3:
                break
            self._move_together(asked, random)
            if np.flatnonzero(self.lacking()).size == asked.size:
                break
        for place in np.flatnonzero(self.lacking()).tolist():
            for sign in (-1.0, 1.0):
                if self.lacking()[place]:
                    self._move(place, sign)
        return np.flatnonzero(self.lacking())

    def lacking(self) -> np.ndarray:
        """Which sensitive cells were not yet seen to move far enough."""
        down, up = self.reached.T
        lower, upper, sliding = self.levels.T
        short = (down < lower - self.slack) | (up < upper - self.slack) | (down + up < sliding - self.slack)
        none_asked = (lower == 0) & (upper == 0) & (sliding == 0)
        return np.asarray(self.sensitive & (short | (none_asked & (down + up <= self.slack))))

    def _move(self, place: int, sign: float) -> None:
        """The farthest that one cell can go one way."""
        goal = np.zeros(len(self.room))
        goal[place] = sign
        self._see(goal, self.room)

    def _move_together(self, asked: np.ndarray, random: np.random.Generator) -> None:
        """All open cells at once, each some way and no farther than it must."""
        goal, room = np.zeros(len(self.room)), self.room.copy()
        need = np.maximum(self.levels[asked], self.levels[asked][:, 2:])
        room[asked] = np.minimum(room[asked], np.maximum(need[:, :2], 1.0))
        goal[asked] = random.choice((-1.0, 1.0), asked.size) / np.maximum(need[:, :2].max(axis=1), 1.0)
        self._see(goal, room)

    def _see(self, goal: np.ndarray, room: np.ndarray) -> None:
        """Solve, and keep how far every cell went; the opposite move counts too where the bounds allow it."""
        bounds = np.column_stack([-room[:, 0], room[:, 1]])
        answer = linprog(-goal, A_eq=self.matrix, b_eq=np.zeros(self.matrix.shape[0]), bounds=bounds, method="highs")
        if answer.status != 0:
            raise RuntimeError(f"a linear program failed: {answer.message}")
        for move in (answer.x, -answer.x):
            share = np.min(
                np.where(move > self.slack, self.room[:, 1] / np.maximum(move, self.slack), 1.0), initial=1.0
            )
            share = min(
                share,
                np.min(np.where(move < -self.slack, self.room[:, 0] / np.maximum(-move, self.slack), 1.0), initial=1.0),
            )
            step = max(share, 0.0) * move
            self.reached = np.maximum(self.reached, np.column_stack([-step, step]))


Cut = tuple[dict[int, Fraction], Fraction]
"""Coefficients by cell, and what they must add up to at least over the withheld cells of a cheapest safe pattern."""


class Bound:
    """A certificate of a lower bound: inequalities derived from the equations, and weights that add them up.

    Every number in it may be arbitrary: whatever the multipliers are, what follows from them holds, so that nothing of
    the program that found them is believed.
    """

    def __init__(self, instance: Instance, data: dict[str, Any]) -> None:
        if data["sha256"] != instance.sha256:
            raise Wrong("The certificate is of another instance.")
        self.instance, self.data = instance, data
        self.place = {int(identity): i for i, identity in enumerate(instance.ids)}
        self.cost = [Fraction(c).limit_denominator(10**9) for c in instance.cost.tolist()]
        self.cuts: list[Cut] = []
        for cut in data["cuts"]:
            self.cuts.append(self._cut(cut))

    def value(self) -> Fraction:
        """What the certificate proves; costs that are whole make it whole."""
        found = self._tree(self.data["tree"], {})
        if found is None:
            raise Wrong("The certificate says that no pattern is safe.")
        return Fraction(ceil(found)) if all(cost.denominator == 1 for cost in self.cost) else found

    def _reduced(self, start: dict[int, Fraction], multipliers: Iterable[tuple[int, str]]) -> dict[int, Fraction]:
        """A combination of cells less a combination of equations: the same number in every table."""
        sums = dict(start)
        matrix = self.instance.equations
        for row, text in multipliers:
            weight = Fraction(text)
            for at in range(matrix.indptr[row], matrix.indptr[row + 1]):
                cell = int(matrix.indices[at])
                sums[cell] = sums.get(cell, Fraction(0)) - weight * int(matrix.data[at])
        return {cell: figure for cell, figure in sums.items() if figure}

    def _cut(self, cut: dict[str, Any]) -> Cut:
        if "cover" in cut:
            return self._cover(self.cuts[cut["cover"]], {self.place[i] for i in cut["inside"]})
        if "bridge" in cut:
            return self._bridge(self.place[cut["bridge"]], cut["equations"])
        return self._capacity(self.place[cut["target"]], cut["side"], cut["equations"])

    def _capacity(self, cell: int, side: int, multipliers: list[tuple[int, str]]) -> Cut:
        """A sensitive cell moves by the reduced sum of the others, each no farther than its bounds."""
        if not self.instance.sensitive[cell] or side not in {-1, 1}:
            raise Wrong(f"Cell {self.instance.ids[cell]} is not sensitive: nothing need be withheld for it.")
        level = Fraction(self.instance.levels[cell][0 if side < 0 else 1])
        right, capacity = level, {}
        for other, price in self._reduced({cell: Fraction(side)}, multipliers).items():
            down, up = (Fraction(each) for each in self.instance.room[other].tolist())
            most = max(price * up, -price * down)
            if self.instance.always[other]:
                right -= most
            elif self.instance.status[other] != "z" and most > 0:
                capacity[other] = most
        return {other: min(most, right) for other, most in capacity.items()} if right > 0 else {}, max(
            right, Fraction(0)
        )

    def _bridge(self, cell: int, multipliers: list[tuple[int, str]]) -> Cut:
        """A cell that no other withheld cell can move with need not be withheld: a cheapest pattern has none."""
        others = self._reduced({cell: Fraction(1)}, multipliers)
        if self.instance.always[cell] or self.cost[cell] < 0 or cell in others:
            raise Wrong(f"Cell {self.instance.ids[cell]}: this is no bridge.")
        if any(self.instance.always[other] for other in others):
            return {}, Fraction(0)
        free = {other: Fraction(1) for other in others if self.instance.status[other] != "z"}
        return free | {cell: Fraction(-1)}, Fraction(0)

    @staticmethod
    def _cover(cut: Cut, inside: set[int]) -> Cut:
        """Cells that together do not reach the right side leave at least one of the others."""
        capacity, right = cut
        if (
            sum((capacity.get(cell, Fraction(0)) for cell in inside), Fraction(0)) >= right
            or min(capacity.values(), default=Fraction(0)) < 0
        ):
            raise Wrong("A cover is too large.")
        return {cell: Fraction(1) for cell in capacity if cell not in inside}, Fraction(1)

    def _tree(self, node: dict[str, Any], fixed: dict[int, int]) -> Fraction | None:
        """The least of the leaves; None where no pattern is left."""
        if "branch" in node:
            cell = self.place[node["branch"]]
            both = [self._tree(node[word], {**fixed, cell: value}) for word, value in (("zero", 0), ("one", 1))]
            left = [each for each in both if each is not None]
            return min(left) if left else None
        return self._leaf({int(k): Fraction(w) for k, w in node["weights"].items()}, fixed, bool(node.get("empty")))

    def _leaf(self, weights: dict[int, Fraction], fixed: dict[int, int], empty: bool) -> Fraction | None:
        """Weighted inequalities, with every cell at the end of [0, 1] that is worst for the sum."""
        if any(weight < 0 for weight in weights.values()):
            raise Wrong("A weight is negative.")
        total, priced = Fraction(0), dict.fromkeys(fixed, Fraction(0))
        for k, weight in weights.items():
            total += weight * self.cuts[k][1]
            for cell, figure in self.cuts[k][0].items():
                priced[cell] = priced.get(cell, Fraction(0)) + weight * figure
        for cell, figure in priced.items():
            rest = (Fraction(0) if empty else self.cost[cell]) - figure
            total += rest * fixed[cell] if cell in fixed else min(rest, Fraction(0))
        if empty and total <= 0:
            raise Wrong("A leaf that is said to be empty is not.")
        return None if empty else total


def check(instance: Instance, pattern: Pattern) -> dict[str, Any]:
    """What a pattern costs, and what it leaves open."""
    further = pattern.hidden & ~instance.always
    return {
        "cells": int(further.sum()),
        "cost": float(instance.cost[further].sum()),
        "sensitive": int(instance.sensitive.sum()),
        "open": open_cells(instance, pattern.hidden),
    }


def main(arguments: list[str]) -> int:
    """Say all of it; 0 when nothing is open."""
    instance = read_instance(Path(arguments[0]))
    pattern = read_pattern(Path(arguments[1]), instance)
    found = check(instance, pattern)
    print(f"withheld beyond the sensitive cells: {found['cells']:,} cells, cost {found['cost']:,.10g}")
    if len(arguments) > 2:
        bound = Bound(instance, json.loads(text_of(Path(arguments[2])))).value()
        print(f"every safe pattern costs at least {float(bound):,.10g} (exact: {bound})")
    shown = ", ".join(map(str, found["open"][:20])) + (" …" if len(found["open"]) > 20 else "")
    print(f"open: {len(found['open'])} of {found['sensitive']:,} sensitive cells{': ' + shown if shown else ''}")
    return 1 if found["open"] else 0


if __name__ == "__main__":
    try:
        raise SystemExit(main(sys.argv[1:]))
    except Wrong as wrong:
        raise SystemExit(str(wrong)) from None
