"""The reference pages are what the code says today, and leave nothing out."""

from __future__ import annotations

import sys

import pytest
from documented import DOCS, MADE, pages, text_of

import tablesafe as ts
from tablesafe.attack.registry import ATTACKS
from tablesafe.core import errors
from tablesafe.methods import METHODS
from tablesafe.rules import RULES

sys.path.insert(0, str(DOCS))
try:
    from reference.writing import PAGES
finally:
    sys.path.remove(str(DOCS))


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_what_the_code_says(name: str) -> None:
    assert (DOCS / name).read_text(encoding="utf-8") == PAGES[name](), "run: make docs"


def test_the_pages_made_from_the_code_are_known() -> None:
    assert set(PAGES) == MADE


@pytest.mark.parametrize("name", ts.__all__)
def test_every_public_name_is_in_the_reference(name: str) -> None:
    assert f"\n### {name}\n" in text_of("api.md")


@pytest.mark.parametrize("cls", [*RULES.values(), *METHODS.values()], ids=lambda cls: cls.__name__)
def test_every_option_of_rules_and_methods_is_in_the_reference(cls: type) -> None:
    import dataclasses

    text = text_of("api.md").partition(f"\n### {cls.__name__}\n")[2].partition("\n### ")[0]
    for spec in dataclasses.fields(cls):
        if "help" in spec.metadata:
            assert f"| `{spec.name}` |" in text
            assert spec.metadata["help"].replace("|", "\\|") in text


def test_every_error_is_in_the_reference() -> None:
    text = text_of("errors.md")
    for name, cls in vars(errors).items():
        if isinstance(cls, type) and issubclass(cls, errors.TablesafeError):
            assert f"\n## {name}\n" in text


@pytest.mark.parametrize("cls", [*RULES.values(), *METHODS.values(), *ATTACKS.values()], ids=lambda cls: cls.__name__)
def test_every_rule_method_and_attack_is_explained(cls: type) -> None:
    """With its mathematics and what it does not protect against, on some page of the explanation."""
    told = "".join(text_of(page) for page in pages() if page.startswith("explanation/"))
    assert f"ts.{cls.__name__}" in told
