"""The audit has the last word: what it finds open is protected anew until nothing is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tablesafe.audit.audit import audit
from tablesafe.audit.findings import Findings
from tablesafe.audit.unions import Union
from tablesafe.equations import Floats, Mask
from tablesafe.errors import SolverFailure
from tablesafe.methods.suppress.instance import UNBOUNDED, Instance
from tablesafe.methods.suppress.neighbourhood import Neighbourhoods
from tablesafe.methods.suppress.optimal import Search
from tablesafe.methods.suppress.sequential import protect_all
from tablesafe.methods.suppress.witnesses import CannotProtect, Witnesses
from tablesafe.problem import Problem
from tablesafe.release import Release
from tablesafe.solve.small import SmallSolver

ROUNDS = 30


def repaired(problem: Problem, search: Search, pattern: Mask) -> Mask:
    """A pattern that the audit of the whole system finds safe; what was withheld stays withheld.

    The search works with the tolerances of floating point and thinks of outsiders only; the audit works with exact
    arithmetic and thinks of insiders and of derivable sums as well. Each round asks for a little more than the
    levels, so that the two cannot disagree for ever.
    """
    for round_ in range(ROUNDS):
        release = Release.from_suppression(problem, pattern)
        findings = audit(problem, release, exact=False)
        if findings.safe:
            return pattern
        wider = _opened(search.instance, pattern, 1 + 1e-7 * 10 ** min(round_, 5))
        before = pattern
        pattern = _against_outsiders(wider, search.solver, findings)
        pattern = pattern | _against_insiders(wider, search.solver, problem, findings)
        pattern = pattern | _against_sums(wider, search.solver, problem, findings)
        if (pattern == before).all() and round_ > 5:
            break
    raise SolverFailure(
        f"A pattern was found, but after {ROUNDS} rounds of repair the audit still finds: {findings.open[0]}.\n\n"
        f"Hint: try margin=0.01 or zeros=True; or waive the cell; please report this."
    )


def _opened(instance: Instance, pattern: Mask, stretch: float) -> Instance:
    """The instance in which the pattern is withheld already, and a little more protection is asked for."""
    room = np.where(instance.sign > 0, instance.up[instance.cell], instance.down[instance.cell])
    return replace(
        instance,
        forced=instance.forced | pattern,
        cost=np.where(pattern, 0.0, instance.cost),
        level=np.maximum(instance.level, np.minimum(instance.level * stretch, room)),
    )


def _targets_of(instance: Instance, cells: NDArray[np.intp]) -> list[int]:
    return np.flatnonzero(np.isin(instance.cell, cells)).tolist()


def _against_outsiders(instance: Instance, solver: SmallSolver, findings: Findings) -> Mask:
    """What has to be withheld besides to protect the cells that are open to everyone."""
    witnesses = Witnesses(instance, Neighbourhoods(instance), solver)
    protect_all(witnesses, instance.cost, targets=_targets_of(instance, findings.cells[~findings.protected]))
    return witnesses.pattern


def _against_insiders(instance: Instance, solver: SmallSolver, problem: Problem, findings: Findings) -> Mask:
    """What has to be withheld besides so that nobody can rule the protecting deviations out.

    Such a deviation moves no cell that one respondent knows alone, and takes none below what its largest contributor
    has there; where that is too much to ask, it only leaves the cells known to one respondent alone.
    """
    pattern = instance.forced
    found = () if findings.insiders is None else findings.insiders.found
    cells = sorted({insider.cell for insider in found if insider.certain})
    alone, floor = _known_to_one(problem), _largest(problem)
    for cell in cells:
        banned = alone.copy()
        banned[cell] = False
        cautious = np.minimum(instance.down, np.maximum(problem.table.integers - floor, 0.0))
        cautious[cell] = instance.down[cell]
        for view in (replace(instance, down=cautious), instance):
            witnesses = Witnesses(view, Neighbourhoods(view), solver)
            try:
                for target in _targets_of(view, np.array([cell])):
                    witnesses.protect(target, {}, banned=banned, cost=view.cost)
            except CannotProtect:
                continue
            pattern = pattern | witnesses.pattern
            break
    return pattern


def _known_to_one(problem: Problem) -> Mask:
    """Cells that a single respondent or holding knows because it is all there is."""
    table = problem.table
    alone = np.zeros(len(table), dtype=np.bool_)
    for count in (table.count, table.holdings):
        if count is not None:
            alone |= count == 1
    return alone


def _largest(problem: Problem) -> Floats:
    """What the largest contributor adds to each cell, in units of the table."""
    contributors = problem.table.contributors
    if contributors is None:
        return np.zeros(len(problem.table))
    added = contributors.amount if contributors.weighted is None else contributors.weighted
    return np.abs(added[:, 0]) * 10.0**problem.table.decimals


def _against_sums(instance: Instance, solver: SmallSolver, problem: Problem, findings: Findings) -> Mask:
    """What has to be withheld besides so that sums which fail a rule can no longer be derived."""
    failed = [] if findings.unions is None else [union for union in findings.unions.failed if union.certain]
    if not failed:
        return instance.forced
    unit = 10.0**problem.table.decimals
    wider = _with_sums(instance, failed, unit)
    witnesses = Witnesses(wider, Neighbourhoods(wider), solver)
    pending = dict.fromkeys(range(len(wider.level)))
    for target in list(pending):
        if target not in pending:
            continue
        try:
            witnesses.protect(target, pending, cost=wider.cost)
        except CannotProtect:
            pending.pop(target)
    return witnesses.pattern[: len(instance)]


def _with_sums(instance: Instance, sums: Sequence[Union], unit: float) -> Instance:
    """The instance with one more cell per sum, as if it were published: the only targets are these."""
    n, k = len(instance), len(sums)
    members = np.concatenate([np.asarray(union.cells, dtype=np.int64) for union in sums])
    row = np.repeat(np.arange(k), [len(union.cells) for union in sums])
    entries = np.concatenate([np.ones(len(members)), -np.ones(k)])
    place = (np.concatenate([row, np.arange(k)]), np.concatenate([members, n + np.arange(k)]))
    extra = sparse.csr_array((entries, place), shape=(k, n + k))
    old = sparse.csr_array(
        (instance.rows.data, instance.rows.indices, instance.rows.indptr), shape=(instance.rows.shape[0], n + k)
    )
    rows = sparse.csr_array(sparse.vstack([old, extra], format="csr"))
    yes, room = np.ones(k, dtype=np.bool_), np.full(k, UNBOUNDED)
    level = np.array([max(1.0, np.ceil(union.level * unit)) for union in sums])
    return Instance(
        rows,
        sparse.csc_array(rows),
        np.concatenate([instance.cost, np.zeros(k)]),
        np.concatenate([instance.forced, yes]),
        np.concatenate([instance.live, yes]),
        np.concatenate([instance.up, room]),
        np.concatenate([instance.down, room]),
        n + np.arange(k, dtype=np.int64),
        np.ones(k, dtype=np.int8),
        level,
    )
