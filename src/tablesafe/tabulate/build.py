"""From the tally to a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tablesafe.core.cube import tied
from tablesafe.core.equations import Floats, Integers, cell_keys
from tablesafe.core.errors import InvalidTable, Setting
from tablesafe.core.linking import joined_as_they_are
from tablesafe.core.table import Contributors, Table
from tablesafe.tabulate.axes import Axis
from tablesafe.tabulate.columns import Scale
from tablesafe.tabulate.lattice import Lattice, every_cell, make_lattice, of_margins
from tablesafe.tabulate.leaves import Leaves
from tablesafe.tabulate.plan import RECORDS, SHADOW, UNWEIGHTED, Measure, Plan, Progress, Response
from tablesafe.tabulate.tally import Best, Tally, Totals

MOST_CELLS = 100_000_000
"""Cells of a table together with its empty ones: beyond, memory is the limit, and a margin should be asked for."""


def add_up(
    leaves: Leaves, axes: Sequence[Axis], units: Mapping[Measure, Scale], negative: frozenset[str], source: str,
    progress: Progress,
) -> Cells:  # fmt: skip
    """Add up the leaf aggregate into every wanted cell; `negative` are the responses with negative records."""
    plan = leaves.plan
    progress("Finding the cells", 0, None)
    lattice = make_lattice(axes, leaves.cells(), plan.margins, plan.crossed)
    tally = _start(plan, lattice)
    leaves.stream(tally, progress)
    progress("Adding up", 0, None)
    totals = tally.finish()
    names = None
    if plan.rankings:
        known, who = _renumbered(totals.best.who)
        names = leaves.names(known)
        totals = replace(totals, best=replace(totals.best, who=who))
    return Cells(plan, axes, units, lattice.codes, totals, names, source, negative)


def _start(plan: Plan, lattice: Lattice) -> Tally:
    number = {measure: i for i, measure in enumerate(plan.measures)}
    kinds = 1 if plan.weight is None else 2
    ranked = np.zeros((len(plan.rankings), kinds), dtype=np.int64)
    for r, (by, other) in enumerate(plan.rankings):
        ranked[r, 0] = number[by]
        if other is not None:
            ranked[r, 1] = number[other]
    return Tally.start(
        lattice, ranked, plan.largest, len(plan.measures),
        requested=plan.request is not None, told_apart=plan.holding is not None,
    )  # fmt: skip


def _spread_out(array: Integers, where: NDArray[np.intp], n: int, fill: int = 0) -> Integers:
    """The entries of some cells among those of all."""
    out = np.full((n, *array.shape[1:]), fill, dtype=np.int64)
    out[where] = array
    return out


def _renumbered(who: Integers) -> tuple[Integers, Integers]:
    """The contributors that are kept, and their places in that list instead of their numbers."""
    top = int(who.max(initial=-1)) + 1
    if top > 16 * who.size:
        known = np.unique(who[who >= 0])
        return known, np.where(who >= 0, np.searchsorted(known, who), -1)
    place = np.full(top + 1, -1, dtype=np.int64)  # the last entry is for −1: nobody
    place[who] = 0
    place[-1] = -1
    known = np.flatnonzero(place >= 0)
    place[known] = np.arange(len(known))
    return known, place[who]


@dataclass(frozen=True, eq=False)
class Cells:
    """Every cell of the table with its sums and its largest contributors."""

    plan: Plan
    axes: Sequence[Axis]
    units: Mapping[Measure, Scale]
    codes: NDArray[np.int32]
    totals: Totals
    names: NDArray[np.object_] | None
    source: str
    negative: frozenset[str]
    """The response variables that are negative in some record."""

    def joined(self) -> Table:
        """One table of all response variables."""
        wanted = of_margins(self.codes, self.axes, self.plan.margins)
        cells = self if bool(wanted.all()) else self.only(wanted)
        cells = cells.with_empty_ones() if self.plan.zeros else cells
        tables = [
            tied(cells.table(response), known=self.loose(response), cube=self.plan.cube)
            for response in self.plan.responses
        ]
        if len(tables) == 1 and not self.plan.equations:
            return tables[0]
        return joined_as_they_are(tables, [str(equation) for equation in self.plan.equations] or None)

    def only(self, wanted: NDArray[np.bool_]) -> Cells:
        """Some of the cells."""
        best = self.totals.best
        totals = Totals(
            self.totals.respondents[wanted], self.totals.holders[wanted], self.totals.sums[wanted],
            Best(best.amount[wanted], best.who[wanted], best.carried[wanted]),
        )  # fmt: skip
        return replace(self, codes=self.codes[wanted], totals=totals)

    def with_empty_ones(self) -> Cells:
        """All combinations of codes in the wanted margins, those without records as zeros."""
        sizes = [len(axis.hierarchy) for axis in self.axes]
        if np.prod([float(size) for size in sizes]) > MOST_CELLS and self.plan.margins is None:
            raise InvalidTable(
                f"With its empty cells the table would have {np.prod([float(s) for s in sizes]):,.0f} cells.",
                hint=(
                    "tabulate without ",
                    Setting("zeros", True),
                    "; a cell that is not there is empty.",
                ),
            )
        codes = every_cell(self.axes, self.plan.margins)
        both = cell_keys(np.concatenate([codes, self.codes]), sizes)
        where = np.searchsorted(both[: len(codes)], both[len(codes) :])
        best = Best(
            _spread_out(self.totals.best.amount, where, len(codes)),
            _spread_out(self.totals.best.who, where, len(codes), fill=-1),
            _spread_out(self.totals.best.carried, where, len(codes)),
        )
        totals = Totals(
            _spread_out(self.totals.respondents, where, len(codes)),
            _spread_out(self.totals.holders, where, len(codes)),
            _spread_out(self.totals.sums, where, len(codes)),
            best,
        )
        return replace(self, codes=codes, totals=totals)

    def table(self, response: Response) -> Table:
        """The table of one response variable."""
        made = Table.from_codes(
            self.codes,
            self._sum(response.value),
            {axis.name: axis.hierarchy for axis in self.axes},
            **self._of_cells(response),
            source=self.source,
        )
        return replace(made, exact=self.units[response.value].exact, signed=np.full(len(made), self._signed(response)))

    def _signed(self, response: Response) -> bool:
        """Whether contributions to a response variable may be negative."""
        return bool(response.value.terms) and (response.name in self.negative or self.plan.negative == "possible")

    def loose(self, response: Response) -> Table:
        """All cells of one response variable, with no equations."""
        return Table.loose(
            self.codes,
            self._sum(response.value),
            {axis.name: axis.hierarchy for axis in self.axes},
            **self._of_cells(response),
        )

    def _of_cells(self, response: Response) -> dict[str, Any]:
        return {
            "count": self.totals.respondents,
            "holdings": None if self.plan.holding is None else self.totals.holders,
            "contributors": self._contributors(response),
            "columns": self._columns(response),
            "response": response.name,
            "decimals": self.units[response.value].decimals,
        }

    def _whole(self, measure: Measure) -> Integers:
        return self.totals.sums[:, self.plan.measures.index(measure)]

    def _sum(self, measure: Measure) -> Floats:
        return self._whole(measure) / 10.0 ** self.units[measure].decimals

    def _columns(self, response: Response) -> dict[str, NDArray[Any]]:
        plan = self.plan
        columns: dict[str, NDArray[Any]] = {name: self._sum(measure) for name, measure in plan.extras.items()}
        if plan.extras.get(RECORDS) == Measure():
            columns[RECORDS] = self._whole(Measure()).copy()
        if plan.weight is not None and SHADOW not in plan.extras:
            columns.setdefault(UNWEIGHTED, self._sum(response.amount))
        if plan.request is not None:
            columns[plan.request] = self._request(response)
        return columns

    def _request(self, response: Response) -> Integers:
        """What those asked for who reported the most, or with weights add the most: codes as `_codes` has them."""
        best, rankings = self.totals.best, [self._ranking(response)]
        if response.added is not None:
            rankings.append(self.plan.rankings.index((response.added, response.amount)))
        asked = np.zeros(len(best.who), np.int64)
        for r in rankings:
            size, there = np.abs(best.amount[:, r]), best.who[:, r] >= 0
            largest = there & (size == size[:, :1])  # several, where they reported the same
            asked |= np.bitwise_or.reduce(np.where(largest, best.carried[:, r, :, -1], 0), axis=1)
        return _codes(asked)

    def _ranking(self, response: Response) -> int:
        return self.plan.rankings.index((response.amount, response.added))

    def _contributors(self, response: Response) -> Contributors | None:
        if not self.plan.rankings:
            return None
        r, best, unit = self._ranking(response), self.totals.best, 10.0 ** self.units[response.amount].decimals
        if response.added is None:
            return Contributors(best.amount[:, r] / unit, best.who[:, r].copy(), None, self.names)
        other, sure = self.plan.rankings.index((response.added, response.amount)), self.plan.largest
        who, again = best.who[:, r], best.who[:, other]
        again = np.where((again[:, :, None] == who[:, None, :]).any(axis=2), -1, again)
        both = np.concatenate([who, again], axis=1)
        amount = np.concatenate([best.amount[:, r], best.carried[:, other, :, 0]], axis=1)
        added = np.concatenate([best.carried[:, r, :, 0], best.amount[:, other]], axis=1)
        order = np.lexsort((-np.abs(amount), both < 0), axis=1)
        both, amount, added = (np.take_along_axis(each, order, axis=1) for each in (both, amount, added))
        added = np.where(both < 0, 0, added) / 10.0 ** self.units[response.added].decimals
        return Contributors(np.where(both < 0, 0, amount) / unit, both, added, self.names, sure)


def _codes(asked: Integers) -> Integers:
    """One code of a request as itself, none as 0, several as minus their bits: `rules.columns.asked_for` reads them."""
    one = (asked & (asked - 1)) == 0
    return np.where(asked == 0, 0, np.where(one, np.bitwise_count(asked - 1).astype(np.int64) + 1, -asked))
