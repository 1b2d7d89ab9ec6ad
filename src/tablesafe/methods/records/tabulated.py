"""Tables of changed records beside the table of the true ones, cell by cell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tablesafe.core.equations import Floats, Integers, Mask, cell_keys, rescaled
from tablesafe.core.errors import InvalidOption, InvalidProblem, Setting, and_more
from tablesafe.core.mechanism import Mechanism, Transition
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release, Status
from tablesafe.core.table import Table
from tablesafe.methods.counting import is_count
from tablesafe.methods.records.areas import Areas
from tablesafe.methods.records.behind import Microdata, origin_of


def tabulated(table: Table, records: pl.DataFrame, method: str, **changes: Any) -> Integers:
    """The value of every cell of a table when other records are tabulated, in the table's units.

    A cell that no record falls into is 0. Records that fall into no cell are an error: a release shows the cells of
    its table, and a table without its empty cells has no place for them.
    """
    origin = origin_of(table, method)
    plain: dict[str, Any] = {"largest": 0, "request": None, "shadow": None, "cost": None, "columns": ()}
    known = {name: table.dimensions[name] for name in origin.plan.dimensions}
    made = origin.table(records, **{**plain, "dimensions": known, "zeros": False, **changes})
    at = matched(table, made)
    new = np.flatnonzero((at < 0) & (made.integers != 0))
    if new.size:
        raise InvalidOption(
            f"{method} put records into {new.size:,} combinations that are no cells of this table, such as "
            f"{made.describe(int(new[0]))}.",
            hint=(
                "tabulate with ",
                Setting("zeros", True),
                " (in a job: zeros = true in [source]), so that empty combinations are cells, or let the "
                "method keep out of them: ",
                Setting("new_cells", "avoid"),
                ".",
            ),
        )
    out = np.zeros(len(table), dtype=np.int64)
    out[at[at >= 0]] = _in_units(made, table.decimals)[at >= 0]
    if np.asarray(table.equations.astype(np.int64) @ out).any():
        raise InvalidOption(f"The records that {method} changed have more decimals than the table can add exactly.")
    return out


def matched(table: Table, other: Table) -> NDArray[np.intp]:
    """The cell of `table` that has the codes of each cell of `other`; −1 where there is none."""
    codes = np.empty_like(other.codes)
    for d, (name, hierarchy) in enumerate(other.dimensions.items()):
        place = table.dimensions[name].positions(pl.Series(hierarchy.codes, dtype=pl.String))
        codes[:, list(table.dimensions).index(name)] = place[other.codes[:, d]]
    sizes = [len(hierarchy) for hierarchy in table.dimensions.values()]
    keys = cell_keys(np.concatenate([table.codes, np.maximum(codes, 0)]), sizes)
    order = np.argsort(keys[: len(table)])
    sorted_keys, wanted = keys[: len(table)][order], keys[len(table) :]
    at = np.minimum(np.searchsorted(sorted_keys, wanted), len(table) - 1)
    return np.where((sorted_keys[at] == wanted) & (codes >= 0).all(axis=1), order[at], -1)


def _in_units(made: Table, decimals: int) -> Integers:
    if made.decimals <= decimals:
        return rescaled(made.integers, decimals - made.decimals)
    return np.rint(made.integers / 10.0 ** (made.decimals - decimals)).astype(np.int64)


def at_total(table: Table, columns: Sequence[str], column_of: Any) -> Mask:
    """The cells that lie at the total of every dimension that is made from one of the columns."""
    out = np.ones(len(table), dtype=np.bool_)
    for d, (name, hierarchy) in enumerate(table.dimensions.items()):
        if column_of.get(name) in columns:
            out &= False if hierarchy.total is None else table.codes[:, d] == hierarchy.position(hierarchy.total)
    return out


def published(
    problem: Problem, integers: Integers, lower: Floats, upper: Floats, known: Mask, *, method: str
) -> Release:
    """Publish the changed values; `known` cells are the truth, and everyone may know that they are.

    Bounds leave out the truth by no more than the rounding of their last bit, which is undone: anything else would be a
    false promise of the method.
    """
    table = problem.table
    changed = integers != table.integers
    wrong = np.flatnonzero(problem.frozen & changed)
    if wrong.size:
        raise InvalidProblem(
            f"Cell {table.describe(int(wrong[0]))} is frozen to be published as it is, but {method} "
            f"changed it{and_more(wrong.size)}.",
            hint="unfreeze it; a method that changes records cannot keep single cells.",
        )
    hidden = problem.withheld | problem.suppressed
    status = np.where(changed, Status.CHANGED, Status.PUBLISHED).astype(np.uint8)
    status[problem.suppressed] = Status.GIVEN
    status[problem.withheld] = Status.BY_DESIGN
    known = (known | problem.frozen) & ~hidden
    assert not (known & changed).any(), "a cell that is told to be the truth was changed"
    low, high, slack = np.maximum(lower, problem.lower), np.minimum(upper, problem.upper), _last_bits(table.value)
    assert ((low <= table.value + slack) & (table.value - slack <= high)).all(), "the bounds leave out the truth"
    low, high = np.minimum(low, table.value), np.maximum(high, table.value)
    return Release(
        table,
        np.where(hidden, np.nan, integers / 10.0**table.decimals),
        np.where(hidden, problem.lower, np.where(known, table.value, low)),
        np.where(hidden, problem.upper, np.where(known, table.value, high)),
        status,
        method,
        private_bounds=problem.bounds_differ,
    )


def _last_bits(values: Floats) -> Floats:
    """How far floating point may be off."""
    return np.asarray(1e-9 * np.maximum(np.abs(values), 1.0))


# How chance turned true counts into published ones when records were changed: estimated from the table itself.


ASKED = 100
"""Published counts up to this get a posterior: of larger ones nobody learns about a person."""
ENOUGH = 30
"""Cells that the chances of one true count are estimated from, at least: those of neighbouring counts help."""


def estimated(problem: Problem, integers: Integers, known: Mask) -> Mechanism | None:
    """P(published | true) of the cells that changing records may change; None where cells do not count records.

    Swapping and imputing draw records, not cells: what happens to a count follows from how many of its records were
    drawn and where they went. The chances are those seen in all cells of about the same true count. They say what an
    intruder would know who knows the method and the kind of table well.
    """
    table = problem.table
    drawn = ~known & ~problem.frozen
    asked = drawn & (integers <= ASKED)
    if not is_count(table) or not asked.any():
        return None
    top = int(table.integers[asked].max())
    true, change = table.integers[drawn], (integers - table.integers)[drawn]
    order = np.argsort(true, kind="stable")
    true, change = true[order], change[order]
    rows, low = _rows(true, change, top)
    return Mechanism((Transition(rows, low),), np.where(asked, 0, -1))


def _rows(true: Integers, change: Integers, top: int) -> tuple[Floats, int]:
    """The chances of every change, a row per true count from 0 to `top`; and the smallest change."""
    first, last = np.arange(top + 1), np.arange(top + 1)
    start, end = np.searchsorted(true, first), np.searchsorted(true, last, side="right")
    widest = np.zeros(top + 1, dtype=np.int64)
    while True:
        few = (end - start < ENOUGH) & (end - start < len(true))
        if not few.any():
            break
        widest[few] = 2 * widest[few] + 1
        start = np.searchsorted(true, first - widest)
        end = np.searchsorted(true, last + widest, side="right")
    near = change[int(start.min()) : int(end.max())]
    low, high = int(min(near.min(), 0)), int(max(near.max(), 0))
    rows = np.zeros((top + 1, high - low + 1))
    for t in range(top + 1):
        seen = np.maximum(change[start[t] : end[t]], -t)  # a count is never negative
        rows[t] = np.bincount(seen - low, minlength=high - low + 1) / len(seen)
    return rows, low


# What the public may conclude from counts of changed records when it is told how many were changed.


@dataclass(frozen=True, eq=False)
class Announced:
    """How many records of each finest area may have been changed, at most."""

    microdata: Microdata = field(repr=False)
    areas: Areas = field(repr=False)
    most: Integers = field(repr=False)

    def by_cell(self) -> Floats:
        """How far each count may be from the truth: no further than records of its areas were changed."""
        table, origin = self.microdata.table, self.microdata.origin
        assert table is not None
        assert origin is not None
        out = np.full(len(table), float(self.most.sum()))
        for d, (name, hierarchy) in enumerate(table.dimensions.items()):
            if origin.plan.column_of.get(name) not in self.areas.columns:
                continue
            at = self.microdata.positions(name)
            there = at >= 0
            pairs = np.unique(np.stack([at[there], self.areas.finest[there]], axis=1), axis=0)
            leaf = np.zeros(len(hierarchy))
            np.add.at(leaf, pairs[:, 0], self.most[pairs[:, 1]])
            reach = np.asarray(hierarchy.leaf_matrix @ leaf[~hierarchy.is_total])
            out = np.minimum(out, reach[table.codes[:, d]])
        return out


def window(
    problem: Problem, said: Announced, integers: Integers, lower: Floats, upper: Floats
) -> tuple[Floats, Floats]:
    """Narrow the bounds of counts to what was announced; sums of amounts may have changed by anything."""
    if not is_count(problem.table):
        return lower, upper
    reach = said.by_cell()
    return np.maximum(lower, integers - reach), np.minimum(upper, integers + reach)


def listed_floor(problem: Problem) -> Floats:
    """The attacker's lower bounds: a table that shows no empty cells tells that every count is at least 1."""
    shown = ~(problem.withheld | problem.suppressed)
    told = is_count(problem.table) and problem.table.leaves_out_empty(shown)
    return np.where(shown, np.maximum(problem.lower, 1.0), problem.lower) if told else problem.lower
