"""The cell key method: equal cells get equal noise, the noise is that of its table, and wrong input is named."""

from __future__ import annotations

import csv
import hashlib
from collections import defaultdict
from decimal import Decimal
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import tablesafe as ts
from tablesafe.core.errors import InvalidFile, InvalidOption, InvalidTable
from tablesafe.core.release import Status
from tablesafe.methods.cell_key.keys import WHOLE, CellKeys, drawn_record_keys

DIMENSIONS = ["region", "age", "sex"]


def people(n: int, seed: int = 0) -> pl.DataFrame:
    random = np.random.default_rng(seed)
    return pl.DataFrame(
        {
            "person": [f"p{i}" for i in range(n)],
            "region": random.choice(list("abcdef"), n),
            "age": random.integers(0, 12, n).astype(str),
            "sex": random.choice(["m", "f"], n),
            "ill": (random.random(n) < 0.2).astype(np.int64),
            "rkey": np.round(random.random(n), 8),
        }
    )


def published(frame: Any, method: ts.CellKey, **options: Any) -> pl.DataFrame:
    table = ts.tabulate(frame, **{"dimensions": DIMENSIONS, **options})
    return ts.protect(ts.Problem(table), method).frame()


# -- the same cells --------------------------------------------------------------------------------------------------


@settings(max_examples=4)
@given(st.integers(0, 10**6), st.booleans())
def test_equal_cells_of_different_tables_get_equal_noise(seed: int, drawn: bool) -> None:
    frame = people(400, seed)
    method = ts.CellKey(identifier="person", seed=seed) if drawn else ts.CellKey(key="rkey")
    whole = published(frame, method)
    shuffled = published(frame.sample(fraction=1.0, shuffle=True, seed=seed), method, dimensions=DIMENSIONS[::-1])
    linked = published(frame, method, margins=[["region", "age"], ["age", "sex"]])
    only = published(frame, method, where={"sex": ["m"]}, dimensions=["region", "age"])
    for other in (shuffled, linked):
        both = other.join(whole, on=DIMENSIONS)
        assert both.height == other.height
        assert (both["records"] == both["records_right"]).all()
    both = only.join(whole.filter(pl.col("sex") == "m"), on=["region", "age"])
    assert both.height == only.height
    assert (both["records"] == both["records_right"]).all()


def test_other_records_of_the_same_number_get_other_noise() -> None:
    noise = published(people(3000), ts.CellKey(key="rkey"))["records"].to_numpy()
    moved = people(3000).with_columns(pl.col("rkey").shuffle(seed=1))
    assert (noise != published(moved, ts.CellKey(key="rkey"))["records"].to_numpy()).mean() > 0.5


def test_a_response_gets_the_noise_of_its_own_records() -> None:
    frame = people(800).with_columns(well=1 - pl.col("ill"))
    method = ts.CellKey(key="rkey")
    both = published(frame, method, value=["ill", "well"], equations="all = ill + well")
    every = published(frame, method)
    ill = published(frame, method, where="ill = 1")
    for name, other in (("all", every), ("ill", ill)):
        joined = both.filter(pl.col("response") == name).join(other, on=DIMENSIONS)
        assert joined.height == other.height
        assert (joined["value"] == joined["records"]).all()


# -- keys ------------------------------------------------------------------------------------------------------------


def test_cell_keys_are_exact_sums_of_decimals() -> None:
    frame = people(2000)
    problem = ts.Problem(ts.tabulate(frame, dimensions=["region", "sex"]))
    keys = ts.CellKey(key="rkey").cell_keys(problem)
    exact: dict[tuple[str, str], Decimal] = defaultdict(Decimal)
    for region, sex, key in frame.select("region", "sex", "rkey").rows():
        for r in (region, "Total"):
            for s in (sex, "Total"):
                exact[r, s] += Decimal(repr(key))
    cells = problem.table.cells().select("region", "sex").rows()
    assert keys.whole.tolist() == [int(exact[cell] % 1 * WHOLE) for cell in cells]


@pytest.mark.parametrize("modulus", [2, 256, 1000, 4096, 10**12])
def test_whole_keys_are_added_up_to_their_modulus(modulus: int) -> None:
    random = np.random.default_rng(modulus)
    frame = people(500).with_columns(k=random.integers(0, modulus, 500))
    problem = ts.Problem(ts.tabulate(frame, dimensions=["region"]))
    keys = ts.CellKey(key="k", modulus=modulus).cell_keys(problem)
    sums = dict(frame.group_by("region").agg(pl.col("k").cast(pl.Int128).sum()).rows())
    sums["Total"] = sum(sums.values())
    assert keys.whole.tolist() == [int(sums[r]) % modulus for r in problem.table.cells()["region"]]
    assert keys.fraction.max() < 1


def test_drawn_keys_depend_on_seed_and_identifier_alone() -> None:
    frame = people(200)
    problem = ts.Problem(ts.tabulate(frame, dimensions=["region"], respondent="person"))
    expected: dict[str, int] = defaultdict(int)
    for person, region in frame.select("person", "region").rows():
        digest = int(hashlib.sha256(f"77:{person}".encode()).hexdigest()[:15], 16)
        for r in (region, "Total"):
            expected[r] += digest * WHOLE // 2**60
    keys = ts.CellKey(seed=77).cell_keys(problem)
    assert keys.whole.tolist() == [expected[r] % WHOLE for r in problem.table.cells()["region"]]
    numbers = frame.with_columns(person=pl.int_range(200))
    text = frame.with_columns(person=pl.int_range(200).cast(pl.String))
    from tablesafe.files.read import Source

    one, other = (drawn_record_keys(Source(f, "x"), "person", 3) for f in (numbers, text))
    assert one.tolist() == other.tolist()
    assert one.tolist() != drawn_record_keys(Source(text, "x"), "person", 4).tolist()


@given(st.integers(0, WHOLE - 1), st.integers(1, 18))
def test_turned_keys_have_the_first_digit_last(whole: int, digits: int) -> None:
    text = f"{whole:018d}"[:digits]
    turned = CellKeys(np.array([whole]), WHOLE).turned(digits)
    assert turned.whole[0] == int((text[1:] + text[0]).ljust(18, "0"))


@pytest.mark.parametrize("modulus", [2, 255, 256, 1000])
def test_turning_whole_keys_loses_none(modulus: int) -> None:
    turned = CellKeys(np.arange(modulus), modulus).turned(8).whole
    assert sorted(turned.tolist()) == list(range(modulus))


def test_a_table_of_cells_takes_its_keys_from_a_column_or_an_array() -> None:
    frame = people(600)
    problem = ts.Problem(ts.tabulate(frame, dimensions=["region", "sex"]))
    method = ts.CellKey(key="rkey")
    expected = ts.protect(problem, method).values
    keys = method.cell_keys(problem).fraction
    sums = keys + 100 * np.arange(len(keys))
    for given_keys in (keys, np.round(keys, 8), np.round(sums, 8)):
        cells = problem.table.cells().with_columns(ck=given_keys)
        table = ts.Table.from_cells(cells, dimensions=["region", "sex"], value="records", columns=["ck"])
        assert ts.protect(ts.Problem(table), ts.CellKey(key="ck")).values.tolist() == expected.tolist()
        assert ts.protect(ts.Problem(table), ts.CellKey(key=given_keys)).values.tolist() == expected.tolist()


# -- the noise -------------------------------------------------------------------------------------------------------


def test_mean_and_variance_are_those_of_the_design() -> None:
    """40,000 cells: the mean within 4 of its standard errors, the variance within 5%; likewise for each small count."""
    random = np.random.default_rng(5)
    counts = random.geometric(0.15, 40_000)
    table = ts.Table.from_equations(sparse.csr_array((0, len(counts)), dtype=np.int8), counts.astype(np.float64))
    method = ts.CellKey(key=random.random(len(counts)), maximum_change=4, variance=2.0, smallest=2, stay=0.3)
    release = ts.protect(ts.Problem(table), method)
    change = release.values - counts
    designed = method.table().constraints()
    for count, mean, variance in designed.select("count", "mean", "variance").rows()[1:]:
        own = change[counts == count] if count < len(designed) - 1 else change[counts >= count]
        assert abs(own.mean() - mean) < 4 * np.sqrt(variance / own.size)
        assert own.var() == pytest.approx(variance, rel=0.15)
    measures = ts.noise_measures(ts.Problem(table), release)
    assert abs(measures.mean) < 4 * np.sqrt(2.0 / len(counts))
    assert measures.variance == pytest.approx(2.0, rel=0.05)
    assert set(np.unique(release.values).tolist()).isdisjoint({1.0})
    assert measures.false_positives == 0
    assert measures.distribution()["cells"].sum() == len(counts)


def test_frequencies_are_the_probabilities_of_the_table() -> None:
    table = ts.PerturbationTable.of([(1, [-1, 0, 1], [0.2, 0.6, 0.2]), (2, [-2, 0, 1], [0.1, 0.7, 0.2])])
    random = np.random.default_rng(8)
    rows, keys = random.integers(1, 3, 30_000), random.random(30_000)
    change = table.changes(rows, keys)
    for row, expected in ((1, {-1: 0.2, 0: 0.6, 1: 0.2}), (2, {-2: 0.1, 0: 0.7, 1: 0.2})):
        for value, chance in expected.items():
            assert (change[rows == row] == value).mean() == pytest.approx(chance, abs=0.015)


@settings(max_examples=5)
@given(st.integers(0, 10**6), st.integers(1, 3), st.sampled_from([None, 0.3]))
def test_zeros_stay_and_truth_lies_in_what_the_release_implies(seed: int, smallest: int, stay: float | None) -> None:
    frame = people(120, seed)
    table = ts.tabulate(frame, dimensions=DIMENSIONS, zeros=True)
    release = ts.protect(ts.Problem(table), ts.CellKey(key="rkey", smallest=smallest, stay=stay))
    values = release.values
    assert (values[table.value == 0] == 0).all()
    assert (values >= 0).all()
    assert not ((values > 0) & (values < smallest)).any()
    assert (np.abs(values - table.value) <= 5).all()
    assert ((release.lower <= table.value) & (table.value <= release.upper)).all()
    assert (release.lower[values > 0] >= 1).all()
    assert (release.upper - values <= 5).all()
    assert (values - release.lower <= 5).all()


def test_the_audit_and_the_posterior_judge_it() -> None:
    problem = ts.Problem(ts.tabulate(people(60), dimensions=["region", "sex"]), [ts.Threshold(n=5)])
    release = ts.protect(problem, ts.CellKey(key="rkey"))
    findings = ts.audit(problem, release)
    assert len(findings.cells) == len(problem.sensitive)
    truth = problem.table.value[findings.cells]
    assert ((findings.lower <= truth) & (truth <= findings.upper)).all()
    assert ((findings.upper - findings.lower) > 0).all()
    believed = ts.posterior(problem, release)
    assert believed.certainty.max() < 0.9
    assert ((believed.lower <= believed.mode) & (believed.mode <= believed.upper)).all()


@pytest.mark.parametrize("seed", range(6))
def test_the_quick_audit_of_whole_numbers_says_the_same(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Changes of at most one leave little room, so that some cells are open."""
    table = ts.tabulate(people(25 + seed), dimensions=["region", "sex"], zeros=True)
    problem = ts.Problem(table, rules=[ts.Threshold(n=6, range_absolute=1.0)])
    release = ts.protect(problem, ts.CellKey(identifier="person", seed=seed, maximum_change=1, variance=0.3))
    full = ts.audit(problem, release, insiders=False, unions=False)
    monkeypatch.setattr(import_module("tablesafe.audit.audit"), "MANY_WHOLE", -1)
    quick = ts.audit(problem, release, insiders=False, unions=False)
    assert (full.exact, quick.exact) == (True, False)
    assert quick.cells.tolist() == full.cells.tolist()
    assert quick.protected.tolist() == full.protected.tolist()


def test_frozen_and_hidden_cells_are_left_alone() -> None:
    table = ts.tabulate(people(300), dimensions=["region", "sex"])
    frozen, hidden, never = table.codes[:, 1] == 0, np.arange(len(table)) == 5, np.arange(len(table)) == 7
    problem = ts.Problem(table, frozen=frozen & ~hidden & ~never, suppressed=hidden, withheld=never)
    release = ts.protect(problem, ts.CellKey(key="rkey"))
    assert (release.values[problem.frozen] == table.value[problem.frozen]).all()
    for side in (release.lower, release.upper):
        assert (side[problem.frozen] == table.value[problem.frozen]).all()
    assert np.flatnonzero(release.suppressed).tolist() == [5, 7]
    assert release.status[[5, 7]].tolist() == [Status.GIVEN, Status.BY_DESIGN]
    assert release.mechanism is not None
    assert not release.mechanism.cells[problem.frozen | hidden | never].any()


def test_the_sample_of_tau_argus_is_what_its_table_defines(instances: Path, tmp_path: Path) -> None:
    """Computed anew with decimals and dictionaries; the job reads records, hierarchies and table from their files."""
    folder = instances / "tauargus" / "cellkey"
    rows = defaultdict(list)
    with (folder / "ptab_freq.txt").open(encoding="utf-8") as file:
        for line in csv.DictReader(file, delimiter=";"):
            rows[int(line["i"])].append((Decimal(line["p_int_ub"]), int(line["v"])))
    count: dict[tuple[str, str], int] = defaultdict(int)
    key: dict[tuple[str, str], Decimal] = defaultdict(Decimal)
    for record in (folder / "microdata.csv").read_text(encoding="utf-8").split():
        sex, age, *_, own = record.split(";")
        for s in ({"2": "male", "1": "female"}[sex], "Total"):
            for a in ({"1": "A1", "2": "A2"}.get(age, age), "Total"):
                count[s, a] += 1
                key[s, a] += Decimal(own)
    expected = {
        cell: n + next(v for upper, v in rows[min(n, max(rows))] if key[cell] % 1 < upper) for cell, n in count.items()
    }
    job = tmp_path / "job.toml"
    job.write_text(
        f'[source]\nfile = "{folder / "microdata.csv"}"\nmetadata = "{folder / "microdata.rda"}"\n[dimensions.Sex]\n'
        f'[dimensions.Age]\n[method]\nname = "cell_key"\nkey = "Key"\nperturbation = "{folder / "ptab_freq.txt"}"\n'
        f'[output]\nrelease = ["public/table.csv"]\nreport = "public/report.html"\n',
        encoding="utf-8",
    )
    assert ts.run(job).published
    found = pl.read_csv(tmp_path / "public" / "table.csv", infer_schema=False)
    assert {(s, a): int(n) for s, a, n in found.select("Sex", "Age", "records").rows()} == expected
    page = (tmp_path / "public" / "report.html").read_text(encoding="utf-8")
    assert "totals can differ from the sums of their parts" in page
    for secret in ("0.73446954", "ptab_freq", "Key"):
        assert secret not in page
    assert (tmp_path / "internal" / "noise.csv").exists()
    method = ts.cell_key_from_metadata(folder / "microdata.rda")
    problem = ts.run(job).problem
    assert (ts.protect(problem, method).values == np.array([expected[c] for c in _cells(problem)])).all()
    with pytest.raises(InvalidFile, match=r"no file 'ptab_savings_all.txt'"):
        ts.cell_key_from_metadata(folder / "microdata.rda", response="Savings")
    with pytest.raises(InvalidFile, match="'HighIncome' has no noise by cell keys"):
        ts.cell_key_from_metadata(folder / "microdata.rda", response="HighIncome")


def _cells(problem: ts.Problem) -> list[tuple[str, str]]:
    return [(s, a) for s, a in problem.table.cells().select("Sex", "Age").rows()]


def test_a_job_of_cells_and_a_job_with_a_seed(tmp_path: Path) -> None:
    frame = people(300)
    frame.write_csv(tmp_path / "people.csv")
    problem = ts.Problem(ts.tabulate(frame, dimensions=["region", "sex"]))
    ck = ts.CellKey(key="rkey")
    problem.table.cells().with_columns(ck=ck.cell_keys(problem).fraction).write_csv(tmp_path / "cells.csv")
    shared = (
        '[dimensions.region]\n[dimensions.sex]\n[output]\nrelease = ["public/t.csv"]\n[method]\nname = "cell_key"\n'
    )
    cells = tmp_path / "cells.toml"
    cells.write_text(
        '[source]\nfile = "cells.csv"\nkind = "cells"\n[response]\nvalue = "records"\n' + shared + 'key = "ck"\n'
    )
    assert ts.run(cells).release.values.tolist() == ts.protect(problem, ck).values.tolist()
    seeded = tmp_path / "seeded.toml"
    seeded.write_text('[source]\nfile = "people.csv"\nrespondent = "person"\n' + shared + "seed = 42\nsmallest = 3\n")
    expected = ts.protect(problem, ts.CellKey(identifier="person", seed=42, smallest=3)).values
    assert ts.run(seeded).release.values.tolist() == expected.tolist()
    assert "42" not in (tmp_path / "public" / "t.csv").read_text(encoding="utf-8").partition("\n")[0]


# -- wrong input -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("keys", "options", "message"),
    [
        ([0.1, None, 0.3], {}, "record key is missing at row 2 of the source"),
        ([0.1, float("nan"), 0.3], {}, "record key is missing at row 2"),
        ([0.1, 0.2, 1.0], {}, r"row 3 of the source \(column 'k'\) is not in \[0, 1\)"),
        ([0.1, -0.2, -0.1], {}, r"is not in \[0, 1\) \(and 1 more\)"),
        ([1, 2, 256], {"modulus": 256}, r"is not in \[0, 256\)"),
        ([1.0, 2.5, 3.0], {"modulus": 256}, "row 2 of the source .* is no whole number"),
        (["a", "b", "c"], {}, "should hold numbers"),
    ],
)
def test_wrong_record_keys_are_named(keys: list[Any], options: dict[str, Any], message: str) -> None:
    frame = pl.DataFrame({"region": ["a", "b", "b"], "k": keys})
    problem = ts.Problem(ts.tabulate(frame, dimensions=["region"]))
    with pytest.raises(InvalidTable, match=message):
        ts.protect(problem, ts.CellKey(key="k", **options))


def test_a_wrong_key_in_a_file_is_named_by_its_line(tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_text("region,k\na,0.5\nb,1.5\n")
    problem = ts.Problem(ts.tabulate(tmp_path / "r.csv", dimensions=["region"]))
    with pytest.raises(InvalidTable, match=r"r.csv, line 3 \(column 'k'\) is not in"):
        ts.protect(problem, ts.CellKey(key="k"))


def test_keys_that_are_not_random_are_noticed() -> None:
    frame = people(500).with_columns(same=pl.lit(0.25), rising=pl.col("rkey") ** 3)
    problem = ts.Problem(ts.tabulate(frame, dimensions=["region"]))
    with pytest.raises(InvalidTable, match=r"All 500 record keys in column 'same' are 0.25"):
        ts.protect(problem, ts.CellKey(key="same"))
    with pytest.warns(UserWarning, match="'rising' are not spread evenly"):
        ts.protect(problem, ts.CellKey(key="rising"))


def test_magnitudes_perturbed_as_counts_are_noticed() -> None:
    frame = people(60).with_columns(income=pl.int_range(60) * 100)
    problem = ts.Problem(ts.tabulate(frame, dimensions=["region"], value="income"))
    with pytest.warns(UserWarning, match="'income' is perturbed as a count, but single contributions are larger"):
        ts.protect(problem, ts.CellKey(key="rkey"))


def test_other_wrong_input_is_refused() -> None:
    frame = people(50).with_columns(w=pl.lit(1.5), empty=pl.lit(None, dtype=pl.String), same=pl.lit("x"))
    counted = ts.Problem(ts.tabulate(frame, dimensions=["region"]))
    for method, message in (
        (ts.CellKey(), "needs record keys"),
        (ts.CellKey(seed=3), "needs record keys"),
        (ts.CellKey(identifier="person"), "needs record keys"),
        (ts.CellKey(key="nokey"), "no column 'nokey'"),
        (ts.CellKey(identifier="empty", seed=1), "identifier 'empty' is empty at row 1"),
        (ts.CellKey(identifier="same", seed=1), "All 50 records have the same 'same'"),
        (ts.CellKey(key="rkey", perturbation="ptab.txt"), "was not read yet"),
        (ts.CellKey(key="rkey", perturbation=5), "must be a perturbation table, got 5"),  # type: ignore[arg-type]
        (ts.CellKey(key=np.zeros(3)), "There are 3 cell keys"),
        (ts.CellKey(key=np.full(7, np.nan)), "missing, negative or too large"),
        (ts.CellKey(key="rkey", perturbation=ts.design_perturbation(steps=2)), "is not for counts"),
    ):
        with pytest.raises((InvalidOption, InvalidTable), match=message):
            ts.protect(counted, method)
    with pytest.raises(InvalidTable, match="The table counts its contributors"):
        ts.protect(counted, ts.CellKey(key="rkey", magnitude=ts.Magnitude()))
    with pytest.raises(InvalidTable, match="is not a whole number"):
        ts.protect(ts.Problem(ts.tabulate(frame, dimensions=["region"], value="rkey")), ts.CellKey(key="rkey"))
    with pytest.raises(InvalidTable, match="weighted by 'ill'"):
        ts.protect(ts.Problem(ts.tabulate(frame, dimensions=["region"], weight="ill")), ts.CellKey(key="rkey"))
    cells = pl.DataFrame({"region": ["a", "b", "Total"], "n": [-1, 3, 2], "ck": [0.1, 0.2, 0.3]})
    table = ts.Table.from_cells(cells, dimensions=["region"], value="n", columns=["ck"])
    with pytest.raises(InvalidTable, match=r"cell \(region=a\) is negative"):
        ts.protect(ts.Problem(table), ts.CellKey(key="ck"))
    blank = cells.with_columns(n=pl.col("n").abs() + pl.Series([1, 0, 3]), ck=pl.Series([0.12345678, 0.2, None]))
    table = ts.Table.from_cells(blank, dimensions=["region"], value="n", columns=["ck"])
    with pytest.raises(InvalidTable, match=r"\(region=Total\) has no cell key"):
        ts.protect(ts.Problem(table), ts.CellKey(key="ck"))
    with pytest.raises(InvalidOption, match="no column 'rkey' among its cells"):
        ts.protect(ts.Problem(table), ts.CellKey(key="rkey"))


@pytest.mark.parametrize(
    "options",
    [
        {"key": "k", "seed": 1}, {"modulus": 1}, {"modulus": 10**13}, {"modulus": 2.5}, {"maximum_change": 0},
        {"variance": -1}, {"smallest": 0}, {"stay": 1.5}, {"seed": "abc"}, {"seed": 1.5}, {"seed": True},
        {"magnitude": True},
    ],
)  # fmt: skip
def test_wrong_options_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidOption):
        ts.CellKey(**options)


def test_a_change_that_is_no_number_is_refused() -> None:
    with pytest.raises(InvalidOption, match="a count of 1 a change is no number"):
        ts.PerturbationTable.of([(1, [-1, 0, float("nan")], [0.2, 0.6, 0.2])])


def test_secrets_are_not_shown() -> None:
    assert "123456" not in repr(ts.CellKey(seed=123456, identifier="person"))
    assert "0.2" not in repr(ts.design_perturbation())


# -- perturbation tables with gaps -------------------------------------------------------------------------------------


def test_a_count_between_two_possible_ones_is_not_taken_for_possible() -> None:
    """Every count above zero is changed by one: a published 2 comes from 1 or 3, and never from 2."""
    always = ts.PerturbationTable.of([(1, [-1, 1], [0.5, 0.5])])
    frame = people(60).with_columns(pl.col("region").replace_strict(dict(zip("abcdef", "aabbbb", strict=True))))
    problem = ts.Problem(ts.tabulate(frame, dimensions=["region", "sex"]), rules=[ts.Threshold(n=3)])
    release = ts.protect(problem, ts.CellKey(key="rkey", perturbation=always))
    truth, shown = problem.table.value, release.values
    np.testing.assert_array_equal(np.abs(shown - truth), 1)
    np.testing.assert_array_equal(release.lower, shown - 1)
    np.testing.assert_array_equal(release.upper, shown + 1)
    judged = release.as_judged
    np.testing.assert_array_equal(judged.lower, truth)
    np.testing.assert_array_equal(judged.upper, truth)


def test_what_gaps_give_away_is_open() -> None:
    """A published 2 comes from 1 only, and a published 6 from 6."""
    gaps = ts.PerturbationTable.of([(1, [1], [1.0]), (2, [-2, 2], [0.5, 0.5]), (3, [0], [1.0])])
    frame = pl.DataFrame({"a": ["x"] + ["y"] * 6, "rkey": [0.5] * 7})
    problem = ts.Problem(ts.tabulate(frame, dimensions=["a"]), rules=[ts.Threshold(n=3)])
    release = ts.protect(problem, ts.CellKey(key="rkey", perturbation=gaps))
    assert not ts.audit(problem, release).safe


def test_tables_without_gaps_are_judged_as_they_are_stated() -> None:
    problem = ts.Problem(ts.tabulate(people(200), dimensions=["region", "age"]), rules=[ts.Threshold(n=3)])
    assert ts.protect(problem, ts.CellKey(key="rkey")).judged is None
    stay = ts.protect(problem, ts.CellKey(key="rkey", stay=0.0, monotone=False))
    assert stay.judged is not None
    lower, upper = stay.judged
    changed = stay.values > 0  # a published 0 may be one
    assert ((lower <= problem.table.value) & (upper >= problem.table.value)).all()
    assert ((upper < stay.values) | (lower > stay.values))[changed].all()


def test_a_table_without_its_empty_cells_tells_that_a_published_zero_is_none() -> None:
    """Whoever sees a cell there at all knows that somebody is in it, whatever its noise made of it."""
    codes = {"row": ["x", "y", "y", "y", "y", "y"], "column": ["p", "p", "q", "q", "q", "q"]}
    people = pl.DataFrame({**codes, "person": [f"p{i}" for i in range(6)]})
    for zeros, floor in ((False, 1), (True, 0)):
        table = ts.tabulate(people, dimensions=["row", "column"], respondent="person", zeros=zeros)
        problem = ts.Problem(table, [ts.Threshold(n=3, range_absolute=1)])
        shown_as_nothing = []
        for seed in range(12):
            release = ts.protect(problem, ts.CellKey(identifier="person", seed=seed, maximum_change=1, variance=0.5))
            least = release.lower if release.judged is None else release.judged[0]
            assert min(release.lower.min(), least.min()) >= floor
            shown_as_nothing += release.lower[(release.values == 0) & (table.value > 0)].tolist()
            if not zeros:
                assert not ts.audit(problem, release).safe, "1 can be nothing else than 1 or more"
        assert set(shown_as_nothing) == {floor}
