"""Tabulating records and adding them up by brute force, in plain Python, give the same table."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tablesafe.core.hierarchy import Hierarchy
from tablesafe.core.linking import link
from tablesafe.core.table import Table
from tablesafe.tabulate import tabulate

LEAVES = ("a", "b", "c", "d", "e")

# Each structure: a hierarchy over the same leaves, and what each of its codes contains, written down independently.
STRUCTURES: dict[str, tuple[Callable[[], Hierarchy | None], dict[str, str]]] = {
    "flat": (lambda: None, {"Total": "abcde"}),
    "tree": (
        lambda: Hierarchy.from_equations("Total = X + Y; X = a + b; Y = c + Z; Z = d + e"),
        {"Total": "abcde", "X": "ab", "Y": "cde", "Z": "de"},
    ),
    "one child": (
        lambda: Hierarchy.from_equations("Total = X + b + Y; X = a; Y = c + d + e"),
        {"Total": "abcde", "Y": "cde"},
    ),
    "two trees": (
        lambda: Hierarchy.from_equations("T = P + Q; P = a + b + c; Q = d + e; T = R + S; R = a + e; S = b + c + d"),
        {"T": "abcde", "P": "abc", "Q": "de", "R": "ae", "S": "bcd"},
    ),
    "no tree": (
        lambda: Hierarchy.from_equations("13 = a + b; 12 = b + c; 11 = c + d + e; 10 = a + e"),
        {"13": "ab", "12": "bc", "11": "cde", "10": "ae"},
    ),
}  # fmt: skip


def contents(structure: str, seen: set[str]) -> dict[str, frozenset[str]]:
    """The leaves of every code."""
    totals = STRUCTURES[structure][1]
    hierarchy = STRUCTURES[structure][0]()
    leaves = {leaf: leaf for leaf in LEAVES if structure != "flat" or leaf in seen}
    if hierarchy is not None:  # a code with one part is known by the name of the whole
        leaves = {hierarchy.aliases.get(leaf, leaf): leaf for leaf in LEAVES}
    if structure == "flat" and len(seen) == 1:
        return {"Total": frozenset(seen)}
    return {code: frozenset(inside) for code, inside in {**leaves, **totals}.items()}


@dataclass(frozen=True)
class Microdata:
    """Records, and how their dimensions are structured."""

    structures: Mapping[str, str]
    records: list[dict[str, Any]]

    @property
    def frame(self) -> pl.DataFrame:
        types: dict[str, Any] = {
            "firm": pl.String,
            "group": pl.String,
            "value": pl.Decimal(12, 2),
            "weight": pl.Decimal(12, 1),
        }
        return pl.DataFrame(self.records, schema_overrides=types, infer_schema_length=None)

    @property
    def hierarchies(self) -> dict[str, Hierarchy | None]:
        return {dimension: STRUCTURES[structure][0]() for dimension, structure in self.structures.items()}

    def cells(self) -> dict[tuple[str, ...], list[dict[str, Any]]]:
        """The records of every cell that has any."""
        inside = {d: contents(s, {r[d] for r in self.records}) for d, s in self.structures.items()}
        out = {}
        for codes in itertools.product(*inside.values()):
            members = [
                record
                for record in self.records
                if all(record[d] in inside[d][code] for d, code in zip(inside, codes, strict=True))
            ]
            if members:
                out[codes] = members
        return out


@st.composite
def microdata(draw: st.DrawFn, most: int = 25) -> Microdata:
    structures = draw(st.lists(st.sampled_from(sorted(STRUCTURES)), min_size=1, max_size=3))
    dimensions = dict(zip(("x", "y", "z"), structures, strict=False))
    firms = [f"f{i}" for i in range(6)]
    groups = st.sampled_from([None, "g1", "g2", "f1"])
    home = draw(st.fixed_dictionaries(dict.fromkeys(firms, groups)))  # most firms stay in one holding
    record = st.fixed_dictionaries(
        {d: st.sampled_from(LEAVES) for d in dimensions}
        | {
            "firm": st.sampled_from(firms),
            "moved": st.sampled_from([False, False, False, True]),
            "group": groups,
            "value": st.integers(-500, 2000).map(lambda n: Decimal(n) / 100),
            "other": st.integers(0, 50),
            "weight": st.integers(0, 50).map(lambda n: Decimal(n) / 10),
            "asked": st.sampled_from([0, 0, 1, 2]),
        }
    )
    records = draw(st.lists(record, min_size=1, max_size=most))
    return Microdata(dimensions, [{**r, "group": r["group"] if r["moved"] else home[r["firm"]]} for r in records])


def contributor(record: Mapping[str, Any], holding: bool) -> tuple[str, bool]:
    """Who a record is from: the name, and whether it is a respondent without a holding."""
    if not holding:
        return record["firm"], False
    return (record["group"], False) if record["group"] is not None else (record["firm"], True)


def expected(members: list[dict[str, Any]], *, holding: bool, k: int) -> dict[str, Any]:
    """What a cell must hold."""
    who: dict[tuple[str, bool], dict[str, Any]] = {}
    for record in members:
        mine = who.setdefault(
            contributor(record, holding), {"amount": Decimal(0), "weighted": Decimal(0), "asked": set()}
        )
        mine["amount"] += record["value"]
        mine["weighted"] += record["value"] * record["weight"]
        mine["asked"] |= {record["asked"]} - {0}
    order = sorted(who.items(), key=lambda item: (-abs(item[1]["amount"]), item[0]))[:k]
    return {
        "value": sum(record["value"] for record in members),
        "weighted": sum(record["value"] * record["weight"] for record in members),
        "other": sum(record["other"] for record in members),
        "count": len({record["firm"] for record in members}),
        "holdings": len(who),
        "records": len(members),
        "largest": [(name, mine["amount"], mine["weighted"]) for (name, _), mine in order],
        "heaviest": sorted((abs(mine["weighted"]) for mine in who.values()), reverse=True)[:k],
        "asked": _asked_by_who_is_largest(who, ["amount"], k),
        "asked with weights": _asked_by_who_is_largest(who, ["amount", "weighted"], k),
    }


def _asked_by_who_is_largest(
    who: dict[tuple[str, bool], dict[str, Any]], sizes: list[str], k: int
) -> tuple[set[int], set[int]]:
    """What must be heard, and what may be: of more who are the largest together than are kept, some are not heard."""
    must, may = set[int](), set[int]()
    for size in sizes:
        most = max(abs(mine[size]) for mine in who.values())
        largest = [mine["asked"] for mine in who.values() if abs(mine[size]) == most]
        may = may.union(*largest)
        must = must.union(*largest) if len(largest) <= k else must
    return must, may


def requests(code: int) -> set[int]:
    """The requests that a number in the table stands for: itself, none, or minus a bit for each of several."""
    return {c for c in range(1, 51) if -code >> (c - 1) & 1} if code < 0 else {code} - {0}


def codes_of(table: Table, cell: int) -> tuple[str, ...]:
    return tuple(h.codes[c] for h, c in zip(table.dimensions.values(), table.codes[cell], strict=True))


def exact(table: Table, cell: int) -> Decimal:
    return Decimal(int(table.integers[cell])).scaleb(-table.decimals)


def largest_of(table: Table, cell: int) -> list[tuple[str, float]]:
    """Those who reported the most, as many as are kept for certain."""
    kept = table.contributors
    assert kept is not None
    assert kept.names is not None
    there = kept.identity[cell] >= 0
    assert not there[1:][~there[:-1]].any(), "unused places come last"
    assert (kept.amount[cell][~there] == 0).all()
    names = [str(kept.names[i]).removesuffix(" (no holding)") for i in kept.identity[cell][there]]
    assert len(set(kept.identity[cell][there].tolist())) == int(there.sum())
    return list(zip(names, kept.amount[cell][there].tolist(), strict=True))[: kept.certain]


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=microdata(), holding=st.booleans(), weighted=st.booleans(), k=st.integers(1, 4))
def test_every_cell_is_what_its_records_add_up_to(data: Microdata, holding: bool, weighted: bool, k: int) -> None:
    table = tabulate(
        data.frame,
        dimensions=data.hierarchies,
        value="value",
        respondent="firm",
        holding="group" if holding else None,
        weight="weight" if weighted else None,
        columns=["other"],
        request="asked",
        largest=k,
    )
    cells = data.cells()
    assert {codes_of(table, i) for i in range(len(table))} == set(cells)
    assert table.exact
    kept = table.contributors
    assert kept is not None
    assert table.count is not None
    for i in range(len(table)):
        want = expected(cells[codes_of(table, i)], holding=holding, k=k)
        assert exact(table, i) == want["weighted" if weighted else "value"]
        assert table.count[i] == want["count"]
        assert table.columns["records"][i] == want["records"]
        assert largest_of(table, i) == [(name, float(amount)) for name, amount, _ in want["largest"]]
        must, may = want["asked with weights" if weighted else "asked"]
        assert must <= requests(int(table.columns["asked"][i])) <= may
        if holding:
            assert table.holdings is not None
            assert table.holdings[i] == want["holdings"]
        if weighted:
            assert kept.weighted is not None
            used = len(want["largest"])
            assert kept.weighted[i, :used].tolist() == pytest.approx([float(w) for *_, w in want["largest"]], abs=1e-12)
            most = -np.sort(-np.abs(kept.weighted[i]))[: len(want["heaviest"])]
            assert most.tolist() == pytest.approx([float(w) for w in want["heaviest"]], abs=1e-12)
            assert table.columns["unweighted"][i] == float(want["value"])
        else:
            assert table.columns["other"][i] == want["other"]


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=microdata())
def test_one_contributor_is_one_in_every_cell(data: Microdata) -> None:
    """An identity stands for one name, and the whole is the same by identity as by name."""
    table = tabulate(data.frame, dimensions=data.hierarchies, value="value", respondent="firm", holding="group")
    kept = table.contributors
    assert kept is not None
    assert kept.names is not None
    assert len(set(kept.names)) == len(kept.names)
    assert set(np.unique(kept.identity)) - {-1} == set(range(len(kept.names)))
    clash = {r["group"] for r in data.records} & {r["firm"] for r in data.records if r["group"] is None}
    alone = {str(name) for name in kept.names if str(name).endswith(" (no holding)")}
    assert alone <= {f"{name} (no holding)" for name in clash}


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=microdata(), k=st.integers(1, 3))
def test_records_stand_alone_without_respondents(data: Microdata, k: int) -> None:
    table = tabulate(data.frame, dimensions=data.hierarchies, value="value", largest=k)
    cells = data.cells()
    for i in range(len(table)):
        members = cells[codes_of(table, i)]
        amounts = sorted((float(r["value"]) for r in members), key=lambda v: -abs(v))[:k]
        assert [abs(amount) for _, amount in largest_of(table, i)] == [abs(amount) for amount in amounts]
        for name, amount in largest_of(table, i):
            record = data.records[int(name.removeprefix("record ")) - 1]
            assert record in members
            assert float(record["value"]) == amount
        assert table.count is not None
        assert table.count[i] == len(members)


@settings(max_examples=4, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=microdata().filter(lambda d: len(d.structures) > 1 and "no tree" not in d.structures.values()))
def test_margins_are_the_tables_made_alone_and_linked(data: Microdata) -> None:
    names = list(data.structures)
    margins = [names[:1], names[1:]]
    options: dict[str, Any] = {"value": "value", "respondent": "firm", "holding": "group"}
    joint = tabulate(data.frame, dimensions=data.hierarchies, margins=margins, **options)
    hierarchies = data.hierarchies
    alone = [tabulate(data.frame, dimensions={d: hierarchies[d] for d in margin}, **options) for margin in margins]
    linked = link(alone)
    order = [list(linked.dimensions).index(name) for name in names]

    def by_codes(table: Table, order: list[int]) -> dict[tuple[str, ...], tuple[Any, ...]]:
        assert table.count is not None
        assert table.holdings is not None
        out = {}
        for i in range(len(table)):
            codes = codes_of(table, i)
            key = tuple(codes[j] for j in order)
            out[key] = (exact(table, i), int(table.count[i]), int(table.holdings[i]), largest_of(table, i))
        return out

    assert by_codes(joint, list(range(len(names)))) == by_codes(linked, order)
    assert joint.equations.shape[0] == linked.equations.shape[0]


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=microdata(), weighted=st.booleans())
def test_several_responses_are_tied_by_their_equations(data: Microdata, weighted: bool) -> None:
    table = tabulate(
        data.frame,
        dimensions=data.hierarchies,
        value=["value", "other"],
        equations="all = value + other",
        respondent="firm",
        weight="weight" if weighted else None,
        largest=2,
    )
    assert not table.residual().any()
    cells = data.cells()
    for i in range(len(table)):
        *codes, response = codes_of(table, i)
        members = [(r, r["weight"] if weighted else Decimal(1)) for r in cells[tuple(codes)]]
        parts = {
            "value": sum(r["value"] * w for r, w in members),
            "other": sum(r["other"] * w for r, w in members),
        }
        assert exact(table, i) == (sum(parts.values()) if response == "all" else parts[response])
        by_firm: dict[str, Decimal] = {}
        for r, _ in members:
            own = {"value": r["value"], "other": Decimal(r["other"])}
            amount = sum(own.values(), Decimal(0)) if response == "all" else own[response]
            by_firm[r["firm"]] = by_firm.get(r["firm"], Decimal(0)) + amount
        order = sorted(by_firm.items(), key=lambda item: (-abs(item[1]), item[0]))[:2]
        assert largest_of(table, i) == [(name, float(amount)) for name, amount in order]


@settings(max_examples=4, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=microdata(), factor=st.floats(0.001, 7.0))
def test_margins_add_up_exactly_though_no_decimal_unit_holds_the_values(data: Microdata, factor: float) -> None:
    frame = data.frame.with_columns(
        value=pl.col("value").cast(pl.Float64) * factor / 3, w=pl.lit(1 / 3) + pl.col("other")
    )
    for weight in (None, "w"):
        table = tabulate(frame, dimensions=data.hierarchies, value="value", weight=weight, respondent="firm")
        assert not table.residual().any()
        cells = data.cells()
        for i in range(len(table)):
            rows = [
                (float(r["value"]) * factor / 3, 1 / 3 + r["other"] if weight else 1.0)
                for r in cells[codes_of(table, i)]
            ]
            assert table.value[i] == pytest.approx(sum(v * w for v, w in rows), rel=1e-9, abs=1e-9)


@settings(max_examples=4, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=microdata(), seed=st.integers(0, 100))
def test_the_order_of_records_changes_nothing(data: Microdata, seed: int) -> None:
    options: dict[str, Any] = {
        "dimensions": data.hierarchies, "value": "value", "respondent": "firm", "holding": "group", "weight": "weight",
    }  # fmt: skip
    one = tabulate(data.frame, **options)
    other = tabulate(data.frame.sample(fraction=1.0, shuffle=True, seed=seed), **options)
    assert (one.codes == other.codes).all()
    assert (one.integers == other.integers).all()
    assert one.contributors is not None
    assert other.contributors is not None
    assert (one.contributors.identity == other.contributors.identity).all()
    assert (one.contributors.amount == other.contributors.amount).all()
    assert np.array_equal(np.asarray(one.contributors.names), np.asarray(other.contributors.names))
