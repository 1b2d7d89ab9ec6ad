"""A job as TOML text again: only what differs from the defaults, or with every key there is and its help.

And what differs between two such texts, key by key, in the words of the file.
"""

from __future__ import annotations

import dataclasses
import textwrap
from collections.abc import Iterator, Mapping
from typing import Any

from tablesafe.core.language import Text, text
from tablesafe.job.decode import default_of, is_required, options
from tablesafe.job.model import CHOICES, Job
from tablesafe.job.toml import KeyPath, read_toml, toml_key, toml_value

WIDTH = 110
"""Letters of a line of a job file with its help."""
LONGEST = 60
"""Letters of a value that are shown where it has changed."""
NOTHING = "not set"


def dump_job(job: Job, *, explain: bool = False) -> str:
    """The job as TOML; reading it back gives an equal job.

    With `explain` every key carries its help, and keys that are not set stand there as comments, ready to be used.
    """
    return "\n".join(_table(job, (), _Explained() if explain else None)).strip("\n") + "\n"


class _Explained(set[type[Any]]):
    """The kinds of tables whose keys were explained already: once is enough."""


def _table(value: Any, path: tuple[str, ...], explained: _Explained | None) -> Iterator[str]:
    """The lines of one table: plain keys first, then the tables inside it."""
    explain = explained is not None and type(value) not in explained
    if explained is not None:
        explained.add(type(value))
    for key, item in _named(value).items():
        yield f"{key} = {toml_value(item)}"
    nested: list[tuple[dataclasses.Field[Any], Any]] = []
    for name, spec in options(type(value)).items():
        item = getattr(value, name)
        is_set = is_required(spec) or item != default_of(spec)
        if _is_table(item):
            nested += [(spec, item)] if is_set or explain else []
        elif is_set:
            yield from _line(spec, item, explain, mark="")
        elif explain and path:
            yield from _line(spec, spec.metadata.get("example", item), explain, mark="# ")
    for spec, item in nested:
        yield from _nested(spec, item, (*path, spec.name), explained)


def _line(spec: dataclasses.Field[Any], item: Any, explain: bool, *, mark: str) -> Iterator[str]:
    line = f"{mark}{toml_key(spec.name)} = {toml_value(item)}"
    help = spec.metadata.get("help", "") if explain else ""
    if help and len(line) + len(help) + 6 > WIDTH:
        yield from (f"# {text}" for text in textwrap.wrap(help, WIDTH - 2))
        yield line
    else:
        yield f"{line:<34}  # {help}" if help else line


def _nested(
    spec: dataclasses.Field[Any], item: Any, path: tuple[str, ...], explained: _Explained | None
) -> Iterator[str]:
    header = ".".join(map(toml_key, path))
    about = [f"# {spec.metadata['help']}"] if explained is not None else []
    if isinstance(item, Mapping):
        inside = [(f"[{header}.{toml_key(key)}]", inner, (*path, key)) for key, inner in item.items()]
    elif isinstance(item, tuple):
        inside = [(f"[[{header}]]", inner, path) for inner in item]
    else:
        inside = [(f"[{header}]", item, path)]
    for number, (line, inner, where) in enumerate(inside):
        yield from ("", *(about if number == 0 else []), line)
        yield from _table(inner, where, explained)


def _named(value: Any) -> dict[str, str]:
    """The key that says which rule or method a value is, if it is one."""
    for choice in CHOICES.values():
        name = choice.name_of(value)
        if name is not None:
            return {choice.key: name}
    return {}


def _is_table(item: Any) -> bool:
    """Whether a value is written as a table of its own: a dataclass, several of them, or a mapping to them."""
    if isinstance(item, Mapping):
        return bool(item) and all(dataclasses.is_dataclass(inner) for inner in item.values())
    if isinstance(item, tuple):
        return bool(item) and all(dataclasses.is_dataclass(inner) for inner in item)
    return dataclasses.is_dataclass(item)


# -- what differs -----------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True, slots=True)
class Change:
    """A key that stands otherwise in the second of two jobs; None where it is not set."""

    path: KeyPath
    before: Any
    after: Any

    def __str__(self) -> str:
        """As in `rules 1, n: 3 → 5`."""
        return str(self.words)

    @property
    def words(self) -> Text:
        """The same, to be said in any language."""
        return text(
            "{place}: {one} → {other}", place=_place(self.path), one=_shown(self.before), other=_shown(self.after)
        )


def changes(before: str, after: str) -> tuple[Change, ...]:
    """What differs between two job files, in the order of the first; a list of values is one value.

    Rules and tables are compared one by one, in their order, so that a rule that was added at the end is one change.
    """
    return tuple(_between(read_toml(before), read_toml(after), ()))


def _between(one: Any, other: Any, path: KeyPath) -> Iterator[Change]:
    if one == other:
        return
    if (_may_be_table(one) and _may_be_table(other)) or _same_kind(one, other):
        before, after = one or {}, other or {}
        for key in dict.fromkeys([*before, *after]):
            yield from _between(before.get(key), after.get(key), (*path, key))
    elif _are_tables(one) and _are_tables(other):
        for number in range(max(len(one), len(other))):
            first, second = (each[number] if number < len(each) else None for each in (one, other))
            yield from _between(first, second, (*path, number))
    else:
        yield Change(path, one, other)


def _may_be_table(value: Any) -> bool:
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


def _shown(value: Any) -> Text | str:
    if value is None:
        return text(NOTHING)
    if isinstance(value, Mapping):
        name = value.get("rule", value.get("name"))
        return str(name) if name else f"{len(value)} keys"
    written = toml_value(value)
    return written if len(written) <= LONGEST else f"{written[:LONGEST]} …"
