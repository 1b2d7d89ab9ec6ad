"""A run that was stopped goes on from its checkpoint, and ends as if it had not been; after a change it does not."""

from __future__ import annotations

import shutil
import stat
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from injection import count, kill_at

import tablesafe
from tablesafe.core.errors import InvalidFile, InvalidOption
from tablesafe.pipeline import checkpoint, inputs, run
from tablesafe.pipeline import running as pipeline
from tablesafe.work import executor
from tablesafe.work import memo as remembering

NAMES = ("public/table.csv", "internal/cells.csv", "internal/certificate.json.gz", "internal/findings.json")
pytestmark = pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="needs /proc")


@pytest.fixture(autouse=True)
def _everything_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remembering, "WORTH_S", 0.0)


@pytest.fixture
def always(job: Path) -> Path:
    """The job in parts, with a checkpoint from its first moment on."""
    text = job.read_text(encoding="utf-8")
    text = text.replace('name = "suppress"', 'name = "suppress"\nalgorithm = "modular"')
    job.write_text(text + 'checkpoint = "kept"\ncheckpoint_after_s = 0\n', encoding="utf-8")
    return job


def contents(job: Path) -> dict[str, bytes]:
    return {name: (job.parent / name).read_bytes() for name in NAMES}


def test_nothing_is_kept_of_a_run_that_ends_well_nor_of_a_short_one(always: Path, job: Path) -> None:
    run(always)
    assert not (always.parent / "kept").exists()


def test_a_run_killed_at_any_moment_is_resumed_with_the_same_answer(always: Path, tmp_path_factory) -> None:  # type: ignore[no-untyped-def]
    plain = tmp_path_factory.mktemp("plain") / "job"
    shutil.copytree(always.parent, plain)
    total = len(count(plain, lambda: run(plain / "job.toml")))
    expected = contents(plain / "job.toml")
    resumed = 0
    for n in range(2, total, max(1, total // 8)):
        folder = plain.parent / str(n)
        shutil.copytree(always.parent, folder)
        assert kill_at(n, folder, lambda folder=folder: run(folder / "job.toml"))
        there = (folder / "kept" / checkpoint.ABOUT).exists()
        resumed += there
        if there:
            private = {stat.S_IMODE(path.stat().st_mode) for path in (folder / "kept").iterdir()}
            assert private == {0o600}
            assert stat.S_IMODE((folder / "kept").stat().st_mode) == 0o700
            assert run(folder / "job.toml", resume=True).safe
        else:
            with pytest.warns(UserWarning, match="no checkpoint to resume"):
                assert run(folder / "job.toml", resume=True).safe
        assert contents(folder / "job.toml") == expected
        assert not (folder / "kept").exists()
    assert resumed >= 4


def stopped_in_the_audit(job: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:

        def stop(*args: object, **options: object) -> None:
            raise KeyboardInterrupt

        patch.setattr(pipeline, "_attacked", stop)
        with pytest.raises(KeyboardInterrupt):
            run(job)


def test_what_was_done_is_not_done_again(always: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a whole stage, nor the parts of the one in which the run was stopped."""
    stopped_in_the_audit(always, monkeypatch)
    kept = {path.name for path in (always.parent / "kept").iterdir()}
    assert {"problem", "release", "answers"} <= kept
    worked: list[Callable[..., object]] = []

    def never(*args: object, **options: object) -> None:
        raise AssertionError("this was done before")

    monkeypatch.setattr(pipeline, "build_problem", never)
    monkeypatch.setattr("tablesafe.pipeline.attempts.outcome", never)
    work = executor.work

    def counting(function, tasks):  # type: ignore[no-untyped-def]
        worked.append(function)
        return work(function, tasks)

    monkeypatch.setattr(executor, "work", counting)
    assert run(always, resume=True).safe
    assert worked == []


def test_without_the_wish_to_resume_all_is_done_again(always: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stopped_in_the_audit(always, monkeypatch)
    worked: list[object] = []
    work = executor.work

    def counting(function, tasks):  # type: ignore[no-untyped-def]
        worked.append(function)
        return work(function, tasks)

    monkeypatch.setattr(executor, "work", counting)
    assert run(always).safe
    assert worked, "nothing of the earlier run is used"


def test_the_parts_of_an_unfinished_stage_are_known(always: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stopped_in_the_audit(always, monkeypatch)
    (always.parent / "kept" / "release").unlink()
    worked: list[object] = []
    work = executor.work

    def counting(function, tasks):  # type: ignore[no-untyped-def]
        worked.append(function)
        return work(function, tasks)

    monkeypatch.setattr(executor, "work", counting)
    assert run(always, resume=True).safe
    assert worked == [], "suppression asks the same questions again, and every answer is known"


def test_an_answer_that_is_damaged_is_worked_out_again(always: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(always)
    expected = contents(always)
    stopped_in_the_audit(always, monkeypatch)
    for name in ("problem", "release", "answers"):
        path = always.parent / "kept" / name
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 1
        path.write_bytes(bytes(data))
    assert run(always, resume=True).safe
    assert contents(always) == expected


def test_no_byte_of_an_answer_is_taken_for_another(tmp_path: Path) -> None:
    """Whatever has happened to the file: an answer is as it was given, or there is none."""
    about = {"inputs": {}, "job": "a job", "tablesafe": "a version"}
    given = {"ab" * 32: b"the first answer", "cd" * 32: b"the second"}

    def opened(*, resume: bool) -> checkpoint.Checkpoint:
        made = checkpoint.Checkpoint(tmp_path / "kept", 0.0, about)
        made.open(resume=resume)
        return made

    first = opened(resume=False)
    for key, data in given.items():
        first.put(key, data)
    first.close()
    path = tmp_path / "kept" / checkpoint.ANSWERS
    whole = path.read_bytes()
    damaged = [whole[:i] for i in range(len(whole))]
    damaged += [whole[:i] + bytes([whole[i] ^ 4]) + whole[i + 1 :] for i in range(len(whole))]
    for data in damaged:
        path.write_bytes(data)
        again = opened(resume=True)
        assert all(again.get(key) in (None, answer) for key, answer in given.items())
        again.put("ef" * 32, b"another")
        assert again.get("ef" * 32) == b"another"
        again.close()


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (
            lambda job: (job.parent / "firms.csv").write_text((job.parent / "firms.csv").read_text() + "C,W,f25,1\n"),
            "firms",
        ),
        (lambda job: job.write_text(job.read_text().replace("p = 15", "p = 16")), "the job file"),
    ],
    ids=["input", "job"],
)
def test_after_a_change_nothing_is_resumed(
    always: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[[Path], object], named: str
) -> None:
    stopped_in_the_audit(always, monkeypatch)
    change(always)
    with pytest.raises(InvalidOption, match=rf"(?s)cannot be resumed: .*{named}.* changed.*without --resume"):
        run(always, resume=True)
    assert run(always).safe is not None
    assert not (always.parent / "kept").exists(), "a new beginning removes it"


def test_another_version_resumes_nothing(always: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may ask other questions, or answer them in another way."""
    stopped_in_the_audit(always, monkeypatch)
    monkeypatch.setattr(tablesafe, "__version__", "0.0.0")
    with pytest.raises(InvalidOption, match="the version of tablesafe has changed"):
        run(always, resume=True)


def test_a_pattern_that_changes_while_it_is_read_is_noticed(job: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the method reads is looked at after it was read too, not only the records."""
    run(job)
    shutil.copy(job.parent / "public/table.csv", job.parent / "pattern.csv")
    shutil.rmtree(job.parent / "public")
    given = 'name = "pattern"\nfile = "pattern.csv"'
    job.write_text(job.read_text().replace('name = "suppress"\ntime_limit_s = 5', given))
    read = pipeline.read_pattern

    def meanwhile(*args, **options):  # type: ignore[no-untyped-def]
        made = read(*args, **options)
        (job.parent / "pattern.csv").write_text((job.parent / "pattern.csv").read_text() + "\n")
        return made

    monkeypatch.setattr(pipeline, "read_pattern", meanwhile)
    with pytest.raises(InvalidFile, match=r"'pattern\.csv' changed while it was being read"):
        run(job)
    assert not (job.parent / "public").exists()


def test_where_the_work_is_done_may_change(always: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stopped_in_the_audit(always, monkeypatch)
    always.write_text(always.read_text() + 'executor = "processes"\nworkers = 1\n')
    assert run(always, resume=True).safe


def test_a_checkpoint_is_that_of_one_run(always: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stopped_in_the_audit(always, monkeypatch)
    from tablesafe.files.private import locked_file

    handle = locked_file(always.parent / "kept" / "lock")
    assert handle is not None
    with pytest.raises(InvalidOption, match="Another run is working with the checkpoint"):
        run(always, resume=True)
    assert run(always).safe, "and a new run leaves it alone"
    assert (always.parent / "kept" / checkpoint.ABOUT).exists()
    import os

    os.close(handle)


def test_a_checkpoint_that_cannot_be_written_stops_nothing(always: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*args: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(checkpoint.Checkpoint, "_write", full)
    with pytest.warns(RuntimeWarning, match="keeps no checkpoint from here on: No space left"):
        assert run(always).safe


def test_a_file_that_changes_while_it_is_read_is_noticed(job: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build = pipeline.build_problem

    def meanwhile(*args, **options):  # type: ignore[no-untyped-def]
        made = build(*args, **options)
        path = job.parent / "firms.csv"
        path.write_text(path.read_text().replace("f24,404", "f24,405"))
        return made

    monkeypatch.setattr(pipeline, "build_problem", meanwhile)
    with pytest.raises(InvalidFile, match=r"(?s)'firms.csv' changed while it was being read.*Hint"):
        run(job)
    assert not (job.parent / "public").exists()


def test_a_file_that_changes_within_a_tick_of_the_clock_is_noticed(job: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Times of change are coarse: a file that was changed only just now may change again without its time telling."""
    data = job.parent / "firms.csv"

    def coarse(path: Path) -> SimpleNamespace:
        found = path.stat()
        tick = 1_000_000_000
        return SimpleNamespace(
            st_dev=found.st_dev, st_ino=found.st_ino, st_size=found.st_size,
            st_mtime_ns=found.st_mtime_ns // tick * tick, st_ctime_ns=found.st_ctime_ns // tick * tick,
        )  # fmt: skip

    monkeypatch.setattr(inputs, "os", SimpleNamespace(stat=coarse))
    looked_at = 0
    for _ in range(20):  # twice within one second of the clock, sooner or later
        data.write_text(data.read_text())
        looks = inputs.Inputs({"firms.csv": inputs._look(data)})
        before = coarse(data)
        data.write_text(data.read_text().replace("f24,404", "f24,405"))
        if coarse(data) == before:
            looked_at += 1
            with pytest.raises(InvalidFile, match="changed while it was being read"):
                looks.require_unchanged()
        data.write_text(data.read_text().replace("f24,405", "f24,404"))
    assert looked_at


def test_a_file_that_was_only_touched_has_not_changed(job: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build = pipeline.build_problem

    def meanwhile(*args, **options):  # type: ignore[no-untyped-def]
        made = build(*args, **options)
        (job.parent / "firms.csv").touch()
        return made

    monkeypatch.setattr(pipeline, "build_problem", meanwhile)
    assert run(job).safe


def another_owner(folder: Path) -> None:
    import os

    os.chown(folder, 12345, 12345)


def through_a_link(folder: Path) -> None:
    import os

    folder.rename(folder.with_name("elsewhere"))
    folder.symlink_to("elsewhere")
    os.lchown(folder, 12345, 12345)


def writable(folder: Path) -> None:
    folder.chmod(0o777)


def locked_through_a_link(folder: Path) -> None:
    (folder / "lock").unlink(missing_ok=True)
    (folder / "lock").symlink_to(folder.parent / "target")


@pytest.mark.parametrize("tampered", [another_owner, through_a_link, writable, locked_through_a_link])
def test_a_checkpoint_that_others_can_change_is_neither_read_nor_written(
    always: Path, monkeypatch: pytest.MonkeyPatch, tampered: Callable[[Path], None]
) -> None:
    stopped_in_the_audit(always, monkeypatch)
    kept = always.parent / "kept"
    try:
        tampered(kept)
    except PermissionError:
        pytest.skip("only root gives files away")
    before = {path.name: path.read_bytes() for path in kept.iterdir() if path.is_file()}
    with pytest.raises(InvalidOption, match=r"(?s)cannot be resumed: .*Hint: resume only what you kept yourself"):
        run(always, resume=True)
    with pytest.warns(RuntimeWarning, match="keeps no checkpoint from here on"):
        assert run(always).safe
    assert {path.name: path.read_bytes() for path in kept.iterdir() if path.is_file()} == before
    assert not (always.parent / "target").exists()


def test_a_file_that_somebody_put_in_the_place_of_the_checkpoint_is_not_written_through(
    always: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept, target = always.parent / "kept", always.parent / "target"
    kept.mkdir(mode=0o700)
    target.touch()
    (kept / "problem.part").symlink_to(target)
    with pytest.warns(RuntimeWarning, match="keeps no checkpoint from here on"):
        assert run(always).safe
    assert target.read_bytes() == b""
