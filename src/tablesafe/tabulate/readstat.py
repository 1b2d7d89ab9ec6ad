"""Records of Stata, SPSS and SAS, through pyreadstat: the extra `readstat`.

Codes come as they are; the labels of values become names of codes. Numbers that stand for codes (1, 2, 3) come without
a decimal point; what a program marks as missing is missing.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl

from tablesafe.core.errors import InvalidFile, MissingExtra
from tablesafe.files.limits import read_plain
from tablesafe.files.read import Source

READERS = {
    ".dta": "read_dta", ".sav": "read_sav", ".zsav": "read_sav", ".por": "read_por", ".sas7bdat": "read_sas7bdat",
    ".xpt": "read_xport",
}  # fmt: skip


def is_readstat(path: Path) -> bool:
    """Whether a file is of Stata, SPSS or SAS, by its ending."""
    return path.suffix.lower() in READERS


def read_records(path: str | Path) -> Source:
    """Read records of Stata (.dta), SPSS (.sav, .zsav, .por) or SAS (.sas7bdat, .xpt)."""
    return Source(_read(Path(path))[0], Path(path).name)


def value_labels(path: str | Path) -> dict[str, dict[str, str]]:
    """The names of codes, by column, as the file labels its values; no record is read."""
    return _read(Path(path), metadataonly=True)[1]


def _read(path: Path, *, metadataonly: bool = False) -> tuple[pl.DataFrame, dict[str, dict[str, str]]]:
    try:
        import pyreadstat
    except ImportError:
        raise MissingExtra("Reading files of Stata, SPSS and SAS", "readstat") from None
    read_plain(path)  # an error in the user's words where it cannot be read
    try:
        read = getattr(pyreadstat, READERS[path.suffix.lower()])
        given, meta = read(str(path), output_format="polars", metadataonly=metadataonly)
    except Exception as error:
        raise InvalidFile(
            f"{path.name} cannot be read: {error}.", hint="is it complete, and of the kind its ending says?"
        ) from error
    frame: pl.DataFrame = given
    labels = {
        column: {_code(value): str(label) for value, label in own.items()}
        for column, own in (meta.variable_value_labels or {}).items()
    }
    whole = [name for name in frame.columns if frame[name].dtype.is_float() and _whole(frame[name])]
    return frame.with_columns(pl.col(whole).cast(pl.Int64)), labels


def _whole(column: pl.Series) -> bool:
    known = column.drop_nulls()
    return bool((known.is_finite() & (known == known.round()) & (known.abs() < 2**53)).all())


def _code(value: Any) -> str:
    return str(int(value)) if isinstance(value, float) and value == int(value) else str(value)
