"""Things that are chosen by name, rules and methods: all of them in a line each, or one with its options."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, get_args

from cyclopts import App, Parameter

from tablesafe.cli.exits import Exit
from tablesafe.cli.show import grid, print_json, say, show

Options = Callable[[type[Any]], list[dict[str, str]]]


def list_kinds(noun: str, kinds: Mapping[str, type[Any]], name: str | None, options: Options, *, json: bool) -> None:
    """Show every kind, or one with its options; `noun` is what a kind is called."""
    from tablesafe.core.errors import InvalidOption
    from tablesafe.files.read import did_you_mean

    if name is not None and name not in kinds:
        hint = did_you_mean(name, list(kinds)) or f"there are {', '.join(kinds)}."
        raise InvalidOption(f"There is no {noun} {name!r}.", hint=hint)
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


# `tablesafe rules`: which rules there are, how they compare, and what they look like.


rules = App(
    name="rules",
    help="Explore the rules: their options, conversions between them, plots.",
    sort_key=10,
    default_parameter=Parameter(negative=()),
)
Json = Annotated[bool, Parameter(help="print one JSON document and nothing else")]


@rules.default
def list_rules(rule: str | None = None, /, *, json: Json = False) -> int:
    """List the rules, or the options of one.

    Parameters
    ----------
    rule
        name of a rule; without it all are listed
    """
    from tablesafe.rules import RULES

    list_kinds("rule", RULES, rule, options_of, json=json)
    return Exit.OK


@rules.command
def convert(
    rule: str, /, *, q: Annotated[float, Parameter(help="q of the pq rules")] = 100.0, json: Json = False
) -> int:
    """Say what a rule is in terms of the others: the nearest that flags more, and the nearest that flags less.

    Parameters
    ----------
    rule
        rule with its options, such as "p_percent p=10" or "dominance n=2 k=85"
    """
    from tablesafe.core.errors import InvalidOption
    from tablesafe.job import parse_rule
    from tablesafe.rules.explorer import Family, describe, is_subadditive
    from tablesafe.rules.explorer import convert as converted

    given = parse_rule(rule)
    rows: list[dict[str, str | None]] = []
    for family in get_args(Family):
        row: dict[str, str | None] = {"family": family}
        for direction in ("more", "less"):
            try:
                row[direction] = describe(converted(given, family, conservatism=direction, q=q))
            except InvalidOption:
                row[direction] = None
        rows.append(row)
    if all(row["more"] is None and row["less"] is None for row in rows):
        converted(given, "p_percent", conservatism="more")  # says why it cannot be compared
    subadditive = is_subadditive(given)
    if json:
        print_json({"rule": describe(given), "subadditive": subadditive, "conversions": rows})
    else:
        more = "Unions of safe cells stay safe" if subadditive else "Unions of safe cells may be sensitive"
        say(f"{describe(given)}. {more} ({'' if subadditive else 'not '}subadditive).\n")
        columns = ["family", "mildest that flags at least as much", "strictest that flags no more"]
        show(grid(columns, [(row["family"], row["more"] or "none", row["less"] or "none") for row in rows]))
    return Exit.OK


@rules.command
def plot(
    *rule: Annotated[str, Parameter(help='rules with their options, such as "p_percent p=10"')],
    output: Annotated[Path, Parameter(alias="-o", help="picture to write: .svg, .png or .pdf")] = Path("rules.svg"),
) -> int:
    """Draw which cells rules call sensitive, over the shares of the two largest contributors."""
    from tablesafe.job import parse_rule
    from tablesafe.report.plots import sensitivity_regions

    chosen = [parse_rule(text) for text in rule or ("p_percent p=10", "dominance n=2 k=85")]
    sensitivity_regions(chosen).save(output)
    say(f"Written to {output}")
    return Exit.OK


def options_of(kind: type[Any]) -> list[dict[str, str]]:
    """The options of a rule or method: name, default and help."""
    from tablesafe.job.decode import default_of, is_required, options
    from tablesafe.job.toml import toml_value

    found = []
    for name, spec in options(kind).items():
        value = None if is_required(spec) else default_of(spec)
        default = "required" if is_required(spec) else "" if value is None else toml_value(value)
        found.append({"name": name, "default": default, "help": str(spec.metadata.get("help", ""))})
    return found


# `tablesafe methods`: which methods there are, and the options of each.


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
    from tablesafe.cli.listing import options_of
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
