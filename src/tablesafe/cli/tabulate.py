"""`tablesafe tabulate`: add up records."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from tablesafe.cli.exits import Exit
from tablesafe.cli.show import grid, print_frame, print_json, say, show
from tablesafe.cli.sources import Data, Tolerance, job_of, problem_job

if TYPE_CHECKING:
    from tablesafe.core.problem import Problem


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


# `tablesafe flag`: which cells are sensitive, and why.


def flag(
    source: Path,
    /,
    *,
    rule: Annotated[
        tuple[str, ...], Parameter(help='rule with its options, such as "p_percent p=10"; repeatable')
    ] = (),
    data: Data = NO_DATA,
    output: Annotated[Path | None, Parameter(alias="-o", help="write all cells here: .csv, .parquet or .xlsx")] = None,
    tolerance: Tolerance = 0.0,
    json: Annotated[bool, Parameter(help="print one JSON document and nothing else")] = False,
    quiet: Annotated[bool, Parameter(help="print nothing")] = False,
) -> int:
    """Say which cells of a table are sensitive, and why; without -o, the first of them are shown.

    What it prints and writes is confidential.

    Parameters
    ----------
    source
        a data file with the options below, a job file, or a table with statuses (.jj, .tab)
    """
    from tablesafe.core.errors import InvalidOption
    from tablesafe.io.frames import office_view, write_frame
    from tablesafe.methods import Withhold
    from tablesafe.pipeline import build_problem
    from tablesafe.report.progress import progress_bar

    statuses = source.suffix.lower() in {".jj", ".tab", ".gz"}
    if not statuses and source.suffix.lower() != ".toml" and not rule:
        raise InvalidOption("Which rules?", hint='--rule "threshold n=3" --rule "p_percent p=10"')
    with progress_bar(enabled=not (json or quiet)) as listen:
        problem = build_problem(problem_job(source, tolerance) if statuses else job_of(source, data, rule), listen)
    frame = office_view(Withhold().protect(problem), problem)
    if output is not None:
        write_frame(frame, output, colour="status")
    about = _about(problem)
    if json:
        print_json({"status": "ok", "exit_code": int(Exit.OK), **about, "file": output and str(output)})
    elif not quiet:
        say(f"{about['sensitive']:,} of {about['cells']:,} cells are sensitive. Confidential.")
        show(grid(["rule", "cells"], about["by_rule"].items(), right=["cells"]))
        if output is None:
            print_frame(frame.filter(problem.sensitivity.mask).drop("published", "status", "cost"))
        else:
            say(f"Written to {output}")
    return Exit.OK


def _about(problem: Problem) -> dict[str, Any]:
    sensitivity = problem.sensitivity
    by_rule = {name: int((sensitivity.reason >> j & 1).sum()) for j, name in enumerate(sensitivity.reasons)}
    return {"cells": problem.table.seen, "sensitive": len(problem.sensitive), "by_rule": by_rule}
