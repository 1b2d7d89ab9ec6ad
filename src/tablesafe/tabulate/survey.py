"""One look at all records before they are added up: are the numbers numbers, which codes occur, how fine is the unit.

Every complaint about a record is made here, with the file and the line.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tablesafe.core.errors import About, InvalidFile, InvalidTable, Setting, Words
from tablesafe.core.hierarchy import Equation
from tablesafe.files.read import LARGEST_EXACT
from tablesafe.tabulate.columns import Extent, decimals, is_number, is_text, number
from tablesafe.tabulate.plan import DROP, ERROR
from tablesafe.tabulate.scan import Scan, reading
from tablesafe.tabulate.sources import one_row

LARGEST_REQUEST = 50
"""The largest code of a request for protection that a record may hold: each code is a bit of a whole number."""


@dataclass(frozen=True, slots=True)
class Survey:
    """What is known of the records before they are added up."""

    records: int
    extents: Mapping[str, Extent]
    codes: tuple[tuple[str, ...], ...]
    """The codes that occur in each dimension, as written."""
    missing: tuple[int, ...]
    """How many records have no code in each dimension."""
    negative: frozenset[str]
    """The response variables that are negative in some record."""


def survey(scan: Scan) -> Survey:
    """Look at every record once."""
    plan, columns = scan.plan, scan.records.columns
    for column in scan.numbers:
        if not is_number(columns[column]):
            raise InvalidTable(
                f"Column {column!r} of {scan.records.name} holds {columns[column].type}, not numbers.",
                hint="is it the right column?",
            )
    asked = {"records": "count(*)"}
    for i in range(len(plan.column_of)):
        asked[f"codes {i}"] = f"list(DISTINCT d{i}) FILTER (d{i} IS NOT NULL)"
        asked[f"missing {i}"] = f"count(*) FILTER (d{i} IS NULL)"
    for column in scan.numbers:
        asked |= _asked_of_number(scan, column)
    if plan.frequency is not None:
        asked["of nobody"] = f"count(*) FILTER ({_of_nobody(scan)})"
    for equation, (_, condition) in _broken(scan).items():
        asked[f"equation {equation}"] = f"count(*) FILTER ({condition})"
    for response, condition in _below_zero(scan).items():
        asked[f"below {response}"] = f"count(*) FILTER ({condition})"
    if plan.respondent is not None:
        asked["nobody"] = "count(*) FILTER (respondent IS NULL)"
    with reading(scan.records, scan.plan.where):
        found = one_row(scan.connection, f"SELECT {', '.join(asked.values())} FROM {_counted(scan)}")
        answer = dict(zip(asked, found, strict=True))
    if answer["records"] == 0:
        _refuse_nothing(scan)
    for column in scan.numbers:
        _check_number(scan, column, {what: answer[f"{what} {column}"] for what in _ABOUT})
    if answer.get("of nobody"):
        raise _complaint(
            scan, _of_nobody(scan), "NULL",
            lambda where, _: f"{where} stands for nobody ({plan.frequency} = 0), yet holds an amount.",
            ("correct the frequency, or leave such rows out with ", Setting("where")), ("source", "frequency"),
        )  # fmt: skip
    _check_codes(scan, answer)
    _check_equations(scan, answer)
    negative = frozenset(response for response in _below_zero(scan) if answer[f"below {response}"])
    _check_negative(scan, negative)
    return Survey(
        records=int(answer["records"]),
        extents={c: _extent(answer, c) for c in scan.numbers},
        codes=tuple(tuple(sorted(answer[f"codes {i}"] or ())) for i in range(len(plan.column_of))),
        missing=tuple(int(answer[f"missing {i}"]) for i in range(len(plan.column_of))),
        negative=negative,
    )


def is_counted(scan: Scan, column: str) -> bool:
    """Whether a column holds whole numbers from 0, more than 1 among them, in every record that counts."""
    given = scan.records.columns[column]
    if not is_number(given):
        return False
    value = number(given, scan.plan.empty)
    whole = f"coalesce({value} >= 0 AND {value} = floor({value}), false)"
    with reading(scan.records, scan.plan.where):
        fit, most = one_row(scan.connection, f"SELECT bool_and({whole}), max({value}) FROM {scan.filtered()}")
    return bool(fit) and float(most) > 1


def kept(scan: Scan) -> str:
    """The condition that leaves out records with a missing code, where the user wants that."""
    dropped = [f"d{i} IS NOT NULL" for i, d in enumerate(scan.plan.column_of) if scan.plan.missing[d] == DROP]
    return " AND ".join(dropped) or "true"


def _counted(scan: Scan) -> str:
    return f"(SELECT * FROM {scan.typed()} WHERE {kept(scan)})"


_ABOUT = ("empty", "bad", "comma", "point", "thousands", "huge", "unfit", "decimals", "total", "weighted")


def _asked_of_number(scan: Scan, column: str) -> dict[str, str]:
    value, text = scan.numbers[column], f"t{scan.numbers[column][1:]}"
    weight = "1" if scan.weight is None else scan.weight
    asked = {
        "empty": f"count(*) FILTER ({value} IS NULL)",
        "bad": "0",
        "comma": "0",
        "point": "0",
        "thousands": "0",
        "huge": f"count(*) FILTER (NOT {_usable(value)})",
        "unfit": f"count(*) FILTER ({_unfit(scan, column)})",
        "decimals": f"max({decimals(scan.records.columns[column], value)})",
        "total": f"sum(abs({value})) FILTER ({_usable(value)})",
        "weighted": f"sum(abs({value} * {weight})) FILTER ({_usable(value)})",
    }
    if is_text(scan.records.columns[column]):
        asked |= {
            "empty": f"count(*) FILTER ({text} IS NULL)",
            "bad": f"count(*) FILTER ({_bad(value, text)})",
            "comma": f"count(*) FILTER (contains({text}, ','))",
            "point": f"count(*) FILTER (contains({text}, '.'))",
            "thousands": f"count(*) FILTER (contains({text}, ',') AND {_grouped(text)})",
        }
    return {f"{what} {column}": sql for what, sql in asked.items()}


def _usable(value: str) -> str:
    return f"coalesce(abs({value}) < {LARGEST_EXACT!r}, true)"


def _unfit(scan: Scan, column: str) -> str:
    """The condition that a number cannot be what its column is for."""
    value = scan.numbers[column]
    if column == scan.plan.request:
        return _no_request(value)
    return _no_frequency(value) if column == scan.plan.frequency else f"{value} < 0"


def _of_nobody(scan: Scan) -> str:
    """The condition that a row of no respondents holds an amount."""
    assert scan.plan.frequency is not None
    own = scan.numbers[scan.plan.frequency]
    amounts = [alias for column, alias in scan.numbers.items() if column not in (scan.plan.frequency, scan.plan.weight)]
    return f"{own} = 0 AND ({' OR '.join(f'{alias} <> 0' for alias in amounts) or 'false'})"


def _no_frequency(value: str) -> str:
    return f"{value} < 0 OR {value} <> floor({value})"


def _no_request(value: str) -> str:
    return f"{value} < 0 OR {value} > {LARGEST_REQUEST} OR {value} <> floor({value})"


def _bad(value: str, text: str) -> str:
    return f"{text} IS NOT NULL AND {value} IS NULL"


def _grouped(text: str) -> str:
    return f"regexp_full_match({text}, '[+-]?[0-9]{{1,3}}(,[0-9]{{3}})+')"


def _extent(answer: Mapping[str, Any], column: str) -> Extent:
    total, weighted = answer[f"total {column}"], answer[f"weighted {column}"]
    return Extent(int(answer[f"decimals {column}"] or 0), float(total or 0.0), float(weighted or 0.0))


def _refuse_nothing(scan: Scan) -> None:
    (there,) = one_row(scan.connection, f"SELECT count(*) FROM {scan.records.relation}")
    if there:
        why = "passes the filter" if scan.condition else "has a code in every dimension"
        raise InvalidTable(f"None of the {there:,} records of {scan.records.name} {why}.")
    if scan.records.parts[0].file is not None:
        raise InvalidFile(f"{scan.records.name} has a header line but no rows.")
    raise InvalidFile(f"{scan.records.name} has no rows.")


def _check_number(scan: Scan, column: str, about: Mapping[str, Any]) -> None:
    """Complain about the first record whose number is none."""
    value, text = scan.numbers[column], f"t{scan.numbers[column][1:]}"
    mixed = about["comma"] and about["point"]
    if about["bad"] or mixed:
        raise _complaint(
            scan, _bad(value, text) if about["bad"] else f"contains({text}, ',')", text,
            lambda where, shown: f"Column {column!r} should hold numbers, but {where} has {shown!r}.",
            "is it the right column, with a decimal point or comma and no thousands separator?",
        )  # fmt: skip
    ambiguous = about["comma"] and about["comma"] == about["thousands"]
    if ambiguous and all(part.file is None or part.file.delimiter == "," for part in scan.records.parts):
        raise _complaint(
            scan, f"contains({text}, ',')", text,
            lambda where, shown: f"Column {column!r} has {shown!r} at {where}: is the comma for decimals or thousands?",
            "write numbers with a decimal point and without thousands separators.", ("column", column),
        )  # fmt: skip
    if about["empty"]:
        raise _complaint(
            scan, f"{value} IS NULL", "NULL",
            lambda where, _: f"Column {column!r} is empty at {where} ({_many(about['empty'])}).",
            f"fill it in, or leave such records out with where = {_filled(column)!r}.", ("column", column),
        )  # fmt: skip
    if about["huge"]:
        raise _complaint(
            scan, f"NOT {_usable(value)}", value,
            lambda where, shown: f"Column {column!r} is {_what(shown)} at {where}.",
            ("values must be finite and below 2^53; use a larger unit, or leave it out with ", Setting("where")),
            ("column", column),
        )  # fmt: skip
    if about["unfit"] and column == scan.plan.weight:
        raise _complaint(
            scan, f"{value} < 0", value,
            lambda where, shown: f"The weight {column!r} is negative at {where}: {shown:g}.",
            "a weight says how many units of the population a record stands for.",
        )  # fmt: skip
    if about["unfit"] and column == scan.plan.frequency:
        raise _complaint(
            scan, _no_frequency(value), value,
            lambda where, shown: f"The frequency {column!r} should be a whole number, but {where} has {shown:g}.",
            "a frequency says how many respondents a row stands for; what extrapolates a sample is a weight.",
        )  # fmt: skip
    if about["unfit"] and column == scan.plan.request:
        raise _complaint(
            scan, _no_request(value), value,
            lambda where, shown: f"The request {column!r} should be a whole number from 0, but {where} has {shown:g}.",
            "0 for no request, 1 for a request; other numbers for other kinds of requests.",
        )  # fmt: skip


def _what(value: float) -> str:
    return "not a number" if value != value else "infinite" if np.isinf(value) else "too large to add exactly"


def _complaint(
    scan: Scan, condition: str, show: str, message: Callable[[str, Any], str], hint: Words, about: About = ()
) -> InvalidTable:
    """An error that names the first record with a condition.

    There is none where a file says one thing of its columns and holds another, or was changed meanwhile.
    """
    found = scan.first(f"({condition}) AND {kept(scan)}", show)
    if found is None:
        raise InvalidFile(
            f"{scan.records.name} cannot be read: a record that was there at first is not found again.",
            hint="is the file complete, and does nobody write to it?",
        )
    return InvalidTable(message(*found), hint=hint, about=about)


def _check_codes(scan: Scan, answer: Mapping[str, Any]) -> None:
    plan = scan.plan
    for i, dimension in enumerate(plan.column_of):
        if answer[f"missing {i}"] and plan.missing[dimension] == ERROR:
            raise _missing_code(scan, i, dimension, answer[f"missing {i}"])
    if plan.respondent is not None and answer["nobody"]:
        raise _complaint(
            scan, "respondent IS NULL", "NULL",
            lambda where, _: f"The respondent {plan.respondent!r} is missing at {where} ({_many(answer['nobody'])}).",
            f"fill it in, or leave such records out with where = {_filled(plan.respondent)!r}.",
            ("column", plan.respondent),
        )  # fmt: skip


def _missing_code(scan: Scan, i: int, dimension: str, many: int) -> InvalidTable:
    return _complaint(
        scan, f"d{i} IS NULL", "NULL",
        lambda where, _: f"The code of {dimension!r} is missing at {where} ({_many(many)}).",
        "fill it in, or say what to do with such records: missing = 'drop' leaves them out, any other word is a code.",
        ("dimension", dimension, "missing"),
    )  # fmt: skip


def _below_zero(scan: Scan) -> dict[str, str]:
    """For each response variable that is no count: the condition that a record's is negative, beyond noise."""
    out = {}
    for response in scan.plan.responses:
        parts = [f"+ ({sign}) * {scan.numbers[column]}" for column, sign in response.value.terms]
        size = " + ".join(f"abs({scan.numbers[column]})" for column, _ in response.value.terms)
        if len(parts) == 1:
            out[response.name] = f"({parts[0]}) < 0"
        elif parts:
            out[response.name] = f"({' '.join(parts)}) < -1e-9 * ({size})"
    return out


def _check_negative(scan: Scan, negative: frozenset[str]) -> None:
    """Complain about the first negative record of a variable that is said to have none."""
    if scan.plan.negative != "never" or not negative:
        return
    response = min(negative)
    terms = {r.name: r.value.terms for r in scan.plan.responses}[response]
    shown = " ".join(f"+ ({sign}) * {scan.numbers[column]}" for column, sign in terms)
    raise _complaint(
        scan, _below_zero(scan)[response], shown,
        lambda where, value: f"{response!r} is {value:g} at {where}, but negative = 'never' says that no record is.",
        "correct the record, leave it out with where = …, or leave out negative = 'never'.",
    )  # fmt: skip


def _filled(column: str) -> str:
    """The condition that a column holds something, as a user would write it."""
    name = column.replace('"', '""')
    return f'"{name}" IS NOT NULL'


def _many(records: int) -> str:
    return f"{records:,} record{'s' if records > 1 else ''} in all"


def _broken(scan: Scan) -> dict[Equation, tuple[str, str]]:
    """For each equation whose total is a column: by how much a record breaks it, and the condition that it does."""
    terms = {r.name: r.value.terms for r in scan.plan.responses}
    out = {}
    for equation in scan.plan.equations:
        if equation.total not in scan.plan.listed:
            continue
        parts = [
            (sign * inner, scan.numbers[column])
            for part, sign in zip(equation.parts, equation.signs, strict=True)
            for column, inner in (((part, 1),) if part in scan.plan.listed else terms[part])
        ]
        total = scan.numbers[equation.total]
        difference = f"{total} - ({' '.join(f'+ ({sign}) * {part}' for sign, part in parts)})"
        size = " + ".join(f"abs({n})" for n in (total, *(part for _, part in parts)))
        out[equation] = (difference, f"abs({difference}) > 1e-9 * ({size})")
    return out


def _check_equations(scan: Scan, answer: Mapping[str, Any]) -> None:
    """Equations between response variables must hold in every record; a total that is no column is computed."""
    for equation in _broken(scan):
        if answer[f"equation {equation}"]:
            raise _broken_equation(scan, equation)


def _broken_equation(scan: Scan, equation: Equation) -> InvalidTable:
    difference, condition = _broken(scan)[equation]
    return _complaint(
        scan, condition, difference,
        lambda where, shown: f"'{equation}' does not hold at {where} (difference {shown:,g}).",
        f"correct the records, or leave {equation.total!r} out of value: it is then computed.",
    )  # fmt: skip
