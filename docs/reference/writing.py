"""All reference pages, and the files that hold them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from reference.api import api_reference
from reference.errors import errors_reference
from reference.formats import formats_reference
from reference.pages import cli_reference, job_reference
from tablesafe.files.write import write_text

PAGES: dict[str, Callable[[], str]] = {
    "api.md": api_reference,
    "cli.md": cli_reference,
    "errors.md": errors_reference,
    "formats.md": formats_reference,
    "job-file.md": job_reference,
}
"""Each page, and what makes it."""


def write_reference(folder: Path) -> None:
    """Write all pages."""
    for name, made in PAGES.items():
        write_text(folder / name, made())
