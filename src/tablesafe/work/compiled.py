"""Loops that are compiled: by Numba, loaded when the first of them runs, with a line that says what takes so long.

Numba takes a second to load and a loop a second or more to compile, once on a machine: what was compiled is kept
beside the code. So a declaration loads nothing: `compiled` remembers the function, and its first call does the rest. A
loop may call others, which it finds by their names, as it would without this module.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from importlib import import_module
from types import CodeType, FunctionType, ModuleType
from typing import Any, TypeVar, cast, overload

Function = TypeVar("Function", bound=Callable[..., Any])
LINE = "tablesafe compiles its inner loops, which takes some seconds, once on this machine.\n"


class Compiled:
    """A function that is compiled when it is first called."""

    def __init__(self, function: FunctionType, *, nogil: bool) -> None:
        self.function, self._nogil = function, nogil
        self._loop: Callable[..., Any] | None = None
        self.__name__, self.__doc__, self.__module__ = function.__name__, function.__doc__, function.__module__

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        return (self._loop or self.loop())(*arguments, **named)

    def loop(self) -> Callable[..., Any]:
        """The loop as Numba knows it, with the loops that it calls in place of their declarations."""
        if self._loop is None:
            from numba import njit

            _tell_when_compiling()
            given = self.function
            names = dict(given.__globals__)
            function = FunctionType(given.__code__, names, given.__name__, given.__defaults__, given.__closure__)
            function.__module__, function.__qualname__ = given.__module__, given.__qualname__
            self._loop = cast("Callable[..., Any]", njit(cache=True, nogil=self._nogil)(function))
            used = set(_names(given.__code__))
            names.update(_loops(names, used))
            for name in used:
                if isinstance(module := names.get(name), ModuleType):
                    names[name] = _shadow(module, used)
        return self._loop


@overload
def compiled(function: Function) -> Function: ...
@overload
def compiled(*, nogil: bool) -> Callable[[Function], Function]: ...
def compiled(function: Any = None, *, nogil: bool = False) -> Any:
    """Declare a loop that is compiled when it is first called; `nogil` lets other threads run meanwhile."""
    if function is None:
        return lambda given: Compiled(given, nogil=nogil)
    return Compiled(function, nogil=nogil)


def _names(code: CodeType) -> Iterator[str]:
    """The names that a function looks up, also inside the functions that it holds."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def _loops(names: Mapping[str, Any], used: Iterable[str]) -> dict[str, Any]:
    """The loops among the names used, as Numba knows them."""
    return {name: names[name].loop() for name in used if isinstance(names.get(name), Compiled)}


def _shadow(module: ModuleType, used: Iterable[str]) -> ModuleType:
    """The module itself, or where loops are used of it one with these in place of their declarations."""
    loops = _loops(vars(module), used)
    if not loops:
        return module
    shadow = ModuleType(module.__name__)
    vars(shadow).update(vars(module) | loops)
    return shadow


@cache
def _tell_when_compiling() -> None:
    """Let people who watch know why nothing happens: a line on a terminal or in a notebook, once."""
    if not (sys.stderr.isatty() or "ipykernel" in sys.modules):
        return
    event: Any = import_module("numba.core.event")

    class Tell(event.Listener):  # type: ignore[misc]
        """Says it when something is compiled and not only loaded."""

        def on_start(self, _: Any) -> None:
            event.unregister("numba:compile", self)
            sys.stderr.write(LINE)
            sys.stderr.flush()

        def on_end(self, _: Any) -> None:
            """Nothing to say."""

    event.register("numba:compile", Tell())
