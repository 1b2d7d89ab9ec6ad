"""From a job's table to its problem: what is sensitive, what an attacker knows, what is frozen, what it costs."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np
import polars as pl

from tablesafe.core.equations import Floats, Mask
from tablesafe.core.errors import InvalidProblem, InvalidTable, concerning
from tablesafe.core.language import text
from tablesafe.core.problem import Problem
from tablesafe.core.statuses import read_statuses, recognised_scheme
from tablesafe.core.table import Table
from tablesafe.io.apriori import apply_cells
from tablesafe.io.jj import read_jj
from tablesafe.job.model import Job, Selector
from tablesafe.pipeline.columns import COSTS
from tablesafe.pipeline.tables import build_table, cell_source
from tablesafe.report.progress import Event, Listener, ignore
from tablesafe.rules.columns import amounts, marked, waived


def build_problem(
    job: Job, listen: Listener = ignore, *, table: Table | None = None, problem: Problem | None = None
) -> Problem:
    """The problem of a job; a `table` or `problem` that was read for it before is not read again."""
    if problem is not None:
        pass
    elif job.source.holds == "problem":
        listen(Event("read", text("Reading {file}", file=job.source.file)))
        problem = _read_problem(job, listen)
    else:
        if table is None:
            listen(Event("tabulate", text("Reading {file}", file=job.source.file)))
            table = build_table(job, listen)
        listen(Event("rules", "Looking for sensitive cells"))
        problem = _with_statuses(job, Problem(table, job.rules))
    problem = _with_apriori(job, _with_options(job, problem))
    _require_sensitivity(job, problem)
    _require_announceable(job, problem)
    return problem


def _require_sensitivity(job: Job, problem: Problem) -> None:
    """Statuses that tell what is withheld, and not why: nothing would be left to protect, and any pattern be safe."""
    from_statuses = job.source.status is not None or job.problem.apriori_files
    if job.rules or not from_statuses or problem.sensitivity.mask.any() or not problem.suppressed.any():
        return
    if getattr(job.method, "for_every_cell", False):
        return
    raise InvalidProblem(
        f"The statuses say which {int(problem.suppressed.sum()):,} cells are withheld, but call none sensitive: "
        f"nothing would be left to protect.",
        hint="add [[rules]], or statuses such as 'sensitive' (τ-ARGUS: u).",
    )


def _require_announceable(job: Job, problem: Problem) -> None:
    """Bounds of single cells, as files of problems hold them, are often made from the true value: not for readers."""
    if job.output.intervals and problem.bounds_differ:
        raise InvalidProblem(
            f"{job.source.file} gives bounds for single cells, which some attackers know; 'intervals' in [output] "
            f"would show them to every reader.",
            hint="leave out 'intervals'; the values are published without them.",
        )


def _read_problem(job: Job, listen: Listener) -> Problem:
    """A problem as its file gives it; rules flag further cells."""
    path, options = job.resolve(job.source.file), job.problem
    if path.suffix.lower() == ".arb":
        from tablesafe.tauargus.batch.session import read_arb_problem

        given = read_arb_problem(path, job.source.tables, tell=lambda stage, told: listen(Event(stage, told)))
        return _ruled(job, given)
    if path.suffix.lower() == ".tab":
        metadata = None if job.source.metadata is None else job.resolve(job.source.metadata)
        response = job.response.value[0] if job.response.value else None
        from tablesafe.tauargus.table import read_tab

        return read_tab(
            path,
            metadata,
            response=response,
            totals="compute" if job.source.missing_totals == "compute" else "check",
            rules=job.rules,
            manual_range=options.manual_range,
            tolerance=job.source.tolerance,
        )
    return _ruled(job, read_jj(path))


def _ruled(job: Job, given: Problem) -> Problem:
    """The problem with what the rules of the job flag besides."""
    if not job.rules:
        return given
    found = Problem(given.table, job.rules).sensitivity
    return given.replace(sensitivity=given.sensitivity | found, rules=(*given.rules, *job.rules))


def _with_statuses(job: Job, problem: Problem) -> Problem:
    """What the status column of a table of cells says about them; it takes away nothing that a rule found."""
    if job.source.status is None:
        return problem
    source = cell_source(job, None, list(job.dimensions))
    source.require(job.source.status)
    scheme = job.source.scheme or recognised_scheme(source, job.source.status)
    columns = source.frame.select(*job.dimensions, status=job.source.status)
    if scheme == "0/1":  # what a yes means depends on the name that the column has in the file
        meanings, scheme = read_statuses(source, job.source.status, scheme=scheme), "words"
        words = pl.Series(["published", "sensitive", "suppressed"], dtype=pl.String)
        columns = columns.with_columns(status=words.gather(meanings.astype(np.uint32)))
    return apply_cells(problem, columns, scheme=scheme, manual_range=job.problem.manual_range, waive=False)


def _with_apriori(job: Job, problem: Problem) -> Problem:
    """The problem with what a-priori files say, one after the other."""
    manual_range = job.problem.manual_range
    for path in map(job.resolve, job.problem.apriori_files):
        with concerning("problem", "apriori"):
            if path.suffix.lower() == ".hst":
                from tablesafe.tauargus.apriori import apply_hst

                problem = apply_hst(problem, path, manual_range=manual_range)
            else:
                problem = apply_cells(problem, path, scheme=job.problem.scheme, manual_range=manual_range)
    return problem


def _with_options(job: Job, problem: Problem) -> Problem:
    options, table = job.problem, problem.table
    lower, upper = _bounds(job, problem)
    suppressed = problem.suppressed | _chosen(table, options.suppressed, "suppressed")
    withheld = problem.withheld | _chosen(table, options.withheld, "withheld")
    frozen = problem.frozen | _chosen(table, options.frozen, "frozen")
    public = _chosen(table, options.waived, "waived")
    if options.freeze_zeros:
        frozen |= (table.integers == 0) & ~problem.sensitivity.mask & ~suppressed & ~withheld
    return problem.replace(
        sensitivity=problem.sensitivity.where(~public),
        lower=lower,
        upper=upper,
        cost=_costs(problem, options.cost),
        frozen=frozen,
        suppressed=suppressed,
        withheld=withheld,
        shows_zeros=options.shows_zeros,
    )


def _bounds(job: Job, problem: Problem) -> tuple[Floats, Floats]:
    """What an attacker knows beforehand of each cell."""
    options, value = job.problem, problem.table.value
    lower, upper = problem.lower, problem.upper
    if options.within_percent is not None:
        reach = options.within_percent / 100 * np.abs(value)
        below, above = _sparing(job, problem, reach) if options.spare_levels else (reach, reach)
        return np.maximum(lower, value - below), np.minimum(upper, value + above)
    if options.lower is not None:
        lower = _numbers(problem.table, options.lower)
    if options.upper is not None:
        upper = _numbers(problem.table, options.upper)
    return lower, upper


def _sparing(job: Job, problem: Problem, reach: Floats) -> tuple[Floats, Floats]:
    """How far below and above the value the attacker looks, where it knows no more than the protection levels allow."""
    levels, reach = problem.sensitivity, np.where(problem.table.value == 0, np.inf, reach)
    below, above = np.maximum(reach, levels.lower), np.maximum(reach, np.maximum(levels.upper, levels.sliding))
    short = levels.mask & ((below > reach) | (above > reach))
    if short.any():
        warnings.warn(
            f"{int(short.sum()):,} sensitive cells need more room than {job.problem.within_percent:g} percent of their "
            f"value: the attacker is taken to know less of these.",
            stacklevel=2,
        )
    return below, above


def _numbers(table: Table, given: float | str) -> Floats:
    return amounts(table, given) if isinstance(given, str) else np.full(len(table), given)


def _costs(problem: Problem, cost: str) -> Floats:
    """What withholding each cell costs."""
    value = np.abs(problem.table.value)
    if cost not in COSTS:
        return amounts(problem.table, cost)
    if cost == "count" and problem.table.count is None:
        raise InvalidProblem(
            'cost = "count" needs the number of contributors of each cell.',
            hint="name the column with count = in [source], or take another cost.",
        )
    match cost:
        case "unit":
            return np.ones(len(value))
        case "log":
            return np.log1p(value)
        case "count":
            assert problem.table.count is not None
            return problem.table.count.astype(np.float64)
        case _:
            return problem.cost


def _chosen(table: Table, cells: str | Sequence[Selector], key: str) -> Mask:
    """The cells that a column marks, or that have the given codes."""
    if isinstance(cells, str):
        return waived(table, cells) if key == "waived" else marked(table, cells)
    mask = np.zeros(len(table), dtype=np.bool_)
    for number, selector in enumerate(cells, start=1):
        here = _selected(table, selector)
        if not here.any():
            raise InvalidTable(
                f"{key!r}, no. {number}: the table has no cell with "
                + ", ".join(f"{name} = {code!r}" for name, code in selector.items())
                + ".",
                hint="check the codes; dimensions left out mean all their codes.",
            )
        mask |= here
    return mask


def _selected(table: Table, selector: Selector) -> Mask:
    mask = np.ones(len(table), dtype=np.bool_)
    names = list(table.dimensions)
    for name, wanted in selector.items():
        if name not in table.dimensions:
            raise InvalidTable(f"There is no dimension {name!r}; there are {', '.join(names) or 'none'}.")
        hierarchy = table.dimensions[name]
        codes = [wanted] if isinstance(wanted, str) else list(wanted)
        mask &= np.isin(table.codes[:, names.index(name)], [hierarchy.position(code) for code in codes])
    return mask
