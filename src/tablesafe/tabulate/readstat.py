"""Records of Stata, SPSS and SAS, through pyreadstat: the extra `readstat`.

Codes come as they are; the labels of values become names of codes. Numbers that stand for codes (1, 2, 3) come without
a decimal point; what a program marks as missing is missing. A damaged file can end the process that reads it, in
compiled code, on the spot: so that process is not ours.
"""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import polars as pl

from tablesafe.core.errors import InvalidFile, MissingExtra
from tablesafe.files.limits import read_plain, refused_as
from tablesafe.files.read import Source

UNREADABLE = "{name} cannot be read: {why}"
CHILD = Path(__file__).with_name("readstat_child.py")
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
    if find_spec("pyreadstat") is None:
        raise MissingExtra("Reading files of Stata, SPSS and SAS", "readstat")
    read_plain(path)  # an error in the user's words where it cannot be read
    what = "metadata" if metadataonly else "records"
    command = [sys.executable, "-I", str(CHILD), READERS[path.suffix.lower()], str(path.absolute()), what]
    answer = subprocess.run(command, capture_output=True, check=False)
    head, _, data = answer.stdout.partition(b"\n")
    about: dict[str, Any] = json.loads(head) if answer.returncode == 0 and head else {"error": "reading it failed"}
    if "error" in about:
        raise InvalidFile(
            f"{path.name} cannot be read: {about['error']}.", hint="is it complete, and of the kind its ending says?"
        )
    with refused_as(UNREADABLE, "is it complete, and of the kind its ending says?", name=path.name):
        frame = pl.read_ipc_stream(data)
    labels = {column: {_code(value): str(label) for value, label in own} for column, own in about["labels"].items()}
    whole = [name for name in frame.columns if frame[name].dtype.is_float() and _whole(frame[name])]
    return frame.with_columns(pl.col(whole).cast(pl.Int64)), labels


def _whole(column: pl.Series) -> bool:
    known = column.drop_nulls()
    return bool((known.is_finite() & (known == known.round()) & (known.abs() < 2**53)).all())


def _code(value: Any) -> str:
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
