"""A first job for a file: what is missing is no text, and what others found out about cells is not passed over."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from tablesafe.core.errors import InvalidFile
from tablesafe.io.frames import read_as_found
from tablesafe.job import load_job
from tablesafe.job.draft import draft_text
from tablesafe.pipeline import build_problem

CELLS = """region,size,turnover,{name},n
Total,Total,100,{f},9
Total,a,60,{f},5
Total,b,40,{f},4
N,Total,50,{f},5
N,a,30,{a},2
N,b,20,{d},3
S,Total,50,{f},4
S,a,30,{d},3
S,b,20,{a},1
"""


def drafted(folder: Path, text: str) -> dict[str, Any]:
    """The first job for a file, which stands beside it afterwards."""
    file = folder / "data.csv"
    file.write_text(text, encoding="utf-8")
    job, _ = draft_text(file, read_as_found(file)[0], folder)
    (folder / "job.toml").write_text(job, encoding="utf-8")
    return tomllib.loads(job)


@pytest.mark.parametrize(
    ("name", "words", "scheme"),
    [
        ("CONF_STATUS", "FAD", "sdmx-conf"),
        ("flag", "SUM", "tauargus"),
        ("suppressed", "011", "0/1"),
        ("status", ("published", "sensitive", "complementary"), "words"),
    ],
)
def test_statuses_of_others_are_recognised(tmp_path: Path, name: str, words: Any, scheme: str) -> None:
    draft = drafted(tmp_path, CELLS.format(name=name, f=words[0], a=words[1], d=words[2]))
    assert (draft["source"]["status"], draft["source"]["scheme"]) == (name, scheme)
    assert draft["response"]["value"] == ["turnover"]
    build_problem(load_job(tmp_path / "job.toml"))


def test_statuses_that_can_be_read_in_several_ways_are_asked_about(tmp_path: Path) -> None:
    draft = drafted(tmp_path, CELLS.format(name="flag", f="F", a="A", d="D"))
    assert draft["source"]["status"] == "flag"
    assert "scheme" not in draft["source"]
    with pytest.raises(InvalidFile, match="more than one way"):
        build_problem(load_job(tmp_path / "job.toml"))


def test_a_column_of_other_words_is_no_status(tmp_path: Path) -> None:
    draft = drafted(tmp_path, CELLS.format(name="flag", f="green", a="red", d="blue"))
    assert "status" not in draft["source"]


def test_amounts_with_marks_for_nothing_are_amounts(tmp_path: Path) -> None:
    """Else the next best column of numbers is added up, and nobody notices."""
    amounts = [(str(i + 0.5), ".", "NA", "")[i % 4 if i > 9 else 0] for i in range(30)]
    lines = [f"f{i},{'NSW'[i % 3]},{i % 2 + 1},{amount},{i % 7}" for i, amount in enumerate(amounts)]
    draft = drafted(tmp_path, "firm,region,size,turnover,staff\n" + "\n".join(lines) + "\n")
    assert draft["response"]["value"] == ["turnover"]
    assert draft["source"]["empty"] == [".", "NA"]
    table = build_problem(load_job(tmp_path / "job.toml")).table
    assert table.value.max() == sum(float(amount) for amount in amounts if amount[:1].isdigit())


@pytest.mark.parametrize(("members", "holding"), [(3, "Gruppe"), (40, None)])
def test_many_groups_of_few_members_are_holdings_and_few_large_ones_a_dimension(
    tmp_path: Path, members: int, holding: str | None
) -> None:
    """Half of the firms belong to no group, as in every register of firms."""
    rows = 40 * members
    lines = [f"f{i},{'NSW'[i % 3]},{f'G{i // 2 % 40}' if i % 2 else ''},{i % 97 + 0.5}" for i in range(rows)]
    draft = drafted(tmp_path, "firm,region,Gruppe,turnover\n" + "\n".join(lines) + "\n")
    assert draft["source"].get("holding") == holding
    assert ("Gruppe" in draft["dimensions"]) is (holding is None)
