"""What pages name in passing exists: calls with their options, keys of the job file, rules, methods and modules.

Examples in blocks are run; this is about code within sentences and tables, which nothing runs.
"""

from __future__ import annotations

import inspect
import re
from importlib import import_module
from typing import Any, get_args, get_type_hints

import pytest
from documented import DOCS, MADE, pages

import tablesafe as ts
from tablesafe.methods import METHODS
from tablesafe.methods.suppress import Algorithm
from tablesafe.rules import RULES

SPAN = re.compile(r"`([^`\n]+)`")
CALL = re.compile(r"\bts((?:\.\w+)+)(?:\(([^()]*)\))?")
FENCED = re.compile(r"^```.*?^```", flags=re.DOTALL | re.MULTILINE)
WRITTEN = [page for page in pages() if not page.startswith("papers/") and page not in MADE]


def spans(page: str) -> list[str]:
    text = FENCED.sub("", (DOCS / page).read_text(encoding="utf-8"))
    return SPAN.findall(text)


def named(path: str) -> Any:
    """What `ts.path` is; a class's own attribute counts, a field of its instances too."""
    thing: Any = ts
    for name in path.strip(".").split("."):
        if name in getattr(thing, "__dataclass_fields__", {}):
            return None
        thing = getattr(thing, name)
    return thing


def wrong(call: re.Match[str]) -> str:
    """What is wrong with a call, or nothing."""
    if call[1].endswith("_"):  # `ts.Hierarchy.from_…`
        return ""
    try:
        thing = named(call[1])
    except AttributeError:
        return f"ts{call[1]} does not exist"
    if call[2] is None or thing is None or not callable(thing):
        return ""
    inner = re.sub(r"\[[^\]]*\]|\{[^}]*\}", "x", call[2])
    given = [part.strip() for part in inner.split(",") if part.strip() not in {"", "…", "..."}]
    parameters = dict(inspect.signature(thing).parameters)
    for each in [p for p in parameters.values() if p.kind is p.VAR_KEYWORD]:
        further = get_args(get_type_hints(thing).get(each.name))
        if not further:
            return ""
        parameters |= dict.fromkeys(get_type_hints(further[0]), each)  # Unpack[…] says which
    keywords = [part.partition("=")[0].strip() for part in given if re.match(r"\w+ ?=", part)]
    unknown = [name for name in keywords if name not in parameters]
    places = [p for p in parameters.values() if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    endless = any(p.kind is p.VAR_POSITIONAL for p in parameters.values())
    if unknown:
        return f"ts{call[1]} has no option {unknown[0]}"
    if len(given) - len(keywords) > len(places) and not endless:
        return f"ts{call[1]} takes {len(places)} arguments without a name, the page gives more: {call[0]}"
    return ""


@pytest.mark.parametrize("page", WRITTEN)
def test_calls_in_sentences_and_tables_exist_with_their_options(page: str) -> None:
    found = [wrong(call) for span in spans(page) for call in CALL.finditer(span)]
    assert [each for each in found if each] == []


def keys_of(section: str) -> set[str]:
    """The keys that the reference, which is made from the code, lists for a section of the job file."""
    text = (DOCS / "job-file.md").read_text(encoding="utf-8")
    part = re.split(rf"^###+ {re.escape(section)}$", text, flags=re.MULTILINE)[1]
    return set(re.findall(r"^\| `(\w+)`", re.split(r"^##", part, flags=re.MULTILINE)[0], flags=re.MULTILINE))


def test_from_tauargus_names_only_keys_rules_and_methods_that_exist() -> None:
    text = FENCED.sub("", (DOCS / "from-tauargus.md").read_text(encoding="utf-8"))
    table = [line for line in text.splitlines() if line.startswith(("| `", "| …"))]
    seen = 0
    for line in table:
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if len(cells) < 2:
            continue
        section = ""
        for span in SPAN.findall(cells[1]):
            if (found := re.match(r"\[+([\w.]+)\]+ ?(\w*)", span)) is not None:
                section, key = found[1], found[2]
                names = {"dimensions.NAME": "[dimensions.NAME]", "tables": "[[tables]]"}
                known = _method_keys() if section == "method" else keys_of(names.get(section, f"[{section}]"))
                assert not key or key in known, span
            elif (given := re.match(r'(rule|name|algorithm) = "(\w+)"', span)) is not None:
                choices = {"rule": set(RULES), "name": set(METHODS), "algorithm": set(get_args(Algorithm))}
                assert given[2] in choices[given[1]], span
            elif re.fullmatch(r'"\w+"', span):
                assert span.strip('"') in {*RULES, *METHODS, *get_args(Algorithm)}, span
            else:
                key = re.match(r"\w+", span)
                everywhere = _method_keys() | _rule_keys() | set().union(*map(keys_of, ("[source]", "[problem]")))
                within = {"response": keys_of("[response]")}.get(section, set())
                assert key is not None, span
                assert key[0] in everywhere | within, span
            seen += 1
    assert seen > 25


def _method_keys() -> set[str]:
    return set().union(*(keys_of(name) for name in METHODS))


def _rule_keys() -> set[str]:
    return set().union(*(keys_of(name) for name in ("threshold", "p_percent", "pq", "dominance", "request")))


@pytest.mark.parametrize("page", WRITTEN)
def test_modules_that_pages_name_can_be_imported(page: str) -> None:
    for span in spans(page):
        if re.fullmatch(r"tablesafe(\.\w+)+", span):
            module, _, name = span.rpartition(".")
            try:
                import_module(span)
            except ModuleNotFoundError:
                assert hasattr(import_module(module), name), span
