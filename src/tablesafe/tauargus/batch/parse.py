"""Read a batch file of τ-ARGUS; all its errors are told at once, each with its line."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast

from tablesafe.core.errors import InvalidJob, InvalidOption
from tablesafe.files.read import did_you_mean, read_text
from tablesafe.tauargus.batch.commands import (
    Adjustment,
    Apriori,
    Batch,
    CellKeys,
    Clear,
    Command,
    CostKind,
    Cover,
    Fault,
    GoInteractive,
    Hypercube,
    Logbook,
    Modular,
    Network,
    Note,
    OpenData,
    OpenMetadata,
    Optimal,
    Protection,
    ReadMicrodata,
    ReadTable,
    Recode,
    Rounding,
    RuleCall,
    RuleName,
    SafetyRule,
    Silent,
    Solver,
    SpecifyTable,
    Suppress,
    VersionInfo,
    WriteTable,
    check_order,
)
from tablesafe.tauargus.sheet import parse_kind, parse_options, unused

# -- lines -------------------------------------------------------------------------------------------------------------


_COMMAND = re.compile(r"\s*<\s*([A-Za-z]+)\s*>\s*(.*)$", re.DOTALL)
_CALL = re.compile(r"\s*([A-Za-z]*)\s*\((.*)\)\s*$", re.DOTALL)
_COMMENT = ("//", "\\\\")


Say = Callable[[str], None]
"""Told what is not followed to the letter."""


@dataclass(frozen=True, slots=True)
class Statement:
    """A command as it is written: its name in capitals, and all that follows it."""

    line: int
    name: str
    rest: str

    @property
    def text(self) -> str:
        """The command on one line, without its comment."""
        return f"<{self.name}> {self.rest}".rstrip()


def statements(text: str) -> Iterator[Statement | tuple[int, str]]:
    """Every command of a batch file; a line that belongs to none comes as its number and its text.

    A line without a command goes on with the one before it. Comments begin with `//`, at the start of a line also with
    two backslashes; not within quotes, and not within a path.
    """
    current: Statement | None = None
    for number, raw in enumerate(text.replace("\r\r\n", "\n").splitlines(), start=1):
        line = _without_comment(raw.replace("\x1a", ""))
        if not line.strip():
            continue
        match = _COMMAND.match(line)
        if match is None and current is not None:
            current = Statement(current.line, current.name, f"{current.rest} {line.strip()}".strip())
        elif match is None:
            yield number, line.strip()
        else:
            if current is not None:
                yield current
            current = Statement(number, match[1].upper(), match[2].strip())
    if current is not None:
        yield current


def _without_comment(line: str) -> str:
    if line.lstrip().startswith(_COMMENT):
        return ""
    quoted = False
    for at, letter in enumerate(line):
        if letter == '"':
            quoted = not quoted
        elif not quoted and line.startswith("//", at) and line[at - 1 : at] in {" ", "\t", ">", ")"}:
            return line[:at].rstrip()
    return line.rstrip()


def split(text: str, separator: str) -> list[str]:
    """The pieces between separators that stand outside double quotes, without spaces around them."""
    pieces, start, quoted = [], 0, False
    for at, letter in enumerate(text):
        if letter == '"':
            quoted = not quoted
        elif letter == separator and not quoted:
            pieces.append(text[start:at].strip())
            start = at + 1
    if quoted:
        raise Fault(f"a quote is not closed in {text.strip()!r}", "close it.")
    return [*pieces, text[start:].strip()]


def names(text: str) -> tuple[str, ...]:
    """Names in double quotes one after the other (`"Size""Region"`), or without quotes and with spaces between them."""
    found = re.findall(r'"([^"]*)"|([^\s"]+)', text)
    return tuple(name for name in (quoted.strip() or bare for quoted, bare in found) if name)


def unquoted(text: str) -> str:
    """A text without the quotes around it; one that is only opened or only closed is forgiven."""
    bare = text.strip()
    return bare.removeprefix('"').removesuffix('"').strip() if bare.count('"') <= 2 else bare


def call(text: str) -> tuple[str, list[str]]:
    """A name and what stands in brackets after it, as in `MOD(1,5)`; the name may be empty."""
    match = _CALL.match(text)
    if match is None:
        raise Fault(f"{text.strip()!r} is not a name with parameters in brackets", "write it like MOD(1,5).")
    return match[1].upper(), split(match[2], ",") if match[2].strip() else []


def number(text: str, what: str) -> float:
    """A number, with a decimal point."""
    try:
        found = float(unquoted(text))
    except ValueError:
        raise Fault(f"{what} is {text.strip()!r}, which is no number", "write it with digits and a point.") from None
    if found != found or abs(found) > 1e15:
        raise Fault(f"{what} is {text.strip()!r}", "write an ordinary number.")
    return found


def whole(text: str, what: str, *, least: int = 0, most: int = 10**9) -> int:
    """A whole number within limits."""
    found = number(text, what)
    if found != int(found) or not least <= found <= most:
        limit = f"from {least} to {most:,}" if most < 10**9 else f"of {least} or more"
        raise Fault(f"{what} is {text.strip()!r}", f"it is a whole number {limit}.")
    return int(found)


def switch(text: str, what: str) -> bool:
    """A 0 or a 1."""
    if unquoted(text) not in {"0", "1"}:
        raise Fault(f"{what} is {text.strip()!r}", "it is 1 for yes or 0 for no.")
    return unquoted(text) == "1"


def so_many(n: int) -> str:
    """A number of parameters, in words."""
    return f"{n} parameter" if n == 1 else f"{n or 'no'} parameters"


# -- SUPPRESS ----------------------------------------------------------------------------------------------------------


def suppress(line: int, rest: str, say: Say) -> Suppress:
    """`MOD(1,5,1,1,1)`, and so on."""
    keyword, parameters = call(rest)
    if keyword not in METHODS:
        hint = str(did_you_mean(keyword, list(METHODS))) if len(keyword) > 1 else ""
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


# -- every command -----------------------------------------------------------------------------------------------------


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
        hint = str(did_you_mean(name, list(RULES))) if len(name) > 1 else ""
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
        raise Fault(error.message.rstrip("."), error.hint) from None
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


# -- files -------------------------------------------------------------------------------------------------------------


NOT_HERE = {"ANCO": "a switch of the developers", "JJ": "never finished", "REPORTSTR": "no longer there"}
"""Commands that the source of τ-ARGUS knows and its manual does not."""


def read_arb(path: str | Path) -> Batch:
    """Read a batch file: UTF-8 or Windows-1252, with or without a byte-order mark."""
    return parse_arb(read_text(path), path)


def parse_arb(text: str, path: str | Path = "job.arb") -> Batch:
    """The commands of a batch file's text."""
    path = Path(path)
    commands: list[Command] = []
    faults: list[tuple[int, Fault]] = []
    notes: list[Note] = []
    texts: dict[int, str] = {}
    for found in statements(text):
        if isinstance(found, tuple):
            line, words = found
            faults.append((line, Fault(f"{words!r} is no command", "commands stand in angle brackets: <CLEAR>.")))
            continue
        texts[found.line] = found.text
        try:
            commands.append(_command(found, notes))
        except Fault as fault:
            faults.append((found.line, Fault(f"<{found.name}>: {fault.what}", fault.hint)))
    if not commands and not faults:
        raise InvalidJob(f"{path.name} holds no commands.", hint='commands look like <OPENMICRODATA> "firms.asc".')
    if not faults:
        faults = [(line, Fault(f"{texts[line].split('>')[0]}>: {f.what}", f.hint)) for line, f in check_order(commands)]
    if faults:
        raise _told(path.name, faults)
    return Batch(commands=tuple(commands), texts=texts, notes=tuple(notes), path=path)


def _command(found: Statement, notes: list[Note]) -> Command:
    if found.name not in COMMANDS:
        if found.name in NOT_HERE:
            raise Fault(f"it is {NOT_HERE[found.name]} and is not run", "remove the line.")
        hint = str(did_you_mean(found.name, list(COMMANDS))) or f"commands are {', '.join(sorted(COMMANDS))}."
        raise Fault("there is no such command", hint)
    command = COMMANDS[found.name](found.line, found.rest, lambda text: notes.append(Note(found.line, text)))
    if isinstance(command, GoInteractive):
        notes.append(Note(found.line, "there are no windows to go on in: the run ends with what came before it."))
    return command


def _told(name: str, faults: list[tuple[int, Fault]]) -> InvalidJob:
    """One error with its hint, or all of them, in the order of their lines."""
    faults = sorted(faults, key=lambda fault: fault[0])
    if len(faults) == 1:
        line, fault = faults[0]
        return InvalidJob(f"{fault.what}.", hint=fault.hint, where=f"{name}, line {line}")
    listed = "\n".join(f"  line {line}: {fault.what}. Hint: {fault.hint}" for line, fault in faults)
    return InvalidJob(f"{name} has {len(faults)} errors:\n{listed}")
