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

Where nothing protects a table as it is asked for, something gives way, as it does in τ-ARGUS: zeros may be withheld,
then the a-priori bounds are forgotten; at last respondents and sums are not guarded against. The audit, which is as
strict as before, then says what is open, and nothing is written: so the other tables of the file are still run.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from tablesafe.core.errors import InvalidOption
from tablesafe.job.model import AuditOptions, GiveWay, ProblemOptions
from tablesafe.methods import Adjust, CellKey, Method, Round, Suppress
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
from tablesafe.tauargus.cell_keys import cell_key_from_metadata

SECONDS = 60.0
"""Of a minute: batch files give limits in minutes."""
CELLS_PER_SECOND = 500
"""How long a search goes on that the batch file does not limit: so much the longer, the larger the table."""
LEAST_SECONDS = 0.5
"""And no shorter than this."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """What a job says about a SUPPRESS command, and what is done otherwise than τ-ARGUS would."""

    method: Method
    audit: AuditOptions = field(default_factory=AuditOptions)
    problem: ProblemOptions = field(default_factory=ProblemOptions)
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
            method = _suppress(spec, algorithm="optimal", time_limit_s=how.minutes * SECONDS)
            return Chosen(method, problem=_GIVING_WAY, note=_GUARDED)
        case Hypercube():
            return _hypercube(how, spec, cells)
        case Network():
            giving_way = ProblemOptions(give_way=("algorithm", *GIVE_WAY))
            return Chosen(_by_size(spec, cells, "network"), problem=giving_way, note=_GUARDED)
        case Rounding():
            return _rounding(how)
        case Adjustment():
            return Chosen(Adjust())
        case CellKeys():
            return Chosen(_cell_key(table))


GIVE_WAY: tuple[GiveWay, ...] = ("zeros", "bounds", "respondents")
_GIVING_WAY = ProblemOptions(give_way=GIVE_WAY)
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
    audit = AuditOptions(insiders=insiders, unions=how.minimum_frequency)
    return Chosen(method, audit, _GIVING_WAY, tuple(remarks), note)


def _hypercube(how: Hypercube, spec: SpecifyTable, cells: int) -> Chosen:
    remarks = [
        "the hypercube method has no exact counterpart: the pattern is found by linear programs, at least cost "
        f"(which GH does not minimise), for an attacker who knows every value to within {how.percent:g} percent."
    ]
    if how.large:
        remarks.append("ModelSize 1 (the large model) means nothing here: there is no limit of size.")
    if not how.singleton:
        remarks.append("ApplySingleton is 0: a respondent who knows its own contribution may learn more.")
    audit = AuditOptions(insiders=how.singleton, unions=how.singleton)
    known = ProblemOptions(within_percent=how.percent, spare_levels=True, give_way=GIVE_WAY)
    return Chosen(_by_size(spec, cells), audit, known, tuple(remarks))


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
    return Chosen(Round(base=how.base, amounts=True, time_limit_s=how.minutes * SECONDS), remarks=tuple(remarks))


def _cell_key(table: Specified) -> CellKey:
    """The noise that the metadata describe, for counts or for the response."""
    if table.rules.weighted:
        raise InvalidOption(
            "CKM changes sums over records, but WGT(1) weights them.",
            hint="write WGT(0), or protect the weighted table by another method.",
        )
    return cell_key_from_metadata(table.metadata, response=table.spec.response)
