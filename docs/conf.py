"""The documentation as a site: `make site` puts it into build/site. The pages are plain Markdown, readable as they are.

What belongs where is said once, in `CONTENTS`: the menu is made from it when the site is built, so that no page holds
directives. Formulas become MathML, which browsers show by themselves; no page loads anything from another host.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.utils.math import latex2mathml

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from contents import CONTENTS  # noqa: E402

project = "tablesafe"
author = "The tablesafe developers"
project_copyright = ""
extensions = ["myst_parser"]
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 4
exclude_patterns = ["examples", "reference", "reproduce"]
suppress_warnings = ["myst.xref_ambiguous"]
html_theme = "furo"
html_title = "tablesafe"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
html_math_renderer = "mathml"
html_theme_options = {"footer_icons": []}
pygments_style = "default"
pygments_dark_style = "github-dark"
highlight_language = "text"


def add_menu(app: Any, docname: str, source: list[str]) -> None:
    """Put the menu behind the index page: one part per section, of the pages that are there."""
    if docname != "index":
        return
    for title, pages in CONTENTS.items():
        found = [path for page in pages for path in sorted(HERE.glob(f"{page}.md"))]
        there = [path.relative_to(HERE).with_suffix("").as_posix() for path in found]
        source[0] += "\n".join(["", "", "```{toctree}", ":hidden:", f":caption: {title}", "", *there, "```", ""])


def visit_inline(writer: Any, node: nodes.math) -> None:
    """A formula within a line."""
    writer.body.append(latex2mathml.tex2mathml(node.astext()))
    raise nodes.SkipNode


def visit_block(writer: Any, node: nodes.math_block) -> None:
    """A formula on lines of its own."""
    writer.body.append(f'<div class="math">{latex2mathml.tex2mathml(node.astext(), as_block=True)}</div>\n')
    raise nodes.SkipNode


def setup(app: Any) -> dict[str, bool]:
    """Tell Sphinx about the menu and the formulas."""
    app.connect("source-read", add_menu)
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
