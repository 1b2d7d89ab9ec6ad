"""τ-ARGUS microdata: the samples load as they are, and tabulated they give the tables that τ-ARGUS printed."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from tablesafe.core.errors import InvalidFile, InvalidHierarchy, InvalidTable
from tablesafe.core.hierarchy import Hierarchy
from tablesafe.core.problem import Problem
from tablesafe.core.table import Table
from tablesafe.io.frames import read_frame
from tablesafe.rules.linear import PPercent
from tablesafe.tabulate import tabulate
from tablesafe.tauargus.codes import hierarchy_of, read_code_list, with_codes
from tablesafe.tauargus.metadata import Metadata, Role, Variable, read_metadata
from tablesafe.tauargus.microdata import NUMBER, read_microdata
from tablesafe.tauargus.table import read_code_value


def assert_equal_to_printed(table: Table, printed: pl.DataFrame) -> None:
    """Every printed value is that of our cell, and every cell that is not printed empty is ours."""
    shown = printed.filter(pl.col("value").is_not_null())
    for row in shown.iter_rows(named=True):
        codes = {name: row[name] for name in table.dimensions}
        assert table.value[table.index(**codes)] == pytest.approx(row["value"], abs=0.005), codes
    assert len(printed.filter(pl.col("status") != "14")) == len(shown)


def cells_of_status(table: Table, printed: pl.DataFrame, status: str) -> set[int]:
    rows = printed.filter(pl.col("status") == status).select(list(table.dimensions))
    return {table.index(**row) for row in rows.iter_rows(named=True)}


def test_size_by_region_of_the_test_data_is_what_tau_argus_printed(instances: Path) -> None:
    folder = instances / "tauargus" / "testW"
    data = read_microdata(folder / "tau_testW.asc", dimensions=["Size", "Region"])
    assert data.frame.height == 42_723
    assert data.weight == "Wgt"
    table = tabulate(data.frame, dimensions=data.dimensions, value="Var2", largest=2)
    printed = read_code_value(folder / "expected_Simple2D" / "Simple2D.txt", dimensions=["Size", "Region"])
    assert printed.height == 162
    assert_equal_to_printed(table, printed)
    empty = printed.filter(pl.col("status") == "14")
    assert len(table) == printed.height - empty.height
    problem = Problem(table, [PPercent(p=15)])
    assert set(problem.sensitive.tolist()) == cells_of_status(table, printed, "3")


def test_activity_by_product_of_the_enterprises_is_what_tau_argus_printed(instances: Path) -> None:
    folder = instances / "tauargus" / "enterprise"
    data = read_microdata(folder / "example_enterprise.asc", dimensions=["act", "product"])
    assert data.frame.height == 8_169
    assert data.holding == "h_id"
    assert data.frame["h_id"].n_unique() == 5_100
    table = tabulate(data.frame, dimensions=data.dimensions, value="turnover", holding=data.holding, largest=2)
    printed = read_code_value(folder / "expected_test_1.txt", dimensions=["act", "product"])
    assert_equal_to_printed(table, printed)
    sensitive = set(Problem(table, [PPercent(p=10)]).sensitive.tolist())
    missing = {cell for cell in sensitive if table.cells()["act"][cell] == "00"}
    assert sensitive - missing == cells_of_status(table, printed, "3"), "missing = safe was asked of τ-ARGUS"


def test_all_samples_load_with_all_their_hierarchies(instances: Path) -> None:
    folder = (instances / "tauargus" / "testW").parent
    data = read_microdata(folder / "testW" / "tau_testW.asc")
    assert set(data.dimensions) == {"Year", "IndustryCode", "Size", "Region"}
    assert data.dimensions["Region"].labels["Nr"] == "North"
    assert data.dimensions["Region"].total == "Total"
    with pytest.warns(UserWarning, match="two groups are called '11'"):
        data = read_microdata(folder / "enterprise" / "example_enterprise.asc")
    assert set(data.dimensions) == {"act", "product", "region", "mun"}
    data = read_microdata(folder / "batch/ex2/microdata_ex2.asc", folder / "batch/ex2/metadata_ex2.rda")
    assert data.frame.shape == (100, 6)
    assert data.frame["num1"][0] == 77.38
    assert data.frame["gender"].unique().sort().to_list() == ["  male", "female"]
    data = read_microdata(folder / "cellkey" / "microdata.csv")
    assert data.frame.height == 4_580
    assert data.frame["Key"].is_between(0, 1).all()
    assert data.frame.null_count().sum_horizontal()[0] == 0


def test_the_digits_of_industry_codes_are_its_levels(instances: Path) -> None:
    data = read_microdata(instances / "tauargus" / "testW" / "tau_testW.asc", dimensions=["IndustryCode"])
    tree = data.dimensions["IndustryCode"]
    assert tree.is_tree
    assert "99999" in tree.leaves
    for equation in tree.as_equations():
        if equation.total != "Total":
            assert all(part.startswith(equation.total) for part in equation.parts), str(equation)


def write(folder: Path, meta: str, data: str, name: str = "data") -> Path:
    (folder / f"{name}.rda").write_text(meta, encoding="utf-8")
    path = folder / f"{name}.asc"
    path.write_text(data, encoding="utf-8")
    return path


FREE = '<SEPARATOR> ";"\nregion 3 99\n <RECODEABLE>\nturnover 8 -9\n <NUMERIC>\nwho 4\n <HOLDING>\n'


def test_missing_codes_decimal_commas_and_quotes(tmp_path: Path) -> None:
    path = write(tmp_path, FREE, '"N";1,5;a\n S ;-9;b\n99;2,25;a\n"N";;c;\n')
    data = read_microdata(path)
    assert data.frame["region"].to_list() == ["N", "S", "99", "N"]
    assert data.frame["turnover"].to_list() == [1.5, None, 2.25, None]
    assert data.frame["who"].to_list() == ["a", "b", "a", "c"]
    assert data.dimensions["region"].codes == ("Total", "N", "S", "99")


def test_a_missing_code_hangs_under_the_total_only(tmp_path: Path) -> None:
    (tmp_path / "r.hrc").write_text("N\n@N1\n@N2\nS\n@S1\n")
    metadata = Metadata(variables=(), path=tmp_path / "data.rda")
    variable = Variable(
        name="r", role=Role.DIMENSION, missing=("99",), hierarchical=True, hierarchy_file="r.hrc", indent="@"
    )
    tree = hierarchy_of(variable, metadata, [])
    assert [str(equation) for equation in tree.as_equations()] == ["Total = N + S + 99", "N = N1 + N2"]
    assert tree.aliases == {"S1": "S"}, "a group of one is its only member"


def test_further_codes_leave_a_total_of_one_part_a_level_of_its_own() -> None:
    tree = Hierarchy.from_pairs([("Total", "A"), ("A", "a1"), ("A", "a2")])
    assert tree.aliases == {"A": "Total"}
    wider = with_codes(tree, ["99"], "Total")
    assert [str(equation) for equation in wider.as_equations()] == ["Total = A + 99", "A = a1 + a2"]


def test_a_variable_that_is_dimension_and_response_is_there_twice(tmp_path: Path) -> None:
    path = write(tmp_path, "n 1 2\n <RECODEABLE>\n <NUMERIC>\nv 3 3\n <NUMERIC>\n", " 1 10\n 2 20\n10  7\n")
    data = read_microdata(path)
    assert data.frame["n"].to_list() == ["1", "2", "10"]
    assert data.frame[data.response("n")].to_list() == [1, 2, 10]
    assert data.response("n") == "n" + NUMBER
    assert data.frame[data.response("V")].to_list() == [10, 20, 7]
    assert data.dimensions["n"].codes == ("Total", "1", "2", "10"), "ordered as padded codes"


def test_a_record_cut_short_has_blanks_at_its_end(tmp_path: Path) -> None:
    path = write(tmp_path, "r 1 1\n <RECODEABLE>\nv 2 5\n <NUMERIC>\nw 7 5\n <NUMERIC>\n", "N   10    1\nS   20\n")
    assert read_microdata(path).frame["w"].to_list() == [1, None]


MISTAKES = {
    "empty": (FREE, "", InvalidFile, "data.asc is empty"),
    "blank line": (FREE, "N;1;a\n\nS;2;b\n", InvalidFile, "line 2: the line is empty"),
    "too few entries": (FREE, "N;1;a\nS;2\n", InvalidFile, "line 2: there are 2 entries, but 3 variables"),
    "too many entries": (FREE, "N;1;a\nS;2;b;c\n", InvalidFile, "line 2: there are 4 entries"),
    "another delimiter": (FREE, "N,1,a\n", InvalidFile, "line 1: there is 1 entry, but 3 variables"),
    "open quote": (FREE, 'N;1;a\n"S;2;b\n', InvalidFile, "line 2: a quote is not closed"),
    "text in a number": (FREE, "N;1;a\nS;two;b\n", InvalidTable, "'turnover' should hold numbers.*line 2 has 'two'"),
    "not a number": (FREE, "N;nan;a\nS;2;b\n", InvalidTable, "line 1"),
    "infinite": (FREE, "N;inf;a\nS;2;b\n", InvalidTable, "infinite.*line 1"),
    "huge": (FREE, "N;1e300;a\nS;2;b\n", InvalidTable, "too large.*line 1"),
    "no hierarchy file": (
        FREE.replace("<RECODEABLE>", '<RECODEABLE> <HIERARCHICAL> <HIERCODELIST> "gone.hrc"'),
        "N;1;a\n", InvalidFile, r"no file 'gone.hrc' \(data.rda, line 2\)",
    ),
    "no metadata": (None, "N;1;a\n", InvalidFile, "no data.rda beside data.asc"),
}  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_named_with_its_line(tmp_path: Path, mistake: str) -> None:
    meta, data, error, message = MISTAKES[mistake]
    path = write(tmp_path, meta or "", data)
    if meta is None:
        (tmp_path / "data.rda").unlink()
    with pytest.raises(error, match="(?s)" + message):
        read_microdata(path)


def test_a_code_that_the_hierarchy_does_not_know_is_named_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "r.hrc").write_text("N1\nN2\n")
    meta = FREE.replace("<RECODEABLE>", '<RECODEABLE> <HIERARCHICAL> <HIERCODELIST> "r.hrc" <HIERLEADSTRING> "@"')
    path = write(tmp_path, meta, "N1;1;a\nN3;2;b\n")
    with pytest.raises(InvalidHierarchy, match=r"Code 'N3' of 'region' at data.asc, line 2 is not in r.hrc"):
        read_microdata(path)


def test_only_dimensions_and_responses_are_given_as_such(tmp_path: Path) -> None:
    path = write(tmp_path, FREE, "N;1;a\n")
    with pytest.raises(InvalidFile, match=r"'turnover' is no dimension: data.rda calls it response"):
        read_microdata(path, dimensions=["turnover"])
    with pytest.raises(InvalidFile, match="'who' is no response variable"):
        read_microdata(path).response("who")
    with pytest.raises(InvalidFile, match="no variable 'regio'"):
        read_microdata(path, dimensions=["regio"])


def test_metadata_may_be_given_in_any_form(tmp_path: Path) -> None:
    path = write(tmp_path, FREE, "N;1;a\nS;2;b\n")
    by_path = read_microdata(path, tmp_path / "data.rda")
    by_object = read_microdata(path, read_metadata(tmp_path / "data.rda", kind="micro"))
    assert by_path.frame.equals(by_object.frame)
    assert np.isclose(by_path.frame["turnover"].sum(), 3)


def test_every_sample_file_loads_as_it_is(instances: Path) -> None:
    """Hierarchies, labels, metadata, tables of probabilities: whatever τ-ARGUS comes with."""
    folder = (instances / "tauargus" / "testW").parent
    readers = {
        ".hrc": Hierarchy.from_hrc,
        ".cdl": read_code_list,
        ".rda": read_metadata,
        ".txt": lambda path: read_frame(path) if path.name.startswith("ptab") else read_code_value(path),
        ".csv": lambda path: read_microdata(path),
    }
    loaded = dict.fromkeys(readers, 0)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "NUTS.hrc: two groups")
        for path in sorted(folder.rglob("*.*")):
            if path.suffix.lower() in readers:
                assert readers[path.suffix.lower()](path) is not None
                loaded[path.suffix.lower()] += 1
    assert loaded == {".hrc": 12, ".cdl": 3, ".rda": 6, ".txt": 3, ".csv": 1}
