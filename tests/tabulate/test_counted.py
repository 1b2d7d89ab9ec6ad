"""Data that are counted already: rows that stand for several respondents each."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tablesafe as ts
from tablesafe.core.errors import InvalidInput, InvalidJob, InvalidOption, InvalidTable
from tablesafe.files.read import read_source
from tablesafe.job import load_job
from tablesafe.job.draft import draft_job

pytestmark = pytest.mark.filterwarnings("ignore:fetch_arrow_table")
ROWS = pl.DataFrame(
    {"sex": ["m", "m", "f", "f"], "area": ["N", "S", "N", "S"], "n": [1, 40, 30, 20], "w": [1.5, 2.0, 1.0, 0.5]}
)


def expanded(rows: pl.DataFrame) -> pl.DataFrame:
    """One record per respondent, by repeating each row; an amount goes to the first of them."""
    first = pl.int_range(pl.len()).over("id") == 0
    places = np.repeat(np.arange(rows.height), rows["n"].to_numpy())
    repeated = rows.with_row_index("id")[places]
    return repeated.with_columns(pl.when(first).then(pl.col("v")).otherwise(0).alias("v")).drop("id")


def same(one: ts.Table, other: ts.Table) -> None:
    """Check that two tables have the same cells."""
    names = list(one.dimensions)
    assert one.cells().sort(names).equals(other.cells().sort(names).select(one.cells().columns))


@pytest.mark.parametrize("engine", ["duckdb", "ibis"])
@pytest.mark.parametrize("weight", [None, "w"])
@pytest.mark.parametrize("value", [None, "v"])
@settings(max_examples=4, deadline=None)
@given(data=st.data())
def test_counted_rows_are_the_records_they_stand_for(
    engine: Any, weight: str | None, value: str | None, data: Any
) -> None:
    height = data.draw(st.integers(1, 12))

    def drawn(what: st.SearchStrategy[Any]) -> list[Any]:
        return data.draw(st.lists(what, min_size=height, max_size=height))  # type: ignore[no-any-return]

    numbers = drawn(st.integers(0, 6))
    numbers[0] = max(numbers[0], 1)
    amounts = [amount if n else 0 for amount, n in zip(drawn(st.integers(-50, 50)), numbers, strict=True)]
    drawn_rows = pl.DataFrame(
        {
            "a": drawn(st.sampled_from("xyz")), "b": drawn(st.sampled_from("pq")), "n": numbers,
            "v": amounts, "w": drawn(st.sampled_from([1.0, 1.5, 2.25])),
        }
    )  # fmt: skip
    codes = {"a": list("xyz"), "b": list("pqp")}
    rows = pl.concat([pl.DataFrame(codes | {"n": [1, 1, 2], "v": [1, 2, 3], "w": [1.0, 2.0, 1.5]}), drawn_rows])
    options: Any = {"dimensions": ["a", "b"], "value": value, "weight": weight, "largest": 0, "engine": engine}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the records may look counted too
        told = ts.tabulate(expanded(rows), **options)
    counted = ts.tabulate(rows, frequency="n", **options)
    same(told, counted)
    for n in (1, 3, 5):
        flagged = [set(ts.Problem(t, [ts.Threshold(n=n)]).sensitivity.mask.nonzero()[0]) for t in (told, counted)]
        described = [{t.describe(int(c)) for c in cells} for t, cells in zip((told, counted), flagged, strict=True)]
        assert described[0] == described[1]


def test_files_and_frames_agree(tmp_path: Path) -> None:
    ROWS.write_csv(tmp_path / "n.csv")
    ROWS.write_parquet(tmp_path / "n.parquet")
    whole = ts.tabulate(ROWS, dimensions=["sex", "area"], frequency="n", weight="w")
    for name in ("n.csv", "n.parquet"):
        same(whole, ts.tabulate(tmp_path / name, dimensions=["sex", "area"], frequency="n", weight="w"))
    assert whole.count is not None
    assert whole.count[whole.index()] == 91


def test_a_threshold_is_judged_on_respondents_not_on_rows() -> None:
    table = ts.tabulate(ROWS, dimensions=["sex", "area"], frequency="n")
    mask = ts.Problem(table, [ts.Threshold(n=3)]).sensitivity.mask
    assert [table.describe(int(cell)) for cell in np.flatnonzero(mask)] == ["(sex=m, area=N)"]


@pytest.mark.parametrize("engine", ["duckdb", "ibis"])
@pytest.mark.parametrize(("bad", "word"), [(-2.0, "frequency"), (1.5, "frequency"), (None, "empty")])
def test_a_frequency_is_a_whole_number(engine: Any, bad: float | None, word: str) -> None:
    rows = ROWS.with_columns(n=pl.Series([1.0, bad, 3.0, 4.0]))
    with pytest.raises(InvalidTable, match=word):
        ts.tabulate(rows, dimensions=["sex", "area"], frequency="n", engine=engine)


@pytest.mark.parametrize("engine", ["duckdb", "ibis"])
def test_an_amount_of_nobody_is_an_error(engine: Any) -> None:
    rows = ROWS.with_columns(n=pl.Series([0, 2, 3, 4]), v=pl.Series([7.0, 1.0, 1.0, 1.0]))
    with pytest.raises(InvalidTable, match="nobody"):
        ts.tabulate(rows, dimensions=["sex", "area"], value="v", frequency="n", engine=engine)


@pytest.mark.parametrize("rule", [ts.PPercent(p=10), ts.Dominance(n=1, k=80), ts.PQ(p=10, q=50)])
def test_rules_about_single_respondents_cannot_be_judged(rule: Any) -> None:
    rows = ROWS.with_columns(v=pl.Series([7.0, 1.0, 1.0, 1.0]))
    table = ts.tabulate(rows, dimensions=["sex", "area"], value="v", frequency="n")
    with pytest.raises(InvalidTable, match="nobody knows how much each of them reported"):
        ts.Problem(table, [rule])


@pytest.mark.parametrize("option", ["respondent", "holding", "request", "shadow"])
def test_single_respondents_and_frequencies_exclude_each_other(option: str) -> None:
    given: Any = {option: "w"}
    with pytest.raises(InvalidOption, match="leave out one of the two"):
        ts.tabulate(ROWS, dimensions=["sex"], frequency="n", **given)


def test_methods_that_change_records_refuse_counted_rows() -> None:
    problem = ts.Problem(ts.tabulate(ROWS, dimensions=["sex", "area"], frequency="n"), [ts.Threshold(n=3)])
    with pytest.raises(InvalidInput, match="a row stands for several"):
        ts.protect(problem, ts.Swap(geography=("area",), match=("sex",)))


@pytest.mark.parametrize("engine", ["duckdb", "ibis"])
@pytest.mark.parametrize("name", ["n", "count", "freq", "n_obs", "Obs", "Anzahl"])
def test_rows_that_look_counted_are_told_of(engine: Any, name: str) -> None:
    rows = ROWS.rename({"n": name})
    with pytest.warns(UserWarning, match=f"frequency='{name}'"):
        ts.tabulate(rows, dimensions=["sex", "area"], engine=engine)
    with pytest.warns(UserWarning, match=f"frequency='{name}'"):
        ts.tabulate(rows, dimensions=["sex", "area"], value=name, engine=engine)


def test_records_are_not_taken_for_counts() -> None:
    ts.tabulate(pl.concat([ROWS, ROWS]), dimensions=["sex", "area"])  # several rows in a combination
    ts.tabulate(ROWS.with_columns(n=pl.lit(1)), dimensions=["sex", "area"])
    ts.tabulate(ROWS.with_columns(who=pl.Series(["a", "b", "c", "d"])), dimensions=["sex", "area"], respondent="who")
    ts.tabulate(ROWS.with_columns(n=pl.col("n") / 7), dimensions=["sex", "area"])


def test_a_job_takes_a_frequency_and_refuses_what_it_cannot_tell(tmp_path: Path) -> None:
    ROWS.write_csv(tmp_path / "n.csv")
    text = (
        '[source]\nfile = "n.csv"\nfrequency = "n"\n[dimensions.sex]\n[dimensions.area]\n[[rules]]\n'
        'rule = "threshold"\nn = 3\n[method]\nname = "suppress"\n[output]\nrelease = "public/r.csv"\n'
    )
    (tmp_path / "job.toml").write_text(text)
    result = ts.run(tmp_path / "job.toml")
    assert result.findings.safe
    assert int(result.problem.sensitivity.mask.sum()) == 1
    (tmp_path / "job.toml").write_text(text + '[[rules]]\nrule = "p_percent"\np = 10\n')
    with pytest.raises(InvalidJob, match="how much single respondents reported"):
        load_job(tmp_path / "job.toml")
    (tmp_path / "job.toml").write_text(text.replace('"n"\n[d', '"n"\nrespondent = "w"\n[d'))
    with pytest.raises(InvalidJob, match="about single respondents"):
        load_job(tmp_path / "job.toml")


def test_a_first_job_recognises_counts(tmp_path: Path) -> None:
    ROWS.write_csv(tmp_path / "n.csv")
    job, _ = draft_job(tmp_path / "n.csv", read_source(tmp_path / "n.csv"), folder=tmp_path)
    assert job.source.frequency == "n"
    assert job.source.weight == "w"
    assert list(job.dimensions) == ["sex", "area"]
    assert not job.response.value
