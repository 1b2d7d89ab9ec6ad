"""A job as TOML text again: only what differs from the defaults, or with every key there is and its help."""

from __future__ import annotations

import dataclasses
import textwrap
from collections.abc import Iterator, Mapping
from typing import Any

from tablesafe.job.decode import default_of, is_required, options
from tablesafe.job.model import CHOICES, Job
from tablesafe.job.toml import toml_key, toml_value

WIDTH = 110


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
