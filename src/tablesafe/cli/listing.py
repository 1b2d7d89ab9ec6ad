"""Things that are chosen by name, rules and methods: all of them in a line each, or one with its options."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from tablesafe.cli.show import grid, print_json, say, show

Options = Callable[[type[Any]], list[dict[str, str]]]


def list_kinds(noun: str, kinds: Mapping[str, type[Any]], name: str | None, options: Options, *, json: bool) -> None:
    """Show every kind, or one with its options; `noun` is what a kind is called."""
    from tablesafe.core.errors import InvalidOption
    from tablesafe.files.read import did_you_mean

    if name is not None and name not in kinds:
        hint = did_you_mean(name, list(kinds)) or f"there are {', '.join(kinds)}."
        raise InvalidOption(f"There is no {noun} {name!r}.\n\nHint: {hint}")
    if json:
        chosen = kinds if name is None else {name: kinds[name]}
        print_json({name: {"help": first_line(kind), "options": options(kind)} for name, kind in chosen.items()})
    elif name is None:
        show(grid([noun, "what it does"], [(name, first_line(kind)) for name, kind in kinds.items()]))
        say(f"\nOptions of one {noun}: tablesafe {noun}s NAME")
    else:
        say(inspect.cleandoc(kinds[name].__doc__ or ""))
        say()
        rows = [(option["name"], option["default"], option["help"]) for option in options(kinds[name])]
        show(grid(["option", "default", "meaning"], rows))


def first_line(kind: type[Any]) -> str:
    """What a kind does, in a sentence."""
    return (kind.__doc__ or "").strip().partition("\n")[0]
