"""What `<WRITETABLE>` of τ-ARGUS can be asked for: the type of the file, and options such as `AS+SE+`."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from enum import IntEnum
from typing import Any

from tablesafe.core.errors import InvalidOption
from tablesafe.files.read import did_you_mean


class Kind(IntEnum):
    """The types of file."""

    CSV = 1
    """Rows and columns, one block per combination of the other dimensions."""
    PIVOT = 2
    """One line per cell, with a line of names, for a pivot table."""
    CODE_VALUE = 3
    """One line per cell."""
    SBS = 4
    """For a transmission to Eurostat: every value, with a flag. Confidential."""
    INTERMEDIATE = 5
    """`.tab` and `.rda`: all that is known of the cells. Confidential."""
    JJ = 6
    """Cells, bounds, levels and equations. Confidential."""
    CELL_KEY = 7
    """Perturbed values, and what they were before if asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOptions:
    """Each option by its two letters, as `+` or `-`; None where nothing was said."""

    AS: bool = False
    """Add the status. As in τ-ARGUS the file then holds every true value too."""
    SE: bool = False
    """Leave out empty cells."""
    FL: bool = False
    """Names of the variables on the first line; a pivot table always has them."""
    QU: bool = True
    """Codes in double quotes."""
    HL: bool = False
    """SBS: the level of each code."""
    SO: bool = False
    """Intermediate: neither shadow values nor largest contributions."""
    AR: bool = False
    """Intermediate: the interval that an attacker can derive for each withheld cell."""
    HI: bool = False
    """Intermediate: counts of holdings in the place of respondents."""
    TR: bool = False
    """JJ: without trivial levels. Here a level with a single part never is a cell of its own."""
    AO: bool = False
    """Cell key: the original value."""
    AD: bool = False
    """Cell key: what the perturbation added."""
    AC: bool = False
    """Cell key: the key of the cell."""


USED = {
    Kind.CSV: {"QU"},
    Kind.PIVOT: {"AS", "SE", "FL", "QU"},
    Kind.CODE_VALUE: {"AS", "SE", "FL", "QU"},
    Kind.SBS: {"HL", "QU"},
    Kind.INTERMEDIATE: {"SO", "AR", "HI", "SE", "QU"},
    Kind.JJ: {"TR"},
    Kind.CELL_KEY: {"AO", "AD", "AC", "SE", "QU"},
}
"""The options that each type of file looks at."""
NAMES = tuple(option.name for option in fields(WriteOptions))


def parse_options(text: str) -> WriteOptions:
    """Read options such as `AS+FL+`, in upper or lower case, with or without spaces."""
    given: dict[str, Any] = {}
    rest = re.sub(r"\s", "", text).upper()
    while rest:
        letters, sign, rest = rest[:2], rest[2:3], rest[3:]
        if letters not in NAMES:
            hint = did_you_mean(letters, list(NAMES)) or f"options are {', '.join(NAMES)}."
            raise InvalidOption(f"WRITETABLE has no option {letters!r} (in {text.strip()!r}).\n\nHint: {hint}")
        if sign not in {"+", "-"}:
            raise InvalidOption(f"Option {letters} of WRITETABLE is followed by {sign!r}.\n\nHint: {letters}+ or -.")
        given[letters] = sign == "+"
    return WriteOptions(**given)


def parse_kind(kind: int | str) -> Kind:
    """Read the type of a file."""
    try:
        return Kind(int(kind))
    except ValueError:
        listed = ", ".join(f"{known.value} {known.name.lower().replace('_', ' ')}" for known in Kind)
        raise InvalidOption(f"WRITETABLE has no type {kind}.\n\nHint: types are {listed}.") from None


def unused(kind: Kind, text: str) -> tuple[str, ...]:
    """Options that were asked for and that the type of file has no use for."""
    asked = re.findall(r"([A-Z]{2})\+", re.sub(r"\s", "", text).upper())
    return tuple(letters for letters in dict.fromkeys(asked) if letters not in USED[kind])
