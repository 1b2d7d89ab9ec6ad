"""The cell key method: noise that depends on nothing but the records of a cell."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from tablesafe.core.equations import Floats, Mask
from tablesafe.core.errors import InvalidOption, Setting
from tablesafe.core.mechanism import Mechanism
from tablesafe.core.options import require_number, require_whole
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release, Status
from tablesafe.loss.frames import noise_tables
from tablesafe.methods.abilities import Files, Outcome
from tablesafe.methods.cell_key.design import design_perturbation
from tablesafe.methods.cell_key.keys import (
    MOST,
    WHOLE,
    CellKeys,
    cell_keys_from_records,
    counts_of,
    drawn_record_keys,
    given_cell_keys,
    origin_of,
    read_record_keys,
    refuse_counts,
)
from tablesafe.methods.cell_key.magnitude import (
    Magnitude,
    MagnitudeNoise,
    believed_range,
    contributions,
    magnitude_range,
)
from tablesafe.methods.cell_key.table import PerturbationTable
from tablesafe.work.run import Run

STEPS = 2
"""Into how many parts a designed perturbation table of magnitudes divides the unit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CellKey:
    """Add noise that is the same wherever the same records are counted: the cell key method.

    Every record has a key. The keys of a cell's records add up to its cell key, of which only what stands behind the
    decimal point counts, and count and cell key together select the change in a perturbation table. So equal cells of
    different tables get equal noise, and asking again gives no better answer. The perturbation table is read from a
    file, or designed: unbiased, with a given variance and maximum change, without small counts, of largest entropy.

    Zeros stay zero. Totals get noise of their own, so a table no longer adds up exactly; where it must, use Round.
    Keys, seed and probabilities are secrets of the office. The release states which true counts each published one can
    come from, for an attacker who knows what the perturbation table allows.
    """

    name: ClassVar[str] = "cell_key"
    needs_records: ClassVar[bool] = True
    own_columns: ClassVar[bool] = True
    """The columns that its options name are of the records, which it reads itself."""
    for_every_cell: ClassVar[bool] = True
    """It protects without any rule."""

    key: str | Floats | None = field(
        default=None,
        repr=False,
        metadata={
            "help": "column with the record keys, from 0 to below 1; of a table given as cells, with the cell keys",
            "example": "rkey",
        },
    )
    modulus: int | None = field(
        default=None,
        metadata={"help": "keys are whole numbers from 0 to one less than this, such as 256", "example": 256},
    )
    identifier: str | None = field(
        default=None,
        metadata={
            "help": "without a key: column that identifies a record, to draw its key from; else the respondent",
            "example": "person",
        },
    )
    seed: int | None = field(
        default=None,
        repr=False,
        metadata={"help": "secret number to draw keys with; the same for every table of the same data", "example": 1},
    )
    perturbation: str | PerturbationTable | None = field(
        default=None,
        metadata={
            "help": "file with the perturbation table, of τ-ARGUS or the R package ptable; designed when not given",
            "example": "ptab.txt",
            "file": True,
        },
    )
    maximum_change: int = field(default=5, metadata={"help": "design: largest change in either direction"})
    variance: float = field(default=3.0, metadata={"help": "design: variance of the change"})
    smallest: int = field(default=1, metadata={"help": "design: no published count above 0 is smaller than this"})
    stay: float | None = field(default=None, metadata={"help": "design: probability of no change", "example": 0.5})
    monotone: bool = field(default=True, metadata={"help": "design: larger changes are not likelier than smaller ones"})
    magnitude: Magnitude | None = field(
        default=None, metadata={"help": "noise for magnitudes, in proportion to the largest contributions"}
    )

    def __post_init__(self) -> None:
        if self.key is not None and (self.identifier is not None or self.seed is not None):
            raise InvalidOption("CellKey takes keys from 'key', or draws them by 'seed' from 'identifier'; not both.")
        if self.seed is not None and (isinstance(self.seed, bool) or not isinstance(self.seed, int | np.integer)):
            raise InvalidOption(
                "CellKey.seed must be a whole number.", about=("option", "CellKey", "seed")
            )  # not repeated here: it is a secret
        if self.magnitude is not None and not isinstance(self.magnitude, Magnitude):
            raise InvalidOption(
                f"CellKey.magnitude must be ts.Magnitude(...), got {self.magnitude!r}.",
                about=("option", "CellKey", "magnitude"),
            )
        if self.modulus is not None:
            require_whole(self, "modulus", at_least=2)
            if self.modulus > MOST:
                raise InvalidOption(
                    f"CellKey.modulus must be at most {MOST:,}, got {self.modulus:,}.",
                    about=("option", "CellKey", "modulus"),
                )
        require_whole(self, "maximum_change", at_least=1)
        require_whole(self, "smallest", at_least=1)
        require_number(self, "variance", above=0)
        if self.stay is not None:
            require_number(self, "stay", at_least=0, below=1)

    def reading(self, files: Files) -> CellKey:
        """The method with the perturbation tables that its options name."""
        found, options = self.perturbation, self.magnitude
        if isinstance(found, str):
            parity = options is not None and options.odd is not None
            found = files.perturbation(found, "even" if parity else "all")
        if options is not None and isinstance(options.odd, str):
            options = replace(options, odd=files.perturbation(options.odd, "odd"))
        if options is not None and isinstance(options.small_cells, str):
            options = replace(options, small_cells=files.perturbation(options.small_cells, "small_cells"))
        return replace(self, perturbation=found, magnitude=options)

    def outcome(self, problem: Problem, run: Run | None = None) -> Outcome:
        """The release, and what the noise did to the values."""
        release = self.protect(problem, run)
        return Outcome(release, noise_tables(problem, release))

    def protect(self, problem: Problem, run: Run | None = None) -> Release:
        """Add the noise that each cell's key selects."""
        return self._counts(problem) if self.magnitude is None else self._magnitudes(problem, self.magnitude)

    # -- counts --------------------------------------------------------------------------------------------------------

    def table(self) -> PerturbationTable:
        """The perturbation table, as given or as designed."""
        if self.perturbation is not None:
            return _ready(self.perturbation, "perturbation")
        return design_perturbation(
            maximum_change=self.maximum_change,
            variance=self.variance,
            smallest=self.smallest,
            stay=self.stay,
            monotone=self.monotone,
            steps=1 if self.magnitude is None else STEPS,
        )

    def cell_keys(self, problem: Problem) -> CellKeys:
        """The key of each cell. A secret of the office."""
        table, origin = problem.table, origin_of(problem.table)
        if self.key is not None and not isinstance(self.key, str):
            return given_cell_keys(table, self.key, self.modulus, "key")
        if isinstance(self.key, str):
            if origin is None:
                if self.key not in table.columns:
                    raise _no_keys(self.key)
                return given_cell_keys(table, table.columns[self.key], self.modulus, f"column {self.key!r}")
            column, modulus = self.key, self.modulus
            return cell_keys_from_records(
                table, lambda records: read_record_keys(records, column, modulus), modulus=modulus or WHOLE,
                include_zeros=self._include_zeros,
            )  # fmt: skip
        if origin is None:
            raise _no_keys(None)
        name, seed = self.identifier or origin.plan.respondent, self.seed
        if name is None or seed is None:
            raise InvalidOption(
                "CellKey needs record keys: a column that holds them, or a seed and a column that identifies records.",
                hint="CellKey(key='rkey'), or CellKey(identifier='person', seed=<a secret number>): the same seed "
                "for every table of the same data.",
            )
        return cell_keys_from_records(
            table, lambda records: drawn_record_keys(records, name, seed), modulus=WHOLE,
            include_zeros=self._include_zeros,
        )  # fmt: skip

    @property
    def _include_zeros(self) -> bool:
        return self.magnitude is not None and self.magnitude.include_zeros

    def _counts(self, problem: Problem) -> Release:
        perturbation = self.table()
        if not perturbation.is_for_counts:
            raise InvalidOption(
                "The perturbation table is not for counts: it needs a row for each of 0, 1, 2, … and whole changes.",
                hint="for magnitudes, set the options of [method.magnitude].",
            )
        counts = counts_of(problem, perturbation.maximum_change)
        keys = self.cell_keys(problem)
        row = np.minimum(counts, len(perturbation) - 1)
        frozen = problem.frozen
        change = np.rint(perturbation.changes(row, keys.fraction)).astype(np.int64)
        published = np.where(frozen, counts, counts + change)
        least, most = (np.where(frozen, counts, end) for end in perturbation.true_range(published))
        mechanism = Mechanism.single(perturbation.transition, ~frozen & ~_hidden(problem))
        release = _release(
            problem, published.astype(np.float64), least.astype(np.float64), most.astype(np.float64), mechanism
        )
        low, high = (np.where(mechanism.cells, e, 0) for e in perturbation.transition.around(counts, published))
        if not (mechanism.cells & ((low > least) | (high < most))).any():
            return release
        # a perturbation table with gaps: what is between two counts that are possible need not be
        judged = (np.where(mechanism.cells, low, release.lower), np.where(mechanism.cells, high, release.upper))
        return replace(release, judged=judged)

    # -- magnitudes ----------------------------------------------------------------------------------------------------

    def noise(self) -> MagnitudeNoise:
        """The perturbation tables of magnitudes, as given or as designed."""
        options = self.magnitude or Magnitude()
        odd = None if options.odd is None else _ready(options.odd, "odd")
        return MagnitudeNoise(options, self.table(), odd, self._small_cells(options) if options.separation else None)

    def _small_cells(self, options: Magnitude) -> PerturbationTable:
        if options.small_cells is not None:
            return _ready(options.small_cells, "small_cells")
        return design_perturbation(
            maximum_change=self.maximum_change, variance=self.variance, stay=self.stay, monotone=self.monotone
        )

    def _magnitudes(self, problem: Problem, options: Magnitude) -> Release:
        refuse_counts(problem)
        table, noise = problem.table, self.noise()
        sizes = contributions(table, options)
        keys = self.cell_keys(problem)
        drawn = noise.perturbed(table, keys, problem.sensitivity.mask)
        published = np.where(problem.frozen, table.value, np.round(drawn, table.decimals))
        lower, upper = problem.lower, problem.upper
        if not bool(table.may_be_negative.any()) and bool((sizes.sum(axis=1) <= table.value * (1 + 1e-12)).all()):
            least, most = magnitude_range(noise, published, table.decimals)
            lower, upper = np.maximum(lower, least), np.minimum(upper, most)
        frozen = problem.frozen
        release = _release(
            problem, published, np.where(frozen, published, lower), np.where(frozen, published, upper), None
        )
        noisy = ~frozen & ~_hidden(problem)
        low, high = believed_range(noise, table, published, problem.sensitivity.mask)
        low = np.where(noisy, np.maximum(low, release.lower), release.lower)
        high = np.where(noisy, np.minimum(high, release.upper), release.upper)
        return replace(release, judged=(low, high))


def _ready(given: str | PerturbationTable, option: str) -> PerturbationTable:
    if isinstance(given, PerturbationTable):
        return given
    if not isinstance(given, str):
        raise InvalidOption(
            f"CellKey.{option} must be a perturbation table, got {given!r}.",
            hint="ts.read_perturbation reads one from a file, ts.design_perturbation makes one.",
        )
    raise InvalidOption(
        f"The perturbation table in {str(given)!r} was not read yet.",
        hint=f"from Python, pass {option}=ts.read_perturbation({str(given)!r}).",
    )


def _no_keys(key: str | None) -> InvalidOption:
    what = "there is no column with keys" if key is None else f"there is no column {key!r}"
    return InvalidOption(
        f"The table was not made from records here, and {what} among its cells.",
        hint=(
            "make the table from its records (linked tables together or each on its own: equal cells get equal noise), "
            "or name the column of the cells that holds their keys (",
            Setting("key"),
            ").",
        ),
    )


def _hidden(problem: Problem) -> Mask:
    return problem.suppressed | problem.withheld


def _release(problem: Problem, published: Floats, lower: Floats, upper: Floats, mechanism: Mechanism | None) -> Release:
    """Publish the values with what they imply; hidden cells not at all."""
    hidden = _hidden(problem)
    status = np.where(published == problem.table.value, Status.PUBLISHED, Status.CHANGED).astype(np.uint8)
    status[hidden] = Status.GIVEN
    status[problem.withheld] = Status.BY_DESIGN
    return Release(
        problem.table,
        np.where(hidden, np.nan, published),
        np.where(hidden, problem.lower, lower),
        np.where(hidden, problem.upper, upper),
        status,
        CellKey.name,
        mechanism=mechanism,
        private_bounds=problem.bounds_differ,
    )
