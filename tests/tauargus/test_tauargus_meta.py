"""τ-ARGUS metadata: every sample reads and round-trips; every mistake is named with its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from tablesafe.core.errors import InvalidFile
from tablesafe.tauargus.codes import read_code_list, write_code_list
from tablesafe.tauargus.metadata import CellKey, Kind, Role, find_beside, read_metadata, write_metadata

SAMPLES = [
    "batch/ex1/metadata_ex1.rda", "batch/ex2/metadata_ex2.rda", "cellkey/microdata.rda",
    "enterprise/example_enterprise.rda", "tableinput/pp.rda", "testW/Tau_TestW.rda",
]  # fmt: skip


def write(folder: Path, text: str, name: str = "meta.rda") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("name", SAMPLES)
def test_every_sample_reads_and_round_trips(instances: Path, tmp_path: Path, name: str) -> None:
    metadata = read_metadata(instances / "tauargus" / name)
    assert metadata.dimensions
    assert metadata.kind == ("table" if "ex1" in name or "pp" in name else "micro")
    write_metadata(metadata, tmp_path / "copy.rda")
    assert read_metadata(tmp_path / "copy.rda") == metadata


def test_a_fixed_format_sample_says_what_it_says(instances: Path) -> None:
    metadata = read_metadata(instances / "tauargus" / "testW" / "Tau_TestW.rda")
    industry = metadata.variable("industrycode")
    assert (industry.start, industry.width, industry.missing) == (4, 5, ("99999",))
    assert industry.levels == (3, 1, 1, 0, 0)
    assert metadata.variable("Request").request == ("1", "2")
    assert metadata.variable("Wgt").role is Role.WEIGHT
    assert [variable.name for variable in metadata.responses] == [f"Var{i}" for i in range(1, 9)]
    region = metadata.variable("Region")
    assert (region.hierarchy_file, region.indent, region.distance) == ("region2.hrc", "@", (2, 4, 4, 4, 4))


def test_the_cell_key_keywords_are_kept(instances: Path) -> None:
    metadata = read_metadata(instances / "tauargus" / "cellkey" / "microdata.rda")
    assert metadata.variable("Savings").cell_key == CellKey(
        method="T", top=3, separation=True, scaling="F", parameters=(0.03, 0.30, 1000.0, 3.0, 0.5, 0.2)
    )
    assert metadata.variable("HighIncome").cell_key == CellKey()
    assert metadata.variable("Key").role is Role.RECORD_KEY
    assert metadata.variable("Key").perturbation["continuous"] == "ptab_savings_all.txt"


def test_a_path_of_another_machine_is_found_beside_the_metadata(instances: Path) -> None:
    metadata = read_metadata(instances / "tauargus" / "enterprise" / "example_enterprise.rda")
    for name in ("act", "region", "mun"):
        variable = metadata.variable(name)
        assert variable.hierarchy_file is not None
        assert variable.hierarchy_file.startswith("\\\\File1")
        found = metadata.file(variable.hierarchy_file, variable.line)
        assert found.parent == metadata.path.parent
        assert found.is_file()


def test_files_beside_are_found_in_any_case(tmp_path: Path) -> None:
    (tmp_path / "Nace.HRC").write_text("A\n")
    rda = tmp_path / "meta.rda"
    for spelling in ("nace.hrc", "NACE.HRC", r"C:\data\nace.hrc", r"..\other\NACE.hrc", "/home/else/nace.hrc"):
        assert find_beside(spelling, rda).name.lower() == "nace.hrc"
    with pytest.raises(InvalidFile, match=r"(?s)no file 'nacee.hrc' \(meta.rda, line 7\).*did you mean 'Nace.HRC'"):
        find_beside("nacee.hrc", rda, 7)


def test_keywords_in_any_case_quotes_spaces_and_windows_text(tmp_path: Path) -> None:
    path = tmp_path / "meta.rda"
    text = (
        '<separator> ","\r\n"size class" 6 "9 9"\r\n  <recodable>\r\n\t<TotCode> "alle Größen"\r\n'
        "Einkünfte 8\r\n <NUMERIC> <DECIMALS> 2\r\nact 5\r\n<RECODEABLE> <HIERARCHICAL>\r\n"
        "<HIERCODELIST> C:\\My Files\\nace v2.hrc\r\n<HIERLEADSTRING> @\r\n\x1a"
    )
    path.write_bytes(text.encode("cp1252"))
    metadata = read_metadata(path)
    size, income, activity = metadata.variables
    assert (size.name, size.missing, size.total, size.role) == ("size class", ("9 9",), "alle Größen", Role.DIMENSION)
    assert (income.name, income.decimals, income.role) == ("Einkünfte", 2, Role.RESPONSE)
    assert (activity.hierarchy_file, activity.indent) == (r"C:\My Files\nace v2.hrc", "@")


def test_a_variable_can_be_a_dimension_and_a_response(tmp_path: Path) -> None:
    path = write(tmp_path, "employees 1 3\n  <RECODEABLE>\n  <NUMERIC>\nweight 4 2\n  <NUMERIC>\n  <WEIGHT>\n")
    employees, weight = read_metadata(path).variables
    assert employees.is_dimension
    assert employees.is_response
    assert weight.role is Role.WEIGHT


MISTAKES: dict[str, tuple[str, Kind | None, str]] = {
    "empty": ("", None, "meta.rda is empty"),
    "unknown keyword": (
        "a 1 2\n <RECODEABEL>\n",
        None,
        "(?s)line 2.*no keyword <RECODEABEL>.*did you mean 'RECODEABLE'",
    ),
    "before a variable": (" <RECODEABLE>\na 1 2\n", None, "line 1: <RECODEABLE> stands before the first variable"),
    "no width": ("a 1\n <RECODEABLE>\n", "micro", "line 1: variable 'a' should be declared as 'name start width"),
    "text as start": ("a one 2\n <RECODEABLE>\n", "micro", "line 1: variable 'a' should be declared"),
    "zero width": ("a 1 0\n <RECODEABLE>\n", "micro", "line 1: variable 'a' should be declared"),
    "declared twice": ("a 1 2\nA 3 2\n", "micro", "line 2: variable 'A' was declared on line 1"),
    "no hierarchy": ("a 1 2\n <RECODEABLE>\n <HIERARCHICAL>\n", None, "(?s)line 1: 'a' is hierarchical.*HIERCODELIST"),
    "levels": ("a 1 5\n <HIERLEVELS> 3 1\n", None, "line 1: the levels of 'a' have 4 digits, but it is 5 wide"),
    "levels as text": (
        "a 1 5\n <HIERLEVELS> three\n",
        None,
        "line 2: <HIERLEVELS> should be followed by whole numbers",
    ),
    "decimals": ("a 1 5\n <DECIMALS> two\n", None, "line 2: <DECIMALS> should be followed by whole numbers"),
    "many decimals": ("a 1 5\n <DECIMALS> 99\n", None, "line 2: 99 decimals"),
    "no total code": ("a 1 5\n <TOTCODE>\n", None, "line 2: <TOTCODE> should be followed by one entry"),
    "long separator": ('<SEPARATOR> "ab"\na 1\n', "micro", "line 1: the separator 'ab' is not one character"),
    "late separator": ('a 1 2\n<SEPARATOR> ","\n', "micro", "line 2: <SEPARATOR> stands after the first variable"),
    "open quote": ('a 1 2 "99\n', None, "line 1: cannot read"),
    "open bracket": ("a 1 2\n <RECODEABLE\n", None, "line 2: cannot read"),
    "two weights": ("a 1 2\n <WEIGHT>\nb 3 2\n <WEIGHT>\n", None, "line 3: 'b' is a second weight"),
    "a table's keyword": ("a 1 2\n <STATUS>\n", "micro", "(?s)line 2: <STATUS> belongs to the metadata of a table"),
    "microdata's keyword": ("a\n <HOLDING>\n", "table", "line 2: <HOLDING> belongs to the metadata of microdata"),
    "SPSS": ("<SPSS>\na 1 2\n", None, "line 1: SPSS system files are not read"),
    "no variable": ('<SEPARATOR> ","\n', None, "declares no variable"),
    "cell key": ("a 1 2\n <NUMERIC>\n <CKM> Q\n", None, "line 3: <CKM> Q is unknown"),
    "cell key parameters": ("a 1 2\n <CKM> T(x)\n", None, "line 2: cannot read 'T\\(X\\)' after <CKM>"),
    "scaling": ("a 1 2\n <SCALING> Z(1)\n", None, "line 2: <SCALING> Z is unknown"),
    "switch": ("a 1 2\n <PARITY> maybe\n", None, "line 2: <PARITY> is followed by 'MAYBE'"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_named_with_its_line(tmp_path: Path, mistake: str) -> None:
    text, kind, message = MISTAKES[mistake]
    with pytest.raises(InvalidFile, match=message):
        read_metadata(write(tmp_path, text), kind=kind)


def test_a_variable_that_is_not_there_gets_a_hint(tmp_path: Path) -> None:
    metadata = read_metadata(write(tmp_path, "turnover 1 8\n <NUMERIC>\n"))
    with pytest.raises(InvalidFile, match=r"(?s)no variable 'turnver'.*did you mean 'turnover'"):
        metadata.variable("turnver")


@pytest.mark.parametrize("name", ["testW/GK.CDL", "testW/region.cdl", "tableinput/region.cdl"])
def test_code_lists_read_and_round_trip(instances: Path, tmp_path: Path, name: str) -> None:
    labels = read_code_list(instances / "tauargus" / name)
    assert all(labels.values())
    write_code_list(labels, tmp_path / "copy.cdl")
    assert read_code_list(tmp_path / "copy.cdl") == labels


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("1,one\nno comma\n", "line 2.*not 'code,label'"),
        ("1,a\n1,b\n", "line 2.*has a label already"),
    ],
)
def test_a_damaged_code_list_is_named_with_its_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InvalidFile, match=message):
        read_code_list(write(tmp_path, text, "labels.cdl"))
