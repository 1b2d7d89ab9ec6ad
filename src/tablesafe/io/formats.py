"""Every format by its ending: who reads it as rows and columns, who writes a release in it, which extra it needs.

A new format is one module and one line here; jobs, command line and app ask this registry.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from tablesafe.core.errors import InvalidOption
from tablesafe.core.release import Release
from tablesafe.files.read import Source, did_you_mean
from tablesafe.io.dataset import Dataset


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """A format of tables or records."""

    name: str
    endings: tuple[str, ...]
    reads: str | None = None
    """`module:function` that takes a path and gives a `Source`, or a `Dataset` where the file tells its dimensions."""
    writes: str | None = None
    """`module:function` that takes a `Dataset` and a path."""
    extra: str | None = None
    package: str | None = None
    """The package without which the format cannot be read."""

    def read(self, path: Path) -> Source | Dataset:
        """Read a file of this format."""
        if self.reads is None:
            raise InvalidOption(f"{path.name}: files of the format {self.name} are only written.")
        found: Source | Dataset = _function(self.reads)(path)
        return found

    def write(self, dataset: Dataset, path: Path) -> None:
        """Write a file of this format."""
        if self.writes is None:
            raise InvalidOption(f"{path.name}: files of the format {self.name} are only read.", hint="write .csv.")
        _function(self.writes)(dataset, path)


FORMATS = (
    Format(name="px", endings=(".px",), reads="io.px:read_px", writes="io.px:write_px"),
    Format(
        name="json-stat",
        endings=(".json", ".jsonstat", ".json-stat"),
        reads="io.jsonstat:read_jsonstat",
        writes="io.jsonstat:write_jsonstat",
    ),
    Format(
        name="sdmx-ml",
        endings=(".xml",),
        reads="io.sdmx:read_sdmx",
        writes="io.sdmx:write_sdmx",
        extra="sdmx",
        package="pysdmx",
    ),
    Format(name="sdmx-csv", endings=(".sdmx.csv", ".sdmx"), reads="io.sdmx:read_sdmx", writes="io.sdmx:write_sdmx"),
    Format(
        name="readstat",
        endings=(".dta", ".sav", ".zsav", ".por", ".sas7bdat", ".xpt"),
        reads="tabulate.readstat:read_records",
        extra="readstat",
        package="pyreadstat",
    ),
)
"""Formats beyond CSV, Parquet and Excel, which `io.frames` reads and writes as plain rows and columns."""


def format_of(path: str | Path, named: str | None = None) -> Format | None:
    """The format of a file by its ending, or by the name given; None for plain rows and columns."""
    if named is not None:
        found = next((own for own in FORMATS if own.name == named), None)
        if found is None and named not in {"csv", "parquet", "excel"}:
            names = ["csv", "parquet", "excel", *(own.name for own in FORMATS)]
            raise InvalidOption(
                f"There is no format {named!r}.", hint=f"{did_you_mean(named, names) or ', '.join(names)}"
            )
        return found
    lower = Path(path).name.lower()
    return next((own for own in FORMATS if lower.endswith(own.endings)), None)


def read_dataset(path: str | Path, named: str | None = None) -> Dataset | None:
    """A file that tells its dimensions; None where it holds rows and columns only."""
    own = format_of(path, named)
    found = None if own is None else own.read(Path(path))
    return found if isinstance(found, Dataset) else None


def write_formatted(release: Release, path: str | Path, named: str | None = None, **about: Any) -> bool:
    """Write what may be published in the format of the file's ending; whether that is one of these formats."""
    own = format_of(path, named)
    if own is None:
        return False
    own.write(Dataset.of_release(release, **about), Path(path))
    return True


def _function(name: str) -> Any:
    module, function = name.split(":")
    return getattr(import_module(f"tablesafe.{module}"), function)
