"""How a table was made from records, so that methods which change records can make it again from the changed ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from tablesafe.core.errors import InvalidOption, Setting
from tablesafe.core.table import Table
from tablesafe.tabulate.plan import Plan
from tablesafe.tabulate.scan import make_scan, reading
from tablesafe.tabulate.sources import frame_of, identifier, open_records, seal, session


@dataclass(frozen=True, eq=False)
class Origin:
    """The source of a table and the options of its tabulation. It holds no record itself, unless the source does."""

    source: Any = field(repr=False)
    options: Mapping[str, Any] = field(repr=False)
    """The options that `tabulate` was given, by name."""
    plan: Plan = field(repr=False)
    """The same in their final form."""
    make: Callable[..., Table] = field(repr=False)

    def records(self) -> pl.DataFrame:
        """The records that the table counts, with every column, in their order; columns of a CSV file are text."""
        if self.plan.frequency is not None:
            raise InvalidOption(
                (
                    "This changes or looks at single records, but with ",
                    Setting("frequency", self.plan.frequency),
                    " a row stands for several respondents.",
                ),
                hint="take a method that works on cells (suppression, rounding, adjustment), "
                "or give one record per respondent.",
            )
        if type(self.source).__module__.split(".")[0] == "ibis":
            return self._through_ibis()
        with session(*(self.options[name] for name in ("memory_limit", "threads", "temporary"))) as (database, private):
            found = open_records(
                database, self.source, private, delimiter=self.options["delimiter"], wanted=lambda column: True
            )
            seal(database, found)
            scan = make_scan(database, found, self.plan)
            named = ", ".join(f"{column.sql} AS {identifier(name)}" for name, column in found.columns.items())
            with reading(found, self.plan.where):
                answer = frame_of(database, f"SELECT {named} FROM {scan.filtered(numbered=True)} ORDER BY nth")
        return answer

    def table(self, records: Any = None, **changes: Any) -> Table:
        """Tabulate again: from other records, or with other options of `tabulate`, or both.

        Other records have been through the filter already, so that it is not applied to them again.
        """
        unknown = sorted(set(changes) - set(self.options))
        if unknown:
            raise InvalidOption(f"tabulate has no option {unknown[0]!r}.")
        if records is None:
            return self.make(self.source, **{**self.options, **changes})
        rest = {"where": None, "delimiter": None, "engine": "auto"}
        return self.make(records, **{**self.options, **rest, **changes})

    def _through_ibis(self) -> pl.DataFrame:
        where, records = self.plan.where, self.source
        if isinstance(where, Mapping):
            for column, codes in where.items():
                records = records.filter(records[column].isin([codes] if isinstance(codes, str) else list(codes)))
        elif where is not None:
            assert callable(where), "an Ibis table takes no SQL"
            records = records.filter(where(records))
        return pl.DataFrame(records.to_polars())
