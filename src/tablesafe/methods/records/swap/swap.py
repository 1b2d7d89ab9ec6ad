"""Record swapping: the method and its options."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tablesafe.core.equations import Integers, Mask
from tablesafe.core.errors import InvalidOption
from tablesafe.core.options import require_choice, require_whole
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release
from tablesafe.methods.records.areas import Areas, Targets, alike, risky_level
from tablesafe.methods.records.behind import Data, Edited, Microdata, Outcome, novel, origin_of
from tablesafe.methods.records.checks import (
    Steps,
    require_column,
    require_columns,
    require_lists,
    require_rates,
    require_seed,
)
from tablesafe.methods.records.measures import outcome_of
from tablesafe.methods.records.swap.measures import facts_of, strata_of, tell_short
from tablesafe.methods.records.swap.pairing import Pairs, never_left
from tablesafe.methods.records.swap.partners import Search, Units, changes_of, even_out
from tablesafe.methods.records.tabulated import (
    Announced,
    at_total,
    estimated,
    listed_floor,
    published,
    window,
)
from tablesafe.work.run import Run

NEW_CELLS = ("error", "avoid")
TRIES = 20
"""Times that swaps into combinations without a cell are taken back and tried anew."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Swap:
    """Let like records of different areas change places, and tabulate that.

    In every area of the finest level `rate` of the units (records, or households) get the area of another unit that is
    equal in the `match` columns: exactly the whole number below or above rate × units, by chance, as long as there are
    partners. So the number of records of every combination of the `match` columns in every area, at every level, stays
    as it was. Units that fewer than `k` records of their area are like, by the `key` columns, come first, the rarest
    before all; a unit that is too rare in an area of a coarser level goes to another area of that level, and stays if
    nobody there is like it. Partners come from the same area of the level above where it has any. The order of the
    records changes nothing.

    Cells that no swap can change are the truth, and everyone may know it; of the others the release says nothing beyond
    what the public knew before, unless the rate is announced. A record that falls into a combination that the table
    has no cell for is an error, or is avoided.
    """

    name: ClassVar[str] = "swap"
    needs_records: ClassVar[bool] = True
    for_every_cell: ClassVar[bool] = True
    """It protects without any rule."""

    geography: tuple[str, ...] = field(
        metadata={
            "help": "columns of areas, the coarsest first; a single dimension with a hierarchy brings its own levels",
            "example": ("region", "municipality"),
        }
    )
    match: tuple[str, ...] = field(
        default=(),
        metadata={"help": "columns in which partners are equal; their totals by area stay", "example": ("age", "sex")},
    )
    fallback: tuple[tuple[str, ...], ...] = field(
        default=(),
        metadata={
            "help": "weaker lists of columns for units without a partner; only totals of columns in all lists stay",
            "example": (("sex",),),
        },
    )
    rate: float = field(default=0.05, metadata={"help": "share of the units of every area that is swapped"})
    rate_by_population: Steps = field(
        default=(),
        metadata={
            "help": "other rates where few live: pairs of a number of units and the rate of areas with fewer",
            "example": ((100, 0.3), (1000, 0.1)),
        },
    )
    key: tuple[str, ...] = field(
        default=(), metadata={"help": "columns by which somebody could be recognised", "example": ("age", "job")}
    )
    k: int = field(default=3, metadata={"help": "records that fewer than this of their area are like are at risk"})
    all_at_risk: bool = field(
        default=False, metadata={"help": "swap everyone at risk, beyond the rate where that takes more"}
    )
    household: str | None = field(
        default=None, metadata={"help": "column of the household, where whole households are swapped", "example": "hid"}
    )
    carry: tuple[str, ...] = field(
        default=(), metadata={"help": "further columns that go with the area", "example": ("grid_cell",)}
    )
    new_cells: Literal["error", "avoid"] = field(
        default="error",
        metadata={"help": "records that fall into a combination without a cell: error, or avoid such swaps"},
    )
    announce: Literal["nothing", "rate"] = field(
        default="nothing", metadata={"help": "what users are told: nothing, or the rate of every area"}
    )
    seed: int = field(default=0, repr=False, metadata={"help": "secret number to draw with; equal seed, equal release"})

    def __post_init__(self) -> None:
        require_rates(self)
        require_columns(self, "geography", "match", "key", "carry")
        require_lists(self, "fallback")
        require_column(self, "household")
        require_seed(self)
        if not self.geography:
            raise InvalidOption(
                "Swap.geography must name at least one column of areas.", about=("option", "Swap", "geography")
            )
        require_whole(self, "k", at_least=1)
        require_choice(self, "new_cells", NEW_CELLS)
        require_choice(self, "announce", ("nothing", "rate"))
        if self.announce == "rate" and self.all_at_risk:
            raise InvalidOption(
                "Swap.announce = 'rate' promises the rate, but all_at_risk may go beyond it.",
                hint="leave one of them out.",
                about=("option", "Swap", "announce"),
            )

    def edit(self, data: Data) -> Edited:
        """The swapped records of a problem, a table or a frame. Further tables made of them agree with the release."""
        return self._edited(Microdata.of(data, "Swap"))

    def protect(self, problem: Problem, run: Run | None = None) -> Release:
        """Publish the table of the swapped records."""
        return self.outcome(problem, run).release

    def outcome(self, problem: Problem, run: Run | None = None) -> Outcome:
        """The release with the swapped records and the measures of what changed."""
        return outcome_of(problem, "Swap", self._edited, self._release)

    # -- the swap ----------------------------------------------------------------------------------------------------

    def _edited(self, microdata: Microdata) -> Edited:
        random = np.random.default_rng(self.seed)
        areas = Areas.of(microdata, self.geography, "Swap.geography").bordered
        moving = [*areas.columns, *microdata.columns(self.carry, "Swap.carry")]
        _refuse_matched(moving, microdata.columns(self.match, "Swap.match"))
        units = Units.of(microdata, self.household)
        units.refuse_mixed(microdata, moving[len(areas.columns) :])
        search = self._search(microdata, areas, units, random)
        pairs = search.start()
        search.run(pairs, random)
        even_out(search, pairs, random)
        if self.new_cells == "avoid":
            self._avoid(microdata, units, search, pairs, moving, random)
        if search.targets.drawn.any() and not pairs.swapped.any():
            raise InvalidOption(
                "Swap found no two units that may change places: none are equal in the columns of Swap.match and live "
                "in different areas (those at risk: in different areas of the level of their risk).",
                hint="match on fewer columns, or add a fallback.",
            )
        source = changes_of(pairs, units.first, units.of_record)
        records = _moved(microdata.frame, moving, source)
        strata = strata_of(microdata, areas, search, pairs)
        tell_short(areas.names(microdata), search, pairs)
        facts = facts_of(units, search, pairs)
        return Edited(records, source != np.arange(len(source)), facts, {"strata.csv": strata}, microdata.table)

    def _search(self, microdata: Microdata, areas: Areas, units: Units, random: np.random.Generator) -> Search:
        places = units.areas(microdata, areas)
        usable = ~units.some(areas.missing)
        lists = [self.match, *self.fallback]
        matched = [microdata.columns(names, "Swap.match") for names in lists]
        key = microdata.columns(self.key, "Swap.key")
        risky, rare = np.full(len(microdata), len(places)), np.zeros(len(microdata), dtype=np.int64)
        if key:
            risky, rare = risky_level(alike(microdata.classes(key), areas), self.k)
        return Search(
            levels=places,
            profiles=tuple(units.classes(microdata.classes(columns)) for columns in matched),
            risky=np.where(usable, units.least(risky), len(places)),
            alike=units.least(rare),
            usable=usable,
            targets=Targets.of(places[-1], usable, self.rate, self.rate_by_population, random),
            all_at_risk=self.all_at_risk,
        )

    def _avoid(
        self, microdata: Microdata, units: Units, search: Search, pairs: Pairs, moving: Sequence[str],
        random: np.random.Generator,
    ) -> None:  # fmt: skip
        """Take back swaps into combinations that the table has no cell for, and try others; give up in the end."""
        for turn in range(TRIES + 1):
            source = changes_of(pairs, units.first, units.of_record)
            bad = np.flatnonzero(units.some(novel(microdata, _moved(microdata.frame, moving, source))))
            if not bad.size:
                return
            pairs.undo(bad)
            if turn < TRIES - 1:
                search.run(pairs, random)
                even_out(search, pairs, random)

    # -- what it says ------------------------------------------------------------------------------------------------

    def _release(self, problem: Problem, microdata: Microdata, integers: Integers) -> Release:
        areas = Areas.of(microdata, self.geography, "Swap.geography")
        lower, upper = listed_floor(problem), problem.upper
        if self.announce == "rate":
            units = Units.of(microdata, self.household)
            usable, random = ~units.some(areas.missing), np.random.default_rng(self.seed)
            place = units.areas(microdata, areas)[-1]
            targets = Targets.of(place, usable, self.rate, self.rate_by_population, random)
            said = Announced(microdata, areas, units.most_records(place, targets.ceiling))
            lower, upper = window(problem, said, integers, lower, upper)
        known = self._kept(problem, microdata, areas)
        release = published(problem, integers, lower, upper, known, method=self.name)
        return replace(release, mechanism=estimated(problem, integers, known))

    def _kept(self, problem: Problem, microdata: Microdata, areas: Areas) -> Mask:
        """The cells that no swap can change: those that nobody leaves, and those of the matched columns alone.

        Nobody leaves the total, nor an area that everyone is matched on. The latter hold for what partners are equal
        in: the number of records, and amounts that are matched too.
        """
        plan = origin_of(problem.table, "Swap").plan
        moving = [*areas.columns, *microdata.columns(self.carry, "Swap.carry")]
        lists = [set(microdata.columns(names, "Swap.match")) for names in (self.match, *self.fallback)]
        equal = sorted(set.intersection(*lists))
        known = never_left(problem.table, microdata, moving, microdata.classes(equal))
        if {*plan.numbers, *([] if plan.weight is None else [plan.weight])} <= set(equal):
            free = [column for column in plan.column_of.values() if column not in equal and column not in moving]
            known |= at_total(problem.table, free, plan.column_of)
        return known


def _moved(frame: pl.DataFrame, columns: Sequence[str], source: NDArray[np.intp]) -> pl.DataFrame:
    """The records with the areas of their partners."""
    return frame.with_columns([frame[column].gather(source) for column in columns])


def _refuse_matched(moving: Sequence[str], matched: Sequence[str]) -> None:
    """Partners live in different areas: they cannot be equal in them."""
    both = [column for column in moving if column in matched]
    if both:
        raise InvalidOption(
            f"Swap.match names {both[0]!r}, which the swap changes: partners would have to be equal in it.",
            hint="name only columns that stay. Partners of the same larger area are preferred anyway; to let nobody "
            "leave it, match on its column and name only the finer ones in geography.",
            about=("option", "Swap", "match"),
        )
