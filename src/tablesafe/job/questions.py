"""What a look at data leaves for the office to decide: records without a code or an amount, and negative amounts.

A first job answers each question in the way that loses least; nobody but the office knows whether that is right. So
each question says what was found, what happens as the job stands, and what else could be done, as keys to be set.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from tablesafe.job.toml import KeyPath

MISSING = "missing"
"""The code of records without one, where a first job has to choose it."""


STOPS = "the run stops there"


class Column(Protocol):
    """What must be known of a column."""

    @property
    def name(self) -> str: ...
    @property
    def empty(self) -> int:
        """How many entries are empty."""
        ...

    @property
    def negative(self) -> int:
        """How many entries are negative."""
        ...


@dataclass(frozen=True, slots=True)
class Answer:
    """One way to go on: what a button says, and the key that it sets."""

    words: str
    path: KeyPath
    value: Any


@dataclass(frozen=True, slots=True)
class Question:
    """Something that the office may want otherwise."""

    column: str
    found: str
    """What was found in the data."""
    now: str
    """What happens as the job stands."""
    where: str
    """Which key of the job says so."""
    answers: tuple[Answer, ...]

    @property
    def stops(self) -> bool:
        """Whether a run of the job as it stands would end there."""
        return self.now == STOPS

    def __str__(self) -> str:
        return f"{self.found}: {self.now} ({self.where})."


def questions(draft: Mapping[str, Any], columns: Mapping[str, Column]) -> tuple[Question, ...]:
    """What the columns of records leave to decide, given the plain data of a job."""
    source = draft.get("source", {})
    if source.get("kind", "records") not in {"records", "auto"}:
        return ()
    return (*_codes(draft, columns), *_amounts(draft, columns))


def _codes(draft: Mapping[str, Any], columns: Mapping[str, Column]) -> Iterator[Question]:
    for name, dimension in draft.get("dimensions", {}).items():
        column = columns.get(dimension.get("column") or name)
        if column is None or not column.empty:
            continue
        path, said = ("dimensions", name, "missing"), dimension.get("missing", "error")
        they, count = _records(column.empty, "count", "counts")
        _, are = _records(column.empty, "are", "is")
        now = {"error": STOPS, "drop": f"{are} left out"}.get(said, f"{count} under the code {said!r}")
        other = "" if said == "drop" else "; 'drop' leaves such records out"
        yield Question(
            column.name, f"{they} no {name!r}", now, f"missing in [dimensions.{name}]{other}",
            (
                Answer(f"Leave out {_many(column.empty)} without a {name}", path, "drop"),
                Answer(f"Count them under a code of their own, {MISSING!r}", path, MISSING),
            ),
        )  # fmt: skip


def _amounts(draft: Mapping[str, Any], columns: Mapping[str, Column]) -> Iterator[Question]:
    response, where = draft.get("response", {}), str(draft.get("source", {}).get("where") or "")
    given = response.get("value", [])
    for name in given if isinstance(given, list) else [given]:
        column = columns.get(name)
        if column is None or '"' in name:
            continue
        if column.empty:
            they, are = _records(column.empty, "are", "is")
            filled = f'"{name}" IS NOT NULL'
            gone = filled in where or f'"{name}" >= 0' in where
            now = f"{are} left out" if gone else STOPS
            leave = f"Leave out {_many(column.empty)} without a {name}"
            answers = (Answer(leave, ("source", "where"), _and(where, filled)),)
            yield Question(name, f"{they} no {name!r}", now, "where in [source]", answers)
        if column.negative:
            yield _negative(name, column.negative, str(response.get("negative", "auto")), where)


def _negative(name: str, many: int, said: str, where: str) -> Question:
    they, are = _records(many, "are", "is")
    above = f'"{name}" >= 0'
    now = "so no cell is known to be 0 or more"
    if above in where:
        now = f"{are} left out"
    elif said == "never":
        now = STOPS
    return Question(
        name, f"{they} a negative {name!r}", now, "negative in [response]",
        (
            Answer("They are right: amounts may be negative", ("response", "negative"), "possible"),
            Answer(f"Leave out {_many(many)} with a negative {name}", ("source", "where"), _and(where, above)),
        ),
    )  # fmt: skip


def _and(where: str, condition: str) -> str:
    """A condition of SQL with another one; one that is there already stays alone."""
    if not where or condition in where:
        return where or condition
    return f"{where if ' OR ' not in where.upper() else f'({where})'} AND {condition}"


def _many(number: int) -> str:
    return f"{number:,} records" if number > 1 else "the record"


def _records(many: int, do: str, does: str) -> tuple[str, str]:
    """So many records as the beginning of two clauses."""
    return (f"{many:,} records have", f"they {do}") if many > 1 else ("1 record has", f"it {does}")
