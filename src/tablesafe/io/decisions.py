"""Decisions on single cells, each with who made it and why, as a file of a-priori information.

What an office decides by hand is part of a job as much as its rules are: the file names the cells by their codes, a job
reads it as `apriori`, and the same run comes out of any interface. Of several decisions on a cell the last counts; the
file holds one line for each cell, so that nothing in it contradicts anything else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

import polars as pl

from tablesafe.core.errors import InvalidOption
from tablesafe.files.write import write_text

Choice = Literal["sensitive", "safe", "protected", "withheld", "prefer", "avoid"]
FILE = "decisions.csv"
MEANINGS: dict[Choice, str] = {
    "sensitive": "must be hidden, whatever the rules say",
    "safe": "may be published, whatever a rule says",
    "protected": "must be published: never withheld to protect another",
    "withheld": "withheld in any case",
    "prefer": "rather withheld than others, to protect a sensitive one",
    "avoid": "rather not withheld than others",
}
STATUS: dict[Choice, str] = {"sensitive": "sensitive", "safe": "safe", "protected": "frozen", "withheld": "suppressed"}
"""The status that a decision gives a cell, in words that leave no doubt."""
TIMES: dict[Choice, float] = {"prefer": 0.01, "avoid": 100.0}
"""By how much withholding the cell costs more, or less, than it would."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What somebody decided about a cell."""

    codes: Mapping[str, str]
    """The cell: a code for each dimension, or its name under `cell`."""
    what: Choice
    cost: float
    """What withholding the cell costs without the decision."""
    who: str = ""
    why: str = ""
    when: str = ""

    def __post_init__(self) -> None:
        if self.what not in get_args(Choice):
            raise InvalidOption(f"There is no decision {self.what!r}: there are {', '.join(get_args(Choice))}.")
        if self.what == "safe" and not self.why.strip():
            raise InvalidOption("A cell that a rule calls sensitive is published only with a reason.", hint="say why.")

    @property
    def cell(self) -> str:
        """The cell in words."""
        return " · ".join(self.codes.values())

    def row(self) -> dict[str, str | float | None]:
        """The line of the file."""
        told = {"who": self.who, "why": self.why, "decided": self.when}
        cost = self.cost * TIMES[self.what] if self.what in TIMES else None
        return {**self.codes, "status": STATUS.get(self.what), "cost": cost, **told}


def latest(decisions: Sequence[Decision]) -> list[Decision]:
    """The decision that counts for each cell: the last, where it was first decided on."""
    return list({tuple(each.codes.items()): each for each in decisions}.values())


def write_decisions(decisions: Sequence[Decision], path: str | Path) -> None:
    """Write the decisions that count; at least one."""
    if not decisions:
        raise InvalidOption("There are no decisions to write.")
    frame = pl.DataFrame([each.row() for each in latest(decisions)], infer_schema_length=None)
    empty = [name for name in ("status", "cost") if frame[name].is_null().all()]
    write_text(Path(path), frame.drop(empty).write_csv())
