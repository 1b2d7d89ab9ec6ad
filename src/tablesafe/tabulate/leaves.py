"""The leaf aggregate: one row per leaf cell and contributor, in a table of the private database.

It is made by DuckDB from a file or a frame here, or by another engine from an Ibis table (`expression`). From it the
rows are streamed, sorted by contributor, into the tally. DuckDB sorts and groups within its memory limit, on disk
where it must.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tablesafe.core.equations import Integers
from tablesafe.tabulate.axes import Axis
from tablesafe.tabulate.columns import Scale, measure_sql
from tablesafe.tabulate.plan import Measure, Plan, Progress
from tablesafe.tabulate.scan import Scan, reading
from tablesafe.tabulate.sources import Connection, Scanned, frame_of, one_row
from tablesafe.tabulate.survey import kept
from tablesafe.tabulate.tally import Rows, Tally

BATCH = 1 << 18
"""Rows of a query that are in memory at a time."""


@dataclass(frozen=True)
class Leaves:
    """The table `leaf` of a connection: cell, name, alone, respondent, respondents, holders, m0, m1, …, request."""

    connection: Connection
    plan: Plan
    by_record: bool = False
    """Whether every record is a contributor of its own, and `name` is its number."""

    def cells(self) -> Integers:
        """The leaf cells that occur, in ascending order."""
        found = frame_of(self.connection, "SELECT DISTINCT cell FROM leaf ORDER BY cell")
        return np.asarray(found["cell"].to_numpy(), dtype=np.int64)

    def stream(self, tally: Tally, progress: Progress) -> None:
        """Run all rows through the tally."""
        self._number_contributors()
        total = one_row(self.connection, "SELECT count(*) FROM leaf")[0]
        position = _Position(tally.lattice.keys)
        done = 0
        for batch in _whole_contributors(self._sorted()):
            tally.add(self._rows(batch, position))
            done += len(batch)
            progress("Merging contributors", done, int(total))
        if self.plan.counts_respondents:
            for batch in _whole_contributors(self._split()):
                tally.count(position(batch["cell"].to_numpy()), batch["contributor"].to_numpy())

    def names(self, identities: Integers) -> NDArray[np.object_]:
        """The names behind some contributors' numbers."""
        if self.by_record:
            return ("record " + pl.Series(identities + 1).cast(pl.String)).to_numpy().astype(object)
        self.connection.register("wanted", Scanned(pl.DataFrame({"id": identities})))
        found = frame_of(
            self.connection,
            "SELECT CASE WHEN c.alone AND EXISTS (FROM contributor o WHERE o.name = c.name AND NOT o.alone) "
            "THEN c.name || ' (no holding)' ELSE c.name END AS name "
            "FROM contributor c JOIN wanted w ON c.id = w.id ORDER BY c.id",
        )
        self.connection.unregister("wanted")
        return found["name"].to_numpy().astype(object)

    def _number_contributors(self) -> None:
        """Number contributors by name, and respondents that are told apart within contributors."""
        if self.by_record:
            return
        self.connection.execute(
            "CREATE TEMP TABLE contributor AS SELECT name, alone, "
            "row_number() OVER (ORDER BY name, alone) - 1 AS id "
            "FROM (SELECT DISTINCT name, alone FROM leaf WHERE name IS NOT NULL)"
        )
        if self.plan.counts_respondents:
            self.connection.execute(
                "CREATE TEMP TABLE respondent AS SELECT l.respondent AS name, min(c.id) <> max(c.id) AS split, "
                "row_number() OVER () - 1 AS id "
                "FROM leaf l JOIN contributor c ON c.name = l.name AND c.alone = l.alone "
                "WHERE l.respondent IS NOT NULL GROUP BY l.respondent"
            )

    def _sorted(self) -> Iterator[pl.DataFrame]:
        measures = "".join(f", l.m{i}" for i in range(len(self.plan.measures)))
        rest = f"l.holders, l.request{measures}"
        if self.by_record:
            return self._batches(
                f"SELECT l.cell, l.name AS contributor, -1 AS respondent, l.respondents, {rest} FROM leaf l"
            )
        if not self.plan.counts_respondents:
            return self._batches(
                f"SELECT l.cell, coalesce(c.id, -1) AS contributor, -1 AS respondent, l.respondents, {rest} "
                "FROM leaf l LEFT JOIN contributor c ON c.name = l.name AND c.alone = l.alone ORDER BY contributor"
            )
        return self._batches(
            "SELECT l.cell, coalesce(c.id, -1) AS contributor, "
            "CASE WHEN r.split THEN -1 ELSE coalesce(r.id, -1) END AS respondent, "
            f"CASE WHEN r.split THEN 0 ELSE l.respondents END AS respondents, {rest} "
            "FROM leaf l LEFT JOIN contributor c ON c.name = l.name AND c.alone = l.alone "
            "LEFT JOIN respondent r ON r.name = l.respondent ORDER BY contributor, respondent"
        )

    def _split(self) -> Iterator[pl.DataFrame]:
        """The cells of respondents that belong to several contributors."""
        return self._batches(
            "SELECT l.cell, r.id AS contributor FROM leaf l JOIN respondent r ON r.name = l.respondent "
            "WHERE r.split ORDER BY contributor"
        )

    def _batches(self, query: str) -> Iterator[pl.DataFrame]:
        """The rows of a query, some at a time: the database holds them, on disk where it must."""
        self.connection.execute(f"CREATE OR REPLACE TEMP TABLE streamed AS {query}")
        total = int(one_row(self.connection, "SELECT count(*) FROM streamed")[0])
        for first in range(0, total, BATCH):
            rows = f"SELECT * FROM streamed WHERE rowid >= {first} AND rowid < {first + BATCH} ORDER BY rowid"
            yield frame_of(self.connection, rows)
        self.connection.execute("DROP TABLE streamed")

    def _rows(self, batch: pl.DataFrame, position: _Position) -> Rows:
        measures = [f"m{i}" for i in range(len(self.plan.measures))]
        return Rows(
            leaf=position(batch["cell"].to_numpy()),
            contributor=batch["contributor"].to_numpy().astype(np.int64, copy=False),
            respondent=batch["respondent"].to_numpy().astype(np.int64, copy=False),
            many=np.ascontiguousarray(batch.select("respondents", "holders").to_numpy().astype(np.int64)),
            measures=np.ascontiguousarray(batch.select(measures).to_numpy().astype(np.int64)),
            request=batch["request"].to_numpy().astype(np.int64),
        )


class _Position:
    """From the number of a leaf cell to its position among those that occur."""

    def __init__(self, keys: Integers) -> None:
        self.keys = keys
        span = int(keys[-1]) + 1
        self.table: NDArray[np.int32] | None = None
        if span <= max(1 << 22, 8 * len(keys)):
            self.table = np.full(span, -1, np.int32)
            self.table[keys] = np.arange(len(keys), dtype=np.int32)

    def __call__(self, cells: NDArray[np.int64]) -> NDArray[np.int32]:
        if self.table is not None:
            return self.table[cells]
        return np.searchsorted(self.keys, cells).astype(np.int32)


def _whole_contributors(batches: Iterable[pl.DataFrame]) -> Iterator[pl.DataFrame]:
    """Cut the batches anew, so that no contributor is cut in two."""
    waiting: list[pl.DataFrame] = []
    for batch in batches:
        who = batch["contributor"].to_numpy()
        others = np.flatnonzero(who != who[-1])
        if others.size:
            cut = int(others[-1]) + 1
            yield pl.concat([*waiting, batch[:cut]])
            waiting = [batch[cut:]]
        else:
            waiting.append(batch)
    if waiting:
        yield pl.concat(waiting)


def number_leaves(connection: Connection, axes: Sequence[Axis]) -> None:
    """Tell the database which leaf each code of the records is."""
    for i, axis in enumerate(axes):
        codes = pl.Series("code", axis.written, dtype=pl.String)
        leaves = pl.Series("leaf", axis.leaf, dtype=pl.Int64)
        connection.register("axis", Scanned(pl.DataFrame([codes, leaves])))
        connection.execute(f"CREATE OR REPLACE TEMP TABLE axis{i} AS FROM axis")
        connection.unregister("axis")


def cell_sql(axes: Sequence[Axis], records: str) -> tuple[str, str]:
    """The number of a record's leaf cell, and the joins that it needs."""
    key = "CAST(0 AS BIGINT)"
    joins = ""
    for i, axis in enumerate(axes):
        leaf = f"axis{i}.leaf" if axis.missing < 0 else f"coalesce(axis{i}.leaf, {axis.missing})"
        key = f"({key} * {len(axis.used)} + {leaf})"
        joins += f" LEFT JOIN axis{i} ON axis{i}.code = {records}.d{i}"
    return key, joins


def aggregate(scan: Scan, axes: Sequence[Axis], units: Mapping[Measure, Scale]) -> Leaves:
    """Group the records of a file or a frame by leaf cell and contributor."""
    plan = scan.plan
    number_leaves(scan.connection, axes)
    key, joins = cell_sql(axes, "r")
    sums = [measure_sql(measure, units[measure], scan.numbers, scan.weight) for measure in plan.measures]
    asked = "0" if plan.request is None else f"CAST({scan.numbers[plan.request]} AS BIGINT)"
    request = f"(CASE WHEN {asked} > 0 THEN CAST(1 AS BIGINT) << ({asked} - 1) ELSE 0 END)"
    name, alone, respondent = _who(plan)
    counted = "1" if plan.frequency is None else scan.numbers[plan.frequency]
    where = kept(scan) if plan.frequency is None else f"{kept(scan)} AND {counted} > 0"
    records = f"(SELECT * FROM {scan.typed(numbered=plan.respondent is None)} WHERE {where})"
    if plan.merged or plan.frequency is not None:
        added = "".join(f", CAST(sum({sql}) AS BIGINT) AS m{i}" for i, sql in enumerate(sums))
        many = "1" if plan.respondent is not None else f"sum({counted})"
        tail = (
            f"CAST({many} AS BIGINT) AS respondents, CAST(1 AS BIGINT) AS holders, "
            f"CAST(bit_or({request}) AS BIGINT) AS request{added}"
        )
        grouping = " GROUP BY 1, 2, 3, 4"
    else:
        added = "".join(f", {sql} AS m{i}" for i, sql in enumerate(sums))
        tail = f"CAST(1 AS BIGINT) AS respondents, CAST(1 AS BIGINT) AS holders, {request} AS request{added}"
        grouping = ""
    with reading(scan.records, scan.plan.where):
        scan.connection.execute(
            f"CREATE TEMP TABLE leaf AS SELECT {key} AS cell, {name} AS name, {alone} AS alone, "
            f"{respondent} AS respondent, {tail} FROM {records} r{joins}{grouping}"
        )
    return Leaves(scan.connection, plan, by_record=not plan.merged and plan.frequency is None)


def _who(plan: Plan) -> tuple[str, str, str]:
    """A record's contributor, whether it has no holding, and its respondent where that is another question."""
    if plan.frequency is not None:  # nobody knows who they are
        return "CAST(NULL AS VARCHAR)", "false", "NULL"
    if plan.holding is None:
        return ("respondent" if plan.respondent is not None else "nth"), "false", "NULL"
    own = "respondent" if plan.respondent is not None else "'record ' || (nth + 1)"
    return f"coalesce(holding, {own})", "holding IS NULL", "respondent" if plan.respondent is not None else "NULL"
