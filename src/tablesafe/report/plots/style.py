"""One look for all plots: fonts, colours, dashes, hatches, markers, and words on the axes.

Colours are those of Okabe and Ito, told apart by readers with any kind of colour vision; whatever has a colour of its
own also has its own dash, hatch or marker, so that a black-and-white print can be read.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from textwrap import wrap
from typing import Any

from tablesafe.core.errors import MissingExtra
from tablesafe.files.limits import visible

BLUE, ORANGE, GREEN, PINK, YELLOW, SKY = "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9"
INK, FAINT, GRID, PALE = "#222222", "#666666", "#E4E4E4", "#D9D9D9"
COLOURS = (BLUE, ORANGE, GREEN, PINK, YELLOW, SKY, "#000000")
DASHES: tuple[Any, ...] = ("-", (0, (6, 2)), (0, (2, 1.5)), (0, (7, 2, 1.5, 2)), (0, (4, 1, 1, 1, 1, 1)))
HATCHES = ("", "//", "..", "\\\\", "xx", "--", "++")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "p", "h", "*")
WIDTH = 7.2
"""Inches: the width of a page of text."""

_LOOK: dict[str, Any] = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans", "Verdana", "Arial", "Helvetica", "sans-serif"],
    "font.size": 9.0,
    "svg.fonttype": "none",
    "svg.hashsalt": "tablesafe",
    "pdf.fonttype": 42,
    "text.parse_math": False,
    "axes.unicode_minus": True,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.labelsize": 10.0,
    "axes.titlesize": 12.5,
    "axes.titlecolor": INK,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.linewidth": 0.8,
    "grid.color": GRID,
    "grid.linewidth": 0.7,
    "xtick.color": INK,
    "ytick.color": INK,
    "xtick.labelsize": 8.5,
    "ytick.labelsize": 8.5,
    "hatch.linewidth": 0.7,
    "legend.frameon": False,
    "legend.fontsize": 9.0,
    "legend.labelcolor": INK,
    "lines.solid_capstyle": "butt",
    "path.simplify": True,
    "image.composite_image": False,
}
_TURN = threading.RLock()
"""Settings of matplotlib belong to the whole process: whoever draws has them alone."""


def require_matplotlib() -> Any:
    """The library that draws; without it, say which extra brings it."""
    try:
        import matplotlib
    except ImportError as error:
        raise MissingExtra("Plots", "plots") from error
    return matplotlib


@contextmanager
def look() -> Iterator[None]:
    """Draw in our look, whatever the user has set elsewhere; one thread at a time, and nothing is left behind."""
    matplotlib = require_matplotlib()
    with _TURN, matplotlib.rc_context(), warnings.catch_warnings():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_LOOK)
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        yield


def new_figure(width: float, height: float) -> Any:
    """An empty figure of so many inches, tied to no display."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained", facecolor="white")
    layout: Any = figure.get_layout_engine()
    layout.set(w_pad=0.1, h_pad=0.06)  # letters are not as wide at every resolution
    FigureCanvasAgg(figure)
    return figure


def head(axes: Any, title: str, note: str = "") -> None:
    """The title above the axes, and what to know below it in small letters."""
    room = int((axes.figure.get_figwidth() - 0.9) * 16)
    lines = [line for part in note.splitlines() for line in wrap(part, room)]
    axes.set_title(title, pad=8 + 12.5 * len(lines))
    if lines:
        said = axes.annotate(
            "\n".join(lines), (0.0, 1.0), (0.0, 6.0), xycoords="axes fraction", textcoords="offset points",
            color=FAINT, fontsize=8.5, va="bottom", linespacing=1.25,
        )  # fmt: skip
        said.set_in_layout(False)  # its height is the title's distance; its width must not narrow the axes


def shortened(text: str, most: int) -> str:
    """A text of at most so many letters, on one line; what has no letter is spelled out."""
    text = visible(text.replace("\n", " ").replace("\t", " "))
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"


def plain(number: float) -> str:
    """A number with thousands separators, and no more digits than it needs."""
    return f"{number:,.0f}" if abs(number) >= 1000 else f"{number:,.4g}"


def count_of(n: int, thing: str) -> str:
    """So many things, in words."""
    return f"{n:,} {thing}" if n == 1 else f"{n:,} {thing}s"


def thousands(axis: Any) -> None:
    """Ticks of an axis as plain numbers with thousands separators."""
    from matplotlib.ticker import FuncFormatter

    axis.set_major_formatter(FuncFormatter(lambda value, _: plain(value).replace("-", "−")))


def percents(axis: Any) -> None:
    """Ticks of an axis as percent."""
    from matplotlib.ticker import FuncFormatter

    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{plain(value).replace('-', '−')} %"))


def legend_below(figure: Any, columns: int = 3) -> None:
    """What is what, below the plot."""
    figure.legend(loc="outside lower center", ncols=columns, handlelength=2.6, columnspacing=1.8)
