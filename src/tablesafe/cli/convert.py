"""`tablesafe convert`: the same thing in another format."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from tablesafe.cli.exits import Exit
from tablesafe.cli.show import print_json, say, warn
from tablesafe.cli.sources import Tolerance, problem_job, read_problem
from tablesafe.core.errors import InvalidOption

if TYPE_CHECKING:
    import polars as pl

    from tablesafe.core.hierarchy import Hierarchy

FRAMES = (".csv", ".parquet", ".xlsx")
PROBLEMS = (".jj", ".tab", ".toml")


def convert(
    source: Path,
    target: Path,
    /,
    *,
    sheet: Annotated[str | None, Parameter(help="sheet of an Excel file, when it has several")] = None,
    indent: Annotated[str, Parameter(help="what a line of an .hrc file begins with, once per level")] = "@",
    tolerance: Tolerance = 0.0,
    json: Annotated[bool, Parameter(help="print one JSON document and nothing else")] = False,
    quiet: Annotated[bool, Parameter(help="print nothing")] = False,
) -> int:
    """Convert tables and hierarchies between file formats; the endings of the names say which.

    Tables: .jj, .tab, .csv, .parquet, .xlsx. Records: .asc with .rda, .csv, .parquet, .xlsx. Hierarchies: .hrc, and
    .csv with a parent and a child per line (or one column per level, to read). A CSV file has no sums of its own: to
    make a .jj or .tab file of one, convert a job file. A job file converted to a folder becomes a job for τ-ARGUS: its
    .arb with the data, .rda, .hrc and .jj; what τ-ARGUS cannot express is said. What is written is as confidential as
    what was read.

    Parameters
    ----------
    source
        file to read
    target
        file to write; it is replaced if it exists. A name without an ending is a folder
    """
    if source.resolve() == target.resolve():
        raise InvalidOption("Source and target are the same file.")
    notes: tuple[str, ...] = ()
    if (_ending(target) == "" or target.is_dir()) and _ending(source) in PROBLEMS:
        written, notes = _export(source, target, tolerance)
    else:
        written = _convert(source, target, sheet, indent, tolerance)
    if json:
        files = [str(path) for path in written]
        print_json({"status": "ok", "exit_code": int(Exit.OK), "files": files, "notes": list(notes)})
    elif not quiet:
        say("Written to " + ", ".join(map(str, written)))
    for note in () if json else notes:
        warn(note)
    return Exit.OK


def _export(source: Path, folder: Path, tolerance: float) -> tuple[list[Path], tuple[str, ...]]:
    """A job, or a table with statuses, as files for τ-ARGUS."""
    from tablesafe.batch_jobs.export import export_tauargus
    from tablesafe.report.progress import progress_bar

    with progress_bar() as listen:
        job = problem_job(source, tolerance)
        name = source.name.partition(".")[0]
        exported = export_tauargus(job, folder, name=name, on_event=listen)
    return list(exported.files), exported.notes


def _convert(source: Path, target: Path, sheet: str | None, indent: str, tolerance: float) -> list[Path]:
    before, after = _ending(source), _ending(target)
    if ".hrc" in (before, after):
        return _hierarchy(source, target, indent)
    if before in PROBLEMS:
        return _problem(source, target, after, tolerance)
    if after in FRAMES:
        return _frame(source, target, sheet)
    if after in PROBLEMS:
        raise InvalidOption(
            f"{source.name} does not say how its cells add up, so it cannot become {target.name}.",
            hint=f"'tablesafe init {source.name}' writes a job file; convert that.",
        )
    raise InvalidOption(
        f"{target.name}: there is no format {after!r}.", hint=f"{', '.join([*PROBLEMS[:2], *FRAMES, '.hrc'])}"
    )


def _ending(path: Path) -> str:
    return Path(path.name.lower().removesuffix(".gz")).suffix


def _problem(source: Path, target: Path, after: str, tolerance: float) -> list[Path]:
    from tablesafe.io.frames import office_view, write_frame
    from tablesafe.io.jj import write_jj
    from tablesafe.methods import Withhold
    from tablesafe.report.progress import progress_bar
    from tablesafe.tauargus.table import write_tab

    with progress_bar() as listen:
        problem = read_problem(source, listen, tolerance)
    if after == ".jj":
        write_jj(problem, target)
        return [target]
    if after == ".tab":
        return write_tab(problem, target)
    write_frame(office_view(Withhold().protect(problem), problem), target, colour="status")
    return [target]


def _frame(source: Path, target: Path, sheet: str | None) -> list[Path]:
    from tablesafe.io.frames import read_frame, write_frame
    from tablesafe.tauargus.microdata import read_microdata

    frame = read_microdata(source).frame if _ending(source) == ".asc" else read_frame(source, sheet=sheet).frame
    write_frame(frame, target)
    return [target]


def _hierarchy(source: Path, target: Path, indent: str) -> list[Path]:

    from tablesafe.core.hierarchy import Hierarchy
    from tablesafe.files.read import read_source
    from tablesafe.io.frames import write_frame
    from tablesafe.pipeline.hierarchies import hierarchy_of_source

    if _ending(source) == ".hrc":
        tree = Hierarchy.from_hrc(source, indent=indent)
    else:
        tree = hierarchy_of_source(read_source(source))
    if _ending(target) == ".hrc":
        tree.to_hrc(target, indent=indent)
    else:
        write_frame(_pairs(tree), target)
    return [target]


def _pairs(tree: Hierarchy) -> pl.DataFrame:
    import polars as pl

    pairs = [(equation.total, part) for equation in tree.as_equations() for part in equation.parts]
    return pl.DataFrame(pairs, schema={"parent": pl.String, "child": pl.String}, orient="row")
