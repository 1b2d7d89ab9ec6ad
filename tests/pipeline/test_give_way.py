"""What a job lets give way where nothing protects its table as asked: in which order, told, and judged as strictly."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tablesafe as ts
from tablesafe.core.equations import Floats
from tablesafe.core.errors import InvalidProblem
from tablesafe.pipeline import Result

ZEROS = 'file = "d.csv"\nkind = "cells"\ncount = "n"'


def run(folder: Path, cells: str, problem: str, *, more: str = "") -> Result:
    (folder / "d.csv").write_text("a,b,v,n\n" + cells, encoding="utf-8")
    text = (
        f'[source]\n{ZEROS}\nmissing_totals = "compute"\n[dimensions.a]\n[dimensions.b]\n[response]\nvalue = "v"\n'
        f'[[rules]]\nrule = "levels"\nlower = 0\nupper = 3\nof = {{rule = "threshold", n = 3}}\n[problem]\n{problem}\n{more}\n[attack]\nattacks = []\n'
    )
    (folder / "job.toml").write_text(text, encoding="utf-8")
    found = ts.run(folder / "job.toml")
    assert isinstance(found, Result)
    return found


CELLS = "x,p,10,2\nx,q,20,9\ny,p,30,9\ny,q,0,4\n"
"""Cell (x, p) is sensitive, and may rise only if (y, q), which is zero, does."""
FROZEN = "frozen = [{a = 'Total'}, {b = 'Total'}]\n"
OUTSIDERS = "[audit]\ninsiders = false\nunions = false"


def test_zeros_give_way_when_they_may_and_that_is_told(tmp_path: Path) -> None:
    with pytest.raises(InvalidProblem):
        run(tmp_path, CELLS, FROZEN, more=OUTSIDERS)
    with pytest.warns(UserWarning, match="cells of value zero that have contributors may be withheld too"):
        found = run(tmp_path, CELLS, FROZEN + 'give_way = ["zeros"]', more=OUTSIDERS)
    assert found.safe
    assert found.release.solution is not None
    assert any("value zero" in note for note in found.release.solution.notes)
    withheld = found.release.suppressed & (found.problem.table.value == 0)
    assert withheld.any()


def test_bounds_give_way_only_after_zeros(tmp_path: Path) -> None:
    tight = FROZEN + 'within_percent = 1\ngive_way = ["bounds", "zeros"]'
    with pytest.warns(UserWarning) as caught:
        found = run(tmp_path, CELLS, tight, more=OUTSIDERS)
    told = " ".join(str(warning.message) for warning in caught)
    assert "to within 1 percent: it is taken to know no bounds" in told
    assert "cells of value zero" in told
    assert found.safe
    assert np.isinf(found.problem.upper[found.problem.sensitive]).all()
    with pytest.raises(InvalidProblem):
        run(tmp_path, CELLS, FROZEN + 'within_percent = 1\ngive_way = ["zeros"]', more=OUTSIDERS)


def test_who_is_not_guarded_against_is_looked_at_all_the_same(tmp_path: Path) -> None:
    """Three records and a total that must be published: one of them can subtract itself. Nothing is written."""
    (tmp_path / "d.csv").write_text("a,b,v\nx,p,100\ny,q,200\ny,q,50\n", encoding="utf-8")
    text = (
        '[source]\nfile = "d.csv"\n[dimensions.a]\n[dimensions.b]\n[response]\nvalue = "v"\n[attack]\nattacks = []\n'
        "[[rules]]\nrule = 'threshold'\nn = 3\nrange_percent = 20\n[output]\nrelease = 'public/t.csv'\n"
        "[problem]\nfrozen = [{a = 'Total', b = 'Total'}]\ngive_way = ['zeros']\n"
    )
    (tmp_path / "job.toml").write_text(text, encoding="utf-8")
    with pytest.raises(InvalidProblem):
        ts.run(tmp_path / "job.toml")
    (tmp_path / "job.toml").write_text(text.replace("'zeros'", "'zeros', 'respondents'"), encoding="utf-8")
    with pytest.warns(UserWarning) as caught:
        found = ts.run(tmp_path / "job.toml")
    assert any("protected from outsiders alone" in str(warning.message) for warning in caught)
    assert not found.safe
    assert not (tmp_path / "public" / "t.csv").exists()


def test_an_algorithm_gives_way_to_another(tmp_path: Path) -> None:
    cube = "[dimensions.c]\n"
    (tmp_path / "d.csv").write_text(
        "a,b,c,v,n\n"
        + "".join(
            f"{a},{b},{c},{10 + 7 * i},{2 if i == 3 else 9}\n"
            for i, (a, b, c) in enumerate((a, b, c) for a in "xyz" for b in "pqr" for c in "uvw")
        ),  # fmt: skip
        encoding="utf-8",
    )
    text = (
        f'[source]\n{ZEROS}\nmissing_totals = "compute"\n[dimensions.a]\n[dimensions.b]\n{cube}[response]\nvalue = "v"\n'
        '[[rules]]\nrule = "threshold"\nn = 3\n[method]\nname = "suppress"\nalgorithm = "network"\ntime_limit_s = 5\n'
        "[audit]\ninsiders = false\n[attack]\nattacks = []\n"
    )
    (tmp_path / "job.toml").write_text(text, encoding="utf-8")
    with pytest.raises(ts.TablesafeError, match="no network"):
        ts.run(tmp_path / "job.toml")
    (tmp_path / "job.toml").write_text(text + "[problem]\ngive_way = ['algorithm']\n", encoding="utf-8")
    with pytest.warns(UserWarning, match="needs a table of two dimensions"):
        assert ts.run(tmp_path / "job.toml").safe


@pytest.mark.parametrize("sparing", [False, True])
def test_an_attacker_may_know_no_more_than_the_levels_allow(tmp_path: Path, sparing: bool) -> None:
    from tablesafe.job import load_job
    from tablesafe.pipeline import build_problem

    (tmp_path / "d.csv").write_text("a,b,v,n\n" + CELLS, encoding="utf-8")
    text = (
        f'[source]\n{ZEROS}\nmissing_totals = "compute"\n[dimensions.a]\n[dimensions.b]\n[response]\nvalue = "v"\n'
        "[[rules]]\nrule = 'threshold'\nn = 3\nrange_percent = 30\n"
        f"[problem]\nwithin_percent = 10\nspare_levels = {str(sparing).lower()}\n"
    )
    (tmp_path / "job.toml").write_text(text, encoding="utf-8")
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
