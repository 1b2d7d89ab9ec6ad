"""The page of the documentation, from the results that are kept: tables, growth curves, plots."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path

from benchmarks import headline, machine, plots, registry
from benchmarks.fresh import stale
from benchmarks.growth import Curve, curves
from benchmarks.results import FOLDER, Results, number, size, table

REPOSITORY = Path(__file__).resolve().parent.parent
DOCS = REPOSITORY / "docs"
PLOTS = "benchmarks"
LEFT_OUT = ("smoke", "tasks", "full")
"""Suites that are not for reading."""
INTRODUCTION = """# Benchmarks

This page is written by `python -m benchmarks page` from the results that lie in `benchmarks/results/`. To measure
again:

```text
make peers                        # once: the other programs, in a virtual environment of their own
make benchmark SUITE=headline     # a suite; `python -m benchmarks list` names them all
python -m benchmarks page         # this page, its plots and the README's table
```

How it is measured:

- Each program runs in a process of its own, on the same instance, one after the other in one run. Ratios are theirs to
  ours and only taken within a run.
- CPU seconds are those of the work, with all processes that it starts; imports, compilation (a small instance is worked
  on first) and reading the instance are not counted. Peak memory is that of the whole process with the largest process
  it started; *added* is what it holds beyond the beginning of the work.
- *Open* cells are sensitive cells that do not have their protection interval: by the audit of tablesafe, and by two
  fresh linear programs per cell with SciPy's solver that share no code with it. Where there are more than
  60 sensitive cells, or 6 seconds are over, a random sample is looked at, and the table says how many.
- *Open to respondents* also counts what contributors can derive who know their own figures, and sums that can be
  derived; the peers do not protect from them, so it is shown apart.
- Rows marked *printed* were measured by others on other days; their seconds are by the wall, and no ratio is taken.
- A program that fails, takes too long or is not installed is a row with its reason.
- Generated instances come from seeds; the files of the literature are not in the repository, and without them their
  rows say so.
"""


def suites(folder: Path = FOLDER) -> list[Results]:
    """The results that are for reading, headline and growth first."""
    found = {path.stem: Results.read(path) for path in sorted(folder.glob("*.json")) if path.stem not in LEFT_OUT}
    first = [name for name in ("headline", "microdata", "start", "growth", "growth-microdata") if name in found]
    return [found[name] for name in (*first, *(name for name in found if name not in first))]


def text(folder: Path = FOLDER) -> str:
    """The whole page."""
    registry.load()
    parts = [INTRODUCTION.strip()]
    for results in suites(folder):
        parts += [f"## {results.suite.capitalize()}", _about(results)]
        if results.suite == "headline":
            parts += [headline.table(results, registry.SUITES["headline"].headline)]
            parts += [f"![CPU seconds of each comparison]({PLOTS}/headline.svg)"]
        parts += _growth(results) if results.suite in plots.GROWTH else _comparisons(results)
    return "\n\n".join(parts) + "\n"


def _about(results: Results) -> str:
    """What the suite is, where it ran, and what is wrong with the figures, if anything."""
    known = registry.SUITES.get(results.suite)
    words = f"{known.about[0].upper()}{known.about[1:]}. " if known else ""
    busiest = max((row.get("load", 0.0) for row in results.rows), default=0.0)
    cores = results.machine["cores"] or 1
    busy = f" The machine was busy with other work: load up to {busiest:g}." if busiest > cores else ""
    unfinished = "" if results.finished else " This run was not finished."
    said = stale(results)
    return f"{words}{machine.sentence(results.machine)}{f' {said}' if said else ''}{busy}{unfinished}"


def _comparisons(results: Results) -> list[str]:
    """A table per comparison."""
    parts = []
    for (task, name), rows in groupby(results.rows, key=lambda row: (row["task"], row["instance"])):
        group = list(rows)
        parts += [f"### {task}: {name}", f"{size(group)}.", table(group)]
    return parts


def _growth(results: Results) -> list[str]:
    """Slopes, the curves, and the points."""
    found = curves(results.rows)
    lines = ["| task | program | sizes | CPU s | slope | slope between the two largest | peak MB |",
             "|---|---|---|---|--:|--:|--:|"]  # fmt: skip
    lines += [_curve_line(curve) for curve in found]
    stopped = [row for row in results.rows if row["status"] != "ok"]
    notes = [f"{row['task']}, {row['instance']}: {row['status']} ({row['reason']})." for row in stopped]
    told = "The slope is that of the least-squares line through the logarithms: 1 is proportional to the size."
    return [told, "\n".join(lines), f"![CPU seconds by size]({PLOTS}/{results.suite}.svg)", *notes]


def _curve_line(curve: Curve) -> str:
    sizes = f"{curve.sizes[0]:,.0f} to {curve.sizes[-1]:,.0f} {curve.axis.replace('unknown', 'unknown cells')}"
    seconds = ", ".join(number(value) for value in curve.seconds)
    slopes = [f"{value:.2f}" if value is not None else "–" for value in (curve.slope, curve.last_slope)]
    task = f"{curve.task}, {curve.family}" if "/" in curve.family else curve.task
    cells = [task, curve.program, sizes, seconds, *slopes, f"{curve.megabytes[-1]:,.0f}"]
    return "| " + " | ".join(cells) + " |"


def write(docs: Path | None = None, folder: Path = FOLDER, readme: Path | None = None) -> list[Path]:
    """The page, its plots, and the README's table where the README has markers for it."""
    from tablesafe.files.write import whole_file

    docs = docs or DOCS
    pages = {docs / "benchmarks.md": text(folder)}
    pages |= {docs / PLOTS / name: svg for name, svg in plots.drawn(suites(folder)).items()}
    readme = readme or REPOSITORY / "README.md"
    shown = headline.snippet(folder / "headline.json")
    if docs == DOCS and shown is not None and readme.exists():
        before = readme.read_text(encoding="utf-8")
        if headline.between_markers(before) not in {None, shown}:
            pages[readme] = headline.inserted(before, shown)
    for path, content in pages.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(path) as file:
            file.write_text(content, encoding="utf-8")
    return list(pages)
