"""Suppression on published tables: Dandekar's 10×6×4 table, and the sample that τ-ARGUS comes with."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from tablesafe.audit.audit import audit
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release
from tablesafe.methods.suppress import Suppress
from tablesafe.rules import PPercent
from tablesafe.solve.program import SolveStatus
from tablesafe.tabulate import tabulate
from tablesafe.tauargus.microdata import read_microdata
from tablesafe.work.run import OUTSIDERS, Run

SIMPLE_2D_OPTIMUM = 521_926
"""Size × Region of testW, against outsiders; τ-ARGUS modular withholds 2,524,351."""


def test_dandekar_23_complements_protect_all(dandekar: Problem, paper_data: Path) -> None:
    """The printed pattern of 39 complements leaves a sensitive cell open; the 23 that branch and cut found do not."""
    listed = set(pl.read_csv(paper_data / "dandekar_10x6x4" / "fewest.csv", infer_schema=False).rows())
    cells = list(zip(*dandekar.table.code_columns().values(), strict=True))
    found = np.array([cell in listed for cell in cells])
    assert found.sum() == len(listed) == 23
    assert not (found & dandekar.sensitivity.mask).any()
    findings = audit(dandekar, Release.from_suppression(dandekar, found | dandekar.sensitivity.mask))
    assert findings.safe
    assert len(findings.cells) == 24


@pytest.mark.skipif(not os.environ.get("TABLESAFE_FAULTS"), reason="half a minute; part of the long run")
def test_dandekar_23_complements_are_the_fewest(dandekar: Problem) -> None:
    release = Suppress(cost="unit", algorithm="optimal", time_limit_s=3600).protect(dandekar)
    assert audit(dandekar, release).safe
    assert release.solution is not None
    assert release.solution.status == SolveStatus.OPTIMAL
    assert release.solution.bound == release.solution.objective == pytest.approx(23)


def test_size_by_region_of_testw_at_the_optimum(instances: Path) -> None:
    folder = instances / "tauargus" / "testW"
    data = read_microdata(folder / "tau_testW.asc", dimensions=["Size", "Region"])
    table = tabulate(data.frame, dimensions=data.dimensions, value="Var2", largest=3)
    problem = Problem(table, rules=[PPercent(p=15)])
    outsiders = Suppress(time_limit_s=60).protect(problem, Run(attackers=OUTSIDERS))
    assert audit(problem, outsiders, insiders=False, unions=False).safe
    assert not audit(problem, outsiders).safe, "single respondents of other withheld cells can still subtract"
    assert float(table.value[outsiders.suppressed & ~problem.sensitivity.mask].sum()) == SIMPLE_2D_OPTIMUM
    assert audit(problem, Suppress(time_limit_s=60).protect(problem)).safe
