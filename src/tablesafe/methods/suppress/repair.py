"""The audit has the last word: what it finds open is protected anew until nothing is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tablesafe.audit.audit import Audit
from tablesafe.audit.findings import Findings
from tablesafe.audit.respondent_knowledge import Guard, Lists
from tablesafe.audit.unions import Union
from tablesafe.core.equations import Integers, Mask
from tablesafe.core.errors import Setting, SolverFailure
from tablesafe.core.problem import Problem
from tablesafe.methods.suppress.hypercube_method import HypercubeMethod, against_sums
from tablesafe.methods.suppress.insiders import against, asked_by
from tablesafe.methods.suppress.instance import UNBOUNDED, Instance, zeros_kept
from tablesafe.methods.suppress.pattern import CannotProtect
from tablesafe.methods.suppress.sequential import Sequential
from tablesafe.methods.suppress.widen_and_thin import judge_of
from tablesafe.solve.highs import Model
from tablesafe.solve.hypercubes import Hypercubes
from tablesafe.work.budget import ENDLESS, Budget

ROUNDS = 30
"""Rounds of protecting what the audit finds open, before the method gives up."""
PRESUMING = 3
"""First rounds that do not ask how much respondents know, where there are hypercubes to give each a witness."""
PATIENCE = 1
"""Rounds after which one without a change is the last, where nothing is left but what is possibly open."""


def repaired(
    session: Audit,
    instance: Instance,
    pattern: Mask,
    *,
    cubes: Hypercubes | None = None,
    budget: Budget = ENDLESS,
    because: dict[str, Mask] | None = None,
    presume: bool = True,
) -> tuple[Mask, bool]:
    """A pattern that the audit of the whole system finds safe; what was withheld stays withheld.

    When the budget is over before that, it is the pattern so far, and the second of the two says so. `because` is told
    which cells were added for which attackers. With hypercubes, first rounds `presume` that respondents learn what they
    were not soon seen not to.

    What is only possibly open is closed too, unless that is accepted, but as far as withholding more can do it: the
    rest is for the verdict to tell.

    The search works with the tolerances of floating point and may think of outsiders only; the audit works with exact
    arithmetic and thinks of insiders and of derivable sums as well. Each round asks for a little more than the
    levels, so that the two cannot disagree for ever. What was protected from somebody stays so, however much more is
    withheld; so the audit, which is kept, asks only about what was open, and for new sums.
    """
    problem, executor, judge = session.problem, session.executor, judge_of(session, budget)
    presuming = PRESUMING if presume and cubes is not None else 0
    quick = judge_of(session, budget, presume=True)
    guard, lists = Guard.of(problem) if session.insiders else None, Lists.of(problem.table)
    findings = quick(pattern) if presuming else judge(pattern)
    best: tuple[int, Mask] | None = None
    for round_ in range(ROUNDS):
        if not findings.failing:
            return pattern, findings.sums_late
        if budget.over:
            return pattern, True
        if round_ >= presuming and not findings.open and (best is None or len(findings.possible) < best[0]):
            best = len(findings.possible), pattern
        before = pattern
        pattern = pattern | _against_outsiders(_opened(instance, pattern, round_), guard, findings, cubes, budget)
        if lists is not None and findings.insiders is not None:
            found = [each for each in findings.insiders.every if each.certain or findings.possibly == "open"]
            asked, whose = asked_by(found, instance, problem)
            whole = problem.table.integers
            opened = _opened(asked, pattern, round_)
            wider = pattern | against(whose, opened, lists, whole, executor, cubes, budget=budget)
            _note(because, "respondents", wider & ~pattern)
            pattern = wider
        wider = pattern | _against_sums(_opened(instance, pattern, round_), problem, findings, cubes, budget)
        _note(because, "sums", wider & ~pattern)
        pattern = wider
        if budget.left <= 0:
            return pattern, True
        if (pattern == before).all() and round_ > presuming + (5 if findings.open else PATIENCE):
            break
        findings = quick(pattern) if round_ + 1 < presuming else judge(pattern)
    if best is not None:
        return best[1], False
    zeros = (" or ", Setting("zeros", True)) if zeros_kept(problem, instance) else ()
    raise SolverFailure(
        f"A pattern was found, but after {ROUNDS} rounds of repair the audit still finds: {findings.open[0]}.",
        hint=("try ", Setting("margin", 0.01), *zeros, "; or waive the cell; please report this."),
    )


def _note(because: dict[str, Mask] | None, attacker: str, cells: Mask) -> None:
    if because is not None:
        because[attacker] = because.get(attacker, np.zeros(len(cells), dtype=np.bool_)) | cells


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


def _targets_of(instance: Instance, cells: NDArray[np.intp]) -> Integers:
    return np.flatnonzero(np.isin(instance.cell, cells))


def _against_outsiders(
    instance: Instance, guard: Guard | None, findings: Findings, cubes: Hypercubes | None, budget: Budget
) -> Mask:
    """What has to be withheld besides to protect the cells that are open to everyone; when time is over, so far."""
    targets = _targets_of(instance, findings.cells[~findings.protected])
    if not targets.size:
        return instance.forced
    if cubes is not None:
        asked = HypercubeMethod(instance.asking(targets), cubes)
        asked.protect_all(lambda: budget.over)
        pattern = asked.pattern
        targets = targets[np.isin(instance.cell[targets], asked.failed)]
        if not targets.size:
            return pattern
        instance = instance.withholding(pattern)
    engine = Sequential.by_programs(instance.asking(targets), guard, Model.small(budget.child()))
    failed = engine.protect_all(stop=lambda: budget.over)
    if failed and not budget.over:
        raise CannotProtect(int(targets[failed[0]]))
    return engine.pattern.withheld


def _against_sums(
    instance: Instance, problem: Problem, findings: Findings, cubes: Hypercubes | None, budget: Budget
) -> Mask:
    """What has to be withheld besides so that sums which fail a rule can no longer be derived."""
    unions = () if findings.unions is None else findings.unions.failed
    failed = [union for union in unions if union.certain or findings.possibly == "open"]
    if not failed:
        return instance.forced
    if cubes is not None:
        pattern, failed = against_sums(failed, instance, cubes, 10.0**problem.table.decimals, lambda: budget.over)
        if not failed or budget.over:
            return pattern
        instance = instance.withholding(pattern)
    engine = Sequential.by_programs(
        _with_sums(instance, failed, 10.0**problem.table.decimals), solver=Model.small(budget.child())
    )
    engine.protect_all(stop=lambda: budget.over)
    return instance.forced | engine.pattern.used[: len(instance)]


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
