"""Work on a cluster, through Dask: worker processes of this machine, or a scheduler that somebody runs.

What is sent are parts of tables, with true values. On this machine it goes through encrypted connections that only this
process knows the keys of; to another, as encrypted as its address says: `tls://` is, `tcp://` is not.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor, Future
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import tablesafe
from tablesafe.core.errors import InvalidOption, MissingExtra
from tablesafe.files.private import private_folder

NO_PAGES: dict[str, list[str]] = {"distributed.scheduler.http.routes": [], "distributed.worker.http.routes": []}
"""Dask shows its tasks to everybody on the machine, on pages without a key, unless it is told to have none."""
CONNECT_S, PING_S = 30.0, 5.0
"""Seconds in which a scheduler must answer: at first, and later."""
PINGS = 6
"""How often a scheduler without workers is asked again: they may be on their way."""
RECONNECTS = 3
"""How often a lost scheduler is looked for before it is given up."""
CONFIG: Mapping[str, Any] = {
    "distributed.worker.memory.spill": False,
    "distributed.worker.memory.target": False,
    "distributed.worker.memory.pause": False,
    "distributed.admin.large-graph-warning-threshold": "100GB",
    "distributed.comm.timeouts.connect": "10s",
    "distributed.scheduler.allowed-failures": 3,
}
"""Nothing confidential is put on a disk; large parts are meant to be sent."""


class Cluster(Executor):
    """The workers behind a scheduler. A scheduler that was restarted is found again under its address."""

    def __init__(self, address: str, security: Any, what: str) -> None:
        self._address, self._security, self._what = address, security, what
        self._client: Any = self._connected()
        self._reconnects = 0

    def submit(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Have a function called by one of the workers."""
        future: Future[Any] = self._client.get_executor(pure=False).submit(function, *args, **kwargs)
        return future

    def answers(self) -> bool:
        """Whether the scheduler answers, and has workers."""
        for again in range(PINGS):
            told = identity(self._address, self._security)
            if told is None:
                return False
            if told["workers"]:
                return True
            if again < PINGS - 1:
                time.sleep(PING_S)
        return False

    def revive(self) -> bool:
        """Connect anew, if the scheduler is there again."""
        self._reconnects += 1
        if self._reconnects > RECONNECTS:
            return False
        if self._client.status == "running" and self.answers():
            return True
        self.shutdown(wait=False)
        with suppress(Exception):
            self._client = self._connected()
            return self.answers()
        return False

    def _connected(self) -> Any:
        """A client of the scheduler, once that answers: a client alone would wait without end for one that does not."""
        from distributed import Client

        end = time.monotonic() + CONNECT_S
        while identity(self._address, self._security) is None:
            if time.monotonic() > end:
                raise TimeoutError(f"nobody answers at {self._address}")
            time.sleep(0.2)
        client: Any = Client
        return client(self._address, timeout=CONNECT_S, security=self._security, set_as_default=False)

    def agree(self) -> None:
        """Check that the workers have this program, in this version: else they would answer something else."""
        try:
            self._client.wait_for_workers(1, timeout=CONNECT_S)
            found = {self._client.run_on_scheduler(version_here), *self._client.run(version_here).values()}
        except Exception as error:
            raise InvalidOption(
                f"The workers of {self._what} cannot do the work: {type(error).__name__}.",
                hint=f"are there workers, and is tablesafe {tablesafe.__version__} installed where they and their "
                f"scheduler run?",
            ) from error
        other = found - {version_here()}
        if other:
            raise InvalidOption(
                f"The workers of {self._what} have tablesafe {min(other)}, this process {version_here()}.",
                hint="install the same version everywhere.",
            )

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Leave the cluster; it goes on without us."""
        with suppress(Exception):
            self._client.close(timeout=PING_S if wait else 1)


def identity(address: str, security: Any) -> dict[str, Any] | None:
    """What a scheduler says of itself; None when it says nothing. In a thread, for this one may have a loop running."""
    from distributed.comm.core import connect
    from distributed.security import Security

    call: Any = connect
    plain: Any = Security
    secure = security or plain()
    found: list[dict[str, Any]] = []

    async def ask() -> None:
        comm = await call(address, timeout=PING_S, **secure.get_connection_args("client"))
        try:
            await comm.write({"op": "identity", "reply": True})
            found.append(await asyncio.wait_for(comm.read(), PING_S))
        finally:
            comm.abort()

    def run() -> None:
        with suppress(Exception):
            asyncio.run(ask())

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(3 * PING_S)
    return found[0] if found else None


def version_here() -> str:
    """The version of this program, wherever it is asked."""
    return tablesafe.__version__


@contextmanager
def cluster(
    workers: int | None, scheduler: str | None, certificates: Path | None, temporary: str | Path | None
) -> Iterator[Cluster]:
    """A cluster: that of a scheduler, or one of this machine for the time being."""
    try:
        import dask
        import distributed
    except ImportError as error:
        raise MissingExtra("Work on a Dask cluster", "dask") from error
    with ExitStack() as stack:
        stack.enter_context(dask.config.set(CONFIG))
        stack.enter_context(_quiet())
        if scheduler is None:
            private = stack.enter_context(private_folder(temporary))
            local = stack.enter_context(_local(distributed, workers, private))
            address, security, what = local.scheduler_address, local.security, "the cluster of this machine"
        else:
            address, security, what = scheduler, _security(distributed, certificates), scheduler

        try:
            made = Cluster(address, security, what)
        except (OSError, ValueError, TimeoutError) as error:
            raise InvalidOption(
                f"No Dask scheduler answers at {address!r}: {type(error).__name__}.",
                hint="is 'scheduler' in [run] the address that 'dask scheduler' prints, and may it be reached from "
                "here?",
            ) from error
        stack.callback(made.shutdown, wait=False)
        made.agree()
        yield made


@contextmanager
def _local(distributed: Any, workers: int | None, private: Path) -> Iterator[Any]:
    """Worker processes of this machine; nobody else on it can send them work, or read what they are sent."""
    try:
        security = distributed.Security.temporary()
    except ImportError as error:
        raise MissingExtra("Encryption between this process and the workers", "dask") from error
    from dask import config

    with config.set(NO_PAGES):
        made = distributed.LocalCluster(
            n_workers=workers, threads_per_worker=1, processes=True, host="127.0.0.1", dashboard_address=None,
            scheduler_kwargs={"dashboard_address": "127.0.0.1:0"},
            security=security, protocol="tls://", local_directory=str(private), memory_limit=0,
            silence_logs=logging.CRITICAL,
        )  # fmt: skip
    try:
        yield made
    finally:
        with suppress(Exception):
            made.close(timeout=PING_S)


def _security(distributed: Any, certificates: Path | None) -> Any:
    """The keys for a scheduler: those in a folder, or those that Dask's own settings name."""
    if certificates is None:
        return None
    named = {name: certificates / f"{name}.pem" for name in ("ca", "cert", "key")}
    for path in named.values():
        if not path.is_file():
            raise InvalidOption(
                f"There is no file {str(path)!r}.",
                hint="'certificates' in [run] is a folder with ca.pem, cert.pem and key.pem.",
            )
    ca, cert, key = (str(path) for path in named.values())
    return distributed.Security(tls_ca_file=ca, tls_client_cert=cert, tls_client_key=key, require_encryption=True)


@contextmanager
def _quiet() -> Iterator[None]:
    """Let Dask not write down what it is sent, nor what it thinks of a connection that is gone."""
    log = logging.getLogger("distributed")
    before = log.level
    log.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        log.setLevel(before)
