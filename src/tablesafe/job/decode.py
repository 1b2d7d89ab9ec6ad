"""TOML values into frozen dataclasses, all errors at once.

The dataclass is the only declaration: its field types say what is allowed, its defaults what may be left out, and its
`help` metadata what the reference says about it. Rules and methods are dataclasses too, chosen by name from a registry,
so their options are checked by the same code.
"""

from __future__ import annotations

import dataclasses
import re
import types
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np

from tablesafe.core.errors import InvalidInput
from tablesafe.core.language import Text, text
from tablesafe.core.registry import Registry
from tablesafe.files.limits import is_there, kind_of
from tablesafe.files.read import did_you_mean
from tablesafe.job.toml import KeyPath
from tablesafe.job.words import brief, either, expected, got, key_name, missing_key, section, unknown_key

MISSING = dataclasses.MISSING
LARGEST = 10**300
"""Whole numbers below this are also numbers with a point."""
OTHER = "{key} must be {wanted}; got {found}."
OTHER_NEAR, OTHER_SO = "{key} must be {wanted}; got {found}: {hint}", "{key} must be {wanted}; got {found}. {hint}"
"""What is said of a key that holds something else than it may, with a hint or without."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A table whose dataclass is chosen by name: `key` is the key that holds the name."""

    key: str
    registry: Registry[Any]
    what: str

    def name_of(self, value: Any) -> str | None:
        """The name under which a value's class is registered, if it is."""
        return self.registry.name_of(type(value))


@dataclass(frozen=True, slots=True)
class Fault:
    """One error of a job file: where, and what to do about it."""

    path: KeyPath
    message: Text | str


@dataclass(slots=True)
class Decoding:
    """The errors found so far while a job is read."""

    choices: Mapping[Any, Choice] = field(default_factory=dict)
    """Types whose dataclass is chosen by name."""
    folder: Path = field(default_factory=Path)
    """What the paths of files are relative to."""
    faults: list[Fault] = field(default_factory=list)
    absent: list[Fault] = field(default_factory=list)
    """Files that are not there: errors, but the rest of their table can be read and checked."""

    def fault(self, path: KeyPath, message: Text | str) -> Any:
        """Note an error; the value is missing."""
        self.faults.append(Fault(path, message))
        return MISSING

    def decode(self, kind: Any, value: Any, path: KeyPath, example: Any = None) -> Any:
        """A value as `kind`, or MISSING after noting what is wrong with it."""
        origin = get_origin(kind)
        if kind is Any:
            return value
        if kind in self.choices:
            return self._chosen(self.choices[kind], value, path)
        if origin in {Union, types.UnionType}:
            return self._any_of(get_args(kind), value, path, example)
        if origin is Literal:
            return self._literal(get_args(kind), value, path)
        if origin is tuple:
            return self._sequence(kind, value, path, example)
        if origin in {dict, Mapping}:
            return self._mapping(get_args(kind)[1], value, path, example)
        if dataclasses.is_dataclass(kind):
            return self.record(kind, value, path)  # type: ignore[arg-type]
        return self._scalar(kind, value, path, example)

    def record(self, kind: type[Any], value: Any, path: KeyPath, *, skip: Sequence[str] = ()) -> Any:
        """A table as a dataclass; unknown and missing keys are errors."""
        if not isinstance(value, Mapping):
            return self.fault(path, f"{section(path)} must be a table of keys and values; got {got(value)}.")
        before = len(self.faults)
        found = self.fields(kind, value, path, skip=skip)
        return self._made(kind, found, value, path) if len(self.faults) == before else MISSING

    def fields(
        self, kind: type[Any], value: Mapping[str, Any], path: KeyPath, *, skip: Sequence[str] = ()
    ) -> dict[str, Any]:
        """The fields of a dataclass from a table; those with errors are MISSING."""
        known, hints = options(kind), get_type_hints(kind)
        for key in value:
            if key not in known and key not in skip:
                self.fault((*path, key), unknown_key(section(path), key, [*skip, *known]))
        return {name: self._field(hints[name], spec, value, path) for name, spec in known.items()}

    def _made(self, kind: type[Any], found: Mapping[str, Any], value: Mapping[str, Any], path: KeyPath) -> Any:
        try:
            return kind(**found)
        except InvalidInput as error:
            return self.fault(self._culprit(error, path, value), brief(error))

    def _culprit(self, error: InvalidInput, path: KeyPath, value: Mapping[str, Any]) -> KeyPath:
        """The key that an error of the dataclass itself is about, or the whole table."""
        match error.about:
            case ("option", _, str(name)) if name in value:
                return (*path, name)
        return path

    def _field(self, kind: Any, spec: dataclasses.Field[Any], table: Mapping[str, Any], path: KeyPath) -> Any:
        if spec.name not in table:
            return self.fault(path, missing_key(section(path), spec, kind)) if is_required(spec) else default_of(spec)
        where = (*path, spec.name)
        value = self.decode(kind, table[spec.name], where, spec.metadata.get("example", spec.default))
        if spec.metadata.get("file") and isinstance(value, str):
            self._require_file(value, where)
        elif spec.metadata.get("file") and isinstance(value, tuple):
            for i, name in enumerate(value):
                self._require_file(name, (*where, i))
        return value

    def _require_file(self, name: str, path: KeyPath) -> None:
        """A file that the job reads must be there."""
        file = self.folder / name
        kind = kind_of(file)
        if kind:
            self.absent.append(Fault(path, text("{name!r} is {kind}.", name=name, kind=kind)))
        elif not is_there(file):
            beside: list[str] = []
            with suppress(OSError):  # a folder that this user may not look into
                beside = [entry.name for entry in file.parent.iterdir()] if kind_of(file.parent) else []
            hint = did_you_mean(file.name, beside) or "paths are relative to the job file."
            self.absent.append(Fault(path, text("There is no file {name!r}: {hint}", name=name, hint=hint)))

    def _chosen(self, choice: Choice, value: Any, path: KeyPath) -> Any:
        """A table whose key `choice.key` names the dataclass."""
        if isinstance(value, str):
            value = {choice.key: value}
        if not isinstance(value, Mapping):
            return self.fault(path, f"{section(path)} must be a table of keys and values; got {got(value)}.")
        names = ", ".join(map(repr, choice.registry))
        if choice.key not in value:
            return self.fault(path, f"{section(path)} needs the key {choice.key!r}: one of {names}.")
        name = value[choice.key]
        if not isinstance(name, str) or name not in choice.registry:
            near = did_you_mean(name, list(choice.registry)) if isinstance(name, str) else ""
            return self.fault(
                (*path, choice.key), f"There is no {choice.what} {name!r}: {near or f'there are {names}.'}"
            )
        return self.record(choice.registry[name], value, path, skip=[choice.key])

    def _any_of(self, kinds: tuple[Any, ...], value: Any, path: KeyPath, example: Any) -> Any:
        kinds = tuple(kind for kind in kinds if is_writable(kind))
        if len(kinds) == 1:
            return self.decode(kinds[0], value, path, example)
        trials: list[Decoding] = []
        for kind in kinds:
            trial = Decoding(self.choices, self.folder)
            result = trial.decode(kind, value, path, example)
            if not trial.faults:
                self.absent += trial.absent
                return result
            trials.append(trial)
        deep = next((trial for trial in trials if all(len(fault.path) > len(path) for fault in trial.faults)), None)
        if deep is not None:  # the shape was right, something inside it was not
            self.faults += deep.faults
            return MISSING
        return self._other(path, either(expected(kind, None) for kind in kinds), value)

    def _literal(self, allowed: tuple[Any, ...], value: Any, path: KeyPath) -> Any:
        if any(value == option and type(value) is type(option) for option in allowed):
            return value
        near = did_you_mean(value, [str(option) for option in allowed]) if isinstance(value, str) else ""
        return self._other(path, expected(Literal[allowed], None), value, near)

    def _sequence(self, kind: Any, value: Any, path: KeyPath, example: Any) -> Any:
        inner, *rest = get_args(kind)
        if isinstance(value, str) and inner is str:
            value = [value]  # one name need not be a list
        if isinstance(value, Mapping) and (inner in self.choices or dataclasses.is_dataclass(inner)):
            return self.fault(path, f"{path[-1]!r} is a list of tables: write [[{path[-1]}]], not [{path[-1]}].")
        if not isinstance(value, list):
            return self._other(path, expected(kind, example), value)
        if rest != [Ellipsis] and len(value) != len(get_args(kind)):
            return self.fault(path, f"{key_name(path)} must hold {len(get_args(kind))} entries; got {len(value)}.")
        kinds = [inner] * len(value) if rest == [Ellipsis] else list(get_args(kind))
        items = [self.decode(k, item, (*path, i)) for i, (k, item) in enumerate(zip(kinds, value, strict=True))]
        return MISSING if any(item is MISSING for item in items) else tuple(items)

    def _mapping(self, inner: Any, value: Any, path: KeyPath, example: Any) -> Any:
        if not isinstance(value, Mapping):
            return self.fault(path, f"{section(path)} must be a table of keys and values; got {got(value)}.")
        items = {key: self.decode(inner, item, (*path, key), example) for key, item in value.items()}
        return MISSING if any(item is MISSING for item in items.values()) else items

    def _scalar(self, kind: Any, value: Any, path: KeyPath, example: Any) -> Any:
        if kind is float and type(value) is int:
            return float(value) if abs(value) < LARGEST else self.fault(path, f"{key_name(path)} is too large.")
        if isinstance(kind, type) and type(value) is kind:
            return value
        hint: Text | str = ""
        if kind is str and isinstance(value, (int, float)) and not isinstance(value, bool):
            hint = text('Put it in quotes: "{value}".', value=str(value))
        elif kind in {int, float, bool} and isinstance(value, str):
            hint = _without_quotes(value.strip())
        return self._other(path, expected(kind, example), value, hint)

    def _other(self, path: KeyPath, wanted: Text | str, value: Any, hint: Text | str = "") -> Any:
        """Note that something else stands there than may; a question as a hint goes on with the sentence."""
        asks = str(hint).endswith("?")
        told = OTHER if not hint else OTHER_NEAR if asks else OTHER_SO
        return self.fault(path, text(told, key=key_name(path), wanted=wanted, found=got(value), hint=hint))


def _without_quotes(written: str) -> Text | str:
    """What to do with a text where a number, or true or false, is wanted; nothing where it is neither."""
    if re.fullmatch(r"[+-]?\d+,\d+", written):
        return text("Write a decimal point: {number}.", number=written.replace(",", "."))
    quoted = re.fullmatch(r"[+-]?[\d_.]+(e[+-]?\d+)?|true|false", written, re.I)
    return text("Leave out the quotes.") if quoted else ""


def options(kind: type[Any]) -> dict[str, dataclasses.Field[Any]]:
    """The fields of a dataclass that a job file may set."""
    return {spec.name: spec for spec in dataclasses.fields(kind) if spec.init and not spec.metadata.get("hidden")}


def is_writable(kind: Any) -> bool:
    """Whether a value of this type can stand in a job file: nothing, arrays, and what has no options cannot."""
    explained = not dataclasses.is_dataclass(kind) or any("help" in spec.metadata for spec in dataclasses.fields(kind))
    return kind is not type(None) and get_origin(kind) is not np.ndarray and explained


def is_required(spec: dataclasses.Field[Any]) -> bool:
    """Whether a field must be given."""
    return spec.default is MISSING and spec.default_factory is MISSING


def default_of(spec: dataclasses.Field[Any]) -> Any:
    """The default of a field that has one."""
    return spec.default if spec.default_factory is MISSING else spec.default_factory()
