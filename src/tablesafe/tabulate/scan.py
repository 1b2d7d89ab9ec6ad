"""The records that count, as DuckDB sees them: filtered, with codes, names and numbers under fixed names."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import duckdb

from tablesafe.core.errors import InvalidFile, InvalidInput, InvalidOption
from tablesafe.core.language import text
from tablesafe.files.read import did_you_mean
from tablesafe.tabulate.columns import code, entry, is_text, name, number
from tablesafe.tabulate.plan import Plan
from tablesafe.tabulate.records_and_columns import Where
from tablesafe.tabulate.sources import Connection, Part, Records, first_line, identifier, one_row, quoted

_WORD = re.compile(r"'(?:[^']|'')*'|\"((?:[^\"]|\"\")*)\"|([^\W\d]\w*)")


@dataclass(frozen=True)
class Scan:
    """Records, the plan for them, and the filter as SQL."""

    connection: Connection
    records: Records
    plan: Plan
    exposed: tuple[str, ...] = ()
    """Columns that the filter names, as SQL: `expression AS "name"`."""
    condition: str = ""

    @cached_property
    def numbers(self) -> dict[str, str]:
        """What SQL calls each column of numbers in `typed`."""
        return {column: f"n{i}" for i, column in enumerate(self.plan.numbers)}

    @property
    def weight(self) -> str | None:
        """What SQL calls the weight in `typed`."""
        return None if self.plan.weight is None else self.numbers[self.plan.weight]

    def filtered(self, part: Part | None = None, *, numbered: bool = False) -> str:
        """The records that pass the filter; `nth` is their number in the source, from 0."""
        relation = self.records.relation if part is None else part.relation
        columns = [column.sql for column in self.records.columns.values()]
        if numbered:
            relation = f"(SELECT row_number() OVER () - 1 AS nth, * FROM {relation})"
            columns.append("nth")
        if not self.condition:
            return relation
        inner = f"(SELECT *, {', '.join(self.exposed)} FROM {relation})" if self.exposed else relation
        return f"(SELECT {', '.join(columns)} FROM {inner} WHERE {self.condition})"

    def typed(self, part: Part | None = None, *, numbered: bool = False) -> str:
        """Codes as d0, d1, …; numbers as n0, n1, … and, where they are text, as t0, t1, …; who and whose."""
        plan, columns, empty = self.plan, self.records.columns, self.plan.empty
        chosen = [f"{code(columns[c], empty)} AS d{i}" for i, c in enumerate(plan.column_of.values())]
        for column, alias in self.numbers.items():
            chosen.append(f"{number(columns[column], empty)} AS {alias}")
            if is_text(columns[column]):
                chosen.append(f"{entry(columns[column], empty)} AS t{alias[1:]}")
        for what, given in (("respondent", plan.respondent), ("holding", plan.holding)):
            if given is not None:
                chosen.append(f"{name(columns[given], empty)} AS {what}")
        if numbered:
            chosen.append("nth")
        return f"(SELECT {', '.join(chosen)} FROM {self.filtered(part, numbered=numbered)})"

    def first(self, condition: str, show: str) -> tuple[str, Any] | None:
        """Where the first record with a condition stands, and what it has there."""
        for part in self.records.parts:
            query = f"SELECT nth, {show} FROM {self.typed(part, numbered=True)} WHERE {condition} ORDER BY nth LIMIT 1"
            found = one_row(self.connection, query)
            if found:
                return part.where(int(found[0])), found[1]
        return None


FILTER = ("source", "where")


def make_scan(connection: Connection, records: Records, plan: Plan) -> Scan:
    """Put the filter into SQL."""
    records.require(plan.columns)
    where = plan.where
    if where is None:
        return Scan(connection, records, plan)
    if isinstance(where, Mapping):
        parts = [f"({_one_of(records, column, codes, plan.empty)})" for column, codes in where.items()]
        return Scan(connection, records, plan, condition=" AND ".join(parts) or "true")
    if not isinstance(where, str):
        raise InvalidOption(
            f"where must be an SQL condition or codes by column for this source, got a {type(where).__name__}."
        )
    _require_expression(connection, where, records)
    named = [column for column in records.columns if column.casefold() in words(where)]
    scan = Scan(connection, records, plan, _exposed(connection, records, named, plan.empty), f"({where}\n)")
    try:
        connection.sql(f"SELECT count(*) FROM {scan.filtered()} LIMIT 0")
    except duckdb.Error as error:
        raise _not_a_filter(where, error, records) from error
    return scan


def _require_expression(connection: Connection, where: str, records: Records) -> None:
    """Check that a filter is one condition: what leaves its brackets cannot stand in both of these places."""
    for place in ("SELECT 1 WHERE ({}\n)", "SELECT CASE WHEN ({}\n) THEN 1 END"):
        try:
            statements = connection.extract_statements(place.replace("{}", where))
        except duckdb.Error as error:
            raise _not_a_filter(where, error, records) from error
        if len(statements) != 1:
            raise InvalidOption(
                f"The filter {where!r} is more than one condition.",
                hint="write it as in SQL: region = 'NO' AND turnover > 0",
            )


def words(where: str) -> set[str]:
    """The names that a filter may refer to, in lower case."""
    found = ((quoted or "").replace('""', '"') or bare for quoted, bare in _WORD.findall(where))
    return {word.casefold() for word in found if word}


def _one_of(records: Records, column: str, codes: str | Sequence[str], empty: Sequence[str]) -> str:
    wanted = [codes] if isinstance(codes, str) else [str(each) for each in codes]
    listed = ", ".join(quoted(each.strip()) for each in wanted) or "NULL"
    return f"{name(records.columns[column], empty)} IN ({listed})"


def _exposed(connection: Connection, records: Records, named: Sequence[str], empty: Sequence[str]) -> tuple[str, ...]:
    """The columns a filter names; text of which every entry is a number counts as numbers, as the user sees it."""
    texts = [given for given in named if is_text(records.columns[given]) and records.parts[0].file is not None]
    types = _types(connection, records, texts, empty)
    out = []
    for given in named:
        column = records.columns[given]
        value = {
            "BIGINT": f"CAST({entry(column, empty)} AS BIGINT)",
            "DOUBLE": number(column, empty),
            "VARCHAR": code(column, empty),
            "NULL": "NULL",
        }.get(types.get(given, ""), column.sql)
        out.append(f"{value} AS {identifier(given)}")
    return tuple(out)


def _types(connection: Connection, records: Records, texts: Sequence[str], empty: Sequence[str]) -> dict[str, str]:
    """What columns of text hold: whole numbers, numbers, text, or nothing. A number with a leading zero is a code."""
    if not texts:
        return {}
    tests = []
    for given in texts:
        text, value = entry(records.columns[given], empty), number(records.columns[given], empty)
        coded = f"regexp_matches({text}, '^[+-]?0[0-9]')"
        tests.append(f"bool_and({value} IS NOT NULL AND NOT {coded}) FILTER ({text} IS NOT NULL)")
        tests.append(f"bool_and(regexp_full_match({text}, '[+-]?[0-9]{{1,18}}')) FILTER ({text} IS NOT NULL)")
    with reading(records):
        answer = one_row(connection, f"SELECT {', '.join(tests)} FROM {records.relation}")
    kinds = {(None, None): "NULL", (True, True): "BIGINT", (True, False): "DOUBLE"}
    return {given: kinds.get(answer[2 * i : 2 * i + 2], "VARCHAR") for i, given in enumerate(texts)}


def _not_a_filter(where: str, error: Exception, records: Records) -> InvalidOption:
    have = list(records.columns)
    strange = sorted(words(where) - {column.casefold() for column in have})
    near = [hint for hint in (did_you_mean(word, have) for word in strange) if hint]
    if "VARCHAR" in str(error):
        hint = (
            "a column that is compared with numbers must hold nothing else: TRY_CAST(x AS DOUBLE) > 5 skips the rest."
        )
    elif near and "not found" in str(error):
        hint = str(near[0])
    else:
        hint = "write it as in SQL: region = 'NO' AND turnover > 0; put names with blanks in double quotes."
    return InvalidOption(
        f"The filter {where!r} cannot be used on {records.name}: {first_line(error)}", hint=hint, about=FILTER
    )


@contextmanager
def reading(records: Records, where: Where = None) -> Iterator[None]:
    """Turn what DuckDB says about a file into the user's terms."""
    try:
        yield
    except duckdb.OutOfMemoryException:
        raise
    except duckdb.InvalidInputException as error:
        found = re.search(r"CSV Error on Line: (\d+)", str(error))
        if found is None:
            raise _unreadable(records, where, error) from error
        about = [line for line in str(error).splitlines()[1:] if line and not line.startswith(("Original", "Possible"))]
        files = [part.name for part in records.parts if part.file and str(part.file.path) in str(error)]
        raise InvalidFile(
            text(
                "{name}, line {line}, cannot be read: {why}",
                name=files[0] if files else records.name,
                line=found[1],
                why=about[0] if about else first_line(error),
            ),
            hint="does every line have as many entries as the header, and are quotes closed?",
        ) from error
    except duckdb.ConversionException as error:
        raise InvalidOption(
            text(
                "The filter {where!r} cannot be used on {name}: {why}",
                where=where,
                name=records.name,
                why=first_line(error),
            ),
            hint="compare numbers with numbers and text with 'text'; what is missing is NULL (x IS NOT NULL).",
            about=FILTER,
        ) from error
    except duckdb.Error as error:
        raise _unreadable(records, where, error) from error


def _unreadable(records: Records, where: Where, error: Exception) -> InvalidInput:
    """What the database says against the filter, if there is one, otherwise against the file."""
    if isinstance(where, str) and not isinstance(error, duckdb.IOException):
        return _not_a_filter(where, error, records)
    return InvalidFile(
        text("{name} cannot be read: {why}", name=records.name, why=first_line(error)),
        hint="is the file complete, and what its ending says?",
    )
