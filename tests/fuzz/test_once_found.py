"""Files that once ended in an error of Python's own, or in one that named no file: each kind by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from fuzz.targets import TARGETS
from fuzz.test_commands import lay_out, ran
from fuzz.test_readers import judge, names_a_file
from tablesafe.cli.exits import Exit
from tablesafe.core.errors import InvalidFile
from tablesafe.tabulate import readstat

JSON_STAT = TARGETS["json-stat"]


def _document() -> dict[str, Any]:
    return dict(json.loads(JSON_STAT.seed()))


def _category(change: dict[str, Any]) -> dict[str, Any]:
    document = _document()
    name = document["id"][0]
    document["dimension"][name]["category"] |= change
    return document


@pytest.mark.parametrize(
    "document",
    [
        _document() | {"id": 5},
        _document() | {"dimension": "x"},
        _document() | {"dimension": {name: {"category": [1]} for name in _document()["id"]}},
        _document() | {"size": 3},
        _document() | {"value": {"9" * 5000: 1}},
        _document() | {"value": [10**400] * len(_document()["value"])},
        _document() | {"status": {"²": "c"}},
        _category({"index": {"a": 1, "b": "x"}}),
        _category({"index": ["\ud800"] * len(_document()["size"])}),
        _category({"child": {"Total": 5}}),
    ],
    ids=["id", "dimension", "category", "size", "position", "value", "status", "index", "half a letter", "child"],
)
def test_a_json_stat_file_with_something_else_in_a_place_is_refused_by_name(document: dict[str, Any]) -> None:
    said = judge(JSON_STAT, json.dumps(document).encode())
    assert said is not None
    assert names_a_file(JSON_STAT, said)
    assert "Hint: " in said


@pytest.mark.parametrize(("codes", "fine"), [("99 99", True), ("99 Total", False)])
def test_missing_codes_of_tau_argus_that_stand_twice(codes: str, fine: bool) -> None:
    target = TARGETS["micro rda"]
    lines = target.seed().decode().splitlines()
    first = next(i for i, line in enumerate(lines) if line.lower().startswith("size"))
    lines[first] = " ".join([*lines[first].split()[:3], codes])
    said = judge(target, "\n".join(lines).encode())
    assert (said is None) == fine, said
    if said is not None:
        assert names_a_file(target, said)
        assert f"line {first + 1}" in said


def test_a_negative_cell_of_a_view_is_named_with_its_file() -> None:
    target = TARGETS["cube"]
    said = judge(target, target.seed().replace(b"15", b"-15"))
    assert said is not None
    assert names_a_file(target, said)


def test_a_job_that_would_write_a_name_that_no_file_can_have(tmp_path: Path) -> None:
    lay_out(tmp_path)
    job = (tmp_path / "cells.toml").read_text(encoding="utf-8")
    long = "x" * 5000
    (tmp_path / "cells.toml").write_text(job.replace("public/t.csv", f"{long}/t.csv"), encoding="utf-8")
    code, said = ran(tmp_path, ("run", "cells.toml"))
    assert code == Exit.BAD_INPUT, said
    assert "is no name for a file" in said
    assert long not in said


def test_a_reader_that_is_ended_on_the_spot_does_not_end_us(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyreadstat", reason="the extra readstat is not installed")
    child = tmp_path / "child.py"
    child.write_text("import os\nos.abort()\n", encoding="utf-8")
    monkeypatch.setattr(readstat, "CHILD", child)
    (tmp_path / "data.sav").write_bytes(b"$FL2")
    with pytest.raises(InvalidFile, match=r"data\.sav cannot be read"):
        readstat.read_records(tmp_path / "data.sav")


def test_records_of_spss_come_whole_from_the_other_process(tmp_path: Path) -> None:
    pyreadstat = pytest.importorskip("pyreadstat", reason="the extra readstat is not installed")
    path = tmp_path / "data.sav"
    given = pl.DataFrame({"size": [1.0, 2.0], "name": ["é", "b"], "value": [1.5, None]})
    pyreadstat.write_sav(given, str(path), variable_value_labels={"size": {1.0: "small", 2.0: "large"}})
    frame = readstat.read_records(path).frame
    assert frame["size"].to_list() == [1, 2]
    assert frame["value"].to_list() == [1.5, None]
    assert frame["name"].to_list() == ["é", "b"]
    assert readstat.value_labels(path) == {"size": {"1": "small", "2": "large"}}
