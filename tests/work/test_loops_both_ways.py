"""What Python runs of a small table and what is compiled give the same release, findings and proofs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import polars as pl
import pytest

import tablesafe as ts
from seeds import fresh
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release
from tablesafe.work.compiled import Compiled
from tablesafe.work.metered import METER


@contextmanager
def loops(how: Callable[..., Any]) -> Iterator[None]:
    """Every loop is run in one way."""
    usual = Compiled.__call__
    Compiled.__call__ = how  # type: ignore[method-assign]
    try:
        yield
    finally:
        Compiled.__call__ = usual  # type: ignore[method-assign]


def by_python(loop: Compiled, *arguments: Any, **named: Any) -> Any:
    return METER.run(loop.metered(), arguments, named, 10**9)[0]


def by_numba(loop: Compiled, *arguments: Any, **named: Any) -> Any:
    return loop.loop()(*arguments, **named)


def records(seed: int) -> pl.DataFrame:
    random = np.random.default_rng(seed)
    n = 150
    return pl.DataFrame(
        {
            "a": random.choice(list("pqrs"), n),
            "b": random.choice(list("uvwxy"), n),
            "firm": random.integers(0, 60, n),
            "value": random.integers(0, 400, n),
        }
    )


def protected(seed: int, method: Any) -> tuple[Problem, Release, Any]:
    regions = ts.Hierarchy.from_pairs(
        [("Total", "N"), ("Total", "S"), *(("N", c) for c in "pq"), ("S", "r"), ("S", "s")]
    )
    table = ts.tabulate(records(seed), dimensions={"a": regions, "b": None}, value="value", respondent="firm")
    problem = ts.Problem(table, rules=[ts.Threshold(n=3), ts.PPercent(p=10)])
    release = ts.protect(problem, method)
    return problem, release, ts.audit(problem, release)


@pytest.mark.parametrize(
    "method",
    [
        ts.Suppress(algorithm="optimal"),
        ts.Suppress(algorithm="sequential"),
        ts.Suppress(algorithm="modular"),
        ts.Round(base=5),
    ],
    ids=["optimal", "sequential", "modular", "round"],
)
@pytest.mark.parametrize("seed", fresh(1, "loops both ways"))
def test_a_release_is_the_same_by_python_and_compiled(method: Any, seed: int) -> None:
    found = []
    for how in (by_python, by_numba):
        with loops(how):
            found.append(protected(seed, method))
    (one, by, judged), (other, also, judged_too) = found
    assert (one.table.value == other.table.value).all()
    assert np.array_equal(one.table.largest(2), other.table.largest(2))
    assert np.array_equal(by.values, also.values, equal_nan=True)
    assert (by.suppressed == also.suppressed).all()
    assert judged.frame().equals(judged_too.frame())
