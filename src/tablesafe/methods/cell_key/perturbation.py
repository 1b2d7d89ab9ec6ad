"""The cell key method: what the options of `CellKey` ask for, and which true values a reader must think possible."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tablesafe.core.equations import Floats, Mask
from tablesafe.core.errors import InvalidOption, Setting
from tablesafe.core.mechanism import Mechanism
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release, Status
from tablesafe.methods.cell_key.cell_key import CellKey
from tablesafe.methods.cell_key.design import design_perturbation
from tablesafe.methods.cell_key.keys import (
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

STEPS = 2
"""Into how many parts a designed perturbation table of magnitudes divides the unit."""


class Perturbation:
    """One way to add noise by cell keys."""

    def __init__(self, options: CellKey) -> None:
        self.options = options

    def release(self, problem: Problem) -> Release:
        """The noise that each cell's key selects, and what follows from it."""
        magnitude = self.options.magnitude
        return self._counts(problem) if magnitude is None else self._magnitudes(problem, magnitude)

    # -- counts --------------------------------------------------------------------------------------------------------

    def table(self) -> PerturbationTable:
        """The perturbation table, as given or as designed."""
        options = self.options
        if options.perturbation is not None:
            return _ready(options.perturbation, "perturbation")
        return design_perturbation(
            maximum_change=options.maximum_change,
            variance=options.variance,
            smallest=options.smallest,
            stay=options.stay,
            monotone=options.monotone,
            steps=1 if options.magnitude is None else STEPS,
        )

    def cell_keys(self, problem: Problem) -> CellKeys:
        """The key of each cell. A secret of the office."""
        options, table, origin = self.options, problem.table, origin_of(problem.table)
        given, modulus = options.key, options.modulus
        if given is not None and not isinstance(given, str):
            return given_cell_keys(table, given, modulus, "key")
        if given is not None:
            if origin is None:
                if given not in table.columns:
                    raise _no_keys(given)
                return given_cell_keys(table, table.columns[given], modulus, f"column {given!r}")
            return cell_keys_from_records(
                table, lambda records: read_record_keys(records, given, modulus), modulus=modulus or WHOLE,
                include_zeros=self._include_zeros,
            )  # fmt: skip
        if origin is None:
            raise _no_keys(None)
        name, seed = options.identifier or origin.plan.respondent, options.seed
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
        return self.options.magnitude is not None and self.options.magnitude.include_zeros

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
        floor = (
            ~_hidden(problem) if problem.table.leaves_out_empty(~_hidden(problem)) else np.zeros(len(counts), np.bool_)
        )
        least = np.where(floor, np.maximum(least, 1), least)  # no true zeros are shown
        mechanism = Mechanism.single(perturbation.transition, ~frozen & ~_hidden(problem))
        release = _release(
            problem, published.astype(np.float64), least.astype(np.float64), most.astype(np.float64), mechanism
        )
        low, high = (np.where(mechanism.cells, e, 0) for e in perturbation.transition.around(counts, published))
        low = np.maximum(low, np.where(floor & mechanism.cells, 1, 0))
        if not (mechanism.cells & ((low > least) | (high < most))).any():
            return release
        # a perturbation table with gaps: what is between two counts that are possible need not be
        judged = (np.where(mechanism.cells, low, release.lower), np.where(mechanism.cells, high, release.upper))
        return replace(release, judged=judged)

    # -- magnitudes ----------------------------------------------------------------------------------------------------

    def noise(self) -> MagnitudeNoise:
        """The perturbation tables of magnitudes, as given or as designed."""
        magnitude = self.options.magnitude or Magnitude()
        odd = None if magnitude.odd is None else _ready(magnitude.odd, "odd")
        small = self._small_cells(magnitude) if magnitude.separation else None
        return MagnitudeNoise(magnitude, self.table(), odd, small)

    def _small_cells(self, magnitude: Magnitude) -> PerturbationTable:
        if magnitude.small_cells is not None:
            return _ready(magnitude.small_cells, "small_cells")
        options = self.options
        return design_perturbation(
            maximum_change=options.maximum_change,
            variance=options.variance,
            stay=options.stay,
            monotone=options.monotone,
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
