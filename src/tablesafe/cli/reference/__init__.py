"""The reference pages, made from the code: `python -m tablesafe.cli.reference docs`. A test keeps them up to date."""

from tablesafe.cli.reference.api import api_reference
from tablesafe.cli.reference.errors import errors_reference
from tablesafe.cli.reference.formats import formats_reference
from tablesafe.cli.reference.pages import cli_reference, job_reference, type_words
from tablesafe.cli.reference.writing import PAGES, write_reference

__all__ = [
    "PAGES",
    "api_reference",
    "cli_reference",
    "errors_reference",
    "formats_reference",
    "job_reference",
    "type_words",
    "write_reference",
]
