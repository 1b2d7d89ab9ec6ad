"""Columns as SQL expressions: codes and names as text, amounts as exact whole numbers.

Amounts become whole numbers of the smallest decimal unit that holds them all, and are only then added up: so the order
in which they are added changes nothing, and every total is exactly the sum of its parts. Where no such unit exists
(weights like 3.7142857…) each record's share is rounded once, as finely as the grand total allows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tablesafe.core.equations import MOST_DECIMALS
from tablesafe.core.errors import InvalidTable
from tablesafe.files.read import LARGEST_EXACT
from tablesafe.tabulate.plan import Measure, Plan
from tablesafe.tabulate.sources import Column, quoted

NO_DECIMALS = 99
"""Decimals of a column that no decimal unit holds."""
NOISE = 3.6e-15
"""Relative noise of a decimal number in floating point."""
NUMERIC = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "FLOAT", "DOUBLE", "DECIMAL", "BOOLEAN", "VARCHAR")
WHOLE = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "BOOLEAN")


def is_number(column: Column) -> bool:
    """Whether a column can hold numbers, perhaps as text."""
    return column.type.lstrip("U").startswith(NUMERIC)


def is_text(column: Column) -> bool:
    """Whether a column is stored as text."""
    return column.type == "VARCHAR"


def is_whole(column: Column) -> bool:
    """Whether a column's type allows whole numbers only."""
    return column.type.lstrip("U").startswith(WHOLE)


def code(column: Column, empty: Sequence[str]) -> str:
    """The column as text; blank is missing. Blanks around a code stay: some classifications have them."""
    raw = column.sql
    if column.type in {"FLOAT", "DOUBLE"}:  # 5.0 is the code 5, as in frames that cannot hold missing whole numbers
        whole = f"{raw} = floor({raw}) AND abs({raw}) < 1e15"
        as_whole, as_is = f"CAST(CAST({raw} AS BIGINT) AS VARCHAR)", f"CAST({raw} AS VARCHAR)"
        raw = f"CASE WHEN isnan({raw}) THEN NULL WHEN {whole} THEN {as_whole} ELSE {as_is} END"
    elif not is_text(column):
        raw = f"CAST({raw} AS VARCHAR)"
    marks = ", ".join(quoted(mark) for mark in ("", *empty))
    return f"CASE WHEN trim({raw}) IN ({marks}) THEN NULL ELSE {raw} END"


def name(column: Column, empty: Sequence[str]) -> str:
    """The column as a trimmed name; blank is missing."""
    return f"trim({code(column, empty)})"


def entry(column: Column, empty: Sequence[str]) -> str:
    """What stands in a column of text numbers, trimmed; blank is missing."""
    marks = ", ".join(quoted(mark) for mark in ("", *empty))
    return f"CASE WHEN trim({column.sql}) IN ({marks}) THEN NULL ELSE trim({column.sql}) END"


def number(column: Column, empty: Sequence[str]) -> str:
    """The column as a floating-point number; text that is none becomes missing."""
    if is_text(column):
        text = entry(column, empty)
        parsed = f"coalesce(TRY_CAST({text} AS DOUBLE), TRY_CAST(replace({text}, ',', '.') AS DOUBLE))"
        return f"CASE WHEN contains({column.sql}, '_') THEN NULL ELSE {parsed} END"
    if column.type == "FLOAT":  # through its shortest decimal form: 0.1 stays 0.1
        return f"CAST(CAST({column.sql} AS VARCHAR) AS DOUBLE)"
    return f"CAST({column.sql} AS DOUBLE)"


def decimals(column: Column, value: str) -> str:
    """How many decimals a number needs."""
    if is_whole(column):
        return "0"
    cases = [f"WHEN {value} = round({value}) THEN 0"]
    cases += [
        f"WHEN abs({value} - round({value}, {d})) <= {NOISE} * abs({value}) THEN {d}"
        for d in range(1, MOST_DECIMALS + 1)
    ]
    return f"CASE {' '.join(cases)} ELSE {NO_DECIMALS} END"


@dataclass(frozen=True, slots=True)
class Extent:
    """How finely a column of numbers is written, and what it adds up to."""

    decimals: int
    total: float
    """Sum of the absolute values."""
    weighted: float
    """Sum of the absolute values times the weights."""


@dataclass(frozen=True, slots=True)
class Scale:
    """In which decimal unit a measure is added up."""

    decimals: int
    exact: bool
    factor: int
    """Decimals of the columns; the rest of `decimals` are those of the weights, or the product is rounded."""


def scales(plan: Plan, extents: Mapping[str, Extent], weight: Extent | None) -> dict[Measure, Scale]:
    """The unit of every measure; all response variables share theirs, so that equations between them hold exactly."""
    shared = [m for r in plan.responses for m in (r.value, r.amount, r.added) if m is not None]
    out: dict[Measure, Scale] = {}
    for weighted in (False, True):
        together = [measure for measure in shared if measure.weighted is weighted]
        if together:
            common = _scale(together, extents, weight)
            out.update(dict.fromkeys(together, common))
    for measure in plan.extras.values():
        out.setdefault(measure, _scale([measure], extents, weight))
    return out


def _scale(measures: Sequence[Measure], extents: Mapping[str, Extent], weight: Extent | None) -> Scale:
    columns = list(dict.fromkeys(column for measure in measures for column, _ in measure.terms))
    finest = max((extents[column].decimals for column in columns), default=0)
    weighted = measures[0].weighted
    total = 0.0
    for measure in measures:
        parts = [extents[column].weighted if weighted else extents[column].total for column, _ in measure.terms]
        total = max(total, sum(parts) if parts else (weight.total if weighted and weight else 0.0))
    room = _room(total, columns)
    fine = finest + (weight.decimals if weighted and weight else 0)
    return Scale(min(fine, room), fine <= room, finest)


def _room(total: float, columns: Sequence[str]) -> int:
    """How many decimals a sum can have and still be exact."""
    room = 15 if total == 0 else min(15, int(np.floor(np.log10(LARGEST_EXACT / 8 / (total * (1 + 1e-9))))))
    if room < 0:
        names = " and ".join(repr(column) for column in columns[:2]) or "the weights"
        raise InvalidTable(
            f"Column {names} adds up to about {total:.3g}, too large to add exactly.",
            hint="use a larger unit (thousands, millions).",
        )
    return room


def measure_sql(measure: Measure, scale: Scale, numbers: Mapping[str, str], weight: str | None) -> str:
    """A measure of one record as a whole number of its unit."""
    if measure.weighted and weight is None:
        raise ValueError("a weighted measure needs a weight")
    if not measure.weighted:
        parts = [f"{_sign(sign)} {_whole(numbers[column], scale.decimals)}" for column, sign in measure.terms]
        return " ".join(parts) or "CAST(1 AS BIGINT)"
    assert weight is not None
    if scale.exact:
        times = _whole(weight, scale.decimals - scale.factor)
        parts = [f"{_sign(sign)} {_whole(numbers[column], scale.factor)}" for column, sign in measure.terms]
        return f"({' '.join(parts) or '1'}) * {times}"
    parts = [
        f"{_sign(sign)} {_whole(f'{numbers[column]} * {weight}', scale.decimals)}" for column, sign in measure.terms
    ]
    return " ".join(parts) or _whole(weight, scale.decimals)


def _sign(sign: int) -> str:
    return f"+ {sign} *" if sign >= 0 else f"- {-sign} *"


def _whole(value: str, places: int) -> str:
    scaled = value if places == 0 else f"{value} * 1e{places}"
    return f"CAST(round({scaled}) AS BIGINT)"
