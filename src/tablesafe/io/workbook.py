"""Read sheets of a workbook in a process of its own, with bounded memory and time.

A workbook of a few kilobytes can claim a cell in the last row of the last column, and readers make room for all before
it; where there is none, the whole process is ended on the spot. So the process that is ended must not be ours.
"""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tablesafe.core.errors import InvalidFile, MissingExtra
from tablesafe.files.limits import VARIABLE, read_limit, refused_as, require_bounded_zip
from tablesafe.files.read import read_bytes_probe

NO_SHEET = "Sheet {sheet} of {name} cannot be read: {why}"
CHILD = Path(__file__).with_name("workbook_child.py")
ROOM = 2 << 30
"""Memory that the other process may use beyond the limit of a file, for its libraries."""
TIME_LIMIT_S = 900.0
"""Seconds that the other process may take."""
SHEET = ("source", "sheet")


def load_sheet(path: Path, sheet: str | None) -> tuple[pl.DataFrame, str]:
    """The rows of a sheet, by default the only one, and its name; the first row names the columns."""
    about, data = _ask(path, sheet, raw=False)
    chosen = _chosen(path, sheet, about)
    return _frame(path, chosen, data), chosen


def load_grid(path: Path, sheet: str | None) -> list[tuple[str, NDArray[np.object_]]]:
    """Every cell of a sheet as text, by default of the only one, from A1 on; `*` stands for all sheets."""
    about, data = _ask(path, None if sheet == "*" else sheet, raw=True)
    if sheet != "*":
        return [(chosen := _chosen(path, sheet, about), _grid(_frame(path, chosen, data), about))]
    found = []
    for name in about["sheets"]:
        own, cells = _ask(path, name, raw=True)
        found.append((name, _grid(_frame(path, name, cells), own)))
    return found


def _grid(frame: pl.DataFrame, about: dict[str, Any]) -> NDArray[np.object_]:
    before = about["first_column"]
    cells = np.full((frame.height, frame.width + before), None, dtype=np.object_)
    for number, name in enumerate(frame.columns):
        text = frame[name].cast(pl.String).str.strip_chars()
        cells[:, before + number] = text.set(text == "", None).to_list()
    return cells


def _ask(path: Path, sheet: str | None, *, raw: bool) -> tuple[dict[str, Any], bytes]:
    try:
        import fastexcel  # noqa: F401
    except ImportError:
        raise MissingExtra("Reading Excel files", "excel") from None
    read_bytes_probe(path)
    if zipfile.is_zipfile(path):
        require_bounded_zip(path)
    about, data = _ask_child(path, sheet, raw=raw)
    if "error" in about:
        raise InvalidFile(
            f"{path.name} is not an Excel file, or is damaged: {about['error']}",
            hint="open it in a spreadsheet program and save it again.",
        )
    return about, data


def _chosen(path: Path, sheet: str | None, about: dict[str, Any]) -> str:
    sheets = [str(name) for name in about["sheets"]]
    listed = ", ".join(map(repr, sheets))
    if sheet is None and len(sheets) != 1:
        raise InvalidFile(
            f"{path.name} has {len(sheets)} sheets: {listed}.", hint=f"name one: sheet = {sheets[0]!r}.", about=SHEET
        )
    if sheet is not None and sheet not in sheets:
        raise InvalidFile(
            f"{path.name} has no sheet {sheet!r}; it has {listed}.", hint="name one of these.", about=SHEET
        )
    return sheet or sheets[0]


def _frame(path: Path, sheet: str, data: bytes) -> pl.DataFrame:
    with refused_as(NO_SHEET, "save it again in a spreadsheet program.", sheet=repr(sheet), name=path.name):
        return pl.read_ipc_stream(data)


def _ask_child(path: Path, sheet: str | None, *, raw: bool) -> tuple[dict[str, Any], bytes]:
    limit = read_limit() + ROOM
    command = [
        sys.executable,
        "-I",
        str(CHILD),
        str(path.absolute()),
        sheet or "",
        str(limit),
        "raw" if raw else "rows",
    ]
    try:
        found = subprocess.run(command, capture_output=True, timeout=TIME_LIMIT_S, check=False)
    except subprocess.TimeoutExpired:
        raise InvalidFile(f"{path.name} cannot be read in {TIME_LIMIT_S:g} seconds.", hint="save it as CSV.") from None
    head, _, data = found.stdout.partition(b"\n")
    if found.returncode != 0 or not head:
        raise InvalidFile(
            f"{path.name} is damaged, or needs more memory than {limit:,} bytes: reading it failed.",
            hint=f"is a cell far below or far right of the table in use? {VARIABLE}=16GB raises the limit.",
        )
    about: dict[str, Any] = json.loads(head)
    return about, data
