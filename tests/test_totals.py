"""Tables without sums: none is called safe in silence, and no total goes unrecognised."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.optimize import linprog

import seeds
import tablesafe as ts
from tablesafe.core.errors import InvalidInput, InvalidOption, InvalidTable
from tablesafe.core.totals import looks_like_total

ROWS = {"a": list("xxxyyyzzz"), "b": list("pqr" * 3), "value": [1, 20, 31, 42, 53, 64, 75, 86, 97]}


def with_totals(total_a: str | None, total_b: str | None, values: Any = ROWS["value"]) -> pl.DataFrame:
    """A 3 × 3 table with the margins that have a name."""
    grid = np.array(values).reshape(3, 3)
    rows, columns = list("xyz"), list("pqr")
    if total_a is not None:
        grid, rows = np.vstack([grid, grid.sum(axis=0)]), [*rows, total_a]
    if total_b is not None:
        grid, columns = np.column_stack([grid, grid.sum(axis=1)]), [*columns, total_b]
    cells = [(a, b, int(grid[i, j])) for (i, a), (j, b) in itertools.product(enumerate(rows), enumerate(columns))]
    return pl.DataFrame(cells, schema=["a", "b", "value"], orient="row")


def test_a_frame_without_totals_is_an_error_that_says_what_to_do() -> None:
    with pytest.raises(InvalidTable, match=r"'a' has no total.*'x', 'y', 'z'.*'Total'") as caught:
        ts.Table.from_cells(ROWS, dimensions=["a", "b"])
    for way in ("total=", "missing_totals='compute'", "hierarchy", "missing_totals='none'"):
        assert way in str(caught.value)


@pytest.mark.parametrize(("totals", "blamed"), [(("Total", None), "b"), ((None, "Total"), "a")])
def test_totals_of_one_dimension_are_not_enough(totals: tuple[str | None, str | None], blamed: str) -> None:
    with pytest.raises(InvalidTable, match=f"Dimension '{blamed}' has no total"):
        ts.Table.from_cells(with_totals(*totals), dimensions=["a", "b"])


def test_one_dimension_without_a_total() -> None:
    with pytest.raises(InvalidTable, match="'r' has no total"):
        ts.Table.from_cells({"r": ["A", "B", "C"], "value": [1, 2, 4]}, dimensions=["r"])


@pytest.mark.parametrize(
    "word", ["Total", "TOTAL", "T", "_T", "Ensemble", "Insgesamt", "Σ", "I alt", "all", " Total ", "0", "Grand total"]
)
def test_a_total_is_found_under_the_names_that_offices_use(word: str) -> None:
    table = ts.Table.from_cells(with_totals(word, "Total"), dimensions=["a", "b"])
    assert table.dimensions["a"].total == word.strip()
    assert table.equations.shape[0] == 8
    assert not table.without_sums


@pytest.mark.parametrize("missing", ["compute", "none", "error"])
def test_what_is_called_a_total_and_does_not_add_up_is_never_taken_for_a_part(missing: Any) -> None:
    frame = with_totals("Ensemble", "Total").with_columns(
        pl.when((pl.col("a") == "Ensemble") & (pl.col("b") == "p")).then(7).otherwise(pl.col("value")).alias("value")
    )
    with pytest.raises(InvalidTable, match="'Ensemble' looks like its total"):
        ts.Table.from_cells(frame, dimensions=["a", "b"], missing_totals=missing)


@pytest.mark.parametrize("missing", ["compute", "none"])
def test_the_sum_of_all_others_is_no_part_whatever_it_is_called(missing: Any) -> None:
    with pytest.raises(InvalidTable, match="'Kingdom' of 'a' is the sum of all other codes"):
        ts.Table.from_cells(with_totals("Kingdom", "Total"), dimensions=["a", "b"], missing_totals=missing)
    table = ts.Table.from_cells(with_totals("Kingdom", "Total"), dimensions=["a", "b"], total={"a": "Kingdom"})
    assert table.equations.shape[0] == 8


def test_a_section_called_t_is_a_part_where_it_does_not_add_up() -> None:
    rows = {"nace": ["R", "S", "T"], "value": [10, 20, 35]}
    table = ts.Table.from_cells(rows, dimensions=["nace"], missing_totals="compute")
    assert table.value[table.index()] == 65


def test_compute_makes_every_margin() -> None:
    for totals in itertools.product((None, "Total"), repeat=2):
        table = ts.Table.from_cells(with_totals(*totals), dimensions=["a", "b"], missing_totals="compute")
        assert len(table) == 16
        assert table.equations.shape[0] == 8
        assert table.value[table.index()] == sum(ROWS["value"])
        assert not table.alone.any()


def test_none_says_in_words_that_the_cells_are_published_alone(tmp_path: Path) -> None:
    table = ts.Table.from_cells(ROWS, dimensions=["a", "b"], missing_totals="none")
    assert table.alone.all()
    mask = np.arange(9) == 0
    problem = ts.Problem(table, sensitivity=ts.Sensitivity.of(mask, lower=1.0, upper=1.0))
    findings = ts.audit(problem, ts.Release.from_suppression(problem, mask))
    said = "all 9 cells of the table are taken to be published alone"
    assert said in str(findings)
    assert said in findings.to_json()
    assert findings.certificate is not None
    findings.certificate.save(tmp_path / "certificate.json.gz")
    assert said in str(ts.verify(tmp_path / "certificate.json.gz"))


def test_a_verdict_names_the_cells_that_stand_in_no_equation() -> None:
    table = ts.Table.from_equations(["t = a + b"], {"t": 30.0, "a": 10.0, "b": 20.0, "loner": 4.0})
    assert table.alone.tolist() == [False, False, False, True]
    mask = np.array([False, True, True, True])
    problem = ts.Problem(table, sensitivity=ts.Sensitivity.of(mask, lower=1.0, upper=1.0))
    findings = ts.audit(problem, ts.Release.from_suppression(problem, mask))
    assert "1 of 4 cells are part of no sum and are taken to be published alone: 'loner'." in str(findings)


def test_a_jj_file_without_equations_is_not_silently_proved(tmp_path: Path) -> None:
    lines = ["0", "2", "0 10.0 1.0 u 0 1000 2 2 0", "1 20.0 1.0 s 0 1000 0 0 0", "0"]
    path = tmp_path / "alone.jj"
    path.write_text("\n".join(lines) + "\n")
    problem = ts.read_jj(path)
    findings = ts.audit(problem, ts.protect(problem, ts.Suppress()))
    assert "all 2 cells of the table are taken to be published alone" in str(findings)


def test_hierarchies_without_a_total_hide_no_empty_proof() -> None:
    trees = {"a": ts.Hierarchy.flat("xyz", total=None), "b": ts.Hierarchy.flat("pqr", total=None)}
    for missing in ("error", "compute"):
        with pytest.raises(InvalidTable, match="part of no sum"):
            ts.Table.from_cells(ROWS, dimensions=trees, missing_totals=missing)  # type: ignore[arg-type]


def test_years_have_no_total_and_the_verdict_says_so() -> None:
    frame = with_totals(None, "Total").rename({"a": "year"})
    table = ts.Table.from_cells(frame, dimensions=["year", "b"], total={"year": ""})
    assert table.without_sums == "No sum across 'year' is taken to be published."
    assert table.equations.shape[0] == 3


def test_an_unknown_word_for_what_to_do_is_refused() -> None:
    with pytest.raises(InvalidOption, match="'error', 'compute', 'none'"):
        ts.Table.from_cells(ROWS, dimensions=["a", "b"], missing_totals="ignore")  # type: ignore[arg-type]


def test_a_job_of_cells_without_totals_stops_or_tells(tmp_path: Path) -> None:
    pl.DataFrame(ROWS | {"n": [1, 9, 9, 9, 9, 9, 9, 9, 9]}).write_csv(tmp_path / "cells.csv")
    job = tmp_path / "job.toml"

    def text(extra: str) -> str:
        return (
            f'[source]\nfile = "cells.csv"\nkind = "cells"\ncount = "n"\n{extra}\n[dimensions.a]\n[dimensions.b]\n'
            '[response]\nvalue = "value"\n[[rules]]\nrule = "threshold"\nn = 3\n[method]\nname = "suppress"\n'
            '[output]\nrelease = "public/r.csv"\nreport = "public/r.html"\n'
        )

    job.write_text(text(""))
    with pytest.raises(InvalidInput, match="has no total"):
        ts.run(job)
    assert not (tmp_path / "public").exists()
    job.write_text(text('missing_totals = "none"'))
    result = ts.run(job)
    assert "published alone" in (tmp_path / "public/r.html").read_text()
    assert result.findings.safe
    job.write_text(text('missing_totals = "compute"'))
    computed = ts.run(job)
    assert int(computed.release.suppressed.sum()) >= 4
    assert "published alone" not in (tmp_path / "public/r.html").read_text()


@pytest.mark.parametrize("seed", range(6))
def test_no_reader_who_adds_up_gets_near_a_withheld_cell(seed: int) -> None:
    """An attacker of its own: margins straight from the grid, bounds by linear programs."""
    random = np.random.default_rng(seed)
    word = ["T", "Ensemble", "Total", None, "Σ", "_T"][seed]
    grid = random.integers(1, 400, (3, 3))
    table = ts.Table.from_cells(
        with_totals(word, None if seed % 2 else "Total", grid.ravel()), dimensions=["a", "b"], missing_totals="compute"
    )
    inner = [table.index(a=a, b=b) for a in "xyz" for b in "pqr"]
    mask = np.zeros(len(table), dtype=bool)
    mask[inner[int(random.integers(9))]] = True
    level = np.ceil(table.value * 0.2)
    problem = ts.Problem(table, sensitivity=ts.Sensitivity.of(mask, lower=level * mask, upper=level * mask))
    release = ts.protect(problem, ts.Suppress())
    assert ts.audit(problem, release).safe
    margins = {(a, b): [i for i in range(9) if (a is None or i // 3 == a) and (b is None or i % 3 == b)]
               for a in (None, 0, 1, 2) for b in (None, 0, 1, 2)}  # fmt: skip
    rows, known = [], []
    for (a, b), members in margins.items():
        codes = {**({} if a is None else {"a": "xyz"[a]}), **({} if b is None else {"b": "pqr"[b]})}
        if not release.suppressed[table.index(**codes)]:
            rows.append([float(i in members) for i in range(9)])
            known.append(float(grid.ravel()[members].sum()))
    target = int(np.flatnonzero(np.array(inner) == np.flatnonzero(mask)[0])[0])
    for sign in (1, -1):
        goal = np.zeros(9)
        goal[target] = sign
        found = linprog(goal, A_eq=rows, b_eq=known, bounds=(0, None))
        reach = -np.inf if found.status == 3 else found.fun
        truth, needed = float(grid.ravel()[target]), float(level[inner[target]])
        assert reach <= sign * truth - needed + 1e-6


def test_a_response_that_is_the_sum_of_others_is_told_of() -> None:
    home, export = [120, 340, 560], [11, 22, 33]
    whole = [h + e for h, e in zip(home, export, strict=True)]
    tables = [
        ts.Table.from_cells({"r": list("abc"), name: value}, dimensions=["r"], value=name, missing_totals="compute")
        for name, value in {"home": home, "export": export, "all sales": whole}.items()
    ]
    with pytest.warns(UserWarning, match=r"In every cell all sales = home \+ export"):
        linked = ts.link(tables)
    assert "No sum across 'response'" in linked.without_sums
    tied = ts.link(tables, equations=["'all sales' = home + export".replace("'", '"')])
    assert not tied.without_sums
    assert "across" in ts.link(tables[:2]).without_sums


def test_words_for_totals() -> None:
    assert all(map(looks_like_total, ["Total", "totale", "_T", "_t", "Σ", "Both sexes", "合計"]))
    assert not any(map(looks_like_total, ["T", "North", "Totalisator", "Tallinn", "0"]))


def test_of_two_codes_neither_is_a_total_because_they_are_equal() -> None:
    frame = pl.DataFrame({"a": ["0", "0", "1", "1"], "b": ["0", "1", "0", "1"], "value": [1, 1, 1, 1]})
    table = ts.Table.from_cells(frame, dimensions=["a", "b"], missing_totals="compute")
    assert len(table) == 9
    assert table.value.max() == 4


# -- totals that are not there, between cells that are ----------------------------------------------------------------

TREE = [("T", "A"), ("T", "B"), ("A", "a1"), ("A", "a2"), ("B", "b1"), ("B", "b2")]
BELOW = {"T": {"a1", "a2", "b1", "b2"}, "A": {"a1", "a2"}, "B": {"b1", "b2"}} | {
    c: {c} for c in ("a1", "a2", "b1", "b2")
}


def shown_cells(shown: list[tuple[str, ...]], seed: int) -> tuple[pl.DataFrame, np.ndarray[Any, Any]]:
    """Some cells of a product of the tree as rows, and which combinations of its leaves each adds up."""
    leaves = list(itertools.product(sorted(BELOW["T"]), repeat=len(shown[0])))
    sums = np.array(
        [[all(x in BELOW[c] for c, x in zip(cell, leaf, strict=True)) for leaf in leaves] for cell in shown]
    )
    value = sums @ np.random.default_rng(seed).integers(1, 100, len(leaves))
    names = [f"d{i}" for i in range(len(shown[0]))]
    rows = [(*cell, int(v), 9) for cell, v in zip(shown, value, strict=True)]
    return pl.DataFrame(rows, schema=[*names, "value", "n"], orient="row"), sums


@pytest.mark.parametrize("seed", seeds.fresh(6, "totals between cells"))
def test_every_sum_between_cells_that_are_shown_is_known_whatever_totals_are_not(seed: int) -> None:
    random = np.random.default_rng(seed)
    width = int(random.integers(1, 3))
    every = list(itertools.product(BELOW, repeat=width))
    shown = [cell for cell in every if all(len(BELOW[c]) == 1 for c in cell) or random.random() < 0.5]
    frame, sums = shown_cells(shown, seed)
    trees = {f"d{i}": ts.Hierarchy.from_pairs(TREE) for i in range(width)}
    table = ts.Table.from_cells(frame, dimensions=trees, missing_totals="none")
    assert not table.residual().any()
    assert len(shown) - np.linalg.matrix_rank(sums.astype(float)) == rank_of(table)


def test_linked_tables_know_the_sums_between_them_too() -> None:
    trees = {"d0": ts.Hierarchy.from_pairs(TREE)}
    frame, _ = shown_cells([("T",), ("a1",), ("a2",), ("b1",), ("b2",)], seed=5)
    parts = [ts.Table.from_cells(each, dimensions=trees, missing_totals="none") for each in (frame[:1], frame[1:])]
    assert [rank_of(table) for table in (*parts, ts.link(parts))] == [0, 0, 1]


def rank_of(table: ts.Table) -> int:
    """How many equations of a table say something that the others do not."""
    return int(np.linalg.matrix_rank(table.equations.toarray().astype(float))) if table.equations.shape[0] else 0


@pytest.mark.parametrize("shown", [["T", "a1", "a2", "b1", "b2"], ["T", "A", "b1", "b2", "a1", "a2"]])
def test_a_cell_that_the_whole_gives_away_is_open_though_the_totals_between_are_published_nowhere(
    shown: list[str],
) -> None:
    """The whole, less all regions but one, is the last region: nobody needs the totals between them."""
    frame, _ = shown_cells([(code,) for code in shown], seed=3)
    frame = frame.with_columns(n=pl.when(pl.col("d0") == "b1").then(1).otherwise(9))
    trees = {"d0": ts.Hierarchy.from_pairs(TREE)}
    table = ts.Table.from_cells(frame, dimensions=trees, count="n", missing_totals="none")
    problem = ts.Problem(table, rules=[ts.Threshold(n=3)])
    assert str(ts.audit(problem, ts.protect(problem, ts.PublishAll())).verdict.word) == "OPEN"
    release = ts.Release.from_suppression(problem, problem.sensitivity.mask)
    assert str(ts.audit(problem, release).verdict.word) == "OPEN"
    assert ts.audit(problem, ts.protect(problem, ts.Suppress())).safe


def test_the_sum_of_all_cells_gives_one_away_where_no_margin_is_published() -> None:
    frame = with_totals("Total", "Total").filter((pl.col("a") == "Total") == (pl.col("b") == "Total"))
    frame = frame.with_columns(n=pl.when(pl.col("value") == 1).then(1).otherwise(9))
    table = ts.Table.from_cells(frame, dimensions=["a", "b"], count="n", missing_totals="none")
    problem = ts.Problem(table, rules=[ts.Threshold(n=3)])
    release = ts.Release.from_suppression(problem, problem.sensitivity.mask)
    assert not ts.audit(problem, release).safe


def test_a_total_that_is_added_up_is_asked_for_where_one_part_is_and_waived_where_all_are() -> None:
    """The sum of two requests is no request, and a consent to publish one part is none to publish another."""
    cells = pl.DataFrame(
        {"a": list("xxyyzz"), "b": list("pqpqpq"), "value": [5, 6, 7, 8, 9, 10], "n": [1, 1, 1, 1, 1, 1],
         "asked": [1, 1, 0, 1, 0, 0], "agreed": [1, 0, 1, 1, 0, 0]}
    )  # fmt: skip
    table = ts.Table.from_cells(
        cells, dimensions=["a", "b"], count="n", columns=["asked", "agreed"], missing_totals="compute"
    )
    for linked in (table, ts.link([table])):
        asked = ts.RequestRule(of=ts.Threshold(n=3), request="asked")(linked).mask
        agreed = ts.Waiver(of=ts.Threshold(n=3), cells="agreed")(linked).mask
        for code, requested, open_ in (("x", True, True), ("y", True, False), ("z", False, True)):
            at = linked.index(a=code)
            assert bool(asked[at]) is requested, code
            assert bool(agreed[at]) is open_, code
