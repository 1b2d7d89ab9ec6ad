"""Record swapping: promised totals, rates by area, levels, households."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tablesafe as ts
from tablesafe.core.errors import InvalidOption, InvalidProblem
from tablesafe.methods.records.behind import Microdata
from tablesafe.methods.records.swap.pairing import NOBODY, Pairs, never_left

AREAS = ("region", "municipality")


def census(n: int = 900, seed: int = 0, areas: int = 9) -> pl.DataFrame:
    random = np.random.default_rng(seed)
    household = np.sort(random.integers(0, n // 2, n))
    share = random.random(areas) + 0.2
    area = random.choice(areas, p=share / share.sum(), size=n // 2)[household]
    return pl.DataFrame(
        {
            "household": household,
            "region": [f"R{a % 3}" for a in area],
            "municipality": [f"M{a}" for a in area],
            "age": random.choice(["young", "middle", "old"], n),
            "sex": random.choice(["f", "m"], n),
            "job": random.choice(list("abcdefgh"), p=np.array([40, 25, 15, 8, 6, 3, 2, 1]) / 100, size=n),
            "income": random.integers(10, 99, n),
        }
    )


def counts(records: pl.DataFrame, *columns: str) -> pl.DataFrame:
    return records.group_by(columns).len().sort(columns)


def quietly(method: ts.Swap, records: pl.DataFrame) -> ts.Edited:
    """Small random files may lack partners: that is told, and not the question here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return method.edit(records)


@settings(max_examples=25)
@given(
    st.integers(0, 10_000),
    st.integers(60, 600),
    st.integers(2, 12),
    st.sampled_from([(), ("age",), ("age", "sex")]),
    st.sampled_from([None, "household"]),
    st.sampled_from([(), ("age", "job")]),
    st.floats(0.02, 0.5),
)
def test_promised_totals_stay_exactly(
    seed: int, n: int, areas: int, match: tuple[str, ...], household: str | None, key: tuple[str, ...], rate: float
) -> None:
    records = census(n, seed, areas)
    method = ts.Swap(geography=AREAS, match=match, household=household, key=key, rate=rate, seed=seed)
    try:
        edited = quietly(method, records)
    except InvalidOption as error:
        assert "no two units" in str(error)  # noqa: PT017
        return
    after = edited.records
    for levels in (AREAS, ("region",)):
        assert counts(records, *levels, *match).equals(counts(after, *levels, *match))
    assert counts(records, "age", "sex", "job", "income").equals(counts(after, "age", "sex", "job", "income"))
    if household:
        assert after.group_by("household").agg(pl.col("municipality").n_unique())["municipality"].max() == 1
        assert (
            counts(records, *AREAS, "household")
            .select("len")
            .sort("len")
            .equals(counts(after, *AREAS, "household").select("len").sort("len"))
        )
    moved = (after["municipality"] != records["municipality"]).to_numpy()
    np.testing.assert_array_equal(moved, edited.changed)


@settings(max_examples=25)
@given(st.integers(0, 10_000), st.integers(3, 12), st.floats(0.01, 0.4), st.booleans())
def test_rates_are_met_in_every_area(seed: int, areas: int, rate: float, targeted: bool) -> None:
    records = census(1_500, seed, areas)
    key = ("age", "job") if targeted else ()
    steps = ((100, min(1.0, 2 * rate)),)
    edited = quietly(
        ts.Swap(geography=AREAS, match=("sex",), key=key, rate=rate, rate_by_population=steps, seed=seed), records
    )
    moved = records.with_columns(moved=pl.Series(edited.changed)).group_by("municipality").agg(
        pl.len(), pl.col("moved").sum()
    )  # fmt: skip
    n, swapped = moved["len"].to_numpy(), moved["moved"].to_numpy()
    asked = np.where(n < 100, min(1.0, 2 * rate), rate) * n
    assert (swapped <= np.ceil(asked - 1e-9)).all()
    if np.floor(asked).max() <= 0.45 * np.floor(asked).sum():  # no area needs more partners than there are elsewhere
        short = np.floor(asked + 1e-9) - swapped
        assert short.sum() <= 1  # an odd number of swaps cannot be paired
        assert short.max() <= 1


def test_strata_say_what_was_asked_and_done() -> None:
    records = census()
    edited = ts.Swap(geography=AREAS, match=("sex",), key=("job",), rate=0.2).edit(records)
    strata = edited.tables["strata.csv"]
    assert (strata["swapped"] >= strata["asked at least"]).all()
    assert (strata["swapped"] <= strata["asked at most"]).all()
    assert strata["units"].sum() == len(records)
    assert strata["swapped"].sum() == edited.facts["records changed"] == edited.changed.sum()


def test_whoever_is_too_rare_in_a_region_leaves_it() -> None:
    records = census(1_200, 4)
    edited = ts.Swap(geography=AREAS, match=("sex",), key=("age", "job"), k=4, rate=0.3, all_at_risk=True).edit(records)
    rare = (records.select(pl.len().over("region", "age", "job") < 4)).to_series()
    assert rare.sum() > 5
    both = records.with_columns(now=edited.records["region"]).filter(rare)
    assert (both["now"] != both["region"]).all()
    assert edited.facts["units at risk swapped"] == edited.facts["units at risk"]


@settings(max_examples=25)
@given(
    st.integers(0, 10_000), st.integers(30, 500), st.integers(2, 12), st.sampled_from([0.05, 0.3, 1.0]), st.booleans(),
    st.sampled_from([("sex",), ("sex", "job")]),
)  # fmt: skip
def test_nobody_rare_swaps_without_crossing_the_border(
    seed: int, n: int, areas: int, rate: float, everyone: bool, match: tuple[str, ...]
) -> None:
    records = census(n, seed, areas)
    method = ts.Swap(
        geography=AREAS, match=match, key=("age", "job"), rate=rate, all_at_risk=everyone, fallback=(("sex",),),
        seed=seed,
    )  # fmt: skip
    try:
        edited = quietly(method, records)
    except InvalidOption as error:
        assert "no two units" in str(error)  # noqa: PT017
        return
    rare = records.select(pl.len().over("region", "age", "job") < 3).to_series().to_numpy()
    stayed = (edited.records["region"] == records["region"]).to_numpy()
    assert records["region"].n_unique() == 1 or not (edited.changed & rare & stayed).any()
    if records["region"].n_unique() == 1 and everyone and records["municipality"].n_unique() > 1:
        assert edited.changed[rare].any() or not rare.any(), "without a border they swap at the next level"


def test_somebody_at_risk_without_a_partner_is_told() -> None:
    records = census(1_200, 4).with_columns(job=pl.when(pl.int_range(1_200) == 7).then(pl.lit("king")).otherwise("job"))
    with pytest.warns(UserWarning, match="1 units at risk stay where they are"):
        edited = ts.Swap(
            geography=AREAS, match=("job",), key=("job",), rate=0.2, all_at_risk=True, seed=1
        ).edit(records)  # fmt: skip
    assert not edited.changed[7]


def test_an_area_that_everyone_is_matched_on_is_never_left_and_known() -> None:
    records = census(1_200, 6)
    pairs = records.select("region", "municipality").unique().sort("region", "municipality").rows()
    tree = ts.Hierarchy.from_pairs([("Total", r) for r in ("R0", "R1", "R2")] + list(pairs))
    table = ts.tabulate(
        records, dimensions={"place": tree, "job": None}, column_of={"place": "municipality"}, zeros=True
    )
    depth = tree.depth[table.codes[:, 0]]
    for match, known in ((("sex",), False), (("sex", "region"), True)):
        release = quietly_protected(ts.Problem(table), ts.Swap(geography=("place",), match=match, rate=0.2))
        exact = release.lower == release.upper
        assert bool(exact[depth == 1].all()) is known
        assert not exact[depth == 2].all()
        assert bool((release.values == table.value)[depth == 1].all()) is known


@settings(max_examples=8)
@given(st.lists(st.tuples(st.sampled_from("ABCD"), st.sampled_from("fm")), min_size=1, max_size=9))
def test_an_area_is_known_only_if_it_holds_all_of_a_class_or_none(rows: list[tuple[str, str]]) -> None:
    records = pl.DataFrame(rows, schema=["place", "sex"], orient="row")
    table = ts.tabulate(records, dimensions=["place", "sex"], zeros=True)
    microdata = Microdata.of(table, "Swap")
    found = never_left(table, microdata, ["place"], microdata.classes(["sex"]))
    for code in {place for place, _ in rows}:
        parts = [{place == code for place, sex in rows if sex == one} for one in "fm"]
        at = table.index(place=code)
        assert found[at] == all(len(part) <= 1 for part in parts)
    assert found[table.index()]


def test_columns_may_be_called_like_measures() -> None:
    strata = (
        ts.Swap(geography=("units",), rate=0.2).edit(census().rename({"municipality": "units"})).tables["strata.csv"]
    )
    assert strata["units (column)"].str.starts_with("M").all()
    assert strata["units"].sum() == 900


def test_those_at_risk_come_first_and_others_stay_near() -> None:
    records = census(3_000, 5, 12)
    edited = ts.Swap(geography=AREAS, match=("sex",), key=("age", "job"), rate=0.15).edit(records)
    few = records.select(pl.len().over("municipality", "age", "job") < 3).to_series().to_numpy()
    assert edited.changed[few].mean() > 2 * edited.changed[~few].mean()
    stayed = (edited.records["region"] == records["region"]).to_numpy()
    assert stayed[edited.changed & ~few].mean() > 0.6


def test_a_hierarchy_of_the_table_brings_its_levels() -> None:
    records = census(1_200, 6)
    pairs = records.select("region", "municipality").unique().sort("region", "municipality").rows()
    tree = ts.Hierarchy.from_pairs([("Total", r) for r in ("R0", "R1", "R2")] + list(pairs))
    table = ts.tabulate(
        records, dimensions={"place": tree, "job": None}, column_of={"place": "municipality"}, zeros=True
    )
    edited = ts.Swap(geography=("place",), match=("sex",), key=("age", "job"), rate=0.2, all_at_risk=True).edit(table)
    by_columns = ts.Swap(geography=AREAS, match=("sex",), key=("age", "job"), rate=0.2, all_at_risk=True).edit(records)
    assert edited.facts["units at risk"] == by_columns.facts["units at risk"]
    rare = records.select(pl.len().over("region", "age", "job") < 3).to_series()
    region = dict((m, r) for r, m in pairs)  # noqa: C402
    now = edited.records["municipality"].replace_strict(region)
    assert (now != records["region"]).filter(rare).all()


def test_a_fallback_finds_partners_and_promises_less() -> None:
    records = census(400, 7).with_columns(number=pl.int_range(400) % 150)
    strict = quietly(ts.Swap(geography=AREAS, match=("age", "number"), rate=0.3), records)
    loose = quietly(ts.Swap(geography=AREAS, match=("age", "number"), fallback=(("age",),), rate=0.3), records)
    assert loose.changed.sum() > strict.changed.sum()
    assert counts(loose.records, *AREAS, "age").equals(counts(records, *AREAS, "age"))
    assert loose.facts["units swapped by fallback 1"] > 0


def test_carried_columns_go_with_the_area() -> None:
    records = census().with_columns(grid=pl.col("municipality") + "-" + pl.col("household").cast(pl.String))
    after = ts.Swap(geography=AREAS, carry=("grid",), match=("sex",), rate=0.2).edit(records).records
    assert (after["grid"].str.split("-").list.first() == after["municipality"]).all()


def test_equal_seed_equal_release_whatever_the_order_of_the_records() -> None:
    records = census()
    for household in (None, "household"):
        method = ts.Swap(geography=AREAS, match=("sex",), key=("job",), rate=0.2, household=household, seed=3)
        one = method.edit(records).records
        other = method.edit(records.sample(fraction=1, shuffle=True, seed=1)).records
        assert one.sort(one.columns).equals(other.sort(one.columns))
        again = ts.Swap(geography=AREAS, match=("sex",), key=("job",), rate=0.2, household=household, seed=4)
        assert not again.edit(records).records.equals(one)


def problem(records: pl.DataFrame, *, zeros: bool = True, **options: object) -> ts.Problem:
    shape = {"dimensions": {"municipality": None, "sex": None, "job": None}, **options}
    return ts.Problem(ts.tabulate(records, zeros=zeros, **shape), rules=[ts.Threshold(n=3)])  # type: ignore[arg-type]


@settings(max_examples=4)
@given(st.integers(0, 10_000), st.sampled_from(["nothing", "rate"]), st.sampled_from([None, "household"]))
def test_the_release_says_nothing_false(seed: int, announce: str, household: str | None) -> None:
    found = problem(census(400, seed))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        release = ts.protect(
            found,
            ts.Swap(geography=AREAS, match=("sex",), rate=0.1, announce=announce, household=household, seed=seed),  # type: ignore[arg-type]
        )
    table = found.table
    assert not np.asarray(table.equations.astype(np.int64) @ release.values.astype(np.int64)).any()
    assert ((release.lower <= table.value) & (table.value <= release.upper)).all()
    exact = release.lower == release.upper
    np.testing.assert_array_equal(release.values[exact], table.value[exact])
    job = table.codes[:, list(table.dimensions).index("job")]
    top = table.dimensions["job"].position("Total")
    assert exact[job == top].all(), "counts by area and sex are promised"
    if announce == "nothing":
        place = table.codes[:, list(table.dimensions).index("municipality")]
        changed = (job != top) & (place != table.dimensions["municipality"].position("Total"))
        assert not exact[changed].any()


def test_amounts_are_promised_only_where_nothing_moves() -> None:
    found = problem(census(), value="income")
    release = ts.protect(found, ts.Swap(geography=AREAS, match=("sex",), rate=0.1))
    exact = release.lower == release.upper
    place = found.table.codes[:, list(found.table.dimensions).index("municipality")]
    np.testing.assert_array_equal(exact, place == found.table.dimensions["municipality"].position("Total"))


def test_a_record_in_a_combination_without_a_cell_is_an_error_or_avoided() -> None:
    records = census(300, 2)
    found = problem(records, zeros=False)
    with pytest.raises(InvalidOption, match=r"no cells of this table(.|\n)*zeros=True"):
        quietly_protected(found, ts.Swap(geography=AREAS, match=("sex",), rate=0.3))
    method = ts.Swap(geography=AREAS, match=("sex",), rate=0.3, new_cells="avoid")
    release = quietly_protected(found, method)
    assert (release.values != found.table.value).any()
    assert (release.lower >= 1).all(), "a table without empty cells tells that somebody is there"
    assert quietly(method, records).changed.sum() > 0


def quietly_protected(found: ts.Problem, method: ts.Swap) -> ts.Release:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ts.protect(found, method)


def test_linked_margins_are_swapped_together() -> None:
    records = census()
    margins = [("municipality", "age"), ("municipality", "job"), ("age", "job")]
    for cube in ("tie", "ignore"):
        table = ts.tabulate(records, dimensions=["municipality", "age", "job"], margins=margins, zeros=True, cube=cube)
        release = ts.protect(ts.Problem(table), ts.Swap(geography=AREAS, match=("age",), rate=0.2))
        shown = np.asarray(abs(table.equations[:, table.seen :]).sum(axis=1)) == 0
        values = release.values[: table.seen].astype(np.int64)
        assert not np.asarray(table.equations[shown][:, : table.seen].astype(np.int64) @ values).any()
        assert np.isnan(release.values[table.seen :]).all(), "unseen cells stay unseen"


def test_the_audit_judges_the_release() -> None:
    found = problem(census(1_500, 3))
    assert ts.audit(found, ts.protect(found, ts.Swap(geography=AREAS, rate=0.2)), exact=False).safe
    kept = ts.protect(found, ts.Swap(geography=AREAS, match=("sex", "job"), rate=0.2))
    assert not ts.audit(found, kept, exact=False).safe, "matched on everything, the table is the true one"


def test_measures_tell_what_a_small_count_is_worth() -> None:
    found = problem(census())
    outcome = ts.Swap(geography=AREAS, match=("sex",), key=("sex", "job"), rate=0.3).outcome(found)
    assert outcome.edited is not None
    worth = ts.chances(found, outcome.release, outcome.edited)
    assert worth is not None
    shares = worth.filter(pl.col("published count") != "0")["share of records that are there"].to_numpy()
    assert ((shares >= 0) & (shares <= 1)).all()
    assert shares[0] < shares[-1], "small counts are swapped more"
    levels = ts.distances(found, outcome.release)
    top = levels.filter(pl.col("municipality level") == 0)
    assert top["cells changed"].sum() == 0
    assert levels["Hellinger distance"].max() > 0  # type: ignore[operator]
    assert levels["Hellinger distance"].max() <= 1  # type: ignore[operator]


def test_records_without_an_area_stay() -> None:
    records = census().with_columns(
        municipality=pl.when(pl.int_range(900) % 10 == 0).then(None).otherwise(pl.col("municipality"))
    )
    edited = ts.Swap(geography=("municipality",), rate=0.2).edit(records)
    assert not edited.changed[::10].any()
    assert edited.records["municipality"].null_count() == records["municipality"].null_count()


def test_an_area_with_most_of_the_people_is_told() -> None:
    records = pl.DataFrame({"area": ["A"] * 90 + ["B"] * 10, "x": ["u"] * 100})
    with pytest.warns(UserWarning, match="1 of 2 areas have too few partners"):
        edited = ts.Swap(geography=("area",), rate=0.5).edit(records)
    assert edited.changed.sum() == 10


@settings(max_examples=40)
@given(st.integers(0, 10_000), st.integers(1, 60), st.integers(1, 5), st.integers(1, 4))
def test_pairs_cross_borders_within_their_groups(seed: int, n: int, areas: int, groups: int) -> None:
    random = np.random.default_rng(seed)
    area, group = random.integers(0, areas, n), random.integers(0, groups, n)
    left = random.integers(0, n, areas)
    donor = random.random(n) < 0.7
    pairs = Pairs.start(area, np.ones(n, dtype=np.bool_), left)
    pairs.match(random, random.permutation(n), group, area, donor)
    at = np.flatnonzero(pairs.swapped)
    other = pairs.partner[at]
    np.testing.assert_array_equal(pairs.partner[other], at)
    assert (area[at] != area[other]).all()
    assert (group[at] == group[other]).all()
    assert (donor[at] | donor[other]).all()
    np.testing.assert_array_equal(left - pairs.done(), pairs.left)
    assert (pairs.left >= 0).all()
    free = (pairs.partner == NOBODY) & (pairs.left[area] > 0)
    for i in np.flatnonzero(free):
        assert not (free & donor & (group == group[i]) & (area != area[i])).any(), "nobody is left who fits"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"rate": 1.2}, "from 0 to 1"), ({"rate": -0.1}, "from 0 to 1"), ({"geography": ()}, "geography"),
        ({"k": 0}, "Swap.k"), ({"k": 2.5}, "Swap.k"), ({"rate_by_population": ((1.5, 0.1),)}, "whole"),
        ({"rate_by_population": ((100, 1.1),)}, "from 0 to 1"), ({"new_cells": "drop"}, "new_cells"),
        ({"announce": "rate", "all_at_risk": True}, "all_at_risk"), ({"rate": "5%"}, "Swap.rate must be a number"),
        ({"geography": "municipality"}, "put it into brackets"), ({"match": "sex"}, "Swap.match must be a list"),
        ({"fallback": ("sex",)}, "list of lists"), ({"rate_by_population": (100, 0.3)}, "pairs"),
        ({"household": 3}, "name of a column"), ({"seed": -1}, "Swap.seed"), ({"seed": 1.5}, "Swap.seed"),
        ({"seed": None}, "Swap.seed"),
    ],
)  # fmt: skip
def test_wrong_options_are_refused(options: dict[str, object], words: str) -> None:
    with pytest.raises(InvalidOption, match=words):
        ts.Swap(**{"geography": AREAS, **options})  # type: ignore[arg-type]


def test_wrong_columns_and_tables_are_refused() -> None:
    records = census().with_columns(lists=pl.concat_list("age", "sex"))
    for options, words in (
        ({"geography": ("municipalty",)}, "did you mean 'municipality'"),
        ({"geography": AREAS, "match": ("household", "income", "job")}, "no two units"),
        ({"geography": AREAS, "match": ("region",)}, "which the swap changes"),
        ({"geography": AREAS, "household": "sex"}, "other areas too"),
        ({"geography": AREAS[::-1]}, "coarsest level first"),
        ({"geography": AREAS, "household": "household", "carry": ("income",)}, "several entries"),
        ({"geography": ("lists",)}, "holds lists"),
    ):
        with pytest.raises(InvalidOption, match=words):
            ts.Swap(**options, rate=0.3).edit(records)
    table = ts.Table.from_cells(pl.DataFrame({"a": ["x", "y", "Total"], "value": [1, 2, 3]}), dimensions=["a"])
    with pytest.raises(InvalidOption, match="read as cells"):
        ts.protect(ts.Problem(table), ts.Swap(geography=("a",)))
    found = problem(records)
    frozen = found.table.value > 0
    free = found.replace(sensitivity=ts.Sensitivity.none(len(found.table)), frozen=frozen)
    with pytest.raises(InvalidProblem, match="frozen"):
        ts.protect(free, ts.Swap(geography=AREAS, rate=0.2))


@settings(max_examples=4)
@given(st.integers(0, 10_000), st.sampled_from([0.02, 0.2]))
def test_the_posterior_of_a_published_count_holds_the_truth_as_often_as_it_says(seed: int, rate: float) -> None:
    found = problem(census(1_200, seed, 12))
    release = quietly_protected(found, ts.Swap(geography=AREAS, match=("sex",), rate=rate, seed=seed))
    assert release.mechanism is not None
    exact = release.lower == release.upper
    assert not (release.mechanism.cells & exact).any()
    believed = ts.posterior(found, release, level=0.9)
    truth = found.table.integers[believed.cells]
    covered = ((believed.lower <= truth) & (truth <= believed.upper)).mean()
    assert covered >= 0.9 - 4 * np.sqrt(0.09 / len(truth))
    right = (np.rint(release.values).astype(np.int64) == found.table.integers)[believed.cells].mean()
    assert believed.unchanged.mean() == pytest.approx(right, abs=0.1)


@pytest.mark.parametrize(
    "method",
    [
        'name = "swap"\ngeography = ["region", "municipality"]\nmatch = ["sex"]\nfallback = [[]]\nkey = ["job"]\n'
        'household = "household"\nrate_by_population = [[50, 0.4]]\nrate = 0.2',
        'name = "impute"\ncolumns = ["job"]\nclasses = ["sex"]\ndonor = "nearest"\nnear = ["income"]\nrate = 0.2\n'
        'geography = ["municipality"]\nwithin = ["region"]\ntolerance = 0.05',
    ],
)
def test_a_job_writes_what_changed(tmp_path: Path, method: str) -> None:
    census(900, 3).write_csv(tmp_path / "census.csv")
    (tmp_path / "job.toml").write_text(
        '[source]\nfile = "census.csv"\nzeros = true\n[dimensions.municipality]\n[dimensions.job]\n'
        f'[[rules]]\nrule = "threshold"\nn = 3\n[method]\n{method}\n[audit]\nexact = false\n'
        '[output]\nrelease = ["public/table.csv"]\nforce = true\n'
    )
    result = ts.run(tmp_path / "job.toml")
    internal = tmp_path / "internal"
    for name in ("edit_measures.csv", "strata.csv", "distances.csv", "chances.csv", "posterior.csv", "quality.csv"):
        assert (internal / name).exists()
    shown = pl.read_csv(tmp_path / "public" / "table.csv")
    np.testing.assert_array_equal(shown["records"].to_numpy(), result.release.values)
