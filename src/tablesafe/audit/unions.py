"""Unions: sums of suppressed cells that the release gives away, judged by the rules like any published cell.

What is published in effect must be as safe as what is published: its contributors are those of all its cells, and one
respondent in two cells is one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import reduce

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tablesafe.audit.merging import Groups, counts_add_up, merged
from tablesafe.audit.sums import ConstantSums, KnownSums, SumSearch, constant_sums
from tablesafe.audit.system import System
from tablesafe.core.equations import Floats, Mask
from tablesafe.core.errors import Interrupted
from tablesafe.core.language import Text, text
from tablesafe.core.problem import Problem
from tablesafe.core.sensitivity import Rule, Sensitivity
from tablesafe.core.table import Table
from tablesafe.rules.columns import requested, waived
from tablesafe.rules.combined import AllOf, AnyOf, Levels, Manual, RequestRule, Waiver
from tablesafe.work.budget import ENDLESS, Budget

MOST_TERMS = 12
"""Terms of an equation spelled out before the rest is only counted."""


@dataclass(frozen=True, eq=False)
class Union:
    """A sum of suppressed cells that anybody can derive, and that fails a rule."""

    cells: tuple[int, ...]
    """The table's cells that are added up."""
    value: float
    fewest: int | None
    """Respondents, each counted once: at least so many."""
    most: int | None
    """At most so many; the same where the table lists them all, or where its counts add up."""
    rules: tuple[str, ...]
    """The rules that it fails."""
    certain: bool
    """False when it fails only if contributors that the table does not list are as large as they can be."""
    equations: tuple[int, ...]
    """The table's equations that are combined; empty where only the null space told."""
    text: str
    """The sum spelled out in the user's codes, and the known cells that it follows from."""
    level: float = 0.0
    """How far the rules ask the sum to be hidden."""


@dataclass(frozen=True, eq=False)
class Unions:
    """The unions that fail a rule, and what was looked at."""

    failed: tuple[Union, ...]
    sums: int
    """Sums that were found to be constant and judged."""
    search: Text | str
    """What was searched, and how far."""
    examined: bool = True
    """False when there is no rule that could judge a sum."""
    late: bool = False
    """Whether the time was over before all were searched for."""
    known: KnownSums | None = field(default=None, repr=False)
    """Where all were judged and none fails: what it takes to judge only those that another release adds."""

    @property
    def searched(self) -> str:
        """What was searched, in words."""
        return str(self.search)

    @property
    def safe(self) -> bool:
        """Whether all were searched for, and none fails for certain."""
        return not self.late and not any(union.certain for union in self.failed)


def unions(
    problem: Problem,
    system: System,
    *,
    lower: Floats | None = None,
    upper: Floats | None = None,
    search: SumSearch | None = None,
    budget: Budget = ENDLESS,
    before: Unions | None = None,
) -> Unions:
    """Find the sums that a release gives away and that fail one of the problem's rules.

    `lower` and `upper` are what an attacker can derive for each unknown cell of the system, in units: cells with one
    possible value are no secret, so they are left out of the sums. Of unions within each other the smallest is told.
    From which known cells a sum follows is told as long as nobody is in a hurry: a program is solved for each. When the
    budget is over, those are told that were found until then. What was judged of a release `before` this one is not
    judged again, where none of it failed.
    """
    search = search or SumSearch()
    if not problem.rules:
        words = "No sums were judged: the problem has protection levels only, no rules and no contributors."
        return Unions((), 0, words, examined=False)
    if system.tells_nothing:
        return Unions((), 0, text("none: nothing is published but zeros"))
    searched = None if before is None else before.known
    found = _of_shown(
        system, constant_sums(system, lower=lower, upper=upper, search=search, budget=budget, known=searched)
    )
    if budget.overdue:
        raise Interrupted("The audit was interrupted; nothing was written.")
    judged_before = before.sums if before is not None and found.beyond else 0
    if not len(found):
        passed = None if found.late else found.known
        return Unions((), judged_before, _searched(found, judged_before, search), late=found.late, known=passed)
    groups = _groups(system, found)
    known, cautious = (merged(problem.table, groups, cautious=how) for how in (False, True))
    rules = [for_sums(rule, problem.table, groups.cells) for rule in problem.rules]
    judged = _Judged(known, cautious, _judgement(rules, known), _judgement(rules, cautious))
    failed = _smallest(found.cells, np.flatnonzero(judged.possible.mask), judged.certain.mask)
    told = [_told(system, found, judged, number, budget) for number in failed]
    told.sort(key=lambda union: (not union.certain, len(union.cells), union.cells))
    passed = found.known if not told and not found.late else None
    many = judged_before + len(found)
    return Unions(tuple(told), many, _searched(found, many, search), late=found.late, known=passed)


def _of_shown(system: System, found: ConstantSums) -> ConstantSums:
    """The sums without unseen cells: a sum of those is a cell that is shown, or part of one, and judged as such."""
    unseen = system.table.unseen
    if unseen is None or not len(found):
        return found
    within = np.asarray(found.cells.astype(np.int64) @ unseen[system.cells].astype(np.int64)) == 0
    return replace(found, cells=found.cells[within], combination=found.combination[within])


@dataclass(frozen=True, eq=False)
class _Judged:
    """The sums as cells of two tables that enclose the truth, and what the rules say of both."""

    known: Table
    cautious: Table
    certain: Sensitivity
    possible: Sensitivity


def _searched(found: ConstantSums, many: int, search: SumSearch) -> Text:
    return text(
        "{found:,} found: the remainder of every equation; combinations of up to {chain} equations with up to {terms} "
        "cells; all pairs, and all triples in components of up to {component:,} cells{more}{late}",
        found=many, chain=search.max_chain, terms=search.max_terms, component=search.max_component,
        more=text("; a limit was met, there may be more") if found.cut else "",
        late=text("; the time was over before the end") if found.late else "",
    )  # fmt: skip


def _judgement(rules: Sequence[Rule | None], table: Table) -> Sensitivity:
    found = [rule(table) for rule in rules if rule is not None]
    return reduce(lambda one, other: one | other, found, Sensitivity.none(len(table)))


def for_sums(rule: Rule, table: Table, cells: sparse.csr_array, *, heard: bool = False) -> Rule | None:
    """The rule as it applies to sums of cells; None for what was said by hand about single cells.

    A sum is waived where all its cells are, and protected on request where one of its cells is; unless the requests
    for sums were `heard` themselves, in a column of the same name.
    """
    match rule:
        case Manual():
            return None
        case AnyOf() | AllOf():
            parts = [
                part for part in (for_sums(part, table, cells, heard=heard) for part in rule.rules) if part is not None
            ]
            return replace(rule, rules=tuple(parts)) if parts else None
        case Levels():
            inner = for_sums(rule.of, table, cells, heard=heard)
            return None if inner is None else replace(rule, of=inner)
        case Waiver():
            inner = for_sums(rule.of, table, cells, heard=heard)
            if inner is None or rule.cells is None:
                return None if inner is None else replace(rule, of=inner)
            return replace(rule, of=inner, cells=_everywhere(cells, waived(table, rule.cells)))
        case RequestRule():
            inner = for_sums(rule.of, table, cells, heard=heard)
            if inner is None or rule.request is None or (heard and isinstance(rule.request, str)):
                return None if inner is None else replace(rule, of=inner)
            asked = requested(table, rule.request, rule.code)
            return replace(rule, of=inner, request=_everywhere(cells, ~asked) ^ True)
        case _:
            return rule


def _everywhere(cells: sparse.csr_array, mask: Mask) -> Mask:
    """Which sums have only cells of the mask."""
    return np.asarray((cells.astype(np.int64) @ (~mask).astype(np.int64)) == 0)


def _groups(system: System, found: ConstantSums) -> Groups:
    """The sums over the table's cells, each with the known total that it remains of, if it is a plain remainder."""
    table = system.table
    width = len(table)
    cells = sparse.csr_array(
        (found.cells.data, system.cells[found.cells.indices], found.cells.indptr), shape=(len(found), width)
    )
    row = np.where(found.rows >= 0, system.rows[found.rows], 0)
    negative = np.bincount(_row_of_entry(table.equations)[table.equations.data < 0], minlength=table.equations.shape[0])
    total = table.totals[row]
    plain = (found.rows >= 0) & (negative[row] == 1) & (_coefficient(found) > 0)
    parts = sparse.csr_array(table.equations[row]).astype(np.int8)
    parts = sparse.csr_array(sparse.diags_array(plain.astype(np.int8), dtype=np.int8) @ parts - cells)
    others = sparse.csr_array(parts > 0).astype(np.int8)
    return Groups(cells, np.where(plain, total, -1), others, _separate(table, cells, plain))


def _coefficient(found: ConstantSums) -> NDArray[np.int64]:
    """The sign with which a remainder's equation is used; a total among its cells would be on the other side."""
    return np.asarray(found.combination.sum(axis=1)).astype(np.int64)


def _row_of_entry(matrix: sparse.csr_array) -> NDArray[np.intp]:
    return np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))


def _separate(table: Table, cells: sparse.csr_array, plain: Mask) -> Mask:
    """Sums whose cells are known to share no contributor: nobody stands in two leaves, and no leaf in two of them."""
    if not counts_add_up(table):
        return np.zeros(cells.shape[0], dtype=np.bool_)
    if table.names is not None:
        return plain
    group, one, other = _pairs_within(cells, ~plain)
    meet = np.ones(len(one), dtype=np.bool_)
    for d, hierarchy in enumerate(table.dimensions.values()):
        leaves = abs(hierarchy.leaf_matrix).astype(np.int64)
        common = sparse.coo_array(leaves.T @ leaves)
        keys = np.unique(common.row.astype(np.int64) * len(hierarchy) + common.col)
        wanted = table.codes[one, d].astype(np.int64) * len(hierarchy) + table.codes[other, d]
        where = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        meet &= keys[where] == wanted
    return np.asarray(np.bincount(group[meet], minlength=cells.shape[0]) == 0)


def _pairs_within(cells: sparse.csr_array, some: Mask) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]]:
    """Every pair of cells of each of some sums."""
    size = np.where(some, np.diff(cells.indptr), 0)
    entry = np.flatnonzero(np.repeat(some, np.diff(cells.indptr)))
    group = _row_of_entry(cells)[entry]
    times = size[group]
    one = np.repeat(entry, times)
    group = np.repeat(group, times)
    offset = np.arange(len(one)) - np.repeat(np.cumsum(times) - times, times)
    other = cells.indptr[group] + offset
    keep = one < other
    return group[keep], cells.indices[one[keep]], cells.indices[other[keep]]


def _smallest(cells: sparse.csr_array, failed: NDArray[np.intp], certain: Mask) -> list[int]:
    """The failed sums that contain no other; one that fails only possibly does not hide one that fails for certain."""
    if not failed.size:
        return []
    chosen = cells[failed].astype(np.int64)
    common = sparse.coo_array(chosen @ chosen.T)
    size = np.diff(chosen.indptr)
    sure = certain[failed]
    inside = (common.data == size[common.row]) & (size[common.row] < size[common.col])
    inside &= sure[common.row] | ~sure[common.col]
    hidden = np.zeros(len(failed), dtype=np.bool_)
    hidden[common.col[inside]] = True
    return [int(i) for i in failed[~hidden]]


def _told(system: System, found: ConstantSums, judged: _Judged, number: int, budget: Budget) -> Union:
    span = slice(found.cells.indptr[number], found.cells.indptr[number + 1])
    cells = tuple(sorted(system.cells[found.cells.indices[span]].tolist()))
    certain = bool(judged.certain.mask[number])
    combined = {} if budget.hurried else found.combination_of(number, budget)
    weights = {int(system.rows[row]): weight for row, weight in combined.items()}
    return Union(
        cells,
        float(judged.known.value[number]),
        None if judged.cautious.count is None else int(judged.cautious.count[number]),
        None if judged.known.count is None else int(judged.known.count[number]),
        (judged.certain if certain else judged.possible).why(number),
        certain,
        tuple(weights),
        spelled_out(system.table, cells, weights),
        float((judged.certain if certain else judged.possible).upper[number]),
    )


def spelled_out(table: Table, cells: Sequence[int], weights: Mapping[int, Fraction]) -> str:
    """A sum and the known cells that it follows from, such as `a + b = total − c`, in the user's codes."""
    left = " + ".join(map(table.describe, cells[:MOST_TERMS])) + _and_more(len(cells))
    if not weights:
        return f"{left} is the same in every table that agrees with the release"
    known: dict[int, Fraction] = {}
    for row, weight in weights.items():
        span = slice(table.equations.indptr[row], table.equations.indptr[row + 1])
        for cell, entry in zip(table.equations.indices[span], table.equations.data[span], strict=True):
            known[int(cell)] = known.get(int(cell), Fraction(0)) - weight * int(entry)
    terms = [(cell, size) for cell, size in known.items() if size and cell not in set(cells)]
    terms.sort(key=lambda term: (term[1] < 0, term[0]))
    right = " ".join(_term(table, cell, size) for cell, size in terms[:MOST_TERMS]).removeprefix("+ ")
    return f"{left} = {right or '0'}{_and_more(len(terms))}"


def _and_more(terms: int) -> str:
    return f" … ({terms - MOST_TERMS:,} terms more)" if terms > MOST_TERMS else ""


def _term(table: Table, cell: int, size: Fraction) -> str:
    times = "" if abs(size) == 1 else f"{abs(size)}·"
    return f"{'−' if size < 0 else '+'} {times}{table.describe(cell)}"
