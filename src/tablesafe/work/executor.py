"""Spread independent tasks over an executor: this process, a pool of processes, or a cluster.

Tasks and results are plain data, functions stand at the top of their modules, so that `concurrent.futures` and Dask can
send them anywhere. Small tasks go together, because sending one costs milliseconds. Whatever happens to those who do
the work, every task is answered once: what they leave undone is sent again, and in the end done here.
"""

from __future__ import annotations

import multiprocessing
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import thread_time
from typing import Generic, Literal, Protocol, TypeVar, runtime_checkable

from tablesafe.core.machine import cores
from tablesafe.work.memo import Remembering
from tablesafe.work.processes import Processes

Task = TypeVar("Task")
Result = TypeVar("Result")

BATCH_S = 1.0
"""Estimated seconds of work that are sent together."""
ENOUGH_S = 20.0
"""Estimated seconds of work from which on a pool of processes is started."""
SENT_S = 0.02
"""Estimated seconds of work below which nothing is sent to another process."""
QUIET_S = 10.0
"""Seconds without a result after which a cluster is asked whether it is still there."""
ATTEMPTS = 3
"""How often what was left undone is sent again."""
LOST = "The processes that did the work are gone ({}); the work goes on without them."


@runtime_checkable
class Remote(Protocol):
    """An executor that may be lost, and found again."""

    def answers(self) -> bool:
        """Whether somebody is there to do the work."""
        ...

    def revive(self) -> bool:
        """Begin again with whoever is there; whether anybody is."""
        ...


class Lost(Exception):
    """Those who did the work are gone; their tasks are not."""


@dataclass(frozen=True, slots=True)
class Failed:
    """A task that raised an error: it would do so anywhere."""

    error: Exception


@dataclass(frozen=True, slots=True)
class Batch(Generic[Result]):
    """What came of some tasks, and how long they took."""

    results: list[Result | Failed]
    seconds: float


def spread(
    function: Callable[[Task], Result],
    tasks: Sequence[Task],
    seconds: Sequence[float],
    executor: Executor | None,
) -> Iterator[tuple[int, Result]]:
    """Each task's number and result, as they are finished. `seconds` estimates how long each task takes.

    Without an executor a pool of processes is started when there is enough to do; otherwise the tasks run here.
    """
    with _pool(executor, seconds) as pool:
        if pool is None:
            yield from ((i, function(task)) for i, task in enumerate(tasks))
            return
        if isinstance(pool, Remote) and sum(seconds) < SENT_S:
            yield from ((i, function(task)) for i, task in enumerate(tasks))
            return
        memory, pool = (pool, pool.inner) if isinstance(pool, Remembering) else (None, pool)
        for batch, answer in _answers(pool, memory, function, tasks, list(_batches(seconds))):
            for i, result in zip(batch, answer.results, strict=True):
                if isinstance(result, Failed):
                    raise result.error
                yield i, result


def in_order(
    function: Callable[[Task], Result],
    tasks: Sequence[Task],
    seconds: Sequence[float],
    executor: Executor | None,
) -> list[Result]:
    """The result of each task, in the order of the tasks, whoever did the work and whenever it was finished."""
    results = dict(spread(function, tasks, seconds, executor))
    return [results[i] for i in range(len(tasks))]


@contextmanager
def executor_called(
    name: Literal["here", "processes", "dask"],
    workers: int | None = None,
    *,
    scheduler: str | None = None,
    keys: Path | None = None,
    temporary: Path | None = None,
) -> Iterator[Executor | None]:
    """The executor of a name, for the time being; none means this process. New processes are fresh: forks copy locks.

    Workers of a cluster are those of a `scheduler`, reached with the `keys` of a folder, or of this machine.
    """
    if name == "here":
        yield None
    elif name == "processes":
        with Processes(workers) as pool:
            yield pool
    else:
        from tablesafe.work.dask import cluster

        with cluster(workers, scheduler, keys, temporary) as far:
            yield far


@contextmanager
def workers(executor: Executor | None, seconds: float) -> Iterator[Executor | None]:
    """One executor for many rounds of tasks: the one given, or a pool of our own if `seconds` of work are expected."""
    with _pool(executor, [seconds / 64] * 64) as pool:
        yield pool


def _answers(
    pool: Executor | None,
    memory: Remembering | None,
    function: Callable[[Task], Result],
    tasks: Sequence[Task],
    batches: list[list[int]],
) -> Iterator[tuple[list[int], Batch[Result]]]:
    """What came of each batch: as remembered, from the pool, and, when that is lost, from here."""
    left = dict(enumerate(batches))
    keys: dict[int, str] = {}
    if memory is not None:
        for number, batch in enumerate(batches):
            keys[number] = memory.key(function, [tasks[i] for i in batch])
            known = memory.recall(keys[number])
            if known is not None:
                yield left.pop(number), known
    for number, answer in _somewhere(pool, function, tasks, left):
        if memory is not None and not any(isinstance(result, Failed) for result in answer.results):
            memory.keep(keys[number], answer, answer.seconds)
        yield left.pop(number), answer


def _somewhere(
    pool: Executor | None, function: Callable[[Task], Result], tasks: Sequence[Task], left: dict[int, list[int]]
) -> Iterator[tuple[int, Batch[Result]]]:
    """The work on the batches that are left, which the caller takes away as they are answered."""
    reason: object = None
    for _ in range(0 if pool is None else ATTEMPTS):
        assert pool is not None
        try:
            yield from _through(pool, function, tasks, left)
        except Lost as lost:
            reason = lost
            if not isinstance(pool, Remote) or not pool.revive():
                break
        else:
            return
    if reason is not None and left:
        warnings.warn(LOST.format(reason), RuntimeWarning, stacklevel=2)
    for number in list(left):
        yield number, work(function, [tasks[i] for i in left[number]])


def _through(
    pool: Executor, function: Callable[[Task], Result], tasks: Sequence[Task], left: dict[int, list[int]]
) -> Iterator[tuple[int, Batch[Result]]]:
    futures: dict[Future[Batch[Result]], int] = {}
    try:
        for number, batch in left.items():
            futures[_submitted(pool, function, [tasks[i] for i in batch])] = number
        pending = set(futures)
        while pending:
            done, pending = wait(pending, timeout=QUIET_S, return_when=FIRST_COMPLETED)
            if not done and isinstance(pool, Remote) and not pool.answers():
                raise Lost("nobody answers")
            for future in sorted(done, key=futures.__getitem__):
                yield futures[future], _result(future)
    finally:
        for future in futures:
            future.cancel()


def _submitted(pool: Executor, function: Callable[[Task], Result], tasks: list[Task]) -> Future[Batch[Result]]:
    try:
        return pool.submit(work, function, tasks)
    except Exception as error:
        raise Lost(_words(error)) from error


def _result(future: Future[Batch[Result]]) -> Batch[Result]:
    """What a future holds. An error in it is not the task's own, which is a result like any other."""
    try:
        return future.result()
    except Exception as error:
        raise Lost(_words(error)) from error


def _words(error: Exception) -> str:
    """An error in few words, without the values that it may quote."""
    return type(error).__name__


def work(function: Callable[[Task], Result], tasks: list[Task]) -> Batch[Result]:
    """Do some tasks; an error of one of them is its result."""
    start = thread_time()
    results: list[Result | Failed] = []
    for task in tasks:
        try:
            results.append(function(task))
        except Exception as error:
            results.append(Failed(error))
            break
    results += [Failed(AssertionError("not done"))] * (len(tasks) - len(results))
    return Batch(results, thread_time() - start)


def _batches(seconds: Sequence[float]) -> Iterator[list[int]]:
    """Long tasks first, each alone; short ones together."""
    batch: list[int] = []
    total = 0.0
    for i in sorted(range(len(seconds)), key=lambda i: -seconds[i]):
        batch.append(i)
        total += seconds[i]
        if total >= BATCH_S:
            yield batch
            batch, total = [], 0.0
    if batch:
        yield batch


@contextmanager
def _pool(executor: Executor | None, seconds: Sequence[float]) -> Iterator[Executor | None]:
    """The executor that was given, a pool of our own, or none.

    Where new processes must import the caller's main program again (Windows, macOS), a pool is never started unasked.
    """
    workers = min(len(seconds), cores())
    memory = executor if isinstance(executor, Remembering) and executor.inner is None else None
    given = executor is not None and memory is None
    if given or workers < 2 or sum(seconds) < ENOUGH_S or multiprocessing.get_start_method() != "fork":
        yield executor
        return
    with Processes(workers, method="fork") as pool, warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*fork.*", category=DeprecationWarning)
        yield pool if memory is None else memory.over(pool)
