"""No run, by any method, shows what must stay in the office: in what is published, printed, or left on the disk.

The internal folder is where it may stand; it is for its owner's eyes only.
"""

from __future__ import annotations

import base64
import contextlib
import gzip
import io
import os
import re
import stat
import tempfile
import threading
import time
import warnings
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl
import pytest

from secrecy.jobs import WRITTEN, lay_out
from secrecy.searched import PARAMETERS, SEED, Secrets, texts
from tablesafe.cli.app import call
from tablesafe.core.errors import TablesafeError
from tablesafe.core.release import Release
from tablesafe.files.serialization import freeze, thaw
from tablesafe.methods import METHODS
from tablesafe.pipeline import run

SAID = ["", "--quiet", "--json"]


@dataclass
class Watch:
    """What was on the disk while a run went on, outside the folder that is for the office."""

    folders: tuple[Path, ...]
    exposed: dict[str, str] = field(default_factory=dict)
    """Temporary files that others could have read: their names, and how they were open to others."""
    seen: set[str] = field(default_factory=set)

    def look(self) -> None:
        for top in self.folders:
            for path in self._temporary(top):
                with contextlib.suppress(OSError):
                    self.seen.add(path.name)
                    mode = stat.S_IMODE(path.lstat().st_mode)
                    within = [up for up in path.parents if up == top or top in up.parents]
                    shut = any(not stat.S_IMODE(up.stat().st_mode) & 0o077 for up in within)
                    if mode & 0o077 and not shut:
                        self.exposed[str(path)] = oct(mode)

    def _temporary(self, top: Path) -> Iterator[Path]:
        for folder, _, names in os.walk(top):
            hidden = any(part.startswith(".") for part in Path(folder).relative_to(top).parts) or top.name == "tmp"
            yield from (Path(folder) / name for name in names if hidden or name.startswith("."))

    def go_on(self, done: threading.Event) -> None:
        while not done.is_set():
            self.look()
            time.sleep(0.002)


@contextlib.contextmanager
def watching(*folders: Path) -> Iterator[Watch]:
    watch, done = Watch(folders), threading.Event()
    thread = threading.Thread(target=watch.go_on, args=(done,))
    thread.start()
    try:
        yield watch
    finally:
        done.set()
        thread.join()


def said_by(folder: Path, *words: str) -> tuple[int, str]:
    """Run a job on the command line, and give all that it prints, without the paths of this test."""
    out = io.StringIO()
    with warnings.catch_warnings(), contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        warnings.simplefilter("always")
        code = call(["run", str(folder / "job.toml"), *words])
    return code, out.getvalue().replace(str(folder), "")


@pytest.fixture
def office(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to work in, and beside it the only folder for temporary files."""
    (tmp_path / "tmp").mkdir(mode=0o755)
    (tmp_path / "work").mkdir(mode=0o755)
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path / "work"


def leaks(office: Path, secrets: Secrets) -> dict[str, set[str]]:
    """Every secret in the files that the public or other users of the machine can see, by file."""
    inputs = {"records.csv", "job.toml", "tree.hrc", "pattern.csv"}
    found: dict[str, set[str]] = {}
    for path in [*office.rglob("*"), *(office.parent / "tmp").rglob("*")]:
        if path.is_file() and "internal" not in path.parts and path.name not in inputs:
            for name, text in texts(path):
                if seen := secrets.found_in(text):
                    found.setdefault(name, set()).update(seen)
    return found


@pytest.mark.parametrize("method", METHODS)
def test_no_method_lets_a_secret_out(office: Path, monkeypatch: pytest.MonkeyPatch, method: str) -> None:
    frame = lay_out(office, method)
    events: list[str] = []
    with watching(office, office.parent / "tmp") as watch, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = run(office / "job.toml", on_event=lambda event: events.append(f"{event.message}{event.detail}"))
    secrets = Secrets.of(result.problem, result.release, frame)
    assert len(secrets.exact) > len(frame) / 2
    assert leaks(office, secrets) == {}
    assert secrets.found_in("\n".join(events)) == set(), "a progress line tells it"
    assert secrets.found_in("\n".join(shown(result.release))) == set(), "a release shows it in a notebook or a shell"
    assert watch.exposed == {}
    assert not list((office.parent / "tmp").iterdir()), "temporary files outlive the run"
    assert not [path for path in office.rglob(".*") if "internal" not in path.parts], "hidden files outlive the run"
    assert {*WRITTEN, "report.html", "report.json", "report.xlsx"} <= {p.name for p in (office / "public").iterdir()}
    kept_shut(office / "internal")
    assert thaw(freeze(result)).facts() == result.facts(), "the web app keeps it without pickle"
    monkeypatch.setattr("tablesafe.pipeline.run", lambda *_, **__: result)
    for words in SAID:
        _, said = said_by(office, *filter(None, [words]))
        assert secrets.found_in(said) == set(), f"printed with {words!r}"


def shown(release: Release) -> Iterator[str]:
    """All that a release says of itself: as text, in a notebook, as a frame with and without what it announces."""
    yield from (repr(release), str(release), release.frame().write_csv(), repr(release.solution), release.method)
    yield getattr(release, "_repr_html_", str)()
    with contextlib.suppress(TablesafeError):  # methods that announce nothing
        yield release.frame(intervals=True).write_csv()


def kept_shut(internal: Path) -> None:
    """The internal folder and all in it are for the owner alone, and it does hold the secrets."""
    assert stat.S_IMODE(internal.stat().st_mode) == 0o700
    for path in internal.rglob("*"):
        mode = stat.S_IMODE(path.stat().st_mode)
        assert mode == (0o700 if path.is_dir() else 0o600), f"{path.name} is {oct(mode)}"
    page = "".join(text for path in internal.rglob("*.html") for _, text in texts(path))
    assert "13.5793172" in page, "the search would find it"


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Secrets:
    """The secrets of the job that suppresses."""
    folder = tmp_path_factory.mktemp("known")
    frame = lay_out(folder, "suppress")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = run(folder / "job.toml")
    return Secrets.of(result.problem, result.release, frame)


STEPS = ["running.build_problem", "attempts.outcome", "running.audit", "running._write"]


@pytest.mark.parametrize("step", STEPS)
def test_a_crash_shows_no_values(office: Path, monkeypatch: pytest.MonkeyPatch, known: Secrets, step: str) -> None:
    """What is held in variables is not printed, and what an error says only when --debug asks for it."""
    lay_out(office, "suppress")
    values = sorted(known.exact)

    def crash(*_: object, **__: object) -> object:
        held = values  # noqa: F841
        raise RuntimeError(told[0])

    told = [f"something is wrong with {values[0]}"]
    monkeypatch.setattr(f"tablesafe.pipeline.{step}", crash)
    for debug in (False, True):
        told[0] = "something is wrong" if debug else told[0]
        code, said = said_by(office, *(["--debug"] if debug else []))
        assert code == 3
        assert ("Traceback" in said) == debug
        assert ("something is wrong" in said) == debug
        assert known.found_in(said) == set(), said
        assert not list((office.parent / "tmp").iterdir())


def test_the_search_finds_every_form(office: Path, known: Secrets) -> None:
    """A search that finds nothing proves nothing: here each secret is planted in each place, and is found."""
    value, word = max(known.exact, key=len), next(iter(sorted(known.words)))
    cell = next(int(number) for number in sorted(known.exact) if len(number) == 8)
    written = [f"{cell}", f"{cell:,}", f"{cell:,}".replace(",", " "), f"{cell:,}".replace(",", "."), f"{cell}.0",
               f"{cell:,}".replace(",", "\u202f"), f"{cell:e}", f"{cell:.7e}", f"{cell / 1000}", f"x,{cell},1",
               f"{cell:,}".replace(",", "'"), value, word, str(PARAMETERS["p"]), str(SEED), "13.579"]  # fmt: skip
    for text in written:
        assert known.found_in(f"before {text} after"), text
        for name, content in _planted(text).items():
            (office / name).write_bytes(content)
            assert leaks(office, known), f"{text} in {name}"
            (office / name).unlink()
    assert not known.found_in("Turnover 2026-11-15 18:00 of 100,000,000 cells, 3.14159265 and 1e20")


def _planted(text: str) -> dict[str, bytes]:
    """A text in every kind of file that the public may get."""
    packed, frame = io.BytesIO(), pl.DataFrame({"a": [text]})
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("docProps/core.xml", f"<x>{text}</x>")
    columns = io.BytesIO()
    frame.write_parquet(columns)
    encoded = base64.b64encode((" " * 60 + text + " " * 60).encode())
    return {
        "log.txt": text.encode(),
        "page.html": b'<img src="data:;base64,' + encoded + b'">',
        "book.xlsx": packed.getvalue(),
        "table.parquet": columns.getvalue(),
        "proof.gz": gzip.compress(text.encode()),
    }


def test_the_watch_sees_files_that_others_can_read(tmp_path: Path) -> None:
    (tmp_path / "tmp").mkdir(mode=0o755)
    (tmp_path / "tmp" / "shut").mkdir(mode=0o700)
    (tmp_path / "tmp" / "shut" / "a").write_text("x", encoding="utf-8")
    watch = Watch((tmp_path / "tmp",))
    watch.look()
    assert watch.exposed == {}
    (tmp_path / "tmp" / "b").write_text("x", encoding="utf-8")
    (tmp_path / "tmp" / "b").chmod(0o644)
    watch.look()
    assert list(watch.exposed) == [str(tmp_path / "tmp" / "b")]


def test_an_open_release_is_named_without_its_values(office: Path) -> None:
    """What the audit prints of open cells stands in logs: the cells, but neither bounds nor levels nor respondents."""
    frame = lay_out(office, "round")
    text = (office / "job.toml").read_text(encoding="utf-8").replace("force = true", "force = false")
    text = text.replace('name = "round"', 'name = "round"\nbase = 10')
    (office / "job.toml").write_text(text, encoding="utf-8")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = run(office / "job.toml")
    assert not result.safe
    assert "derives [" in result.findings.text(shown=5), "there are bounds to be told"
    secrets = Secrets.of(result.problem, result.release, frame)
    code, said = said_by(office)
    assert code == 1
    assert "region=" in said
    assert secrets.found_in(said) == set()
    assert not re.search(r"derives \[|must reach", said)
    assert not (office / "public").exists()
