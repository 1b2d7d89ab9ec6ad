"""Loops are compiled when that pays, find each other by name, and load nothing before."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import pytest

from tablesafe.work.budget import Budget
from tablesafe.work.compiled import (
    COMPILING,
    LATER,
    LINE,
    SOON,
    Compiled,
    _watch_compiling,
    compiled,
    compiling_at_once,
)


@compiled
def _square(x: float) -> float:
    return x * x


@compiled
def _sum_of_squares(values: np.ndarray) -> float:
    total = 0.0
    for value in values:
        total += _square(value)
    return total


@compiled(nogil=True)
def _factorial(n: int) -> int:
    if n <= 1:
        return 1
    return n * _factorial(n - 1)


def test_a_loop_calls_another_and_itself() -> None:
    assert _sum_of_squares(np.arange(5.0)) == 30.0
    assert _factorial(10) == 3_628_800
    assert isinstance(_square, Compiled)
    assert hasattr(_square.loop(), "py_func"), "not compiled by Numba"


def test_declaring_loops_loads_no_compiler() -> None:
    code = "import sys, tablesafe.job, tablesafe.methods; assert not {'numba', 'llvmlite'} & set(sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@compiled
def _spend(array: np.ndarray, random: np.random.Generator, turns: int) -> float:
    drawn = 0.0
    for i in range(turns):
        array[i % len(array)] += 1
        drawn += random.random()
    return drawn


@compiled
def _wrapped(a: int, b: int) -> int:
    product = np.empty(1, np.int64)
    product[0] = a
    for _ in range(2):
        product[0] *= b
    return int(product[0])


@pytest.fixture
def unused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loops as if they had not been called before."""
    for loop in (_spend, _wrapped):
        monkeypatch.setattr(loop, "_loop", None)
        monkeypatch.setattr(loop, "_steps", SOON)
        monkeypatch.setattr(loop, "_more", LATER)


def _is_compiled(loop: Any) -> bool:
    return bool(loop._loop is not None and loop._loop.overloads)


@pytest.mark.usefixtures("unused")
def test_a_little_work_is_not_compiled_and_more_is_with_all_that_was_changed_put_back() -> None:
    array, random = np.zeros(3, np.int64), np.random.default_rng(5)
    _spend(array, random, 30)
    assert not _is_compiled(_spend)
    assert array.tolist() == [10, 10, 10]
    turns = SOON + LATER
    drawn = _spend(array, random, turns)
    assert _is_compiled(_spend)
    assert array.sum() == 30 + turns, "what Python had done before it gave up was not taken back"
    again = np.random.default_rng(5)
    again.random(30)
    assert drawn == pytest.approx(again.random(turns).sum(), rel=1e-9)
    assert random.random() == again.random()


@pytest.mark.usefixtures("unused")
def test_numbers_beyond_the_machine_are_left_to_the_compiled_loop() -> None:
    assert _wrapped(7, 9) == 567
    assert not _is_compiled(_wrapped)
    assert _wrapped(2**40, 2**20) == 0, "of 2**80 a machine keeps the last 64 bits"
    assert _is_compiled(_wrapped)


@pytest.mark.usefixtures("unused")
def test_who_fills_the_cache_has_all_compiled_at_once() -> None:
    with compiling_at_once():
        assert _wrapped(7, 9) == 567
    assert _is_compiled(_wrapped)
    assert _wrapped._steps == 0, "Python would run it again"


def test_what_was_compiled_before_is_found_on_the_disk() -> None:
    _square.loop()(3.0)
    assert _square._is_kept()
    fresh = Compiled(_unkept, nogil=False)
    assert not fresh._is_kept()


def _unkept(x: float) -> float:
    return x


class Screen(io.StringIO):
    """Standard error of somebody who watches."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("screen", "times"), [(Screen(), 1), (io.StringIO(), 0)])
def test_who_watches_is_told_once_that_something_is_compiled_and_nobody_else_is(
    screen: io.StringIO, times: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("numba.config.CACHE_DIR", str(tmp_path))  # nothing is compiled yet
    monkeypatch.setattr(sys, "stderr", screen)
    _watch_compiling.cache_clear()

    @compiled
    def first(x: float) -> float:
        return x + 1

    @compiled
    def second(x: float) -> float:
        return x + 2

    assert (first(1.0), second(1.0)) == (2.0, 3.0)
    assert screen.getvalue() == times * LINE


def test_what_compiling_takes_is_taken_from_no_budget(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("numba.config.CACHE_DIR", str(tmp_path))  # nothing is compiled yet
    before, begun, budget = COMPILING.cpu, process_time(), Budget(1_000.0)

    @compiled
    def sorted_sum(values: np.ndarray) -> float:
        return float(np.sort(values).sum() + np.unique(values).sum())

    assert sorted_sum.loop()(np.arange(4.0)) == 12.0  # type: ignore[attr-defined]
    compiling, whole = COMPILING.cpu - before, process_time() - begun
    assert 0 < compiling < whole
    assert 1_000.0 - budget.left <= whole - compiling + 0.5 * compiling
