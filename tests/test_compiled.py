"""Loops are compiled when they first run, find each other by name, and load nothing before."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tablesafe.work.compiled import LINE, Compiled, _tell_when_compiling, compiled


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
    _tell_when_compiling.cache_clear()

    @compiled
    def first(x: float) -> float:
        return x + 1

    @compiled
    def second(x: float) -> float:
        return x + 2

    assert (first(1.0), second(1.0)) == (2.0, 3.0)
    assert screen.getvalue() == times * LINE
