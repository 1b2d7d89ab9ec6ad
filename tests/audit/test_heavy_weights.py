"""A contributor with a small amount and a large weight: whoever knows the weights sees it in the total."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from scipy import sparse

import tablesafe as ts
from seeds import fresh
from tablesafe.audit.merging import merged
from tablesafe.methods.redesign.collapse import groups_of

SAMPLE = pl.DataFrame(
    {
        "firm": ["a", "b", "c", "heavy", *(f"x{i}" for i in range(8))],
        "region": ["north"] * 4 + ["south"] * 8,
        "turnover": [10.0, 10.0, 10.0, 9.0, *[5.0] * 8],
        "weight": [1, 1, 1, 70, *[2] * 8],
    }
)


def table(largest: int, frame: pl.DataFrame = SAMPLE) -> ts.Table:
    return ts.tabulate(
        frame, dimensions=["region"], value="turnover", respondent="firm", weight="weight", largest=largest
    )


@pytest.mark.parametrize("largest", [2, 3, 12])
@pytest.mark.parametrize("rule", [ts.PPercent(p=30), ts.Dominance(n=1, k=80)])
def test_who_adds_most_is_protected_though_it_reported_little(largest: int, rule: ts.Rule) -> None:
    problem = ts.Problem(table(largest), rules=[rule])
    north = ts.Problem(table(12), rules=[rule]).sensitive
    assert problem.sensitive.tolist() == north.tolist()
    assert len(problem.sensitive)
    assert not ts.audit(problem, ts.Release.from_suppression(problem, problem.sensitivity.mask & False)).safe


def test_both_lists_are_one_and_only_the_asked_for_places_are_certain() -> None:
    kept = table(2).contributors
    assert kept is not None
    assert kept.weighted is not None
    assert kept.certain == 2
    assert kept.depth == 4
    north = 1
    assert kept.amount[north].tolist() == [10.0, 10.0, 9.0, 0.0]
    assert kept.weighted[north].tolist() == [10.0, 10.0, 630.0, 0.0]
    with pytest.raises(ts.TablesafeError, match="needs the 3 largest"):
        table(2).largest(3)


def test_linked_tables_with_lists_of_other_lengths_keep_who_adds_most() -> None:
    kept = ts.link([table(2), table(3)]).contributors
    assert kept is not None
    assert kept.weighted is not None
    assert kept.certain == 2
    assert 630.0 in kept.weighted


def sample(seed: int) -> pl.DataFrame:
    """Twelve firms in up to three regions, with weights between 1 and 1,000."""
    rng = np.random.default_rng(seed)
    rows = [
        (f"f{firm}", f"r{region}", float(rng.integers(1, 50)), float(rng.choice([1, 1, 2, 5, 40, 1000])))
        for firm in range(12)
        for region in range(3)
        if rng.random() < 0.6
    ]
    return pl.DataFrame(rows, schema=["firm", "region", "turnover", "weight"], orient="row")


RULES: list[ts.Rule] = [ts.PPercent(p=20), ts.Dominance(n=1, k=60), ts.Dominance(n=2, k=80)]


@pytest.mark.parametrize("seed", fresh(8, "waivers with heavy weights"))
def test_who_is_not_listed_is_protected_though_all_that_are_listed_waived(seed: int) -> None:
    frame = sample(seed)
    rng = np.random.default_rng(seed)
    names = frame["firm"].unique().sort().to_list()
    for rule in RULES:
        waived = tuple(name for name in names if rng.random() < 0.5) or (names[0],)
        waiver = ts.Waiver(of=rule, respondents=waived)
        all_known = waiver(table(40, frame)).mask
        for largest in (2, 3):
            assert not (all_known & ~waiver(table(largest, frame)).mask).any()


def test_two_who_waived_do_not_hide_the_third() -> None:
    frame = pl.DataFrame(
        {
            "firm": ["a", "b", "c", "d", *(f"x{i}" for i in range(8))],
            "region": ["north"] * 4 + ["south"] * 8,
            "turnover": [100.0, 90.0, 80.0, 1.0, *[5.0] * 8],
            "weight": [1] * 4 + [2] * 8,
        }
    )
    rule = ts.Waiver(of=ts.Dominance(n=2, k=60), respondents=("a", "b"))
    for largest in (2, 3, 12):
        kept = table(largest, frame)
        assert [kept.describe(int(cell)) for cell in ts.Problem(kept, rules=[rule]).sensitive] == ["(region=north)"]


@pytest.mark.parametrize("seed", fresh(8, "sums with heavy weights"))
def test_sums_of_cells_keep_who_adds_most(seed: int) -> None:
    frame = sample(seed)
    for largest in (2, 3):
        short, full = table(largest, frame), table(40, frame)
        pairs = sparse.csr_array(np.array([[1, 1, 0, 0], [0, 1, 1, 0], [1, 0, 1, 0]], dtype=np.int8)[:, : len(full)])
        groups = groups_of(pairs, separate=False)
        known, cautious = (merged(short, groups, cautious=how) for how in (False, True))
        truth = merged(full, groups, cautious=True)
        assert short.contributors is not None
        assert short.contributors.weighted is not None
        assert known.contributors is not None
        assert known.contributors.weighted is not None
        assert truth.contributors is not None
        assert truth.contributors.weighted is not None
        for rule in RULES:
            assert not (rule(truth).mask & ~rule(cautious).mask).any()
        listed = [np.abs(short.contributors.weighted[row > 0]).max() for row in pairs.toarray()]
        most = np.abs(known.contributors.weighted).max(axis=1)
        value = np.abs(known.value)
        assert (most >= np.minimum(listed, value) - 1e-9).all()


def test_a_sum_in_which_one_adds_nearly_all_is_found() -> None:
    many = [(f"{region}{i}", region, 10.0 + i, 1.0) for region in ("north", "south") for i in range(6)]
    heavy = [("heavy", "north", 1.0, 3000.0), ("heavy", "south", 1.0, 3000.0)]
    others = [(f"z{i}", "west", 50.0, 1.0) for i in range(8)]
    frame = pl.DataFrame([*many, *heavy, *others], schema=["firm", "region", "turnover", "weight"], orient="row")
    for largest in (2, 3, 20):
        kept = table(largest, frame)
        both = [i for i in range(len(kept)) if kept.describe(i) in ("(region=north)", "(region=south)")]
        withheld = np.isin(np.arange(len(kept)), both)
        groups = groups_of(sparse.csr_array(withheld[None, :].astype(np.int8)), separate=False)
        for cautious in (False, True):
            assert ts.PPercent(p=10)(merged(kept, groups, cautious=cautious)).mask.all()
        problem = ts.Problem(kept, rules=[ts.PPercent(p=10)])
        findings = ts.audit(problem, ts.Release.from_suppression(problem, withheld))
        assert not findings.safe
        assert findings.unions is not None
        assert findings.unions.failed, "north and south together can be worked out, and heavy adds nearly all of it"


def test_who_adds_most_is_heard_when_it_asks() -> None:
    asked = SAMPLE.with_columns(asked=(pl.col("firm") == "heavy").cast(pl.Int64))
    kept = ts.tabulate(
        asked, dimensions=["region"], value="turnover", respondent="firm", weight="weight", request="asked", largest=2
    )
    by_name = ts.RequestRule(of=ts.PPercent(p=30), respondents=("heavy",))
    by_column = ts.RequestRule(of=ts.PPercent(p=30), request="asked")
    for rule in (by_name, by_column):
        found = [kept.describe(int(cell)) for cell in ts.Problem(kept, rules=[rule]).sensitive]
        assert "(region=north)" in found
