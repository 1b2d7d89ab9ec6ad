"""SDMX, PX and JSON-stat: there and back, by other readers too, and errors that name the place."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import tablesafe as ts
from tablesafe.core.errors import InvalidFile, InvalidOption
from tablesafe.io.dataset import Dataset
from tablesafe.io.formats import format_of, read_dataset, write_formatted
from tablesafe.io.jsonstat import read_jsonstat, write_jsonstat
from tablesafe.io.px import px_text, read_px, write_px
from tablesafe.io.sdmx import read_sdmx, sdmx_csv, write_sdmx
from tablesafe.job.load import parse_job
from tablesafe.pipeline.tables import build_table


def _problem() -> ts.Problem:
    regions = ts.Hierarchy.from_pairs(
        [("Total", "N"), ("Total", "S"), ("N", "N1"), ("N", "N2"), ("S", "S1"), ("S", "S2")]
    )
    reported = {
        ("N1", "small"): (50.0, 3.0), ("N1", "large"): (40.5, 30.0, 35.0), ("N2", "small"): (10.0, 11.0, 9.0),
        ("N2", "large"): (100.0,), ("S1", "small"): (20.0, 22.0, 21.0), ("S1", "large"): (60.0, 61.0, 62.0),
        ("S2", "small"): (8.0, 9.0, 7.0), ("S2", "large"): (70.0, 71.0, 72.0),
    }  # fmt: skip
    rows = [(r, s, f"{r}{s}{i}", amount) for (r, s), own in reported.items() for i, amount in enumerate(own)]
    records = pl.DataFrame(rows, schema=["region", "size", "firm", "turnover"], orient="row")
    table = ts.tabulate(records, dimensions={"region": regions, "size": None}, value="turnover", respondent="firm")
    return ts.Problem(table, rules=[ts.Threshold(n=3), ts.PPercent(p=10)])


@pytest.fixture(scope="module")
def protected() -> tuple[ts.Problem, ts.Release]:
    problem = _problem()
    return problem, ts.protect(problem, ts.Suppress(time_limit_s=5))


def _values(frame: pl.DataFrame, value: str) -> dict[tuple[str, str], float | None]:
    return {(row["region"], row["size"]): row[value] for row in frame.iter_rows(named=True)}


FORMATS = [(write_px, read_px, "t.px"), (write_jsonstat, read_jsonstat, "t.json"), (write_sdmx, read_sdmx, "t.csv")]


@pytest.mark.parametrize(("write", "read", "name"), FORMATS, ids=["px", "json-stat", "sdmx-csv"])
def test_a_release_comes_back_as_it_was(write, read, name, protected, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    _, release = protected
    dataset = Dataset.of_release(release)
    write(dataset, tmp_path / name)
    back = read(tmp_path / name)
    assert _values(back.rows.frame, back.value) == _values(dataset.rows.frame, dataset.value)
    assert back.hidden().sum() == release.suppressed.sum() > 0
    written = (tmp_path / name).read_bytes()
    write(Dataset.of_release(release), tmp_path / "again")  # equal releases, equal files
    assert (tmp_path / "again").read_bytes() == written


@pytest.mark.parametrize(("write", "read", "name"), FORMATS[:2], ids=["px", "json-stat"])
def test_hierarchies_travel_along(write, read, name, protected, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    problem, _ = protected
    everything = ts.protect(problem, ts.PublishAll())
    write(Dataset.of_release(everything), tmp_path / name)
    table = read(tmp_path / name).table()
    assert len(table) == len(problem.table)
    assert table.equations.shape == problem.table.equations.shape
    assert sorted(table.value.tolist()) == sorted(problem.table.value.tolist())


def test_the_public_learns_no_reason_and_no_value(protected) -> None:  # type: ignore[no-untyped-def]
    problem, release = protected
    hidden = [str(v).removesuffix(".0") for v in problem.table.value[release.suppressed]]
    frame = pl.read_csv(sdmx_csv(Dataset.of_release(release)).encode(), infer_schema_length=0)
    assert set(frame["CONF_STATUS"].unique()) == {"F", "C"}
    withheld = frame.filter(pl.col("CONF_STATUS") == "C")
    assert withheld["OBS_VALUE"].is_null().all()
    assert set(withheld["OBS_STATUS"].unique()) == {"Q"}
    assert hidden


def test_those_who_may_know_see_the_reason(protected, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    problem, release = protected
    write_sdmx(release, tmp_path / "eurostat.csv", problem=problem, confidential=True)
    back = read_sdmx(tmp_path / "eurostat.csv")
    letters = back.rows.frame.select("region", "size", "CONF_STATUS", "OBS_VALUE")
    by_cell = {(r, s): c for r, s, c, _ in letters.iter_rows()}
    flagged = problem.sensitivity
    for cell in np.flatnonzero(release.suppressed):
        codes = problem.table.cells().row(int(cell), named=True)
        letter = by_cell[(codes["region"], codes["size"])]
        reasons = [name for j, name in enumerate(flagged.reasons) if int(flagged.reason[cell]) >> j & 1]
        assert letter == ("A" if "threshold" in reasons else "M" if "p%" in reasons else "D")
    assert letters["OBS_VALUE"].is_null().sum() == 0
    with pytest.raises(InvalidOption, match="needs its problem"):
        write_sdmx(release, tmp_path / "no.csv", confidential=True)


def test_flags_of_others_become_primaries(protected, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    problem, release = protected
    write_sdmx(release, tmp_path / "flags.csv", problem=problem, confidential=True)
    data = read_sdmx(tmp_path / "flags.csv")
    table = data.table(dimensions=dict(problem.table.dimensions))
    mask = data.sensitive(table)
    assert mask.sum() == (problem.sensitivity.mask & release.suppressed).sum() > 0
    ours = ts.Problem(table, rules=[ts.Manual(cells=mask, range_percent=10)])
    assert ts.audit(ours, ts.protect(ours, ts.Suppress(time_limit_s=5))).safe


def test_from_records_to_sdmx_with_flags_and_back_to_the_audit(protected, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    """Those who may know get every value with its flag: the same pattern, the same verdict, the same file again."""
    problem, release = protected
    path = tmp_path / "transmission.sdmx.csv"
    write_sdmx(release, path, problem=problem, confidential=True)
    flags = read_sdmx(path)
    theirs = flags.table(dimensions=dict(problem.table.dimensions))
    key = [theirs.describe(i) for i in range(len(theirs))]
    place = np.array([key.index(problem.table.describe(i)) for i in range(len(problem.table))])
    assert theirs.value[place].tolist() == problem.table.value.tolist()
    assert flags.sensitive(theirs)[place].tolist() == problem.sensitivity.mask.tolist()

    at = np.argsort(place)
    levels = ts.Sensitivity.of(flags.sensitive(theirs), problem.sensitivity.lower[at], problem.sensitivity.upper[at])
    received = ts.Problem(theirs, sensitivity=levels)
    pattern = np.zeros(len(theirs), dtype=np.bool_)
    pattern[place] = release.suppressed
    public = tmp_path / "public.sdmx.csv"
    write_sdmx(release, public)
    shown = read_sdmx(public)
    seen = shown.rows.frame.select("region", "size", pl.Series("suppressed", shown.hidden()))
    assert ts.read_pattern(seen, received).tolist() == pattern.tolist()
    again = ts.Release.from_suppression(received, pattern)
    assert ts.audit(received, again).safe == ts.audit(problem, release, insiders=False, unions=False).safe is True
    primaries = ts.Release.from_suppression(received, flags.sensitive(theirs))
    assert not ts.audit(received, primaries).safe, "without the secondary cells"
    second = tmp_path / "again.sdmx.csv"
    write_sdmx(release, second, problem=problem, confidential=True)
    assert second.read_bytes() == path.read_bytes()


def test_pysdmx_reads_what_we_write(protected, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    pysdmx = pytest.importorskip("pysdmx.io", reason="the extra sdmx is not installed")
    _, release = protected
    write_sdmx(release, tmp_path / "r.csv")
    frame = pysdmx.read_sdmx(str(tmp_path / "r.csv"), validate=False).data[0].data
    assert len(frame) == len(release.table)
    assert {"region", "size", "OBS_VALUE", "OBS_STATUS", "CONF_STATUS"} <= set(frame.columns)


@pytest.mark.parametrize("version", ["ml-2.1", "ml-3.0"])
def test_sdmx_ml_there_and_back(version: str, protected, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    pytest.importorskip("pysdmx.io", reason="the extra sdmx is not installed")
    _, release = protected
    write_sdmx(release, tmp_path / "r.xml", version=version)
    back = read_sdmx(tmp_path / "r.xml")
    dataset = Dataset.of_release(release)
    assert _values(back.rows.frame, "OBS_VALUE") == _values(dataset.rows.frame, dataset.value)
    assert back.hidden().sum() == release.suppressed.sum()


def test_labels_keys_signs_and_parts_of_texts_in_px(tmp_path: Path) -> None:
    (tmp_path / "made.px").write_text(
        'CHARSET="ANSI";\nCODEPAGE="utf-8";\nTITLE="A long title "\n"in two parts; with a semicolon";\nUNITS="EUR";\n'
        'STUB="region";\nHEADING="sex";\nVALUES("region")="All","North";\nCODES("region")="0","N";\n'
        'VALUES("sex")="Total","Women","Men";\nELIMINATION("region")="All";\nELIMINATION("sex")="Total";\n'
        'DATA=\n10 4 6\n".." "-" 3.5;\n',
        encoding="utf-8",
    )
    data = read_px(tmp_path / "made.px")
    assert data.title == "A long title in two parts; with a semicolon"
    assert data.totals == {"region": "0", "sex": "Total"}
    assert data.labels["region"] == {"0": "All", "N": "North"}
    assert data.rows.frame["value"].to_list() == [10, 4, 6, None, 0, 3.5]
    assert data.hidden().tolist() == [False, False, False, True, False, False]
    (tmp_path / "keys.px").write_text(
        'STUB="region";HEADING="sex";VALUES("region")="All","North";CODES("region")="0","N";VALUES("sex")="W","M";\n'
        'KEYS("region")=CODES;\nDATA=\n"N",4 6\n;\n',
        encoding="utf-8",
    )
    assert read_px(tmp_path / "keys.px").rows.frame.rows() == [("N", "W", 4.0, None), ("N", "M", 6.0, None)]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('STUB="a";VALUES("a")="x","y";DATA=\n1 2 3;', "3 values, but 2"),
        ('STUB="a";VALUES("a")="x","y";DATA=\n1 oh;', "'oh'"),
        ('STUB="a";VALUES("a")="x","x";DATA=\n1 2;', "twice"),
        ('STUB="a";DATA=\n1;', "no VALUES"),
        ('STUB="a"\nVALUES("a")="x"', "does not end"),
        ("region;value\nN;1\n", "no keyword"),
        ('STUB="a";VALUES("a")="x";', "no DATA"),
    ],
)
def test_a_bad_px_file_is_refused_by_name(text: str, says: str, tmp_path: Path) -> None:
    (tmp_path / "bad.px").write_text(text)
    with pytest.raises(InvalidFile, match=r"bad\.px") as error:
        read_px(tmp_path / "bad.px")
    assert says in str(error.value)
    assert "Hint" in str(error.value)


@pytest.mark.parametrize(
    ("document", "says"),
    [
        ({"class": "dataset"}, "no dataset"),
        ({"id": ["a"], "size": [2], "dimension": {"a": {"category": {"index": ["x"]}}}, "value": [1, 2]}, "codes"),
        ({"id": ["a"], "dimension": {"a": {"category": {"index": ["x"]}}}, "value": [1, 2]}, "2 entries"),
        ({"id": ["a"], "dimension": {"a": {"category": {}}}, "value": [1]}, "no codes"),
        ({"id": ["a"], "dimension": {"a": {"category": {"index": ["x"]}}}, "value": ["one"]}, "no number"),
        ({"id": ["a"], "dimension": {"a": {"category": {"index": ["x"]}}}, "value": {"7": 1}}, "'7'"),
        ({"id": ["a"], "dimension": {}, "value": [1]}, "does not describe"),
    ],
)
def test_a_bad_json_stat_file_is_refused_by_name(document: object, says: str, tmp_path: Path) -> None:
    (tmp_path / "bad.json").write_text(json.dumps(document))
    with pytest.raises(InvalidFile, match=r"bad\.json") as error:
        read_jsonstat(tmp_path / "bad.json")
    assert says in str(error.value)


def test_json_stat_with_positions_and_one_status(tmp_path: Path) -> None:
    (tmp_path / "s.json").write_text(
        json.dumps(
            {
                "class": "dataset", "id": ["a", "b"], "size": [2, 2], "value": {"0": 1, "3": 4.5}, "status": {"2": "c"},
                "dimension": {
                    "a": {"category": {"index": {"y": 1, "x": 0}, "label": {"x": "Ex", "y": "Why"}}},
                    "b": {"category": {"index": ["u", "v"]}},
                },
            }
        )
    )  # fmt: skip
    data = read_jsonstat(tmp_path / "s.json")
    assert data.rows.frame.rows() == [("x", "u", 1.0, None), ("y", "u", None, "c"), ("y", "v", 4.5, None)]
    assert data.hidden().tolist() == [False, True, False]


def test_sdmx_csv_with_labels_and_of_version_1(tmp_path: Path) -> None:
    (tmp_path / "l.csv").write_text(
        "DATAFLOW,FREQ: Frequency,REF_AREA: Area,OBS_VALUE: Value,CONF_STATUS: Confidentiality\n"
        "X:Y(1.0),A: Annual,DE: Germany,5,F: Free\nX:Y(1.0),A: Annual,FR: France,,C: Confidential\n"
    )
    data = read_sdmx(tmp_path / "l.csv")
    assert list(data.dimensions) == ["FREQ", "REF_AREA"]
    assert data.labels["REF_AREA"] == {"DE": "Germany", "FR": "France"}
    assert data.hidden().tolist() == [False, True]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("REF_AREA,VALUE\nDE,1\n", "no column OBS_VALUE"),
        ("OBS_VALUE,REF_AREA\n1,DE\n", "no dimensions"),
        ("STRUCTURE,STRUCTURE_ID,ACTION,A,OBS_VALUE\nd,X:Y(1),D,x,1\n", "line 2"),
        ("DATAFLOW,A,OBS_VALUE\nX:Y(1),x,1\nX:Z(1),x,1\n", "several datasets"),
        ("DATAFLOW,A,OBS_VALUE\nX:Y(1),x,one\n", "line 2"),
    ],
)
def test_a_bad_sdmx_file_is_refused_by_name(text: str, says: str, tmp_path: Path) -> None:
    (tmp_path / "bad.csv").write_text(text)
    with pytest.raises(ts.TablesafeError, match=r"bad\.csv") as error:
        read_sdmx(tmp_path / "bad.csv")
    assert says in str(error.value)


def test_a_format_is_known_by_its_ending_or_its_name(protected, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    _, release = protected
    assert format_of("a/b.PX").name == "px"  # type: ignore[union-attr]
    assert format_of("x.sdmx.csv").name == "sdmx-csv"  # type: ignore[union-attr]
    assert format_of("x.csv") is None
    assert format_of("x.csv", "sdmx-csv").name == "sdmx-csv"  # type: ignore[union-attr]
    with pytest.raises(InvalidOption, match="no format 'pcaxis'"):
        format_of("x.csv", "pcaxis")
    assert write_formatted(release, tmp_path / "r.px")
    assert not write_formatted(release, tmp_path / "r.csv")
    assert read_dataset(tmp_path / "r.px") is not None


@pytest.mark.parametrize("ending", [".dta", ".sav", ".xpt"])
def test_records_of_stata_spss_and_sas(ending: str, tmp_path: Path) -> None:
    pyreadstat = pytest.importorskip("pyreadstat", reason="the extra readstat is not installed")
    from tablesafe.io.frames import read_frame

    frame = pl.DataFrame({"region": [1.0, 2.0, 2.0], "turnover": [10.5, 20.0, 5.0], "firm": ["a", "b", "c"]})
    write = {".dta": pyreadstat.write_dta, ".sav": pyreadstat.write_sav, ".xpt": pyreadstat.write_xport}[ending]
    labels = {} if ending == ".xpt" else {"variable_value_labels": {"region": {1: "North", 2: "South"}}}
    write(frame.to_pandas(), str(tmp_path / f"records{ending}"), **labels)
    read = read_frame(tmp_path / f"records{ending}")
    assert read.frame["region"].to_list() == [1, 2, 2]
    table = ts.tabulate(tmp_path / f"records{ending}", dimensions=["region"], value="turnover", respondent="firm")
    assert table.value.sum() == 2 * 35.5
    (tmp_path / f"broken{ending}").write_bytes(b"not a data file")
    with pytest.raises(InvalidFile, match="broken"):
        read_frame(tmp_path / f"broken{ending}")


@pytest.mark.parametrize("ending", [".dta", ".sav"])
def test_value_labels_are_the_names_of_codes_in_a_job(ending: str, tmp_path: Path) -> None:
    pyreadstat = pytest.importorskip("pyreadstat", reason="the extra readstat is not installed")
    frame = pl.DataFrame(
        {"region": [1.0, 2.0, 2.0, 1.0], "size": ["s", "s", "l", "l"], "turnover": [1.0, 2.0, 3.0, 4.0]}
    )
    write = {".dta": pyreadstat.write_dta, ".sav": pyreadstat.write_sav}[ending]
    names = {"region": {1: "North", 2: "South", 9: "abroad"}}
    write(frame.to_pandas(), str(tmp_path / f"firms{ending}"), variable_value_labels=names)
    job = f"""
        [source]
        file = "firms{ending}"
        [dimensions.area]
        column = "region"
        [dimensions.size]
        [response]
        value = "turnover"
        [[rules]]
        rule = "threshold"
        """
    table = build_table(parse_job(job, tmp_path / "job.toml"))
    assert table.dimensions["area"].labels == {"1": "North", "2": "South"}
    assert table.dimensions["size"].labels == {}
    (tmp_path / "names.csv").write_text("code,label\n1,Noord\n", encoding="utf-8")
    named = job.replace('column = "region"', 'column = "region"\n        labels = "names.csv"')
    again = build_table(parse_job(named, tmp_path / "job.toml"))
    assert again.dimensions["area"].labels == {"1": "Noord", "2": "South"}


def test_labels_of_a_px_file_are_the_names_of_codes_in_a_job(tmp_path: Path) -> None:
    (tmp_path / "table.px").write_text(
        'CHARSET="ANSI";\nTITLE="t";\nSTUB="r";\nHEADING="c";\nVALUES("r")="all","north","south";\n'
        'CODES("r")="Total","n","s";\nVALUES("c")="Total","a","b";\nDATA=\n10 4 6\n3 1 2\n7 3 4\n;\n',
        encoding="utf-8",
    )
    text = '[source]\nfile = "table.px"\nkind = "cells"\n[dimensions.r]\n[dimensions.c]\n[response]\nvalue = "value"\n'
    text += '[[rules]]\nrule = "threshold"\n'
    table = build_table(parse_job(text, tmp_path / "job.toml"))
    assert table.dimensions["r"].labels == {"Total": "all", "n": "north", "s": "south"}


def test_px_text_survives_hostile_labels(protected) -> None:  # type: ignore[no-untyped-def]
    _, release = protected
    text = px_text(Dataset.of_release(release, title='A "title"; with\nall sorts', notes=["x" * 500]))
    assert text.count("TITLE=\"A 'title'; with#all sorts\";") == 1
