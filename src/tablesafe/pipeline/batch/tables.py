"""What SPECIFYTABLE specifies: the variables of a table, its costs, and what became of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from tablesafe.core.equations import Floats, Mask
from tablesafe.core.errors import InvalidJob, InvalidTable
from tablesafe.core.problem import Problem
from tablesafe.core.table import Table
from tablesafe.io.tauargus_meta import Metadata, Role, Variable
from tablesafe.job.arb.model import SpecifyTable
from tablesafe.pipeline.batch.rules import Rules


@dataclass(frozen=True, eq=False)
class Specified:
    """One table as the batch file specifies it."""

    number: int
    spec: SpecifyTable
    rules: Rules
    data: Path
    metadata: Metadata = field(repr=False)

    @property
    def title(self) -> str:
        """The table in a line: what spans it, and what it adds up."""
        return f"{' × '.join(self.spec.explanatory)} | {self.spec.response or 'count'}"

    def variables(self) -> tuple[Variable, ...]:
        """The variables that span the table, spelled as the metadata do."""
        found = tuple(self.metadata.variable(name) for name in self.spec.explanatory)
        for variable in found:
            if not variable.is_dimension:
                role = "nothing" if variable.role is Role.OTHER else variable.role.value
                raise InvalidJob(
                    f"{variable.name!r} cannot span a table: {self.metadata.path.name}, line {variable.line} marks it "
                    f"as {role}.\n\nHint: add <RECODEABLE> to it."
                )
        return found


@dataclass(frozen=True, eq=False)
class Made:
    """The problem of a table, and what the user should know about it."""

    problem: Problem
    missing: Mapping[str, tuple[str, ...]]
    """Missing codes of each dimension."""
    remarks: tuple[str, ...] = ()


def cost_of(table: Specified, made: Table) -> Floats | None:
    """What withholding costs; None for the value itself. The distance is computed by the method."""
    match table.spec.cost:
        case "frequency":
            if made.count is None:
                raise InvalidTable(
                    f"The cost is the frequency (-1), but {table.metadata.path.name} marks no column as <FREQUENCY>."
                    f"\n\nHint: mark it, or take another cost."
                )
            return made.count.astype(np.float64)
        case "unity":
            return np.ones(len(made))
        case "variable" if "cost" in made.columns:
            return np.abs(np.asarray(made.columns["cost"], dtype=np.float64))
        case _:
            return None


def cells_with(table: Table, codes: Mapping[str, tuple[str, ...]]) -> Mask:
    """The cells that have one of some codes."""
    mask = np.zeros(len(table), dtype=np.bool_)
    for d, (name, tree) in enumerate(table.dimensions.items()):
        bare = {code.strip() for code in codes.get(name, ()) if code.strip()}
        at = [i for i, code in enumerate(tree.codes) if code.strip() in bare]
        mask |= np.isin(table.codes[:, d], at)
    return mask
