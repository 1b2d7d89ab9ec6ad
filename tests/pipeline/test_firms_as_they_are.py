"""Business records as an office has them, with losses and gaps: from the first look to a safe release."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import tablesafe as ts
from tablesafe.io.frames import read_frame
from tablesafe.job.draft import draft_text
from tablesafe.job.load import load_job
from tablesafe.pipeline import build_problem


@pytest.fixture
def firms(instances: Path, tmp_path: Path) -> Path:
    """The records and their hierarchies, with the job that `init` drafts."""
    folder = instances / "microdata" / "firms"
    for name in ("firms.csv", "region.hrc", "nace.hrc"):
        shutil.copyfile(folder / name, tmp_path / name)
    text, _ = draft_text(tmp_path / "firms.csv", read_frame(tmp_path / "firms.csv"), tmp_path)
    (tmp_path / "job.toml").write_text(text)
    return tmp_path


def test_the_drafted_job_tabulates_everything(firms: Path) -> None:
    """Region, nace and size at all levels; 100 records without a turnover are left out, those without a region kept."""
    problem = build_problem(load_job(firms / "job.toml"))
    table = problem.table
    assert list(table.dimensions) == ["region", "nace", "size"]
    records = pl.read_csv(firms / "firms.csv", separator=";", infer_schema=False).filter(
        pl.col("turnover").is_not_null()
    )
    value = records["turnover"].cast(pl.Float64)
    assert table.value[table.index()] == pytest.approx(value.sum())
    nowhere = value.filter(records["region"].is_null())
    assert len(nowhere) > 0
    assert table.value[table.index(region="missing")] == pytest.approx(nowhere.sum())
    assert table.may_be_negative.all()
    assert (problem.lower == -np.inf).all()


def test_size_by_nace_comes_through(firms: Path) -> None:
    """697 cells, 1% of the turnovers negative: it stayed open, whatever was withheld."""
    text = (firms / "job.toml").read_text()
    text = re.sub(r"^\[dimensions\.region\].*?(?=^\[dimensions\.)", "", text, flags=re.S | re.M)
    (firms / "small.toml").write_text(text)
    result = ts.run(firms / "small.toml")
    assert result.findings is not None
    assert result.findings.safe
    assert (firms / "public" / "release.csv").exists()
