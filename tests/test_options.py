"""Every option exists in the command line, the job file, the app and the reference, with its help, by one declaration.

The declaration is a dataclass: of a rule, of a method, of a section of the job file, or of a table inside one of them.
"""

from __future__ import annotations

import asyncio
import dataclasses
import inspect
import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tablesafe.cli.app import call
from tablesafe.cli.listing import all_options
from tablesafe.core.errors import InvalidOption
from tablesafe.job.decode import default_of, is_required, options
from tablesafe.job.dump import dump_job
from tablesafe.job.model import (
    AttackOptions,
    AuditOptions,
    Dimension,
    Job,
    Output,
    ProblemOptions,
    Response,
    RunOptions,
    Source,
    TableOptions,
)
from tablesafe.methods import METHODS
from tablesafe.rules import RULES
from tablesafe.web.forms import Entry, form_of, read, written

SECTIONS: dict[str, type[Any]] = {
    "source": Source, "dimensions": Dimension, "response": Response, "tables": TableOptions, "problem": ProblemOptions,
    "audit": AuditOptions, "attack": AttackOptions, "output": Output, "run": RunOptions,
}  # fmt: skip
REFERENCE = Path(__file__).parents[1] / "docs" / "job-file.md"


def kinds() -> Iterator[tuple[str, type[Any]]]:
    """Everything that declares options, with the tables inside it."""
    for family, registry in (("rule", RULES), ("method", METHODS), ("section", SECTIONS)):
        for name, kind in registry.items():
            yield f"{family} {name}", kind
            yield from ((f"{family} {name}.{inner}", table) for inner, table in tables_inside(kind))


def tables_inside(kind: type[Any]) -> Iterator[tuple[str, type[Any]]]:
    for entry in form_of(kind).entries:
        if entry.inside is not None and entry.inside not in METHODS.values():
            yield entry.name, entry.inside


ALL = dict(kinds())
OPTIONS = [(where, spec) for where, kind in ALL.items() for spec in options(kind).values()]
NAMED = [pytest.param(where, spec, id=f"{where}.{spec.name}") for where, spec in OPTIONS]


def test_every_section_of_a_job_is_looked_at() -> None:
    rest = {"title", "rules", "method"}
    assert set(options(Job)) == {*SECTIONS, *rest}


@pytest.mark.parametrize(("where", "spec"), NAMED)
def test_an_option_says_what_it_is(where: str, spec: dataclasses.Field[Any]) -> None:
    assert len(str(spec.metadata.get("help", ""))) > 8, f"{where}.{spec.name} has no help"


# -- the command line ----------------------------------------------------------------------------------------------


def told(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    assert call([*arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize(("command", "registry"), [("rules", RULES), ("methods", METHODS)])
def test_the_command_line_lists_every_option_with_its_help(
    command: str, registry: dict[str, type[Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    listed = told(capsys, command)
    assert list(listed) == list(registry)
    for name, kind in registry.items():
        shown = {option["name"]: option["help"] for option in listed[name]["options"]}
        for spec in options(kind).values():
            assert shown[spec.name] == spec.metadata["help"]
        assert told(capsys, command, name)[name] == listed[name]


def test_the_command_line_lists_the_options_of_tables_inside_a_method() -> None:
    for kind in METHODS.values():
        shown = {option["name"]: option["help"] for option in all_options(kind)}
        for inner, table in tables_inside(kind):
            assert {f"{inner}.{name}" for name in options(table)} <= shown.keys()
            for spec in options(table).values():
                assert shown[f"{inner}.{spec.name}"] == spec.metadata["help"]


def test_the_command_line_shows_options_to_people_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert call(["methods", "suppress"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert all(name in shown for name in options(METHODS["suppress"]))
    assert call(["methods", "supress"]) == 2


# -- the job file --------------------------------------------------------------------------------------------------


def explained(job: Job) -> str:
    return " ".join(line.strip("# ") for line in dump_job(job, explain=True).splitlines())


def made(kind: type[Any]) -> Any:
    """A value of a dataclass: its examples where something must be given."""
    needed = {spec.name: spec for spec in options(kind).values() if is_required(spec)}
    inner = {"of": RULES["threshold"](), "rules": (RULES["threshold"](),), "weights": (1.0,), "cells": "flag"}
    given = {name: spec.metadata.get("example", inner.get(name)) for name, spec in needed.items()}
    return kind(**given, **({"respondents": ("f1",)} if "respondents" in options(kind) else {}))


@pytest.mark.parametrize(("family", "name"), [*(("rules", n) for n in RULES), *(("method", n) for n in METHODS)])
def test_a_commented_job_file_explains_every_option(family: str, name: str) -> None:
    kind = RULES[name] if family == "rules" else METHODS[name]
    chosen: dict[str, Any] = {"rules": (made(kind),)} if family == "rules" else {"method": made(kind)}
    job = Job(source=Source(file="firms.csv"), dimensions={"region": Dimension()}, **chosen)
    text = explained(job)
    for spec in (
        *options(kind).values(),
        *(s for k in SECTIONS.values() if k is not TableOptions for s in options(k).values()),
    ):
        assert " ".join(str(spec.metadata["help"]).split()) in text, f"{spec.name} is not explained"


# -- the reference -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("where", "spec"), NAMED)
def test_the_reference_has_every_option(where: str, spec: dataclasses.Field[Any]) -> None:
    page = REFERENCE.read_text(encoding="utf-8")
    help = str(spec.metadata["help"]).replace("|", "\\|")
    lines = [line for line in page.splitlines() if line.startswith(f"| `{spec.name}` |")]
    assert any(line.endswith(f"| {help} |") for line in lines), f"docs/job-file.md lacks {where}.{spec.name}"


# -- the app -------------------------------------------------------------------------------------------------------


def drawn(kind: type[Any]) -> list[str]:
    """The texts of the form that the app draws for a dataclass, tables inside it unfolded."""
    from nicegui import Client
    from nicegui.page import page

    from tablesafe.web.pages import fields as forms
    from tablesafe.web.pages.fields import fields
    from tablesafe.web.pages.screen import Screen

    async def draw() -> list[str]:
        draft = {"part": {name: {} for name, _ in tables_inside(kind)}}
        workspace: Any = SimpleNamespace(draft=draft, files={}, check=list, version=0)
        with Client(page("/form"), request=None) as client:
            fields(Screen(workspace, SimpleNamespace()), form_of(kind), ("part",))  # type: ignore[arg-type]
            found = [str(getattr(e, "text", "") or e.props.get("label") or "") for e in client.layout.descendants()]
            client.delete()
        return found

    with pytest.MonkeyPatch.context() as patch:  # as if somebody had opened every fold
        patch.setattr(forms, "_more", lambda title, draw, screen: draw())
        return asyncio.run(draw())


@pytest.mark.parametrize("where", ALL)
def test_the_app_draws_a_field_with_help_for_every_option(where: str) -> None:
    pytest.importorskip("nicegui")
    kind = ALL[where]
    texts = drawn(kind)
    for table in (kind, *(inner for _, inner in tables_inside(kind))):
        for spec in options(table).values():
            assert spec.name in texts or f"{spec.name} *" in texts, f"the form of {where} has no field {spec.name}"
            help = str(spec.metadata["help"])
            assert any(text.startswith(help[:1].upper() + help[1:]) for text in texts), f"no help for {spec.name}"


@pytest.mark.parametrize("where", ALL)
def test_what_a_form_shows_is_what_it_keeps(where: str) -> None:
    for entry in form_of(ALL[where]).entries:
        if entry.default is not None and entry.widget not in {"switch", "choice", "table", "rule", "rules", "method"}:
            assert read(entry, written(entry, entry.default)) == entry.default


@pytest.mark.parametrize("name", RULES)
def test_sliders_stay_within_what_a_rule_allows(name: str) -> None:
    for entry in form_of(RULES[name]).entries:
        if entry.slider is None:
            continue
        low, high, step = entry.slider
        assert low <= entry.default <= high
        assert step > 0
        for value in (low, high):
            _accepts(RULES[name], entry, value)


def _accepts(kind: type[Any], entry: Entry, value: float) -> None:
    """A rule takes a value of a slider; pq needs its other parameter to go along."""
    along = {"p": {"q": 100.0}, "q": {"p": 0.5}}.get(entry.name, {}) if kind is RULES["pq"] else {}
    number = int(value) if entry.widget == "whole" else value
    try:
        dataclasses.replace(made(kind), **{**along, entry.name: number})
    except InvalidOption as error:
        pytest.fail(f"{kind.__name__}.{entry.name} = {value}: {error}")


@pytest.mark.parametrize("where", [where for where in ALL if where.startswith("rule ")])
def test_numbers_of_rules_have_a_slider_unless_they_have_no_scale(where: str) -> None:
    without = {"range_absolute", "rest", "code", "most"}
    for entry in form_of(ALL[where]).entries:
        if entry.widget in {"number", "whole"} and entry.name not in without:
            assert entry.slider is not None, f"{where}.{entry.name} has no slider"


def test_hidden_options_are_for_programs_only() -> None:
    for kind in METHODS.values():
        hidden = {spec.name for spec in dataclasses.fields(kind) if spec.metadata.get("hidden")}  # type: ignore[arg-type]
        assert not hidden & {entry.name for entry in form_of(kind).entries}


def test_defaults_are_those_of_the_declaration() -> None:
    for kind in ALL.values():
        for name, spec in options(kind).items():
            if not is_required(spec) and isinstance(default_of(spec), bool | int | float):
                entry = next(entry for entry in form_of(kind).entries if entry.name == name)
                assert entry.default == default_of(spec)
        assert form_of(kind).summary.split()[0] == inspect.cleandoc(kind.__doc__ or "").split()[0]
