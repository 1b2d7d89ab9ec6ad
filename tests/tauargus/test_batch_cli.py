"""`tablesafe run job.arb`: what is printed, and the exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tablesafe.cli.app import call

META = '<SEPARATOR> ";"\na 1\n  <RECODEABLE>\nb 1\n  <RECODEABLE>\nv 5\n  <NUMERIC>\n'
BATCH = """<OPENMICRODATA> "d.csv"
<OPENMETADATA> "d.rda"
<SPECIFYTABLE> "a""b"|"v"
<SAFETYRULE> {rule}
<READMICRODATA>
<SUPPRESS> MOD(1,1,1,1,1)
<WRITETABLE> (1, 3, {options}, "t.txt")
<GOINTERACTIVE>
"""


def run(folder: Path, *arguments: str, rule: str = "FREQ(2,30)", options: str = "", text: str = BATCH) -> int:
    cells = [("x", "p", 3), ("x", "q", 5), ("y", "p", 4), ("y", "q", 6), ("x", "r", 1), ("y", "r", 4), ("z", "p", 5),
             ("z", "q", 3), ("z", "r", 4)]  # fmt: skip
    lines = [f"{a};{b};{10 + 7 * i}" for a, b, n in cells for i in range(n)]
    (folder / "d.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folder / "d.rda").write_text(META, encoding="utf-8")
    (folder / "my job.arb").write_text(text.format(rule=rule, options=options), encoding="utf-8")
    return call(["run", str(folder / "my job.arb"), *arguments])


def test_a_summary_per_table_with_warnings_and_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path) == 0
    shown = capsys.readouterr()
    assert "a × b | v" in shown.out
    assert "SAFE" in shown.out
    assert "t.txt" in shown.out
    assert "my job.arb, line 8: there are no windows" in shown.err.replace("\n", " ")


def test_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path, "--json") == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["status"], facts["exit_code"], len(facts["tables"])) == ("safe", 0, 1)
    assert any("line 8" in warning for warning in facts["warnings"])


def test_an_unsafe_table_gives_exit_code_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = BATCH.replace("<SUPPRESS> MOD(1,1,1,1,1)\n", "")
    assert run(tmp_path, text=text) == 1
    assert not (tmp_path / "t.txt").exists()
    assert "The release was not written" in capsys.readouterr().out
    assert run(tmp_path, "--force", text=text) == 1
    assert (tmp_path / "t.txt").exists()


def test_an_error_gives_exit_code_2_and_its_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path, rule="FREQ(2)") == 2
    shown = capsys.readouterr().err
    assert "my job.arb, line 4: <SAFETYRULE>: FREQ has 1 parameter, not 2" in shown
    assert "Hint: write it like FREQ(3,30)" in shown
