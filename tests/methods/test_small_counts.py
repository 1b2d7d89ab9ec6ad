"""Small-count rounding: what the options mean, what is refused, linked tables, what the public may conclude."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import tablesafe as ts
from tablesafe.core.errors import InvalidOption, InvalidProblem, InvalidTable
from tablesafe.core.problem import Problem
from tablesafe.core.release import Status
from tablesafe.core.table import Table
from tablesafe.methods import METHODS
from tablesafe.methods.small_counts import SmallCounts


def two_way() -> Table:
    """Two rows, three columns, with totals."""
    frame = pl.DataFrame({"row": list("aaabbb"), "column": list("xyzxyz"), "value": [1.0, 2.0, 7.0, 2.0, 0.0, 3.0]})
    return Table.from_cells(frame, dimensions=["row", "column"], missing_totals="compute")


def records(random: np.random.Generator, n: int) -> pl.DataFrame:
    """People with four traits."""
    sizes = {"a": 3, "b": 4, "c": 3, "d": 5}
    return pl.DataFrame({name: random.integers(0, size, n).astype(str) for name, size in sizes.items()})


def test_the_windows_of_inner_cells_are_those_of_the_method() -> None:
    table = two_way()
    release = SmallCounts(limit=3).protect(Problem(table))
    inner = ~table.is_total
    seen = {
        (int(value), int(low), int(high))
        for value, low, high in zip(release.values[inner], release.lower[inner], release.upper[inner], strict=True)
    }
    assert seen <= {(0, 0, 2), (3, 1, 3), (7, 7, 7)}
    assert (7, 7, 7) in seen
    total = table.index()
    parts = release.lower[inner].sum(), release.upper[inner].sum()
    assert (release.lower[total], release.upper[total]) == parts


def test_withheld_inner_cells_stay_as_they_are_unless_a_margin_is_small() -> None:
    table = two_way()
    release = SmallCounts(limit=3).protect(Problem(table, withheld=~table.is_total))
    margins = table.is_total
    assert (table.value[margins] < 3).sum() == 1  # column y, with 2 units in one cell
    assert set(release.values[margins & (table.value == 2)]) <= {0.0, 3.0}
    off = np.abs(release.values - table.value)[margins]
    assert sorted(off.tolist()) == [0, 0, 0, off.max(), off.max(), off.max()]  # only that cell's margins move
    assert (release.status[~margins] == Status.BY_DESIGN).all()


def test_inner_cells_that_no_margin_tells_apart_are_changed_as_one() -> None:
    """Regions are published, districts are not: a region of 1 + 1 is one count of 2, never 6."""
    hierarchy = ts.Hierarchy.from_pairs([("T", "n"), ("T", "s"), ("n", "n1"), ("n", "n2"), ("s", "s1"), ("s", "s2")])
    frame = pl.DataFrame({"region": ["n1", "n2", "s1", "s2"], "value": [1.0, 1.0, 8.0, 1.0]})
    table = Table.from_cells(frame, dimensions={"region": hierarchy}, missing_totals="compute")
    hidden = ~table.is_total
    for seed in range(5):
        release = SmallCounts(limit=3, seed=seed).protect(Problem(table, withheld=hidden))
        assert release.values[table.index(region="n")] in {0, 3}
        assert release.values[table.index(region="s")] == 9
        assert release.lower[table.index(region="s")] == 9
        assert release.upper[table.index(region="n")] <= 3


def test_a_table_that_leaves_out_empty_cells_tells_that_a_zero_was_none() -> None:
    frame = pl.DataFrame({"row": list("aab"), "column": list("xyy"), "value": [1.0, 4.0, 6.0]})
    table = Table.from_cells(frame, dimensions=["row", "column"], missing_totals="compute")
    release = SmallCounts(limit=2).protect(Problem(table))
    assert release.lower.min() == 1
    for how in ("random", "conventional", "controlled"):
        rounded = ts.Round(base=3, method=how, seed=1).protect(Problem(table))  # type: ignore[arg-type]
        assert rounded.lower.min() == 1


def test_empty_cells_that_nobody_sees_do_not_hide_that_the_shown_ones_hold_somebody() -> None:
    """Three margins of a cube whose inner cells are unseen, some of them empty: a shown 0 is 1 when 2 is the limit."""
    inner = {"000": 2, "001": 1, "010": 2, "110": 5, "111": 2}
    codes = [key for key, count in inner.items() for _ in range(count)]
    people = pl.DataFrame({name: [f"{name}{code[d]}" for code in codes] for d, name in enumerate("abc")})
    table = ts.tabulate(people, dimensions=list("abc"), margins=[["a", "b"], ["a", "c"], ["b", "c"]])
    assert (table.value[table.unseen] == 0).any()
    problem = Problem(table, [ts.Threshold(n=2)])
    for seed in range(5):
        for method in (
            SmallCounts(limit=2, seed=seed),
            ts.Round(base=2, method="random", seed=seed),
            ts.Round(base=3, method="conventional"),
            ts.Round(base=3, method="controlled", seed=seed),
        ):
            release = ts.protect(problem, method)
            assert release.lower[~table.unseen].min() >= 1
            if isinstance(method, SmallCounts) and (release.values[table.index(b="b0", c="c1")] == 0):
                assert not ts.audit(problem, release).safe


def test_frozen_cells_stay_or_are_refused() -> None:
    table = two_way()
    with pytest.raises(InvalidProblem, match=r"\(row=a, column=x\) is frozen .* below the limit of 3"):
        SmallCounts().protect(Problem(table, frozen=table.value == 1))
    zero = table.value == 0
    release = SmallCounts().protect(Problem(table, frozen=zero))
    assert (release.upper[zero] == 0).all()
    total = np.arange(len(table)) == table.index()
    kept = SmallCounts(limit=4).protect(Problem(table, frozen=total))  # 1 + 2 + 2 + 3 is twice the limit
    assert kept.values[total] == 15
    with pytest.raises(InvalidProblem, match="no way was found to keep it"):
        SmallCounts(limit=5).protect(Problem(table, frozen=total))


def test_suppressed_cells_stay_suppressed() -> None:
    table = two_way()
    release = SmallCounts().protect(Problem(table, suppressed=table.value == 7))
    assert release.suppressed.sum() == 1
    assert release.status[release.suppressed].tolist() == [Status.GIVEN]


def test_linked_margins_agree_where_they_meet() -> None:
    people = records(np.random.default_rng(3), 150)
    table = ts.tabulate(people, dimensions=dict.fromkeys("abcd"), margins=[["a", "b"], ["b", "c"], ["a", "d"]])
    problem = Problem(table, [ts.Threshold(n=4)])
    release = SmallCounts(limit=4).protect(problem)
    assert not (table.equations @ release.values).any()
    assert not ((release.values > 0) & (release.values < 4)).any()
    assert ((release.lower <= table.value) & (table.value <= release.upper)).all()
    assert ts.audit(problem, release, insiders=False).safe


def test_the_audit_proves_it_by_two_tables(tmp_path: Path) -> None:
    """Where every inner cell is shown, all of them at their least make a table, and all at their most."""
    random = np.random.default_rng(2)
    frame = pl.DataFrame(
        {
            "a": np.repeat(np.arange(6), 20).astype(str),
            "b": np.tile(np.repeat(np.arange(5), 4), 6).astype(str),
            "c": np.tile(np.arange(4), 30).astype(str),
            "value": random.poisson(1.5, 120).astype(float),
        }
    )
    table = Table.from_cells(frame, dimensions=["a", "b", "c"], count="value", missing_totals="compute")
    problem = Problem(table, [ts.Threshold(n=3)])
    release = SmallCounts(limit=3).protect(problem)
    findings = ts.audit(problem, release)
    assert findings.safe
    assert (findings.lower == release.lower[findings.cells]).all()
    assert (findings.upper == release.upper[findings.cells]).all()
    assert findings.certificate is not None
    assert findings.certificate.witnesses == 2
    findings.certificate.save(tmp_path / "certificate.json.gz")
    ts.verify(tmp_path / "certificate.json.gz")


def test_linked_tables_without_records_are_refused() -> None:
    people = records(np.random.default_rng(3), 60)
    parts = [ts.tabulate(people, dimensions=dict.fromkeys(names)) for names in ("ab", "bc")]
    with pytest.raises(InvalidProblem, match=r"margins="):
        SmallCounts().protect(Problem(ts.link(parts)))


def test_linked_margins_with_zeros_do_not_tell_which_zero_was_none() -> None:
    people = records(np.random.default_rng(1), 16)
    table = ts.tabulate(people, dimensions=dict.fromkeys("abc"), margins=[["a", "b"], ["b", "c"]], zeros=True)
    release = SmallCounts(limit=3).protect(Problem(table))
    zero = release.values == 0
    assert {False, True} == set((table.value[zero] == 0).tolist())
    assert (release.lower[zero] == 0).all()
    inner = zero & ~table.is_total & (table.codes[:, 2] == 0)  # of the margin of a and b, each of three cells
    assert {False, True} == set((table.value[inner] == 0).tolist())
    assert set(release.upper[inner]) == {6.0}


def test_empty_cells_of_linked_margins_are_shown_as_zero() -> None:
    people = pl.DataFrame({"a": ["0", "1", "1", "0"], "b": ["0", "1", "1", "0"], "c": ["0", "0", "1", "1"]})
    table = ts.tabulate(people, dimensions=dict.fromkeys("abc"), margins=[["a", "b"], ["b", "c"]], zeros=True)
    release = SmallCounts(limit=2).protect(Problem(table))
    assert (release.values[table.value == 0] == 0).all()
    assert not (table.equations @ release.values).any()


def test_what_the_audit_judges_by_is_never_published() -> None:
    """It tells which inner cells were changed."""
    random = np.random.default_rng(6)
    frame = pl.DataFrame(
        {
            "a": np.repeat(np.arange(9), 9).astype(str),
            "b": np.tile(np.arange(9), 9).astype(str),
            "value": random.poisson(0.6, 81) * 1.0,
        }
    )
    table = Table.from_cells(frame, dimensions=["a", "b"], count="value", missing_totals="compute")
    problem = Problem(table, [ts.Threshold(n=3)], withheld=~table.is_total)
    release = SmallCounts(limit=3).protect(problem)
    assert release.judged is not None
    assert (release.judged[0] > release.lower).any()
    shown = release.frame(intervals=True)
    assert (shown["from"].to_numpy() == release.lower[table.is_total]).all()
    findings = ts.audit(problem, release)
    assert findings.release is release
    assert findings.certificate is not None
    published = table.is_total & (table.value > 0) & (table.value < 3)
    assert set(np.flatnonzero(published)) <= set(findings.cells[findings.protected])


def test_a_table_without_small_counts_is_published_as_it_is() -> None:
    table = Table.from_equations(["t = a + b"], {"t": 12, "a": 5, "b": 7})
    release = SmallCounts(limit=5).protect(Problem(table))
    assert (release.values == table.value).all()
    assert (release.status == Status.PUBLISHED).all()


def test_loss_tells_the_largest_and_the_mean_change_by_level() -> None:
    table = two_way()
    problem = Problem(table)
    release = SmallCounts().protect(problem)
    found = ts.loss(problem, release)
    off = np.abs(release.values - table.value)
    assert found.largest_change == off.max()
    assert found.average_change == pytest.approx(off.mean())
    frame = found.frame()
    assert frame["largest change"].max() == off.max()
    weighted = (frame["average change"] * frame["cells"]).sum() / frame["cells"].sum()
    assert weighted == pytest.approx(off.mean())


@pytest.mark.parametrize("limit", [1, 0, -3, 2.5, True, "3"])
def test_a_limit_must_be_whole_and_at_least_two(limit: Any) -> None:
    with pytest.raises(InvalidOption, match=r"SmallCounts\.limit .* 2 or more"):
        SmallCounts(limit=limit)


def test_other_options_outside_their_range_are_refused() -> None:
    with pytest.raises(InvalidOption, match=r"SmallCounts\.passes"):
        SmallCounts(passes=-1)
    with pytest.raises(InvalidOption, match=r"SmallCounts\.seed"):
        SmallCounts(seed=-1)
    with pytest.raises(InvalidOption, match=r"Round\.seed"):
        ts.Round(method="random", seed=-1).protect(Problem(two_way()))


def test_what_are_no_counts_is_refused_by_name() -> None:
    negative = Table.from_equations(["t = a + b"], {"t": 1, "a": 3, "b": -2})
    with pytest.raises(InvalidTable, match="'b' is negative"):
        SmallCounts().protect(Problem(negative))
    fraction = Table.from_equations(["t = a + b"], {"t": 4, "a": 1.5, "b": 2.5})
    with pytest.raises(InvalidTable, match="'a' is not a whole number"):
        SmallCounts().protect(Problem(fraction))
    difference = Table.from_equations(["d = a - b"], {"d": 4, "a": 6, "b": 2})
    with pytest.raises(InvalidTable, match="'d' is a difference"):
        SmallCounts().protect(Problem(difference))


@pytest.mark.parametrize(
    ("method", "files"),
    [
        ('name = "small_counts"\nlimit = 3', {"changes_by_level.csv"}),
        ('name = "round"\nmethod = "random"\nbase = 3', {"changes_by_level.csv", "posterior.csv"}),
    ],
)
def test_a_job_says_what_changed(method: str, files: set[str], tmp_path: Path) -> None:
    records(np.random.default_rng(4), 200).write_csv(tmp_path / "people.csv")
    job = tmp_path / "job.toml"
    job.write_text(
        '[source]\nfile = "people.csv"\n[dimensions.a]\n[dimensions.b]\n[[rules]]\nrule = "threshold"\nn = 12\n'
        f'[method]\n{method}\n[output]\nrelease = ["public.csv"]\ninternal = "internal"\nreport = "report.html"\n'
        "[attack]\nattacks = []\n"
    )
    result = ts.run(job)
    assert files <= {path.name for path in (tmp_path / "internal").iterdir()}
    assert "changed)" in result.findings.text() or not (result.release.status == Status.CHANGED).any()
    levels = pl.read_csv(tmp_path / "internal" / "changes_by_level.csv")
    assert {"average change", "largest change"} <= set(levels.columns)


def test_the_method_is_known_by_its_name() -> None:
    assert METHODS["small_counts"] is SmallCounts
    assert ts.SmallCounts is SmallCounts


def test_counts_that_no_published_count_holds_can_be_anything() -> None:
    """Where a whole row is withheld with the totals above it, nothing is known of it; the other row is as told."""
    frame = pl.DataFrame({"row": list("aabb"), "column": list("xyxy"), "value": [1.0, 1.0, 2.0, 5.0]})
    table = Table.from_cells(frame, dimensions=["row", "column"], missing_totals="compute")
    for shown in ("a", "b", None):
        hidden = np.arange(len(table)) != (table.index(row=shown) if shown else -1)
        release = SmallCounts().protect(Problem(table, withheld=hidden))
        assert (release.lower[hidden & (np.arange(len(table)) != table.index())] == 0).all()
        free = [table.index(), table.index(column="x"), table.index(row="b" if shown == "a" else "a")]
        assert np.isinf(release.upper[free]).all()
    b = SmallCounts().protect(Problem(table, withheld=np.arange(len(table)) != table.index(row="b")))
    assert b.upper[table.index(row="b", column="x")] == 7


def test_a_full_table_of_records_counted_without_empty_cells_shows_none() -> None:
    """No combination happens to be empty, but if one were it would not be there."""
    people = pl.DataFrame({"a": list("xxxyy"), "b": list("ppqpq"), "person": list("12345")})
    for zeros in (False, True):
        table = ts.tabulate(people, dimensions=["a", "b"], respondent="person", zeros=zeros)
        problem = Problem(table, [ts.Threshold(n=3)])
        release = SmallCounts(limit=2).protect(problem)
        assert release.lower[release.values == 0].max() == (0 if zeros else 1)
        assert zeros or not ts.audit(problem, release).safe
