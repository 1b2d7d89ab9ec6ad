"""Federal Committee on Statistical Methodology, Statistical Policy Working Paper 22: Table 1 and the technical notes.

The sensitivities that the paper prints follow from weights rounded to three decimals (5.667, 2.833, 2.834).
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pytest

from tablesafe.rules import PQ, Dominance, PPercent, Rule
from tablesafe.rules.explorer import as_linear, convert, is_subadditive, sensitivity_of

RULES: dict[str, Rule] = {
    "(2,85)": Dominance(n=2, k=85),
    "17.65%": convert(Dominance(n=2, k=85), "p_percent", conservatism="less"),
    "(1,73.91)": Dominance(n=1, k=73.91),
    "35.29%": PPercent(p=35.29),
}


@pytest.fixture(scope="module")
def paper(paper_data: Path) -> Any:
    return json.loads((paper_data / "sensitivity_rules.json").read_text(encoding="utf-8"))


def cells(paper: Any) -> dict[str, list[float]]:
    one, two, three = (paper["example"][f"cell_{i}"] for i in (1, 2, 3))
    return {"cell_1": one, "cell_2": two, "cell_3": three, "union_1_2": one + two, "total": one + two + three}


def test_table_1_relates_the_rules_as_printed(paper: Any) -> None:
    """The p% rule is just more conservative than (1,k1) and (2,k2), and is the pq rule with the same ratio q/p."""
    assert len(paper["table_1"]) == 4
    for row in paper["table_1"]:
        pq = PQ(p=100 / row["q_over_p"], q=100)
        p = convert(pq, "p_percent", conservatism="more")
        assert isinstance(p, PPercent)
        found = {
            "p": p.p,
            "k1": convert(p, "dominance_1", conservatism="less").k,  # type: ignore[union-attr]
            "k2": convert(p, "dominance_2", conservatism="less").k,  # type: ignore[union-attr]
        }
        assert {name: f"{value:.1f}" for name, value in found.items()} == {
            name: f"{row[name]:.1f}" for name in ("p", "k1", "k2")
        }


def p_of(rule: Rule, conservatism: Literal["more", "less"]) -> float:
    found = convert(rule, "p_percent", conservatism=conservatism)
    assert isinstance(found, PPercent)
    return found.p / 100


@pytest.mark.parametrize("k", [75.0, 85.0, 92.3])
def test_conversions_follow_the_printed_formulas(k: float) -> None:
    assert p_of(Dominance(n=2, k=k), "less") == pytest.approx(100 / k - 1)
    assert p_of(Dominance(n=2, k=k), "more") == pytest.approx(200 / k - 2)
    assert p_of(Dominance(n=1, k=k), "more") == pytest.approx(100 / k - 1)


def test_the_rules_of_the_example_belong_together() -> None:
    """(2,85) lies between 17.65% and 35.29%; (1,73.91) meets the latter where the second contributor is nothing."""
    two = Dominance(n=2, k=85)
    one = convert(PPercent(p=100 * p_of(two, "more")), "dominance_1", conservatism="less")
    assert isinstance(one, Dominance)
    assert (f"{p_of(two, 'less'):.4f}", f"{p_of(two, 'more'):.4f}", f"{one.k:.2f}") == ("0.1765", "0.3529", "73.91")


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("cell", ["union_1_2", "total"])
def test_sensitivities_are_as_printed(paper: Any, cell: str, name: str) -> None:
    linear = as_linear(RULES[name])
    printed = replace(linear, rest=round(linear.rest, 3))
    assert sensitivity_of(printed, cells(paper)[cell]) == pytest.approx(
        paper["example"]["sensitivities"][cell][name], abs=0.01
    )


@pytest.mark.parametrize("name", RULES)
def test_the_example_shows_why_a_union_may_be_safe(paper: Any, name: str) -> None:
    """Subadditive: the total is never more sensitive than the union of the first two cells and the third together."""
    rule, of = RULES[name], cells(paper)
    assert is_subadditive(rule)
    parts = sensitivity_of(rule, of["union_1_2"]) + sensitivity_of(rule, of["cell_3"])
    assert sensitivity_of(rule, of["total"]) <= parts
