"""Tables read from a file of cells."""

from __future__ import annotations

from collections.abc import Mapping

from tablesafe.core.errors import InvalidJob
from tablesafe.core.problem import Problem
from tablesafe.io.tauargus_meta import Metadata, Role
from tablesafe.io.tauargus_table import read_tab
from tablesafe.job.arb.model import ReadTable
from tablesafe.pipeline.batch.rules import build_rules, contributors_of, refuse_for_counts
from tablesafe.pipeline.batch.tables import Made, Specified, cells_with, cost_of


def refuse_impossible(table: Specified) -> None:
    """Fail, with the remedy, where the file of a table lacks what the rules need."""
    rules, metadata = table.rules, table.metadata
    if rules.holdings:
        raise InvalidJob(
            f"{rules.holdings[0]} is about holdings, but a finished table does not tell them.\n\n"
            f"Hint: the first two P and NK and the first FREQ are about respondents: use these."
        )
    if rules.weighted:
        raise InvalidJob("WGT(1) uses sampling weights, but a finished table has none.\n\nHint: write WGT(0).")
    if rules.requests:
        raise InvalidJob("REQ needs to know who asked, but a finished table does not tell.\n\nHint: leave it out.")
    if table.spec.response is None:
        refuse_for_counts(rules)
    largest, counted = len(metadata.having(Role.LARGEST)), bool(metadata.having(Role.COUNT))
    for call in rules.respondents:
        if call.name in {"P", "NK"} and contributors_of((call,)) > largest:
            raise InvalidJob(
                f"{call} looks at the {contributors_of((call,))} largest contributions to a cell, but "
                f"{metadata.path.name} marks {largest or 'no'} columns as <MAXSCORE>.\n\n"
                f"Hint: add the columns that hold them, the largest first, or change the rule."
            )
        if call.name in {"FREQ", "ZERO"} and not counted:
            raise InvalidJob(
                f"{call} counts contributors, but {metadata.path.name} marks no column as <FREQUENCY>.\n\n"
                f"Hint: mark it, or leave the rule out."
            )


def read_cells(table: Specified, command: ReadTable, *, any_sums: bool = False) -> Made:
    """The problem of a table read from a file."""
    rules, spec, metadata = table.rules, table.spec, table.metadata
    response = spec.response if spec.response is not None else _counts(metadata)
    compute = command.totals != "check" or any_sums
    given = read_tab(
        table.data,
        metadata,
        response=response,
        cost=spec.cost_variable if spec.cost == "variable" else response,
        shadow=spec.shadow or response,
        dimensions=[variable.name for variable in table.variables()],
        totals="compute" if compute else "check",
        manual_range=rules.manual_range,
    )
    cost = cost_of(table, given.table)
    problem = given if cost is None else given.replace(cost=cost)
    missing = {variable.name: variable.missing for variable in table.variables()}
    remarks = []
    if command.totals == "any" or (any_sums and command.totals == "check"):
        remarks.append(
            "the table need not add up in τ-ARGUS, here it must: totals are the sums of the innermost cells."
        )
    if rules.flags:
        problem, told = _ruled(table, problem, missing)
        remarks += told
    elif not metadata.having(Role.STATUS):
        remarks.append("there is neither a rule nor a status column: no cell is sensitive.")
    return Made(problem, missing, tuple(remarks))


def _counts(metadata: Metadata) -> str:
    found = metadata.having(Role.COUNT)
    if not found:
        raise InvalidJob(
            f"The response is <freq>, but {metadata.path.name} marks no column as <FREQUENCY>.\n\nHint: mark it."
        )
    return found[0].name


def _ruled(
    table: Specified, problem: Problem, missing: Mapping[str, tuple[str, ...]]
) -> tuple[Problem, tuple[str, ...]]:
    """The problem with what the rules flag; what the file marks as unsafe stays so."""
    rules = table.rules
    safe = cells_with(problem.table, missing) if rules.missing_is_safe else None
    built = build_rules((), rules.respondents, problem.table, weighted=False, safe=safe)
    found = Problem(problem.table, built).sensitivity
    marked = problem.sensitivity.mask & ~found.mask
    told = []
    if marked.any():
        told.append(
            f"{int(marked.sum()):,} cells are unsafe by their status in {table.data.name}, not by the rules: they stay "
            f"unsafe (τ-ARGUS would go by the rules alone)."
        )
    frozen = problem.frozen & found.mask
    if frozen.any():
        told.append(f"{int(frozen.sum()):,} cells are protected by their status, but sensitive by the rules.")
    joint = problem.sensitivity | found
    return problem.replace(sensitivity=joint, frozen=problem.frozen & ~joint.mask, rules=built), tuple(told)
