"""Suppression on published tables: Dandekar's 10×6×4 table, and the sample that τ-ARGUS comes with."""

from __future__ import annotations

from pathlib import Path

import pytest

from tablesafe.audit.audit import audit
from tablesafe.core.problem import Problem
from tablesafe.methods.suppress.method import Suppress
from tablesafe.rules import PPercent
from tablesafe.solve.program import SolveStatus
from tablesafe.tabulate import tabulate
from tablesafe.tauargus.microdata import read_microdata

SIMPLE_2D_OPTIMUM = 521_926
"""Size × Region of testW, against outsiders; τ-ARGUS modular withholds 2,524,351."""


def test_dandekar_23_complements_are_the_fewest(dandekar: Problem) -> None:
    """The printed pattern of 39 complements leaves a sensitive cell open; 23 protect all 24, and no fewer can."""
    release = Suppress(cost="unit", algorithm="optimal", time_limit_s=3600).protect(dandekar)
    findings = audit(dandekar, release)
    assert findings.safe
    assert len(findings.cells) == 24
    assert int((release.suppressed & ~dandekar.sensitivity.mask).sum()) == 23
    assert release.solution is not None
    assert release.solution.status == SolveStatus.OPTIMAL
    assert release.solution.bound == pytest.approx(23)


def test_size_by_region_of_testw_at_the_optimum(instances: Path) -> None:
    folder = instances / "tauargus" / "testW"
    data = read_microdata(folder / "tau_testW.asc", dimensions=["Size", "Region"])
    table = tabulate(data.frame, dimensions=data.dimensions, value="Var2", largest=3)
    problem = Problem(table, rules=[PPercent(p=15)])
    outsiders = Suppress(time_limit_s=60, insiders=False, unions=False).protect(problem)
    assert audit(problem, outsiders, insiders=False, unions=False).safe
    assert not audit(problem, outsiders).safe, "single respondents of other withheld cells can still subtract"
    assert float(table.value[outsiders.suppressed & ~problem.sensitivity.mask].sum()) == SIMPLE_2D_OPTIMUM
    assert audit(problem, Suppress(time_limit_s=60).protect(problem)).safe
