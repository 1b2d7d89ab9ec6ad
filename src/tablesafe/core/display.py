"""How objects show themselves in a notebook.

Notebooks ask an object for `_repr_html_`. What it looks like is the business of `report.notebook`, a later layer, which
is looked up by its name when a notebook asks, so that no earlier layer depends on it and nothing is loaded before.
"""

from __future__ import annotations

from importlib import import_module
from typing import TypeVar

Shown = TypeVar("Shown", bound=type)


def shown(kind: Shown) -> Shown:
    """Let objects of a class show themselves in notebooks, as `report.notebook` has them look."""
    kind._repr_html_ = _html  # type: ignore[attr-defined]
    return kind


def _html(thing: object) -> str:
    """The object as HTML, of bounded size; its first line says whether it is confidential."""
    found: str = import_module("tablesafe.report.notebook").html(thing)
    return found
