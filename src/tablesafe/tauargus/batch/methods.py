"""SUPPRESS by our methods of the same role, and what is honoured otherwise than τ-ARGUS would.

| τ-ARGUS | here |
|---|---|
| `MOD` modular (HiTaS) | `Suppress(algorithm="auto")`: the table as a whole, which withholds less than subtables do |
| `OPT` optimal | `Suppress(algorithm="optimal")` |
| `GH` hypercube | the same, with the a-priori bounds as what the attacker knows |
| `NET` network | `Suppress(algorithm="network")`, as MOD where the table is no network |
| `RND` controlled rounding | `Round(method="controlled")` |
| `CTA` controlled tabular adjustment | `Adjust()` |
| `CKM` cell key method | `CellKey`, as the metadata of the records describe it |

The singleton options ask that a single contributor cannot undo the protection of another one (SingleSingle) or of a
cell with several (SingleMultiple); here the audit attacks as every respondent, alone in a cell or not. The
minimum-frequency option asks that withheld cells of a row together have enough contributors; here every sum that can be
derived is judged by all rules. An option that is off is off here too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from tablesafe.core.errors import InvalidFile, InvalidOption, InvalidProblem
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release
from tablesafe.io.ptable import read_perturbation
from tablesafe.methods import Adjust, CellKey, Method, Round, Suppress
from tablesafe.methods.cell_key.magnitude import Magnitude
from tablesafe.methods.cell_key.table import PerturbationTable
from tablesafe.methods.suppress import Algorithm
from tablesafe.tauargus.batch.commands import (
    Adjustment,
    CellKeys,
    Hypercube,
    Modular,
    Network,
    Optimal,
    Rounding,
    SpecifyTable,
)
from tablesafe.tauargus.batch.commands import Suppress as SuppressCommand
from tablesafe.tauargus.batch.tables import Specified
from tablesafe.tauargus.metadata import CellKey as Described
from tablesafe.tauargus.metadata import Metadata, Role, Variable, read_metadata
from tablesafe.work.run import Attackers, Run

# -- the cell key method, as metadata describe it ----------------------------------------------------------------------


_SIZES = {"T": "largest", "M": "mean", "V": "value"}


def cell_key_from_metadata(metadata: Metadata | str | Path, *, response: str | None = None) -> CellKey:
    """The method that the metadata of microdata describe: for counts, or for the magnitudes of a response.

    `<RECORDKEY>` names the keys and `<PFILE>` the perturbation table of counts. A response has `<CKM>` with what its
    noise is in proportion to (T(k) the k largest, M the mean, V the value), `<SCALING>` F(large, small, flex point,
    exponent, weights of the second and further contributions) or N(share, weights), `<PARITY>` and `<SEPARATION>`, and
    takes its tables from `<PFILE_CONT>` and `<PFILE_SEP>`.
    """
    found = metadata if isinstance(metadata, Metadata) else read_metadata(metadata, kind="micro")
    keys = found.having(Role.RECORD_KEY)
    if not keys:
        raise InvalidFile(
            f"{found.path.name} has no record key.", hint="add <RECORDKEY> to the variable that holds it."
        )
    if response is None:
        return CellKey(key=keys[0].name, perturbation=_table(found, keys[0], "frequency", "all"))
    return _of_response(found, keys[0], found.variable(response))


def _of_response(metadata: Metadata, key: Variable, variable: Variable) -> CellKey:
    described = variable.cell_key
    where = f"{metadata.path.name}, line {variable.line}"
    if described is None or described.method == "N":
        raise InvalidFile(f"{where}: {variable.name!r} has no noise by cell keys.", hint="add <CKM> T(1) to it.")
    if described.method not in _SIZES:
        raise InvalidFile(
            f"{where}: noise in proportion to <CKM> {described.method} is not known here.", hint="T(k), M or V are."
        )
    usual = _table(metadata, key, "continuous", "even" if described.parity else "all")
    options = Magnitude(
        by=_SIZES[described.method],  # type: ignore[arg-type]
        top=described.top,
        digits=key.decimals or 18,
        include_zeros=described.include_zeros,
        separation=described.separation,
        small_cells=_table(metadata, key, "separate", "small_cells") if described.separation else None,
        odd=_table(metadata, key, "continuous", "odd") if described.parity else None,
        **_scaling(described, where),  # type: ignore[arg-type]
    )
    return CellKey(key=key.name, perturbation=usual, magnitude=options)


def _scaling(described: Described, where: str) -> dict[str, float | tuple[float, ...]]:
    """The shares, the flex point and the weights of <SCALING>."""
    given = described.parameters
    needed = {"F": 4, "N": 1, None: 0}[described.scaling]
    if len(given) < needed:
        raise InvalidFile(
            f"{where}: <SCALING> {described.scaling} needs {needed} numbers, got {len(given)}.",
            hint="F(large, small, flex point, exponent), or N(share).",
        )
    weights = {"weights": (1.0, *given[needed:])} if given[needed:] else {}
    match described.scaling:
        case "F":
            large, small, flex_point, exponent = given[:4]
            return {"large": large, "small": small, "flex_point": flex_point, "exponent": exponent, **weights}
        case "N":
            return {"small": given[0], "large": min(given[0], Magnitude().large), **weights}
        case _:
            return {}


def _table(metadata: Metadata, key: Variable, purpose: str, kind: str) -> PerturbationTable:
    if purpose not in key.perturbation:
        keyword = {"frequency": "PFILE", "continuous": "PFILE_CONT", "separate": "PFILE_SEP"}[purpose]
        raise InvalidFile(
            f"{metadata.path.name}, line {key.line}: {key.name!r} names no perturbation table for this.",
            hint=f'add <{keyword}> "ptab.txt".',
        )
    return read_perturbation(metadata.file(key.perturbation[purpose], key.line), kind=kind)


# -- SUPPRESS ----------------------------------------------------------------------------------------------------------


SECONDS = 60.0
CELLS_PER_SECOND = 500
"""How long a search goes on that the batch file does not limit: so much the longer, the larger the table."""
LEAST_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class Chosen:
    """A method, against whom it protects, and what is done otherwise than τ-ARGUS would."""

    method: Method
    insiders: bool = True
    unions: bool = True
    percent: float | None = None
    """The attacker knows every value to within so many percent."""
    remarks: tuple[str, ...] = ()
    note: str = ""
    """What is worth a line in the log, but no warning."""


def choose_method(command: SuppressCommand, table: Specified, cells: int) -> Chosen:
    """Our method for a SUPPRESS command, for a table of so many cells."""
    how, spec = command.how, table.spec
    match how:
        case Modular():
            return _modular(how, spec, cells)
        case Optimal():
            return Chosen(_suppress(spec, algorithm="optimal", time_limit_s=how.minutes * SECONDS), note=_GUARDED)
        case Hypercube():
            return _hypercube(how, spec, cells)
        case Network():
            return Chosen(_by_size(spec, cells, "network"), note=_GUARDED)
        case Rounding():
            return _rounding(how)
        case Adjustment():
            return Chosen(Adjust())
        case CellKeys():
            return Chosen(_cell_key(table))


_GUARDED = "Respondents who know their own contributions, and sums that can be derived, are guarded against."


def _suppress(spec: SpecifyTable, *, algorithm: Algorithm, time_limit_s: float) -> Suppress:
    cost = "distance" if spec.cost == "distance" else "problem"
    return Suppress(algorithm=algorithm, cost=cost, power=spec.power, time_limit_s=time_limit_s)


def _by_size(spec: SpecifyTable, cells: int, algorithm: Algorithm | None = None, most: float = np.inf) -> Suppress:
    """Suppression of the table as a whole, for the longer the larger it is.

    Subtable by subtable, as τ-ARGUS does it, withholds 4 to 27 percent more value at the same time limit, on tables of
    2,000 to 5,000 cells, and nothing is gained by it.
    """
    limit = min(most, max(LEAST_SECONDS, cells / CELLS_PER_SECOND))
    return _suppress(spec, algorithm=algorithm or "auto", time_limit_s=limit)


def _modular(how: Modular, spec: SpecifyTable, cells: int) -> Chosen:
    remarks = []
    insiders = how.single_single or how.single_multiple
    if how.single_single != how.single_multiple:
        on = "SingleSingle" if how.single_single else "SingleMultiple"
        remarks.append(f"{on} alone is on: every respondent is guarded against, which is more than was asked.")
    if not insiders:
        remarks.append("the singleton options are off: a respondent who knows its own contribution may learn more.")
    if not how.minimum_frequency:
        remarks.append("the minimum-frequency option is off: sums of withheld cells are not judged by the rules.")
    if how.scale is not None:
        remarks.append("the scaling of costs is not needed here and is not used.")
    method = _by_size(spec, cells, most=how.minutes * SECONDS)
    note = "The table is protected as a whole, not subtable by subtable."
    return Chosen(method, insiders, how.minimum_frequency, remarks=tuple(remarks), note=note)


def _hypercube(how: Hypercube, spec: SpecifyTable, cells: int) -> Chosen:
    remarks = [
        "the hypercube method has no exact counterpart: the pattern is found by linear programs, at least cost "
        f"(which GH does not minimise), for an attacker who knows every value to within {how.percent:g} percent."
    ]
    if how.large:
        remarks.append("ModelSize 1 (the large model) means nothing here: there is no limit of size.")
    if not how.singleton:
        remarks.append("ApplySingleton is 0: a respondent who knows its own contribution may learn more.")
    method = _by_size(spec, cells)
    return Chosen(method, how.singleton, how.singleton, how.percent, tuple(remarks))


def _rounding(how: Rounding) -> Chosen:
    remarks = []
    if how.steps:
        remarks.append("Steps is not used: a value leaves its two neighbours only where there is no other way.")
    if how.partitions:
        remarks.append("Partitions is not used: the table is rounded as a whole.")
    if how.stop != 3:
        remarks.append(f"StopRule {how.stop} is not used: the best rounding within the time is taken.")
    if how.unit_cost is not None:
        remarks.append("UnitCost is not used: the sum of all changes is made least.")
    return Chosen(Round(base=how.base, time_limit_s=how.minutes * SECONDS), remarks=tuple(remarks))


def _cell_key(table: Specified) -> CellKey:
    """The noise that the metadata describe, for counts or for the response."""
    if table.rules.weighted:
        raise InvalidOption(
            "CKM changes sums over records, but WGT(1) weights them.",
            hint="write WGT(0), or protect the weighted table by another method.",
        )
    return cell_key_from_metadata(table.metadata, response=table.spec.response)


def known_to_within(problem: Problem, percent: float) -> tuple[Problem, tuple[str, ...]]:
    """The problem of an attacker who knows every value to within a percentage; of a zero that says nothing.

    Where a protection level asks for more than that leaves, nothing could protect the cell: there it knows less.
    """
    value, levels = problem.table.value, problem.sensitivity
    reach = np.where(value == 0, np.inf, percent / 100 * np.abs(value))
    below, above = np.maximum(reach, levels.lower), np.maximum(reach, np.maximum(levels.upper, levels.sliding))
    short = levels.mask & ((below > reach) | (above > reach))
    told: tuple[str, ...] = ()
    if short.any():
        told = (
            f"{int(short.sum()):,} sensitive cells need more room than {percent:g} percent of their value: the "
            f"attacker is taken to know less of these.",
        )
    lower, upper = np.maximum(problem.lower, value - below), np.minimum(problem.upper, value + above)
    return problem.replace(lower=lower, upper=upper), told


def protect_by(chosen: Chosen, problem: Problem) -> tuple[Problem, Release, tuple[str, ...]]:
    """The problem as the attacker of the method sees it, the release, and what had to be done otherwise."""
    method = chosen.method
    if isinstance(method, Round):
        return problem, _rounded(method, problem), ()
    if not isinstance(method, Suppress):
        return problem, method.protect(problem), ()
    failure: InvalidProblem | None = None
    for attempt in _attempts(chosen, problem):
        guarded = attempt.guarded
        run = Run(attackers=Attackers(insiders=chosen.insiders and guarded, unions=chosen.unions and guarded))
        try:
            release, more = _suppressed(replace(method, zeros=attempt.zeros), attempt.problem, run)
        except InvalidProblem as error:
            failure = error
        else:
            return attempt.problem, release, attempt.told + more
    assert failure is not None
    raise failure


@dataclass(frozen=True, slots=True)
class _Attempt:
    """A way to suppress, and what has to be said about it."""

    problem: Problem
    zeros: bool = False
    guarded: bool = True
    told: tuple[str, ...] = ()


def _attempts(chosen: Chosen, problem: Problem) -> Iterator[_Attempt]:
    """What to try: as it is asked for; with cells of value zero, as τ-ARGUS does; without a-priori bounds.

    At last without a guard against respondents and sums: the audit, which is as strict as before, then says what is
    open, and nothing is written. So the other tables of the file are still run.
    """
    zeros = "cells of value zero that have contributors may be withheld too: there was no other way."
    lost: tuple[str, ...] = ()
    if chosen.percent is not None:
        bounded, told = known_to_within(problem, chosen.percent)
        yield _Attempt(bounded, told=told)
        yield _Attempt(bounded, zeros=True, told=(*told, zeros))
        lost = (
            f"nothing can be hidden from an attacker who knows every value to within {chosen.percent:g} percent: it is "
            f"taken to know no bounds.",
        )
    yield _Attempt(problem, told=lost)
    yield _Attempt(problem, zeros=True, told=(*lost, zeros))
    if chosen.insiders or chosen.unions:
        open_ = "no pattern guards against every respondent and every sum: the table is protected from outsiders alone."
        yield _Attempt(problem, zeros=True, guarded=False, told=(*lost, zeros, open_))


def _suppressed(method: Suppress, problem: Problem, run: Run) -> tuple[Release, tuple[str, ...]]:
    """The release; network flows give way to linear programs where the table is no network."""
    try:
        return method.protect(problem, run), ()
    except InvalidOption as error:
        if method.algorithm != "network" or "no network" not in str(error):
            raise
    told = ("NET needs a table of two dimensions with at most one hierarchy: linear programs are used instead.",)
    return replace(method, algorithm="auto").protect(problem, run), told


def _rounded(method: Round, problem: Problem) -> Release:
    """Round values with decimals as whole numbers of their smallest unit."""
    unit = 10**problem.table.decimals
    if unit == 1:
        return method.protect(problem)
    table, levels = replace(problem.table, decimals=0), problem.sensitivity
    levels = replace(levels, lower=levels.lower * unit, upper=levels.upper * unit, sliding=levels.sliding * unit)
    small = Problem(
        table, sensitivity=levels, lower=problem.lower * unit, upper=problem.upper * unit, cost=problem.cost,
        frozen=problem.frozen, suppressed=problem.suppressed, withheld=problem.withheld,
    )  # fmt: skip
    found = replace(method, base=method.base * unit).protect(small)
    return replace(
        found, table=problem.table, values=found.values / unit, lower=found.lower / unit, upper=found.upper / unit
    )
