"""The frame around every page: the steps on the left, what happens above, the job file at hand, the content."""

from __future__ import annotations

from collections.abc import Callable
from html import escape

from nicegui import ui

from tablesafe.web.framework import asset
from tablesafe.web.pages.addresses import STEPS
from tablesafe.web.pages.screen import CHANGED_ELSEWHERE, Screen, named
from tablesafe.web.pages.tables import kind_css
from tablesafe.web.sessions import Session, current_session
from tablesafe.web.speech import CHOSEN, NAMES, aria, say, spoken_here
from tablesafe.web.steps import note_look, state_of

SIGNS = {
    "done": ("✓", "done"), "fault": ("!", "has errors"), "ask": ("?", "has a question"),
    "old": ("↻", "is of an earlier job"),
}  # fmt: skip
"""How a page is marked in the list, and what that says to those who cannot see it."""
SHORTCUTS = {
    "?": "show or hide this list",
    "Tab, Shift Tab": "go to the next field, button or table, or to the one before",
    "Arrow keys, Page Up, Page Down": "move in a table",
    "Home, End": "go to the first or last column; with Ctrl to the first or last cell",
    "Enter, Space": "open the cell: all that is known of it, and decisions on it",
    "Shift and arrow keys": "choose several cells, to decide on all of them",
    "Ctrl C": "copy the cells that are chosen, with tabs for a spreadsheet",
    "+, -": "unfold or fold the line",
    "Escape": "put away the panel at the side",
}
"""What keys do."""
LOST = {
    "gone": "The app does not answer any more: it was ended, or the machine sleeps.",
    "anew": (
        "The app was started anew, or your session has ended: what this page shows is gone there. Open the address "
        "that 'tablesafe serve' printed last."
    ),
    "ended": "The connection has ended",
    "again": "Try again",
}
"""What `connection.js` says when nobody answers, by the names of tags in the head of the page."""
STYLES = asset("plain.css"), asset("app.css")
NEWS_S = 1.0
"""How often a page looks whether another window has changed its job."""


def build(session: Session) -> None:
    """Build the app for one open page of a session."""
    ui.page_title("tablesafe")
    ui.query("main.q-page").props("role=none")  # the frame around all of it is not what the page is about
    for style in STYLES:
        ui.add_head_html(f'<link rel="stylesheet" href="{style}">')
    ui.add_head_html(f"<style>{kind_css()}</style>")
    for name, words in LOST.items():
        ui.add_head_html(f'<meta name="ts-{name}" content="{escape(say(words))}">')
    ui.colors(primary="#0b5a8a", negative="#a33b00", positive="#00694d")
    screen = Screen(session.workspace, session.runs)
    with ui.element("div").classes("ts-app"):
        panel = _header(screen)
        steps = _Steps(screen)
        main = ui.element("main").classes("ts-main")
        with main:
            _news(screen)
            pages = ui.sub_pages({path: _builder(screen, path, steps) for path in STEPS})
            pages.classes("w-full")
    ui.skip_link(say("Skip to the content"), target=main)
    screen.after_change += [steps.refresh, panel.refresh]
    screen.check()


def _builder(screen: Screen, path: str, steps: _Steps) -> Callable[[], None]:
    name, draw = STEPS[path]

    def build_step() -> None:
        came_from, screen.step = screen.step, name
        if came_from and came_from != name:
            note_look(screen.workspace, came_from)
        screen.start_page()
        ui.page_title(f"{say(name)} – tablesafe")
        draw(screen)
        screen.check()
        steps.refresh(path)
        if came_from:  # whoever came by keyboard goes on reading here
            ui.run_javascript("document.querySelector('main h1')?.focus()")

    return build_step


def _news(screen: Screen) -> None:
    """Say so when the same job is edited in another window, and offer to show it as it is now."""
    with ui.element("div").classes("ts-faults ts-row").props("role=status") as box:
        ui.label(say(CHANGED_ELSEWHERE))
        ui.button(say("Show it as it is now"), on_click=ui.navigate.reload).props("outline dense color=primary")
    box.set_visibility(False)
    ui.timer(NEWS_S, lambda: box.set_visibility(screen.outdated))


def _header(screen: Screen) -> ui.refreshable:  # type: ignore[type-arg]
    with ui.element("header").classes("ts-header"):
        ui.link("tablesafe", "/").classes("ts-brand")
        title = ui.label().classes("ts-title")
        screen.status_line()
        keys = ui.button(say("Keys"), icon="keyboard").props(
            "flat dense color=white aria-expanded=false aria-keyshortcuts=?"
        )
        _languages()
        button = ui.button(say("Job file"), icon="description").props("flat dense color=white aria-expanded=false")
    _keys(_aside("Keys", keys.classes("ts-keys")), keys)
    panel_box = _aside("Job file", button)

    @ui.refreshable
    def panel() -> None:
        title.set_text(str(screen.draft.get("title") or ""))
        text = screen.workspace.job_text() if screen.draft else ""
        with ui.element("div").classes("ts-row justify-between w-full"):
            ui.label(say("Job file")).props("role=heading aria-level=2").classes("font-medium text-lg")
            ui.button(say("Close"), on_click=lambda: _turn(panel_box, button)).props("flat dense color=primary")
        ui.label(
            say(
                "What you do in the app is this file. 'tablesafe run job.toml' beside the same data makes the same "
                "release."
            )
        ).classes("ts-note")
        ui.html(tag="pre", sanitize=False).classes("ts-code").props(
            "tabindex=0 " + aria("Text of the job file")
        ).set_content(_escaped(text or say("# Nothing yet: choose data first.") + "\n"))
        with ui.element("div").classes("ts-row"):
            ui.button(say("Copy"), icon="content_copy", on_click=lambda: _copy(screen, text)).props(
                "outline color=primary"
            )
            ui.button(say("Download job file"), icon="download", on_click=lambda: _download(text)).props(
                "color=primary"
            )

    with panel_box:
        panel()
    return panel


def _languages() -> None:
    """Choose in which language the app speaks; names of options, and errors, are those of the job file."""

    def choose(code: str) -> None:
        current_session().state[CHOSEN] = code
        ui.navigate.reload()

    now = spoken_here().code
    chosen = ui.select(NAMES, value=now, on_change=lambda e: choose(str(e.value)))
    named(chosen.props("dense dark borderless options-dense").classes("ts-language"), say("Language"))
    ui.run_javascript(f"document.documentElement.lang = {now!r}")


def _aside(name: str, button: ui.button) -> ui.element:
    """A panel at the side that a button shows and puts away, as Escape does."""
    box = ui.element("aside").classes("ts-job").props(aria(name))
    button.on_click(lambda: _turn(box, button))
    for each in (button, box):
        each.on("keydown.escape", lambda: _turn(box, button) if box.visible else None)
    box.set_visibility(False)
    return box


def _keys(box: ui.element, button: ui.button) -> None:
    """What can be done by keyboard."""
    with box:
        with ui.element("div").classes("ts-row justify-between w-full"):
            ui.label(say("Keys")).props("role=heading aria-level=2").classes("font-medium text-lg")
            ui.button(say("Close"), on_click=lambda: _turn(box, button)).props("flat dense color=primary")
        with ui.element("dl").classes("ts-shortcuts"):
            for keys, meaning in SHORTCUTS.items():
                with ui.element("dt"):
                    ui.label(say(keys))
                with ui.element("dd"):
                    ui.label(say(meaning))


def _escaped(text: str) -> str:
    return escape(text, quote=False)


def _turn(box: ui.element, button: ui.button) -> None:
    box.set_visibility(not box.visible)
    button.props(f"aria-expanded={'true' if box.visible else 'false'}")


def _copy(screen: Screen, text: str) -> None:
    ui.clipboard.write(text)
    screen.say(say("The job file is copied."))


def _download(text: str) -> None:
    ui.download.content(text, "job.toml", "application/toml")


class _Steps:
    """The list of pages, with a mark for what is done and what has faults.

    It is drawn once, and its marks change in place: whoever presses a link while the job changes reaches the page.
    """

    def __init__(self, screen: Screen) -> None:
        self.screen = screen
        self.links: dict[str, ui.link] = {}
        self.signs: dict[str, ui.label] = {}
        self.words: dict[str, ui.label] = {}
        with ui.element("nav").classes("ts-steps").props(aria("Steps")), ui.element("ol"):
            for path, (name, _) in STEPS.items():
                with ui.element("li"), ui.link(target=path) as self.links[path]:
                    self.signs[path] = ui.label().classes("ts-number").props("aria-hidden=true")
                    ui.label(say(name))
                    self.words[path] = ui.label().classes("ts-hidden")
        self.refresh()

    def refresh(self, here: str | None = None) -> None:
        """Say where the user is, and where each page stands."""
        screen = self.screen
        screen.here = screen.here if here is None else here
        for number, (path, (name, _)) in enumerate(STEPS.items(), start=1):
            if path == screen.here:
                self.links[path].props("aria-current=page")
            else:
                self.links[path].props(remove="aria-current")
            state = state_of(name, screen.workspace, screen.runs, screen.faults)
            sign, words = SIGNS.get(state, (str(number), ""))
            self.signs[path].set_text(sign)
            self.signs[path].classes(replace=f"ts-number {state}")
            self.words[path].set_text(say(words) if words else "")
            self.words[path].set_visibility(bool(words))
