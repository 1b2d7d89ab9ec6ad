"""The one place that orchestrates: a job in, a table, its problem, a release, findings and files out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tablesafe.core.registry import loader

if TYPE_CHECKING:
    from tablesafe.pipeline.problems import build_problem
    from tablesafe.pipeline.result import Result
    from tablesafe.pipeline.running import run
    from tablesafe.pipeline.tables import build_table

__all__ = ["Result", "build_problem", "build_table", "run"]

__getattr__ = loader(
    __name__,
    {
        "Result": "tablesafe.pipeline.result",
        "build_problem": "tablesafe.pipeline.problems",
        "build_table": "tablesafe.pipeline.tables",
        "run": "tablesafe.pipeline.running",
    },
)
