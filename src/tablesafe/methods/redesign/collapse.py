"""A problem in a coarser design: cells added up, contributors merged, rules applied anew.

Where nobody contributes to two of the cells that are added up, the cells themselves hold all that is needed, and the
answer is exact. Where somebody may, the records are tabulated again if the table was made from records. Without them
contributors that the table does not list are taken to be as large, and as few, as they can be: a cell that is safe so
is safe.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tablesafe.audit.merging import Groups, counts_add_up, merged
from tablesafe.audit.unions import for_sums
from tablesafe.core.equations import Floats, Integers, Mask, cell_keys, equations_across_gaps, product_equations
from tablesafe.core.errors import InvalidOption
from tablesafe.core.hierarchy import Hierarchy
from tablesafe.core.linking import RESPONSE
from tablesafe.core.problem import Problem
from tablesafe.core.sensitivity import Rule
from tablesafe.core.table import Contributors, Table
from tablesafe.methods.redesign.steps import Recode, Step, span_of, spans
from tablesafe.rules.needs import inner_rules
from tablesafe.tabulate.origin import Origin

MOST_CODES = 50
"""The highest code of a request that several of a cell can be told by: as many bits are exact in a number."""


@dataclass(frozen=True, eq=False)
class Redesigned:
    """A problem after a step, and whether its contributors are exact."""

    problem: Problem
    exact: bool


def take(problem: Problem, step: Step) -> Redesigned:
    """The problem after a step."""
    table = problem.table
    if step.kind == "leave out":
        gone = spans(table) == span_of(table.dimensions, step.margin)
        if not (gone & ~problem.withheld).any():
            raise InvalidOption(f"There is no published table by {' × '.join(step.margin)} to leave out.")
        frozen = problem.frozen & ~gone
        structural = table.structural_zero
        if structural is not None:
            gone &= ~structural  # zeros by definition are published all the same: everybody knows them
            frozen = frozen | structural
        return Redesigned(problem.replace(withheld=problem.withheld | gone, frozen=frozen), True)
    if step.dimension not in table.dimensions or step.dimension == RESPONSE:
        known = ", ".join(repr(name) for name in table.dimensions if name != RESPONSE) or "none"
        raise InvalidOption(f"There is no dimension {step.dimension!r} to change; there are {known}.")
    return collapse(problem, step.dimension, step.recode(table.dimensions[step.dimension]))


def collapse(problem: Problem, dimension: str, recode: Recode) -> Redesigned:
    """The problem with a coarser hierarchy of one dimension."""
    table = problem.table
    if recode.joined and not problem.rules:
        raise InvalidOption(
            "Codes cannot be joined: the problem has protection levels but no rules, so that nobody can say whether a "
            "joined cell is sensitive.",
            hint="give rules, or only drop parts, levels and dimensions.",
        )
    dimensions = {**table.dimensions, dimension: recode.hierarchy}
    codes = table.codes.copy()
    at = list(table.dimensions).index(dimension)
    codes[:, at] = recode.place[table.codes[:, at]]
    kept = np.flatnonzero(codes[:, at] >= 0)
    sizes = [len(h) for h in dimensions.values()]
    keys, first, inverse = np.unique(cell_keys(codes[kept], sizes), return_index=True, return_inverse=True)
    if table.unseen is not None:  # they stand behind those that are shown
        order = np.argsort(table.unseen[kept[first]], kind="stable")
        keys, first, inverse = keys[order], first[order], np.argsort(order)[inverse]
    sums = sparse.csr_array(
        (np.ones(len(kept), np.int8), (inverse, kept)), shape=(len(keys), len(table)), dtype=np.int8
    )
    sums.sort_indices()
    new, exact = _added_up(table, sums, dimensions, codes[kept[first]], _requests(problem))
    heard = False
    if not exact and table.origin is not None:
        again = _tabulated(table, dimensions)
        by_key = np.argsort(keys)
        at = by_key[np.searchsorted(keys[by_key], cell_keys(again.codes, sizes)).clip(max=len(keys) - 1)]
        heard = bool((keys[at] == cell_keys(again.codes, sizes)).all())  # unseen cells may be others
        if heard:
            new, sums, exact = again, sums[at], True
    return Redesigned(_with_rules(problem, new, sums, heard=heard), exact)


def _requests(problem: Problem) -> frozenset[str]:
    """Columns of codes of requests, which are no numbers to add up."""
    origin = problem.table.origin
    asked = [None if origin is None else origin.options.get("request")]
    waiting = list(problem.rules)
    while waiting:
        rule = waiting.pop()
        waiting += inner_rules(rule)
        asked.append(getattr(rule, "request", None))
    return frozenset(name for name in asked if isinstance(name, str))


def _tabulated(table: Table, dimensions: Mapping[str, Hierarchy]) -> Table:
    """The records once more, in the coarser hierarchies; records keep their codes, which are aliases now."""
    assert table.origin is not None
    own = {name: hierarchy for name, hierarchy in dimensions.items() if name != RESPONSE}
    return table.origin.table(dimensions=own)


def _added_up(
    table: Table, sums: sparse.csr_array, dimensions: Mapping[str, Hierarchy], codes: NDArray[np.int32],
    requests: frozenset[str],
) -> tuple[Table, bool]:  # fmt: skip
    """The table with cells added up, and whether its contributors are exact; codes of `requests` are put together."""
    several = np.flatnonzero(np.diff(sums.indptr) > 1)
    alone = np.asarray(sums.indices[sums.indptr[:-1]], dtype=np.intp)
    separate = counts_add_up(table)
    groups = groups_of(sums[several], separate=separate)
    joint = merged(table, groups, cautious=True)
    exact = separate or not len(several) or (table.count is None and table.contributors is None)
    between = equations_across_gaps if table.unseen is None else product_equations
    product = between(codes, list(dimensions.values()))
    integers = np.asarray(sums.astype(np.int64) @ table.integers)
    holds = np.asarray(product.equations.astype(np.int64) @ integers) == 0
    origin = table.origin
    if isinstance(origin, Origin):
        own = {name: hierarchy for name, hierarchy in dimensions.items() if name != RESPONSE}
        origin = replace(origin, options={**origin.options, "dimensions": own})
    new = replace(
        table,
        integers=integers,
        equations=sparse.csr_array(product.equations[holds]),
        totals=product.totals[holds],
        dimensions=dict(dimensions),
        codes=codes,
        count=_replaced(table.count, joint.count, alone, several),
        holdings=_replaced(table.holdings, joint.holdings, alone, several),
        contributors=_contributors(table.contributors, joint.contributors, alone, several),
        structural_zero=None if table.structural_zero is None else _all_of(sums, table.structural_zero),
        columns={
            name: joined_requests(column, sums) if name in requests else np.asarray(sums @ np.asarray(column))
            for name, column in table.columns.items()
        },
        computed=None,
        unseen=None if table.unseen is None else table.unseen[alone],
        origin=origin,
        signed=None if table.signed is None else np.asarray(sums @ table.signed.astype(np.int64)) > 0,
    )
    return new, exact


def joined_requests(column: NDArray[Any], sums: sparse.csr_array) -> NDArray[Any]:
    """The requests of several cells as those of one: each code that one of them has (see `rules.columns.asked_for`)."""
    values = np.nan_to_num(np.asarray(column, np.float64))
    whole = (values == np.rint(values)) & (values <= MOST_CODES) & (values >= -(2.0**MOST_CODES))
    if not whole.all():
        raise InvalidOption(
            f"Codes of requests are whole numbers up to {MOST_CODES}, so that cells with several can be joined.",
            hint="give the requests other codes.",
        )
    code = values.astype(np.int64)
    several = (code < 0) & ((-code & (-code - 1)) != 0)  # −1 is a mark like any
    bits = np.where(code > 0, np.int64(1) << np.maximum(code - 1, 0), np.where(several, -code, 0))
    marked = (code < 0) & ~several
    joint = np.bitwise_or.reduceat(bits[sums.indices], sums.indptr[:-1])
    single = (joint & (joint - 1)) == 0
    none = -np.bitwise_or.reduceat(marked[sums.indices].astype(np.int64), sums.indptr[:-1])
    return np.where(joint == 0, none, np.where(single, np.bitwise_count(joint - 1).astype(np.int64) + 1, -joint))


def groups_of(cells: sparse.csr_array, *, separate: bool) -> Groups:
    """Sets of cells to add up."""
    n = cells.shape[0]
    none = np.full(n, -1, dtype=np.intp)
    return Groups(cells, none, sparse.csr_array(cells.shape, dtype=np.int8), np.full(n, separate, dtype=np.bool_))


def _replaced(
    old: Integers | None, new: Integers | None, alone: NDArray[np.intp], several: NDArray[np.intp]
) -> Integers | None:
    if old is None or new is None:
        return None
    out = old[alone]
    out[several] = new
    return out


def _contributors(
    old: Contributors | None, new: Contributors | None, alone: NDArray[np.intp], several: NDArray[np.intp]
) -> Contributors | None:
    if old is None or new is None:
        return None
    more = max(new.depth - old.depth, 0)  # with weights: those who reported the most, and those who add the most

    def both(one: NDArray[Any], other: NDArray[Any], fill: int) -> NDArray[Any]:
        out = np.pad(one[alone], ((0, 0), (0, more)), constant_values=fill)
        out[several] = other
        return out

    weighted = None
    if old.weighted is not None and new.weighted is not None:
        weighted = both(old.weighted, new.weighted, 0)
    amount, identity = both(old.amount, new.amount, 0), both(old.identity, new.identity, -1)
    return Contributors(amount, identity, weighted, old.names, new.sure)


def _all_of(sums: sparse.csr_array, mask: Mask) -> Mask:
    return np.asarray((sums.astype(np.int64) @ (~mask).astype(np.int64)) == 0)


def _with_rules(problem: Problem, table: Table, sums: sparse.csr_array, *, heard: bool) -> Problem:
    """The rules applied to the new cells; what was said by hand about cells that stay as they were stays too."""
    old = problem.table
    applied = [rule for rule in problem.rules if for_sums(rule, old, sums) is not None]
    adapted = (for_sums(rule, old, sums, heard=heard) for rule in applied)
    rules: list[Rule] = [rule for rule in adapted if rule is not None]
    by_rule = Problem(old, applied).sensitivity.mask
    single = np.diff(sums.indptr) == 1
    alone = np.asarray(sums.indices[sums.indptr[:-1]], dtype=np.intp)
    given = problem.sensitivity.where(problem.sensitivity.mask & ~by_rule)
    waived = by_rule & ~problem.sensitivity.mask
    carried = replace(
        given, mask=given.mask[alone] & single, lower=np.where(single, given.lower[alone], 0.0),
        upper=np.where(single, given.upper[alone], 0.0), sliding=np.where(single, given.sliding[alone], 0.0),
        reason=np.where(single, given.reason[alone], np.uint32(0)),
    )  # fmt: skip
    found = (Problem(table, rules).sensitivity | carried).where(~(waived[alone] & single))
    frozen = ~_all_of(sums, ~problem.frozen) & ~found.mask
    new = Problem(
        table,
        sensitivity=found,
        lower=_added(sums, problem.lower),
        upper=_added(sums, problem.upper),
        cost=_added(sums, problem.cost),
        frozen=frozen,
        suppressed=_all_of(sums, problem.suppressed) & ~frozen,
        withheld=_all_of(sums, problem.withheld) & ~frozen,
        shows_zeros=problem.shows_zeros,
    )
    return new.replace(rules=tuple(rules))


def _added(sums: sparse.csr_array, bound: Floats) -> Any:
    """Bounds and costs of added cells; an infinite part makes the sum infinite."""
    finite = np.isfinite(bound)
    total = np.asarray(sums.astype(np.float64) @ np.where(finite, bound, 0.0))
    above, below = (np.asarray(sums.astype(np.int64) @ (bound == sign * np.inf)) > 0 for sign in (1, -1))
    return np.where(above, np.inf, np.where(below, -np.inf, total))
