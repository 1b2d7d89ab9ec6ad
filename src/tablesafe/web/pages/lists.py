"""Small tables of texts and numbers on pages."""

from __future__ import annotations

from typing import Any

from nicegui import ui


def table(heads: list[str], rows: list[list[str]], numbers: Any = (), *, tall: bool = False) -> None:
    """A small table."""
    right = set(numbers)
    box = ui.element("div").classes("ts-scroll" + (" tall" if tall else "")).props("tabindex=0")
    with box, ui.element("table").classes("ts-list"):
        with ui.element("thead"), ui.element("tr"):
            for i, head in enumerate(heads):
                with ui.element("th").props("scope=col").classes("num" if i in right else ""):
                    ui.label(head)
        with ui.element("tbody"):
            for row in rows:
                with ui.element("tr"):
                    for i, text in enumerate(row):
                        with ui.element("td").classes("num" if i in right else ""):
                            ui.label(text)


def shown(value: Any) -> str:
    """A value as people read it."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    return str(value)
