"""Blank and impute: rates, tolerance of the margins, donors and models."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tablesafe as ts
from tablesafe.core.errors import InvalidOption, InvalidTable

AREAS = ("region", "municipality")
WAYS: dict[str, dict[str, Any]] = {
    "random": {"classes": ("age", "sex")},
    "nearest": {"classes": ("sex",), "donor": "nearest", "near": ("size",)},
    "sequential": {"classes": ("sex",), "donor": "sequential", "near": ("size",)},
    "model": {"method": "model", "predictors": ("age", "sex", "size")},
}


def census(n: int = 900, seed: int = 0) -> pl.DataFrame:
    random = np.random.default_rng(seed)
    area = random.choice(9, p=np.array([20, 18, 16, 14, 12, 9, 6, 3, 2]) / 100, size=n)
    old = random.random(n) < 0.4
    job = np.where(old, random.choice(list("abcd"), n), random.choice(list("cdefgh"), n))
    return pl.DataFrame(
        {
            "region": [f"R{a % 3}" for a in area],
            "municipality": [f"M{a}" for a in area],
            "age": np.where(old, "old", "young"),
            "sex": random.choice(["f", "m"], n),
            "size": random.integers(1, 7, n),
            "job": job,
            "income": np.round(np.exp(random.normal(np.where(old, 4.0, 3.0), 0.3, n)), 1),
        }
    )


@settings(max_examples=8)
@given(
    st.integers(0, 10_000),
    st.integers(40, 500),
    st.sampled_from(sorted(WAYS)),
    st.sampled_from([("job",), ("job", "income"), ("job", "municipality")]),
    st.sampled_from([0.0, 0.002, 0.01, 0.1]),
    st.sampled_from([(), ("region",)]),
    st.floats(0.02, 0.6),
)
def test_margins_stay_within_the_tolerance(
    seed: int, n: int, way: str, columns: tuple[str, ...], tolerance: float, within: tuple[str, ...], rate: float
) -> None:
    records = census(n, seed)
    method = ts.BlankAndImpute(columns=columns, tolerance=tolerance, within=within, rate=rate, seed=seed, **WAYS[way])
    edited = method.edit(records)
    for column in columns:
        if column == "income":
            continue
        before, after = (
            frame.group_by(*within, column).len().rename({"len": name})
            for frame, name in ((records, "before"), (edited.records, "after"))
        )
        both = before.join(after, on=[*within, column], how="full", coalesce=True).fill_null(0)
        sizes = both.with_columns(n=pl.col("before").sum().over(within) if within else pl.col("before").sum())
        assert ((sizes["after"].cast(int) - sizes["before"].cast(int)).abs() <= tolerance * sizes["n"] + 1e-9).all()
    if "income" in columns and not within:
        change = float(edited.records["income"].sum()) / float(records["income"].sum()) - 1
        assert abs(change) <= tolerance + 1e-9
    untouched = [name for name in records.columns if name not in columns]
    assert edited.records.select(untouched).equals(records.select(untouched))
    same = np.all([(edited.records[c] == records[c]).to_numpy() for c in columns], axis=0)
    np.testing.assert_array_equal(edited.changed, ~same)
    assert edited.facts["largest change of a share"] <= tolerance + 1e-12


@settings(max_examples=20)
@given(st.integers(0, 10_000), st.floats(0.01, 0.5))
def test_rates_are_met_in_every_area(seed: int, rate: float) -> None:
    records = census(600, seed)
    edited = ts.BlankAndImpute(
        columns=("job",), geography=AREAS, rate=rate, rate_by_population=((50, 0.5),), key=("age", "job"), seed=seed
    ).edit(records)
    strata = edited.tables["strata.csv"]
    n = strata["records"].to_numpy()
    asked = np.where(n < 50, 0.5, rate) * n
    assert (strata["blanked"].to_numpy() >= np.floor(asked + 1e-9)).all()
    assert (strata["blanked"].to_numpy() <= np.ceil(asked - 1e-9)).all()
    assert n.sum() == len(records)
    risky = strata.filter(pl.col("at risk and blanked") < pl.col("at risk"))
    assert (risky["at risk and blanked"] == risky["blanked"]).all(), "those at risk come first"


def test_margins_are_reported_as_they_are() -> None:
    records = census()
    edited = ts.BlankAndImpute(columns=("job",), rate=0.3, tolerance=0.01).edit(records)
    margins = edited.tables["margins.csv"]
    after = edited.records.group_by("job").len().sort("job")
    assert margins.sort("class")["records after"].to_list() == after["len"].to_list()
    assert margins["records before"].sum() == len(records)
    assert margins["change of the share"].abs().max() <= 0.01  # type: ignore[operator]


def test_a_donor_is_of_the_same_class_and_gives_all_its_values() -> None:
    records = census(2_000, 1)
    edited = ts.BlankAndImpute(
        columns=("job", "income"), classes=("age", "sex"), rate=0.3, tolerance=0.2, amounts=("income",)
    ).edit(records)
    donors = records.select("age", "sex", "job", "income").unique()
    filled = edited.records.filter(pl.Series(edited.changed)).select("age", "sex", "job", "income").unique()
    assert filled.join(donors, on=filled.columns, how="anti").is_empty()


def test_nearest_donors_are_near() -> None:
    records = census(3_000, 2).with_columns(age_years=pl.int_range(3_000) % 80)
    records = records.with_columns(job=pl.col("age_years").cast(pl.String))  # the value tells who gave it
    for donor in ("nearest", "sequential"):
        edited = ts.BlankAndImpute(
            columns=("job",), classes=("sex",), donor=donor, near=("age_years",), rate=0.1, tolerance=0.5
        ).edit(records)
        given = edited.records["job"].cast(int) - records["age_years"]
        assert given.abs().max() <= 2  # type: ignore[operator]


def test_a_class_without_donors_is_widened() -> None:
    records = census(300).with_columns(number=pl.int_range(300))
    edited = ts.BlankAndImpute(columns=("job",), classes=("age", "number"), rate=0.2, tolerance=0.5).edit(records)
    assert edited.facts["records with a donor from a wider class"] == edited.facts["records blanked"]
    filled = edited.records.filter(pl.Series(edited.changed))
    assert set(filled.filter(pl.col("age") == "old")["job"]) <= set("abcd")


def test_a_model_keeps_what_goes_together() -> None:
    records = census(6_000, 3)
    edited = ts.BlankAndImpute(
        columns=("job", "income"), amounts=("income",), method="model", predictors=("age",), rate=0.4, tolerance=0.1
    ).edit(records)
    drawn = edited.records.filter(pl.Series(edited.changed))
    old = drawn.filter(pl.col("age") == "old")
    assert old["job"].is_in(list("abcd")).mean() > 0.95  # type: ignore[operator]
    means = drawn.group_by("age").agg(pl.col("income").mean()).sort("age")["income"]
    truth = records.group_by("age").agg(pl.col("income").mean()).sort("age")["income"]
    np.testing.assert_allclose(means.to_numpy(), truth.to_numpy(), rtol=0.05)
    share = drawn.filter(pl.col("age") == "old")["job"].value_counts(normalize=True).sort("job")["proportion"][:4]
    np.testing.assert_allclose(share.to_numpy(), 0.25, atol=4 * np.sqrt(0.25 * 0.75 / len(old)))
    assert edited.records["income"].round(1).equals(edited.records["income"])


def test_blanked_values_are_passed_on_when_nothing_may_move() -> None:
    records = census(500, 4)
    edited = ts.BlankAndImpute(columns=("job",), classes=("sex",), rate=0.3, tolerance=0.0).edit(records)
    assert edited.records["job"].sort().equals(records["job"].sort())
    assert edited.facts["records put back to the truth"] == 0
    assert edited.changed.sum() > 0.5 * edited.facts["records blanked"]


@pytest.mark.parametrize("way", sorted(WAYS))
def test_whoever_has_no_amount_stays_without_and_gives_none(way: str) -> None:
    records = census(600, 5).with_columns(income=pl.when(pl.int_range(600) % 3 > 0).then("income"))
    edited = ts.BlankAndImpute(columns=("income",), rate=0.4, tolerance=0.5, **WAYS[way]).edit(records)
    assert edited.records["income"].is_null().equals(records["income"].is_null())
    assert edited.facts["records blanked"] == pytest.approx(0.4 * 400, abs=1)
    assert edited.records["income"].min() >= records["income"].min()  # type: ignore[operator]


def test_a_file_without_records_stays_so() -> None:
    assert len(ts.BlankAndImpute(columns=("job", "income"), rate=0.4).edit(census().head(0)).records) == 0
    assert len(ts.Swap(geography=AREAS, rate=0.4).edit(census().head(0)).records) == 0


def test_text_with_a_point_is_a_code() -> None:
    records = census(400, 6).with_columns(trade=pl.Series([f"{i % 7}.{i % 3}" for i in range(400)]))
    edited = ts.BlankAndImpute(columns=("trade",), rate=0.4, tolerance=0.1).edit(records)
    assert edited.changed.any()
    assert set(edited.records["trade"]) <= set(records["trade"])


@pytest.mark.parametrize("way", sorted(WAYS))
def test_equal_seed_equal_release_whatever_the_order_of_the_records(way: str) -> None:
    records = census(400)
    method = ts.BlankAndImpute(columns=("job",), rate=0.3, seed=3, tolerance=0.004, **WAYS[way])
    one, other = method.edit(records).records, method.edit(records.sample(fraction=1, shuffle=True, seed=1)).records
    assert one.sort(one.columns).equals(other.sort(one.columns))
    assert not ts.BlankAndImpute(columns=("job",), rate=0.3, seed=4, **WAYS[way]).edit(records).records.equals(one)


def problem(records: pl.DataFrame, **options: Any) -> ts.Problem:
    shape = {"dimensions": {"municipality": None, "age": None, "job": None}, "zeros": True, **options}
    return ts.Problem(ts.tabulate(records, **shape), rules=[ts.Threshold(n=3)])


@settings(max_examples=4)
@given(st.integers(0, 10_000), st.sampled_from(["nothing", "rate"]))
def test_the_release_says_nothing_false(seed: int, announce: Any) -> None:
    found = problem(census(400, seed))
    method = ts.BlankAndImpute(columns=("job",), geography=AREAS, rate=0.1, announce=announce, seed=seed)
    release = ts.protect(found, method)
    table = found.table
    assert not np.asarray(table.equations.astype(np.int64) @ release.values.astype(np.int64)).any()
    assert ((release.lower <= table.value) & (table.value <= release.upper)).all()
    exact = release.lower == release.upper
    np.testing.assert_array_equal(release.values[exact], table.value[exact])
    top = table.codes[:, list(table.dimensions).index("job")] == table.dimensions["job"].position("Total")
    assert exact[top].all()
    if announce == "nothing":
        assert not exact[~top].any()


def test_amounts_that_are_blanked_are_nowhere_known() -> None:
    found = problem(census(), value="income")
    release = ts.protect(found, ts.BlankAndImpute(columns=("income",), classes=("age",), rate=0.2))
    assert (release.lower < release.upper).all()
    total = found.table.index()
    assert abs(release.values[total] / found.table.value[total] - 1) <= 0.005 + 1e-9


def test_a_record_in_a_combination_without_a_cell_is_an_error_or_avoided() -> None:
    found = problem(census(200, 2), zeros=False)
    with pytest.raises(InvalidOption, match=r"no cells of this table(.|\n)*zeros=True"):
        ts.protect(found, ts.BlankAndImpute(columns=("job",), rate=0.4, tolerance=0.1))
    method = ts.BlankAndImpute(columns=("job",), rate=0.4, tolerance=0.1, new_cells="avoid")
    release = ts.protect(found, method)
    assert (release.values != found.table.value).any()
    assert (release.lower >= 1).all()


def test_the_outcome_tells_what_changed() -> None:
    found = problem(census())
    outcome = ts.BlankAndImpute(columns=("job",), geography=AREAS, key=("age", "job"), rate=0.3).outcome(found)
    assert {"edit_measures.csv", "strata.csv", "margins.csv", "distances.csv", "chances.csv"} <= set(outcome.tables)
    assert outcome.edited is not None
    table = outcome.edited.tabulate()
    np.testing.assert_array_equal(table.value, outcome.release.values)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"rate": 1.2}, "from 0 to 1"), ({"tolerance": -0.1}, "from 0 to 1"), ({"columns": ()}, "columns"),
        ({"k": 0}, "BlankAndImpute.k"), ({"method": "guess"}, "method"), ({"donor": "best"}, "donor"),
        ({"columns": "job"}, "put it into brackets"), ({"seed": -1}, "seed"), ({"rate": None}, "number from 0 to 1"),
        ({"predictors": ("age",)}, "is for method='model'"), ({"near": ("size",)}, "is for donor"),
        ({"method": "model", "donor": "nearest"}, "is for method='hot deck'"),
    ],
)  # fmt: skip
def test_wrong_options_are_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidOption, match=words):
        ts.BlankAndImpute(**{"columns": ("job",), **options})


def test_wrong_columns_and_tables_are_refused() -> None:
    records = census()
    cases: list[tuple[dict[str, Any], type[Exception], str]] = [
        ({"columns": ("jo",)}, InvalidOption, "did you mean 'job'"),
        ({"columns": ("job",), "classes": ("job",)}, InvalidOption, "which is blanked"),
        ({"columns": ("job",), "rate": 1.0}, InvalidOption, "leaves none to learn from"),
        ({"columns": ("job",), "donor": "nearest"}, InvalidOption, "near"),
        ({"columns": ("job",), "donor": "nearest", "near": ("sex",)}, InvalidTable, "should hold numbers"),
    ]
    for options, kind, words in cases:
        with pytest.raises(kind, match=words):
            ts.BlankAndImpute(**options).edit(records)
    table = ts.Table.from_cells(
        pl.DataFrame({"a": ["x", "y"], "value": [1, 2]}), dimensions=["a"], missing_totals="none"
    )
    with pytest.raises(InvalidOption, match="read as cells"):
        ts.protect(ts.Problem(table), ts.BlankAndImpute(columns=("a",)))
