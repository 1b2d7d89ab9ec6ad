"""Codes, labels and file names of strangers, where people see them: terminal, web page, spreadsheet."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tablesafe.cli.app import call
from tablesafe.core.errors import LONGEST_LINE, MOST_LINES, InvalidInput, InvalidOption
from tablesafe.files.limits import visible
from tablesafe.io.frames import read_frame, write_frame
from tablesafe.verify import verify

EVIL = [
    "\x1b[2J\x1b[31mred", "\x1b]0;title\x07", "a\rb", "\x9b31m", "\u202egnp.exe", "[bold]x[/red]",
    "<script>alert(1)</script>", "\"><img src=x onerror=alert(1)>", "=cmd|'/c calc'!A1", "+1+1", "-2+3", "@SUM(1)",
    "{{7*7}}", "{% raw %}", "é😀", "a'b", "</script>", "a\u2028b", "javascript:alert(1)", "$(x)", "`x`", "$\\frac{$",
]  # fmt: skip
JOB = """title = {title}
[source]
file = "cells.csv"
kind = "cells"
count = "n"
[dimensions.code]
labels = "labels.csv"
[response]
value = "value"
[[rules]]
rule = "threshold"
n = 3
[method]
name = "suppress"
time_limit_s = 1
[attack]
attacks = []
[output]
release = ["public/table.csv", "public/table.xlsx"]
report = ["public/report.html", "public/report.json", "public/report.xlsx"]
guard_formulas = {guard}
"""


def office(folder: Path, *, guard: bool) -> None:
    """A table whose codes and labels are all hostile."""
    n = len(EVIL)
    frame = pl.DataFrame({"code": [*EVIL, "Total"], "value": [*range(10, 10 + n), sum(range(10, 10 + n))],
                          "n": [1, 1, *[5] * (n - 2), 5 * n]})  # fmt: skip
    frame.write_csv(folder / "cells.csv")
    pl.DataFrame({"code": EVIL, "label": EVIL[::-1]}).write_csv(folder / "labels.csv")
    text = JOB.format(title=json.dumps("T <script>alert(2)</script> \u001b[31m"), guard=str(guard).lower())
    (folder / "job.toml").write_text(text, encoding="utf-8")


@pytest.mark.parametrize("guard", [False, True])
def test_nothing_that_is_shown_can_act(tmp_path: Path, capfd: pytest.CaptureFixture[str], guard: bool) -> None:
    office(tmp_path, guard=guard)
    code = call(["run", str(tmp_path / "job.toml")])
    said = "".join(capfd.readouterr())
    assert code in {0, 1}, said
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e\u2028]", said)
    for page in tmp_path.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        assert "alert(1)</script>" not in text
        assert "alert(2)</script>" not in text
        assert "<img src=x" not in text
    for book in tmp_path.rglob("*.xlsx"):
        with zipfile.ZipFile(book) as archive:
            sheets = [archive.read(name) for name in archive.namelist() if "worksheets" in name]
        assert not any(b"<f>" in sheet or b"<f " in sheet or b"hyperlink" in sheet for sheet in sheets), book.name
    listed = pl.read_csv(tmp_path / "public" / "table.csv", infer_schema=False)
    runs = [code for code in listed["code"] if code.startswith(("=", "+", "-", "@", "\t", "\r"))]
    assert bool(runs) != guard
    proof = tmp_path / "internal" / "certificate.json.gz"
    assert verify(proof, release=tmp_path / "public" / "table.csv").release_checked
    assert (
        call(["audit", str(tmp_path / "job.toml"), "--pattern", str(tmp_path / "public" / "table.csv"), "--quiet"]) == 0
    )


@pytest.mark.filterwarnings("ignore:.*has one row for each combination of codes:UserWarning")
@pytest.mark.parametrize("words", [("tabulate", "--by", "code"), ("init", "-o", "new.toml")])
@pytest.mark.parametrize("json_too", [False, True])
def test_other_commands_show_codes_as_they_are(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], words: tuple[str, ...], json_too: bool
) -> None:
    office(tmp_path, guard=False)
    name, *options = words
    options = [str(tmp_path / option) if option.endswith(".toml") else option for option in options]
    asked = ["--json"] if json_too and name == "tabulate" else []
    pl.read_csv(tmp_path / "cells.csv").filter(pl.col("code") != "Total").write_csv(tmp_path / "records.csv")
    code = call([name, str(tmp_path / "records.csv"), *options, *asked])
    said = "".join(capfd.readouterr())
    assert code == 0, said
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e\u2028]", said)


def test_a_name_that_no_terminal_can_show(tmp_path: Path) -> None:
    """Names of files are bytes; those that are no text, and terminals without Unicode, end in no traceback."""
    odd = tmp_path.as_posix().encode() + b"/caf\xe9 \x1b[31m \xf0\x9f\x98\x80.jj"
    Path(odd.decode("utf-8", "surrogateescape")).write_text("1\n", encoding="utf-8")
    for words in (["audit", odd], ["audit", odd, b"--json"]):
        found = subprocess.run(
            [sys.executable.encode(), b"-m", b"tablesafe", *(w if isinstance(w, bytes) else w.encode() for w in words)],
            capture_output=True, env={"PYTHONIOENCODING": "ascii", "PATH": "/usr/bin:/bin"}, timeout=600, check=False,
        )  # fmt: skip
        assert found.returncode == 2, found
        assert b"Traceback" not in found.stderr
        assert b"\x1b[31m" not in found.stderr + found.stdout
        if b"--json" in words:
            assert json.loads(found.stdout)["error"]["kind"] == "InvalidFile"


@settings(max_examples=50)
@given(st.text())
def test_what_is_shown_cannot_steer_a_terminal(text: str) -> None:
    shown = visible(text)
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\u202a-\u202e\u2066-\u2069]", shown)
    shown.encode()
    if text.isascii() and text.isprintable():
        assert shown == text


def test_a_message_beyond_all_measure_is_cut() -> None:
    long = str(InvalidInput("x" * 100_000 + "\n\nHint: cut it."))
    assert len(long) < 2 * LONGEST_LINE
    assert long.endswith("\n\nHint: cut it.")
    many = str(InvalidInput("\n".join(f"line {i}" for i in range(10_000)) + "\n\nHint: fewer."))
    assert len(many.splitlines()) <= MOST_LINES + 1
    assert "lines more" in many
    assert many.endswith("Hint: fewer.")


def test_a_text_that_no_cell_of_a_sheet_holds_is_not_left_out_silently(tmp_path: Path) -> None:
    write_frame(pl.DataFrame({"code": ["x" * 32_767, None]}), tmp_path / "fits.xlsx")
    assert read_frame(tmp_path / "fits.xlsx").frame["code"].str.len_chars().max() == 32_767
    with pytest.raises(InvalidOption, match="32,768 letters is longer than an Excel cell holds"):
        write_frame(pl.DataFrame({"code": [None, "a", "x" * 32_768]}), tmp_path / "long.xlsx")
    assert not (tmp_path / "long.xlsx").exists()
