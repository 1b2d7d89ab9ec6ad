"""The cell key method: the options. What they ask for is done by `tablesafe.methods.cell_key.perturbation`."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from tablesafe.core.equations import Floats
from tablesafe.core.errors import InvalidOption
from tablesafe.core.options import require_number, require_whole
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release
from tablesafe.loss.frames import noise_tables
from tablesafe.methods.abilities import Files, Outcome
from tablesafe.methods.cell_key.keys import MOST, CellKeys
from tablesafe.methods.cell_key.magnitude import Magnitude, MagnitudeNoise
from tablesafe.methods.cell_key.table import PerturbationTable
from tablesafe.work.run import Run

if TYPE_CHECKING:
    from tablesafe.methods.cell_key.perturbation import Perturbation


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
        return self._perturbation().release(problem)

    def table(self) -> PerturbationTable:
        """The perturbation table, as given or as designed."""
        return self._perturbation().table()

    def cell_keys(self, problem: Problem) -> CellKeys:
        """The key of each cell. A secret of the office."""
        return self._perturbation().cell_keys(problem)

    def noise(self) -> MagnitudeNoise:
        """The perturbation tables of magnitudes, as given or as designed."""
        return self._perturbation().noise()

    def _perturbation(self) -> Perturbation:
        from tablesafe.methods.cell_key.perturbation import Perturbation

        return Perturbation(self)
