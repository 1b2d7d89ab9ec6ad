"""What a design risks, and what its users learn from it.

The information of a table is the entropy of its innermost cells: how many bits it takes to say in which of them a
record (or a unit of value) lies. Two cells in one lose what told them apart, and small ones lose little. Of several
linked tables the entropies add up. A table that is left out still shows what its best published margin shows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, Self

import numpy as np

from tablesafe.audit.system import System
from tablesafe.core.equations import Floats, Integers, Mask
from tablesafe.core.problem import Problem
from tablesafe.methods.redesign.steps import finest, spans
from tablesafe.solve.propagate import propagate
from tablesafe.tabulate.plan import RECORDS

Risk = Literal["cells", "records", "value"]
Weight = Literal["records", "value"]


@dataclass(frozen=True, slots=True)
class Design:
    """The figures of one design."""

    cells: int
    """Cells that are published or would be, if they were safe."""
    sensitive: int
    risk: float
    information: float
    """Bits; see the module."""


@dataclass(frozen=True, eq=False)
class Scale:
    """What designs are measured by: the tables of the first one, and the weights of cells."""

    tables: tuple[int, ...]
    """The dimensions of each table, as bits."""
    risk: Risk
    weight: Weight
    start: Design = field(init=False)

    @classmethod
    def of(cls, problem: Problem, *, risk: Risk, weight: Weight) -> Self:
        """The scale that starts at a problem."""
        shown = np.unique(spans(problem.table)[~problem.withheld]).tolist()
        scale = cls(tuple(s for s in shown if not any(s != t and s & t == s for t in shown)), risk, weight)
        object.__setattr__(scale, "start", scale.measure(problem))
        return scale

    def measure(self, problem: Problem) -> Design:
        """The figures of a design."""
        risks = self.risks(problem)
        return Design(
            int((~problem.withheld).sum()),
            int((problem.sensitivity.mask & (~problem.withheld | given_away(problem))).sum()),
            float(risks.sum()),
            float(sum(self.entropy(problem, span) for span in self.shown(problem))),
        )

    def risks(self, problem: Problem) -> Floats:
        """What each cell adds to the risk."""
        at_risk = problem.sensitivity.mask & (~problem.withheld | given_away(problem))
        return np.where(at_risk, weights_of_risk(problem, self.risk), 0.0)

    def weights(self, problem: Problem) -> Floats:
        """What each cell weighs in the entropy."""
        table = problem.table
        # respondents do not add up where they stand in several cells, so records are counted wherever they are known
        records = table.columns.get(RECORDS, table.count)
        if self.weight == "records" and records is not None and table.response != RECORDS:
            return np.asarray(records, dtype=np.float64)
        return np.abs(table.value)

    def shown(self, problem: Problem) -> list[int]:
        """For each table of the first design what is still published of it: itself, or its best margin."""
        there = np.unique(spans(problem.table)[~problem.withheld]).tolist()
        best = []
        for table in self.tables:
            inside = [table] if table in there else [span for span in there if span & table == span]
            best.append(max(inside, key=lambda span: self.entropy(problem, span), default=0))
        return best

    def entropy(self, problem: Problem, span: int) -> float:
        """The entropy of a table's innermost cells, in bits."""
        inner = self.weights(problem)[finest(problem.table, span)]
        total = float(inner.sum())
        return float(np.log2(total) - terms(inner).sum() / total) if total > 0 else 0.0

    def loss(self, design: Design) -> float:
        """The share of cells and of information that a design lost, on average of the two."""
        cells = 1 - design.cells / max(self.start.cells, 1)
        bits = 1 - design.information / self.start.information if self.start.information > 0 else 0.0
        return (cells + bits) / 2


def given_away(problem: Problem) -> Mask:
    """Cells withheld by design whose value follows from what is published, so that leaving them out hides nothing.

    Found by passing bounds along the equations, for an attacker who sees every cell that is not withheld by design.
    """
    known = np.zeros(len(problem.table), dtype=np.bool_)
    hidden = np.flatnonzero(problem.withheld)
    if not hidden.size:
        return known
    unit = 10.0**problem.table.decimals
    system = System.over(problem.table, hidden, problem.lower[hidden] * unit, problem.upper[hidden] * unit)
    truth = system.truth.astype(np.float64)
    below, above = propagate(system.matrix, np.floor(system.lower) - truth, np.ceil(system.upper) - truth)
    known[hidden] = below == above
    return known


def terms(weight: Floats) -> Floats:
    """w·log2(w), and 0 for 0."""
    return np.asarray(weight * np.log2(np.maximum(weight, 1e-300)))


def weights_of_risk(problem: Problem, risk: Risk) -> Floats:
    """What a cell would add to the risk if it were sensitive."""
    table = problem.table
    if risk == "records" and table.count is not None:
        return table.count.astype(np.float64)
    return np.abs(table.value) if risk == "value" else np.ones(len(table))


def front(risk: Sequence[float], loss: Sequence[float]) -> Mask:
    """Which points no other is better than in one way and as good in the other."""
    out = np.zeros(len(risk), dtype=np.bool_)
    best = np.inf
    order: Integers = np.lexsort((np.asarray(risk), np.asarray(loss)))
    for at in order.tolist():
        if risk[at] < best:
            out[at], best = True, risk[at]
    return out
