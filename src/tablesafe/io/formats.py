"""Every format by its ending: who reads it as rows and columns, who writes a release in it, which extra it needs.

A new format is one module, who loads it, and one line in `FORMATS`; jobs, command line and app ask this registry.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from tablesafe.core.errors import InvalidOption
from tablesafe.core.release import Release
from tablesafe.files.read import Source, did_you_mean
from tablesafe.io.dataset import Dataset

Reading: TypeAlias = Callable[[Path], Source | Dataset]
"""Takes a path and gives rows and columns, or a `Dataset` where the file tells its dimensions."""
Writing: TypeAlias = Callable[[Dataset, Path], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """A format of tables or records."""

    name: str
    endings: tuple[str, ...]
    load: Callable[[], tuple[Reading, Writing | None]]
    """Loads who reads the format and, where it can be written, who writes it."""
    extra: str | None = None
    package: str | None = None
    """The package without which the format cannot be read."""

    def read(self, path: Path) -> Source | Dataset:
        """Read a file of this format."""
        return self.load()[0](path)

    def write(self, dataset: Dataset, path: Path) -> None:
        """Write a file of this format."""
        writing = self.load()[1]
        if writing is None:
            raise InvalidOption(f"{path.name}: files of the format {self.name} are only read.", hint="write .csv.")
        writing(dataset, path)


def _px() -> tuple[Reading, Writing]:
    from tablesafe.io.px import read_px, write_px

    return read_px, write_px


def _jsonstat() -> tuple[Reading, Writing]:
    from tablesafe.io.jsonstat import read_jsonstat, write_jsonstat

    return read_jsonstat, write_jsonstat


def _sdmx() -> tuple[Reading, Writing]:
    from tablesafe.io.sdmx import read_sdmx, write_sdmx

    return read_sdmx, write_sdmx


def _readstat() -> tuple[Reading, None]:
    from tablesafe.tabulate.readstat import read_records

    return read_records, None


FORMATS = (
    Format(name="px", endings=(".px",), load=_px),
    Format(name="json-stat", endings=(".json", ".jsonstat", ".json-stat"), load=_jsonstat),
    Format(name="sdmx-ml", endings=(".xml",), load=_sdmx, extra="sdmx", package="pysdmx"),
    Format(name="sdmx-csv", endings=(".sdmx.csv", ".sdmx"), load=_sdmx),
    Format(
        name="readstat",
        endings=(".dta", ".sav", ".zsav", ".por", ".sas7bdat", ".xpt"),
        load=_readstat,
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
