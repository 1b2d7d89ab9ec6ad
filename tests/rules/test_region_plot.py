"""The plot of sensitivity regions: files by suffix, whole or not at all, and the picture shows what the rules say."""

from __future__ import annotations

import builtins
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tablesafe.core.errors import InvalidOption, MissingExtra
from tablesafe.report.plots import sensitivity_regions
from tablesafe.report.plots.style import COLOURS
from tablesafe.rules import AnyOf, Dominance, PPercent, Rule, Threshold

RULES: list[Rule] = [PPercent(p=10), Dominance(n=2, k=85), AnyOf(rules=(PPercent(p=10), Dominance(n=1, k=75)))]
STARTS = {".svg": b"<?xml", ".png": b"\x89PNG", ".pdf": b"%PDF"}


@pytest.mark.parametrize("suffix", STARTS)
def test_a_plot_is_written_in_the_format_of_its_suffix(tmp_path: Path, suffix: str) -> None:
    sensitivity_regions(RULES).save(tmp_path / f"regions{suffix}")
    assert (tmp_path / f"regions{suffix}").read_bytes().startswith(STARTS[suffix])
    assert [path.name for path in tmp_path.iterdir()] == [f"regions{suffix}"]


def test_equal_plots_are_equal_files(tmp_path: Path) -> None:
    for name in ("one.svg", "two.svg"):
        sensitivity_regions(RULES).save(tmp_path / name)
    assert (tmp_path / "one.svg").read_bytes() == (tmp_path / "two.svg").read_bytes()


def test_an_unknown_suffix_writes_nothing(tmp_path: Path) -> None:
    with pytest.raises(InvalidOption, match=r"\.svg, \.png, \.pdf"):
        sensitivity_regions(RULES).save(tmp_path / "regions.docx")
    assert not list(tmp_path.iterdir())


def test_the_picture_is_tinted_where_the_rule_flags() -> None:
    """Read the picture back: at shares that a p% rule flags, the pixel is tinted; at others it is white."""
    figure = sensitivity_regions([PPercent(p=20)]).figure
    figure.canvas.draw()
    pixels = np.asarray(figure.canvas.buffer_rgba())
    axes = figure.axes[0]

    def is_white(first: float, second: float) -> bool:
        x, y = axes.transData.transform((first, second))
        return bool((pixels[pixels.shape[0] - 1 - round(y), round(x), :3] == 255).all())

    for first, second in [(0.95, 0.02), (0.72, 0.25), (0.53, 0.44)]:
        assert not is_white(first, second)
    for first, second in [(0.15, 0.05), (0.55, 0.15), (0.43, 0.33)]:
        assert is_white(first, second)


def test_lines_lie_where_the_rules_change_their_mind() -> None:
    figure = sensitivity_regions({"ours": PPercent(p=25)})
    (line,) = figure.axes[0].lines
    points = np.column_stack([line.get_xdata(), line.get_ydata()])
    ends = {tuple(np.round(point, 6)) for point in points if np.isfinite(point).all()}
    assert ends == {(0.8, 0.0), (round(4 / 9, 6), round(4 / 9, 6))}
    assert line.get_label() == "ours"


def test_it_leaves_no_global_state() -> None:
    sensitivity_regions(RULES)
    pyplot = sys.modules.get("matplotlib.pyplot")
    assert pyplot is None or not pyplot.get_fignums()


def test_rules_without_a_region_or_too_many_are_refused() -> None:
    with pytest.raises(InvalidOption, match="no rule to plot"):
        sensitivity_regions([])
    with pytest.raises(InvalidOption, match="Threshold does not weigh"):
        sensitivity_regions([Threshold()])
    with pytest.raises(InvalidOption, match="told apart"):
        sensitivity_regions([PPercent(p=p) for p in range(1, len(COLOURS) + 2)])


def test_without_matplotlib_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    original = builtins.__import__

    def refuse(name: str, *rest: Any) -> Any:
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return original(name, *rest)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(MissingExtra, match=r"tablesafe\[plots\]"):
        sensitivity_regions(RULES)
