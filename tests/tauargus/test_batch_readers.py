"""Batch jobs on the data that offices really have: each file here is odd in one way, the table is always the same."""

from __future__ import annotations

from pathlib import Path

import pytest

import tablesafe as ts
from tablesafe.batch_jobs import BatchResult

RECORDS = [  # activity, region, weight, turnover, holding
    ("01.1", "N 1", 2.5, 100.25, "h1"),
    ("01.1", "N 2", 1.0, 20.5, "h2"),
    ("01.1", "N 1", 4.0, 7.0, "h1"),
    ("02.10", "N 1", 1.5, 60.0, "h3"),
    ("02.10", "N 2", 1.0, 45.75, "h1"),
    ("03", "S", 1.0, 3.0, "h2"),
    ("03", "S", 2.0, 4.0, "h4"),
    ("03", "N 2", 1.0, 5.5, "h5"),
]
HRC = "01\n@01.1\n02\n@02.10\n03\n"
REGIONS = "North\n@N 1\n@N 2\nS\n"
META = """act 6 "99"
  <RECODEABLE>
  <HIERARCHICAL>
  <HIERCODELIST> "C:\\data\\act.hrc"
  <HIERLEADSTRING> "@"
region 6
  <RECODEABLE>
  <HIERARCHICAL>
  <HIERCODELIST> "my regions.hrc"
  <HIERLEADSTRING> "@"
weight 6
  <WEIGHT>
turnover 8 9999
  <NUMERIC>
  <DECIMALS> 2
group 3
  <HOLDING>
"""
BATCH = """<OPENMICRODATA> "D:\\offices\\my data.asc"
<OPENMETADATA> "MY DATA.RDA"
<SPECIFYTABLE> "act""region"|"turnover"||
<SAFETYRULE> {rules}
<READMICRODATA>
"""


def run(folder: Path, data: str | bytes, meta: str, rules: str = "FREQ(2,10)") -> BatchResult:
    (folder / "my data.asc").write_bytes(data if isinstance(data, bytes) else data.encode())
    (folder / "my data.rda").write_text(meta, encoding="utf-8")
    (folder / "act.hrc").write_text(HRC, encoding="utf-8")
    (folder / "my regions.hrc").write_text(REGIONS, encoding="utf-8")
    (folder / "job.arb").write_text(BATCH.format(rules=rules), encoding="utf-8")
    found = ts.run(folder / "job.arb")
    assert isinstance(found, BatchResult)
    return found


def free(separator: str = ";", comma: bool = False, quotes: bool = False) -> str:
    lines = []
    for record in RECORDS:
        entries = [
            str(entry).replace(".", ",") if comma and isinstance(entry, float) else str(entry) for entry in record
        ]
        lines.append(separator.join(f'"{entry}"' if quotes else entry for entry in entries))
    return "\n".join(lines) + "\n"


def fixed(widths: tuple[int, ...] = (6, 6, 6, 8, 3), *, left: bool = False) -> str:
    def cell(entry: object, width: int) -> str:
        return str(entry).ljust(width) if left else str(entry).rjust(width)

    return "".join("".join(map(cell, record, widths)) + "\n" for record in RECORDS)


def places(meta: str, widths: tuple[int, ...] = (6, 6, 6, 8, 3)) -> str:
    lines, at = [], 0
    for line in meta.splitlines():
        name, *rest = line.split(" ", 2)
        if name and not line.startswith(" "):
            start = 1 + sum(widths[:at])
            rest = rest[1:]
            line = " ".join([name, str(start), str(widths[at]), *rest])
            at += 1
        lines.append(line)
    return "\n".join(lines) + "\n"


FREE = '<SEPARATOR> ";"\n' + META
FILES: dict[str, tuple[str | bytes, str]] = {
    "plain": (free(), FREE),
    "commas": (free(","), FREE.replace('";"', '","')),
    "tabs": (free("\t"), FREE.replace('";"', '"\\t"')),
    "decimal commas": (free(comma=True), FREE),
    "quotes": (free(quotes=True), FREE),
    "byte-order mark": (b"\xef\xbb\xbf" + free().encode(), FREE),
    "windows line ends": (free().replace("\n", "\r\n"), FREE.replace("\n", "\r\n")),
    "end of file mark": (free() + "\x1a", FREE + "\x1a"),
    "spaces around": (free(" ; ").replace(" ; ", " ;  "), FREE),
    "fixed": (fixed(), places(META)),
    "fixed, left": (fixed(left=True), places(META)),
    "fixed, wide": (fixed((9, 7, 8, 12, 5)), places(META, (9, 7, 8, 12, 5))),
    "holdings in any order": ("\n".join(reversed(free().splitlines())), FREE),
}


def cells(result: BatchResult) -> dict[tuple[str, str], tuple[float, int]]:
    table = result.problem.table
    assert table.count is not None
    act, region = (codes.str.strip_chars().to_list() for codes in table.code_columns().values())
    return dict(
        zip(zip(act, region, strict=True), zip(table.value.tolist(), table.count.tolist(), strict=True), strict=True)
    )


def added_up(weighted: bool = False) -> dict[tuple[str, str], tuple[float, int]]:
    above = {"01.1": ["01"], "02.10": ["02"], "N 1": ["North"], "N 2": ["North"]}
    found: dict[tuple[str, str], tuple[float, int]] = {}
    for act, region, weight, turnover, _ in RECORDS:
        for a in (act, "Total", *above.get(act, [])):
            for r in (region, "Total", *above.get(region, [])):
                value, count = found.get((a, r), (0.0, 0))
                found[a, r] = (value + turnover * (weight if weighted else 1), count + 1)
    return found


@pytest.mark.parametrize("kind", FILES)
def test_the_same_table_comes_from_every_file(tmp_path: Path, kind: str) -> None:
    found, wanted = cells(run(tmp_path, *FILES[kind])), added_up()
    for key, (value, count) in found.items():
        assert wanted[key][0] == pytest.approx(value)
        assert wanted[key][1] == count
    one_name = {key for key in wanted if key[0] not in {"01.1", "02.10"}}
    assert {(act.removesuffix(".1").removesuffix(".10"), region) for act, region in found} == one_name


@pytest.mark.parametrize("kind", ["plain", "decimal commas", "fixed", "holdings in any order"])
def test_weights_with_decimals_and_holdings_anywhere(tmp_path: Path, kind: str) -> None:
    result = run(tmp_path, *FILES[kind], rules="WGT(1)|P(0,0)|P(0,0)|P(10,1)|FREQ(0,0)|FREQ(2,10)")
    found, wanted = cells(result), added_up(weighted=True)
    for key, (value, count) in found.items():
        assert wanted[key][0] == pytest.approx(value)
        assert wanted[key][1] == count
    table = result.problem.table
    assert table.holdings is not None
    assert int(table.holdings[table.index()]) == 5
    north = table.index(act="01", region="N 1")
    assert table.holdings[north] == 1, "both records are of holding h1"
    assert result.problem.sensitivity.mask[north]


def test_windows_1252_codes_meet_their_utf_8_hierarchy(tmp_path: Path) -> None:
    data = "Größe;1;2\nÉté;3;4\n".encode("cp1252")
    (tmp_path / "my data.asc").write_bytes(data)
    meta = '<SEPARATOR> ";"\nact 6\n <RECODEABLE>\nregion 6\n <RECODEABLE>\nturnover 3\n <NUMERIC>\n'
    found = run(tmp_path, data, meta)
    assert {"Größe", "Été"} < set(found.problem.table.dimensions["act"].codes)


def test_missing_codes_are_part_of_the_total_and_blank_ones_are_missing(tmp_path: Path) -> None:
    data = free() + "99;S;1;10;h6\n;S;1;30;\n"
    result = run(tmp_path, data, FREE, rules="FREQ(3,10)|MIS(1)")
    table = result.problem.table
    unknown, total = table.index(act="99", region="S"), table.index(act="Total", region="S")
    assert (table.value[unknown], table.value[total]) == (40, 47)
    assert not result.problem.sensitivity.mask[unknown], "MIS(1): a missing code makes a cell safe"
    assert result.problem.sensitivity.mask[table.index(act="03", region="S")]
    again = run(tmp_path, data, FREE, rules="FREQ(3,10)")
    assert again.problem.sensitivity.mask[unknown], "by default it does not"


def test_a_number_that_is_missing_counts_as_zero_and_is_said(tmp_path: Path) -> None:
    result = run(tmp_path, free() + "03;S;1;9999;h6\n03;S;1;;h6\n", FREE)
    assert any("2 records of my data.asc have no turnover" in warning for warning in result.warnings)
    table = result.problem.table
    south = table.index(act="03", region="S")
    assert table.count is not None
    assert (table.value[south], table.count[south]) == (7, 4)


MISTAKES = {
    "unknown code": (
        free() + "04;S;1;1;h\n",
        FREE,
        r"Code '04' of 'act' at my data.asc, line 9 is not in act.hrc.*add a line for it to act.hrc",
    ),
    "blank code": (free() + "03;;1;1;h\n", FREE, r"'region' is blank at my data.asc, line 9.*missing code"),
    "text for a number": (free() + "03;S;1;many;h\n", FREE, r"'turnover'.*my data.asc, line 9 has 'many'"),
    "weight": (free() + "03;S;;1;h\n", FREE, r"my data.asc, line 9: the weight 'weight' is missing.*WGT\(0\)"),
    "too few entries": (free() + "03;S;1\n", FREE, r"my data.asc, line 9: there are 3 entries, but 5 variables"),
    "no such variable": (free(), FREE.replace("turnover", "sales"), r"no variable 'turnover'"),
    "no response": (free(), FREE.replace("  <NUMERIC>\n", ""), r"'turnover' cannot be added up.*<NUMERIC>"),
    "no dimension": (
        free(),
        FREE.replace("region 6\n  <RECODEABLE>", "region 6"),
        r"'region' cannot span.*<RECODEABLE>",
    ),
    "no hierarchy": (free(), FREE.replace("act.hrc", "actt.hrc"), r"no file .*actt.hrc.*did you mean 'act.hrc'"),
    "no weight": (free(), FREE.replace("<WEIGHT>", "<NUMERIC>"), r"WGT\(1\).*marks no variable as <WEIGHT>"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_names_both_files_the_line_and_the_remedy(tmp_path: Path, mistake: str) -> None:
    data, meta, message = MISTAKES[mistake]
    with pytest.raises(ts.TablesafeError, match=rf"(?s)job.arb, line \d, <[A-Z]+>: .*{message}") as raised:
        run(tmp_path, data, meta, rules="P(10,1)|WGT(1)")
    assert "Hint: " in str(raised.value)


def test_a_line_missing_in_the_hierarchy_is_named(tmp_path: Path) -> None:
    run(tmp_path, free(), FREE)
    (tmp_path / "act.hrc").write_text(HRC.replace("@02.10\n", ""), encoding="utf-8")
    with pytest.raises(
        ts.TablesafeError, match=r"(?s)Code '02.10' of 'act' at my data.asc, line 4.*add a line .*act.hrc"
    ):
        ts.run(tmp_path / "job.arb")
    (tmp_path / "act.hrc").write_text("@@" + HRC, encoding="utf-8")
    with pytest.raises(ts.TablesafeError, match=r"(?s)act.hrc, line 1 skips a level"):
        ts.run(tmp_path / "job.arb")


@pytest.mark.parametrize("lost", ["my data.asc", "my data.rda"])
def test_a_file_that_is_not_there_is_named_with_its_line(tmp_path: Path, lost: str) -> None:
    run(tmp_path, free(), FREE)
    (tmp_path / lost).rename(tmp_path / "my dta")
    with pytest.raises(ts.TablesafeError, match=r"(?s)job.arb, line [12].*There is no file .*Hint: "):
        ts.run(tmp_path / "job.arb")
