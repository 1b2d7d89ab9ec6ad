"""`tablesafe difference`: what several tables give away together."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from tablesafe.cli.exits import Exit
from tablesafe.cli.show import print_json, say
from tablesafe.cli.sources import SchemeName, SchemeOption
from tablesafe.core.errors import InvalidOption

if TYPE_CHECKING:
    from tablesafe.audit.differencing.disclosures import Differences, Published
    from tablesafe.core.hierarchy import Hierarchy
    from tablesafe.job import Job
    from tablesafe.report.progress import Listener

SHARED = ("file", "respondent", "holding", "weight", "frequency")
"""Keys of [source] that jobs over the same records must agree on."""


def difference(
    *jobs: Annotated[Path, Parameter(help="job files, one for each published table")],
    withheld: Annotated[
        tuple[str, ...], Parameter(help="pattern of the cells that a table does not show, as JOB=FILE; repeat it")
    ] = (),
    scheme: SchemeOption = None,
    correspondence: Annotated[
        tuple[str, ...],
        Parameter(help="cells: file with a row per smallest area and a column per division, as DIMENSION=FILE"),
    ] = (),
    equation: Annotated[
        tuple[str, ...],
        Parameter(help='cells: how codes of different tables add up, as "DIMENSION: 16+ = 18+ + 16-17"; repeat it'),
    ] = (),
    counts: Annotated[bool, Parameter(help="cells: the values are counts")] = False,
    output: Annotated[
        Path | None, Parameter(alias="-o", help="write what was found here: .csv, .xlsx or .parquet; internal")
    ] = None,
    shown: Annotated[int, Parameter(help="how many findings to print")] = 20,
    json: Annotated[bool, Parameter(help="print one JSON document and nothing else")] = False,
    quiet: Annotated[bool, Parameter(help="print only the first line")] = False,
) -> int:
    """Find what several tables give away together: by subtracting them from each other, and by all their equations.

    Jobs over the same records may differ in their filters and dimensions; every difference is judged by their rules.
    Jobs over finished cells need --correspondence or --equation to say how their codes overlap, unless they share their
    codes. The methods of the jobs are not run: a cell counts as published, with its true value, unless --withheld names
    it. A job is called by its file name without the suffix. What is printed and written is confidential. The exit code
    is 1 when something is given away.
    """
    from tablesafe.io.frames import write_frame
    from tablesafe.job import load_job
    from tablesafe.report.progress import progress_bar

    if len(jobs) < 2:
        raise InvalidOption("Differencing takes at least two job files.", hint="tablesafe difference a.toml b.toml")
    named = {path.stem: load_job(path) for path in jobs}
    if len(named) < len(jobs):
        raise InvalidOption("Two jobs have the same file name.", hint="rename one of them; tables are called by it.")
    hidden = _files(withheld, "--withheld", list(named))
    kinds = {job.source.holds for job in named.values()}
    with progress_bar(enabled=not (json or quiet)) as listen:
        if kinds == {"records"}:
            if correspondence or equation:
                raise InvalidOption("--correspondence and --equation are for jobs over cells; records need neither.")
            found = _of_records(named, hidden, scheme, listen)
        elif kinds == {"cells"}:
            found = _of_cells(named, hidden, scheme, correspondence, equation, counts, listen)
        else:
            raise InvalidOption("All jobs must read records, or all must read cells.")
    if output is not None:
        write_frame(found.frame(), output)
    code = Exit.OK if found.safe else Exit.UNSAFE
    if json:
        facts = {"status": "ok" if found.safe else "unsafe", "exit_code": int(code), "searched": found.searched}
        print_json({**facts, "found": [_plain(row) for row in found.frame().to_dicts()]})
    else:
        text = found.text(shown=shown)
        say(text.splitlines()[0] if quiet else text, style="green" if found.safe else "red")
    return code


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    """A row for JSON, which has no infinity."""
    return {name: None if value in {float("inf"), float("-inf")} else value for name, value in row.items()}


def _files(texts: tuple[str, ...], option: str, names: list[str]) -> dict[str, Path]:
    """Files by name, as NAME=FILE."""
    found: dict[str, Path] = {}
    for text in texts:
        name, equals, file = text.partition("=")
        if not (equals and file) or name not in names:
            raise InvalidOption(
                f"Cannot read {option} {text!r}.", hint=f"{option} {names[0]}=FILE; there are {', '.join(names)}."
            )
        found[name] = Path(file)
    return found


def _of_records(
    named: dict[str, Job], hidden: dict[str, Path], scheme: SchemeName | None, listen: Listener
) -> Differences:
    from tablesafe.audit.differencing.difference import difference as find
    from tablesafe.io.frames import read_frame
    from tablesafe.report.progress import Event

    first = next(iter(named.values()))
    _refuse_strangers(named)
    if first.source.frequency is not None:
        raise InvalidOption(
            f"Differences are judged by who contributes to them, but with frequency = {first.source.frequency!r} a row "
            f"stands for respondents whom nobody knows.",
            hint="give one record per respondent.",
        )
    rules = _rules(named)
    tables = [_published(name, job, hidden.get(name), scheme, listen) for name, job in named.items()]
    listen(Event("audit", "Subtracting the tables from each other"))
    source = first.source
    return find(
        read_frame(first.resolve(source.file), sheet=source.sheet, delimiter=source.delimiter).frame,
        tables,
        rules=rules,
        value=first.response.value[0] if first.response.value else None,
        respondent=source.respondent,
        holding=source.holding,
        weight=source.weight,
        largest=max(job.source.largest for job in named.values()),
    )


def _refuse_strangers(named: dict[str, Job]) -> None:
    (first, one), *others = named.items()
    for name, job in others:
        for key in SHARED:
            mine, other = getattr(one.source, key), getattr(job.source, key)
            if key == "file":
                mine, other = one.resolve(mine).resolve(), job.resolve(other).resolve()
            if mine != other:
                raise InvalidOption(
                    f"Jobs {first!r} and {name!r} differ in {key!r} of [source]: {mine} and {other}.",
                    hint="tables can be compared over the same records only.",
                )
        if job.response.value != one.response.value or len(one.response.value) > 1:
            raise InvalidOption(f"Jobs {first!r} and {name!r} must add up the same one column (or count records both).")


def _rules(named: dict[str, Job]) -> list[Any]:
    """The rules of all jobs, each once."""
    rules: list[Any] = []
    for job in named.values():
        rules += [rule for rule in job.rules if rule not in rules]
    if not rules:
        raise InvalidOption("None of the jobs has rules to judge what is found.", hint="add [[rules]] to one of them.")
    return rules


def _published(name: str, job: Job, pattern: Path | None, scheme: SchemeName | None, listen: Listener) -> Published:
    """What a job publishes of its records."""
    from tablesafe.audit.differencing.disclosures import Published
    from tablesafe.pipeline import build_table

    table = build_table(job, listen)
    return Published(
        name=name,
        dimensions=dict(table.dimensions),
        where=job.source.where,
        margins=[each.dimensions for each in job.tables] or None,
        column_of={d: each.column or d for d, each in job.dimensions.items()},
        missing={d: each.missing for d, each in job.dimensions.items()},
        withheld=None if pattern is None else _withheld_codes(table, pattern, scheme),
    )


def _withheld_codes(table: Any, pattern: Path, scheme: SchemeName | None) -> Any:
    import polars as pl

    from tablesafe.core.problem import Problem
    from tablesafe.io.patterns import read_pattern

    mask = read_pattern(pattern, Problem(table), scheme=scheme)
    return pl.DataFrame(table.code_columns()).filter(pl.Series(mask))


def _of_cells(
    named: dict[str, Job],
    hidden: dict[str, Path],
    scheme: SchemeName | None,
    correspondence: tuple[str, ...],
    equation: tuple[str, ...],
    counts: bool,
    listen: Listener,
) -> Differences:
    from tablesafe.audit.differencing.difference import difference as find
    from tablesafe.core.release import Release
    from tablesafe.io.patterns import read_pattern
    from tablesafe.pipeline import build_problem

    shown: dict[str, Any] = {}
    for name, job in named.items():
        problem = build_problem(job, listen)
        shown[name] = problem.table
        if name in hidden or problem.suppressed.any() or problem.withheld.any():
            mask = read_pattern(hidden[name], problem, scheme=scheme) if name in hidden else problem.suppressed
            shown[name] = Release.from_suppression(problem, mask)
    dimensions = list(dict.fromkeys(name for job in named.values() for name in job.dimensions))
    return find(
        shown,
        rules=_rules(named),
        correspondence=_files(correspondence, "--correspondence", dimensions),
        dimensions=_joint(equation, dimensions),
        integers=True if counts else None,
    )


def _joint(equations: tuple[str, ...], dimensions: list[str]) -> dict[str, Hierarchy]:
    """Hierarchies from equations, as DIMENSION: total = part + part."""
    from tablesafe.core.hierarchy import Hierarchy

    found: dict[str, list[str]] = {}
    for text in equations:
        name, colon, sums = text.partition(":")
        if not colon or name.strip() not in dimensions:
            raise InvalidOption(
                f"Cannot read --equation {text!r}.", hint=f"--equation '{dimensions[0]}: total = part + part'"
            )
        found.setdefault(name.strip(), []).append(sums.strip())
    return {name: Hierarchy.from_equations(sums, name=f"dimension {name!r}") for name, sums in found.items()}
