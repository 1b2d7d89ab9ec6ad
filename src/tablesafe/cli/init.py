"""`tablesafe init` and `tablesafe look`: a job file from a look at the data, and what the look shows."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from tablesafe.cli.exits import Exit
from tablesafe.cli.show import say

Layout = Literal["auto", "rows", "crosstab"]
SHEET = "sheet of an Excel file, when it has several; * takes all that hold numbers, as one table"
DELIMITER = "what separates the columns of a CSV file"
LAYOUT = "rows below their names, or a crosstab with codes down the side and across the top; auto looks which"
CROSSTAB: dict[Layout, bool | None] = {"auto": None, "rows": False, "crosstab": True}


def init(
    data: Path,
    /,
    *,
    output: Annotated[Path, Parameter(alias="-o", help="job file to write")] = Path("job.toml"),
    sheet: Annotated[str | None, Parameter(help=SHEET)] = None,
    layout: Annotated[Layout, Parameter(help=LAYOUT)] = "auto",
    delimiter: Annotated[str | None, Parameter(help=DELIMITER)] = None,
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
    from tablesafe.io.frames import read_as_found
    from tablesafe.job.draft import draft_text

    if output.exists() and not overwrite:
        raise InvalidFile(f"{output} exists already.", hint="--overwrite replaces it, -o names another file.")
    source, found = read_as_found(data, sheet=sheet, delimiter=delimiter, crosstab=CROSSTAB[layout])
    dimensions = None if found is None else found.dimensions
    text, summary = draft_text(data, source, output.parent, sheet=sheet, crosstab=dimensions)
    write_text(output, text)
    for line in (*(found.lines if found else ()), summary):
        say(line, quiet=quiet)
    say(f"Written to {output}. Check it, then: tablesafe run {output}", quiet=quiet)
    return Exit.OK


def look(
    data: Path,
    /,
    *,
    sheet: Annotated[str | None, Parameter(help=SHEET)] = None,
    layout: Annotated[Layout, Parameter(help=LAYOUT)] = "auto",
    area: Annotated[str | None, Parameter(help="crosstab: the cells of the table, such as A4:H30")] = None,
    header_rows: Annotated[int | None, Parameter(help="crosstab: how many rows are headings")] = None,
    label_columns: Annotated[int | None, Parameter(help="crosstab: how many columns are labels")] = None,
    delimiter: Annotated[str | None, Parameter(help=DELIMITER)] = None,
) -> int:
    """Show what is understood of a data file: its columns, or of a printed table in Excel where its parts are.

    Confidential: codes of the data are shown. Nothing is written.

    Parameters
    ----------
    data
        the data: CSV, Parquet or Excel, records or finished cells
    """
    from tablesafe.io.frames import read_as_found
    from tablesafe.io.layout import Crosstab
    from tablesafe.job.draft import describe_looks, look_at

    said = Crosstab(area=area, header_rows=header_rows, label_columns=label_columns)
    asked = CROSSTAB["crosstab" if said != Crosstab() else layout]
    source, found = read_as_found(data, sheet=sheet, delimiter=delimiter, crosstab=asked, said=said)
    for line in (f"{data.name}: {source.frame.height:,} rows.",) if found is None else found.lines:
        say(line, quiet=False)
    for line in () if found else describe_looks(look_at(source, data.parent)):
        say(line.removeprefix("# "), quiet=False)
    return Exit.OK
