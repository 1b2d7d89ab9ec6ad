"""`tablesafe init`: a job file from a look at the data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from tablesafe.cli.exits import Exit
from tablesafe.cli.show import say


def init(
    data: Path,
    /,
    *,
    output: Annotated[Path, Parameter(alias="-o", help="job file to write")] = Path("job.toml"),
    sheet: Annotated[str | None, Parameter(help="sheet of an Excel file, when it has several")] = None,
    delimiter: Annotated[str | None, Parameter(help="what separates the columns of a CSV file")] = None,
    overwrite: Annotated[bool, Parameter(help="replace a job file that is there already")] = False,
    quiet: Annotated[bool, Parameter(help="print nothing")] = False,
) -> int:
    """Look at a data file and write a commented job file for it.

    The guesses are stated in the file: check them, above all the dimensions, the value and who the respondents are.

    Parameters
    ----------
    data
        the data: CSV, Parquet or Excel, records or finished cells
    """
    from tablesafe.core.errors import InvalidFile
    from tablesafe.files.write import write_text
    from tablesafe.io.frames import read_frame
    from tablesafe.job.draft import draft_text

    if output.exists() and not overwrite:
        raise InvalidFile(f"{output} exists already.", hint="--overwrite replaces it, -o names another file.")
    text, summary = draft_text(data, read_frame(data, sheet=sheet, delimiter=delimiter), output.parent)
    write_text(output, text)
    say(summary, quiet=quiet)
    say(f"Written to {output}. Check it, then: tablesafe run {output}", quiet=quiet)
    return Exit.OK
