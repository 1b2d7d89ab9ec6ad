"""Pages and app in other languages: no catalogue lacks a text, nothing is left in English, and nothing else changes."""

from __future__ import annotations

import json
import re
from pathlib import Path
from string import Formatter

import numpy as np
import polars as pl
import pytest

import tablesafe as ts
from said import helps, keys
from tablesafe.audit.verdict import OUTSIDER
from tablesafe.cli.run import in_language
from tablesafe.core.errors import InvalidOption
from tablesafe.core.language import CODES, ENGLISH, THOUSANDS, frozen, joined, language, text, thawed
from tablesafe.core.sensitivity import Sensitivity
from tablesafe.job.load import parse_job
from tablesafe.job.model import Job

OTHERS = tuple(code for code in CODES if code != "en")


@pytest.mark.parametrize("code", OTHERS)
def test_a_catalogue_has_every_text_with_its_parts_and_no_other(code: str) -> None:
    texts = language(code).texts
    assert sorted(keys() - set(texts)) == []
    assert sorted(set(texts) - keys() - helps()) == []
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


@pytest.mark.parametrize("internal", [False, True])
@pytest.mark.parametrize("code", OTHERS)
def test_a_page_is_all_in_its_language(
    published: tuple[ts.Problem, ts.Release, ts.Findings], tmp_path: Path, code: str, internal: bool
) -> None:
    english, other = (page(published, tmp_path, language=each, internal=internal) for each in ("en", code))
    texts = language(code).texts
    body = re.sub(r'<svg.*?</svg>|class="[^"]*"', "", other.partition("<body>")[2].partition("<script>")[0], flags=re.S)
    assert f'<html lang="{code}">' in other
    said = [key for key in texts if "{" not in key and len(key) > 11 and key in english and key != texts[key]]
    assert len(said) > 20
    assert [key for key in said if key in body] == []
    assert f"153{THOUSANDS}000,5" in body
    assert "153,000.5" not in body


def test_all_but_pages_stays_english(published: tuple[ts.Problem, ts.Release, ts.Findings], tmp_path: Path) -> None:
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


def test_a_sentence_is_the_same_after_a_journey_as_plain_data() -> None:
    said = text("sensitive cells are open to {whom}.", whom=joined("", [text(OUTSIDER), " ", text("{n:,}", n=1234)]))
    assert thawed(json.loads(json.dumps(frozen(said)))) == said
    assert thawed(frozen("a code")) == "a code"


def test_sentences_keep_their_parts_and_codes_are_not_translated() -> None:
    said = text("sensitive cells are open to {whom}.", whom=joined("", [text(OUTSIDER)]))
    assert str(said) == f"sensitive cells are open to {OUTSIDER}."
    assert language("es").say(said) == "hay celdas sensibles abiertas a cualquiera que vea la publicación."
    assert language("de").say("{down} by {across}", down="Cells", across="Total") == "Cells nach Total"
    assert language("fr").say("{found:,}", found=1234567) == f"1{THOUSANDS}234{THOUSANDS}567"
    assert ENGLISH.say("{found:,.1f}", found=1234.5) == "1,234.5"
