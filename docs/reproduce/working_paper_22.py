"""Federal Committee on Statistical Methodology, Working Paper 22: rules side by side."""

from __future__ import annotations

import warnings
from itertools import product
from typing import Any

import numpy as np
import polars as pl

import tablesafe as ts
from reproduce.cases import dandekar, dandekar_pattern, loaded
from reproduce.layout import head, places, table
from tablesafe.rules.explorer import as_linear, convert, is_subadditive, sensitivity_of

NAME = "working-paper-22"
PAPER = (
    "Federal Committee on Statistical Methodology, *Statistical Policy Working Paper 22: Report on Statistical "
    "Disclosure Limitation Methodology*, chapter on methods for tabular data, Table 1 and technical notes."
)
RULES: dict[str, Any] = {
    "(2,85)": ts.Dominance(n=2, k=85),
    "17.65%": convert(ts.Dominance(n=2, k=85), "p_percent", conservatism="less"),
    "(1,73.91)": ts.Dominance(n=1, k=73.91),
    "35.29%": ts.PPercent(p=35.29),
}


def page() -> str:
    """The page, in Markdown."""
    case = loaded("sensitivity_rules.json")
    lines = head(
        NAME, "Working Paper 22: which rule is stricter", PAPER,
        "The paper relates the rules that offices use: for a p% rule, the pq rule with the same ratio is the same "
        "rule, and each has a dominance rule that is just less strict. `tablesafe rules convert` computes these.",
    )  # fmt: skip
    parts = (_table_1(case), _conversions(), _sensitivities(case), _slices(), _clean_up(), places(NAME))
    return "\n".join([*lines, *(line for part in parts for line in part)]) + "\n"


def _slices() -> list[str]:
    rows = []
    tables = {"Dandekar's table": dandekar()} | {f"made, seed {seed}": _made(seed) for seed in (1, 2, 31)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for words, problem in tables.items():
            by_slices = ts.experiments.slices(problem, cost="unit")
            findings = ts.audit(problem, by_slices, insiders=False, unions=False)
            closed = ts.protect(problem, ts.Suppress(algorithm="slices", cost="unit"))
            hidden = [int((one.suppressed & ~problem.sensitivity.mask).sum()) for one in (by_slices, closed)]
            opened = len({opening.cell for opening in findings.open})
            rows.append([words, len(problem.sensitive), hidden[0], opened, hidden[1]])
    headers = ["table", "sensitive", "complementary, by slices", "left open", "complementary, once closed"]  # fmt: skip
    return [
        "", "## Three dimensions by a sequence of two-dimensional networks", "",
        "The paper describes how offices protect a three-dimensional table with programs for two dimensions: each "
        "slice as a network, then the vertical relations, again and again until nothing changes. "
        '`ts.Suppress(algorithm="slices")` does this. Each step is feasible by itself, but no single table need follow '
        "all of them at once: the audit of the whole finds what is left open, and more is withheld. "
        "`ts.experiments.slices` gives the pattern as it is before that. Every cell costs 1. For Dandekar's table "
        "[23 suffice](dandekar-patterns.md), so safety is not the only price of slices.",
        *table(headers, rows),
    ]  # fmt: skip


def _made(seed: int) -> ts.Problem:
    """A sparse table of 3 × 4 × 3 inner cells, about one in seven sensitive, to be hidden by 30 percent."""
    random = np.random.default_rng(seed)
    values = random.integers(1, 60, (3, 4, 3)) * (random.random((3, 4, 3)) < 0.75)
    codes = [[*map(str, range(1, size + 1)), "Total"] for size in values.shape]
    for axis in range(3):
        values = np.concatenate([values, values.sum(axis=axis, keepdims=True)], axis=axis)
    rows = [(*place, float(value)) for place, value in zip(product(*codes), values.ravel(), strict=True)]
    sheet = ts.Table.from_cells(pl.DataFrame(rows, schema=[*"abc", "value"], orient="row"), dimensions=[*"abc"])
    mask = ~sheet.is_total & (sheet.value > 0) & (random.random(len(sheet)) < 0.15)
    return ts.Problem(sheet, sensitivity=ts.Sensitivity.of(mask, np.where(mask, np.ceil(sheet.value * 0.3), 0)))


def _clean_up() -> list[str]:
    problem, rows = dandekar(), []
    for name in ("44", "39"):
        given = dandekar_pattern(problem, f"suppression_{name}")
        cleaned = ts.protect(problem, ts.Suppress(keep=given, clean_up=True, cost="unit"))
        other = ~problem.sensitivity.mask
        counts = [(given & other).sum(), (cleaned.suppressed & ~given).sum(), (given & ~cleaned.suppressed).sum(),
                  (cleaned.suppressed & other).sum()]  # fmt: skip
        rows.append([f"{name} complements", *map(int, counts)])
    headers = ["pattern", "complementary", "added, to close what is open", "published again", "complementary, then"]
    return [
        "## Cleaning up", "",
        "A pattern made cell by cell withholds more than is needed, so a last pass publishes again what can be. "
        "`ts.Suppress(keep=pattern, clean_up=True)` does so with any pattern, here with those of "
        "[Dandekar](dandekar-patterns.md): what is open is closed first, then the dearest cells are tried one after "
        "another. Cells that the office itself withholds stay.",
        *table(headers, rows),
    ]  # fmt: skip


def _table_1(case: Any) -> list[str]:
    rows = []
    for row in case["table_1"]:
        p: Any = convert(ts.PQ(p=100 / row["q_over_p"], q=100), "p_percent", conservatism="more")
        one: Any = convert(p, "dominance_1", conservatism="less")
        two: Any = convert(p, "dominance_2", conservatism="less")
        rows.append(
            [f"q/p = {row['q_over_p']}", *(f"{row[key]:.1f}" for key in ("p", "k1", "k2")), f"{p.p:.1f}",
             f"{one.k:.1f}", f"{two.k:.1f}"]
        )  # fmt: skip
    headers = ["pq rule", "p, printed", "k of (1,k), printed", "k of (2,k), printed", "p, ours", "k of (1,k), ours",
               "k of (2,k), ours"]  # fmt: skip
    return ["", "## Table 1", *table(headers, rows)]


def _conversions() -> list[str]:
    two = ts.Dominance(n=2, k=85)
    less: Any = convert(two, "p_percent", conservatism="less")
    more: Any = convert(two, "p_percent", conservatism="more")
    one: Any = convert(more, "dominance_1", conservatism="less")
    rows = [
        ["p just less strict than (2,85)", "17.65", f"{less.p:.2f}"],
        ["p just stricter than (2,85)", "35.29", f"{more.p:.2f}"],
        ["k of the (1,k) through the same point", "73.91", f"{one.k:.2f}"],
    ]
    return ["## The rules of the example", *table(["rule", "printed", "ours"], rows)]


def _sensitivities(case: Any) -> list[str]:
    from dataclasses import replace

    example = case["example"]
    one, two, three = (example[f"cell_{i}"] for i in (1, 2, 3))
    cells = {"union_1_2": one + two, "total": one + two + three}
    words = {"union_1_2": "cells 1 and 2 together", "total": "the total"}
    rows = []
    for cell, contributions in cells.items():
        for name, rule in RULES.items():
            linear = as_linear(rule)
            rounded = sensitivity_of(replace(linear, rest=round(linear.rest, 3)), contributions)
            printed = example["sensitivities"][cell][name]
            rows.append(
                [
                    f"{words[cell]}, {name}",
                    f"{printed:.2f}",
                    f"{rounded:.2f}",
                    f"{sensitivity_of(rule, contributions):.2f}",
                ]
            )
    lines = [
        "## Technical notes: why a union may be safe", "",
        "Three cells: one respondent with 100; twenty with 1 each; one with 100. Nobody reports in two of them. "
        "Sensitive is what is above zero. The paper computes with weights rounded to three decimals (5.667, 2.833, "
        "2.834); so does the third column. The last is without that rounding.",
        *table(["sensitivity of", "printed", "ours, weights as printed", "ours, exact"], rows),
    ]  # fmt: skip
    additive = ", ".join(f"{name}: {'yes' if is_subadditive(rule) else 'no'}" for name, rule in RULES.items())
    return [*lines, f"Subadditive, so that a union of safe cells is safe: {additive}."]
