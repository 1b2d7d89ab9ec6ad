"""Plots: what is drawn is what was found, files are equal, public ones show nothing withheld."""

from __future__ import annotations

import builtins
import re
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import fromstring

import matplotlib
import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tablesafe as ts
from tablesafe.audit.findings import Findings
from tablesafe.core.errors import InvalidOption, MissingExtra
from tablesafe.core.sensitivity import Sensitivity
from tablesafe.report.cells import NUMBER, Kind
from tablesafe.report.margins import Ends
from tablesafe.report.plots import Plot
from tablesafe.report.plots.heatmap import COLOURS, FINEST, RANK, Grid

STARTS = {".svg": b"<?xml", ".png": b"\x89PNG", ".pdf": b"%PDF"}
REGIONS = ["Île-de-France & co. $x_1$ with a name far too long for any margin of a page", "<b>北京</b>", "Ω", "South"]


def table_of(values: list[float], regions: list[str] = REGIONS) -> ts.Table:
    """A total and its parts."""
    frame = pl.DataFrame({"region": ["Total", *regions], "value": [sum(values), *values]})
    return ts.Table.from_cells(frame, dimensions={"region": ts.Hierarchy.flat(regions, total="Total")})


def problem_of(values: list[float], sensitive: list[bool], level: float = 2.0) -> ts.Problem:
    mask = np.array([False, *sensitive])
    return ts.Problem(table_of(values), sensitivity=Sensitivity.of(mask, level))


def release_of(problem: ts.Problem) -> ts.Release:
    """All sensitive cells withheld, and one more."""
    hidden = problem.sensitivity.mask.copy()
    hidden[-1] = True
    return ts.Release.from_suppression(problem, hidden)


@pytest.fixture(scope="module")
def problem() -> ts.Problem:
    return problem_of([731.0, 92817.0, 55.0, 6143.0], [True, True, False, False])


@pytest.fixture(scope="module")
def release(problem: ts.Problem) -> ts.Release:
    return release_of(problem)


@pytest.fixture(scope="module")
def findings(problem: ts.Problem, release: ts.Release) -> Findings:
    return ts.audit(problem, release)


def many(n: int, seed: int = 1) -> Findings:
    """A wide row with many sensitive cells; the audit finds some of them open."""
    random = np.random.default_rng(seed)
    values = random.integers(1, 1000, n).astype(float)
    codes = [f"c{i}" for i in range(n)]
    problem = ts.Problem(table_of(values.tolist(), codes), sensitivity=Sensitivity.of(np.arange(n + 1) > 0, 1.0))
    found = ts.audit(problem, ts.protect(problem, ts.PublishAll()), insiders=False, unions=False, certify=False)
    reach = random.uniform(0.2, 50, (2, n))
    reach[:, random.random(n) < 0.1] = np.inf
    value = found.value
    return Findings(
        problem, found.release, found.system, found.cells, value - reach[0], value + reach[1],
        np.asarray(reach.min(axis=0) >= 1.0),
    )  # fmt: skip


# -- every plot


DRAWN: dict[str, Callable[[ts.Problem, ts.Release, Findings], Plot]] = {
    "regions": lambda *_: ts.plots.sensitivity_regions([ts.PPercent(p=10)]),
    "intervals": lambda p, r, f: ts.plots.intervals(f),
    "heat map": lambda p, r, f: ts.plots.heat_map(r, p, f),
    "public heat map": lambda p, r, f: ts.plots.heat_map(r),
    "changes": lambda p, r, f: ts.plots.heat_map(r, p, by="change"),
    "percent changes": lambda p, r, f: ts.plots.percent_changes({"one": ts.quality(p, r), "two": ts.quality(p, r)}),
    "accuracy": lambda p, r, f: ts.plots.accuracy_by_size(ts.quality(p, r)),
    "frontier": lambda p, r, f: ts.plots.frontier(ts.frontier(p, {"ours": r, "nothing": ts.PublishAll()})),
    "progress": lambda *_: ts.plots.progress(trace_of((9.0, 2.0), (7.0, 4.0), (6.0, 6.0))),
    "densities": lambda p, r, f: ts.plots.densities(ts.attack(p, r, ts.VertexMean())),
}


def trace_of(*steps: tuple[float, float]) -> ts.Trace:
    trace = ts.Trace()
    for i, (cost, bound) in enumerate(steps):
        trace.steps.append((i + 0.5, cost, bound))
    return trace


@pytest.mark.parametrize("name", DRAWN)
def test_every_plot_is_written_says_what_it_shows_and_is_equal_when_drawn_again(
    name: str, problem: ts.Problem, release: ts.Release, findings: Findings, tmp_path: Path
) -> None:
    plot, again = DRAWN[name](problem, release, findings), DRAWN[name](problem, release, findings)
    for suffix, start in STARTS.items() if name == "intervals" else [(".svg", STARTS[".svg"])]:
        plot.save(tmp_path / f"plot{suffix}", dpi=40)
        again.save(tmp_path / f"again{suffix}", dpi=40)
        assert (tmp_path / f"plot{suffix}").read_bytes().startswith(start)
        assert (tmp_path / f"plot{suffix}").read_bytes() == (tmp_path / f"again{suffix}").read_bytes()
    assert plot.alt
    assert plot.alt.endswith(".")
    svg = plot._repr_svg_()
    assert svg == again.svg()
    assert svg.startswith('<svg role="img" aria-label="')
    assert svg.endswith("</svg>")
    assert "<metadata" not in svg
    assert plot._repr_png_().startswith(STARTS[".png"])
    assert plot.internal == (name != "public heat map")
    mode = (tmp_path / "plot.svg").stat().st_mode & 0o077
    assert mode == 0 if plot.internal else mode


def test_names_in_a_picture_do_not_clash_with_those_of_another(findings: Findings) -> None:
    svg = ts.plots.intervals(findings).svg()
    names = re.findall(r'id="([^"]+)"', svg)
    assert not [name for name in names if re.fullmatch(r"[a-z]+_\d+", name)]


def test_texts_are_escaped_and_not_read_as_formulas(findings: Findings) -> None:
    svg = ts.plots.intervals(findings).svg()
    assert "<b>" not in svg
    assert "&lt;b&gt;北京" in svg
    assert "$x_1$" in svg


def test_no_name_whatever_is_in_it_breaks_a_picture() -> None:
    names = ["a\x07b", "c\x00d", "e\nf", "\u202eturned", "g\x1b[31m", "$\\frac{", "]]>&<", "\ufffe"]
    table = table_of([1.0, 2, 3, 4, 5, 6, 7, 8], names)
    problem = ts.Problem(table, sensitivity=Sensitivity.of(table.value < 9, 1.0))
    release = ts.Release.from_suppression(problem, np.asarray(table.value < 9))
    drawn = [
        ts.plots.intervals(ts.audit(problem, release)),
        ts.plots.heat_map(release, title="a\x00b"),
        ts.plots.percent_changes({name: ts.quality(problem, release) for name in names[:3]}),
    ]
    for plot in drawn:
        assert fromstring(plot.svg()).tag.endswith("svg")
        assert plot.png(dpi=40)


def test_the_users_own_settings_are_neither_used_nor_changed(findings: Findings) -> None:
    usual = ts.plots.intervals(findings).svg()
    with matplotlib.rc_context({"font.size": 30, "axes.facecolor": "black", "svg.hashsalt": "mine"}):
        assert ts.plots.intervals(findings).svg() == usual
        assert matplotlib.rcParams["font.size"] == 30
        assert matplotlib.rcParams["svg.hashsalt"] == "mine"


def test_plots_drawn_in_threads_are_the_same(findings: Findings, release: ts.Release) -> None:
    usual = ts.plots.intervals(findings).svg(), ts.plots.heat_map(release).svg()
    found: list[tuple[str, str]] = []
    threads = [
        threading.Thread(
            target=lambda: found.append((ts.plots.intervals(findings).svg(), ts.plots.heat_map(release).svg()))
        )
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [usual] * 4


def test_without_matplotlib_the_extra_is_named(monkeypatch: pytest.MonkeyPatch, findings: Findings) -> None:
    original = builtins.__import__

    def refuse(name: str, *rest: Any) -> Any:
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return original(name, *rest)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(MissingExtra, match=r"tablesafe\[plots\]"):
        ts.plots.intervals(findings)


# -- intervals


def test_lines_of_few_cells_end_where_their_intervals_end(findings: Findings) -> None:
    (axes,) = ts.plots.intervals(findings).axes
    ends = Ends.of(findings, "auto")
    (lines,) = [each for each in axes.collections if len(each.get_paths()) == len(ends)]
    drawn = np.array([[path.vertices[0, 0], path.vertices[1, 0]] for path in lines.get_paths()])
    levels = findings.problem.sensitivity
    value = findings.problem.table.value[ends.cells]
    place = {int(cell): at for at, cell in enumerate(findings.cells)}
    at = [place[int(cell)] for cell in ends.cells]
    edge = axes.get_xlim()[1] / 1.02
    below = (value - findings.lower[at]) / levels.lower[ends.cells]
    above = (findings.upper[at] - value) / levels.upper[ends.cells]
    assert drawn[:, 0] == pytest.approx(-np.minimum(below, edge))
    assert drawn[:, 1] == pytest.approx(np.minimum(above, edge))
    assert len(axes.get_yticklabels()) == len(ends)


@given(n=st.integers(31, 400), seed=st.integers(0, 5))
@settings(max_examples=8)
def test_the_band_of_many_cells_is_ordered_by_room_and_drawn_as_far_as_it_reaches(n: int, seed: int) -> None:
    found = many(n, seed)
    ends = Ends.of(found, "level")
    closed = ends.room[ends.protected]
    assert (np.diff(closed[np.isfinite(closed)]) >= 0).all()
    assert not ends.protected[: int((~ends.protected).sum())].any()
    (axes,) = ts.plots.intervals(found).axes
    steps = [each for each in axes.patches if type(each).__name__ == "StepPatch"]
    edge = axes.get_ylim()[1] / 1.02
    assert steps[0].get_data().values == pytest.approx(-np.minimum(ends.below, edge))
    assert steps[1].get_data().values == pytest.approx(np.minimum(ends.above, edge))


def test_five_thousand_cells_are_a_small_picture_that_hides_no_open_one() -> None:
    found = many(5_000)
    plot = ts.plots.intervals(found)
    assert len(plot.svg()) < 300_000
    (axes,) = plot.axes
    steps = [each for each in axes.patches if type(each).__name__ == "StepPatch"]
    least = min(np.abs(each.get_data().values).min() for each in steps)
    assert least == pytest.approx(Ends.of(found, "level").least)
    assert f"{int((~found.protected).sum()):,} open" in plot.svg()


@pytest.mark.parametrize(
    ("values", "sensitive"),
    [
        ([5.0, -20.0, 5.0, 0.0], [True, True, False, True]),
        ([0.0, 0.0, 0.0, 0.0], [True, True, False, False]),
        ([1.0, 2.0, 3.0, 4.0], [True, False, False, False]),
        ([1.0, 2.0, 3.0, 4.0], [False] * 4),
    ],
    ids=["negative", "zero", "one", "none"],
)
@pytest.mark.parametrize("unit", ["auto", "level", "percent"])
def test_odd_tables_are_drawn_too(values: list[float], sensitive: list[bool], unit: Any) -> None:
    problem = problem_of(values, sensitive, level=0.0 if values[0] == 0 else 2.0)
    found = ts.audit(problem, release_of(problem))
    assert ts.plots.intervals(found, unit=unit).png(dpi=40)
    if unit == "auto":
        assert ts.plots.heat_map(found.release, problem, found).png(dpi=40)
        assert ts.plots.heat_map(found.release, problem, by="change").png(dpi=40)


def test_options_that_mean_nothing_are_refused(findings: Findings, release: ts.Release) -> None:
    with pytest.raises(InvalidOption, match="unit"):
        ts.plots.intervals(findings, unit="metres")  # type: ignore[arg-type]
    with pytest.raises(InvalidOption, match="by must be"):
        ts.plots.heat_map(release, by="colour")  # type: ignore[arg-type]
    with pytest.raises(InvalidOption, match="without the problem"):
        ts.plots.heat_map(release, by="change")
    with pytest.raises(InvalidOption, match="did you mean 'region'"):
        ts.plots.heat_map(release, rows="regoin")


# -- heat maps


def test_the_public_heat_map_shows_no_withheld_value_and_no_reason(
    problem: ts.Problem, release: ts.Release, findings: Findings
) -> None:
    public = ts.plots.heat_map(release)
    text = public.svg() + public.alt
    written = " ".join([public.alt, *re.findall(r"<text[^>]*>([^<]*)", public.svg())])
    for value in problem.table.value[release.suppressed]:
        assert f"{value:.0f}" not in written.replace(",", "")
    elsewhere = release_of(problem_of([700.0, 92848.0, 55.0, 6143.0], [True, True, False, False]))
    assert ts.plots.heat_map(elsewhere).svg() == public.svg()
    assert "sensitive" not in text
    assert "complementary" not in text
    assert "withheld" in text
    other = ts.Release.from_suppression(problem.replace(sensitivity=Sensitivity.none(5)), release.suppressed)
    assert ts.plots.heat_map(other).svg() == public.svg()
    assert "sensitive" in ts.plots.heat_map(release, problem, findings).alt


def test_each_cell_of_a_heat_map_has_the_colour_of_its_status(dandekar: ts.Problem) -> None:
    release = ts.protect(dandekar, ts.Withhold())
    (axes,) = ts.plots.heat_map(release, dandekar).axes
    picture = axes.images[0].get_array()
    grid = Grid.of(dandekar.table)
    assert picture.shape == (10, 24)
    drawn = np.asarray(picture)[grid.row, grid.column]
    expected = np.where(dandekar.sensitivity.mask, NUMBER[Kind.SENSITIVE], NUMBER[Kind.PUBLISHED])
    assert (drawn == RANK[expected]).all()
    assert len(set(COLOURS.values())) == len(COLOURS) - 1  # a value that may differ looks like a changed one


def test_changes_are_drawn_as_they_are(dandekar: ts.Problem) -> None:
    truth = dandekar.table.value
    values = truth * np.where(np.arange(len(truth)) % 7 == 0, 1.05, 1.0)
    release = ts.Release(dandekar.table, values, values - 1, values + 1, np.full(len(truth), 5, np.uint8), "other")
    grid = Grid.of(dandekar.table, "row")
    axes = ts.plots.heat_map(release, dandekar, by="change", rows="row").axes[0]
    drawn = np.asarray(axes.images[0].get_array())[grid.row, grid.column]
    assert drawn[truth > 0] == pytest.approx((100 * (values - truth) / np.where(truth > 0, truth, 1))[truth > 0])


def test_a_large_table_is_a_picture_of_bounded_size_in_which_every_withheld_cell_shows() -> None:
    down, across = 2_000, 50
    random = np.random.default_rng(3)
    frame = pl.DataFrame(
        {
            "a": np.repeat([f"a{i}" for i in range(down)], across),
            "b": np.tile([f"b{i}" for i in range(across)], down),
            "value": random.integers(1, 100, down * across),
        }
    )
    table = ts.Table.from_cells(frame, dimensions=["a", "b"], missing_totals="compute")
    hidden = np.zeros(len(table), dtype=np.bool_)
    hidden[[5, 77_777]] = True
    release = ts.Release.from_suppression(ts.Problem(table), hidden)
    plot = ts.plots.heat_map(release)
    picture = np.asarray(plot.axes[0].images[0].get_array())
    assert picture.shape == (FINEST[0], across + 1)
    assert (picture == RANK[NUMBER[Kind.WITHHELD]]).sum() == 2
    assert "share a place" in plot.svg()
    assert len(plot.svg()) < 400_000


def test_named_cells_are_laid_out_in_their_order() -> None:
    table = ts.Table.from_equations(["t = a + b + c"], {"t": 6, "a": 1, "b": 2, "c": 3})
    grid = Grid.of(table)
    assert (grid.row * len(grid.columns) + grid.column == np.arange(4)).all()
    assert ts.plots.heat_map(ts.protect(ts.Problem(table), ts.PublishAll())).png(dpi=40)


# -- progress


def test_progress_draws_the_best_so_far_and_the_proven_bound() -> None:
    trace = trace_of((np.nan, 1.0), (9.0, 2.0), (10.0, 1.5), (6.0, 6.0))
    (axes,) = ts.plots.progress(trace).axes
    best, bound = axes.lines
    assert best.get_ydata()[1:].tolist() == [9, 10, 6]
    assert bound.get_ydata().tolist() == [1, 2, 2, 6]
    assert bound.get_xdata().tolist() == [0.5, 1.5, 2.5, 3.5]
    assert "proven optimal" in ts.plots.progress(trace).alt
    assert trace.frame()["gap in percent"].to_list() == [None, pytest.approx(700 / 9), 80.0, 0.0]


def test_progress_without_an_answer_or_a_bound_says_so() -> None:
    assert "no answer yet" in ts.plots.progress(ts.Trace()).alt
    assert "no bound" in ts.plots.progress(trace_of((9.0, 0.0), (8.0, 0.0))).alt


@pytest.mark.parametrize("kind", [ts.Suppress, ts.Adjust])
def test_methods_report_to_a_trace(kind: Any, problem: ts.Problem) -> None:
    trace = ts.Trace()
    solution = ts.protect(problem, kind(time_limit_s=5), ts.Run(progress=trace)).solution
    assert solution is not None
    frame = trace.frame()
    assert frame["cost"].to_list()[-1] == pytest.approx(solution.objective)
    assert (frame["bound"] <= frame["cost"] * (1 + 1e-9)).all()
    assert frame["bound"].is_sorted()
    assert frame["seconds"].is_sorted()


# -- the frontier


def test_the_frontier_marks_what_no_other_release_beats(problem: ts.Problem, release: ts.Release) -> None:
    worse = ts.Release.from_suppression(problem, np.array([False, True, True, True, True]))
    found = ts.frontier(problem, {"ours": release, "more": worse, "all": ts.PublishAll(), "again": release})
    frame = found.frame()
    assert frame["name"].to_list() == ["ours", "more", "all", "again"]
    total = np.abs(problem.table.value).sum()
    assert frame["percent of value lost"][0] == pytest.approx(
        100 * problem.table.value[release.suppressed].sum() / total
    )
    assert frame["percent guessed"][2] == 100.0
    assert frame["percent open"].to_list() == [0.0, 0.0, 100.0, 0.0]
    for i, efficient in enumerate(frame["efficient"].to_list()):
        beaten = any(
            found.loss[j] <= found.loss[i] and found.risk[j] <= found.risk[i]
            and (found.loss[j] < found.loss[i] or found.risk[j] < found.risk[i])
            for j in range(4)
        )  # fmt: skip
        assert efficient == (not beaten)
    axes = ts.plots.frontier(found).axes[0]
    points = [line for line in axes.lines if len(line.get_xdata()) == 1]
    assert [float(line.get_xdata()[0]) for line in points] == pytest.approx(found.loss.tolist())
    assert [line.get_markerfacecolor() != "white" for line in points] == frame["efficient"].to_list()


def test_methods_are_named_by_their_options(problem: ts.Problem) -> None:
    found = ts.frontier(
        problem,
        [ts.Suppress(time_limit_s=3), ts.Suppress(time_limit_s=3, margin=0.5), ts.PublishAll(), ts.PublishAll()],
        risk="room", loss="cells",
    )  # fmt: skip
    assert found.frame()["name"].to_list() == [
        "suppress time_limit_s=3", "suppress margin=0.5 time_limit_s=3", "none", "none (2)",
    ]  # fmt: skip
    assert found.risk[2] == 0
    assert ts.plots.frontier(found).png(dpi=40)
    with pytest.raises(InvalidOption, match="no release"):
        ts.frontier(problem, [])
    with pytest.raises(InvalidOption, match="risk must be"):
        ts.frontier(problem, [ts.PublishAll()], risk="luck")  # type: ignore[arg-type]
