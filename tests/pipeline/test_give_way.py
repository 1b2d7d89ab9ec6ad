"""What a job lets give way where nothing protects its table as asked: in which order, told, and judged as strictly."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest

import tablesafe as ts
from tablesafe.core.equations import Floats
from tablesafe.core.errors import InvalidProblem
from tablesafe.job import load_job
from tablesafe.pipeline import Result, build_problem

JOB = (
    '[source]\nfile = "d.csv"\nkind = "cells"\ncount = "n"\nmissing_totals = "compute"\n[dimensions.a]\n'
    '[dimensions.b]\n[response]\nvalue = "v"\n[attack]\nattacks = []\n'
)
CELLS = "x,p,10,2\nx,q,20,9\ny,p,30,9\ny,q,0,0\n"
"""Cell (x, p) is sensitive, and may rise only if (y, q), which is empty, does."""
RISES = '[[rules]]\nrule = "levels"\nlower = 0\nupper = 3\nof = {rule = "threshold", n = 3}\n'
OUTSIDERS = "[audit]\ninsiders = false\nunions = false\n"
FROZEN = "[problem]\nfrozen = [{a = 'Total'}, {b = 'Total'}]\n"


def run(folder: Path, text: str, cells: str = "a,b,v,n\n" + CELLS) -> tuple[Result, str]:
    """What a job comes to, and all that it warns of."""
    (folder / "d.csv").write_text(cells, encoding="utf-8")
    (folder / "job.toml").write_text(text, encoding="utf-8")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = ts.run(folder / "job.toml")
    assert isinstance(found, Result)
    return found, " ".join(str(warning.message) for warning in caught)


def test_zeros_give_way_when_they_may_and_that_is_told(tmp_path: Path) -> None:
    text = JOB + RISES + OUTSIDERS + FROZEN
    with pytest.raises(InvalidProblem):
        run(tmp_path, text)
    found, told = run(tmp_path, text + 'give_way = ["zeros"]')
    assert "cells of value zero may be withheld too" in told
    assert found.safe
    assert found.release.solution is not None
    assert any("value zero" in note for note in found.release.solution.notes)
    assert found.release.suppressed[found.problem.table.index(a="y", b="q")]


def test_bounds_give_way_only_after_zeros(tmp_path: Path) -> None:
    tight = JOB + RISES + OUTSIDERS + FROZEN + "within_percent = 1\n"
    found, told = run(tmp_path, tight + 'give_way = ["bounds", "zeros"]')
    assert "to within 1 percent: it is taken to know no bounds" in told
    assert "cells of value zero" in told
    assert found.safe
    assert np.isinf(found.problem.upper[found.problem.sensitive]).all()
    with pytest.raises(InvalidProblem):
        run(tmp_path, tight + 'give_way = ["zeros"]')


def test_who_is_not_guarded_against_is_looked_at_all_the_same(tmp_path: Path) -> None:
    """Three records and a total that must be published: one of them can subtract itself. Nothing is written."""
    records = "a,b,v\nx,p,100\ny,q,200\ny,q,50\n"
    text = (
        '[source]\nfile = "d.csv"\n[dimensions.a]\n[dimensions.b]\n[response]\nvalue = "v"\n[attack]\nattacks = []\n'
        "[[rules]]\nrule = 'threshold'\nn = 3\nrange_percent = 20\n[output]\nrelease = 'public/t.csv'\n"
        "[problem]\nfrozen = [{a = 'Total', b = 'Total'}]\n"
    )
    with pytest.raises(InvalidProblem):
        run(tmp_path, text + "give_way = ['zeros']", records)
    found, told = run(tmp_path, text + "give_way = ['zeros', 'respondents']", records)
    assert "protected from outsiders alone" in told
    assert not found.safe
    assert not (tmp_path / "public" / "t.csv").exists()


def test_an_algorithm_gives_way_to_another(tmp_path: Path) -> None:
    cells = [f"{a},{b},{c}" for a in "xyz" for b in "pqr" for c in "uvw"]
    rows = "".join(f"{cell},{10 + 7 * i},{2 if i == 3 else 9}\n" for i, cell in enumerate(cells))
    text = (
        JOB.replace("[response]", "[dimensions.c]\n[response]") + '[[rules]]\nrule = "threshold"\nn = 3\n'
        '[method]\nname = "suppress"\nalgorithm = "network"\ntime_limit_s = 5\n[audit]\ninsiders = false\n'
    )
    with pytest.raises(ts.TablesafeError, match="no network"):
        run(tmp_path, text, "a,b,c,v,n\n" + rows)
    found, told = run(tmp_path, text + "[problem]\ngive_way = ['algorithm']\n", "a,b,c,v,n\n" + rows)
    assert "needs a table of two dimensions" in told
    assert found.safe


@pytest.mark.parametrize("sparing", [False, True])
def test_an_attacker_may_know_no_more_than_the_levels_allow(tmp_path: Path, sparing: bool) -> None:
    (tmp_path / "d.csv").write_text("a,b,v,n\n" + CELLS, encoding="utf-8")
    text = f"{JOB}[[rules]]\nrule = 'threshold'\nn = 3\nrange_percent = 30\n[problem]\nwithin_percent = 10\n"
    (tmp_path / "job.toml").write_text(text + f"spare_levels = {str(sparing).lower()}\n", encoding="utf-8")
    if sparing:
        with pytest.warns(UserWarning, match="need more room than 10 percent"):
            problem = build_problem(load_job(tmp_path / "job.toml"))
    else:
        problem = build_problem(load_job(tmp_path / "job.toml"))
    table = problem.table
    room: Floats = problem.upper - table.value
    cell, zero, plain = table.index(a="x", b="p"), table.index(a="y", b="q"), table.index(a="y", b="p")
    assert room[plain] == pytest.approx(3)
    assert room[cell] == pytest.approx(3 if sparing else 1), "the level is 30 percent of 10"
    assert np.isinf(room[zero]) == sparing
