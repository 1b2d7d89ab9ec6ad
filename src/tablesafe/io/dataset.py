"""Tables as statistical formats hold them: cells with codes, values and statuses, and what the file says about them.

SDMX, PX and JSON-stat name the codes of each dimension, their order, often their parents, a unit, notes. A `Dataset` is
what all of them have in common: whoever reads one of these formats makes a `Dataset`, whoever writes one takes it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
import polars as pl

from tablesafe.core.equations import Integers, Mask
from tablesafe.core.errors import InvalidFile, InvalidOption
from tablesafe.core.hierarchy import Hierarchy
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release, Status
from tablesafe.core.statuses import Meaning, Scheme, read_statuses
from tablesafe.core.table import Table
from tablesafe.files.read import Source
from tablesafe.io.matching import match_cells
from tablesafe.rules.linear import Dominance

STATUS = "status"
MARKS = ("..", "c", "x", ":", ".", "...", "confidential")
"""What stands for a withheld value in files that have no vocabulary of statuses."""


@dataclass(frozen=True, kw_only=True)
class Dataset:
    """One row for each cell, and what the file tells of dimensions, values and the whole."""

    rows: Source
    """Columns: one for each dimension, then `value`, then `status` and whatever else the file holds."""
    dimensions: Mapping[str, Hierarchy | None]
    """In the order of the file; with a hierarchy where the file tells which codes are parts of which."""
    codes: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """The codes of each dimension, in the order of the file."""
    labels: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    totals: Mapping[str, str] = field(default_factory=dict)
    """The code of each dimension that the file calls its total."""
    value: str = "value"
    status: str | None = None
    scheme: Scheme | None = None
    """The vocabulary of the statuses, where the format has one."""
    title: str = ""
    unit: str = ""
    notes: tuple[str, ...] = ()
    names: Mapping[str, str] = field(default_factory=dict)
    """What a dimension is called for readers, where that differs."""

    def hidden(self) -> Mask:
        """Rows whose value is withheld: it is not there, or the status says so."""
        absent: Mask = self.rows.frame[self.value].is_null().to_numpy()
        if self.status is None:
            return absent
        if self.scheme is not None:
            meaning = read_statuses(self.rows, self.status, scheme=self.scheme)
            told: Mask = absent | (meaning == Meaning.SENSITIVE) | (meaning == Meaning.SUPPRESSED)
            return told
        words = self.rows.frame[self.status].cast(pl.String).str.to_lowercase()
        marked: Mask = absent | words.is_in([mark.lower() for mark in MARKS]).fill_null(False).to_numpy()
        return marked

    def table(self, **options: Any) -> Table:
        """The table of a file that holds every value; options are those of `Table.from_cells`."""
        absent = self.rows.frame[self.value].is_null()
        if bool(absent.any()):
            row = int(absent.arg_max() or 0)
            raise InvalidFile(
                f"{self.rows.name} does not hold every value: {int(absent.sum()):,} of {len(absent):,} are missing, "
                f"the first at {self._cell(row)}.",
                hint="a finished table is judged by `tablesafe audit` with the table it was made from.",
            )
        given = {name: self._hierarchy(name) for name in self.dimensions}
        total = {name: self.totals[name] for name in self.dimensions if given[name] is None and name in self.totals}
        return Table.from_cells(
            self.rows,
            **{"dimensions": given, "value": self.value, **({"total": total} if total else {}), **options},
        )

    def sensitive(self, table: Table) -> Mask:
        """Which cells of a table the file calls sensitive: primaries, for `Manual` with a range of their own.

        A letter that says confidential without a reason counts; one that says secondary does not.
        """
        mask = np.zeros(len(table), dtype=np.bool_)
        if self.status is None or self.scheme is None:
            return mask
        meaning = read_statuses(self.rows, self.status, scheme=self.scheme)
        cells = match_cells(table, self.rows)
        mask[cells[(meaning == Meaning.SENSITIVE) & (cells >= 0)]] = True
        return mask

    def _hierarchy(self, name: str) -> Hierarchy | None:
        hierarchy = self.dimensions[name]
        if hierarchy is None or not self.labels.get(name):
            return hierarchy
        return replace(hierarchy, labels={**hierarchy.labels, **self.labels[name]})

    def _cell(self, row: int) -> str:
        codes = self.rows.frame.row(row, named=True)
        return ", ".join(f"{name} {codes[name]}" for name in self.dimensions)

    @classmethod
    def of_release(
        cls,
        release: Release,
        *,
        problem: Problem | None = None,
        confidential: bool = False,
        title: str = "",
        unit: str = "",
        notes: Sequence[str] = (),
    ) -> Self:
        """What may be published of a release; with `confidential` every value, and why each cell is withheld.

        To readers a sensitive cell looks like any other that is withheld. The office, and those it reports to, may see
        which rule flagged a cell: that needs the `problem`.
        """
        if confidential and problem is None:
            raise InvalidOption("The office's view of a release needs its problem.", hint="pass problem=…")
        table = release.table
        if table.names is not None:
            raise InvalidOption(
                "Cells that have names instead of codes have no dimensions, which this format needs.",
                hint="write .csv, .parquet or .xlsx.",
            )
        by_design = release.status[: table.seen] == Status.BY_DESIGN
        values = np.where(by_design, np.nan, (table.value if confidential else release.values)[: table.seen])
        columns: dict[str, Any] = dict(table.code_columns())
        columns[release.heading] = pl.Series(values, nan_to_null=True)
        columns[STATUS] = statuses_of(release, problem if confidential else None)[: table.seen]
        return cls(
            rows=Source(pl.DataFrame(columns), "the release"),
            dimensions=dict(table.dimensions),
            codes={name: hierarchy.codes for name, hierarchy in table.dimensions.items()},
            labels={name: hierarchy.labels for name, hierarchy in table.dimensions.items() if hierarchy.labels},
            totals={name: total for name, hierarchy in table.dimensions.items() if (total := hierarchy.total)},
            value=release.heading,
            status=STATUS,
            scheme="sdmx-conf",
            title=title,
            unit=unit,
            notes=tuple(notes),
        )

    def positions(self) -> Integers:
        """Where each row stands when all combinations of codes are laid out, the last dimension running fastest."""
        place = np.zeros(self.rows.frame.height, dtype=np.int64)
        for name in self.dimensions:
            order = pl.DataFrame({name: list(self.codes[name]), "at": np.arange(len(self.codes[name]))})
            at = self.rows.frame.select(name).join(order, on=name, how="left", maintain_order="left")["at"]
            place = place * len(self.codes[name]) + at.to_numpy()
        return place


FREE, SECONDARY, CONFIDENTIAL = "F", "D", "C"
LETTER_OF = {"threshold": "A", "dominance": "O", "p%": "M", "pq": "M", "linear": "M"}
"""CONF_STATUS for the rules' names: small counts, dominated by one unit, another measure of concentration."""


def statuses_of(release: Release, problem: Problem | None) -> np.ndarray[Any, np.dtype[np.str_]]:
    """CONF_STATUS of each cell: free or confidential; inside the office the rule that flagged it, or secondary."""
    letters = np.where(release.suppressed, CONFIDENTIAL, FREE)
    if problem is None:
        return letters
    sensitivity = problem.sensitivity
    letters = np.where(release.suppressed, SECONDARY, FREE)
    flagged = sensitivity.mask & release.suppressed
    letters[flagged] = CONFIDENTIAL
    for name in ("linear", "pq", "p%", "dominance", "threshold"):  # the plainest reason last: it wins
        if name in sensitivity.reasons:
            bit = np.uint32(1) << np.uint32(sensitivity.reasons.index(name))
            letters[flagged & (sensitivity.reason & bit > 0)] = LETTER_OF[name]
    letters[(letters == "O") & dominated_by_two(problem)] = "T"
    return letters


def dominated_by_two(problem: Problem) -> Mask:
    """Cells that no dominance rule on one contributor flags, where there is one on two or more."""
    one, more = np.zeros(len(problem.table), dtype=np.bool_), False
    for rule in problem.rules:
        if isinstance(rule, Dominance) and rule.n == 1:
            one |= rule(problem.table).mask
        more |= isinstance(rule, Dominance) and rule.n > 1
    return ~one & more
