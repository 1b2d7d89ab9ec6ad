"""Batch jobs from end to end: every method, every file type, and what is not written."""

from __future__ import annotations

import csv
import stat
from pathlib import Path

import numpy as np
import pytest

import tablesafe as ts
from tablesafe.batch_jobs import BatchResult
from tablesafe.core.release import Status
from tablesafe.methods import Adjust, Round, Suppress

META = """act 1 3
  <RECODEABLE>
  <HIERARCHICAL>
  <HIERLEVELS> 1 2
region 5 2
  <RECODEABLE>
  <HIERARCHICAL>
  <HIERCODELIST> "region.hrc"
  <HIERLEADSTRING> "@"
size 8 1
  <RECODEABLE>
v 10 8
  <NUMERIC>
group 19 3
  <HOLDING>
"""
REGION = "N\n@ 1\n@ 2\nS\n@ 3\n@ 4\n@ 5\n"
HEAD = '<OPENMICRODATA> "d.asc"\n<OPENMETADATA> "d.rda"\n'
TABLE = HEAD + '<SPECIFYTABLE> "act""region"|"v"||\n<SAFETYRULE> P(10,1)|FREQ(3,20)\n'
READ = TABLE + "<READMICRODATA>\n"


@pytest.fixture(scope="module")
def data() -> str:
    random = np.random.default_rng(5)
    lines = []
    for i in range(260):
        act, region = random.choice(["A01", "A02", "A03", "B11", "B12", "C20"]), random.integers(1, 6)
        value, size = int(random.lognormal(5, 1.4)) + 1, random.integers(1, 4)
        lines.append(f"{act} {region:>2} {size} {value:>8} g{i // 3:>02}"[:30])
    return "\n".join(lines) + "\n"


def run(folder: Path, data: str, text: str, *, force: bool | None = None, **files: str) -> BatchResult:
    sources = {"d.asc": data, "d.rda": META, "region.hrc": REGION, "j.arb": text, **files}
    for name, content in sources.items():
        (folder / name.replace("__", ".")).write_text(content, encoding="utf-8")
    found = ts.run(folder / "j.arb", force=force)
    assert isinstance(found, BatchResult)
    return found


def code_value(path: Path) -> dict[tuple[str, str], tuple[str, ...]]:
    rows = csv.reader(path.read_text(encoding="utf-8").splitlines())
    return {(row[0].strip(), row[1].strip()): tuple(row[2:]) for row in rows}


# -- methods -----------------------------------------------------------------------------------------------------------

METHODS = {
    "MOD(1)": (True, True),
    "MOD(1,1,0,0,0)": (False, False),
    "MOD(1,1,1,0,0)": (True, False),
    "MOD(1,1,0,0,1)": (False, True),
    "OPT(1,1)": (True, True),
    "GH(1,100,0,1)": (True, True),
    "GH(1,100,0,0)": (False, False),
    "NET(1)": (True, True),
}


@pytest.mark.parametrize("method", METHODS)
def test_suppression_is_safe_from_those_whom_its_options_name(tmp_path: Path, data: str, method: str) -> None:
    result = run(tmp_path, data, f"{READ}<SUPPRESS> {method}\n")
    insiders, unions = METHODS[method]
    assert (result.results[0].job.audit.insiders, result.results[0].job.audit.unions) == (insiders, unions)
    again = ts.audit(result.results[0].problem, result.release, insiders=insiders, unions=unions)
    assert result.safe
    assert again.safe
    assert result.release.suppressed[result.problem.sensitive].all()
    off = " ".join(result.warnings)
    assert ("singleton options are off" in off) == (not insiders and method.startswith("MOD"))


def test_network_flows_give_way_where_the_table_is_no_network(tmp_path: Path, data: str) -> None:
    result = run(tmp_path, data, f"{READ}<SUPPRESS> NET(1)\n")
    assert any("two dimensions with at most one hierarchy" in warning for warning in result.warnings)


def test_the_hypercube_says_that_it_is_another_method_and_takes_its_bounds(tmp_path: Path, data: str) -> None:
    result = run(tmp_path, data, f"{READ}<SUPPRESS> GH(1,75)\n")
    assert any("no exact counterpart" in warning for warning in result.warnings)
    problem = result.results[0].problem
    plain = ~problem.sensitivity.mask
    assert problem.upper[plain] == pytest.approx(1.75 * problem.table.value[plain])
    assert problem.lower[plain] == pytest.approx(0.25 * problem.table.value[plain])


def test_rounding_and_adjustment(tmp_path: Path, data: str) -> None:
    counts = READ.replace('"v"', "<freq>").replace("P(10,1)|FREQ(3,20)", "FREQ(3,20)")
    result = run(tmp_path, data, f'{counts}<SUPPRESS> RND(1,5,1)\n<WRITETABLE> (1,3,,"r.txt")\n')
    assert isinstance(result.results[0].job.method, Round)
    assert all(int(value) % 5 == 0 for value, *_ in code_value(tmp_path / "r.txt").values() if value != "-")
    assert any("Steps is not used" in warning for warning in result.warnings)
    result = run(tmp_path, data, f'{READ}<SUPPRESS> CTA(1)\n<WRITETABLE> (1,3,,"c.txt")\n')
    assert isinstance(result.results[0].job.method, Adjust)
    assert (result.release.status[result.problem.sensitive] == Status.CHANGED).all()
    residual = result.problem.table.equations @ result.release.values
    assert np.abs(residual).max() < 1e-6


@pytest.mark.parametrize(("method", "kind"), [("CTA(1)", 4), ("CTA(1)", 5), ("RND(1,5)", 6)])
def test_a_type_that_cannot_hold_a_release_is_refused_at_once(
    tmp_path: Path, data: str, method: str, kind: int
) -> None:
    with pytest.raises(ts.TablesafeError, match=rf"(?s)j.arb, line 7: <WRITETABLE>: type {kind} .*types 1, 2 and 3"):
        run(tmp_path, data, f'{READ}<SUPPRESS> {method}\n<WRITETABLE> (1,{kind},,"c.txt")\n')


@pytest.mark.parametrize(
    ("writes", "name"),
    [
        ('<WRITETABLE> (1,3,,"region.hrc")', "region.hrc"),
        ('<WRITETABLE> (1,5,,"d.tab")', "d.rda"),
        ('<WRITETABLE> (1,3,,"r.grc")', "r.grc"),
        ('<WRITETABLE> (1,5,,"x.tab")', "x_1_act.hrc"),
        ('<LOGBOOK> "d.asc"', "d.asc"),
        ('<LOGBOOK> "j.arb"', "j.arb"),
        ('<VERSIONINFO> "region.hrc"', "region.hrc"),
    ],
)
def test_nothing_that_is_read_is_written_over(tmp_path: Path, data: str, writes: str, name: str) -> None:
    meta = META.replace("  <HIERLEVELS> 1 2\n", '  <HIERCODELIST> "x_1_act.hrc"\n  <HIERLEADSTRING> "@"\n')
    files = {"d.rda": meta, "r.grc": "1: 1-2\n2: 3\n", "x_1_act.hrc": "A\n@A01\n@A02\n@A03\nB11\nB12\nC20\n"}
    text = (
        TABLE.replace('"region"', '"region""size"')
        + f'<READMICRODATA>\n<RECODE> 1, size, "r.grc"\n<SUPPRESS> MOD(1)\n{writes}\n'
    )
    with pytest.raises(ts.TablesafeError, match=rf"j.arb, line 8.*{name!r} is read by this job"):
        run(tmp_path, data, text, force=None, **files)
    wanted = {"d.asc": data, "region.hrc": REGION, "j.arb": text, **files}
    assert {each: (tmp_path / each).read_text(encoding="utf-8") for each in wanted} == wanted
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(wanted)


def test_a_name_that_is_too_long_is_no_name_for_a_file(tmp_path: Path, data: str) -> None:
    with pytest.raises(ts.TablesafeError, match=r"j.arb, line 6: 'aaa[^ ]*' is no name for a file here"):
        run(tmp_path, data, READ + f'<WRITETABLE> (1,3,,"{"a" * 400}.txt")')


@pytest.mark.parametrize(
    "writes",
    ['<LOGBOOK> "a.txt"\n<WRITETABLE> (1,3,,"a.txt")', '<WRITETABLE> (1,5,,"a.tab")\n<WRITETABLE> (1,3,,"a.rda")'],
)
def test_no_file_is_written_by_two_commands(tmp_path: Path, data: str, writes: str) -> None:
    with pytest.raises(ts.TablesafeError, match=r"j.arb, line 7: 'a\.(txt|rda)' is written on line 6 already"):
        run(tmp_path, data, READ + writes)


def test_a_log_may_be_named_twice(tmp_path: Path, data: str) -> None:
    run(tmp_path, data, f'<LOGBOOK> "l.log"\n{READ}<LOGBOOK> "l.log"\n')
    assert (tmp_path / "l.log").read_text(encoding="utf-8").count("have been read") == 1


def test_a_response_that_is_no_number_is_refused_where_it_is_named(tmp_path: Path, data: str) -> None:
    with pytest.raises(
        ts.TablesafeError, match=r"(?s)line 3, <SPECIFYTABLE>: 'group' cannot be added up.*add <NUMERIC>"
    ):
        run(tmp_path, data, READ.replace('"v"', '"group"'))


def test_lambda_and_distance_reach_the_method(tmp_path: Path, data: str) -> None:
    text = READ.replace('"v"||', '"v"||-3,0.5') + "<SUPPRESS> OPT(1,1)\n"
    method = run(tmp_path, data, text).results[0].job.method
    assert isinstance(method, Suppress)
    assert (method.cost, method.power, method.algorithm, method.time_limit_s) == ("distance", 0.5, "optimal", 60)


def test_a_table_may_be_protected_again_in_another_way(tmp_path: Path, data: str) -> None:
    text = f'{READ}<SUPPRESS> CTA(1)\n<WRITETABLE> (1,3,,"c.txt")\n<SUPPRESS> MOD(1)\n<WRITETABLE> (1,3,,"m.txt")\n'
    result = run(tmp_path, data, text)
    assert "x" not in {value for value, *_ in code_value(tmp_path / "c.txt").values()}
    withheld = {value for value, *_ in code_value(tmp_path / "m.txt").values()}
    assert "x" in withheld
    proofs = sorted(path.name for path in (tmp_path / "internal" / "j").glob("certificate*"))
    assert proofs == ["certificate of c.txt.json.gz", "certificate.json.gz"]
    for name in proofs:
        ts.verify(tmp_path / "internal" / "j" / name)
    assert len(result.results) == 1


# -- files -------------------------------------------------------------------------------------------------------------


def test_every_type_of_file_is_written(tmp_path: Path, data: str) -> None:
    writes = "".join(f'<WRITETABLE> ({1}, {kind}, , "out/t{kind}.txt")\n' for kind in range(1, 6))
    result = run(tmp_path, data, f'{READ}<SUPPRESS> MOD(1)\n{writes}<WRITETABLE> (1,6,,"out/t.jj")\n')
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert {f"t{kind}.txt" for kind in range(1, 6)} | {"t.jj", "t5.rda"} <= names
    again = ts.read_jj(tmp_path / "out" / "t.jj")
    assert sorted(again.table.value.tolist()) == sorted(result.problem.table.value.tolist())
    for name in ("t4.txt", "t5.txt", "t.jj"):
        assert stat.S_IMODE((tmp_path / "out" / name).stat().st_mode) == 0o600, "every value is in it"
    warned = " ".join(result.warnings)
    assert all(f"{name} holds true values" in warned for name in ("t4.txt", "t5.txt", "t.jj"))
    assert set(result.files) >= {tmp_path / "out" / name for name in names}


def test_the_released_file_holds_no_withheld_value(tmp_path: Path, data: str) -> None:
    result = run(tmp_path, data, f'{READ}<SUPPRESS> MOD(1)\n<WRITETABLE> (1, 3, , "t.txt")\n')
    shown, problem = code_value(tmp_path / "t.txt"), result.problem
    act, region = (codes.str.strip_chars().to_list() for codes in problem.table.code_columns().values())
    for i, hidden in enumerate(result.release.suppressed.tolist()):
        value = shown[act[i], region[i]][0]
        assert value == ("x" if hidden else f"{problem.table.value[i]:.0f}")
    inside = [shown[key][0] for key in shown if key not in set(zip(act, region, strict=True))]
    assert set(inside) <= {"-"} | {value for value, *_ in shown.values()}


def test_an_unsafe_table_is_written_only_by_force(tmp_path: Path, data: str) -> None:
    text = f'<LOGBOOK> "my log.txt"\n{READ}<WRITETABLE> (1, 3, , "t.txt")\n'
    result = run(tmp_path, data, text)
    assert not result.safe
    assert not result.published
    assert not (tmp_path / "t.txt").exists()
    assert any("was not protected" in warning for warning in result.warnings)
    assert any("t.txt is not written" in warning for warning in result.warnings)
    assert (tmp_path / "internal" / "j" / "findings.json").exists(), "the office can see why"
    forced = run(tmp_path, data, text, force=True)
    assert (tmp_path / "t.txt").exists()
    assert any("because you insisted" in warning for warning in forced.warnings)


def test_the_log_tells_what_was_done_and_no_value(tmp_path: Path, data: str) -> None:
    (tmp_path / "my log.txt").write_text("of last year", encoding="utf-8")
    result = run(tmp_path, data, f'<LOGBOOK> "my log.txt"\n{READ}<SUPPRESS> MOD(1)\n<WRITETABLE> (1,3,AS+,"t.txt")\n')
    text = (tmp_path / "my log.txt").read_text(encoding="utf-8")
    assert text.startswith("of last year\n")
    assert "<SAFETYRULE> P(10,1)|FREQ(3,20)" in text
    assert "the audit says SAFE." in text
    words = {word.strip(".:;,") for word in text.split()}
    assert not words & {f"{value:.0f}" for value in result.problem.table.value if value > 999}


def test_the_log_is_written_when_the_run_fails(tmp_path: Path, data: str) -> None:
    text = f'<LOGBOOK> "log.txt"\n{TABLE}'.replace("region.hrc", "r.hrc") + "<READMICRODATA>\n"
    with pytest.raises(ts.TablesafeError, match=r"j.arb, line 6, <READMICRODATA>: Code 'Z"):
        run(tmp_path, data + "A01 Z  1      100 g99\n", text)
    log = (tmp_path / "log.txt").read_text(encoding="utf-8")
    assert log.rstrip().endswith("Stopped by an error on line 6 (InvalidHierarchy).")


def test_paths_of_another_machine_are_written_beside_the_batch_file(tmp_path: Path, data: str) -> None:
    text = f'{READ}<SUPPRESS> MOD(1)\n<WRITETABLE> (1,3,,"D:\\Tau\\x 1.txt")\n<WRITETABLE> (1,2,,"sub\\y.csv")\n'
    result = run(tmp_path, data, text)
    assert (tmp_path / "x 1.txt").exists()
    assert (tmp_path / "sub" / "y.csv").exists()
    assert any("path of another machine" in warning for warning in result.warnings)


@pytest.mark.parametrize("name", ["d.asc", "d.rda", "j.arb"])
def test_a_file_that_is_read_is_never_written_over(tmp_path: Path, data: str, name: str) -> None:
    with pytest.raises(ts.TablesafeError, match=rf"(?s)j.arb, line 7: '{name}' is read by this job"):
        run(tmp_path, data, f'{READ}<SUPPRESS> MOD(1)\n<WRITETABLE> (1,3,,"{name}")\n')


def test_a_file_is_written_once(tmp_path: Path, data: str) -> None:
    write = '<WRITETABLE> (1,3,,"t.txt")\n'
    with pytest.raises(ts.TablesafeError, match=r"line 8: 't.txt' is written on line 7 already"):
        run(tmp_path, data, f"{READ}<SUPPRESS> MOD(1)\n{write}{write}")


def test_sessions_versions_and_silence(tmp_path: Path, data: str) -> None:
    text = (
        f'<SILENT>\n<VERSIONINFO> "v.txt"\n{READ}<SUPPRESS> MOD(1)\n<CLEAR>\n{READ}<SUPPRESS> MOD(1)\n<GOINTERACTIVE>\n'
    )
    result = run(tmp_path, data, text)
    assert len(result.results) == len(result.problems) == 2
    assert ts.__version__ in (tmp_path / "v.txt").read_text()
    assert (tmp_path / "internal" / "j" / "table 2" / "certificate.json.gz").exists()
    assert any("line 16: there are no windows" in warning for warning in result.warnings)
    with pytest.raises(ts.TablesafeError, match="2 tables"):
        _ = result.release


# -- a-priori information and recodes ----------------------------------------------------------------------------------

HST = "A01; 1;u\nB;N;p\nA01; 3;c;1\nQ;1;u\nA01;2;w\nTotal;Total;pl;5;5\nA02; 4;c;-1\n"


def test_a_priori_lines_that_cannot_be_followed_are_left_out_and_said(tmp_path: Path, data: str) -> None:
    text = f'{READ}<APRIORI> "my a priori.hst", 1, ";"\n'
    result = run(tmp_path, data, text.replace("my a priori", "h"), h__hst=HST)
    problem = result.problem
    table = problem.table
    assert problem.sensitivity.mask[table.index(act="A01", region=" 1")]
    assert problem.frozen[table.index(act="B", region="N")]
    assert problem.cost[table.index(act="A01", region=" 3")] == 1
    warned = " ".join(result.warnings)
    assert "2 lines cannot be read and were left out: 5, 7" in warned
    assert "1 lines contradict" in warned
    assert "1 line was left out: 1 of cells that are not in the table; the first is h.hst, line 4" in warned


@pytest.mark.parametrize(("line", "message"), [("Q;1;u", "'Q'.*h.hst, line 1"), ("A01; 1;x", "h.hst, line 1.*'x'")])
def test_an_a_priori_error_stops_the_run_if_asked(tmp_path: Path, data: str, line: str, message: str) -> None:
    with pytest.raises(ts.TablesafeError, match=rf"(?s)j.arb, line 6, <APRIORI>: .*{message}"):
        run(tmp_path, data, f'{READ}<APRIORI> "h.hst", 1, ";", 0\n', h__hst=line + "\n")


def test_manual_range_is_20_unless_told(tmp_path: Path, data: str) -> None:
    text = READ.replace("P(10,1)|FREQ(3,20)", "{}") + '<APRIORI> "h.hst", 1, ";"\n'
    for rules, percent in (("FREQ(1,1)", 20), ("FREQ(1,1)|MAN(35)", 35)):
        problem = run(tmp_path, data, text.format(rules), h__hst="Total;N;u\n").problem
        cell = problem.table.index(act="Total", region="N")
        assert problem.sensitivity.upper[cell] == pytest.approx(percent / 100 * problem.table.value[cell])


def test_recodes_add_up_what_they_collapse(tmp_path: Path, data: str) -> None:
    whole = run(tmp_path, data, READ.replace('"region"', '"region""size"')).problem.table
    text = READ.replace('"region"', '"region""size"')
    text += '<RECODE> 1, act, 1\n<RECODE> 1, Region, "r.grc"\n<RECODE> 1, "size", "s.grc"\n'
    result = run(tmp_path, data, text, r__grc="<TREERECODE>\nS\n", s__grc="a: 1-2\n")
    table = result.problem.table
    assert set(table.dimensions["act"].codes) == {"Total", "A", "B", "C"}
    assert set(table.dimensions["region"].codes) == {"Total", "N", " 1", " 2", "S"}
    assert set(table.dimensions["size"].codes) == {"Total", "a", "3"}
    for act in ("Total", "A", "C"):
        for region in ("Total", "S", " 1"):
            parts = [whole.value[whole.index(act=act, region=region, size=size)] for size in "12"]
            assert table.value[table.index(act=act, region=region, size="a")] == sum(parts)


def test_a_recode_file_that_is_missing_stops_only_what_would_be_written(tmp_path: Path, data: str) -> None:
    text = READ + '<RECODE> 1, act, "none.grc"\n'
    result = run(tmp_path, data, text)
    assert any("line 6: There is no file 'none.grc'" in warning for warning in result.warnings)
    with pytest.raises(ts.TablesafeError, match=r"(?s)j.arb, line 6.*There is no file 'none.grc'"):
        run(tmp_path, data, text + '<SUPPRESS> MOD(1)\n<WRITETABLE> (1,3,,"t.txt")\n')


@pytest.mark.parametrize(
    ("recode", "message"),
    [
        ("1, act, 5", r"'act' has no level 5: .*levels 1 to 2"),
        ("1, size, 1", r"'size' has no hierarchy"),
        ("1, size, 2", r"'size' does not span table 1"),
        ("1, nothing, 1", r"no variable 'nothing'"),
    ],
)
def test_a_wrong_recode_names_its_line(tmp_path: Path, data: str, recode: str, message: str) -> None:
    text = READ if "span" in message else READ.replace('"region"', '"region""size"')
    with pytest.raises(ts.TablesafeError, match=rf"(?s)j.arb, line 6, <RECODE>: .*{message}"):
        run(tmp_path, data, f"{text}<RECODE> {recode}\n")


# -- linked tables -----------------------------------------------------------------------------------------------------

TWO = HEAD + "".join(
    f'<SPECIFYTABLE> "act""{other}"|"v"||\n<SAFETYRULE> {rule}\n'
    for other, rule in (("region", "P(10,1)|FREQ(3,20)"), ("size", "P(10,1)|FREQ(3,20)"))
)


@pytest.mark.parametrize("method", ["MOD(0)", "GH(0,100)"])
def test_linked_tables_withhold_the_same_common_cells(tmp_path: Path, data: str, method: str) -> None:
    writes = '<WRITETABLE> (1,3,,"a.txt")\n<WRITETABLE> (2,3,,"b.txt")\n'
    result = run(tmp_path, data, f"{TWO}<READMICRODATA>\n<SUPPRESS> {method}\n{writes}")
    assert result.safe
    one, other = (code_value(tmp_path / name) for name in ("a.txt", "b.txt"))
    common = [(code, "Total") for code in {code for code, _ in one}]
    assert all(one[key] == other[key] for key in common)
    joint = result.results[0].findings
    assert joint is result.results[1].findings, "the audit is over both together"
    assert len(joint.problem.table) == len(result.problems[0].table) + len(result.problems[1].table) - 9


def test_linked_tables_by_holdings(tmp_path: Path, data: str) -> None:
    text = TWO.replace("P(10,1)|FREQ(3,20)", "P(0,0)|P(0,0)|P(10,1)", 1)
    result = run(tmp_path, data, f"{text}<READMICRODATA>\n<SUPPRESS> MOD(0)\n")
    assert result.safe
    assert all(each.table.holdings is not None for each in result.problems)


def test_who_contributes_to_unseen_cells_of_linked_tables_is_known_from_the_records(tmp_path: Path, data: str) -> None:
    """Three margins of one cube: rules hold for its cells too, and respondents know their own part of them."""
    three = HEAD + "".join(
        f'<SPECIFYTABLE> "{one}""{other}"|"v"||\n<SAFETYRULE> FREQ(3,20)\n'
        for one, other in (("act", "region"), ("act", "size"), ("region", "size"))
    )
    result = run(tmp_path, data, f"{three}<READMICRODATA>\n<SUPPRESS> MOD(0)\n")
    joint = result.results[0].findings.problem
    assert joint.table.unseen is not None
    assert joint.table.judged
    few = joint.table.unseen & (joint.table.count > 0) & (joint.table.count < 3)  # type: ignore[operator]
    assert few.any()
    assert joint.sensitivity.mask[few].all()
    assert result.safe


@pytest.mark.parametrize(("commands", "apart"), [("MOD(0)", False), ("MOD(1)\n<SUPPRESS> MOD(2)", True)])
def test_tables_of_the_same_records_that_are_protected_one_by_one_are_told_of(
    tmp_path: Path, data: str, commands: str, apart: bool
) -> None:
    writes = '<WRITETABLE> (1,3,,"a.txt")\n<WRITETABLE> (2,3,,"b.txt")\n<WRITETABLE> (2,2,,"c.csv")\n'
    result = run(tmp_path, data, f"{TWO}<READMICRODATA>\n<SUPPRESS> {commands}\n{writes}")
    told = [warning for warning in result.warnings if "what they tell together was not examined" in warning]
    assert len(told) == apart


def test_table_0_of_one_table_is_that_table(tmp_path: Path, data: str) -> None:
    assert run(tmp_path, data, f"{READ}<SUPPRESS> MOD(0)\n").safe


# -- tables that are hard to protect -----------------------------------------------------------------------------------


def zeros(data: str) -> str:
    """The records with an activity of two contributors to each cell, who all reported nothing."""
    return data + "".join(
        f"D0{n} {region:>2} 1        0 z{n}{region}\n" for n in (1, 2) for region in (1, 2, 3, 4, 5) * 2
    )


def test_zeros_with_contributors_are_withheld_where_there_is_no_other_way(tmp_path: Path, data: str) -> None:
    text = f"{READ.replace('FREQ(3,20)', 'ZERO(10)')}<SUPPRESS> {{}}\n"
    for method in ("MOD(1,1,0,0,0)", "GH(1,75,0,0)"):
        result = run(tmp_path, zeros(data), text.format(method))
        assert result.safe
        table = result.problem.table
        assert result.release.suppressed[table.index(act="D01", region=" 1")]


def test_a_table_that_nothing_guards_does_not_stop_the_others(tmp_path: Path, data: str) -> None:
    """The first table has three records and a total that must be published: one of them can subtract itself."""
    few = "A01  1 1      100 g01\nA02  3 2      200 g02\nA02  3 2       50 g03\n"
    text = (
        f'{READ}<APRIORI> "h.hst", 1, ";", 0\n<SUPPRESS> MOD(1)\n<WRITETABLE> (1,3,,"a.txt")\n<CLEAR>\n'
        f'{READ.replace("d.asc", "e.asc")}<SUPPRESS> MOD(1)\n<WRITETABLE> (1,3,,"b.txt")\n'
    )
    result = run(tmp_path, few, text, e__asc=data, h__hst="Total;Total;p\n")
    assert [each.safe for each in result.results] == [False, True]
    assert not (tmp_path / "a.txt").exists()
    assert (tmp_path / "b.txt").exists()
    assert any("protected from outsiders alone" in warning for warning in result.warnings)
