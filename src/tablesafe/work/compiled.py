"""Loops that are compiled when it pays: by Numba, with a line that says what takes so long.

Numba takes a quarter of a second to load and a loop a second or more to compile, once on a machine: what was compiled
is kept beside the code. All loops of a small table take Python less than that. So a declaration loads nothing, and each
loop has steps that Python runs (see `metered`): a few, and more where nothing is kept on the disk. What needs more is
compiled. Both do the same, to the last bit. A loop may call others, which it finds by their names, as it would without
this module.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from pathlib import Path
from time import monotonic, process_time
from types import CodeType, FunctionType, ModuleType
from typing import Any, TypeVar, cast, overload

from tablesafe.work.metered import METER, GivenUp, OutOfSteps, metered

Function = TypeVar("Function", bound=Callable[..., Any])
LINE = "tablesafe compiles its inner loops, which takes some seconds, once on this machine.\n"
SOON, LATER = 80_000, 300_000
"""Steps that Python runs of each loop before one that was compiled before is loaded (about 60 ms of CPU), and then
before one that was not is compiled (about a quarter of a second; to compile a loop with those that it calls takes one
to fifteen seconds)."""


_at_once = False


@contextmanager
def compiling_at_once() -> Iterator[None]:
    """Every loop that is called is compiled, and stays so: for those who fill the cache, or measure."""
    global _at_once
    before, _at_once = _at_once, True
    try:
        yield
    finally:
        _at_once = before


class Compiled:
    """A function that is compiled when that pays: as long as there is little to do, Python runs it."""

    def __init__(self, function: FunctionType, *, nogil: bool) -> None:
        self.function, self._nogil = function, nogil
        self._loop: Callable[..., Any] | None = None
        self._metered: Callable[..., Any] | None = None
        self._steps, self._more = SOON, LATER
        self.__name__, self.__doc__, self.__module__ = function.__name__, function.__doc__, function.__module__

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        if _at_once:
            self._steps = 0
        while self._steps:
            try:
                answer, self._steps = METER.run(self.metered(), arguments, named, self._steps)
            except OutOfSteps:
                self._steps, self._more = 0 if self._is_kept() else self._more, 0
            except GivenUp:
                self._steps = 0
            else:
                return answer
        return self.loop()(*arguments, **named)

    def metered(self) -> Callable[..., Any]:
        """The loop as Python runs it, with a meter in it and in the loops that it calls."""
        if self._metered is None:
            names = dict(self.function.__globals__)
            self._metered = metered(self.function, names)
            _put_in(names, self.function.__code__, Compiled.metered)
        return self._metered

    def loop(self) -> Callable[..., Any]:
        """The loop as Numba knows it, with the loops that it calls in place of their declarations."""
        if self._loop is None:
            from numba import njit

            _watch_compiling()
            given = self.function
            names = dict(given.__globals__)
            function = FunctionType(given.__code__, names, given.__name__, given.__defaults__, given.__closure__)
            function.__module__, function.__qualname__ = given.__module__, given.__qualname__
            self._loop = cast("Callable[..., Any]", njit(cache=True, nogil=self._nogil)(function))
            _put_in(names, given.__code__, Compiled.loop)
        return self._loop

    def _is_kept(self) -> bool:
        """Whether it was compiled before, so that it need only be loaded: Numba has its index file."""
        loop: Any = self.loop()
        code = self.function.__code__
        name = f"{self.__module__.rpartition('.')[2]}.{self.function.__qualname__}-{code.co_firstlineno}."
        folder = Path(loop.stats.cache_path)
        return folder.is_dir() and any(file.name.startswith(name) for file in folder.glob("*.nbi"))


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


def _put_in(names: dict[str, Any], code: CodeType, kind: Callable[[Compiled], Any]) -> None:
    """Put the loops that a function uses, as one kind of loop, in place of their declarations, also in modules."""
    used = set(_names(code))
    names.update(_loops(names, used, kind))
    for name in used:
        if isinstance(module := names.get(name), ModuleType) and (loops := _loops(vars(module), used, kind)):
            shadow = ModuleType(module.__name__)
            vars(shadow).update(vars(module) | loops)
            names[name] = shadow


def _loops(names: Mapping[str, Any], used: Iterable[str], kind: Callable[[Compiled], Any]) -> dict[str, Any]:
    return {name: kind(names[name]) for name in used if isinstance(names.get(name), Compiled)}


class _Compiling:
    """How long this process has compiled loops so far, on the wall and on its processor: no budget counts that."""

    def __init__(self) -> None:
        self._wall = self._cpu = 0.0
        self._since: tuple[float, float] | None = None
        self._depth = 0

    def began(self) -> None:
        """Something is compiled, or something that it needs."""
        if not self._depth:
            self._since = monotonic(), process_time()
        self._depth += 1

    def ended(self) -> None:
        """It is compiled."""
        self._depth -= 1
        if not self._depth:
            wall, cpu = self._now()
            self._wall, self._cpu, self._since = wall, cpu, None

    @property
    def wall(self) -> float:
        """Seconds on the wall."""
        return self._now()[0]

    @property
    def cpu(self) -> float:
        """Seconds of the processor."""
        return self._now()[1]

    def _now(self) -> tuple[float, float]:
        if self._since is None:
            return self._wall, self._cpu
        return self._wall + monotonic() - self._since[0], self._cpu + process_time() - self._since[1]


COMPILING = _Compiling()


@cache
def _watch_compiling() -> None:
    """Count what compiling takes, and let people who watch know why nothing happens: one line, once."""
    event: Any = import_module("numba.core.event")
    tells = sys.stderr.isatty() or "ipykernel" in sys.modules

    class Watch(event.Listener):  # type: ignore[misc]
        """Hears when something is compiled and not only loaded."""

        told = not tells

        def on_start(self, _: Any) -> None:
            COMPILING.began()
            if not self.told:
                self.told = True
                sys.stderr.write(LINE)
                sys.stderr.flush()

        def on_end(self, _: Any) -> None:
            COMPILING.ended()

    event.register("numba:compile", Watch())
