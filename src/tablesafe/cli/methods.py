"""`tablesafe methods`: which methods there are, and the options of each."""

from __future__ import annotations

from typing import Annotated, Any

from cyclopts import Parameter

from tablesafe.cli.exits import Exit
from tablesafe.cli.listing import list_kinds


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
    from tablesafe.methods import METHODS

    list_kinds("method", METHODS, method, all_options, json=json)
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
