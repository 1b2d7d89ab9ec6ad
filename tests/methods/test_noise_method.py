"""Multiplicative noise on records, balanced noise, and random adjustment of sensitive cells."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tablesafe as ts
from tablesafe.core.errors import InvalidOption, InvalidProblem
from tablesafe.methods.records.behind import Microdata
from tablesafe.methods.records.noise.factors import SHAPES, Shape, balanced, draw_sizes
from tablesafe.methods.records.noise.factors_of_respondents import Drawing, noise_records
from tablesafe.methods.records.noise.reading import announced
from tablesafe.methods.records.tabulated import published, tabulated


def firms(n: int = 400, seed: int = 0) -> pl.DataFrame:
    random = np.random.default_rng(seed)
    return pl.DataFrame(
        {
            "firm": random.integers(0, n // 3, n),
            "region": random.choice(["N", "S", "E"], n),
            "trade": random.choice(list("abcdefgh"), n),
            "turnover": np.rint(np.exp(random.normal(6, 2, n))).astype(np.int64),
            "wages": np.round(np.exp(random.normal(3, 1, n)), 1),
            "weight": random.choice([0.5, 1.0, 1.25, 4.0], n),
        }
    ).with_columns(group=pl.col("firm") // 3)


def problem(records: pl.DataFrame, **options: object) -> ts.Problem:
    settings = {"dimensions": {"region": None, "trade": None}, "value": "turnover", "respondent": "firm", **options}
    table = ts.tabulate(records, **settings)  # type: ignore[arg-type]
    return ts.Problem(table, rules=[ts.PPercent(p=10), ts.Threshold(n=3)])


def adds_up(release: ts.Release) -> bool:
    table = release.table
    integers = np.rint(release.values * 10**table.decimals).astype(np.int64)
    whole = np.allclose(release.values * 10**table.decimals, integers, rtol=0, atol=1e-6)
    return whole and not np.asarray(table.equations.astype(np.int64) @ integers).any()


@settings(max_examples=4)
@given(
    st.integers(0, 10_000),
    st.sampled_from(SHAPES),
    st.sampled_from(["turnover", "wages"]),
    st.sampled_from([None, "weight"]),
    st.sampled_from([None, "group"]),
    st.sampled_from(["nothing", "maximum", "range"]),
)
def test_noise_adds_up_and_says_nothing_false(
    seed: int, shape: Shape, value: str, weight: str | None, holding: str | None, announce: str
) -> None:
    found = problem(firms(120, seed), value=value, weight=weight, holding=holding)
    release = ts.protect(found, ts.Noise(shape=shape, seed=seed, announce=announce))  # type: ignore[arg-type]
    truth = found.table.value
    assert adds_up(release)
    assert ((release.lower <= truth) & (truth <= release.upper)).all()
    slack = np.asarray(found.table.columns["records"]) * 10.0**-found.table.decimals
    assert (np.abs(release.values - truth) <= 0.15 * truth + slack + 1e-9).all()


@pytest.mark.parametrize("shape", SHAPES)
def test_sizes_keep_between_their_limits(shape: Shape) -> None:
    sizes = draw_sizes(np.random.default_rng(1).random(20_000), 0.05, 0.15, shape)
    assert sizes.min() >= 0.05
    assert sizes.max() <= 0.15
    mean = {"uniform": 0.1, "triangular": 0.05 + 0.1 / 3, "normal": 0.1}[shape]
    assert sizes.mean() == pytest.approx(mean, abs=5 * 0.03 / np.sqrt(20_000))


def test_a_cell_of_one_company_moves_by_at_least_the_least() -> None:
    found = problem(firms(45))
    release = ts.protect(found, ts.Noise(least_percent=7, most_percent=9))
    alone = np.asarray(found.table.count) == 1
    change = np.abs(release.values / found.table.value - 1)[alone]
    assert alone.sum() > 5
    assert (change >= 0.07 - 1e-12).all()


def test_all_records_of_a_firm_have_one_factor_and_a_group_one_direction() -> None:
    records = firms(600).with_columns(turnover=pl.col("turnover") * 100_000)
    edited = ts.Noise(columns=("turnover",), respondent="firm", holding="group").edit(records)
    both = records.with_columns(factor=edited.records["turnover"] / records["turnover"])
    spread = both.group_by("firm").agg(pl.col("factor").max() - pl.col("factor").min())["factor"]
    assert spread.max() < 1e-4  # type: ignore[operator]
    sides = both.group_by("group").agg((pl.col("factor") > 1).n_unique())["factor"]
    assert sides.max() == 1
    assert both.group_by("group").agg(pl.col("factor").round(4).n_unique())["factor"].max() > 1  # type: ignore[operator]


def test_only_the_reported_part_of_a_weighted_record_is_noised() -> None:
    records = firms(300).with_columns(turnover=pl.col("turnover") * 1000 + 1000)
    table = ts.tabulate(records, dimensions=["firm"], value="turnover", weight="weight")
    release = ts.protect(ts.Problem(table), ts.Noise(least_percent=10, most_percent=10))
    moved = np.abs(release.values - table.value)
    reported = ts.tabulate(
        records.with_columns(own=pl.col("turnover") * pl.min_horizontal("weight", pl.lit(1.0))),
        dimensions=["firm"], value="own",
    )  # fmt: skip
    single = np.asarray(table.count) == 1
    assert single.sum() > 10
    np.testing.assert_allclose(moved[single], 0.1 * reported.value[single], rtol=1e-6, atol=1)


@pytest.mark.parametrize("holding", [None, "group"])
def test_noise_is_unbiased_within_the_standard_error(holding: str | None) -> None:
    records = firms(60, 3).with_columns(turnover=pl.col("turnover") % 7)
    draws = [
        ts.Noise(seed=seed, columns=("turnover",), respondent="firm", holding=holding).edit(records).records
        for seed in range(400)
    ]
    runs = np.stack([frame["turnover"].to_numpy() for frame in draws])
    error = (runs - records["turnover"].to_numpy()).mean(axis=0)
    deviation = runs.std(axis=0) / np.sqrt(len(runs))
    assert (np.abs(error) <= 4.5 * deviation + 1e-9).all()
    assert (runs >= 0).all()


def test_equal_seed_equal_release_whatever_the_order_of_the_records() -> None:
    records = firms(300)
    one = problem(records, respondent=None)
    other = problem(records.sample(fraction=1, shuffle=True, seed=5), respondent=None)
    method = ts.Noise(seed=9)
    first, second = ts.protect(one, method), ts.protect(other, method)
    np.testing.assert_array_equal(first.values, second.values)
    assert (first.values != ts.protect(one, ts.Noise(seed=10)).values).any()


def test_a_respondent_has_one_factor_in_every_table_and_filter() -> None:
    records = firms(300)
    method = ts.Noise(seed=9)
    part = (records["region"] == "N").to_numpy()
    all_of_it = method.edit(problem(records, holding="group")).records["turnover"].to_numpy()
    filtered = method.edit(problem(records, holding="group", where={"region": ["N"]})).records["turnover"].to_numpy()
    np.testing.assert_array_equal(all_of_it[part], filtered)


def test_without_a_seed_factors_hang_on_the_amounts_which_are_secret() -> None:
    records = firms(300)
    other = records.with_columns(turnover=pl.col("turnover") + (pl.int_range(300) == 0))

    def up(frame: pl.DataFrame, seed: int | None) -> list[bool]:
        after = ts.Noise(columns=("turnover",), respondent="firm", seed=seed).edit(frame).records
        return (after["turnover"] > frame["turnover"]).to_list()

    assert up(records, None) == up(records, None)
    assert up(records, None) != up(other, None), "whoever knows the respondents could draw the factors again"
    assert up(records, 1) == up(other, 1)
    assert "12345" not in repr(ts.Noise(seed=12345))


def test_records_without_a_respondent_are_on_their_own() -> None:
    records = firms(200).with_columns(firm=pl.lit(None, dtype=pl.String), turnover=pl.lit(1_000_000))
    after = ts.Noise(columns=("turnover",), respondent="firm").edit(records).records["turnover"]
    assert after.n_unique() > 150
    assert 50 < (after > 1_000_000).sum() < 150


def test_columns_may_be_called_like_measures() -> None:
    records = firms(100).rename({"region": "true", "trade": "published"})
    found = problem(records, dimensions=["true", "published"])
    frame = ts.Noise(announce="range").outcome(found).tables["noise_insiders.csv"]
    assert {"true (column)", "published (column)", "true", "published"} <= set(frame.columns)


def test_bounds_that_leave_out_the_truth_are_never_published() -> None:
    found = problem(firms(100))
    short = np.zeros(len(found.table), dtype=np.bool_)
    wrong = found.table.value + 1
    with pytest.raises(AssertionError, match="leave out the truth"):
        published(found, found.table.integers, wrong, wrong + 5, short, method="noise")
    with pytest.raises(AssertionError, match="was changed"):
        published(found, found.table.integers + 1, found.lower, found.upper, ~short, method="noise")


@settings(max_examples=4)
@given(st.integers(0, 10_000), st.sampled_from([1.0, 5.0, 40.0, 99.0]), st.sampled_from([None, "weight"]))
def test_what_is_announced_holds_the_truth_of_small_amounts_too(seed: int, most: float, weight: str | None) -> None:
    records = firms(90, seed).with_columns(turnover=pl.col("turnover") % 4)
    found = problem(records, weight=weight)
    after = tabulated(found.table, noise_adding(found, most, seed), "Noise", weight=None)
    lower, upper = announced(found, after, most / 100)
    assert (lower <= found.table.value + 1e-9).all()
    assert (found.table.value - 1e-9 <= upper).all()
    assert (upper[found.table.value > 0] < np.inf).all()


def noise_adding(found: ts.Problem, most: float, seed: int) -> pl.DataFrame:
    drawing = Drawing(0.01, most / 100, "uniform", seed, None, None, (), {})
    return noise_records(Microdata.of(found, "Noise"), drawing, found).adding


def test_balanced_noise_cancels_in_safe_cells_and_stays_in_sensitive_ones() -> None:
    records = firms(2_000, 2)
    found = problem(records)
    plain = [ts.protect(found, ts.Noise(seed=seed)) for seed in range(4)]
    offset = [ts.protect(found, ts.Noise(seed=seed, balance={"region": 1, "trade": -1})) for seed in range(4)]
    assert all(adds_up(release) for release in offset)
    inner = ~found.table.is_total & ~found.sensitivity.mask

    def size(releases: list[ts.Release]) -> float:
        return float(np.mean([np.abs(r.values / found.table.value - 1)[inner].mean() for r in releases]))

    assert size(offset) < 0.5 * size(plain)


def test_balancing_does_not_offset_the_noise_of_two_firms_in_a_sensitive_cell() -> None:
    trade = [f"t{i:02d}" for i in range(40) for _ in range(2)]
    records = pl.DataFrame({"firm": range(80), "trade": trade, "turnover": [100_000] * 80})
    found = problem(records, dimensions=["trade"])
    assert found.sensitivity.mask.sum() == 40
    after = ts.Noise(balance={"trade": -1}, seed=2).edit(found).records
    up = after.group_by("trade").agg((pl.col("turnover") > 100_000).sum())["turnover"]
    assert set(up) == {0, 1, 2}, "of two firms both may go the same way"


@settings(max_examples=30)
@given(st.integers(0, 10_000), st.integers(2, 40))
def test_balancing_leaves_no_more_than_the_largest_move(seed: int, n: int) -> None:
    random = np.random.default_rng(seed)
    amount = random.random(n) * 100
    first = np.where(random.random(n) < 0.5, 1.0, -1.0)
    direction = balanced(np.arange(n), np.zeros(n, dtype=np.int64), amount, first)
    assert set(direction.tolist()) <= {-1.0, 1.0}
    assert abs((direction * amount).sum()) <= amount.max() + 1e-9
    np.testing.assert_array_equal(balanced(np.arange(n), np.zeros(n, dtype=np.int64), amount, -first), -direction)


def test_several_responses_stay_tied() -> None:
    table = ts.tabulate(
        firms(), dimensions=["region", "trade"], value=["turnover", "wages"],
        equations=["both = turnover + wages"], respondent="firm",
    )  # fmt: skip
    release = ts.protect(ts.Problem(table), ts.Noise(announce="maximum"))
    assert adds_up(release)
    assert ((release.lower <= table.value) & (table.value <= release.upper)).all()


def test_other_tables_of_the_changed_records_agree() -> None:
    found = problem(firms())
    method = ts.Noise(seed=4)
    edited, release = method.edit(found), ts.protect(found, method)
    other = edited.tabulate(dimensions={"trade": None})
    assert other.value[other.index()] == release.values[found.table.index()]
    for code in ("a", "b", "c"):
        assert other.value[other.index(trade=code)] == release.values[found.table.index(trade=code)]


def test_nothing_is_concluded_from_sums_that_may_be_negative() -> None:
    records = firms(100).with_columns(turnover=pl.col("turnover") - 300)
    found = problem(records)
    release = ts.protect(found, ts.Noise(announce="maximum"))
    np.testing.assert_array_equal(release.lower, found.lower)
    np.testing.assert_array_equal(release.upper, found.upper)


@settings(max_examples=10)
@given(st.integers(0, 10_000))
def test_cell_noise_moves_sensitive_cells_by_their_levels_and_adds_up(seed: int) -> None:
    found = problem(firms(150, seed))
    release = ts.protect(found, ts.Noise(level="cell", seed=seed))
    table, mask = found.table, found.sensitivity.mask
    assert adds_up(release)
    assert (release.values >= 0).all()
    moved = np.abs(release.values - table.value)
    down = release.values == 0
    assert (moved[mask & ~down] >= found.sensitivity.upper[mask & ~down] - 1e-9).all()
    truth = table.value
    assert ((release.lower <= truth) & (truth <= release.upper)).all()
    exact = release.lower == release.upper
    np.testing.assert_array_equal(release.values[exact], truth[exact])


def test_cell_noise_is_unbiased_on_inner_cells_within_the_standard_error() -> None:
    found = problem(firms(60, 8))
    inner = found.sensitivity.mask & ~found.table.is_total & (found.table.value > 0)
    levels = np.where(inner, found.sensitivity.upper, 0.0)
    found = found.replace(sensitivity=ts.Sensitivity.of(inner, levels))
    runs = np.stack([ts.protect(found, ts.Noise(level="cell", seed=seed)).values for seed in range(400)])
    error = (runs - found.table.value).mean(axis=0)[inner]
    deviation = (runs.std(axis=0) / np.sqrt(len(runs)))[inner]
    assert (np.abs(error) <= 4.5 * deviation + 1e-9).all()


def test_cell_noise_needs_no_records() -> None:
    frame = pl.DataFrame({"a": ["x", "y", "z", "Total"], "value": [10, 20, 30, 60]})
    table = ts.Table.from_cells(frame, dimensions=["a"])
    mask = table.value == 20
    found = ts.Problem(table, sensitivity=ts.Sensitivity.of(mask, np.where(mask, 4.0, 0.0)))
    release = ts.protect(found, ts.Noise(level="cell"))
    assert adds_up(release)
    assert ts.audit(found, release).safe
    with pytest.raises(InvalidOption, match="read as cells"):
        ts.protect(found, ts.Noise())


def test_the_audit_judges_what_was_announced() -> None:
    found = problem(firms(200, 6))
    assert ts.audit(found, ts.protect(found, ts.Noise())).safe
    assert not ts.audit(found, ts.protect(found, ts.Noise(least_percent=1, most_percent=2, announce="maximum"))).safe


def test_insiders_and_holes_are_told_to_the_office() -> None:
    found = problem(firms(200, 6))
    tables = ts.Noise(announce="range").outcome(found).tables
    frame = tables["noise_insiders.csv"]
    assert len(frame) == found.sensitivity.mask.sum()
    alone = frame.filter(pl.col("contributors") == 1)
    outside = (alone["true"] <= alone["not from"] + 1) | (alone["true"] >= alone["not to"] - 1)
    assert outside.all()
    assert frame.filter(pl.col("contributors") > 1)["not from"].null_count() == len(frame) - len(alone)


def test_an_insider_who_reads_its_own_factor_still_meets_that_of_the_other() -> None:
    records = pl.DataFrame({"firm": ["A", "B", "B"], "trade": ["x", "x", "y"], "turnover": [9_000, 4_000, 5_000]})
    table = ts.tabulate(records, dimensions=["trade"], value="turnover", respondent="firm")
    found = ts.Problem(table, rules=[ts.PPercent(p=10)])
    frame = ts.Noise(least_percent=6, most_percent=8, seed=1).outcome(found).tables["noise_insiders.csv"]
    near = frame.filter(pl.col("trade") == "x")["insider who reads its factor within percent"].item()
    assert 6 - 0.1 <= near <= 8 + 0.1


def test_real_utilities(instances: Path) -> None:
    table = ts.tabulate(
        instances / "microdata" / "eia_utilities_1996.csv", dimensions={"STATE": None, "MONTH": None},
        value="RESREVENUE", respondent="UTILITYID",
    )  # fmt: skip
    found = ts.Problem(table, rules=[ts.PPercent(p=10)])
    release = ts.protect(found, ts.Noise(balance={"STATE": -1, "MONTH": -1}))
    assert adds_up(release)
    assert abs(release.values[table.index()] / table.value[table.index()] - 1) < 0.01


@pytest.mark.parametrize(
    "options",
    [
        {"least_percent": 0}, {"least_percent": 20}, {"most_percent": 100}, {"shape": "flat"}, {"level": "firm"},
        {"announce": "all"}, {"level": "cell", "announce": "range"}, {"level": "cell", "balance": {"region": 1}},
        {"least_percent": "5"}, {"columns": "turnover"}, {"respondent": 3}, {"seed": -1}, {"seed": 0.5},
    ],
)  # fmt: skip
def test_wrong_options_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(InvalidOption, match="Noise"):
        ts.Noise(**options)  # type: ignore[arg-type]


def test_wrong_columns_and_tables_are_refused() -> None:
    records = firms()
    with pytest.raises(InvalidOption, match="did you mean 'turnover'"):
        ts.Noise(columns=("turnove",)).edit(records)
    with pytest.raises(InvalidOption, match="counts records"):
        ts.protect(problem(records, value=None), ts.Noise())
    with pytest.raises(InvalidOption, match="no dimension"):
        ts.protect(problem(records), ts.Noise(balance={"country": 1}))
    with pytest.raises(InvalidOption, match="evels"):
        ts.protect(problem(records), ts.Noise(balance={"region": 0}))
    found = problem(records)
    frozen = np.zeros(len(found.table), dtype=np.bool_)
    frozen[found.table.index()] = True
    with pytest.raises(InvalidProblem, match="frozen"):
        ts.protect(found.replace(frozen=frozen), ts.Noise())
