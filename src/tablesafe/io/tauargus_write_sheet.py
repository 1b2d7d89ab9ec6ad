"""What the files of `<WRITETABLE>` show of each cell: statuses, numbers as text, and the lines they stand on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tablesafe.core.equations import Floats, Mask
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release, Status
from tablesafe.io.status import Argus, argus_statuses
from tablesafe.io.tauargus_write_layout import EMPTY, Layout
from tablesafe.io.tauargus_write_options import WriteOptions
from tablesafe.io.text import as_text, with_decimals
from tablesafe.loss import SAME
from tablesafe.tabulate.plan import RECORDS

WITHHELD = "x"
Protected = Literal["suppressed", "rounded", "adjusted", "perturbed"]


def protected_how(release: Release) -> Protected:
    """In which of τ-ARGUS's ways a release protects the table."""
    known: dict[str, Protected] = {"round": "rounded", "adjust": "adjusted", "cell_key": "perturbed"}
    if release.method in known:
        return known[release.method]
    return "perturbed" if bool((release.status == Status.CHANGED).any()) else "suppressed"


@dataclass(frozen=True, eq=False)
class Sheet:
    """A problem and its release as a file is to show them."""

    problem: Problem = field(repr=False)
    release: Release = field(repr=False)
    options: WriteOptions
    decimals: int | None = None
    widths: Mapping[str, int] | None = None
    counts_tell: bool = True
    """Whether a cell that nobody contributes to is empty; otherwise only structural zeros are."""

    @cached_property
    def how(self) -> Protected:
        """In which way the release protects the table."""
        return protected_how(self.release)

    @property
    def tells_the_truth(self) -> bool:
        """Whether statuses and true values are asked for."""
        return self.options.AS and self.how != "perturbed"

    @cached_property
    def status(self) -> NDArray[np.uint8]:
        """The τ-ARGUS status of each cell; a safe one that was changed counts as secondary."""
        if self.how == "suppressed":
            status = argus_statuses(self.problem, self.release)
        else:
            status = argus_statuses(self.problem)
            moved = np.abs(self.release.values - self.problem.table.value)
            changed = moved > SAME * 10.0**-self.problem.table.decimals
            status = np.where(changed & (status == Argus.SAFE), Argus.SECONDARY, status).astype(np.uint8)
        status[self.empty] = Argus.EMPTY
        return status

    @cached_property
    def empty(self) -> Mask:
        """Cells without any contributor, unless the release hides that or publishes something else."""
        table = self.problem.table
        nobody = np.zeros(len(table), np.bool_) if table.structural_zero is None else table.structural_zero
        if table.count is not None and self.counts_tell:
            nobody = nobody | (table.count == 0)
        quiet: Mask = nobody & (table.integers == 0) & (self.release.values == 0) & ~self.problem.sensitivity.mask
        return quiet

    @cached_property
    def by_design(self) -> Mask:
        """Cells that nobody was ever to see."""
        return np.equal(self.release.status, Status.BY_DESIGN)

    def number(self, values: Floats) -> pl.Series:
        """Values as text, with the decimals asked for, unless a protected value has more."""
        return self.exact_number(values) if self.decimals is None else with_decimals(values, self.decimals)

    def exact_number(self, values: Floats) -> pl.Series:
        """Values as text with the decimals of the table and those asked for, or as many as they have."""
        places = max(self.problem.table.decimals, self.decimals or 0)
        fits = bool((np.abs(values - np.round(values, places)) <= 1e-15 * np.abs(values)).all())
        return with_decimals(values, places) if fits else as_text(values)

    def published(self) -> pl.Series:
        """What the public sees of each cell."""
        text = self.number(np.nan_to_num(self.release.values))
        return text.set(pl.Series(self.release.suppressed), WITHHELD).set(pl.Series(self.empty), EMPTY)

    def true(self) -> pl.Series:
        """What each cell really is."""
        return self.number(self.problem.table.value).set(pl.Series(self.empty), EMPTY)

    def layout(self) -> Layout:
        """The lines of a file with one line per cell."""
        lines: Literal["cells", "combinations"] = "cells" if self.options.SE else "combinations"
        layout = Layout.of(self.problem.table, lines=lines, widths=self.widths)
        hidden = self.by_design | (self.empty & self.options.SE)
        return layout.keep(~(layout.there & hidden[np.maximum(layout.cell, 0)])) if hidden.any() else layout


def response_name(problem: Problem) -> str:
    """What τ-ARGUS calls the response: a table that only counts has the name `Freq`."""
    return "Freq" if problem.table.response == RECORDS else problem.table.response
