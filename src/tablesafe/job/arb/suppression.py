"""SUPPRESS as it is written: a keyword, the number of a table, and what the keyword takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tablesafe.files.read import did_you_mean
from tablesafe.job.arb.model import (
    Adjustment,
    CellKeys,
    Hypercube,
    Modular,
    Network,
    Optimal,
    Protection,
    Rounding,
    Suppress,
)
from tablesafe.job.arb.scan import Fault, Say, call, number, so_many, switch, whole


def suppress(line: int, rest: str, say: Say) -> Suppress:
    """`MOD(1,5,1,1,1)`, and so on."""
    keyword, parameters = call(rest)
    if keyword not in METHODS:
        hint = did_you_mean(keyword, list(METHODS)) if len(keyword) > 1 else ""
        raise Fault(f"there is no method {keyword!r}", hint or f"methods are {', '.join(METHODS)}.")
    read, fewest, most, example = METHODS[keyword]
    if not fewest <= len(parameters) <= most:
        wanted = str(fewest) if fewest == most else f"{fewest} to {most}"
        raise Fault(f"{keyword} has {so_many(len(parameters))}, not {wanted}", f"write it like {example}.")
    table = whole(parameters[0], "the table number")
    if table == 0 and keyword == "CKM":
        say("τ-ARGUS has no CKM(0): here each table of the session gets its noise; equal cells get the same.")
    if table == 0 and keyword in {"NET", "RND", "CTA", "OPT"}:
        say(f"τ-ARGUS links tables (table 0) only with MOD and GH; here {keyword} protects them together too.")
    return Suppress(line=line, keyword=keyword, table=table, how=read(parameters[1:], say))


def _minutes(text: str) -> float:
    found = number(text, "the time in minutes")
    if found <= 0:
        raise Fault(f"the time is {text!r}", "it is a number of minutes above 0.")
    return found


def _given(pieces: list[str], at: int, read: Callable[[str], Any], default: Any) -> Any:
    return read(pieces[at]) if at < len(pieces) and pieces[at] else default


def _modular(pieces: list[str], say: Say) -> Modular:
    of = Modular()
    return Modular(
        minutes=_given(pieces, 0, _minutes, of.minutes),
        single_single=_given(pieces, 1, lambda text: switch(text, "SingleSingle"), True),
        single_multiple=_given(pieces, 2, lambda text: switch(text, "SingleMultiple"), True),
        minimum_frequency=_given(pieces, 3, lambda text: switch(text, "MinFreq"), True),
        scale=_given(pieces, 4, lambda text: number(text, "the scaling of costs"), None),
    )


def _optimal(pieces: list[str], say: Say) -> Optimal:
    return Optimal(minutes=_given(pieces, 0, _minutes, Optimal().minutes))


def _hypercube(pieces: list[str], say: Say) -> Hypercube:
    of = Hypercube()
    percent = _given(pieces, 0, lambda text: number(text, "the a priori bounds percentage"), of.percent)
    if percent <= 0:
        raise Fault(f"the a priori bounds percentage is {percent:g}", "it is above 0; 100 is usual.")
    return Hypercube(
        percent=percent,
        large=_given(pieces, 1, lambda text: switch(text, "ModelSize"), of.large),
        singleton=_given(pieces, 2, lambda text: switch(text, "ApplySingleton"), of.singleton),
    )


def _network(pieces: list[str], say: Say) -> Network:
    if pieces:
        say("NET takes the table number only; its other parameters are not used.")
    return Network()


def _rounding(pieces: list[str], say: Say) -> Rounding:
    of = Rounding(base=2)
    return Rounding(
        base=whole(pieces[0], "the rounding base", least=2),
        steps=_given(pieces, 1, lambda text: whole(text, "Steps"), of.steps),
        minutes=_given(pieces, 2, _minutes, of.minutes),
        partitions=_given(pieces, 3, lambda text: switch(text, "Partitions"), of.partitions),
        stop=_given(pieces, 4, lambda text: whole(text, "StopRule", least=1, most=3), of.stop),
        unit_cost=_given(pieces, 5, lambda text: switch(text, "UnitCost"), None),
    )


def _adjustment(pieces: list[str], say: Say) -> Adjustment:
    return Adjustment()


def _cell_keys(pieces: list[str], say: Say) -> CellKeys:
    return CellKeys()


METHODS: Mapping[str, tuple[Callable[[list[str], Say], Protection], int, int, str]] = {
    "MOD": (_modular, 1, 6, "MOD(1,5,1,1,1): table, minutes per subtable, three singleton options"),
    "OPT": (_optimal, 1, 2, "OPT(1,10): table, minutes"),
    "GH": (_hypercube, 1, 4, "GH(1,75,0,1): table, a priori bounds in percent, large model, singletons"),
    "NET": (_network, 1, 6, "NET(1): table"),
    "RND": (_rounding, 2, 7, "RND(1,5,0,10,0,3): table, base, steps, minutes, partitions, stop rule"),
    "CTA": (_adjustment, 1, 1, "CTA(1): table"),
    "CKM": (_cell_keys, 1, 1, "CKM(1): table"),
}
