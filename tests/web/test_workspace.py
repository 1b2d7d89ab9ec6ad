"""A workspace: uploads under safe names, a draft with the command line's messages, looks at data in another process."""

from __future__ import annotations

import asyncio
import copy
import tomllib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tablesafe.core.errors import InvalidFile, InvalidJob
from tablesafe.job import load_job
from tablesafe.pipeline.columns import require_columns
from tablesafe.web.drafts import toml_of
from tablesafe.web.folders import Folder
from tablesafe.web.uploads import TooLarge, plain_name
from tablesafe.web.worker import TaskFailed
from tablesafe.web.workspace import MOST_FILES, Quota, Workspace

FIRMS = "region,firm,size,turnover\n" + "".join(
    f"{region},f{i},{'small' if i % 3 else 'large'},{100 + 7 * i}\n" for i in range(40) for region in ("north", "south")
)
DRAFT: dict[str, Any] = {
    "title": "Turnover",
    "source": {"file": "firms.csv", "respondent": "firm"},
    "dimensions": {"region": {}, "size": {}},
    "response": {"value": ["turnover"]},
    "rules": [{"rule": "threshold", "n": 3}, {"rule": "p_percent", "p": 10}],
}


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace.make(tmp_path / "workspace", Folder(), Quota(upload_bytes=10_000, total_bytes=25_000))


async def chunks(*pieces: bytes) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece


def upload(workspace: Workspace, name: str, *pieces: bytes) -> str:
    return asyncio.run(workspace.receive(name, chunks(*pieces)))


# -- uploads -----------------------------------------------------------------------------------------------------------


def test_an_upload_is_stored_for_its_owner_only(workspace: Workspace) -> None:
    assert upload(workspace, "firms.csv", b"a,", b"b\n") == "firms.csv"
    file = workspace.path / "firms.csv"
    assert file.read_bytes() == b"a,b\n"
    assert file.stat().st_mode & 0o077 == 0
    assert workspace.path.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    ("given", "safe"),
    [("../../etc/passwd", "passwd"), ("..\\..\\x.csv", "x.csv"), ("/etc/cron.d/x", "x"), (".bashrc", "bashrc"),
     ("..", "upload"), ("", "upload"), ("a\x00b.csv", "a_b.csv"), ("job.toml", "upload_job.toml"),
     ("JOB.TOML", "upload_JOB.TOML"), ("runs", "upload_runs"), ("tmp", "upload_tmp"), ("a b.csv", "a b.csv"),
     ("Ums\u00e4tze & Co, 1 %; \u20ac (x).csv", "Ums\u00e4tze & Co, 1 %; \u20ac (x).csv"), ("a[1].csv", "a_1_.csv"),
     ("<script>.csv", "script_.csv"), ("*.csv", "csv"), ("n\u00e4me.csv", "n\u00e4me.csv"), ("a\nb.csv", "a_b.csv"),
     ("result.pickle", "result.pickle")],
)  # fmt: skip
def test_names_are_made_safe(workspace: Workspace, given: str, safe: str) -> None:
    assert upload(workspace, given, b"x") == safe
    assert {path.name for path in workspace.path.iterdir()} == {"runs", safe}


@given(st.text(max_size=300))
def test_any_name_becomes_a_plain_one(name: str) -> None:
    safe = plain_name(name)
    assert safe == Path(safe).name
    assert not safe.startswith(".")
    assert len(safe.encode()) <= 600
    assert safe not in {"", "..", "job.toml", "runs", "tmp"}
    assert all(letter.isprintable() for letter in safe)


def test_an_upload_that_grows_too_large_leaves_nothing(workspace: Workspace) -> None:
    with pytest.raises(TooLarge):
        upload(workspace, "big.csv", *[b"x" * 4000] * 3)
    assert [path.name for path in workspace.path.iterdir()] == ["runs"]
    assert not workspace.files


def test_all_uploads_together_are_limited(workspace: Workspace) -> None:
    for name in ("a.csv", "b.csv"):
        upload(workspace, name, b"x" * 9_000)
    with pytest.raises(TooLarge):
        upload(workspace, "c.csv", b"x" * 9_000)
    upload(workspace, "b.csv", b"x" * 9_500)  # in place of the other
    workspace.remove("a.csv")
    upload(workspace, "c.csv", b"x" * 9_000)


def test_the_number_of_files_is_limited(workspace: Workspace) -> None:
    for number in range(MOST_FILES):
        upload(workspace, f"{number}.csv", b"x")
    with pytest.raises(InvalidFile, match="files already"):
        upload(workspace, "one-more.csv", b"x")
    upload(workspace, "0.csv", b"y")


def test_a_broken_upload_leaves_the_earlier_file(workspace: Workspace) -> None:
    upload(workspace, "a.csv", b"old")

    async def broken() -> AsyncIterator[bytes]:
        yield b"new"
        raise InvalidFile("The upload was broken off.")

    with pytest.raises(InvalidFile, match="broken off"):
        asyncio.run(workspace.receive("a.csv", broken()))
    assert (workspace.path / "a.csv").read_bytes() == b"old"
    assert {path.name for path in workspace.path.iterdir()} == {"runs", "a.csv"}


def test_files_of_the_folder_are_linked_and_never_removed(tmp_path: Path) -> None:
    (tmp_path / "data" / "sub").mkdir(parents=True)
    (tmp_path / "data" / "sub" / "firms.csv").write_text(FIRMS)
    workspace = Workspace.make(tmp_path / "workspace", Folder.at(tmp_path / "data"), Quota())
    assert workspace.use("sub/firms.csv") == "sub/firms.csv"
    assert (workspace.path / "sub" / "firms.csv").read_text() == FIRMS
    with pytest.raises(InvalidFile):
        workspace.use("../workspace/job.toml")
    workspace.remove("sub/firms.csv")
    assert (tmp_path / "data" / "sub" / "firms.csv").exists()
    asyncio.run(workspace.close())
    assert (tmp_path / "data" / "sub" / "firms.csv").exists()
    assert not workspace.path.exists()


def test_a_folder_and_an_upload_of_one_name_do_not_meet(tmp_path: Path) -> None:
    (tmp_path / "data" / "sub").mkdir(parents=True)
    (tmp_path / "data" / "sub" / "firms.csv").write_text(FIRMS)
    workspace = Workspace.make(tmp_path / "workspace", Folder.at(tmp_path / "data"), Quota())
    upload(workspace, "sub", b"x")
    with pytest.raises(InvalidFile, match="'sub' already"):
        workspace.use("sub/firms.csv")
    workspace.remove("sub")
    workspace.use("sub/firms.csv")
    with pytest.raises(InvalidFile, match="cannot be stored"):
        upload(workspace, "sub", b"x")


def test_an_upload_does_not_write_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "firms.csv").write_text("original")
    workspace = Workspace.make(tmp_path / "workspace", Folder.at(tmp_path / "data"), Quota())
    workspace.use("firms.csv")
    assert upload(workspace, "firms.csv", b"mine") == "firms-2.csv"
    assert (tmp_path / "data" / "firms.csv").read_text() == "original"


# -- the draft ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def filled(workspace: Workspace) -> Workspace:
    upload(workspace, "firms.csv", FIRMS.encode())
    workspace.draft = copy.deepcopy(DRAFT)
    return workspace


def test_a_good_draft_has_no_faults_and_reads_back(filled: Workspace) -> None:
    assert filled.check() == []
    (filled.path / "job.toml").write_text(filled.job_text())
    assert load_job(filled.path / "job.toml") == filled.job()


@pytest.mark.parametrize(
    ("change", "path"),
    [({"source": {"file": "firms.csv", "respondent": "nobody"}}, ("source", "respondent")),
     ({"source": {"file": "gone.csv"}}, ("source", "file")),
     ({"source": {"fil": "firms.csv"}}, ("source", "fil")),
     ({"response": {"value": ["turnovr"]}}, ("response", "value", 0)),
     ({"dimensions": {"regon": {}}}, ("dimensions", "regon", "column")),
     ({"dimensions": {}}, ("dimensions",)),
     ({"rules": [{"rule": "p_percent", "p": 0}]}, ("rules", 0, "p")),
     ({"rules": [{"rule": "threshold"}, {"rule": "p_persent"}]}, ("rules", 1, "rule")),
     ({"rules": []}, ("rules",)),
     ({"method": {"name": "suppress", "time_limit_s": "x"}}, ("method", "time_limit_s")),
     ({"output": {"release": ["a.txt"]}}, ("output", "release", 0))],
)  # fmt: skip
def test_bad_input_gets_the_message_of_the_command_line_at_its_key(
    filled: Workspace, change: dict[str, Any], path: tuple[str | int, ...]
) -> None:
    filled.draft.update(change)
    faults = [fault for fault in filled.check() if fault.path == path]
    assert faults
    (filled.path / "job.toml").write_text(filled.job_text())
    with pytest.raises(InvalidJob) as told:
        require_columns(load_job(filled.path / "job.toml"))
    assert all(str(fault.message) in str(told.value) for fault in faults)
    with pytest.raises(InvalidJob):
        filled.job()


@pytest.mark.parametrize(
    ("change", "path"),
    [({"source": {"file": "/etc/passwd"}}, ("source", "file")),
     ({"source": {"file": "../../../../etc/passwd"}}, ("source", "file")),
     ({"source": {"file": "firms.csv", "metadata": "/etc/hostname"}}, ("source", "metadata")),
     ({"dimensions": {"region": {"hierarchy": "/etc/passwd"}}}, ("dimensions", "region", "hierarchy")),
     ({"problem": {"apriori": "/etc/passwd"}}, ("problem", "apriori")),
     ({"problem": {"apriori": ["firms.csv", "/etc/passwd"]}}, ("problem", "apriori", 1)),
     ({"method": {"name": "suppress", "keep": "/etc/passwd"}}, ("method", "keep")),
     ({"output": {"release": ["/tmp/x.csv"]}}, ("output", "release", 0)),
     ({"output": {"release": ["../x.csv"]}}, ("output", "release", 0)),
     ({"output": {"report": "a/../../x.html"}}, ("output", "report")),
     ({"output": {"internal": "/tmp"}}, ("output", "internal")),
     ({"output": {"internal": ".ssh"}}, ("output", "internal")),
     ({"run": {"temporary": "/tmp"}}, ("run", "temporary"))],
)  # fmt: skip
def test_a_draft_reads_and_writes_only_its_own_files(
    filled: Workspace, change: dict[str, Any], path: tuple[str | int, ...]
) -> None:
    filled.draft.update(change)
    assert path in {fault.path for fault in filled.check()}
    with pytest.raises(InvalidJob):
        filled.job()


plain = st.recursive(
    st.booleans() | st.integers(-(2**60), 2**60) | st.text(max_size=8) | st.floats(allow_nan=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=12,
)


@given(st.dictionaries(st.text(max_size=5), plain, max_size=4))
def test_any_draft_is_toml(draft: dict[str, Any]) -> None:
    assert tomllib.loads(toml_of(draft)) == draft


# -- looking at data ---------------------------------------------------------------------------------------------------


def test_data_is_looked_at_in_another_process(filled: Workspace) -> None:
    async def look() -> None:
        try:
            found = {column["name"]: column for column in await filled.columns()}
            assert list(found) == ["region", "firm", "size", "turnover"]
            assert found["region"]["distinct"] == 2
            assert set(found["region"]["examples"]) == {"north", "south"}
            assert found["turnover"]["kind"] == "whole numbers"
            assert found["firm"]["rows"] == 80
            draft = await filled.suggest("firms.csv")
            assert draft["source"]["respondent"] == "firm"
            table = await filled.table()
            assert table["cells"] == 9
            many = await filled.sensitivity([{"rule": "threshold", "n": 1000}])
            none = await filled.sensitivity([{"rule": "threshold", "n": 1}])
            assert many["sensitive"] == 9
            assert none["sensitive"] == 0
            assert filled.draft["rules"] == DRAFT["rules"]
            await filled.receive("bad.csv", chunks(b"region,turnover\nnorth,12x\nsouth,7\n"))
            filled.draft = {**DRAFT, "source": {"file": "bad.csv"}, "dimensions": {"region": {}}}
            with pytest.raises(TaskFailed, match="12x") as told:
                await filled.table()
            assert told.value.hint
        finally:
            await filled.close()
        assert not filled.path.exists()

    asyncio.run(look())


def test_a_metadata_file_cannot_name_files_elsewhere(tmp_path: Path) -> None:
    """Paths in a job are checked beforehand, paths inside a file when it is opened."""
    (tmp_path / "secret.hrc").write_text("hidden-code\n@deeper\n")
    workspace = Workspace.make(tmp_path / "workspace", Folder(), Quota())
    meta = (
        f'region 1 5\n<RECODEABLE>\n<HIERARCHICAL>\n<HIERCODELIST> "{tmp_path / "secret.hrc"}"\n<HIERLEADSTRING> "@"\n'
    )
    upload(workspace, "m.rda", (meta + "value 7 5\n<NUMERIC>\n").encode())
    upload(workspace, "m.asc", b"north    12\nsouth     7\n")
    workspace.draft = {
        "source": {"file": "m.asc", "metadata": "m.rda"}, "dimensions": {"region": {}},
        "response": {"value": ["value"]}, "rules": [{"rule": "threshold"}],
    }  # fmt: skip

    async def look() -> str:
        try:
            with pytest.raises(TaskFailed) as told:
                await workspace.table()
            return str(told.value)
        finally:
            await workspace.close()

    message = asyncio.run(look())
    assert "may not be read" in message
    assert "hidden-code" not in message
