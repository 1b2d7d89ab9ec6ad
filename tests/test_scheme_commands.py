"""`--scheme` on the command line: one vocabulary a pattern, wherever a pattern is read."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from tablesafe.cli.app import call
from tablesafe.core.statuses import VOCABULARIES
from tablesafe.job.model import ProblemOptions, Source
from tablesafe.methods import Pattern, PublishIntervals, Suppress
from tablesafe.web.forms import form_of

JOB = """\
[source]
file = "cells.csv"
kind = "cells"
count = "n"
[dimensions.r]
[response]
value = "value"
[[rules]]
rule = "threshold"
n = 3
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A job, and a pattern with the letters of SDMX that withholds one cell of a total: open."""
    (tmp_path / "cells.csv").write_text("r,value,n\nTotal,60,40\na,10,2\nb,20,18\nc,30,20\n")
    (tmp_path / "job.toml").write_text(JOB)
    (tmp_path / "pattern.csv").write_text("r,status\nTotal,F\na,A\nb,F\nc,F\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_an_open_pattern_of_sdmx_is_not_called_safe(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Read with the flags of SBS everything would be withheld, and nothing open."""
    assert call(["audit", "job.toml", "--pattern", "pattern.csv"]) == 2
    assert "F (3 cells): sbs withheld, sensitive; sdmx-conf published" in " ".join(capsys.readouterr().err.split())
    assert call(["audit", "job.toml", "--pattern", "pattern.csv", "--scheme", "sdmx-conf"]) == 1
    assert call(["audit", "job.toml", "--pattern", "pattern.csv", "--scheme", "sbs"]) == 0
    assert call(["audit", "job.toml", "--pattern", "pattern.csv", "--scheme", "sdmx"]) == 2


def test_the_column_can_be_named(folder: Path) -> None:
    pl.read_csv("pattern.csv").with_columns(flag=pl.lit("published")).write_csv("two.csv")
    assert call(["audit", "job.toml", "--pattern", "two.csv", "--scheme", "sdmx-conf"]) == 2
    words = ["audit", "job.toml", "--pattern", "two.csv", "--scheme", "sdmx-conf", "--column", "status"]
    assert call(words) == 1


def test_every_command_that_reads_a_pattern_takes_a_scheme(folder: Path) -> None:
    assert call(["attack", "job.toml", "pattern.csv", "--quiet"]) == 2
    assert call(["attack", "job.toml", "pattern.csv", "--scheme", "sdmx-conf", "--quiet", "--attacks", "midpoint"]) == 1
    repair = ["suppress", "job.toml", "--keep", "pattern.csv", "-o", "public/t.csv", "--quiet", "--time-limit-s", "2"]
    assert call(repair) == 2
    assert call([*repair, "--scheme", "sdmx-conf"]) == 0
    assert pl.read_csv("public/t.csv")["value"].null_count() == 2


@pytest.mark.parametrize("section", [Source, ProblemOptions, Pattern, Suppress, PublishIntervals])
def test_the_forms_of_the_app_offer_the_schemes(section: type) -> None:
    (entry,) = [entry for entry in form_of(section).entries if entry.name == "scheme"]
    assert entry.widget == "choice"
    assert entry.choices == tuple(VOCABULARIES)
    assert entry.default is None
