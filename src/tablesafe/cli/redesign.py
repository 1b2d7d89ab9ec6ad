"""`tablesafe redesign`: a coarser table instead of a table full of holes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from tablesafe.cli.exits import Exit
from tablesafe.cli.show import print_frame, print_json, say
from tablesafe.cli.sources import Tolerance, problem_job

if TYPE_CHECKING:
    from tablesafe.core.hierarchy import Hierarchy
    from tablesafe.core.problem import Problem
    from tablesafe.core.table import Negative, Table
    from tablesafe.job import Job
    from tablesafe.methods.redesign.proposals import Proposals


def redesign(
    problem: Path,
    /,
    *,
    steps: Annotated[int, Parameter(help="most steps")] = 20,
    target: Annotated[float, Parameter(help="stop when no more risk than this is left")] = 0.0,
    pace: Annotated[float, Parameter(help="share of the risk left that a step should remove")] = 0.05,
    ordered: Annotated[
        tuple[str, ...], Parameter(help="dimension of which only neighbouring codes may be joined; repeat it")
    ] = (),
    keep: Annotated[
        tuple[str, ...], Parameter(help="dimension that stays as it is, or DIMENSION=CODE for one code; repeat it")
    ] = (),
    keep_dimensions: Annotated[bool, Parameter(help="drop no whole dimension")] = False,
    keep_tables: Annotated[bool, Parameter(help="leave out no table")] = False,
    risk: Annotated[
        Literal["cells", "records", "value"], Parameter(help="what the risk of sensitive cells is counted in")
    ] = "cells",
    weight: Annotated[
        Literal["records", "value"], Parameter(help="what the information of cells is weighed by")
    ] = "records",
    name: Annotated[tuple[str, ...], Parameter(help='another name for a joined code, as "A+B=NAME"; repeat it')] = (),
    complementary_s: Annotated[
        float | None, Parameter(help="seconds for an estimate of the complementary suppressions after each step")
    ] = None,
    apply: Annotated[int | None, Parameter(help="how many of the steps --job takes; all without it")] = None,
    job: Annotated[
        Path | None, Parameter(help="write a job with the new hierarchies here, and their .hrc files beside it")
    ] = None,
    output: Annotated[
        Path | None, Parameter(alias="-o", help="write the steps here: .csv, .xlsx or .parquet; internal")
    ] = None,
    singles: Annotated[
        Path | None, Parameter(help="write here every step that was looked at, taken alone; internal")
    ] = None,
    recodes: Annotated[
        Path | None,
        Parameter(help="write here which code each old code is counted in: .csv, .xlsx, .parquet; .grc for τ-ARGUS"),
    ] = None,
    tolerance: Tolerance = 0.0,
    json: Annotated[bool, Parameter(help="print one JSON document and nothing else")] = False,
    quiet: Annotated[bool, Parameter(help="print only the last line")] = False,
) -> int:
    """Propose codes to join or drop, levels, dimensions and tables to leave out, so that fewer cells are sensitive.

    Each step is the one that removes the most risk for the least loss, measured by the rules on the table as it would
    be. What it prints and writes is confidential.

    Parameters
    ----------
    problem
        a job file, or a .tab file with its .rda
    """
    from tablesafe.io.frames import write_frame
    from tablesafe.methods.redesign.proposals import redesign as propose
    from tablesafe.pipeline import build_problem
    from tablesafe.report.progress import Event, progress_bar

    given = problem_job(problem, tolerance)
    named = dict(_assignment(text, "--name") for text in name)
    with progress_bar(enabled=not (json or quiet)) as listen:
        start = build_problem(given, listen)
        listen(Event("redesign", "Looking for a better design"))
        found = propose(
            start, steps=steps, target=target, pace=pace, ordered=ordered, keep=_kept(keep), risk=risk, weight=weight,
            dimensions=not keep_dimensions, margins=not keep_tables, names=named, complementary_s=complementary_s,
        )  # fmt: skip
    for frame, path in ((found.frame, output), (found.singles, singles)):
        if path is not None:
            write_frame(frame(), path)
    written = [] if job is None else write_job(given, found, job, apply)
    if recodes is not None:
        written += _write_recodes(found, recodes, apply)
    if json:
        print_json({"status": "ok", "exit_code": int(Exit.OK), "steps": found.frame().to_dicts(), "files": written})
        return Exit.OK
    if not quiet:
        print_frame(found.frame(), rows=50)
        for file in written:
            say(f"Written: {file}")
    say(str(found))
    return Exit.OK


def _assignment(text: str, option: str) -> tuple[str, str]:
    from tablesafe.core.errors import InvalidOption

    left, equals, right = text.partition("=")
    if not (left and equals and right):
        raise InvalidOption(f"Cannot read {option} {text!r}.", hint=f"{option} 'A+B=North'")
    return left, right


def _kept(texts: tuple[str, ...]) -> dict[str, list[str]]:
    """Dimensions, each with the codes that must stay; none listed means all of them."""
    kept: dict[str, list[str]] = {text: [] for text in texts if "=" not in text}
    for text in texts:
        if "=" in text:
            dimension, code = _assignment(text, "--keep")
            kept.setdefault(dimension, []).append(code)
    return kept


def _write_recodes(found: Proposals, path: Path, steps: int | None) -> list[str]:
    """Write where the codes went: one table of all, or a τ-ARGUS file for each dimension that changed."""
    from tablesafe.files.write import write_text
    from tablesafe.io.frames import write_frame
    from tablesafe.methods.redesign.steps import recode_text

    if path.suffix.lower() != ".grc":
        write_frame(found.recodes(steps), path)
        return [str(path)]
    written = []
    for name, tree in found.apply(steps).table.dimensions.items():
        old = found.problem.table.dimensions[name]
        if tree != old:
            file = path.with_name(f"{path.stem}_{name}.grc")
            write_text(file, recode_text(old, tree))
            written.append(str(file))
    return written


def write_job(old: Job, found: Proposals, path: Path, steps: int | None) -> list[str]:
    """Write the job of the new design, with a .hrc file for every hierarchy that changed."""
    from tablesafe.core.errors import InvalidOption
    from tablesafe.files.write import write_text
    from tablesafe.job.dump import dump_job

    if old.source.holds == "problem":
        raise InvalidOption(
            "A new job can be written for a job that reads records or cells, not for a table with statuses.",
            hint="write the recodes with --recodes, and recode the table where it comes from.",
        )
    start, new = found.problem, found.apply(steps)
    dimensions, written = dict(old.dimensions), []
    for name, hierarchy in new.table.dimensions.items():
        if name not in dimensions or hierarchy == start.table.dimensions[name]:
            continue
        if len(hierarchy) == 1:
            del dimensions[name]
            continue
        file = path.parent / f"{path.stem}_{name}.hrc"
        hierarchy.to_hrc(file)
        written.append(str(file))
        dimensions[name] = replace(
            dimensions[name], hierarchy=file.name, kind="hrc", columns=(), lengths=(), filler="", equations=(),
            indent="@", total=hierarchy.roots[0],
        )  # fmt: skip
    tables = tuple(
        replace(table, dimensions=tuple(name for name in table.dimensions if name in dimensions))
        for table in old.tables
    )
    base = _moved(old, path)
    if old.source.holds == "cells":
        base = _with_cells(base, new, path)
        dimensions = {name: replace(each, column=None) for name, each in dimensions.items()}
        written.append(str(path.parent / base.source.file))
    job = replace(
        base, dimensions=dimensions, tables=tuple(table for table in tables if table.dimensions),
        problem=replace(old.problem, withheld=_withheld(old, start, new)),
    )  # fmt: skip
    write_text(path, dump_job(job))
    return [*written, str(path)]


def _with_cells(job: Job, problem: Problem, path: Path) -> Job:
    """The job with the cells of the new design in a file of their own. Confidential."""
    import polars as pl

    from tablesafe.core.errors import InvalidOption
    from tablesafe.core.linking import RESPONSE
    from tablesafe.io.frames import write_frame

    table, file = problem.table, path.parent / f"{path.stem}_cells.csv"
    if RESPONSE in table.dimensions or any(each.file for each in job.tables) or job.source.status:
        raise InvalidOption(
            "The cells of a table with several responses, several files or statuses cannot be written as one new file.",
            hint="write the recodes with --recodes, and recode the table where it comes from.",
        )
    kept, frame = table.contributors, table.cells()
    amounts, people = [], []
    for place in range(0 if kept is None else kept.certain):
        assert kept is not None
        frame = frame.with_columns(pl.Series(f"largest {place + 1}", kept.amount[: table.seen, place]))
        amounts.append(f"largest {place + 1}")
        if kept.names is not None:
            who = [None if i < 0 else str(kept.names[i]) for i in kept.identity[: table.seen, place].tolist()]
            frame = frame.with_columns(pl.Series(f"contributor {place + 1}", who, dtype=pl.String))
            people.append(f"contributor {place + 1}")
    if table.structural_zero is not None:
        frame = frame.with_columns(pl.Series("structural zero", table.structural_zero[: table.seen].astype("int8")))
    write_frame(frame.drop(name for name, tree in table.dimensions.items() if len(tree) == 1), file)
    source = replace(
        job.source, file=file.name, kind="cells", delimiter=None, sheet=None, tolerance=0.0,
        count=None if table.count is None else "count", holdings=None if table.holdings is None else "holdings",
        contributions=tuple(amounts), contributors=tuple(people), missing_totals="none",
        structural_zero=None if table.structural_zero is None else "structural zero",
    )  # fmt: skip
    value = table.response if table.response not in table.dimensions else "value"
    return replace(
        job, source=source, response=replace(job.response, value=(value,), equations=(), negative=_signs(table))
    )


def _signs(table: Table) -> Negative:
    """Whether contributions may be negative, which finished cells no longer show by themselves."""
    return "possible" if bool(table.may_be_negative.any()) else "auto"


def _moved(job: Job, path: Path) -> Job:
    """The job with its input files by absolute paths, as it will stand in another folder."""

    def absolute(name: str | None) -> Any:
        return None if name is None else str(job.resolve(name).absolute())

    if job.folder.absolute() == path.parent.absolute():
        return job
    return replace(
        job,
        source=replace(job.source, file=absolute(job.source.file), metadata=absolute(job.source.metadata)),
        dimensions={
            name: replace(each, hierarchy=absolute(each.hierarchy), labels=absolute(each.labels))
            for name, each in job.dimensions.items()
        },
        problem=replace(job.problem, apriori=tuple(map(absolute, job.problem.apriori_files)) or None),
    )


def _withheld(job: Job, start: Problem, new: Problem) -> Any:
    """The cells that the job withholds by design, and those of the tables that are left out, by their codes."""
    import numpy as np

    from tablesafe.core.errors import InvalidOption
    from tablesafe.methods.redesign.steps import spans

    before = set(np.unique(spans(start.table)[~start.withheld]).tolist())
    span = spans(new.table)
    gone = [s for s in np.unique(span[new.withheld]).tolist() if s in before and not (~new.withheld)[span == s].any()]
    if not gone:
        return job.problem.withheld
    if isinstance(job.problem.withheld, str):
        raise InvalidOption(
            "The job names a column of withheld cells already, so that tables cannot be left out as well.",
            hint="use --keep-tables.",
        )
    names = list(new.table.dimensions)
    selectors = [
        {name: _codes(new.table.dimensions[name], bool(s >> d & 1)) for d, name in enumerate(names)} for s in gone
    ]
    return (*job.problem.withheld, *({k: v for k, v in each.items() if v} for each in selectors))


def _codes(hierarchy: Hierarchy, inside: bool) -> tuple[str, ...]:
    """All codes of a dimension but its total, or the total alone; nothing for a dimension that was dropped."""
    if len(hierarchy) == 1:
        return ()
    return tuple(code for code in hierarchy.codes if (code != hierarchy.total) == inside)
