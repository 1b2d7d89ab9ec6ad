"""Differencing: what subtracting published tables gives away, checked against every table that agrees with them."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

import tablesafe as ts
from tablesafe.audit.differencing.disclosures import Differences, Disclosure, Kind
from tablesafe.audit.differencing.finished import Linked
from tablesafe.audit.differencing.overlap import from_correspondence
from tablesafe.audit.merging import counts_add_up
from tablesafe.cli.app import call
from tablesafe.core.errors import InvalidHierarchy, InvalidOption, InvalidTable

PEOPLE = pl.DataFrame(
    {
        "age": [15, 16, 16, 17, 18, 19, 30, 31, 32, 40, 41, 42, 50, 51, 52, 60, 61, 62, 70, 17],
        "region": ["N"] * 10 + ["S"] * 10,
        "sex": ["m", "f"] * 10,
    }
)
FROM_16 = ts.Published(name="from 16", dimensions=["region", "sex"], where="age >= 16")
FROM_18 = ts.Published(name="from 18", dimensions=["region"], where="age >= 18")


def test_persons_from_16_less_persons_from_18() -> None:
    """In the north three persons are 16 or 17, in the south one: the two tables show how many."""
    found = ts.difference(PEOPLE, [FROM_16, FROM_18], rules=[ts.Threshold(n=3)])
    assert not found.safe
    (one,) = [each for each in found.found if each.kind is Kind.DIFFERENCE]
    assert (one.lower, one.upper, one.count) == (1, 1, 1)
    assert one.because == "from 16 (region=S, sex=Total) − from 18 (region=S)"
    assert one.what == "in from 16 (region=S, sex=f), not in from 18"
    assert one.rules == ("threshold",)
    assert set(one.tables) == {"from 16", "from 18"}
    assert found.frame().height == len(found.found)
    assert str(found).startswith("NOT SAFE")


def test_tables_that_nest_without_a_rest_give_nothing_away() -> None:
    whole = ts.Published(name="all", dimensions=["region"])
    found = ts.difference(
        PEOPLE, [whole, ts.Published(name="by sex", dimensions=["region", "sex"])], rules=[ts.Threshold(n=3)]
    )
    assert found.safe
    assert str(found).startswith("SAFE")


def test_a_withheld_cell_cannot_be_subtracted() -> None:
    hidden = ts.Published(
        name="from 18", dimensions=["region"], where="age >= 18", withheld=pl.DataFrame({"region": ["N", "S"]})
    )
    found = ts.difference(PEOPLE, [FROM_16, hidden], rules=[ts.Threshold(n=3)])
    assert not any(each.because.endswith("from 18 (region=S)") for each in found.found)
    total = ts.Published(
        name="from 18", dimensions=["region"], where="age >= 18", withheld=pl.DataFrame({"region": ["N"]})
    )
    found = ts.difference(PEOPLE, [FROM_16, total], rules=[ts.Threshold(n=3)])
    assert any(each.because.endswith("from 18 (region=S)") for each in found.found)


def test_a_difference_of_sums_is_judged_with_its_own_contributors() -> None:
    firms = pl.DataFrame(
        {
            "firm": ["a", "b", "c", "d", "e", "f", "g", "h"],
            "area": ["x", "x", "x", "y", "y", "y", "y", "y"],
            "branch": ["1", "1", "2", "1", "1", "1", "2", "2"],
            "turnover": [100, 90, 80, 900, 30, 20, 100, 90],
        }
    )
    tables = [
        ts.Published(name="all", dimensions=["area"]),
        ts.Published(name="without 2", dimensions=["area"], where="branch <> '2'"),
    ]
    found = ts.difference(firms, tables, rules=[ts.Dominance(n=1, k=90)], value="turnover", respondent="firm")
    differences = [each for each in found.found if each.kind is Kind.DIFFERENCE]
    assert [(each.lower, each.because) for each in differences] == [(80, "all (area=x) − without 2 (area=x)")]
    assert differences[0].rules == ("dominance",)


def test_one_firm_in_many_parts_is_one_firm() -> None:
    """The units between two filters lie in many parts, but all belong to one firm."""
    rows = [(f"r{i}", firm, keep) for i in range(6) for firm, keep in (("a", 1), ("b", 1), ("c", 1), ("z", 0))]
    frame = pl.DataFrame(rows, schema=["region", "firm", "keep"], orient="row").with_columns(value=pl.lit(5))
    tables = [
        ts.Published(name="all", dimensions=["region"]),
        ts.Published(name="kept", dimensions=["keep"], where="keep = 1"),
    ]
    found = ts.difference(frame, tables, rules=[ts.Threshold(n=3)], value="value", respondent="firm")
    (one,) = [each for each in found.found if each.kind is Kind.DIFFERENCE]
    assert (one.lower, one.count) == (30, 1)


# -- patterns of one table ------------------------------------------------------------------------------------------


def nine_cells() -> pl.DataFrame:
    """Six firms a cell, but in (z, r) one alone, which also reports in (x, r)."""
    rows = [(a, b, f"{a}{b}{i}", 10 + i) for a, b in product("xyz", "pqr") if (a, b) != ("z", "r") for i in range(6)]
    return pl.DataFrame([*rows, ("z", "r", "xr0", 77)], schema=["a", "b", "firm", "v"], orient="row")


HIDDEN = {"A": ["zr", "zq", "yr", "yq"], "B": ["zr", "zp", "xr", "xp"]}


def released(table: ts.Table, cells: list[str], rules: Any = ()) -> ts.Release:
    mask = np.zeros(len(table), dtype=np.bool_)
    mask[[table.index(a=cell[0], b=cell[1]) for cell in cells]] = True
    return ts.Release.from_suppression(ts.Problem(table, rules), mask)


def nine(frame: pl.DataFrame) -> ts.Table:
    return ts.tabulate(frame, dimensions=["a", "b"], value="v", respondent="firm")


def anonymous(table: ts.Table) -> ts.Table:
    """The same as a file would hold it: numbers of contributors, but not who they are."""
    return ts.Table.from_cells(
        table.cells().select("a", "b", "v", "count"), dimensions=["a", "b"], value="v", count="count"
    )


@pytest.mark.parametrize("how", ["records", "releases", "without contributors", "file"])
def test_two_patterns_of_one_table_give_one_firm_away(how: str) -> None:
    """B(Total, r) − A(x, r) − B(y, r) is one firm, though the numbers of firms are 12 − 6 − 6 = 0."""
    frame, rules = nine_cells(), [ts.Threshold(n=3)]
    table = nine(frame)
    releases = {name: released(table, cells, rules) for name, cells in HIDDEN.items()}
    assert all(ts.audit(ts.Problem(table, rules), each).safe for each in releases.values())
    if how == "records":
        tables = [ts.Published(name=name, dimensions=["a", "b"], withheld=each) for name, each in releases.items()]
        found = ts.difference(frame, tables, rules=rules, value="v", respondent="firm")
    elif how == "releases":
        found = ts.difference(releases, rules=rules)
    elif how == "without contributors":
        bare = {name: replace(each, table=replace(table, origin=None)) for name, each in releases.items()}
        found = ts.difference(bare, rules=rules)
    else:
        found = ts.difference({name: released(anonymous(table), cells) for name, cells in HIDDEN.items()}, rules=rules)
    (one,) = found.found
    assert not found.safe
    assert (one.lower, one.upper, one.count, one.certain) == (77, 77, 1, True)
    assert one.what == "in A (a=z, b=r), in B (a=z, b=r)"
    assert one.because == "B (a=Total, b=r) − A (a=x, b=r) − B (a=y, b=r)"


def test_the_same_pattern_twice_gives_nothing_away() -> None:
    frame = nine_cells()
    releases = {name: released(nine(frame), HIDDEN["A"]) for name in "AB"}
    assert ts.difference(releases, rules=[ts.Threshold(n=3)]).safe
    bare = {name: released(anonymous(nine(frame)), HIDDEN["A"]) for name in "AB"}
    assert ts.difference(bare, rules=[ts.Threshold(n=3)]).safe


def test_three_patterns_give_away_what_no_two_of_them_do() -> None:
    """Each table shows one part of the total of r: only all three together leave (z, r)."""
    frame = nine_cells().with_columns(pl.col("b").replace({"p": "r", "q": "r"}))  # one column: x, y, z and their total
    frame = pl.concat([frame, frame.filter(pl.col("a") != "z").with_columns(a=pl.lit("w"), firm="w" + pl.col("firm"))])
    frame = frame.filter((pl.col("a") != "z") | (pl.col("v") == 77))
    table = ts.tabulate(frame, dimensions=["a"], value="v", respondent="firm")
    shown = {"A": ["Total", "w"], "B": ["x"], "C": ["y"]}
    codes = table.code_columns()["a"].to_list()
    releases = {
        name: ts.Release.from_suppression(ts.Problem(table), np.array([code not in cells for code in codes]))
        for name, cells in shown.items()
    }
    rules = [ts.Threshold(n=3)]
    for pair in (("A", "B"), ("A", "C"), ("B", "C")):
        assert ts.difference({name: releases[name] for name in pair}, rules=rules).safe
    found = ts.difference(releases, rules=rules)
    assert [(each.lower, each.count) for each in found.found] == [(77, 1)]


def test_contributors_of_tables_that_know_their_records_are_judged_by_every_rule() -> None:
    releases = {name: released(nine(nine_cells()), cells) for name, cells in HIDDEN.items()}
    found = ts.difference(releases, rules=[ts.PPercent(p=10)])
    assert [(each.lower, each.rules) for each in found.found] == [(77, ("p%",))]


def test_a_release_that_is_rounded_leaves_its_windows() -> None:
    """A difference of rounded cells is an interval, not the number that it would be of exact ones."""
    plain = ts.difference(PEOPLE, [FROM_16, FROM_18], rules=[ts.Threshold(n=3)])
    table = ts.tabulate(PEOPLE, dimensions=["region"], where="age >= 18")
    rounded = ts.protect(ts.Problem(table, [ts.Threshold(n=3)]), ts.Round(base=5))
    found = ts.difference(PEOPLE, [FROM_16, replace(FROM_18, withheld=rounded)], rules=[ts.Threshold(n=3)])
    exact = [each for each in plain.found if each.kind is Kind.DIFFERENCE]
    assert exact
    assert not any(each.kind is Kind.DIFFERENCE and "from 18 (region=S)" in each.because for each in found.found)


def test_a_withheld_cell_of_several_parts_is_not_forgotten() -> None:
    """(z) is withheld in both tables and cut into two parts by the filter; all equations leave it one value."""
    frame = pl.DataFrame(
        {
            "a": ["x"] * 8 + ["y"] * 8 + ["z"] * 2, "firm": [f"f{i}" for i in range(16)] + ["f0", "f1"],
            "v": [*range(10, 26), 500, 7], "c": [0, 1] * 9,
        }
    )  # fmt: skip
    hidden = pl.DataFrame({"a": ["y", "z"]})
    shown = pl.DataFrame({"a": ["x", "z", "Total"]})
    tables = [
        ts.Published(name="A", dimensions=["a"], withheld=hidden),
        ts.Published(name="B", dimensions=["a"], withheld=shown),
        ts.Published(name="C", dimensions=["a"], where="c = 1", withheld=pl.DataFrame({"a": ["x", "y", "z"]})),
    ]
    found = ts.difference(frame, tables, rules=[ts.Threshold(n=3)], value="v", respondent="firm")
    assert any((each.lower, each.upper, each.count) == (507, 507, 2) for each in found.found)


def test_numbers_of_contributors_add_up_only_below_one_total() -> None:
    """Two columns without a common total: the firm of (x) may be one of (y)."""
    table = ts.Table.from_cells(
        pl.DataFrame({"a": ["x", "y"], "value": [5, 6], "n": [1, 2]}), dimensions={"a": ts.Hierarchy.flat(["x", "y"])},
        count="n", missing_totals="none",
    )  # fmt: skip
    assert not counts_add_up(table)
    assert counts_add_up(areas("a", {"x": 3, "y": 4}, "all"))


@pytest.mark.parametrize(
    ("withheld", "message"),
    [
        (lambda release: release.frame(), "'v', which is no dimension"),
        (lambda release: release.frame().select("a", "b"), "Every cell of 'A' is listed"),
        (lambda release: release.table, "does not say what it withholds"),
        (lambda release: released(nine(nine_cells().with_columns(v=pl.col("v") + 1)), ["zr"]), "not made from these"),
        (lambda release: ts.Release.from_suppression(ts.Problem(areas("a", {"x": 3, "y": 4}, "T")), np.arange(3) < 1),
         "spanned by 'area'"),
    ],
)  # fmt: skip
def test_what_is_no_list_of_withheld_cells_is_refused(withheld: Any, message: str) -> None:
    frame = nine_cells()
    given = withheld(released(nine(frame), HIDDEN["A"]))
    tables = [ts.Published(name=name, dimensions=["a", "b"], withheld=given) for name in "AB"]
    with pytest.raises(InvalidOption, match=message):
        ts.difference(frame, tables, rules=[ts.Threshold(n=3)], value="v", respondent="firm")


def test_one_release_is_no_source() -> None:
    release = released(nine(nine_cells()), HIDDEN["A"])
    with pytest.raises(InvalidOption, match="the source is one release"):
        ts.difference(release, [FROM_16, FROM_18], rules=[ts.Threshold(n=3)])


# -- against brute force -------------------------------------------------------------------------------------------

RECORDS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 1), st.integers(0, 3)), min_size=4, max_size=8)
SPECS: list[dict[str, Any]] = [
    {"name": "a", "dimensions": ["x"], "where": "z >= 1"},
    {"name": "b", "dimensions": ["x", "y"], "where": "z >= 2"},
    {"name": "c", "dimensions": ["y"]},
]
LEAST = {"a": 1, "b": 2, "c": 0}

Cells = dict[str, frozenset[int]]
"""Published cells by name: the records that each counts."""


def published(rows: list[dict[str, int]], specs: list[dict[str, Any]]) -> Cells:
    """Every published cell as a set of records: from scratch, in plain Python."""
    cells: dict[str, set[int]] = {}
    for i, row in enumerate(rows):
        for spec in (spec for spec in specs if row["z"] >= LEAST[spec["name"]]):
            for shown in product([True, False], repeat=len(spec["dimensions"])):
                codes = zip(spec["dimensions"], shown, strict=True)
                words = ", ".join(f"{d}={row[d] if keep else 'Total'}" for d, keep in codes)
                cells.setdefault(f"{spec['name']} ({words})", set()).add(i)
    return {name: frozenset(members) for name, members in cells.items()}


def agreeing(members: list[list[int]], truth: list[int]) -> list[tuple[int, ...]]:
    """Every way to count the parts that agrees with all published cells."""
    wanted = [(inside, sum(truth[i] for i in inside)) for inside in members]
    found: list[tuple[int, ...]] = []

    def extend(counts: list[int]) -> None:
        at = len(counts)
        for inside, total in wanted:
            known = sum(counts[i] for i in inside if i < at)
            if known > total or (max(inside) < at and known != total):
                return
        if at == len(truth):
            found.append(tuple(counts))
            return
        for value in range(sum(truth) + 1):
            extend([*counts, value])

    extend([])
    return found


def records_of(found: Differences, each: Disclosure, cells: Cells, n: int) -> frozenset[int]:
    """The records that a disclosure is about, by the published cells that count its parts."""
    overlap, out = found.overlap, set()
    names = [overlap.describe(cell) for cell in range(overlap.members.shape[0])]
    dense = overlap.members.toarray() > 0
    for i in range(n):
        pattern = np.array([i in cells[name] for name in names])
        if any((dense[:, part] == pattern).all() for part in each.parts):
            out.add(i)
    return frozenset(out)


EMPTY_PARTS = [(1, 1, 1), (2, 1, 0), (2, 1, 3), (1, 1, 1), (1, 1, 3), (2, 1, 1), (1, 0, 2), (2, 0, 1)]
"""Two tables whose cells overlap in parts, of which some may be empty for all that anybody sees."""


@settings(max_examples=4)
@example(EMPTY_PARTS, (0, 2))
@given(RECORDS, st.sampled_from([(0, 1), (0, 2), (1, 2), (0, 1, 2)]))
def test_what_is_told_is_true_and_small_parts_that_all_tables_fix_are_told(
    records: list[tuple[int, int, int]], chosen: tuple[int, ...]
) -> None:
    rows = [dict(zip("xyz", record, strict=True)) for record in records]
    specs = [SPECS[i] for i in chosen]
    assume(all(any(row["z"] >= LEAST[spec["name"]] for row in rows) for spec in specs))
    cells = published(rows, specs)
    patterns = {
        i: tuple(i in members for members in cells.values())
        for i in range(len(rows))
        if any(i in m for m in cells.values())
    }
    parts = sorted(set(patterns.values()))
    truth = [sum(pattern == part for pattern in patterns.values()) for part in parts]
    tables = agreeing([[p for p, part in enumerate(parts) if part[c]] for c in range(len(cells))], truth)
    assert tuple(truth) in tables

    found = ts.difference(pl.DataFrame(rows), [ts.Published(**spec) for spec in specs], rules=[ts.Threshold(n=3)])
    told = {records_of(found, each, cells, len(rows)): each for each in found.found if each.kind != "respondent"}
    for inside, each in told.items():
        # what is told is the count of these records, and the same in every table that agrees
        assert each.lower <= len(inside) <= each.upper
        assert 0 < len(inside) < 3
        numbers = [parts.index(pattern) for pattern in {patterns[i] for i in inside}]
        sums = {sum(table[p] for p in numbers) for table in tables}
        assert (min(sums), max(sums)) == (each.lower, each.upper)
    for p, part in enumerate(parts):
        if truth[p] < 3 and len({table[p] for table in tables}) == 1:
            assert frozenset(i for i, pattern in patterns.items() if pattern == part) in told
    for name, members in cells.items():
        for other, inside in cells.items():
            if name[0] != other[0] and inside < members and len(members - inside) < 3:
                assert any(small <= members - inside for small in told)


@settings(max_examples=15)
@given(st.lists(st.integers(0, 3), min_size=4, max_size=4))
def test_part_intervals_are_those_of_all_agreeing_tables(truth: list[int]) -> None:
    from scipy import sparse

    members = np.array([[1, 1, 0, 0], [0, 0, 1, 1], [1, 0, 1, 0], [0, 1, 0, 1], [1, 1, 1, 0]], dtype=np.int8)
    totals = members @ np.array(truth)
    lower, upper = totals.astype(float), totals.astype(float)
    lower[4], upper[4] = max(totals[4] - 1, 0), totals[4] + 1  # a rounded cell: known within a window
    tables = [
        t for t in product(range(sum(truth) + 1), repeat=4)
        if (members[:4] @ np.array(t) == totals[:4]).all() and lower[4] <= members[4] @ np.array(t) <= upper[4]
    ]  # fmt: skip
    low, high = Linked.of(sparse.csr_array(members), lower, upper, 0, whole=True).intervals
    assert low[:4].tolist() == [min(t[i] for t in tables) for i in range(4)]
    assert high[:4].tolist() == [max(t[i] for t in tables) for i in range(4)]


# -- finished tables -----------------------------------------------------------------------------------------------


def areas(name: str, values: dict[str, int], total: str) -> ts.Table:
    frame = pl.DataFrame({"area": [*values, total], "value": [*values.values(), sum(values.values())]})
    tree = ts.Hierarchy.flat(list(values), total=total)
    return ts.Table.from_cells(frame, dimensions={"area": tree}, count="value")


CORRESPONDENCE = pl.DataFrame({"district": ["d1", "d1", "d2", "d2", "d2"], "square": ["s1", "s2", "s2", "s3", "s4"]})


def test_districts_and_grid_squares() -> None:
    """Square s2 lies across the border; what s1 leaves of d1 is what d1 has of s2."""
    districts = areas("districts", {"d1": 52, "d2": 90}, "all districts")
    squares = areas("squares", {"s1": 50, "s2": 20, "s3": 40, "s4": 32}, "all squares")
    found = ts.difference(
        {"districts": districts, "squares": squares}, rules=[ts.Threshold(n=3)],
        correspondence={"area": CORRESPONDENCE},
    )  # fmt: skip
    (one,) = found.found
    assert (one.kind, one.lower, one.upper, one.count) == (Kind.DIFFERENCE, 2, 2, 2)
    assert one.what == "in districts (area=d1), in squares (area=s2)"
    assert one.because == "districts (area=d1) − squares (area=s1)"


def test_intervals_that_bound_a_part_too_closely_are_told() -> None:
    """District d1 is known to have 51 or 52 units, of which 50 are in s1: one or two are in s2."""
    districts = areas("districts", {"d1": 52, "d2": 90}, "all districts")
    squares = areas("squares", {"s1": 50, "s2": 20, "s3": 40, "s4": 32}, "all squares")
    exact = ts.Release.from_suppression(ts.Problem(districts), np.zeros(3, dtype=np.bool_))
    code = districts.code_columns()["area"].to_list()
    wide = replace(
        exact,
        lower=exact.lower - np.array([each == "d1" for each in code]),
        upper=exact.upper + np.array([each == "d2" for each in code]),
    )
    found = ts.difference(
        {"districts": wide, "squares": squares}, rules=[ts.Threshold(n=3)], correspondence={"area": CORRESPONDENCE}
    )
    (one,) = found.found
    assert (one.kind, one.lower, one.upper) == (Kind.PART, 1, 2)
    assert one.what == "in districts (area=d1), in squares (area=s2)"


def test_small_counts_that_are_published_are_told_as_well() -> None:
    first, second = areas("a", {"x": 2, "y": 48}, "all"), areas("b", {"u": 25, "v": 25}, "every")
    frame = pl.DataFrame({"one": ["x", "y", "y"], "other": ["u", "u", "v"]})
    found = ts.difference({"a": first, "b": second}, rules=[ts.Threshold(n=3)], correspondence={"area": frame})
    assert [(each.kind, each.what) for each in found.found] == [(Kind.PUBLISHED, "a (area=x)")]


def test_what_is_outside_a_cover_is_found_too() -> None:
    """d1 has units in squares s1 and s2, which together have one unit more."""
    districts = areas("districts", {"d1": 60, "d2": 9}, "all")
    squares = areas("squares", {"s1": 30, "s2": 31, "s3": 8}, "everywhere")
    frame = pl.DataFrame({"district": ["d1", "d1", "d2", "d2"], "square": ["s1", "s2", "s2", "s3"]})
    found = ts.difference({"d": districts, "s": squares}, rules=[ts.Threshold(n=3)], correspondence={"area": frame})
    assert [(each.lower, each.what) for each in found.found] == [(1, "in d (area=d2), in s (area=s2)")]


def test_squares_around_a_district_are_enough_when_the_rest_is_withheld() -> None:
    """Only d1 is published of the districts: the two squares that cover it have one unit more."""
    districts = areas("districts", {"d1": 60, "d2": 9}, "all")
    hidden = np.array([code != "d1" for code in districts.code_columns()["area"]])
    squares = areas("squares", {"s1": 30, "s2": 31, "s3": 8}, "everywhere")
    total = np.array([code == "everywhere" for code in squares.code_columns()["area"]])
    frame = pl.DataFrame({"district": ["d1", "d1", "d2", "d2"], "square": ["s1", "s2", "s2", "s3"]})
    found = ts.difference(
        {name: ts.Release.from_suppression(ts.Problem(table), mask) for name, table, mask in (
            ("d", districts, hidden), ("s", squares, total))},
        rules=[ts.Threshold(n=3)], correspondence={"area": frame},
    )  # fmt: skip
    (one,) = found.found
    assert (one.kind, one.lower, one.what) == (Kind.DIFFERENCE, 1, "in d (area=d2), in s (area=s2)")
    assert one.because == "s (area=s1) + s (area=s2) − d (area=d1)"


def test_sums_that_contradict_each_other_are_refused() -> None:
    """Values that are no counts: d2 is s3, but has another value."""
    tables = {
        name: ts.Table.from_cells(
            pl.DataFrame({"area": [*values, "T"], "value": [*values.values(), 100], "firms": [5] * len(values) + [20]}),
            dimensions={"area": ts.Hierarchy.flat(list(values), total="T")}, value="value", count="firms",
            response="sales",
        )
        for name, values in (("d", {"d1": 40, "d2": 60}), ("s", {"s1": 50, "s2": 20, "s3": 30}))
    }  # fmt: skip
    frame = pl.DataFrame({"district": ["d1", "d1", "d2"], "square": ["s1", "s2", "s3"], "all": ["T"] * 3})
    with pytest.raises(InvalidTable, match=r"d \(area=d2\) and s \(area=s3\) count the same units"):
        ts.difference(tables, rules=[ts.Threshold(n=3)], correspondence={"area": frame})


def test_equations_between_filters_and_a_release_with_a_hole() -> None:
    tree = ts.Hierarchy.from_equations('"16+" = "18+" + "16-17"')
    first, second = (
        ts.Table.from_cells(
            pl.DataFrame({"age": [age] * 3, "region": ["N", "S", "Total"], "value": values}),
            dimensions={"age": ts.Hierarchy.flat([age], total=None), "region": None}, count="value",
        )
        for age, values in (("16+", [40, 31, 71]), ("18+", [30, 30, 60]))
    )  # fmt: skip
    found = ts.difference({"a": first, "b": second}, rules=[ts.Threshold(n=3)], dimensions={"age": tree})
    assert [(each.lower, each.because) for each in found.found] == [
        (1, "a (age=16+, region=S) − b (age=18+, region=S)")
    ]
    problem = ts.Problem(second)
    mask = np.array([False, True, True])
    hidden = ts.Release.from_suppression(problem, mask)
    safe = ts.difference({"a": first, "b": hidden}, rules=[ts.Threshold(n=3)], dimensions={"age": tree})
    assert safe.safe
    assert str(safe).startswith("SAFE: the tables give nothing away together to outsiders.")
    assert "Respondents were not looked at" in str(safe)


def test_rounded_tables_are_subtracted_as_intervals() -> None:
    first = areas("a", {"x": 52, "y": 48}, "all")
    second = areas("b", {"u": 50, "v": 50}, "every")
    frame = pl.DataFrame({"one": ["x", "x", "y"], "other": ["u", "v", "v"]})
    exact = ts.difference({"a": first, "b": second}, rules=[ts.Threshold(n=3)], correspondence={"area": frame})
    assert not exact.safe
    rounded = ts.protect(ts.Problem(second, [ts.Threshold(n=3)]), ts.Round(base=5))
    if bool((rounded.lower < rounded.upper).any()):
        found = ts.difference({"a": first, "b": rounded}, rules=[ts.Threshold(n=3)], correspondence={"area": frame})
        assert all(not each.exact for each in found.found)


def test_tables_that_contradict_each_other_are_refused() -> None:
    districts = areas("districts", {"d1": 40, "d2": 90}, "all districts")
    squares = areas("squares", {"s1": 50, "s2": 20, "s3": 40, "s4": 20}, "all squares")
    with pytest.raises(InvalidTable, match="contradict each other"):
        ts.difference(
            {"d": districts, "s": squares}, rules=[ts.Threshold(n=3)], correspondence={"area": CORRESPONDENCE}
        )


def test_tables_whose_values_do_not_fit_beside_each_other_are_refused() -> None:
    """Of 4e14 with the seven decimals of the other table nothing but a remainder was left."""
    codes = {"a": ["p", "q", "Total"], "n": [3, 3, 6]}
    tables = {
        str(large): ts.Table.from_cells(
            pl.DataFrame({**codes, "value": [large, small, large + small]}), dimensions=["a"], value="value", count="n"
        )
        for large, small in ((0.5, 0.1234567), (4.0e14, 2.0))
    }
    with pytest.raises(InvalidTable, match="too large"):
        ts.difference(tables, rules=[ts.Threshold(n=3)])


def test_tables_of_other_records_under_the_same_codes_are_refused() -> None:
    """With noise or rounding they need not contradict each other, and would look safe."""
    people = pl.DataFrame({"region": ["N", "N", "S", "S", "S"], "age": [16, 30, 17, 40, 50]})
    tables = {
        f"{age}+": ts.protect(
            ts.Problem(ts.tabulate(people, dimensions=["region"], where=f"age >= {age}")), ts.Round(base=3)
        )
        for age in (16, 18)
    }
    with pytest.raises(InvalidTable, match=r"count different records \(age >= 16; age >= 18\)"):
        ts.difference(tables, rules=[ts.Threshold(n=3)])


def test_sums_are_judged_by_their_counts() -> None:
    given = {"16+": ([900.5, 800, 1700.5], [40, 31, 71]), "18+": ([700, 795, 1495], [30, 30, 60])}
    tables = {
        age: ts.Table.from_cells(
            pl.DataFrame({"age": [age] * 3, "region": ["N", "S", "Total"], "income": values, "n": counts}),
            dimensions={"age": ts.Hierarchy.flat([age], total=None), "region": None}, value="income", count="n",
        )
        for age, (values, counts) in given.items()
    }  # fmt: skip
    tree = {"age": ts.Hierarchy.from_equations('"16+" = "18+" + "16-17"')}
    found = ts.difference(tables, rules=[ts.Threshold(n=3)], dimensions=tree)
    assert [(each.lower, each.count, each.certain) for each in found.found] == [(5.0, 1, False)]
    assert found.possibly == found.found
    assert "1 thing is possibly open" in str(found)
    assert "The records settle it" in str(found)
    with pytest.raises(InvalidOption, match="rules can only count"):
        ts.difference(tables, rules=[ts.PPercent(p=10)], dimensions=tree)


def test_a_code_in_two_divisions_is_refused() -> None:
    with pytest.raises(InvalidHierarchy, match="stands in the columns 'a' and 'b'"):
        from_correspondence(pl.DataFrame({"a": ["x", "y"], "b": ["x", "z"]}))


# -- bad input, and the command ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"tables": [FROM_16, FROM_18], "rules": []}, "needs rules"),
        ({"tables": [FROM_16], "rules": [ts.Threshold()]}, "at least two tables"),
        ({"tables": [FROM_16, FROM_18], "rules": [ts.GroupDisclosure()]}, "GroupDisclosure alone"),
        ({"tables": [FROM_16, FROM_16], "rules": [ts.Threshold()]}, "Two tables are called 'from 16'"),
        ({"rules": [ts.Threshold()]}, "Which tables are published"),
        ({"tables": [FROM_16, FROM_18], "rules": [ts.Threshold()], "dimensions": {"x": None}}, "finished tables"),
    ],
)
def test_what_is_missing_is_named(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidOption, match=message):
        ts.difference(PEOPLE, **arguments)


def test_tables_without_counts_are_refused() -> None:
    table = ts.Table.from_cells(
        pl.DataFrame({"area": ["x", "y", "Total"], "value": [1.5, 2.0, 3.5]}), dimensions=["area"]
    )
    with pytest.raises(InvalidTable, match="how many contributors"):
        ts.difference({"a": table, "b": table}, rules=[ts.Threshold()])


def job(folder: Path, name: str, text: str) -> str:
    (folder / f"{name}.toml").write_text(text, encoding="utf-8")
    return str(folder / f"{name}.toml")


def test_the_command_compares_jobs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    PEOPLE.write_csv(tmp_path / "people.csv")
    text = '[source]\nfile = "people.csv"\nwhere = "age >= {}"\n[dimensions.region]\n[[rules]]\nrule = "threshold"\n'
    one, other = (job(tmp_path, f"from{age}", text.format(age)) for age in (16, 18))
    output = tmp_path / "found.csv"
    assert call(["difference", one, other, "-o", str(output)]) == 1
    assert "from16 (region=S) − from18 (region=S)" in capsys.readouterr().out
    assert pl.read_csv(output)["to"].to_list() == [1.0]
    assert call(["difference", one]) == 2
    (tmp_path / "p.csv").write_text("region,status\nS,x\nTotal,x\n", encoding="utf-8")


def test_the_command_compares_finished_cells(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "d.csv").write_text("area,n\nd1,52\nd2,90\nall districts,142\n", encoding="utf-8")
    (tmp_path / "s.csv").write_text("area,n\ns1,50\ns2,20\ns3,40\ns4,32\nall squares,142\n", encoding="utf-8")
    CORRESPONDENCE.write_csv(tmp_path / "c.csv")
    text = (
        '[source]\nfile = "{}.csv"\nkind = "cells"\ncount = "n"\n[dimensions.area]\ntotal = "{}"\n'
        '[response]\nvalue = "n"\n[[rules]]\nrule = "threshold"\n'
    )
    one = job(tmp_path, "d", text.format("d", "all districts"))
    other = job(tmp_path, "s", text.format("s", "all squares"))
    assert call(["difference", one, other, "--correspondence", f"area={tmp_path / 'c.csv'}", "--json"]) == 1
    assert '"because": "d (area=d1) − s (area=s1)"' in capsys.readouterr().out
    assert call(["difference", one, other, "--correspondence", f"aera={tmp_path / 'c.csv'}"]) == 2
