"""Spread independent tasks over an executor: this process, a pool of processes, or a cluster.

Tasks and results are plain data, functions stand at the top of their modules, so that `concurrent.futures` and Dask can
send them anywhere. Small tasks go together, because sending one costs milliseconds.
"""

from __future__ import annotations

import multiprocessing
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from typing import TypeVar

Task = TypeVar("Task")
Result = TypeVar("Result")

BATCH_S = 1.0
"""Estimated seconds of work that are sent together."""
ENOUGH_S = 20.0
"""Estimated seconds of work from which on a pool of processes is started."""


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
        done: set[int] = set()
        try:
            for i, result in _through(pool, function, tasks, seconds):
                done.add(i)
                yield i, result
        except BrokenProcessPool:
            if executor is not None:
                raise
            warnings.warn("A worker process died; the audit goes on without it.", RuntimeWarning, stacklevel=2)
            yield from ((i, function(task)) for i, task in enumerate(tasks) if i not in done)


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
def workers(executor: Executor | None, seconds: float) -> Iterator[Executor | None]:
    """One executor for many rounds of tasks: the one given, or a pool of our own if `seconds` of work are expected."""
    with _pool(executor, [seconds / 64] * 64) as pool:
        yield pool


def _through(
    pool: Executor, function: Callable[[Task], Result], tasks: Sequence[Task], seconds: Sequence[float]
) -> Iterator[tuple[int, Result]]:
    futures: dict[Future[list[Result]], list[int]] = {}
    try:
        for batch in _batches(seconds):
            futures[pool.submit(_run, function, [tasks[i] for i in batch])] = batch
        for future in as_completed(futures):
            yield from zip(futures[future], future.result(), strict=True)
    finally:
        for future in futures:
            future.cancel()


def _run(function: Callable[[Task], Result], tasks: list[Task]) -> list[Result]:
    return [function(task) for task in tasks]


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
    workers = min(len(seconds), len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1)
    if executor is not None or workers < 2 or sum(seconds) < ENOUGH_S or multiprocessing.get_start_method() != "fork":
        yield executor
        return
    pool = ProcessPoolExecutor(workers)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*fork.*", category=DeprecationWarning)
            yield pool
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
