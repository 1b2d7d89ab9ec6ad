"""Plots that a job asks for: drawn into the office's folder, for its owner's eyes; other names are refused."""

from __future__ import annotations

import builtins
from pathlib import Path
from typing import Any

import pytest

import tablesafe as ts
from tablesafe.core.errors import InvalidJob, MissingExtra
from tablesafe.report.plot_names import NAMES

JOB = """
[source]
file = "firms.csv"
respondent = "firm"
[dimensions.region]
[response]
value = "v"
[[rules]]
rule = "p_percent"
p = 10
[method]
name = "suppress"
time_limit_s = 2
[attack]
attacks = ["mean of vertices"]
[output]
plots = [{plots}]
"""
FIRMS = "region,firm,v\nN,a,90\nN,b,4\nN,c,3\nS,d,40\nS,e,30\nS,f,20\nW,g,30\nW,h,31\nW,i,32\n"


def job_in(folder: Path, *plots: str) -> Path:
    (folder / "firms.csv").write_text(FIRMS)
    path = folder / "job.toml"
    path.write_text(JOB.format(plots=", ".join(f'"{name}"' for name in plots)))
    return path


def test_a_job_writes_the_plots_it_names_for_the_office_only(tmp_path: Path) -> None:
    wanted = [f"{name}.svg" for name in NAMES]
    result = ts.run(job_in(tmp_path, *wanted))
    written = {path.name: path for path in result.files if path.suffix == ".svg"}
    assert set(written) == set(wanted)
    for path in written.values():
        assert path.parent == result.internal
        assert path.stat().st_mode & 0o077 == 0
        assert b"<svg" in path.read_bytes()


@pytest.mark.parametrize("name", ["interval.svg", "intervals.docx", "../intervals.svg", "intervals"])
def test_a_name_that_says_no_plot_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidJob, match="is no name of a plot"):
        ts.run(job_in(tmp_path, name))


def test_a_missing_library_is_said_before_the_long_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    original = builtins.__import__

    def refuse(name: str, *rest: Any, **named: Any) -> Any:
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return original(name, *rest, **named)

    job = job_in(tmp_path, "intervals.svg")
    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(MissingExtra, match=r"tablesafe\[plots\]"):
        ts.run(job)
    assert not (tmp_path / "internal").exists()
