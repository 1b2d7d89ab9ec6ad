"""What differs between two job files, key by key, in the words of the file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tablesafe.job.toml import KeyPath, read_toml, toml_value

LONGEST = 60
"""Letters of a value that are shown."""
NOTHING = "not set"


@dataclass(frozen=True, slots=True)
class Change:
    """A key that stands otherwise in the second of two jobs; None where it is not set."""

    path: KeyPath
    before: Any
    after: Any

    def __str__(self) -> str:
        """As in `rules 1, n: 3 → 5`."""
        return f"{_place(self.path)}: {_shown(self.before)} → {_shown(self.after)}"


def changes(before: str, after: str) -> tuple[Change, ...]:
    """What differs between two job files, in the order of the first; a list of values is one value.

    Rules and tables are compared one by one, in their order, so that a rule that was added at the end is one change.
    """
    return tuple(_between(read_toml(before), read_toml(after), ()))


def _between(one: Any, other: Any, path: KeyPath) -> Iterator[Change]:
    if one == other:
        return
    if (_is_table(one) and _is_table(other)) or _same_kind(one, other):
        before, after = one or {}, other or {}
        for key in dict.fromkeys([*before, *after]):
            yield from _between(before.get(key), after.get(key), (*path, key))
    elif _are_tables(one) and _are_tables(other):
        for number in range(max(len(one), len(other))):
            first, second = (each[number] if number < len(each) else None for each in (one, other))
            yield from _between(first, second, (*path, number))
    else:
        yield Change(path, one, other)


def _is_table(value: Any) -> bool:
    """Whether a value is a table of keys, or none; rules and methods that come or go are named, not spelled out."""
    return value is None or (isinstance(value, Mapping) and not {"rule", "name"} & value.keys())


def _same_kind(one: Any, other: Any) -> bool:
    """Whether both are tables, and the same rule or method where they are one."""
    if not (isinstance(one, Mapping) and isinstance(other, Mapping)):
        return False
    return all(one.get(key) == other.get(key) for key in ("rule", "name"))


def _are_tables(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, Mapping) for item in value)


def _place(path: KeyPath) -> str:
    """`rules 1, n` for the key n of the first rule."""
    words: list[str] = []
    for key in path:
        if isinstance(key, int) and words:
            words[-1] += f" {key + 1}"
        else:
            words.append(str(key))
    return ", ".join(words)


def _shown(value: Any) -> str:
    if value is None:
        return NOTHING
    if isinstance(value, Mapping):
        name = value.get("rule", value.get("name"))
        return str(name) if name else f"{len(value)} keys"
    text = toml_value(value)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]} …"
