"""What a method made of the records: the changed ones, and what changed. Confidential."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from tablesafe.core.equations import Mask
from tablesafe.core.errors import InvalidOption
from tablesafe.core.release import Release
from tablesafe.core.table import Table


@dataclass(frozen=True, eq=False)
class Edited:
    """Changed records in the order of the true ones, and the measures of what changed."""

    records: pl.DataFrame = field(repr=False)
    changed: Mask = field(repr=False)
    """The records that differ from the true ones."""
    facts: Mapping[str, float]
    """The measures of the whole file, by name."""
    tables: Mapping[str, pl.DataFrame] = field(default_factory=dict, repr=False)
    """Further measures as frames: by area, by variable."""
    table: Table | None = field(default=None, repr=False)
    """The table that the true records make."""

    @property
    def measures(self) -> pl.DataFrame:
        """The measures of the whole file: a row each."""
        return pl.DataFrame({"measure": list(self.facts), "value": [float(v) for v in self.facts.values()]})

    def tabulate(self, **changes: Any) -> Table:
        """Tabulate the changed records as the table was, or with other options of `ts.tabulate`.

        Every table made so comes from the same changed records, so that all of them agree.
        """
        if self.table is None or self.table.origin is None:
            raise InvalidOption(
                "These records did not come from a table.\n\nHint: tabulate them: ts.tabulate(edited.records, …)"
            )
        return self.table.origin.table(self.records, **changes)


@dataclass(frozen=True, eq=False)
class Outcome:
    """A release, the changed records behind it, and the tables that help the office to judge both. Confidential."""

    release: Release = field(repr=False)
    edited: Edited | None = field(repr=False)
    """None where no record was changed, but cells."""
    tables: Mapping[str, pl.DataFrame] = field(repr=False)
    """By the name of the file that a job writes."""
