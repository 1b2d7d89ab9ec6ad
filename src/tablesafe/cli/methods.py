"""`tablesafe methods`: which methods there are, and the options of each."""

from __future__ import annotations

import inspect
from typing import Annotated, Any

from cyclopts import Parameter

from tablesafe.cli.exits import Exit
from tablesafe.cli.show import grid, print_json, say, show


def methods(
    method: str | None = None,
    /,
    *,
    json: Annotated[bool, Parameter(help="print one JSON document and nothing else")] = False,
) -> int:
    """List the methods, or the options of one, as a job file sets them.

    Parameters
    ----------
    method
        name of a method; without it all are listed
    """
    from tablesafe.errors import InvalidOption
    from tablesafe.files import did_you_mean
    from tablesafe.methods import METHODS

    if method is not None and method not in METHODS:
        hint = did_you_mean(method, list(METHODS)) or f"there are {', '.join(METHODS)}."
        raise InvalidOption(f"There is no method {method!r}.\n\nHint: {hint}")
    chosen = METHODS if method is None else {method: METHODS[method]}
    if json:
        print_json({name: {"help": _first_line(kind), "options": all_options(kind)} for name, kind in chosen.items()})
    elif method is None:
        show(grid(["method", "what it does"], [(name, _first_line(kind)) for name, kind in METHODS.items()]))
        say("\nOptions of one method: tablesafe methods NAME")
    else:
        say(inspect.cleandoc(chosen[method].__doc__ or ""))
        say()
        rows = [(o["name"], o["default"], o["help"]) for o in all_options(chosen[method])]
        show(grid(["option", "default", "meaning"], rows))
    return Exit.OK


def all_options(kind: type[Any], prefix: str = "") -> list[dict[str, str]]:
    """The options of a method with those of the tables inside it, which are named with a point: `keep.variance`."""
    from tablesafe.cli.rules import options_of
    from tablesafe.web.forms import form_of

    inside = {entry.name: entry.inside for entry in form_of(kind).entries}
    found: list[dict[str, str]] = []
    for option in options_of(kind):
        table = inside[option["name"]]
        default = "" if table is not None else option["default"]
        found.append({**option, "name": prefix + option["name"], "default": default})
        if table is not None:
            found += all_options(table, f"{prefix}{option['name']}.")
    return found


def _first_line(kind: type[Any]) -> str:
    return (kind.__doc__ or "").strip().partition("\n")[0]
