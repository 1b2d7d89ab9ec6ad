"""What a look at data leaves for the office to decide: records without a code or an amount, and negative amounts.

A first job answers each question in the way that loses least; nobody but the office knows whether that is right. So
each question says what was found, what happens as the job stands, and what else could be done, as keys to be set.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from tablesafe.core.language import Text, text
from tablesafe.job.toml import KeyPath

MISSING = "missing"
"""The code of records without one, where a first job has to choose it."""


STOPS = text("the run stops there")


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

    words: Text
    path: KeyPath
    value: Any


@dataclass(frozen=True, slots=True)
class Question:
    """Something that the office may want otherwise."""

    column: str
    found: Text
    """What was found in the data."""
    now: Text
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
        path, said, many = ("dimensions", name, "missing"), dimension.get("missing", "error"), column.empty
        under = _which(many, "they count under the code {code!r}", "it counts under the code {code!r}")
        now = {"error": STOPS, "drop": _left_out(many)}.get(said, text(under, code=said))
        other = "" if said == "drop" else "; 'drop' leaves such records out"
        yield Question(
            column.name, _without(many, name), now, f"missing in [dimensions.{name}]{other}",
            (
                Answer(_leave_out_without(many, name), path, "drop"),
                Answer(text("Count them under a code of their own, {code!r}", code=MISSING), path, MISSING),
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
            filled = f'"{name}" IS NOT NULL'
            gone = filled in where or f'"{name}" >= 0' in where
            now = _left_out(column.empty) if gone else STOPS
            answers = (Answer(_leave_out_without(column.empty, name), ("source", "where"), _and(where, filled)),)
            yield Question(name, _without(column.empty, name), now, "where in [source]", answers)
        if column.negative:
            yield _negative(name, column.negative, str(response.get("negative", "auto")), where)


def _negative(name: str, many: int, said: str, where: str) -> Question:
    above = f'"{name}" >= 0'
    now = text("so no cell is known to be 0 or more")
    if above in where:
        now = _left_out(many)
    elif said == "never":
        now = STOPS
    found = _which(many, "{many:,} records have a negative {name!r}", "1 record has a negative {name!r}")
    several, one = "Leave out {many:,} records with a negative {name}", "Leave out the record with a negative {name}"
    leave = _which(many, several, one)
    return Question(
        name,
        text(found, many=many, name=name),
        now,
        "negative in [response]",
        (
            Answer(text("They are right: amounts may be negative"), ("response", "negative"), "possible"),
            Answer(text(leave, many=many, name=name), ("source", "where"), _and(where, above)),
        ),
    )


def _and(where: str, condition: str) -> str:
    """A condition of SQL with another one; one that is there already stays alone."""
    if not where or condition in where:
        return where or condition
    return f"{where if ' OR ' not in where.upper() else f'({where})'} AND {condition}"


def _which(many: int, several: str, one: str) -> str:
    """The words for several records, or for one."""
    return several if many > 1 else one


def _left_out(many: int) -> Text:
    return text(_which(many, "they are left out", "it is left out"))


def _without(many: int, name: str) -> Text:
    return text(_which(many, "{many:,} records have no {name!r}", "1 record has no {name!r}"), many=many, name=name)


def _leave_out_without(many: int, name: str) -> Text:
    several, one = "Leave out {many:,} records without a {name}", "Leave out the record without a {name}"
    return text(_which(many, several, one), many=many, name=name)
