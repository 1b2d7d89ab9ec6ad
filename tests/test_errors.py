"""Errors are data: each interface says the same error in its own words."""

from __future__ import annotations

import ast
import pickle
from pathlib import Path

import pytest

import tablesafe
from tablesafe.core import errors
from tablesafe.core.errors import InvalidTable, MissingExtra, Setting, TablesafeError, concerning, joined, speaking
from tablesafe.job.words import as_key, brief

KINDS = [
    kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, TablesafeError)
]  # fmt: skip


def test_the_text_is_message_and_hint() -> None:
    error = InvalidTable("It is wrong.", hint="mend it.", about=("column", "x"), where="a.csv, line 3")
    assert str(error) == "a.csv, line 3: It is wrong.\n\nHint: mend it."
    assert (error.message, error.hint) == ("a.csv, line 3: It is wrong.", "mend it.")
    assert str(brief(error)) == "a.csv, line 3: It is wrong. Hint: mend it."
    assert str(InvalidTable("It is wrong.")) == "It is wrong."


@pytest.mark.parametrize(
    ("setting", "python", "key"),
    [
        (Setting("where"), "where=…", "where = … in [source]"),
        (Setting("total", "All"), "total='All'", 'total = "All"'),
        (Setting("zeros", True), "zeros=True", "zeros = true"),
        (Setting("largest", 3), "largest=3", "largest = 3"),
        (Setting("lower", None), "lower=", "'lower'"),
        (Setting("missing", "drop", "region"), "missing={'region': 'drop'}", 'missing = "drop" in [dimensions.region]'),
    ],
)
def test_an_option_is_called_as_each_interface_calls_it(setting: Setting, python: str, key: str) -> None:
    error = InvalidTable("Records lack codes.", hint=("leave them out with ", setting, "."))
    assert str(error) == f"Records lack codes.\n\nHint: leave them out with {python}."
    with pytest.raises(InvalidTable) as raised, speaking(as_key):
        raise error
    assert str(raised.value) == f"Records lack codes.\n\nHint: leave them out with {key}."


def test_what_an_error_is_about_is_said_by_who_knows_best() -> None:
    for about in ((), ("column", "x")):
        with pytest.raises(InvalidTable) as raised, concerning("method"):
            raise InvalidTable("It is wrong.", about=about)
        assert raised.value.about == (about or ("method",))


def test_the_same_error_elsewhere() -> None:
    error = InvalidTable("It is wrong.", hint=("say ", Setting("total")), about=("dimension", "d"))
    found = error.at("job.arb, line 3, <SUPPRESS>")
    assert str(found) == f"job.arb, line 3, <SUPPRESS>: {error}"
    assert (type(found), found.about, str(error)) == (InvalidTable, error.about, "It is wrong.\n\nHint: say total=…")


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_error_comes_back_from_another_process(kind: type[TablesafeError]) -> None:
    error = kind("Reading", "excel") if kind is MissingExtra else kind("It is wrong.", hint=("set ", Setting("p", 1)))
    error.about = ("column", "x")
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is kind
    assert (str(again), again.about) == (str(error), error.about)


def test_texts_are_joined_with_what_they_speak_of() -> None:
    words = joined(", or ", ["unfreeze it", ("allow it (", Setting("zeros", True), ")")])
    assert str(errors.worded(words)) == "unfreeze it, or allow it (zeros=True)"


def test_a_message_beyond_all_measure_is_cut() -> None:
    error = InvalidTable("x" * 10_000, hint="y" * 10_000)
    assert len(str(error)) < 3_000
    assert len(error.message) < 1_500


def test_no_error_hides_its_hint_in_its_message_and_nobody_takes_one_apart() -> None:
    """A hint is a field; texts that are cut at it, or searched for it, would break with the next wording."""
    source = Path(tablesafe.__file__).parent
    for path in set(source.rglob("*.py")) - {source / "core" / "errors.py"}:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in vars(errors):
                assert "\\n\\nHint: " not in ast.unparse(node), f"{path.name}, line {node.lineno}"
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "partition":
                assert "Hint" not in ast.unparse(node), f"{path.name}, line {node.lineno}"
