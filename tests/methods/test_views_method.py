"""Linked views: how a problem is stated, what is refused, what the options of the method mean."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import tablesafe as ts
from tablesafe.core.errors import InvalidOption, InvalidProblem, InvalidTable
from tablesafe.core.problem import Problem
from tablesafe.methods import METHODS
from tablesafe.methods.views.instance import Structure

Array = np.ndarray[Any, Any]
FACES = [("bank", "loan"), ("loan", "status")]
SECRET = ("bank", "status")
NAMES = ("bank", "loan", "status")


def cube(seed: int = 3, shape: tuple[int, ...] = (4, 3, 5)) -> Array:
    """A cube with a few dominant cells: its views disclose something."""
    random = np.random.default_rng(seed)
    return np.where(random.random(shape) < 0.85, random.integers(0, 4, shape), random.integers(100, 300, shape))


def frame(array: Array, names: tuple[str, ...] = NAMES) -> pl.DataFrame:
    index = np.indices(array.shape).reshape(array.ndim, -1)
    columns = {name: [f"{name}{i + 1}" for i in axis] for name, axis in zip(names, index.tolist(), strict=True)}
    return pl.DataFrame({**columns, "value": array.ravel()})


def stated(array: Array, **options: Any) -> Problem:
    given: dict[str, Any] = {"published": FACES, "confidential": [SECRET], "dimensions": NAMES, **options}
    return ts.views(array, **given)


def withheld(problem: Problem, release: ts.Release) -> int:
    return int((release.suppressed & ~problem.withheld).sum())


# -- stating the problem -------------------------------------------------------------------------------------------


def test_the_views_are_published_and_the_cube_is_not() -> None:
    x = cube()
    problem = stated(x)
    table = problem.table
    assert not table.residual().any()
    assert len(table) == x.size + 12 + 15 + 20
    assert table.value[table.index(bank="2", loan="3")] == x[1, 2].sum()
    assert table.value[table.index(loan="3", status="5")] == x[:, 2, 4].sum()
    secret = table.index(bank="2", status="5")
    value = x[1, :, 4].sum()
    assert table.value[secret] == value
    assert problem.withheld[secret]
    assert not problem.withheld[table.index(bank="2", loan="3")]
    assert problem.sensitivity.lower[secret] == value
    assert problem.sensitivity.upper[secret] == pytest.approx(0.2 * value)
    shown = ts.Release.from_suppression(problem, problem.suppressed).frame()
    assert len(shown) == 12 + 15


def test_a_cube_may_be_an_array_a_frame_a_file_or_a_table(tmp_path: Path) -> None:
    x = cube()
    data = frame(x)
    data.write_csv(tmp_path / "cube.csv")
    table = ts.Table.from_cells(data, dimensions=NAMES, missing_totals="compute")
    sources = (x, data, data.to_pandas(), tmp_path / "cube.csv", table)
    bounds = [ts.view_bounds(stated(source)) for source in sources]
    for other in bounds[1:]:
        assert other.lower.tolist() == bounds[0].lower.tolist()
        assert other.upper.tolist() == bounds[0].upper.tolist()


def test_rows_without_a_cell_are_empty_cells() -> None:
    x = cube()
    data = frame(x)
    one, two = (ts.view_bounds(stated(part)).frame().sort(NAMES) for part in (data, data.filter(pl.col("value") > 0)))
    assert one.equals(two)


def test_dimensions_that_no_view_shows_are_added_up() -> None:
    x = cube(shape=(4, 3, 5, 2))
    problem = ts.views(x, dimensions=(*NAMES, "year"), published=FACES, confidential=[SECRET])
    assert list(problem.table.dimensions) == list(NAMES)
    assert ts.view_bounds(problem).upper.tolist() == ts.view_bounds(stated(x.sum(axis=3))).upper.tolist()


def test_decimals_are_kept_exactly() -> None:
    x = cube() / 10
    problem = stated(x)
    assert problem.table.decimals == 1
    np.testing.assert_allclose(ts.view_bounds(problem).upper, ts.view_bounds(stated(cube())).upper / 10)
    release = ts.protect(problem, ts.SuppressViews())
    assert withheld(problem, release) == withheld(stated(cube()), ts.protect(stated(cube()), ts.SuppressViews()))


@pytest.mark.parametrize("frames", [False, True])
def test_contradictory_views_are_named_with_the_code_and_both_sums(frames: bool) -> None:
    x = cube()
    a, b = x.sum(axis=2), x.sum(axis=0)
    b[1, 3] += 7
    code = "loan2" if frames else "2"
    given = {FACES[0]: frame(a, FACES[0]) if frames else a, FACES[1]: frame(b, FACES[1]) if frames else b}
    with pytest.raises(InvalidTable) as error:
        ts.views(given, confidential={SECRET: frame(x.sum(axis=1), SECRET) if frames else x.sum(axis=1)})
    said = str(error.value)
    assert f"loan={code}" in said
    assert f"{a.sum(axis=0)[1]:,}" in said
    assert f"{b.sum(axis=1)[1]:,}" in said
    assert "'bank × loan' and 'loan × status'" in said


def test_confidential_values_must_agree_with_the_views_too() -> None:
    x = cube()
    c = x.sum(axis=1)
    c[0, 0] += 1
    with pytest.raises(InvalidTable, match="contradict"):
        ts.views({FACES[0]: x.sum(axis=2), FACES[1]: x.sum(axis=0)}, confidential={SECRET: c})


def test_views_that_agree_by_pairs_may_still_contradict_each_other() -> None:
    diagonal, other = np.array([[1, 0], [0, 1]]), np.array([[0, 1], [1, 0]])
    with pytest.raises(InvalidTable, match="no table without negative values"):
        ts.views(
            {("a", "b"): diagonal, ("b", "c"): diagonal, ("a", "c"): other},
            confidential=["a"],
            tolerable={"a": ([0, 0], [2, 2])},
        )


def test_three_faces_alone_are_fitted_by_a_whole_cube() -> None:
    x = cube(shape=(3, 3, 3))
    alone = {("a", "b"): x.sum(axis=2), ("b", "c"): x.sum(axis=0), ("a", "c"): x.sum(axis=1)}
    alone["c", "d"] = np.column_stack([x.sum(axis=(0, 1)), np.zeros(3, np.int64)])
    bounds = np.zeros((3, 2)), np.ones((3, 2))
    problem = ts.views(alone, confidential=[("a", "d")], tolerable={("a", "d"): bounds})
    assert not problem.table.residual().any()
    assert (problem.table.integers >= 0).all()
    inner = problem.table.value[-54:].reshape(3, 3, 3, 2)
    np.testing.assert_array_equal(inner.sum(axis=(2, 3)), alone["a", "b"])
    np.testing.assert_array_equal(inner.sum(axis=(1, 3)), alone["a", "c"])


def test_tolerable_bounds_may_be_given_for_some_cells_only() -> None:
    x = cube()
    tolerable = pl.DataFrame({"bank": ["bank1"], "status": ["status1"], "lower": [1.0], "upper": [500.0]})
    problem = stated(frame(x), tolerable={SECRET: tolerable})
    assert problem.sensitive.tolist() == [problem.table.index(bank="bank1", status="status1")]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"published": None}, "'published' must name"),
        ({"published": [("bank", "load"), ("loan", "status")]}, "no dimension 'load'"),
        ({"published": [SECRET, ("loan", "status")]}, "both published and confidential"),
        ({"published": [NAMES]}, "the cube itself"),
        ({"published": [("bank", "bank")]}, "each once"),
        ({"published": [("bank", "loan"), ("loan", "bank")]}, "same view twice"),
        ({"confidential": []}, "names no view"),
        ({"dimensions": ()}, "not named"),
        ({"dimensions": ("bank", "loan")}, "shape"),
        ({"percent": -1}, "'percent'"),
        ({"tolerable": {SECRET: (np.ones((4, 5)), np.zeros((4, 5)))}}, "the lower is above the upper"),
        ({"tolerable": {SECRET: (-np.ones((4, 5)), np.zeros((4, 5)))}}, "0 or more"),
    ],
)
def test_what_makes_no_sense_is_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises((InvalidTable, InvalidProblem, InvalidOption), match=said):
        stated(cube(), **options)


def test_negative_cells_doubled_cells_totals_and_single_codes_are_refused() -> None:
    x = cube()
    data = frame(x)
    with pytest.raises(InvalidTable, match="0 or more"):
        stated(-x)
    with pytest.raises(InvalidTable, match="same cell"):
        stated(pl.concat([data, data[:1]]))
    with pytest.raises(InvalidTable, match="is a total"):
        stated(pl.concat([data, data[:1].with_columns(bank=pl.lit("Total"))]))
    with pytest.raises(InvalidTable, match="only the code"):
        stated(x[:1])


def test_views_alone_need_values_or_bounds() -> None:
    x = cube()
    with pytest.raises(InvalidProblem, match="neither values nor tolerable bounds"):
        ts.views({FACES[0]: x.sum(axis=2), FACES[1]: x.sum(axis=0)}, confidential=[SECRET])


# -- bounds --------------------------------------------------------------------------------------------------------


def test_the_operators_say_when_they_are_not_exact() -> None:
    x = cube(shape=(3, 3, 3, 3))
    faces = [("a", "b", "c"), ("a", "b", "d"), ("b", "c", "d")]
    problem = ts.views(x, dimensions="abcd", published=faces, confidential=[("a", "c", "d")])
    outer, exact = ts.view_bounds(problem, by="operators"), ts.view_bounds(problem)
    assert (outer.exact, exact.exact, exact.by) == (False, True, "audit")
    a, b, c = x.sum(axis=3)[:, :, :, None], x.sum(axis=2)[:, :, None, :], x.sum(axis=0)[None]
    formula = np.minimum(np.minimum(a, b), c).sum(axis=1).ravel()
    table = problem.table
    places = [table.codes[cell][[0, 2, 3]] - 1 for cell in outer.cells]
    assert outer.upper.tolist() == [formula[np.ravel_multi_index(tuple(p), (3, 3, 3))] for p in places]


def test_bounds_fall_back_on_the_audit_where_the_attacker_knows_more() -> None:
    problem = stated(cube())
    known = problem.replace(upper=np.where(problem.withheld, problem.table.value + 5, np.inf))
    found = ts.view_bounds(known)
    assert found.by == "audit"
    assert (found.upper <= problem.table.value[found.cells] + 5 + 1e-9).all()
    with pytest.raises(InvalidProblem, match="operators"):
        ts.view_bounds(known, by="operators")
    with pytest.raises(InvalidOption):
        ts.view_bounds(known, by="guess")  # type: ignore[arg-type]


def test_totals_that_follow_from_what_is_published_leave_the_operators_exact() -> None:
    problem = stated(cube(), totals=True)
    assert ts.view_bounds(problem).by == "operators"
    mask = np.zeros(len(problem.table), np.bool_)
    mask[problem.table.index(bank="1", loan="1")] = mask[problem.table.index(bank="1", loan="2")] = True
    release = ts.Release.from_suppression(problem, mask)
    assert ts.view_bounds(problem, release).by == "audit"


def test_a_table_without_such_a_cube_is_no_structure() -> None:
    table = ts.Table.from_cells(frame(cube()), dimensions=NAMES, missing_totals="compute")
    assert Structure.of(Problem(table)) is None
    assert Structure.of(stated(cube())) is not None


# -- the method ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", ["auto", "optimal", "greedy", "tabu", "random"])
def test_every_algorithm_is_safe_with_a_certificate(algorithm: Any, tmp_path: Path) -> None:
    problem = stated(cube())
    release = ts.protect(problem, ts.SuppressViews(algorithm=algorithm, steps=100))
    findings = ts.audit(problem, release)
    assert findings.safe
    assert findings.certificate is not None
    findings.certificate.save(tmp_path / "certificate.json")
    assert ts.verify(tmp_path / "certificate.json").safe
    assert release.method == "views"


def test_equal_seeds_give_equal_patterns() -> None:
    problem = stated(cube(5, (6, 6, 6)))
    for algorithm in ("tabu", "random"):
        one, two, other = (
            ts.SuppressViews(algorithm=algorithm, seed=seed, steps=50).protect(problem).suppressed  # type: ignore[arg-type]
            for seed in (1, 1, 2)
        )
        assert (one == two).all()
        assert algorithm == "tabu" or (one != other).any()


def test_each_cost_is_least_by_its_own_measure() -> None:
    problem = stated(cube(8, (5, 4, 5)))
    table, patterns = problem.table, {}
    for cost in ("unit", "value", "balanced"):
        release = ts.SuppressViews(algorithm="optimal", cost=cost).protect(problem)  # type: ignore[arg-type]
        patterns[cost] = release.suppressed & ~problem.withheld
    first = np.arange(len(table)) < 20
    measure = {
        "unit": lambda mask: mask.sum(),
        "value": lambda mask: table.value[mask].sum(),
        "balanced": lambda mask: (max((mask & first).sum(), (mask & ~first).sum()), mask.sum()),
    }
    for cost, own in measure.items():
        assert all(own(patterns[cost]) <= own(other) for other in patterns.values()), cost


def test_weights_make_one_view_dearer_than_another() -> None:
    problem = stated(cube(8, (5, 4, 5)))
    first = np.arange(len(problem.table)) < 20
    counts = [
        int((ts.SuppressViews(algorithm="optimal", weights=w).protect(problem).suppressed & first).sum())
        for w in ((1.0, 50.0), (50.0, 1.0))
    ]
    assert counts[0] > counts[1]
    with pytest.raises(InvalidOption, match="one per published view"):
        ts.SuppressViews(weights=(1.0,)).protect(problem)


def test_weighted_costs_are_those_of_the_problem() -> None:
    problem = stated(cube(8, (5, 4, 5)))
    cost = np.ones(len(problem.table))
    cheap = ts.SuppressViews(algorithm="optimal").protect(problem).suppressed & ~problem.withheld
    cost[cheap] = 100.0
    release = ts.SuppressViews(algorithm="optimal", cost="weighted").protect(problem.replace(cost=cost))
    assert release.solution is not None
    assert release.solution.objective == pytest.approx(cost[release.suppressed & ~problem.withheld].sum())
    assert release.solution.objective < 100.0 * cheap.sum()


def test_frozen_cells_stay_and_given_ones_are_used() -> None:
    problem = stated(cube())
    best = ts.SuppressViews(algorithm="optimal").protect(problem)
    used = best.suppressed & ~problem.withheld
    frozen = ts.SuppressViews(algorithm="optimal").protect(problem.replace(frozen=used))
    assert not (frozen.suppressed & used).any()
    assert ts.audit(problem, frozen).safe
    given = ts.SuppressViews(algorithm="optimal").protect(problem.replace(suppressed=used))
    assert (given.suppressed == best.suppressed).all()
    assert given.solution is not None
    assert given.solution.objective == 0


@pytest.mark.parametrize("algorithm", ["optimal", "greedy", "tabu", "random"])
def test_what_cannot_be_protected_is_named(algorithm: Any) -> None:
    problem = stated(cube())
    stuck = problem.replace(frozen=~problem.withheld)
    with pytest.raises(InvalidProblem, match=r"\(bank=.*, loan=Total, status=.*\) cannot be protected"):
        ts.SuppressViews(algorithm=algorithm).protect(stuck)


def test_nothing_to_hide_withholds_nothing() -> None:
    problem = stated(np.full((4, 4, 4), 100))
    assert withheld(problem, ts.SuppressViews().protect(problem)) == 0


@pytest.mark.parametrize("algorithm", ["auto", "greedy", "random"])
@pytest.mark.parametrize(
    ("shown", "secret"),
    [
        ([("a", "b"), ("b", "c"), ("a", "c")], [("a",)]),
        ([("a", "b"), ("b", "c")], [("a",), ("a", "c")]),
        ([("a", "b"), ("b", "c"), ("b",)], [("a", "c")]),
    ],
)
def test_other_views_go_to_the_general_method(algorithm: Any, shown: Any, secret: Any) -> None:
    problem = ts.views(cube(shape=(3, 3, 3)), dimensions="abc", published=shown, confidential=secret)
    release = ts.SuppressViews(algorithm=algorithm, time_limit_s=3).protect(problem)
    assert release.method == "views"
    assert ts.audit(problem, release).safe


def test_several_shared_dimensions_and_several_confidential_views() -> None:
    problem = ts.views(
        cube(2, (3, 2, 2, 3)),
        dimensions="abcd",
        published=[("a", "b", "c"), ("b", "c", "d")],
        confidential=[("a", "d"), ("a", "b", "d")],
    )
    assert ts.view_bounds(problem).by == "operators"
    release = ts.SuppressViews(algorithm="optimal").protect(problem)
    assert release.solution is not None
    assert release.solution.status == "optimal"
    assert ts.audit(problem, release).safe


def test_big_m_of_any_size_leads_to_the_same_number() -> None:
    problem = stated(cube(8, (5, 4, 5)))
    counts = {m: withheld(problem, ts.SuppressViews(algorithm="optimal", big_m=m).protect(problem)) for m in (0, 2000)}
    assert counts[0] == counts[2000]
    with pytest.raises(InvalidOption, match="at least"):
        ts.SuppressViews(algorithm="optimal", big_m=1.0).protect(problem)


def test_large_values_do_not_deceive_the_solver() -> None:
    x = cube(8, (5, 4, 5))
    small, large = stated(x), stated(x.astype(np.int64) * 10**9 + (x > 50))
    for problem in (small, large):
        release = ts.SuppressViews(algorithm="optimal").protect(problem)
        assert release.solution is not None
        assert release.solution.status == "optimal"
        assert ts.audit(problem, release).safe


@pytest.mark.parametrize(
    "options",
    [
        {"algorithm": "best"}, {"cost": "money"}, {"weights": (-1.0,)}, {"steps": -1}, {"big_m": -1.0},
        {"time_limit_s": 0.0},
    ],
)  # fmt: skip
def test_options_out_of_range_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidOption, match=f"SuppressViews.{next(iter(options))}"):
        ts.SuppressViews(**options)


def test_large_views_are_bounded_and_improved() -> None:
    random = np.random.default_rng(1)
    size = 40
    x = np.zeros((size, size, size), np.int64)
    for j in range(size):
        rows, columns = random.choice(size, 6, replace=False), random.choice(size, 6, replace=False)
        x[np.ix_(rows, [j], columns)] = cube(j, (6, 1, 6))
    problem = ts.views(x, dimensions=NAMES, published=FACES, confidential=[SECRET])
    greedy = ts.SuppressViews(algorithm="greedy").protect(problem)
    tabu = ts.SuppressViews(algorithm="tabu", steps=1500).protect(problem)
    assert withheld(problem, tabu) < withheld(problem, greedy)
    assert ts.view_bounds(problem, tabu).protected.all()


def test_a_job_file_can_name_it() -> None:
    assert METHODS["views"] is ts.SuppressViews
