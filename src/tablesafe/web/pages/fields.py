"""Fields of forms as elements of a page: an input with its label, its help beside it, what is wrong below it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal

from nicegui import events, ui

from tablesafe.core.language import ENGLISH
from tablesafe.web.forms import Entry, Form, basic, form_of, method_forms, offered, read, rule_forms, spoken, written
from tablesafe.web.speech import aria, say, spoken_here

if TYPE_CHECKING:
    from tablesafe.web.pages.screen import Screen

Path = tuple[str | int, ...]
THROTTLE_S = 0.1
"""How often a slider tells where it is while it is moved."""
WAIT_MS = 350
"""How long a person may pause while typing before what is written counts."""


def fields(screen: Screen, form: Form, path: Path, *, skip: Sequence[str] = ()) -> None:
    """Draw every field of a form whose values stand at `path` of the draft: a few at first, the rest in a fold."""
    entries = [entry for entry in form.entries if entry.name not in skip]
    first = {entry.name for entry in basic(form.name, entries, screen.get(path) or {})}
    for entry in entries:
        if entry.name in first:
            field(screen, entry, (*path, entry.name))
    rest = [entry for entry in entries if entry.name not in first]
    if rest:
        _more(
            say("More options ({rest})", rest=len(rest)),
            lambda: [field(screen, each, (*path, each.name)) for each in rest],
            screen,
        )
    screen.show_faults()


def _more(title: str, draw: Callable[[], object], screen: Screen) -> None:
    """Options that few need, drawn when somebody opens them."""

    def opened() -> None:
        if not inside.default_slot.children:
            with inside:
                draw()
            screen.show_faults()

    with ui.element("details").classes("ts-more") as box:
        with ui.element("summary"):
            ui.label(title).classes("inline")
        inside = ui.element("div").classes("w-full")
    box.on("toggle", opened)


def folded(title: str, draw: Callable[[], None]) -> None:
    """A part that is drawn when somebody opens it."""

    def opened() -> None:
        if not inside.default_slot.children:
            with inside:
                draw()

    with ui.element("details").classes("ts-card") as box:
        with ui.element("summary"):
            ui.html(title, tag="h2").classes("inline")
        inside = ui.element("div").classes("w-full")
    box.on("toggle", opened)


def field(screen: Screen, entry: Entry, path: Path) -> ui.element | None:
    """Draw one field; the input, if it is a single one."""
    match entry.widget:
        case "table":
            _table(screen, entry, path)
        case "rule":
            _titled(screen, entry, path, lambda: chosen(screen, "rule", path))
        case "rules":
            _titled(screen, entry, path, lambda: rule_list(screen, path))
        case _:
            with ui.element("div").classes("ts-field"):
                with ui.element("div"):
                    control = _control(screen, entry, path)
                help_line = _help(entry)
                screen.fault_line(path)
            return control.props(f'aria-describedby="{help_line.html_id}"')
    return None


def plain(text: str) -> str:
    """The text of a docstring without its marks for code."""
    return text.replace("`", "")


def _help(entry: Entry) -> ui.element:
    words = say(entry.help) + (f" ({say('for example {example}', example=entry.example)})" if entry.example else "")
    with ui.element("div").classes("ts-help") as line:
        plain_name = spoken(entry.name)
        if plain_name != entry.name and spoken_here() is ENGLISH:  # elsewhere the help alone says what a key is
            ui.label(f"{plain_name}. ").classes("inline font-medium")
        ui.label(words[:1].upper() + words[1:] + ".").classes("inline")
    return line


def _control(screen: Screen, entry: Entry, path: Path) -> ui.element:
    """The input of a field, by its kind."""
    value = screen.get(path)

    def keep(event: events.ValueChangeEventArguments[Any]) -> None:
        text = "" if event.value is None else str(event.value)
        screen.put(path, read(entry, text))

    label = entry.name + (" *" if entry.required else "")
    shown = "" if entry.default is None else written(entry, entry.default)
    match entry.widget:
        case "switch":
            now = bool(entry.default if value is None else value)
            return ui.checkbox(
                label, value=now, on_change=lambda e: screen.put(path, None if e.value == entry.default else e.value)
            )
        case "choice" | "perhaps":
            return _select(screen, entry, path, label, value)
        case "list":
            return _several(screen, entry, path, label, value)
        case "file":
            return _file(screen, path, label, value)
        case "files":
            return _files(screen, path, label, value)
        case "lines":
            area = ui.textarea(label, value=written(entry, value), on_change=keep)
            return area.props(f"outlined dense autogrow debounce={WAIT_MS}").classes("w-full")
        case "number" | "whole" if entry.slider is not None:
            return _slider(screen, entry, path, label, value)
        case _:
            if entry.name == "cost" and entry.widget in {"text", "toml", "amount"}:
                return _one_of(screen, entry, path, label, value)
            offers = screen.columns if entry.widget in {"text", "amount"} else []
            box = ui.input(label, value=written(entry, value), placeholder=shown, on_change=keep, autocomplete=offers)
            box.props(f"outlined dense debounce={WAIT_MS} stack-label").classes("w-full")
            return box.props("inputmode=decimal") if entry.widget in {"number", "whole"} else box


def _select(screen: Screen, entry: Entry, path: Path, label: str, value: Any) -> ui.element:
    unset = say("not said") if entry.default is None else None
    options = [*([unset] if unset else []), *entry.choices]
    now = written(entry, value) if value is not None else unset or str(entry.default)
    known = options if now in options else [*options, now]

    def keep(event: events.ValueChangeEventArguments[Any]) -> None:
        screen.put(path, None if event.value in (unset, entry.default) else read(entry, str(event.value)))

    return ui.select(known, value=now, label=label, on_change=keep).props("outlined dense").classes("w-full")


def _one_of(screen: Screen, entry: Entry, path: Path, label: str, value: Any) -> ui.element:
    """One of the words on offer, or a column, or something else that is written."""
    now = written(entry, value) if value is not None else str(entry.default or "")
    options = list(dict.fromkeys([*offered(entry), *screen.columns, *([now] if now else [])]))

    def keep(event: events.ValueChangeEventArguments[Any]) -> None:
        said = str(event.value or "")
        screen.put(path, None if said == str(entry.default or "") else read(entry, said))

    box = ui.select(
        options, value=now or None, label=label, with_input=True, new_value_mode="add-unique", on_change=keep
    )
    return box.props("outlined dense").classes("w-full")


def _several(screen: Screen, entry: Entry, path: Path, label: str, value: Any) -> ui.element:
    """Several texts, of those on offer or others."""
    now = [str(item) for item in (value if isinstance(value, list) else [] if value is None else [value])]
    options = list(dict.fromkeys([*screen.offers(entry.name), *now]))

    def keep(event: events.ValueChangeEventArguments[Any]) -> None:
        screen.put(path, list(event.value) or None)

    box = ui.select(
        options, value=now, label=label, multiple=True, with_input=True, new_value_mode="add-unique", on_change=keep
    )
    hint = f' hint="{say("Without: {default}", default=", ".join(entry.default))}"' if entry.default else ""
    return box.props("outlined dense use-chips" + hint).classes("w-full")


def _file(screen: Screen, path: Path, label: str, value: Any) -> ui.element:
    now = str(value) if value else None
    files = list(dict.fromkeys([*screen.files, *([now] if now else [])]))
    box = ui.select(
        files, value=now, label=label, clearable=True, on_change=lambda e: screen.put(path, e.value or None)
    )
    return box.props("outlined dense").classes("w-full")


def _files(screen: Screen, path: Path, label: str, value: Any) -> ui.element:
    """One file or several, in the order in which they are chosen."""
    now = [str(each) for each in (value if isinstance(value, list) else [value] if value else [])]

    def keep(event: events.ValueChangeEventArguments[Any]) -> None:
        chosen = list(event.value or ())
        screen.put(path, chosen[0] if len(chosen) == 1 else chosen or None)

    files = list(dict.fromkeys([*screen.files, *now]))
    box = ui.select(files, value=now, label=label, multiple=True, clearable=True, on_change=keep)
    return box.props("outlined dense use-chips").classes("w-full")


def _slider(screen: Screen, entry: Entry, path: Path, label: str, value: Any) -> ui.element:
    """A number that can be pushed along or written; both say the same."""
    assert entry.slider is not None
    low, high, step = entry.slider
    number = value if isinstance(value, int | float) else entry.default
    whole = entry.widget == "whole"

    def slid(event: events.GenericEventArguments) -> None:
        now = int(event.args) if whole else round(float(event.args), 6)
        if box.value != written(entry, now):
            box.set_value(written(entry, now))

    def keep(event: events.ValueChangeEventArguments[Any]) -> None:
        now = read(entry, str(event.value or ""))
        if isinstance(now, int | float) and low <= now <= high:
            bar.props["value"] = now
        screen.put(path, None if now == entry.default else now)

    with ui.element("div").classes("ts-slide"):
        bar = ui.element("input").props(f'type=range min={low} max={high} step={step} aria-label="{entry.name}"')
        bar.props["value"] = min(max(number or low, low), high)
        bar.on("input", slid, throttle=THROTTLE_S, js_handler="(e) => emit(Number(e.target.value))")
        box = ui.input(label, value=written(entry, number if value is None else value), on_change=keep)
        box.props(f"outlined dense debounce={WAIT_MS} stack-label inputmode=decimal")
    return box


def _titled(screen: Screen, entry: Entry, path: Path, draw: Callable[[], None]) -> None:
    ui.label(entry.name + (" *" if entry.required else "")).classes("font-medium")
    _help(entry)
    screen.fault_line(path)
    with ui.element("div").classes("ts-inside"):
        draw()


def _table(screen: Screen, entry: Entry, path: Path) -> None:
    """A table inside: switched on or left out."""
    assert entry.inside is not None
    form = form_of(entry.inside, entry.name)

    def switch(event: events.ValueChangeEventArguments[Any]) -> None:
        screen.put(path, {} if event.value else None)
        inside.refresh()

    @ui.refreshable
    def inside() -> None:
        if screen.get(path) is not None:
            with ui.element("div").classes("ts-inside").props(f'role=group aria-label="{entry.name}"'):
                fields(screen, form, path)

    with ui.element("div").classes("ts-field"):
        box = ui.checkbox(entry.name, value=screen.get(path) is not None, on_change=switch)
        help_line = _help(entry)
        box.props(f'aria-describedby="{help_line.html_id}"')
        screen.fault_line(path)
    inside()


def chosen(screen: Screen, kind: Literal["rule", "method"], path: Path) -> None:
    """A rule or method by its name, and the fields of the one chosen."""
    key, forms = ("rule", rule_forms()) if kind == "rule" else ("name", method_forms())

    def choose(event: events.ValueChangeEventArguments[Any]) -> None:
        screen.put(path, {key: event.value})
        inside.refresh()

    @ui.refreshable
    def inside() -> None:
        name = screen.get((*path, key))
        if isinstance(name, str) and name in forms:
            form = forms[name]
            ui.label(say(plain(form.summary))).classes("ts-note")
            if form.about:
                with ui.element("details").classes("ts-note"):
                    with ui.element("summary"):
                        ui.label(say("More about it")).classes("inline")
                    for paragraph in form.about:
                        ui.label(plain(say(paragraph))).classes("py-1")
            fields(screen, form, path)

    now = screen.get((*path, key))
    with ui.element("div").classes("ts-field"):
        with ui.element("div"):
            select = ui.select(list(forms), value=now if now in list(forms) else None, label=kind, on_change=choose)
            select.props("outlined dense").classes("w-full")
        ui.label()
        screen.fault_line((*path, key))
    inside()


def rule_list(screen: Screen, path: Path) -> None:
    """Rules one after another, each of which can be removed; and a button for one more."""

    def add() -> None:
        screen.put(path, [*(screen.get(path) or []), {"rule": "threshold"}])
        lines.refresh()

    def remove(at: int) -> None:
        rest = [rule for number, rule in enumerate(screen.get(path) or []) if number != at]
        screen.put(path, rest or None)
        lines.refresh()

    @ui.refreshable
    def lines() -> None:
        for at, _ in enumerate(screen.get(path) or []):
            with ui.element("section").classes("ts-card").props(aria("Rule {number}", number=at + 1)):
                with ui.element("div").classes("ts-row justify-between"):
                    ui.html(say("Rule {number}", number=at + 1), tag="h2")
                    ui.button(say("Remove"), on_click=lambda at=at: remove(at)).props(
                        "flat dense color=primary " + aria("Remove rule {number}", number=at + 1)
                    )
                chosen(screen, "rule", (*path, at))
                screen.fault_line((*path, at))
        ui.button(say("Add a rule"), on_click=add, icon="add").props("outline color=primary")

    lines()
