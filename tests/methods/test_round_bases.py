"""Different bases in one table: what they mean, what is refused."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from oracle.counts import cube, hierarchical
from seeds import fresh
from tablesafe.core.errors import InvalidHierarchy, InvalidOption
from tablesafe.core.problem import Problem
from tablesafe.core.table import Table
from tablesafe.methods.round import Round
from tablesafe.methods.round.bases import bases_of


def table_of_regions() -> Table:
    return hierarchical(((3, 3), (4,)), 17.0, 1)


def test_the_base_of_a_cell_is_the_largest_that_its_codes_ask_for() -> None:
    table = table_of_regions()
    bases = bases_of(table, 5, {"a": (100, 10, 5), "b": {"b.1": 5, "b": 10}})
    depth = table.dimensions["a"].depth[table.codes[:, 0]]
    of_b = table.codes[:, 1] == table.dimensions["b"].position("b")
    assert (bases[depth == 0] == 100).all()
    assert (bases[depth == 1] == 10).all()
    assert (bases[(depth == 2) & of_b] == 10).all()
    assert (bases[(depth == 2) & ~of_b] == 5).all()


@pytest.mark.parametrize("seed", fresh(4, "every cell is a multiple of its own base and sums hold"))
def test_every_cell_is_a_multiple_of_its_own_base_and_sums_hold(seed: int) -> None:
    table = hierarchical(((3, 3), (4,)), 17.0, seed)
    option = {"a": (20, 10, 5)}
    bases = bases_of(table, 5, option)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        release = Round(base=5, bases=option, time_limit_s=600.0).protect(Problem(table))
    values = release.values.astype(np.int64)
    assert (values % bases == 0).all()
    assert not (table.equations.astype(np.int64) @ values).any()
    assert ((release.lower <= table.value) & (table.value <= release.upper)).all()
    off = np.abs(values - table.integers)
    assert (off <= release.upper - release.values).all()
    assert np.mean(off < bases) > 0.9


def test_bases_may_be_given_per_cell() -> None:
    table = cube(np.array([[3, 4], [6, 8]]))
    bases = np.where(table.is_total, 10, 5)
    release = Round(bases=bases).protect(Problem(table))
    assert (release.values % bases == 0).all()
    with pytest.raises(InvalidOption, match="2 entries"):
        Round(bases=np.array([5, 10])).protect(Problem(table))


@pytest.mark.parametrize("method", ["random", "conventional"])
def test_the_other_methods_take_bases_too(method: Any) -> None:
    table = table_of_regions()
    release = Round(method=method, bases={"a": (100, 10, 5)}).protect(Problem(table))
    bases = bases_of(table, 5, {"a": (100, 10, 5)})
    assert (release.values % bases == 0).all()
    assert (np.abs(release.values - table.value) < bases).all()


@pytest.mark.parametrize(
    ("bases", "said"),
    [
        ({"a": (12, 5)}, "divide each other"),
        ({"a": (5, 10)}, "never growing"),
        ({"a": (10, 1)}, "2 or more"),
        ({"a": ()}, "never growing"),
        ({"a": {"a.1": 7}}, "divide each other"),
        ([10, 5], "name dimensions"),
        (np.array([2.5]), "whole numbers"),
    ],
)
def test_bases_that_do_not_go_together_are_refused(bases: Any, said: str) -> None:
    with pytest.raises(InvalidOption, match=said):
        Round(base=5, bases=bases)


def test_bases_that_do_not_fit_the_table_are_refused_by_name() -> None:
    table = table_of_regions()
    with pytest.raises(InvalidOption, match="no dimension"):
        Round(bases={"region": (10,)}).protect(Problem(table))
    with pytest.raises(InvalidHierarchy, match=r"no code 'a\.9'"):
        Round(bases={"a": {"a.9": 10}}).protect(Problem(table))
    with pytest.raises(InvalidOption, match="more finely than its parts"):
        Round(bases={"a": {"a.1": 10}}).protect(Problem(table))
