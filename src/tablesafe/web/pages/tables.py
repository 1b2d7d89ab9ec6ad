"""Small tables of texts and numbers on pages."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from nicegui import events, ui
from nicegui.element import Element

from tablesafe.core.errors import TablesafeError
from tablesafe.report.cells import KINDS
from tablesafe.web.pages.screen import Screen, in_words, show_error
from tablesafe.web.speech import aria, numeral, say, spoken_here
from tablesafe.web.tasks import cells, windows
from tablesafe.web.tasks.cells import MOST_CHOSEN
from tablesafe.web.tasks.windows import MOST_COPIED, MOST_LINES, plain

MEASURES = (
    "percent of cells", "percent of value", "average percent changed", "percent change", "open cells", "verdict",
    "finest level: cells lost", "finest level: value lost", "all levels: cells lost", "all levels: value lost",
    "withheld, not sensitive", "average change in percent", "attacks", "from", "to", "solutions", "disclosed",
    "exactly", "guessed", "median error", "variation", "note", "cell", "true value", "disclosed by",
    "nearest guess", "nearest attack", "distance",
)  # fmt: skip
"""What the columns of frames are called, where pages show them."""
LEVEL = " level"
"""How columns of levels end, after the name of the dimension."""


def table(heads: list[str], rows: list[list[str]], numbers: Any = ()) -> None:
    """A small table."""
    right, heads = set(numbers), [_head(head) for head in heads]
    box = ui.element("div").classes("ts-scroll").props("tabindex=0")
    with box, ui.element("table").classes("ts-list ts-cards flow"):
        with ui.element("thead"), ui.element("tr"):
            for i, head in enumerate(heads):
                with ui.element("th").props("scope=col").classes("num" if i in right else ""):
                    ui.label(head)
        with ui.element("tbody"):
            for row in rows:
                with ui.element("tr"):
                    for i, text in enumerate(row):
                        cell = ui.element("td").classes("num" if i in right else "")
                        cell.props["data-head"] = heads[i]
                        with cell:
                            ui.label(text)


def _head(name: str) -> str:
    if name.endswith(LEVEL):
        return say("level of {name}", name=name.removesuffix(LEVEL))
    return say(name)


def shown(value: Any) -> str:
    """A value as people read it."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return say("yes") if value else say("no")
    if isinstance(value, float):
        return numeral(value, ",.0f" if abs(value) >= 1000 else ".4g")
    return str(value)


# A table of any size in the browser: the element asks for the lines in view, and only those travel.


Ask = Callable[[Mapping[str, Any], list[int]], Awaitable[dict[str, Any] | None]]
"""What answers a view and a span with a window."""
Derive = Callable[[Mapping[str, Any], int], Awaitable[str]]
"""What tells of a cell of a view what takes some time to find."""
Pick = Callable[[list[int]], object]
"""What happens when cells are chosen: with one, or with several, by their numbers."""


def kind_css() -> str:
    """The colours of cells, for the page's style sheet."""
    rules = [f".ts-cell.{kind.css}, .ts-key .{kind.css} {{ background: {kind.colour}; }}" for kind in KINDS]
    signs = [f".{kind.css} .ts-sign {{ color: {kind.ink}; }}" for kind in KINDS]
    return "\n".join([*rules, *signs, ".ts-cell.k-open { color: #fff; font-weight: 700; }"])


class Grid(Element, component="grid.js"):
    """A table that folds and scrolls."""

    def __init__(
        self, view: Mapping[str, Any], ask: Ask, derive: Derive | None = None, *, label: str, group: str = "",
        narrow: bool = False, wide: bool = False, pick: Pick | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        words = {
            "fold": say("Fold {line}"), "unfold": say("Unfold {line}"),
            "copied": say("Copied, with tabs for a spreadsheet."),
        }  # fmt: skip
        self.view: dict[str, Any] = dict(view)
        self.peers: list[Grid] = []
        """Grids that fold together with this one."""
        self._ask, self._derive, self._pick, self._version = ask, derive, pick, 0
        self._props.update(
            {
                "label": label, "group": group, "version": 0, "words": words,
                "between": spoken_here().number(","),
                **({"side": 170} if narrow else {"side": 330} if wide else {}),
            }
        )  # fmt: skip
        self.on("window", self._wanted)
        self.on("fold", self._folded)
        self.on("derive", self._wondered)
        self.on("sort", self._sorted)
        self.on("copy", self._copied)
        if pick is not None:
            self.on("pick", lambda event: pick([int(cell) for cell in event.args]))
            self.on("choose", self._chosen)

    def show(self, **changes: Any) -> None:
        """Show the table otherwise: other dimensions, filters, values."""
        if {"rows", "columns"} & changes.keys():
            self.view["turned"] = {}
        self.view.update(changes)
        self._version += 1
        self._props["version"] = self._version
        self.update()

    def go(self, row: int, column: int) -> None:
        """Move to a cell by its line down and across."""
        self.run_method("go", row, column)

    async def _span(self, span: Sequence[int], most: int) -> tuple[list[list[str]], list[list[Any]]]:
        """The names and the cells of all lines of a span, drawn or not; of more than `most` cells, the first lines.

        The first of the names is the line of the headings.
        """
        first, last, left, right = (int(number) for number in span)
        last = min(last, first + max(most // max(right - left, 1), 1))
        names: list[list[str]] = []
        lines: list[list[Any]] = []
        for top in range(first, last, MOST_LINES):
            end = min(top + MOST_LINES, last)
            heads: list[str] = []
            rows: list[list[Any]] = [[] for _ in range(end - top)]
            part: dict[str, Any] = {"corner": "", "rows": []}
            for at in range(left, right, MOST_LINES):
                answer = await self._ask(dict(self.view), [top, end, at, min(at + MOST_LINES, right)])
                if answer is None:
                    return [], []
                part = answer
                here = slice(at - part["left"], min(at + MOST_LINES, right) - part["left"])
                heads += [head["text"].removesuffix(head.get("arrow", "")) for head in part["heads"][here]]
                for row, drawn in zip(rows, part["rows"], strict=False):
                    row += drawn["cells"][here]
            names = names or [[part["corner"], *heads]]
            names += [[drawn["text"]] for drawn in part["rows"]]
            lines += rows[: len(part["rows"])]
        return names, lines

    async def _copied(self, event: events.GenericEventArguments) -> None:
        """Copy what is chosen where not all of it is drawn."""
        span = list(event.args)
        names, lines = await self._span(span, MOST_COPIED)
        if not lines or self.is_deleted:
            return
        heads, *named = names
        told = [
            [*name, *(plain(cell[0], spoken_here()) for cell in line)] for name, line in zip(named, lines, strict=True)
        ]
        ui.clipboard.write("\n".join("\t".join(line) for line in [heads, *told]))
        self.run_method("say", copied(len(lines), int(span[1]) - int(span[0])))

    async def _chosen(self, event: events.GenericEventArguments) -> None:
        """Open all that is chosen where not all of it is drawn."""
        _, lines = await self._span(list(event.args), MOST_CHOSEN)
        cells = [int(cell[-1]) for line in lines for cell in line if cell[-1] >= 0]
        if cells and self._pick is not None and not self.is_deleted:
            opened = self._pick(list(dict.fromkeys(cells)))
            if isinstance(opened, Awaitable):
                await opened

    def _sorted(self, event: events.GenericEventArguments) -> None:
        """Sort by a column; again, the other way round."""
        key, asked = str(event.args), dict(self.view.get("list") or {})
        asked["descending"] = (asked.get("sort") or "") == key and not asked.get("descending")
        self.show(list={**asked, "sort": key})

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


def copied(lines: int, of: int) -> str:
    """What is said when lines of a table were copied: all that there are, or the first."""
    if lines >= of:
        return say("Copied, with tabs for a spreadsheet.")
    return say("The first {lines:,} of {of:,} lines are copied, with tabs for a spreadsheet.", lines=lines, of=of)


# The table with what can be chosen about it: dimensions down and across, filters, folding, true values.


AXES = {"rows": "Down", "columns": "Across"}
KEYS = "arrow keys move, Enter opens a cell, + and - fold, Shift chooses several, Ctrl-C copies"


def ask(screen: Screen) -> Any:
    """What answers the windows of a grid."""

    async def answer(view: Mapping[str, Any], span: list[int]) -> dict[str, Any] | None:
        try:
            found: dict[str, Any] = await screen.compute(windows.window, view, span)
        except TablesafeError as error:
            screen.say(in_words(error)[0])
            return None
        return found

    return answer


def derive(screen: Screen) -> Any:
    """What tells of a cell what an attacker derives of it."""

    async def answer(view: Mapping[str, Any], cell: int) -> str:
        try:
            return str(
                await screen.compute(windows.derived, str(view["of"].get("run", "")), cell, bool(view.get("truth")))
            )
        except TablesafeError as error:
            screen.say(in_words(error)[0])
            return ""

    return answer


class CellList:
    """All cells that a search finds, in a grid: by code or name, by status, sorted by any column."""

    def __init__(self, screen: Screen, of: Mapping[str, str], kinds: Mapping[str, int], pick: Pick) -> None:
        self.screen, self.of = screen, dict(of)
        self.grid: Grid
        first = "sensitive" if kinds.get("sensitive") else ""
        view: dict[str, Any] = {"of": self.of, "list": {"text": "", "kind": first}}
        words = {"": say("every status"), "withheld": say("withheld")}
        words |= {word: f"{say(word)} ({numeral(many)})" for word, many in kinds.items()}
        with ui.element("div").classes("ts-row pb-2"):
            find = ui.input(say("Find by code or name"), on_change=lambda e: self._ask(text=str(e.value or "")))
            find.props("outlined dense clearable debounce=300").classes("min-w-64")
            ui.select(
                words,
                value=view["list"]["kind"],
                label=say("Status"),
                on_change=lambda e: self._ask(kind=str(e.value or "")),
            ).props("outlined dense options-dense").classes("min-w-52")
            ui.checkbox(say("Show true values"), on_change=lambda e: self.grid.show(truth=bool(e.value)))
            self.number = ui.label().classes("ts-note").props("role=status")
            self.all = ui.button(say("Choose all that are found"), on_click=self._choose).props(
                "flat dense color=primary"
            )
        self.pick = pick
        self.grid = Grid(
            view, self._answer, label=say("Cells: {keys}; a head sorts", keys=say(KEYS)), wide=True, pick=pick
        )

    def _ask(self, **changes: str) -> None:
        self.grid.show(list={**self.grid.view["list"], **changes})

    async def _answer(self, view: Mapping[str, Any], span: list[int]) -> dict[str, Any] | None:
        try:
            part: dict[str, Any] = await self.screen.compute(cells.found, view, span)
        except TablesafeError as error:
            self.screen.say(in_words(error)[0])
            return None
        part["sorts"] = say("Sort by: {column}", column=part["corner"])
        for head in part["heads"]:
            head["text"] = say(cells.COLUMNS[head["key"]]) + head["arrow"]
            head["title"] = say("Sort by: {column}", column=say(cells.COLUMNS[head["key"]]))
        for row in part["rows"]:
            row["cells"] = [(say(text), *rest) if rest[0] else (text, *rest) for text, *rest in row["cells"]]
        if not self.number.is_deleted:
            self.number.set_text(
                say("1 cell") if part["count"][0] == 1 else say("{number:,} cells", number=part["count"][0])
            )
        return part

    async def _choose(self) -> None:
        self.pick(await self.screen.compute(cells.numbers, self.grid.view))


class TableView:
    """A grid, or several that move together, under one set of choices."""

    def __init__(self, screen: Screen, holder: ui.element, pick: Pick | None = None) -> None:
        self.screen, self.holder, self.pick = screen, holder, pick
        self.grids: list[Grid] = []

    async def show(self, views: Mapping[str, Mapping[str, Any]], *, truths: bool = True) -> None:
        """Show one table, or several side by side; the names stand above them."""
        first = next(iter(views.values()))
        try:
            about = await self.screen.compute(windows.about, first)
        except TablesafeError as error:
            if not self.holder.is_deleted:
                with self.holder.clear():
                    show_error(error, self.screen)
            return
        kinds = {kind[0]: kind for kind in about["kinds"]}
        for view in list(views.values())[1:]:
            kinds |= {kind[0]: kind for kind in (await self.screen.compute(windows.about, view))["kinds"]}
        if len(views) > 1:  # their numbers differ
            kinds = {word: (*kind[:4], None) for word, kind in kinds.items()}
        if self.holder.is_deleted:
            return
        with self.holder.clear():
            with ui.element("div").classes("ts-row pb-2"):
                self._choices(about)
                if truths:
                    ui.checkbox(say("Show true values"), on_change=lambda e: self.change(truth=bool(e.value)))
                self._only(list(kinds.values()))
                ui.button(say("Unfold all"), on_click=lambda: self.change(opened="all", turned={})).props(
                    "flat dense color=primary"
                )
                ui.button(say("Fold all"), on_click=lambda: self.change(opened="none", turned={})).props(
                    "flat dense color=primary"
                )
                ui.button(say("Copy the view"), icon="content_copy", on_click=self._copy).props(
                    "flat dense color=primary"
                )
            _legend(list(kinds.values()))
            with ui.element("div").classes("ts-beside" if len(views) > 1 else "w-full"):
                for name, view in views.items():
                    with ui.element("div").classes("min-w-0"):
                        if len(views) > 1:
                            ui.html(name, tag="h3")
                        label = say("Table of {name}: {keys}", name=name, keys=say(KEYS))
                        more = derive(self.screen) if "run" in view["of"] else None
                        self.grids.append(
                            Grid(
                                view, ask(self.screen), more, label=label, group="tables", narrow=len(views) > 1,
                                pick=self.pick,
                            )
                        )  # fmt: skip
            ui.label(say("Keys: {keys}.", keys=say(KEYS))).classes("ts-note pt-1")
            for grid in self.grids:
                grid.peers = [other for other in self.grids if other is not grid]

    def _only(self, kinds: list[tuple[str, str, str, str, int | None]]) -> None:
        """Show only the lines that hold a cell of some kind."""
        words = {"": say("all lines"), "withheld": say("lines with withheld cells")}
        words |= {
            word: say("lines with cells that are {status}", status=say(word))
            for word, *_ in kinds
            if word != "published"
        }
        ui.select(words, value="", label=say("Show"), on_change=lambda e: self.change(only=str(e.value or ""))).props(
            "outlined dense options-dense"
        ).classes("min-w-52")

    async def _copy(self) -> None:
        """The whole of the first table as it is shown, for a spreadsheet."""
        text, lines, of = await self.screen.compute(windows.as_text, self.grids[0].view)
        ui.clipboard.write(str(text))
        self.screen.say(copied(lines, of))

    async def go(self, cell: int) -> None:
        """Show where a cell stands."""
        grid = self.grids[0]
        found = await self.screen.compute(windows.place, grid.view, cell)
        if grid.is_deleted or found["at"] is None:
            return
        self.change(**found["view"])
        self._filters(await self.screen.compute(windows.about, grid.view))
        grid.go(*found["at"])

    def _choices(self, about: Mapping[str, Any]) -> None:
        names = about["dimensions"]
        if len(names) > 1:
            for axis, label in AXES.items():
                ui.select(
                    names, value=about[axis], label=say(label), on_change=lambda e, a=axis: self._axis(a, str(e.value))
                ).props("outlined dense options-dense").classes("min-w-36")
        self.filters = ui.element("div").classes("ts-row")
        self._filters(about)

    def _filters(self, about: Mapping[str, Any]) -> None:
        with self.filters.clear():
            for name, code in about["filters"].items():
                options = dict(about["choices"][name])
                ui.select(
                    options, value=code, label=name, with_input=len(options) > 20,
                    on_change=lambda e, n=name: self._hold(n, e),
                ).props("outlined dense options-dense").classes("min-w-44")  # fmt: skip

    async def _axis(self, axis: str, name: str) -> None:
        other = "columns" if axis == "rows" else "rows"
        view = self.grids[0].view
        about = await self.screen.compute(windows.about, view)
        swapped = {other: about[axis]} if about[other] == name else {other: about[other]}
        self.change(**{axis: name, **swapped})
        self._filters(await self.screen.compute(windows.about, self.grids[0].view))

    def _hold(self, name: str, event: events.ValueChangeEventArguments[Any]) -> None:
        self.change(filters={**(self.grids[0].view.get("filters") or {}), name: event.value})

    def change(self, **changes: Any) -> None:
        """Show every table otherwise."""
        for grid in self.grids:
            grid.show(**changes)


def _legend(kinds: list[tuple[str, str, str, str, int | None]]) -> None:
    with ui.element("div").classes("pb-2").props("role=list " + aria("What the colours mean")):
        for word, sign, css, meaning, many in kinds:
            with ui.element("div").classes("ts-key").props("role=listitem") as key:
                key.props["title"] = say(meaning)
                ui.html(sign, tag="span").classes(css)
                ui.label(say(word) if many is None else f"{say(word)} ({numeral(many)})")
