"""A job on a Dask cluster: the same answer as here, whatever happens to those who do the work."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from elsewhere import divide, fatal_once, gated, marked

from tablesafe.core.errors import InvalidOption
from tablesafe.pipeline import run
from tablesafe.report.progress import Event
from tablesafe.work import dask as clusters
from tablesafe.work import executor as spreading
from tablesafe.work.dask import Cluster, cluster
from tablesafe.work.executor import in_order, spread
from tablesafe.work.processes import Processes

distributed = pytest.importorskip("distributed", reason="Dask's distributed is not installed")
pytest.importorskip("cryptography", reason="cryptography is not installed")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")

Outputs = Callable[[Path], dict[str, bytes]]


@pytest.fixture(scope="module", autouse=True)
def _patient() -> Iterator[None]:
    """On a busy machine a worker may take long to begin."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(clusters, "CONNECT_S", 300.0)
        yield


@pytest.fixture(scope="module")
def workers() -> Iterator[Cluster]:
    """Two worker processes of this machine for all tests of this file."""
    with cluster(2, None, None, None) as made:
        yield made


@pytest.mark.parametrize("page", ["info/main/workers.html", "json/counts.json", "metrics", "status"])
def test_workers_of_this_machine_show_no_pages(workers: Cluster, page: str) -> None:
    """Dask's own pages have no key, and an address that everybody on the machine can open."""
    port = workers._client.scheduler_info()["services"]["dashboard"]
    assert port != 8787  # two runs at once are no reason for a warning
    with pytest.raises(urllib.error.HTTPError, match="404"):
        urllib.request.urlopen(f"http://127.0.0.1:{port}/{page}", timeout=20)


@contextmanager
def scheduler(folder: Path, port: int = 0, keys: Path | None = None) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """A scheduler as an office runs one, in a process of its own, with one worker."""
    file = folder / f"scheduler-{time.monotonic_ns()}.json"
    tls = [] if keys is None else [f"--tls-{what}={keys / name}.pem" for what, name in
                                   (("ca-file", "ca"), ("cert", "cert"), ("key", "key"))]  # fmt: skip
    protocol = [] if keys is None else ["--protocol", "tls"]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
    common = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": folder, "env": environment}
    first = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", str(port),
             "--no-dashboard", "--scheduler-file", str(file), *protocol, *tls]  # fmt: skip
    with ExitStack() as stack:
        process = stack.enter_context(ending(subprocess.Popen(first, **common)))  # type: ignore[call-overload]
        while not file.exists() or not file.read_text().endswith("}"):
            assert process.poll() is None, "the scheduler ended"
            time.sleep(0.05)
        second = [sys.executable, "-m", "distributed.cli.dask_worker", "--scheduler-file", str(file), "--nthreads", "1",
                  "--no-dashboard", "--no-nanny", "--local-directory", str(folder), *tls]  # fmt: skip
        stack.enter_context(ending(subprocess.Popen(second, **common)))  # type: ignore[call-overload]
        yield process, json.loads(file.read_text())["address"]


@contextmanager
def ending(process: subprocess.Popen[bytes]) -> Iterator[subprocess.Popen[bytes]]:
    try:
        yield process
    finally:
        process.send_signal(signal.SIGCONT)
        process.kill()
        process.wait()


@pytest.fixture(autouse=True)
def _patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait long for whoever is slow on a busy machine."""
    monkeypatch.setattr(clusters, "PING_S", 10.0)
    monkeypatch.setattr(clusters, "CONNECT_S", 300.0)
    monkeypatch.setattr(clusters, "PINGS", 30)


@pytest.fixture
def lose_patience(_patience: None, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """From the call on, not to wait at all: for whoever is gone for sure."""
    monkeypatch.setattr(spreading, "QUIET_S", 1.0)

    def now() -> None:
        monkeypatch.setattr(clusters, "PING_S", 1.0)
        monkeypatch.setattr(clusters, "CONNECT_S", 1.0)

    return now


def test_a_job_gives_the_same_files_as_here(
    write_job: Callable[..., Path], outputs: Outputs, everything_is_sent: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, there = write_job("here"), write_job("dask", 'executor = "dask"\nworkers = 2')
    sent = 0
    submit = Cluster.submit

    def counting(self: Cluster, *args: object) -> object:
        nonlocal sent
        sent += 1
        return submit(self, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(Cluster, "submit", counting)
    assert run(here).safe
    assert sent == 0
    assert run(there).safe
    assert sent > 3, "suppression and audit went to the cluster"
    assert outputs(there) == outputs(here)


def test_what_is_sent_is_encrypted_and_stays_on_this_machine(workers: Cluster) -> None:
    told = workers._client.scheduler_info()
    addresses = [told["address"], *told["workers"]]
    assert all(address.startswith("tls://127.0.0.1:") for address in addresses)


def test_a_worker_that_is_killed_loses_nothing_and_nothing_counts_twice(workers: Cluster, tmp_path: Path) -> None:
    tasks = [(str(tmp_path), i) for i in range(8)]
    found = list(spread(fatal_once, tasks, [5.0] * 8, workers))
    assert sorted(found) == [(i, i * i) for i in range(8)]
    assert (tmp_path / "killed").exists()


def test_answers_stand_in_the_order_of_the_questions_whoever_is_first() -> None:
    second = threading.Event()

    def answer(number: int) -> int:
        if number:
            second.set()
        else:
            second.wait()
            time.sleep(0.3)  # the other one is seen before
        return number

    with ThreadPoolExecutor(2) as pool:
        assert in_order(answer, [0, 1], [5.0, 5.0], pool) == [0, 1]


def test_an_error_of_a_task_is_its_own_and_is_not_tried_again(workers: Cluster) -> None:
    with pytest.raises(ZeroDivisionError):
        list(spread(divide, [1, 0], [5.0, 5.0], workers))


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "cut off"])
def test_without_its_scheduler_the_work_goes_on_here(
    tmp_path: Path, lose_patience: Callable[[], None], how: signal.Signals
) -> None:
    with scheduler(tmp_path) as (process, address), cluster(None, address, None, None) as made:
        work = spread(gated, [(str(tmp_path), i) for i in range(12)], [5.0] * 12, made)
        found = [next(work)]
        process.send_signal(how)
        lose_patience()
        (tmp_path / "open").touch()
        with pytest.warns(RuntimeWarning, match="the work goes on without them"):
            found += list(work)
    assert sorted(found) == [(i, i * i) for i in range(12)]


def test_a_scheduler_that_is_restarted_is_used_again(tmp_path: Path, lose_patience: Callable[[], None]) -> None:
    with ExitStack() as stack:
        process, address = stack.enter_context(scheduler(tmp_path))
        made = stack.enter_context(cluster(None, address, None, None))
        work = spread(gated, [(str(tmp_path), i) for i in range(8)], [5.0] * 8, made)
        found = [next(work)]
        process.kill()
        process.wait()
        stack.enter_context(scheduler(tmp_path, int(address.rsplit(":", 1)[1])))
        (tmp_path / "open").touch()
        with warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)  # nothing had to be done here
            found += list(work)
        assert sorted(found) == [(i, i * i) for i in range(8)]


def test_a_job_whose_scheduler_is_killed_gives_the_same_files(
    write_job: Callable[..., Path],
    outputs: Outputs,
    everything_is_sent: None,
    lose_patience: Callable[[], None],
    tmp_path: Path,
) -> None:
    here = write_job("here")
    run(here)
    with scheduler(tmp_path) as (process, address):

        def kill(event: Event) -> None:
            if event.stage == "audit":
                process.kill()
                lose_patience()

        there = write_job("dask", f'executor = "dask"\nscheduler = "{address}"')
        with pytest.warns(RuntimeWarning, match="the work goes on without them"):
            assert run(there, on_event=kill).safe
    assert outputs(there) == outputs(here)


@pytest.mark.parametrize("where", ["dask", "processes"])
def test_a_job_whose_worker_is_killed_gives_the_same_files(
    write_job: Callable[..., Path],
    outputs: Outputs,
    everything_is_sent: None,
    monkeypatch: pytest.MonkeyPatch,
    where: str,
) -> None:
    """With work in its hands, in the middle of the audit."""
    here, there = write_job("here"), write_job(where, f'executor = "{where}"\nworkers = 1')
    run(here)
    killed: list[int] = []
    audited: list[Event] = []
    kind: Any = Cluster if where == "dask" else Processes
    submit = kind.submit

    def workers_of(pool: Any) -> list[int]:
        if where == "dask":
            return list(pool._client.run(os.getpid).values())
        return list(pool._pool._processes)

    def killing(self: Any, *args: Any) -> Any:
        if not audited or killed:
            return submit(self, *args)
        [pid] = workers_of(self)
        future = submit(self, *args)
        os.kill(pid, signal.SIGKILL)
        killed.append(pid)
        return future

    monkeypatch.setattr(kind, "submit", killing)
    result = run(there, on_event=lambda event: audited.append(event) if event.stage == "audit" else None)
    assert killed
    assert result.safe
    assert outputs(there) == outputs(here)


def test_a_scheduler_with_certificates(tmp_path: Path) -> None:
    keys = tmp_path / "keys"
    keys.mkdir()
    made = distributed.Security.temporary()
    for name, text in (("ca", made.tls_ca_file), ("cert", made.tls_client_cert), ("key", made.tls_client_key)):
        (keys / f"{name}.pem").write_text(text)
    with scheduler(tmp_path, keys=keys) as (_, address):
        assert address.startswith("tls://")
        with cluster(None, address, keys, None) as there:
            assert dict(spread(marked, [(str(tmp_path), 7)], [5.0], there)) == {0: 49}
        with pytest.raises(InvalidOption, match=r"ca\.pem"):
            cluster(None, address, tmp_path, None).__enter__()


def test_nobody_at_the_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clusters, "CONNECT_S", 1.0)
    with (
        pytest.raises(
            InvalidOption, match=r"(?s)No Dask scheduler answers at 'tcp://127.0.0.1:9'.*'scheduler' in \[run\]"
        ),
        cluster(None, "tcp://127.0.0.1:9", None, None),
    ):
        pass
