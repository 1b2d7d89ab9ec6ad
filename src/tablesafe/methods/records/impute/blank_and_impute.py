"""Blank and impute: the method and its options."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tablesafe.core.equations import Floats, Integers, Mask
from tablesafe.core.errors import InvalidOption, Setting
from tablesafe.core.options import require_choice, require_whole
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release
from tablesafe.methods.records.areas import Areas, Targets, alike, risky_level
from tablesafe.methods.records.behind import Data, Edited, Microdata, Outcome, in_order, novel, origin_of, rank_within
from tablesafe.methods.records.checks import Steps, require_columns, require_rates, require_seed, require_share
from tablesafe.methods.records.impute.control import Controlled, Draw, Margins, controlled
from tablesafe.methods.records.impute.measures import facts_of, strata_of, words_of
from tablesafe.methods.records.impute.models import (
    CHOICES,
    Choice,
    Deck,
    Variable,
    deal,
    fit,
    variables,
    without_amount,
)
from tablesafe.methods.records.measures import outcome_of
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


@dataclass(frozen=True, slots=True, kw_only=True)
class BlankAndImpute:
    """Blank some columns of some records, fill them in anew, and tabulate that.

    In every area `rate` of the records are blanked: exactly the whole number below or above rate × records, by chance.
    Records that fewer than `k` of their area are like, by the `key` columns, come first. What was blanked is taken from
    a donor that is equal in the `classes` columns (drawn at random, among the nearest by the `near` columns, or among
    its neighbours when records are sorted by them), or drawn from a model of the `predictors`. No class of a blanked
    column gains or loses more than `tolerance` of the records of each group that the `within` columns make; for amounts
    the classes are tenths, and the sum moves no further either. Where draws do not achieve that, some records get what
    was blanked in another: the measures say how many. A record without an amount to blank stays as it is, and is not
    counted. The order of the records changes nothing.

    Cells that do not depend on a blanked column are the truth, and everyone may know it; of the others the release says
    nothing beyond what the public knew before, unless the rate is announced.
    """

    name: ClassVar[str] = "impute"
    needs_records: ClassVar[bool] = True
    for_every_cell: ClassVar[bool] = True
    """It protects without any rule."""

    columns: tuple[str, ...] = field(metadata={"help": "columns to blank and fill in", "example": ("occupation",)})
    geography: tuple[str, ...] = field(
        default=(),
        metadata={"help": "columns of areas, the coarsest first; without them the file is one area",
                  "example": ("region", "municipality")},
    )  # fmt: skip
    rate: float = field(default=0.05, metadata={"help": "share of the records of every area that is blanked"})
    rate_by_population: Steps = field(
        default=(),
        metadata={
            "help": "other rates where few live: pairs of a number of records and the rate of areas with fewer",
            "example": ((100, 0.3), (1000, 0.1)),
        },
    )
    key: tuple[str, ...] = field(
        default=(), metadata={"help": "columns by which somebody could be recognised", "example": ("age", "job")}
    )
    k: int = field(default=3, metadata={"help": "records that fewer than this of their area are like are at risk"})
    method: Literal["hot deck", "model"] = field(
        default="hot deck", metadata={"help": "where new values come from: hot deck (a donor), or model (a regression)"}
    )
    classes: tuple[str, ...] = field(
        default=(),
        metadata={
            "help": "hot deck: columns in which donors are equal, the most important first; the last ones are dropped "
            "where there is no donor",
            "example": ("age", "sex"),
        },
    )
    donor: Choice = field(
        default="random", metadata={"help": "hot deck: which donor of the class: random, nearest or sequential"}
    )
    near: tuple[str, ...] = field(
        default=(),
        metadata={"help": "hot deck: columns of numbers by which records are near or sorted", "example": ("income",)},
    )
    predictors: tuple[str, ...] = field(
        default=(),
        metadata={"help": "model: columns that the blanked ones are predicted by", "example": ("age", "sex")},
    )
    amounts: tuple[str, ...] = field(
        default=(),
        metadata={
            "help": "columns that hold amounts, not codes; to be named in a CSV file; the table's own "
            "values, and elsewhere numbers with decimals, are amounts always",
            "example": ("income",),
        },
    )
    tolerance: float = field(
        default=0.005, metadata={"help": "most that the share of a class of a blanked column may move, as a share of 1"}
    )
    within: tuple[str, ...] = field(
        default=(), metadata={"help": "columns of groups in which the tolerance holds, each", "example": ("region",)}
    )
    new_cells: Literal["error", "avoid"] = field(
        default="error",
        metadata={"help": "records that fall into a combination without a cell: error, or avoid such values"},
    )
    announce: Literal["nothing", "rate"] = field(
        default="nothing", metadata={"help": "what users are told: nothing, or the rate of every area"}
    )
    seed: int = field(default=0, repr=False, metadata={"help": "secret number to draw with; equal seed, equal release"})

    def __post_init__(self) -> None:
        require_rates(self)
        require_columns(self, "columns", "geography", "key", "classes", "near", "predictors", "amounts", "within")
        require_seed(self)
        require_share(self.tolerance, "BlankAndImpute.tolerance")
        if not self.columns:
            raise InvalidOption(
                "BlankAndImpute.columns must name at least one column.", about=("option", "BlankAndImpute", "columns")
            )
        require_whole(self, "k", at_least=1)
        require_choice(self, "method", ("hot deck", "model"))
        require_choice(self, "donor", CHOICES)
        require_choice(self, "new_cells", NEW_CELLS)
        require_choice(self, "announce", ("nothing", "rate"))
        self._refuse_idle()

    def _refuse_idle(self) -> None:
        """Refuse options that the chosen way of filling in would not look at."""
        for option, way, used in (
            ("predictors", "method='model'", self.method == "model"),
            ("near", "donor='nearest' or 'sequential'", self.method == "hot deck" and self.donor != "random"),
        ):
            if getattr(self, option) and not used:
                raise InvalidOption(f"BlankAndImpute.{option} is for {way}.", hint="set that, or leave it out.")
        if self.method == "model" and self.donor != "random":
            raise InvalidOption(
                (
                    "BlankAndImpute.donor is for ",
                    Setting("method", "hot deck"),
                    ".",
                ),
                hint="set that, or leave it out.",
                about=("option", "BlankAndImpute", "donor"),
            )

    def edit(self, data: Data) -> Edited:
        """The filled-in records of a problem, a table or a frame; other tables made of them agree with the release."""
        return self._edited(Microdata.of(data, "BlankAndImpute"))

    def protect(self, problem: Problem, run: Run | None = None) -> Release:
        """Publish the table of the filled-in records."""
        return self.outcome(problem, run).release

    def outcome(self, problem: Problem, run: Run | None = None) -> Outcome:
        """The release with the filled-in records and the measures of what changed."""
        return outcome_of(problem, "BlankAndImpute", self._edited, self._release)

    # -- the imputation ----------------------------------------------------------------------------------------------

    def _edited(self, microdata: Microdata) -> Edited:
        random = np.random.default_rng(self.seed)
        columns = microdata.columns(self.columns, "BlankAndImpute.columns")
        self._refuse_circles(microdata, columns)
        areas = Areas.of(microdata, self.geography, "BlankAndImpute.geography")
        chance = microdata.draw(random)
        at_risk, rare = self._risk(microdata, areas)
        found = variables(microdata, columns, microdata.columns(self.amounts, "BlankAndImpute.amounts"))
        usable = ~areas.missing & ~without_amount(microdata, found)
        targets = Targets.of(areas.finest, usable, self.rate, self.rate_by_population, random)
        blank = _chosen(areas.finest, np.flatnonzero(usable), targets, np.where(at_risk, rare, self.k), chance)
        blank = blank[np.argsort(microdata.rank[blank])]
        groups = microdata.columns(self.within, "BlankAndImpute.within")
        margins = Margins.of(found, blank, microdata.classes(groups), self.tolerance)
        widened = 0
        if blank.size:
            draw, widened = self._drawing(microdata, found, blank, chance, random)
            kind = microdata.classes(microdata.columns(self.classes, "BlankAndImpute.classes"))[blank]
            made = controlled(margins, draw, lambda values: self._allowed(microdata, margins, values), kind, random)
        else:
            none = np.zeros(0, dtype=np.bool_)
            made = Controlled(margins.truth, none, none)
        records = _written(microdata.frame, margins, made.values)
        changed = np.zeros(len(microdata), dtype=np.bool_)
        changed[blank] = (made.values != margins.truth).any(axis=1)
        facts = facts_of(margins, made, changed, at_risk, widened)
        strata = strata_of(microdata, areas, targets, blank, at_risk)
        tables = {"strata.csv": strata, "margins.csv": margins.frame(made.values, words_of(microdata, groups))}
        return Edited(records, changed, facts, tables, microdata.table)

    def _refuse_circles(self, microdata: Microdata, columns: tuple[str, ...]) -> None:
        """What is blanked cannot say what fills it in, nor where the rate applies."""
        for option in ("geography", "classes", "near", "predictors", "within"):
            named = microdata.columns(getattr(self, option), f"BlankAndImpute.{option}")
            both = [column for column in named if column in columns]
            if both:
                raise InvalidOption(f"BlankAndImpute.{option} names {both[0]!r}, which is blanked.")

    def _risk(self, microdata: Microdata, areas: Areas) -> tuple[Mask, Integers]:
        """Who is at risk at some level, and how many of the finest area are like them."""
        key = microdata.columns(self.key, "BlankAndImpute.key")
        if not key:
            return np.zeros(len(microdata), dtype=np.bool_), np.full(len(microdata), self.k)
        level, rare = risky_level(alike(microdata.classes(key), areas), self.k)
        return level < len(areas.levels), np.minimum(rare, self.k - 1)

    def _drawing(
        self, microdata: Microdata, found: tuple[Variable, ...], blank: NDArray[np.intp], chance: Floats,
        random: np.random.Generator,
    ) -> tuple[Draw, int]:  # fmt: skip
        """How new values are drawn, and for how many records the class of donors had to be widened."""
        taken = without_amount(microdata, found)
        taken[blank] = True
        rest = microdata.order[~taken[microdata.order]]
        if self.method == "model":
            given = variables(
                microdata, microdata.columns(self.predictors, "BlankAndImpute.predictors"),
                microdata.columns(self.amounts, "BlankAndImpute.amounts"),
            )  # fmt: skip
            _refuse_no_donor(rest)
            return fit(given, found, blank, rest, random).draw, 0
        _refuse_no_donor(rest)
        classes = microdata.columns(self.classes, "BlankAndImpute.classes")
        near = microdata.columns(self.near, "BlankAndImpute.near")
        deck = deal(microdata, classes, near, self.donor, blank, rest, chance)
        return _from_deck(deck, found), deck.widened

    def _allowed(self, microdata: Microdata, margins: Margins, values: Floats) -> Mask:
        """Which values lead to no combination that the table has no cell for, where that is to be avoided."""
        if self.new_cells != "avoid":
            return np.ones(len(values), dtype=np.bool_)
        return ~novel(microdata, _written(microdata.frame, margins, values))[margins.rows]

    # -- what it says ------------------------------------------------------------------------------------------------

    def _release(self, problem: Problem, microdata: Microdata, integers: Integers) -> Release:
        plan = origin_of(problem.table, "BlankAndImpute").plan
        columns = microdata.columns(self.columns, "BlankAndImpute.columns")
        lower, upper = listed_floor(problem), problem.upper
        if self.announce == "rate":
            areas = Areas.of(microdata, self.geography, "BlankAndImpute.geography")
            random = np.random.default_rng(self.seed)
            found = variables(microdata, columns, microdata.columns(self.amounts, "BlankAndImpute.amounts"))
            usable = ~areas.missing & ~without_amount(microdata, found)
            targets = Targets.of(areas.finest, usable, self.rate, self.rate_by_population, random)
            lower, upper = window(problem, Announced(microdata, areas, targets.ceiling), integers, lower, upper)
        added = {*plan.numbers, *([] if plan.weight is None else [plan.weight])}
        known = at_total(problem.table, columns, plan.column_of) & (not added & set(columns))
        release = published(problem, integers, lower, upper, known, method=self.name)
        return replace(release, mechanism=estimated(problem, integers, known))


def _chosen(
    area: Integers, usable: NDArray[np.intp], targets: Targets, risk: Integers, chance: Floats
) -> NDArray[np.intp]:
    """The records to blank: in each area those at greatest risk first, then at random."""
    order = usable[np.lexsort((chance[usable], risk[usable]))]
    order = order[in_order(area[order])]
    return order[rank_within(area[order]) < targets.drawn[area[order]]]


def _from_deck(deck: Deck, found: tuple[Variable, ...]) -> Draw:
    """Draws of all variables from one donor, so that they stay together."""

    def draw(random: np.random.Generator) -> Floats:
        donor = deck.draw(random)
        return np.stack([variable.values[donor] for variable in found], axis=1)

    return draw


def _refuse_no_donor(rest: NDArray[np.intp]) -> None:
    if not rest.size:
        raise InvalidOption(
            "BlankAndImpute blanks every record and leaves none to learn from.", hint="choose a rate below 1."
        )


def _written(frame: pl.DataFrame, margins: Margins, values: Floats) -> pl.DataFrame:
    """The records with the values filled in."""
    return frame.with_columns(
        [variable.written(frame, margins.rows, values[:, j]) for j, variable in enumerate(margins.variables)]
    )
