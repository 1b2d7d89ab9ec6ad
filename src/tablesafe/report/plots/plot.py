"""A finished plot: to save, to put into a page, to look at in a notebook. Equal plots give equal files."""

from __future__ import annotations

import io
import re
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any

from tablesafe.core.errors import InvalidOption
from tablesafe.files.write import whole_file
from tablesafe.report.plot_names import FORMATS
from tablesafe.report.plots.style import look

DPI = 160
"""Dots per inch of a picture."""
_NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
"""What may not stand in an SVG file, escaped or not."""
_UNDATED: dict[str, dict[str, Any]] = {
    "svg": {"Date": None, "Creator": None, "Format": None, "Type": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
    "png": {"Software": None},
}


@dataclass(frozen=True, eq=False)
class Plot:
    """A picture, what it shows in words, and whether it must stay in the office."""

    figure: Any = field(repr=False)
    """The figure of matplotlib, for those who want to change it."""
    alt: str
    """What the picture shows, for those who cannot see it; as confidential as the picture."""
    internal: bool = True
    """Whether it shows true values, protection levels or why cells are withheld: for the office only."""

    def __post_init__(self) -> None:
        """Settle where everything stands, once: else each drawing would start from the one before, and differ.

        Only the places are worked out: a drawing without a picture, here and again before each file, took as long.
        """
        with look():
            engine = self.figure.get_layout_engine()
            if engine is not None:
                engine.execute(self.figure)
                self.figure.set_layout_engine(None)

    @property
    def axes(self) -> list[Any]:
        """The axes of the figure."""
        return list(self.figure.axes)

    def save(self, path: str | Path, *, dpi: int = DPI) -> None:
        """Write the picture, whole or not at all, as `.svg`, `.png` or `.pdf` by the name's ending.

        A picture for the office only can be read by its owner only.
        """
        suffix = Path(path).suffix.lower().lstrip(".")
        if suffix not in FORMATS:
            raise InvalidOption(
                f"A plot cannot be written as {Path(path).name!r}.",
                hint=f"end the name in {', '.join(f'.{name}' for name in FORMATS)}.",
            )
        data = self._drawn(suffix, dpi)
        with whole_file(path, private=self.internal) as temporary:
            temporary.write_bytes(data)

    def svg(self) -> str:
        """The picture as an `<svg>` element that says what it shows, to stand inside a page."""
        text = self._drawn("svg", DPI).decode("utf-8")
        text = text[text.index("<svg") :]
        text = re.sub(r"\s*<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
        text = re.sub(r'<g id="[A-Za-z.]+_\d+"', "<g", text)  # numbered anew in each picture: not unique in a page
        said = escape(_NOT_XML.sub("\ufffd", self.alt), quote=True)
        return re.sub(r"<svg ", f'<svg role="img" aria-label="{said}" ', text, count=1).strip()

    def png(self, *, dpi: int = DPI) -> bytes:
        """The picture as PNG."""
        return self._drawn("png", dpi)

    def _drawn(self, suffix: str, dpi: int) -> bytes:
        buffer = io.BytesIO()
        with look():
            self.figure.savefig(buffer, format=suffix, dpi=dpi, metadata=_UNDATED[suffix])
        return _NOT_XML.sub("\ufffd", buffer.getvalue().decode()).encode() if suffix == "svg" else buffer.getvalue()

    def _repr_svg_(self) -> str:
        return self.svg()

    def _repr_png_(self) -> bytes:
        return self.png(dpi=96)
