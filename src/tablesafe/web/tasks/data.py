"""Tasks: a look at data, dimensions and rules while a job is made. They run in the worker process of a session."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tablesafe.core.language import language, text
from tablesafe.web.child import Desk
from tablesafe.web.desk import job_of, problem_of
from tablesafe.web.tasks.designs import strangers

if TYPE_CHECKING:
    from tablesafe.core.hierarchy import Hierarchy
    from tablesafe.core.problem import Problem
    from tablesafe.job import Job
    from tablesafe.tabulate.sources import Connection, Records

MOST_NODES = 1_500
"""Nodes of a tree that travel to the browser."""
MOST_PARTS = 60
"""Parts of one code that are shown; of more, how many they are."""
MOST_LISTED = 100
"""Sensitive cells that are listed, the largest."""
MOST_STRANGE = 30
"""Codes that a hierarchy does not have that are offered for mapping at a time."""


def tree(desk: Desk, draft: Mapping[str, Any], name: str) -> dict[str, Any]:
    """The hierarchy of a dimension of a draft, to be looked at: its nodes, levels and sizes."""
    from tablesafe.job.load import examine
    from tablesafe.web.drafts import JOB_FILE

    job, _ = examine(draft, desk.folder / JOB_FILE, {})
    if job is None or name not in job.dimensions:
        return {"nodes": [], "codes": 0, "notes": []}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = hierarchy_of(desk, job, name)
    return {
        **_nodes(found),
        **strangers(found, _codes_of_data(desk, job, name), MOST_STRANGE),
        "codes": len(found.codes),
        "leaves": len(found.leaves),
        "levels": int(found.depth.max(initial=0)) + 1,
        "sums": int(found.equations.shape[0]),
        "is_tree": found.is_tree,
        "equations": [] if found.is_tree else [str(each) for each in found.as_equations()[:MOST_PARTS]],
        "lengths": sorted({len(code) for code in found.leaves}),
        "notes": [str(each.message) for each in caught if "tablesafe" in each.filename],
    }


def hierarchy_of(desk: Desk, job: Job, name: str) -> Hierarchy:
    """The hierarchy of a dimension of a job, without the whole table."""
    from tablesafe.core.hierarchy import Hierarchy
    from tablesafe.pipeline.hierarchies import build_hierarchy, is_structured, with_labels
    from tablesafe.tabulate.axes import in_order

    dimension = job.dimensions[name]

    def codes() -> list[str]:
        return _codes(desk, job, _file_of(job, name), dimension.column or name)

    if is_structured(dimension):
        found = build_hierarchy(job, name, codes)
    else:
        nameless = [] if dimension.missing in {"error", "drop"} else [dimension.missing]
        parts = [code for code in in_order(list(dict.fromkeys([*codes(), *nameless]))) if code != dimension.total]
        found = Hierarchy.flat(parts or [dimension.total], total=dimension.total if parts else None, name=name)
    return with_labels(job, {name: found})[name]


def fits(desk: Desk, draft: Mapping[str, Any], file: str, used: Sequence[str] = ()) -> dict[str, int]:
    """What the hierarchy in a file is for, with how many codes it lacks: dimensions of a draft without one, or columns.

    It is for those of which it holds all codes; where there is none, for the one of which it holds most, if that is
    more than half: offices bring files in which a code is missing, or spelled otherwise. Where it is for no dimension,
    columns that nothing is made of yet are looked at, those not among the `used`: codes of digits look like amounts.
    """
    from tablesafe.core.hierarchy import Hierarchy
    from tablesafe.job.load import examine
    from tablesafe.web.drafts import JOB_FILE

    job, _ = examine(draft, desk.folder / JOB_FILE, {})
    if job is None:
        return {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tree = Hierarchy.from_hrc(desk.folder / file)
    leaves = {*tree.leaves, *tree.aliases}
    free = [name for name, dimension in job.dimensions.items() if dimension.hierarchy is None]
    codes = {name: set(_codes(desk, job, _file_of(job, name), job.dimensions[name].column or name)) for name in free}
    best = _best(codes, leaves)
    if best or not used:
        return best
    others = [name for name in _columns(job) if name not in used and name not in job.dimensions]
    return _best({name: set(_codes(desk, job, job.source.file, name)) for name in others}, leaves)


def _best(found: Mapping[str, set[str]], leaves: set[str]) -> dict[str, int]:
    lacking = {name: len(codes - leaves) for name, codes in found.items() if codes}
    whole = {name: 0 for name, many in lacking.items() if not many}
    if whole or not lacking:
        return whole
    best = min(lacking, key=lambda name: lacking[name] / len(found[name]))
    return {best: lacking[best]} if 2 * lacking[best] < len(found[best]) else {}


def _codes_of_data(desk: Desk, job: Job, name: str) -> list[str]:
    """The codes of a dimension in the data; none where these cannot be read, which the page Data tells."""
    from tablesafe.core.errors import TablesafeError

    try:
        return _codes(desk, job, _file_of(job, name), job.dimensions[name].column or name)
    except TablesafeError:
        return []


def _file_of(job: Job, name: str) -> str:
    """The file with the codes of a dimension: of several linked tables of cells, the first that has it."""
    return next((table.file for table in job.tables if name in table.dimensions), None) or job.source.file


def _codes(desk: Desk, job: Job, file: str, column: str) -> list[str]:
    """The distinct codes of a column of a file, in the order of the alphabet; kept until the file changes."""
    path = job.resolve(file)
    stamp = (str(path), path.stat().st_mtime_ns, column, job.source.delimiter, job.source.sheet)
    kept: dict[Any, list[str]] = desk.loaded.setdefault("codes", {})
    if stamp not in kept:
        kept[stamp] = _distinct(job, path, column)
    return kept[stamp]


def _columns(job: Job) -> list[str]:
    """The columns of the source."""
    with _opened(job, job.resolve(job.source.file)) as (_, records):
        return list(records.columns)


@contextmanager
def _opened(job: Job, path: Path) -> Iterator[tuple[Connection, Records]]:
    """A file of a job, ready to be asked about."""
    from tablesafe.io.frames import read_frame
    from tablesafe.io.layout import EXCEL_ENDINGS
    from tablesafe.tabulate.sources import open_records, seal, session

    source: Any = path
    layout = job.source.crosstab
    if layout is not None or path.suffix.lower() in EXCEL_ENDINGS:
        source = read_frame(path, sheet=job.source.sheet, delimiter=job.source.delimiter, layout=layout).frame
    with session(None, None, tempfile.gettempdir()) as (connection, private):
        records = open_records(connection, source, private, delimiter=job.source.delimiter, wanted=lambda name: True)
        if records.paths:
            seal(connection, records)
        yield connection, records


def _distinct(job: Job, path: Path, column: str) -> list[str]:
    from tablesafe.core.errors import InvalidFile
    from tablesafe.files.read import did_you_mean

    with _opened(job, path) as (connection, records):
        if column not in records.columns:
            near = did_you_mean(column, list(records.columns)) or "choose another on the page Data."
            raise InvalidFile(text("{name} has no column {column!r}.", name=path.name, column=column), hint=near)
        trimmed = f"trim(CAST({records.columns[column].sql} AS VARCHAR))"
        rows = connection.sql(
            f"SELECT DISTINCT {trimmed} AS t FROM {records.relation} WHERE t <> '' ORDER BY t"
        ).fetchall()
    return [str(row[0]) for row in rows]


def _nodes(hierarchy: Hierarchy) -> dict[str, Any]:
    """The tree as nested nodes, the first level unfolded; what is too much is told by its number."""
    from tablesafe.report.axis import Axis

    axis = Axis.of("", hierarchy)
    children: dict[int, list[int]] = {}
    for line, above in enumerate(axis.parent.tolist()):
        children.setdefault(above, []).append(line)
    left = MOST_NODES

    def node(line: int) -> dict[str, Any]:
        parts = children.get(line, [])
        label = axis.heading(line) + (f"   ({len(parts)})" if parts else "")
        return {"id": str(axis.codes[line]), "label": label, "children": nodes(parts)}

    def nodes(lines: list[int]) -> list[dict[str, Any]]:
        nonlocal left
        shown = lines[: min(MOST_PARTS, max(left, 0))]
        left -= len(shown)
        found = [node(line) for line in shown]
        rest = len(lines) - len(shown)
        if rest:
            found.append({"id": f"more of {lines[0]}", "label": f"… {rest:,} more", "children": []})
        return found

    return {"nodes": nodes(children.get(-1, []))}


def sensitive(desk: Desk, job: str) -> dict[str, Any]:
    """How many cells the rules call sensitive, by rule, and the largest of them."""
    from tablesafe.report.cells import interval

    problem = problem_of(desk, job)
    mask, value = problem.sensitivity.mask, problem.table.value
    found = np.flatnonzero(mask)
    largest = found[np.argsort(-np.abs(value[found]), kind="stable")[:MOST_LISTED]]
    levels, decimals, count = problem.sensitivity, problem.table.decimals, problem.table.count
    speech = language(desk.language)
    rows = [
        {
            "cell": codes_of(problem, cell),
            "value": speech.number(f"{value[cell]:,.{decimals}f}"),
            "contributors": None if count is None else speech.number(f"{int(count[cell]):,}"),
            "why": why(problem, cell),
            "hide": interval(
                float(value[cell] - levels.lower[cell]), float(value[cell] + levels.upper[cell]), decimals, speech
            ),
        }
        for cell in largest.tolist()
    ]
    return {
        "cells": problem.table.seen, "sensitive": len(found), "rows": rows, "by_rule": _by_rule(problem),
    }  # fmt: skip


def codes_of(problem: Problem, cell: int) -> str:
    """A cell by its codes alone, as short as can be."""
    table = problem.table
    if table.names is not None or not table.dimensions:
        return table.describe(cell)
    trees = zip(table.dimensions.values(), table.codes[cell].tolist(), strict=True)
    return " · ".join(tree.codes[position] for tree, position in trees)


def why(problem: Problem, cell: int) -> str:
    """The rules that flagged a cell."""
    found = problem.sensitivity
    return ", ".join(name for number, name in enumerate(found.reasons) if int(found.reason[cell]) >> number & 1)


def _by_rule(problem: Problem) -> dict[str, int]:
    found = problem.sensitivity
    flagged = found.reason[found.mask]
    return {name: int((flagged >> number & 1).sum()) for number, name in enumerate(found.reasons)}


def regions(desk: Desk, job: str) -> str:
    """Where the rules of a job draw the line, as a picture; empty when none of them weighs contributors."""
    from tablesafe.core.errors import InvalidOption
    from tablesafe.report.plots import sensitivity_regions
    from tablesafe.rules.explorer import measures

    weighing = []
    for rule in job_of(desk, job).rules:
        try:
            measures(rule)
        except InvalidOption:
            continue
        weighing.append(rule)
    return sensitivity_regions(weighing[:4], width_inches=5.2).svg() if weighing else ""
