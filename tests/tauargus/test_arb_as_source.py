"""A job of ours takes its table from a batch file of τ-ARGUS, with rules, recodes and a-priori files."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest

import tablesafe as ts
from tablesafe.core.errors import InvalidFile
from tablesafe.files.limits import VARIABLE
from tablesafe.job import dump_job, load_job
from tablesafe.pipeline import Result, build_problem

META = '<SEPARATOR> ";"\na 1\n  <RECODEABLE>\nb 1\n  <RECODEABLE>\nv 5\n  <NUMERIC>\n'
HEAD = '<OPENMICRODATA> "d.asc"\n<OPENMETADATA> "d.rda"\n<SPECIFYTABLE> "a""b"|"v"\n<SAFETYRULE> FREQ(3,20)\n'
ONE = f'{HEAD}<READMICRODATA>\n<RECODE> 1, b, "b.grc"\n<APRIORI> "h.hst", 1, ";"\n<SUPPRESS> MOD(1,1,0,0,0)\n'
TWO = f'{HEAD}<SPECIFYTABLE> "a"|"v"\n<SAFETYRULE> FREQ(4,10)\n<READMICRODATA>\n<SUPPRESS> MOD(0,1,0,0,0)\n'


def files(folder: Path, text: str, table: str = "") -> Path:
    lines = [f"{a};{b};{10 + 7 * i + 3 * n}" for n, (a, b) in enumerate((a, b) for a in "xyz" for b in "pqrs")
             for i in range(2 if n == 1 else 5)]  # fmt: skip
    made = {"d.asc": "\n".join(lines) + "\n", "d.rda": META, "b.grc": "k: r, s\n", "h.hst": "y;p;u\nz;p;c;5\n"}
    job = (
        f'[source]\nfile = "j.arb"\n{table}\n[method]\nname = "suppress"\ntime_limit_s = 2\n'
        "[audit]\ninsiders = false\nunions = false\n[attack]\nattacks = []\n[output]\nrelease = 'public/t.csv'\n"
    )
    for name, content in {**made, "j.arb": text, "job.toml": job}.items():
        (folder / name).write_text(content, encoding="utf-8")
    return folder / "job.toml"


def test_the_table_is_the_one_that_the_batch_file_protects(tmp_path: Path) -> None:
    path = files(tmp_path, ONE, "table = 1")
    problem, theirs = build_problem(load_job(path)), ts.run(tmp_path / "j.arb").problem
    assert set(problem.table.dimensions["b"].codes) == {"Total", "p", "q", "k"}
    assert problem.sensitivity.mask[problem.table.index(a="y", b="p")]
    assert problem.cost[problem.table.index(a="z", b="p")] == 5
    assert (problem.sensitivity.mask == theirs.sensitivity.mask).all()
    assert (problem.table.value == theirs.table.value).all()


def test_the_job_of_a_batch_result_runs_by_itself(tmp_path: Path) -> None:
    files(tmp_path, ONE)
    result = ts.run(tmp_path / "j.arb").results[0]
    assert result.job.source.tables == (1,)
    again = load_job_text(tmp_path, dump_job(result.job))
    assert again.safe
    assert (again.release.suppressed == result.release.suppressed).all()


def load_job_text(folder: Path, text: str) -> Result:
    (folder / "again.toml").write_text(text, encoding="utf-8")
    found = ts.run(folder / "again.toml")
    assert isinstance(found, Result)
    return found


def test_several_tables_are_protected_together(tmp_path: Path) -> None:
    path = files(tmp_path, TWO)
    found = ts.run(path)
    assert found.safe
    assert (tmp_path / "public" / "t.csv").exists()
    total = found.problem.table
    one = build_problem(load_job(files(tmp_path, TWO, "table = 2")))
    both = build_problem(load_job(files(tmp_path, TWO, "table = [1, 2]")))
    assert len(one.table) == 4
    assert len(both.table) == len(total) == 20
    levels = both.sensitivity.upper[both.sensitivity.mask]
    assert levels == pytest.approx(0.2 * both.table.value[both.sensitivity.mask])


def test_every_file_behind_it_is_known_by_its_hash(tmp_path: Path) -> None:
    from tablesafe.pipeline.inputs import Inputs

    path = files(tmp_path, ONE, "table = 1")
    assert {"j.arb", "d.asc", "d.rda", "b.grc", "h.hst"} <= set(Inputs.of(load_job(path)).hashes)


@pytest.mark.parametrize(
    ("text", "table", "message"),
    [
        (ONE, "table = 2", r"(?s)j.arb reads 1 table: there is no table 2.*SPECIFYTABLE"),
        (ONE.replace("b.grc", "c.grc").replace("<SUPPRESS>", '<WRITETABLE> (1,3,,"t.txt")\n<SUPPRESS>'), "", r"line 6"),
        (ONE.replace("FREQ(3,20)", "P(1"), "", r"j.arb, line 4"),
    ],
)
def test_what_is_wrong_names_the_batch_file(tmp_path: Path, text: str, table: str, message: str) -> None:
    with pytest.raises(ts.TablesafeError, match=message):
        build_problem(load_job(files(tmp_path, text, table)))


def test_remarks_of_the_batch_file_are_warnings(tmp_path: Path) -> None:
    path = files(tmp_path, ONE.replace("FREQ(3,20)", "MAN(20)"), "table = 1")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        build_problem(load_job(path))
    assert any("line 5: table 1: no rule says what is sensitive" in str(warning.message) for warning in caught)


def test_a_table_is_named_for_a_batch_file_only(tmp_path: Path) -> None:
    path = files(tmp_path, ONE, "table = 1")
    path.write_text(path.read_text(encoding="utf-8").replace("j.arb", "d.asc"), encoding="utf-8")
    with pytest.raises(ts.TablesafeError, match="'table' is of a batch file"):
        load_job(path)


def test_a_batch_file_that_is_too_large_is_refused_where_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, "1MB")
    (tmp_path / "large.arb").write_text("// \n" * 300_000, encoding="utf-8")
    (tmp_path / "job.toml").write_text('[source]\nfile = "large.arb"\n', encoding="utf-8")
    for path in (tmp_path / "large.arb", tmp_path / "job.toml"):
        with pytest.raises(InvalidFile, match="larger than"):
            ts.run(path)
