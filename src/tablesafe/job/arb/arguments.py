"""From a command as it is written to its dataclass, one function for each."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, cast

from tablesafe.core.errors import InvalidOption
from tablesafe.files.read import did_you_mean
from tablesafe.io.tauargus_write_options import parse_kind, parse_options, unused
from tablesafe.job.arb.model import (
    Apriori,
    Clear,
    Command,
    CostKind,
    Cover,
    GoInteractive,
    Logbook,
    OpenData,
    OpenMetadata,
    ReadMicrodata,
    ReadTable,
    Recode,
    RuleCall,
    RuleName,
    SafetyRule,
    Silent,
    Solver,
    SpecifyTable,
    VersionInfo,
    WriteTable,
)
from tablesafe.job.arb.scan import Fault, Say, call, names, number, so_many, split, switch, unquoted, whole
from tablesafe.job.arb.suppression import suppress

_COSTS: Mapping[str, CostKind] = {"-1": "frequency", "-2": "unity", "-3": "distance"}
_TOTALS: Mapping[str, Literal["check", "compute", "any"]] = {"0": "check", "1": "compute", "2": "any"}
SOLVERS = ("FREE", "CPLEX", "XPRESS")


@dataclass(frozen=True, slots=True)
class _Shape:
    """How a rule is written: how many numbers it takes, how often it may stand there, and an example."""

    counts: tuple[int, ...]
    most: int
    example: str


RULES: Mapping[RuleName, _Shape] = {
    "P": _Shape((1, 2, 3), 4, "P(10,1): p percent, and how many attackers share what they know"),
    "NK": _Shape((2,), 4, "NK(2,85): the 2 largest hold more than 85 percent"),
    "FREQ": _Shape((2,), 2, "FREQ(3,30): fewer than 3 contributors, a safety range of 30 percent"),
    "ZERO": _Shape((1,), 1, "ZERO(10): a safety range of 10 above zero"),
    "REQ": _Shape((3, 4), 2, "REQ(70,85,10): shares for the two requests, a safety range of 10 percent"),
    "MIS": _Shape((1,), 1, "MIS(1): cells with a missing code are safe"),
    "WGT": _Shape((1,), 1, "WGT(1): use the sampling weights"),
    "MAN": _Shape((1,), 1, "MAN(20): a safety range of 20 percent for cells that are unsafe by hand"),
}


def _file(rest: str) -> str:
    name = unquoted(rest)
    if not name or '"' in name:
        raise Fault(f"{rest!r} is no file name", "put the name in double quotes.")
    return name


def _nothing(rest: str) -> None:
    if rest:
        raise Fault(f"it is followed by {rest!r}", "it takes no parameters: remove them.")


def specify_table(line: int, rest: str, say: Say) -> SpecifyTable:
    """`"Size""Region"|"Var2"|"shadow"|"cost",λ`; everything after the response may be left out."""
    fields = split(rest, "|")
    if len(fields) > 5:
        raise Fault(f"there are {len(fields)} entries between |", "at most 5: explanatory|response|shadow|cost|lambda.")
    explanatory = names(fields[0])
    response, shadow, cost, power = [*fields[1:], "", "", "", ""][:4]
    if not explanatory:
        raise Fault("no explanatory variable is named", 'write "Size""Region"|"Turnover".')
    twice = next((name for name in explanatory if explanatory.count(name) > 1), None)
    if twice is not None:
        raise Fault(f"{twice!r} is named twice", "a variable can span a table once.")
    if len(names(response)) != 1:
        raise Fault("no response variable is named", 'write "Size""Region"|"Turnover", or |<freq> to count.')
    (counted,) = names(response)
    pieces = split(cost, ",")
    if len(pieces) > 2 or (len(pieces) == 2 and power):
        raise Fault(f"the cost is {cost!r}", 'write "variable" or -1, -2, -3, then perhaps a comma and lambda.')
    power = power or (pieces[1] if len(pieces) == 2 else "")
    variable = " ".join(names(pieces[0]))
    kind: CostKind = _COSTS.get(variable, "variable" if variable else "response")
    lam = number(power, "lambda") if unquoted(power) else 1.0
    if not 0 <= lam <= 10:
        raise Fault(f"lambda is {lam:g}", "it is from 0 (logarithm) to 10; 1 leaves costs as they are.")
    return SpecifyTable(
        line=line,
        explanatory=explanatory,
        response=None if counted.lower() == "<freq>" else counted,
        shadow=" ".join(names(shadow)) or None,
        cost=kind,
        cost_variable=variable if kind == "variable" else None,
        power=lam,
    )


def safety_rule(line: int, rest: str, say: Say) -> SafetyRule:
    """`P(10,1)|FREQ(3,30)|…`"""
    rules = tuple(_rule(piece) for piece in split(rest, "|") if piece)
    for name, shape in RULES.items():
        times = sum(rule.name == name for rule in rules)
        if times > shape.most:
            often = "once" if shape.most == 1 else f"{shape.most} times: half for respondents, half for holdings"
            raise Fault(f"{name} stands {times} times", f"it may stand {often}.")
    return SafetyRule(line=line, rules=rules)


def _rule(text: str) -> RuleCall:
    name, parameters = call(text)
    if name not in RULES:
        hint = did_you_mean(name, list(RULES)) if len(name) > 1 else ""
        raise Fault(f"there is no rule {name!r}", hint or f"rules are {', '.join(RULES)}.")
    known = cast(RuleName, name)
    shape = RULES[known]
    if len(parameters) not in shape.counts:
        wanted = " or ".join(map(str, shape.counts))
        raise Fault(f"{name} has {so_many(len(parameters))}, not {wanted}", f"write it like {shape.example}.")
    numbers = tuple(number(piece, f"a parameter of {name}") for piece in parameters)
    _within(known, numbers, shape)
    return RuleCall(known, numbers)


def _within(name: RuleName, numbers: tuple[float, ...], shape: _Shape) -> None:
    """Refuse what no rule can mean; zeros hold a place and switch a rule off."""
    whole_numbers = {"P": numbers[1:][-1:], "NK": numbers[:1], "FREQ": numbers[:1], "REQ": numbers[2:-1]}.get(name, ())
    percents = {"P": numbers[:-1] or numbers, "NK": numbers[1:], "REQ": numbers[:2]}.get(name, ())
    bad = any(n < 0 for n in numbers) or any(n != int(n) for n in whole_numbers) or any(n > 100 for n in percents)
    if bad or (name in {"MIS", "WGT"} and numbers[0] not in {0, 1}):
        written = RuleCall(name, numbers)
        raise Fault(f"{written} means nothing", f"write it like {shape.example}.")


def read_table(line: int, rest: str, say: Say) -> ReadTable:
    """Nothing or 0: sums are checked; 1: totals are computed; 2: they need not add up. T keeps the status given."""
    match = re.fullmatch(r"([012]?)\s*([TtFf]?)", rest.strip('()" '))
    if match is None:
        raise Fault(f"it is followed by {rest!r}", "write 0 to check sums, 1 to compute totals, 2 to allow anything.")
    keep = {"T": True, "F": False}.get(match[2].upper())
    return ReadTable(line=line, totals=_TOTALS[match[1] or "0"], keep_status=keep)


def apriori(line: int, rest: str, say: Say) -> Apriori:
    """`"x.hst", 1, ";", 0, 0`"""
    pieces = split(rest.strip("()") if rest.startswith("(") else rest, ",")
    if not 3 <= len(pieces) <= 5:
        raise Fault(f"it has {so_many(len(pieces))}, not 3 to 5", 'write "x.hst", 1, ";", 0, 0')
    separator = pieces[2][1:-1] if re.fullmatch(r'".*"', pieces[2]) else pieces[2]
    separator = "\t" if separator.lower() in {"\\t", "tab"} else separator
    if len(separator) != 1:
        raise Fault(f"the separator is {pieces[2]!r}", 'it is one character in double quotes: ";"')
    return Apriori(
        line=line,
        file=_file(pieces[0]),
        table=whole(pieces[1], "the table number", least=1),
        separator=separator,
        ignore_errors=switch(pieces[3], "IgnoreError") if len(pieces) > 3 and pieces[3] else True,
        expand_trivial=switch(pieces[4], "ExpandTrivial") if len(pieces) > 4 and pieces[4] else False,
    )


def recode(line: int, rest: str, say: Say) -> Recode:
    """`1, Size, "x.grc"` or `1, Region, 2`"""
    pieces = split(rest.strip("()") if rest.startswith("(") else rest, ",")
    if len(pieces) != 3:
        raise Fault(f"it has {so_many(len(pieces))}, not 3", 'write 1, Size, "size.grc" or 1, Region, 1')
    table = whole(pieces[0], "the table number", least=1)
    variable, target = unquoted(pieces[1]), unquoted(pieces[2])
    if not variable:
        raise Fault("no variable is named", 'write 1, Size, "size.grc"')
    if target.isdigit():
        return Recode(line=line, table=table, variable=variable, level=int(target))
    return Recode(line=line, table=table, variable=variable, file=_file(pieces[2]))


# -- the others --------------------------------------------------------------------------------------------------------


def write_table(line: int, rest: str, say: Say) -> WriteTable:
    """`(1, 3, AS+SE+, "x.txt")`"""
    pieces = split(rest.strip()[1:-1] if rest.startswith("(") and rest.endswith(")") else rest, ",")
    if len(pieces) != 4:
        raise Fault(f"it has {so_many(len(pieces))}, not 4", 'write (1, 3, AS+, "x.txt")')
    table = whole(pieces[0], "the table number", least=1)
    text = unquoted(pieces[2])
    if text.isdigit():  # as older versions wrote it
        say(f"the options of WRITETABLE are {text!r}: numbers are of an older version and mean nothing here.")
        text = ""
    try:
        kind, options = parse_kind(unquoted(pieces[1])), parse_options(text)
    except InvalidOption as error:
        what, _, hint = str(error).partition("\n\nHint: ")
        raise Fault(what.rstrip("."), hint) from None
    for letters in unused(kind, text):
        say(f"{letters}+ has no meaning for a file of type {int(kind)} and is not used.")
    return WriteTable(line=line, table=table, kind=kind, options=options, file=_file(pieces[3]))


def solver(line: int, rest: str, say: Say) -> Solver:
    """`FREE`, `CPLEX` or `XPRESS`, perhaps with a licence file."""
    name, *licence = split(rest, ",")
    if unquoted(name).upper() not in SOLVERS:
        raise Fault(f"there is no solver {unquoted(name)!r}", f"solvers are {', '.join(SOLVERS)}.")
    if unquoted(name).upper() != "FREE":
        say(f"{unquoted(name).upper()} is not used: the solver here is HiGHS, and needs no licence.")
    return Solver(line=line, name=unquoted(name).upper(), licence=unquoted(licence[0]) if licence else None)


def _bare(make: Callable[[int], Command]) -> Callable[[int, str, Say], Command]:
    def read(line: int, rest: str, say: Say) -> Command:
        _nothing(rest)
        return make(line)

    return read


COMMANDS: Mapping[str, Callable[[int, str, Say], Command]] = {
    "OPENMICRODATA": lambda line, rest, say: OpenData(line=line, file=_file(rest), tabular=False),
    "OPENTABLEDATA": lambda line, rest, say: OpenData(line=line, file=_file(rest), tabular=True),
    "OPENMETADATA": lambda line, rest, say: OpenMetadata(line=line, file=_file(rest)),
    "SPECIFYTABLE": specify_table,
    "SAFETYRULE": safety_rule,
    "READMICRODATA": _bare(lambda line: ReadMicrodata(line=line)),
    "READTABLE": read_table,
    "APRIORI": apriori,
    "APRIORY": apriori,
    "RECODE": recode,
    "SUPPRESS": suppress,
    "WRITETABLE": write_table,
    "SOLVER": solver,
    "CLEAR": _bare(lambda line: Clear(line=line)),
    "LOGBOOK": lambda line, rest, say: Logbook(line=line, file=_file(rest)),
    "SILENT": _bare(lambda line: Silent(line=line)),
    "COVER": _bare(lambda line: Cover(line=line)),
    "VERSIONINFO": lambda line, rest, say: VersionInfo(line=line, file=_file(rest)),
    "GOINTERACTIVE": _bare(lambda line: GoInteractive(line=line)),
}
"""Every command by its name."""
