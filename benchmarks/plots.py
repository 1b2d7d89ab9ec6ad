"""Plots of the results: growth curves, and the comparisons of the headline, as SVG that is the same every time."""

from __future__ import annotations

import io
from typing import Any

from benchmarks.growth import curves
from benchmarks.registry import Row
from benchmarks.results import Results

COLOURS = {"tablesafe": "#0072B2", "naive": "#E69F00", "peer": "#009E73"}
LINES = (("#0072B2", "o"), ("#E69F00", "s"), ("#009E73", "^"), ("#CC79A7", "D"), ("#D55E00", "v"), ("#56B4E9", "P"))
SIGNS = {"tablesafe": "o", "naive": "s", "peer": "^"}
GROWTH = ("growth", "growth-microdata")
"""The suites that are shown by their curves."""
WORDS = {"tablesafe": "tablesafe", "naive": "the naive way", "peer": "another program"}


def drawn(results: list[Results]) -> dict[str, str]:
    """The plots by file name."""
    made = {"headline": comparisons} | dict.fromkeys(GROWTH, growth)
    return {f"{each.suite}.svg": made[each.suite](each) for each in results if each.suite in made and each.rows}


def growth(results: Results) -> str:
    """CPU seconds by size, both on logarithmic scales, a curve per task."""
    figure, axes = _figure(7.0, 4.6)
    shown = [curve for curve in curves(results.rows) if curve.axis != "sensitive"]
    for (colour, marker), curve in zip(LINES, shown, strict=False):
        slope = "" if curve.slope is None else f", slope {curve.slope:.2f}"
        task = f"{curve.family}, {curve.program}" if "/" in curve.family else curve.task
        axes.plot(curve.sizes, curve.seconds, color=colour, marker=marker, markersize=5, linewidth=1.4,
                  label=f"{task} ({curve.axis}{slope})")  # fmt: skip
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("size: records, unknown cells or cells")
    axes.set_ylabel("CPU seconds")
    axes.grid(True, which="major", color="#dddddd", linewidth=0.6)
    axes.legend(frameon=False, fontsize=9)
    return _svg(figure)


def comparisons(results: Results) -> str:
    """CPU seconds of every program of every comparison, a line each; a sign and a colour per kind of program."""
    pairs = list(dict.fromkeys((row["task"], row["instance"]) for row in results.rows))
    figure, axes = _figure(7.0, 0.32 * len(pairs) + 1.3)
    for role, marker in SIGNS.items():
        rows = [row for row in results.rows if row["role"] == role and row.get("cpu_s") is not None]
        for leaky, word in ((False, WORDS[role]), (True, None)):
            some = [row for row in rows if _leaks(row) == leaky]
            places = [pairs.index((row["task"], row["instance"])) for row in some]
            seconds = [max(row["cpu_s"], 1e-3) for row in some]
            face = "none" if leaky else COLOURS[role]
            axes.scatter(seconds, places, facecolors=face, edgecolors=COLOURS[role], marker=marker, s=34, label=word,
                         zorder=3)  # fmt: skip
    axes.set_xscale("log")
    axes.set_yticks(range(len(pairs)), [f"{task}: {name.removeprefix('bench/')}" for task, name in pairs], fontsize=8)
    axes.invert_yaxis()
    axes.set_xlabel("CPU seconds; a hollow sign leaves sensitive cells open")
    axes.grid(True, axis="both", color="#dddddd", linewidth=0.6)
    axes.legend(frameon=False, fontsize=8, loc="lower center", bbox_to_anchor=(0.4, 1.0), ncols=3)
    return _svg(figure)


def _leaks(row: Row) -> bool:
    """Whether one of the judges finds a cell open."""
    return bool(row.get("open_by_audit") or row.get("open_by_programs"))


def _figure(width: float, height: float) -> tuple[Any, Any]:
    """An empty plot without a window system."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    axes = figure.subplots()
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    return figure, axes


def _svg(figure: Any) -> str:
    """The plot as text: no date and no random names, so that the same results give the same file."""
    import matplotlib as mpl

    out = io.StringIO()
    with mpl.rc_context({"svg.hashsalt": "tablesafe", "svg.fonttype": "path"}):
        figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"
