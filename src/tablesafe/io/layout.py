"""How a sheet is laid out, as far as somebody says it: known without any reader of sheets."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tablesafe.core.errors import InvalidOption

EXCEL_ENDINGS = (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods")
TEXT_ENDINGS = (".csv", ".tsv", ".txt")
"""Files that can be read as a sheet too: each line is a row of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Crosstab:
    """How a sheet is laid out, as far as it is said and not to be found out."""

    area: str | None = None
    """The cells of the table with its headings and labels, such as "A4:H30"; found out when not given."""
    header_rows: int | None = None
    label_columns: int | None = None

    def __post_init__(self) -> None:
        for name in ("header_rows", "label_columns"):
            if (given := getattr(self, name)) is not None and given < 1:
                raise InvalidOption(f"{name!r} must be 1 or more, got {given}.", about=("source", name))
        if self.area is not None:
            corners(self.area)


def corners(area: str) -> tuple[int, int, int, int]:
    """The first and the last row and column of an area such as A4:H30."""
    found = re.fullmatch(r"\s*\$?([A-Za-z]{1,3})\$?(\d{1,7})\s*:\s*\$?([A-Za-z]{1,3})\$?(\d{1,7})\s*", area)
    if found is None:
        raise InvalidOption(f"{area!r} is no area of a sheet.", hint="write it as A4:H30.", about=("source", "area"))
    numbers = [int(text) - 1 if text.isdigit() else _column(text) for text in found.groups()]
    (left, right), (top, bottom) = sorted(numbers[0::2]), sorted(numbers[1::2])
    if top < 0:
        raise InvalidOption(f"{area!r} is no area of a sheet.", hint="rows begin at 1.", about=("source", "area"))
    return top, left, bottom, right


def _column(letters: str) -> int:
    number = 0
    for letter in letters.upper():
        number = number * 26 + ord(letter) - 64
    return number - 1
