"""`tablesafe init` and `tablesafe look`: a job file from a look at the data, and what the look shows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from tablesafe.cli.exits import Exit
from tablesafe.cli.show import say

if TYPE_CHECKING:
    from tablesafe.files.read import Source
    from tablesafe.io.layout import Crosstab

Layout = Literal["auto", "rows", "crosstab"]
SHEET = "sheet of an Excel file, when it has several; * takes all that hold numbers, as one table"
DELIMITER = "what separates the columns of a CSV file"
LAYOUT = "Excel: rows below their names, or a crosstab with codes down the side and across the top; auto looks which"


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
    from tablesafe.job.draft import draft_text

    if output.exists() and not overwrite:
        raise InvalidFile(f"{output} exists already.", hint="--overwrite replaces it, -o names another file.")
    source, dimensions, preview = _read(data, sheet, layout, delimiter)
    text, summary = draft_text(data, source, output.parent, sheet=sheet, crosstab=dimensions)
    write_text(output, text)
    for line in (*preview, summary):
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
    from tablesafe.io.layout import Crosstab
    from tablesafe.job.draft import describe_looks, look_at

    said = Crosstab(area=area, header_rows=header_rows, label_columns=label_columns)
    source, _, preview = _read(data, sheet, "crosstab" if said != Crosstab() else layout, delimiter, said)
    for line in preview or (f"{data.name}: {source.frame.height:,} rows.",):
        say(line, quiet=False)
    for line in () if preview else describe_looks(look_at(source, data.parent)):
        say(line.removeprefix("# "), quiet=False)
    return Exit.OK


def _read(
    data: Path, sheet: str | None, layout: Layout, delimiter: str | None, said: Crosstab | None = None
) -> tuple[Source, tuple[str, ...] | None, tuple[str, ...]]:
    """The rows of the data; of a crosstab also its dimensions and what was understood of it."""
    from tablesafe.io.crosstab import is_crosstab, understand
    from tablesafe.io.frames import EXCEL_ENDINGS, read_frame
    from tablesafe.io.layout import Crosstab

    is_sheet = data.suffix.lower() in EXCEL_ENDINGS
    if is_sheet and (layout == "crosstab" or (layout == "auto" and is_crosstab(data, sheet))):
        found = understand(data, sheet, said or Crosstab())
        return found.rows, found.dimensions, found.lines
    crosstab = Crosstab() if layout == "crosstab" else None
    return read_frame(data, sheet=sheet, delimiter=delimiter, layout=crosstab), None, ()
