"""A loop run by Python itself for as many steps as it is given: what small tables need takes less than a compiler.

The loop is the same function, with a meter put into it: every turn of a loop and every call is a step. Beyond its
steps, or where numbers of a machine and of Python part ways (an overflow, a division by zero), it is given up, and
whatever it has changed is put back, so that it can be compiled and called as if nothing had been.
"""

from __future__ import annotations
import __future__

import ast
import inspect
from collections.abc import Callable, Mapping, Sized
from threading import RLock
from types import CodeType, FunctionType
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

Iterable = TypeVar("Iterable", bound=Sized)
COPIED_IN_A_STEP = 64
"""Entries of arrays that are put aside in about the time of a step."""


class GivenUp(Exception):
    """Python is not to run this: its source is not at hand, or only the compiled loop answers for its numbers."""


class OutOfSteps(GivenUp):
    """There was more to do than steps were given."""


class Meter:
    """The steps that are left to what is running now: one loop at a time, as Python runs one thread at a time."""

    def __init__(self) -> None:
        self.left, self._lock = 0, RLock()

    def turns(self, over: Iterable) -> Iterable:
        """What a loop goes over, when there are steps for all of it."""
        self.left -= len(over)
        if self.left < 0:
            raise OutOfSteps
        return over

    def turn(self) -> None:
        """One turn of a loop that does not know how often it turns, or one call."""
        self.left -= 1
        if self.left < 0:
            raise OutOfSteps

    def run(
        self, function: Callable[..., Any], arguments: Any, named: Mapping[str, Any], steps: int
    ) -> tuple[Any, int]:
        """What the function returns, and how many steps are left; or nothing has happened, and it is given up."""
        kept = Kept.of((arguments, tuple(named.values())), steps * COPIED_IN_A_STEP)
        with self._lock:
            self.left = steps - kept.entries // COPIED_IN_A_STEP
            try:
                with np.errstate(all="raise", under="ignore"):
                    return function(*arguments, **named), self.left
            except GivenUp:
                kept.put_back()
                raise
            except ArithmeticError:
                kept.put_back()
                raise GivenUp from None


METER = Meter()


class Kept(NamedTuple):
    """What a loop can change, as it was before."""

    arrays: list[tuple[NDArray[Any], NDArray[Any]]]
    randoms: list[tuple[np.random.Generator, Any]]
    entries: int

    @classmethod
    def of(cls, arguments: Any, most: int) -> Kept:
        """Copies of all arrays among the arguments, also inside tuples; given up where they are too large."""
        arrays: list[NDArray[Any]] = []
        randoms: list[np.random.Generator] = []
        _find(arguments, arrays, randoms)
        entries = sum(array.size for array in arrays)
        if entries > most:
            raise OutOfSteps
        states = [(random, random.bit_generator.state) for random in randoms]
        return cls([(array, array.copy()) for array in arrays if array.flags.writeable], states, entries)

    def put_back(self) -> None:
        for array, before in self.arrays:
            array[...] = before
        for random, state in self.randoms:
            random.bit_generator.state = state


def _find(argument: Any, arrays: list[NDArray[Any]], randoms: list[np.random.Generator]) -> None:
    if isinstance(argument, np.ndarray):
        arrays.append(argument)
    elif isinstance(argument, tuple):
        for each in argument:
            _find(each, arrays, randoms)
    elif isinstance(argument, np.random.Generator):
        randoms.append(argument)
    elif not isinstance(argument, bool | int | float | np.generic):
        raise GivenUp


class _Metering(ast.NodeTransformer):
    """Puts the meter into every loop, and before the first statement."""

    def visit_For(self, node: ast.For) -> ast.For:
        self.generic_visit(node)
        node.iter = ast.Call(ast.Attribute(ast.Name("METER", ast.Load()), "turns", ast.Load()), [node.iter], [])
        return node

    def visit_While(self, node: ast.While) -> ast.While:
        self.generic_visit(node)
        node.body.insert(0, _turn())
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        self.generic_visit(node)
        node.decorator_list = []
        node.body.insert(0, _turn())
        return node


def _turn() -> ast.stmt:
    return ast.Expr(ast.Call(ast.Attribute(ast.Name("METER", ast.Load()), "turn", ast.Load()), [], []))


def metered(function: FunctionType, names: dict[str, Any]) -> FunctionType:
    """The function with a meter in it, among these names; given up where its source is not at hand."""
    try:
        lines, first = inspect.getsourcelines(function)
        tree = ast.parse("".join(lines))
    except (OSError, SyntaxError):
        raise GivenUp from None
    if function.__closure__:
        raise GivenUp
    ast.increment_lineno(ast.fix_missing_locations(_Metering().visit(tree)), first - 1)
    code = compile(tree, function.__code__.co_filename, "exec", __future__.annotations.compiler_flag, dont_inherit=True)
    own = next(part for part in code.co_consts if isinstance(part, CodeType))
    names["METER"] = METER
    return FunctionType(own, names, function.__name__, function.__defaults__)
