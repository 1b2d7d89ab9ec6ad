"""Pages for the public in other languages: nothing is left in English, and nothing else changes."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from string import Formatter

import numpy as np
import polars as pl
import pytest

import tablesafe as ts
from tablesafe.audit.verdict import OUTSIDER, Word
from tablesafe.cli.run import in_language
from tablesafe.core.errors import InvalidOption
from tablesafe.core.language import CODES, ENGLISH, THOUSANDS, joined, language, text
from tablesafe.core.sensitivity import Sensitivity
from tablesafe.job.load import parse_job
from tablesafe.job.model import Job
from tablesafe.methods import METHODS
from tablesafe.report.cells import Kind
from tablesafe.report.page import CONTENTS, _words
from tablesafe.rules import RULES

SOURCES = Path(ts.__file__).parent
OTHERS = tuple(code for code in CODES if code != "en")
PUBLIC = (Kind.PUBLISHED, Kind.MAY_DIFFER, Kind.INTERVAL, Kind.WITHHELD)
SAYING = (
    "audit/verdict.py", "audit/unions.py", "report/verdict.py", "report/excerpt.py", "report/page.py",
    "report/cells.py",
)  # fmt: skip
FOR_THE_OFFICE = {"sensitive", "changed"}
"""Contents and figures of pages that the public does not see."""


def literals(path: Path) -> Iterator[str]:
    """Texts that a module says: what `text` and `say` are called with, both where there are two."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        named = isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in {"text", "say", "_if_large"}
        if named and isinstance(node, ast.Call) and node.args:
            yield from (
                each.value
                for argument in node.args[:2]
                for each in ast.walk(argument)
                if isinstance(each, ast.Constant) and isinstance(each.value, str)
            )


def keys() -> set[str]:
    """All that a page for the public can say."""
    template = (SOURCES / "report" / "page.html.jinja").read_text(encoding="utf-8")
    found = set(re.findall(r'say\("([^"]+)"', template))
    for name in SAYING:
        found |= set(literals(SOURCES / name))
    found |= {str(word) for word in Word} | {"NOT AUDITED", "Attacker", "Result", OUTSIDER, "suppression"}
    found |= {part for kind in PUBLIC for part in (kind.word, kind.meaning)}
    found |= {name for key, name in CONTENTS.items() if key not in {"sensitive", "attacks"}}
    for _, kind in [*RULES.items(), *METHODS.items()]:
        found.add((kind.__doc__ or "").strip().partition("\n")[0].replace("`", ""))
    found |= {_words(kind.__name__) for kind in RULES.values()} | {name.replace("_", " ") for name in METHODS}
    return {key for key in found if re.search("[a-z]{2}|[A-Z]{3}|%B", re.sub(r"\{[^}]*\}", "", key))} - FOR_THE_OFFICE


@pytest.mark.parametrize("code", OTHERS)
def test_a_catalogue_has_every_text_with_its_parts_and_no_other(code: str) -> None:
    texts = language(code).texts
    assert sorted(keys() - set(texts)) == []
    assert sorted(set(texts) - keys()) == []
    for english, other in texts.items():
        wanted, found = ({part[1:3] for part in Formatter().parse(each) if part[1]} for each in (english, other))
        assert wanted == found, english
        assert english[-1] not in ".;" or other[-1] == english[-1], other


@pytest.fixture(scope="module")
def published() -> tuple[ts.Problem, ts.Release, ts.Findings]:
    frame = pl.DataFrame({"r": list("aabb"), "c": list("xyxy"), "value": [3000.5, 40000.0, 50000.0, 60000.0]})
    dimensions = {"r": None, "c": None}
    table = ts.Table.from_cells(frame, dimensions=dimensions, value="value", missing_totals="compute")
    first = np.arange(len(table)) == table.index(r="a", c="x")
    problem = ts.Problem(table, sensitivity=Sensitivity.of(first, 2.0 * first))
    release = ts.protect(problem, "suppress")
    return problem, release, ts.audit(problem, release)


def page(published: tuple[ts.Problem, ts.Release, ts.Findings], folder: Path, **how: object) -> str:
    return ts.report(*published, path=folder / "report.html", **how).read_text(encoding="utf-8")  # type: ignore[arg-type]


@pytest.mark.parametrize("code", OTHERS)
def test_a_page_for_the_public_is_all_in_its_language(
    published: tuple[ts.Problem, ts.Release, ts.Findings], tmp_path: Path, code: str
) -> None:
    english, other = page(published, tmp_path), page(published, tmp_path, language=code)
    texts = language(code).texts
    body = other.partition("<body>")[2].partition("<script>")[0]
    assert f'<html lang="{code}">' in other
    said = [key for key in texts if "{" not in key and len(key) > 11 and key in english and key != texts[key]]
    assert len(said) > 20
    assert [key for key in said if key in body] == []
    assert f"153{THOUSANDS}000,5" in body
    assert "153,000.5" not in body


def test_the_office_and_all_but_pages_stay_english(
    published: tuple[ts.Problem, ts.Release, ts.Findings], tmp_path: Path
) -> None:
    assert "What went in" in page(published, tmp_path, internal=True, language="de")
    told = ts.report(*published, path=tmp_path / "report.json", language="de").read_text(encoding="utf-8")
    assert "every sensitive cell is hidden from anyone who sees the release" in told


def test_a_language_that_is_not_there_is_refused(
    published: tuple[ts.Problem, ts.Release, ts.Findings], tmp_path: Path
) -> None:
    with pytest.raises(InvalidOption, match="no language 'nl'"):
        page(published, tmp_path, language="nl")


def test_a_job_names_the_language(tmp_path: Path) -> None:
    (tmp_path / "f.csv").write_text("a\nx\n", encoding="utf-8")
    job = '[source]\nfile = "f.csv"\n[dimensions.a]\n[[rules]]\nrule = "threshold"\n[output]\nlanguage = "fr"\n'
    assert parse_job(job, tmp_path / "job.toml").output.language == "fr"
    (tmp_path / "job.toml").write_text(job, encoding="utf-8")
    changed = in_language(tmp_path / "job.toml", "es")
    assert isinstance(changed, Job)
    assert changed.output.language == "es"
    assert in_language(tmp_path / "job.toml", None) == tmp_path / "job.toml"
    with pytest.raises(InvalidOption, match="no report for the public"):
        in_language(tmp_path / "job.arb", "de")


def test_sentences_keep_their_parts_and_codes_are_not_translated() -> None:
    said = text("sensitive cells are open to {whom}.", whom=joined("", [text(OUTSIDER)]))
    assert str(said) == f"sensitive cells are open to {OUTSIDER}."
    assert language("es").say(said) == "hay celdas sensibles abiertas a cualquiera que vea la publicación."
    assert language("de").say("{down} by {across}", down="Cells", across="Total") == "Cells nach Total"
    assert language("fr").say("{found:,}", found=1234567) == f"1{THOUSANDS}234{THOUSANDS}567"
    assert ENGLISH.say("{found:,.1f}", found=1234.5) == "1,234.5"
