"""CKM and WRITETABLE type 7: the cell key method as the metadata of τ-ARGUS describe it."""

from __future__ import annotations

import csv
import shutil
import stat
from collections import Counter
from pathlib import Path

import pytest

import tablesafe as ts
from tablesafe.batch_jobs import BatchResult
from tablesafe.methods import CellKey

HEAD = '<OPENMICRODATA> "microdata.csv"\n<OPENMETADATA> "microdata.rda"\n'
COUNTS = HEAD + '<SPECIFYTABLE> "Sex""Age"|<freq>||\n<SPECIFYTABLE> "Age"|<freq>||\n<READMICRODATA>\n'


@pytest.fixture
def folder(tmp_path: Path, instances: Path) -> Path:
    for file in (instances / "tauargus" / "cellkey").iterdir():
        shutil.copyfile(file, tmp_path / file.name)
    return tmp_path


def run(folder: Path, text: str) -> BatchResult:
    (folder / "j.arb").write_text(text, encoding="utf-8")
    found = ts.run(folder / "j.arb")
    assert isinstance(found, BatchResult)
    return found


def rows(path: Path) -> dict[tuple[str, ...], list[int]]:
    """The lines of a file of type 7 with the original value and the difference, by codes."""
    lines = csv.reader(path.read_text(encoding="utf-8").splitlines(), delimiter=";")
    return {tuple(line[:-3]): [int(entry) for entry in line[-3:]] for line in lines}


def test_counts_get_the_noise_that_the_perturbation_table_has_for_their_keys(folder: Path) -> None:
    text = COUNTS + '<SUPPRESS> CKM(1)\n<WRITETABLE> (1,7,AO+AD+AC+,"office.txt")\n<WRITETABLE> (1,7,,"public.txt")\n'
    result = run(folder, text)
    assert isinstance(result.results[0].job.method, CellKey)
    records = [line.split(";") for line in (folder / "microdata.csv").read_text(encoding="utf-8").splitlines()]
    counts = Counter((record[0], record[1]) for record in records)
    keys: Counter[tuple[str, str]] = Counter()
    for record in records:
        keys[record[0], record[1]] += round(float(record[5]) * 10**8)
    drawn = list(csv.DictReader((folder / "ptab_freq.txt").read_text(encoding="utf-8").splitlines(), delimiter=";"))
    largest = max(int(row["i"]) for row in drawn)
    found = rows(folder / "office.txt")
    for cell, count in counts.items():
        published, original, difference = found[cell]
        key = keys[cell] % 10**8 / 10**8
        own = [row for row in drawn if int(row["i"]) == min(count, largest)]
        assert original == count
        assert difference == next(int(row["v"]) for row in own if key < float(row["p_int_ub"]))
        assert published == original + difference
    public = list(csv.reader((folder / "public.txt").read_text(encoding="utf-8").splitlines(), delimiter=";"))
    assert {tuple(line[:-1]): int(line[-1]) for line in public} == {cell: row[0] for cell, row in found.items()}


def test_originals_stay_in_the_office(folder: Path) -> None:
    text = COUNTS + '<SUPPRESS> CKM(1)\n<WRITETABLE> (1,7,AO+AC+,"office.txt")\n<WRITETABLE> (1,7,,"public.txt")\n'
    result = run(folder, text)
    assert stat.S_IMODE((folder / "office.txt").stat().st_mode) == 0o600
    assert stat.S_IMODE((folder / "public.txt").stat().st_mode) != 0o600
    warned = "\n".join(result.warnings)
    assert "office.txt holds true values" in warned
    assert "keys of its cells; they are not written" in warned
    assert "public.txt" not in warned


def test_equal_cells_of_all_tables_get_equal_noise(folder: Path) -> None:
    result = run(folder, COUNTS + "<SUPPRESS> CKM(0)\n")
    one, two = (each.release for each in result.results)
    for code in ("A1", "3", "6", "Total"):
        assert one.values[one.table.index(Age=code)] == two.values[two.table.index(Age=code)]
    assert any("has no CKM(0)" in warning for warning in result.warnings)


def test_noise_that_changes_nothing_is_noise_all_the_same(folder: Path) -> None:
    (folder / "ptab_freq.txt").write_text("i;j;p;v;p_int_ub\n0;0;1;0;1\n1;1;1;0;1\n", encoding="utf-8")
    run(folder, COUNTS + '<SUPPRESS> CKM(1)\n<WRITETABLE> (1,7,AO+AD+,"office.txt")\n')
    assert all(difference == 0 for _, _, difference in rows(folder / "office.txt").values())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (COUNTS.replace("<freq>||\n<S", '"HighIncome"||\n<S') + "<SUPPRESS> CKM(1)", r"'HighIncome' has no noise"),
        (COUNTS.replace("<freq>||\n<S", '"Savings"||\n<S') + "<SUPPRESS> CKM(1)", r"no file 'ptab_savings_all.txt'"),
        (COUNTS.replace("<READ", "<SAFETYRULE> FREQ(3,1)|WGT(1)\n<READ") + "<SUPPRESS> CKM(2)", r"WGT\(1\) weights"),
        (COUNTS + "<SUPPRESS> CKM(1,5)", r"line 6: <SUPPRESS>: CKM has 2 parameters, not 1"),
        (COUNTS + '<WRITETABLE> (1,7,,"a.txt")', r"(?s)line 6: <WRITETABLE>: type 7 .*put <SUPPRESS> CKM\(1\) before"),
        (COUNTS + '<SUPPRESS> RND(1,5)\n<WRITETABLE> (1,7,,"a.txt")', r"table 1 is not protected by it"),
        (COUNTS + '<SUPPRESS> CKM(1)\n<WRITETABLE> (1,5,,"a.tab")', r"line 7: <WRITETABLE>: type 5 .* by CKM"),
    ],
)
def test_what_cannot_be_done_is_said(folder: Path, text: str, message: str) -> None:
    with pytest.raises(ts.TablesafeError, match=message):
        run(folder, text)
    assert not (folder / "internal").exists()


def test_a_finished_table_has_no_keys(tmp_path: Path) -> None:
    text = '<OPENTABLEDATA> "t.tab"\n<SPECIFYTABLE> "a"|"v"\n<READTABLE>\n<SUPPRESS> CKM(1)\n'
    with pytest.raises(
        ts.TablesafeError, match=r"(?s)line 4: <SUPPRESS>: CKM needs the keys of records.*<OPENMICRODATA>"
    ):
        run(tmp_path, text)
