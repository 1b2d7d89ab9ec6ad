"""Loops are compiled when they first run, find each other by name, and load nothing before."""

from __future__ import annotations

import subprocess
import sys

import numpy as np

from tablesafe.work.compiled import Compiled, compiled


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
