"""`tablesafe tabulate`: add up records."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from tablesafe.cli.exits import Exit
from tablesafe.cli.show import print_frame, print_json, say
from tablesafe.cli.sources import Data, job_of

NO_DATA = Data()


def tabulate(
    source: Path,
    /,
    *,
    data: Data = NO_DATA,
    output: Annotated[Path | None, Parameter(alias="-o", help="write the cells here: .csv, .parquet or .xlsx")] = None,
    json: Annotated[bool, Parameter(help="print one JSON document and nothing else")] = False,
    quiet: Annotated[bool, Parameter(help="print nothing")] = False,
) -> int:
    """Add up records into a table, with counts; without -o, the first cells are shown.

    The table is confidential: nothing is protected yet.

    Parameters
    ----------
    source
        a data file (CSV, Parquet, Excel) with the options below, or a job file
    """
    from tablesafe.io.frames import write_cells
    from tablesafe.pipeline import build_table
    from tablesafe.report.progress import progress_bar

    with progress_bar(enabled=not (json or quiet)) as listen:
        table = build_table(job_of(source, data), listen)
    if output is not None:
        write_cells(table, output)
    if json:
        about = {"cells": table.seen, "equations": int(table.equations.shape[0]), "file": output and str(output)}
        print_json({"status": "ok", "exit_code": int(Exit.OK), **about})
    elif not quiet:
        say(f"{table.seen:,} cells, tied together by {table.equations.shape[0]:,} sums. Confidential.")
        if output is None:
            print_frame(table.cells())
        else:
            say(f"Written to {output}")
    return Exit.OK
