"""A job's rules, costs and method in the words of a τ-ARGUS batch file, and what has none there."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from tablesafe.core.sensitivity import Rule
from tablesafe.io.tauargus_export import Commands
from tablesafe.job.model import Job
from tablesafe.methods import Adjust, Round, Suppress, Withhold
from tablesafe.rules.counts import Threshold, ZeroCells
from tablesafe.rules.linear import PQ, Dominance, PPercent

MODULAR = "MOD({},%d,1,1,1)"
"""Modular suppression with all its protection against single contributors."""
OF_THE_RUN = {"time_limit_s", "algorithm", "cost", "power", "executor", "progress", "seed", "insiders", "unions"}
"""Options of suppression that are expressed otherwise, or that change no pattern τ-ARGUS would make."""
COSTS = {"value": "", "unit": "-2", "count": "-1", "distance": "-3"}


@dataclass(frozen=True, slots=True)
class Cost:
    """What withholding costs: as `<SPECIFYTABLE>` writes it, and a column of the records that it needs."""

    text: str = ""
    column: str | None = None


def commands_of(job: Job, *, linked: bool) -> Commands:
    """How a batch file protects and writes the tables of a job."""
    suppress, notes = _suppress(job, linked)
    writes, more = _writes(job.output.release)
    return Commands(suppress=suppress, writes=writes, comments=(*notes, *more))


def _suppress(job: Job, linked: bool) -> tuple[str | None, list[str]]:
    method: Any = job.method
    minutes = max(1, math.ceil(getattr(method, "time_limit_s", 60.0) / 60))
    modular = MODULAR % minutes
    match method:
        case Suppress():
            return _of_suppress(method, modular, minutes, linked)
        case Round(method="controlled") if not linked:
            return f"RND({{}},{method.base},0,{minutes},0,2)", []
        case Adjust() if not linked:
            return "CTA({})", ["CTA of τ-ARGUS has no options: distance, directions and bounds are its own."]
        case Withhold():
            return None, []
        case _:
            return modular, [f"Method {method.name!r} has no counterpart in τ-ARGUS for this: MOD suppresses instead."]


def _of_suppress(method: Suppress, modular: str, minutes: int, linked: bool) -> tuple[str, list[str]]:
    notes = []
    told = sorted(
        option.name
        for option in fields(method)
        if option.name not in OF_THE_RUN and not _same(getattr(method, option.name), option.default)
    )
    if told:
        notes.append(f"Options of the suppression without a counterpart in τ-ARGUS: {', '.join(told)}.")
    if method.algorithm in {"optimal", "network"} and linked:
        notes.append(f"τ-ARGUS links tables only by MOD: {method.algorithm} becomes MOD.")
        return modular, notes
    if method.algorithm == "optimal":
        return f"OPT({{}},{minutes})", notes
    if method.algorithm == "network":
        return "NET({})", notes
    if method.algorithm != "modular":
        notes.append(f"Algorithm {method.algorithm!r} has no counterpart in τ-ARGUS: MOD is the nearest.")
    return modular, notes


def _same(value: object, default: object) -> bool:
    return type(value) is type(default) and value == default


def _writes(names: Sequence[str]) -> tuple[tuple[str, ...], list[str]]:
    text = tuple(Path(name).name for name in names if name.lower().endswith(".csv"))
    other = [name for name in names if not name.lower().endswith(".csv")]
    notes = [f"τ-ARGUS writes text: {', '.join(other)} left out."] if other else []
    return text or ("safe.csv",), notes


def cost_of(job: Job) -> tuple[Cost, str | None]:
    """The cost of a job's cells, and why it cannot be said if it cannot."""
    given, power = job.problem.cost, 1.0
    if isinstance(job.method, Suppress):
        power = job.method.power
        if job.method.cost != "problem":
            given = job.method.cost if isinstance(job.method.cost, str) else "an array"
    if given in {"inverse", "log_over_value", "constant", "an array"}:
        return Cost(), f"costs by {given!r} have no counterpart in τ-ARGUS"
    response = job.response.value[0] if job.response.value else ""
    if given == "log":
        return (Cost(f'"{response}",0'), None) if response else (Cost(), "costs by the logarithm of counts")
    text = COSTS.get(given, given)
    if power == 1:
        return Cost(text, None if given in COSTS else given), None
    if text in {"-2", "-3"} or not (text or response):
        return Cost(), f"power = {power:g} on costs {given!r} has no counterpart in τ-ARGUS"
    named = text if text.startswith("-") else f'"{text or response}"'
    return Cost(f"{named},{power:g}", None if given in COSTS else given), None


# -- rules -------------------------------------------------------------------------------------------------------------


def rules_text(rules: Iterable[Rule], *, holdings: bool, counted: str, manual_range: float | None) -> str:
    """The rules as `<SAFETYRULE>` writes them; those on holdings stand in the third and fourth place.

    `counted` says whom a threshold on respondents counts in τ-ARGUS: records or holdings.
    """
    shares = {"P": [], "NK": []}  # type: dict[str, list[str]]
    counts: dict[str, list[str]] = {"records": [], "holdings": []}
    other = []
    for rule in rules:
        match rule:
            case PPercent():
                shares["P"].append(f"P({rule.p:g},{rule.coalition})")
            case PQ():
                shares["P"].append(f"P({rule.p:g},{rule.q:g},{rule.coalition})")
            case Dominance():
                shares["NK"].append(f"NK({rule.n},{rule.k:g})")
            case Threshold():
                whom = "holdings" if rule.on == "holdings" else counted
                counts[whom].append(f"FREQ({rule.n},{rule.range_percent:g})")
            case ZeroCells():
                other.append(f"ZERO({rule.range_absolute:g})")
    written = []
    for name, found in shares.items():
        written += [f"{name}(0,0)"] * (2 if holdings and found else 0) + found
    written += counts["records"] or (["FREQ(0,0)"] if counts["holdings"] else [])
    written += counts["holdings"] + other
    if manual_range is not None:
        written.append(f"MAN({manual_range:g})")
    return "|".join(written)


def inexpressible(rules: Sequence[Rule], *, weighted: bool) -> list[str]:
    """Why rules cannot be written for τ-ARGUS, which takes whole numbers and few rules of a kind."""
    why = [reason for rule in rules for reason in _why(rule, weighted)]
    for name, kinds, most in (("p% and pq rules", (PPercent, PQ), 2), ("dominance rules", (Dominance,), 2),
                              ("zero rules", (ZeroCells,), 1)):  # fmt: skip
        if sum(isinstance(rule, kinds) for rule in rules) > most:
            why.append(f"τ-ARGUS takes at most {most} {name}")
    for on in ("respondents", "holdings"):
        if sum(isinstance(rule, Threshold) and rule.on == on for rule in rules) > 1:
            why.append(f"τ-ARGUS takes one threshold on {on}")
    return list(dict.fromkeys(why))


def _why(rule: Rule, weighted: bool) -> list[str]:
    name = type(rule).__name__
    match rule:
        case PPercent() | PQ() | Dominance():
            numbers = [rule.k] if isinstance(rule, Dominance) else [rule.p]
            numbers += [rule.q] if isinstance(rule, PQ) else []
            why = [] if all(float(number).is_integer() for number in numbers) else [f"{name}: whole percentages only"]
            if rule.negative != "absolute":
                why.append(f"{name}.negative = {rule.negative!r}")
            if weighted and rule.sampling_weights != "expanded":
                why.append(f"{name}.sampling_weights = {rule.sampling_weights!r}; τ-ARGUS's are 'expanded'")
            return why
        case Threshold():
            why = ["Threshold.zero"] if rule.zero else []
            why += ["Threshold.range_absolute"] if rule.range_absolute else []
            why += [] if float(rule.range_percent).is_integer() else ["Threshold.range_percent: whole numbers only"]
            return [*why, *(["τ-ARGUS counts weights, not respondents, where there are any"] if weighted else [])]
        case ZeroCells():
            return []
        case _:
            return [f"{name} has no counterpart in τ-ARGUS that means the same"]
