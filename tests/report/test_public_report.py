"""The public report says nothing that the release does not say: not a value, not a parameter, not a count."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from report_cases import MADE, Case, made, twin

from tablesafe.io.frames import write_release
from tablesafe.report.losses import levels
from tablesafe.report.summary import Origin
from tablesafe.report.writing import Subject

ENDINGS = (".html", ".json", ".xlsx")
SECRETS = ("7.31", "17.3", "77001133", "77,001,133", "77_001_133", "complementary")
"""Parameters and seeds of the cases, and the word that would split withheld cells."""
LARGE = 1_000_000
"""Values from which on finding one in a file is no coincidence."""


def text_of(path: Path) -> str:
    """All that a file holds, unpacked; of pictures their words, not where lines begin and end."""
    if path.suffix != ".xlsx":
        return re.sub(r"<(path|use|image|g|clipPath|rect|text)\b[^>]*>", "", path.read_text(encoding="utf-8"))
    with zipfile.ZipFile(path) as file:
        return "\n".join(file.read(name).decode("utf-8", "replace") for name in sorted(file.namelist()))


def subject_of(case: Case, **changes: object) -> Subject:
    subject = Subject(
        problem=case.problem, release=case.release, findings=case.findings, origin=Origin("A title", "source.csv")
    )
    return replace(subject, **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize("ending", ENDINGS)
def test_the_public_report_holds_no_secret(case: Case, ending: str, written: Callable[..., Path]) -> None:
    text = text_of(written(case, ending, internal=False))
    for secret in SECRETS:
        assert secret not in text
    truth, release = case.problem.table.value, case.release
    hidden = release.suppressed | (np.abs(release.values - truth) > 1e-6)
    told = {
        round(v) for v in (*release.values.tolist(), *release.lower.tolist(), *release.upper.tolist()) if np.isfinite(v)
    }
    secrets = {round(v) for v in truth[hidden].tolist()} - told
    found = {int(number.replace(",", "")) for number in re.findall(r"\d[\d,]*", text) if number.count(",") < 5}
    assert not {value for value in secrets if value >= LARGE} & found


def test_the_secrets_are_found_where_they_are(written: Callable[..., Path]) -> None:
    """The test above can fail: the internal report holds what it looks for."""
    case = made("suppress")
    text = text_of(written(case, ".html", internal=True))
    assert all(secret in text for secret in ("7.31", "complementary"))
    assert f"{case.problem.table.value[case.release.suppressed][0]:,.0f}" in text


@pytest.mark.parametrize("ending", ENDINGS)
def test_the_same_publication_with_other_secrets_gives_the_same_report(case: Case, ending: str, tmp_path: Path) -> None:
    """Nothing of the report depends on what the release does not say: equal to the last byte."""
    one, two = tmp_path / f"one{ending}", tmp_path / f"two{ending}"
    subject_of(case).write(one, internal=False)
    subject_of(twin(case)).write(two, internal=False)
    assert one.read_bytes() == two.read_bytes()


@pytest.mark.parametrize("ending", [".csv", ".xlsx", ".parquet"])
def test_the_same_publication_with_other_secrets_gives_the_same_release(
    case: Case, ending: str, tmp_path: Path
) -> None:
    one, two = tmp_path / f"one{ending}", tmp_path / f"two{ending}"
    write_release(case.release, one)
    write_release(twin(case).release, two)
    assert one.read_bytes() == two.read_bytes()


def test_a_workbook_names_nobody_and_no_time(written: Callable[..., Path]) -> None:
    with zipfile.ZipFile(written(made("suppress"), ".xlsx", internal=False)) as file:
        assert {entry.date_time for entry in file.infolist()} == {(1980, 1, 1, 0, 0, 0)}
        properties = file.read("docProps/core.xml").decode()
    assert "<dc:creator></dc:creator><cp:lastModifiedBy></cp:lastModifiedBy>" in properties
    assert set(re.findall(r"\d{4}-\d\d-\d\dT[0-9:]+Z", properties)) == {"2000-01-01T00:00:00Z"}


def test_how_many_values_were_really_changed_is_not_told() -> None:
    """Of a table rounded without any change the public must not learn that it is the truth."""
    case = made("round")
    lines = levels(case.problem, case.release, internal=False)
    moved = int((case.release.values != case.problem.table.value).sum())
    told = sum(line.may_differ for line in lines if line.dimension == lines[0].dimension)
    assert told == int((case.release.lower < case.release.upper).sum()) != moved
    assert all(line.changed is None and line.sensitive is None for line in lines)


def test_announced_intervals_are_told_only_when_the_office_says_so(tmp_path: Path) -> None:
    case = made("adjust")
    quiet, told = tmp_path / "quiet.html", tmp_path / "told.html"
    subject_of(case).write(quiet, internal=False)
    subject_of(case, intervals=True).write(told, internal=False)
    assert "The true value is" not in quiet.read_text()
    assert "The true value is" in told.read_text()


def test_published_intervals_are_told(tmp_path: Path) -> None:
    case = made("intervals")
    subject_of(case).write(tmp_path / "page.html", internal=False)
    page = (tmp_path / "page.html").read_text()
    cell = int(np.flatnonzero(case.release.intervals)[0]) if case.release.intervals is not None else -1
    assert f"{case.release.lower[cell]:,.0f} to {case.release.upper[cell]:,.0f}" in page


@pytest.mark.parametrize("name", MADE)
def test_the_internal_report_says_what_the_public_one_does_not(name: str, written: Callable[..., Path]) -> None:
    case = made(name)
    text = text_of(written(case, ".json", internal=True))
    truth = case.problem.table.value
    for cell in case.findings.cells[:3].tolist():
        assert f"{truth[cell]:,.0f}" in text


def test_files_for_the_office_are_for_its_owner_only(written: Callable[..., Path]) -> None:
    for ending in ENDINGS:
        assert written(made("suppress"), ending, internal=True).stat().st_mode & 0o077 == 0
