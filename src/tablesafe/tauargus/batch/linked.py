"""Table 0: all tables of a session protected together, as one problem, and taken apart again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import polars as pl

from tablesafe.core.equations import Floats, Integers, Mask
from tablesafe.core.errors import InvalidProblem
from tablesafe.core.hierarchy import Hierarchy
from tablesafe.core.linking import RESPONSE, link
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release
from tablesafe.core.sensitivity import Rule, Sensitivity
from tablesafe.core.table import Table
from tablesafe.files.read import Source
from tablesafe.io.matching import match_cells
from tablesafe.tabulate.origin import Origin
from tablesafe.tauargus.batch.rules import COUNTING, build_rules
from tablesafe.tauargus.batch.tables import Made, Specified, cells_with

OF_ONE_TABLE = ("dimensions", "largest")
"""Options of a tabulation in which tables of the same records differ."""


@dataclass(frozen=True, eq=False)
class Linked:
    """One problem over all tables, and which of its cells each table shows."""

    problem: Problem
    cells: tuple[Integers, ...] = field(repr=False)

    def part(self, release: Release, number: int, table: Table) -> Release:
        """What a release of all tables shows of one of them."""
        at = self.cells[number]
        return replace(
            release,
            table=table,
            values=release.values[at],
            lower=release.lower[at],
            upper=release.upper[at],
            status=release.status[at],
            intervals=None if release.intervals is None else release.intervals[at],
        )


def linked(tables: Sequence[Specified], made: Sequence[Made]) -> Linked:
    """All tables as one problem: a cell that several show is sensitive if it is in one of them."""
    problems = [each.problem for each in made]
    joint = _tabulated_at_once([problem.table for problem in problems]) or link([each.table for each in problems])
    cells = tuple(_cells(joint, problem.table) for problem in problems)
    n = len(joint)
    sensitivity = Sensitivity.none(n)
    for problem, at in zip(problems, cells, strict=True):
        sensitivity = sensitivity | _spread(problem.sensitivity, at, n)
    frozen = _any(n, cells, [problem.frozen for problem in problems])
    suppressed = _any(n, cells, [problem.suppressed for problem in problems])
    clash = np.flatnonzero(frozen & (sensitivity.mask | suppressed))
    if clash.size:
        raise InvalidProblem(
            f"Cell {joint.describe(int(clash[0]))} must be published in one table, and is withheld in another.",
            hint="linked tables must agree; correct the status or the a-priori file of one of them.",
        )
    lower = _most(n, cells, [problem.lower for problem in problems])
    upper = -_most(n, cells, [-problem.upper for problem in problems])
    cost = _most(n, cells, [problem.cost for problem in problems])
    whole = Problem(joint, lower=lower, upper=upper, cost=cost, frozen=frozen, suppressed=suppressed)
    rules = _rules(tables, made, joint)
    return Linked(whole.replace(sensitivity=sensitivity, rules=rules), cells)


def _tabulated_at_once(tables: Sequence[Table]) -> Table | None:
    """The tables as margins of one tabulation, which tells who contributes to the unseen cells that tie them together.

    None where they are of different variables or records, or where a recoding gave a code another meaning in one.
    """
    origins = [table.origin for table in tables]
    trees: dict[str, Hierarchy] = {}
    for table in tables:
        for name, tree in table.dimensions.items():
            if trees.setdefault(name, tree) != tree:
                return None
    first = origins[0]
    if not isinstance(first, Origin):
        return None
    for origin in origins[1:]:
        if not isinstance(origin, Origin) or not first.source.equals(origin.source):
            return None
        if any(origin.options[name] != first.options[name] for name in first.options if name not in OF_ONE_TABLE):
            return None
    return first.table(
        dimensions=trees,
        margins=[list(table.dimensions) for table in tables],
        largest=max(origin.options["largest"] for origin in origins if origin is not None),
    )


def _cells(joint: Table, table: Table) -> Integers:
    """The cell of the joint table that each cell of a table is."""
    columns = table.code_columns()
    frame = pl.DataFrame([column.alias(name) for name, column in columns.items()])
    missing = [name for name in joint.dimensions if name not in columns]
    frame = frame.with_columns(pl.lit(table.response if name == RESPONSE else "").alias(name) for name in missing)
    return match_cells(joint, Source(frame, "the linked tables"))


def _spread(sensitivity: Sensitivity, at: Integers, n: int) -> Sensitivity:
    def over(values: Floats) -> Floats:
        out = np.zeros(n)
        np.maximum.at(out, at, values)
        return out

    mask = np.zeros(n, dtype=np.bool_)
    mask[at] = sensitivity.mask
    reason = np.zeros(n, dtype=np.uint32)
    reason[at] = sensitivity.reason
    return Sensitivity(
        mask, over(sensitivity.lower), over(sensitivity.upper), over(sensitivity.sliding), reason, sensitivity.reasons
    )


def _any(n: int, cells: Sequence[Integers], masks: Sequence[Mask]) -> Mask:
    out = np.zeros(n, dtype=np.bool_)
    for at, mask in zip(cells, masks, strict=True):
        out[at] |= mask
    return out


def _most(n: int, cells: Sequence[Integers], values: Sequence[Floats]) -> Floats:
    out = np.full(n, -np.inf)
    for at, value in zip(cells, values, strict=True):
        np.maximum.at(out, at, value)
    return out


def _rules(tables: Sequence[Specified], made: Sequence[Made], joint: Table) -> tuple[Rule, ...]:
    """The rules by which sums of withheld cells are judged: those of all tables, as far as all tell what they need."""
    if joint.contributors is None and joint.count is None:
        return ()
    found: list[Rule] = []
    seen = set()
    merged = joint.holdings is not None
    missing = {name: codes for each in made for name, codes in each.missing.items()}
    for table in tables:
        rules = table.rules
        shadow = table.spec.shadow is not None and table.spec.shadow != table.spec.response
        respondents = tuple(call for call in rules.respondents if not merged or call.name in COUNTING)
        holdings = rules.holdings if merged else ()
        known = [
            call for call in (*holdings, *respondents) if call.name in COUNTING or (call.name != "REQ" and not shadow)
        ]
        key = (tuple(known), rules.weighted, rules.missing_is_safe)
        if key in seen or not known:
            continue
        seen.add(key)
        found += build_rules(
            tuple(call for call in holdings if call in known),
            tuple(call for call in respondents if call in known),
            joint,
            weighted=rules.weighted,
            safe=cells_with(joint, missing) if rules.missing_is_safe else None,
        )
    return tuple(found)
