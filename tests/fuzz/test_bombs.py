"""Small files that would fill the memory, and what is no file at all: refused at once; the limit can be raised."""

from __future__ import annotations

import gzip
import io
import os
import resource
import socket
import subprocess
import sys
import zipfile
from pathlib import Path

import polars as pl
import pytest

from fuzz.targets import BESIDE, CELLS, JOB, RECORDS
from tablesafe.cli.app import call
from tablesafe.core.errors import InvalidFile, InvalidJob, InvalidOption
from tablesafe.files.limits import VARIABLE, read_limit
from tablesafe.files.read import read_text
from tablesafe.files.write import whole_file
from tablesafe.io.frames import read_frame, write_frame
from tablesafe.io.jj import read_jj
from tablesafe.job.load import load_job, parse_rule
from tablesafe.tabulate import tabulate
from tablesafe.verify import verify

GIB = 1 << 30


@pytest.fixture(autouse=True)
def _limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "64MB")


def command(folder: Path, *words: str, memory: int = 4 * GIB) -> tuple[int, str]:
    """Run the command line with bounded memory; its exit code and all that it says."""

    def bounded() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))

    found = subprocess.run(
        [sys.executable, "-m", "tablesafe", *words], cwd=folder, capture_output=True, text=True, timeout=600,
        preexec_fn=bounded, check=False,
    )  # fmt: skip
    return found.returncode, found.stdout + found.stderr


def bomb(size: int = GIB) -> bytes:
    """A gzip file of about a thousandth of what it unpacks to."""
    return gzip.compress(b"0" * (size // 64)) * 64


@pytest.mark.parametrize("name", ["table.jj.gz", "certificate.json.gz", "cells.csv.gz"])
def test_a_gzip_bomb_is_refused_and_the_limit_named(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(bomb())
    assert path.stat().st_size < 2_000_000
    code, said = command(tmp_path, *(["verify"] if "cert" in name else ["audit"] if "jj" in name else ["init"]), name)
    assert code in {1, 2}, said
    assert VARIABLE in said
    assert name in said
    assert "Traceback" not in said


def test_a_streamed_bomb_is_refused_too(tmp_path: Path) -> None:
    path = tmp_path / "records.csv.gz"
    path.write_bytes(gzip.compress(b"region,size,turnover\n") + bomb())
    with pytest.raises(InvalidFile, match=VARIABLE):
        tabulate(path, dimensions=["region"], value="turnover")


def test_the_limit_can_be_raised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "words.txt.gz"
    path.write_bytes(gzip.compress(b"ab" * 1000))
    monkeypatch.setenv(VARIABLE, "1KB")
    with pytest.raises(InvalidFile, match="unpacks to more than 1,024 bytes"):
        read_text(path)
    monkeypatch.setenv(VARIABLE, "2KiB")
    assert read_text(path) == "ab" * 1000
    (tmp_path / "plain.txt").write_text("x" * 3000, encoding="utf-8")
    with pytest.raises(InvalidFile, match="is larger than 2,048 bytes"):
        read_text(tmp_path / "plain.txt")
    monkeypatch.setenv(VARIABLE, "much")
    with pytest.raises(InvalidOption, match="write it like 8GB"):
        read_limit()
    with pytest.raises(ValueError, match="like 8GB"):
        verify(path)


def workbook(folder: Path) -> Path:
    frame = pl.read_csv(io.BytesIO(CELLS.encode()))
    write_frame(frame, folder / "cells.xlsx")
    return folder / "cells.xlsx"


def altered(path: Path, member: str, old: bytes, new: bytes) -> None:
    """Replace bytes in one part of a workbook."""
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    assert old in parts[member]
    parts[member] = parts[member].replace(old, new, 1)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)


def test_a_workbook_that_unpacks_beyond_the_limit(tmp_path: Path) -> None:
    path = workbook(tmp_path)
    altered(path, "xl/worksheets/sheet1.xml", b"</sheetData>", b"</sheetData>" + b" " * (100 << 20))
    with pytest.raises(InvalidFile, match=VARIABLE):
        read_frame(path)


def test_a_workbook_whose_directory_lies(tmp_path: Path) -> None:
    path = workbook(tmp_path)
    altered(path, "xl/worksheets/sheet1.xml", b"</sheetData>", b"</sheetData>" + b" " * (100 << 20))
    data = bytearray(path.read_bytes())
    with zipfile.ZipFile(path) as archive:
        size = archive.getinfo("xl/worksheets/sheet1.xml").file_size.to_bytes(4, "little")
    path.write_bytes(bytes(data).replace(size, (1000).to_bytes(4, "little")))
    with pytest.raises(InvalidFile, match=VARIABLE):
        read_frame(path)


def test_a_workbook_with_one_cell_far_away(tmp_path: Path) -> None:
    path = workbook(tmp_path)
    far = b'<row r="1048576"><c r="XFD1048576"><v>1</v></c></row></sheetData>'
    altered(path, "xl/worksheets/sheet1.xml", b"</sheetData>", far)
    with pytest.raises(InvalidFile, match="needs more memory"):
        read_frame(path)


def test_a_parquet_file_that_announces_absurdly_many_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "4MB")
    path = tmp_path / "ones.parquet"
    rows = 750_000
    pl.DataFrame({"region": pl.repeat(1, rows, eager=True), "v": pl.repeat(0, rows, eager=True)}).write_parquet(path)
    with pytest.raises(InvalidFile, match=f"announces 750,000 rows.*\n\nHint: .*{VARIABLE}"):
        read_frame(path)
    table = tabulate(path, dimensions=["region"], value="v")  # streamed, it is data like any other
    assert table.count.max() == rows


# -- what is no file -------------------------------------------------------------------------------------------------


@pytest.fixture
def oddities(tmp_path: Path) -> Path:
    """A folder with a pipe, a socket, a folder, a link to a device, a link to itself, and a link to nothing."""
    os.mkfifo(tmp_path / "pipe.csv")
    (tmp_path / "folder.csv").mkdir()
    (tmp_path / "zero.csv").symlink_to("/dev/zero")
    (tmp_path / "loop.csv").symlink_to("loop.csv")
    (tmp_path / "nothing.csv").symlink_to("gone.csv")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(os.path.relpath(tmp_path / "socket.csv"))
    return tmp_path


ODD = ["pipe.csv", "folder.csv", "zero.csv", "loop.csv", "nothing.csv", "socket.csv", "x\x00y.csv", "n" * 300 + ".csv"]


@pytest.mark.parametrize("name", ODD)
def test_what_is_no_file_is_refused_by_every_way_of_reading(oddities: Path, name: str) -> None:
    path = oddities / name
    for read in (read_text, read_frame, read_jj, lambda path: tabulate(path, dimensions=["a"])):
        with pytest.raises(InvalidFile) as refused:
            read(path)
        assert "Hint: " in str(refused.value) or name == "folder.csv"
    with pytest.raises(ValueError, match=r"cannot be read|There is no"):
        verify(path)


@pytest.mark.parametrize("name", ODD)
def test_a_job_may_not_read_what_is_no_file(oddities: Path, name: str) -> None:
    for file, content in BESIDE.items():
        (oddities / file).write_text(content, encoding="utf-8")
    quoted = name.replace("\x00", "\\u0000")
    (oddities / "job.toml").write_text(JOB.replace("records.csv", quoted), encoding="utf-8")
    with pytest.raises(InvalidJob, match=r"job.toml has an error:\n  line 3: "):
        load_job(oddities / "job.toml")


@pytest.mark.parametrize("name", ["pipe.csv", "folder.csv", "zero.csv", "x\x00y.csv", "n" * 300 + ".csv"])
def test_nothing_is_written_over_what_is_no_file(oddities: Path, name: str) -> None:
    with pytest.raises(InvalidFile), whole_file(oddities / name) as temporary:
        temporary.write_text("x", encoding="utf-8")
    for file, content in BESIDE.items():
        (oddities / file).write_text(content, encoding="utf-8")
    quoted = name.replace("\x00", "\\u0000")
    (oddities / "job.toml").write_text(JOB.replace("public/table.csv", quoted), encoding="utf-8")
    with pytest.raises(InvalidJob, match="line 31: "):
        load_job(oddities / "job.toml")


def test_a_device_is_never_replaced(tmp_path: Path) -> None:
    with pytest.raises(InvalidFile, match="it is a device"), whole_file("/dev/null"):
        pass
    assert call(["convert", str(_records(tmp_path)), "/dev/null"]) == 2
    assert Path("/dev/null").is_char_device()


def test_a_link_is_replaced_not_followed(tmp_path: Path) -> None:
    """A link that somebody put where the release goes must not lead the release elsewhere."""
    (tmp_path / "precious.csv").write_text("precious", encoding="utf-8")
    (tmp_path / "out.csv").symlink_to("precious.csv")
    with whole_file(tmp_path / "out.csv") as temporary:
        temporary.write_text("release", encoding="utf-8")
    assert (tmp_path / "precious.csv").read_text(encoding="utf-8") == "precious"
    assert (tmp_path / "out.csv").read_text(encoding="utf-8") == "release"
    assert not (tmp_path / "out.csv").is_symlink()


def _records(folder: Path) -> Path:
    (folder / "records.csv").write_text(RECORDS, encoding="utf-8")
    return folder / "records.csv"


@pytest.mark.parametrize("text", ['{"version": ' + "1" * 5000 + "}", "[" * 100_000])
def test_a_number_or_brackets_without_end_are_refused_in_words(tmp_path: Path, text: str) -> None:
    (tmp_path / "cube.json").write_text(text)
    with pytest.raises(InvalidFile, match=r"cube\.json cannot be read as JSON"):
        read_frame(tmp_path / "cube.json")


def test_a_number_without_end_in_a_rule_is_an_error_in_words() -> None:
    with pytest.raises(InvalidOption, match="Cannot read the options"):
        parse_rule("threshold n=" + "1" * 5000)
