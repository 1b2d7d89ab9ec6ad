"""One small job, to be run in every place where jobs run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from engines import records
from firms_job import JOB, firms

from tablesafe.work import executor

Write = Callable[..., Path]


@pytest.fixture
def write_job(tmp_path: Path) -> Write:
    """Write the job into a folder of its own, with other keys in [run]; from CSV or from Parquet."""

    def write(name: str, run: str = "", ending: str = "csv") -> Path:
        folder = tmp_path / name
        folder.mkdir()
        data = folder / f"firms.{ending}"
        if ending == "csv":
            firms().write_csv(data)
        else:
            firms().write_parquet(data)
        (folder / "job.toml").write_text(JOB.format(file=data.name, run=run), encoding="utf-8")
        return folder / "job.toml"

    return write


@pytest.fixture
def everything_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let also the work on a small table leave this process."""
    monkeypatch.setattr(executor, "SENT_S", 0.0)


OUTPUTS = ("public/table.csv", "internal/cells.csv", "internal/certificate.json.gz", "internal/findings.json")


@pytest.fixture(scope="session")
def outputs() -> Callable[[Path], dict[str, bytes]]:
    """What a run has written that must be the same everywhere, byte for byte."""
    return lambda job: {name: (job.parent / name).read_bytes() for name in OUTPUTS}


@pytest.fixture(scope="session")
def parquet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The records that every engine must agree on."""
    path = tmp_path_factory.mktemp("records") / "records.parquet"
    records().write_parquet(path)
    return path
