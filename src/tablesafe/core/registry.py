"""Kinds by name, each loaded when it is asked for: to know what there is loads no algorithm and no solver."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import Any, Generic, TypeVar

Kind = TypeVar("Kind")


class Registry(Mapping[str, Kind], Generic[Kind]):
    """What a name stands for; `places` says where each is defined, as `package.module:Name`."""

    def __init__(self, places: Mapping[str, str]) -> None:
        self._places = dict(places)

    def __getitem__(self, name: str) -> Kind:
        module, _, kind = self._places[name].partition(":")
        found: Kind = getattr(import_module(module), kind)
        return found

    def __contains__(self, name: object) -> bool:
        return name in self._places

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)

    def name_of(self, kind: type) -> str | None:
        """The name of a kind, if it is one of these."""
        place = f"{kind.__module__}:{kind.__qualname__}"
        return next((name for name, there in self._places.items() if there == place), None)

    @property
    def kinds(self) -> dict[str, str]:
        """The module of each kind, by the kind's own name."""
        return {kind: module for module, _, kind in (place.partition(":") for place in self._places.values())}


def loader(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """The `__getattr__` of a package that loads its names when they are asked for, by the modules they live in."""

    def __getattr__(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(homes[name]), name)

    return __getattr__
