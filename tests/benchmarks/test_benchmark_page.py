"""The page and the README say what the results say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from benchmarks.fresh import engine, stale, without
from benchmarks.growth import curves, slope
from benchmarks.results import FOLDER, Results

from benchmarks import headline, page, plots, registry

REPOSITORY = Path(__file__).resolve().parent.parent.parent
MACHINE: dict[str, Any] = {
    "cpu": "C", "cores": 2, "memory_gb": 1.0, "system": "L", "distribution": "D", "python": "3", "commit": "",
    "libraries": {"tablesafe": "0"}, "peers": {},
}  # fmt: skip
registry.load()


def row(task: str, instance: str, program: str, role: str, **figures: Any) -> dict[str, Any]:
    """A row as the runner writes it."""
    head = {"task": task, "instance": instance, "program": program, "role": role, "status": "ok", "load": 0.5}
    return head | {"cpu_s": 1.0, "wall_s": 1.0, "peak_mb": 10.0, "added_mb": 1.0} | figures


def results(suite: str) -> Results:
    """Results of the headline or of growth, made up."""
    if suite == "growth":
        rows = [
            row("round", f"counts_{n}", "tablesafe", "tablesafe", cells=n, cpu_s=n**1.5 / 1e4)
            for n in (1_000, 10_000, 100_000)
        ]
        return Results(suite, MACHINE, tuple(rows), True)
    pair = [
        row("audit", "pattern_3d_10k", "tablesafe", "tablesafe", cells=9_975, cpu_s=0.5),
        row("audit", "pattern_3d_10k", "pytauargus", "peer", cells=9_975, cpu_s=5.0, cpu_ratio=10.0),
    ]
    return Results(suite, MACHINE, tuple(pair), True)


def written(folder: Path) -> Path:
    """A folder with both."""
    for suite in ("headline", "growth"):
        results(suite).write(folder / f"{suite}.json", finished=True)
    return folder


def test_the_slope_is_the_exponent() -> None:
    assert slope([(x, 3 * x**1.5) for x in (10, 100, 1000)]) == pytest.approx(1.5)
    assert slope([(10, 1.0)]) is None
    (curve,) = curves(results("growth").rows)
    assert curve.slope == pytest.approx(1.5)
    assert curve.last_slope == pytest.approx(1.5)


def test_points_too_quick_for_the_clock_do_not_count() -> None:
    rows = [
        row("round", "a", "tablesafe", "tablesafe", cells=10, cpu_s=0.0001),
        row("round", "b", "tablesafe", "tablesafe", cells=1_000, cpu_s=1.0),
        row("round", "c", "tablesafe", "tablesafe", cells=2_000, cpu_s=2.0),
    ]
    assert curves(rows)[0].slope == pytest.approx(1.0)


def test_the_page_has_tables_plots_and_slopes(tmp_path: Path) -> None:
    folder, docs = written(tmp_path / "results"), tmp_path / "docs"
    names = {path.name for path in page.write(docs, folder)}
    assert names == {"benchmarks.md", "headline.svg", "growth.svg"}
    text = (docs / "benchmarks.md").read_text(encoding="utf-8")
    assert "| audit: 9,975 cells (`pattern_3d_10k`) | pytauargus | 0.5 | 5 | 10× |" in text
    assert "| round | tablesafe | 1,000 to 100,000 cells |" in text
    assert "1.50 | 1.50" in text
    for name in ("headline.svg", "growth.svg"):
        assert f"(benchmarks/{name})" in text
        assert (docs / "benchmarks" / name).read_text(encoding="utf-8").startswith("<?xml")


def test_the_same_results_give_the_same_plots() -> None:
    both = [results("headline"), results("growth")]
    assert plots.drawn(both) == plots.drawn(both)


def test_a_readme_gets_the_table_between_its_markers(tmp_path: Path) -> None:
    folder = written(tmp_path)
    shown = headline.snippet(folder / "headline.json")
    assert shown is not None
    before = f"# T\n\n{headline.BEGIN}\nold\n{headline.END}\n\nmore\n"
    after = headline.inserted(before, shown)
    assert headline.between_markers(after) == shown
    assert after.startswith("# T\n\n")
    assert after.endswith("\n\nmore\n")
    assert headline.inserted("no markers", shown) == "no markers"


def test_our_readme_has_the_table_of_the_results_that_are_kept() -> None:
    """Where the README has no markers yet, or nothing is kept, there is nothing to compare."""
    text = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    there, shown = headline.between_markers(text), headline.snippet()
    assert there is None or (shown is not None and without(there) == without(shown))


def test_our_page_is_the_one_of_the_results_that_are_kept() -> None:
    kept = REPOSITORY / "docs" / "benchmarks.md"
    assert not kept.exists() or without(kept.read_text(encoding="utf-8")) == without(page.text(FOLDER))


def test_our_readme_says_so_when_the_engine_has_changed_since() -> None:
    """A page that does not say it yet is a reminder, not a failure: figures cannot be made anew in every change."""
    said = stale(Results.read(FOLDER / "headline.json"))
    if said and said not in (REPOSITORY / "README.md").read_text(encoding="utf-8"):
        pytest.skip(f"{said} `python -m benchmarks page` says so in the README, until the headline is measured again.")


def of(engine_mark: str | None) -> Results:
    """The made-up headline, measured with some engine at commit abc1234."""
    mark = {} if engine_mark is None else {"engine": engine_mark}
    made = results("headline")
    return Results(made.suite, made.machine, tuple(each | mark | {"commit": "abc1234"} for each in made.rows), True)


def test_figures_of_another_engine_say_so_on_page_and_readme(tmp_path: Path) -> None:
    said = "Measured at commit abc1234; the engine (`methods/suppress`, `solve`) has changed since."
    for mark, wanted in ((engine(), ""), ("of old", said), (None, said)):
        assert stale(of(mark)) == wanted
        of(mark).write(tmp_path / "headline.json", finished=True)
        for text in (page.text(tmp_path), headline.snippet(tmp_path / "headline.json")):
            assert text is not None
            assert (said in text) == bool(wanted)
            assert said not in without(text)
    of(engine()).write(tmp_path / "headline.json", finished=True)
    fresh_text = page.text(tmp_path)
    of("of old").write(tmp_path / "headline.json", finished=True)
    assert without(page.text(tmp_path)) == fresh_text


def test_the_mark_changes_with_the_engine_and_not_with_the_place_of_its_files(tmp_path: Path) -> None:
    for part in ("methods/suppress/deep", "solve"):
        (tmp_path / part).mkdir(parents=True)
        (tmp_path / part / "a.py").write_text(f"# {part}\n", encoding="utf-8")
    before = engine(tmp_path)
    (tmp_path / "solve" / "a.py").rename(tmp_path / "methods" / "suppress" / "b.py")
    assert engine(tmp_path) == before
    (tmp_path / "methods" / "suppress" / "b.py").write_text("x = 1\n", encoding="utf-8")
    assert engine(tmp_path) != before


def test_what_is_kept_was_safe_by_both_judges_and_names_no_path() -> None:
    for path in FOLDER.glob("*.json"):
        for each in Results.read(path).rows:
            if each["role"] == "tablesafe" and each.get("open_by_audit") is not None:
                assert each["open_by_audit"] == each["open_by_programs"] == 0, each
        text = path.read_text(encoding="utf-8")
        assert "/home/" not in text
        assert "/tmp/" not in text
        assert "/root" not in text
