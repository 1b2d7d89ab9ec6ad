"""What a published file may hold beside what the certificate knows of: nothing, in any format that is written."""

from __future__ import annotations

import io
import json
import re
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from tablesafe.audit.audit import audit
from tablesafe.core.errors import InvalidCertificate
from tablesafe.core.hierarchy import Hierarchy
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release, Status
from tablesafe.core.sensitivity import Sensitivity
from tablesafe.core.table import Table
from tablesafe.io.frames import write_frame, write_release
from tablesafe.io.sdmx import write_sdmx
from tablesafe.verify import verify

CERTIFICATE = "internal.json"
ENDINGS = ("csv", "xlsx", "parquet")


def table() -> Table:
    labels = {"a": "first", "b": "second", "T": "all of it"}
    column = Hierarchy.from_pairs([("T", "a"), ("T", "b"), ("T", "=c")], total="T", labels=labels)
    frame = {
        "row": ["u"] * 4 + ["v"] * 4 + ["Total"] * 4,
        "column": ["a", "b", "=c", "T"] * 3,
        "value": [10.5, 5.0, 3.0, 18.5, 7.0, 8.0, 4.0, 19.0, 17.5, 13.0, 7.0, 37.5],
    }
    return Table.from_cells(frame, dimensions={"row": None, "column": column}, value="value")


@pytest.fixture
def release(tmp_path: Path) -> Release:
    """A pattern with its certificate in the folder."""
    sensitive = np.zeros(12, np.bool_)
    sensitive[0] = True
    problem = Problem(table(), sensitivity=Sensitivity.of(sensitive, 1.0))
    hidden = np.isin(np.arange(12), [0, 1, 4, 5])
    found = Release.from_suppression(problem, hidden)
    findings = audit(problem, found)
    assert findings.safe
    assert findings.certificate is not None
    findings.certificate.save(tmp_path / CERTIFICATE)
    return found


def written(frame: pl.DataFrame, folder: Path, ending: str) -> Path:
    path = folder / f"release.{ending}"
    write_frame(frame, path, colour="status")
    return path


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("labels", [False, True])
def test_every_file_that_we_write_is_accepted(release: Release, tmp_path: Path, ending: str, labels: bool) -> None:
    path = tmp_path / f"table.{ending}"
    write_release(release, path, labels=labels, guard_formulas=ending == "csv")
    found = verify(tmp_path / CERTIFICATE, release=path)
    assert found.safe
    assert found.release_checked


LEAKS: dict[str, Callable[[pl.DataFrame], pl.DataFrame]] = {
    "a further column of true values": lambda f: f.with_columns(truth=pl.Series(table().value)),
    "a second value column": lambda f: f.with_columns(pl.Series("value 2", table().value)),
    "an index": lambda f: f.with_row_index("", offset=10),
    "intervals under other names": lambda f: f.with_columns(lower=pl.lit(10.0), upper=pl.lit(11.0)),
    "secrets as statuses": lambda f: f.with_columns(status=pl.Series(table().value).cast(pl.String)),
    "a secret in one status": lambda f: f.with_columns(
        status=pl.when(pl.col("value").is_null()).then(pl.lit("confidential 10.5")).otherwise("status")
    ),
    "what is sensitive in the status": lambda f: f.with_columns(
        status=pl.when((pl.col("row") == "u") & (pl.col("column") == "a")).then(pl.lit("c")).otherwise("status")
    ),
    "a published cell called withheld": lambda f: f.with_columns(status=pl.lit("confidential")),
    "a secret as a label": lambda f: f.with_columns(
        pl.when(pl.col("column") == "a").then(pl.lit("10.5")).otherwise("column label").alias("column label")
    ),
    "labels of a dimension that has none": lambda f: f.with_columns(pl.col("value").cast(pl.String).alias("row label")),
    "one end of intervals": lambda f: f.with_columns(pl.lit(10.0).alias("from")),
    "intervals that nobody announced": lambda f: f.with_columns(
        pl.when(pl.col("value").is_null()).then(10.0).alias("from"),
        pl.when(pl.col("value").is_null()).then(11.0).alias("to"),
    ),
    "secrets as intervals of published cells": lambda f: f.with_columns(
        pl.when(pl.col("value").is_not_null()).then(10.5).alias("from"),
        pl.when(pl.col("value").is_not_null()).then(10.5).alias("to"),
    ),
    "wide intervals that spell a secret": lambda f: f.with_columns(
        pl.when(pl.col("value").is_null()).then(-10.5).alias("from"), pl.lit(None, pl.Float64).alias("to")
    ),
}  # fmt: skip


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("leak", LEAKS)
def test_what_is_not_known_is_refused(release: Release, tmp_path: Path, leak: str, ending: str) -> None:
    path = written(LEAKS[leak](release.frame(labels=True)), tmp_path, ending)
    with pytest.raises(InvalidCertificate):
        verify(tmp_path / CERTIFICATE, release=path)


TEXTS = {
    "a value in words": (",confidential", "ten,confidential", "neither a number nor a mark"),
    "a mark that tells one cell apart": ("u,a,,", "u,a,x,", "tells them apart"),
    "a blank that tells one cell apart": ("u,a,,", "u,a, ,", "tells them apart"),
    "entries beyond the last column": ("u,a,,confidential", "u,a,,confidential,10.5", "more entries than"),
    "two columns of one name": ("row,column,value,status", "row,column,value,status,value", "two columns 'value'"),
    "a column without a name": ("row,column,value,status", "row,column,value,status,", "column '' is not part"),
    "digits beyond the last": ("18.5", "18.500000000000000105", "other digits"),
    "zeros behind a value": ("18.5", "18.5000000000", "more zeros at the end"),
    "zeros before a value": ("18.5", "000018.5", "other digits"),
    "a sign that nothing needs": ("18.5", "+18.5", "other digits"),
    "a space before a value": ("18.5", " 18.5", "other digits"),
    "an empty line": ("\nu,a,", "\n\nu,a,", "line 2 is empty"),
    "a withheld cell left out": ("u,a,,confidential\n", "", "is not in the file"),
}


@pytest.mark.parametrize("name", TEXTS)
def test_text_that_is_not_known_is_refused(release: Release, tmp_path: Path, name: str) -> None:
    old, new, reason = TEXTS[name]
    text = release.frame().write_csv()
    assert old in text
    (tmp_path / "release.csv").write_text(text.replace(old, new, 1))
    with pytest.raises(InvalidCertificate, match=reason):
        verify(tmp_path / CERTIFICATE, release=tmp_path / "release.csv")


def rounded(problem: Problem) -> Release:
    value = problem.table.value
    shown = np.rint(value / 5) * 5
    status = np.full(len(value), Status.CHANGED, np.uint8)
    return Release(problem.table, shown, shown - 2.5, shown + 2.5, status, "rounding")


@pytest.mark.parametrize("ending", ENDINGS)
def test_announced_intervals_are_those_of_the_release(tmp_path: Path, ending: str) -> None:
    problem = Problem(table(), sensitivity=Sensitivity.of(np.arange(12) == 0, 0.5))
    release = rounded(problem)
    findings = audit(problem, release)
    assert findings.certificate is not None
    findings.certificate.save(tmp_path / CERTIFICATE)
    frame = release.frame(intervals=True)
    for good in (frame, release.frame()):
        assert verify(tmp_path / CERTIFICATE, release=written(good, tmp_path, ending)).release_checked
    for bad, reason in (
        (frame.with_columns(pl.col("from") + 1), "says more than the certificate assumes"),
        (frame.with_columns(pl.col("from") - 1), "not the one that the release announces"),
        (frame.with_columns(to=pl.lit(None, pl.Float64)), "not the one that the release announces"),
    ):
        with pytest.raises(InvalidCertificate, match=reason):
            verify(tmp_path / CERTIFICATE, release=written(bad, tmp_path, ending))


# -- workbooks -------------------------------------------------------------------------------------------------------

Parts = dict[str, bytes]


def repacked(path: Path, edit: Callable[[Parts], None], *, comment: bytes = b"") -> None:
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    edit(parts)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.comment = comment
        for name, part in parts.items():
            archive.writestr(name, part)


def replaced(name: str, old: str, new: str) -> Callable[[Parts], None]:
    def edit(parts: Parts) -> None:
        assert old.encode() in parts[name], old
        parts[name] = parts[name].replace(old.encode(), new.encode(), 1)

    return edit


def added(name: str, data: bytes) -> Callable[[Parts], None]:
    return lambda parts: parts.update({name: data})


SHEET, BOOK, TEXT = "xl/worksheets/sheet1.xml", "xl/workbook.xml", "xl/sharedStrings.xml"
HIDDEN: dict[str, Callable[[Parts], None]] = {
    "a second sheet": added("xl/worksheets/sheet2.xml", b"<worksheet/>"),
    "comments": added("xl/comments1.xml", b"<comments/>"),
    "a custom property": added("docProps/custom.xml", b"<Properties/>"),
    "an embedded file": added("xl/embeddings/a.bin", b"10.5"),
    "a hidden sheet": replaced(BOOK, '<sheet name="cells"', '<sheet state="hidden" name="cells"'),
    "another sheet in the book": replaced(BOOK, "</sheets>", '<sheet name="truth" sheetId="2"/></sheets>'),
    "a sheet named after a secret": replaced(BOOK, 'name="cells"', 'name="10.5"'),
    "a defined name": replaced(
        BOOK, "</sheets>", '</sheets><definedNames><definedName name="a">10.5</definedName></definedNames>'
    ),
    "a hidden column": replaced(SHEET, "<col ", '<col hidden="1" '),
    "a hidden row": replaced(SHEET, '<row r="2"', '<row hidden="1" r="2"'),
    "a formula": replaced(SHEET, "<v>0</v>", "<f>10.5</f><v>0</v>"),
    "a header of the page": replaced(
        SHEET, "<pageMargins", "<headerFooter><oddHeader>10.5</oddHeader></headerFooter><pageMargins"
    ),
    "a hyperlink": replaced(SHEET, "<pageMargins", "<hyperlinks/><pageMargins"),
    "a comment in the sheet": replaced(SHEET, "<sheetData>", "<sheetData><!-- 10.5 -->"),
    "text beside the cells": replaced(SHEET, "<sheetData>", "<sheetData>10.5"),
    "a value outside of cells": replaced(SHEET, "<pageMargins", "<v>10.5</v><pageMargins"),
    "a cell outside of rows": replaced(SHEET, "</sheetData>", '<c r="Z9"><v>10.5</v></c></sheetData>'),
    "a row of its own": replaced(SHEET, "</sheetData>", '<row r="99"><c r="A99"><v>10.5</v></c></row></sheetData>'),
    "a cell beyond the columns": replaced(SHEET, "</row></sheetData>", '<c r="Z13"><v>10.5</v></c></row></sheetData>'),
    "a text that no cell shows": replaced(TEXT, "</sst>", "<si><t>10.5</t></si></sst>"),
    "a spoken text": replaced(TEXT, "</si>", "<rPh><t>10.5</t></rPh></si>"),
    "a colour for one cell": replaced(SHEET, 's="2"', 's="1"'),
    "a format with text": replaced(
        "xl/styles.xml", "<fonts", '<numFmts><numFmt numFmtId="164" formatCode="10.5"/></numFmts><fonts'
    ),
    "a title": replaced("docProps/core.xml", "<dc:creator>", "<dc:title>10.5</dc:title><dc:creator>"),
    "a company": replaced("docProps/app.xml", "<Company>", "<Company>10.5"),
    "an outside link": replaced("_rels/.rels", "<Relationship ", '<Relationship TargetMode="External" '),
}  # fmt: skip


@pytest.mark.parametrize("name", HIDDEN)
def test_nothing_is_hidden_in_a_workbook(release: Release, tmp_path: Path, name: str) -> None:
    path = written(release.frame(), tmp_path, "xlsx")
    assert verify(tmp_path / CERTIFICATE, release=path).release_checked
    repacked(path, HIDDEN[name])
    with pytest.raises(InvalidCertificate):
        verify(tmp_path / CERTIFICATE, release=path)


def test_nothing_is_hidden_around_the_parts_of_a_workbook(release: Release, tmp_path: Path) -> None:
    path = written(release.frame(), tmp_path, "xlsx")
    repacked(path, lambda parts: None)
    assert verify(tmp_path / CERTIFICATE, release=path).release_checked
    data = path.read_bytes()
    for broken in (data + b"10.5", data[:-2] + b"\x04\x0010.5", data[: len(data) // 2]):
        path.write_bytes(broken)
        with pytest.raises(InvalidCertificate):
            verify(tmp_path / CERTIFICATE, release=path)
    path.write_bytes(data)
    repacked(path, lambda parts: None, comment=b"10.5")
    with pytest.raises(InvalidCertificate, match="comments"):
        verify(tmp_path / CERTIFICATE, release=path)


def test_a_workbook_that_declares_entities_is_not_expanded(release: Release, tmp_path: Path) -> None:
    path = written(release.frame(), tmp_path, "xlsx")
    repacked(path, replaced(TEXT, "<sst", '<!DOCTYPE sst [<!ENTITY a "aaaaaaaaaa">]><sst'))
    with pytest.raises(InvalidCertificate, match="holds comments"):
        verify(tmp_path / CERTIFICATE, release=path)


def test_a_table_that_the_office_keeps_is_no_release(release: Release, tmp_path: Path) -> None:
    for ending in ENDINGS:
        path = tmp_path / f"office.{ending}"
        write_release(release, path, confidential=True)
        with pytest.raises(InvalidCertificate, match="not part of the release"):
            verify(tmp_path / CERTIFICATE, release=path)


# -- Parquet ---------------------------------------------------------------------------------------------------------


def test_metadata_and_kinds_of_parquet_are_refused(release: Release, tmp_path: Path) -> None:
    path = tmp_path / "release.parquet"
    frame = release.frame()
    frame.write_parquet(path, metadata={"truth": "10.5"})
    with pytest.raises(InvalidCertificate, match=r"metadata of its own \('truth'\)"):
        verify(tmp_path / CERTIFICATE, release=path)
    for odd in (
        frame.with_columns(status=pl.col("status").cast(pl.Enum(["published", "confidential", "10.5"]))),
        frame.with_columns(status=pl.struct(pl.lit(10.5).alias("truth"))),
    ):
        odd.write_parquet(path)
        with pytest.raises(InvalidCertificate, match="holds more than a release"):
            verify(tmp_path / CERTIFICATE, release=path)
    pl.concat([frame, frame]).write_parquet(path)
    with pytest.raises(InvalidCertificate, match="24 rows, but the table has 12 cells"):
        verify(tmp_path / CERTIFICATE, release=path)
    frame.write_parquet(path)
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(InvalidCertificate, match="cannot be read"):
        verify(tmp_path / CERTIFICATE, release=path)


def test_a_line_that_is_broken_in_two_is_told_with_the_file(release: Release, tmp_path: Path) -> None:
    """A carriage return alone within a line of a CSV file: found by damaging files at random."""
    path = tmp_path / "release.csv"
    release.frame().write_csv(path)
    path.write_bytes(path.read_bytes().replace(b",published", b",\r,published", 1))
    with pytest.raises(InvalidCertificate, match=r"release\.csv, line 4 cannot be read"):
        verify(tmp_path / CERTIFICATE, release=path)


def test_metadata_of_a_column_of_parquet_are_refused(release: Release, tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    frame = arrow.Table.from_pydict(release.frame().to_dict(as_series=False))
    fields = [each.with_metadata({"truth": "10.5"}) for each in frame.schema]
    parquet.write_table(frame.cast(arrow.schema(fields)), tmp_path / "release.parquet")
    with pytest.raises(InvalidCertificate):
        verify(tmp_path / CERTIFICATE, release=tmp_path / "release.parquet")


def test_the_message_names_the_column_and_what_a_release_has(release: Release, tmp_path: Path) -> None:
    path = written(release.frame().with_columns(turnover=pl.Series(table().value)), tmp_path, "csv")
    said = (
        "its column 'turnover' is not part of the release, which has 'row', 'column', 'value', 'column label', 'status'"
    )
    with pytest.raises(InvalidCertificate, match=re.escape(said)):
        verify(tmp_path / CERTIFICATE, release=path)


def test_dimensions_called_from_and_to_are_not_intervals(tmp_path: Path) -> None:
    frame = {
        "from": ["x", "x", "x", "y", "y", "y", "Total", "Total", "Total"],
        "to": ["a", "b", "Total"] * 3,
        "value": [10, 5, 15, 7, 8, 15, 17, 13, 30],
    }
    flows = Table.from_cells(frame, dimensions=["from", "to"], value="value")
    problem = Problem(flows, sensitivity=Sensitivity.of(np.arange(9) == 0, 1.0))
    release = Release.from_suppression(problem, np.isin(np.arange(9), [0, 1, 3, 4]))
    findings = audit(problem, release)
    assert findings.certificate is not None
    findings.certificate.save(tmp_path / CERTIFICATE)
    release.frame().write_csv(tmp_path / "release.csv")
    assert verify(tmp_path / CERTIFICATE, release=tmp_path / "release.csv").safe
    assert io.StringIO(release.frame().write_csv()).readline().strip() == "from,to,value,status"


OFFICIAL = ("px", "json", "sdmx.csv", "xml")


def official(release: Release, folder: Path, ending: str) -> Path:
    if ending == "xml":
        pytest.importorskip("pysdmx")
    path = folder / f"table.{ending}"
    write_release(release, path)
    return path


@pytest.mark.parametrize("ending", OFFICIAL)
def test_formats_of_statistical_offices_are_accepted_as_we_write_them(
    release: Release, tmp_path: Path, ending: str
) -> None:
    found = verify(tmp_path / CERTIFICATE, release=official(release, tmp_path, ending))
    assert found.safe
    assert found.release_checked


def test_other_versions_of_sdmx_are_accepted(release: Release, tmp_path: Path) -> None:
    write_sdmx(release, tmp_path / "one.csv", version="csv-1.0", flow="OFFICE:T7(2.1)")
    assert verify(tmp_path / CERTIFICATE, release=tmp_path / "one.csv").safe
    pytest.importorskip("pysdmx")
    write_sdmx(release, tmp_path / "three.xml", version="ml-3.0", flow="OFFICE:T7(2.1)")
    assert verify(tmp_path / CERTIFICATE, release=tmp_path / "three.xml").safe


SPOILT = {
    "px": {
        "a keyword": ('UNITS="unit";', 'UNITS="unit";\nNOTE="10.5";'),
        "a title": ('TITLE="value by', 'TITLE="10.5 value by'),
        "a unit": ('UNITS="unit"', 'UNITS="10.5"'),
        "a label": ('"first"', '"10.5"'),
        "labels in another order": ('"first","second"', '"second","first"'),
        "a remark": ('CODEPAGE="utf-8";', 'CODEPAGE="utf-8"; 10.5'),
        "a value": ("18.5", "18.6"),
        "a withheld value": ('".."', "10.5"),
        "another mark": ('".."', '"."'),
        "a value more": ("18.5", "18.5 10.5"),
        "a withheld cell that is none": ('".."', '"-"'),
        "the same mark without quotes": ('".."', ".."),
        "digits beyond the last": ("18.5", "18.500000000000000105"),
        "something after the data": ("\n;\n", "\n;\n10.5"),
    },
    "json": {
        "a key": ('"class":"dataset"', '"class":"dataset","note":["10.5"]'),
        "a key twice": ('"class":"dataset"', '"class":"10.5","class":"dataset"'),
        "an extension": ('"id":', '"extension":{"unit":"10.5"},"id":'),
        "a title": ('"label":"value', '"label":"10.5 value'),
        "a label": ('"first"', '"10.5"'),
        "a status": ('"c"', '"10.5"'),
        "a status of a published cell": ('"status":{', '"status":{"0":"c",'),
        "a value": ("18.5", "18.6"),
        "a withheld value": ("null", "10.5"),
        "a unit of a category": ('"index":', '"unit":{"u":{"10.5":1}},"index":'),
        "a code": ('"index":[', '"index":["10.5",'),
        "digits beyond the last": ("18.5", "18.500000000000000105"),
    },
    "sdmx.csv": {
        "a column": ("OBS_VALUE", "COMMENT_OBS,OBS_VALUE"),
        "a status": (",Q,C", ",Q,A"),
        "why a value is missing": (",Q,C", ",M,C"),
        "a dataflow": ("TABLESAFE:RELEASE(1.0)", "TABLESAFE:RELEASE(10.5)"),
        "an action": (",I,", ",10.5,"),
        "a value": ("18.5", "18.6"),
        "digits beyond the last": ("18.5", "18.500000000000000105"),
        "a withheld value": (",,Q,C", ",10.5,A,F"),
        "an entry more": (",Q,C", ",Q,C,10.5"),
    },
    "xml": {
        "an attribute": ('OBS_STATUS="Q"', 'COMMENT_OBS="10.5" OBS_STATUS="Q"'),
        "a status": ('CONF_STATUS="C"', 'CONF_STATUS="A"'),
        "a comment": ("<mes:Header>", "<!-- 10.5 --><mes:Header>"),
        "text": ("<mes:Header>", "<mes:Header>10.5"),
        "an element": ("<mes:Header>", "<mes:Header><mes:Source>10.5</mes:Source>"),
        "a namespace": ("xmlns:mes=", 'xmlns:secret="10.5" xmlns:mes='),
        "a sender": ('id="ZZZ"', 'id="10.5"'),
        "a name": ("<mes:ID>", "<mes:ID>10.5"),
        "a value": ("18.5", "18.6"),
        "digits beyond the last": ("18.5", "18.500000000000000105"),
        "an instruction": ("<mes:Header>", "<?secret 10.5?><mes:Header>"),
    },
}


@pytest.mark.parametrize(("ending", "what"), [(ending, what) for ending in SPOILT for what in SPOILT[ending]])
def test_nothing_besides_the_release_is_in_a_file_of_a_statistical_format(
    release: Release, tmp_path: Path, ending: str, what: str
) -> None:
    path = official(release, tmp_path, ending)
    text, (old, new) = path.read_text(encoding="utf-8"), SPOILT[ending][what]
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(InvalidCertificate):
        verify(tmp_path / CERTIFICATE, release=path)


def test_positions_and_codes_of_json_stat_are_read_as_its_readers_do(release: Release, tmp_path: Path) -> None:
    """A value may stand by its position, and codes by theirs: one written in two ways can hold two things."""
    path = official(release, tmp_path, "json")
    document = json.loads(path.read_text(encoding="utf-8"))
    sparse = {str(at): value for at, value in enumerate(document["value"])}
    hidden = next(at for at, value in sparse.items() if value is None)
    path.write_text(json.dumps(document | {"value": sparse}), encoding="utf-8")
    assert verify(tmp_path / CERTIFICATE, release=path).release_checked
    for more in ({f"0{hidden}": 10.5}, {f" {hidden}": 10.5}, {f"+{hidden}": 10.5}):
        path.write_text(json.dumps(document | {"value": more | sparse}), encoding="utf-8")
        with pytest.raises(InvalidCertificate, match="no plain numbers"):
            verify(tmp_path / CERTIFICATE, release=path)
    category = document["dimension"]["column"]["category"]
    for places in ([3, 2, 1, 0], [0, 1, 2, 10.5]):
        category["index"] = dict(zip(["T", "a", "b", "=c"], places, strict=True))
        path.write_text(json.dumps(document), encoding="utf-8")
        with pytest.raises(InvalidCertificate, match="does not list its codes"):
            verify(tmp_path / CERTIFICATE, release=path)


def test_withheld_cells_are_all_in_a_file_or_none_is(release: Release, tmp_path: Path) -> None:
    """Which of them are left out may tell the sensitive ones from the others."""
    frame = release.frame()
    shown = frame.filter(pl.col("value").is_not_null())
    assert verify(tmp_path / CERTIFICATE, release=written(shown, tmp_path, "csv")).release_checked
    some = frame.filter((pl.col("value").is_not_null()) | (pl.col("row") == "v"))
    for ending in ENDINGS:
        with pytest.raises(InvalidCertificate, match="is not in the file"):
            verify(tmp_path / CERTIFICATE, release=written(some, tmp_path, ending))


def test_nothing_and_an_empty_text_are_not_the_same_in_parquet(release: Release, tmp_path: Path) -> None:
    texts = release.frame().with_columns(pl.col("value").cast(pl.String))
    assert verify(tmp_path / CERTIFICATE, release=written(texts, tmp_path, "parquet")).release_checked
    first = (pl.col("row") == "u") & (pl.col("column") == "a")
    marked = texts.with_columns(pl.when(first).then(pl.lit("")).otherwise("value").alias("value"))
    with pytest.raises(InvalidCertificate, match="tells them apart"):
        verify(tmp_path / CERTIFICATE, release=written(marked, tmp_path, "parquet"))


def test_a_dictionary_of_parquet_holds_no_other_texts(release: Release, tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    plain = arrow.Table.from_pydict(release.frame().to_dict(as_series=False))
    at, secret = plain.schema.get_field_index("status"), ["published", "confidential", "10.5"]
    indices = arrow.array([secret.index(word) for word in plain["status"].to_pylist()], arrow.int32())
    coded = arrow.DictionaryArray.from_arrays(indices, arrow.array(secret))
    schema = plain.schema
    parquet.write_table(plain.set_column(at, "status", coded), tmp_path / "release.parquet", store_schema=False)
    assert parquet.read_schema(tmp_path / "release.parquet").field("status").type == schema.field("status").type
    with pytest.raises(InvalidCertificate, match="no cell shows"):
        verify(tmp_path / CERTIFICATE, release=tmp_path / "release.parquet")
