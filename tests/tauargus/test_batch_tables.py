"""Batch jobs that read finished tables."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tablesafe as ts
from tablesafe.batch_jobs import BatchResult

META = """<SEPARATOR> ";"
size "9"
  <RECODEABLE>
  <TOTCODE> "All"
region
  <RECODEABLE>
  <TOTCODE> "Total"
  <HIERARCHICAL>
  <HIERCODELIST> "region.hrc"
  <HIERLEADSTRING> "@"
year
  <RECODEABLE>
  <TOTCODE> "T"
value
  <NUMERIC>
  <DECIMALS> 1
shadow
  <NUMERIC> <SHADOW>
price
  <NUMERIC> <COST>
n
  <FREQUENCY>
top1
  <MAXSCORE>
top2
  <MAXSCORE>
status
  <STATUS>
"""
REGION = "N\n@N1\n@N2\nS\n"
HEAD = '<OPENTABLEDATA> "t.tab"\n<OPENMETADATA> "t.rda"\n'


def table(*, off: float = 0.0, comma: bool = False) -> str:
    """A full table of size × region (with one year), its largest contributions and statuses."""
    inner = {("1", "N1"): (50, 40, 9), ("1", "N2"): (80, 20, 20), ("1", "S"): (70, 30, 10), ("2", "N1"): (60, 20, 10),
             ("2", "N2"): (90, 30, 20), ("2", "S"): (40, 20, 10), ("9", "S"): (10, 9, 1)}  # fmt: skip
    above = {"N1": ("N1", "N", "Total"), "N2": ("N2", "N", "Total"), "S": ("S", "Total")}
    sums: dict[tuple[str, str], list[tuple[float, int, int]]] = {}
    for (size, region), (amount, first, second) in inner.items():
        for s in (size, "All"):
            for r in above[region]:
                sums.setdefault((s, r), []).append((amount, first, second))
    lines = []
    for (s, r), parts in sums.items():
        value = sum(part[0] for part in parts) + (off if (s, r) == ("All", "N") else 0)
        tops = sorted((x for part in parts for x in part[1:]), reverse=True)[:2]
        status = {("2", "S"): "U", ("1", "S"): "P", ("2", "N1"): "M"}.get((s, r), "S")
        shown = f"{value:.1f}".replace(".", ",") if comma else f"{value:.1f}"
        lines.append(f'{s};"{r}";T;{shown};{value * 2:.0f};3;{5 * len(parts)};{tops[0]};{tops[1]};{status}')
    return "\n".join(lines) + "\n"


def run(
    folder: Path, rules: str | None = "", read: str = "", data: str | None = None,
    spec: str = '"size""region"|"value"||', more: str = "",
) -> BatchResult:  # fmt: skip
    safety = "" if rules is None else f"<SAFETYRULE> {rules}\n"
    text = f"{HEAD}<SPECIFYTABLE> {spec}\n{safety}<READTABLE> {read}\n{more}"
    files = {"t.tab": table() if data is None else data, "t.rda": META, "region.hrc": REGION, "j.arb": text}
    for name, content in files.items():
        (folder / name).write_text(content, encoding="utf-8")
    found = ts.run(folder / "j.arb")
    assert isinstance(found, BatchResult)
    return found


@pytest.mark.parametrize("rules", [None, "", "MAN(30)"])
def test_without_rules_the_statuses_count(tmp_path: Path, rules: str | None) -> None:
    problem = run(tmp_path, rules).problem
    t = problem.table
    (cell,) = problem.sensitive
    assert cell == t.index(size="2", region="S")
    percent = 30 if rules == "MAN(30)" else 20
    assert problem.sensitivity.upper[cell] == pytest.approx(percent / 100 * 40)
    assert problem.frozen[t.index(size="1", region="S")]
    assert problem.suppressed[t.index(size="2", region="N1")]


def test_rules_flag_from_counts_and_largest_contributions(tmp_path: Path) -> None:
    result = run(tmp_path, "P(20,1)")
    problem = result.problem
    t, kept = problem.table, problem.table.contributors
    assert kept is not None
    rest = t.value - kept.amount[:, :2].sum(axis=1)
    wanted = (rest < 0.2 * kept.amount[:, 0]) | (np.arange(len(t)) == t.index(size="2", region="S"))
    assert (problem.sensitivity.mask == wanted).all()
    assert any("unsafe by their status in t.tab, not by the rules" in warning for warning in result.warnings)
    assert run(tmp_path, "FREQ(6,10)").problem.sensitivity.mask.sum() == (np.asarray(t.count) < 6).sum()


def test_missing_codes_of_a_table_are_safe_if_asked(tmp_path: Path) -> None:
    cell = {"size": "9", "region": "S"}
    plain = run(tmp_path, "P(20,1)").problem
    assert plain.sensitivity.mask[plain.table.index(**cell)]
    safe = run(tmp_path, "P(20,1)|MIS(1)").problem
    assert not safe.sensitivity.mask[safe.table.index(**cell)]


def test_costs_default_to_the_response_not_to_the_cost_column(tmp_path: Path) -> None:
    assert run(tmp_path).problem.cost == pytest.approx(run(tmp_path).problem.table.value)
    assert set(run(tmp_path, spec='"size""region"|"value"||"price"').problem.cost) == {3.0}
    counts = run(tmp_path, spec='"size""region"|"value"||-1').problem
    assert counts.table.count is not None
    assert (counts.cost == counts.table.count).all()


def test_a_shadow_column_stands_behind_the_largest(tmp_path: Path) -> None:
    """The shadow is twice the value, so the same largest contributions leave more behind."""
    with_shadow = run(tmp_path, "P(99,1)", spec='"size""region"|"value"|"shadow"|').problem
    without = run(tmp_path, "P(99,1)").problem
    assert with_shadow.sensitivity.mask.sum() < without.sensitivity.mask.sum()


def test_a_table_of_counts(tmp_path: Path) -> None:
    problem = run(tmp_path, "FREQ(6,10)", spec='"size""region"|<freq>').problem
    assert problem.table.value[problem.table.index()] == 35


def test_more_dimensions_than_the_table_has_are_taken_at_their_totals(tmp_path: Path) -> None:
    problem = run(tmp_path, spec='"region"|"value"').problem
    assert sorted(problem.table.value.tolist()) == [110, 120, 170, 280, 400]


def test_the_order_of_the_explanatory_variables_is_kept(tmp_path: Path) -> None:
    assert list(run(tmp_path, spec='"region""size"|"value"').problem.table.dimensions) == ["region", "size"]


def test_decimal_commas(tmp_path: Path) -> None:
    assert (run(tmp_path, data=table(comma=True)).problem.table.value == run(tmp_path).problem.table.value).all()


def test_a_table_that_does_not_add_up_names_the_line_and_the_remedy(tmp_path: Path) -> None:
    line = next(i for i, text in enumerate(table().splitlines(), start=1) if text.startswith('All;"N";'))
    cell = rf"t.tab, line {line}: cell \(size=All, region=N\) is 285, but its parts add up to 280"
    message = rf"(?s)j.arb, line 5, <READTABLE>: {cell}: the table is not additive.*<READTABLE> 1"
    with pytest.raises(ts.TablesafeError, match=message):
        run(tmp_path, data=table(off=5))


@pytest.mark.parametrize("read", ["1", "1T", "2"])
def test_totals_are_computed_if_asked(tmp_path: Path, read: str) -> None:
    result = run(tmp_path, data=table(off=5), read=read)
    t = result.problem.table
    assert t.value[t.index(size="All", region="N")] == 280
    assert any("recomputed" in warning for warning in result.warnings)
    assert any("need not add up" in warning for warning in result.warnings) == (read == "2")


def test_cover_does_not_insist_on_sums(tmp_path: Path) -> None:
    result = run(tmp_path, data=table(off=5), more="<COVER>\n")
    assert any("need not add up" in warning for warning in result.warnings)


def test_a_total_that_is_missing_names_the_remedy(tmp_path: Path) -> None:
    lines = [text for text in table().splitlines() if not text.startswith('All;"N";')]
    with pytest.raises(ts.TablesafeError, match=r"(?s)t.tab has no row for that total.*<READTABLE> 1"):
        run(tmp_path, data="\n".join(lines))
    assert run(tmp_path, data="\n".join(lines), read="1").problem.table.value.max() == 400


MISTAKES = {
    "status": ("", ";S\n", ";X\n", r"t.tab, line 1 has the status 'X'"),
    "too few entries": ("", ";T;", ";", r"t.tab, line 1: there are 9 entries, but 10 variables"),
    "code": ("", '1;"N1"', '1;"N7"', r"Code 'N7' of 'region' at t.tab, line 1 is not in region.hrc.*add a line"),
    "holdings": ("FREQ(0,0)|FREQ(3,1)", "", "", r"FREQ\(3,1\) is about holdings"),
    "weights": ("WGT(1)", "", "", r"WGT\(1\) uses sampling weights"),
    "requests": ("REQ(1,1,1)", "", "", r"REQ needs to know who asked"),
    "too few tops": ("P(10,5)", "", "", r"largest|contribut"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_names_the_file_and_the_remedy(tmp_path: Path, mistake: str) -> None:
    rules, old, new, message = MISTAKES[mistake]
    with pytest.raises(ts.TablesafeError, match=rf"(?s)j.arb, line \d, <[A-Z]+>: .*{message}") as raised:
        run(tmp_path, rules, data=table().replace(old, new, 1) if old else None)
    assert "Hint: " in str(raised.value)


def test_linked_tables_from_two_files(tmp_path: Path) -> None:
    run(tmp_path)
    second = [line for line in table().splitlines() if line.startswith("All;")]
    (tmp_path / "u.tab").write_text("\n".join(second) + "\n", encoding="utf-8")
    (tmp_path / "u.rda").write_text(META, encoding="utf-8")
    text = (
        f'{HEAD}<SPECIFYTABLE> "size""region"|"value"\n<SAFETYRULE> FREQ(6,10)\n'
        '<OPENTABLEDATA> "u.tab"\n<OPENMETADATA> "u.rda"\n<SPECIFYTABLE> "region"|"value"\n<SAFETYRULE> FREQ(6,10)\n'
        '<READTABLE>\n<SUPPRESS> MOD(0)\n<WRITETABLE> (1,3,,"a.txt")\n<WRITETABLE> (2,3,,"b.txt")\n'
    )
    (tmp_path / "j.arb").write_text(text.replace("P;", "S;"), encoding="utf-8")
    (tmp_path / "t.tab").write_text(table().replace(";P\n", ";S\n"), encoding="utf-8")
    result = ts.run(tmp_path / "j.arb")
    assert result.safe
    assert (tmp_path / "b.txt").exists()
