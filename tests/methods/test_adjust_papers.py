"""Controlled tabular adjustment against printed tables and reference optima."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from tablesafe.core.equations import Floats
from tablesafe.core.problem import Problem
from tablesafe.io.jj import read_jj
from tablesafe.methods.adjust import Adjust
from tablesafe.methods.adjust.costs import MEASURES, cost_of
from tablesafe.methods.adjust.directions import uniform
from tablesafe.methods.adjust.instance import Allowance, Instance, finer
from tablesafe.solve.least_change import LeastChange

PRINTED_QUANTITY = 4364
"""Quantity changed in Dandekar & Cox (2002), Table 4."""
BEST_OF_100_RANDOM = 3058
"""Table 7, constant cost."""


def test_alternating_is_as_good_as_the_printed_table(dandekar: Problem) -> None:
    value = dandekar.table.value
    printed = np.abs(np.asarray(dandekar.table.columns["synthetic_value_2002"]) - value)
    assert printed.sum() == PRINTED_QUANTITY
    ours = np.abs(Adjust(cost="value", directions="alternating").protect(dandekar).values - value)
    assert (ours * value).sum() <= (printed * value).sum()  # what both minimise
    assert ours.sum() <= 1.01 * printed.sum()
    assert np.count_nonzero(ours) <= np.count_nonzero(printed) + 5


@pytest.mark.parametrize("cost", list(MEASURES))
def test_the_optimum_is_proved_for_each_cost(dandekar: Problem, cost: str) -> None:
    release = Adjust(cost=cost, directions="optimal", time_limit_s=3600).protect(dandekar)
    assert release.solution is not None
    assert release.solution.status == "optimal"
    assert release.solution.gap <= 1e-6
    if cost == "constant":
        assert release.solution.objective <= 0.9 * BEST_OF_100_RANDOM


def reference(instances: Path) -> dict[str, dict[str, str]]:
    """The reference values by instance."""
    with (instances / "jj" / "cta_reference.csv").open(encoding="utf-8") as file:
        return {row["instance"]: row for row in csv.DictReader(file)}


def one_over_value(problem: Problem) -> Floats:
    """The cost of the reference values; frozen zeros do not move and may cost anything."""
    return 1.0 / np.maximum(problem.table.value, 1.0)


@pytest.mark.parametrize(
    "name", ["targus", "table7", "table8", "hier13x7x7d", "table1", "hier13", "hier13x13x13a", "hier16", "two5in6"]
)
def test_the_least_change_with_all_up_is_the_reference_optimum(instances: Path, name: str) -> None:
    problem = finer(read_jj(instances / "jj" / f"{name}.jj"), 2)
    instance = Instance.of(problem, cost_of(problem, one_over_value(problem)), Allowance(zeros=True))
    way = uniform(instance, 1)
    assert (way > 0).all()
    change = LeastChange(instance.matrix, instance.cost, instance.cost, instance.scale()).solve(instance.box(way))
    assert change is not None
    expected = float(reference(instances)[name]["lp_all_up_cost_1_over_value"])
    assert change.cost == pytest.approx(expected, rel=1e-6)
    assert proved(instance, change.prices, instance.box(way).least, instance.box(way).most) == pytest.approx(
        change.cost, rel=1e-6
    )


def proved(instance: Instance, prices: Floats, least: Floats, most: Floats) -> float:
    """What the prices prove, by weak duality: nothing within the bounds costs less."""
    worth = instance.matrix.T @ prices
    reduced = np.concatenate([instance.cost - worth, instance.cost + worth])
    return float(np.where(reduced > 0, reduced * least, reduced * np.where(reduced < 0, most, 0.0)).sum())


@pytest.mark.parametrize("name", ["targus", "table7", "table8"])
def test_either_direction_is_no_dearer_than_the_reference(instances: Path, name: str) -> None:
    problem = read_jj(instances / "jj" / f"{name}.jj")
    method = Adjust(cost=one_over_value(problem), zeros=True, decimals=2, time_limit_s=3600)
    solution = method.protect(problem).solution
    assert solution is not None
    assert solution.status == "optimal"
    assert solution.objective <= float(reference(instances)[name]["milp_two_sided_incumbent"]) * (1 + 1e-6)
