"""Every change of the design that is worth a look, with what it would remove and what it would cost.

All candidates of a dimension are judged together, by arrays. What is dropped takes its cells along, so sums by code
say all. What is joined makes new cells: those of all candidates are put into one table, to which the rules are applied
once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tablesafe.audit.merging import counts_add_up, merged
from tablesafe.audit.unions import for_sums
from tablesafe.core.equations import Floats, Integers, cell_keys
from tablesafe.core.hierarchy import Hierarchy
from tablesafe.core.linking import RESPONSE
from tablesafe.core.problem import Problem
from tablesafe.core.sensitivity import Sensitivity
from tablesafe.methods.redesign.collapse import groups_of, take
from tablesafe.methods.redesign.measure import Scale, terms, weights_of_risk
from tablesafe.methods.redesign.steps import Step, above_finest, finest, joined_name, parts_of, spans

PAIRED = 12
"""Of the parts of a code, the smallest that are tried in pairs."""
LONGEST_RUN = 8
"""Neighbouring codes that are joined at most."""
MOST_ENTRIES = 200_000
"""Cells that joined cells are made from, over all candidates looked at in one round."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A step with what it removes: risk, cells and bits, and what remains of the sensitive cells."""

    step: Step
    risk: float
    cells: int
    bits: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """What may be changed, and how joined codes are called."""

    ordered: Collection[str] = ()
    keep: Mapping[str, Collection[str]] = field(default_factory=dict)
    """Per dimension the codes that must stay; none listed means the whole dimension."""
    names: Mapping[str, str] = field(default_factory=dict)
    dimensions: bool = True
    margins: bool = True

    def touches(self, dimension: str, codes: Collection[str]) -> bool:
        """Whether a step would take away what must stay."""
        kept = self.keep.get(dimension)
        return kept is not None and (not kept or not set(kept).isdisjoint(codes))


def candidates(problem: Problem, scale: Scale, wishes: Wishes) -> list[Candidate]:
    """The candidates that remove some risk."""
    found: list[Candidate] = []
    figures = _Figures.of(problem, scale)
    for d, (name, hierarchy) in enumerate(problem.table.dimensions.items()):
        if name == RESPONSE or not hierarchy.is_tree or len(hierarchy) < 3:
            continue
        by_code = _ByCode.of(figures, d)
        found += _drops(figures, by_code, d, name, hierarchy, wishes)
        if problem.rules:
            found += _joins(figures, by_code, d, name, hierarchy, wishes)
    if wishes.margins:
        found += _left_out(figures, wishes)
    return [candidate for candidate in found if candidate.risk > 0]


@dataclass(frozen=True, eq=False)
class _Figures:
    """What every candidate is computed from."""

    problem: Problem
    scale: Scale
    risk: Floats
    public: NDArray[np.int64]
    shown: tuple[int, ...]
    """What is published of each table of the first design."""
    content: tuple[Floats, ...]
    """For each of them w·log2(w) per cell, over the total weight."""

    @classmethod
    def of(cls, problem: Problem, scale: Scale) -> _Figures:
        weight, shown = scale.weights(problem), scale.shown(problem)
        content = [terms(weight) / max(float(weight[finest(problem.table, span)].sum()), 1e-300) for span in shown]
        return cls(
            problem, scale, scale.risks(problem), (~problem.withheld).astype(np.int64), tuple(shown), tuple(content)
        )


@dataclass(frozen=True, eq=False)
class _ByCode:
    """Sums over all cells with a code."""

    risk: Floats
    cells: Floats
    content: Floats
    """w·log2(w) of the cells that are innermost in all other dimensions, over all tables that show this one."""
    inner: Integers
    """Per table that shows the dimension, which cells these are; as bits."""
    weight: Floats

    @classmethod
    def of(cls, figures: _Figures, d: int) -> _ByCode:
        table = figures.problem.table
        code, size = table.codes[:, d], len(list(table.dimensions.values())[d])
        content, inner = np.zeros(size), np.zeros(len(table), dtype=np.int64)
        for number, (span, amount) in enumerate(zip(figures.shown, figures.content, strict=True)):
            if span >> d & 1:
                mask = _inner_elsewhere(figures, span, d)
                inner |= mask.astype(np.int64) << number
                content += np.bincount(code[mask], amount[mask], size)
        weight = figures.scale.weights(figures.problem)

        def added(amount: NDArray[Any]) -> Floats:
            return np.bincount(code, amount, size).astype(np.float64)

        return cls(added(figures.risk), added(figures.public), content, inner, added(weight))


def _inner_elsewhere(figures: _Figures, span: int, d: int) -> NDArray[np.bool_]:
    """Cells of a table that are innermost in all dimensions but one."""
    table = figures.problem.table
    mask = np.ones(len(table), dtype=np.bool_)
    for j, hierarchy in enumerate(table.dimensions.values()):
        if j == d:
            continue
        if span >> j & 1:
            mask &= ~hierarchy.is_total[table.codes[:, j]]
        else:
            mask &= table.codes[:, j] == hierarchy.position(hierarchy.total or "")
    return mask


def _drops(
    figures: _Figures, by_code: _ByCode, d: int, name: str, hierarchy: Hierarchy, wishes: Wishes
) -> Iterator[Candidate]:
    """Parts of a code, the finest level, the whole dimension."""
    parts = parts_of(hierarchy)
    root = hierarchy.roots[0]
    below: dict[str, list[str]] = {}
    for code in reversed(list(parts)):  # totals come before their parts, so from below
        below[code] = [deeper for part in parts[code] for deeper in (part, *below.get(part, ()))]
    plans = [(Step(kind="drop parts", dimension=name, codes=(code,)), [code]) for code in parts if code != root]
    deepest = list(above_finest(hierarchy))
    if deepest != [root] and len(deepest) > 1:
        plans.append((Step(kind="drop level", dimension=name), deepest))
    if wishes.dimensions and sum(len(h) > 1 for n, h in figures.problem.table.dimensions.items() if n != RESPONSE) > 1:
        plans.append((Step(kind="drop dimension", dimension=name), [root]))
    for step, tops in plans:
        gone = [code for top in tops for code in below[top]]
        if wishes.touches(name, gone):
            continue
        at = np.array([hierarchy.position(code) for code in gone])
        leaves = at[~hierarchy.is_total[at]]
        top = np.array([hierarchy.position(code) for code in tops])
        bits = float(by_code.content[top].sum() - by_code.content[leaves].sum())
        yield Candidate(step, float(by_code.risk[at].sum()), int(by_code.cells[at].sum()), bits)


def _left_out(figures: _Figures, wishes: Wishes) -> Iterator[Candidate]:
    """Tables of two or more dimensions that no other published table contains."""
    problem, scale = figures.problem, figures.scale
    span = spans(problem.table)
    names = list(problem.table.dimensions)
    for own in sorted(set(figures.shown)):
        inside = [names[d] for d in range(len(names)) if own >> d & 1]
        if len(inside) < 2 or any(name == RESPONSE or wishes.keep.get(name) is not None for name in inside):
            continue
        gone = span == own
        others = [s for s in np.unique(span[figures.public > 0]).tolist() if s != own and s & own == s]
        best = max((scale.entropy(problem, other) for other in others), default=0.0)
        bits = figures.shown.count(own) * (scale.entropy(problem, own) - best)
        step = Step(kind="leave out", margin=tuple(inside))
        left = scale.risks(take(problem, step).problem).sum()
        yield Candidate(step, float(figures.risk.sum() - left), int(figures.public[gone].sum()), bits)


def _joins(
    figures: _Figures, by_code: _ByCode, d: int, name: str, hierarchy: Hierarchy, wishes: Wishes
) -> list[Candidate]:
    """Siblings joined: all candidates of the dimension judged together."""
    taken = {*hierarchy.codes, *hierarchy.aliases}
    sets = _sets(figures, by_code, name, hierarchy, wishes)
    if not sets:
        return []
    cells, of = _joined_cells(figures, d, [[hierarchy.position(code) for code in codes] for codes in sets])
    table = figures.problem.table
    new = merged(table, groups_of(cells, separate=counts_add_up(table)), cautious=True)
    rules = [for_sums(rule, table, cells) for rule in figures.problem.rules]
    found = reduce(
        lambda one, other: one | other, [rule(new) for rule in rules if rule is not None], Sensitivity.none(len(new))
    )
    public = np.asarray(cells @ figures.public) > 0
    weigh = weights_of_risk(Problem(new), figures.scale.risk)
    n = len(sets)
    risk = np.bincount(of, np.asarray(cells @ figures.risk) - np.where(found.mask & public, weigh, 0.0), n)
    gone = np.bincount(of, np.asarray(cells @ figures.public) - public, n)
    bits = _lost_bits(figures, by_code, d, cells, of, n)
    out = []
    for i, codes in enumerate(sets):
        given = joined_name(codes, taken)
        step = Step(kind="join", dimension=name, codes=tuple(codes), into=wishes.names.get(given, given))
        out.append(Candidate(step, float(risk[i]), int(gone[i]), float(bits[i])))
    return out


def _sets(figures: _Figures, by_code: _ByCode, name: str, hierarchy: Hierarchy, wishes: Wishes) -> list[Sequence[str]]:
    """Which siblings to try together, the most promising first, as many as there is room for."""
    parts = parts_of(hierarchy)
    found: dict[tuple[str, ...], float] = {}
    for members in parts.values():
        free = [code for code in members if not wishes.touches(name, [code])]
        for codes in _neighbours(free, name, hierarchy, by_code, wishes):
            if len(codes) == len(members) or len({code in parts for code in codes}) > 1:
                continue
            at = [hierarchy.position(code) for code in codes]
            risk, weight = float(by_code.risk[at].sum()), float(by_code.weight[at].sum())
            if risk > 0:
                found[tuple(codes)] = risk / (1.0 + weight)
    chosen: list[Sequence[str]] = []
    room = float(MOST_ENTRIES)
    for best in sorted(found, key=lambda codes: -found[codes]):
        size = float(by_code.cells[[hierarchy.position(code) for code in best]].sum())
        if size <= room:
            room -= size
            chosen.append(best)
    return chosen


def _neighbours(
    members: Sequence[str], name: str, hierarchy: Hierarchy, by_code: _ByCode, wishes: Wishes
) -> Iterator[list[str]]:
    """Runs of neighbours where the order means something; otherwise pairs of small parts, and the smallest together."""
    if name in wishes.ordered:
        for length in range(2, min(LONGEST_RUN, len(members)) + 1):
            yield from (list(members[i : i + length]) for i in range(len(members) - length + 1))
        return
    small = sorted(members, key=lambda code: float(by_code.weight[hierarchy.position(code)]))
    order = {code: i for i, code in enumerate(members)}
    for i, one in enumerate(small[:PAIRED]):
        yield from (sorted((one, other), key=order.__getitem__) for other in small[i + 1 : PAIRED])
    for length in range(3, min(LONGEST_RUN, len(small)) + 1):
        yield sorted(small[:length], key=order.__getitem__)


def _joined_cells(
    figures: _Figures, d: int, sets: Sequence[Sequence[int]]
) -> tuple[sparse.csr_array, NDArray[np.intp]]:
    """One row per joined cell of each set, with ones at the cells that it is made from; and the set of each row."""
    table = figures.problem.table
    sizes = [len(h) for j, h in enumerate(table.dimensions.values()) if j != d]
    _, rest = np.unique(cell_keys(np.delete(table.codes, d, axis=1), sizes), return_inverse=True)
    order = np.argsort(table.codes[:, d], kind="stable")
    starts = np.searchsorted(table.codes[order, d], np.arange(len(list(table.dimensions.values())[d]) + 1))
    of_set = np.repeat(np.arange(len(sets)), [len(codes) for codes in sets])
    code = np.array([code for codes in sets for code in codes], dtype=np.intp)
    size = starts[code + 1] - starts[code]
    which = np.repeat(of_set, size)
    offset = np.arange(len(which)) - np.repeat(np.cumsum(size) - size, size)
    cell = order[np.repeat(starts[code], size) + offset]
    key = which * (int(rest.max(initial=0)) + 1) + rest[cell]
    unique, row = np.unique(key, return_inverse=True)
    of = np.empty(len(unique), dtype=np.intp)
    of[row] = which
    cells = sparse.csr_array((np.ones(len(cell), np.int8), (row, cell)), shape=(len(unique), len(table)), dtype=np.int8)
    return cells, of


def _lost_bits(
    figures: _Figures, by_code: _ByCode, d: int, cells: sparse.csr_array, of: NDArray[np.intp], n: int
) -> Floats:
    """What the innermost cells tell less when they are joined."""
    table, weight = figures.problem.table, figures.scale.weights(figures.problem)
    leaf = ~list(table.dimensions.values())[d].is_total[table.codes[:, d]]
    bits = np.zeros(n)
    for number, span in enumerate(figures.shown):
        if not span >> d & 1:
            continue
        inner = (by_code.inner >> number & 1).astype(np.bool_) & leaf
        before = np.asarray(cells @ np.where(inner, terms(weight), 0.0))
        after = terms(np.asarray(cells @ np.where(inner, weight, 0.0)))
        total = max(float(weight[finest(table, span)].sum()), 1e-300)
        bits += np.bincount(of, (after - before) / total, n)
    return bits
