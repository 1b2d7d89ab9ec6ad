"""Cell keys for magnitudes: checked cell by cell against the formulas written out as they stand in the deliverable."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tablesafe as ts
from tablesafe.core.errors import InvalidFile, InvalidOption, InvalidTable
from tablesafe.methods.cell_key.magnitude import MagnitudeNoise, largest_noise, magnitude_range

EPSILON = (1.0, 0.5, 0.2)
FLEX = ts.Magnitude(top=3, small=0.3, large=0.03, flex_point=1000.0, exponent=3.0, weights=EPSILON, digits=8)


def firms(n: int, seed: int = 0, *, sigma: float = 2.0) -> pl.DataFrame:
    random = np.random.default_rng(seed)
    return pl.DataFrame(
        {
            "firm": [f"f{i}" for i in range(n)],
            "region": random.choice(list("abcdef"), n),
            "branch": random.choice(list("ABCDEFGH"), n),
            "sales": np.round(random.lognormal(5, sigma, n), 1) * (random.random(n) > 0.05),
            "rkey": np.round(random.random(n), 8),
        }
    )


def problem_of(frame: pl.DataFrame, **options: Any) -> ts.Problem:
    given_options = {"dimensions": ["region", "branch"], "value": "sales", "respondent": "firm", **options}
    return ts.Problem(ts.tabulate(frame, **given_options))


# -- the formulas, one cell at a time ----------------------------------------------------------------------------------


def looked_up(table: ts.PerturbationTable, row: float, key: float) -> float:
    lines = table.frame().filter(pl.col("i") == row).rows(named=True)
    return float(next(line["v"] for line in lines if key < line["p_int_ub"]))


def drawn(table: ts.PerturbationTable, a: float, key: float) -> float:
    rows = table.count.tolist()
    a = min(a, rows[-1])
    if a in rows:
        return looked_up(table, a, key)
    below, above = max(r for r in rows if r < a), min(r for r in rows if r > a)
    share = (a - below) / (above - below)
    return (1 - share) * looked_up(table, below, key) + share * looked_up(table, above, key)


def perturbed(x: float, largest: list[float], key: str, noise: MagnitudeNoise, count: int, extra: float) -> float:
    """Sequential noise: unit x_j · m_j, looked up at the running value over the unit; digits turned between draws."""
    if x == 0:
        return 0.0
    o, running = noise.options, x
    for j, (size, epsilon) in enumerate(zip(largest, o.shares.tolist(), strict=True)):
        if j > 0 or o.turn_first:
            key = key[1:] + key[0]
        if size == 0:
            continue
        m = o.small
        if o.flex_point is not None and size >= o.flex_point:
            f = o.flex_point
            m = o.large * (1 + (o.small * size - o.large * f) / (o.large * f) * (2 * f / (f + size)) ** o.exponent)
        unit = min(size * m * epsilon, abs(running))
        table = noise.usual if noise.odd is None or count % 2 == 0 else noise.odd
        if size < noise.separation_point:
            if j > 0:
                continue
            assert noise.small_cells is not None
            unit, table = 1.0, noise.small_cells
        if running == 0:
            continue
        v = drawn(table, abs(running) / unit, float("0." + key))
        v += (extra if j == 0 else 0.0) * (1 if v >= 0 else -1)
        running += max(v * unit, -running)
    return running


@pytest.mark.parametrize(
    "options",
    [
        FLEX,
        ts.Magnitude(digits=8),
        ts.Magnitude(top=2, digits=8, turn_first=True, extra=1.5),
        ts.Magnitude(top=3, weights=EPSILON, separation=True, small=0.1, digits=8),
        ts.Magnitude(odd=ts.design_perturbation(steps=2, variance=1.0, counts=(1, 3)), digits=8),
        ts.Magnitude(by="mean", digits=8),
        ts.Magnitude(by="value", small=0.05, digits=8),
    ],
)
def test_every_cell_is_what_the_formulas_say(options: ts.Magnitude) -> None:
    frame = firms(250, 3)
    problem = ts.Problem(problem_of(frame).table, [ts.Threshold(n=4)])
    method = ts.CellKey(key="rkey", variance=2.0, magnitude=options)
    release = ts.protect(problem, method)
    table = problem.table
    contributing = frame.filter(pl.col("sales") != 0)
    for cell, (region, branch) in enumerate(table.cells().select("region", "branch").rows()):
        own = contributing.filter(
            (pl.col("region") == region) | (region == "Total"), (pl.col("branch") == branch) | (branch == "Total")
        )
        key = f"{round(own['rkey'].sum() % 1, 8) % 1:.8f}"[2:]
        sizes = sorted(own["sales"].to_list(), reverse=True)[: options.top]
        assert table.count is not None
        if options.by == "mean":
            sizes = [table.value[cell] / max(table.count[cell], 1)]
        elif options.by == "value":
            sizes = [table.value[cell]]
        sizes += [0.0] * (options.top - len(sizes))
        extra = options.extra if problem.sensitivity.mask[cell] else 0.0
        expected = perturbed(table.value[cell], sizes, key, method.noise(), int(table.count[cell]), extra)
        assert release.values[cell] == pytest.approx(expected, abs=0.0501), (region, branch)


# -- properties --------------------------------------------------------------------------------------------------------


def test_the_flex_function_joins_at_its_point_and_falls_to_the_share_of_large_ones() -> None:
    sizes = np.array([1.0, 999.999999, 1000.0, 1e4, 1e6, 1e9])
    share = FLEX.scale(sizes) / sizes
    assert share[:3] == pytest.approx([0.3, 0.3, 0.3], rel=1e-6)
    assert (np.diff(share[2:]) < 0).all()
    assert share[-1] == pytest.approx(0.03, rel=1e-3)


@settings(max_examples=4)
@given(
    st.integers(0, 10**6), st.floats(0.01, 0.5), st.booleans(), st.sampled_from([None, 50.0, 1000.0]), st.integers(1, 3)
)
def test_zeros_stay_nothing_turns_negative_and_truth_is_in_the_bounds(
    seed: int, small: float, separation: bool, flex_point: float | None, top: int
) -> None:
    problem = problem_of(firms(150, seed, sigma=3.0))
    options = ts.Magnitude(top=top, small=small, large=small / 10, flex_point=flex_point, separation=separation)
    release = ts.protect(problem, ts.CellKey(key="rkey", variance=1.5, magnitude=options))
    truth = problem.table.value
    assert (release.values[truth == 0] == 0).all()
    assert (release.values >= 0).all()
    assert ((release.lower <= truth) & (truth <= release.upper)).all()
    assert release.lower.max() > 0
    again = ts.protect(problem, ts.CellKey(key="rkey", variance=1.5, magnitude=options))
    assert again.values.tolist() == release.values.tolist()


def test_equal_cells_of_different_tables_get_equal_noise() -> None:
    frame = firms(600)
    method = ts.CellKey(key="rkey", magnitude=FLEX)
    one = ts.protect(problem_of(frame), method).frame()
    other = ts.protect(problem_of(frame, where={"branch": ["A", "B"]}), method).frame()
    linked = ts.protect(problem_of(frame, margins=[["region"], ["branch"]]), method).frame()
    for smaller in (other.filter(pl.col("branch") != "Total"), linked):
        both = smaller.join(one, on=["region", "branch"])
        assert both.height == smaller.height
        assert (both["sales"] == both["sales_right"]).all()


def test_noise_is_unbiased_with_the_spread_of_its_design() -> None:
    """5,000 cells of one firm each: the change in units has mean 0 within 4 standard errors, and variance 2."""
    random = np.random.default_rng(1)
    n = 5000
    frame = pl.DataFrame(
        {"firm": range(n), "cell": [f"c{i}" for i in range(n)], "sales": random.integers(10**5, 10**6, n)}
    )
    problem = ts.Problem(ts.tabulate(frame, dimensions=["cell"], value="sales", respondent="firm"))
    options = ts.Magnitude(small=0.05)
    release = ts.protect(problem, ts.CellKey(seed=9, variance=2.0, magnitude=options))
    inner = ~problem.table.is_total
    units = ((release.values - problem.table.value) / (0.05 * problem.table.value))[inner]
    assert abs(units.mean()) < 4 * np.sqrt(2.0 / n)
    assert units.var() == pytest.approx(2.0, rel=0.1)


def test_bounds_are_as_narrow_as_the_noise_allows() -> None:
    options = ts.Magnitude(small=0.02)
    noise = MagnitudeNoise(options, ts.design_perturbation(steps=2))
    assert largest_noise(noise, np.array([1.0, 100.0])) == pytest.approx([0.1, 10.0])
    problem = problem_of(firms(300))
    release = ts.protect(problem, ts.CellKey(key="rkey", magnitude=options))
    y = release.values[release.values > 100]
    assert (release.lower[release.values > 100] <= y / 1.1).all()
    assert (release.lower[release.values > 100] >= y / 1.1 * 0.998 - 1).all()
    assert (release.upper[release.values > 100] <= y / 0.9 * 1.002 + 1).all()


@pytest.mark.parametrize("flex", [{}, {"flex_point": 50.0, "large": 0.02, "exponent": 1.5}])
@pytest.mark.parametrize(
    ("weights", "odd"),
    [
        ((1.0,), None), ((1.0, 1.0, 1.0), None), ((1.0, 0.5), None),
        ((1.0,), ts.design_perturbation(maximum_change=7, steps=2)),
    ],
)  # fmt: skip
def test_the_largest_noise_is_within_the_bounds(
    flex: dict[str, Any], weights: tuple[float, ...], odd: ts.PerturbationTable | None
) -> None:
    """Whatever the contributions, as long as they do not add up to more than the cell."""
    top = len(weights)
    options = ts.Magnitude(top=top, weights=weights, small=0.05, extra=1.5, odd=odd, **flex)
    noise = MagnitudeNoise(options, ts.design_perturbation(steps=2), odd)
    most = 5.0 if odd is None else 7.0
    random = np.random.default_rng(top)
    value = np.round(10 ** random.uniform(0, 5, 200), 2)
    alone, alike = np.eye(1, top), np.full((1, top), 1 / top)
    some = -np.sort(-random.dirichlet(np.ones(top + 1), 200), axis=1)[:, :top]
    for parts in (alone, alike, some):
        size = parts * value[:, None]
        change = most * options.scale(size) @ options.shares + 1.5 * options.scale(size[:, 0])
        for published in (value + change, np.maximum(value - change, 0.0)):
            lower, upper = magnitude_range(noise, np.round(published, 2), 2)
            assert (lower <= value).all()
            assert (value <= upper).all()


def test_many_contributions_do_not_make_the_bounds_wider_than_the_cell_allows() -> None:
    """Three contributions cannot each be as large as their cell."""
    usual = ts.design_perturbation(steps=2)
    value = np.array([1.0, 100.0])
    for top in (1, 3):
        assert largest_noise(MagnitudeNoise(ts.Magnitude(top=top, small=0.02), usual), value) == pytest.approx(
            [0.1, 10.0]
        )


def test_further_noise_of_sensitive_cells_makes_none_negative() -> None:
    problem = problem_of(firms(300)).replace(rules=[ts.Threshold(n=1000)])
    options = ts.Magnitude(small=0.2, extra=3.0)
    release = ts.protect(problem, ts.CellKey(key="rkey", magnitude=options))
    assert release.values.min() == 0
    assert ((release.lower <= problem.table.value) & (problem.table.value <= release.upper)).all()


def test_values_below_zero_keep_the_bounds_that_were_known() -> None:
    frame = firms(100).with_columns(sales=pl.col("sales") - 100)
    problem = problem_of(frame)
    release = ts.protect(problem, ts.CellKey(key="rkey", magnitude=ts.Magnitude(small=0.05)))
    assert np.isneginf(release.lower).all()
    assert np.isposinf(release.upper).all()
    assert (np.sign(release.values) * np.sign(problem.table.value) >= 0).all()


def test_metadata_of_tau_argus_describe_the_method(tmp_path: Path) -> None:
    usual, tiny = ts.design_perturbation(steps=2, variance=2.0), ts.design_perturbation(variance=1.0)
    ts.write_perturbation({"all": usual}, tmp_path / "all.txt")
    ts.write_perturbation({"small_cells": tiny}, tmp_path / "small.txt")
    (tmp_path / "m.rda").write_text(
        '<SEPARATOR> ";"\nSex 1\n <RECODEABLE>\nSavings 4\n <NUMERIC>\n <CKM> T(3)\n <SEPARATION> Y\n'
        " <SCALING> F(0.03,0.30,1000,3,0.5,0.2)\nWeighty 4\n <NUMERIC>\n <CKM> M\n <SCALING> N(0.1)\nSpread 4\n"
        ' <NUMERIC>\n <CKM> D\nKey 10\n <RECORDKEY>\n <DECIMALS> 8\n <PFILE_CONT> "all.txt"\n <PFILE_SEP> "small.txt"\n'
    )
    method = ts.cell_key_from_metadata(tmp_path / "m.rda", response="savings")
    options = method.magnitude
    assert method.key == "Key"
    assert options is not None
    assert (options.by, options.top, options.small, options.large) == ("largest", 3, 0.30, 0.03)
    assert (options.flex_point, options.exponent, options.weights) == (1000.0, 3.0, (1.0, 0.5, 0.2))
    assert (options.separation, options.digits) == (True, 8)
    assert method.noise().separation_point == pytest.approx(1.0 / (np.sqrt(1 + 0.25 + 0.04) * 0.3))
    mean = ts.cell_key_from_metadata(tmp_path / "m.rda", response="Weighty").magnitude
    assert mean is not None
    assert (mean.by, mean.small, mean.flex_point) == ("mean", 0.1, None)
    with pytest.raises(InvalidFile, match="<CKM> D is not known here"):
        ts.cell_key_from_metadata(tmp_path / "m.rda", response="Spread")
    with pytest.raises(InvalidFile, match="names no perturbation table"):
        ts.cell_key_from_metadata(tmp_path / "m.rda")


def test_a_job_reads_all_its_tables(tmp_path: Path) -> None:
    frame = firms(200)
    frame.write_csv(tmp_path / "firms.csv")
    even, odd = ts.design_perturbation(steps=2), ts.design_perturbation(steps=2, variance=2.0)
    tiny = ts.design_perturbation(variance=1.0)
    ts.write_perturbation({"even": even, "odd": odd}, tmp_path / "parity.txt")
    ts.write_perturbation(tiny, tmp_path / "small.txt")
    job = tmp_path / "job.toml"
    job.write_text(
        '[source]\nfile = "firms.csv"\nrespondent = "firm"\n[response]\nvalue = "sales"\n[dimensions.region]\n'
        '[dimensions.branch]\n[method]\nname = "cell_key"\nkey = "rkey"\nperturbation = "parity.txt"\n'
        '[method.magnitude]\nodd = "parity.txt"\nseparation = true\nsmall_cells = "small.txt"\nsmall = 0.1\n'
        '[output]\nrelease = ["public/t.csv"]\n'
    )
    options = ts.Magnitude(odd=odd, separation=True, small_cells=tiny, small=0.1)
    expected = ts.protect(problem_of(frame), ts.CellKey(key="rkey", perturbation=even, magnitude=options))
    assert ts.run(job).release.values.tolist() == expected.values.tolist()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"top": 7}, "top must be 1 to 6"),
        ({"top": 2, "by": "mean"}, "1 unless by is 'largest'"),
        ({"by": "middle"}, "by must be one of"),
        ({"small": 0.0}, "small must be a number above 0"),
        ({"small": 0.1, "large": 0.2, "flex_point": 9.0}, "large must be a number"),
        ({"flex_point": 0.0}, "flex_point must be"),
        ({"flex_point": 5.0, "large": 0.0}, "large must be a number above 0"),
        ({"exponent": 0.5}, "exponent must be"),
        ({"weights": (1.0, 0.5)}, "weights must be 1 numbers"),
        ({"top": 2, "weights": (0.5, 1.0)}, "weights must be 2 numbers"),
        ({"extra": -1.0}, "extra must be"),
        ({"digits": 19}, "digits must be 1 to 18"),
        ({"top": 2, "odd": ts.design_perturbation()}, "odd needs top = 1"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidOption, match=message):
        ts.Magnitude(**options)


def test_what_the_noise_needs_must_be_there() -> None:
    frame = firms(100)
    shallow = problem_of(frame, largest=1)
    with pytest.raises(InvalidTable, match="the 3 largest contributors of each cell, but the table keeps 1"):
        ts.protect(shallow, ts.CellKey(key="rkey", magnitude=FLEX))
    cells = shallow.table.cells().select("region", "branch", "sales").with_columns(ck=0.5)
    table = ts.Table.from_cells(cells, dimensions=["region", "branch"], value="sales", columns=["ck"])
    with pytest.raises(InvalidTable, match="number of contributors"):
        ts.protect(ts.Problem(table), ts.CellKey(key="ck", magnitude=ts.Magnitude(by="mean")))
