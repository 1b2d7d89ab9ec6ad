"""What the public may conclude from counts of changed records when it is told how many were changed."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from tablesafe.core.equations import Floats, Integers
from tablesafe.core.problem import Problem
from tablesafe.methods.microdata.areas import Areas
from tablesafe.methods.microdata.records import Microdata
from tablesafe.methods.microdata.tables import is_count, listed_only


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
    return np.maximum(problem.lower, 1.0) if listed_only(problem.table) else problem.lower
