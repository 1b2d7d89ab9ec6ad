"""`tablesafe rules`: which rules there are, how they compare, and what they look like."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, get_args

from cyclopts import App, Parameter

from tablesafe.cli.exits import Exit
from tablesafe.cli.listing import list_kinds
from tablesafe.cli.show import grid, print_json, say, show

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
