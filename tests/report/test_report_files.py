"""Reports of jobs and of the library: which files there are, and what is refused."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest
from report_cases import made, people

import tablesafe as ts
from tablesafe.core.errors import InvalidJob, InvalidOption, InvalidRelease
from tablesafe.report import writing
from tablesafe.report.sheet import INTERNAL

JOB = """
title = "Income by municipality"
[source]
file = "people.csv"
respondent = "person"
largest = 4
[dimensions.municipality]
[dimensions.job]
[response]
value = "income"
[[rules]]
rule = "p_percent"
p = 17.3
[method]
name = "withhold"
[output]
release = ["public/table.csv"]
force = true
"""
OFFICE = {"report.html", "report.json", "table.xlsx", "cells.csv", "findings.csv", "findings.json"}


def job(folder: Path, report: str) -> Path:
    people(200).write_csv(folder / "people.csv")
    path = folder / "job.toml"
    path.write_text(JOB + report, encoding="utf-8")
    return path


def test_one_name_is_one_page(tmp_path: Path) -> None:
    ts.run(job(tmp_path, 'report = "public/r.html"'))
    assert {path.name for path in (tmp_path / "public").iterdir()} == {"table.csv", "r.html"}
    assert {path.name for path in (tmp_path / "internal").iterdir()} >= OFFICE


def test_several_names_are_written_by_their_ending(tmp_path: Path) -> None:
    result = ts.run(job(tmp_path, 'report = ["public/r.html", "public/r.json", "public/r.xlsx"]'))
    public = tmp_path / "public"
    told = json.loads((public / "r.json").read_text(encoding="utf-8"))
    assert told["title"] == "Income by municipality"
    assert told["input"]["source"] == ""
    assert told["reproduce"]["command"] == "tablesafe run job.toml"
    assert not told["reproduce"]["job"]
    assert (public / "r.xlsx").read_bytes().startswith(b"PK")
    for name in ("r.html", "r.json"):
        assert "17.3" not in (public / name).read_text(encoding="utf-8").partition("<svg")[0]
    office = json.loads((tmp_path / "internal" / "report.json").read_text(encoding="utf-8"))
    assert "17.3" in office["reproduce"]["job"]
    assert office["input"]["files"].keys() == {"people.csv"}
    assert office["input"]["source"] == "people.csv"
    assert office["method"]["seconds"].keys() >= {"table", "protect", "audit"}
    assert office["attacks"]["attacks"]
    assert all(path.exists() for path in result.files)


@pytest.mark.parametrize("asked", [False, True])
def test_the_public_report_names_the_source_only_if_asked(tmp_path: Path, asked: bool) -> None:
    names = '["public/r.html", "public/r.json", "public/r.xlsx"]'
    ts.run(job(tmp_path, f"report = {names}\nname_source = {str(asked).lower()}"))
    for name in ("r.html", "r.json"):
        assert ("people.csv" in (tmp_path / "public" / name).read_text(encoding="utf-8")) == asked
    for path in (tmp_path / "public").iterdir():
        data = path.read_bytes()
        if path.suffix == ".xlsx":
            with zipfile.ZipFile(path) as parts:
                data = b"".join(parts.read(part) for part in parts.namelist())
        assert asked or b"people" not in data, path.name


@pytest.mark.parametrize("name", ["public/r.pdf", "public/r", "public/table.csv", "internal/report.json", "people.csv"])
def test_names_that_cannot_be_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidJob, match=name.rpartition("/")[2]):
        ts.run(job(tmp_path, f'report = ["{name}"]'))
    assert not (tmp_path / "public").exists()


def test_a_report_list_survives_being_written_as_a_job(tmp_path: Path) -> None:
    from tablesafe.job import dump_job, load_job

    first = load_job(job(tmp_path, 'report = ["public/r.html", "public/r.json"]'))
    again = tmp_path / "again.toml"
    again.write_text(dump_job(first), encoding="utf-8")
    assert load_job(again).output.reports == first.output.reports == ("public/r.html", "public/r.json")


def test_without_xlsxwriter_the_office_gets_the_rest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "find_spec", lambda name: None)
    ts.run(job(tmp_path, ""))
    names = {path.name for path in (tmp_path / "internal").iterdir()}
    assert "table.xlsx" not in names
    assert names >= OFFICE - {"table.xlsx"}
    assert "no table.xlsx" in (tmp_path / "internal" / "report.html").read_text(encoding="utf-8")


def test_the_library_writes_reports_too(tmp_path: Path) -> None:
    case = made("suppress")
    path = ts.report(case.problem, case.release, path=tmp_path / "r.html", title="T", rows="region")
    page = path.read_text(encoding="utf-8")
    assert "not audited" in page
    assert "region by activity" in page
    assert INTERNAL[:8] not in page


def test_bad_endings_and_foreign_releases_are_refused(tmp_path: Path) -> None:
    case, other = made("suppress"), made("round")
    with pytest.raises(InvalidOption, match=r"r\.pdf"):
        ts.report(case.problem, case.release, path=tmp_path / "r.pdf")
    with pytest.raises(InvalidRelease, match="cells"):
        ts.report(case.problem, other.release, path=tmp_path / "r.html")
    with pytest.raises(InvalidOption, match="regoin"):
        ts.report(case.problem, case.release, path=tmp_path / "r.html", rows="regoin")
    assert not list(tmp_path.iterdir())
