"""What every method, rule, attack and format must do, whoever wrote it: each that is registered is held to it."""

from __future__ import annotations

import dataclasses
import inspect
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import tablesafe as ts
from tablesafe.attack.registry import ATTACKS
from tablesafe.core.errors import InvalidInput
from tablesafe.core.sensitivity import Sensitivity
from tablesafe.io.dataset import Dataset
from tablesafe.io.formats import FORMATS
from tablesafe.methods import METHODS
from tablesafe.methods.abilities import needs_records, outcome, ready, time_limit_of
from tablesafe.rules import RULES
from tablesafe.work.budget import Budget
from tablesafe.work.run import OUTSIDERS, Run

OPTIONS: dict[str, dict[str, Any]] = {
    "pattern": {"file": "pattern.csv"},
    "cell_key": {"identifier": "person", "seed": 5},
    "noise": {"seed": 5},
    "swap": {"geography": ("region",), "match": ("sex",), "rate": 0.2, "seed": 5},
    "impute": {"columns": ("sex",), "rate": 0.1, "seed": 5},
    "any_of": {"rules": (ts.Threshold(n=3),)},
    "all_of": {"rules": (ts.Threshold(n=3),)},
    "levels": {"of": ts.Threshold(n=3)},
    "waiver": {"of": ts.Threshold(n=3), "cells": "known"},
    "request": {"of": ts.Threshold(n=3), "respondents": ("p07",)},
    "linear": {"weights": (1.0, -0.1)},
    "manual": {"cells": "known"},
}
"""What each kind needs to be made at all."""
COUNTS = {"cell_key", "small_counts", "swap", "impute"}
"""Methods that are for counts of records."""
SAID: dict[str, Any] = {
    "executor": ThreadPoolExecutor(1),
    "progress": print,
    "insiders": False,
    "unions": False,
    "possibly": "accept",
    "coalition": 2,
    "integers": True,
}
ONCE = {"suppress": tuple(SAID), "adjust": ("progress",), "round": ("progress",), "views": ("progress",)}
"""What says how to run, and which methods once took it as an option."""
NOT_HERE = {"views"}
"""Methods for problems of a kind of their own: `SuppressViews` takes views that `ts.views` makes."""


def made(registry: Any, name: str) -> Any:
    return registry[name](**OPTIONS.get(name, {}))


def records() -> pl.DataFrame:
    rng = np.random.default_rng(3)
    n = 60
    return pl.DataFrame(
        {
            "person": [f"p{i:02}" for i in range(n)],
            "region": rng.choice(["north", "south", "west"], n),
            "sex": rng.choice(["f", "m"], n),
            "income": rng.integers(1, 90, n),
            "known": np.zeros(n, dtype=np.int64),
        }
    )


def problem(*, counts: bool = False) -> ts.Problem:
    table = ts.tabulate(
        records(), dimensions={"region": None, "sex": None}, value=None if counts else "income", respondent="person",
        columns=["known"], largest=4,
    )  # fmt: skip
    found = ts.Problem(table, rules=[ts.Threshold(n=9)] if counts else [ts.Threshold(n=9, range_percent=10)])
    assert 0 < len(found.sensitive) < len(table)
    return found


def names_of(kind: Any) -> set[str]:
    return {spec.name for spec in dataclasses.fields(kind)}


class Memory(dict[str, bytes]):
    """Where answers are kept."""

    def put(self, key: str, data: bytes) -> None:
        self[key] = data


class NoFiles:
    """Files that hold nothing: a pattern that withholds all that is sensitive."""

    def __init__(self, given: ts.Problem) -> None:
        self.problem = given

    def pattern(self, file: str, **_: Any) -> Any:
        return self.problem.sensitivity.mask

    def perturbation(self, file: str, kind: str) -> Any:
        raise AssertionError("no method of this test names a perturbation table")


@pytest.mark.parametrize("kind", [*METHODS.values(), *RULES.values(), *ATTACKS.values()], ids=lambda k: k.__name__)
def test_options_are_frozen_and_named_and_say_what_they_are(kind: type[Any]) -> None:
    assert dataclasses.is_dataclass(kind)
    assert kind.__dataclass_params__.frozen  # type: ignore[attr-defined]
    assert (kind.__doc__ or "").strip()
    for spec in dataclasses.fields(kind):
        assert spec.kw_only or spec.default is not dataclasses.MISSING, spec.name
        assert spec.metadata.get("help"), f"{kind.__name__}.{spec.name} has no help"


@pytest.mark.parametrize("name", METHODS)
def test_a_method_declares_what_it_needs_and_has_no_option_that_says_how_to_run(name: str) -> None:
    method = made(METHODS, name)
    assert method.name == name
    assert isinstance(needs_records(method), bool)
    assert time_limit_of(method) is None or time_limit_of(method) > 0
    running = {*names_of(Run), *names_of(ts.Attackers)}
    assert not running & names_of(method)
    for option in names_of(method):
        assert not callable(getattr(method, option)), f"{name}.{option}: what is called while it runs belongs to a Run"
    for does in (method.protect, getattr(method, "outcome", method.protect)):
        assert list(inspect.signature(does).parameters) == ["problem", "run"]


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", sorted(set(METHODS) - NOT_HERE))
def test_a_release_is_of_its_problem_holds_the_truth_and_can_be_judged(name: str) -> None:
    given = problem(counts=name in COUNTS)
    truth = given.table.value.copy()
    method = ready(made(METHODS, name), NoFiles(given))
    release, tables = outcome(given, method, Run())
    assert release.table is given.table
    assert release.method
    assert ((release.lower <= truth) & (truth <= release.upper)).all()
    assert np.isnan(release.values[release.suppressed]).all()
    assert all(file.endswith(".csv") and isinstance(frame, pl.DataFrame) for file, frame in tables.items())
    assert (given.table.value == truth).all()
    assert ts.audit(given, release).verdict.lines
    again = ts.protect(given, method)
    assert np.array_equal(again.values, release.values, equal_nan=True)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", sorted(set(METHODS) - NOT_HERE))
def test_how_a_method_is_run_changes_no_answer_that_does_not_turn_on_it(name: str) -> None:
    """Who listens, who works and a budget that is long enough: the release is the same, and nothing is kept."""
    given = problem(counts=name in COUNTS)
    method = ready(made(METHODS, name), NoFiles(given))
    told: list[tuple[float, float]] = []
    with ThreadPoolExecutor(1) as executor:
        run = Run(
            budget=Budget(600), executor=executor, progress=lambda *now: told.append(now), memo=Memory(),
            attackers=OUTSIDERS,
        )  # fmt: skip
        one = ts.protect(given, method, run)
    two = ts.protect(given, method, Run(attackers=OUTSIDERS))
    assert np.array_equal(one.values, two.values, equal_nan=True)
    assert all(bound <= cost * (1 + 1e-9) for cost, bound in told)
    assert method == ready(made(METHODS, name), NoFiles(given))


@pytest.mark.parametrize("name", sorted(METHODS))
def test_what_says_how_to_run_is_taken_as_an_option_where_it_was_one_with_a_warning(name: str) -> None:
    once = ONCE.get(name, ())
    for option, value in SAID.items():
        if option not in once:
            with pytest.raises(TypeError, match=option):
                METHODS[name](**OPTIONS.get(name, {}), **{option: value})
            continue
        with pytest.warns(DeprecationWarning, match=f"{option}.*Run"):
            method: Any = METHODS[name](**OPTIONS.get(name, {}), **{option: value})
        told = dataclasses.replace(method).told
        assert getattr(told, option, None) is value or getattr(told.attackers, option) is value
        assert option not in repr(method)


@pytest.mark.parametrize("name", RULES)
def test_a_rule_gives_levels_to_sensitive_cells_and_to_no_other(name: str) -> None:
    table = problem(counts=name == "group").table
    found = made(RULES, name)(table)
    assert isinstance(found, Sensitivity)
    assert len(found.mask) == len(table)
    for level in (found.lower, found.upper, found.sliding):
        assert (level >= 0).all()
        assert (level[~found.mask] == 0).all()


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", ATTACKS)
def test_an_attack_guesses_within_what_the_release_allows(name: str) -> None:
    given = problem()
    release = ts.protect(given, ts.Withhold())
    estimate = ts.attack(given, release, made(ATTACKS, name))
    assert len(estimate.values) == len(given.table)
    assert len(estimate.disclosed) == len(given.sensitive)
    assert estimate.disclosed.dtype == np.bool_
    assert not np.isinf(estimate.values).any()


@pytest.mark.parametrize("own", [own for own in FORMATS if own.load()[1] is not None], ids=lambda own: own.name)
def test_what_a_format_writes_it_reads_again(own: Any, tmp_path: Path) -> None:
    if own.package is not None:
        pytest.importorskip(own.package)
    given = problem()
    release = ts.protect(given, ts.Withhold())
    path = tmp_path / f"release{own.endings[0]}"
    own.write(Dataset.of_release(release), path)
    assert path.stat().st_size > 0
    assert own.read(path) is not None


@pytest.mark.parametrize("own", FORMATS, ids=lambda own: own.name)
def test_a_file_that_is_nothing_of_the_kind_is_refused_in_words(own: Any, tmp_path: Path) -> None:
    if own.package is not None:
        pytest.skip("read by a package of others")
    path = tmp_path / f"nothing{own.endings[0]}"
    path.write_bytes(b"\x00\x01nothing")
    with pytest.raises(InvalidInput) as raised:
        own.read(path)
    assert path.name in str(raised.value)
