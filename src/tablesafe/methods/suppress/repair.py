"""The audit has the last word: what it finds open is protected anew until nothing is."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tablesafe.audit.audit import audit
from tablesafe.audit.findings import Findings
from tablesafe.audit.unions import Union
from tablesafe.equations import Integers, Mask
from tablesafe.errors import SolverFailure
from tablesafe.methods.suppress.guard import Guard
from tablesafe.methods.suppress.instance import UNBOUNDED, Instance
from tablesafe.methods.suppress.part import EFFORTS, Ledger, Part
from tablesafe.methods.suppress.search import Search
from tablesafe.methods.suppress.witnesses import CannotProtect
from tablesafe.problem import Problem
from tablesafe.release import Release

ROUNDS = 30


def repaired(
    problem: Problem,
    search: Search,
    pattern: Mask,
    *,
    insiders: bool = True,
    unions: bool = True,
    executor: Executor | None = None,
) -> Mask:
    """A pattern that the audit of the whole system finds safe; what was withheld stays withheld.

    The search works with the tolerances of floating point and may think of outsiders only; the audit works with exact
    arithmetic and thinks of insiders and of derivable sums as well. Each round asks for a little more than the
    levels, so that the two cannot disagree for ever.
    """
    guard = Guard.of(problem)
    for round_ in range(ROUNDS):
        release = Release.from_suppression(problem, pattern)
        findings = audit(problem, release, exact=False, insiders=insiders, unions=unions, executor=executor)
        if findings.safe:
            return pattern
        before = pattern
        pattern = pattern | _against_outsiders(_opened(search.instance, pattern, round_), guard, findings)
        pattern = pattern | _against_insiders(_opened(search.instance, pattern, round_), guard, findings)
        pattern = pattern | _against_sums(_opened(search.instance, pattern, round_), problem, findings)
        if (pattern == before).all() and round_ > 5:
            break
    raise SolverFailure(
        f"A pattern was found, but after {ROUNDS} rounds of repair the audit still finds: {findings.open[0]}.\n\n"
        f"Hint: try margin=0.01 or zeros=True; or waive the cell; please report this."
    )


def _opened(instance: Instance, pattern: Mask, round_: int) -> Instance:
    """The instance in which the pattern is withheld already, and a little more protection is asked for."""
    room = np.where(instance.sign > 0, instance.up[instance.cell], instance.down[instance.cell])
    stretch = 1 + 1e-7 * 10 ** min(round_, 5)
    return replace(
        instance,
        forced=instance.forced | pattern,
        cost=np.where(pattern, 0.0, instance.cost),
        level=np.maximum(instance.level, np.minimum(instance.level * stretch, room)),
    )


def _ledger(instance: Instance, targets: Integers, guard: Guard | None) -> Ledger:
    """A ledger for some targets of an instance."""
    return Ledger(
        Part(
            instance.rows,
            instance.cost,
            instance.forced,
            instance.up,
            instance.down,
            instance.cell[targets],
            instance.sign[targets],
            instance.level[targets],
            guard,
        )
    )


def _targets_of(instance: Instance, cells: NDArray[np.intp]) -> Integers:
    return np.flatnonzero(np.isin(instance.cell, cells))


def _against_outsiders(instance: Instance, guard: Guard | None, findings: Findings) -> Mask:
    """What has to be withheld besides to protect the cells that are open to everyone."""
    targets = _targets_of(instance, findings.cells[~findings.protected])
    if not targets.size:
        return instance.forced
    ledger = _ledger(instance, targets, guard)
    failed = ledger.protect_all(range(len(targets)))
    if failed:
        raise CannotProtect(int(targets[failed[0]]))
    return instance.forced | ledger.used


def _against_insiders(instance: Instance, guard: Guard | None, findings: Findings) -> Mask:
    """What has to be withheld besides so that nobody can rule the protecting deviations out.

    Such a deviation moves no cell that one respondent knows alone, and takes none below what its largest contributor
    has there; where that is too much to ask, it only leaves the cells known to one respondent alone. Looked for nearby
    first: far away is slow, and seldom needed.
    """
    found = () if findings.insiders is None else findings.insiders.found
    cells = np.unique(np.array([insider.cell for insider in found if insider.certain], dtype=np.int64))
    targets = _targets_of(instance, cells)
    if guard is None or not targets.size:
        return instance.forced
    pattern = instance.forced
    loose = replace(guard, down=np.full(len(instance), np.inf))
    for view, efforts in ((guard, 1), (loose, 1), (guard, EFFORTS), (loose, EFFORTS)):
        ledger = _ledger(replace(instance, forced=pattern), targets, view)
        failed = ledger.protect_all(range(len(targets)), efforts=efforts, strict=frozenset(range(len(targets))))
        pattern = pattern | ledger.used
        targets = targets[failed]
        if not targets.size:
            break
    return pattern


def _against_sums(instance: Instance, problem: Problem, findings: Findings) -> Mask:
    """What has to be withheld besides so that sums which fail a rule can no longer be derived."""
    failed = [] if findings.unions is None else [union for union in findings.unions.failed if union.certain]
    if not failed:
        return instance.forced
    wider = _with_sums(instance, failed, 10.0**problem.table.decimals)
    ledger = _ledger(wider, np.arange(len(wider.level)), None)
    ledger.protect_all(range(len(wider.level)))
    return instance.forced | ledger.used[: len(instance)]


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
