"""Whenever `difference` says safe, a brute-force attacker who has all the published tables finds no set that fails."""

from __future__ import annotations

from importlib import import_module
from itertools import product
from typing import Any

import numpy as np
import polars as pl
import pytest

import tablesafe as ts
from oracle.differences import Attack, Cell, Row, Sheet, cells_of
from seeds import fresh

N = 3
KNOWN = {"records": 8, "releases": 8, "tables": 5, "cells": 5}
"""Seeds of tables that are called safe, by either rule: only there the attacker has something to object to."""


def too_few(shares: dict[str, int]) -> bool:
    return 0 < len(shares) < N


def too_close(shares: dict[str, int]) -> bool:
    """The p% rule with p = 20: the second largest estimates the largest by what the others leave."""
    amounts = sorted(shares.values(), reverse=True)
    return sum(amounts[2:]) < 0.2 * amounts[0]


FILTERS = {"all": lambda row: True, "kept": lambda row: row["c"] == 1, "old": lambda row: int(str(row["d"])) >= 1}
SQL = {"all": None, "kept": "c = 1", "old": "d >= 1"}
SPANS = [("a",), ("b",), ("a", "b")]


def records(random: np.random.Generator) -> list[Row]:
    """Firms that report in several cells; some cells have few of them."""
    rows: list[Row] = []
    for a in "xyz"[: random.integers(2, 4)]:
        for b in "pqr"[: random.integers(2, 4)]:
            for _ in range(int(random.choice([0, 1, 2, 4, 5]))):
                firm = f"f{random.integers(0, 9)}"
                rows.append(
                    {"a": a, "b": b, "c": int(random.random() < 0.8), "d": int(random.integers(0, 5)), "firm": firm,
                     "value": int(random.integers(1, 40))}
                )  # fmt: skip
    return rows


def sheets_of(random: np.random.Generator, rows: list[Row], *, filters: list[str], fails: Any) -> list[Sheet]:
    """Two or three tables; what fails by itself is withheld, and more at random."""
    found = []
    for k in range(int(random.integers(2, 4))):
        word = str(random.choice(filters))
        sheet = Sheet(f"{word} {k}", SPANS[random.integers(0, 3)], FILTERS[word], frozenset())
        cells = cells_of(rows, sheet)
        shares = {code: merged(rows, inside) for code, inside in cells.items()}
        share = random.choice([0.1, 0.4, 0.7])
        hidden = frozenset(c for c in cells if fails(shares[c]) or random.random() < share)
        # a code alone in its dimension is its total
        several = all(len({code[d] for code in cells}) > 2 for d in range(len(sheet.dimensions)))
        if cells and several and len(hidden) < len(cells):
            found.append(Sheet(sheet.name, sheet.dimensions, sheet.where, hidden))
    return found


def merged(rows: list[Row], inside: frozenset[int]) -> dict[str, int]:
    out: dict[str, int] = {}
    for i in inside:
        firm = str(rows[i]["firm"])
        out[firm] = out.get(firm, 0) + int(str(rows[i]["value"]))
    return out


def mask_of(table: ts.Table, withheld: frozenset[Cell]) -> np.ndarray[Any, Any]:
    codes = list(zip(*(column.to_list() for column in table.code_columns().values()), strict=True))
    return np.array([code in withheld for code in codes])


def released(frame: pl.DataFrame, sheet: Sheet, *, anonymous: bool) -> ts.Release:
    """A sheet as a release; `anonymous`, of a table that was read from a file with numbers of contributors."""
    where = SQL[sheet.name.split()[0]]
    table = ts.tabulate(frame, dimensions=list(sheet.dimensions), value="value", respondent="firm", where=where)
    if anonymous:
        cells = table.cells().select(*sheet.dimensions, "value", "count")
        table = ts.Table.from_cells(cells, dimensions=list(sheet.dimensions), count="count", response="value")
    return ts.Release.from_suppression(ts.Problem(table), mask_of(table, sheet.withheld))


def published(sheet: Sheet, frame: pl.DataFrame, *, as_release: bool) -> ts.Published:
    rows = [dict(zip(sheet.dimensions, code, strict=True)) for code in sorted(sheet.withheld)]
    hidden: Any = pl.DataFrame(rows, schema=dict.fromkeys(sheet.dimensions, pl.String)) if rows else None
    if as_release:
        hidden = released(frame, sheet, anonymous=False)
    where = SQL[sheet.name.split()[0]]
    return ts.Published(name=sheet.name, dimensions=list(sheet.dimensions), where=where, withheld=hidden)


def looked_at(seed: int, how: str, rule: str) -> tuple[bool, bool]:
    """Whether the releases of a seed could be compared, and were called safe; fails if the attacker knows better."""
    random = np.random.default_rng(seed)
    rows = records(random)
    fails = too_few if rule == "threshold" else too_close
    filters = ["all"] if how in {"tables", "cells"} else list(FILTERS)
    sheets = sheets_of(random, rows, filters=filters, fails=fails) if rows else []
    if len(sheets) < 2:
        return False, False
    frame = pl.DataFrame(rows)
    rules: list[Any] = [ts.Threshold(n=N) if rule == "threshold" else ts.PPercent(p=20)]
    if how in {"tables", "cells"}:
        found = ts.difference({s.name: released(frame, s, anonymous=how == "cells") for s in sheets}, rules=rules)
    else:
        given = [published(sheet, frame, as_release=how == "releases") for sheet in sheets]
        found = ts.difference(frame, given, rules=rules, value="value", respondent="firm")
    if not found.safe:
        return True, False
    # without records nobody knows which combinations of codes are empty
    attack = Attack.of(rows, sheets, empty=("a", "b") if how == "cells" else ())
    assert not list(attack.by_combinations(fails)), (seed, how)
    if rule == "p":
        withheld_are_hidden(rows, sheets, attack)
    candidates = attack.small(N) if rule == "threshold" else (s for s in attack.failing(fails) if len(s) <= 4)
    assert not list(attack.by_programs(candidates)), (seed, how)
    if how != "cells":  # there nobody knows who contributes
        respondents_learn_nothing(rows, sheets, attack, rule)
    return True, True


def respondents_learn_nothing(rows: list[Row], sheets: list[Sheet], attack: Attack, rule: str) -> None:
    """Nobody who knows its own contributions derives a withheld cell of few, or comes too close to another in it."""
    inside = [cells_of(rows, sheet)[code] for sheet in sheets for code in sheet.withheld & cells_of(rows, sheet).keys()]
    some = [tuple(g for g, group in enumerate(attack.groups) if group[0] in cell) for cell in inside]
    for firm in sorted({firm for share in attack.shares for firm in share}):
        mine = attack.knowing(firm)
        for cell in {*some, *((group,) for group in range(len(attack.groups)))}:
            has = attack.merged(cell)
            others = [amount for name, amount in has.items() if name != firm]
            if not others:
                continue
            low, high = mine.interval(cell)
            if rule == "threshold":
                assert len(has) >= N or high - low > 1e-6, (firm, cell)
            elif too_close(has):
                assert high - has.get(firm, 0) >= 1.2 * max(others) - 1e-6, (firm, cell)


def withheld_are_hidden(rows: list[Row], sheets: list[Sheet], attack: Attack) -> None:
    """Every withheld cell that fails the p% rule can be as far from the truth as the rule asks, both ways."""
    for sheet in sheets:
        cells = cells_of(rows, sheet)
        for code in sheet.withheld & cells.keys():
            amounts = sorted(merged(rows, cells[code]).values(), reverse=True)
            need = 0.2 * amounts[0] - sum(amounts[2:])
            if need > 0:
                some = tuple(g for g, group in enumerate(attack.groups) if group[0] in cells[code])
                low, high = attack.interval(some)
                assert low <= sum(amounts) - need + 1e-6, (sheet.name, code)
                assert high >= sum(amounts) + need - 1e-6, (sheet.name, code)


def seen_through_by_a_respondent() -> tuple[pl.DataFrame, list[ts.Published]]:
    """Two tables from which nobody derives anything but a firm that is alone in a cell."""
    random = np.random.default_rng(1)
    rows = records(random)
    frame = pl.DataFrame(rows)
    sheets = sheets_of(random, rows, filters=list(FILTERS), fails=too_few)
    attack = Attack.of(rows, sheets)
    assert not list(attack.by_programs(attack.small(N)))
    return frame, [published(sheet, frame, as_release=True) for sheet in sheets]


def test_tables_that_a_respondent_sees_through_are_not_called_safe() -> None:
    frame, given = seen_through_by_a_respondent()
    found = ts.difference(frame, given, rules=[ts.Threshold(n=N)], value="value", respondent="firm")
    assert not found.safe
    assert {each.kind for each in found.found} == {"respondent"}
    assert all(each.certain and each.exact for each in found.found)
    assert "the only contributor" in str(found)


def test_respondents_whom_there_was_no_time_to_look_at_are_not_called_safe(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(import_module("tablesafe.audit.differencing.records"), "RESPONDENTS_S", 0.0)
    frame, given = seen_through_by_a_respondent()
    found = ts.difference(frame, given, rules=[ts.Threshold(n=N)], value="value", respondent="firm")
    assert not found.found
    assert not found.safe
    assert "NOT PROVED" in str(found)
    assert "no time" in str(found)


@pytest.mark.draws
@pytest.mark.parametrize(
    ("how", "rule"),
    [*product(["records", "releases", "tables"], ["threshold", "p"]), ("cells", "threshold")],
)
def test_what_is_called_safe_withstands_the_attacker(how: str, rule: str) -> None:
    answers = [looked_at(seed, how, rule) for seed in [KNOWN[how], *fresh(1, f"differences, {how}, {rule}")]]
    tried, safe = sum(one for one, _ in answers), sum(two for _, two in answers)
    assert safe >= 1, f"{safe} of {tried} were called safe: nothing is tried"
