"""Methods that search tell the cost of their best answer and what is proven about it, while they go on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import tablesafe as ts
from tablesafe.core.problem import Problem
from tablesafe.report.progress import Event


def cube(*sizes: int, seed: int = 4, most: int = 9) -> Problem:
    """A table of counts with flat dimensions: in three dimensions no linear program rounds it."""
    random = np.random.default_rng(seed)
    names = [f"d{i}" for i in range(len(sizes))]
    codes = [[f"{name}{j}" for j in range(n)] for name, n in zip(names, sizes, strict=True)]
    grid = np.array(np.meshgrid(*codes, indexing="ij"), dtype=object).reshape(len(sizes), -1)
    records = pl.DataFrame({name: grid[i].tolist() for i, name in enumerate(names)})
    copies = pl.Series(random.integers(0, most, grid.shape[1]))
    frame = records.with_columns(copies.alias("n")).select(pl.all().repeat_by("n").explode()).drop("n").drop_nulls()
    return Problem(ts.tabulate(frame, dimensions=dict.fromkeys(names)), rules=[ts.Threshold(n=3)])


def views(seed: int = 5, size: int = 4) -> Problem:
    random = np.random.default_rng(seed)
    counts = random.integers(0, 60, (size, size + 1, size))
    return ts.views(counts, dimensions=("a", "b", "c"), published=[("a", "b"), ("b", "c")], confidential=[("a", "c")])


def magnitudes() -> Problem:
    random = np.random.default_rng(2)
    codes = [(f"r{i}", f"c{j}") for i in range(6) for j in range(5)]
    frame = pl.DataFrame(
        {"r": [a for a, _ in codes], "c": [b for _, b in codes], "value": random.integers(10, 900, len(codes))}
    )
    table = ts.Table.from_cells(frame, dimensions={"r": None, "c": None}, value="value", missing_totals="compute")
    mask = ~table.is_total & (random.random(len(table)) < 0.15)
    return Problem(table, sensitivity=ts.Sensitivity.of(mask, 0.1 * table.value))


CASES: dict[str, tuple[Any, Callable[[], Problem]]] = {
    "suppress": (ts.Suppress(), magnitudes),
    "intervals": (ts.PublishIntervals(), magnitudes),
    "adjust": (ts.Adjust(), magnitudes),
    "round": (ts.Round(base=5), lambda: cube(5, 6)),
    "round, three dimensions": (ts.Round(base=5, time_limit_s=2), lambda: cube(5, 4, 4)),
    "round, squared": (ts.Round(base=7, distance="squared"), lambda: cube(4, 3, 3)),
    "round, beyond": (ts.Round(base=3, time_limit_s=1), lambda: cube(3, 3, 3, 3, most=4)),
    "views": (ts.SuppressViews(), views),
    "views, tabu": (ts.SuppressViews(algorithm="tabu"), lambda: views(9, 6)),
    "views, in general": (
        ts.SuppressViews(time_limit_s=3),
        lambda: ts.views(
            np.random.default_rng(3).integers(0, 90, (3, 3, 3)), dimensions="abc",
            published=[("a", "b"), ("b", "c"), ("b",)], confidential=[("a", "c")],
        ),
    ),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:No rounding")
@pytest.mark.parametrize("name", CASES)
def test_a_search_tells_where_it_is_and_ends_with_its_answer(name: str) -> None:
    """No bound is above the cost told with it, none is above the answer's, and the last word is the answer."""
    method, problem = CASES[name]
    trace = ts.Trace()
    release = ts.protect(problem(), method, ts.Run(progress=trace))
    solution = release.solution
    assert solution is not None
    assert trace.steps
    for _, cost, bound in trace.steps:
        assert np.isfinite(cost)
        assert bound <= cost + 1e-9 * (1 + abs(cost))
        assert bound <= solution.objective * (1 + 1e-6) + 1e-6
    if name not in {"intervals", "suppress", "views, in general"}:  # there, repair comes after the search
        assert trace.steps[-1][1] == pytest.approx(solution.objective)
        assert trace.steps[-1][2] == pytest.approx(solution.bound, abs=1e-6)


@pytest.mark.parametrize("randomise", [0.0, 0.9])
def test_no_bound_is_above_a_cost_where_respondents_cost_more(randomise: float) -> None:
    """The bound on patterns that are safe from everybody was told with the cost of one that outsiders alone are kept
    out of (1,640,394 and 2,002,707), and disturbed costs gave bounds above what the answer costs."""
    for seed in (1, 3, 11):
        random = np.random.default_rng(seed)
        drawn = {
            "a": [f"a{i}" for i in random.integers(0, 7, 160)],
            "b": [f"b{i}" for i in random.integers(0, 6, 160)],
            "value": np.round(random.pareto(1.1, 160) * 50 + 1).astype(np.int64),
            "who": [f"r{i}" for i in random.integers(0, 70, 160)],
        }
        table = ts.tabulate(pl.DataFrame(drawn), dimensions={"a": None, "b": None}, value="value", respondent="who")
        trace = ts.Trace()
        problem = Problem(table, rules=[ts.Threshold(n=3), ts.PPercent(p=10)])
        method = ts.Suppress(randomise=randomise, seed=3)
        solution = ts.protect(problem, method, ts.Run(progress=trace)).solution
        assert solution is not None
        assert sum(price.cost for price in solution.prices[1:]) > 0, "respondents cost nothing: nothing is tried"
        for _, cost, bound in trace.steps:
            assert not bound > cost * (1 + 1e-9)  # a cost may not be known yet
            assert bound <= solution.objective * (1 + 1e-9)


def test_being_told_changes_nothing() -> None:
    for method in (ts.Round(base=5), ts.SuppressViews()):
        problem = views() if isinstance(method, ts.SuppressViews) else cube(4, 3, 3)
        one, two = (ts.protect(problem, method, run).values for run in (None, ts.Run(progress=ts.Trace())))
        assert np.array_equal(one, two, equal_nan=True)


def test_an_interrupt_keeps_the_best_pattern_of_views() -> None:
    """The first report raises Ctrl-C: the pattern found until then is checked and kept."""
    told: list[float] = []

    def stop(cost: float, bound: float) -> None:
        told.append(cost)
        if len(told) == 1:
            raise KeyboardInterrupt

    problem = views(9, 6)
    with pytest.warns(UserWarning, match="best pattern so far"):
        release = ts.protect(problem, ts.SuppressViews(algorithm="tabu"), ts.Run(progress=stop))
    assert ts.audit(problem, release, insiders=False, unions=False).safe


@pytest.mark.parametrize("method", ['name = "round"\nbase = 5', 'name = "suppress"', 'name = "adjust"'])
def test_a_run_tells_of_its_search_and_draws_it(tmp_path: Path, method: str) -> None:
    """Bound and best answer reach those who listen to a run, its trace, and the internal page."""
    lines = [f"p{i},a{i % 3},b{i * 7 % 4},{5 + i * 31 % 40}" for i in range(60)]
    (tmp_path / "people.csv").write_text("person,a,b,value\n" + "\n".join(lines) + "\n")
    value = "" if "round" in method else '[response]\nvalue = "value"\n'
    (tmp_path / "job.toml").write_text(
        f'[source]\nfile = "people.csv"\nrespondent = "person"\n[dimensions.a]\n[dimensions.b]\n{value}'
        f'[[rules]]\nrule = "threshold"\nn = 6\n[method]\n{method}\n[output]\nforce = true\nplots = ["progress.svg"]\n'
    )
    told: list[Event] = []
    result = ts.run(tmp_path / "job.toml", on_event=told.append)
    assert any(event.incumbent is not None for event in told)
    assert result.trace is not None
    assert result.trace.steps
    assert (result.internal / "progress.svg").exists()
    assert 'class="plot progress"' in (result.internal / "report.html").read_text(encoding="utf-8")
