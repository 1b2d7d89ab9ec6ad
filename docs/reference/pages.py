"""The pages of the command line and of the job file: every command, every key, every option."""

from __future__ import annotations

import dataclasses
import inspect
import re
import sys
import types
from collections.abc import Iterator, Mapping
from importlib.resources import files
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from tablesafe.cli.app import app
from tablesafe.cli.exits import EXIT_HELP
from tablesafe.core.sensitivity import Rule
from tablesafe.job.decode import default_of, is_required, is_writable, options
from tablesafe.job.model import CHOICES, Dimension, Job, TableOptions
from tablesafe.job.toml import toml_value
from tablesafe.methods import METHODS, Method
from tablesafe.rules import RULES

NOTE = "<!-- Made from the code by `make docs`: do not edit. -->"
_WORDS = {str: "text", int: "whole number", float: "number", bool: "true or false", Rule: "rule", Method: "method"}
_TABLES: dict[str, type[Any]] = {"dimensions": Dimension, "tables": TableOptions}


def job_reference() -> str:
    """Every key of the job file, in Markdown."""
    example = files("tablesafe").joinpath("demo", "job.toml").read_text(encoding="utf-8")
    lines = [
        NOTE, "", "# The job file", "",
        "One TOML file describes a job: where the data comes from, what spans the table, what is sensitive, how to",
        "protect it, how hard to attack the result, and what to write. `tablesafe run job.toml` runs it,",
        "`tablesafe init data.csv` writes a first one from a look at the data. Paths are relative to the job file. All",
        "errors are reported at once, each with its line.", "",
        "## An example", "", "This is the job of `tablesafe demo`.", "", "```toml", example.rstrip(), "```", "",
        "## Keys", "",
        *_key_table({name: spec for name, spec in options(Job).items() if not _inside(name)}, get_type_hints(Job)),
    ]  # fmt: skip
    for name, spec in options(Job).items():
        if (kind := _inside(name)) is not None:
            lines += ["", f"### {_header(name)}", "", _sentence(kind.__doc__ or spec.metadata["help"]), ""]
            lines += _key_table(options(kind), get_type_hints(kind))
    lines += _chosen(Rule, "Rules", "[[rules]]", RULES, "Every `[[rules]]` table names its rule and sets its options.")
    lines += _chosen(
        Method, "Methods", "[method]", METHODS, "The `[method]` table names the method and sets its options."
    )
    return "\n".join(lines) + "\n"


def cli_reference() -> str:
    """Every command, in Markdown."""
    name, sys.argv[0] = sys.argv[0], "tablesafe"  # cyclopts shows how the program was started
    try:
        body = app.generate_docs(output_format="markdown")
    finally:
        sys.argv[0] = name
    head = body.replace("# tablesafe\n", "# Command line\n", 1).rstrip()
    head = re.sub(r"## Table of Contents\n.*?(?=\*\*Commands\*\*)", "", head, count=1, flags=re.DOTALL)
    return f"{NOTE}\n\n{head}\n\n## Exit codes\n\n```text\n{EXIT_HELP}\n```\n"


def _inside(name: str) -> type[Any] | None:
    """The dataclass whose keys a table of the job file holds."""
    if name in _TABLES:
        return _TABLES[name]
    kind = get_type_hints(Job)[name]
    return kind if dataclasses.is_dataclass(kind) and isinstance(kind, type) else None


def _header(name: str) -> str:
    return {"dimensions": "[dimensions.NAME]", "tables": "[[tables]]"}.get(name, f"[{name}]")


def _chosen(kind: Any, title: str, header: str, registry: Mapping[str, type[Any]], intro: str) -> Iterator[str]:
    key = CHOICES[kind].key
    yield from ("", f"## {title}", "", intro)
    for name, cls in registry.items():
        yield from (
            "",
            f"### {name}",
            "",
            _sentence(cls.__doc__ or ""),
            "",
            "```toml",
            header,
            f'{key} = "{name}"',
            "```",
        )
        if options(cls):
            yield from ("", *_key_table(options(cls), get_type_hints(cls)))
            yield from _tables_inside(cls, header)


def _tables_inside(cls: type[Any], header: str) -> Iterator[str]:
    """The tables that an option of a rule or method may hold, each with its keys."""
    for name, hint in get_type_hints(cls).items():
        kinds = [kind for kind in (hint, *get_args(hint)) if dataclasses.is_dataclass(kind) and isinstance(kind, type)]
        kinds = [kind for kind in kinds if getattr(kind, "name", None) not in METHODS and is_writable(kind)]
        for kind in kinds if name in options(cls) else ():
            yield from ("", f"#### {header[:-1]}.{name}]", "", _sentence(kind.__doc__ or ""), "")
            yield from _key_table(options(kind), get_type_hints(kind))


def _key_table(specs: Mapping[str, dataclasses.Field[Any]], hints: Mapping[str, Any]) -> list[str]:
    lines = ["| key | what it is | default | meaning |", "|---|---|---|---|"]
    for name, spec in specs.items():
        default = "required" if is_required(spec) else _default(default_of(spec))
        lines.append(
            f"| `{name}` | {_escaped(type_words(hints[name]))} | {default} | {_escaped(spec.metadata['help'])} |"
        )
    return lines


def _default(value: Any) -> str:
    if value is None or value == () or value == {} or value == "" or dataclasses.is_dataclass(value):
        return ""
    return f"`{toml_value(value)}`"


def type_words(kind: Any) -> str:
    """A type in the words of the reference."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin in {Union, types.UnionType}:
        return " or ".join(dict.fromkeys(type_words(k) for k in inner if is_writable(k)))
    if origin is Literal:
        return ", ".join(f"`{toml_value(option)}`" for option in inner)
    if origin is tuple:
        return f"list of {type_words(inner[0])}"
    if origin is dict:
        return "table"
    return _WORDS.get(kind, "table")


def _sentence(text: str) -> str:
    return inspect.cleandoc(text)


def _escaped(text: str) -> str:
    return text.replace("|", "\\|")
