"""The names of plots, known without anything that draws them."""

from __future__ import annotations

from pathlib import PurePath

from tablesafe.core.errors import InvalidOption
from tablesafe.files.read import did_you_mean

FORMATS = ("svg", "png", "pdf")
NAMES = (
    "regions", "intervals", "densities", "heat_map", "changes", "percent_changes", "accuracy_by_size", "progress",
)  # fmt: skip
"""What a run can be asked to draw for the office; `changes` is the heat map by change."""


def every_plot_name() -> tuple[str, ...]:
    """All names under which a run may have put plots into a folder."""
    return tuple(f"{name}.{ending}" for name in NAMES for ending in FORMATS)


def require_plot_name(name: str) -> None:
    """Refuse a file name that says no plot, or a format that is not written."""
    path = PurePath(name)
    if path.name != name or path.stem not in NAMES or path.suffix.lower().lstrip(".") not in FORMATS:
        near = str(did_you_mean(path.stem, list(NAMES)))
        raise InvalidOption(
            f"{name!r} is no name of a plot.",
            hint=f"{near + ' ' if near else ''}plots are {', '.join(NAMES)}, each with "
            f"{', '.join(f'.{ending}' for ending in FORMATS)}, and no folder.",
        )
