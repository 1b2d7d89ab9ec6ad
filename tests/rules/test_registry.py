"""Every rule keeps the same contract: a plain dataclass that explains its options, and levels only where sensitive."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, get_type_hints

import numpy as np
import pytest

from tablesafe import rules
from tablesafe.core.table import Table
from tablesafe.rules import RULES, PPercent

MakeTable = Callable[..., Table]


NEEDED: dict[str, dict[str, Any]] = {
    "linear": {"weights": (1.0, 0.0), "rest": -10.0},
    "manual": {"cells": "marked", "range_percent": 20},
    "any_of": {"rules": (PPercent(),)},
    "all_of": {"rules": (PPercent(),)},
    "levels": {"of": PPercent(), "sliding": 1},
    "waiver": {"of": PPercent(), "cells": "marked"},
    "request": {"of": PPercent(), "request": "marked"},
}


def test_public_names_are_kept() -> None:
    assert set(rules.__all__) == {
        "RULES", "Rule", "Sensitivity", "Threshold", "ZeroCells", "PPercent", "PQ", "Dominance", "LinearSensitivity",
        "Manual", "AnyOf", "AllOf", "Levels", "Waiver", "RequestRule", "GroupDisclosure",
    }  # fmt: skip
    assert {cls.__name__ for cls in RULES.values()} == set(rules.__all__) - {"RULES", "Rule", "Sensitivity"}


@pytest.mark.parametrize("name", RULES)
def test_a_rule_is_a_frozen_dataclass_whose_options_explain_themselves(name: str) -> None:
    cls = RULES[name]
    hints = get_type_hints(cls)
    assert cls.__doc__
    for option in dataclasses.fields(cls):
        assert option.kw_only or (name, option.name) == ("threshold", "n"), "only what cannot be mistaken has no name"
        assert option.metadata["help"]
        assert option.name in hints
    rule = cls(**NEEDED.get(name, {}))
    with pytest.raises((dataclasses.FrozenInstanceError, AttributeError, TypeError)):
        rule.p = 3
    with pytest.raises(TypeError):
        cls(1, 2)
    assert rule == cls(**NEEDED.get(name, {}))


@pytest.mark.parametrize("name", RULES)
def test_a_rule_leaves_empty_and_structural_cells_alone_and_gives_levels_only_where_sensitive(
    name: str, make: MakeTable
) -> None:
    table = make(
        [[0, 0], [0, 0], [100, 0], [30, 30], [0, 0]],
        rest=[0, 0, 0, 60, 0],
        count=[0, 0, 1, 9, 3],
        structural_zero=[1, 0, 0, 0, 0],
        marked=[0, 0, 1, 0, 0],
    )
    found = RULES[name](**NEEDED.get(name, {}))(table)
    assert not found.mask[:2].any()
    for level in (found.lower, found.upper, found.sliding):
        assert not level[~found.mask].any()
        assert (level >= 0).all()
        assert np.isfinite(level).all()
    assert [bool(found.why(i)) for i in range(len(table))] == found.mask.tolist()
