"""What somebody who is in, or who made a file, might try against the app; each was found by trying."""

from __future__ import annotations

import asyncio
import json
import os
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

pytest.importorskip("nicegui", reason="the web app needs the extra 'web'")

from running import DRAFT, FIRMS
from serving import Served, served
from websockets.sync.client import connect

from tablesafe.core.errors import InvalidFile, InvalidJob
from tablesafe.job.toml import read_toml
from tablesafe.web.child import may_open
from tablesafe.web.drafts import draft_of
from tablesafe.web.folders import Folder
from tablesafe.web.runs import Queue, State
from tablesafe.web.sessions import Sessions
from tablesafe.web.uploads import TooLarge
from tablesafe.web.worker import TaskFailed
from tablesafe.web.workspace import MOST_FAULTS, MOST_JOB, Quota, Workspace


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("app")) as running:
        yield running


def cookie_of(browser: httpx.Client) -> str:
    return "; ".join(f"{each.name}={each.value}" for each in browser.cookies.jar)


@pytest.mark.parametrize("beside", ['seen={"theme":"dark"}', "a=b c", "k[0]=1", "ü=1", "tablesafe-PORT=evil"])
def test_cookies_of_other_local_programs_lock_nobody_out(server: Served, beside: str) -> None:
    beside = beside.replace("PORT", str(server.port))
    with server.browser() as browser:
        for cookies in (f"{beside}; {cookie_of(browser)}", f"{cookie_of(browser)}; {beside}"):
            assert httpx.get(f"{server.home}/job.toml", headers={"cookie": cookies.encode()}).status_code == 200
        assert httpx.get(f"{server.home}/job.toml", headers={"cookie": beside.encode()}).status_code == 403


class Socket:
    """A bare connection of a browser, with which anything can be said."""

    def __init__(self, server: Served, browser: httpx.Client, **query: str) -> None:
        more = "".join(f"&{key}={value}" for key, value in query.items())
        address = f"ws://127.0.0.1:{server.port}/_nicegui_ws/socket.io/?EIO=4&transport=websocket{more}"
        headers = {"cookie": cookie_of(browser)}
        self.inner = connect(address, additional_headers=headers, origin=server.home, legacy=True)  # type: ignore[arg-type]
        self.hear()
        self.inner.send("40")
        self.hear()

    def hear(self) -> str:
        return str(self.inner.recv(30))

    def say(self, *words: Any) -> None:
        self.inner.send("421" + json.dumps(words))

    def answer(self) -> Any:
        """What the server answers to the last thing said; other messages are passed over."""
        while not (text := self.hear()).startswith("43"):
            if text == "2":
                self.inner.send("3")
        return json.loads(text.lstrip("0123456789"))


def page_of(browser: httpx.Client) -> tuple[str, dict[str, Any]]:
    """The number of a page, and its elements."""
    text = browser.get("/").text
    number = re.search(r"['\"]client_id['\"]: ?['\"]([\w-]+)['\"]", text)
    plain = text.replace("&lt;", "<").replace("&gt;", ">").replace("&#96;", "`").replace("&amp;", "&")
    elements = re.search(r"String\.raw`(.*?)`", plain, re.S)
    assert number is not None
    assert elements is not None
    return number[1], json.loads(elements[1])


def test_nobody_can_join_a_page_of_another(server: Served) -> None:
    """A connection that names no page when it is opened may do so later; then too it must be its own."""
    with server.browser() as one, server.browser() as other:
        number, _ = page_of(one)
        joining = {"client_id": number, "tab_id": "t", "document_id": "d", "next_message_id": 0}
        for browser, may in ((other, False), (one, True)):
            socket = Socket(server, browser)
            socket.say("handshake", joining)
            assert socket.answer() == [may]
            socket.inner.close()


def test_a_page_that_lies_about_an_upload_reads_no_file(server: Served, tmp_path: Path) -> None:
    secret = tmp_path / "secret.toml"
    secret.write_text('title = "hunter2"\n')
    with server.browser() as browser:
        number, elements = page_of(browser)
        socket = Socket(
            server, browser, client_id=number, tab_id="t", document_id="d", next_message_id="0",
            implicit_handshake="true",
        )  # fmt: skip
        for key, element in elements.items():
            for event in element.get("events", []):
                if event["type"] == "uploaded":
                    told = json.dumps(json.dumps({"files": [str(secret)]}))
                    said = {"id": int(key), "client_id": number, "listener_id": event["listener_id"],
                            "args": [json.dumps("x.csv"), told]}  # fmt: skip
                    socket.say("event", said)
        while "no file of this workspace" not in socket.hear():
            pass
        assert "hunter2" not in browser.get("/job.toml").text
        socket.inner.close()


# -- files -------------------------------------------------------------------------------------------------------------


def workspace_at(tmp_path: Path, folder: Path | None = None, limits: Quota | None = None) -> Workspace:
    return Workspace.make(tmp_path / "workspace", Folder.at(folder), limits or Quota())


def test_only_job_files_of_the_workspace_are_taken(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    outside = tmp_path / "outside.toml"
    outside.write_text('title = "hunter2"')
    (folder / "job.toml.toml").write_text('title = "mine"')
    workspace = workspace_at(tmp_path, folder)
    for name in (str(outside), "../outside.toml", "nothing.toml"):
        with pytest.raises(InvalidFile):
            workspace.take_job(name)
    workspace.use("job.toml.toml")
    assert workspace.take_job("job.toml.toml") == {"title": "mine"}
    assert workspace.files == {}
    workspace.use("job.toml.toml")
    (folder / "job.toml.toml").unlink()
    (folder / "job.toml.toml").symlink_to(outside)  # since it was chosen
    with pytest.raises(InvalidFile):
        workspace.take_job("job.toml.toml")


def test_a_job_file_is_small(tmp_path: Path) -> None:
    workspace = workspace_at(tmp_path)
    (workspace.path / "x.toml").write_text("#" * (MOST_JOB + 1))
    workspace.files["x.toml"] = workspace.path / "x.toml"
    with pytest.raises(InvalidJob, match="too large"):
        workspace.take_job("x.toml")


@pytest.mark.parametrize(
    "text",
    [".".join(["a"] * 20_000) + " = 1", "[" + ".".join(['"a"'] * 20_000) + "]", "a = " + "[" * 9000 + "]" * 9000,
     "a = " + "[" * 60 + "]" * 60, "source = 1", 'source = "x"', "dimensions = [1]", "[dimensions]\nx = 5",
     "rules = 5", "rules = {}", "tables = [5]", "method = 5", "run = 5"],
)  # fmt: skip
def test_a_job_file_without_the_shape_of_one_is_refused(text: str) -> None:
    """Memory by the square of the keys, endless depth, and what pages could not show."""
    with pytest.raises(InvalidJob) as told:
        draft_of(text)
    assert len(str(told.value)) < 1000
    assert "0 errors" not in str(told.value)


@pytest.mark.parametrize("text", [".".join(["a"] * 50) + " = 1", "[" + " . ".join(['"a"'] * 50) + "]"])
def test_keys_in_keys_are_refused_before_they_are_parsed(text: str) -> None:
    """The parser needs memory by the square of their number: 400 kB of them take all that a machine has."""
    with pytest.raises(tomllib.TOMLDecodeError, match="without end"):
        read_toml(text)


@pytest.mark.parametrize(
    "text", ["[source]\n" + "".join(f"k{i} = 1\n" for i in range(2000)), "[[rules]]\nrule = 'x'\n" * 2000]
)
def test_a_job_of_nothing_but_faults_does_not_fill_the_page(tmp_path: Path, text: str) -> None:
    workspace = workspace_at(tmp_path)
    workspace.draft = draft_of(text)
    faults = workspace.check()
    assert len(faults) == MOST_FAULTS + 1
    assert "more faults" in faults[-1].message


def test_a_parquet_file_is_not_read_in_the_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its columns are known when a process of its own has told them; of text the first line may be read here."""
    import polars as pl
    from pyarrow import parquet

    def never(*args: object) -> None:
        raise AssertionError("read in the server")

    monkeypatch.setattr(parquet, "read_schema", never)
    workspace = workspace_at(tmp_path)
    frame = pl.read_csv(FIRMS.encode()).rename({"turnover": "sales"})
    frame.write_parquet(workspace.path / "firms.parquet")
    workspace.files["firms.parquet"] = workspace.path / "firms.parquet"
    workspace.draft = {**DRAFT, "source": {"file": "firms.parquet", "respondent": "firm"}}
    assert workspace.check() == []

    async def looked_at() -> None:
        try:
            await workspace.columns()
        finally:
            await workspace.close()

    monkeypatch.setattr("shutil.rmtree", lambda *args, **options: None)
    asyncio.run(looked_at())
    assert [fault.path for fault in workspace.check()] == [("response", "value", 0)]
    frame.rename({"sales": "turnover"}).with_columns(pl.lit(1).alias("more")).write_parquet(
        workspace.path / "firms.parquet"
    )
    assert workspace.check() == [], "another file: nothing is known of it"


def test_short_forms_of_a_job_are_taken() -> None:
    draft = draft_of('rules = ["zero_cells"]\nmethod = "adjust"')
    assert draft == {"rules": [{"rule": "zero_cells"}], "method": {"name": "adjust"}}


@pytest.mark.parametrize("name", ["{}/hosts.csv", "{}/hostz.csv", "../elsewhere/hosts.csv", "../elsewhere/hostz.csv"])
def test_a_draft_does_not_tell_what_lies_elsewhere(tmp_path: Path, name: str) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "hosts.csv").write_text("a,b\n1,2\n")
    workspace = workspace_at(tmp_path)
    name = name.format(elsewhere)
    workspace.draft = {**DRAFT, "source": {"file": name}}
    told = [str(fault.message) for fault in workspace.check()]
    assert told == [f"{name!r} is no file of this workspace: upload it, or choose it in the folder."]


def test_uploads_that_come_in_at_the_same_time_are_limited_together(tmp_path: Path) -> None:
    workspace = workspace_at(tmp_path, limits=Quota(upload_bytes=60, total_bytes=100))

    async def slowly() -> Any:
        for _ in range(6):
            await asyncio.sleep(0)
            yield b"x" * 10

    async def all_at_once() -> list[Any]:
        names = (f"{number}.csv" for number in range(5))
        return await asyncio.gather(*(workspace.receive(name, slowly()) for name in names), return_exceptions=True)

    found = asyncio.run(all_at_once())
    assert all(isinstance(each, (str, TooLarge)) for each in found)
    assert sum(path.stat().st_size for path in workspace.path.iterdir() if path.is_file()) <= 100


def test_a_run_does_not_write_over_the_files_that_it_reads(tmp_path: Path) -> None:
    """Whatever they are called: the result of a run, with all its values, is kept where no name can lead."""
    folder = tmp_path / "data"
    folder.mkdir()
    labels = "code,label\nr0,North\n"
    (folder / "firms.csv").write_text(FIRMS)
    (folder / "result.frozen").write_text(labels)
    (folder / "run-1.frozen").write_text(labels)

    async def main() -> None:
        sessions = Sessions(tmp_path / "private", Folder.at(folder), queue=Queue(1))
        (tmp_path / "private").mkdir(mode=0o700)
        session = sessions.find(sessions.create())
        assert session is not None
        for name in ("firms.csv", "result.frozen", "run-1.frozen"):
            session.workspace.use(name)
        session.workspace.draft = {
            **DRAFT,
            "dimensions": {"region": {"labels": "result.frozen"}, "size": {"labels": "run-1.frozen"}},
            "output": {"release": ["public/table.csv"], "internal": "."},
        }
        run = session.runs.start()
        await run.finished()
        assert run.state is State.DONE
        assert set(run.facts["public"]) & set(run.files()) == {"public/table.csv", "public/report.html"}
        await session.runs.remove("run-1")
        assert list((session.workspace.path / "runs").iterdir()) == []
        await sessions.close()

    asyncio.run(main())
    assert {path.name: path.read_text() for path in folder.iterdir()} == {
        "firms.csv": FIRMS,
        "result.frozen": labels,
        "run-1.frozen": labels,
    }


def test_a_file_that_names_others_learns_nothing_of_processes(tmp_path: Path) -> None:
    roots, own = [tmp_path], os.getpid()
    for path in (f"/proc/{own}/environ", f"/proc/{own}/fd/3", "/proc/1/environ", "/proc/1/cmdline", "/proc/1/status"):
        assert not may_open(path, roots, ())
    for path in ("/proc/cpuinfo", "/proc/meminfo", f"/proc/{own}/status", f"/proc/{own}/statm"):
        assert may_open(path, roots, ())


@pytest.mark.parametrize("kind", ["csv.gz", "xlsx", "parquet"])
def test_a_file_that_unpacks_without_end_is_refused_where_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """In the process that reads it; that one tells why, and reads the next file."""
    import gzip

    import polars as pl

    from tablesafe.files.limits import VARIABLE
    from tablesafe.io.frames import write_frame

    monkeypatch.setenv(VARIABLE, "2MB")
    workspace = workspace_at(tmp_path)
    name = f"bomb.{kind}"
    if kind == "parquet":
        pl.DataFrame(
            {"a": pl.repeat(1, 2_000_000, eager=True), "b": pl.repeat(2, 2_000_000, eager=True)}
        ).write_parquet(workspace.path / name)
    elif kind == "xlsx":
        write_frame(pl.DataFrame({"a": ["x" * 30_000] * 200, "b": [1] * 200}), workspace.path / name)
    else:
        text = b"a,b\n" + b"1,2\n" * 1_000_000
        (workspace.path / name).write_bytes(gzip.compress(text) if kind == "csv.gz" else text)
    (workspace.path / "firms.csv").write_text(FIRMS)
    workspace.files |= {each: workspace.path / each for each in (name, "firms.csv")}

    async def main() -> None:
        try:
            with pytest.raises(TaskFailed) as told:
                await workspace.suggest(name)
            assert told.value.kind in {"InvalidFile", "InvalidOption", "InvalidJob", "InvalidTable"}, str(told.value)
            assert workspace._worker is not None
            assert workspace._worker.alive
            assert len(await workspace.columns("firms.csv")) == 4
        finally:
            await workspace.close()

    asyncio.run(main())


def test_a_job_cannot_ask_for_processes_without_end(tmp_path: Path) -> None:
    workspace = workspace_at(tmp_path)
    (workspace.path / "firms.csv").write_text(FIRMS)
    workspace.files["firms.csv"] = workspace.path / "firms.csv"
    workspace.draft = {**DRAFT, "run": {"executor": "processes", "workers": 100_000}}
    assert [fault.path for fault in workspace.check()] == [("run", "workers")]


@pytest.mark.parametrize(("key", "value"), [("engine", "spark"), ("executor", "dask"), ("scheduler", "tcp://a:8786")])
def test_a_job_cannot_open_ports(tmp_path: Path, key: str, value: str) -> None:
    workspace = workspace_at(tmp_path)
    (workspace.path / "firms.csv").write_text(FIRMS)
    workspace.files["firms.csv"] = workspace.path / "firms.csv"
    asked = {key: value} | ({"executor": "dask"} if key == "scheduler" else {})
    workspace.draft = {**DRAFT, "run": asked}
    assert ("run", key) in [fault.path for fault in workspace.check()]
