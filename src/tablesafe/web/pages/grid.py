"""A table of any size in the browser: the element asks for the lines in view, and only those travel."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from nicegui import events
from nicegui.element import Element

from tablesafe.report.cells import KINDS

Ask = Callable[[Mapping[str, Any], list[int]], Awaitable[dict[str, Any] | None]]
"""What answers a view and a span with a window."""
Derive = Callable[[Mapping[str, Any], int], Awaitable[str]]
"""What tells of a cell of a view what takes some time to find."""


def kind_css() -> str:
    """The colours of cells, for the page's style sheet."""
    rules = [f".ts-cell.{kind.css}, .ts-key .{kind.css} {{ background: {kind.colour}; }}" for kind in KINDS]
    signs = [f".{kind.css} .ts-sign {{ color: {kind.ink}; }}" for kind in KINDS]
    return "\n".join([*rules, *signs, ".ts-cell.k-open { color: #fff; font-weight: 700; }"])


class Grid(Element, component="grid.js"):
    """A table that folds and scrolls."""

    def __init__(
        self, view: Mapping[str, Any], ask: Ask, derive: Derive | None = None, *, label: str, group: str = "",
        narrow: bool = False,
    ) -> None:  # fmt: skip
        super().__init__()
        self.view: dict[str, Any] = dict(view)
        self.peers: list[Grid] = []
        """Grids that fold together with this one."""
        self._ask, self._derive, self._version = ask, derive, 0
        self._props.update(
            {"label": label, "group": group, "version": 0, **({"width": 80, "side": 170} if narrow else {})}
        )
        self.on("window", self._wanted)
        self.on("fold", self._folded)
        self.on("derive", self._wondered)

    def show(self, **changes: Any) -> None:
        """Show the table otherwise: other dimensions, filters, values."""
        if {"rows", "columns"} & changes.keys():
            self.view["turned"] = {}
        self.view.update(changes)
        self._version += 1
        self._props["version"] = self._version
        self.update()

    async def _wanted(self, event: events.GenericEventArguments) -> None:
        span = [int(number) for number in event.args]
        part = await self._ask(dict(self.view), span)
        if part is not None and not self.is_deleted:
            self.run_method("fill", part)

    async def _wondered(self, event: events.GenericEventArguments) -> None:
        cell = int(event.args)
        if self._derive is not None:
            text = await self._derive(dict(self.view), cell)
            if not self.is_deleted:
                self.run_method("known", cell, text)

    def _folded(self, event: events.GenericEventArguments) -> None:
        axis, line = str(event.args[0]), int(event.args[1])
        for grid in (self, *self.peers):
            turned = dict(grid.view.get("turned") or {})
            lines = set(turned.get(axis, ()))
            turned[axis] = sorted(lines ^ {line})
            grid.show(turned=turned)
